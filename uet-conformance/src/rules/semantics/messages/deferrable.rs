//! Deferrable sends: a target without a buffer puts them off, and says when it wants them (section 3.4.2).

use crate::prelude::*;
use crate::receives::PostedReceive;
use crate::serve::SesFields;
use crate::target::RxRequest;
use crate::{Answer, Part, RequestSession, Show};
use uet_control::{Fill, Hex};
use uet_wire::registry::{List, ResponseOpcode};

/// The fault of a second attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WrongAttempt {
    Address,
    Token,
    HighToken,
}

const STRANGER: Axis<WrongAttempt> = axis("stranger").values(&[
    ("address", WrongAttempt::Address),
    ("token", WrongAttempt::Token),
    ("high-bit-of-token", WrongAttempt::HighToken),
]);

/// The answer to DEFERRABLE_RTR of an initiator that no longer has the message.
const GONE: Axis<ReturnCode> = axis("answer").values(&[
    ("no-match", ReturnCode::NO_MATCH),
    ("cancelled", ReturnCode::CANCELLED),
    ("initiator-error", ReturnCode::INITIATOR_ERR),
]);

/// Begins a rule with the usual axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("deferrable/expected", "A deferrable send fills a posted buffer at once")
        .checks(&[SES_MATCH_006, SES_DONE_002])
        .needs(&[DEFERRABLE_SEND, RECEIVE])
        .run(|t| {
            let data = bytes(100);
            let posted = t.posted(room(128))?;
            let mut session = t.session();
            let psn = session.ask(t, &deferrable(77, &data).whole()?)?;
            session.accepted(t, SES_DONE_002, psn)?;
            t.expect_received(SES_MATCH_006, &posted, &data)?;
            Ok(())
        }),
    rule(
        "deferrable/deferral",
        "A deferrable send without a buffer gets UET_RESPONSE, OK, modified_length 0",
    )
    .checks(&[SES_DEFER_002])
    .needs(&[DEFERRABLE_SEND, RECEIVE])
    .run(|t| {
        t.open_index()?;
        let mut session = t.session();
        sent_too_early(t, &mut session, &deferrable(77, &bytes(100)).whole()?)
    }),
    rule("deferrable/rtr", "When a buffer is posted, the target sends DEFERRABLE_RTR with both tokens")
        .checks(&[SES_DEFER_003, SES_DEFER_002])
        .needs(&[DEFERRABLE_SEND, RECEIVE])
        .run(|t| {
            let mut session = t.session();
            let (target, posted) = asked_for(t, &mut session)?;
            t.at_least(SES_DEFER_003, "the token of the target", 1, target);
            t.expect_waiting(SES_DEFER_003, &posted)
        }),
    rule("deferrable/second-attempt", "The second attempt with both tokens fills the buffer reserved for it")
        .checks(&[SES_DEFER_005, SES_DEFER_002, SES_DEFER_003])
        .needs(&[DEFERRABLE_SEND, RECEIVE])
        .run(|t| {
            let mut session = t.session();
            let (target, posted) = asked_for(t, &mut session)?;
            let again = Message { tokens: Some((77, target)), id: 2, ..deferrable(77, &bytes(100)) };
            let psn = session.ask(t, &again.whole()?)?;
            session.accepted(t, SES_DEFER_005, psn)?;
            t.expect_received(SES_DEFER_005, &posted, &bytes(100))?;
            Ok(())
        }),
    rule("deferrable/reserved-buffer", "The buffer reserved for a deferred send goes to no other send")
        .checks(&[SES_DEFER_005, SES_DEFER_002, SES_DEFER_003])
        .needs(&[DEFERRABLE_SEND, SEND, RECEIVE])
        .run(|t| {
            let mut session = t.session();
            let (target, posted) = asked_for(t, &mut session)?;
            let other = session.ask(t, &Message::send(&[0x11; 20]).named(2).whole()?)?;
            session.answer(t, other)?;
            t.expect_waiting(SES_DEFER_005, &posted)?;
            let again = Message { tokens: Some((77, target)), id: 3, ..deferrable(77, &bytes(100)) };
            session.ask(t, &again.whole()?)?;
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
            sent_too_early(t, &mut session, &one.whole()?)?;
            sent_too_early(t, &mut session, &two.whole()?)?;
            for (message, token, bits) in [(two, 78, 2), (one, 77, 1)] {
                let posted = t.posted(tagged_room(64, bits))?;
                let (_, target) = ready(t, token)?;
                let again = Message { tokens: Some((token, target)), id: message.id + 10, ..message };
                session.ask(t, &again.whole()?)?;
                t.expect_received(SES_DEFER_005, &posted, &again.data)?;
            }
            Ok(())
        }),
    rule("deferrable/send-gone", "A receive takes another send if its deferred send no longer exists")
        .checks(&[SES_DEFER_003, SES_DEFER_002])
        .needs(&[DEFERRABLE_SEND, SEND, RECEIVE])
        .over(&[&GONE, &MODE])
        .run(|t| {
            t.open_index()?;
            let mut session = t.session();
            sent_too_early(t, &mut session, &deferrable(77, &bytes(100)).whole()?)?;
            let posted = t.posted(room(128))?;
            let (seen, _) = expect_ready(t, 77)?;
            Target::opened_by(t, seen)?.respond_error(t, 0, t.value(&GONE))?;
            t.settle()?;
            let other = session.ask(t, &Message::send(&bytes(60)).named(2).whole()?)?;
            session.accepted(t, SES_DEFER_003, other)?;
            t.expect_received(SES_DEFER_003, &posted, &bytes(60))?;
            Ok(())
        }),
    rule("deferrable/room-reuse", "Each deferred send that completes makes room for another to be deferred")
        .checks(&[SES_DEFER_002, SES_DEFER_003, SES_DEFER_005])
        .needs(&[DEFERRABLE_SEND, RECEIVE, PARAMETERS])
        .run(|t| {
            // A device that lets be said how many sends it may put off puts the first of them off.
            t.configure("max_deferred", 2)?;
            t.open_index()?;
            let mut session = t.session();
            for n in 1..=6 {
                let data = bytes(60 + n);
                let token = 76 + n as u32;
                let first = deferrable(token, &data).named(n as u16);
                let psn = session.ask(t, &first.whole()?)?;
                session.expect(t, SES_DEFER_002, "UET_RESPONSE, OK, modified_length 0", psn, puts_off)?;
                let posted = t.posted(room(128))?;
                let (_, target) = ready(t, token)?;
                let again = Message { tokens: Some((token, target)), id: first.id + 100, ..first };
                session.ask(t, &again.whole()?)?;
                t.expect_received(SES_DEFER_005, &posted, &data)?;
            }
            Ok(())
        }),
    rule("deferrable/first-attempt", "The device's first attempt carries 0 as the token of the target")
        .checks(&[SES_DEFER_001])
        .needs(&[DEFERRABLE_SEND])
        .run(|t| {
            let peer = t.peer(0)?;
            let (_, target, _) = sent_by_device(t, peer)?;
            let said = target.said(0)?;
            t.check(SES_DEFER_001, "opcode", Opcode::UET_DEFERRABLE_SEND, said.opcode());
            t.check(SES_DEFER_001, "the target's token", Some(0), said.tokens.map(|(_, target)| target));
            Ok(())
        }),
    rule("deferrable/accepted", "A deferrable send of the device that is not deferred completes")
        .checks(&[SES_DONE_001])
        .needs(&[DEFERRABLE_SEND])
        .run(|t| {
            let peer = t.peer(0)?;
            let (posted, target, _) = sent_by_device(t, peer)?;
            target.ack(t, 0)?;
            t.ends_with(SES_DONE_001, posted, (Status::Ok, 100))?;
            Ok(())
        }),
    rule("deferrable/no-rtr", "A deferred send of the device neither completes nor restarts without an RTR")
        .checks(&[SES_DEFER_002, SES_DEFER_004])
        .needs(&[DEFERRABLE_SEND])
        .run(|t| {
            let peer = t.peer(0)?;
            let (posted, target, _) = sent_by_device(t, peer)?;
            defer(t, &target, 0)?;
            t.expect_none(SES_DEFER_004, "no second attempt", t.later(), sends)?;
            t.is_open(SES_DEFER_002, posted)?;
            t.expect_action(peer)
        }),
    rule("deferrable/restart", "After DEFERRABLE_RTR, the device resends the message with both tokens")
        .checks(&[SES_DEFER_004, SES_DONE_001])
        .needs(&[DEFERRABLE_SEND])
        .run(|t| {
            let peer = t.peer(0)?;
            let (posted, target, own) = sent_by_device(t, peer)?;
            let first = target.said(0)?;
            defer(t, &target, 0)?;
            want(t, (own, 0x99))?;
            let said = second(t, own, &target)?;
            t.holds(
                SES_DEFER_004,
                "the second attempt has another message_id",
                said.message_id != first.message_id,
                format!("{} and {}", first.message_id.show(), said.message_id.show()),
            );
            t.check(SES_DEFER_004, "the same length", first.request_length, said.request_length);
            t.ends_with(SES_DONE_001, posted, (Status::Ok, 100))?;
            Ok(())
        }),
    rule("deferrable/duplicate-rtr", "The device's send completes despite a duplicate DEFERRABLE_RTR")
        .checks(&[SES_DEFER_004, SES_DONE_001])
        .needs(&[DEFERRABLE_SEND])
        .run(|t| {
            let peer = t.peer(0)?;
            let (posted, target, own) = sent_by_device(t, peer)?;
            defer(t, &target, 0)?;
            want(t, (own, 0x99))?;
            let (_, pdc, psn) = attempt(t, own, &target)?;
            want(t, (own, 0x99))?;
            t.settle()?;
            t.send(&pdc, &pdc.ack(psn).build()?)?;
            t.ends_with(SES_DONE_001, posted, (Status::Ok, 100))?;
            Ok(())
        }),
    rule("deferrable/context-closed", "A deferred send of the device survives the close of its context")
        .checks(&[SES_DEFER_004, SES_DONE_001])
        .needs(&[DEFERRABLE_SEND, CLOSE])
        .run(|t| {
            let peer = t.peer(0)?;
            let (posted, target, own) = sent_by_device(t, peer)?;
            defer(t, &target, 0)?;
            target.end(t, peer)?;
            t.is_open(SES_DEFER_004, posted)?;
            want(t, (own, 0x99))?;
            second(t, own, &target)?;
            t.ends_with(SES_DONE_001, posted, (Status::Ok, 100))?;
            Ok(())
        }),
    rule("deferrable/rtr-selects", "DEFERRABLE_RTR restarts the send that it names, and no other")
        .checks(&[SES_DEFER_004, SES_DEFER_001])
        .needs(&[DEFERRABLE_SEND])
        .run(|t| {
            let peer = t.peer(0)?;
            let (first, mut target, one) = sent_by_device(t, peer)?;
            defer(t, &target, 0)?;
            let later = t.post(post(PostKind::DeferrableSend, peer, 40))?;
            target.collect(t, 2)?;
            let two =
                target.packet(1).and_then(RxRequest::said)?.tokens.map(|(own, _)| own).unwrap_or_default();
            defer(t, &target, 1)?;
            t.holds(SES_DEFER_001, "two sends have two tokens", one != two, format!("{one:#x} and {two:#x}"));
            want(t, (two, 0x99))?;
            let said = second(t, two, &target)?;
            t.check(SES_DEFER_004, "request_length", 40, said.request_length);
            t.ends_with(SES_DEFER_004, later, (Status::Ok, 40))?;
            t.is_open(SES_DEFER_004, first)
        }),
    rule("deferrable/unknown-token", "The device ignores a DEFERRABLE_RTR with an unknown token")
        .checks(&[SES_DEFER_004])
        .needs(&[DEFERRABLE_SEND])
        .run(|t| {
            let peer = t.peer(0)?;
            let (posted, target, own) = sent_by_device(t, peer)?;
            defer(t, &target, 0)?;
            want(t, (own ^ 0x5555_0000, 0x99))?;
            t.expect_none(SES_DEFER_004, "no second attempt", t.later(), sends)?;
            t.is_open(SES_DEFER_004, posted)?;
            want(t, (own, 0x99))?;
            second(t, own, &target)?;
            Ok(())
        }),
    rule("deferrable/wrong-second-attempt", "A wrong second attempt does not fill the reserved buffer")
        .checks(&[SES_DEFER_005, SES_DEFER_002, SES_DEFER_003])
        .needs(&[DEFERRABLE_SEND, RECEIVE, TWO_ADDRESSES])
        .over(&[&STRANGER, &MODE])
        .run(|t| {
            let stranger = t.value(&STRANGER);
            let mut session = t.session();
            let (target, posted) = asked_for(t, &mut session)?;
            let attempt = |id, target, fill: &[u8]| Message {
                tokens: Some((77, target)),
                ..deferrable(77, fill).named(id)
            };
            let wrong = [0x11; 100];
            match stranger {
                WrongAttempt::Address => {
                    let mut other = RequestSession::new(t.initiate_from(1)?);
                    let psn = other.ask(t, &attempt(2, target, &wrong).whole()?)?;
                    other.answer(t, psn)?;
                }
                WrongAttempt::Token | WrongAttempt::HighToken => {
                    let bit = if stranger == WrongAttempt::Token { 1 << 8 } else { 1 << 31 };
                    let psn = session.ask(t, &attempt(2, target ^ bit, &wrong).whole()?)?;
                    session.answer(t, psn)?;
                }
            }
            t.expect_waiting(SES_DEFER_005, &posted)?;
            t.check_memory(SES_DEFER_005, &posted.buffer, 0, &posted.before)?;
            session.ask(t, &attempt(3, target, &bytes(100)).whole()?)?;
            t.expect_received(SES_DEFER_005, &posted, &bytes(100)).map(drop)
        }),
    rule("deferrable/spoofed-rtr", "The device ignores a DEFERRABLE_RTR from a wrong address")
        .checks(&[SES_DEFER_004])
        .needs(&[DEFERRABLE_SEND, TWO_ADDRESSES])
        .over(&[&MODE])
        .run(|t| {
            let peer = t.peer(0)?;
            let (posted, target, own) = sent_by_device(t, peer)?;
            defer(t, &target, 0)?;
            let stranger = RequestSession::new(t.initiate_from(1)?);
            want_by(t, stranger, (own, 0x98))?;
            t.expect_none(SES_DEFER_004, "no second attempt", t.later(), sends)?;
            t.is_open(SES_DEFER_004, posted)?;
            want(t, (own, 0x99))?;
            second(t, own, &target)?;
            t.ends_with(SES_DEFER_004, posted, (Status::Ok, 100)).map(drop)
        }),
];

