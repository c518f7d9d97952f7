//! State that all contexts of an endpoint share.

use super::event::{Dropped, EventKind, Events};
use super::list::SlabKey;
use super::pool::TxPool;
use super::protect::SecureContext;
use super::timers::Timers;
use crate::cc::{CcError, CcParams, Ccc, CreditPacer, Departure, Observed, Penalty, Sending};
use crate::packet::Unbuildable;
use crate::{Indication, Packet, PdcHandle, PdsParams, Priority, Time, TxResponse};
use core::cmp::Reverse;
use core::net::IpAddr;
use slab::Slab;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use uet_wire::Psn;

pub(super) type Hasher = foldhash::quality::FixedState;

#[cfg_attr(feature = "explore", derive(Clone))]
pub(super) struct Shared {
    pub(super) params: PdsParams,
    pub(super) address: IpAddr,
    /// The address of the other IP version, if the endpoint has one.
    pub(super) second_address: Option<IpAddr>,
    /// The time of the current call.
    pub(super) now: Time,
    pub(super) pool: TxPool,
    /// Stored responses.
    pub(super) store: Slab<TxResponse>,
    pub(super) timers: Timers,
    pub(super) events: Events,
    pub(super) cccs: Cccs,
    pub(super) indications: VecDeque<Indication>,
    /// Contexts that may have a packet to send.
    pub(super) ready: VecDeque<u16>,
    /// Packets without a retransmission timer: replies, control packets without a PSN, datagrams.
    answers: VecDeque<Packet>,
    /// The number of requests that SES owes a response.
    pub(super) delivered: usize,
    /// The number of receive slots of all contexts.
    pub(super) slots: usize,
    /// The penalty in all ACKs.
    pub(super) penalty: Penalty,
    /// The pacer that grants credit to sources, if credit is on.
    pub(super) pacer: Option<CreditPacer>,
    /// The PSN of a CLOSE_COMMAND that is being handled, and the Start_PSN that its ACK tells.
    pub(super) close_floor: Option<(Psn, Psn)>,
    pub(super) rng: fastrand::Rng,
}

#[cfg(feature = "explore")]
impl core::hash::Hash for Shared {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        let Shared {
            params: _, now: _, events: _, address, second_address, pool, store, timers, cccs, ..
        } = self;
        (address, second_address, pool, timers, cccs).hash(state);
        crate::explore::slab(store, state);
        let Shared {
            indications, ready, answers, delivered, slots, penalty, pacer, close_floor, rng, ..
        } = self;
        (indications, ready, answers, delivered, slots, penalty, pacer, close_floor).hash(state);
        rng.get_seed().hash(state);
    }
}

impl Shared {
    pub(super) fn new(params: PdsParams, address: IpAddr, seed: u64) -> Result<Self, CcError> {
        params.congestion.check()?;
        let grants = params.congestion.grants_credit();
        Ok(Shared {
            close_floor: None,
            pacer: grants.then(|| CreditPacer::new(params.congestion.pacer.clone())).transpose()?,
            events: Events::new(params.event_capacity),
            cccs: Cccs::new(&params, seed),
            params,
            address,
            second_address: None,
            now: Time::ZERO,
            pool: TxPool::default(),
            store: Slab::new(),
            timers: Timers::default(),
            indications: VecDeque::new(),
            ready: VecDeque::new(),
            answers: VecDeque::new(),
            delivered: 0,
            slots: 0,
            penalty: Penalty::default(),
            rng: fastrand::Rng::with_seed(seed),
        })
    }

    #[inline]
    pub(super) fn event(&mut self, pdc: PdcHandle, kind: EventKind) {
        self.events.push(self.now, Some(pdc), kind);
    }

    pub(super) fn drop_packet(&mut self, why: Dropped) {
        self.events.push(self.now, None, EventKind::Dropped(why));
    }

    /// Queues a packet without a retransmission timer. A full queue loses further packets, as the network does.
    ///
    /// A packet that cannot be built is counted and dropped.
    pub(super) fn answer(&mut self, packet: Result<Packet, Unbuildable>) -> bool {
        let Ok(packet) = packet else {
            self.drop_packet(Dropped::Unbuildable);
            return false;
        };
        let room = self.answers.len() < usize::from(self.params.answer_queue);
        if room {
            self.answers.push_back(packet);
        } else {
            self.drop_packet(Dropped::NoRoom);
        }
        room
    }

