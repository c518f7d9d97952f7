//! Openings that fail, and packets that meet no context, or one that is not theirs (section 3.5.8).

use super::rccc::demanding;
use crate::axis::{CARRIER, MODE, START};
use crate::{Axis, Need, Outcome, Pdc, Point, Region, Request, Rule, Stop, Test, Trimmed};
use uet_wire::catalogue::*;
use uet_wire::pds::Nack;
use uet_wire::registry::{CtlType, NackCode};
use uet_wire::{PdcId, Psn};

pub(super) const CASES: &[Rule] = &[
    Rule {
        id: "establish/no-pdc",
        title: "A target without a free context says so, and keeps nothing",
        requirements: &[PDS_OPEN_001, WIRE_NACK_003],
        needs: &[],
        axes: &[&MODE, &CARRIER, &START],
        run: no_pdc,
    },
    Rule {
        id: "establish/no-ccc",
        title: "A target without a free congestion control context says so, and opens when there is one",
        requirements: &[PDS_OPEN_001, PDS_CLOSE_004, WIRE_NACK_003],
        needs: &[Need::Addresses(2)],
        axes: &[&MODE, &CARRIER, &START],
        run: no_ccc,
    },
    Rule {
        id: "establish/no-bitmap",
        title: "A target without a free bitmap says so, and opens when there is one",
        requirements: &[PDS_OPEN_001, WIRE_NACK_003],
        needs: &[],
        axes: &[&MODE, &CARRIER, &START],
        run: no_bitmap,
    },
    Rule {
        id: "establish/unknown-dpdcid",
        title: "A packet without syn for a PDCID that nobody has is answered INV_DPDCID and not delivered",
        requirements: &[PDS_OPEN_002, WIRE_NACK_003],
        needs: &[],
        axes: &[&MODE, &CARRIER, &START],
        run: unknown_dpdcid,
    },
    Rule {
        id: "establish/dpdcid-zero",
        title: "PDCID 0 is nobody's, though a context is open",
        requirements: &[PDS_PDC_001],
        needs: &[],
        axes: &[&MODE, &CARRIER, &START],
        run: dpdcid_zero,
    },
    Rule {
        id: "establish/spdcid-zero",
        title: "A packet whose sender has no PDCID opens nothing",
        requirements: &[PDS_PDC_001],
        needs: &[],
        axes: &[&MODE, &CARRIER, &START],
        run: spdcid_zero,
    },
    Rule {
        id: "establish/other-spdcid",
        title: "A packet of another PDCID of the peer is not of the context, and changes nothing",
        requirements: &[PDS_OPEN_003, WIRE_NACK_003],
        needs: &[],
        axes: &[&MODE, &CARRIER, &START],
        run: other_spdcid,
    },
    Rule {
        id: "establish/other-address",
        title: "A packet from another address is not of the context, and changes nothing",
        requirements: &[PDS_OPEN_003, WIRE_NACK_003],
        needs: &[Need::Addresses(2)],
        axes: &[&MODE, &CARRIER, &START],
        run: other_address,
    },
    Rule {
        id: "establish/control-of-another",
        title: "Control packets from another address neither clear nor close nor ask",
        requirements: &[PDS_OPEN_003, PDS_PDC_003],
        needs: &[Need::Addresses(2)],
        axes: &[&MODE, &CARRIER, &START],
        run: control_of_another,
    },
    Rule {
        id: "establish/start-moved",
        title: "A packet with syn from another Start_PSN is answered INVALID_SYN and not delivered",
        requirements: &[PDS_OPEN_005],
        needs: &[],
        axes: &[&MODE, &CARRIER, &START],
        run: start_moved,
    },
    Rule {
        id: "establish/syn-above-window",
        title: "A packet with syn above the window is answered INVALID_SYN and not delivered",
        requirements: &[PDS_OPEN_004],
        needs: &[],
        axes: &[&MODE, &CARRIER, &START],
        run: syn_above_window,
    },
    Rule {
        id: "establish/first-above-window",
        title: "A first packet above the default window is answered INVALID_SYN and opens nothing",
        requirements: &[PDS_OPEN_004],
        needs: &[],
        axes: &[&MODE, &CARRIER, &START],
        run: first_above_window,
    },
    Rule {
        id: "establish/other-mode",
        title: "A packet of the other mode is answered PDC_MODE_MISMATCH and not delivered",
        requirements: &[PDS_OPEN_008],
        needs: &[Need::Capability("rod")],
        axes: &[&MODE, &CARRIER, &START],
        run: other_mode,
    },
    Rule {
        id: "establish/other-mode-with-credit",
        title: "A packet of the other mode that carries demand for credit is answered PDC_MODE_MISMATCH too",
        requirements: &[PDS_OPEN_008],
        needs: &[
            Need::Capability("rod"),
            Need::Capability("rud"),
            Need::Capability("rccc"),
            Need::Capability("write"),
        ],
        axes: &[&OPENED, &MODE, &START],
        run: other_mode_with_credit,
    },
    Rule {
        id: "establish/refused-often",
        title: "However often an opening is refused, it keeps no context, and there is room afterwards",
        requirements: &[PDS_OPEN_004, PDS_TRIM_004],
        needs: &[],
        axes: &[&REFUSED, &MODE, &CARRIER],
        run: refused_often,
    },
    Rule {
        id: "establish/refused-then-opened",
        title: "After refusals of all kinds a context still opens and works",
        requirements: &[ROB_LIFE_001],
        needs: &[],
        axes: &[&MODE, &CARRIER, &START],
        run: refused_then_opened,
    },
];

