//! Completions of an initiator's operations: when they complete and with which status (sections 3.4.1 and
//! 3.4.2).

use super::steps::{begin, begin_post};
use crate::prelude::*;
use crate::rules::steps::next_fields;
use crate::serve::SesFields;
use crate::target::{FAILED, NOT_WELL};
use std::collections::BTreeSet;
use uet_wire::pds::Pds;
use uet_wire::registry::{List, ResponseOpcode};
use uet_wire::ses::{Response, SesBuf};

/// The list of the receive that matched a send.
const LIST: Axis<List> =
    axis("list").values(&[("expected", List::UET_EXPECTED), ("overflow", List::UET_OVERFLOW)]);

/// An operation that sends data.
const SENDING: Axis<PostKind> = axis("operation").needing(&[
    ("send", PostKind::Send, &[SEND]),
    ("tagged", PostKind::Tsend, &[TSEND]),
    ("write", PostKind::Write, &[WRITE]),
]);

/// An operation that a receive matches.
const MATCHED: Axis<PostKind> =
    axis("operation").needing(&[("send", PostKind::Send, &[SEND]), ("tagged", PostKind::Tsend, &[TSEND])]);

/// The number of packets of the message.
const PACKETS: Axis<u32> = axis("packets").values(&[("one", 1), ("three", 3)]);

/// The distance of a wrong PSN from the right one.
const DISTANCE: Axis<u32> = axis("distance").values(&[("2-16", 1 << 16), ("2-24", 1 << 24), ("1", 1)]);

