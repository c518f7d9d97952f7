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
///
/// Nearly all of them happen soon. A wheel of slots takes these, each slot a few nanoseconds of the next hundred microseconds;
/// what comes later waits in a heap. Only the slot whose time has come is sorted, and there is little in it.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    /// What is due in the slot that has come, the next last.
    due: Vec<Entry<T>>,
    /// The number of that slot, counted from time 0.
    tick: u64,
    slots: Vec<Vec<Entry<T>>>,
    /// A bit for each slot in which there is something.
    occupied: Vec<u64>,
    later: BinaryHeap<Reverse<Entry<T>>>,
    added: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: Picos,
    number: u64,
    what: T,
}

/// 16 ns.
const SLOT_BITS: u32 = 14;
/// 134 us in all.
const SLOTS: usize = 8192;
/// Things for which a slot keeps room.
const MOST_KEPT: usize = 64;

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Agenda {
            due: Vec::new(),
            tick: 0,
            slots: (0..SLOTS).map(|_| Vec::new()).collect(),
            occupied: vec![0; SLOTS / 64],
            later: BinaryHeap::new(),
            added: 0,
        }
    }
}

impl<T> Agenda<T> {
    pub(crate) fn add(&mut self, at: Picos, what: T) {
        let entry = Entry { at, number: self.added, what };
        self.added += 1;
        let tick = at >> SLOT_BITS;
        match tick.checked_sub(self.tick) {
            None | Some(0) => {
                // What is added comes behind all of the same time.
                let place = self.due.partition_point(|other| other.at > at);
                self.due.insert(place, entry);
            }
            Some(ahead) if ahead < SLOTS as u64 => {
                let slot = tick as usize % SLOTS;
                self.slots[slot].push(entry);
                self.occupied[slot / 64] |= 1 << (slot % 64);
            }
            Some(_) => self.later.push(Reverse(entry)),
        }
    }

    /// The next thing, if it happens by then.
    pub(crate) fn next(&mut self, until: Picos) -> Option<(Picos, T)> {
        if self.due.is_empty() {
            self.turn()?;
        }
        self.due.last().filter(|entry| entry.at <= until)?;
        self.due.pop().map(|entry| (entry.at, entry.what))
    }

    /// Turns the wheel to the next slot in which there is something.
    fn turn(&mut self) -> Option<()> {
        let later = self.later.peek().map(|Reverse(entry)| entry.at >> SLOT_BITS);
        let soon = self.next_occupied();
        self.tick = [soon, later].into_iter().flatten().min()?;
        if soon == Some(self.tick) {
            let slot = self.tick as usize % SLOTS;
            // A slot that was full once is not kept so: over time that would be all of them.
            if self.due.capacity() > MOST_KEPT {
                self.due = Vec::new();
            }
            core::mem::swap(&mut self.due, &mut self.slots[slot]);
            self.occupied[slot / 64] &= !(1 << (slot % 64));
        }
        while self.later.peek().is_some_and(|Reverse(entry)| entry.at >> SLOT_BITS == self.tick) {
            self.due.extend(self.later.pop().map(|Reverse(entry)| entry));
        }
        self.due.sort_unstable_by(|a, b| b.cmp(a));
        Some(())
    }

    fn next_occupied(&self) -> Option<u64> {
        let words = self.occupied.len();
        let first = (self.tick + 1) as usize % SLOTS;
        // The word of the first slot comes twice: at first without what lies before, in the end with it alone.
        (0..=words).find_map(|turn| {
            let word = (first / 64 + turn) % words;
            let mask = match turn {
                0 => u64::MAX << (first % 64),
                _ if turn == words => !(u64::MAX << (first % 64)),
                _ => u64::MAX,
            };
            let bits = self.occupied[word] & mask;
            (bits != 0).then(|| {
                let slot = word * 64 + bits.trailing_zeros() as usize;
                self.tick + 1 + ((slot + SLOTS - first) % SLOTS) as u64
            })
        })
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

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    #[test]
    fn things_happen_in_order_however_far_ahead_they_are_added() {
        let mut rng = Rng::with_seed(1);
        let mut agenda = Agenda::default();
        let mut expected: Vec<(Picos, u32)> = Vec::new();
        let mut now = 0;
        for number in 0..50_000 {
            // From the same picosecond to a second ahead.
            let bits = rng.u32(..40);
            let ahead = rng.u64(..1 << bits);
            agenda.add(now + ahead, number);
            expected.push((now + ahead, number));
            if rng.u32(..5) > 1 {
                let next = expected.iter().copied().min().unwrap();
                if let Some(found) = agenda.next(now + (1 << 30)) {
                    assert_eq!(found, next);
                    now = found.0;
                    expected.retain(|other| *other != next);
                } else {
                    assert!(next.0 > now + (1 << 30));
                }
                if expected.len() > 200 {
                    expected.sort_unstable();
                    for next in expected.drain(..) {
                        assert_eq!(agenda.next(u64::MAX), Some(next));
                        now = next.0;
                    }
                    assert_eq!(agenda.next(u64::MAX), None);
                }
            }
        }
    }

    #[test]
    fn a_byte_takes_whole_picoseconds_at_the_rates_in_use() {
        assert_eq!(serialisation(4200, 100_000_000_000), 336_000);
        assert_eq!(serialisation(1, 800_000_000_000), 10);
        assert_eq!(serialisation(1, 1_600_000_000_000), 5);
    }
}
