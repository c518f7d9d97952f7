//! CLEAR_PSN, CLEAR_COMMAND and guaranteed responses at an initiator (sections 3.5.11, 3.5.16.3).

use super::steps::{clear_psn, guaranteed, read_data, request_clear, smallest_range};
use crate::prelude::*;
use crate::rules::delivery::rule;
use crate::rules::steps::message_in_flight;
use uet_wire::pds::Control;
use uet_wire::registry::ResponseOpcode;
use uet_wire::ses::Response;

/// True if a bitmap reports the arrival of packets; otherwise ACKs with NULL do.
const BITMAP: Axis<bool> = axis("report").values(&[("bitmap", true), ("null", false)]);

pub(super) const RULES: &[Rule] = &[
    rule("source-clear/cumulative-psn", "CLEAR_PSN follows the cumulative PSN")
        .checks(&[PDS_CLR_003, PDS_PSN_001])
        .run(|t| {
            let (mut target, _) = message_in_flight(t, 3)?;
            target.ack(t, 2)?;
            expect_clear_psn(t, PDS_CLR_003, &mut target, 4, 2)?;
            target.ack(t, 4)?;
            expect_clear_psn(t, PDS_CLR_003, &mut target, 5, 4)
        }),
    rule("source-clear/gap", "CLEAR_PSN stops at a gap and passes it once the gap is filled")
        .checks(&[PDS_CLR_001, PDS_PSN_001])
        .run(|t| {
            let (mut target, _) = message_in_flight(t, 4)?;
            for n in [1, 3, 4] {
                target.name(t, n, 1)?;
            }
            expect_clear_psn(t, PDS_CLR_001, &mut target, 5, 1)?;
            target.name(t, 2, 1)?;
            expect_clear_psn(t, PDS_CLR_001, &mut target, 6, 4)
        }),
    rule("source-clear/sacked", "CLEAR_PSN does not cover a packet if only its arrival is reported")
        .checks(&[PDS_CLR_001, PDS_PSN_001])
        .over(&[&BITMAP, &MODE, &CARRIER, &START])
        .run(|t| {
            let (mut target, _) = message_in_flight(t, 3)?;
            target.ack(t, 1)?;
            if t.value(&BITMAP) {
                target.sack(t, 2, &[2, 3])?;
            } else {
                let null = Response::build(ResponseOpcode::UET_NO_RESPONSE, ReturnCode::NULL).done()?;
                for n in [2, 3] {
                    target.answer(t, AckBuilder { response: Some(null), ..target.naming(n, 2) })?;
                }
            }
            expect_clear_psn(t, PDS_CLR_001, &mut target, 4, 1)
        }),
    rule("source-clear/old-ack", "An old ACK does not move CLEAR_PSN back")
        .checks(&[PDS_CLR_002, PDS_PSN_001])
        .run(|t| {
            let (mut target, _) = message_in_flight(t, 3)?;
            target.ack(t, 3)?;
            target.ack(t, 1)?;
            expect_clear_psn(t, PDS_CLR_002, &mut target, 4, 3)
        }),
    rule("source-clear/in-retransmissions", "A retransmission carries the current CLEAR_PSN")
        .checks(&[PDS_CLR_003, PDS_RTO_001])
        .run(|t| {
            let (mut target, _) = message_in_flight(t, 3)?;
            let before = target.packet(3)?.request.clear_psn();
            target.ack(t, 2)?;
            t.settle()?;
            let again = target.expect_again(t, PDS_RTO_001, 3, t.later())?;
            t.check(PDS_CLR_003, "CLEAR_PSN", target.psn(2), again.request.clear_psn());
            let now = again.request.clear_psn();
            t.holds(
                PDS_CLR_003,
                "CLEAR_PSN has moved",
                before != now,
                format_args!("{before} before, {now} now"),
            );
            Ok(())
        }),
    rule("source-clear/command", "A device with nothing to send answers REQ_CLEAR with CLEAR_COMMAND")
        .checks(&[PDS_CLR_006, PDS_CLR_008])
        .run(|t| {
            let (target, written) = message_in_flight(t, 1)?;
            let ack = guaranteed(&target, target.packet(1)?, ReturnCode::OK)?;
            target.answer(t, ack)?;
            expect_command(t, &target, 1)?;
            t.ends(PDS_CLR_006, written, Status::Ok)
        }),
    rule(
        "source-clear/command-form",
        "CLEAR_COMMAND uses no PSN, requests no ACK and has the target's PDCID",
    )
    .checks(&[
        PDS_CTL_001,
        PDS_CLR_011,
        PDS_CLR_002,
        PDS_CLR_008,
        PDS_PDC_003,
        PDS_PSN_001,
        PDS_SYN_010,
        WIRE_CTL_002,
        WIRE_CTL_004,
        WIRE_RSVD_001,
    ])
    .run(|t| {
        let (mut target, _) = message_in_flight(t, 1)?;
        let ack = guaranteed(&target, target.packet(1)?, ReturnCode::OK)?;
        target.answer(t, ack)?;
        let (seen, clear) = expect_command(t, &target, 1)?;
        t.check(PDS_CLR_011, "ar", false, clear.ar());
        t.check(PDS_CTL_001, "psn", Psn(0), clear.psn());
        t.check(PDS_SYN_010, "syn", false, clear.syn());
        t.check(PDS_PDC_003, "dpdcid", Some(target.pdc.local), clear.dpdcid());
        t.check_packet(&seen, &[WIRE_CTL_002, WIRE_CTL_004, WIRE_RSVD_001]);
        // CLEAR_COMMAND has used no PSN.
        expect_clear_psn(t, PDS_CLR_002, &mut target, 2, 1)
    }),
    rule("source-clear/unanswered-command", "A context goes on although nothing answers its CLEAR_COMMAND")
        .checks(&[PDS_CLR_008, PDS_PSN_001])
        .run(|t| {
            let (mut target, _) = message_in_flight(t, 1)?;
            let ack = guaranteed(&target, target.packet(1)?, ReturnCode::OK)?;
            target.answer(t, ack)?;
            expect_command(t, &target, 1)?;
            t.pause(t.until_given_up())?;
            expect_clear_psn(t, PDS_PSN_001, &mut target, 2, 1)
        }),
    rule("source-clear/in-requests", "Pending requests carry CLEAR_PSN instead of a CLEAR_COMMAND")
        .checks(&[PDS_CLR_006, PDS_CLR_009])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let count = 60;
            t.post(post(PostKind::Write, peer, count as usize * t.mtu()))?;
            target.collect(t, 2)?;
            let ack = guaranteed(&target, target.packet(1)?, ReturnCode::OK)?;
            // A device that still has requests to send can carry CLEAR_PSN in them.
            target.answer(t, ack)?;
            let psn = target.psn(1);
            let within = t.later();
            let (seen, _) = t.expect(PDS_CLR_006, &format!("CLEAR_PSN {psn}"), within, |seen| {
                let clear = clear_psn(&target, seen)?;
                (!psn.is_after(clear)).then_some(())
            })?;
            // After the last request, a CLEAR_COMMAND is correct.
            target.watch(t, t.grace())?;
            let new = target.got.iter().filter(|packet| !packet.request.retx());
            let last = new.map(|packet| packet.seen.number).chain([seen.number]).max().unwrap_or(0);
            let early =
                |seen: &RxPacket| target.control(seen, CtlType::CLEAR_COMMAND).filter(|_| seen.number < last);
            let commanded = early(&seen).is_some() || t.wait(Duration::ZERO, early)?.is_some();
            t.check(PDS_CLR_009, "CLEAR_COMMANDs while requests wait", 0, u32::from(commanded));
            Ok(())
        }),
    rule("source-clear/error", "A guaranteed error response fails the operation and is cleared")
        .checks(&[PDS_CLR_006])
        .run(|t| {
            let (target, written) = message_in_flight(t, 1)?;
            let ack = guaranteed(&target, target.packet(1)?, ReturnCode::BAD_MKEY)?;
            target.answer(t, ack)?;
            expect_clear(t, &target, PDS_CLR_006, 1)?;
            t.ends(PDS_CLR_006, written, Status::Refused)
        }),
    rule("source-clear/above-gap", "REQ_CLEAR above a gap clears no packet above it until the gap is filled")
        .checks(&[PDS_CLR_001, PDS_CLR_006])
        .run(|t| {
            let (target, written) = message_in_flight(t, 3)?;
            let ack = guaranteed(&target, target.packet(3)?, ReturnCode::OK)?;
            target.answer(t, ack.cack(target.psn(0)))?;
            let above = target.psn(1);
            t.expect_none(PDS_CLR_001, "no CLEAR_PSN above the acknowledged packets", t.rto() / 2, |seen| {
                let clear = clear_psn(&target, seen)?;
                (!above.is_after(clear)).then_some(())
            })?;
            target.name(t, 2, 1)?;
            target.name(t, 1, 1)?;
            // A device may have answered REQ_CLEAR before the gap was filled.
            request_clear(t, &target, 3)?;
            expect_clear(t, &target, PDS_CLR_006, 3)?;
            t.ends(PDS_CLR_006, written, Status::Ok)
        }),
    rule("source-clear/clear-request", "The device answers every CLEAR_REQUEST with CLEAR_PSN")
        .checks(&[PDS_CLR_007])
        .run(|t| {
            let (target, _) = message_in_flight(t, 2)?;
            target.ack(t, 2)?;
            t.settle()?;
            for _ in 0..3 {
                request_clear(t, &target, 2)?;
                expect_clear(t, &target, PDS_CLR_007, 2)?;
                t.settle()?;
            }
            Ok(())
        }),
    rule("source-clear/early-clear-request", "CLEAR_REQUEST clears no unacknowledged packet")
        .checks(&[PDS_CLR_001, PDS_CLR_007])
        .run(|t| {
            let (target, _) = message_in_flight(t, 2)?;
            target.ack(t, 1)?;
            t.settle()?;
            request_clear(t, &target, 2)?;
            let above = target.psn(2);
            t.expect_none(PDS_CLR_001, "no CLEAR_PSN above the acknowledged packets", t.rto() * 2, |seen| {
                let clear = clear_psn(&target, seen)?;
                (!above.is_after(clear)).then_some(())
            })?;
            target.ack(t, 2)?;
            t.settle()?;
            request_clear(t, &target, 2)?;
            expect_clear(t, &target, PDS_CLR_007, 2)
        }),
    rule("source-clear/read-in-ack", "Read data in an ACK completes the read and is cleared")
        .checks(&[PDS_CLR_006, PDS_ACK_016])
        .needs(&[READ])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let read = t.post(Post { want_data: true, ..post(PostKind::Read, peer, 8) })?;
            target.collect(t, 2)?;
            let data = read_data(&target.packet(1)?.seen, 8, ReturnCode::OK)?;
            let ack = AckBuilder { request: AckRequest::REQ_CLEAR, response: None, ..target.naming(1, 1) };
            let mut packet = ack.build()?;
            (packet.ses, packet.payload) = (Some(data.into()), b"read-ack".to_vec());
            t.send(&target.pdc, &packet.consistent())?;
            expect_clear(t, &target, PDS_CLR_006, 1)?;
            let within = t.soon();
            let ended = t.completion(read, within)?;
            t.check(
                PDS_CLR_006,
                "the completion",
                Some(Status::Ok),
                ended.as_ref().map(|ended| ended.status),
            );
            let data = ended.and_then(|ended| ended.data).map(|data| data.0);
            t.check(PDS_ACK_016, "the data", Some(b"read-ack".to_vec()), data);
            Ok(())
        }),
    rule("source-clear/sequence", "Each request clears the guaranteed responses received before it")
        .checks(&[PDS_CLR_001, PDS_CLR_003, PDS_PSN_001])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            for _ in 0..4 {
                t.post(post(PostKind::Write, peer, 64))?;
            }
            target.collect(t, 5)?;
            // The ACK of the third packet is late.
            for n in [1, 2, 4] {
                let ack = guaranteed(&target, target.packet(n)?, ReturnCode::OK)?.cack(target.psn(0));
                target.answer(t, ack)?;
            }
            expect_clear_psn(t, PDS_CLR_001, &mut target, 5, 2)?;
            let ack = guaranteed(&target, target.packet(3)?, ReturnCode::OK)?.cack(target.psn(2));
            target.answer(t, ack)?;
            expect_clear_psn(t, PDS_CLR_003, &mut target, 6, 4)
        }),
    rule("source-clear/full-window", "A device sends the clear that its full window waits for")
        .checks(&[PDS_CLR_008, PDS_WIN_004])
        .run(|t| {
            let range = smallest_range(t)?;
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, (range as usize + 20) * t.mtu()))?;
            let mut target = Target::accept(t)?;
            target.mpr = (range / 128) as u8;
            // Every response is guaranteed, and the target regards none as cleared.
            target.serve(t, range, |target, request| {
                let ack = guaranteed(target, request, ReturnCode::OK).ok()?;
                Some(ack.cack(target.psn(0) - 1))
            })?;
            // The device has cleared in requests, and the last responses by a CLEAR_COMMAND.
            expect_clear(t, &target, PDS_CLR_008, range - 1)?;
            let clear = target.acking(range - 1);
            target.answer(t, clear)?;
            target.expect_new(t, PDS_WIN_004, range)?;
            Ok(())
        }),
    rule("source-clear/ordered", "An ordered context clears guaranteed responses")
        .checks(&[PDS_CLR_006])
        .needs(&[ROD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rod)?;
            t.post(Post { mode: Mode::Rod, ..post(PostKind::Write, peer, 64) })?;
            target.collect(t, 2)?;
            let ack = guaranteed(&target, target.packet(1)?, ReturnCode::BAD_MKEY)?;
            target.answer(t, ack)?;
            expect_clear(t, &target, PDS_CLR_006, 1)
        }),
];