pub(super) const RULES: &[Rule] = &[
    rule("completions/write", "A write completes when it is acknowledged, and not before")
        .checks(&[SES_DONE_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (posted, target) = begin(t, PostKind::Write, 100, 1)?;
            t.settle()?;
            t.is_open(SES_DONE_001, posted)?;
            target.ack(t, 0)?;
            t.ends_with(SES_DONE_001, posted, (Status::Ok, 100)).map(drop)
        }),
    rule("completions/once", "Duplicate ACKs do not complete a write a second time")
        .checks(&[SES_DONE_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (posted, target) = begin(t, PostKind::Write, 100, 1)?;
            target.ack(t, 0)?;
            t.ends_with(SES_DONE_001, posted, (Status::Ok, 100))?;
            for _ in 0..3 {
                target.ack(t, 0)?;
            }
            t.settle()?;
            let times = t.times_ended(posted)?;
            t.check(SES_DONE_001, "completions of the write", 1, times);
            Ok(())
        }),
    rule("completions/all-packets", "A message completes once its last outstanding packet is acknowledged")
        .checks(&[SES_DONE_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let mtu = t.mtu();
            let (posted, target) = begin(t, PostKind::Write, 3 * mtu, 3)?;
            target.name(t, 2, 0)?;
            target.name(t, 0, 1)?;
            t.settle()?;
            t.is_open(SES_DONE_001, posted)?;
            target.ack(t, 1)?;
            t.ends_with(SES_DONE_001, posted, (Status::Ok, 3 * mtu as u64)).map(drop)
        }),
    rule("completions/zero-length", "A write of zero bytes completes when it is acknowledged")
        .checks(&[SES_CUT_004, SES_DONE_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (posted, target) = begin(t, PostKind::Write, 0, 1)?;
            t.settle()?;
            t.is_open(SES_DONE_001, posted)?;
            target.ack(t, 0)?;
            t.ends_with(SES_CUT_004, posted, (Status::Ok, 0)).map(drop)
        }),
    rule("completions/out-of-order", "A later operation completes first if it is acknowledged first")
        .checks(&[SES_DONE_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let first = t.post(post(PostKind::Write, peer, 40))?;
            let second = t.post(post(PostKind::Write, peer, 50))?;
            target.collect(t, 3)?;
            target.name(t, 2, 1)?;
            t.ends_with(SES_DONE_001, second, (Status::Ok, 50))?;
            t.is_open(SES_DONE_001, first)?;
            target.ack(t, 2)?;
            t.ends_with(SES_DONE_001, first, (Status::Ok, 40)).map(drop)
        }),
    rule("completions/default-response", "A default response with modified_length 0 completes all bytes")
        .checks(&[SES_RESP_006])
        .over(&[&SENDING, &PACKETS, &MODE, &START])
        .run(|t| {
            let (kind, packets) = (t.value(&SENDING), t.value(&PACKETS));
            let length = (packets as usize - 1) * t.mtu() + 100;
            let (posted, target) = begin(t, kind, length, packets)?;
            let response = Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK).done()?;
            target.respond(t, packets - 1, response)?;
            t.ends_with(SES_RESP_006, posted, (Status::Ok, length as u64)).map(drop)
        }),
    rule("completions/stated-length", "A response that states the whole length completes all bytes")
        .checks(&[SES_DONE_001])
        .over(&[&SENDING, &PACKETS, &MODE, &START])
        .run(|t| {
            let (kind, packets) = (t.value(&SENDING), t.value(&PACKETS));
            let length = (packets as usize - 1) * t.mtu() + 100;
            let (posted, target) = begin(t, kind, length, packets)?;
            let response = target.response(packets - 1, ReturnCode::OK, length as u32)?;
            target.respond(t, packets - 1, response)?;
            t.ends_with(SES_DONE_001, posted, (Status::Ok, length as u64)).map(drop)
        }),
    rule("completions/truncated", "A send completes with the smaller modified_length of its response")
        .checks(&[SES_RESP_004])
        .over(&[&MATCHED, &PACKETS, &LIST, &MODE, &START])
        .run(|t| {
            let (kind, packets) = (t.value(&MATCHED), t.value(&PACKETS));
            let length = (packets as usize - 1) * t.mtu() + 100;
            let (mut posted, mut target) = begin(t, kind, length, packets)?;
            let list = t.value(&LIST);
            // The sources leave open what 0 bytes on the overflow list mean.
            let lengths: &[u32] = if list == List::UET_OVERFLOW { &[60, 1] } else { &[60, 0] };
            for (n, accepted) in (0..).zip(lengths.iter().copied()) {
                let last = (n + 1) * packets - 1;
                if n > 0 {
                    let peer = t.peer(0)?;
                    posted = t.post(post(kind, peer, length))?;
                    target.collect(t, last + 1)?;
                }
                let response = target.response(last, ReturnCode::OK, accepted)?;
                let response = response.edit().head(|head| head.list(list)).done()?;
                target.answer(t, target.naming(last, last).guaranteed(response))?;
                let within = t.soon();
                let ended = t.completion(posted, within)?;
                // Open: how a source reports a truncated send. A source that fails it reports no length.
                require(
                    ended.as_ref().is_none_or(|ended| ended.status == Status::Ok),
                    "the device fails a truncated send",
                )?;
                let ended = ended.map(|completion| completion.length);
                t.check(SES_RESP_004, "bytes that were accepted", Some(u64::from(accepted)), ended);
            }
            Ok(())
        }),
    rule("completions/read-wrong-psn", "Data that states another PSN does not complete a medium-header read")
        .checks(&[SES_READ_006])
        .needs(&[READ])
        .over(&[&DISTANCE, &MODE, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let read = Post { want_data: true, form: Some(Form::Medium), ..post(PostKind::Read, peer, 200) };
            let (posted, target) = begin_post(t, read, 1)?;
            target.ack(t, 0)?;
            let SesBuf::ResponseDataSmall(header) = target.data_header(0, 200, 200, 0)? else {
                return skip("the device reads with standard headers");
            };
            let psn = header.original_request_psn() + t.value(&DISTANCE);
            let header = header.edit().original_request_psn(psn).done()?;
            target.give(t, 0, header.into(), &[7; 200])?;
            t.pause(t.soon())?;
            let ended = t.completion(posted, Duration::ZERO)?.map(|completion| completion.status);
            t.one_of(SES_READ_006, "the completion", NOT_WELL, ended);
            Ok(())
        }),
    rule("completions/overflow", "A send that matched the overflow list completes successfully")
        .checks(&[SES_DONE_001])
        .needs(&[SEND])
        .over(&[&MODE, &START])
        .run(|t| {
            let (posted, target) = begin(t, PostKind::Send, 100, 1)?;
            let response = target.response(0, ReturnCode::OK, 100)?;
            let response = response.edit().head(|head| head.list(List::UET_OVERFLOW)).done()?;
            target.answer(t, target.naming(0, 0).guaranteed(response))?;
            t.ends_with(SES_DONE_001, posted, (Status::Ok, 100)).map(drop)
        }),
    rule("completions/refused", "An error response completes the operation with its return code")
        .checks(&[SES_ERR_003])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (posted, target) = begin(t, PostKind::Write, 100, 1)?;
            target.respond_error(t, 0, ReturnCode::BAD_MKEY)?;
            t.ends_refused(SES_ERR_003, posted, ReturnCode::BAD_MKEY)
        }),
    rule("completions/unknown-code", "An unassigned return code does not complete an operation successfully")
        .checks(&[SES_ERR_003])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (posted, target) = begin(t, PostKind::Write, 100, 1)?;
            let unassigned = ReturnCode::unassigned(t.spec()).next().unwrap_or(ReturnCode::EXTENDED);
            target.respond_error(t, 0, unassigned)?;
            let within = t.soon();
            let ended = t.completion(posted, within)?.map(|completion| completion.status);
            t.one_of(SES_ERR_003, "the completion", FAILED, ended);
            Ok(())
        }),
    rule("completions/one-packet-refused", "One refused packet completes its message with the return code")
        .checks(&[SES_ERR_003])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            // The error arrives after the whole message was sent, so that the source does not end it early.
            let mtu = t.mtu();
            let (posted, target) = begin(t, PostKind::Write, 3 * mtu, 3)?;
            target.name(t, 0, 1)?;
            target.respond_error(t, 1, ReturnCode::PERM_VIOLATION)?;
            target.name(t, 2, 1)?;
            t.ends_refused(SES_ERR_003, posted, ReturnCode::PERM_VIOLATION)
        }),
    rule("completions/early-end", "A source marks the early end of a refused message, and only of that one")
        .checks(&[SES_ERR_003, SES_ERR_005, SES_ERR_007])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            // Open: how a source ends a message early: by UET_MSG_ERROR, by ie, or not at all.
            let (peer, mtu) = (t.peer(0)?, t.mtu());
            let posted = t.post(post(PostKind::Write, peer, 300 * mtu))?;
            let mut target = Target::accept(t)?;
            let last = refuse_until_end(t, &mut target)?;
            check_end(t, &target, &last, 300 * mtu)?;
            t.ends_refused(SES_ERR_003, posted, ReturnCode::BAD_MKEY)?;
            t.post(post(PostKind::Write, peer, 64))?;
            let next = next_fields(t, &mut target)?;
            t.check(SES_ERR_005, "ie of the next message", false, next.head.ie());
            Ok(())
        }),
    rule("completions/next-operation", "The operation after a refused one completes successfully")
        .checks(&[SES_ERR_003, SES_DONE_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let (bad, mut target) = begin_post(t, post(PostKind::Write, peer, 100), 1)?;
            target.respond_error(t, 0, ReturnCode::BAD_MKEY)?;
            t.ends_refused(SES_ERR_003, bad, ReturnCode::BAD_MKEY)?;
            let good = t.post(post(PostKind::Write, peer, 50))?;
            target.collect(t, 2)?;
            target.ack(t, 1)?;
            t.ends_with(SES_DONE_001, good, (Status::Ok, 50)).map(drop)
        }),
    rule("completions/processing", "RCVD_SES_PROCG does not complete an operation; the later response does")
        .checks(&[PDS_NACK_012, SES_DONE_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (posted, target) = begin(t, PostKind::Write, 100, 1)?;
            target.refuse(t, NackCode::RCVD_SES_PROCG, 0)?;
            t.settle()?;
            t.is_open(PDS_NACK_012, posted)?;
            target.ack(t, 0)?;
            t.ends_with(SES_DONE_001, posted, (Status::Ok, 100)).map(drop)
        }),
    rule("completions/datagram", "A datagram completes without a response")
        .checks(&[SES_MODE_001])
        .needs(&[UUD, DATAGRAM])
        .run(|t| {
            let peer = t.peer(0)?;
            let posted = t.post(Post { mode: Mode::Uud, ..post(PostKind::Datagram, peer, 100) })?;
            t.need("a datagram", t.later(), |seen| {
                matches!(seen.uet().pds, Some(Pds::Uud(_))).then_some(())
            })?;
            t.ends_with(SES_MODE_001, posted, (Status::Ok, 100)).map(drop)
        }),
];

