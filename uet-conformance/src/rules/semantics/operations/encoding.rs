//! The SES headers of the device: everything it was told, and every rule of their form (section 3.4.2).

use super::several_packets::KIND;
use crate::prelude::*;
use crate::serve::SesFields;
use uet_control::{AddPeer, Fill, Hex, Remote};
use uet_wire::pds::Pds;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};
use uet_wire::ses::{ExtBuf, SesBuf};

const REQUEST_RULES: &[&Requirement] = &[
    WIRE_RSVD_001,
    WIRE_SES_001,
    WIRE_SES_002,
    WIRE_SES_003,
    WIRE_SES_006,
    WIRE_SES_007,
    WIRE_SES_008,
    WIRE_SES_009,
    WIRE_SES_013,
    WIRE_NEXT_001,
    WIRE_NEXT_002,
];

const ATOMIC_RULES: &[&Requirement] =
    &[WIRE_RSVD_001, WIRE_RSVD_004, WIRE_SES_001, WIRE_SES_007, WIRE_AMO_001, WIRE_AMO_002, WIRE_AMO_003];

const OFFER_RULES: &[&Requirement] = &[WIRE_RSVD_001, WIRE_SES_001, WIRE_SES_002, WIRE_SES_014];

const RESPONSE_RULES: &[&Requirement] = &[
    WIRE_RSVD_001,
    WIRE_SES_001,
    WIRE_SES_006,
    WIRE_SES_010,
    WIRE_SES_011,
    WIRE_SES_012,
    WIRE_NEXT_001,
    WIRE_NEXT_002,
];

/// An operation on the memory of a peer.
const OPERATION: Axis<PostKind> = axis("operation").needing(&[
    ("write", PostKind::Write, &[WRITE]),
    ("read", PostKind::Read, &[READ]),
    ("atomic", PostKind::Atomic, &[ATOMIC]),
    ("fetch", PostKind::FetchAtomic, &[FETCH_ATOMIC]),
]);

/// The number of packets of a message.
const PACKETS: Axis<u32> = axis("packets").values(&[("one", 1), ("two", 2), ("three", 3)]);

/// An offset in the memory of a peer. None passes 2^64 within a message.
const OFFSET: Axis<u64> = axis("offset").values(&[
    ("small", 0x9000),
    ("across-2-32", (1 << 32) - 8),
    ("highest-bit", (1 << 63) + 8),
    ("near-2-64", u64::MAX - (1 << 20) + 1),
]);

