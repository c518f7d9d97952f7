//! Faults in headers and their fields.

use super::fields::{Fields, Kinds};
use super::tap::Tap;
use super::{Fault, fault};
use uet_model::Packet;
use uet_wire::catalogue::*;
use uet_wire::layout::{Kind, Place};
use uet_wire::registry::{NextHdr, PdsType};

/// Returns the reserved fields of a packet's headers and the start of each header.
fn reserved(packet: &Packet) -> Vec<(Place, usize)> {
    let tables = packet.tables().into_iter();
    let rows = tables.filter_map(|(layout, start)| Some((layout.present(packet.head.get(start..)?), start)));
    let rows = rows.flat_map(|(rows, start)| rows.map(move |(place, _)| (place, start)));
    rows.filter(|(place, _)| place.row.kind == Kind::Reserved).collect()
}

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "reverses-sack-bits",
        "The highest bit of the bitmap in an ACK stands for its first PSN, not the lowest",
        PDS_SACK_001,
        &[Tap::EditOut(|_, packet| packet.change("pds.sack_bitmap", u64::reverse_bits))],
    ),
    fault(
        "cuts-job-id",
        "The NIC reads only the lower 16 bits of ses.job_id",
        SES_ADDR_001,
        &[Tap::EditIn(|_, packet| packet.change("ses.job_id", |job| job & 0xffff))],
    ),
    fault(
        "cuts-message-offset",
        "The NIC reads only the lower 16 bits of ses.message_offset",
        SES_PLACE_001,
        &[Tap::EditIn(|_, packet| packet.change("ses.message_offset", |offset| offset & 0xffff))],
    ),
    fault(
        "negates-ack-offset",
        "The NIC reads ack_psn_offset with the opposite sign: cumulative PSN minus named PSN",
        PDS_ACK_016,
        &[Tap::EditOut(|_, packet| {
            if packet.is_ack() {
                packet.change("pds.ack_psn_offset", u64::wrapping_neg);
            }
        })],
    ),
    fault(
        "fills-reserved-bits",
        "The NIC sends reserved bits as ones",
        WIRE_RSVD_001,
        &[Tap::EditOut(|_, packet| {
            for (place, start) in reserved(packet) {
                let width = place.row.width();
                place.write(&mut packet.head[start..], u128::MAX >> (128 - width));
            }
        })],
    ),
    fault(
        "minds-reserved-bits",
        "The NIC drops a packet with a reserved bit set",
        ROB_RSVD_001,
        &[Tap::In(|wire, packet| {
            let set = |(place, start): &(Place, usize)| {
                place.read(&packet.head[*start..]).is_some_and(|bits| bits != 0)
            };
            if !reserved(&packet).iter().any(set) {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "cuts-buffer-offset",
        "The NIC reads only the lower 32 bits of ses.buffer_offset",
        SES_MEM_004,
        &[Tap::EditIn(|_, packet| packet.change("ses.buffer_offset", |offset| offset & 0xffff_ffff))],
    ),
    fault(
        "cuts-resource-index",
        "The NIC reads only the lower 8 bits of ses.resource_index",
        SES_ADDR_003,
        &[Tap::EditIn(|_, packet| packet.change("ses.resource_index", |index| index & 0xff))],
    ),
    fault(
        "cuts-request-length",
        "The NIC reads 14 bits of ses.request_length in a standard request, as in the short ones",
        SES_PLACE_003,
        &[Tap::EditIn(|_, packet| packet.change("ses.request_length", |length| length & 0x3fff))],
    ),
    fault(
        "shifts-medium-header",
        "The NIC reads the fields behind the length of a medium request one byte too late",
        SES_PLACE_001,
        &[Tap::EditIn(|_, packet| {
            if packet.is("pds.next_hdr", NextHdr::UET_HDR_REQUEST_MEDIUM.code().into()) {
                let start = packet.tables().get(1).map_or(packet.head.len(), |(_, start)| *start);
                if let Some(rest) = packet.head.get_mut(start + 4..start + 32) {
                    rest.rotate_left(1);
                }
            }
        })],
    ),
    fault(
        "takes-unknown-types",
        "The NIC takes a packet of an unknown type for a RUD request",
        PDS_OPEN_009,
        &[Tap::In(|wire, packet| {
            let mut bytes = packet.to_wire().to_vec();
            let unknown = packet.get("pds.type").is_some_and(|kind| kind > PdsType::ROD_CC_REQ.code().into());
            if let (true, [first, ..]) = (unknown, &mut bytes[..]) {
                *first = PdsType::RUD_REQ.code() << 3 | *first & 7;
            }
            let read = Packet::from_wire(packet.src, packet.dst, bytes.into());
            match read {
                Ok(read) if unknown => {
                    wire.pass(Packet { head: read.head, payload: read.payload, ..packet });
                }
                _ => wire.pass(packet),
            }
        })],
    ),
    fault(
        "forgets-nack-psn",
        "A NACK has nack_psn 0",
        PDS_ROD_002,
        &[Tap::EditOut(|_, packet| packet.set("pds.nack_psn", 0))],
    ),
    fault(
        "cuts-offset-of-data",
        "The NIC writes only the lower 16 bits of ses.message_offset into read data",
        SES_CUT_001,
        &[Tap::EditOut(|_, packet| {
            if packet.get("ses.read_request_message_id").is_some() {
                let offset = packet.get("ses.message_offset").unwrap_or_default();
                packet.set("ses.message_offset", offset & 0xffff);
            }
        })],
    ),
    fault(
        "cuts-length-of-data",
        "The NIC writes only the lower 13 bits of ses.payload_length into read data",
        WIRE_SES_006,
        &[Tap::EditOut(|_, packet| {
            let data = packet.get("ses.read_request_message_id").or(packet.get("ses.original_request_psn"));
            if data.is_some() {
                let length = packet.get("ses.payload_length").unwrap_or_default();
                packet.set("ses.payload_length", length & 0x1fff);
            }
        })],
    ),
];
