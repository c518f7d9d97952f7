//! Faults in addressing, placement and segmentation of messages.

use super::fields::{Fields, Kinds};
use super::seen::{psn, push};
use super::tap::{Middle, Tap};
use super::{Fault, fault};
use uet_model::ses::{Access, Process};
use uet_model::{Indication, Mode, Packet, RxRequest, Ticket};
use uet_wire::catalogue::*;
use uet_wire::registry::Opcode;

/// Returns whether a packet is a request with a length.
fn has_length(packet: &Packet) -> bool {
    packet.is_request() && packet.get("ses.request_length").is_some()
}

fn is(request: &impl Fields, opcode: Opcode) -> bool {
    request.is("ses.opcode", opcode.code().into()) && request.get("ses.request_length").is_some()
}

/// Returns the length of the region that a request names.
fn region_length(middle: &Middle<'_, Indication>, request: &RxRequest) -> Option<u64> {
    let key = request.get("ses.memory_key")?;
    middle.seen.regions.iter().find(|region| region.key == key).map(|region| region.length as u64)
}

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "delivers-duplicates",
        "The NIC delivers duplicates again",
        PDS_DUP_001,
        &[
            Tap::Up(|middle, said| {
                if let Indication::Request(_) = &said {
                    push(&mut middle.memo.indications, said.clone());
                }
                middle.pass(said);
            }),
            Tap::In(|wire, packet| {
                let again = wire.seen.times(&packet) > 1;
                let psn = psn(&packet);
                let of = |said: &&Indication| {
                    matches!(said, Indication::Request(request)
                        if request.from == packet.src && matches!(request.ticket, Ticket::Pdc(_, of) if of == psn))
                };
                let before = wire.memo.indications.iter().rev().find(of).cloned();
                if let (true, Some(said)) = (again, before) {
                    wire.tell(said);
                }
                wire.pass(packet);
            }),
        ],
    ),
    fault(
        "takes-ordered-for-unordered",
        "An unordered context drops packets that arrive out of order",
        PDS_RUD_001,
        &[Tap::In(|wire, packet| {
            let spdcid = packet.get("pds.spdcid").unwrap_or_default();
            let first =
                wire.seen.start(packet.src, spdcid).filter(|_| packet.is_request() && !packet.is_rod());
            let Some(first) = first else { return wire.pass(packet) };
            let expected = uet_wire::Psn(wire.memo.get(packet.src, spdcid).unwrap_or(first.0.into()) as u32);
            if psn(&packet) == expected {
                wire.memo.set(packet.src, spdcid, (expected + 1).0.into());
            }
            if !psn(&packet).is_after(expected) {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "places-at-previous-offset",
        "The NIC places the data of a packet at the offset of the previous packet",
        SES_PLACE_001,
        &[Tap::EditRequest(|middle, request| {
            if let (Some(offset), Some(message)) =
                (request.get("ses.message_offset"), request.get("ses.message_id"))
            {
                let before = middle.memo.set(request.from, message, offset).unwrap_or_default();
                request.set("ses.message_offset", before);
            }
        })],
    ),
    fault(
        "places-in-order-of-arrival",
        "The NIC places the data of a packet behind the data received before, whatever message_offset says",
        SES_PLACE_003,
        &[Tap::EditRequest(|middle, request| {
            let Some(message) = request.get("ses.message_id").filter(|_| !is(request, Opcode::UET_READ))
            else {
                return;
            };
            let before = middle.memo.get(request.from, message).unwrap_or_default();
            middle.memo.set(request.from, message, before + request.payload.len() as u64);
            if request.is("ses.eom", 0) {
                request.set("ses.message_offset", before);
            }
        })],
    ),
    fault(
        "forgets-buffer-offset",
        "The NIC applies buffer_offset only to the first packet of a message",
        SES_PLACE_001,
        &[Tap::EditRequest(|_, request| {
            if is(request, Opcode::UET_WRITE) && request.is("ses.som", 0) {
                request.set("ses.buffer_offset", 0);
            }
        })],
    ),
    fault(
        "reads-from-start",
        "Each packet of a read gets data from the start of the read",
        SES_READ_001,
        &[Tap::EditRequest(|_, request| {
            if is(request, Opcode::UET_READ) {
                request.set("ses.message_offset", 0);
            }
        })],
    ),
    fault(
        "looks-at-pid-alone",
        "With relative addressing, the NIC ignores job_id",
        SES_ADDR_001,
        &[Tap::EditRequest(|middle, request| {
            let pid = request.get("ses.pid_on_fep").filter(|_| request.is("ses.rel", 1));
            let mut regions = middle.seen.regions.iter();
            let job = regions.find_map(|region| match region.index.process {
                Process::Relative { job, pid: of } if Some(u64::from(of)) == pid => Some(job),
                _ => None,
            });
            if let Some(job) = job {
                request.set("ses.job_id", job.into());
            }
        })],
    ),
    fault(
        "addresses-relatively-only",
        "The NIC ignores rel = 0: job_id always counts",
        SES_ADDR_001,
        &[Tap::EditRequest(|_, request| request.set("ses.rel", 1))],
    ),
    fault(
        "finds-key-in-any-table",
        "The NIC looks for a memory key in the tables of all indices",
        SES_MEM_001,
        &[Tap::EditRequest(|middle, request| {
            let key = request.get("ses.memory_key");
            let region = middle.seen.regions.iter().find(|region| Some(region.key) == key);
            if let Some(region) = region {
                request.set("ses.resource_index", region.index.index.into());
            }
        })],
    ),
    fault(
        "takes-any-key",
        "A memory key that selects nothing selects the first region of its index",
        SES_MEM_005,
        &[Tap::EditRequest(|middle, request| {
            let Some(key) = request.get("ses.memory_key") else { return };
            let regions = &middle.seen.regions;
            if regions.iter().all(|region| region.key != key) {
                let index = request.get("ses.resource_index");
                let first = regions.iter().find(|region| Some(u64::from(region.index.index)) == index);
                request.set("ses.memory_key", first.map_or(key, |region| region.key));
            }
        })],
    ),
    fault(
        "ignores-permissions",
        "Every region permits reads, writes and atomics",
        SES_MEM_003,
        &[Tap::Expose(|region| region.access = Access::ALL)],
    ),
    fault(
        "writes-what-fits",
        "A write that exceeds its region changes the part inside",
        SES_MEM_004,
        &[Tap::EditRequest(|middle, request| {
            let offset = request.get("ses.buffer_offset").filter(|_| is(request, Opcode::UET_WRITE));
            let length = region_length(middle, request);
            if let (Some(offset), Some(length), Some(1)) = (offset, length, request.get("ses.eom")) {
                let room = length.saturating_sub(offset) as usize;
                if request.is("ses.som", 1) && (1..request.payload.len()).contains(&room) {
                    request.payload.truncate(room);
                    request.set("ses.request_length", room as u64);
                }
            }
        })],
    ),
    fault(
        "wraps-around-region",
        "An offset beyond the end of a region wraps to its start",
        SES_MEM_004,
        &[Tap::EditRequest(|middle, request| {
            if let Some(length @ 1..) = region_length(middle, request) {
                request.change("ses.buffer_offset", |offset| offset % length);
            }
        })],
    ),
    fault(
        "ignores-generation",
        "The NIC ignores the generation of an index",
        SES_GEN_001,
        &[Tap::EditRequest(|middle, request| {
            let index = request.get("ses.resource_index");
            let mut generations = middle.seen.generations.iter();
            let current = generations.find(|(of, _)| Some(u64::from(of.index)) == index);
            request.set("ses.ri_generation", current.map_or(0, |(_, generation)| (*generation).into()));
        })],
    ),
    fault(
        "takes-rudi-anywhere",
        "RUDI reaches regions that are not marked as idempotent-safe",
        SES_MODE_002,
        &[Tap::EditRequest(|_, request| {
            if request.mode == Mode::Rudi {
                request.mode = Mode::Rud;
            }
        })],
    ),
    fault(
        "drops-empty-messages",
        "The NIC drops an empty message without an answer",
        SES_CUT_004,
        &[Tap::Up(|middle, said| {
            let empty =
                |request: &RxRequest| request.is("ses.request_length", 0) && !is(request, Opcode::UET_NO_OP);
            match &said {
                Indication::Request(request) if empty(request) => {}
                _ => middle.pass(said),
            }
        })],
    ),
    fault(
        "counts-offset-in-packets",
        "message_offset counts packets, not bytes",
        SES_CUT_001,
        &[Tap::EditOut(|wire, packet| {
            if has_length(packet) {
                let message = packet.get("ses.message_id").unwrap_or_default();
                match packet.get("ses.message_offset") {
                    None => drop(wire.memo.set(packet.dst, message, packet.payload.len() as u64)),
                    Some(offset) => {
                        let mtu = wire.memo.get(packet.dst, message).unwrap_or_default().max(1);
                        packet.set("ses.message_offset", offset / mtu);
                    }
                }
            }
        })],
    ),
    fault(
        "says-length-of-packet",
        "request_length is the length of the packet's payload, not of the message",
        SES_CUT_003,
        &[Tap::EditOut(|_, packet| {
            if has_length(packet) && !packet.payload.is_empty() {
                let length = packet.payload.len();
                packet.set("ses.request_length", length as u64);
            }
        })],
    ),
    fault(
        "renames-message",
        "The later packets of a message have the next message_id",
        SES_CUT_003,
        &[Tap::EditOut(|_, packet| {
            if has_length(packet) && packet.is("ses.som", 0) {
                packet.change("ses.message_id", |id| id + 1);
            }
        })],
    ),
    fault(
        "starts-every-packet",
        "Every packet of a message has som = 1",
        SES_CUT_002,
        &[Tap::EditOut(|_, packet| {
            if has_length(packet) && packet.is("ses.som", 0) {
                packet.set("ses.som", 1);
                packet.set("ses.header_data", 0);
            }
        })],
    ),
    fault(
        "never-ends-message",
        "The last packet of a message of several has eom = 0",
        SES_CUT_002,
        &[Tap::EditOut(|_, packet| {
            if has_length(packet) && packet.is("ses.som", 0) {
                packet.set("ses.eom", 0);
            }
        })],
    ),
    fault(
        "never-ends-short-reads",
        "A read in one packet has eom = 0",
        SES_CUT_002,
        &[Tap::EditOut(|_, packet| {
            if has_length(packet)
                && packet.is("ses.opcode", Opcode::UET_READ.code().into())
                && packet.is("ses.som", 1)
                && packet.get("ses.message_id").is_some()
            {
                packet.set("ses.eom", 0);
            }
        })],
    ),
    fault(
        "moves-buffer-offset",
        "buffer_offset grows from packet to packet, like message_offset",
        SES_CUT_006,
        &[Tap::EditOut(|_, packet| {
            if has_length(packet) {
                let moved = packet.get("ses.message_offset").unwrap_or_default();
                packet.change("ses.buffer_offset", |offset| offset.wrapping_add(moved));
            }
        })],
    ),
    fault(
        "fills-last-length",
        "payload_length of the last packet is that of a full packet",
        WIRE_SES_006,
        &[Tap::EditOut(|wire, packet| {
            if has_length(packet) {
                let message = packet.get("ses.message_id").unwrap_or_default();
                match packet.get("ses.payload_length") {
                    None => drop(wire.memo.set(packet.dst, message, packet.payload.len() as u64)),
                    Some(length) => {
                        let full = wire.memo.get(packet.dst, message).unwrap_or_default();
                        packet.set("ses.payload_length", full.max(length));
                    }
                }
            }
        })],
    ),
    fault(
        "forgets-header-data",
        "A send carries no header data: hd is 0",
        SES_CUT_005,
        &[Tap::EditOut(|_, packet| {
            if has_length(packet) && packet.is("ses.hd", 1) {
                packet.set("ses.header_data", 0);
                packet.set("ses.hd", 0);
            }
        })],
    ),
    fault(
        "says-a-byte-for-none",
        "request_length of an empty message is 1",
        SES_CUT_004,
        &[Tap::EditOut(|_, packet| {
            if packet.is_request() && packet.is("ses.request_length", 0) {
                packet.set("ses.request_length", 1);
            }
        })],
    ),
    fault(
        "drops-by-low-byte-of-length",
        "A packet whose IP length has a low byte below 36 is dropped, as if it were too short",
        PDS_ACK_004,
        &[Tap::In(|wire, packet| {
            // IPv4, UDP and the CRC.
            let length = 20 + 8 + packet.head.len() + packet.payload.len() + 4;
            if length & 0xff >= 36 {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "compares-whole-optimized-keys",
        "Of an optimized memory key 48 bits are compared, not 12",
        SES_MEM_002,
        &[Tap::EditIn(|wire, packet| {
            let key = packet.get("ses.memory_key").filter(|key| key >> 62 & 1 == 1).unwrap_or_default();
            let known = wire.seen.regions.iter().any(|region| (region.key ^ key) << 16 == 0);
            if key != 0 && !known {
                packet.set("ses.memory_key", key ^ 0xfff);
            }
        })],
    ),
];
