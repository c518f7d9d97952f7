//! A set of byte ranges of a message.

use core::ops::Range;
use std::collections::BTreeMap;

/// The maximum number of gaps: more than packets in flight.
const MOST: usize = 1 << 15;

/// Ranges from start to end that neither overlap nor touch.
#[derive(Debug, Default)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Returns whether a range overlaps none in the set, and the set has room for it.
    pub(super) fn has_room_for(&self, range: &Range<u64>) -> bool {
        let before = self.0.range(..range.end).next_back();
        before.is_none_or(|(_, end)| *end <= range.start) && self.0.len() < MOST
    }

    /// Adds a range if it [has room](Self::has_room_for), which an empty one always has. Returns whether it had.
    pub(super) fn take(&mut self, range: Range<u64>) -> bool {
        let has_room = range.is_empty() || self.has_room_for(&range);
        if has_room {
            self.insert(range);
        }
        has_room
    }

    /// Returns whether the set has all bytes up to `end`.
    pub(super) fn cover(&self, end: u64) -> bool {
        end == 0 || self.0.get(&0).is_some_and(|first| *first >= end)
    }

    /// Adds a range that [has room](Self::has_room_for).
    pub(super) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let end = self.0.remove(&range.end).unwrap_or(range.end);
        match self.0.range_mut(..range.start).next_back() {
            Some((_, before)) if *before == range.start => *before = end,
            _ => {
                self.0.insert(range.start, end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces in any order that touch become one range. The set refuses bytes that it has.
    #[test]
    fn pieces_grow_together() {
        let pieces = [0..3, 3..4, 4..9, 9..12];
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [0, 2, 1, 3], [1, 3, 0, 2]] {
            let mut ranges = Ranges::default();
            for piece in order.map(|index| pieces[index].clone()) {
                assert!(ranges.has_room_for(&piece), "{order:?}");
                ranges.insert(piece.clone());
                assert!(!ranges.has_room_for(&piece), "{order:?}");
            }
            assert_eq!(ranges.0, BTreeMap::from([(0, 12)]), "{order:?}");
        }
    }

    #[test]
    fn what_overlaps_has_no_room() {
        let mut ranges = Ranges::default();
        ranges.insert(4..8);
        ranges.insert(8..8);
        ranges.insert(20..24);
        for (range, room) in [
            (0..4, true),
            (0..5, false),
            (5..6, false),
            (7..9, false),
            (8..20, true),
            (8..21, false),
            (0..30, false),
        ] {
            assert_eq!(ranges.has_room_for(&range), room, "{range:?}");
        }
        assert_eq!(ranges.0.len(), 2);
    }

    #[test]
    fn gaps_are_not_without_number() {
        let mut ranges = Ranges::default();
        let more = (0u64..).map(|place| 2 * place..2 * place + 1).take_while(|range| {
            let room = ranges.has_room_for(range);
            ranges.insert(range.clone());
            room
        });
        assert_eq!(more.count(), MOST);
    }
}
