//! What happens when. Times are picoseconds, so that a byte takes a whole number of them at every link rate in use.

use core::time::Duration;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use uet_model::Time;

/// A point in time, or a span, in picoseconds.
pub(crate) type Picos = u64;

/// A span in picoseconds; one that has no end lasts half a year.
pub(crate) fn picos(span: Duration) -> Picos {
    u64::try_from(span.as_nanos()).ok().and_then(|nanos| nanos.checked_mul(1000)).unwrap_or(u64::MAX)
}

/// The model's clock, which counts nanoseconds.
pub(crate) fn model_time(at: Picos) -> Time {
    Time(at / 1000)
}

/// How long a link of this rate, in bits per second, takes for so many bytes.
pub(crate) fn serialisation(bytes: u32, rate: u64) -> Picos {
    let bits = u128::from(bytes) * 8 * 1_000_000_000_000;
    (bits / u128::from(rate.max(1))) as Picos
}

/// Things that happen at a time. Those of the same time happen in the order in which they were added.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    added: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: Picos,
    number: u64,
    what: T,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Agenda { heap: BinaryHeap::new(), added: 0 }
    }
}

impl<T> Agenda<T> {
    pub(crate) fn add(&mut self, at: Picos, what: T) {
        self.heap.push(Reverse(Entry { at, number: self.added, what }));
        self.added += 1;
    }

    /// The next thing, if it happens by then.
    pub(crate) fn next(&mut self, until: Picos) -> Option<(Picos, T)> {
        self.heap.peek().filter(|Reverse(entry)| entry.at <= until)?;
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
