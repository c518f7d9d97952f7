//! Refused openings, and packets for no context or for the context of another peer (section 3.5.8).

use super::steps::{clear_command, close_context};
use crate::Trimmed;
use crate::prelude::*;
use crate::rules::delivery::rule;
use crate::rules::steps::with_demand;
use uet_wire::pds::Nack;

/// True if the first packet carries credit demand.
const OPENED: Axis<bool> = axis("opened").values(&[("plain", false), ("with-credit", true)]);

/// True if the first packets are trimmed; otherwise they are above the window.
const REFUSED: Axis<bool> =
    axis("refused").needing(&[("above-window", false, &[]), ("trimmed", true, &[TRIM])]);

pub(super) const RULES: &[Rule] = &[
    rule("establish/no-pdc", "A target without a free context sends NO_PDC_AVAIL and keeps nothing")
        .checks(&[PDS_OPEN_001, WIRE_NACK_003])
        .run(|t| {
            t.configure("general_pdcs", 2)?;
            let (first, region) = t.open()?;
            t.prove_established(&first)?;
            let mut second = t.initiate();
            t.establish(&mut second, &region)?;
            t.prove_established(&second)?;
            let third = t.initiate();
            expect_no_room(t, &third, &region, NackCode::NO_PDC_AVAIL)
        }),
    rule("establish/no-ccc", "A target without a free CCC sends NO_CCC_AVAIL and opens once one is free")
        .checks(&[PDS_OPEN_001, PDS_CLOSE_004, WIRE_NACK_003])
        .needs(&[TWO_ADDRESSES])
        .run(|t| {
            t.configure("cccs", 1)?;
            t.try_configure("general_pdcs", 3)?;
            let (pdc, region) = t.open()?;
            t.prove_established(&pdc)?;
            let other = t.initiate_from(1)?;
            expect_no_room(t, &other, &region, NackCode::NO_CCC_AVAIL)?;
            close_context(t, &pdc, 1)?;
            t.expect_room(PDS_CLOSE_004, &other, &region)
        }),
    rule("establish/no-bitmap", "A target without a free bitmap sends NO_BITMAP and opens once one is free")
        .checks(&[PDS_OPEN_001, WIRE_NACK_003])
        .run(|t| {
            t.configure("receive_slots", 1)?;
            t.try_configure("general_pdcs", 3)?;
            let region = t.region(4096)?;
            let mut pdc = t.initiate();
            // An uncleared error holds the only bitmap.
            t.request(&pdc, pdc.request(0).write_nowhere(&region, &[1; 16])?)?;
            let (_, ack) = t.need_ack(&pdc, pdc.psn(0))?;
            pdc.remote = Some(ack.spdcid());
            t.prove_established(&pdc)?;
            let other = t.initiate();
            expect_no_room(t, &other, &region, NackCode::NO_BITMAP)?;
            t.send(&pdc, &clear_command(&pdc, pdc.psn(0))?)?;
            t.request(&other, other.request(0).write(&region, 0, &[2; 16])?)?;
            t.expect_ack(PDS_OPEN_001, &other, other.psn(0))?;
            t.expect_memory(PDS_OPEN_001, &region, 0, &[2; 16])
        }),
    rule("establish/unknown-dpdcid", "A packet for an unknown PDCID gets INV_DPDCID and is not delivered")
        .checks(&[PDS_OPEN_002, WIRE_NACK_003])
        .run(|t| {
            let (open, region) = t.open()?;
            let pdc = t.initiate().of_nobody(open.remote);
            t.request(&pdc, pdc.request(0).write(&region, 0, &[1; 16])?)?;
            let (_, nack) = t.expect_nack(PDS_OPEN_002, &pdc, pdc.psn(0), &[NackCode::INV_DPDCID])?;
            check_no_context(t, &nack);
            t.pause(t.soon())?;
            t.check_memory(PDS_OPEN_002, &region, 0, &[0; 16])
        }),
    rule("establish/dpdcid-zero", "PDCID 0 names no context, even while a context is open")
        .checks(&[PDS_PDC_001])
        .run(|t| {
            let (pdc, region) = t.open()?;
            t.request(
                &pdc,
                Request { dpdcid: Some(PdcId::NONE), ..pdc.request(1).write(&region, 0, &[1; 16])? },
            )?;
            t.expect_silence(PDS_PDC_001, "no ACK of a packet for PDCID 0", |seen| {
                seen.acknowledges(&pdc, pdc.psn(1))
            })?;
            t.check_memory(PDS_PDC_001, &region, 0, &[0; 16])
        }),
    rule("establish/spdcid-zero", "A packet with spdcid 0 opens no context").checks(&[PDS_PDC_001]).run(
        |t| {
            let region = t.region(4096)?;
            let pdc = Pdc { local: PdcId::NONE, ..t.initiate() };
            t.request(&pdc, pdc.request(0).write(&region, 0, &[1; 16])?)?;
            t.expect_silence(PDS_PDC_001, "no ACK for PDCID 0", |seen| {
                (seen.ack()?.dpdcid() == PdcId::NONE).then_some(())
            })?;
            t.check_memory(PDS_PDC_001, &region, 0, &[0; 16])
        },
    ),
    rule("establish/other-spdcid", "A packet with another spdcid is refused and does not change the context")
        .checks(&[PDS_OPEN_003, WIRE_NACK_003])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let foreign = Pdc { local: t.initiate().local, ..pdc.clone() };
            expect_foreign_refused(t, &pdc, &foreign, &region)
        }),
    rule("establish/other-address", "A packet from another address is refused and changes no context")
        .checks(&[PDS_OPEN_003, WIRE_NACK_003])
        .needs(&[TWO_ADDRESSES])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let foreign = Pdc { from: t.initiate_from(1)?.from, ..pdc.clone() };
            expect_foreign_refused(t, &pdc, &foreign, &region)
        }),
    rule("establish/foreign-control", "Control packets from another address get no ACK and change nothing")
        .checks(&[PDS_OPEN_003, PDS_PDC_003])
        .needs(&[TWO_ADDRESSES])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let foreign = Pdc { from: t.initiate_from(1)?.from, ..pdc.clone() };
            t.request(&pdc, pdc.request(1).write_nowhere(&region, &[1; 16])?)?;
            t.need_ack(&pdc, pdc.psn(1))?;
            t.send(&foreign, &foreign.control(CtlType::CLEAR_COMMAND, Psn(0), pdc.psn(1).0)?)?;
            t.send(&foreign, &foreign.control(CtlType::CLOSE_COMMAND, pdc.psn(2), 0)?)?;
            t.send(&foreign, &foreign.control(CtlType::ACK_REQUEST, pdc.psn(1), 0)?)?;
            t.expect_silence(PDS_OPEN_003, "no ACK for another address", |seen| {
                (seen.wire.dst == foreign.from && seen.ack().is_some()).then_some(())
            })?;
            t.forget();
            // The context is neither cleared nor closed.
            t.request(&pdc, pdc.request(2).write(&region, 0, &[2; 16])?)?;
            let (_, ack) = t.expect_ack(PDS_PDC_003, &pdc, pdc.psn(2))?;
            t.check(PDS_OPEN_003, "cack_psn", pdc.psn(0), ack.cack_psn());
            t.expect_memory(PDS_PDC_003, &region, 0, &[2; 16])
        }),
    rule("establish/other-start", "A packet with syn and another Start_PSN is refused with INVALID_SYN")
        .checks(&[PDS_OPEN_005])
        .run(|t| {
            let (pdc, region) = t.open()?;
            // The last ones differ in one of the upper bits alone, in both directions.
            let far = [1u32 << 16, 1 << 24, 1 << 31].into_iter().flat_map(|bit| [bit, bit.wrapping_neg()]);
            let far = far.map(|distance| (1, distance.wrapping_add(1)));
            for (offset, psn) in [(5, 1), (0, 1), (1, 7)].into_iter().chain(far) {
                let clear = pdc.psn(psn) - offset - 1;
                let moved = Request { syn: true, offset, clear, ..pdc.request(psn) };
                t.request(&pdc, moved.write(&region, 0, &[1; 16])?)?;
                t.expect_nack(PDS_OPEN_005, &pdc, pdc.psn(psn), &[NackCode::INVALID_SYN])?;
            }
            t.pause(t.soon())?;
            t.check_memory(PDS_OPEN_005, &region, 0, &[0; 16])?;
            t.request(&pdc, pdc.request(1).write(&region, 0, &[2; 16])?)?;
            t.expect_cack(PDS_OPEN_005, &pdc, pdc.psn(1))?;
            Ok(())
        }),
    rule("establish/syn-above-window", "A packet with syn above the window is refused with INVALID_SYN")
        .checks(&[PDS_OPEN_004])
        .run(|t| {
            let (pdc, region) = t.open()?;
            // PSN 0 is the cumulative PSN.
            let beyond = t.beyond(&pdc)?;
            require(beyond <= 4095, "the window is wider than psn_offset")?;
            t.request(&pdc, Request { syn: true, ..pdc.request(beyond).write(&region, 0, &[1; 16])? })?;
            t.expect_nack(PDS_OPEN_004, &pdc, pdc.psn(beyond), &[NackCode::INVALID_SYN])?;
            t.pause(t.soon())?;
            t.check_memory(PDS_OPEN_004, &region, 0, &[0; 16])
        }),
    rule("establish/first-above-window", "A first packet above the default window gets INVALID_SYN")
        .checks(&[PDS_OPEN_004])
        .run(|t| {
            let region = t.region(4096)?;
            let pdc = t.initiate();
            let above = t.default_range();
            require(above <= 4095, "the default window is wider than psn_offset")?;
            t.request(&pdc, pdc.request(above).write(&region, 0, &[1; 16])?)?;
            t.expect_nack(PDS_OPEN_004, &pdc, pdc.psn(above), &[NackCode::INVALID_SYN])?;
            t.pause(t.soon())?;
            t.check_memory(PDS_OPEN_004, &region, 0, &[0; 16])
        }),
    rule("establish/other-mode", "A packet of the other delivery mode is refused with PDC_MODE_MISMATCH")
        .checks(&[PDS_OPEN_008])
        .needs(&[ROD])
        .run(|t| {
            let region = t.region(4096)?;
            for rod in [false, true] {
                let mut pdc = Pdc { rod, ..t.initiate() };
                t.establish(&mut pdc, &region)?;
                let other = Pdc { rod: !rod, ..pdc.clone() };
                t.request(&other, other.request(1).write(&region, 0, &[1; 16])?)?;
                t.expect_nack(PDS_OPEN_008, &pdc, pdc.psn(1), &[NackCode::PDC_MODE_MISMATCH])?;
            }
            t.pause(t.soon())?;
            t.check_memory(PDS_OPEN_008, &region, 0, &[0; 16])
        }),
    rule("establish/other-mode-credit", "With credit demand, a packet of the other mode is still refused")
        .checks(&[PDS_OPEN_008])
        .needs(&[ROD, RUD, RCCC, WRITE])
        .over(&[&OPENED, &MODE, &START])
        .run(|t| {
            t.congestion_or_both("rccc")?;
            let region = t.region(4096)?;
            let mut pdc = t.initiate();
            let first = pdc.request(0).write(&region, 0, &[0])?;
            let packet = if t.value(&OPENED) { with_demand(&first, 0xa1, 0)? } else { first.build()? };
            t.send(&pdc, &packet)?;
            let (_, ack) = t.need_ack(&pdc, pdc.psn(0))?;
            pdc.remote = Some(ack.spdcid());
            let other = Pdc { rod: !pdc.rod, ..pdc.clone() };
            for credit in [true, false] {
                let request = other.request(1).write(&region, 0, &[1; 16])?;
                t.forget();
                t.send(&pdc, &if credit { with_demand(&request, 0xa1, 0)? } else { request.build()? })?;
                t.expect_nack(PDS_OPEN_008, &pdc, pdc.psn(1), &[NackCode::PDC_MODE_MISMATCH])?;
            }
            t.pause(t.soon())?;
            t.check_memory(PDS_OPEN_008, &region, 0, &[0; 16])
        }),
    rule("establish/repeated-refusals", "Repeated refusals of first packets use up no contexts")
        .checks(&[PDS_OPEN_004, PDS_TRIM_004])
        .over(&[&REFUSED, &MODE, &CARRIER])
        .run(|t| {
            let above = t.default_range();
            let trimmed = t.value(&REFUSED);
            require(trimmed || above <= 4095, "the default window is wider than psn_offset")?;
            t.try_configure("general_pdcs", 2)?;
            let region = t.region(4096)?;
            for _ in 0..6 {
                let pdc = t.initiate();
                if trimmed {
                    let packet = pdc.request(0).write(&region, 0, &[1; 200])?.build()?;
                    t.send_wire(&pdc.trimmed(&packet, Trimmed::Fabric, 16))?;
                    // Open: whether the device replies.
                    t.wait(t.soon(), |seen| seen.refuses(&pdc, pdc.psn(0)))?;
                    continue;
                }
                t.request(&pdc, pdc.request(above).write(&region, 0, &[1; 16])?)?;
                t.expect_nack(PDS_OPEN_004, &pdc, pdc.psn(above), &[NackCode::INVALID_SYN])?;
            }
            let requirement = if trimmed { PDS_TRIM_004 } else { PDS_OPEN_004 };
            let pdc = t.initiate();
            t.request(&pdc, pdc.request(0).write(&region, 0, &[2; 16])?)?;
            t.expect_ack(requirement, &pdc, pdc.psn(0))?;
            t.expect_memory(requirement, &region, 0, &[2; 16])
        }),
    rule("establish/works-after-refusals", "The device serves a new context after refusals of all kinds")
        .checks(&[ROB_LIFE_001])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let foreign = Pdc { local: t.initiate().local, ..pdc.clone() };
            t.request(&foreign, foreign.request(1).write(&region, 0, &[1; 16])?)?;
            t.request(&pdc, Request { syn: true, offset: 9, ..pdc.request(1).write(&region, 0, &[1; 16])? })?;
            let pdc = pdc.of_nobody(None);
            t.request(&pdc, pdc.request(1).write(&region, 0, &[1; 16])?)?;
            t.expect_life(ROB_LIFE_001)
        }),
];