/// True if the first packet carries demand for credit.
const OPENED: Axis<bool> =
    Axis::new("opened", &[Point::new("plain", false), Point::new("with-credit", true)]);

/// True if the opening packets are trimmed; else they are above the window.
const REFUSED: Axis<bool> = Axis::new(
    "refused",
    &[Point::new("above-window", false), Point::needing("trimmed", true, &[Need::Trim])],
);

/// A NACK that belongs to no context names only its receiver.
fn check_no_context(t: &mut Test<'_>, nack: &Nack) {
    t.check(WIRE_NACK_003, "spdcid", PdcId::NONE, nack.spdcid());
}

/// Sends first packets for which there is no room, each from another start and each second one with another PDCID. A refusal that
/// left something behind would change the answer to the next one.
fn no_room(t: &mut Test<'_>, pdc: &Pdc, region: &Region, code: NackCode) -> Outcome {
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

fn no_pdc(t: &mut Test<'_>) -> Outcome {
    t.configure("general_pdcs", 2)?;
    let (first, region) = t.open()?;
    t.prove_established(&first)?;
    let mut second = t.initiate();
    t.establish(&mut second, &region)?;
    t.prove_established(&second)?;
    let third = t.initiate();
    no_room(t, &third, &region, NackCode::NO_PDC_AVAIL)
}

fn no_ccc(t: &mut Test<'_>) -> Outcome {
    t.configure("cccs", 1)?;
    t.try_configure("general_pdcs", 3)?;
    let (pdc, region) = t.open()?;
    t.prove_established(&pdc)?;
    let other = t.initiate_from(1)?;
    no_room(t, &other, &region, NackCode::NO_CCC_AVAIL)?;
    t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(1), 0)?)?;
    t.need("the end of the context", t.soon(), |seen| seen.answers(&pdc, pdc.psn(1)))?;
    t.expect_room(PDS_CLOSE_004, &other, &region)
}

fn no_bitmap(t: &mut Test<'_>) -> Outcome {
    t.configure("receive_slots", 1)?;
    t.try_configure("general_pdcs", 3)?;
    let region = t.region(4096)?;
    let mut pdc = t.initiate();
    // An error that waits for being cleared holds the only one.
    t.request(&pdc, pdc.request(0).write_nowhere(&region, &[1; 16])?)?;
    let (_, ack) = t.need_ack(&pdc, pdc.psn(0))?;
    pdc.remote = Some(ack.spdcid());
    t.prove_established(&pdc)?;
    let other = t.initiate();
    no_room(t, &other, &region, NackCode::NO_BITMAP)?;

    t.send(&pdc, &pdc.control(CtlType::CLEAR_COMMAND, Psn(0), pdc.psn(0).0)?)?;
    t.request(&other, other.request(0).write(&region, 0, &[2; 16])?)?;
    t.expect_ack(PDS_OPEN_001, &other, other.psn(0))?;
    t.expect_memory(PDS_OPEN_001, &region, 0, &[2; 16])
}

