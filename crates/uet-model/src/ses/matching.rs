//! Matching of sends and receives (sections 3.4.1, 3.4.3.3).
//!
//! A posted receive waits in the *expected* list of its index. A send without a receive goes to the *overflow* list if
//! there is room. A [`Landing`] collects the bytes of a send.

use super::address::ResourceIndex;
use super::operation::Peer;
use super::unexpected::{Parts, Payer, Room};
use crate::{Memory, PdcHandle};
use bytes::Bytes;
use core::net::IpAddr;
use std::collections::{BTreeMap, VecDeque};
use uet_wire::registry::{List, ReturnCode};

/// The identifier of a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiveId(pub u64);

impl core::fmt::Display for ReceiveId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "receive {}", self.0)
    }
}

/// A buffer that waits for a send.
///
/// ```
/// use uet_model::ses::{Receive, Sender, Tag};
///
/// let any_of_sixteen = Receive { tag: Some(Tag { bits: 0x70, ignore: 0xf }), ..Receive::new(4096) };
/// let sender = |tag| Sender { from: [10, 0, 0, 1].into(), job: 101, initiator: 0, tag };
/// assert!(any_of_sixteen.matches(&sender(Some(0x77))));
/// assert!(!any_of_sixteen.matches(&sender(Some(0x87))));
/// assert!(!any_of_sixteen.matches(&sender(None)), "a plain send is for plain receives");
///
/// let from_another = Receive { from: Some([10, 0, 0, 2].into()), ..Receive::new(4096) };
/// assert!(!from_another.matches(&sender(None)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct Receive {
    /// The length in bytes.
    pub capacity: u32,
    /// The tagged sends that match; `None` for plain sends.
    pub tag: Option<Tag>,
    /// The initiator whose sends match; `None` for all.
    pub initiator: Option<u32>,
    /// The address whose sends match; `None` for all. Anyone can copy the `initiator` field of another sender.
    pub from: Option<IpAddr>,
    /// The initial content, for atomics by tag. The rest is zero.
    pub initial: Bytes,
}

/// The tags that a receive matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tag {
    /// The match bits.
    pub bits: u64,
    /// The bits that are ignored.
    pub ignore: u64,
}

impl Receive {
    /// Returns a receive for plain sends of any initiator.
    pub fn new(capacity: u32) -> Self {
        Receive { capacity, ..Receive::default() }
    }

    /// Returns a receive for sends with exactly this tag.
    pub fn tagged(capacity: u32, bits: u64) -> Self {
        Receive { tag: Some(Tag { bits, ignore: 0 }), ..Receive::new(capacity) }
    }

    /// Returns whether a send of this sender matches. `SES-MATCH-001`: a tagged send must agree in the bits that the
    /// receive does not ignore; a plain send matches plain receives only. `SES-MATCH-002`: a receive for one initiator
    /// matches no other.
    pub fn matches(&self, sender: &Sender) -> bool {
        let by_tag = match (self.tag, sender.tag) {
            (Some(Tag { bits, ignore }), Some(sent)) => (bits ^ sent) & !ignore == 0,
            (None, None) => true,
            _ => false,
        };
        by_tag
            && self.initiator.is_none_or(|only| only == sender.initiator)
            && self.from.is_none_or(|only| only == sender.from)
    }
}

/// The identifier of a landing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LandingId(u64);

/// A send that is arriving, and its buffer.
#[derive(Debug)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) struct Landing {
    pub(super) index: ResourceIndex,
    pub(super) list: List,
    /// The receive; `None` for an unexpected send.
    pub(super) receive: Option<(ReceiveId, Receive)>,
    pub(super) sender: Sender,
    /// The context that carries the send, if one does, and whether its peer has confirmed it.
    pub(super) pdc: Option<PdcHandle>,
    pub(super) confirmed: bool,
    /// True if nothing has arrived since the last look for stalled messages.
    pub(super) stalled: bool,
    pub(super) total: u32,
    pub(super) buffer: Buffer,
    pub(super) header_data: Option<u64>,
    pub(super) rest: Rest,
}

/// The part of a message that is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) enum Rest {
    /// Packets of the message.
    Arriving,
    /// Packets, followed by data that we read ourselves.
    ArrivingThenRead(Remote),
    /// Data that we read ourselves once a receive matches.
    ToRead(Remote),
    /// Data of that read, after this many bytes.
    Reading(u32),
    /// Nothing.
    Nothing,
}

