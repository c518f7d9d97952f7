//! SES headers of each operation of an initiator, and of the short header forms (section 3.4.2).

use super::steps::{fields_of_packet, fields_of_packets, post_sum, posted_bytes};
use crate::prelude::*;
use crate::rules::steps::post_datagram;
use uet_control::{AddPeer, Fill, Hex, Remote};
use uet_wire::pds::Pds;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};
use uet_wire::ses::{ExtBuf, SesBuf};

/// An operation whose message is always one packet.
const UNSPLIT: Axis<PostKind> = axis("operation").needing(&[
    ("atomic", PostKind::Atomic, &[ATOMIC]),
    ("fetch", PostKind::FetchAtomic, &[FETCH_ATOMIC]),
    ("datagram", PostKind::Datagram, &[UUD, DATAGRAM]),
]);

pub(super) const RULES: &[Rule] = &[
    rule("ses-encoding/read", "A read sends one request per MTU, with one message_id and no payload")
        .checks(&[SES_READ_002, SES_READ_001])
        .needs(&[READ])
        .over(&[&MODE, &START])
        .run(|t| {
            let (peer, mtu) = (t.peer(0)?, t.mtu());
            let length = 2 * mtu + 30;
            let parts = fields_of_packets(t, post(PostKind::Read, peer, length), 3)?;
            let id = parts[0].0.message_id;
            for (k, (said, payload)) in parts.iter().enumerate() {
                t.check(SES_READ_002, "opcode", Opcode::UET_READ, said.opcode());
                t.check(SES_READ_002, "payload", 0, payload.len());
                t.check(SES_READ_002, "message_id", id, said.message_id);
                t.check(SES_READ_001, "request_length", length as u32, said.request_length);
                if k > 0 {
                    let expected = (Some(mtu.min(length - k * mtu) as u16), Some((k * mtu) as u32));
                    t.check(
                        SES_READ_001,
                        "payload_length and message_offset",
                        expected,
                        (said.payload_length, said.message_offset),
                    );
                }
            }
            Ok(())
        }),
    rule("ses-encoding/send", "A plain send has opcode UET_SEND and carries its bytes")
        .checks(&[SES_ADDR_002, SES_CUT_001])
        .needs(&[SEND])
        .over(&[&MODE, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let (said, payload) = fields_of_packet(t, post(PostKind::Send, peer, 300))?;
            t.check(SES_ADDR_002, "opcode", Opcode::UET_SEND, said.opcode());
            t.check(SES_ADDR_002, "resource_index", 10, said.address.resource_index());
            t.same_bytes(SES_CUT_001, "the payload", &posted_bytes(300), &payload);
            Ok(())
        }),
    rule("ses-encoding/tagged", "Each packet of a tagged send carries match bits and initiator")
        .checks(&[SES_MATCH_001, SES_MATCH_002])
        .needs(&[TSEND])
        .over(&[&MODE, &START])
        .run(|t| {
            let peer = peer_of_initiator(t, 0xdead_0007)?;
            let mtu = t.mtu();
            let tag = Some(Hex64(0x8000_0000_0000_0077));
            for (said, _) in fields_of_packets(t, Post { tag, ..post(PostKind::Tsend, peer, 2 * mtu) }, 2)? {
                t.check(SES_MATCH_001, "opcode", Opcode::UET_TAGGED_SEND, said.opcode());
                t.check(SES_MATCH_001, "match_bits", Some(0x8000_0000_0000_0077), said.match_bits);
                t.check(SES_MATCH_002, "initiator", Some(0xdead_0007), said.initiator);
            }
            Ok(())
        }),
    rule("ses-encoding/datagram", "A datagram is one packet with a standard header and message_id 0")
        .checks(&[WIRE_SES_004, WIRE_SES_005, WIRE_NEXT_003])
        .needs(&[UUD, DATAGRAM])
        .run(|t| {
            let peer = t.peer(0)?;
            t.post(Post { mode: Mode::Uud, ..post(PostKind::Datagram, peer, 300) })?;
            let (seen, ()) = t.need("a datagram", t.later(), |seen| {
                matches!(seen.uet().pds, Some(Pds::Uud(_))).then_some(())
            })?;
            let ses = seen.uet().ses.map(|ses| ses.copied());
            let Some(SesBuf::Std(std)) = ses else {
                t.holds(WIRE_NEXT_003, "a datagram has a standard header", false, seen.uet());
                return Err(Stop::Failed);
            };
            let opcode = t.datagram_opcode();
            t.check(WIRE_NEXT_003, "opcode", opcode, std.head().opcode());
            if opcode == Opcode::UET_DATAGRAM_SEND {
                t.check(WIRE_SES_004, "message_id", 0, std.message_id());
            }
            t.check(WIRE_SES_005, "som and eom", (true, true), (std.head().som(), std.head().eom()));
            t.same_bytes(WIRE_SES_005, "the payload", &posted_bytes(300), seen.payload());
            Ok(())
        }),
    rule("ses-encoding/atomic", "An atomic is one packet with its operation, datatype and operands")
        .checks(&[SES_AMO_001, WIRE_AMO_003])
        .needs(&[ATOMIC])
        .over(&[&MODE, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let (fill, operands) = (t.elements(4, &[1, 2, 0xffff_fff0]), t.operands(4, &[1, 2, 0xffff_fff0]));
            let sum = Post {
                atomic_opcode: Some("DIFF".into()),
                atomic_datatype: Some("INT32".into()),
                fill: Some(Fill::Hex(Hex(fill))),
                ..post(PostKind::Atomic, peer, 12)
            };
            let (said, payload) = fields_of_packet(t, sum)?;
            t.check(SES_AMO_001, "opcode", Opcode::UET_ATOMIC, said.opcode());
            let stated = match said.ext {
                Some(ExtBuf::Atomic(ext)) => Some((ext.atomic_opcode(), ext.atomic_datatype())),
                _ => None,
            };
            let expected = Some((AtomicOpcode::DIFF, AtomicDatatype::INT32));
            t.check(SES_AMO_001, "operation and datatype", expected, stated);
            t.check(
                SES_AMO_001,
                "request_length and operands",
                (12, operands),
                (said.request_length, payload),
            );
            t.check(WIRE_AMO_003, "som and eom", (true, true), (said.head.som(), said.head.eom()));
            Ok(())
        }),
    rule("ses-encoding/compare-swap", "Operands of compare and swap are big-endian, right-aligned values")
        .checks(&[SES_AMO_009])
        .needs(&[ATOMIC])
        .over(&[&MODE, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let swap = Post {
                atomic_opcode: Some("CSWAP".into()),
                atomic_datatype: Some("UINT32".into()),
                compare: Some(Hex(vec![0x11, 0x22, 0x33, 0x44])),
                swap: Some(Hex(vec![0xaa, 0xbb, 0xcc, 0xdd])),
                ..post(PostKind::Atomic, peer, 4)
            };
            let (said, _) = fields_of_packet(t, swap)?;
            let Some(ExtBuf::CompareSwap(ext)) = said.ext else {
                let seen = format!("{} without it", said.opcode());
                t.holds(
                    SES_AMO_009,
                    "a compare and swap has an extension header with two operands",
                    false,
                    seen,
                );
                return Err(Stop::Failed);
            };
            let (compare, swap) = (ext.bytes()[4..20].to_vec(), ext.bytes()[20..36].to_vec());
            let aligned = |last: [u8; 4]| [&[0; 12][..], &last].concat();
            t.check(SES_AMO_009, "compare_value", aligned([0x11, 0x22, 0x33, 0x44]), compare);
            t.check(SES_AMO_009, "swap_value", aligned([0xaa, 0xbb, 0xcc, 0xdd]), swap);
            Ok(())
        }),
    rule("ses-encoding/delivery-complete", "A delivery-complete message sets dc in its last packet")
        .checks(&[SES_RESP_005])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (peer, mtu) = (t.peer(0)?, t.mtu());
            let parts = fields_of_packets(
                t,
                Post { delivery_complete: true, ..post(PostKind::Write, peer, 2 * mtu) },
                2,
            )?;
            t.check(SES_RESP_005, "dc of the last packet", true, parts[1].0.head.dc());
            Ok(())
        }),
    rule("ses-encoding/medium", "A medium header carries a whole message with the standard fields")
        .checks(&[WIRE_SES_003, SES_MEM_001])
        .needs(&[WRITE])
        .over(&[&MODE, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let remote = Remote { key: Hex64(0x5eed), offset: Hex64(0x9000), index: 10, ..Remote::default() };
            let write = Post { remote, form: Some(Form::Medium), ..post(PostKind::Write, peer, 300) };
            let (said, payload) = fields_of_packet(t, write)?;
            t.check(SES_MEM_001, "the form", Form::Medium, said.form);
            t.check(WIRE_SES_003, "som and eom", (true, true), (said.head.som(), said.head.eom()));
            let stated = (said.head.hd(), said.buffer_offset, said.memory_key, said.request_length);
            let expected = (false, Some(0x9000), Some(0x5eed), 300);
            t.check(SES_MEM_001, "hd, buffer_offset, memory_key, request_length", expected, stated);
            t.same_bytes(SES_MEM_001, "the payload", &posted_bytes(300), &payload);
            Ok(())
        }),
    rule("ses-encoding/medium-hd", "A medium header with hd carries header data in place of the offset")
        .checks(&[SES_CUT_005])
        .needs(&[TSEND])
        .over(&[&MODE, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let (header_data, tag) = (Some(Hex64(0xbee)), Some(Hex64(0x77)));
            let send =
                Post { header_data, tag, form: Some(Form::Medium), ..post(PostKind::Tsend, peer, 300) };
            let (said, _) = fields_of_packet(t, send)?;
            let stated = (said.head.hd(), said.header_data, said.buffer_offset, said.match_bits);
            t.check(
                SES_CUT_005,
                "hd, header_data, no offset, match_bits",
                (true, Some(0xbee), None, Some(0x77)),
                stated,
            );
            Ok(())
        }),
    rule("ses-encoding/small", "A small header carries a whole message with length and offset")
        .checks(&[WIRE_SES_003, SES_PLACE_001])
        .needs(&[SEND])
        .over(&[&MODE, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let (said, payload) =
                fields_of_packet(t, Post { form: Some(Form::Small), ..post(PostKind::Send, peer, 300) })?;
            t.check(WIRE_SES_003, "the form", Form::Small, said.form);
            t.check(WIRE_SES_003, "som and eom", (true, true), (said.head.som(), said.head.eom()));
            t.check(
                SES_PLACE_001,
                "request_length and payload",
                (300, 300),
                (said.request_length, payload.len()),
            );
            t.check(SES_PLACE_001, "buffer_offset", Some(0), said.buffer_offset);
            Ok(())
        }),
    rule("ses-encoding/too-long", "The device never splits an atomic or a datagram into packets")
        .checks(&[WIRE_AMO_003, WIRE_SES_005])
        .over(&[&UNSPLIT, &MODE])
        .run(|t| {
            let (peer, kind, length) = (t.peer(0)?, t.value(&UNSPLIT), t.mtu() + 8);
            let (operation, requirement) = match kind {
                PostKind::Datagram => (post_datagram(peer, length), WIRE_SES_005),
                _ => (post_sum(peer, kind, length), WIRE_AMO_003),
            };
            // The device refuses the operation when it is posted, or fails it later.
            if let Err(gone @ Stop::Gone(_)) = t.post(operation) {
                return Err(gone);
            }
            t.expect_none(requirement, "no packet of a longer message", t.later(), |seen| {
                let fields = crate::serve::said(&seen.uet())?;
                (!fields.head.som() || !fields.head.eom()).then_some(())
            })?;
            t.expect_action(peer)
        }),
];

/// Adds the suite as a peer for which the device has this initiator ID.
fn peer_of_initiator(t: &mut Test<'_>, initiator: u32) -> Result<u64, Stop> {
    let address = t.address(0)?;
    Ok(t.call(AddPeer { address, port: None, job: 101, process: 1, initiator })?.peer)
}
