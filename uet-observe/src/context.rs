//! A context and its two directions, as far as packets show them.

use crate::observer::End;
use crate::{Observed, Ranges};
use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use uet_wire::registry::CtlType;
use uet_wire::{PdcId, Psn, Units24};

/// PSNs that lie this far apart belong to different contexts. No window reaches so far, and the first PSN of a context lies
/// farther from the last one of the context that had its identifier before (2^16, 3.5.8).
pub(crate) const FAR: i64 = 1 << 15;

/// Requests of one direction that are kept: the newest ones.
pub(crate) const KEPT: usize = 4096;

/// The number of a context: 0 for the first one observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub u64);

/// An end of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The sender of the first packet observed.
    A,
    /// The receiver of it.
    B,
}

impl Side {
    /// Returns the peer's side.
    pub fn other(self) -> Side {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }
}

/// A context between two ends.
#[derive(Clone, Debug)]
pub struct Context {
    /// Its number.
    pub id: ContextId,
    /// The first packet observed.
    pub first: u64,
    /// The addresses of sides A and B.
    pub addresses: [IpAddr; 2],
    /// The side that opened it, if the opening was observed.
    pub initiator: Option<Side>,
    /// Start_PSN and the first packet that announced it.
    pub start: Option<(Psn, u64)>,
    /// The ACK of its CLOSE_COMMAND. Its identifiers are free from there on.
    pub closed: Option<u64>,
    /// The keys under which the observer finds it.
    pub(crate) ends: Vec<End>,
    directions: [Direction; 2],
}

impl Context {
    pub(crate) fn new(id: ContextId, packet: &Observed<'_>, initiator: Option<Side>) -> Context {
        Context {
            id,
            first: packet.number,
            addresses: [packet.src, packet.dst],
            initiator,
            start: None,
            closed: None,
            ends: Vec::new(),
            directions: Default::default(),
        }
    }

    /// Returns the requests of this side and the answers to them.
    pub fn direction(&self, side: Side) -> &Direction {
        &self.directions[side as usize]
    }

    pub(crate) fn direction_mut(&mut self, side: Side) -> &mut Direction {
        &mut self.directions[side as usize]
    }

    /// Returns how far a PSN lies after Start_PSN, negative before it; `None` if that is unknown or farther than any window.
    pub fn distance_from_start(&self, psn: Psn) -> Option<i64> {
        self.start.map(|(start, _)| distance(psn, start)).filter(|from_start| from_start.abs() < FAR)
    }

    /// Returns a PSN near Start_PSN.
    pub(crate) fn anchor(&self) -> Option<Psn> {
        let [a, b] = &self.directions;
        self.start.map(|(start, _)| start).or(a.base).or(b.base)
    }
}

/// The requests of one side of a context, and the answers of the other side to them.
///
/// An index is the distance of a PSN from the first one observed in this direction.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Direction {
    /// The PDCID of the side that sends the requests, if observed.
    pub pdcid: Option<PdcId>,
    /// The PDCIDs that this side gave itself, in the order of their first packets: more than one contradict each other. At most 8.
    pub names: Vec<PdcId>,
    /// Whether the mode is ROD, by the first request observed.
    pub rod: Option<bool>,
    /// The requests observed, by index: the newest 4,096.
    pub requests: BTreeMap<i64, SentRequest>,
    /// The control packets with a PSN of their own, with their packets: the newest 4,096.
    pub controls: BTreeMap<i64, (CtlType, u64)>,
    /// The highest PSN that was sent.
    pub highest: Option<i64>,
    /// Whether a request said `retx`.
    pub retransmitted: bool,
    /// The highest CLEAR_PSN.
    pub cleared: Option<i64>,
    /// The PSN of the CLOSE_COMMAND and its packet.
    pub close: Option<(i64, u64)>,
    /// The first CLOSE_REQUEST or CLOSE_COMMAND of this side.
    pub closing: Option<u64>,
    /// The opaque values of the last 64 probes.
    pub probes: VecDeque<u16>,
    /// The highest 64 PSNs that an ACK_REQUEST named.
    pub asked: BTreeSet<i64>,
    /// The reads and fetching atomics of this side, by message id: the newest 4,096.
    pub reads: BTreeMap<u16, ReadRequest>,
    /// Whether this side demanded credit.
    pub demands_credit: bool,

    /// The highest cumulative PSN of an ACK, and its packet.
    pub cack: Option<(i64, u64)>,
    /// The highest PSN that an ACK acknowledged cumulatively or named: the most that may be cleared.
    pub told: Option<i64>,
    /// The PSNs above the cumulative one that a SACK reported, with the packet that reported them first.
    pub sacked: Ranges<u64>,
    /// The first and the last count of received bytes.
    pub rcvd: Option<(RcvdBytes, RcvdBytes)>,
    /// The window announced last: how many PSNs above the cumulative one.
    pub window: Option<i64>,
    /// All values of `mpr` announced so far; 0 states no limit.
    pub announced: BTreeSet<u8>,
    /// The highest cumulative PSN plus window so far: a permission is never withdrawn.
    pub permitted: Option<i64>,
    /// The credit granted last by an ACK.
    pub credit: Option<Units24>,
    /// Whether a NACK renumbered the PSNs (NEW_START_PSN).
    pub renumbered: bool,

    base: Option<Psn>,
    /// What is not yet acknowledged: the packet and its bytes from PDS on.
    pub(crate) unacknowledged: BTreeMap<i64, (u64, usize)>,
}

