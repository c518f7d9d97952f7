//! A target's rules about Start_PSNs: no copy of an earlier context's packets opens a context (section 3.5.8).

use super::tss::{NEEDS, close, establish_as, executed, opened, plain, works};
use crate::{Axis, Need, Outcome, Pdc, Point, Region, Rule, RxPacket, SECURED, Stop, Test};
use core::time::Duration;
use uet_wire::Psn;
use uet_wire::catalogue::*;
use uet_wire::pds::Nack;
use uet_wire::registry::NackCode;

/// The way in which the target knows that a Start_PSN is new.
const METHOD: Axis<&str> =
    Axis::new("method", &[Point::new("expected", "expected"), Point::new("random", "random")]);

/// The value of the floor, for a device that keeps one.
const FLOOR: Axis<&str> =
    Axis::new("floor", &[Point::new("highest", "highest"), Point::new("start", "start")]);

const ENTROPY: &[Need] = &[
    Need::Capability("rud"),
    Need::Capability("write"),
    Need::Capability("tss"),
    Need::SeeEntropy,
    Need::SetEntropy,
];

pub(super) const CASES: &[Rule] = &[
    Rule {
        id: "tss-start/opens",
        title: "A context opens at the Start_PSN of its first packet, or at the one that the target demands",
        requirements: &[TSS_START_002],
        needs: NEEDS,
        axes: &[&SECURED, &METHOD],
        run: opens,
    },
    Rule {
        id: "tss-start/replayed-opening",
        title: "A copy of an opening packet executes nothing after the context has closed, by either method",
        requirements: &[TSS_START_001],
        needs: NEEDS,
        axes: &[&SECURED, &METHOD],
        run: replayed_opening,
    },
    Rule {
        id: "tss-start/replayed-requests",
        title: "Copies of later packets execute nothing after the context has closed",
        requirements: &[TSS_START_001],
        needs: NEEDS,
        axes: &[&SECURED, &METHOD],
        run: replayed_requests,
    },
    Rule {
        id: "tss-start/replayed-beside",
        title: "A copy of an opening packet executes nothing while its sender has another context",
        requirements: &[TSS_START_001],
        needs: NEEDS,
        axes: &[&SECURED, &METHOD],
        run: replayed_beside,
    },
    Rule {
        id: "tss-start/floor",
        title: "A Start_PSN that a closed context has used opens no context",
        requirements: &[TSS_START_001],
        needs: NEEDS,
        axes: &[&SECURED, &FLOOR],
        run: floor,
    },
    Rule {
        id: "tss-start/nack",
        title: "NACK NEW_START_PSN names the refused PSN and the context of the initiator, and none of the target",
        requirements: &[TSS_START_002],
        needs: NEEDS,
        axes: &[&SECURED, &METHOD],
        run: nack,
    },
    Rule {
        id: "tss-start/nack-entropy",
        title: "NACK NEW_START_PSN has the entropy value of the request",
        requirements: &[TSS_START_002],
        needs: ENTROPY,
        axes: &[&SECURED],
        run: nack_entropy,
    },
    Rule {
        id: "tss-start/pending",
        title: "A request that is refused for its Start_PSN executes nothing, however often it comes",
        requirements: &[TSS_START_004],
        needs: NEEDS,
        axes: &[&SECURED, &METHOD],
        run: pending,
    },
    Rule {
        id: "tss-start/same-demand",
        title: "While a context is pending, the target demands the same Start_PSN again",
        requirements: &[TSS_START_006],
        needs: NEEDS,
        axes: &[&SECURED, &METHOD],
        run: same_demand,
    },
    Rule {
        id: "tss-start/offset",
        title: "A context that is pending opens by a packet with an offset from the required Start_PSN",
        requirements: &[TSS_START_004],
        needs: NEEDS,
        axes: &[&SECURED],
        run: offset,
    },
    Rule {
        id: "tss-start/many-pending",
        title: "Contexts that stay pending do not keep a target from opening others",
        requirements: &[TSS_START_004],
        needs: NEEDS,
        axes: &[&SECURED],
        run: many_pending,
    },
    Rule {
        id: "tss-start/told",
        title: "A Start_PSN that the ACK of CLOSE_COMMAND tells opens the next context at once",
        requirements: &[TSS_START_007],
        needs: NEEDS,
        axes: &[&SECURED],
        run: told,
    },
    Rule {
        id: "tss-start/next",
        title: "Contexts of a domain open and close one after the other",
        requirements: &[TSS_START_002],
        needs: NEEDS,
        axes: &[&SECURED, &METHOD],
        run: next,
    },
];

fn method(t: &mut Test<'_>, method: &str) -> Outcome {
    t.configure("start_psn_method", method)?;
    t.secure(t.value(&SECURED))
}

