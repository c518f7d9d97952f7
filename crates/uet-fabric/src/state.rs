//! The state of an endpoint, which its domain keeps.

use crate::address::AddressVector;
use crate::flags;
use crate::queue::{CompletionQueue, Counter, Entry};
use std::sync::Arc;

/// The options of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointOptions {
    /// True if messages to a peer arrive in order. They then use the mode ROD, otherwise RUD.
    pub ordered_messages: bool,
    /// True if writes and atomics to a peer arrive in order, also with messages.
    pub ordered_memory: bool,
    /// True if receives can name their sender.
    pub directed: bool,
}

/// The state of an endpoint.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) options: EndpointOptions,
    pub(crate) addresses: Option<Arc<AddressVector>>,
    pub(crate) sends: Option<Arc<CompletionQueue>>,
    pub(crate) receives: Option<Arc<CompletionQueue>>,
    pub(crate) counters: Vec<(u64, Arc<Counter>)>,
    pub(crate) min_multi_receive: usize,
    pub(crate) enabled: bool,
}

impl State {
    /// Adds an entry to the queue of its kind if asked, and counts it.
    pub(crate) fn report(&self, kind: u64, entry: Entry, to_queue: bool, counts: bool) {
        let is_receive = kind & (flags::RECV | flags::REMOTE_WRITE) != 0;
        let queue = if is_receive { &self.receives } else { &self.sends };
        if let (Some(queue), true) = (queue, to_queue) {
            queue.push(entry);
        }
        let counters = self.counters.iter().filter(|(kinds, _)| counts && kinds & kind != 0);
        counters.for_each(|(_, counter)| counter.count(matches!(entry, Entry::Done(_))));
    }
}
