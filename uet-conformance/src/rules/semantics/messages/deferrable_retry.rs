//! The second attempt of a deferrable send of the device: the same message with another message_id
//! (section 3.4.2).

use super::steps::{sender_first, token_order};
use crate::prelude::*;
use crate::serve::SesFields;
use crate::target::RxRequest;
use std::collections::BTreeSet;
use uet_control::{AddPeer, Fill, Hex, Remote};

const KIND: Axis<PostKind> = axis("kind").needing(&[
    ("send", PostKind::DeferrableSend, &[DEFERRABLE_SEND]),
    ("tagged", PostKind::DeferrableTsend, &[DEFERRABLE_TSEND]),
]);

/// The number of full packets of the message, and the bytes after them.
const LENGTH: Axis<(usize, usize)> =
    axis("length").values(&[("short", (0, 100)), ("empty", (0, 0)), ("packet", (1, 0)), ("packets", (2, 7))]);

const HEADER_DATA: Axis<Option<u64>> =
    axis("header-data").values(&[("none", None), ("present", Some(0xfeed_0000_0000_0bee))]);

/// The token of the target.
const TOKEN: Axis<u32> = axis("token").values(&[("all-bits", u32::MAX), ("highest", 1 << 31), ("one", 1)]);

/// More packets than leave before the first ACK.
const LONG: usize = 256;

pub(super) const RULES: &[Rule] = &[
    rule("deferrable/same-message", "The second attempt changes only message_id and tokens")
        .checks(&[SES_DEFER_004])
        .over(&[&KIND, &LENGTH, &HEADER_DATA, &MODE])
        .run(|t| {
            const OURS: u32 = 0x9900_0001;
            let (packets, more) = t.value(&LENGTH);
            let length = packets * t.mtu() + more;
            let (posted, target) = send_deferrable(t, length)?;
            let own = own_token(&target.said(0)?)?;
            defer(t, &target)?;
            send_rtr(t, own, OURS)?;
            let (second, last, packets) = collect_second(t, &target, OURS)?;
            let id =
                packets.first().and_then(|packet| packet.said().ok()).and_then(|fields| fields.message_id);
            let before = target.said(0)?.message_id;
            t.holds(
                SES_DEFER_004,
                "the second attempt has another message_id",
                id != before,
                crate::Show::show(&id),
            );
            for (n, packet) in packets.iter().enumerate() {
                let fields = packet.said()?;
                t.check(SES_DEFER_004, "message_id of all its packets", id, fields.message_id);
                check_same_fields(t, &target.said(n as u32)?, &fields);
                t.check(SES_DEFER_004, "both tokens", Some((own, OURS)), fields.tokens);
                let payload = target.packet(n as u32)?.payload();
                t.same_bytes(SES_DEFER_004, "the payload", &payload, &packet.payload());
            }
            second.ack(t, last)?;
            t.ends_with(SES_DEFER_004, posted, (Status::Ok, length as u64))?;
            Ok(())
        }),
    rule("deferrable/tokens", "Both attempts carry the device's token, the second also the target's token")
        .checks(&[SES_DEFER_001, SES_DEFER_004])
        .over(&[&KIND, &TOKEN, &MODE])
        .run(|t| {
            let token = t.value(&TOKEN);
            let (posted, target) = send_deferrable(t, t.mtu() + 7)?;
            let own = own_token(&target.said(0)?)?;
            for n in 0..2 {
                t.check(
                    SES_DEFER_001,
                    "both tokens of the first attempt",
                    Some((own, 0)),
                    target.said(n)?.tokens,
                );
            }
            defer(t, &target)?;
            send_rtr(t, own, token)?;
            let (second, last, packets) = collect_second(t, &target, token)?;
            for packet in &packets {
                t.check(SES_DEFER_004, "both tokens", Some((own, token)), packet.said()?.tokens);
            }
            second.ack(t, last)?;
            t.ends_with(SES_DEFER_004, posted, (Status::Ok, (t.mtu() + 7) as u64))?;
            Ok(())
        }),
    rule("deferrable/early-rtr", "An early DEFERRABLE_RTR makes the device resend the whole message")
        .checks(&[SES_DEFER_004, SES_DONE_001])
        .over(&[&KIND, &MODE])
        .run(|t| {
            // The device may complete its first attempt or abandon it. Each ACK covers all packets that have
            // arrived, so that the device can send the next ones.
            const OURS: u32 = 0x9900_0001;
            t.try_configure("default_mpr", 1)?;
            let (peer, kind, length) = (t.peer(0)?, t.value(&KIND), LONG * t.mtu());
            let posted = t.post(post(kind, peer, length))?;
            let mut target = Target::accept(t)?;
            target.mpr = 1;
            target.watch(t, t.grace())?;
            require(target.order().len() < LONG, "the whole first attempt leaves before an ACK")?;
            let own = own_token(&target.said(0)?)?;
            let deferred = target.response(0, ReturnCode::OK, 0)?;
            target.respond(t, 0, deferred)?;
            send_rtr(t, own, OURS)?;
            let is_second = |fields: &SesFields| fields.tokens == Some((own, OURS));
            let opens_second = |seen: &RxPacket| {
                let opens = seen.request().is_some_and(|request| request.syn());
                opens && crate::serve::said(&seen.uet()).is_some_and(|fields| is_second(&fields))
            };
            let (mut next, mut offsets) = (1, BTreeSet::new());
            let mut until = t.now() + t.later();
            while offsets.len() < LONG && t.now() < until {
                target.watch(t, t.grace())?;
                let arrived = (next..).take_while(|n| target.times(*n) > 0).count() as u32;
                for n in next..next + arrived {
                    let fields = target.said(n)?;
                    if is_second(&fields) {
                        offsets.insert(fields.start());
                    }
                    if n + 1 == next + arrived {
                        let length = if is_second(&fields) { fields.request_length } else { 0 };
                        target.respond(t, n, target.response(n, ReturnCode::OK, length)?)?;
                        until = t.now() + t.later();
                    }
                }
                next += arrived;
                if t.hear(Duration::ZERO, opens_second)? {
                    target = Target::accept_beside(t, &[&target])?;
                    next = 0;
                }
            }
            t.check(SES_DEFER_004, "packets of the second attempt", LONG, offsets.len());
            t.ends_with(SES_DONE_001, posted, (Status::Ok, length as u64)).map(drop)
        }),
];

