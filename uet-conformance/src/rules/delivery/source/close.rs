//! How an initiator closes a context, by itself or asked (section 3.5.8).

use crate::prelude::*;
use crate::rules::steps::retransmissions;
use uet_control::ClosePdc;
use uet_wire::pds::Control;
use uet_wire::ses::{ResponseData, Ses};

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[CLOSE]).over(&[&MODE, &CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("source-close/command", "CLOSE_COMMAND for an idle context has the next PSN and requests an ACK")
        .checks(&[
            PDS_CLOSE_002,
            PDS_CTL_001,
            PDS_PDC_003,
            PDS_SYN_010,
            WIRE_CTL_003,
            WIRE_CTL_005,
            WIRE_RSVD_001,
        ])
        .run(|t| {
            let (peer, target) = at_rest(t)?;
            close(t, peer)?;
            let (seen, command) = expect_close(t, &target, PDS_CLOSE_002)?;
            t.check(PDS_CTL_001, "psn", target.psn(1), command.psn());
            t.check(PDS_CLOSE_002, "ar", true, command.ar());
            t.check(PDS_SYN_010, "syn", false, command.syn());
            t.check(PDS_PDC_003, "dpdcid", Some(target.pdc.local), command.dpdcid());
            t.check_packet(&seen, &[WIRE_CTL_003, WIRE_CTL_005, WIRE_RSVD_001]);
            Ok(())
        }),
    rule("source-close/waits-for-acks", "The device does not close while a request is unacknowledged")
        .checks(&[PDS_CLOSE_001, PDS_CLOSE_002])
        .run(|t| {
            let (peer, mut target) = at_rest(t)?;
            let written = t.post(post(PostKind::Write, peer, 2 * t.mtu()))?;
            target.collect(t, 3)?;
            close(t, peer)?;
            target.ack(t, 1)?;
            not_yet(t, &target, PDS_CLOSE_001)?;
            target.ack(t, 2)?;
            t.ends(PDS_CLOSE_001, written, Status::Ok)?;
            let (_, command) = expect_close(t, &target, PDS_CLOSE_001)?;
            t.check(PDS_CLOSE_002, "psn", target.psn(3), command.psn());
            Ok(())
        }),
    rule("source-close/waits-for-data", "The device does not close while read data is outstanding")
        .checks(&[PDS_CLOSE_001, PDS_CLOSE_003])
        .needs(&[READ, CLOSE])
        .run(|t| {
            let (peer, mut target) = at_rest(t)?;
            let read = t.post(post(PostKind::Read, peer, 500))?;
            target.collect(t, 2)?;
            target.ack(t, 1)?;
            close(t, peer)?;
            not_yet(t, &target, PDS_CLOSE_001)?;
            t.is_open(PDS_CLOSE_003, read)?;
            t.send(&target.pdc, &data(&target, 1, &[7; 500])?)?;
            t.ends(PDS_CLOSE_003, read, Status::Ok)?;
            expect_close(t, &target, PDS_CLOSE_001)?;
            Ok(())
        }),
    rule("source-close/after-message", "The device closes a context after a message, not within one")
        .checks(&[PDS_CLOSE_003, PDS_MSG_002])
        .run(|t| {
            let (peer, mut target) = at_rest(t)?;
            // Too long to have left whole.
            let count = 100;
            let written = t.post(post(PostKind::Write, peer, count as usize * t.mtu()))?;
            target.collect(t, 3)?;
            close(t, peer)?;
            target.serve(t, count + 1, |target, got| Some(target.acking(target.index(&got.request))))?;
            t.ends(PDS_MSG_002, written, Status::Ok)?;
            let (_, command) = expect_close(t, &target, PDS_CLOSE_003)?;
            t.check(PDS_CLOSE_003, "psn", target.psn(count + 1), command.psn());
            Ok(())
        }),
    rule("source-close/retransmitted", "CLOSE_COMMAND is retransmitted with the same PSN and with retx")
        .checks(&[PDS_RTO_001, PDS_RTO_005, PDS_CLOSE_002])
        .run(|t| {
            let (peer, target) = at_rest(t)?;
            close(t, peer)?;
            let (_, first) = expect_close(t, &target, PDS_CLOSE_002)?;
            t.check(PDS_RTO_005, "flag retx", false, first.retx());
            for n in 0..retransmissions(t, 2)? {
                let within = t.soon() + t.scaled(t.rto() * (2 << n));
                let (_, again) = target.expect_control(t, PDS_RTO_001, CtlType::CLOSE_COMMAND, within)?;
                t.check(PDS_RTO_005, "psn", first.psn(), again.psn());
                t.check(PDS_RTO_005, "flag retx", true, again.retx());
                t.check(PDS_CLOSE_002, "ar", true, again.ar());
            }
            Ok(())
        }),
    rule("source-close/next-context", "After CLOSE_COMMAND, a new message opens another context")
        .checks(&[PDS_CLOSE_004, PDS_SYN_001, PDS_CLOSE_002, PDS_SYN_007])
        .run(|t| {
            let (peer, target) = at_rest(t)?;
            close(t, peer)?;
            let (_, command) = expect_close(t, &target, PDS_CLOSE_002)?;
            let since = t.now();
            t.post(post(PostKind::Write, peer, 64))?;
            // Open: if another context waits for the end of this one.
            if !t.hear(t.early(), |seen| seen.at > since && seen.request().is_some())? {
                confirm(t, &target, command.psn())?;
            }
            expect_another(t, &target, PDS_CLOSE_004, since)
        }),
    rule("source-close/acknowledged", "The ACK of CLOSE_COMMAND ends the context")
        .checks(&[PDS_CLOSE_004, PDS_CLOSE_002, PDS_SYN_001, PDS_SYN_007])
        .run(|t| {
            let (peer, target) = at_rest(t)?;
            close(t, peer)?;
            let (_, command) = expect_close(t, &target, PDS_CLOSE_002)?;
            confirm(t, &target, command.psn())?;
            t.settle()?;
            let (span, since) = (4 * t.rto(), t.now());
            t.expect_none(PDS_CLOSE_004, "no CLOSE_COMMAND again", span, |seen| {
                target.control(seen, CtlType::CLOSE_COMMAND)
            })?;
            t.post(post(PostKind::Write, peer, 64))?;
            expect_another(t, &target, PDS_CLOSE_004, since)
        }),
    rule("source-close/pdcid-reuse", "A reused PDCID starts at least 2^16 PSNs from its last PSN")
        .checks(&[PDS_SYN_007, PDS_CLOSE_002])
        .run(|t| {
            // A pool of one, where the device lets one; else it may take long until it comes to this PDCID
            // again.
            t.try_configure("general_pdcs", 1)?;
            // So far apart that they are not by chance, where the device lets that be said.
            let apart = if t.try_configure("start_psn_distance", 1 << 30)? { 1 << 30 } else { 1 << 16 };
            let peer = t.peer(0)?;
            let mut used: Vec<(Option<uet_wire::PdcId>, Psn)> = Vec::new();
            let mut again = 0;
            for _ in 0..20 {
                let target = Target::established(t, peer, Mode::Rud)?;
                for (_, last) in used.iter().filter(|(id, _)| *id == target.pdc.remote) {
                    let distance = (target.psn(0) - *last).min(*last - target.psn(0));
                    let least = Bound::from(apart).from_parameter("start_psn_distance");
                    t.at_least(PDS_SYN_007, "the distance of Start_PSN from the last PSN", least, distance);
                    again += 1;
                }
                close(t, peer)?;
                let (_, command) = expect_close(t, &target, PDS_CLOSE_002)?;
                confirm(t, &target, command.psn())?;
                t.settle()?;
                // The last time counts.
                used.retain(|(id, _)| *id != target.pdc.remote);
                used.push((target.pdc.remote, command.psn()));
            }
            match again {
                0 => skip("the device did not use a PDCID twice in twenty contexts"),
                _ => Ok(()),
            }
        }),
    rule("source-close/close-request", "The device acknowledges CLOSE_REQUEST and closes the context")
        .checks(&[PDS_CLOSE_013, PDS_CTL_001, PDS_PSN_002, PDS_CLOSE_002, PDS_SYN_001, PDS_SYN_007])
        .needs(&[])
        .run(|t| {
            let (peer, target) = at_rest(t)?;
            ask(t, &target)?;
            let (asked, soon) = (target.psn(0), t.soon());
            let (ack, cack) =
                t.expect(PDS_CTL_001, "an ACK of the CLOSE_REQUEST", soon, |seen| seen.cack(&target.pdc))?;
            t.one_of(PDS_PSN_002, "cack_psn", &[asked, asked - 1], cack);
            let covers = ack.acknowledges(&target.pdc, asked).is_some();
            t.holds(PDS_CTL_001, "the ACK covers the CLOSE_REQUEST", covers, ack.uet());
            let (_, command) = expect_close(t, &target, PDS_CLOSE_013)?;
            t.check(PDS_CLOSE_002, "psn", target.psn(1), command.psn());
            confirm(t, &target, command.psn())?;
            t.settle()?;
            let since = t.now();
            t.post(post(PostKind::Write, peer, 64))?;
            expect_another(t, &target, PDS_CLOSE_013, since)
        }),
    rule("source-close/duplicate-request", "A duplicate CLOSE_REQUEST gets an ACK but no second close")
        .checks(&[PDS_DUP_002, PDS_CLOSE_013, PDS_DUP_001])
        .needs(&[])
        .run(|t| {
            let (peer, mut target) = at_rest(t)?;
            // One outstanding request keeps the context from closing at once.
            t.post(post(PostKind::Write, peer, 64))?;
            target.collect(t, 2)?;
            ask(t, &target)?;
            t.need_ack(&target.pdc, target.psn(0))?;
            let again = Control::build(CtlType::CLOSE_REQUEST).ar(true).retx(true).psn(target.psn(0));
            let again = again.spdcid(target.pdc.local).dpdcid(target.pdc.remote.unwrap_or_default());
            t.send(&target.pdc, &uet_wire::UetBuf::new(again.done()?))?;
            t.expect_ack(PDS_DUP_002, &target.pdc, target.psn(0))?;
            target.ack(t, 1)?;
            let (_, command) = expect_close(t, &target, PDS_CLOSE_013)?;
            confirm(t, &target, command.psn())?;
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
            let (peer, mut target) = at_rest(t)?;
            // One outstanding request keeps the context from closing at once.
            t.post(post(PostKind::Write, peer, 64))?;
            target.collect(t, 2)?;
            ask(t, &target)?;
            t.need_ack(&target.pdc, target.psn(0))?;
            t.settle()?;
            let written = t.post(post(PostKind::Write, peer, 3 * t.mtu()))?;
            let within = t.later();
            let opens = |seen: &RxPacket| seen.request().filter(|request| request.syn()).map(|_| ());
            let Some((first, ())) = t.wait(within, opens)? else {
                return skip("the device sends no message before the close");
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
        .needs(&[])
        .run(|t| {
            let (peer, mut target) = at_rest(t)?;
            let written = t.post(post(PostKind::Write, peer, 64))?;
            target.collect(t, 2)?;
            let ack = AckBuilder { request: AckRequest::REQ_CLOSE, ..target.acking(1) };
            target.answer(t, ack)?;
            t.ends(PDS_PSN_005, written, Status::Ok)?;
            let (_, command) = expect_close(t, &target, PDS_CLOSE_013)?;
            t.check(PDS_CLOSE_002, "psn", target.psn(2), command.psn());
            Ok(())
        }),
    rule("source-close/early-request", "After an early CLOSE_REQUEST, the close waits for outstanding ACKs")
        .checks(&[PDS_CLOSE_001, PDS_CLOSE_013])
        .needs(&[])
        .run(|t| {
            let (peer, mut target) = at_rest(t)?;
            let written = t.post(post(PostKind::Write, peer, 2 * t.mtu()))?;
            target.collect(t, 3)?;
            ask(t, &target)?;
            target.name(t, 2, 1)?;
            not_yet(t, &target, PDS_CLOSE_001)?;
            target.ack(t, 2)?;
            t.ends(PDS_CLOSE_001, written, Status::Ok)?;
            expect_close(t, &target, PDS_CLOSE_013)?;
            Ok(())
        }),
    rule("source-close/refused", "A NACK CLOSING_IN_ERR for CLOSE_COMMAND ends the context")
        .checks(&[PDS_NACK_013, PDS_CLOSE_002, PDS_SYN_001, PDS_SYN_007])
        .run(|t| {
            let (peer, target) = at_rest(t)?;
            close(t, peer)?;
            let (_, command) = expect_close(t, &target, PDS_CLOSE_002)?;
            t.send(&target.pdc, &target.pdc.nack(NackCode::CLOSING_IN_ERR, command.psn())?)?;
            t.settle()?;
            let (span, since) = (4 * t.rto(), t.now());
            t.expect_none(PDS_NACK_013, "no CLOSE_COMMAND again", span, |seen| {
                target.control(seen, CtlType::CLOSE_COMMAND)
            })?;
            t.post(post(PostKind::Write, peer, 64))?;
            expect_another(t, &target, PDS_NACK_013, since)
        }),
    rule("source-close/limit", "CLOSE_COMMAND is retransmitted at most Max_RTO_Retx_Cnt times")
        .checks(&[PDS_RTO_003, PDS_CLOSE_002, PDS_RTO_004, PDS_SYN_001, PDS_SYN_007])
        .run(|t| {
            let most = match t.parameter("max_rto_retx_cnt") {
                most @ 0..8 => most as usize,
                most => {
                    return skip(format!("{most} retransmissions have no end, or take too long"));
                }
            };
            let (peer, target) = at_rest(t)?;
            close(t, peer)?;
            expect_close(t, &target, PDS_CLOSE_002)?;
            let span = t.until_given_up();
            t.pause(span)?;
            let mut times = 1;
            while t.wait(Duration::ZERO, |seen| target.control(seen, CtlType::CLOSE_COMMAND))?.is_some() {
                times += 1;
            }
            let range = Bound::from(2..=most + 1).from_parameter("max_rto_retx_cnt");
            t.between(PDS_RTO_003, "transmissions of CLOSE_COMMAND", range, times);
            let since = t.now();
            t.post(post(PostKind::Write, peer, 64))?;
            expect_another(t, &target, PDS_RTO_004, since)
        }),
    rule("source-close/late-data", "Read data that arrives after the close is refused")
        .checks(&[PDS_CLOSE_009, PDS_CLOSE_002])
        .run(|t| {
            let (peer, target) = at_rest(t)?;
            close(t, peer)?;
            let (_, command) = expect_close(t, &target, PDS_CLOSE_002)?;
            confirm(t, &target, command.psn())?;
            t.settle()?;
            let head = ResponseData::build().read_request_message_id(1).job_id(101).response_message_id(9);
            let late =
                target.pdc.request(0).ses(head.payload_length(64).modified_length(64).done()?, &[7; 64]);
            let pdc = target.pdc.clone();
            t.request(&pdc, late)?;
            t.expect_nack(PDS_CLOSE_009, &pdc, target.psn(0), &[NackCode::INV_DPDCID, NackCode::CLOSING])?;
            t.expect_action(peer)
        }),
    rule("source-close/other-contexts", "A close leaves another context to the same peer open")
        .checks(&[PDS_PDC_003, PDS_CLOSE_002])
        .needs(&[RUD, ROD, CLOSE])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            let mut ordered = Target::established(t, peer, Mode::Rod)?;
            let target = Target::established(t, peer, Mode::Rud)?;
            close(t, peer)?;
            let (_, command) = expect_close(t, &target, PDS_CLOSE_002)?;
            confirm(t, &target, command.psn())?;
            t.settle()?;
            let written = t.post(Post { mode: Mode::Rod, ..post(PostKind::Write, peer, 64) })?;
            let next = ordered.expect_new(t, PDS_PDC_003, 1)?;
            t.check(PDS_PDC_003, "dpdcid", Some(ordered.pdc.local), next.request.dpdcid());
            ordered.ack(t, 1)?;
            t.ends(PDS_PDC_003, written, Status::Ok)
        }),
    rule("source-close/psn-range", "A context closes before one direction has used all its PSNs")
        .checks(&[PDS_CLOSE_012])
        .needs(&[])
        .run(|t| {
            let most = 300;
            t.configure("limit_psn_range", true)?;
            t.configure("psn_range", most)?;
            let peer = t.peer(0)?;
            let mut target = Target::established(t, peer, Mode::Rud)?;
            let mut n = 1;
            // One message after the other, until the device takes another context.
            while n < most {
                let written = t.post(post(PostKind::Write, peer, 16))?;
                let within = t.later();
                let Some(got) = target.next(t, within)? else { break };
                let last = Bound::from(most - 1).from_parameter("psn_range");
                t.at_most(
                    PDS_CLOSE_012,
                    "PSNs from Start_PSN to a request",
                    last,
                    got.request.psn() - target.psn(0),
                );
                target.ack(t, n)?;
                let within = t.soon();
                t.completion(written, within)?;
                if t.wait(Duration::ZERO, |seen| target.control(seen, CtlType::CLOSE_COMMAND))?.is_some() {
                    t.at_most(PDS_CLOSE_012, "requests before CLOSE_COMMAND", most - 1, n);
                    return Ok(());
                }
                n += 1;
            }
            let closed = target.expect_control(t, PDS_CLOSE_012, CtlType::CLOSE_COMMAND, t.later())?;
            let last = Bound::from(most).from_parameter("psn_range");
            t.at_most(
                PDS_CLOSE_012,
                "PSNs from Start_PSN to CLOSE_COMMAND",
                last,
                closed.1.psn() - target.psn(0),
            );
            Ok(())
        }),
];

/// A context at rest, with one PSN used.
fn at_rest(t: &mut Test<'_>) -> Result<(u64, Target), Stop> {
    let peer = t.peer(0)?;
    Ok((peer, Target::established(t, peer, Mode::Rud)?))
}

fn close(t: &mut Test<'_>, peer: u64) -> Outcome {
    t.call(ClosePdc { peer, mode: t.value(&MODE), class: 0 })?;
    Ok(())
}

/// Expects CLOSE_COMMAND.
fn expect_close(
    t: &mut Test<'_>,
    target: &Target,
    requirement: &Requirement,
) -> Result<(RxPacket, Control), Stop> {
    target.expect_control(t, requirement, CtlType::CLOSE_COMMAND, t.later())
}

/// Expects no CLOSE_COMMAND well before the first timeout.
fn not_yet(t: &mut Test<'_>, target: &Target, requirement: &Requirement) -> Outcome {
    let span = t.early();
    t.expect_none(requirement, "no CLOSE_COMMAND yet", span, |seen| {
        target.control(seen, CtlType::CLOSE_COMMAND)
    })
}

/// The ACK of a control packet, without a response.
fn confirm(t: &mut Test<'_>, target: &Target, psn: Psn) -> Outcome {
    let ack = AckBuilder { response: None, ..target.pdc.ack(psn) };
    target.answer(t, ack)
}

/// The data of a read of one packet, as the first request of the return direction.
fn data(target: &Target, n: u32, bytes: &[u8]) -> Result<uet_wire::UetBuf, Stop> {
    let uet = target.packet(n)?.seen.uet();
    let Some(Ses::Std(asked)) = uet.ses else {
        return skip("the device reads by a short header");
    };
    let head =
        ResponseData::build().read_request_message_id(asked.message_id()).job_id(asked.address().job_id());
    let head =
        head.response_message_id(9).payload_length(bytes.len() as u16).modified_length(bytes.len() as u32);
    Ok(target.pdc.request(0).ses(head.done()?, bytes).build()?)
}

/// Expects a request that opens another context.
fn expect_another(t: &mut Test<'_>, target: &Target, requirement: &Requirement, since: Duration) -> Outcome {
    let within = t.later();
    let (_, request) = t.expect(requirement, "a request of another context", within, |seen| {
        seen.request().filter(|_| seen.at > since)
    })?;
    t.check(PDS_SYN_001, "syn", true, request.syn());
    t.check(PDS_SYN_001, "psn_offset", Some(0), request.psn_offset().map(|offset| offset.get()));
    let last = target.psn(1);
    let distance = (request.psn() - last).min(last - request.psn());
    let far = distance >= 1 << 16;
    let another = Some(request.spdcid()) != target.pdc.remote;
    let id = request.spdcid();
    let seen_text = format!("PDCID {id}, {distance} PSNs from the last one");
    t.holds(PDS_SYN_007, "another PDCID, or a PSN 2^16 away", another || far, seen_text);
    Ok(())
}

/// Asks the device to close, by the first PSN of the return direction.
fn ask(t: &mut Test<'_>, target: &Target) -> Outcome {
    t.send(&target.pdc, &target.pdc.control(CtlType::CLOSE_REQUEST, target.psn(0), 0)?)
}
