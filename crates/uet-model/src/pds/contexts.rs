//! The table of contexts: allocation of PDCIDs, and lookup in constant time.

use super::event::Role;
use super::pdc::Pdc;
use super::shared::Hasher;
use crate::{PdcHandle, PdsParams, Pool, Route, Time};
use core::hash::BuildHasher;
use core::net::IpAddr;
use hashbrown::HashTable;
use std::collections::{HashSet, VecDeque};
use uet_wire::{PdcId, Psn};

#[cfg_attr(feature = "explore", derive(Clone))]
pub(super) struct Contexts {
    /// Indexed by PDCID; entry 0 is never used.
    slots: Vec<ContextSlot>,
    general: Ids,
    reserved: Ids,
    /// Target contexts by the key in a packet with `syn`: `PDS-SYN-005`. The table holds only PDCIDs.
    by_peer: HashTable<u16>,
    /// Initiator contexts by route: `PDS-PDC-002`.
    by_route: HashTable<u16>,
    hasher: Hasher,
    count: usize,
}

#[cfg(feature = "explore")]
impl core::hash::Hash for Contexts {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        let Contexts { slots, general, reserved, by_peer: _, by_route: _, hasher: _, count } = self;
        (slots, general, reserved, count).hash(state);
        for pdc in self.iter() {
            (self.of_route(&pdc.route()), self.of_peer(pdc.peer, pdc.peer_id.0)).hash(state);
        }
    }
}

#[derive(Default)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
struct ContextSlot {
    generation: u32,
    /// The last PSN used as an initiator with this PDCID.
    last: Option<Psn>,
    pdc: Option<Box<Pdc>>,
}

/// The free PDCIDs of a pool: returned ones, and ones never used.
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
struct Ids {
    free: VecDeque<u16>,
    fresh: core::ops::Range<u32>,
    /// Target contexts, oldest first. Some are confirmed by now, or gone.
    unconfirmed: VecDeque<(PdcHandle, Time)>,
}

/// One past the last PDCID.
const END: u32 = 1 << 16;

impl Ids {
    fn new(range: core::ops::Range<u32>) -> Self {
        Ids { free: VecDeque::new(), fresh: range, unconfirmed: VecDeque::new() }
    }

    fn take(&mut self) -> Option<u16> {
        // The PDCID that was released first is reused first, so that late packets find no context.
        self.fresh.next().map(|id| id as u16).or_else(|| self.free.pop_front())
    }
}