/// Refuses the first packet of a message and acknowledges the others until the message ends. Returns the
/// fields of the last packet.
fn refuse_until_end(t: &mut Test<'_>, target: &mut Target) -> Result<SesFields, Stop> {
    let (mut last, mut answered, mut cleared) = (None, 0, false);
    // Numbers of the packets that have come, and the lowest that has not.
    let (mut came, mut missing) = (BTreeSet::new(), 0_u32);
    let (pdc, first) = (target.pdc.clone(), target.psn(0));
    let clears = |seen: &RxPacket| {
        let command = seen.control(CtlType::CLEAR_COMMAND).map(|command| Psn(command.payload()));
        let carried = seen.request().filter(|_| seen.wire.dst == pdc.from).map(|it| it.clear_psn());
        command.or(carried).is_some_and(|clear| !first.is_after(clear))
    };
    loop {
        // The last packet may overtake others on another path.
        match last {
            Some((n, said)) if missing >= n => return Ok(said),
            _ => {}
        }
        // The window can be full until the cumulative PSN moves.
        let pause = t.grace();
        if !cleared && target.got.len() == answered && target.next(t, pause)?.is_none() && answered > 0 {
            let within = t.later();
            cleared = t.hear(within, clears)?;
            if let (true, Some(highest)) = (cleared, missing.checked_sub(1)) {
                target.ack(t, highest)?;
            }
        }
        while target.got.len() == answered {
            let within = t.later();
            if target.next(t, within)?.is_none() {
                let seen = format!("{} packets and no last one", target.got.len());
                t.holds(SES_ERR_003, "the source ends the message", false, seen);
                return Err(Stop::Failed);
            }
        }
        let received = target.got[answered].clone();
        answered += 1;
        let n = target.index(&received.request);
        came.insert(n);
        while came.contains(&missing) {
            missing += 1;
        }
        // The error holds the cumulative PSN back until the device clears it.
        cleared |= clears(&received.seen) || t.hear(Duration::ZERO, clears)?;
        let below = if cleared { missing } else { 0 };
        match n {
            0 => target.respond_error(t, 0, ReturnCode::BAD_MKEY)?,
            n => target.name(t, n, below)?,
        }
        let said = received.said()?;
        if said.head.eom() {
            last = Some((n, said));
        }
    }
}

