//! Requests of the target to close a context that the device has opened: CLOSE_REQUEST, and REQ_CLOSE in an
//! ACK (section 3.5.8).

use super::steps::{
    ack_control, expect_another_context, expect_close, expect_no_close, request_close, serve_whole,
};
use crate::prelude::*;
use crate::rules::delivery::rule;
use uet_wire::pds::Control;

/// True if the duplicate arrives after the CLOSE_COMMAND.
const COMMANDED: Axis<bool> = axis("duplicate").values(&[("before-command", false), ("after-command", true)]);

/// True if the target asks by REQ_CLOSE in an ACK, and not by CLOSE_REQUEST.
const IN_ACK: Axis<bool> = axis("asked-by").values(&[("req-close", true), ("close-request", false)]);

pub(super) const RULES: &[Rule] = &[
    rule("source-close/other-stays", "A target's request to close one context leaves another to it open")
        .checks(&[PDS_PDC_003, PDS_CLOSE_013])
        .over(&[&IN_ACK, &MODE, &CARRIER, &START])
        .run(|t| {
            t.make_patient()?;
            let peers = [t.peer_of_job(101)?, t.peer_of_job(202)?];
            let stays = Target::established(t, peers[0], Mode::Rud)?;
            t.post(post(PostKind::Write, peers[1], 64))?;
            let asked = Target::accept_beside(t, &[&stays])?;
            if t.value(&IN_ACK) {
                asked.answer(t, AckBuilder { request: AckRequest::REQ_CLOSE, ..asked.acking(0) })?;
            } else {
                asked.ack(t, 0)?;
                t.settle()?;
                request_close(t, &asked)?;
            }
            let (_, command) = expect_close(t, &asked, PDS_CLOSE_013)?;
            ack_control(t, &asked, command.psn())?;
            t.expect_none(PDS_PDC_003, "no CLOSE_COMMAND on the other context", 2 * t.rto(), |seen| {
                stays.control(seen, CtlType::CLOSE_COMMAND)
            })?;
            let mut stays = stays;
            let written = t.post(post(PostKind::Write, peers[0], 64))?;
            let next = stays.expect_new(t, PDS_PDC_003, 1)?;
            t.check(PDS_PDC_003, "dpdcid", Some(stays.pdc.local), next.request.dpdcid());
            stays.ack(t, 1)?;
            t.ends(PDS_PDC_003, written, Status::Ok)
        }),
    rule("source-close/close-request", "The device acknowledges CLOSE_REQUEST and closes the context")
        .checks(&[PDS_CLOSE_013, PDS_CTL_001, PDS_PSN_002, PDS_CLOSE_002, PDS_SYN_001, PDS_SYN_007])
        .run(|t| {
            let (peer, target) = Target::with_peer(t, Mode::Rud)?;
            request_close(t, &target)?;
            let (psn, soon) = (target.psn(0), t.soon());
            let (ack, cack) =
                t.expect(PDS_CTL_001, "an ACK of the CLOSE_REQUEST", soon, |seen| seen.cack(&target.pdc))?;
            t.one_of(PDS_PSN_002, "cack_psn", &[psn, psn - 1], cack);
            let covers = ack.acknowledges(&target.pdc, psn).is_some();
            t.holds(PDS_CTL_001, "the ACK covers the CLOSE_REQUEST", covers, ack.uet());
            let (_, command) = expect_close(t, &target, PDS_CLOSE_013)?;
            t.check(PDS_CLOSE_002, "psn", target.psn(1), command.psn());
            ack_control(t, &target, command.psn())?;
            t.settle()?;
            let since = t.now();
            t.post(post(PostKind::Write, peer, 64))?;
            expect_another_context(t, &target, PDS_CLOSE_013, since)
        }),
    rule("source-close/duplicate-request", "A duplicate CLOSE_REQUEST gets an ACK but no second close")
        .checks(&[PDS_DUP_002, PDS_CLOSE_013, PDS_DUP_001])
        .over(&[&COMMANDED, &MODE, &CARRIER, &START])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let commanded = t.value(&COMMANDED);
            if !commanded {
                // One outstanding request keeps the context from closing at once.
                t.post(post(PostKind::Write, peer, 64))?;
                target.collect(t, 2)?;
            }
            request_close(t, &target)?;
            t.need_ack(&target.pdc, target.psn(0))?;
            let early = if commanded { Some(expect_close(t, &target, PDS_CLOSE_013)?) } else { None };
            let duplicate = Control::build(CtlType::CLOSE_REQUEST).ar(true).retx(true).psn(target.psn(0));
            let duplicate = duplicate.spdcid(target.pdc.local).dpdcid(target.pdc.remote.unwrap_or_default());
            t.send(&target.pdc, &UetBuf::new(duplicate.done()?))?;
            t.expect_ack(PDS_DUP_002, &target.pdc, target.psn(0))?;
            let (_, command) = match early {
                Some(early) => early,
                None => {
                    target.ack(t, 1)?;
                    expect_close(t, &target, PDS_CLOSE_013)?
                }
            };
            let second = |seen: &RxPacket| {
                target.control(seen, CtlType::CLOSE_COMMAND).filter(|other| other.psn() != command.psn())
            };
            t.expect_none(PDS_DUP_001, "no CLOSE_COMMAND with another PSN", t.grace(), second)?;
            ack_control(t, &target, command.psn())?;
            t.settle()?;
            let span = t.rto() * 2;
            t.expect_none(PDS_DUP_001, "no other CLOSE_COMMAND", span, |seen| {
                target.control(seen, CtlType::CLOSE_COMMAND)
            })?;
            t.expect_action(peer)
        }),
    rule("source-close/message-before-close", "A message posted while a close is pending arrives whole")
        .checks(&[PDS_MSG_002, PDS_PSN_005])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            // One outstanding request keeps the context from closing at once.
            t.post(post(PostKind::Write, peer, 64))?;
            target.collect(t, 2)?;
            request_close(t, &target)?;
            t.need_ack(&target.pdc, target.psn(0))?;
            t.settle()?;
            let written = t.post(post(PostKind::Write, peer, 3 * t.mtu()))?;
            let within = t.later();
            let opens = |seen: &RxPacket| seen.request().filter(|request| request.syn()).map(|_| ());
            let Some((first, ())) = t.wait(within, opens)? else {
                return skip("the device sends no message while a close is pending");
            };
            let mut next = Target::opened_by(t, first)?;
            for n in 0..3 {
                next.expect_new(t, PDS_MSG_002, n)?;
                next.ack(t, n)?;
            }
            t.ends(PDS_PSN_005, written, Status::Ok)
        }),
    rule("source-close/req-close", "REQ_CLOSE in an ACK makes the device close the context")
        .checks(&[PDS_CLOSE_013, PDS_CLOSE_002, PDS_PSN_005])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let written = t.post(post(PostKind::Write, peer, 64))?;
            target.collect(t, 2)?;
            let ack = AckBuilder { request: AckRequest::REQ_CLOSE, ..target.acking(1) };
            target.answer(t, ack)?;
            t.ends(PDS_PSN_005, written, Status::Ok)?;
            let (_, command) = expect_close(t, &target, PDS_CLOSE_013)?;
            t.check(PDS_CLOSE_002, "psn", target.psn(2), command.psn());
            Ok(())
        }),
    rule(
        "source-close/req-close-in-message",
        "A context closes after REQ_CLOSE only once its message has ended",
    )
    .checks(&[PDS_CLOSE_003, PDS_CLOSE_013, PDS_MSG_002])
    .run(|t| {
        let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
        // So long that part of it waits for ACKs.
        let count = 100;
        let written = t.post(post(PostKind::Write, peer, count as usize * t.mtu()))?;
        target.collect(t, 3)?;
        // In the first ACK: which packet it answers depends on the order in which they have come.
        let mut request = AckRequest::REQ_CLOSE;
        serve_whole(t, &mut target, count, |target, packet| {
            let request = core::mem::replace(&mut request, AckRequest::NO_REQUEST);
            Some(AckBuilder { request, ..target.acking(target.index(&packet.request)) })
        })?;
        t.ends(PDS_MSG_002, written, Status::Ok)?;
        let (_, command) = expect_close(t, &target, PDS_CLOSE_013)?;
        t.check(PDS_CLOSE_003, "psn", target.psn(count + 1), command.psn());
        Ok(())
    }),
    rule("source-close/early-request", "After an early CLOSE_REQUEST, the close waits for outstanding ACKs")
        .checks(&[PDS_CLOSE_001, PDS_CLOSE_013])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let written = t.post(post(PostKind::Write, peer, 2 * t.mtu()))?;
            target.collect(t, 3)?;
            request_close(t, &target)?;
            target.name(t, 2, 1)?;
            expect_no_close(t, &target, PDS_CLOSE_001)?;
            target.ack(t, 2)?;
            t.ends(PDS_CLOSE_001, written, Status::Ok)?;
            expect_close(t, &target, PDS_CLOSE_013)?;
            Ok(())
        }),
];
