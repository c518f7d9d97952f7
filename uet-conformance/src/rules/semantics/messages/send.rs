//! Sends that find a posted buffer: each fills one buffer of the device (sections 3.4.1, 3.4.3.3).

use super::steps::require_kept;
use crate::prelude::*;
use uet_control::{Completion, PostReceive};
use uet_wire::registry::List;

/// The needs of rules whose packets arrive out of order.
const UNORDERED: &[Need] = &[RUD, SEND, RECEIVE];

/// True if the receive is posted before the send.
const POSTED: Axis<bool> = axis("receive").values(&[("before", true), ("after", false)]);

/// The treatment of a send that is longer than its buffer, if it can be set.
const TOO_LONG: Axis<Option<&str>> =
    axis("set").values(&[("default", None), ("truncate", Some("truncate")), ("refuse", Some("refuse"))]);

/// The header data of a send. The first two would also be offsets in its buffer.
const HEADER_DATA: Axis<u64> =
    axis("header-data").values(&[("7", 7), ("4096", 0x1000), ("wide", 0xfeed_0000_0000_0bee)]);

/// The message_id of the second of two sends. The first has 1.
const SECOND_ID: Axis<u16> =
    axis("second-id").values(&[("2", 2), ("high-byte", 0x0101), ("highest-bit", 0x8001)]);

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
        .needs(UNORDERED)
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
    rule("send/out-of-order", "Packets that arrive out of order fill one buffer, each in its place")
        .checks(&[SES_PLACE_003, SES_MATCH_006])
        .needs(UNORDERED)
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
        .needs(UNORDERED)
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
        .over(&[&POSTED, &MODE, &START])
        .run(|t| {
            let posted_before = if t.value(&POSTED) { Some(t.posted(room(16))?) } else { None };
            if posted_before.is_none() {
                t.open_index()?;
            }
            let mut session = t.session();
            let psn = session.ask(t, &Message::send(&[]).whole()?)?;
            if posted_before.is_none() {
                require_kept(&session.answer(t, psn)?)?;
            }
            session.accepted(t, SES_CUT_004, psn)?;
            let posted = match posted_before {
                Some(posted) => posted,
                None => t.posted(room(16))?,
            };
            t.expect_received(SES_CUT_004, &posted, &[])?;
            Ok(())
        }),
    rule("send/one-buffer-each", "Three sends fill three different buffers, and a fourth finds none")
        .checks(&[SES_MATCH_006, SES_RESP_001])
        .run(|t| {
            // The order of buffers is open. Each send completes one receive before the next send leaves.
            let mut waiting = vec![t.posted(room(64))?, t.posted(room(64))?, t.posted(room(64))?];
            let mut session = t.session();
            for (id, data) in [(1, [0x11; 30]), (2, [0x22; 30]), (3, [0x33; 30])] {
                let psn = session.ask(t, &Message::send(&data).named(id).whole()?)?;
                session.accepted(t, SES_RESP_001, psn)?;
                t.pause(t.soon())?;
                let mut ended = Vec::new();
                for (n, posted) in waiting.iter().enumerate() {
                    ended.extend(t.completion(posted.operation, Duration::ZERO)?.map(|_| n));
                }
                t.check(SES_MATCH_006, "receives ended by this send:", 1, ended.len());
                let Some(n) = ended.first() else { return Err(Stop::Failed) };
                let posted = waiting.remove(*n);
                t.expect_received(SES_MATCH_006, &posted, &data)?;
            }
            let psn = session.ask(t, &Message::send(&[0x44; 30]).named(4).whole()?)?;
            session.expect(
                t,
                SES_MATCH_006,
                "list OVERFLOW or an error for the fourth send",
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
        .needs(UNORDERED)
        .over(&[&SECOND_ID, &START])
        .run(|t| {
            let mtu = t.mtu();
            let (one, two) = (bytes(2 * mtu), vec![0x5a; 2 * mtu]);
            let (first, second) = (t.posted(room(2 * mtu as u64))?, t.posted(room(2 * mtu as u64))?);
            let mut session = t.session();
            let mut parts = Message::send(&one).parts(mtu)?;
            parts.extend(Message::send(&two).named(t.value(&SECOND_ID)).parts(mtu)?);
            let psns = session.ask_in_order(t, &parts, &[0, 2, 3, 1])?;
            session.all_accepted(t, SES_RESP_001, &psns)?;
            t.pause(t.soon())?;
            let swapped = t.memory(&first.buffer, 0, 1)? != one[..1];
            let (first, second) = if swapped { (second, first) } else { (first, second) };
            t.expect_received(SES_MATCH_006, &first, &one)?;
            t.expect_received(SES_PLACE_003, &second, &two)?;
            Ok(())
        }),
    rule("send/too-long", "A send longer than its buffer is truncated or refused with TOO_LONG")
        .checks(&[SES_MATCH_005, SES_ERR_001])
        .over(&[&TOO_LONG, &MODE, &START])
        .run(|t| expect_truncated(t, &bytes(100), 60)),
    rule("send/too-long-packets", "A multi-packet send longer than its buffer is truncated or gets TOO_LONG")
        .checks(&[SES_MATCH_005, SES_ERR_001])
        .over(&[&TOO_LONG, &MODE, &START])
        .run(|t| {
            let mtu = t.mtu();
            expect_truncated(t, &bytes(3 * mtu), mtu + 30)
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
            let nothing = Duration::ZERO;
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
        .over(&[&HEADER_DATA, &MODE, &START])
        .run(|t| {
            let (data, header_data) = (bytes(100), t.value(&HEADER_DATA));
            let posted = t.posted(room(8192))?;
            let mut session = t.session();
            let message = Message { header_data: Some(header_data), ..Message::send(&data) };
            let psn = session.ask(t, &message.medium()?)?;
            session.some_answer(t, psn)?;
            session.accepted(t, SES_RESP_001, psn)?;
            let completion = t.expect_received(SES_MATCH_006, &posted, &data)?;
            t.check(SES_MATCH_006, "header data", Some(Hex64(header_data)), completion.header_data);
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
];

fn bytes(length: usize) -> Vec<u8> {
    pattern(5).take(length).collect()
}

/// Sends messages that are longer than their receives, one after the other with the same id. Repeats the
/// first packet of each before its last one. Expects that the device truncates or refuses each, as it is set.
fn expect_truncated(t: &mut Test<'_>, data: &[u8], capacity: usize) -> Outcome {
    let setting = t.value(&TOO_LONG);
    if let Some(setting) = setting {
        t.configure("too_long", setting)?;
    }
    let mtu = t.mtu();
    let mut session = t.session();
    for _ in 0..2 {
        let posted = t.posted(room(capacity as u64))?;
        let parts = Message::send(data).parts(mtu)?;
        let mut answers = Vec::new();
        let mut psns = Vec::new();
        for (n, part) in parts.iter().enumerate() {
            if n > 0 && n + 1 == parts.len() {
                session.again(t, psns[0], &parts[0])?;
                session.answer(t, psns[0])?;
            }
            let psn = session.ask(t, part)?;
            answers.push(session.answer(t, psn)?);
            psns.push(psn);
        }
        let is_refused = answers.iter().any(|answer| answer.code() == ReturnCode::TOO_LONG);
        if is_refused || setting == Some("refuse") {
            t.holds(SES_MATCH_005, "TOO_LONG", is_refused, "the send is accepted");
            t.holds(SES_MATCH_005, "a send as the device is set", setting != Some("truncate"), "TOO_LONG");
            t.still_holds(SES_MATCH_005, &posted.buffer, &posted.before)?;
            for refused in answers.iter().filter_map(|answer| answer.response.filter(|_| !answer.is_ok())) {
                t.check(SES_ERR_001, "modified_length", 0, refused.modified_length());
            }
            return Ok(());
        }
        // TOO_LONG is the only code that the sources name for this.
        if let Some(refused) = answers.iter().find(|answer| !answer.is_ok()) {
            let allowed = [ReturnCode::OK, ReturnCode::TOO_LONG];
            t.one_of(SES_MATCH_005, "the return code", &allowed, refused.code());
            return Err(Stop::Failed);
        }
        let length = answers.last().map(|answer| answer.length(data.len() as u32));
        t.check(SES_MATCH_005, "modified_length", Some(capacity as u32), length);
        let within = t.soon();
        let ended = t.completion(posted.operation, within)?.map(|completion| completion.length);
        t.check(SES_MATCH_005, "bytes received", Some(capacity as u64), ended);
        t.expect_filled(SES_MATCH_005, &posted, &data[..capacity])?;
    }
    Ok(())
}
