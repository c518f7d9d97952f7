//! A context, as far as a capture shows it.

use super::suspicion::Suspicion;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use uet_wire::registry::CtlType;
use uet_wire::{Psn, Units24};

/// Requests of one direction that are remembered: what lies further back than this is settled.
const KEPT: usize = 4096;

/// PSNs that lie so far apart are not of the same context: farther than any window reaches, and nearer than the first PSN of
/// a context may lie to the last one of the context that had its identifier before (2^16, 3.5.8).
pub(crate) const FAR: i64 = 1 << 15;

/// Which end of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The one with the first name of the context.
    A,
    /// The other one.
    B,
}

impl Side {
    pub(crate) fn other(self) -> Side {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }
}

/// A context and what each side has sent.
#[derive(Debug, Default)]
pub(crate) struct Context {
    /// Who opened it, when the capture shows that.
    pub(crate) initiator: Option<Side>,
    /// The first PSN, when the capture shows it.
    pub(crate) start: Option<(Psn, u64)>,
    /// Whether it has ended: its identifiers may be used again.
    pub(crate) over: bool,
    a: Flow,
    b: Flow,
}

impl Context {
    /// One of which nothing else is known.
    pub(crate) fn of(initiator: Option<Side>) -> Context {
        Context { initiator, ..Context::default() }
    }

    /// A PSN near the first one.
    pub(crate) fn anchor(&self) -> Option<Psn> {
        self.start.map(|(start, _)| start).or(self.a.base).or(self.b.base)
    }

    /// The requests of this side.
    pub(crate) fn flow(&mut self, side: Side) -> &mut Flow {
        match side {
            Side::A => &mut self.a,
            Side::B => &mut self.b,
        }
    }
}

/// The requests of one side of a context, and what the other side says of them.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// The requests seen, by their distance from the first one seen. Recent ones only.
    pub(crate) requests: BTreeMap<i64, Sent>,
    base: Option<Psn>,
    /// The highest PSN that was seen in a request, or in a control packet with a PSN of its own.
    pub(crate) highest: Option<i64>,
    /// The highest cumulative PSN that an ACK has said, and the packet that said it.
    pub(crate) cack: Option<(i64, u64)>,
    /// PSNs that an ACK has said to have arrived, beyond the cumulative one.
    pub(crate) sacked: BTreeMap<i64, u64>,
    /// The PSN of the CLOSE_COMMAND, and its packet.
    pub(crate) closed: Option<(i64, u64)>,
    /// The last ACK with a count of bytes.
    pub(crate) received: Option<Received>,
    /// The first one.
    pub(crate) received_first: Option<Received>,
    /// The window last announced: how many PSNs beyond the cumulative one.
    pub(crate) range: Option<i64>,
    /// The highest PSN that an ACK has permitted: what has been permitted stays so.
    pub(crate) permitted: Option<i64>,
    /// Whether any retransmission was seen.
    pub(crate) retransmitted: bool,
    /// The opaque values of the probes seen, the last few.
    pub(crate) probes: VecDeque<u16>,
    /// The control packets with a PSN of their own. Recent ones only.
    pub(crate) controls: BTreeMap<i64, (CtlType, u64)>,
    /// The PSNs that this side has asked about by ACK_REQUEST: the ACK may answer that. Recent ones only.
    pub(crate) asked: BTreeSet<i64>,
    /// The highest PSN that the other side has told of, cumulatively or by name: what may be cleared.
    pub(crate) told: Option<i64>,
    /// The highest CLEAR_PSN seen.
    pub(crate) cleared: Option<i64>,
    /// How many ACKs in a row have left that above what is told.
    pub(crate) untold: u32,
    /// Whether an ACK has granted credit.
    pub(crate) on_credit: bool,
    /// Whether credit was demanded: without, it is not for RCCC that it is granted.
    pub(crate) demands: bool,
    /// This side's requests for data, by message id. Recent ones only.
    pub(crate) reads: BTreeMap<u16, Read>,
    /// The mode of the requests, by the first one seen.
    pub(crate) rod: Option<bool>,
    /// Set once the PSNs were given out anew.
    pub(crate) renumbered: bool,
    /// The message id that data last named and no read was seen to have.
    pub(crate) unread: Option<u16>,
    suspicions: BTreeMap<&'static str, Suspicion>,
}

