//! Deferrable sends to the device: without a buffer it defers a send, and later asks for it with
//! DEFERRABLE_RTR (section 3.4.2).

use super::steps::{sender_first, token_order};
use crate::prelude::*;
use crate::receives::PostedReceive;
use crate::{Answer, Part, RequestSession, Show};
use uet_wire::registry::{List, ResponseOpcode};

/// The error in a second attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WrongAttempt {
    Address,
    Token,
    HighTokenBit,
}

const WRONG: Axis<WrongAttempt> = axis("wrong").values(&[
    ("address", WrongAttempt::Address),
    ("token", WrongAttempt::Token),
    ("high-bit-of-token", WrongAttempt::HighTokenBit),
]);

/// The reply to DEFERRABLE_RTR of an initiator that no longer has the message.
const GONE_CODE: Axis<ReturnCode> = axis("code").values(&[
    ("no-match", ReturnCode::NO_MATCH),
    ("cancelled", ReturnCode::CANCELLED),
    ("initiator-error", ReturnCode::INITIATOR_ERR),
]);

const LENGTH: Axis<usize> = axis("length").values(&[("100", 100), ("0", 0)]);

/// Begins a rule with the usual axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("deferrable/expected", "A deferrable send fills a posted buffer at once")
        .checks(&[SES_MATCH_006, SES_DONE_002, SES_CUT_005])
        .needs(&[SEND, RECEIVE])
        .over(&[&LENGTH, &MODE, &START])
        .run(|t| {
            let data = bytes(t.value(&LENGTH));
            let posted = t.posted(room(128))?;
            let mut session = t.session();
            let message = Message { header_data: Some(0x0bee), ..deferrable(77, &data) };
            let psn = session.ask(t, &message.whole()?)?;
            // A device that defers nothing may take it as a send.
            if !t.claims("deferrable_send") && !session.answer(t, psn)?.is_ok() {
                return t.declines("the device takes no deferrable send");
            }
            session.accepted(t, SES_DONE_002, psn)?;
            let completion = t.expect_received(SES_MATCH_006, &posted, &data)?;
            t.check(SES_CUT_005, "header data", Some(Hex64(0x0bee)), completion.header_data);
            Ok(())
        }),
    rule("deferrable/deferral", "A deferrable send without a buffer gets OK with modified_length 0")
        .checks(&[SES_DEFER_002])
        .needs(&[DEFERRABLE_SEND, RECEIVE])
        .run(|t| {
            t.open_index()?;
            let mut session = t.session();
            expect_deferral(t, &mut session, &deferrable(77, &bytes(100)).whole()?)
        }),
    rule("deferrable/rtr", "When a buffer is posted, the target sends DEFERRABLE_RTR with both tokens")
        .checks(&[SES_DEFER_003, SES_DEFER_002])
        .needs(&[DEFERRABLE_SEND, RECEIVE])
        .run(|t| {
            let mut session = t.session();
            t.open_index()?;
            expect_deferral(t, &mut session, &deferrable(77, &bytes(100)).whole()?)?;
            let posted = t.posted(room(128))?;
            let (seen, _) = expect_rtr(t, 77)?;
            let named = seen.request().and_then(|request| request.dpdcid());
            let own = named != Some(session.pdc.local);
            t.holds(SES_DEFER_003, "DEFERRABLE_RTR is on a context of the target", own, seen.uet());
            acknowledge(t, &seen)?;
            t.expect_waiting(SES_DEFER_003, &posted)
        }),
    rule("deferrable/second-attempt", "The second attempt with both tokens fills the buffer reserved for it")
        .checks(&[SES_DEFER_005, SES_DEFER_002, SES_DEFER_003])
        .needs(&[DEFERRABLE_SEND, RECEIVE])
        .run(|t| {
            let mut session = t.session();
            let (target, posted) = deferred_and_requested(t, &mut session)?;
            let attempt = Message { tokens: Some((77, target)), id: 2, ..deferrable(77, &bytes(100)) };
            let psn = session.ask(t, &attempt.whole()?)?;
            session.accepted(t, SES_DEFER_005, psn)?;
            t.expect_received(SES_DEFER_005, &posted, &bytes(100))?;
            Ok(())
        }),
    rule("deferrable/reserved-buffer", "The buffer reserved for a deferred send goes to no other send")
        .checks(&[SES_DEFER_005, SES_DEFER_002, SES_DEFER_003])
        .needs(&[DEFERRABLE_SEND, SEND, RECEIVE])
        .run(|t| {
            let mut session = t.session();
            let (target, posted) = deferred_and_requested(t, &mut session)?;
            let other = session.ask(t, &Message::send(&[0x11; 20]).named(2).whole()?)?;
            session.answer(t, other)?;
            t.expect_waiting(SES_DEFER_005, &posted)?;
            let attempt = Message { tokens: Some((77, target)), id: 3, ..deferrable(77, &bytes(100)) };
            session.ask(t, &attempt.whole()?)?;
            t.expect_received(SES_DEFER_005, &posted, &bytes(100))?;
            Ok(())
        }),
    rule("deferrable/two-deferred", "Each of two deferred sends fills the buffer reserved for it")
        .checks(&[SES_DEFER_003, SES_DEFER_005, SES_DEFER_002])
        .needs(&[DEFERRABLE_TSEND, RECEIVE])
        .run(|t| {
            t.open_index()?;
            let mut session = t.session();
            let send = |token: u32, bits: u64, fill: u8| Message {
                tokens: Some((token, 0)),
                ..Message::new(Opcode::UET_DEFERRABLE_TSEND).selector(bits).data(&[fill; 60])
            };
            let (one, two) = (send(77, 1, 0x11), send(78, 2, 0x22).named(2));
            expect_deferral(t, &mut session, &one.whole()?)?;
            expect_deferral(t, &mut session, &two.whole()?)?;
            for (message, token, bits) in [(two, 78, 2), (one, 77, 1)] {
                let posted = t.posted(tagged_room(64, bits))?;
                let target = token_of_target(t, token)?;
                let attempt = Message { tokens: Some((token, target)), id: message.id + 10, ..message };
                session.ask(t, &attempt.whole()?)?;
                t.expect_received(SES_DEFER_005, &posted, &attempt.data)?;
            }
            Ok(())
        }),
    rule("deferrable/send-gone", "A receive takes another send if its deferred send no longer exists")
        .checks(&[SES_DEFER_003, SES_DEFER_002])
        .needs(&[DEFERRABLE_SEND, SEND, RECEIVE])
        .over(&[&GONE_CODE, &MODE])
        .run(|t| {
            t.open_index()?;
            let mut session = t.session();
            expect_deferral(t, &mut session, &deferrable(77, &bytes(100)).whole()?)?;
            let posted = t.posted(room(128))?;
            let (seen, _) = expect_rtr(t, 77)?;
            Target::opened_by(t, seen)?.respond_error(t, 0, t.value(&GONE_CODE))?;
            t.settle()?;
            // A receive that ends with a failure then is as reasonable.
            if has_failed(t, &posted, Duration::ZERO)? {
                return Ok(());
            }
            let other = session.ask(t, &Message::send(&bytes(60)).named(2).whole()?)?;
            // It may also end so a moment later, before this send arrives.
            if has_failed(t, &posted, t.soon())? && !fills_receive(&session.answer(t, other)?) {
                return Ok(());
            }
            session.accepted(t, SES_DEFER_003, other)?;
            t.expect_received(SES_DEFER_003, &posted, &bytes(60))?;
            Ok(())
        }),
    rule("deferrable/room-reuse", "Each deferred send that completes makes room for another to be deferred")
        .checks(&[SES_DEFER_002, SES_DEFER_003, SES_DEFER_005])
        .needs(&[DEFERRABLE_SEND, RECEIVE, PARAMETERS])
        .run(|t| {
            // A device with this parameter defers the first of these sends.
            t.configure("max_deferred", 2)?;
            t.open_index()?;
            let mut session = t.session();
            for n in 1..=6 {
                let data = bytes(60 + n);
                let token = 76 + n as u32;
                let first = deferrable(token, &data).named(n as u16);
                let psn = session.ask(t, &first.whole()?)?;
                session.expect(t, SES_DEFER_002, "UET_RESPONSE, OK, modified_length 0", psn, is_deferral)?;
                let posted = t.posted(room(128))?;
                let target = token_of_target(t, token)?;
                let attempt = Message { tokens: Some((token, target)), id: first.id + 100, ..first };
                session.ask(t, &attempt.whole()?)?;
                t.expect_received(SES_DEFER_005, &posted, &data)?;
            }
            Ok(())
        }),
    rule("deferrable/wrong-second-attempt", "A wrong second attempt does not fill the reserved buffer")
        .checks(&[SES_DEFER_005, SES_DEFER_002, SES_DEFER_003])
        .needs(&[DEFERRABLE_SEND, RECEIVE, TWO_ADDRESSES])
        .over(&[&WRONG, &MODE])
        .run(|t| {
            let wrong_attempt = t.value(&WRONG);
            let mut session = t.session();
            let (target, posted) = deferred_and_requested(t, &mut session)?;
            let attempt = |id, target, fill: &[u8]| Message {
                tokens: Some((77, target)),
                ..deferrable(77, fill).named(id)
            };
            let wrong_data = [0x11; 100];
            match wrong_attempt {
                WrongAttempt::Address => {
                    let mut other = RequestSession::new(t.initiate_from(1)?);
                    let psn = other.ask(t, &attempt(2, target, &wrong_data).whole()?)?;
                    other.answer(t, psn)?;
                }
                WrongAttempt::Token | WrongAttempt::HighTokenBit => {
                    let bit = if wrong_attempt == WrongAttempt::Token { 1 << 8 } else { 1 << 31 };
                    let psn = session.ask(t, &attempt(2, target ^ bit, &wrong_data).whole()?)?;
                    session.answer(t, psn)?;
                }
            }
            t.expect_waiting(SES_DEFER_005, &posted)?;
            t.check_memory(SES_DEFER_005, &posted.buffer, 0, &posted.before)?;
            session.ask(t, &attempt(3, target, &bytes(100)).whole()?)?;
            t.expect_received(SES_DEFER_005, &posted, &bytes(100)).map(drop)
        }),
];

