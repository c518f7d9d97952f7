//! Compares the requests of the initiator, and the answers to them, with the memory of the target, which the runner
//! knows.

use super::posted::{Place, Posted};
use super::sent::Passed;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use uet_control::PostKind;
use uet_wire::pds::{Ack, Request};
use uet_wire::registry::{Opcode, ReturnCode};
use uet_wire::ses::Ses;
use uet_wire::{PdcId, Uet};

/// The return codes of a request that is wrong, or is not permitted.
const REFUSALS: [ReturnCode; 8] = [
    ReturnCode::BAD_GENERATION,
    ReturnCode::PERM_VIOLATION,
    ReturnCode::OP_VIOLATION,
    ReturnCode::BAD_INDEX,
    ReturnCode::BAD_PID,
    ReturnCode::BAD_JOB_ID,
    ReturnCode::BAD_MKEY,
    ReturnCode::BAD_ADDR,
];

/// A part of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    operation: usize,
    offset: u32,
}

/// Follows the writes, reads or fetching atomics of the initiator.
#[derive(Debug)]
pub(super) struct OperationMemory<'a> {
    posted: &'a Posted,
    /// The requests by PDCID and PSN.
    requests: BTreeMap<(PdcId, u32), Part>,
    parts: BTreeSet<Part>,
    /// The message id of each operation.
    ids: BTreeMap<usize, u16>,
    /// True once the initiator has sent a request that no operation explains, or one under two PSNs. Then the answers
    /// of the target may be right.
    is_strange: bool,
    refused: Option<(IpAddr, u64, ReturnCode)>,
    /// The operations with a result.
    fetched: BTreeSet<usize>,
    other_value: Option<(IpAddr, u64)>,
    /// The first ACK of a read with OK.
    acknowledged: Option<(IpAddr, u64, Duration)>,
    /// True once the target has sent anything but ACKs without data.
    is_active: bool,
}

impl<'a> OperationMemory<'a> {
    pub(super) fn new(posted: &'a Posted) -> Self {
        let is_known = matches!(posted.kind, PostKind::Write | PostKind::Read | PostKind::FetchAtomic);
        OperationMemory {
            posted,
            requests: BTreeMap::new(),
            parts: BTreeSet::new(),
            ids: BTreeMap::new(),
            // After a restart, an operation is posted again.
            is_strange: !is_known || posted.restarted.is_some(),
            refused: None,
            fetched: BTreeSet::new(),
            other_value: None,
            acknowledged: None,
            is_active: false,
        }
    }

    /// Takes the next packet.
    pub(super) fn packet(&mut self, packet: &Passed<'_>) {
        let (pds, is_request) = (packet.uet.pds, packet.src == self.posted.initiator);
        match (is_request, pds.and_then(|pds| pds.request()), pds.and_then(|pds| pds.ack())) {
            (true, Some(request), _) => self.request(&request, packet.uet),
            // A packet that no key opens may be a request.
            (true, None, None) => self.is_strange |= pds.is_none(),
            (false, _, Some(ack)) => self.answer(&ack, packet),
            (false, _, None) => self.is_active = true,
            (true, None, Some(_)) => {}
        }
    }

    fn request(&mut self, request: &Request, uet: &Uet<'_>) {
        let Some((part, id)) = self.part(uet) else {
            self.is_strange = true;
            return;
        };
        let is_new = self.parts.insert(part);
        let before = self.requests.insert((request.spdcid(), request.psn().0), part);
        let is_again = before == Some(part);
        let is_named = *self.ids.entry(part.operation).or_insert(id) == id;
        let is_shared =
            self.ids.iter().any(|(operation, other)| *other == id && *operation != part.operation);
        let is_explained = is_named && !is_shared && (is_again || is_new && before.is_none());
        self.is_strange |= !is_explained;
    }

