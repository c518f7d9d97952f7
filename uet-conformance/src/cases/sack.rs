//! The bitmaps of ACKs (section 3.5.12).

use crate::axis::{CARRIER, MODE, START};
use crate::{Axis, Need, Outcome, Pdc, Point, Region, Rule, RxPacket, Stop, Test};
use std::collections::BTreeSet;
use uet_wire::Psn;
use uet_wire::catalogue::*;

pub(super) const CASES: &[Rule] = &[
    Rule {
        id: "sack/truth",
        title: "A bit is set only for what has arrived",
        requirements: &[PDS_SACK_001],
        needs: &[Need::Capability("rud")],
        axes: &[&CARRIER, &START],
        run: truth,
    },
    Rule {
        id: "sack/coverage",
        title: "The bitmaps cover, over time, all that has arrived above a gap",
        requirements: &[PDS_SACK_003],
        needs: &[Need::Capability("rud")],
        axes: &[&CARRIER, &START],
        run: coverage,
    },
    Rule {
        id: "sack/far-apart",
        title: "Packets further apart than a bitmap is wide are covered too",
        requirements: &[PDS_SACK_003, PDS_SACK_001],
        needs: &[Need::Capability("rud")],
        axes: &[&CARRIER, &START],
        run: far_apart,
    },
    Rule {
        id: "sack/below",
        title: "Bits at or below the cumulative PSN read as received",
        requirements: &[PDS_SACK_002],
        needs: &[],
        axes: &[&MODE, &CARRIER, &START],
        run: below,
    },
    Rule {
        id: "sack/wrap",
        title: "A bitmap reaches over the wrap of PSNs",
        requirements: &[PDS_SACK_001, PDS_SACK_003],
        needs: &[Need::Capability("rud")],
        axes: &[&CARRIER, &START],
        run: wrap,
    },
    Rule {
        id: "sack/filled",
        title: "When the last gap is filled the cumulative PSN tells it, and no bit is set above",
        requirements: &[PDS_SACK_001, PDS_PSN_002],
        needs: &[Need::Capability("rud")],
        axes: &[&CARRIER, &START],
        run: filled,
    },
    Rule {
        id: "sack/out-of-order-count",
        title: "ooo_count is 0 in order, at most the packets above a gap while there is one, and 0 again when it is filled",
        requirements: &[CC_OOO_001],
        needs: &[Need::Capability("rud"), Need::Capability("nscc")],
        axes: &[&GAPS, &CARRIER, &START],
        run: out_of_order_count,
    },
    Rule {
        id: "sack/uncleared",
        title: "A packet that has arrived and is not cleared has its bit, though the cumulative PSN is below",
        requirements: &[PDS_SACK_001, PDS_SACK_003],
        needs: &[],
        axes: &[&MODE, &CARRIER, &START],
        run: uncleared,
    },
    Rule {
        id: "sack/in-window",
        title: "A bitmap starts in the receive window, or below it",
        requirements: &[PDS_SACK_005],
        needs: &[Need::Capability("rud")],
        axes: &[&CARRIER, &START],
        run: in_window,
    },
    Rule {
        id: "sack/refused",
        title: "A packet that was refused has no bit",
        requirements: &[PDS_SACK_001],
        needs: &[Need::Capability("rud")],
        axes: &[&CARRIER, &START],
        run: refused,
    },
];

/// The packets above the gaps, and those that fill the gaps one after the other.
const GAPS: Axis<(&[u32], &[u32])> = Axis::new(
    "above",
    &[
        Point::new("one", (&[3], &[2])),
        Point::new("five", (&[3, 4, 5, 6, 7], &[2])),
        Point::new("two-gaps", (&[3, 5, 6], &[2, 4])),
        Point::new("two-gaps-from-above", (&[3, 5, 6], &[4, 2])),
    ],
);

/// Sends these requests, asking for an ACK of each.
fn send(t: &mut Test<'_>, pdc: &Pdc, region: &Region, numbers: &[u32]) -> Outcome {
    for n in numbers {
        t.request(pdc, pdc.request(*n).write(region, 0, &[1])?)?;
    }
    Ok(())
}

