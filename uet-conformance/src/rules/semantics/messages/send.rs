//! Plain sends: each takes one buffer of the device, or waits for one (sections 3.4.1, 3.4.3.3).

use crate::prelude::*;
use crate::{Answer, Part, RequestSession};
use uet_control::{Completion, PostReceive};
use uet_wire::registry::List;

const TARGET: &[Need] = &[RUD, SEND, RECEIVE];

/// When the receive is posted, beside the packets of its send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    After,
    Amid,
    Before,
}

const POSTED: Axis<When> =
    axis("posted").values(&[("after", When::After), ("amid", When::Amid), ("before", When::Before)]);

/// A length, in bytes, as a function of the MTU.
const LENGTH: Axis<fn(usize) -> usize> = axis("length").values(&[
    ("one-packet", |_| 50),
    ("no-bytes", |_| 0),
    ("three-packets", |mtu| 2 * mtu + 9),
]);

/// True if the last packet comes first, where the mode lets it.
const ARRIVAL: Axis<bool> = axis("arrival").values(&[("in-order", false), ("reversed", true)]);

const HEADER: Axis<bool> = axis("header").values(&[("std", false), ("medium", true)]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[SEND, RECEIVE]).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("send/expected", "A send fills the posted buffer and writes nothing beyond its bytes")
        .checks(&[SES_MATCH_006, SES_RESP_001])
        .run(|t| {
            let data = bytes(100);
            let posted = t.posted(room(160))?;
            let mut session = t.session();
            let psn = session.ask(t, &Message::send(&data).whole()?)?;
            session.accepted(t, SES_RESP_001, psn)?;
            t.expect_received(SES_MATCH_006, &posted, &data)?;
            Ok(())
        }),
    rule("send/header-data", "The header data of a send appears in the completion of its receive")
        .checks(&[SES_CUT_005, SES_MATCH_006])
        .needs(TARGET)
        .over(&[&START])
        .run(|t| {
            let mtu = t.mtu();
            let data = bytes(2 * mtu + 1);
            let posted = t.posted(room(3 * mtu as u64))?;
            let mut session = t.session();
            let message = Message { header_data: Some(0xfeed_0000_0000_0bee), ..Message::send(&data) };
            session.ask_in_order(t, &message.parts(mtu)?, &[2, 0, 1])?;
            let completion = t.expect_received(SES_MATCH_006, &posted, &data)?;
            t.check(SES_CUT_005, "header data", Some(Hex64(0xfeed_0000_0000_0bee)), completion.header_data);
            Ok(())
        }),
    rule("send/several-packets", "A send of several packets fills one buffer")
        .checks(&[SES_MATCH_006, SES_RESP_001])
        .run(|t| {
            let mtu = t.mtu();
            let data = bytes(2 * mtu + 9);
            let posted = t.posted(room(3 * mtu as u64))?;
            let mut session = t.session();
            let psns = session.ask_all(t, &Message::send(&data).parts(mtu)?)?;
            session.all_accepted(t, SES_RESP_001, &psns)?;
            t.expect_received(SES_MATCH_006, &posted, &data)?;
            Ok(())
        }),
    rule(
        "send/out-of-order",
        "Packets of a send that arrive out of order fill one buffer, each in its place",
    )
    .checks(&[SES_PLACE_003, SES_MATCH_006])
    .needs(TARGET)
    .over(&[&START])
    .run(|t| {
        let mtu = t.mtu();
        let data = bytes(4 * mtu - 1);
        let posted = t.posted(room(4 * mtu as u64))?;
        let mut session = t.session();
        let psns = session.ask_in_order(t, &Message::send(&data).parts(mtu)?, &[2, 3, 1, 0])?;
        session.all_accepted(t, SES_PLACE_003, &psns)?;
        t.expect_received(SES_MATCH_006, &posted, &data)?;
        Ok(())
    }),
    rule("send/missing-packet", "A receive completes only after all packets of its message have arrived")
        .checks(&[SES_DONE_002])
        .needs(TARGET)
        .over(&[&START])
        .run(|t| {
            let mtu = t.mtu();
            let data = bytes(3 * mtu);
            let posted = t.posted(room(3 * mtu as u64))?;
            let mut session = t.session();
            let parts = Message::send(&data).parts(mtu)?;
            let psns = session.ask_in_order(t, &parts, &[0, 2])?;
            t.expect_waiting(SES_DONE_002, &posted)?;
            session.ask_late(t, psns[1], &parts[1])?;
            t.expect_received(SES_DONE_002, &posted, &data)?;
            Ok(())
        }),
    rule("send/completes-once", "A receive completes once although its message is retransmitted")
        .checks(&[SES_DONE_002])
        .run(|t| {
            let data = bytes(64);
            let posted = t.posted(room(64))?;
            let mut session = t.session();
            let part = Message::send(&data).whole()?;
            let psn = session.ask(t, &part)?;
            t.expect_received(SES_DONE_002, &posted, &data)?;
            for _ in 0..3 {
                session.again(t, psn, &part)?;
            }
            t.pause(t.soon())?;
            let times = t.times_ended(posted.operation)?;
            t.check(SES_DONE_002, "completions of the receive", 1, times);
            Ok(())
        }),
    rule("send/empty", "A send of zero bytes takes a buffer and completes with length 0")
        .checks(&[SES_CUT_004])
        .over(&[&AWAITED, &MODE, &START])
        .run(|t| {
            let awaited = if t.value(&AWAITED) { Some(t.posted(room(16))?) } else { None };
            if awaited.is_none() {
                t.open_index()?;
            }
            let mut session = t.session();
            let psn = session.ask(t, &Message::send(&[]).whole()?)?;
            if awaited.is_none() && session.answer(t, psn)?.code() == ReturnCode::NO_MATCH {
                return skip("the device keeps no unexpected sends");
            }
            session.accepted(t, SES_CUT_004, psn)?;
            let posted = match awaited {
                Some(posted) => posted,
                None => t.posted(room(16))?,
            };
            t.expect_received(SES_CUT_004, &posted, &[])?;
            Ok(())
        }),
    rule("send/one-buffer-each", "Three sends fill three different buffers, and a fourth finds none")
        .checks(&[SES_MATCH_006, SES_RESP_001])
        .run(|t| {
            // Nothing known says which buffer is first: each send is awaited before the next, and has to end one
            // receive.
            let mut open = vec![t.posted(room(64))?, t.posted(room(64))?, t.posted(room(64))?];
            let mut session = t.session();
            for (id, data) in [(1, [0x11; 30]), (2, [0x22; 30]), (3, [0x33; 30])] {
                let psn = session.ask(t, &Message::send(&data).named(id).whole()?)?;
                session.accepted(t, SES_RESP_001, psn)?;
                t.pause(t.soon())?;
                let mut ended = Vec::new();
                for (place, posted) in open.iter().enumerate() {
                    ended.extend(t.completion(posted.operation, core::time::Duration::ZERO)?.map(|_| place));
                }
                t.check(SES_MATCH_006, "receives ended by this send:", 1, ended.len());
                let Some(place) = ended.first() else { return Err(Stop::Failed) };
                let posted = open.remove(*place);
                t.expect_received(SES_MATCH_006, &posted, &data)?;
            }
            let psn = session.ask(t, &Message::send(&[0x44; 30]).named(4).whole()?)?;
            session.expect(
                t,
                SES_MATCH_006,
                "no room for a fourth: OVERFLOW or an error",
                psn,
                |answer| {
                    let list = answer.response.map(|response| response.head().list());
                    !answer.is_ok() || list == Some(List::UET_OVERFLOW)
                },
            )?;
            Ok(())
        }),
    rule("send/interleaved", "Interleaved packets of two sends fill the buffers of their own messages")
        .checks(&[SES_MATCH_006, SES_PLACE_003, SES_RESP_001])
        .needs(TARGET)
        .over(&[&START])
        .run(|t| {
            let mtu = t.mtu();
            let (one, two) = (bytes(2 * mtu), vec![0x5a; 2 * mtu]);
            let (first, second) = (t.posted(room(2 * mtu as u64))?, t.posted(room(2 * mtu as u64))?);
            let mut session = t.session();
            let mut parts = Message::send(&one).parts(mtu)?;
            parts.extend(Message::send(&two).named(2).parts(mtu)?);
            let psns = session.ask_in_order(t, &parts, &[0, 2, 3, 1])?;
            session.all_accepted(t, SES_RESP_001, &psns)?;
            t.pause(t.soon())?;
            let swapped = t.memory(&first.buffer, 0, 1)? != one[..1];
            let (first, second) = if swapped { (second, first) } else { (first, second) };
            t.expect_received(SES_MATCH_006, &first, &one)?;
            t.expect_received(SES_PLACE_003, &second, &two)?;
            Ok(())
        }),
    rule("send/unexpected", "An unexpected send gets list OVERFLOW and fills a receive posted later")
        .checks(&[SES_MATCH_003, SES_GTD_002, SES_MATCH_006])
        .run(|t| {
            t.open_index()?;
            let data = bytes(50);
            let mut session = t.session();
            let told = unawaited(t, &mut session, &[Message::send(&data).whole()?])?;
            let list = told[0].1.response.map(|response| response.head().list());
            t.check(SES_MATCH_003, "the list", Some(List::UET_OVERFLOW), list);
            t.check(SES_GTD_002, "req of the ACK", AckRequest::REQ_CLEAR, told[0].1.request);
            let posted = t.posted(room(80))?;
            t.expect_received(SES_MATCH_006, &posted, &data)?;
            Ok(())
        }),
    rule("send/receive-during-send", "A receive posted while an unexpected send arrives gets all of it")
        .checks(&[SES_MATCH_006, SES_DONE_002])
        .run(|t| {
            t.open_index()?;
            let mtu = t.mtu();
            let data = bytes(2 * mtu + 1);
            let mut session = t.session();
            let parts = Message::send(&data).parts(mtu)?;
            unawaited(t, &mut session, &parts[..2])?;
            let posted = t.posted(room(3 * mtu as u64))?;
            t.expect_waiting(SES_DONE_002, &posted)?;
            session.ask(t, &parts[2])?;
            t.expect_received(SES_MATCH_006, &posted, &data)?;
            Ok(())
        }),
    rule("send/unexpected-retransmission", "A retransmitted unexpected send gets list OVERFLOW again")
        .checks(&[SES_GTD_002])
        .run(|t| {
            t.open_index()?;
            let mut session = t.session();
            let part = Message::send(&bytes(20)).whole()?;
            let told = unawaited(t, &mut session, core::slice::from_ref(&part))?;
            let psn = told[0].0;
            session.again(t, psn, &part)?;
            session.expect(t, SES_GTD_002, "the same response, list OVERFLOW", psn, |answer| {
                answer.response.is_some_and(|response| response.head().list() == List::UET_OVERFLOW)
            })?;
            Ok(())
        }),
    rule("send/no-room", "An unexpected send gets NO_MATCH if the device has no room for it")
        .checks(&[SES_MATCH_004, SES_GTD_001])
        .needs(&[SEND, RECEIVE, PARAMETERS])
        .run(|t| {
            t.configure("max_unexpected", 0)?;
            t.open_index()?;
            let mut session = t.session();
            let psn = session.ask(t, &Message::send(&bytes(20)).whole()?)?;
            let answer = session.refused_as(t, SES_MATCH_004, psn, &[ReturnCode::NO_MATCH])?;
            t.check(SES_GTD_001, "req of the ACK", AckRequest::REQ_CLEAR, answer.request);
            Ok(())
        }),
    rule("send/room-reuse", "A receive that takes an unexpected send frees its room for the next")
        .checks(&[SES_MATCH_003, SES_MATCH_006])
        .needs(&[SEND, RECEIVE, PARAMETERS])
        .run(|t| {
            // With room for two sends of 40 bytes, twelve are kept one after the other.
            for (limit, most) in [("max_unexpected", 2), ("max_unexpected_bytes", 80)] {
                t.configure(limit, most)?;
                t.open_index()?;
                let mut session = t.session();
                for n in 1..=12 {
                    let data = [n as u8; 40];
                    let psn = session.ask(t, &Message::send(&data).named(n).whole()?)?;
                    match session.answer(t, psn)?.code() {
                        ReturnCode::NO_MATCH if n == 1 => {
                            return skip("the device keeps no unexpected sends");
                        }
                        code => t.check(SES_MATCH_003, "return_code", ReturnCode::OK, code),
                    }
                    let posted = t.posted(room(40))?;
                    t.expect_received(SES_MATCH_006, &posted, &data)?;
                }
            }
            Ok(())
        }),
    rule("send/too-long", "A send longer than its buffer is truncated or refused with TOO_LONG")
        .checks(&[SES_MATCH_005])
        .run(|t| cut(t, &bytes(100), 60)),
    rule("send/too-long-packets", "A multi-packet send longer than its buffer is truncated or gets TOO_LONG")
        .checks(&[SES_MATCH_005])
        .run(|t| {
            let mtu = t.mtu();
            cut(t, &bytes(3 * mtu), mtu + 30)
        }),
    rule("send/retransmission", "A retransmitted send takes no second buffer")
        .checks(&[PDS_DUP_001, PDS_DUP_002, SES_RESP_001])
        .run(|t| {
            let (first, second) = (t.posted(room(64))?, t.posted(room(64))?);
            let data = bytes(40);
            let mut session = t.session();
            let part = Message::send(&data).whole()?;
            let psn = session.ask(t, &part)?;
            session.accepted(t, SES_RESP_001, psn)?;
            session.again(t, psn, &part)?;
            session.accepted(t, PDS_DUP_002, psn)?;
            let ended = |completion: Option<Completion>| completion.is_some_and(|it| it.status == Status::Ok);
            t.pause(t.soon())?;
            let nothing = core::time::Duration::ZERO;
            let both = [t.completion(first.operation, nothing)?, t.completion(second.operation, nothing)?];
            t.check(
                PDS_DUP_001,
                "receives ended:",
                1,
                both.into_iter().filter(|it| ended(it.clone())).count(),
            );
            Ok(())
        }),
    rule("send/medium", "A send with a medium header fills a buffer and carries header data")
        .checks(&[SES_MATCH_006, SES_RESP_001])
        .run(|t| {
            let data = bytes(100);
            let posted = t.posted(room(128))?;
            let mut session = t.session();
            let message = Message { header_data: Some(7), ..Message::send(&data) };
            let psn = session.ask(t, &message.medium()?)?;
            session.some_answer(t, psn)?;
            session.accepted(t, SES_RESP_001, psn)?;
            let completion = t.expect_received(SES_MATCH_006, &posted, &data)?;
            t.check(SES_MATCH_006, "header data", Some(Hex64(7)), completion.header_data);
            Ok(())
        }),
    rule("send/small", "A send with a small header fills a buffer")
        .checks(&[SES_MATCH_006, SES_RESP_001])
        .run(|t| {
            let data = bytes(100);
            let posted = t.posted(room(128))?;
            let mut session = t.session();
            let psn = session.ask(t, &Message::send(&data).small()?)?;
            session.some_answer(t, psn)?;
            session.accepted(t, SES_RESP_001, psn)?;
            t.expect_received(SES_MATCH_006, &posted, &data)?;
            Ok(())
        }),
    rule("send/index", "A send goes to the receive queue that its resource_index names")
        .checks(&[SES_ADDR_002, SES_RESP_001])
        .run(|t| {
            let other = t.posted(PostReceive { index: 9, ..room(64) })?;
            let posted = t.posted(room(64))?;
            let data = bytes(33);
            let mut session = t.session();
            let psn = session.ask(t, &Message::new(Opcode::UET_SEND).data(&data).whole()?)?;
            session.accepted(t, SES_RESP_001, psn)?;
            t.expect_received(SES_ADDR_002, &posted, &data)?;
            t.expect_waiting(SES_ADDR_002, &other)
        }),
    rule("send/posting-order", "A receive gets the bytes and header data of its send, whenever it is posted")
        .checks(&[SES_MATCH_006, SES_CUT_005])
        .over(&[&POSTED, &LENGTH, &ARRIVAL, &HEADER, &MODE])
        .run(|t| {
            let (mtu, when) = (t.mtu(), t.value(&POSTED));
            let data = bytes(t.value(&LENGTH)(mtu));
            t.open_index()?;
            let mut session = t.session();
            let told = 0xfeed_0000_0000_0bee;
            let message = Message { header_data: Some(told), ..Message::send(&data) };
            let mut parts = message.parts(mtu)?;
            if t.value(&HEADER) && parts.len() == 1 {
                parts = vec![message.medium()?];
            }
            let mut order: Vec<usize> = (0..parts.len()).collect();
            if t.value(&ARRIVAL) && !session.pdc.rod {
                order.reverse();
            }
            let capacity = data.len() as u64 + 16;
            let early = match when {
                When::Before => Some(t.posted(room(capacity))?),
                _ => None,
            };
            let mut late = None;
            for (place, k) in order.iter().enumerate() {
                let opens = place == 0;
                let psn = session.pdc.psn(*k as u32);
                match opens {
                    true => drop(session.ask_in_order(t, &parts, &[*k])?),
                    false => session.ask_late(t, psn, &parts[*k])?,
                }
                if opens && when != When::Before && session.answer(t, psn)?.code() == ReturnCode::NO_MATCH {
                    return skip("the device keeps no unexpected sends");
                }
                if opens && when == When::Amid {
                    late = Some(t.posted(room(capacity))?);
                }
            }
            let posted = match early.or(late) {
                Some(posted) => posted,
                None => t.posted(room(capacity))?,
            };
            let completion = t.expect_received(SES_MATCH_006, &posted, &data)?;
            t.check(SES_CUT_005, "header data", Some(Hex64(told)), completion.header_data);
            Ok(())
        }),
    rule("send/unexpected-several", "Each late receive gets one unexpected send with its own header data")
        .checks(&[SES_MATCH_006, SES_CUT_005])
        .over(&[&LENGTH, &MODE])
        .run(|t| {
            // Nothing known says which send is first: the header data tells.
            let mtu = t.mtu();
            let length = t.value(&LENGTH)(mtu);
            t.open_index()?;
            let mut session = t.session();
            let data = |n: u8| -> Vec<u8> { vec![0x11 * n; length] };
            for n in 1..=3 {
                let message = Message { header_data: Some(n.into()), ..Message::send(&data(n)) };
                unawaited(t, &mut session, &message.named(n.into()).parts(mtu)?)?;
            }
            let mut told = Vec::new();
            for _ in 0..3 {
                let posted = t.posted(room(length as u64 + 8))?;
                let within = t.soon();
                let ended = t.completion(posted.operation, within)?;
                let header = ended.as_ref().and_then(|it| it.header_data).map_or(0, |it| it.0);
                let ended = ended.map(|it| (it.status, it.length));
                t.check(
                    SES_MATCH_006,
                    "the completion of a receive",
                    Some((Status::Ok, length as u64)),
                    ended,
                );
                t.one_of(SES_CUT_005, "header data", &[1, 2, 3], header);
                t.expect_filled(SES_MATCH_006, &posted, &data(header as u8))?;
                told.push(header);
            }
            told.sort_unstable();
            t.check(SES_MATCH_006, "header data of the three receives", vec![1, 2, 3], told);
            Ok(())
        }),
];