fn fresh(t: &mut Test<'_>, requirement: &Requirement) -> Result<(Pdc, Region), Stop> {
    let region = t.region(1 << 16)?;
    let mut pdc = t.initiate();
    establish_as(t, requirement, &mut pdc, &region)?;
    Ok((pdc, region))
}

fn opens(t: &mut Test<'_>) -> Outcome {
    method(t, t.value(&METHOD))?;
    let (pdc, region) = fresh(t, TSS_START_002)?;
    works(t, TSS_START_002, &pdc, &region, 1)
}

/// Opens a context with write 0, and returns the packet that opened it.
fn recorded(t: &mut Test<'_>, region: &Region) -> Result<(Pdc, crate::Wire), Stop> {
    let mut pdc = t.initiate();
    let mut opening = t.sealed(&plain(&pdc, region, 0)?)?;
    t.send_as_it_is(&opening)?;
    if super::tss::learns_start(t, &mut pdc, |pdc, seen| seen.acknowledges(pdc, pdc.psn(0)).is_some())? {
        opening = t.sealed(&plain(&pdc, region, 0)?)?;
        t.send_as_it_is(&opening)?;
    }
    let (_, ack) = t.need_ack(&pdc, pdc.psn(0))?;
    pdc.remote = Some(ack.spdcid());
    Ok((pdc, opening))
}

/// Overwrites what write 0 has written, and closes the context after `count` requests.
fn overwritten(t: &mut Test<'_>, pdc: &Pdc, region: &Region) -> Outcome {
    t.request(pdc, pdc.request(1).write(region, 0, &[0xee; 128])?)?;
    t.need_ack(pdc, pdc.psn(1))?;
    close(t, pdc, 2)
}

fn not_again(t: &mut Test<'_>, region: &Region) -> Outcome {
    let soon = t.soon();
    t.pause(soon)?;
    t.check_memory(TSS_START_001, region, 0, &[0xee; 128])
}

fn replayed_opening(t: &mut Test<'_>) -> Outcome {
    method(t, t.value(&METHOD))?;
    let region = t.region(1 << 16)?;
    let (pdc, opening) = recorded(t, &region)?;
    overwritten(t, &pdc, &region)?;
    for _ in 0..3 {
        t.send_as_it_is(&opening)?;
    }
    not_again(t, &region)
}

fn replayed_requests(t: &mut Test<'_>) -> Outcome {
    method(t, t.value(&METHOD))?;
    let region = t.region(1 << 16)?;
    let (pdc, opening) = recorded(t, &region)?;
    let request = t.sealed(&plain(&pdc, &region, 1)?)?;
    t.send_as_it_is(&request)?;
    t.need_ack(&pdc, pdc.psn(1))?;
    t.request(&pdc, pdc.request(2).write(&region, 0, &[0xee; 128])?)?;
    t.need_ack(&pdc, pdc.psn(2))?;
    close(t, &pdc, 3)?;
    t.send_as_it_is(&request)?;
    t.send_as_it_is(&opening)?;
    t.send_as_it_is(&request)?;
    not_again(t, &region)
}

fn replayed_beside(t: &mut Test<'_>) -> Outcome {
    method(t, t.value(&METHOD))?;
    let region = t.region(1 << 16)?;
    let (pdc, opening) = recorded(t, &region)?;
    overwritten(t, &pdc, &region)?;
    // The next context of the same PDCID.
    let mut next = Pdc { remote: None, start: pdc.start + 0x1000, ..pdc.clone() };
    establish_as(t, TSS_START_001, &mut next, &region)?;
    t.send_as_it_is(&opening)?;
    not_again(t, &region)?;
    works(t, TSS_START_001, &next, &region, 4)
}

fn floor(t: &mut Test<'_>) -> Outcome {
    t.configure("start_psn_floor", t.value(&FLOOR))?;
    method(t, "expected")?;
    let region = t.region(1 << 16)?;
    let (pdc, _) = recorded(t, &region)?;
    overwritten(t, &pdc, &region)?;
    // Both floors are above the Start_PSN of the closed context.
    for below in [0, 1, 1000] {
        let old = Pdc { start: pdc.start - below, ..t.initiate() };
        t.send_wire(&plain(&old, &region, 0)?)?;
        not_again(t, &region)?;
    }
    Ok(())
}

/// Sends an opening packet that the target refuses, and returns the NACK.
fn refused(
    t: &mut Test<'_>,
    requirement: &Requirement,
    region: &Region,
) -> Result<(Pdc, RxPacket, Nack), Stop> {
    let (closed, _) = recorded(t, region)?;
    overwritten(t, &closed, region)?;
    t.forget();
    let pdc = Pdc { start: closed.start, ..t.initiate() };
    t.request(&pdc, pdc.request(0).write(region, 256, &[1; 32])?)?;
    let wanted = |seen: &RxPacket| {
        pdc.new_start(seen)?;
        seen.nack()
    };
    let (seen, nack) = t.expect(requirement, "NACK NEW_START_PSN", t.soon(), wanted)?;
    Ok((pdc, seen, nack))
}