fn bytes(length: usize) -> Vec<u8> {
    pattern(13).take(length).collect()
}

/// Returns a deferrable send with this token of the initiator.
fn deferrable(token: u32, data: &[u8]) -> Message {
    Message { tokens: Some((token, 0)), ..Message::new(Opcode::UET_DEFERRABLE_SEND).data(data) }
}

/// Returns true if a reply defers a send.
fn is_deferral(answer: &Answer) -> bool {
    let defers = answer.response.map(|response| {
        let (opcode, length) = (response.head().opcode(), response.modified_length());
        opcode == ResponseOpcode::UET_RESPONSE && length == 0 && response.head().list() == List::UET_EXPECTED
    });
    answer.code() == ReturnCode::OK && defers == Some(true)
}

/// Returns true if a reply says that a receive has taken a send.
fn fills_receive(answer: &Answer) -> bool {
    let expected = answer.response.map(|response| response.head().list() == List::UET_EXPECTED);
    answer.is_ok() && expected == Some(true)
}

/// Returns true if the receive ends with a failure within this time.
fn has_failed(t: &mut Test<'_>, posted: &PostedReceive, within: Duration) -> Result<bool, Stop> {
    let ended = t.completion(posted.operation, within)?;
    Ok(ended.is_some_and(|ended| ended.status != Status::Ok))
}

