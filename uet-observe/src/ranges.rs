use std::collections::BTreeMap;

/// A set of integers, stored as ranges. Each integer keeps the value of its first insertion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges<V = ()>(BTreeMap<i64, (i64, V)>);

impl<V: Copy + PartialEq> Ranges<V> {
    /// Returns the value of an integer; `None` if it is not in the set.
    pub fn get(&self, n: i64) -> Option<V> {
        self.0.range(..=n).next_back().filter(|(_, (last, _))| *last >= n).map(|(_, (_, value))| *value)
    }

    /// Inserts an integer. An integer that is already in the set keeps its value.
    pub fn insert(&mut self, n: i64, value: V) {
        let before = self.0.range(..=n).next_back().map(|(first, range)| (*first, *range));
        if before.is_some_and(|(_, (last, _))| last >= n) {
            return;
        }
        let first = before.filter(|(_, range)| *range == (n - 1, value)).map_or(n, |(first, _)| first);
        let after = self.0.get(&(n + 1)).filter(|range| range.1 == value).map(|range| range.0);
        if after.is_some() {
            self.0.remove(&(n + 1));
        }
        self.0.insert(first, (after.unwrap_or(n), value));
    }

    /// Removes all integers up to and including `n`.
    pub fn remove_to(&mut self, n: i64) {
        while let Some(entry) = self.0.first_entry().filter(|entry| *entry.key() <= n) {
            let (last, value) = entry.remove();
            if last > n {
                self.0.insert(n + 1, (last, value));
            }
        }
    }

    /// Removes the lowest ranges until at most `count` remain.
    pub(crate) fn limit(&mut self, count: usize) {
        while self.0.len() > count {
            self.0.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_integers_form_one_range() {
        let mut ranges = Ranges::default();
        [5, 7, 6, 9, 6].into_iter().for_each(|n| ranges.insert(n, ()));
        assert_eq!(ranges.0, [(5, (7, ())), (9, (9, ()))].into());
        assert_eq!(
            [4, 5, 7, 8, 9, 10].map(|n| ranges.get(n).is_some()),
            [false, true, true, false, true, false]
        );
        ranges.remove_to(6);
        assert_eq!(ranges.0, [(7, (7, ())), (9, (9, ()))].into());
    }

    #[test]
    fn first_value_stays() {
        let mut ranges = Ranges::default();
        [(5, 1), (6, 2), (5, 3), (7, 2)].into_iter().for_each(|(n, value)| ranges.insert(n, value));
        assert_eq!(ranges.0, [(5, (5, 1)), (6, (7, 2))].into());
    }
}
