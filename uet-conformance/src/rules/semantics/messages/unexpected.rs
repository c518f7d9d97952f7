//! Unexpected sends: the device keeps a send that finds no receive until one is posted (sections 3.4.1,
//! 3.4.3.3).

use super::steps::require_kept;
use crate::prelude::*;
use crate::rules::steps::HEADER;
use crate::{Answer, Part, RequestSession};
use uet_wire::registry::List;

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

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[SEND, RECEIVE]).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
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