pub(super) const RULES: &[Rule] = &[
    rule("ses-encoding/requests", "Every request of an initiator follows the encoding rules")
        .checks(REQUEST_RULES)
        .needs(&[READ, SEND, TSEND])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (peer, mtu) = (t.peer(0)?, t.mtu());
            let tagged = Post { tag: Some(Hex64(0x70)), ..post(PostKind::Tsend, peer, 5) };
            let operations = [
                (post(PostKind::Write, peer, 2 * mtu + 1), 3),
                (post(PostKind::Read, peer, mtu + 1), 2),
                (post(PostKind::Send, peer, mtu + 5), 2),
                (tagged, 1),
            ];
            sound(t, REQUEST_RULES, &operations)
        }),
    rule("ses-encoding/atomics", "Every atomic of an initiator follows the encoding rules")
        .checks(ATOMIC_RULES)
        .needs(&[ATOMIC, FETCH_ATOMIC])
        .over(&[&MODE, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let operations = [(sum(peer, PostKind::Atomic, 16), 1), (sum(peer, PostKind::FetchAtomic, 8), 1)];
            sound(t, ATOMIC_RULES, &operations)
        }),
    rule("ses-encoding/rendezvous-deferrable", "Rendezvous and deferrable sends follow the encoding rules")
        .checks(OFFER_RULES)
        .needs(&[RENDEZVOUS_SEND, DEFERRABLE_SEND])
        .over(&[&MODE, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let rendezvous = Post { eager: Some(16), ..post(PostKind::RendezvousSend, peer, 100) };
            sound(t, OFFER_RULES, &[(post(PostKind::DeferrableSend, peer, 100), 1), (rendezvous, 1)])
        }),
    rule("ses-encoding/responses", "Every response of a target follows the encoding rules")
        .checks(RESPONSE_RULES)
        .needs(&[READ, ATOMIC])
        .over(&[&MODE, &CARRIER, &START])
        .run(responses_are_sound),
    rule("ses-encoding/address", "A request carries the address, key and offset of its operation")
        .checks(&[SES_ADDR_001, SES_ADDR_002, SES_MEM_001, SES_PLACE_001])
        .needs(&[WRITE])
        .over(&[&MODE, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let remote = Remote {
                key: Hex64(0x0000_1234_5678_9abc),
                offset: Hex64(0x1_0000_0020),
                process: Some(0x345),
                index: 0xabc,
                generation: 7,
                absolute: false,
            };
            let (said, _) =
                only(t, Post { remote, form: Some(Form::Std), ..post(PostKind::Write, peer, 100) })?;
            t.check(SES_ADDR_001, "opcode", Opcode::UET_WRITE, said.opcode());
            t.check(SES_ADDR_001, "rel", true, said.head.rel());
            let process = (said.address.job_id(), said.address.pid_on_fep());
            t.check(SES_ADDR_001, "job_id and pid_on_fep", (101, 0x345), process);
            let index = (said.address.resource_index(), said.address.ri_generation());
            t.check(SES_ADDR_002, "resource_index and ri_generation", (0xabc, 7), index);
            t.check(SES_MEM_001, "memory_key", Some(0x0000_1234_5678_9abc), said.memory_key);
            t.check(SES_PLACE_001, "buffer_offset", Some(0x1_0000_0020), said.buffer_offset);
            Ok(())
        }),
    rule("ses-encoding/absolute", "A request with absolute addressing has rel 0")
        .checks(&[SES_ADDR_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let remote = Remote { process: Some(3), index: 4, absolute: true, ..Remote::default() };
            let (said, _) = only(t, Post { remote, ..post(PostKind::Write, peer, 100) })?;
            t.check(SES_ADDR_001, "rel", false, said.head.rel());
            t.check(SES_ADDR_001, "pid_on_fep", 3, said.address.pid_on_fep());
            Ok(())
        }),
    rule("ses-encoding/segmentation", "Packet k of a message carries its bytes from k times the MTU on")
        .checks(&[SES_CUT_001, WIRE_SES_006])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (peer, mtu) = (t.peer(0)?, t.mtu());
            let length = 3 * mtu + 100;
            let whole = bytes(length);
            let parts = all(t, post(PostKind::Write, peer, length), 4)?;
            for (k, (said, payload)) in parts.iter().enumerate() {
                t.check(SES_CUT_001, "the packet starts at", k * mtu, said.start());
                let expected = &whole[k * mtu..((k + 1) * mtu).min(length)];
                t.same_bytes(SES_CUT_001, "the payload", expected, payload);
                let stated = said.payload_length.map_or(payload.len(), usize::from);
                t.check(WIRE_SES_006, "payload_length", payload.len(), stated);
            }
            Ok(())
        }),
    rule("ses-encoding/som-and-eom", "The first packet has som, the last one eom, and no other has either")
        .checks(&[SES_CUT_002])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (peer, mtu) = (t.peer(0)?, t.mtu());
            let parts = all(t, post(PostKind::Write, peer, 3 * mtu - 1), 3)?;
            let flags: Vec<_> = parts.iter().map(|(said, _)| (said.head.som(), said.head.eom())).collect();
            t.check(SES_CUT_002, "som and eom", vec![(true, false), (false, false), (false, true)], flags);
            Ok(())
        }),
    rule("ses-encoding/som-eom-hd", "A message sets som first, eom last, and hd only with header data")
        .checks(&[SES_CUT_002, SES_CUT_005])
        .over(&[&KIND, &PACKETS, &MODE])
        .run(|t| {
            let (peer, mtu, kind, packets) = (t.peer(0)?, t.mtu(), t.value(&KIND), t.value(&PACKETS));
            let length = (packets as usize - 1) * mtu + 100;
            t.requests_all(kind, length)?;
            let parts = all(t, Post { form: Some(Form::Std), ..post(kind, peer, length) }, packets)?;
            for (n, (said, _)) in (1..).zip(&parts) {
                let expected = (n == 1, n == packets);
                let what = format!("som and eom of packet {n} of {packets}");
                t.check(SES_CUT_002, &what, expected, (said.head.som(), said.head.eom()));
                t.check(SES_CUT_005, &format!("hd of packet {n} of {packets}"), false, said.head.hd());
            }
            Ok(())
        }),
    rule("ses-encoding/common-fields", "All packets of a message repeat its id, length, offset and key")
        .checks(&[SES_CUT_003, SES_CUT_006])
        .over(&[&MODE, &OPERATION, &OFFSET])
        .run(|t| {
            let (peer, mtu, kind, offset) = (t.peer(0)?, t.mtu(), t.value(&OPERATION), t.value(&OFFSET));
            let remote = Remote { key: Hex64(0x5eed), offset: Hex64(offset), index: 10, ..Remote::default() };
            let (length, count, opcode) = match kind {
                PostKind::Read => (3 * mtu, 3, Opcode::UET_READ),
                PostKind::Atomic => (8, 1, Opcode::UET_ATOMIC),
                PostKind::FetchAtomic => (8, 1, Opcode::UET_FETCHING_ATOMIC),
                _ => (3 * mtu, 3, Opcode::UET_WRITE),
            };
            let operation = match kind {
                PostKind::Atomic | PostKind::FetchAtomic => sum(peer, kind, length),
                _ => post(kind, peer, length),
            };
            let parts = all(t, Post { remote, form: Some(Form::Std), ..operation }, count)?;
            let id = parts[0].0.message_id;
            for (said, _) in &parts {
                t.check(SES_CUT_003, "message_id", id, said.message_id);
                t.check(SES_CUT_003, "request_length", length as u32, said.request_length);
                t.check(SES_CUT_006, "buffer_offset", Some(offset), said.buffer_offset);
                t.check(SES_CUT_003, "memory_key", Some(0x5eed), said.memory_key);
                t.check(SES_CUT_003, "opcode", opcode, said.opcode());
            }
            Ok(())
        }),
    rule("ses-encoding/full-packets", "A message of twice the MTU is two packets without an empty third")
        .checks(&[SES_CUT_001, SES_CUT_002])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (peer, mtu) = (t.peer(0)?, t.mtu());
            let mut target = packets(t, post(PostKind::Write, peer, 2 * mtu), 2)?;
            t.check(SES_CUT_001, "bytes of the first", mtu, target.packet(0)?.payload().len());
            t.check(SES_CUT_001, "bytes of the second", mtu, target.packet(1)?.payload().len());
            t.check(SES_CUT_002, "eom of the second", true, target.said(1)?.head.eom());
            target.ack(t, 1)?;
            target.expect_none(t, SES_CUT_002, "no third packet", t.soon(), |n| n == 2)?;
            t.expect_action(peer)
        }),
    rule("ses-encoding/zero-length", "A zero-length message is one packet with som and eom and no payload")
        .checks(&[SES_CUT_004])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let (said, payload) = only(t, post(PostKind::Write, peer, 0))?;
            t.check(SES_CUT_004, "som and eom", (true, true), (said.head.som(), said.head.eom()));
            t.check(SES_CUT_004, "request_length and payload", (0, 0), (said.request_length, payload.len()));
            Ok(())
        }),
    rule("ses-encoding/header-data", "Header data is in the first packet; others state length and offset")
        .checks(&[SES_CUT_005, SES_CUT_006])
        .needs(&[WRITE])
        .over(&[&MODE, &START])
        .run(|t| {
            // Of another job, what comes later has a context of its own.
            let (peer, other, mtu) = (t.peer(0)?, t.peer_of_job(102)?, t.mtu());
            let told = Some(Hex64(0xfeed_0000_0000_0bee));
            let parts = all(t, Post { header_data: told, ..post(PostKind::Write, peer, 2 * mtu + 7) }, 3)?;
            let first = &parts[0].0;
            t.check(SES_CUT_005, "hd", true, first.head.hd());
            t.check(SES_CUT_005, "header_data", Some(0xfeed_0000_0000_0bee), first.header_data);
            for (k, (said, payload)) in parts.iter().enumerate().skip(1) {
                let told = (said.payload_length, said.message_offset);
                let expected = (Some(payload.len() as u16), Some((k * mtu) as u32));
                t.check(SES_CUT_005, "payload_length and message_offset", expected, told);
            }
            // Not every header has room for both.
            let remote = Remote { offset: Hex64(0x9000), ..post(PostKind::Write, peer, 64).remote };
            let written = Post { header_data: told, remote, ..post(PostKind::Write, other, 64) };
            let (said, _) = only(t, written)?;
            t.check(SES_CUT_005, "header_data", Some(0xfeed_0000_0000_0bee), said.header_data);
            t.check(SES_CUT_006, "buffer_offset beside header_data", Some(0x9000), said.buffer_offset);
            Ok(())
        }),
    rule("ses-encoding/message-ids", "Two messages in flight have different message_ids")
        .checks(&[SES_CUT_003])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let mut seen = two_messages(t)?;
            seen.sort();
            seen.dedup();
            t.check(SES_CUT_003, "different ids:", 2, seen.len());
            Ok(())
        }),
    rule("ses-encoding/message-order", "All packets of a message have lower PSNs than those of the next")
        .checks(&[SES_ORDER_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let seen = two_messages(t)?;
            t.check(SES_ORDER_001, "the first two packets are of one message:", seen[0], seen[1]);
            t.check(SES_ORDER_001, "and the next two of the other:", seen[2], seen[3]);
            Ok(())
        }),
    rule("ses-encoding/read", "A read sends one request per MTU, with one message_id and no payload")
        .checks(&[SES_READ_002, SES_READ_001])
        .needs(&[READ])
        .over(&[&MODE, &START])
        .run(|t| {
            let (peer, mtu) = (t.peer(0)?, t.mtu());
            let length = 2 * mtu + 30;
            let parts = all(t, post(PostKind::Read, peer, length), 3)?;
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
                        "what it asks for",
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
            let (said, payload) = only(t, post(PostKind::Send, peer, 300))?;
            t.check(SES_ADDR_002, "opcode", Opcode::UET_SEND, said.opcode());
            t.check(SES_ADDR_002, "resource_index", 10, said.address.resource_index());
            t.same_bytes(SES_CUT_001, "the payload", &bytes(300), &payload);
            Ok(())
        }),
    rule("ses-encoding/tagged", "Each packet of a tagged send carries match bits and initiator")
        .checks(&[SES_MATCH_001, SES_MATCH_002])
        .needs(&[TSEND])
        .over(&[&MODE, &START])
        .run(|t| {
            let peer = peer_of_initiator(t, 0xdead_0007)?;
            let mtu = t.mtu();
            let told = Some(Hex64(0x8000_0000_0000_0077));
            for (said, _) in all(t, Post { tag: told, ..post(PostKind::Tsend, peer, 2 * mtu) }, 2)? {
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
            t.same_bytes(WIRE_SES_005, "the payload", &bytes(300), seen.payload());
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
            let (said, payload) = only(t, sum)?;
            t.check(SES_AMO_001, "opcode", Opcode::UET_ATOMIC, said.opcode());
            let told = match said.ext {
                Some(ExtBuf::Atomic(ext)) => Some((ext.atomic_opcode(), ext.atomic_datatype())),
                _ => None,
            };
            let expected = Some((AtomicOpcode::DIFF, AtomicDatatype::INT32));
            t.check(SES_AMO_001, "operation and datatype", expected, told);
            t.check(
                SES_AMO_001,
                "request_length and operands",
                (12, operands),
                (said.request_length, payload),
            );
            t.check(WIRE_AMO_003, "som and eom", (true, true), (said.head.som(), said.head.eom()));
            Ok(())
        }),
    rule(
        "ses-encoding/compare-swap",
        "The operands of compare and swap are big-endian, right-aligned values",
    )
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
        let (said, _) = only(t, swap)?;
        let Some(ExtBuf::CompareSwap(ext)) = said.ext else {
            let seen = format!("{} without it", said.opcode());
            t.holds(SES_AMO_009, "a compare and swap has an extension header with two operands", false, seen);
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
            let parts = all(t, Post { delivery_complete: true, ..post(PostKind::Write, peer, 2 * mtu) }, 2)?;
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
            let (said, payload) = only(t, write)?;
            t.check(SES_MEM_001, "the form", Form::Medium, said.form);
            t.check(WIRE_SES_003, "som and eom", (true, true), (said.head.som(), said.head.eom()));
            let told = (said.head.hd(), said.buffer_offset, said.memory_key, said.request_length);
            let expected = (false, Some(0x9000), Some(0x5eed), 300);
            t.check(SES_MEM_001, "hd, buffer_offset, memory_key, request_length", expected, told);
            t.same_bytes(SES_MEM_001, "the payload", &bytes(300), &payload);
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
            let (said, _) = only(t, send)?;
            let told = (said.head.hd(), said.header_data, said.buffer_offset, said.match_bits);
            t.check(
                SES_CUT_005,
                "hd, header_data, no offset, match_bits",
                (true, Some(0xbee), None, Some(0x77)),
                told,
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
                only(t, Post { form: Some(Form::Small), ..post(PostKind::Send, peer, 300) })?;
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
];

fn bytes(length: usize) -> Vec<u8> {
    pattern(length as u32).take(length).collect()
}

/// Has the device do something, and takes in its first `count` packets.
fn packets(t: &mut Test<'_>, post: Post, count: u32) -> Result<Target, Stop> {
    t.post(post)?;
    let mut target = Target::accept(t)?;
    target.collect(t, count)?;
    Ok(target)
}

/// The fields of the only packet of an operation, and its payload.
fn only(t: &mut Test<'_>, post: Post) -> Result<(SesFields, Vec<u8>), Stop> {
    let target = packets(t, post, 1)?;
    let got = target.packet(0)?;
    Ok((got.said()?, got.payload()))
}

/// The fields of the packets of a message, each with its payload.
fn all(t: &mut Test<'_>, post: Post, count: u32) -> Result<Vec<(SesFields, Vec<u8>)>, Stop> {
    let target = packets(t, post, count)?;
    (0..count).map(|n| target.packet(n).and_then(|got| Ok((got.said()?, got.payload())))).collect()
}

/// Has the device do these one after another, each of so many packets, and checks the packets.
fn sound(t: &mut Test<'_>, rules: &[&'static Requirement], operations: &[(Post, u32)]) -> Outcome {
    let mut opened: Option<Target> = None;
    let mut next = 0;
    for (post, count) in operations {
        t.post(post.clone())?;
        let target = match &mut opened {
            Some(target) => target,
            none => none.insert(Target::accept(t)?),
        };
        target.collect(t, next + count)?;
        for n in next..next + count {
            let seen = target.packet(n)?.seen.clone();
            t.check_packet(&seen, rules);
        }
        target.ack(t, next + count - 1)?;
        // A device may send its next message only when the data of the read has come.
        if post.kind == PostKind::Read {
            let (whole, mtu) = (vec![0; post.length as usize], t.mtu());
            for k in 0..*count {
                let start = target.said(next + k)?.start();
                let piece = &whole[start..(start + mtu).min(whole.len())];
                let ses = target.data_header(next + k, piece.len(), whole.len(), start)?;
                target.give_due(t, k, ses, piece)?;
            }
        }
        next += count;
    }
    Ok(())
}

/// An atomic of these bytes.
fn sum(peer: u64, kind: PostKind, length: usize) -> Post {
    let (opcode, datatype) = (Some("SUM".into()), Some("UINT64".into()));
    Post { atomic_opcode: opcode, atomic_datatype: datatype, ..post(kind, peer, length) }
}

/// One answer of each kind: plain, with data by both ways, an error.
fn responses_are_sound(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let (region, _) = t.patterned(2 * mtu as u64)?;
    let mut session = t.session();
    let mut parts = vec![Message::write(&region, 0, &[1; 40]).whole()?];
    parts.extend(Message::read(&region, 0, mtu as u32 + 8).named(2).parts(mtu)?);
    parts.push(Message::read(&region, 0, 8).named(3).whole()?);
    parts.push(Message::read(&region, 0, 8).named(4).medium()?);
    parts.push(Message::read(&region, 0, 100).named(5).medium()?);
    let sum = (AtomicOpcode::SUM, AtomicDatatype::UINT64);
    let fetch = Message::atomic(&region, 0, sum, &[1; 8])?.named(6).opcode(Opcode::UET_FETCHING_ATOMIC);
    parts.push(fetch.whole()?);
    parts.push(Message::read(&region, 0, 8).named(7).selector(region.key ^ 1).whole()?);
    session.ask_all(t, &parts)?;
    let all = t.gather(t.soon())?;
    let responses = all.iter().filter(|seen| seen.uet().ses.is_some());
    let mut count = 0;
    for seen in responses.filter(|seen| seen.is_for(&session.pdc)) {
        t.check_packet(seen, RESPONSE_RULES);
        count += 1;
    }
    if count < 3 {
        return Err(Stop::Inconclusive(format!("{count} packets with a response")));
    }
    Ok(())
}

/// The ids of two messages on one context, each of two packets, by the PSN of their packets.
fn two_messages(t: &mut Test<'_>) -> Result<Vec<Option<u16>>, Stop> {
    let (peer, mtu) = (t.peer(0)?, t.mtu());
    let mut target = Target::established(t, peer, Mode::Rud)?;
    for _ in 0..2 {
        t.post(post(PostKind::Write, peer, 2 * mtu))?;
    }
    target.collect(t, 5)?;
    (1..5).map(|n| target.said(n).map(|said| said.message_id)).collect()
}

/// The suite as a peer towards whom the device is this initiator.
fn peer_of_initiator(t: &mut Test<'_>, initiator: u32) -> Result<u64, Stop> {
    let address = t.address(0)?;
    Ok(t.call(AddPeer { address, port: None, job: 101, process: 1, initiator })?.peer)
}
