use crate::error::{Code, Result};
use crate::wake::Wake;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
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
    wake: Wake,
}

impl EventQueue {
    /// Creates a queue; with a file descriptor to wait for, if asked.
    pub fn new(with_fd: bool) -> Result<Self> {
        Ok(EventQueue { events: Mutex::default(), wake: Wake::new(with_fd)? })
    }

    /// Returns the file descriptor that is readable while the queue has events.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.wake.fd()
    }

    /// Returns whether the queue has no event.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event.
    pub fn push(&self, event: Event) {
        self.lock().push_back(event);
        self.wake.set();
    }

    /// Takes the next event, or returns a copy and leaves it there. Fails with EAGAIN if there is none, and with
    /// ETOOSMALL if its body is longer than `room`; it then stays.
    pub fn read(&self, room: usize, leave: bool) -> Result<Event, Code> {
        let mut events = self.lock();
        let first = events.front().ok_or(Code::EAGAIN)?;
        if first.body.len() > room {
            return Err(Code::ETOOSMALL);
        }
        let first = first.clone();
        if !leave {
            events.pop_front();
            if events.is_empty() {
                self.wake.clear();
            }
        }
        Ok(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    #[test]
    fn descriptor_is_readable_while_events_wait() {
        let queue = EventQueue::new(true).unwrap();
        let readable = || {
            let mut fds = [PollFd::new(queue.fd().unwrap(), PollFlags::POLLIN)];
            poll(&mut fds, PollTimeout::ZERO).unwrap() == 1
        };
        assert!(!readable());
        for kind in 0..2 {
            queue.push(Event { kind, body: vec![0; 24] });
        }
        assert!(readable() && !queue.is_empty());
        assert_eq!(queue.read(8, false), Err(Code::ETOOSMALL), "the event stays");
        assert_eq!(queue.read(24, true).unwrap().kind, 0);
        assert_eq!(queue.read(24, false).unwrap().kind, 0);
        assert!(readable());
        assert_eq!(queue.read(24, false).unwrap().kind, 1);
        assert!(!readable());
        assert_eq!(queue.read(24, false), Err(Code::EAGAIN));
    }
}
