//! The Start_PSNs that a target accepts, so that no replayed packet opens a context (section 3.5.8).

use super::steps::{
    NEEDS, check_write, close_context, establish_as, learn_start, open_new, open_secured, plain_write,
};
use crate::SECURED;
use crate::prelude::*;
use uet_wire::pds::Nack;

/// The method by which the target recognizes a new Start_PSN.
pub(super) const METHOD: Axis<&str> =
    axis("method").values(&[("expected", "expected"), ("random", "random")]);

/// The lowest Start_PSN that a device with the method `expected` accepts.
const FLOOR: Axis<&str> = axis("floor").values(&[("highest", "highest"), ("start", "start")]);

/// The distance of the first packet to arrive from its Start_PSN.
const OFFSET: Axis<u32> = axis("psn-offset").values(&[("0", 0), ("2", 2)]);

/// The reason for which the target closes the context in error: nobody commands the close, or read data is
/// unacknowledged.
const IN_ERROR: Axis<bool> =
    axis("reason").needing(&[("no-command", false, &[]), ("unfinished", true, &[READ])]);

const ENTROPY_NEEDS: &[Need] = &[RUD, WRITE, TSS, SEE_ENTROPY, SET_ENTROPY];

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(NEEDS).over(&[&SECURED, &METHOD])
}

