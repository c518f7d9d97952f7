//! Pending contexts: what opens them, and what does not (section 3.5.8).

use super::start::{METHOD, open_recorded, overwrite_and_close, refused_opening, secure_with_method};
use super::steps::{
    NEEDS, check_write, establish_as, expect_executed, expect_ignored, plain_write, with_wrong_icv,
};
use crate::SECURED;
use crate::prelude::*;

/// A control packet that may open a context.
const OPENING: Axis<CtlType> = axis("control")
    .needing(&[("noop", CtlType::NOOP, &[]), ("negotiation", CtlType::NEGOTIATION, &[NEGOTIATION])]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(NEEDS).over(&[&SECURED, &METHOD])
}

pub(super) const RULES: &[Rule] = &[
    rule("tss-start/pending", "A request with a refused Start_PSN is never executed")
        .checks(&[TSS_START_004])
        .run(|t| {
            secure_with_method(t, t.value(&METHOD))?;
            let region = t.region(1 << 16)?;
            let (pdc, ..) = refused_opening(t, TSS_START_004, &region)?;
            for n in [0, 1, 0] {
                t.request(&pdc, pdc.request(n).write(&region, 256, &[1; 32])?)?;
            }
            t.expect_none(TSS_START_004, "an ACK", t.soon(), |seen| {
                seen.is_for(&pdc).then(|| seen.ack()).flatten()
            })?;
            t.check_memory(TSS_START_004, &region, 256, &[0; 32])
        }),
    rule(
        "tss-start/repeated-nack",
        "While a context is pending, each NACK requires the Start_PSN of the first",
    )
    .checks(&[TSS_START_006])
    .run(|t| {
        // The context stays pending until the script ends.
        t.try_configure("new_pdc_time", 1_000_000_000)?;
        secure_with_method(t, t.value(&METHOD))?;
        let region = t.region(1 << 16)?;
        let (pdc, _, first) = refused_opening(t, TSS_START_006, &region)?;
        for n in [0, 1, 2] {
            t.request(&pdc, pdc.request(n).write(&region, 256, &[1; 32])?)?;
            let demand = |seen: &RxPacket| seen.new_start(&pdc);
            let (_, start) = t.expect(TSS_START_006, "NACK NEW_START_PSN", t.soon(), demand)?;
            t.check(TSS_START_006, "the required Start_PSN", Psn(first.payload()), start);
        }
        // A packet from another wrong Start_PSN gets the same answer.
        let other = Pdc { start: pdc.start - 77, ..pdc.clone() };
        t.request(&other, other.request(0).write(&region, 256, &[1; 32])?)?;
        let (_, start) =
            t.expect(TSS_START_006, "NACK NEW_START_PSN", t.soon(), |seen| seen.new_start(&pdc))?;
        t.check(TSS_START_006, "the required Start_PSN", Psn(first.payload()), start);
        let mut right = Pdc { start, ..pdc };
        establish_as(t, TSS_START_006, &mut right, &region)?;
        t.check(TSS_START_006, "the Start_PSN of the context", start, right.start);
        Ok(())
    }),
    rule("tss-start/psn-offset", "A pending context opens with a packet at an offset from its Start_PSN")
        .checks(&[TSS_START_004])
        .over(&[&SECURED])
        .run(|t| {
            secure_with_method(t, "random")?;
            let region = t.region(1 << 16)?;
            let (pdc, _, nack) = refused_opening(t, TSS_START_004, &region)?;
            let pdc = Pdc { start: Psn(nack.payload()), ..pdc };
            for n in [2, 0, 1] {
                t.send_wire(&plain_write(&pdc, &region, n)?)?;
                expect_executed(t, TSS_START_004, &pdc, &region, n)?;
            }
            Ok(())
        }),
    rule("tss-start/many-pending", "Pending contexts do not stop a target from opening others")
        .checks(&[TSS_START_004])
        .over(&[&SECURED])
        .run(|t| {
            secure_with_method(t, "random")?;
            let region = t.region(1 << 16)?;
            for _ in 0..200 {
                let pdc = t.initiate();
                t.request(&pdc, pdc.request(0).write(&region, 256, &[1; 32])?)?;
            }
            let wait = t.scaled(Duration::from_nanos(t.parameter("new_pdc_time")));
            t.pause(wait + t.soon())?;
            t.forget();
            t.check_memory(TSS_START_004, &region, 256, &[0; 32])?;
            let mut pdc = t.initiate();
            establish_as(t, TSS_START_004, &mut pdc, &region)?;
            check_write(t, TSS_START_004, &pdc, &region, 1)
        }),
    rule("tss-start/wrong-icv", "A packet with a wrong ICV does not open a pending context")
        .checks(&[TSS_ICV_002, TSS_ICV_003])
        .run(|t| {
            secure_with_method(t, t.value(&METHOD))?;
            let region = t.region(1 << 16)?;
            let (pdc, _, nack) = refused_opening(t, TSS_ICV_002, &region)?;
            t.settle()?;
            let mut right = Pdc { start: Psn(nack.payload()), ..pdc };
            let forged = with_wrong_icv(t, &plain_write(&right, &region, 0)?)?;
            t.send_as_it_is(&forged)?;
            expect_ignored(t, [TSS_ICV_002, TSS_ICV_003], &region, (0, &[0xee; 32]))?;
            establish_as(t, TSS_ICV_002, &mut right, &region)?;
            check_write(t, TSS_ICV_002, &right, &region, 1)
        }),
    rule("tss-start/pending-without-syn", "A packet without syn does not open a pending context")
        .checks(&[TSS_START_004])
        .over(&[&SECURED])
        .run(|t| {
            // The pending context can only get the PDCID of the closed one.
            t.configure("general_pdcs", 1)?;
            t.try_configure("new_pdc_time", 1_000_000_000)?;
            secure_with_method(t, "random")?;
            let region = t.region(1 << 16)?;
            let (closed, _) = open_recorded(t, &region)?;
            overwrite_and_close(t, &closed, &region)?;
            t.forget();
            let pdc = t.initiate();
            t.send_wire(&plain_write(&pdc, &region, 0)?)?;
            let (_, start) = t.need("NACK NEW_START_PSN", t.soon(), |seen| seen.new_start(&pdc))?;
            let guessed = Pdc { start, remote: closed.remote, ..pdc.clone() };
            for n in [0, 1] {
                t.send_wire(&plain_write(&guessed, &region, n)?)?;
            }
            t.expect_none(TSS_START_004, "an ACK", t.soon(), |seen| {
                seen.is_for(&pdc).then(|| seen.ack()).flatten()
            })?;
            t.check_memory(TSS_START_004, &region, 0, &[0xee; 128])?;
            let mut right = Pdc { start, ..pdc };
            establish_as(t, TSS_START_004, &mut right, &region)?;
            check_write(t, TSS_START_004, &right, &region, 1)
        }),
    rule("tss-start/control", "A control packet with a refused Start_PSN opens no context")
        .checks(&[TSS_START_006, TSS_START_004])
        .over(&[&SECURED, &OPENING])
        .run(|t| {
            t.try_configure("new_pdc_time", 1_000_000_000)?;
            secure_with_method(t, "random")?;
            let region = t.region(1 << 16)?;
            let pdc = t.initiate();
            t.send(&pdc, &pdc.numbered(t.value(&OPENING), 0)?)?;
            let demands = |seen: &RxPacket| seen.new_start(&pdc);
            let (_, start) = t.expect(TSS_START_006, "NACK NEW_START_PSN", t.soon(), demands)?;
            t.expect_none(TSS_START_004, "an ACK", t.soon(), |seen| {
                seen.is_for(&pdc).then(|| seen.ack()).flatten()
            })?;
            let right = Pdc { start, ..pdc.clone() };
            t.send(&right, &right.numbered(t.value(&OPENING), 0)?)?;
            let (_, ack) = t.expect_ack(TSS_START_004, &right, right.psn(0))?;
            let right = Pdc { remote: Some(ack.spdcid()), ..right };
            check_write(t, TSS_START_004, &right, &region, 1)
        }),
];
