//! Linked lists in a slab: push and remove in constant time, without allocation.

use slab::Slab;

/// The index of an element in a slab.
pub(crate) type SlabKey = u32;

/// The key of no element.
pub(crate) const NOWHERE: SlabKey = u32::MAX;

/// The neighbors of an element.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) struct Links {
    before: SlabKey,
    after: SlabKey,
}

#[cfg(feature = "explore")]
impl Links {
    pub(super) fn after(&self) -> SlabKey {
        self.after
    }
}

impl Default for Links {
    fn default() -> Self {
        Links { before: NOWHERE, after: NOWHERE }
    }
}

/// An element that can be in one list at a time.
pub(super) trait Linked {
    fn links(&mut self) -> &mut Links;
}

/// The ends of a list.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) struct List {
    first: SlabKey,
    last: SlabKey,
    len: u32,
}

impl Default for List {
    fn default() -> Self {
        List { first: NOWHERE, last: NOWHERE, len: 0 }
    }
}

impl List {
    pub(super) fn first(&self) -> Option<SlabKey> {
        (self.first != NOWHERE).then_some(self.first)
    }

    pub(super) fn last(&self) -> Option<SlabKey> {
        (self.last != NOWHERE).then_some(self.last)
    }

    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn push<T: Linked>(&mut self, slab: &mut Slab<T>, key: SlabKey) {
        if let Some(element) = slab.get_mut(key as usize) {
            *element.links() = Links { before: self.last, after: NOWHERE };
        }
        match slab.get_mut(self.last as usize) {
            Some(last) if self.last != NOWHERE => last.links().after = key,
            _ => self.first = key,
        }
        self.last = key;
        self.len += 1;
    }

    /// Removes an element of this list.
    pub(super) fn remove<T: Linked>(&mut self, slab: &mut Slab<T>, key: SlabKey) {
        let Some(element) = slab.get_mut(key as usize) else { return };
        let Links { before, after } = core::mem::take(element.links());
        match slab.get_mut(before as usize) {
            Some(element) if before != NOWHERE => element.links().after = after,
            _ => self.first = after,
        }
        match slab.get_mut(after as usize) {
            Some(element) if after != NOWHERE => element.links().before = before,
            _ => self.last = before,
        }
        self.len -= 1;
    }

    pub(super) fn pop<T: Linked>(&mut self, slab: &mut Slab<T>) -> Option<SlabKey> {
        let first = self.first()?;
        self.remove(slab, first);
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Item(Links);

    impl Linked for Item {
        fn links(&mut self) -> &mut Links {
            &mut self.0
        }
    }

    #[test]
    fn elements_leave_in_order_and_from_any_place() {
        let mut slab = Slab::new();
        let mut list = List::default();
        let keys: Vec<SlabKey> = (0..5).map(|_| slab.insert(Item(Links::default())) as SlabKey).collect();
        for key in &keys {
            list.push(&mut slab, *key);
        }
        list.remove(&mut slab, keys[2]);
        list.remove(&mut slab, keys[4]);
        list.remove(&mut slab, keys[0]);
        assert_eq!((list.first(), list.last(), list.len()), (Some(keys[1]), Some(keys[3]), 2));
        assert_eq!(list.pop(&mut slab), Some(keys[1]));
        assert_eq!(list.pop(&mut slab), Some(keys[3]));
        assert_eq!(list.pop(&mut slab), None);
        assert!(list.is_empty());
        list.push(&mut slab, keys[2]);
        assert_eq!(list.pop(&mut slab), Some(keys[2]));
    }
}
