//! Hashes of states, for the hidden feature `explore`. They leave out parameters, statistics and the time of the last
//! call, so that two states with equal hashes behave alike from now on.

use crate::Memory;
use crate::cc::Algorithm;
use crate::pds::Protect;
use core::hash::{Hash, Hasher};
use slab::Slab;
use std::collections::HashMap;

/// Hashes the elements of a slab with their keys.
pub(crate) fn slab<T: Hash>(slab: &Slab<T>, state: &mut impl Hasher) {
    slab.len().hash(state);
    slab.iter().for_each(|element| element.hash(state));
}

/// Hashes the entries of a map in the order of their keys.
pub(crate) fn map<K: Hash + Ord, V: Hash, S>(map: &HashMap<K, V, S>, state: &mut impl Hasher) {
    let mut entries: Vec<(&K, &V)> = map.iter().collect();
    entries.sort_by_key(|(key, _)| *key);
    entries.hash(state);
}

fn bytes(memory: &dyn Memory) -> Vec<u8> {
    let mut bytes = vec![0; memory.len()];
    // Memory that cannot be read counts as zeros.
    let _ = memory.read(0, &mut bytes);
    bytes
}

/// Copies the bytes to memory of its own.
impl Clone for Box<dyn Memory> {
    fn clone(&self) -> Self {
        Box::new(bytes(&**self))
    }
}

impl Hash for dyn Memory {
    fn hash<H: Hasher>(&self, state: &mut H) {
        bytes(self).hash(state);
    }
}

impl Clone for Box<dyn Algorithm> {
    fn clone(&self) -> Self {
        self.duplicate()
    }
}

impl Hash for dyn Algorithm {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest(state);
    }
}

impl Clone for Box<dyn Protect> {
    fn clone(&self) -> Self {
        self.duplicate()
    }
}

impl Hash for dyn Protect {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest(state);
    }
}