/// A request that was seen.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    /// The packet of the first transmission seen.
    pub(crate) number: u64,
    /// Whether that said `retx`.
    pub(crate) retx: bool,
    /// The highest PSN cleared that it said.
    pub(crate) clear: Psn,
    /// A digest of what must not change: SES headers and payload. `None` where the packet was cut.
    pub(crate) content: Option<u64>,
    /// The entropy values that it was sent with, at most two: more tell nothing.
    pub(crate) entropy: [Option<u16>; 2],
    /// Whether it was seen marked by congestion.
    pub(crate) marked: bool,
    /// How often it was seen.
    pub(crate) times: u32,
    /// Whether it says a demand for credit.
    pub(crate) demand: bool,
    /// Its place in a message, when it has a standard header and was not cut.
    pub(crate) part: Option<Part>,
}

/// A request for data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    /// How many bytes it may bring.
    pub(crate) bytes: u32,
    /// Whether its data has ended.
    pub(crate) over: bool,
}

/// An ACK's count of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    pub(crate) bytes: Units24,
    pub(crate) cack: i64,
    pub(crate) number: u64,
}

/// What a request says of its place in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) message_id: u16,
    pub(crate) job: u32,
    pub(crate) som: bool,
    pub(crate) eom: bool,
    /// Whether the initiator gives the message up with this packet.
    pub(crate) ie: bool,
    /// Whether it is of a deferrable send.
    pub(crate) deferrable: bool,
    pub(crate) offset: u32,
    pub(crate) length: u32,
    pub(crate) total: u32,
    pub(crate) buffer: Option<u64>,
}

impl Flow {
    /// The distance of a PSN from the first one seen.
    pub(crate) fn place(&mut self, psn: Psn) -> i64 {
        let base = *self.base.get_or_insert(psn);
        distance(psn, base)
    }

    /// Whether a PSN can be one of these: it lies no farther from what was seen than a window reaches.
    pub(crate) fn reaches(&self, psn: Psn) -> bool {
        let Some(base) = self.base.filter(|_| !self.renumbered) else { return true };
        let highest = self.highest.max(self.told).unwrap_or_default();
        let lowest = self.cack.map_or(0, |(cack, _)| cack).min(highest);
        (lowest - FAR + 1..highest + FAR).contains(&distance(psn, base))
    }

    /// Whether something is strange, and so often that missing records do not explain it.
    pub(crate) fn suspect(&mut self, what: &'static str, strange: bool, enough: u64) -> bool {
        self.suspicions.entry(what).or_default().add(strange, enough)
    }

    /// What an ACK permits, by the window that it announces or by the one before. `mpr` counts only where the cumulative PSN
    /// is not older than another one (3.5.12.6). What was permitted before the first ACK seen, nobody knows.
    pub(crate) fn permit(&mut self, cack: i64, announced: Option<Option<u32>>) {
        const LARGEST: i64 = 255 * 128;
        const NO_LIMIT: i64 = i64::MAX / 4;
        if let (Some(range), true) = (announced, self.cack.is_none_or(|(before, _)| cack >= before)) {
            self.range = Some(range.map_or(NO_LIMIT, i64::from));
        }
        let before = self.permitted.unwrap_or(cack + LARGEST);
        self.permitted = Some(before.max(cack + self.range.unwrap_or(LARGEST)));
    }

    /// Remembers a control packet that takes a PSN, and forgets the oldest.
    pub(crate) fn remember_control(&mut self, at: i64, kind: CtlType, number: u64) {
        self.highest = self.highest.max(Some(at));
        self.controls.entry(at).or_insert((kind, number));
        if self.controls.len() > KEPT {
            self.controls.pop_first();
        }
    }

    /// Remembers what a read asks for, and forgets all when there are very many.
    pub(crate) fn remember_read(&mut self, message: u16, bytes: u32) {
        let read = Read { bytes, over: false };
        if self.reads.len() >= KEPT {
            self.reads.clear();
        }
        self.reads.insert(message, read);
    }

    /// The data of a read has ended, or it has failed: its message id may be used again.
    pub(crate) fn end_read(&mut self, message: u16) {
        if let Some(read) = self.reads.get_mut(&message) {
            read.over = true;
        }
    }

    /// Remembers a request, and forgets the oldest.
    pub(crate) fn remember(&mut self, at: i64, sent: Sent) {
        self.highest = self.highest.max(Some(at));
        self.requests.insert(at, sent);
        while self.requests.len() > KEPT {
            self.requests.pop_first();
        }
        while self.sacked.len() > KEPT {
            self.sacked.pop_first();
        }
    }
}

/// How far `psn` lies after `base`, or before it.
pub(crate) fn distance(psn: Psn, base: Psn) -> i64 {
    i64::from(psn.0.wrapping_sub(base.0) as i32)
}
