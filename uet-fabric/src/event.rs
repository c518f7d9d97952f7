use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An event of the control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The kind of event, a number of libfabric.
    pub kind: u32,
    /// The bytes of the event, as the reader gets them.
    pub body: Vec<u8>,
}

/// A queue of events.
#[derive(Debug, Default)]
pub struct EventQueue {
    events: Mutex<VecDeque<Event>>,
}

impl EventQueue {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event.
    pub fn push(&self, event: Event) {
        self.lock().push_back(event);
    }

    /// Takes the next event, or returns a copy and leaves it there.
    pub fn read(&self, leave: bool) -> Option<Event> {
        let mut events = self.lock();
        if leave { events.front().cloned() } else { events.pop_front() }
    }
}