fn unknown_dpdcid(t: &mut Test<'_>) -> Outcome {
    let (open, region) = t.open()?;
    let pdc = t.initiate().of_nobody(open.remote);
    t.request(&pdc, pdc.request(0).write(&region, 0, &[1; 16])?)?;
    let (_, nack) = t.expect_nack(PDS_OPEN_002, &pdc, pdc.psn(0), &[NackCode::INV_DPDCID])?;
    check_no_context(t, &nack);
    t.pause(t.soon())?;
    t.check_memory(PDS_OPEN_002, &region, 0, &[0; 16])
}

fn dpdcid_zero(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = t.open()?;
    t.request(&pdc, Request { dpdcid: Some(PdcId::NONE), ..pdc.request(1).write(&region, 0, &[1; 16])? })?;
    t.expect_silence(PDS_PDC_001, "no ACK of a packet for PDCID 0", |seen| {
        seen.acknowledges(&pdc, pdc.psn(1))
    })?;
    t.check_memory(PDS_PDC_001, &region, 0, &[0; 16])
}

fn spdcid_zero(t: &mut Test<'_>) -> Outcome {
    let region = t.region(4096)?;
    let pdc = Pdc { local: PdcId::NONE, ..t.initiate() };
    t.request(&pdc, pdc.request(0).write(&region, 0, &[1; 16])?)?;
    t.expect_silence(PDS_PDC_001, "no ACK for PDCID 0", |seen| {
        (seen.ack()?.dpdcid() == PdcId::NONE).then_some(())
    })?;
    t.check_memory(PDS_PDC_001, &region, 0, &[0; 16])
}

/// A request that looks like the next of `pdc`, but comes from `stranger`.
fn intrude(t: &mut Test<'_>, pdc: &Pdc, stranger: &Pdc, region: &Region) -> Outcome {
    t.request(stranger, stranger.request(1).write(region, 0, &[1; 16])?)?;
    let (_, nack) = t.expect_nack(PDS_OPEN_003, stranger, pdc.psn(1), &[NackCode::PDC_HDR_MISMATCH])?;
    check_no_context(t, &nack);
    t.pause(t.soon())?;
    t.check_memory(PDS_OPEN_003, region, 0, &[0; 16])?;
    // The PSN is still free for who has it.
    t.request(pdc, pdc.request(1).write(region, 0, &[2; 16])?)?;
    t.expect_cack(PDS_OPEN_003, pdc, pdc.psn(1))?;
    t.expect_memory(PDS_OPEN_003, region, 0, &[2; 16])
}

fn other_spdcid(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = t.open()?;
    let stranger = Pdc { local: t.initiate().local, ..pdc.clone() };
    intrude(t, &pdc, &stranger, &region)
}

fn other_address(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = t.open()?;
    let stranger = Pdc { from: t.initiate_from(1)?.from, ..pdc.clone() };
    intrude(t, &pdc, &stranger, &region)
}

fn control_of_another(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = t.open()?;
    let stranger = Pdc { from: t.initiate_from(1)?.from, ..pdc.clone() };
    t.request(&pdc, pdc.request(1).write_nowhere(&region, &[1; 16])?)?;
    t.need_ack(&pdc, pdc.psn(1))?;
    t.send(&stranger, &stranger.control(CtlType::CLEAR_COMMAND, Psn(0), pdc.psn(1).0)?)?;
    t.send(&stranger, &stranger.control(CtlType::CLOSE_COMMAND, pdc.psn(2), 0)?)?;
    t.send(&stranger, &stranger.control(CtlType::ACK_REQUEST, pdc.psn(1), 0)?)?;
    t.expect_silence(PDS_OPEN_003, "no ACK for a stranger", |seen| {
        (seen.wire.dst == stranger.from && seen.ack().is_some()).then_some(())
    })?;
    t.forget();
    // Neither cleared nor closed: the context goes on where it was.
    t.request(&pdc, pdc.request(2).write(&region, 0, &[2; 16])?)?;
    let (_, ack) = t.expect_ack(PDS_PDC_003, &pdc, pdc.psn(2))?;
    t.check(PDS_OPEN_003, "cack_psn", pdc.psn(0), ack.cack_psn());
    t.expect_memory(PDS_PDC_003, &region, 0, &[2; 16])
}