    /// Returns the part of an operation that a request is for, and its message id, if all of its fields are right.
    fn part(&self, uet: &Uet<'_>) -> Option<(Part, u16)> {
        let Some(Ses::Std(header)) = uet.ses else { return None };
        let (head, address) = (header.head(), header.address());
        let (offset, key) = (header.buffer_offset()?, header.memory_key()?);
        let is_named =
            |place: &Place| (place.offset, place.key, place.job) == (offset, key, address.job_id());
        let operation = self.posted.places.iter().position(is_named)?;
        let (place, data) = (self.posted.places.get(operation)?, self.posted.data.get(operation)?);
        let (opcode, length) = match self.posted.kind {
            PostKind::Write => (Opcode::UET_WRITE, uet.payload.len()),
            PostKind::FetchAtomic => (Opcode::UET_FETCHING_ATOMIC, uet.payload.len()),
            // The first packet of a read does not tell its length.
            _ if head.som() => (Opcode::UET_READ, data.len().min(self.posted.mtu as usize)),
            _ => (Opcode::UET_READ, header.payload_length()?.into()),
        };
        let from = header.message_offset().unwrap_or_default();
        let end = (from as usize).checked_add(length)?;
        let carries = match self.posted.kind {
            PostKind::Read => uet.payload.is_empty(),
            PostKind::Write => data.get(from as usize..end)? == uet.payload,
            // Operands have a byte order, which changes no old value.
            _ => true,
        };
        let to =
            (address.pid_on_fep(), address.resource_index(), address.ri_generation(), header.initiator());
        let is_right = head.opcode() == opcode
            && (head.rel(), head.ie(), head.dc()) == (true, false, false)
            && to == (place.process, place.index, 0, 0)
            && header.request_length() as usize == data.len()
            && header.payload_length().is_none_or(|stated| usize::from(stated) == length)
            && length <= self.posted.mtu as usize
            && (head.som() || from > 0)
            && head.eom() == (end == data.len())
            && carries;
        is_right.then_some((Part { operation, offset: from }, header.message_id()))
    }

    fn answer(&mut self, ack: &Ack, packet: &Passed<'_>) {
        self.is_active |= matches!(packet.uet.ses, Some(Ses::ResponseData(_) | Ses::ResponseDataSmall(_)));
        let named = ack.ack_psn().and_then(|psn| self.requests.get(&(ack.dpdcid(), psn.0)));
        let (Some(part), Some(ses), false) = (named.copied(), packet.uet.ses, self.is_strange) else {
            return;
        };
        match (self.posted.kind, ses, ses.return_code()) {
            (PostKind::Write | PostKind::Read, Ses::Response(_), Some(code)) if REFUSALS.contains(&code) => {
                self.refused.get_or_insert((packet.src, packet.number, code));
            }
            (PostKind::Read, Ses::Response(_), Some(ReturnCode::OK)) => {
                self.acknowledged.get_or_insert((packet.src, packet.number, packet.time));
            }
            // Another result may be that of a copy which came after the close of the context.
            (PostKind::FetchAtomic, Ses::ResponseData(_), Some(ReturnCode::OK)) => {
                let Some(place) = self.posted.places.get(part.operation) else { return };
                if self.fetched.insert(part.operation) && is_other(&place.before, packet.uet.payload) {
                    self.other_value.get_or_insert((packet.src, packet.number));
                }
            }
            _ => {}
        }
    }

    /// Returns a target that has refused a part of the operations, the packet, and its return code. Each request before
    /// it was right.
    pub(super) fn refused(&self) -> Option<(IpAddr, u64, ReturnCode)> {
        self.refused
    }

    /// Returns a target that has returned another value than its memory held before an atomic, and the packet.
    pub(super) fn other_value(&self) -> Option<(IpAddr, u64)> {
        self.other_value
    }

    /// Returns a target that has sent nothing but ACKs in answer to reads. The first of them says OK.
    pub(super) fn silent(&self) -> Option<(IpAddr, u64, Duration)> {
        self.acknowledged.filter(|_| !self.is_active && !self.is_strange)
    }
}

/// Returns whether two values differ in any order of bytes within their elements.
fn is_other(before: &[u8], returned: &[u8]) -> bool {
    let sorted = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        bytes.sort_unstable();
        bytes
    };
    let mut elements = before.chunks(8).zip(returned.chunks(8));
    before.len() == returned.len() && elements.any(|(one, other)| sorted(one) != sorted(other))
}
