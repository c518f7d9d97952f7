//! The second attempt of a deferrable send of the device: the same message under another id (section 3.4.2).

use crate::prelude::*;
use crate::serve::SesFields;
use crate::target::RxRequest;
use std::collections::BTreeSet;
use uet_control::{AddPeer, Fill, Hex, Remote};

const KIND: Axis<PostKind> = axis("kind").needing(&[
    ("send", PostKind::DeferrableSend, &[DEFERRABLE_SEND]),
    ("tagged", PostKind::DeferrableTsend, &[DEFERRABLE_TSEND]),
]);

/// Whole packets of the message, and the bytes beyond them.
const LENGTH: Axis<(usize, usize)> =
    axis("length").values(&[("short", (0, 100)), ("none", (0, 0)), ("packet", (1, 0)), ("packets", (2, 7))]);

const HEADER_DATA: Axis<Option<u64>> =
    axis("header_data").values(&[("none", None), ("some", Some(0xfeed_0000_0000_0bee))]);

/// The token of the target.
const TOKEN: Axis<u32> = axis("token").values(&[("all-bits", u32::MAX), ("highest", 1 << 31), ("one", 1)]);

pub(super) const RULES: &[Rule] = &[
    rule(
        "deferrable/same-message",
        "The second attempt differs from the first only in message_id and tokens",
    )
    .checks(&[SES_DEFER_004])
    .over(&[&KIND, &LENGTH, &HEADER_DATA, &MODE])
    .run(|t| {
        let (whole, more) = t.value(&LENGTH);
        let length = whole * t.mtu() + more;
        let (posted, target) = sent(t, length)?;
        let own = own_token(&target.said(0)?)?;
        defer(t, &target)?;
        want(t, own, 0x9900_0001)?;
        let (again, last, packets) = second(t, &target, 0x9900_0001)?;
        let id = packets.first().and_then(|packet| packet.said().ok()).and_then(|said| said.message_id);
        let before = target.said(0)?.message_id;
        t.holds(
            SES_DEFER_004,
            "the second attempt has another message_id",
            id != before,
            crate::Show::show(&id),
        );
        for (n, packet) in packets.iter().enumerate() {
            let (first, now) = (target.said(n as u32)?, packet.said()?);
            let address = |said: &SesFields| (said.address.job_id(), said.address.pid_on_fep());
            t.check(SES_DEFER_004, "message_id of all its packets", id, now.message_id);
            t.check(SES_DEFER_004, "opcode", first.opcode(), now.opcode());
            t.check(SES_DEFER_004, "job_id and pid_on_fep", address(&first), address(&now));
            let index = |said: &SesFields| (said.address.resource_index(), said.address.ri_generation());
            t.check(SES_DEFER_004, "resource_index and ri_generation", index(&first), index(&now));
            let head = |said: &SesFields| (said.head.som(), said.head.eom(), said.head.hd());
            t.check(SES_DEFER_004, "som, eom, hd", head(&first), head(&now));
            t.check(SES_DEFER_004, "rel", first.head.rel(), now.head.rel());
            t.check(SES_DEFER_004, "initiator", first.initiator, now.initiator);
            t.check(SES_DEFER_004, "match_bits", first.match_bits, now.match_bits);
            t.check(SES_DEFER_004, "header_data", first.header_data, now.header_data);
            t.check(SES_DEFER_004, "request_length", first.request_length, now.request_length);
            t.check(SES_DEFER_004, "message_offset", first.message_offset, now.message_offset);
            t.check(SES_DEFER_004, "both tokens", Some((own, 0x9900_0001)), now.tokens);
            let payload = target.packet(n as u32)?.payload();
            t.same_bytes(SES_DEFER_004, "the payload", &payload, &packet.payload());
        }
        again.ack(t, last)?;
        t.ends_with(SES_DEFER_004, posted, (Status::Ok, length as u64))?;
        Ok(())
    }),
    rule("deferrable/tokens", "Both attempts carry the device's token, the second also the target's token")
        .checks(&[SES_DEFER_001, SES_DEFER_004])
        .over(&[&KIND, &TOKEN, &MODE])
        .run(|t| {
            let token = t.value(&TOKEN);
            let (posted, target) = sent(t, t.mtu() + 7)?;
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
            want(t, own, token)?;
            let (again, last, packets) = second(t, &target, token)?;
            for packet in &packets {
                t.check(SES_DEFER_004, "both tokens", Some((own, token)), packet.said()?.tokens);
            }
            again.ack(t, last)?;
            t.ends_with(SES_DEFER_004, posted, (Status::Ok, (t.mtu() + 7) as u64))?;
            Ok(())
        }),
    rule("deferrable/early-rtr", "An early DEFERRABLE_RTR makes the device resend the whole message")
        .checks(&[SES_DEFER_004, SES_DONE_001])
        .over(&[&KIND, &MODE])
        .run(|t| {
            // The device may complete its first attempt or abandon it. Each ACK covers all packets that have
            // left: the device then has nothing in flight, and the rest of an attempt to send.
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
            want(t, own, OURS)?;
            let is_second = |said: &SesFields| said.tokens == Some((own, OURS));
            let opens_second = |seen: &RxPacket| {
                let opens = seen.request().is_some_and(|request| request.syn());
                opens && crate::serve::said(&seen.uet()).is_some_and(|said| is_second(&said))
            };
            let (mut next, mut second) = (1, BTreeSet::new());
            let mut until = t.now() + t.later();
            while second.len() < LONG && t.now() < until {
                target.watch(t, t.grace())?;
                let arrived = (next..).take_while(|n| target.times(*n) > 0).count() as u32;
                for n in next..next + arrived {
                    let said = target.said(n)?;
                    if is_second(&said) {
                        second.insert(said.start());
                    }
                    if n + 1 == next + arrived {
                        let length = if is_second(&said) { said.request_length } else { 0 };
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
            t.check(SES_DEFER_004, "packets of the second attempt", LONG, second.len());
            t.ends_with(SES_DONE_001, posted, (Status::Ok, length as u64)).map(drop)
        }),
];

/// Has the device start such a send with a value in each field.
fn sent(t: &mut Test<'_>, length: usize) -> Result<(Operated, Target), Stop> {
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

/// Puts the send off.
fn defer(t: &mut Test<'_>, target: &Target) -> Outcome {
    let last = target.highest();
    let response = target.response(last, ReturnCode::OK, 0)?;
    target.respond(t, last, response)?;
    t.settle()
}

fn own_token(fields: &SesFields) -> Result<u32, Stop> {
    let tokens = fields.tokens.ok_or_else(|| Stop::Inconclusive("a deferrable send without tokens".into()));
    Ok(tokens?.0)
}

/// Tells the device that its send is wanted.
fn want(t: &mut Test<'_>, own: u32, ours: u32) -> Outcome {
    let sender_first = t.word("ready_tokens") == Some("sender_first");
    let tokens = Some(if sender_first { (ours, own) } else { (own, ours) });
    let mut session = t.session();
    let ready = Message { tokens, job: 0xab_cd01, ..Message::new(Opcode::UET_DEFERRABLE_RTR) };
    session.ask(t, &Message { process: 0, index: 0, ..ready }.whole()?)?;
    Ok(())
}

/// The packets of the second attempt with this token of the target, in the order of their offsets, and their
/// context.
fn second(t: &mut Test<'_>, first: &Target, ours: u32) -> Result<(Target, u32, Vec<RxRequest>), Stop> {
    let (count, kind) = (first.highest() + 1, t.value(&KIND));
    let opcode = match kind {
        PostKind::DeferrableTsend => Opcode::UET_DEFERRABLE_TSEND,
        _ => Opcode::UET_DEFERRABLE_SEND,
    };
    let sends = |seen: &RxPacket| {
        let said = crate::serve::said(&seen.uet())?;
        let request = seen.request()?;
        let again = said.opcode() == opcode && said.tokens.is_some_and(|(_, target)| target == ours);
        again.then_some(request)
    };
    let within = t.later();
    let came = t.hear(t.patience(within), |seen| sends(seen).is_some())?;
    let expected = "the message again, with the token of its DEFERRABLE_RTR";
    if !came {
        t.expect(SES_DEFER_004, expected, Duration::ZERO, sends)?;
    }
    let mut opening = None;
    t.hear(Duration::ZERO, |seen| {
        opening = sends(seen).filter(|request| request.syn()).map(|_| seen.clone());
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
    packets.sort_by_key(|packet| packet.said().map_or(0, |said| said.start()));
    Ok((target, base + count - 1, packets))
}

/// More packets than leave before the first ACK.
const LONG: usize = 256;