/// The location of the rest of a rendezvous send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) struct Remote {
    pub(super) peer: Peer,
    pub(super) key: u64,
    pub(super) offset: u64,
    /// The offset in the message where it starts.
    pub(super) eager: u32,
}

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct Sender {
    /// The address.
    pub from: IpAddr,
    /// The job.
    pub job: u32,
    /// The rank.
    pub initiator: u32,
    /// The match bits of a tagged send.
    pub tag: Option<u64>,
}

/// A send that came before its receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unexpected {
    /// The sender.
    pub sender: Sender,
    /// The length of the message in bytes.
    pub length: u32,
    /// The header data of its first packet.
    pub header_data: Option<u64>,
}

/// A receive that waits for a send, with the memory that the application gave it, if any.
#[derive(Debug)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) struct PostedReceive {
    pub(super) receive: Receive,
    pub(super) memory: Option<Box<dyn Memory>>,
}

/// The buffer of a message that is arriving.
#[derive(Debug)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) enum Buffer {
    /// The bytes that have arrived without a receive.
    Parts(Parts),
    /// The model's own memory.
    Own(Vec<u8>),
    /// The application's memory, and the number of its bytes that the receive offers.
    Callers(Box<dyn Memory>, usize),
}

impl Buffer {
    /// Returns the memory of a receive, or memory of our own for `total` bytes if the receive has none.
    pub(super) fn of(posted: PostedReceive, total: u32) -> Self {
        let capacity = posted.receive.capacity;
        match posted.memory {
            None => Buffer::Own(vec![0; total.min(capacity) as usize]),
            Some(memory) => Buffer::Callers(memory, capacity as usize),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Buffer::Parts(parts) => parts.len(),
            Buffer::Own(bytes) => bytes.len(),
            Buffer::Callers(_, length) => *length,
        }
    }

    /// Sets the length of our own memory to `length` bytes. The application's memory keeps its length.
    pub(super) fn resize(&mut self, length: usize) {
        if let Buffer::Own(bytes) = self {
            bytes.resize(length, 0);
        }
    }

    /// Writes bytes at `offset`, and cuts off those beyond the buffer.
    pub(super) fn place(&mut self, offset: u32, payload: &[u8]) -> Result<(), ReturnCode> {
        let start = (offset as usize).min(self.len());
        let length = payload.len().min(self.len() - start);
        let payload = payload.get(..length).unwrap_or_default();
        match self {
            // The owner adds to the parts itself, because it must have the room.
            Buffer::Parts(_) => Ok(()),
            Buffer::Own(bytes) => Memory::write(bytes, start, payload),
            Buffer::Callers(memory, _) => memory.write(start, payload),
        }
    }

    /// Moves the bytes that have arrived into the memory of the receive that took the message of `total` bytes.
    pub(super) fn adopt(&mut self, posted: PostedReceive, total: u32) -> Result<(), ReturnCode> {
        let before = core::mem::replace(self, Buffer::of(posted, total));
        let Buffer::Parts(parts) = before else { return Ok(()) };
        parts.iter().try_for_each(|(offset, part)| self.place(offset, part))
    }
}

impl Landing {
    /// Returns the number of bytes of the message that fit.
    pub(super) fn accepted(&self) -> u32 {
        match &self.receive {
            Some((_, receive)) => self.total.min(receive.capacity),
            None => self.total,
        }
    }

    /// Returns whose share of the room the message uses while it has no receive.
    pub(super) fn payer(&self) -> Payer {
        self.confirmed.then_some(self.sender.from)
    }
}

/// A deferred send (section 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) struct Deferred {
    pub(super) sender: Sender,
    /// The peer for replies.
    pub(super) peer: Peer,
    /// The sender's token.
    pub(super) token: u32,
    /// The context that carried the send, if one did, and whether its peer has confirmed it.
    pub(super) pdc: Option<PdcHandle>,
    pub(super) confirmed: bool,
}

/// Sends that came before their receive, in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) enum Early {
    Unexpected(LandingId, Sender),
    Deferred(Deferred),
}

impl Early {
    fn sender(&self) -> &Sender {
        match self {
            Early::Unexpected(_, sender) => sender,
            Early::Deferred(deferred) => &deferred.sender,
        }
    }

    /// Returns whether this may be a forged send that keeps a receive from others.
    fn is_strange(&self) -> bool {
        matches!(self, Early::Deferred(deferred) if !deferred.confirmed)
    }
}

/// The lists of an index.
#[derive(Debug, Default)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) struct Queue {
    expected: VecDeque<(ReceiveId, PostedReceive)>,
    early: VecDeque<Early>,
    pub(super) room: Room,
    deferred: u16,
}