fn bytes(length: usize) -> Vec<u8> {
    pattern(5).take(length).collect()
}

/// True if the receive is there before the send.
const AWAITED: Axis<bool> = axis("receive").values(&[("before", true), ("after", false)]);

/// Sends what nobody waits for. A device that keeps nothing is not tested further.
fn unawaited(
    t: &mut Test<'_>,
    session: &mut RequestSession,
    parts: &[Part],
) -> Result<Vec<(Psn, Answer)>, Stop> {
    let mut told = Vec::new();
    for psn in session.ask_all(t, parts)? {
        let answer = session.answer(t, psn)?;
        match answer.code() {
            ReturnCode::NO_MATCH => return skip("the device keeps no unexpected sends"),
            _ => told.push((psn, answer)),
        }
    }
    Ok(told)
}

/// The outcome of a send of `data` to a buffer of `room` bytes, by its last packet.
fn cut(t: &mut Test<'_>, data: &[u8], capacity: usize) -> Outcome {
    let posted = t.posted(room(capacity as u64))?;
    let mtu = t.mtu();
    let mut session = t.session();

    let psns = session.ask_all(t, &Message::send(data).parts(mtu)?)?;

    let mut told = Vec::new();

    for psn in psns {
        told.push(session.answer(t, psn)?);
    }
    if told.iter().any(|answer| answer.code() == ReturnCode::TOO_LONG) {
        t.holds(SES_MATCH_005, "TOO_LONG", true, "");
        return t.still_holds(SES_MATCH_005, &posted.buffer, &posted.before);
    }
    // The sources know no other code for it than TOO_LONG.
    if let Some(refused) = told.iter().find(|answer| !answer.is_ok()) {
        let allowed = [ReturnCode::OK, ReturnCode::TOO_LONG];
        t.one_of(SES_MATCH_005, "the return code", &allowed, refused.code());
        return Err(Stop::Failed);
    }
    let length = told.last().map(|answer| answer.length(data.len() as u32));
    t.check(SES_MATCH_005, "modified_length", Some(capacity as u32), length);
    let within = t.soon();
    let ended = t.completion(posted.operation, within)?.map(|completion| completion.length);
    t.check(SES_MATCH_005, "bytes received", Some(capacity as u64), ended);
    t.expect_filled(SES_MATCH_005, &posted, &data[..capacity])
}