/// Sends a message without a receive and expects its deferral. Skips the rule if the device keeps or refuses
/// the message.
fn expect_deferral(t: &mut Test<'_>, session: &mut RequestSession, part: &Part) -> Outcome {
    let psn = session.ask(t, part)?;
    let answer = session.answer(t, psn)?;
    let kept = answer.response.is_some_and(|response| response.head().list() == List::UET_OVERFLOW);
    if kept || answer.code() == ReturnCode::NO_MATCH {
        return skip("the device does not defer sends");
    }
    let deferred = is_deferral(&answer);
    let shown = answer.response.show();
    t.holds(SES_DEFER_002, "the response is UET_RESPONSE with OK and modified_length 0", deferred, shown);
    if deferred { Ok(()) } else { Err(Stop::Failed) }
}

/// Expects and acknowledges the DEFERRABLE_RTR for the send with this token. Returns both tokens.
fn acknowledge_rtr(t: &mut Test<'_>, token: u32) -> Result<(u32, u32), Stop> {
    let (seen, tokens) = expect_rtr(t, token)?;
    acknowledge(t, &seen)?;
    Ok(tokens)
}

/// Acknowledges a DEFERRABLE_RTR that opens a context.
fn acknowledge(t: &mut Test<'_>, seen: &RxPacket) -> Outcome {
    let Some(request) = seen.request().filter(|request| request.syn()) else { return Ok(()) };
    let pdc = t.accept(seen)?;
    t.send(&pdc, &pdc.ack(request.psn()).build()?)
}

/// Expects and acknowledges the DEFERRABLE_RTR for the send with this token. Returns the token of the target,
/// which names the buffer reserved for the send. Public sources leave open what 0 means there.
fn token_of_target(t: &mut Test<'_>, token: u32) -> Result<u32, Stop> {
    let (_, target) = acknowledge_rtr(t, token)?;
    require(target != 0, "the device sends 0 as its token in DEFERRABLE_RTR")?;
    Ok(target)
}

/// Expects the DEFERRABLE_RTR for the send with this token. Returns it and both tokens.
fn expect_rtr(t: &mut Test<'_>, token: u32) -> Result<(RxPacket, (u32, u32)), Stop> {
    let sender_first_order = sender_first(t);
    let tokens_of = |seen: &RxPacket| {
        let fields =
            crate::serve::said(&seen.uet()).filter(|fields| fields.opcode() == Opcode::UET_DEFERRABLE_RTR)?;
        let tokens = token_order(sender_first_order, fields.tokens?);
        (tokens.0 == token).then_some(tokens)
    };
    t.expect(SES_DEFER_003, "DEFERRABLE_RTR with our token", t.later(), tokens_of)
}

/// Has the device defer a send and ask for it. Returns the token of the device and the receive.
fn deferred_and_requested(
    t: &mut Test<'_>,
    session: &mut RequestSession,
) -> Result<(u32, PostedReceive), Stop> {
    t.open_index()?;
    expect_deferral(t, session, &deferrable(77, &bytes(100)).whole()?)?;
    let posted = t.posted(room(128))?;
    let target = token_of_target(t, 77)?;
    Ok((target, posted))
}
