//! Control packets on contexts that the device has opened, in both directions (section 3.5.10).

use super::steps::{numbered_control, return_data};
use crate::Trimmed;
use crate::prelude::*;
use crate::rules::delivery::rule;
use crate::rules::steps::message_in_flight;
use uet_wire::pds::Pds;

/// A control packet of an initiator.
const SENT: Axis<CtlType> = axis("packet").needing(&[
    ("close-command", CtlType::CLOSE_COMMAND, &[CLOSE]),
    ("ack-request", CtlType::ACK_REQUEST, &[]),
    ("clear-command", CtlType::CLEAR_COMMAND, &[]),
]);

pub(super) const RULES: &[Rule] = &[
    rule("control/noop", "A target's NOOP takes the first return PSN and gets an ACK without a response")
        .checks(&[PDS_CTL_001, PDS_ACK_004, PDS_ACK_014, PDS_GTD_004])
        .run(|t| {
            let target = establish(t, Mode::Rud)?;
            send_noop(t, &target.pdc, 0)?;
            let (_, ack) = t.expect_answer(PDS_ACK_004, &target.pdc, target.psn(0))?;
            t.check(PDS_CTL_001, "cack_psn", target.psn(0), ack.cack_psn());
            t.check(PDS_ACK_014, "next_hdr", NextHdr::UET_HDR_NONE, ack.prologue().next_hdr());
            t.check(PDS_GTD_004, "req", AckRequest::NO_REQUEST, ack.req());
            Ok(())
        }),
    rule("control/retransmitted-noop", "A retransmitted NOOP is acknowledged again")
        .checks(&[PDS_DUP_002])
        .run(|t| {
            let target = establish(t, Mode::Rud)?;
            send_noop(t, &target.pdc, 0)?;
            t.need_ack(&target.pdc, target.psn(0))?;
            let noop = numbered_control(&target.pdc, CtlType::NOOP, 0, true, true)?;
            for _ in 0..2 {
                t.send(&target.pdc, &noop)?;
                t.expect_ack(PDS_DUP_002, &target.pdc, target.psn(0))?;
            }
            Ok(())
        }),
    rule("control/noop-above-gap", "A NOOP above a gap is acknowledged without advancing the cumulative PSN")
        .checks(&[PDS_CTL_001, PDS_PSN_002])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let target = establish(t, Mode::Rud)?;
            send_noop(t, &target.pdc, 1)?;
            let (seen, _) = t.expect_ack(PDS_CTL_001, &target.pdc, target.psn(1))?;
            t.check(PDS_PSN_002, "cack_psn", Some(target.psn(0) - 1), seen.cack(&target.pdc));
            send_noop(t, &target.pdc, 0)?;
            t.expect_cack(PDS_PSN_002, &target.pdc, target.psn(1))?;
            Ok(())
        }),
    rule("control/noop-out-of-order", "An ordered context refuses a NOOP above a gap")
        .checks(&[PDS_ROD_001, PDS_ROD_002])
        .needs(&[ROD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let target = establish(t, Mode::Rod)?;
            send_noop(t, &target.pdc, 0)?;
            t.need_ack(&target.pdc, target.psn(0))?;
            send_noop(t, &target.pdc, 2)?;
            t.expect_nack(PDS_ROD_002, &target.pdc, target.psn(2), &[NackCode::ROD_OOO])?;
            send_noop(t, &target.pdc, 1)?;
            let (_, ack) = t.expect_ack(PDS_ROD_001, &target.pdc, target.psn(1))?;
            t.check(PDS_ROD_001, "cack_psn", target.psn(1), ack.cack_psn());
            Ok(())
        }),
    rule("control/negotiation", "NEGOTIATION gets an ACK or NACK UNEXP_EVENT, and the context keeps working")
        .checks(&[PDS_CTL_001])
        .run(|t| {
            let mut target = establish(t, Mode::Rud)?;
            let offer = target.pdc.control(CtlType::NEGOTIATION, target.psn(0), 1)?;
            t.send(&target.pdc, &offer)?;
            let (pdc, psn) = (target.pdc.clone(), target.psn(0));
            let reply = t.wait(t.soon().min(t.rto() * 4), |seen| {
                let refused =
                    seen.nack().filter(|nack| nack.nack_psn() == Some(psn)).map(|nack| nack.nack_code());
                seen.answers(&pdc, psn).map(|_| None).or(refused.map(Some))
            })?;
            if let Some((_, Some(code))) = reply {
                t.check(PDS_CTL_001, "an ACK, or NACK", NackCode::UNEXP_EVENT, code);
            }
            expect_write(t, &mut target, PDS_CTL_001, 1)
        }),
    rule("control/ack-request-not-received", "ACK_REQUEST for an unused return PSN gets NACK PKT_NOT_RCVD")
        .checks(&[PDS_ASK_001])
        .run(|t| {
            let target = establish(t, Mode::Rud)?;
            request_ack(t, &target, 0)?;
            t.expect_nack(PDS_ASK_001, &target.pdc, target.psn(0), &[NackCode::PKT_NOT_RCVD])?;
            Ok(())
        }),
    rule("control/ack-request-received", "ACK_REQUEST for a received return PSN is answered with an ACK")
        .checks(&[PDS_ASK_002])
        .run(|t| {
            let target = establish(t, Mode::Rud)?;
            send_noop(t, &target.pdc, 0)?;
            t.need_ack(&target.pdc, target.psn(0))?;
            request_ack(t, &target, 0)?;
            t.expect_ack(PDS_ASK_002, &target.pdc, target.psn(0))?;
            Ok(())
        }),
    rule("control/probe", "A PROBE from the target is answered with its opaque value")
        .checks(&[PDS_PRB_001])
        .run(|t| {
            let target = establish(t, Mode::Rud)?;
            for opaque in [0x1234, 0] {
                t.send(&target.pdc, &target.pdc.probe(opaque, target.psn(0))?)?;
                let pdc = target.pdc.clone();
                let (_, ack) = t.expect(PDS_PRB_001, "an ACK with p", t.soon(), |seen| {
                    seen.ack().filter(|ack| ack.p() && seen.is_for(&pdc))
                })?;
                t.check(PDS_PRB_001, "probe_opaque", Some(opaque), ack.probe_opaque());
            }
            Ok(())
        }),
    rule("control/clear-command", "CLEAR_COMMAND for the return direction gets no reply")
        .checks(&[PDS_CLR_011])
        .run(|t| {
            let mut target = establish(t, Mode::Rud)?;
            let clear = target.pdc.control(CtlType::CLEAR_COMMAND, Psn(0), (target.psn(0) - 1).0)?;
            t.send(&target.pdc, &clear)?;
            let (pdc, span) = (target.pdc.clone(), t.rto() * 2);
            t.expect_none(PDS_CLR_011, "no answer", span, |seen| reply(&pdc, seen))?;
            expect_write(t, &mut target, PDS_CLR_011, 1)
        }),
    rule("control/credit", "CREDIT takes no PSN and is not acknowledged").checks(&[PDS_CTL_001]).run(|t| {
        t.need_noop()?;
        let mut target = establish(t, Mode::Rud)?;
        t.send(&target.pdc, &target.pdc.control(CtlType::CREDIT, Psn(0), 0x10_0000)?)?;
        let (pdc, span) = (target.pdc.clone(), t.rto() * 2);
        // A device without credit support may send NACK UNEXP_EVENT.
        t.expect_none(PDS_CTL_001, "no answer but NACK UNEXP_EVENT", span, |seen| {
            let nack = seen.nack().map(|nack| (nack.nack_code(), nack.spdcid()));
            reply(&pdc, seen).filter(|()| nack != Some((NackCode::UNEXP_EVENT, PdcId::NONE)))
        })?;
        expect_write(t, &mut target, PDS_CTL_001, 1)?;
        // The first PSN of the return direction is still unused.
        send_noop(t, &target.pdc, 0)?;
        let (_, ack) = t.expect_answer(PDS_CTL_001, &target.pdc, target.psn(0))?;
        t.check(PDS_CTL_001, "cack_psn", target.psn(0), ack.cack_psn());
        Ok(())
    }),
    rule("control/reserved-type", "Control packets of reserved types do not change the context")
        .checks(&[ROB_STATE_001])
        .run(|t| {
            t.need_noop()?;
            let mut target = establish(t, Mode::Rud)?;
            for kind in CtlType::unassigned(t.spec()) {
                t.send(&target.pdc, &target.pdc.control(kind, target.psn(0), 0x5555_5555)?)?;
            }
            let (pdc, span) = (target.pdc.clone(), t.grace());
            t.expect_none(ROB_STATE_001, "no ACK", span, |seen| seen.ack().filter(|_| seen.is_for(&pdc)))?;
            expect_write(t, &mut target, ROB_STATE_001, 1)?;
            send_noop(t, &target.pdc, 0)?;
            t.expect_answer(ROB_STATE_001, &target.pdc, target.psn(0))?;
            Ok(())
        }),
    rule("control/other-address", "Control packets from another address do not affect the context")
        .checks(&[PDS_PDC_003])
        .needs(&[TWO_ADDRESSES])
        .run(|t| {
            t.need_noop()?;
            let from = t.address(1)?;
            let mut target = establish(t, Mode::Rud)?;
            // A device that closes idle contexts does so here, and not in the shorter time below.
            t.pause(2 * t.rto())?;
            expect_write(t, &mut target, PDS_PDC_003, 1)?;
            let elsewhere = Pdc { from, ..target.pdc.clone() };
            for kind in [CtlType::NOOP, CtlType::CLOSE_REQUEST, CtlType::CLEAR_REQUEST] {
                t.send(&elsewhere, &elsewhere.control(kind, target.psn(0), target.psn(0).0)?)?;
            }
            let remote = target.pdc.remote;
            // A device may send CLEAR_COMMAND at any time.
            t.expect_none(PDS_PDC_003, "no ACK, and no CLOSE_COMMAND of the context", t.rto(), |seen| {
                let closes =
                    seen.control(CtlType::CLOSE_COMMAND).is_some_and(|close| Some(close.spdcid()) == remote);
                (closes || seen.ack().is_some()).then_some(())
            })?;
            expect_write(t, &mut target, PDS_PDC_003, 2)?;
            send_noop(t, &target.pdc, 0)?;
            t.expect_answer(PDS_PDC_003, &target.pdc, target.psn(0))?;
            Ok(())
        }),
    rule("control/trimmed", "A trimmed control packet is dropped")
        .checks(&[PDS_TRIM_005])
        .needs(&[TRIM])
        .run(|t| {
            let mut target = establish(t, Mode::Rud)?;
            let noop = target.pdc.numbered(CtlType::NOOP, 0)?;
            let wire = target.pdc.trimmed(&noop, Trimmed::Fabric, 16);
            t.send_wire(&wire)?;
            let (pdc, span) = (target.pdc.clone(), t.rto());
            t.expect_none(PDS_TRIM_005, "no answer", span, |seen| reply(&pdc, seen))?;
            expect_write(t, &mut target, PDS_TRIM_005, 1)
        }),
    rule("control/ack-request-fields", "ACK_REQUEST names the PSN and the target's PDCID, and takes no PSN")
        .checks(&[PDS_CTL_001, PDS_CTL_002, PDS_SACK_004, WIRE_RSVD_001, WIRE_CTL_006])
        .run(|t| {
            let (mut target, written) = message_in_flight(t, 2)?;
            target.ack(t, 1)?;
            target.sack(t, 2, &[2])?;
            let (seen, request) = target.expect_control(t, PDS_SACK_004, CtlType::ACK_REQUEST, t.later())?;
            t.check(PDS_CTL_002, "psn", target.psn(2), request.psn());
            t.check(PDS_CTL_002, "syn", false, request.syn());
            t.check(PDS_CTL_002, "dpdcid", Some(target.pdc.local), request.dpdcid());
            t.check_packet(&seen, &[WIRE_RSVD_001, WIRE_CTL_006]);
            target.ack(t, 2)?;
            t.ends(PDS_CTL_001, written, Status::Ok)?;
            expect_write(t, &mut target, PDS_CTL_001, 3)
        }),
    rule("control/no-early-probe", "No PROBE or other control packet without syn precedes the first ACK")
        .checks(&[PDS_PRB_003, PDS_CTL_002])
        .run(|t| {
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, 4 * t.mtu()))?;
            let target = Target::accept(t)?;
            let span = t.soon().min(16 * t.rto());
            t.expect_none(
                PDS_PRB_003,
                "no control packet but NOOP and NEGOTIATION with syn",
                span,
                |seen| {
                    let Some(Pds::Control(header)) = seen.uet().pds else { return None };
                    let opens =
                        matches!(header.ctl_type(), CtlType::NOOP | CtlType::NEGOTIATION) && header.syn();
                    (!opens).then_some(())
                },
            )?;
            t.check(PDS_CTL_002, "syn of the first request", true, target.got[0].request.syn());
            Ok(())
        }),
    rule("control/classes", "ACKs and NACKs use the class of control packets, and requests that of data")
        .checks(&[PDS_CLASS_001])
        .needs(&[RUD, SEE_CLASS])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(1).write(&region, 0, &[1; 16])?)?;
            let (ack, _) = t.need_ack(&pdc, pdc.psn(1))?;
            t.check(PDS_CLASS_001, "DSCP class of an ACK", Some("high"), class(&ack));
            let beyond = t.beyond(&pdc)? + 10;
            t.request(&pdc, pdc.request(beyond).write(&region, 0, &[1; 16])?)?;
            let nack = |seen: &RxPacket| seen.refuses(&pdc, pdc.psn(beyond));
            let (nack, _) = t.need("a NACK of a PSN beyond the window", t.soon(), nack)?;
            t.check(PDS_CLASS_001, "DSCP class of a NACK", Some("high"), class(&nack));
            t.forget();
            t.request(&pdc, pdc.request(1).retx().write(&region, 0, &[1; 16])?)?;
            let (again, _) = t.need_ack(&pdc, pdc.psn(1))?;
            t.check(PDS_CLASS_001, "DSCP class of the ACK of a duplicate", Some("high"), class(&again));
            t.send(&pdc, &pdc.probe(0x1357, pdc.psn(1))?)?;
            let answer = |seen: &RxPacket| seen.ack().filter(|ack| seen.is_for(&pdc) && ack.p());
            let (probe, _) = t.need("an ACK with p = 1", t.soon(), answer)?;
            t.check(PDS_CLASS_001, "DSCP class of the ACK of a PROBE", Some("high"), class(&probe));
            t.request(&pdc, pdc.request(2).write_nowhere(&region, &[1; 16])?)?;
            let (error, _) = t.need_ack(&pdc, pdc.psn(2))?;
            t.check(PDS_CLASS_001, "DSCP class of an error", Some("high"), class(&error));
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, 64))?;
            let target = Target::accept(t)?;
            t.check(PDS_CLASS_001, "DSCP class of a request", Some("low"), class(&target.packet(0)?.seen));
            target.ack(t, 0)
        }),
    rule(
        "control/read-classes",
        "Read data uses the class of data, retransmitted too, and its ACK that of control packets",
    )
    .checks(&[PDS_CLASS_001])
    .needs(&[RUD, WRITE, READ, SEE_CLASS])
    .over(&[&START])
    .run(|t| {
        let (length, mtu) = (t.beyond_ack()?, t.mtu());
        let (pdc, region) = t.open()?;
        t.request(&pdc, pdc.request(1).read(&region, 0, length)?)?;
        for retx in [false, true] {
            let wanted = |seen: &RxPacket| return_data(seen, &pdc).filter(|data| data.retx() == retx);
            let (seen, data) = t.need("read data", t.later(), wanted)?;
            t.check(PDS_CLASS_001, "DSCP class of read data", Some("low"), class(&seen));
            if retx {
                t.send(&pdc, &pdc.ack(data.psn()).build()?)?;
            }
        }
        let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
        t.post(post(PostKind::Read, peer, mtu))?;
        target.collect(t, 2)?;
        target.ack(t, 1)?;
        let header = target.data_header(1, mtu, mtu, 0)?;
        target.give_due(t, 0, header, &vec![7; mtu])?;
        let (ack, _) = t.need_ack(&target.pdc, target.psn(0))?;
        t.check(PDS_CLASS_001, "DSCP class of an ACK of read data", Some("high"), class(&ack));
        Ok(())
    }),
    rule("control/trim-class", "The NACK of a trimmed packet uses the class of control packets")
        .checks(&[PDS_CLASS_001])
        .needs(&[RUD, TRIM, SEE_CLASS])
        .over(&[&CARRIER])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let request = pdc.request(1).write(&region, 0, &[1; 200])?.build()?;
            for place in [Trimmed::Fabric, Trimmed::LastHop] {
                t.forget();
                t.send_wire(&pdc.trimmed(&request, place, 16))?;
                let refuses = |seen: &RxPacket| seen.refuses(&pdc, pdc.psn(1));
                let (nack, _) = t.need("a NACK of the trimmed request", t.soon(), refuses)?;
                t.check(PDS_CLASS_001, "DSCP class of the NACK", Some("high"), class(&nack));
            }
            Ok(())
        }),
    rule("control/sent-classes", "The control packets of an initiator use their own class, also sent again")
        .checks(&[PDS_CLASS_002])
        .needs(&[RUD, SEE_CLASS])
        .over(&[&SENT, &CARRIER])
        .run(|t| {
            let kind = t.value(&SENT);
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let mut times = 1;
            match kind {
                CtlType::CLOSE_COMMAND => {
                    t.call(uet_control::ClosePdc { peer, mode: Mode::Rud, class: 0 })?;
                    times += t.parameter("max_rto_retx_cnt").min(2);
                }
                CtlType::ACK_REQUEST => {
                    t.post(post(PostKind::Write, peer, 64))?;
                    target.collect(t, 2)?;
                    target.sack(t, 1, &[1])?;
                    times += t.parameter("max_rto_retx_cnt").clamp(1, 2) - 1;
                }
                _ => {
                    t.post(post(PostKind::Write, peer, 64))?;
                    target.collect(t, 2)?;
                    target.respond_error(t, 1, ReturnCode::BAD_MKEY)?;
                }
            }
            for n in 0..times {
                let within = t.soon() + t.scaled(t.rto() * (4 << n));
                let found = t.need(&kind.to_string(), within, |seen| target.control(seen, kind))?;
                t.check(PDS_CLASS_002, &format!("DSCP class of {kind}"), Some("high"), class(&found.0));
            }
            Ok(())
        }),
    rule("control/high-class", "A PROBE is sent in the traffic class of control packets")
        .checks(&[PDS_PRB_004])
        .needs(&[SEE_CLASS])
        .run(|t| {
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, 60 * t.mtu()))?;
            let mut target = Target::accept(t)?;
            target.serve(t, 60, |target, got| Some(target.acking(target.index(&got.request))))?;
            let Some((seen, _)) = t.wait(t.grace(), |seen| target.control(seen, CtlType::PROBE))? else {
                return skip("the device sends no PROBE");
            };
            t.check(PDS_PRB_004, "DSCP class", Some("high"), class(&seen));
            Ok(())
        }),
];