/// The PSNs that the bitmaps of these packets name, as distances from the first; those before the first are left out.
fn bits(pdc: &Pdc, seen: &[RxPacket]) -> BTreeSet<u32> {
    let acks = seen.iter().filter(|seen| seen.is_for(pdc)).filter_map(RxPacket::ack_cc);
    let sacked = acks.flat_map(|ack| ack.sacked().collect::<Vec<_>>());
    sacked.filter(|psn| !pdc.start.is_after(*psn)).map(|psn| psn - pdc.start).collect()
}

/// The PSNs that bitmaps have told, once all are told, or after many ACKs.
fn told(t: &mut Test<'_>, pdc: &Pdc, region: &Region, sent: &[u32]) -> Result<BTreeSet<u32>, Stop> {
    send(t, pdc, region, sent)?;
    let mut told = bits(pdc, &t.gather(t.soon())?);
    for n in sent.iter().cycle().take(64) {
        if sent.iter().all(|n| told.contains(n)) {
            break;
        }
        // Each retransmission is acknowledged at once, and so gives another bitmap.
        t.request(pdc, pdc.request(*n).retx().write(region, 0, &[1])?)?;
        let (seen, _) = t.need_ack(pdc, pdc.psn(*n))?;
        told.extend(bits(pdc, &[seen]));
    }
    Ok(told)
}

fn check_truth(t: &mut Test<'_>, told: &BTreeSet<u32>, sent: &[u32]) {
    let wrong = told.iter().find(|n| **n != 0 && !sent.contains(n));
    let seen =
        wrong.map_or_else(|| "none".to_owned(), |n| format!("a bit for packet {n}, which was never sent"));
    t.holds(PDS_SACK_001, "every bit is that of a packet that has arrived", wrong.is_none(), seen);
}

fn check_coverage(t: &mut Test<'_>, told: &BTreeSet<u32>, sent: &[u32]) {
    let missing = sent.iter().find(|n| !told.contains(n));
    let seen = missing.map_or_else(|| "all told".to_owned(), |n| format!("no bit for packet {n}"));
    t.holds(PDS_SACK_003, "the bitmaps tell of every packet that has arrived", missing.is_none(), seen);
}

fn truth(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = t.open()?;
    let sent = [2, 3, 5, 8, 13, 21, 34, 55, 65];
    send(t, &pdc, &region, &sent)?;
    let seen = t.gather(t.soon())?;
    if !seen.iter().any(|seen| seen.ack_cc().is_some()) {
        return Err(Stop::Inconclusive("no ACK has a bitmap".into()));
    }
    check_truth(t, &bits(&pdc, &seen), &sent);
    Ok(())
}

fn coverage(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = t.open()?;
    let sent = [2, 3, 5, 8, 13, 21, 34, 55];
    let told = told(t, &pdc, &region, &sent)?;
    check_coverage(t, &told, &sent);
    Ok(())
}

fn far_apart(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = t.open()?;
    let range = t.range(&pdc)?.min(1024);
    let sent = [2, 70, range / 2, range / 2 + 64, range - 65, range];
    let told = told(t, &pdc, &region, &sent)?;
    check_truth(t, &told, &sent);
    check_coverage(t, &told, &sent);
    Ok(())
}

fn below(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = t.open()?;
    send(t, &pdc, &region, &[1, 2, 3, 5, 7])?;
    // The answer to a PROBE may start below.
    t.send(&pdc, &pdc.probe(1, pdc.psn(1))?)?;
    let seen = t.gather(t.soon())?;
    let mut judged = 0;
    for ack in seen.iter().filter(|seen| seen.is_for(&pdc)).filter_map(RxPacket::ack_cc) {
        let (cack, first) = (ack.ack().cack_psn(), ack.sack_psn());
        let below = (0..64).map(|i| first + i).take_while(|psn| !psn.is_after(cack));
        let sacked: Vec<Psn> = ack.sacked().collect();
        // A bitmap of zeros tells nothing at all.
        if !sacked.is_empty() {
            judged += 1;
            let clear = below.into_iter().find(|psn| !sacked.contains(psn));
            let seen =
                clear.map_or_else(|| "all set".to_owned(), |psn| format!("the bit of PSN {psn} is clear"));
            t.holds(PDS_SACK_002, "bits at or below the cumulative PSN are set", clear.is_none(), seen);
        }
    }
    match judged {
        0 => Err(Stop::Inconclusive("no ACK has a bitmap".into())),
        _ => Ok(()),
    }
}

