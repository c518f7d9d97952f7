//! A context and its two directions, as observed in packets.

use crate::Observed;
use core::net::IpAddr;
use rangemap::RangeInclusiveMap;
use std::collections::{BTreeMap, BTreeSet};
use uet_wire::registry::{CtlType, Opcode};
use uet_wire::{PdcId, Psn, Units24};

/// The key of one end: its address, its PDCID, and the peer's address.
pub(crate) type End = (IpAddr, PdcId, IpAddr);

/// The least distance of two PSNs that cannot belong to the same context. No window reaches so far. When an identifier
/// is reused, the first PSN lies at least 2^16 from the last one (3.5.8).
pub(crate) const FAR: i64 = 1 << 15;

/// The maximum number of requests kept per direction.
pub(crate) const KEPT: usize = 4096;

/// The number of a context, counted from 0 in order of observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub u64);

/// One end of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The sender of the first observed packet.
    A,
    /// The receiver of the first observed packet.
    B,
}

impl Side {
    /// Returns the opposite side.
    pub fn other(self) -> Side {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }
}

/// An ACK with the identifiers of a context and a cumulative PSN that is far from all PSNs of the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stray {
    /// The packet number.
    pub number: u64,
    /// Its sender.
    pub sender: Side,
    /// Its cumulative PSN.
    pub cack_psn: Psn,
    /// The PSN that it names.
    pub ack_psn: Option<Psn>,
}

/// A context between two ends.
#[derive(Clone, Debug)]
pub struct Context {
    /// Its number.
    pub id: ContextId,
    /// The number of the first observed packet.
    pub first: u64,
    /// The addresses of sides A and B.
    pub addresses: [IpAddr; 2],
    /// The side that opened the context, if observed.
    pub initiator: Option<Side>,
    /// Start_PSN and the first packet that announced it.
    pub start: Option<(Psn, u64)>,
    /// The number of the packet that acknowledged its CLOSE_COMMAND. Its identifiers are free afterwards.
    pub closed: Option<u64>,
    /// ACKs with both identifiers of this context and a cumulative PSN that is far from all of its PSNs.
    pub(crate) strays: Vec<Stray>,
    /// True if the last packet belongs to the context by its PSN: others may be those of an earlier context with the
    /// same identifiers.
    pub(crate) is_shown: bool,
    /// The keys of the context in the observer's index.
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
            strays: Vec::new(),
            is_shown: false,
            ends: Vec::new(),
            directions: Default::default(),
        }
    }

    /// Returns the number of packets kept.
    pub(crate) fn kept(&self) -> usize {
        self.directions.iter().map(Direction::kept).sum()
    }

    /// Returns the direction of this side: its requests and their replies.
    pub fn direction(&self, side: Side) -> &Direction {
        &self.directions[side as usize]
    }

    pub(crate) fn direction_mut(&mut self, side: Side) -> &mut Direction {
        &mut self.directions[side as usize]
    }

    /// Returns the number of packets that were acknowledged and not observed.
    pub(crate) fn unseen(&self) -> u64 {
        self.directions.iter().map(|direction| direction.unseen).sum()
    }

    /// Returns the number of replies to sides that were not observed to send anything that has a reply.
    pub(crate) fn unmatched(&self) -> u64 {
        let silent = self.directions.iter().filter(|direction| !direction.has_spoken);
        silent.map(|direction| u64::from(direction.replies)).sum()
    }

    /// Returns the distance of a PSN from Start_PSN, negative before it. Returns `None` if Start_PSN is unknown or the
    /// distance exceeds any window.
    pub fn distance_from_start(&self, psn: Psn) -> Option<i64> {
        self.start.map(|(start, _)| distance(psn, start)).filter(|from_start| from_start.abs() < FAR)
    }

    /// Returns true if a PSN may belong to the direction of this side. Both directions begin at the same Start_PSN
    /// (`PDS-SYN-008`).
    pub(crate) fn reaches(&self, side: Side, psn: Psn) -> bool {
        let direction = self.direction(side);
        let is_new = direction.base.is_none() && !self.directions.iter().any(|it| it.renumbered);
        match self.start.filter(|_| is_new) {
            Some(_) => self.distance_from_start(psn).is_some(),
            None => direction.reaches(psn),
        }
    }

    /// Returns a PSN near Start_PSN.
    pub(crate) fn anchor(&self) -> Option<Psn> {
        let [a, b] = &self.directions;
        self.start.map(|(start, _)| start).or(a.base).or(b.base)
    }
}

