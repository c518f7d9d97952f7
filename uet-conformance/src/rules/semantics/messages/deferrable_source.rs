//! Deferrable sends of the device: it resends a deferred message when the target asks for it (section 3.4.2).

use super::steps::{sender_first, token_order};
use crate::prelude::*;
use crate::serve::SesFields;
use crate::target::RxRequest;
use crate::{RequestSession, Show};
use uet_control::{Fill, Hex};

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[DEFERRABLE_SEND]).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("deferrable/first-attempt", "The device's first attempt carries 0 as the token of the target")
        .checks(&[SES_DEFER_001])
        .run(|t| {
            let peer = t.peer(0)?;
            let (_, target, _) = deferrable_send(t, peer)?;
            let fields = target.said(0)?;
            t.check(SES_DEFER_001, "opcode", Opcode::UET_DEFERRABLE_SEND, fields.opcode());
            t.check(SES_DEFER_001, "the target's token", Some(0), fields.tokens.map(|(_, target)| target));
            Ok(())
        }),
    rule("deferrable/accepted", "A deferrable send of the device that is not deferred completes")
        .checks(&[SES_DONE_001])
        .run(|t| {
            let peer = t.peer(0)?;
            let (posted, target, _) = deferrable_send(t, peer)?;
            target.ack(t, 0)?;
            t.ends_with(SES_DONE_001, posted, (Status::Ok, 100))?;
            Ok(())
        }),
    rule("deferrable/no-rtr", "A deferred send of the device neither completes nor restarts without an RTR")
        .checks(&[SES_DEFER_002, SES_DEFER_004])
        .run(|t| {
            let peer = t.peer(0)?;
            let (posted, target, _) = deferrable_send(t, peer)?;
            defer(t, &target, 0)?;
            t.expect_none(SES_DEFER_004, "no second attempt", t.later(), deferrable_fields)?;
            t.is_open(SES_DEFER_002, posted)?;
            t.expect_action(peer)
        }),
    rule("deferrable/restart", "After DEFERRABLE_RTR, the device resends the message with both tokens")
        .checks(&[SES_DEFER_004, SES_DONE_001, SES_RESP_001])
        .run(|t| {
            let peer = t.peer(0)?;
            let (posted, target, own) = deferrable_send(t, peer)?;
            let first = target.said(0)?;
            defer(t, &target, 0)?;
            send_answered_rtr(t, (own, 0x99))?;
            let fields = expect_restart(t, own, &target)?;
            t.holds(
                SES_DEFER_004,
                "the second attempt has another message_id",
                fields.message_id != first.message_id,
                format!("{} and {}", first.message_id.show(), fields.message_id.show()),
            );
            t.check(SES_DEFER_004, "the same length", first.request_length, fields.request_length);
            t.ends_with(SES_DONE_001, posted, (Status::Ok, 100))?;
            Ok(())
        }),
    rule("deferrable/duplicate-rtr", "The device's send completes despite a duplicate DEFERRABLE_RTR")
        .checks(&[SES_DEFER_004, SES_DONE_001])
        .run(|t| {
            let peer = t.peer(0)?;
            let (posted, target, own) = deferrable_send(t, peer)?;
            defer(t, &target, 0)?;
            send_rtr(t, (own, 0x99))?;
            let (_, pdc, psn) = expect_second_attempt(t, own, &target)?;
            send_rtr(t, (own, 0x99))?;
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
            let (posted, target, own) = deferrable_send(t, peer)?;
            defer(t, &target, 0)?;
            target.end(t, peer)?;
            t.is_open(SES_DEFER_004, posted)?;
            send_rtr(t, (own, 0x99))?;
            expect_restart(t, own, &target)?;
            t.ends_with(SES_DONE_001, posted, (Status::Ok, 100))?;
            Ok(())
        }),
    rule("deferrable/rtr-selects", "DEFERRABLE_RTR restarts the send that it names, and no other")
        .checks(&[SES_DEFER_004, SES_DEFER_001])
        .run(|t| {
            let peer = t.peer(0)?;
            let (first, mut target, one) = deferrable_send(t, peer)?;
            defer(t, &target, 0)?;
            let later = t.post(post(PostKind::DeferrableSend, peer, 40))?;
            target.collect(t, 2)?;
            let two =
                target.packet(1).and_then(RxRequest::said)?.tokens.map(|(own, _)| own).unwrap_or_default();
            defer(t, &target, 1)?;
            t.holds(SES_DEFER_001, "two sends have two tokens", one != two, format!("{one:#x} and {two:#x}"));
            send_rtr(t, (two, 0x99))?;
            let fields = expect_restart(t, two, &target)?;
            t.check(SES_DEFER_004, "request_length", 40, fields.request_length);
            t.ends_with(SES_DEFER_004, later, (Status::Ok, 40))?;
            t.is_open(SES_DEFER_004, first)
        }),
    rule("deferrable/unknown-token", "A DEFERRABLE_RTR with an unknown token gets an answer and no message")
        .checks(&[SES_DEFER_004, SES_RESP_001])
        .run(|t| {
            let peer = t.peer(0)?;
            let (posted, target, own) = deferrable_send(t, peer)?;
            defer(t, &target, 0)?;
            send_answered_rtr(t, (own ^ 0x5555_0000, 0x99))?;
            t.expect_none(SES_DEFER_004, "no second attempt", t.later(), deferrable_fields)?;
            t.is_open(SES_DEFER_004, posted)?;
            send_rtr(t, (own, 0x99))?;
            expect_restart(t, own, &target)?;
            Ok(())
        }),
    rule("deferrable/spoofed-rtr", "The device ignores a DEFERRABLE_RTR from a wrong address")
        .checks(&[SES_DEFER_004])
        .needs(&[DEFERRABLE_SEND, TWO_ADDRESSES])
        .over(&[&MODE])
        .run(|t| {
            let peer = t.peer(0)?;
            let (posted, target, own) = deferrable_send(t, peer)?;
            defer(t, &target, 0)?;
            let mut spoofer = RequestSession::new(t.initiate_from(1)?);
            send_rtr_on(t, &mut spoofer, (own, 0x98))?;
            t.expect_none(SES_DEFER_004, "no second attempt", t.later(), deferrable_fields)?;
            t.is_open(SES_DEFER_004, posted)?;
            send_rtr(t, (own, 0x99))?;
            expect_restart(t, own, &target)?;
            t.ends_with(SES_DEFER_004, posted, (Status::Ok, 100)).map(drop)
        }),
];