fn bytes(length: usize) -> Vec<u8> {
    pattern(13).take(length).collect()
}

fn deferrable(token: u32, data: &[u8]) -> Message {
    Message { tokens: Some((token, 0)), ..Message::new(Opcode::UET_DEFERRABLE_SEND).data(data) }
}

/// True if an answer puts a send off.
fn puts_off(answer: &Answer) -> bool {
    let told = answer.response.map(|response| {
        let (opcode, length) = (response.head().opcode(), response.modified_length());
        opcode == ResponseOpcode::UET_RESPONSE && length == 0 && response.head().list() == List::UET_EXPECTED
    });
    answer.code() == ReturnCode::OK && told == Some(true)
}

/// Sends what nobody waits for. A device that keeps it, or has no room, is not tested further.
fn sent_too_early(t: &mut Test<'_>, session: &mut RequestSession, part: &Part) -> Outcome {
    let psn = session.ask(t, part)?;
    let answer = session.answer(t, psn)?;
    let kept = answer.response.is_some_and(|response| response.head().list() == List::UET_OVERFLOW);
    if kept || answer.code() == ReturnCode::NO_MATCH {
        return skip("the device does not put sends off");
    }
    let put_off = puts_off(&answer);
    let told = answer.response.show();
    t.holds(SES_DEFER_002, "the response is UET_RESPONSE with OK and modified_length 0", put_off, told);
    if put_off { Ok(()) } else { Err(Stop::Failed) }
}