fn start_moved(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = t.open()?;
    for (offset, psn) in [(5, 1), (0, 1), (1, 7)] {
        let moved = Request { syn: true, offset, ..pdc.request(psn) };
        t.request(&pdc, moved.write(&region, 0, &[1; 16])?)?;
        t.expect_nack(PDS_OPEN_005, &pdc, pdc.psn(psn), &[NackCode::INVALID_SYN])?;
    }
    t.pause(t.soon())?;
    t.check_memory(PDS_OPEN_005, &region, 0, &[0; 16])?;
    t.request(&pdc, pdc.request(1).write(&region, 0, &[2; 16])?)?;
    t.expect_cack(PDS_OPEN_005, &pdc, pdc.psn(1))?;
    Ok(())
}

fn syn_above_window(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = t.open()?;
    // PSN 0 is the cumulative one.
    let beyond = t.beyond(&pdc)?;
    if beyond > 4095 {
        return Err(Stop::Skipped("the window is wider than psn_offset".into()));
    }
    t.request(&pdc, Request { syn: true, ..pdc.request(beyond).write(&region, 0, &[1; 16])? })?;
    t.expect_nack(PDS_OPEN_004, &pdc, pdc.psn(beyond), &[NackCode::INVALID_SYN])?;
    t.pause(t.soon())?;
    t.check_memory(PDS_OPEN_004, &region, 0, &[0; 16])
}

fn first_above_window(t: &mut Test<'_>) -> Outcome {
    let region = t.region(4096)?;
    let pdc = t.initiate();
    let above = t.default_range();
    if above > 4095 {
        return Err(Stop::Skipped("the default window is wider than psn_offset".into()));
    }
    t.request(&pdc, pdc.request(above).write(&region, 0, &[1; 16])?)?;
    t.expect_nack(PDS_OPEN_004, &pdc, pdc.psn(above), &[NackCode::INVALID_SYN])?;
    t.pause(t.soon())?;
    t.check_memory(PDS_OPEN_004, &region, 0, &[0; 16])
}

fn other_mode(t: &mut Test<'_>) -> Outcome {
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
}

fn other_mode_with_credit(t: &mut Test<'_>) -> Outcome {
    t.congestion_or_both("rccc")?;
    let region = t.region(4096)?;
    let mut pdc = t.initiate();
    let first = pdc.request(0).write(&region, 0, &[0])?;
    let packet = if t.value(&OPENED) { demanding(&first, 0xa1, 0)? } else { first.build()? };
    t.send(&pdc, &packet)?;
    let (_, ack) = t.need_ack(&pdc, pdc.psn(0))?;
    pdc.remote = Some(ack.spdcid());
    let other = Pdc { rod: !pdc.rod, ..pdc.clone() };
    for credit in [true, false] {
        let request = other.request(1).write(&region, 0, &[1; 16])?;
        t.forget();
        t.send(&pdc, &if credit { demanding(&request, 0xa1, 0)? } else { request.build()? })?;
        t.expect_nack(PDS_OPEN_008, &pdc, pdc.psn(1), &[NackCode::PDC_MODE_MISMATCH])?;
    }
    t.pause(t.soon())?;
    t.check_memory(PDS_OPEN_008, &region, 0, &[0; 16])
}

fn refused_often(t: &mut Test<'_>) -> Outcome {
    let above = t.default_range();
    let trimmed = t.value(&REFUSED);
    if above > 4095 && !trimmed {
        return Err(Stop::Skipped("the default window is wider than psn_offset".into()));
    }
    t.try_configure("general_pdcs", 2)?;
    let region = t.region(4096)?;
    for _ in 0..6 {
        let pdc = t.initiate();
        if trimmed {
            let packet = pdc.request(0).write(&region, 0, &[1; 200])?.build()?;
            t.send_wire(&pdc.trimmed(&packet, Trimmed::Fabric, 16))?;
            // Open: an answer.
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
}

fn refused_then_opened(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = t.open()?;
    let stranger = Pdc { local: t.initiate().local, ..pdc.clone() };
    t.request(&stranger, stranger.request(1).write(&region, 0, &[1; 16])?)?;
    t.request(&pdc, Request { syn: true, offset: 9, ..pdc.request(1).write(&region, 0, &[1; 16])? })?;
    let pdc = pdc.of_nobody(None);
    t.request(&pdc, pdc.request(1).write(&region, 0, &[1; 16])?)?;
    t.expect_life(ROB_LIFE_001)
}
