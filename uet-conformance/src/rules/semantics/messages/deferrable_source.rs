//! Deferrable sends of the device: it resends a deferred message when the target asks for it (section 3.4.2).

use super::steps::{in_order, sender_first};
use crate::prelude::*;
use crate::serve::SesFields;
use crate::target::RxRequest;
use crate::{RequestSession, Show};
use uet_control::{Fill, Hex};

/// Begins a rule with the usual axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
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