/// Checks that the last packet marks an early end of a message of `length` bytes.
fn check_end(t: &mut Test<'_>, target: &Target, last: &SesFields, length: usize) -> Outcome {
    let mtu = t.mtu();
    let payload_length = |n: &u32| target.packet(*n).map_or(0, |packet| packet.payload().len());
    let data: usize = target.order().iter().map(payload_length).sum();
    // The end of the data is known only if each packet states its correct offset.
    let misplaced = target.order().into_iter().filter(|n| payload_length(n) > 0).find_map(|n| {
        let start = target.said(n).ok()?.start();
        (start != n as usize * mtu).then_some((n as usize * mtu, start))
    });
    if let Some((expected, start)) = misplaced {
        t.check(SES_CUT_001, "message_offset", expected, start);
        return Err(Stop::Failed);
    }
    let unmarked = data < length && last.opcode() != Opcode::UET_MSG_ERROR && !last.head.ie();
    let seen = format!("{} with eom after {data} bytes", last.opcode());
    t.holds(SES_ERR_007, "an early end differs from the true end", !unmarked, seen);
    if last.opcode() == Opcode::UET_MSG_ERROR {
        let expected = (false, Some(data as u32));
        let seen = (last.head.som(), last.message_offset);
        t.check(SES_ERR_007, "som, and message_offset where the data stops", expected, seen);
    }
    Ok(())
}