    pub(super) fn pop_answer(&mut self) -> Option<Packet> {
        self.answers.pop_front()
    }

    pub(super) fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Returns whether SES may get another request: there is room to store its response.
    ///
    /// The last place is for a packet without a gap below it. CLEAR_PSN cannot pass a gap, so a response above one could
    /// hold the place for as long as the packet that fills the gap finds none.
    pub(super) fn has_gtd_room(&self, above_gap: bool) -> bool {
        self.store.len() + self.delivered + usize::from(above_gap) < self.params.stored_responses as usize
    }

    /// Returns whether SES may get another packet.
    ///
    /// The last place is for a packet without a gap below it. With delivery complete, the last packet of a message waits
    /// for the packets below it, which may be those in the gap.
    pub(super) fn has_packet_room(&self, above_gap: bool) -> bool {
        self.delivered + usize::from(above_gap) < self.params.rx_packets as usize
    }

    /// Returns whether a packet to this address is for this endpoint.
    pub(super) fn has_address(&self, address: IpAddr) -> bool {
        self.address == address || self.second_address == Some(address)
    }

    /// Returns the source address of packets to a peer: the address of the peer's IP version.
    fn source_for(&self, peer: IpAddr) -> IpAddr {
        let second = self.second_address.filter(|second| second.is_ipv4() == peer.is_ipv4());
        second.filter(|_| self.address.is_ipv4() != peer.is_ipv4()).unwrap_or(self.address)
    }

    /// Returns a packet without headers.
    pub(super) fn packet(
        &self,
        (to, security): (IpAddr, Option<SecureContext>),
        class: u8,
        priority: Priority,
        entropy: u16,
    ) -> Packet {
        Packet {
            src: self.source_for(to),
            dst: to,
            class,
            priority,
            marked: false,
            trimmed: None,
            entropy,
            ttl: Packet::TTL,
            udp_checksum: 0,
            security,
            head: crate::Head::new(),
            payload: bytes::Bytes::new(),
        }
    }
}

/// The congestion control contexts, one for each destination and traffic class. They count all packets to a
/// destination, in either direction of a PDC.
#[cfg_attr(feature = "explore", derive(Clone))]
pub(super) struct Cccs {
    capacity: usize,
    params: CcParams,
    seed: u64,
    by_destination: HashMap<(IpAddr, u8), SlabKey, Hasher>,
    entries: Slab<CccEntry>,
    /// Unused contexts, the longest unused first. Some may be in use again.
    unused: VecDeque<SlabKey>,
    /// Timeouts; some of them are outdated.
    due: BinaryHeap<Reverse<(Time, SlabKey)>>,
    /// The context that a PDC just left.
    left: Option<SlabKey>,
}

#[cfg(feature = "explore")]
impl core::hash::Hash for Cccs {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        // The other tables follow from the entries.
        let Cccs { capacity: _, params: _, by_destination: _, due: _, seed, entries, unused, left } = self;
        (seed, unused, left).hash(state);
        crate::explore::slab(entries, state);
    }
}

/// The number by which a destination knows a context. Only one exists for each destination and class.
const CCC_ID: u8 = 1;

#[cfg_attr(feature = "explore", derive(Clone, Hash))]
struct CccEntry {
    ccc: Ccc,
    destination: (IpAddr, u8),
    users: u32,
    /// True if it is in the list of unused contexts.
    parked: bool,
    /// PDCs that wait to send.
    blocked: VecDeque<u16>,
    /// Its timeout in the heap.
    due: Option<Time>,
    /// A PDC that carries its control packets.
    speaker: u16,
}

impl Cccs {
    fn new(params: &PdsParams, seed: u64) -> Self {
        Cccs {
            capacity: params.cccs as usize,
            params: params.congestion.clone(),
            seed,
            by_destination: HashMap::with_hasher(Hasher::with_seed(seed)),
            entries: Slab::new(),
            unused: VecDeque::new(),
            due: BinaryHeap::new(),
            left: None,
        }
    }