impl Queue {
    /// Adds a receive that no early send matches. One that a send has given back returns to its place in the order.
    pub(super) fn post(&mut self, id: ReceiveId, posted: PostedReceive) {
        let place = self.expected.partition_point(|(other, _)| *other < id);
        self.expected.insert(place, (id, posted));
    }

    /// Takes the matching receive that was posted first. `SES-MATCH-006`: a send takes only one.
    pub(super) fn take_expected(&mut self, sender: &Sender) -> Option<(ReceiveId, PostedReceive)> {
        let place = self.expected.iter().position(|(_, posted)| posted.receive.matches(sender))?;
        self.expected.remove(place)
    }

    /// Returns the receive that a send would take.
    pub(super) fn peek_expected(&mut self, sender: &Sender) -> Option<&mut PostedReceive> {
        let mut receives = self.expected.iter_mut().map(|(_, posted)| posted);
        receives.find(|posted| posted.receive.matches(sender))
    }

    /// Returns the first early send that matches, if it is an unexpected message.
    pub(super) fn peek_early(&self, receive: &Receive) -> Option<LandingId> {
        match &self.early[self.early_place(receive)?] {
            Early::Unexpected(id, _) => Some(*id),
            Early::Deferred(_) => None,
        }
    }

    /// Returns the place of the first early send that matches. Forged deferred sends would reserve a receive one after
    /// the other, so all others come first.
    fn early_place(&self, receive: &Receive) -> Option<usize> {
        let matches = |early: &Early| receive.matches(early.sender());
        let known = self.early.iter().position(|early| matches(early) && !early.is_strange());
        known.or_else(|| self.early.iter().position(matches))
    }

    /// Takes the first early send that matches.
    pub(super) fn take_early(&mut self, receive: &Receive) -> Option<Early> {
        let place = self.early_place(receive)?;
        self.early.remove(place)
    }

    /// Handles the confirmation of a context that has carried deferred sends.
    pub(super) fn confirm(&mut self, pdc: PdcHandle) {
        for early in &mut self.early {
            if let Early::Deferred(deferred) = early {
                deferred.confirmed |= deferred.pdc == Some(pdc);
            }
        }
    }

    /// Adds an unexpected message without bytes.
    pub(super) fn keep_unexpected(&mut self, id: LandingId, sender: Sender, payer: Payer) {
        self.room.take(payer, 1, 0);
        self.early.push_back(Early::Unexpected(id, sender));
    }

    /// Removes an unexpected message that no receive took.
    pub(super) fn forget(&mut self, id: LandingId) {
        self.early.retain(|early| !matches!(early, Early::Unexpected(other, _) if *other == id));
    }

    /// Adds a deferred send; `false` if there is no room. Half of the room is for senders that have confirmed their
    /// context.
    pub(super) fn defer(&mut self, deferred: Deferred, most: u16) -> bool {
        let strange = self.early.iter().filter(|early| early.is_strange()).count();
        let room = self.deferred < most && (deferred.confirmed || strange < usize::from(most.div_ceil(2)));
        if room {
            self.deferred += 1;
            self.early.push_back(Early::Deferred(deferred));
        }
        room
    }

    pub(super) fn forget_deferred(&mut self) {
        self.early.retain(|early| matches!(early, Early::Unexpected(..)));
        self.deferred = 0;
    }

    pub(super) fn undefer(&mut self) {
        self.deferred = self.deferred.saturating_sub(1);
    }

    pub(super) fn remove(&mut self, id: ReceiveId) -> bool {
        let before = self.expected.len();
        self.expected.retain(|(other, _)| *other != id);
        self.expected.len() < before
    }
}

/// All landings.
#[derive(Debug, Default)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) struct Landings {
    by_id: BTreeMap<LandingId, Landing>,
    next: u64,
}

impl Landings {
    pub(super) fn add(&mut self, landing: Landing) -> LandingId {
        let id = LandingId(self.next);
        self.next += 1;
        self.by_id.insert(id, landing);
        id
    }

    pub(super) fn get(&self, id: LandingId) -> Option<&Landing> {
        self.by_id.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: LandingId) -> Option<&mut Landing> {
        self.by_id.get_mut(&id)
    }

    pub(super) fn remove(&mut self, id: LandingId) -> Option<Landing> {
        self.by_id.remove(&id)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (LandingId, &mut Landing)> {
        self.by_id.iter_mut().map(|(id, landing)| (*id, landing))
    }

    /// Returns the landing of a matched receive.
    pub(super) fn of_receive(&self, id: ReceiveId) -> Option<LandingId> {
        let mut landings = self.by_id.iter();
        landings
            .find(|(_, landing)| landing.receive.as_ref().is_some_and(|(receive, _)| *receive == id))
            .map(|(id, _)| *id)
    }
}
