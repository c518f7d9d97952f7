//! Unexpected sends: the device keeps a send that finds no receive until one is posted (sections 3.4.1,
//! 3.4.3.3).

use super::steps::require_kept;
use crate::prelude::*;
use crate::rules::steps::{FORM, HEADER};
use crate::{Answer, Part, RequestSession};
use uet_wire::registry::List;

/// The time at which the receive is posted, relative to the packets of its send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PostedAt {
    After,
    During,
    Before,
}

const POSTED: Axis<PostedAt> = axis("posted").values(&[
    ("after", PostedAt::After),
    ("during", PostedAt::During),
    ("before", PostedAt::Before),
]);

/// A length, in bytes, as a function of the MTU.
const LENGTH: Axis<fn(usize) -> usize> =
    axis("length").values(&[("one-packet", |_| 50), ("empty", |_| 0), ("three-packets", |mtu| 2 * mtu + 9)]);

/// True if the packets arrive in reverse order. ROD always sends them in order.
const ARRIVAL: Axis<bool> = axis("arrival").values(&[("in-order", false), ("reversed", true)]);

/// True if an ACK_REQUEST causes the second response, false for a retransmission.
const ASKED: Axis<bool> = axis("by").values(&[("retransmission", false), ("ack-request", true)]);

const TAGGED: Axis<bool> = axis("opcode").needing(&[("send", false, &[]), ("tagged", true, &[TSEND])]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[SEND, RECEIVE]).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("send/unexpected", "An unexpected send gets list OVERFLOW and fills a receive posted later")
        .checks(&[SES_MATCH_003, SES_GTD_002, SES_MATCH_006])
        .over(&[&FORM, &MODE, &START])
        .run(|t| {
            t.open_index()?;
            let data = bytes(50);
            let part = Message::send(&data).in_form(t.value(&FORM))?;
            let mut session = t.session();
            let answers = send_unexpected(t, &mut session, &[part])?;
            let list = answers[0].1.response.map(|response| response.head().list());
            t.check(SES_MATCH_003, "the list", Some(List::UET_OVERFLOW), list);
            t.check(SES_GTD_002, "req of the ACK", AckRequest::REQ_CLEAR, answers[0].1.request);
            let posted = t.posted(room(80))?;
            t.expect_received(SES_MATCH_006, &posted, &data)?;
            Ok(())
        }),
    rule("send/unexpected-list", "A response to an unexpected send of several packets has list OVERFLOW")
        .checks(&[SES_MATCH_003, SES_GTD_002, SES_RESP_004])
        .over(&[&ARRIVAL, &TAGGED, &MODE, &START])
        .run(|t| {
            t.open_index()?;
            let mut session = t.session();
            let mtu = t.mtu();
            let data = bytes(2 * mtu + 9);
            let parts = message(t, &data).parts(mtu)?;
            let mut order: Vec<usize> = (0..parts.len()).collect();
            if t.value(&ARRIVAL) && !session.pdc.rod {
                order.reverse();
            }
            session.ask_in_order(t, &parts, &order)?;
            let (mut listed, mut accepted) = (Vec::new(), 0);
            for k in order {
                let answer = session.answer(t, session.pdc.psn(k as u32))?;
                require_kept(&answer)?;
                let list = answer.response.map(|response| response.head().list());
                listed.extend((list == Some(List::UET_OVERFLOW)).then_some(answer.request));
                accepted = answer.accepted_length(data.len() as u32);
            }
            // The sources leave open which packets' responses name the list.
            t.holds(SES_MATCH_003, "a response has list OVERFLOW", !listed.is_empty(), listed.len());
            let unguarded = listed.iter().filter(|request| **request != AckRequest::REQ_CLEAR).count();
            t.check(SES_GTD_002, "such responses without REQ_CLEAR", 0, unguarded);
            t.check(SES_RESP_004, "bytes accepted by the final response", data.len() as u32, accepted);
            Ok(())
        }),
    rule("send/unexpected-again", "The response to an unexpected send is the same each time it is sent")
        .checks(&[PDS_GTD_001, SES_GTD_002])
        .over(&[&ASKED, &LENGTH, &TAGGED, &MODE])
        .run(|t| {
            t.open_index()?;
            let mut session = t.session();
            let parts = message(t, &bytes(t.value(&LENGTH)(t.mtu()))).parts(t.mtu())?;
            let answers = send_unexpected(t, &mut session, &parts)?;
            for ((psn, first), part) in answers.into_iter().zip(&parts).filter(|it| it.0.1.is_guaranteed()) {
                for _ in 0..2 {
                    t.forget();
                    if t.value(&ASKED) {
                        let asks = session.pdc.control(CtlType::ACK_REQUEST, psn, 0)?;
                        t.send(&session.pdc, &asks)?;
                    } else {
                        session.again(t, psn, part)?;
                    }
                    let (seen, ack) = t.expect_answer(PDS_GTD_001, &session.pdc, psn)?;
                    t.check(PDS_GTD_001, "the response", first.response, seen.response());
                    t.check(SES_GTD_002, "req of the ACK", AckRequest::REQ_CLEAR, ack.req());
                }
            }
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
            send_unexpected(t, &mut session, &parts[..2])?;
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
            let answers = send_unexpected(t, &mut session, core::slice::from_ref(&part))?;
            let psn = answers[0].0;
            session.again(t, psn, &part)?;
            session.expect(t, SES_GTD_002, "the same response, list OVERFLOW", psn, |answer| {
                answer.response.is_some_and(|response| response.head().list() == List::UET_OVERFLOW)
            })?;
            Ok(())
        }),
    rule("send/no-room", "An unexpected send gets NO_MATCH if the device has no room for it")
        .checks(&[SES_MATCH_004, SES_GTD_001])
        .needs(&[SEND, RECEIVE, PARAMETERS])
        .over(&[&FORM, &MODE, &START])
        .run(|t| {
            t.configure("max_unexpected", 0)?;
            t.open_index()?;
            let part = Message::send(&bytes(20)).in_form(t.value(&FORM))?;
            let mut session = t.session();
            let psn = session.ask(t, &part)?;
            let answer = session.refused_as(t, SES_MATCH_004, psn, &[ReturnCode::NO_MATCH])?;
            t.check(SES_GTD_001, "req of the ACK", AckRequest::REQ_CLEAR, answer.request);
            Ok(())
        }),
    rule("send/room-reuse", "A receive that takes an unexpected send frees its room for the next")
        .checks(&[SES_MATCH_003, SES_MATCH_006])
        .needs(&[SEND, RECEIVE, PARAMETERS])
        .run(|t| {
            // With room for two sends of 40 bytes, the device keeps twelve, one after the other.
            for (limit, most) in [("max_unexpected", 2), ("max_unexpected_bytes", 80)] {
                t.configure(limit, most)?;
                t.open_index()?;
                let mut session = t.session();
                for n in 1..=12 {
                    let data = [n as u8; 40];
                    let psn = session.ask(t, &Message::send(&data).named(n).whole()?)?;
                    let answer = session.answer(t, psn)?;
                    if n == 1 {
                        require_kept(&answer)?;
                    }
                    t.check(SES_MATCH_003, "return_code", ReturnCode::OK, answer.code());
                    let posted = t.posted(room(40))?;
                    t.expect_received(SES_MATCH_006, &posted, &data)?;
                }
            }
            Ok(())
        }),
    rule("send/posting-order", "A receive gets the bytes and header data of its send, whenever it is posted")
        .checks(&[SES_MATCH_006, SES_CUT_005])
        .over(&[&POSTED, &LENGTH, &ARRIVAL, &HEADER, &MODE])
        .run(|t| {
            let (mtu, when) = (t.mtu(), t.value(&POSTED));
            let data = bytes(t.value(&LENGTH)(mtu));
            t.open_index()?;
            let mut session = t.session();
            let header_data = 0xfeed_0000_0000_0bee;
            let message = Message { header_data: Some(header_data), ..Message::send(&data) };
            let mut parts = message.parts(mtu)?;
            if t.value(&HEADER) && parts.len() == 1 {
                parts = vec![message.medium()?];
            }
            let mut order: Vec<usize> = (0..parts.len()).collect();
            if t.value(&ARRIVAL) && !session.pdc.rod {
                order.reverse();
            }
            let capacity = data.len() as u64 + 16;
            let before = match when {
                PostedAt::Before => Some(t.posted(room(capacity))?),
                _ => None,
            };
            let mut during = None;
            for (n, k) in order.iter().enumerate() {
                let psn = session.pdc.psn(*k as u32);
                if n > 0 {
                    session.ask_late(t, psn, &parts[*k])?;
                    continue;
                }
                session.ask_in_order(t, &parts, &[*k])?;
                if when != PostedAt::Before {
                    require_kept(&session.answer(t, psn)?)?;
                }
                if when == PostedAt::During {
                    during = Some(t.posted(room(capacity))?);
                }
            }
            let posted = match before.or(during) {
                Some(posted) => posted,
                None => t.posted(room(capacity))?,
            };
            let completion = t.expect_received(SES_MATCH_006, &posted, &data)?;
            t.check(SES_CUT_005, "header data", Some(Hex64(header_data)), completion.header_data);
            Ok(())
        }),
    rule("send/unexpected-several", "Each late receive gets one unexpected send with its own header data")
        .checks(&[SES_MATCH_006, SES_CUT_005])
        .over(&[&LENGTH, &MODE])
        .run(|t| {
            // The order of the sends is open. Their header data identifies them.
            let mtu = t.mtu();
            let length = t.value(&LENGTH)(mtu);
            t.open_index()?;
            let mut session = t.session();
            let data = |n: u8| -> Vec<u8> { vec![0x11 * n; length] };
            for n in 1..=3 {
                let message = Message { header_data: Some(n.into()), ..Message::send(&data(n)) };
                send_unexpected(t, &mut session, &message.named(n.into()).parts(mtu)?)?;
            }
            let mut received = Vec::new();
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
                received.push(header);
            }
            received.sort_unstable();
            t.check(SES_MATCH_006, "header data of the three receives", vec![1, 2, 3], received);
            Ok(())
        }),
];

fn bytes(length: usize) -> Vec<u8> {
    pattern(5).take(length).collect()
}

/// Returns a send with the opcode of this instance.
fn message(t: &Test<'_>, data: &[u8]) -> Message {
    if t.value(&TAGGED) { Message::tagged(0x70, data) } else { Message::send(data) }
}

/// Sends packets without a receive. Skips the rule if the device keeps no unexpected sends.
fn send_unexpected(
    t: &mut Test<'_>,
    session: &mut RequestSession,
    parts: &[Part],
) -> Result<Vec<(Psn, Answer)>, Stop> {
    let mut answers = Vec::new();
    for psn in session.ask_all(t, parts)? {
        let answer = session.answer(t, psn)?;
        require_kept(&answer)?;
        answers.push((psn, answer));
    }
    Ok(answers)
}
