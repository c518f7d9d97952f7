//! The contexts that the device opens, with the suite as a right target of its operations.

mod answer;
mod feedback;
mod fields;
mod lone;
mod order;
mod part;
mod post;
mod request;
mod returned;

use crate::Pdc;
use crate::random::coverage::State;
use crate::random::step::{Posting, Reply};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use uet_control::Operated;
use uet_wire::Psn;
use uet_wire::registry::ReturnCode;
use uet_wire::ses::SesBuf;

/// Indices that name operations of the device.
const FIRST: u16 = 0x200;

/// The error with which the suite refuses.
const REFUSAL: ReturnCode = ReturnCode::UNCOR;

/// Packets that have come in one direction.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    got: BTreeSet<u32>,
    below: u32,
    bytes: u64,
    /// The cumulative PSN of the last ACK.
    confirmed: u32,
    /// PSNs whose last ACK was lost.
    unsure: BTreeSet<u32>,
}

impl Incoming {
    /// Notes a packet; returns whether it is new.
    pub(super) fn note(&mut self, n: u32, size: usize) -> bool {
        let new = self.note_control(n);
        if new {
            self.bytes += crate::packets::nominal(size);
        }
        new
    }

    /// Notes a control packet, whose bytes do not count; returns whether it is new.
    pub(super) fn note_control(&mut self, n: u32) -> bool {
        let new = n >= self.below && self.got.insert(n);
        while self.got.remove(&self.below) {
            self.below += 1;
        }
        new
    }

    /// Notes that an ACK of this packet leaves; its cumulative PSN speaks of others, too.
    fn confirm(&mut self, n: u32) {
        self.confirmed = self.below;
        self.unsure.retain(|unsure| *unsure >= self.below && *unsure != n);
    }

    /// Notes that the ACK of this packet is late.
    fn doubt(&mut self, n: u32) {
        if n >= self.confirmed {
            self.unsure.insert(n);
        }
    }

    /// Returns whether the device may wait for an ACK.
    pub(super) fn is_in_doubt(&self) -> bool {
        !self.unsure.is_empty()
    }

    fn has(&self, n: u32) -> bool {
        n < self.below || self.got.contains(&n)
    }
}

/// An operation of the device.
#[derive(Debug)]
pub(super) struct Posted {
    pub(super) plan: Posting,
    pub(super) operation: Operated,
    data: Vec<u8>,
    /// Bytes that have come, or that have been asked for.
    pub(super) covered: Vec<bool>,
    /// Number of different packets that the suite has accepted.
    pub(super) accepted: usize,
    replies: usize,
    id: Option<u16>,
    refused: bool,
    short: Option<u32>,
    pub(super) aborted: bool,
    tokens: Option<u32>,
    /// The context with its first packet.
    on: Option<usize>,
    /// The end of the data that has left.
    end: usize,
    pub(super) put_off: bool,
    rest: Option<usize>,
    /// RUDI requests that have been answered.
    lone: BTreeSet<u32>,
    pub(super) waiting: Vec<u32>,
}

/// An answer that is kept.
#[derive(Clone, Debug)]
struct Stored {
    ses: Option<SesBuf>,
    payload: Vec<u8>,
    guaranteed: bool,
    /// The response has been told.
    ready: bool,
    marked: bool,
    /// `pds.rcv_cwnd_pend` and `pds.rc`.
    pressure: (u8, bool),
    /// Its ACK is an ACK_CCX.
    extended: bool,
    post: Option<usize>,
}

/// A packet of the return direction.
#[derive(Debug)]
struct Returned {
    ses: SesBuf,
    payload: Vec<u8>,
    tries: u32,
    due: Duration,
    done: bool,
}

/// A context that the device has opened.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) pdc: Pdc,
    pub(super) state: State,
    pub(super) peer: u8,
    pub(super) job: u8,
    incoming: Incoming,
    stored: BTreeMap<u32, Stored>,
    /// Packets that have come at least once.
    known: BTreeMap<u32, (usize, Duration, Reply)>,
    cleared: u32,
    returned: BTreeMap<u32, Returned>,
    sent: u32,
    covered: u32,
    timer: bool,
    gap_told: bool,
    /// The suite has sent a request or a control packet on it, which a NACK can answer.
    spoke: bool,
    pub(super) closed_at: Option<u32>,
    /// The Start_PSNs that the suite has refused, in a secure domain.
    refused_starts: Vec<Psn>,
    /// The next packet of a message that has begun, its message_id, and its operation.
    unfinished: Option<(u32, u16, Option<usize>)>,
}

impl Served {
    /// Returns whether the suite has accepted no packet.
    fn is_fresh(&self) -> bool {
        self.incoming.below == 0 && self.incoming.got.is_empty()
    }

    /// Returns whether the suite has demanded another Start_PSN, and no packet with it has been accepted.
    pub(super) fn is_pending(&self) -> bool {
        !self.refused_starts.is_empty() && self.is_fresh()
    }

    /// The number of the first packet above all that have come.
    pub(super) fn next(&self) -> u32 {
        self.known.last_key_value().map_or(0, |(n, _)| n + 1).max(self.incoming.below)
    }

    fn cack(&self) -> u32 {
        let held = self.stored.iter().find(|(n, it)| it.guaranteed && **n >= self.cleared || !it.ready);
        held.map_or(self.incoming.below, |(n, _)| self.incoming.below.min(*n))
    }
}

impl Posted {
    /// The rest of a rendezvous send.
    pub(super) fn rest_data(&self, eager: usize) -> Vec<crate::random::shadow::Cell> {
        let rest = self.data.get(eager..).unwrap_or_default();
        rest.iter().map(|byte| crate::random::shadow::Cell::Is(*byte)).collect()
    }
}