/// The tokens of a DEFERRABLE_RTR, the initiator's and the target's, in the order of the device, or back from
/// it. Sources disagree about the order.
fn in_order(sender_first: bool, (one, other): (u32, u32)) -> (u32, u32) {
    if sender_first { (other, one) } else { (one, other) }
}

fn sender_first(t: &Test<'_>) -> bool {
    t.word("ready_tokens") == Some("sender_first")
}

/// The device's DEFERRABLE_RTR for the send with this token, which is acknowledged: what it says.
fn ready(t: &mut Test<'_>, token: u32) -> Result<(u32, u32), Stop> {
    let (seen, tokens) = expect_ready(t, token)?;
    let request = seen.request();
    if let Some(request) = request.filter(|request| request.syn()) {
        let pdc = t.accept(&seen)?;
        t.send(&pdc, &pdc.ack(request.psn()).build()?)?;
    }
    Ok(tokens)
}

/// The device's DEFERRABLE_RTR for the send with this token, without an answer, and its tokens.
fn expect_ready(t: &mut Test<'_>, token: u32) -> Result<(RxPacket, (u32, u32)), Stop> {
    let turned = sender_first(t);
    let says = |seen: &RxPacket| {
        let said =
            crate::serve::said(&seen.uet()).filter(|said| said.opcode() == Opcode::UET_DEFERRABLE_RTR)?;
        let tokens = in_order(turned, said.tokens?);
        (tokens.0 == token).then_some(tokens)
    };
    t.expect(SES_DEFER_003, "DEFERRABLE_RTR with our token", t.later(), says)
}