/// Returns the traffic class of a packet.
fn class(seen: &RxPacket) -> Option<&'static str> {
    seen.wire.high.map(|high| if high { "high" } else { "low" })
}

/// Establishes a context with the suite as its target. No PSN of the return direction is used yet.
fn establish(t: &mut Test<'_>, mode: Mode) -> Result<Target, Stop> {
    let peer = t.peer(0)?;
    Target::established(t, peer, mode)
}

/// Sends a NOOP with the `n`-th PSN of the return direction.
fn send_noop(t: &mut Test<'_>, pdc: &Pdc, n: u32) -> Outcome {
    t.send(pdc, &pdc.numbered(CtlType::NOOP, n)?)
}

/// Expects that the device completes a write on the context with its `n`-th PSN.
fn expect_write(t: &mut Test<'_>, target: &mut Target, requirement: &Requirement, n: u32) -> Outcome {
    let peer = t.peer(0)?;
    let written = t.post(post(PostKind::Write, peer, 64))?;
    let next = target.expect_new(t, requirement, n)?;
    t.check(requirement, "dpdcid", Some(target.pdc.local), next.request.dpdcid());
    target.ack(t, n)?;
    t.ends(requirement, written, Status::Ok)
}

/// Sends an ACK_REQUEST for the `n`-th PSN of the return direction.
fn request_ack(t: &mut Test<'_>, target: &Target, n: u32) -> Outcome {
    t.send(&target.pdc, &target.pdc.control(CtlType::ACK_REQUEST, target.psn(n), 0)?)
}

/// Finds an ACK or NACK for the suite's side.
fn reply(pdc: &Pdc, seen: &RxPacket) -> Option<()> {
    (seen.is_for(pdc) && (seen.ack().is_some() || seen.nack().is_some())).then_some(())
}
