//! What happens when, in virtual time.

use core::cmp::Ordering;
use std::collections::BinaryHeap;
use uet_model::Time;

/// Things that happen at a time. Those of the same time happen in the order in which they were added.
///
/// ```
/// use uet_emulator::fabric::Queue;
/// use uet_model::Time;
///
/// let mut queue = Queue::default();
/// queue.push(Time(20), "late");
/// queue.push(Time(10), "early");
/// queue.push(Time(20), "later");
/// assert_eq!(queue.next(), Some(Time(10)));
/// assert_eq!(queue.pop(Time(15)), Some((Time(10), "early")));
/// assert_eq!(queue.pop(Time(15)), None);
/// assert_eq!(queue.pop(Time(30)), Some((Time(20), "late")));
/// ```
#[derive(Clone, Debug)]
pub struct Queue<T> {
    heap: BinaryHeap<Entry<T>>,
    pushed: u64,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    at: Time,
    number: u64,
    what: T,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Queue { heap: BinaryHeap::new(), pushed: 0 }
    }
}

impl<T> Queue<T> {
    /// Adds something.
    pub fn push(&mut self, at: Time, what: T) {
        self.heap.push(Entry { at, number: self.pushed, what });
        self.pushed += 1;
    }

    /// When the next thing happens.
    pub fn next(&self) -> Option<Time> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// The next thing, if it happens at this time or before.
    pub fn pop(&mut self, now: Time) -> Option<(Time, T)> {
        self.next().filter(|at| *at <= now)?;
        self.heap.pop().map(|entry| (entry.at, entry.what))
    }

    /// How many things are to happen.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is to happen.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl<T> Entry<T> {
    fn key(&self) -> (Time, u64) {
        (self.at, self.number)
    }
}

/// The heap has its greatest on top: that is the earliest.
impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}