fn bytes(length: usize) -> Vec<u8> {
    pattern(13).take(length).collect()
}

/// Has the device post a deferrable send. Returns it, its context and its token.
fn deferrable_send(t: &mut Test<'_>, peer: u64) -> Result<(Operated, Target, u32), Stop> {
    let fill = Some(Fill::Hex(Hex(bytes(100))));
    let posted = t.post(Post { fill, ..post(PostKind::DeferrableSend, peer, 100) })?;
    let target = Target::accept(t)?;
    let tokens = target.said(0)?.tokens;
    let (own, _) = tokens.ok_or_else(|| Stop::Inconclusive("a deferrable send without tokens".into()))?;
    Ok((posted, target, own))
}

/// Defers packet `n` of the device.
fn defer(t: &mut Test<'_>, target: &Target, n: u32) -> Outcome {
    let response = target.response(n, ReturnCode::OK, 0)?;
    target.respond(t, n, response)?;
    t.settle()
}

/// Returns the fields of a deferrable send.
fn deferrable_fields(seen: &RxPacket) -> Option<SesFields> {
    crate::serve::said(&seen.uet()).filter(|fields| fields.opcode() == Opcode::UET_DEFERRABLE_SEND)
}

/// Sends a DEFERRABLE_RTR with these tokens, on a new context.
fn send_rtr(t: &mut Test<'_>, tokens: (u32, u32)) -> Outcome {
    let mut session = t.session();
    send_rtr_on(t, &mut session, tokens).map(drop)
}

/// Sends a DEFERRABLE_RTR with these tokens, on a new context, and expects a response to it.
fn send_answered_rtr(t: &mut Test<'_>, tokens: (u32, u32)) -> Outcome {
    let mut session = t.session();
    let psn = send_rtr_on(t, &mut session, tokens)?;
    session.expect(t, SES_RESP_001, "a response to DEFERRABLE_RTR", psn, |_| true).map(drop)
}

/// Sends a DEFERRABLE_RTR with these tokens on this context.
fn send_rtr_on(t: &mut Test<'_>, session: &mut RequestSession, tokens: (u32, u32)) -> Result<Psn, Stop> {
    let tokens = Some(token_order(sender_first(t), tokens));
    let ready = Message { tokens, ..Message::new(Opcode::UET_DEFERRABLE_RTR) };
    session.ask(t, &Message { process: 0, index: 0, ..ready }.whole()?)
}

/// Expects and acknowledges the second attempt with this token of the device.
fn expect_restart(t: &mut Test<'_>, own: u32, first_context: &Target) -> Result<SesFields, Stop> {
    let (fields, pdc, psn) = expect_second_attempt(t, own, first_context)?;
    t.send(&pdc, &pdc.ack(psn).build()?)?;
    Ok(fields)
}

/// Expects the second attempt with this token of the device, on `first_context` or on a new one.
fn expect_second_attempt(
    t: &mut Test<'_>,
    own: u32,
    first_context: &Target,
) -> Result<(SesFields, Pdc, Psn), Stop> {
    let (seen, fields) =
        t.expect(SES_DEFER_004, "the second attempt with both tokens", t.later(), |seen| {
            let fields = deferrable_fields(seen)?;
            (fields.tokens? == (own, 0x99)).then_some(fields)
        })?;
    let request = seen.request().ok_or_else(|| Stop::Inconclusive("not a request".into()))?;
    let pdc = if request.syn() { t.accept(&seen)? } else { first_context.pdc.clone() };
    Ok((fields, pdc, request.psn()))
}