/// Checks that a NACK names no context of the device.
fn check_no_context(t: &mut Test<'_>, nack: &Nack) {
    t.check(WIRE_NACK_003, "spdcid", PdcId::NONE, nack.spdcid());
}

/// Expects that first packets are refused for lack of resources. Each has another Start_PSN, and every second
/// one another PDCID. State left by a refusal would change the reply to the next packet.
fn expect_no_room(t: &mut Test<'_>, pdc: &Pdc, region: &Region, code: NackCode) -> Outcome {
    let other = t.initiate().local;
    for n in 0..6 {
        let local = if n % 2 == 0 { pdc.local } else { other };
        let pdc = Pdc { start: pdc.start + (n << 20), local, ..pdc.clone() };
        t.request(&pdc, pdc.request(0).write(region, 0, &[1; 16])?)?;
        let (_, nack) = t.expect_nack(PDS_OPEN_001, &pdc, pdc.psn(0), &[code])?;
        check_no_context(t, &nack);
    }
    t.pause(t.soon())?;
    t.check_memory(PDS_OPEN_001, region, 0, &[0; 16])
}

/// Expects that a request from `foreign` with the next PSN of `pdc` is refused.
fn expect_foreign_refused(t: &mut Test<'_>, pdc: &Pdc, foreign: &Pdc, region: &Region) -> Outcome {
    t.request(foreign, foreign.request(1).write(region, 0, &[1; 16])?)?;
    let (_, nack) = t.expect_nack(PDS_OPEN_003, foreign, pdc.psn(1), &[NackCode::PDC_HDR_MISMATCH])?;
    check_no_context(t, &nack);
    t.pause(t.soon())?;
    t.check_memory(PDS_OPEN_003, region, 0, &[0; 16])?;
    // The PSN is still free for the context.
    t.request(pdc, pdc.request(1).write(region, 0, &[2; 16])?)?;
    t.expect_cack(PDS_OPEN_003, pdc, pdc.psn(1))?;
    t.expect_memory(PDS_OPEN_003, region, 0, &[2; 16])
}