/// Expects a packet whose CLEAR_PSN is the `n`-th PSN.
fn expect_clear(t: &mut Test<'_>, target: &Target, requirement: &Requirement, n: u32) -> Outcome {
    let (psn, within) = (target.psn(n), t.later());
    t.expect(requirement, &format!("CLEAR_PSN {psn}"), within, |seen| {
        (clear_psn(target, seen)? == psn).then_some(())
    })?;
    Ok(())
}

/// Expects a CLEAR_COMMAND for the `n`-th PSN.
fn expect_command(t: &mut Test<'_>, target: &Target, n: u32) -> Result<(RxPacket, Control), Stop> {
    let (psn, within) = (target.psn(n), t.later());
    t.expect(PDS_CLR_008, &format!("a CLEAR_COMMAND for {psn}"), within, |seen| {
        target.control(seen, CtlType::CLEAR_COMMAND).filter(|command| command.clear_psn() == Some(psn))
    })
}

/// Has the device write one more packet, with the `n`-th PSN. Expects the `clear`-th PSN as its CLEAR_PSN.
fn expect_clear_psn(
    t: &mut Test<'_>,
    requirement: &Requirement,
    target: &mut Target,
    n: u32,
    clear: u32,
) -> Outcome {
    t.settle()?;
    let peer = t.peer(0)?;
    t.post(post(PostKind::Write, peer, 64))?;
    let seen = target.expect_new(t, PDS_PSN_001, n)?.request.clear_psn();
    t.check(requirement, "CLEAR_PSN", target.psn(clear), seen);
    Ok(())
}