/// The requests of one side of a context, and the replies of the other side.
///
/// An index is the distance of a PSN from the first observed one of this direction.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Direction {
    /// The PDCID of the side that sends the requests, if observed.
    pub pdcid: Option<PdcId>,
    /// The PDCIDs that this side used for itself, in order of first use. More than one is a contradiction. At most 8
    /// are kept.
    pub names: Vec<PdcId>,
    /// True if the mode is ROD, according to the first observed request.
    pub rod: Option<bool>,
    /// True if requests of both modes were observed: their sender contradicts itself.
    pub mixed_modes: bool,
    /// The observed requests by index: the newest 4,096 that are not acknowledged and cleared, and some before them.
    /// Boxed, because a map reserves room for several entries, and most contexts have few.
    pub requests: BTreeMap<i64, Box<SentRequest>>,
    /// The control packets with their own PSN, and their packet numbers: the newest 4,096.
    pub controls: BTreeMap<i64, (CtlType, u64)>,
    /// The highest PSN sent.
    pub highest: Option<i64>,
    /// True if a request had the `retx` flag.
    pub retransmitted: bool,
    /// The highest CLEAR_PSN.
    pub cleared: Option<i64>,
    /// The PSN of the CLOSE_COMMAND and its packet.
    pub close: Option<(i64, u64)>,
    /// The first CLOSE_REQUEST or CLOSE_COMMAND of this side.
    pub closing: Option<u64>,
    /// The opaque values of all PROBEs.
    pub probes: BTreeSet<u16>,
    /// The PSNs that an ACK_REQUEST named, as long as their requests are kept.
    pub asked: BTreeSet<i64>,
    /// The reads and fetching atomics of this side by message ID: the newest 4,096.
    pub reads: BTreeMap<u16, ReadRequest>,
    /// True if this side requested credit.
    pub demands_credit: bool,

    /// The highest cumulative PSN of an ACK, and its packet number.
    pub cack: Option<(i64, u64)>,
    /// The last PSN that an ACK named before it was sent, and the number of the ACK.
    pub ahead: Option<(i64, u64)>,
    /// The highest PSN that an ACK acknowledged, cumulatively or by name. CLEAR may not exceed it.
    pub told: Option<i64>,
    /// The first and the last `rcvd_bytes` observed.
    pub rcvd: Option<(RcvdBytes, RcvdBytes)>,
    /// The last announced window: the number of PSNs above the cumulative one.
    pub window: Option<i64>,
    /// All announced values of `mpr`; 0 means no limit.
    pub announced: BTreeSet<u8>,
    /// The highest sum of cumulative PSN and window. A permission is never withdrawn.
    pub permitted: Option<i64>,
    /// The last credit that an ACK granted.
    pub credit: Option<Units24>,
    /// True if a NACK renumbered the PSNs (NEW_START_PSN).
    pub renumbered: bool,
    /// True if its packets have been sent before, with other PSNs.
    pub(crate) moved: bool,

    /// The PSNs above the cumulative one that a SACK acknowledged, with the number of the first such packet.
    pub(crate) sacked: RangeInclusiveMap<i64, u64>,
    base: Option<Psn>,
    /// The lowest and the highest index of the requests that are no longer kept.
    pub(crate) forgotten: Option<(i64, i64)>,
    /// The unacknowledged packets: packet number and size in bytes, counted from PDS on.
    pub(crate) unacknowledged: BTreeMap<i64, (u64, usize)>,
    /// The number of packets that were acknowledged and not observed.
    pub(crate) unseen: u64,
    /// `unseen` counts the packets above the first index, up to the second one.
    pub(crate) counted: Option<(i64, i64)>,
    /// True if a packet that belongs to the context by its PSN stated one of `names`.
    pub(crate) is_named: bool,
    /// True if a request or a control packet was observed.
    pub(crate) has_spoken: bool,
    /// The number of ACKs and NACKs.
    pub(crate) replies: u32,
}

impl Direction {
    fn kept(&self) -> usize {
        let Direction { requests, controls, probes, reads, unacknowledged, .. } = self;
        requests.len() + controls.len() + probes.len() + reads.len() + unacknowledged.len()
    }