impl Contexts {
    /// `PDS-PDC-001`: 0 is not a PDCID.
    pub(super) fn new(params: &PdsParams, seed: u64) -> Self {
        let first = u32::from(params.first_pdcid.max(1));
        let general = first + u32::from(params.general_pdcs);
        let reserved = general + u32::from(params.reserved_pdcs);
        Contexts {
            slots: Vec::new(),
            general: Ids::new(first..general.min(END)),
            reserved: Ids::new(general.min(END)..reserved.min(END)),
            by_peer: HashTable::new(),
            by_route: HashTable::new(),
            hasher: Hasher::with_seed(seed),
            count: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    fn ids(&mut self, pool: Pool) -> &mut Ids {
        match pool {
            Pool::General => &mut self.general,
            Pool::Reserved => &mut self.reserved,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Pdc> {
        self.slots.iter().filter_map(|slot| slot.pdc.as_deref())
    }

    /// Takes a free PDCID, and returns it with the last PSN that an initiator used with it.
    pub(super) fn reserve(&mut self, pool: Pool) -> Option<(PdcHandle, Option<Psn>)> {
        let pdcid = self.ids(pool).take()?;
        if self.slots.len() <= usize::from(pdcid) {
            self.slots.resize_with(usize::from(pdcid) + 1, ContextSlot::default);
        }
        let entry = self.slots.get_mut(usize::from(pdcid))?;
        Some((PdcHandle { pdcid, generation: entry.generation }, entry.last))
    }

    /// Returns a PDCID that was not used.
    pub(super) fn release(&mut self, handle: PdcHandle, pool: Pool) {
        self.ids(pool).free.push_back(handle.pdcid);
    }

    pub(super) fn insert(&mut self, now: Time, pdc: Pdc) {
        let id = pdc.pdcid();
        if pdc.role == Role::Target {
            self.note_unconfirmed(now, pdc.handle, pdc.pool);
        }
        let Contexts { slots, by_peer, by_route, hasher, count, .. } = self;
        let by = if pdc.role == Role::Initiator { by_route } else { by_peer };
        let hash = key_hash(hasher, &pdc);
        // A context that is closing may have the same key.
        let before =
            by.find_mut(hash, |other| at(slots, *other).is_some_and(|other| has_same_key(other, &pdc)));
        match before {
            Some(before) => *before = id,
            None => {
                let rehash = |id: &u16| at(slots, *id).map_or(0, |pdc| key_hash(hasher, pdc));
                by.insert_unique(hash, id, rehash);
            }
        }
        if let Some(entry) = slots.get_mut(usize::from(id)) {
            entry.pdc = Some(Box::new(pdc));
            *count += 1;
        }
    }

    /// Queues a new target context for [`oldest_unconfirmed`](Self::oldest_unconfirmed).
    fn note_unconfirmed(&mut self, now: Time, handle: PdcHandle, pool: Pool) {
        let limit = 2 * self.count + 16;
        let Contexts { slots, general, reserved, .. } = self;
        let queue = match pool {
            Pool::General => &mut general.unconfirmed,
            Pool::Reserved => &mut reserved.unconfirmed,
        };
        // At least half of the entries go, so an insertion pays for a constant number of visits.
        if queue.len() >= limit {
            queue.retain(|(handle, _)| is_unconfirmed(slots, *handle));
        }
        queue.push_back((handle, now));
    }

    /// Takes the oldest target context of a pool whose peer has not named its PDCID. `spare` names a context to leave,
    /// and a time: all that were opened later stay, too.
    pub(super) fn oldest_unconfirmed(&mut self, pool: Pool, spare: Option<(u16, Time)>) -> Option<u16> {
        let Contexts { slots, general, reserved, .. } = self;
        let queue = match pool {
            Pool::General => &mut general.unconfirmed,
            Pool::Reserved => &mut reserved.unconfirmed,
        };
        let mut passed = None;
        let found = loop {
            let Some(entry @ (handle, opened)) = queue.pop_front() else { break None };
            match spare {
                _ if !is_unconfirmed(slots, handle) => {}
                Some((id, _)) if id == handle.pdcid => passed = Some(entry),
                Some((_, latest)) if opened > latest => {
                    queue.push_front(entry);
                    break None;
                }
                _ => break Some(handle.pdcid),
            }
        };
        passed.into_iter().for_each(|entry| queue.push_front(entry));
        found
    }

    /// Removes a context. Table entries that lead to another context by now stay.
    pub(super) fn remove(&mut self, id: u16) {
        let Some(entry) = self.slots.get_mut(usize::from(id)) else { return };
        let Some(pdc) = entry.pdc.take() else { return };
        self.count -= 1;
        entry.generation = entry.generation.wrapping_add(1);
        let by = match pdc.role {
            Role::Initiator => {
                entry.last = Some(pdc.source.highest());
                &mut self.by_route
            }
            Role::Target => &mut self.by_peer,
        };
        if let Ok(found) = by.find_entry(key_hash(&self.hasher, &pdc), |other| *other == id) {
            found.remove();
        }
        self.ids(pdc.pool).free.push_back(id);
    }

    #[inline]
    pub(super) fn get(&mut self, id: u16) -> Option<&mut Pdc> {
        self.slots.get_mut(usize::from(id))?.pdc.as_deref_mut()
    }

    pub(super) fn peek(&self, id: u16) -> Option<&Pdc> {
        at(&self.slots, id)
    }

    /// Returns the context of a handle, unless the PDCID has been reused.
    pub(super) fn of(&mut self, handle: PdcHandle) -> Option<&mut Pdc> {
        self.get(handle.pdcid).filter(|pdc| pdc.handle == handle)
    }

    pub(super) fn of_peer(&self, peer: IpAddr, spdcid: u16) -> Option<u16> {
        let is_it =
            |id: &u16| at(&self.slots, *id).is_some_and(|pdc| (pdc.peer, pdc.peer_id.0) == (peer, spdcid));
        self.by_peer.find(self.hasher.hash_one((peer, spdcid)), is_it).copied()
    }

    pub(super) fn of_route(&self, route: &Route) -> Option<u16> {
        let is_it = |id: &u16| at(&self.slots, *id).is_some_and(|pdc| pdc.route() == *route);
        self.by_route.find(self.hasher.hash_one(route), is_it).copied()
    }
}

fn at(slots: &[ContextSlot], id: u16) -> Option<&Pdc> {
    slots.get(usize::from(id))?.pdc.as_deref()
}

fn is_unconfirmed(slots: &[ContextSlot], handle: PdcHandle) -> bool {
    at(slots, handle.pdcid).is_some_and(|pdc| pdc.handle == handle && !pdc.confirmed)
}

/// The contexts that were reclaimed a short time ago, by a hash of peer and Start_PSN. A retransmission of their syn packets
/// must not be delivered a second time.
#[cfg_attr(feature = "explore", derive(Clone))]
pub(super) struct Reclaimed {
    until: VecDeque<(Time, u64)>,
    keys: HashSet<u64, Hasher>,
    hasher: Hasher,
}

#[cfg(feature = "explore")]
impl core::hash::Hash for Reclaimed {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.until.hash(state);
    }
}

impl Reclaimed {
    /// The maximum number of remembered contexts. Beyond it, the oldest is forgotten.
    const CAPACITY: usize = 1 << 16;

    pub(super) fn new(seed: u64) -> Self {
        let hasher = Hasher::with_seed(seed);
        Reclaimed { until: VecDeque::new(), keys: HashSet::with_hasher(hasher.clone()), hasher }
    }

    pub(super) fn insert(&mut self, until: Time, key: (IpAddr, PdcId, Psn)) {
        if self.until.len() >= Self::CAPACITY {
            self.forget_oldest();
        }
        let key = self.hasher.hash_one((key.0, key.1.0, key.2.0));
        if self.keys.insert(key) {
            self.until.push_back((until, key));
        }
    }

    pub(super) fn contains(&mut self, now: Time, key: (IpAddr, PdcId, Psn)) -> bool {
        while self.until.front().is_some_and(|(until, _)| *until <= now) {
            self.forget_oldest();
        }
        !self.keys.is_empty() && self.keys.contains(&self.hasher.hash_one((key.0, key.1.0, key.2.0)))
    }

    fn forget_oldest(&mut self) {
        if let Some((_, key)) = self.until.pop_front() {
            self.keys.remove(&key);
        }
    }
}

/// Hashes the lookup key of a context.
fn key_hash(hasher: &Hasher, pdc: &Pdc) -> u64 {
    match pdc.role {
        Role::Initiator => hasher.hash_one(pdc.route()),
        Role::Target => hasher.hash_one((pdc.peer, pdc.peer_id.0)),
    }
}

fn has_same_key(one: &Pdc, other: &Pdc) -> bool {
    match one.role {
        Role::Initiator => one.route() == other.route(),
        Role::Target => (one.peer, one.peer_id) == (other.peer, other.peer_id),
    }
}