/// Has the device post a send with a value in each field. Returns it and its context.
fn send_deferrable(t: &mut Test<'_>, length: usize) -> Result<(Operated, Target), Stop> {
    let address = t.address(0)?;
    let peer = AddPeer { address, port: None, job: 0xab_cd01, process: 1, initiator: 0x8765_4321 };
    let peer = t.call(peer)?.peer;
    let kind = t.value(&KIND);
    let fill = Fill::Hex(Hex(pattern(91).take(length).collect()));
    let remote = Remote { process: Some(0xabc), index: 0x9a, generation: 0x5a, ..Remote::default() };
    let tag = (kind == PostKind::DeferrableTsend).then_some(Hex64(0x8000_7a67_0000_0001));
    let header_data = t.value(&HEADER_DATA).map(Hex64);
    let mode = t.value(&MODE);
    let posted =
        t.post(Post { mode, remote, tag, header_data, fill: Some(fill), ..post(kind, peer, length) })?;
    let packets = length.div_ceil(t.mtu()).max(1);
    let mut target = Target::accept(t)?;
    target.collect(t, packets as u32)?;
    Ok((posted, target))
}

/// Checks that packets of two attempts have equal fields, apart from message_id and tokens.
fn check_same_fields(t: &mut Test<'_>, first: &SesFields, second: &SesFields) {
    t.check(SES_DEFER_004, "opcode", first.opcode(), second.opcode());
    let address = |fields: &SesFields| (fields.address.job_id(), fields.address.pid_on_fep());
    t.check(SES_DEFER_004, "job_id and pid_on_fep", address(first), address(second));
    let index = |fields: &SesFields| (fields.address.resource_index(), fields.address.ri_generation());
    t.check(SES_DEFER_004, "resource_index and ri_generation", index(first), index(second));
    let head = |fields: &SesFields| (fields.head.som(), fields.head.eom(), fields.head.hd());
    t.check(SES_DEFER_004, "som, eom, hd", head(first), head(second));
    t.check(SES_DEFER_004, "rel", first.head.rel(), second.head.rel());
    t.check(SES_DEFER_004, "initiator", first.initiator, second.initiator);
    t.check(SES_DEFER_004, "match_bits", first.match_bits, second.match_bits);
    t.check(SES_DEFER_004, "header_data", first.header_data, second.header_data);
    t.check(SES_DEFER_004, "request_length", first.request_length, second.request_length);
    t.check(SES_DEFER_004, "message_offset", first.message_offset, second.message_offset);
}