    /// Returns the index of a PSN.
    pub fn index(&self, psn: Psn) -> i64 {
        self.base.map_or(0, |base| distance(psn, base))
    }

    /// Returns the index of a PSN. The first PSN gets index 0.
    pub(crate) fn place(&mut self, psn: Psn) -> i64 {
        distance(psn, *self.base.get_or_insert(psn))
    }

    /// Returns the PSN of an index.
    pub fn psn(&self, index: i64) -> Psn {
        Psn(self.base.unwrap_or_default().0.wrapping_add(index as u32))
    }

    /// Returns true if a packet with this PSN was sent and is still kept.
    pub fn is_sent(&self, index: i64) -> bool {
        self.requests.contains_key(&index) || self.controls.contains_key(&index)
    }

    /// Returns true if a request with this PSN may have been sent and is no longer kept.
    pub fn is_forgotten(&self, index: i64) -> bool {
        self.forgotten.is_some_and(|(from, to)| (from..=to).contains(&index)) && !self.renumbered
    }

    /// Returns the highest PSN up to which all packets are acknowledged: cumulatively, by name or by SACK bitmap.
    pub fn settled(&self) -> Option<Psn> {
        let settled = |index: &i64| self.is_sent(*index) && !self.unacknowledged.contains_key(index);
        self.cack.map(|(cack, _)| self.psn((cack + 1..).take_while(settled).last().unwrap_or(cack)))
    }

    /// Returns the number of PSNs from `start` to the highest one sent or acknowledged that were not observed.
    pub(crate) fn lacking(&self, start: Psn) -> u64 {
        let start = self.index(start);
        let (above, to) = self.counted.unwrap_or((start - 1, start - 1));
        let last = self.highest.max(self.told).unwrap_or(to).max(to);
        let after = last - to - self.sent_between(to, last) as i64;
        self.unseen + u64::try_from(above + 1 - start + after).unwrap_or(0)
    }

    /// Returns the number of observed packets above an index, up to another one that is not below it.
    pub(crate) fn sent_between(&self, above: i64, to: i64) -> usize {
        let sent = (self.requests.range(above + 1..to + 1), self.controls.range(above + 1..to + 1));
        sent.0.count() + sent.1.count()
    }

    /// Returns the bytes in flight: sent and not acknowledged, counted from PDS on.
    pub fn in_flight(&self) -> usize {
        self.unacknowledged.values().map(|(_, bytes)| bytes).sum()
    }

    /// Returns the number of the first SACK that acknowledged this PSN, if it is above the cumulative one.
    pub fn sacked(&self, index: i64) -> Option<u64> {
        self.sacked.get(&index).copied()
    }

    /// Returns true if the request or control packet with this PSN is sent and not acknowledged.
    pub fn is_unacknowledged(&self, index: i64) -> bool {
        self.unacknowledged.contains_key(&index)
    }

    /// Returns the acknowledged requests that are kept.
    pub(crate) fn acknowledged(&self) -> impl Iterator<Item = (i64, &SentRequest)> {
        // Before the first ACK, no look at thousands of requests.
        let all = self.cack.map(|_| self.requests.iter());
        let all = all.into_iter().flatten().map(|(index, request)| (*index, &**request));
        all.filter(|(index, _)| !self.is_unacknowledged(*index))
    }

    /// Returns true if a packet below this index is sent and not acknowledged.
    pub fn has_unacknowledged_below(&self, index: i64) -> bool {
        self.unacknowledged.range(..index).next().is_some()
    }

    /// Returns the cumulative PSN if it is above the highest one sent: the number of PSNs sent, the number of those
    /// above them, and the packet number of the ACK. Returns `None` if a packet from `start` to the highest one was not
    /// observed, or if the direction is closed.
    pub(crate) fn acknowledged_unsent(&self, start: Psn) -> Option<(i64, i64, u64)> {
        let ((cack, number), (above, counted), highest) = (self.cack?, self.counted?, self.highest?);
        let (sent, beyond) = (highest - above, cack - highest);
        // All packets that were not observed are those above the highest one.
        let is_complete = above + 1 == self.index(start)
            && counted == cack
            && u64::try_from(beyond).is_ok_and(|beyond| beyond == self.unseen);
        let is_open = self.close.is_none() && !self.renumbered;
        (beyond > 0 && is_complete && is_open).then_some((sent, beyond, number))
    }