    /// `CC-WINDOW-005`: returns the context for packets to a destination and of a class; `None` if all are in use.
    pub(super) fn enter(&mut self, destination: (IpAddr, u8), pdc: u16) -> Option<SlabKey> {
        if let Some(key) = self.by_destination.get(&destination) {
            self.entries.get_mut(*key as usize)?.users += 1;
            return Some(*key);
        }
        if self.entries.len() >= self.capacity && !self.evict() {
            return None;
        }
        self.seed = self.seed.wrapping_add(1);
        // The parameters were checked before.
        let ccc = Ccc::new(&self.params, CCC_ID, self.seed).unwrap_or_default();
        let entry = CccEntry {
            ccc,
            destination,
            users: 1,
            parked: false,
            blocked: VecDeque::new(),
            due: None,
            speaker: pdc,
        };
        let key = self.entries.insert(entry) as SlabKey;
        self.by_destination.insert(destination, key);
        Some(key)
    }

    fn evict(&mut self) -> bool {
        while let Some(key) = self.unused.pop_front() {
            let Some(entry) = self.entries.get_mut(key as usize) else { continue };
            entry.parked = false;
            if entry.users == 0 {
                let entry = self.entries.remove(key as usize);
                self.by_destination.remove(&entry.destination);
                self.prune();
                return true;
            }
        }
        false
    }

    /// Removes a PDC. If it was waiting to send, the next one gets its turn.
    pub(super) fn leave(&mut self, key: SlabKey, pdc: u16) {
        let Some(entry) = self.entries.get_mut(key as usize) else { return };
        entry.blocked.retain(|id| *id != pdc);
        entry.users = entry.users.saturating_sub(1);
        if entry.users == 0 && !entry.parked {
            entry.parked = true;
            self.unused.push_back(key);
        }
        self.left = Some(key);
    }

    pub(super) fn get(&mut self, key: Option<SlabKey>) -> Option<&mut Ccc> {
        self.entries.get_mut(key? as usize).map(|entry| &mut entry.ccc)
    }

    pub(super) fn may_send(&mut self, key: Option<SlabKey>) -> bool {
        self.get(key).is_none_or(|ccc| ccc.may_send())
    }

    pub(super) fn send(&mut self, key: Option<SlabKey>, now: Time, packet: Sending) -> Option<Departure> {
        Some(self.get(key)?.send(now, packet))
    }

    /// Adds a PDC to those that wait to send.
    pub(super) fn block(&mut self, key: Option<SlabKey>, pdc: u16) {
        if let Some(entry) = key.and_then(|key| self.entries.get_mut(key as usize)) {
            entry.blocked.push_back(pdc);
        }
    }

    pub(super) fn speaks(&mut self, key: Option<SlabKey>, pdc: u16) {
        if let Some(entry) = key.and_then(|key| self.entries.get_mut(key as usize)) {
            entry.speaker = pdc;
        }
    }

    pub(super) fn observe(&self, destination: (IpAddr, u8)) -> Option<Observed> {
        let key = self.by_destination.get(&destination)?;
        self.entries.get(*key as usize).map(|entry| entry.ccc.observe())
    }

    pub(super) fn speaker(&self, key: SlabKey) -> Option<u16> {
        self.entries.get(key as usize).map(|entry| entry.speaker)
    }

    /// Updates the timeout of a context, and returns one PDC that may send now. Each PDC that sends wakes the next, so no
    /// call visits all of them.
    pub(super) fn rearm(&mut self, key: Option<SlabKey>) -> Option<u16> {
        let key = key.or(self.left.take())?;
        let entry = self.entries.get_mut(key as usize)?;
        let timeout = entry.ccc.timeout();
        if timeout != entry.due {
            entry.due = timeout;
            if let Some(at) = timeout {
                self.due.push(Reverse((at, key)));
            }
            self.prune();
        }
        let entry = self.entries.get_mut(key as usize)?;
        if entry.blocked.is_empty() || !entry.ccc.may_send() {
            return None;
        }
        entry.blocked.pop_front()
    }

    /// Returns the earliest timeout of a context.
    pub(super) fn next(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Removes outdated timeouts from the top of the heap, so that [`next`](Self::next) only reads it.
    fn prune(&mut self) {
        while let Some(Reverse((at, key))) = self.due.peek().copied() {
            if self.entries.get(key as usize).is_some_and(|entry| entry.due == Some(at)) {
                return;
            }
            self.due.pop();
        }
    }

    /// Runs the timer of a context that is due.
    pub(super) fn pop(&mut self, now: Time) -> Option<SlabKey> {
        if self.next()? > now {
            return None;
        }
        let Reverse((_, key)) = self.due.pop()?;
        let entry = self.entries.get_mut(key as usize)?;
        entry.due = None;
        entry.ccc.handle_timeout(now);
        self.prune();
        Some(key)
    }
}