pub(super) const RULES: &[Rule] = &[
    rule("tss-start/opens", "A context opens at its own Start_PSN or at the one that the target requires")
        .checks(&[TSS_START_002])
        .run(|t| {
            secure_with_method(t, t.value(&METHOD))?;
            let (pdc, region) = open_new(t, TSS_START_002)?;
            check_write(t, TSS_START_002, &pdc, &region, 1)
        }),
    rule("tss-start/replayed-opening", "Neither Start_PSN method lets a replayed opening packet execute")
        .checks(&[TSS_START_001])
        .over(&[&SECURED, &METHOD, &MODE])
        .run(|t| {
            secure_with_method(t, t.value(&METHOD))?;
            let region = t.region(1 << 16)?;
            let (pdc, opening) = open_recorded(t, &region)?;
            overwrite_and_close(t, &pdc, &region)?;
            for _ in 0..3 {
                t.send_as_it_is(&opening)?;
            }
            check_not_executed(t, &region)
        }),
    rule("tss-start/replayed-while-open", "A replayed opening packet executes nothing on its open context")
        .checks(&[PDS_DUP_001])
        .over(&[&SECURED, &METHOD, &MODE])
        .run(|t| {
            secure_with_method(t, t.value(&METHOD))?;
            let region = t.region(1 << 16)?;
            let (pdc, opening) = open_recorded(t, &region)?;
            t.request(&pdc, pdc.request(1).write(&region, 0, &[0xee; 128])?)?;
            t.need_ack(&pdc, pdc.psn(1))?;
            for _ in 0..3 {
                t.send_as_it_is(&opening)?;
            }
            t.pause(t.soon())?;
            t.check_memory(PDS_DUP_001, &region, 0, &[0xee; 128])?;
            check_write(t, PDS_DUP_001, &pdc, &region, 2)
        }),
    rule("tss-start/replayed-requests", "Replayed requests execute nothing after their context has closed")
        .checks(&[TSS_START_001])
        .over(&[&SECURED, &METHOD, &MODE])
        .run(|t| {
            secure_with_method(t, t.value(&METHOD))?;
            let region = t.region(1 << 16)?;
            let (pdc, opening) = open_recorded(t, &region)?;
            let request = t.sealed(&plain_write(&pdc, &region, 1)?)?;
            t.send_as_it_is(&request)?;
            t.need_ack(&pdc, pdc.psn(1))?;
            t.request(&pdc, pdc.request(2).write(&region, 0, &[0xee; 128])?)?;
            t.need_ack(&pdc, pdc.psn(2))?;
            close_context(t, &pdc, 3)?;
            t.send_as_it_is(&request)?;
            t.send_as_it_is(&opening)?;
            t.send_as_it_is(&request)?;
            check_not_executed(t, &region)
        }),
    rule("tss-start/replayed-next-context", "A replayed opening packet has no effect on the next context")
        .checks(&[TSS_START_001])
        .run(|t| {
            secure_with_method(t, t.value(&METHOD))?;
            let region = t.region(1 << 16)?;
            let (pdc, opening) = open_recorded(t, &region)?;
            overwrite_and_close(t, &pdc, &region)?;
            // The next context of the same PDCID.
            let mut next = Pdc { remote: None, start: pdc.start + 0x1000, ..pdc.clone() };
            establish_as(t, TSS_START_001, &mut next, &region)?;
            t.send_as_it_is(&opening)?;
            check_not_executed(t, &region)?;
            check_write(t, TSS_START_001, &next, &region, 4)
        }),
    rule("tss-start/closed-in-error", "A replayed opening packet does not execute after a close in error")
        .checks(&[TSS_START_001])
        .over(&[&SECURED, &METHOD, &IN_ERROR, &MODE])
        .run(|t| {
            let unfinished = t.value(&IN_ERROR);
            secure_with_method(t, t.value(&METHOD))?;
            if !unfinished {
                t.configure("idle_time", 1_000_000)?;
                t.try_configure("close_req_time", 50_000_000)?;
            }
            let region = t.region(1 << 16)?;
            let (pdc, opening) = open_recorded(t, &region)?;
            t.request(&pdc, pdc.request(1).write(&region, 0, &[0xee; 128])?)?;
            t.need_ack(&pdc, pdc.psn(1))?;
            if unfinished {
                let length = t.beyond_ack()?;
                t.request(&pdc, pdc.request(2).read(&region, 0, length)?)?;
                t.need_ack(&pdc, pdc.psn(2))?;
                t.send(&pdc, &pdc.numbered(CtlType::CLOSE_COMMAND, 3)?)?;
            }
            let within = t.soon() + t.scaled(Duration::from_nanos(t.parameter("close_req_time"))) * 2;
            t.need("NACK CLOSING_IN_ERR", within, |seen| {
                let nack = seen.nack().filter(|_| seen.is_for(&pdc))?;
                (nack.nack_code() == NackCode::CLOSING_IN_ERR).then_some(())
            })?;
            t.pause(t.scaled(Duration::from_nanos(t.parameter("syn_retx_safety_time"))) * 2)?;
            t.settle()?;
            for _ in 0..3 {
                t.send_as_it_is(&opening)?;
            }
            check_not_executed(t, &region)
        }),
    rule("tss-start/floor", "A Start_PSN at or below that of a closed context opens no context")
        .checks(&[TSS_START_001])
        .over(&[&SECURED, &FLOOR])
        .run(|t| {
            t.configure("start_psn_floor", t.value(&FLOOR))?;
            secure_with_method(t, "expected")?;
            let region = t.region(1 << 16)?;
            let (pdc, _) = open_recorded(t, &region)?;
            overwrite_and_close(t, &pdc, &region)?;
            // Both floors are above the Start_PSN of the closed context.
            for below in [0, 1, 1000] {
                let old = Pdc { start: pdc.start - below, ..t.initiate() };
                t.send_wire(&plain_write(&old, &region, 0)?)?;
                check_not_executed(t, &region)?;
            }
            Ok(())
        }),
    rule("tss-start/floor-of-two", "The close of an older context does not lower the floor of Start_PSNs")
        .checks(&[TSS_START_001])
        .over(&[&SECURED, &FLOOR])
        .run(|t| {
            t.configure("start_psn_floor", t.value(&FLOOR))?;
            secure_with_method(t, "expected")?;
            let region = t.region(1 << 16)?;
            let (older, _) = open_recorded(t, &region)?;
            let newer = Pdc { start: older.start + 50_000, ..t.initiate() };
            let (newer, opening) = open_recorded_as(t, newer, &region)?;
            require(newer.start.is_after(older.start), "the second context starts below the first")?;
            overwrite_and_close(t, &newer, &region)?;
            overwrite_and_close(t, &older, &region)?;
            t.send_as_it_is(&opening)?;
            check_not_executed(t, &region)
        }),
    rule("tss-start/nack", "NACK NEW_START_PSN has the refused PSN, spdcid 0 and the initiator's dpdcid")
        .checks(&[TSS_START_002])
        .over(&[&SECURED, &METHOD, &OFFSET])
        .run(|t| {
            secure_with_method(t, t.value(&METHOD))?;
            let region = t.region(1 << 16)?;
            let n = t.value(&OFFSET);
            let (pdc, _, nack) = refused_arrival(t, TSS_START_002, &region, n)?;
            t.check(TSS_START_002, "nack_code", NackCode::NEW_START_PSN, nack.nack_code());
            t.check(TSS_START_002, "nack_psn", Some(pdc.psn(n)), nack.nack_psn());
            t.check(TSS_START_002, "spdcid", PdcId::NONE, nack.spdcid());
            t.check(TSS_START_002, "dpdcid", pdc.local, nack.dpdcid());
            Ok(())
        }),
    rule("tss-start/nack-entropy", "NACK NEW_START_PSN has the entropy value of the refused request")
        .checks(&[TSS_START_002])
        .needs(ENTROPY_NEEDS)
        .over(&[&SECURED])
        .run(|t| {
            secure_with_method(t, "expected")?;
            let region = t.region(1 << 16)?;
            let (pdc, seen, _) = refused_opening(t, TSS_START_002, &region)?;
            t.check(TSS_START_002, "entropy value:", pdc.entropy, seen.wire.entropy);
            Ok(())
        }),
    rule("tss-start/serial", "Start_PSNs that follow the floor by serial comparison open contexts at once")
        .checks(&[TSS_START_002, TSS_START_001])
        .over(&[&SECURED])
        .run(|t| {
            secure_with_method(t, "expected")?;
            let region = t.region(1 << 16)?;
            // Each follows the one before. The first floor is 0.
            for start in [0x7000_0000, 0xd000_0000, 0x2000_0000] {
                let pdc = Pdc { start: Psn(start), ..t.initiate() };
                let (pdc, opening) = open_recorded_as(t, pdc, &region)?;
                t.check(TSS_START_002, "Start_PSN", Psn(start), pdc.start);
                overwrite_and_close(t, &pdc, &region)?;
                t.send_as_it_is(&opening)?;
                check_not_executed(t, &region)?;
            }
            Ok(())
        }),
    rule("tss-start/close-ack", "The Start_PSN in the ACK of CLOSE_COMMAND opens the next context")
        .checks(&[TSS_START_007])
        .over(&[&SECURED])
        .run(|t| {
            let (pdc, region) = open_secured(t)?;
            check_write(t, TSS_START_007, &pdc, &region, 1)?;
            close_context(t, &pdc, 2)?;
            let Some(start) = t.shield()?.told.last().copied() else {
                return skip("the device states no Start_PSN in the ACK of CLOSE_COMMAND");
            };
            let mut next = Pdc { start, ..t.initiate() };
            establish_as(t, TSS_START_007, &mut next, &region)?;
            t.check(TSS_START_007, "Start_PSN", start, next.start);
            Ok(())
        }),
    rule("tss-start/successive-contexts", "A target opens and closes several contexts in succession")
        .checks(&[TSS_START_002])
        .run(|t| {
            secure_with_method(t, t.value(&METHOD))?;
            for _ in 0..4 {
                let (pdc, region) = open_new(t, TSS_START_002)?;
                check_write(t, TSS_START_002, &pdc, &region, 1)?;
                close_context(t, &pdc, 2)?;
            }
            Ok(())
        }),
];