    /// Returns true if a PSN of this direction was observed, and this one lies within a window of the observed ones.
    pub(crate) fn is_near(&self, psn: Psn) -> bool {
        self.base.is_some() && self.reaches(psn)
    }

    /// Returns true if a PSN may belong to this direction, because it lies within a window of the observed PSNs.
    pub(crate) fn reaches(&self, psn: Psn) -> bool {
        let Some(base) = self.base.filter(|_| !self.renumbered) else { return true };
        let highest = self.highest.max(self.told).unwrap_or_default();
        let lowest = self.cack.map_or(0, |(cack, _)| cack).min(highest);
        (lowest - FAR + 1..highest + FAR).contains(&distance(psn, base))
    }
}

/// An observed request.
#[derive(Clone, Debug)]
pub struct SentRequest {
    /// The packet number of the first transmission.
    pub number: u64,
    /// True if the first transmission had the `retx` flag.
    pub retx: bool,
    /// The CLEAR_PSN of the first transmission.
    pub clear: Psn,
    /// A digest of the SES headers and the payload; `None` if every transmission was incomplete.
    pub digest: Option<u64>,
    /// The first two entropy values.
    pub entropy: [Option<u16>; 2],
    /// True if a transmission was marked.
    pub marked: bool,
    /// The number of observed transmissions.
    pub times: u32,
    /// True if transmissions differed in content: an answer may be about any of them.
    pub changed: bool,
    /// True if the first transmission requested credit.
    pub demand: bool,
    /// Its position in a message, if it is complete, unchanged, and has a standard header.
    pub part: Option<MessagePart>,
    /// The opcode of its request header, if it is unchanged and has one.
    pub opcode: Option<Opcode>,
    /// The message ID of the read, if this is all the data of an open one.
    pub data_of: Option<u16>,
    /// True if the first transmission had the `syn` flag.
    pub syn: bool,
}

/// The position of a request in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields have the names of the header's fields
pub struct MessagePart {
    pub opcode: Opcode,
    /// True for relative addressing.
    pub rel: bool,
    pub message_id: u16,
    pub ri_generation: u8,
    pub job_id: u32,
    pub pid_on_fep: u16,
    pub resource_index: u16,
    pub initiator: u32,
    /// The memory key or the match bits.
    pub key: Option<u64>,
    pub som: bool,
    pub eom: bool,
    pub ie: bool,
    pub message_offset: u32,
    pub payload_length: u32,
    pub request_length: u32,
    pub buffer_offset: Option<u64>,
}

impl MessagePart {
    /// Returns whether the message is a deferrable send.
    pub fn is_deferrable(&self) -> bool {
        matches!(self.opcode, Opcode::UET_DEFERRABLE_SEND | Opcode::UET_DEFERRABLE_TSEND)
    }

    /// Describes the destination, which all packets of a message share.
    pub fn destination(&self) -> String {
        let MessagePart { rel, ri_generation, job_id, pid_on_fep, resource_index, initiator, key, .. } = self;
        let key = key.map(|key| format!(", key or tag {key:#x}")).unwrap_or_default();
        format!(
            "rel {}, job {job_id}, process {pid_on_fep}, index {resource_index}, generation {ri_generation}, \
             initiator {initiator}{key}",
            u8::from(*rel)
        )
    }
}

/// A request that returns data, and the data observed so far.
#[derive(Clone, Copy, Debug)]
pub struct ReadRequest {
    /// The maximum number of bytes that it returns.
    pub bytes: u32,
    /// Its job.
    pub job_id: u32,
    /// The first data of it.
    pub data: Option<ReadData>,
    /// True if its data ended or it failed. The message ID is then free.
    pub over: bool,
}

/// The first data of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields have the names of the header's fields
pub struct ReadData {
    /// The packet number.
    pub number: u64,
    /// True if an ACK carried it.
    pub in_ack: bool,
    pub response_message_id: u16,
    pub modified_length: u32,
}

/// The `rcvd_bytes` count of an ACK.
#[derive(Clone, Copy, Debug)]
pub struct RcvdBytes {
    /// The count.
    pub bytes: Units24,
    /// The index of the cumulative PSN in that ACK.
    pub cack: i64,
    /// The packet number.
    pub number: u64,
}

/// Returns the distance of `psn` from `base`, negative before it.
pub(crate) fn distance(psn: Psn, base: Psn) -> i64 {
    i64::from(psn.0.wrapping_sub(base.0) as i32)
}