/// A send that was put off and is wanted, the token of the device, and the receive.
fn asked_for(t: &mut Test<'_>, session: &mut RequestSession) -> Result<(u32, PostedReceive), Stop> {
    t.open_index()?;
    sent_too_early(t, session, &deferrable(77, &bytes(100)).whole()?)?;
    let posted = t.posted(room(128))?;
    let (_, target) = ready(t, 77)?;
    Ok((target, posted))
}

/// A deferrable send of the device, its context, and its token.
fn sent_by_device(t: &mut Test<'_>, peer: u64) -> Result<(Operated, Target, u32), Stop> {
    let fill = Some(Fill::Hex(Hex(bytes(100))));
    let posted = t.post(Post { fill, ..post(PostKind::DeferrableSend, peer, 100) })?;
    let target = Target::accept(t)?;
    let tokens = target.said(0)?.tokens;
    let (own, _) = tokens.ok_or_else(|| Stop::Inconclusive("a deferrable send without tokens".into()))?;
    Ok((posted, target, own))
}

fn defer(t: &mut Test<'_>, target: &Target, n: u32) -> Outcome {
    let response = target.response(n, ReturnCode::OK, 0)?;
    target.respond(t, n, response)?;
    t.settle()
}

fn sends(seen: &RxPacket) -> Option<SesFields> {
    crate::serve::said(&seen.uet()).filter(|said| said.opcode() == Opcode::UET_DEFERRABLE_SEND)
}

