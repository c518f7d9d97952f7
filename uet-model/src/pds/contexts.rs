//! The contexts of an endpoint: their PDCIDs, and how each is found in constant time.

use super::event::Role;
use super::pdc::Pdc;
use super::shared::Hasher;
use crate::{PdcHandle, PdsParams, Pool, Route};
use core::net::IpAddr;
use std::collections::{HashMap, VecDeque};
use uet_wire::Psn;

pub(super) struct Contexts {
    /// By PDCID; the first is never used.
    slots: Vec<Entry>,
    general: Ids,
    reserved: Ids,
    /// Targets, by what a packet with `syn` says: `PDS-SYN-005`.
    by_peer: HashMap<(IpAddr, u16), u16, Hasher>,
    /// Initiators, by what chooses them: `PDS-PDC-002`.
    by_route: HashMap<Route, u16, Hasher>,
    count: usize,
}

#[derive(Default)]
struct Entry {
    generation: u32,
    /// The last PSN used as an initiator with this PDCID.
    last: Option<Psn>,
    pdc: Option<Box<Pdc>>,
}

/// The PDCIDs of a pool: those given back, and those never given.
struct Ids {
    free: VecDeque<u16>,
    fresh: core::ops::Range<u32>,
}

/// After the last PDCID.
const END: u32 = 1 << 16;

impl Ids {
    fn take(&mut self) -> Option<u16> {
        // The longest unused comes last, and late packets find nothing.
        self.fresh.next().map(|id| id as u16).or_else(|| self.free.pop_front())
    }
}

impl Contexts {
    /// `PDS-PDC-001`: 0 is no PDCID.
    pub(super) fn new(params: &PdsParams, seed: u64) -> Self {
        let first = u32::from(params.first_pdcid.max(1));
        let general = first + u32::from(params.general_pdcs);
        let reserved = general + u32::from(params.reserved_pdcs);
        Contexts {
            slots: Vec::new(),
            general: Ids { free: VecDeque::new(), fresh: first..general.min(END) },
            reserved: Ids { free: VecDeque::new(), fresh: general.min(END)..reserved.min(END) },
            by_peer: HashMap::with_hasher(Hasher::with_seed(seed)),
            by_route: HashMap::with_hasher(Hasher::with_seed(seed)),
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

    /// A PDCID that is not in use, with the last PSN that an initiator used with it.
    pub(super) fn reserve(&mut self, pool: Pool) -> Option<(PdcHandle, Option<Psn>)> {
        let pdcid = self.ids(pool).take()?;
        if self.slots.len() <= usize::from(pdcid) {
            self.slots.resize_with(usize::from(pdcid) + 1, Entry::default);
        }
        let entry = self.slots.get_mut(usize::from(pdcid))?;
        Some((PdcHandle { pdcid, generation: entry.generation }, entry.last))
    }

    /// Gives back a PDCID that was not used after all.
    pub(super) fn release(&mut self, handle: PdcHandle, pool: Pool) {
        self.ids(pool).free.push_back(handle.pdcid);
    }

    pub(super) fn insert(&mut self, pdc: Pdc) {
        let id = pdc.pdcid();
        match (pdc.role, pdc.route) {
            (Role::Initiator, Some(route)) => {
                self.by_route.insert(route, id);
            }
            _ => {
                self.by_peer.insert((pdc.peer, pdc.peer_id.0), id);
            }
        }
        if let Some(entry) = self.slots.get_mut(usize::from(id)) {
            entry.pdc = Some(Box::new(pdc));
            self.count += 1;
        }
    }

    /// Forgets a context that is gone. What leads to another by now stays.
    pub(super) fn remove(&mut self, id: u16) {
        let Some(entry) = self.slots.get_mut(usize::from(id)) else { return };
        let Some(pdc) = entry.pdc.take() else { return };
        self.count -= 1;
        entry.generation = entry.generation.wrapping_add(1);
        if pdc.role == Role::Initiator {
            entry.last = Some(pdc.source.highest());
        }
        self.ids(pdc.pool).free.push_back(id);
        let peer = (pdc.peer, pdc.peer_id.0);
        if self.by_peer.get(&peer) == Some(&id) {
            self.by_peer.remove(&peer);
        }
        if let Some(route) = pdc.route.filter(|route| self.by_route.get(route) == Some(&id)) {
            self.by_route.remove(&route);
        }
    }

    #[inline]
    pub(super) fn get(&mut self, id: u16) -> Option<&mut Pdc> {
        self.slots.get_mut(usize::from(id))?.pdc.as_deref_mut()
    }

    pub(super) fn peek(&self, id: u16) -> Option<&Pdc> {
        self.slots.get(usize::from(id))?.pdc.as_deref()
    }

    /// The context of a handle, unless it is a later one.
    pub(super) fn of(&mut self, handle: PdcHandle) -> Option<&mut Pdc> {
        self.get(handle.pdcid).filter(|pdc| pdc.handle == handle)
    }

    pub(super) fn of_peer(&self, peer: IpAddr, spdcid: u16) -> Option<u16> {
        self.by_peer.get(&(peer, spdcid)).copied()
    }

    pub(super) fn of_route(&self, route: &Route) -> Option<u16> {
        self.by_route.get(route).copied()
    }
}
