//! Headers with plausible contents, made from the tables alone.
//!
//! Untested fields hold distinct values: the digits 1, 2, 3 ... of their place in the header, as wide as the field. A
//! value read from the wrong place is therefore visible.

use uet_wire::Uet;
use uet_wire::layout::{Kind, Layer, Layout, Place};
use uet_wire::outer::Entropy;
use uet_wire::pds::{Pds, Prologue};
use uet_wire::registry::{AtomicOpcode, NextHdr, Opcode, PdsType, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Atomic, CompareSwap, Rendezvous, Response, ResponseData, ResponseDataSmall, Ses, Std};
use uet_wire::tss::{TssLong, TssShort};

/// Payload of requests.
pub(crate) const PAYLOAD: [u8; 8] = *b"payload.";

/// A proprietary type of extended congestion state.
const VENDOR_STATE: u128 = 14;

/// Returns the headers whose layout belongs to UET.
pub(crate) fn layouts() -> impl Iterator<Item = &'static Layout> {
    let tss = [TssShort::LAYOUT, TssLong::LAYOUT];
    let ext = [Rendezvous::LAYOUT, Atomic::LAYOUT, CompareSwap::LAYOUT];
    let pds = Pds::TABLE.iter().map(|(_, layout)| *layout);
    let ses = Ses::TABLE.iter().map(|(_, layout)| *layout);
    [Entropy::LAYOUT].into_iter().chain(tss).chain(pds).chain(ses).chain(ext)
}

/// Builds a header with the given fields, and plausible others.
pub(crate) fn header(layout: &'static Layout, given: &[(Place, u128)]) -> Vec<u8> {
    let mut bytes = vec![0; layout.bytes];
    for (index, place) in layout.fields().enumerate() {
        let given_here = given.iter().find(|(given, _)| *given == place);
        // The named parts of pds.flags cover it.
        if place.row.name == "pds.flags" && given_here.is_none() {
            continue;
        }
        match given_here {
            Some((_, value)) => {
                place.write(&mut bytes, *value);
            }
            // Keep fields that decide or overlap a given field.
            None if given.iter().any(|(other, _)| overlap(other, &place)) => {}
            None if place.exists(&bytes) => {
                let value = wanted_by(&place, given).unwrap_or_else(|| usual(layout, &place, index));
                place.write(&mut bytes, value);
            }
            None => {}
        }
    }
    bytes
}

fn overlap(one: &Place, other: &Place) -> bool {
    one.lo() < other.hi() && other.lo() < one.hi()
}

/// Returns the value that this field must have for a given field to exist.
fn wanted_by(place: &Place, given: &[(Place, u128)]) -> Option<u128> {
    // Common opcodes of each header, before others with the same layout.
    const PREFERRED: [Opcode; 3] = [Opcode::UET_TAGGED_SEND, Opcode::UET_DEFERRABLE_SEND, Opcode::UET_WRITE];
    let when =
        given.iter().find_map(|(given, _)| given.row.when.filter(|when| when.name == place.row.name))?;
    let preferred = PREFERRED.map(|opcode| u128::from(opcode.code()));
    let preferred = preferred.into_iter().filter(|_| place.row.name == "ses.opcode");
    let any = when.values.iter(place.row.width()).map(u128::from);
    preferred.chain(any).find(|value| when.values.contains(*value))
}

/// Returns a plausible value that no other field of the header has.
fn usual(layout: &'static Layout, place: &Place, index: usize) -> u128 {
    let is_response = [Response::LAYOUT, ResponseData::LAYOUT, ResponseDataSmall::LAYOUT].contains(&layout);
    let digit = (index % 15 + 1) as u128;
    let digits = (u128::MAX / 15 * digit) & (u128::MAX >> (128 - place.row.width()));
    match place.row.name {
        "tss.type" => PdsType::TSS.code().into(),
        "tss.sp" => u128::from(layout == TssLong::LAYOUT),
        "pds.type" => kind_of(layout).code().into(),
        "pds.next_hdr" => next_hdr_of(kind_of(layout)).code().into(),
        "pds.nack_code" => 1,
        // All others are reserved.
        "pds.ccx_type" | "pds.nccx_type" => VENDOR_STATE,
        "pds.clear_psn_offset" => 0xffff,
        "pds.psn_offset" => 3,
        "ses.opcode" if layout == Response::LAYOUT => ResponseOpcode::UET_RESPONSE.code().into(),
        "ses.opcode" if is_response => ResponseOpcode::UET_RESPONSE_W_DATA.code().into(),
        "ses.opcode" => Opcode::UET_WRITE.code().into(),
        "ses.return_code" => ReturnCode::OK.code().into(),
        "ses.rel" | "ses.som" | "ses.eom" => 1,
        "ses.request_length" | "ses.payload_length" => PAYLOAD.len() as u128,
        "ses.modified_length" if layout == ResponseData::LAYOUT => 0x7777_7777,
        "ses.message_offset" if layout == Std::LAYOUT => 0,
        "ses.message_offset" => 0x1111,
        "ses.memory_key" => 0xacce5,
        "ses.eager_length" => 0,
        "ses.atomic_opcode" if layout == CompareSwap::LAYOUT => AtomicOpcode::CSWAP.code().into(),
        "ses.atomic_opcode" => AtomicOpcode::SUM.code().into(),
        "pds.pdc_info" | "pds.cc_flags" | "ses.version" | "ses.semantic_control" | "pds.payload" => 0,
        _ if matches!(place.row.kind, Kind::Bool | Kind::Code(_)) => 0,
        _ => digits,
    }
}

