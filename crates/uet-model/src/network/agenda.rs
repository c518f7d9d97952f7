use core::cmp::Reverse;
use std::collections::BTreeMap;

/// A time-ordered queue with a stable order: items of the same time leave in insertion order. The caller chooses the
/// unit of time.
///
/// A wheel of 8,192 slots, each `2^SLOT_BITS` units long, holds the items of the near future. A map holds the rest. Only the
/// slot whose time has come is sorted, and it holds few items. Choose `SLOT_BITS` so that a slot is some ten nanoseconds long.
///
/// ```
/// use uet_model::network::Agenda;
///
/// let mut agenda = Agenda::<_, 4>::default();
/// agenda.add(20, "late");
/// agenda.add(10, "early");
/// agenda.add(20, "later");
/// assert_eq!(agenda.next_at(), Some(10));
/// assert_eq!(agenda.pop(15), Some((10, "early")));
/// assert_eq!(agenda.pop(15), None);
/// assert_eq!(agenda.pop(30), Some((20, "late")));
/// ```
#[derive(Debug)]
pub struct Agenda<T, const SLOT_BITS: u32 = 4> {
    /// The items of the current slot, in descending order of time.
    due: Vec<Entry<T>>,
    /// The number of the current slot, counted from time 0.
    tick: u64,
    slots: Vec<Vec<Entry<T>>>,
    /// One bit for each slot that has items.
    occupied: Vec<u64>,
    /// The items beyond the wheel, by time and number.
    later: BTreeMap<(u64, u64), T>,
    added: u64,
    len: usize,
}

#[derive(Debug)]
struct Entry<T> {
    at: u64,
    number: u64,
    item: T,
}

const SLOTS: usize = 8192;
/// The capacity that an empty slot keeps, in items.
const MOST_KEPT: usize = 64;

impl<T, const SLOT_BITS: u32> Default for Agenda<T, SLOT_BITS> {
    fn default() -> Self {
        Agenda {
            due: Vec::new(),
            tick: 0,
            slots: (0..SLOTS).map(|_| Vec::new()).collect(),
            occupied: vec![0; SLOTS / 64],
            later: BTreeMap::new(),
            added: 0,
            len: 0,
        }
    }
}

impl<T, const SLOT_BITS: u32> Agenda<T, SLOT_BITS> {
    /// Adds an item at the time `at`.
    pub fn add(&mut self, at: u64, item: T) {
        let number = self.added;
        self.added += 1;
        self.len += 1;
        let tick = at >> SLOT_BITS;
        match tick.checked_sub(self.tick) {
            None | Some(0) => {
                // Place the new item behind all others of the same time.
                let place = self.due.partition_point(|other| other.at > at);
                self.due.insert(place, Entry { at, number, item });
            }
            Some(ahead) if ahead < SLOTS as u64 => {
                let slot = tick as usize % SLOTS;
                self.slots[slot].push(Entry { at, number, item });
                self.occupied[slot / 64] |= 1 << (slot % 64);
            }
            Some(_) => _ = self.later.insert((at, number), item),
        }
    }

    /// Returns the time of the next item.
    pub fn next_at(&mut self) -> Option<u64> {
        if self.due.is_empty() {
            self.turn()?;
        }
        self.due.last().map(|entry| entry.at)
    }

    /// Removes and returns the next item, if its time is at most `until`.
    pub fn pop(&mut self, until: u64) -> Option<(u64, T)> {
        self.next_at().filter(|at| *at <= until)?;
        self.len -= 1;
        self.due.pop().map(|entry| (entry.at, entry.item))
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Advances the wheel to the next slot with items; `None` if there is none.
    fn turn(&mut self) -> Option<()> {
        let later = self.later.first_key_value().map(|((at, _), _)| at >> SLOT_BITS);
        let soon = self.next_occupied();
        self.tick = [soon, later].into_iter().flatten().min()?;
        if soon == Some(self.tick) {
            let slot = self.tick as usize % SLOTS;
            // Release the memory of a slot that was full once. Otherwise all slots would grow to that size in time.
            if self.due.capacity() > MOST_KEPT {
                self.due = Vec::new();
            }
            core::mem::swap(&mut self.due, &mut self.slots[slot]);
            self.occupied[slot / 64] &= !(1 << (slot % 64));
        }
        while let Some(first) = self.later.first_entry().filter(|e| e.key().0 >> SLOT_BITS == self.tick) {
            let ((at, number), item) = first.remove_entry();
            self.due.push(Entry { at, number, item });
        }
        self.due.sort_unstable_by_key(|entry| Reverse((entry.at, entry.number)));
        Some(())
    }

    fn next_occupied(&self) -> Option<u64> {
        // The current slot is empty here.
        if self.len == self.later.len() {
            return None;
        }
        let words = self.occupied.len();
        let first = (self.tick + 1) as usize % SLOTS;
        // Visit the word of the first slot twice: first without the slots before it, and last with only these.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::stream;

    #[test]
    fn items_leave_in_order_at_any_distance() {
        let mut rng = stream(1, 0);
        let mut agenda = Agenda::<u32, 14>::default();
        let mut expected: Vec<(u64, u32)> = Vec::new();
        let mut now = 0;
        for number in 0..50_000 {
            // The range is 0 to 2^39 units ahead.
            let bits = rng.u32(..40);
            let ahead = rng.u64(..1 << bits);
            agenda.add(now + ahead, number);
            expected.push((now + ahead, number));
            assert_eq!(agenda.len(), expected.len());
            assert_eq!(agenda.next_at(), expected.iter().map(|(at, _)| *at).min());
            if rng.u32(..5) > 1 {
                let next = expected.iter().copied().min().unwrap();
                if let Some(found) = agenda.pop(now + (1 << 30)) {
                    assert_eq!(found, next);
                    now = found.0;
                    expected.retain(|other| *other != next);
                } else {
                    assert!(next.0 > now + (1 << 30));
                }
                if expected.len() > 200 {
                    expected.sort_unstable();
                    for next in expected.drain(..) {
                        assert_eq!(agenda.pop(u64::MAX), Some(next));
                        now = next.0;
                    }
                    assert_eq!((agenda.next_at(), agenda.pop(u64::MAX)), (None, None));
                }
            }
        }
    }
}
