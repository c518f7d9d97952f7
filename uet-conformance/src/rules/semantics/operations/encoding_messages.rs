//! SES headers of a message of an initiator: segmentation, and the fields that its packets share (section
//! 3.4.2).

use super::steps::{OPERATION, begin_post, fields_of_packet, fields_of_packets, post_sum, posted_bytes};
use crate::prelude::*;
use uet_control::Remote;

/// An operation on the memory of a peer.
const MEMORY_OPERATION: Axis<PostKind> = axis("operation").needing(&[
    ("write", PostKind::Write, &[WRITE]),
    ("read", PostKind::Read, &[READ]),
    ("atomic", PostKind::Atomic, &[ATOMIC]),
    ("fetch", PostKind::FetchAtomic, &[FETCH_ATOMIC]),
]);

/// An operation that may have several packets.
const LONG_OPERATION: Axis<PostKind> = axis("operation").needing(&[
    ("write", PostKind::Write, &[WRITE]),
    ("read", PostKind::Read, &[READ]),
    ("send", PostKind::Send, &[SEND]),
    ("tagged", PostKind::Tsend, &[TSEND]),
    ("deferrable", PostKind::DeferrableSend, &[DEFERRABLE_SEND]),
    ("deferrable-tagged", PostKind::DeferrableTsend, &[DEFERRABLE_TSEND]),
]);

/// True if the operation uses relative addressing.
const RELATIVE: Axis<bool> = axis("addressing").values(&[("relative", true), ("absolute", false)]);

/// The number of packets of a message.
const PACKETS: Axis<u32> = axis("packets").values(&[("one", 1), ("two", 2), ("three", 3)]);

/// An offset in the memory of a peer. No message wraps around at 2^64.
const OFFSET: Axis<u64> = axis("offset").values(&[
    ("small", 0x9000),
    ("across-2-32", (1 << 32) - 8),
    ("highest-bit", (1 << 63) + 8),
    ("near-2-64", u64::MAX - (1 << 20) + 1),
]);