/// Selects the method, and makes the device a member of the domain of the instance.
pub(super) fn secure_with_method(t: &mut Test<'_>, method: &str) -> Outcome {
    t.configure("start_psn_method", method)?;
    t.secure(t.value(&SECURED))
}

/// Opens a context with write 0, and returns the packet that opened it.
pub(super) fn open_recorded(t: &mut Test<'_>, region: &Region) -> Result<(Pdc, crate::Wire), Stop> {
    let pdc = t.initiate();
    open_recorded_as(t, pdc, region)
}

/// Opens this context with write 0, at another Start_PSN if the target requires one. Returns it, and the
/// packet that opened it.
fn open_recorded_as(t: &mut Test<'_>, mut pdc: Pdc, region: &Region) -> Result<(Pdc, crate::Wire), Stop> {
    let mut opening = t.sealed(&plain_write(&pdc, region, 0)?)?;
    t.send_as_it_is(&opening)?;
    if learn_start(t, &mut pdc, |pdc, seen| seen.acknowledges(pdc, pdc.psn(0)).is_some())? {
        opening = t.sealed(&plain_write(&pdc, region, 0)?)?;
        t.send_as_it_is(&opening)?;
    }
    let (_, ack) = t.need_ack(&pdc, pdc.psn(0))?;
    pdc.remote = Some(ack.spdcid());
    Ok((pdc, opening))
}

/// Overwrites the data of write 0, and closes the context.
pub(super) fn overwrite_and_close(t: &mut Test<'_>, pdc: &Pdc, region: &Region) -> Outcome {
    t.request(pdc, pdc.request(1).write(region, 0, &[0xee; 128])?)?;
    t.need_ack(pdc, pdc.psn(1))?;
    close_context(t, pdc, 2)
}

/// Checks that no replayed write has replaced the later data.
pub(super) fn check_not_executed(t: &mut Test<'_>, region: &Region) -> Outcome {
    t.pause(t.soon())?;
    t.check_memory(TSS_START_001, region, 0, &[0xee; 128])
}

/// Opens and closes a context, and sends the opening packet of another with the same Start_PSN. The target
/// refuses it, and that context is pending. Returns the NACK, whose payload is the Start_PSN that the target
/// requires.
pub(super) fn refused_opening(
    t: &mut Test<'_>,
    requirement: &Requirement,
    region: &Region,
) -> Result<(Pdc, RxPacket, Nack), Stop> {
    refused_arrival(t, requirement, region, 0)
}

/// Does the same with the `n`-th packet of a context as the first that arrives.
fn refused_arrival(
    t: &mut Test<'_>,
    requirement: &Requirement,
    region: &Region,
    n: u32,
) -> Result<(Pdc, RxPacket, Nack), Stop> {
    let (closed, _) = open_recorded(t, region)?;
    overwrite_and_close(t, &closed, region)?;
    t.forget();
    let pdc = Pdc { start: closed.start, ..t.initiate() };
    t.request(&pdc, pdc.request(n).write(region, 256, &[1; 32])?)?;
    let nack = |seen: &RxPacket| {
        seen.new_start(&pdc)?;
        seen.nack()
    };
    let (seen, nack) = t.expect(requirement, "NACK NEW_START_PSN", t.soon(), nack)?;
    Ok((pdc, seen, nack))
}