/// Tells the device that its send is wanted.
fn want(t: &mut Test<'_>, tokens: (u32, u32)) -> Outcome {
    let session = t.session();
    want_by(t, session, tokens)
}

/// Does so on a context of any address.
fn want_by(t: &mut Test<'_>, mut session: RequestSession, tokens: (u32, u32)) -> Outcome {
    let tokens = Some(in_order(sender_first(t), tokens));
    let ready = Message { tokens, ..Message::new(Opcode::UET_DEFERRABLE_RTR) };
    session.ask(t, &Message { process: 0, index: 0, ..ready }.whole()?)?;
    Ok(())
}

/// Expects the second attempt with this token of the device, and answers it well.
fn second(t: &mut Test<'_>, own: u32, known: &Target) -> Result<SesFields, Stop> {
    let (said, pdc, psn) = attempt(t, own, known)?;
    t.send(&pdc, &pdc.ack(psn).build()?)?;
    Ok(said)
}

/// Expects the second attempt with this token of the device: on the context that is known or on a new one.
fn attempt(t: &mut Test<'_>, own: u32, known: &Target) -> Result<(SesFields, Pdc, Psn), Stop> {
    let (seen, said) = t.expect(SES_DEFER_004, "the message again, with both tokens", t.later(), |seen| {
        let said = sends(seen)?;
        (said.tokens? == (own, 0x99)).then_some(said)
    })?;
    let request = seen.request().ok_or_else(|| Stop::Inconclusive("not a request".into()))?;
    let pdc = if request.syn() { t.accept(&seen)? } else { known.pdc.clone() };
    Ok((said, pdc, request.psn()))
}