pub(super) const RULES: &[Rule] = &[
    rule("ses-encoding/segmentation", "Packet k of a message carries its bytes from k times the MTU on")
        .checks(&[SES_CUT_001, WIRE_SES_006])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (peer, mtu) = (t.peer(0)?, t.mtu());
            let length = 3 * mtu + 100;
            let whole = posted_bytes(length);
            let parts = fields_of_packets(t, post(PostKind::Write, peer, length), 4)?;
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
            let parts = fields_of_packets(t, post(PostKind::Write, peer, 3 * mtu - 1), 3)?;
            let flags: Vec<_> = parts.iter().map(|(said, _)| (said.head.som(), said.head.eom())).collect();
            t.check(SES_CUT_002, "som and eom", vec![(true, false), (false, false), (false, true)], flags);
            Ok(())
        }),
    rule("ses-encoding/som-eom-hd", "A message sets som first, eom last, and hd only with header data")
        .checks(&[SES_CUT_002, SES_CUT_005])
        .over(&[&OPERATION, &PACKETS, &MODE])
        .run(|t| {
            let (peer, mtu, kind, packets) = (t.peer(0)?, t.mtu(), t.value(&OPERATION), t.value(&PACKETS));
            let length = (packets as usize - 1) * mtu + 100;
            t.requests_all(kind, length)?;
            let parts =
                fields_of_packets(t, Post { form: Some(Form::Std), ..post(kind, peer, length) }, packets)?;
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
        .over(&[&MODE, &MEMORY_OPERATION, &OFFSET])
        .run(|t| {
            let (peer, mtu, kind, offset) =
                (t.peer(0)?, t.mtu(), t.value(&MEMORY_OPERATION), t.value(&OFFSET));
            let remote = Remote { key: Hex64(0x5eed), offset: Hex64(offset), index: 10, ..Remote::default() };
            let (length, count, opcode) = match kind {
                PostKind::Read => (3 * mtu, 3, Opcode::UET_READ),
                PostKind::Atomic => (8, 1, Opcode::UET_ATOMIC),
                PostKind::FetchAtomic => (8, 1, Opcode::UET_FETCHING_ATOMIC),
                _ => (3 * mtu, 3, Opcode::UET_WRITE),
            };
            let operation = match kind {
                PostKind::Atomic | PostKind::FetchAtomic => post_sum(peer, kind, length),
                _ => post(kind, peer, length),
            };
            let parts = fields_of_packets(t, Post { remote, form: Some(Form::Std), ..operation }, count)?;
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
    rule("ses-encoding/common-address", "Each packet of a message has its process, index and generation")
        .checks(&[SES_ADDR_001, SES_ADDR_002, SES_GEN_001])
        .over(&[&LONG_OPERATION, &RELATIVE, &MODE])
        .run(|t| {
            let (peer, kind, relative) = (t.peer(0)?, t.value(&LONG_OPERATION), t.value(&RELATIVE));
            let length = 2 * t.mtu() + 100;
            t.requests_all(kind, length)?;
            let remote = Remote {
                key: Hex64(0x5eed),
                process: Some(0x345),
                index: 0xabc,
                generation: 0x5a,
                absolute: !relative,
                ..Remote::default()
            };
            let operation = Post { remote, form: Some(Form::Std), ..post(kind, peer, length) };
            for (n, (said, _)) in (1..).zip(fields_of_packets(t, operation, 3)?) {
                let address = said.address;
                t.check(SES_ADDR_001, &format!("rel of packet {n}"), relative, said.head.rel());
                t.check(SES_ADDR_001, &format!("pid_on_fep of packet {n}"), 0x345, address.pid_on_fep());
                // With absolute addressing, a request need not name the job.
                if relative {
                    t.check(SES_ADDR_001, &format!("job_id of packet {n}"), 101, address.job_id());
                }
                let seen = address.resource_index();
                t.check(SES_ADDR_002, &format!("resource_index of packet {n}"), 0xabc, seen);
                let seen = address.ri_generation();
                t.check(SES_GEN_001, &format!("ri_generation of packet {n}"), 0x5a, seen);
            }
            Ok(())
        }),
    rule("ses-encoding/full-packets", "A message of twice the MTU is two packets without an empty third")
        .checks(&[SES_CUT_001, SES_CUT_002])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (peer, mtu) = (t.peer(0)?, t.mtu());
            let (_, mut target) = begin_post(t, post(PostKind::Write, peer, 2 * mtu), 2)?;
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
            let (said, payload) = fields_of_packet(t, post(PostKind::Write, peer, 0))?;
            t.check(SES_CUT_004, "som and eom", (true, true), (said.head.som(), said.head.eom()));
            t.check(SES_CUT_004, "request_length and payload", (0, 0), (said.request_length, payload.len()));
            Ok(())
        }),
    rule("ses-encoding/header-data", "Header data is in the first packet; others state length and offset")
        .checks(&[SES_CUT_005, SES_CUT_006])
        .needs(&[WRITE])
        .over(&[&MODE, &START])
        .run(|t| {
            // A peer in another job gets its own context for the later write.
            let (peer, other, mtu) = (t.peer(0)?, t.peer_of_job(102)?, t.mtu());
            let header_data = Some(Hex64(0xfeed_0000_0000_0bee));
            let parts =
                fields_of_packets(t, Post { header_data, ..post(PostKind::Write, peer, 2 * mtu + 7) }, 3)?;
            let first = &parts[0].0;
            t.check(SES_CUT_005, "hd", true, first.head.hd());
            t.check(SES_CUT_005, "header_data", Some(0xfeed_0000_0000_0bee), first.header_data);
            for (k, (said, payload)) in parts.iter().enumerate().skip(1) {
                let stated = (said.payload_length, said.message_offset);
                let expected = (Some(payload.len() as u16), Some((k * mtu) as u32));
                t.check(SES_CUT_005, "payload_length and message_offset", expected, stated);
            }
            // Only some headers have room for both fields.
            let remote = Remote { offset: Hex64(0x9000), ..post(PostKind::Write, peer, 64).remote };
            let later = Some(0x1bad_0000_0000_0ca7);
            let written = Post { header_data: later.map(Hex64), remote, ..post(PostKind::Write, other, 64) };
            let (said, _) = fields_of_packet(t, written)?;
            t.check(SES_CUT_005, "header_data of the later message", later, said.header_data);
            t.check(SES_CUT_006, "buffer_offset together with header_data", Some(0x9000), said.buffer_offset);
            Ok(())
        }),
    rule("ses-encoding/message-ids", "Two messages in flight have different message_ids")
        .checks(&[SES_CUT_003, SES_CUT_007])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let mut seen = message_ids_of_two(t)?;
            t.holds(SES_CUT_007, "no message_id is 0", !seen.contains(&Some(0)), format!("{seen:?}"));
            seen.sort();
            seen.dedup();
            t.check(SES_CUT_003, "different ids:", 2, seen.len());
            Ok(())
        }),
    rule("ses-encoding/message-id-wrap", "No message has message_id 0 when the ids wrap after 65,535")
        .checks(&[SES_CUT_007])
        .over(&[&MODE, &CARRIER])
        .run(|t| {
            t.configure("start_message_id", 0xfffe)?;
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            for n in 1..=4 {
                t.post(post(PostKind::Write, peer, 2 * t.mtu()))?;
                target.collect(t, 2 * n + 1)?;
                target.ack(t, 2 * n)?;
            }
            let ids = (1..9).map(|n| target.said(n).map(|said| said.message_id));
            let seen = ids.collect::<Result<Vec<_>, Stop>>()?;
            t.holds(SES_CUT_007, "no message_id is 0", !seen.contains(&Some(0)), format!("{seen:?}"));
            Ok(())
        }),
    rule("ses-encoding/message-order", "All packets of a message have lower PSNs than those of the next")
        .checks(&[SES_ORDER_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let seen = message_ids_of_two(t)?;
            t.check(SES_ORDER_001, "the first two packets are of one message:", seen[0], seen[1]);
            t.check(SES_ORDER_001, "and the next two of the other:", seen[2], seen[3]);
            Ok(())
        }),
];

/// Posts two messages of two packets each on one context. Returns the message_id of each packet in PSN order.
fn message_ids_of_two(t: &mut Test<'_>) -> Result<Vec<Option<u16>>, Stop> {
    let (peer, mtu) = (t.peer(0)?, t.mtu());
    let mut target = Target::established(t, peer, Mode::Rud)?;
    for _ in 0..2 {
        t.post(post(PostKind::Write, peer, 2 * mtu))?;
    }
    target.collect(t, 5)?;
    (1..5).map(|n| target.said(n).map(|said| said.message_id)).collect()
}