/// Returns the first type with this header.
fn kind_of(layout: &'static Layout) -> PdsType {
    // 15 is reserved: only the prologue is known.
    const UNKNOWN: u8 = 15;
    let own = Pds::TABLE.iter().find(|(_, other)| *other == layout && layout != Prologue::LAYOUT);
    own.and_then(|(kinds, _)| kinds.first().copied()).or(PdsType::new(UNKNOWN)).unwrap_or_default()
}

/// Returns a header that may follow this type.
pub(crate) fn next_hdr_of(kind: PdsType) -> NextHdr {
    match kind {
        PdsType::RUDI_REQ => NextHdr::UET_HDR_REQUEST_SMALL,
        PdsType::RUDI_RESP => NextHdr::UET_HDR_RESPONSE,
        PdsType::UUD_REQ => NextHdr::UET_HDR_REQUEST_STD,
        _ => NextHdr::UET_HDR_NONE,
    }
}

/// Returns a UET packet that contains this header and everything that it announces.
pub(crate) fn packet(layout: &'static Layout, header: &[u8]) -> Vec<u8> {
    let mut bytes = before(layout);
    bytes.extend_from_slice(header);
    complete(bytes)
}

/// Appends the announced headers and the payload.
pub(crate) fn complete(mut bytes: Vec<u8>) -> Vec<u8> {
    while let (_, Some(cut)) = Uet::parse_lax(&bytes) {
        let missing = header(cut.header(), &[]);
        bytes.truncate(cut.header_offset());
        bytes.extend(missing);
    }
    let (packet, _) = Uet::parse_lax(&bytes);
    if packet.tss.is_some() {
        bytes.extend([0xee; 24]);
    } else if packet.payload.is_empty() && carries_payload(&packet) {
        bytes.extend(PAYLOAD);
    }
    bytes
}

fn carries_payload(packet: &Uet<'_>) -> bool {
    match packet.ses {
        None | Some(Ses::Response(_)) => false,
        Some(ses) => ses.opcode() != Some(Opcode::UET_READ),
    }
}

/// Returns the headers that announce one of this layout.
pub(crate) fn before(layout: &'static Layout) -> Vec<u8> {
    let field = |layout: &'static Layout, name: &str, value: u8| {
        let place = layout.field(name).unwrap_or_else(|| unreachable!("{} has no {name}", layout.name));
        (place, u128::from(value))
    };
    match layout.layer {
        Layer::Ses => {
            let response = layout == Response::LAYOUT;
            let kind = if response { PdsType::ACK } else { PdsType::RUD_REQ };
            let pds = pds_layout(kind);
            let next = Ses::TABLE.iter().find(|(_, other)| *other == layout);
            let next = next.and_then(|(codes, _)| codes.first().copied()).unwrap_or_default();
            header(pds, &[field(pds, "pds.type", kind.code()), field(pds, "pds.next_hdr", next.code())])
        }
        Layer::Ext => {
            let opcode = match layout.name {
                "rendezvous" => Opcode::UET_RENDEZVOUS_SEND,
                _ => Opcode::UET_ATOMIC,
            };
            let mut bytes = before(Std::LAYOUT);
            bytes.extend(header(Std::LAYOUT, &[field(Std::LAYOUT, "ses.opcode", opcode.code())]));
            bytes
        }
        _ => Vec::new(),
    }
}

/// Returns the header of this type.
pub(crate) fn pds_layout(kind: PdsType) -> &'static Layout {
    Pds::TABLE.iter().find(|(kinds, _)| kinds.contains(&kind)).map_or(Prologue::LAYOUT, |(_, layout)| *layout)
}