fn nack(t: &mut Test<'_>) -> Outcome {
    method(t, t.value(&METHOD))?;
    let region = t.region(1 << 16)?;
    let (pdc, _, nack) = refused(t, TSS_START_002, &region)?;
    t.check(TSS_START_002, "nack_code", NackCode::NEW_START_PSN, nack.nack_code());
    t.check(TSS_START_002, "nack_psn", Some(pdc.psn(0)), nack.nack_psn());
    t.check(TSS_START_002, "spdcid", uet_wire::PdcId::NONE, nack.spdcid());
    t.check(TSS_START_002, "dpdcid", pdc.local, nack.dpdcid());
    Ok(())
}

fn nack_entropy(t: &mut Test<'_>) -> Outcome {
    method(t, "expected")?;
    let region = t.region(1 << 16)?;
    let (pdc, seen, _) = refused(t, TSS_START_002, &region)?;
    t.check(TSS_START_002, "entropy value:", pdc.entropy, seen.wire.entropy);
    Ok(())
}

fn pending(t: &mut Test<'_>) -> Outcome {
    method(t, t.value(&METHOD))?;
    let region = t.region(1 << 16)?;
    let (pdc, ..) = refused(t, TSS_START_004, &region)?;
    for n in [0, 1, 0] {
        t.request(&pdc, pdc.request(n).write(&region, 256, &[1; 32])?)?;
    }
    t.expect_none(TSS_START_004, "an ACK", t.soon(), |seen| seen.is_for(&pdc).then(|| seen.ack()).flatten())?;
    t.check_memory(TSS_START_004, &region, 256, &[0; 32])
}

fn same_demand(t: &mut Test<'_>) -> Outcome {
    // So that a slow device still remembers its demand at the last packet.
    t.try_configure("new_pdc_time", 1_000_000_000)?;
    method(t, t.value(&METHOD))?;
    let region = t.region(1 << 16)?;
    let (pdc, _, first) = refused(t, TSS_START_006, &region)?;
    for n in [0, 1, 2] {
        t.request(&pdc, pdc.request(n).write(&region, 256, &[1; 32])?)?;
        let demand = |seen: &RxPacket| pdc.new_start(seen);
        let (_, start) = t.expect(TSS_START_006, "NACK NEW_START_PSN", t.soon(), demand)?;
        t.check(TSS_START_006, "the required Start_PSN", Psn(first.payload()), start);
    }
    // Another wrong one.
    let other = Pdc { start: pdc.start - 77, ..pdc.clone() };
    t.request(&other, other.request(0).write(&region, 256, &[1; 32])?)?;
    let (_, start) = t.expect(TSS_START_006, "NACK NEW_START_PSN", t.soon(), |seen| pdc.new_start(seen))?;
    t.check(TSS_START_006, "the required Start_PSN", Psn(first.payload()), start);
    let mut right = Pdc { start, ..pdc };
    establish_as(t, TSS_START_006, &mut right, &region)
}

fn offset(t: &mut Test<'_>) -> Outcome {
    method(t, "random")?;
    let region = t.region(1 << 16)?;
    let (pdc, _, nack) = refused(t, TSS_START_004, &region)?;
    let pdc = Pdc { start: Psn(nack.payload()), ..pdc };
    for n in [2, 0, 1] {
        t.send_wire(&plain(&pdc, &region, n)?)?;
        executed(t, TSS_START_004, &pdc, &region, n)?;
    }
    Ok(())
}

fn many_pending(t: &mut Test<'_>) -> Outcome {
    method(t, "random")?;
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
    works(t, TSS_START_004, &pdc, &region, 1)
}

fn told(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = opened(t)?;
    works(t, TSS_START_007, &pdc, &region, 1)?;
    close(t, &pdc, 2)?;
    let Some(start) = t.shield()?.told.last().copied() else {
        return Err(Stop::Skipped("the device tells no Start_PSN".into()));
    };
    let mut next = Pdc { start, ..t.initiate() };
    establish_as(t, TSS_START_007, &mut next, &region)?;
    t.check(TSS_START_007, "Start_PSN", start, next.start);
    Ok(())
}

fn next(t: &mut Test<'_>) -> Outcome {
    method(t, t.value(&METHOD))?;
    for _ in 0..4 {
        let (pdc, region) = fresh(t, TSS_START_002)?;
        works(t, TSS_START_002, &pdc, &region, 1)?;
        close(t, &pdc, 2)?;
    }
    Ok(())
}