impl Direction {
    /// Returns the index of a PSN.
    pub fn index(&self, psn: Psn) -> i64 {
        self.base.map_or(0, |base| distance(psn, base))
    }

    /// Returns the index of a PSN; the first one gets index 0.
    pub(crate) fn place(&mut self, psn: Psn) -> i64 {
        distance(psn, *self.base.get_or_insert(psn))
    }

    /// Returns the PSN of an index.
    pub fn psn(&self, index: i64) -> Psn {
        Psn(self.base.unwrap_or_default().0.wrapping_add(index as u32))
    }

    /// Returns whether a packet with this PSN was sent, as far as it is kept.
    pub fn is_sent(&self, index: i64) -> bool {
        self.requests.contains_key(&index) || self.controls.contains_key(&index)
    }

    /// Returns the highest PSN up to which ACKs acknowledged all: cumulatively, by name or in a bitmap.
    pub fn settled(&self) -> Option<Psn> {
        let settled = |index: &i64| self.is_sent(*index) && !self.unacknowledged.contains_key(index);
        self.cack.map(|(cack, _)| self.psn((cack + 1..).take_while(settled).last().unwrap_or(cack)))
    }

    /// Returns the bytes, from PDS on, of the packets that are sent and not acknowledged.
    pub fn in_flight(&self) -> usize {
        self.unacknowledged.values().map(|(_, bytes)| bytes).sum()
    }

    /// Returns whether a PSN may belong to this direction: no window reaches farther from the PSNs observed.
    pub(crate) fn reaches(&self, psn: Psn) -> bool {
        let Some(base) = self.base.filter(|_| !self.renumbered) else { return true };
        let highest = self.highest.max(self.told).unwrap_or_default();
        let lowest = self.cack.map_or(0, |(cack, _)| cack).min(highest);
        (lowest - FAR + 1..highest + FAR).contains(&distance(psn, base))
    }
}

/// A request that was observed.
#[derive(Clone, Debug)]
pub struct SentRequest {
    /// The first transmission.
    pub number: u64,
    /// Whether the first transmission said `retx`.
    pub retx: bool,
    /// CLEAR_PSN in the first transmission.
    pub clear: Psn,
    /// A digest of the SES headers and the payload; `None` if no transmission was complete.
    pub digest: Option<u64>,
    /// The first two entropy values.
    pub entropy: [Option<u16>; 2],
    /// Whether a transmission was marked.
    pub marked: bool,
    /// How often it was observed.
    pub times: u32,
    /// Whether the first transmission demanded credit.
    pub demand: bool,
    /// Its place in a message, if it has a standard header and was complete.
    pub part: Option<MessagePart>,
}

/// The place of a request in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields have the names of the header's fields
pub struct MessagePart {
    pub message_id: u16,
    pub job_id: u32,
    pub som: bool,
    pub eom: bool,
    pub ie: bool,
    /// Whether the message is a deferrable send.
    pub deferrable: bool,
    pub message_offset: u32,
    pub payload_length: u32,
    pub request_length: u32,
    pub buffer_offset: Option<u64>,
}

/// A request for data.
#[derive(Clone, Copy, Debug)]
pub struct ReadRequest {
    /// The most bytes that it returns.
    pub bytes: u32,
    /// Whether its data ended or it failed: the message id is free.
    pub over: bool,
}

/// A count of received bytes (`rcvd_bytes`) in an ACK.
#[derive(Clone, Copy, Debug)]
pub struct RcvdBytes {
    /// The count.
    pub bytes: Units24,
    /// The index of the cumulative PSN beside it.
    pub cack: i64,
    /// The packet.
    pub number: u64,
}

/// Returns how far `psn` lies after `base`; negative before it.
pub(crate) fn distance(psn: Psn, base: Psn) -> i64 {
    i64::from(psn.0.wrapping_sub(base.0) as i32)
}