fn wrap(t: &mut Test<'_>) -> Outcome {
    let region = t.region(4096)?;
    let mut pdc = Pdc { start: Psn(0xffff_ffe0), ..t.initiate() };
    t.establish(&mut pdc, &region)?;
    let sent = [2, 30, 31, 32, 33, 40];
    let told = told(t, &pdc, &region, &sent)?;
    check_truth(t, &told, &sent);
    check_coverage(t, &told, &sent);
    Ok(())
}

fn filled(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = t.open()?;
    send(t, &pdc, &region, &[2, 4, 6])?;
    t.gather(t.soon())?;
    send(t, &pdc, &region, &[5, 3, 1])?;
    let seen = t.gather(t.soon())?;
    let last = seen.iter().filter_map(|seen| seen.cack(&pdc)).next_back();
    t.check(PDS_PSN_002, "the last cack_psn", Some(pdc.psn(6)), last);
    let above = bits(&pdc, &seen).into_iter().find(|n| *n > 6);
    t.check(PDS_SACK_001, "a bit above all that was sent:", None, above);
    Ok(())
}

fn out_of_order_count(t: &mut Test<'_>) -> Outcome {
    t.congestion_or_both("nscc")?;
    let (pdc, region) = t.open()?;
    let (above, fill) = t.value(&GAPS);
    let next = above.len() as u32 + fill.len() as u32 + 2;
    let (mut arrived, mut counted) = (BTreeSet::from([0]), false);
    for n in [1].iter().chain(above).chain(fill).chain(&[next]) {
        t.forget();
        send(t, &pdc, &region, &[*n])?;
        arrived.insert(*n);
        let (seen, _) = t.need_ack(&pdc, pdc.psn(*n))?;
        let Some(count @ ..=0xfffe) = seen.ack_cc().and_then(|ack| ack.ooo_count()) else { continue };
        counted = true;
        let in_order = (0..).take_while(|n| arrived.contains(n)).count();
        let most = (arrived.len() - in_order) as u16;
        let what = format!("ooo_count with {most} packets above a gap");
        t.between(CC_OOO_001, &what, most.min(1)..=most, count);
    }
    match counted {
        true => Ok(()),
        false => Err(Stop::Skipped("the device does not count packets out of order".into())),
    }
}

fn uncleared(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = t.open()?;
    t.request(&pdc, pdc.request(1).write_nowhere(&region, &[1])?)?;
    let (_, ack) = t.need_ack(&pdc, pdc.psn(1))?;
    if ack.cack_psn() != pdc.psn(0) {
        return Err(Stop::Inconclusive("the error was not kept".into()));
    }
    let sent = [2, 3, 4];
    let told = told(t, &pdc, &region, &sent)?;
    check_truth(t, &told, &[1, 2, 3, 4]);
    check_coverage(t, &told, &sent);
    Ok(())
}

fn in_window(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = t.open()?;
    let range = t.range(&pdc)?;
    send(t, &pdc, &region, &[2, 9, 64, range / 2, range])?;
    for seen in t.gather(t.soon())?.iter().filter(|seen| seen.is_for(&pdc)) {
        let Some(ack) = seen.ack_cc() else { continue };
        let edge = ack.ack().cack_psn() + range;
        let inside = !ack.sack_psn().is_after(edge);
        let found = format!("sack_psn {}, window to {edge}", ack.sack_psn());
        t.holds(PDS_SACK_005, "the bitmap starts in the receive window or below", inside, found);
    }
    Ok(())
}

fn refused(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = t.open()?;
    send(t, &pdc, &region, &[2])?;
    t.need_ack(&pdc, pdc.psn(2))?;
    let beyond = t.beyond(&pdc)?;
    send(t, &pdc, &region, &[beyond])?;
    t.need("a refusal", t.soon(), |seen| seen.refuses(&pdc, pdc.psn(beyond)))?;
    let told = told(t, &pdc, &region, &[2, beyond - 10])?;
    check_truth(t, &told, &[2, beyond - 10]);
    Ok(())
}
