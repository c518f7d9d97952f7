//! What all contexts of an endpoint have in common.

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

pub(super) type Hasher = foldhash::quality::FixedState;

pub(super) struct Shared {
    pub(super) params: PdsParams,
    pub(super) address: IpAddr,
    /// The time of the call that is being served.
    pub(super) now: Time,
    pub(super) pool: TxPool,
    /// Responses that are kept.
    pub(super) store: Slab<TxResponse>,
    pub(super) timers: Timers,
    pub(super) events: Events,
    pub(super) cccs: Cccs,
    pub(super) indications: VecDeque<Indication>,
    /// Contexts that may have something to send.
    pub(super) ready: VecDeque<u16>,
    /// Answers, control packets without a number, datagrams: what is not sent again by itself.
    answers: VecDeque<Packet>,
    /// Requests that the upper layer has and owes the response of.
    pub(super) delivered: usize,
    /// Receive slots of all contexts.
    pub(super) slots: usize,
    /// The penalty that all sources are told.
    pub(super) penalty: Penalty,
    /// What grants credit to those that send to us, where credit runs.
    pub(super) pacer: Option<CreditPacer>,
    pub(super) rng: fastrand::Rng,
}

impl Shared {
    pub(super) fn new(params: PdsParams, address: IpAddr, seed: u64) -> Result<Self, CcError> {
        params.congestion.check()?;
        let grants = params.congestion.grants_credit();
        Ok(Shared {
            pacer: grants.then(|| CreditPacer::new(params.congestion.pacer.clone())).transpose()?,
            events: Events::new(params.event_capacity),
            cccs: Cccs::new(&params, seed),
            params,
            address,
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

    /// Takes a packet that is not sent again by itself. What the network could lose is lost here too when nobody takes it:
    /// the queue does not grow.
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

    /// Whether another request may be given to the upper layer: both its response and the store have room.
    pub(super) fn has_gtd_room(&self) -> bool {
        self.store.len() + self.delivered < self.params.stored_responses as usize
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
            src: self.address,
            dst: to,
            class,
            priority,
            marked: false,
            trimmed: None,
            entropy,
            security,
            head: crate::Head::new(),
            payload: bytes::Bytes::new(),
        }
    }
}

/// The congestion control contexts: one for each destination and traffic class. What flows from here to there is one
/// direction, whether a packet is of the forward or of the return direction of its PDC.
pub(super) struct Cccs {
    capacity: usize,
    params: CcParams,
    seed: u64,
    by_destination: HashMap<(IpAddr, u8), SlabKey, Hasher>,
    entries: Slab<CccEntry>,
    /// Those that no context uses, the longest unused first; some may be in use again.
    unused: VecDeque<SlabKey>,
    /// Timeouts, some of which no longer hold.
    due: BinaryHeap<Reverse<(Time, SlabKey)>>,
    /// The one that a context has left.
    left: Option<SlabKey>,
}

/// The number that a destination knows a context by: there is one for each destination and class.
const CCC_ID: u8 = 1;

struct CccEntry {
    ccc: Ccc,
    destination: (IpAddr, u8),
    users: u32,
    /// Whether it is among the unused.
    parked: bool,
    /// Contexts that wait for permission.
    blocked: VecDeque<u16>,
    /// The timeout that is in the heap.
    due: Option<Time>,
    /// A context that control packets can go by.
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

    /// The context for packets to there; `None` when all are in use.
    pub(super) fn enter(&mut self, destination: (IpAddr, u8), pdc: u16) -> Option<SlabKey> {
        if let Some(key) = self.by_destination.get(&destination) {
            self.entries.get_mut(*key as usize)?.users += 1;
            return Some(*key);
        }
        if self.entries.len() >= self.capacity && !self.evict() {
            return None;
        }
        self.seed = self.seed.wrapping_add(1);
        // The parameters have been checked.
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

    /// A context is over. Its turn, where it waits for one, is not lost on it.
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

    /// A context may not send now; it is told when it may.
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

    /// After something has happened to a context: its timeout is noted, and one that waits may try. Each that sends
    /// lets the next try, so that nobody walks over all that wait.
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

    /// Removes timeouts that no longer hold from the top of the heap, so that [`next`](Self::next) only has to look.
    fn prune(&mut self) {
        while let Some(Reverse((at, key))) = self.due.peek().copied() {
            if self.entries.get(key as usize).is_some_and(|entry| entry.due == Some(at)) {
                return;
            }
            self.due.pop();
        }
    }

    /// Tells a context that is due the time.
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