/// Defers the send.
fn defer(t: &mut Test<'_>, target: &Target) -> Outcome {
    let last = target.highest();
    let response = target.response(last, ReturnCode::OK, 0)?;
    target.respond(t, last, response)?;
    t.settle()
}

/// Returns the token of the device.
fn own_token(fields: &SesFields) -> Result<u32, Stop> {
    let tokens = fields.tokens.ok_or_else(|| Stop::Inconclusive("a deferrable send without tokens".into()));
    Ok(tokens?.0)
}

/// Sends a DEFERRABLE_RTR with the token of the device and our token.
fn send_rtr(t: &mut Test<'_>, own: u32, ours: u32) -> Outcome {
    let tokens = Some(token_order(sender_first(t), (own, ours)));
    let mut session = t.session();
    let ready = Message { tokens, job: 0xab_cd01, ..Message::new(Opcode::UET_DEFERRABLE_RTR) };
    session.ask(t, &Message { process: 0, index: 0, ..ready }.whole()?)?;
    Ok(())
}

/// Collects the packets of the second attempt with our token. Returns their context, the number of the last
/// packet, and the packets in the order of their offsets.
fn collect_second(
    t: &mut Test<'_>,
    first: &Target,
    ours: u32,
) -> Result<(Target, u32, Vec<RxRequest>), Stop> {
    let (count, kind) = (first.highest() + 1, t.value(&KIND));
    let opcode = match kind {
        PostKind::DeferrableTsend => Opcode::UET_DEFERRABLE_TSEND,
        _ => Opcode::UET_DEFERRABLE_SEND,
    };
    let second_request = |seen: &RxPacket| {
        let fields = crate::serve::said(&seen.uet())?;
        let request = seen.request()?;
        let is_second = fields.opcode() == opcode && fields.tokens.is_some_and(|(_, target)| target == ours);
        is_second.then_some(request)
    };
    let within = t.later();
    let arrived = t.hear(t.patience(within), |seen| second_request(seen).is_some())?;
    let expected = "the second attempt with the token of its DEFERRABLE_RTR";
    if !arrived {
        t.expect(SES_DEFER_004, expected, Duration::ZERO, second_request)?;
    }
    let mut opening = None;
    t.hear(Duration::ZERO, |seen| {
        opening = second_request(seen).filter(|request| request.syn()).map(|_| seen.clone());
        opening.is_some()
    })?;
    let (mut target, base) = match opening {
        Some(_) => (Target::accept(t)?, 0),
        None => (first.clone(), count),
    };
    target.collect(t, base + count)?;
    let mut packets = Vec::new();
    for n in base..base + count {
        packets.push(target.packet(n)?.clone());
    }
    packets.sort_by_key(|packet| packet.said().map_or(0, |fields| fields.start()));
    Ok((target, base + count - 1, packets))
}
