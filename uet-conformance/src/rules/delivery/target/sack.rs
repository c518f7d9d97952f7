//! The bitmaps of ACKs: their bits, their position and ooo_count (section 3.5.12).

use crate::Trimmed;
use crate::prelude::*;
use std::collections::BTreeSet;

/// A packet that adds nothing to the packets above a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Uncounted {
    Duplicate,
    Trimmed,
    BeyondWindow,
    /// A duplicate of a packet below the gap.
    Below,
}

const UNCOUNTED: Axis<Uncounted> = axis("packet").needing(&[
    ("duplicate", Uncounted::Duplicate, &[]),
    ("trimmed", Uncounted::Trimmed, &[TRIM]),
    ("beyond-window", Uncounted::BeyondWindow, &[]),
    ("below-gap", Uncounted::Below, &[]),
]);

/// The packets above the gaps, and the packets that then fill the gaps.
const ABOVE_GAPS: Axis<(&[u32], &[u32])> = axis("above-gap").values(&[
    ("one", (&[3], &[2])),
    ("five", (&[3, 4, 5, 6, 7], &[2])),
    ("two-gaps", (&[3, 5, 6], &[2, 4])),
    ("two-gaps-reversed", (&[3, 5, 6], &[4, 2])),
]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[RUD]).over(&[&CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("sack/only-received", "A bitmap has bits only for packets that have arrived")
        .checks(&[PDS_SACK_001])
        .run(|t| {
            let (pdc, region) = t.open()?;
            // The gaps grow, and the last packet is beyond a bitmap of 64 bits that begins at 1.
            let sent = [2, 3, 5, 8, 13, 21, 34, 55, 65];
            send(t, &pdc, &region, &sent)?;
            let seen = t.gather(t.soon())?;
            if !seen.iter().any(|seen| seen.ack_cc().is_some()) {
                return Err(Stop::Inconclusive("no ACK has a bitmap".into()));
            }
            check_only_sent(t, &bits(&pdc, &seen), &sent);
            Ok(())
        }),
    rule("sack/coverage", "Bitmaps eventually cover all packets that have arrived above a gap")
        .checks(&[PDS_SACK_003])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let sent = [2, 3, 5, 8, 13, 21, 34, 55];
            let reported = reported_bits(t, &pdc, &region, &sent)?;
            check_coverage(t, &reported, &sent);
            Ok(())
        }),
    rule("sack/far-apart", "Bitmaps cover packets further apart than a bitmap is wide")
        .checks(&[PDS_SACK_003, PDS_SACK_001])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let range = t.range(&pdc)?.min(1024);
            require(range >= 192, "the window is too small for packets so far apart")?;
            let sent = [2, 70, range / 2, range / 2 + 64, range - 65, range];
            let reported = reported_bits(t, &pdc, &region, &sent)?;
            check_only_sent(t, &reported, &sent);
            check_coverage(t, &reported, &sent);
            Ok(())
        }),
    rule("sack/below", "Bits at or below the cumulative PSN are set")
        .checks(&[PDS_SACK_002])
        .needs(&[])
        .over(&[&MODE, &CARRIER, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            send(t, &pdc, &region, &[1, 2, 3, 5, 7])?;
            // The bitmap of a PROBE reply may start below.
            t.send(&pdc, &pdc.probe(1, pdc.psn(1))?)?;
            let seen = t.gather(t.soon())?;
            let mut judged = false;
            for ack in seen.iter().filter(|seen| seen.is_for(&pdc)).filter_map(RxPacket::ack_cc) {
                let (cack, first) = (ack.ack().cack_psn(), ack.sack_psn());
                let below = (0..64).map(|i| first + i).take_while(|psn| !psn.is_after(cack));
                let sacked: Vec<Psn> = ack.sacked().collect();
                // A bitmap of zeros reports nothing.
                if !sacked.is_empty() {
                    judged = true;
                    let clear = below.into_iter().find(|psn| !sacked.contains(psn));
                    let seen = clear
                        .map_or_else(|| "all set".to_owned(), |psn| format!("the bit of PSN {psn} is clear"));
                    t.holds(
                        PDS_SACK_002,
                        "bits at or below the cumulative PSN are set",
                        clear.is_none(),
                        seen,
                    );
                }
            }
            if judged { Ok(()) } else { Err(Stop::Inconclusive("no ACK has a bitmap".into())) }
        }),
    rule("sack/wrap", "A bitmap covers packets on both sides of the PSN wrap")
        .checks(&[PDS_SACK_001, PDS_SACK_003])
        .run(|t| {
            let region = t.region(4096)?;
            let mut pdc = Pdc { start: Psn(0xffff_ffe0), ..t.initiate() };
            t.establish(&mut pdc, &region)?;
            let sent = [2, 30, 31, 32, 33, 40];
            let reported = reported_bits(t, &pdc, &region, &sent)?;
            check_only_sent(t, &reported, &sent);
            check_coverage(t, &reported, &sent);
            Ok(())
        }),
    rule("sack/filled", "After the last gap is filled, the cumulative PSN covers all and no bit is above")
        .checks(&[PDS_SACK_001, PDS_PSN_002])
        .run(|t| {
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
        }),
    rule("sack/ooo-count", "ooo_count is 1 to the number of packets above a gap, and 0 without a gap")
        .checks(&[CC_OOO_001])
        .needs(&[RUD, NSCC])
        .over(&[&ABOVE_GAPS, &CARRIER, &START])
        .run(|t| {
            t.congestion_or_both("nscc")?;
            let (pdc, region) = t.open()?;
            let (above, fill) = t.value(&ABOVE_GAPS);
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
            require(counted, "the device does not count packets out of order")
        }),
    rule("sack/ooo-count-copies", "ooo_count counts no duplicate, trimmed packet or refused packet")
        .checks(&[CC_OOO_001])
        .needs(&[RUD, NSCC])
        .over(&[&UNCOUNTED, &CARRIER, &START])
        .run(|t| {
            t.congestion_or_both("nscc")?;
            let (pdc, region) = t.open()?;
            send(t, &pdc, &region, &[1, 3, 4])?;
            t.need_ack(&pdc, pdc.psn(4))?;
            let beyond = t.beyond(&pdc)?;
            for n in 0..8 {
                let number = match t.value(&UNCOUNTED) {
                    Uncounted::Duplicate => 3 + n % 2,
                    Uncounted::Trimmed => 5 + n,
                    Uncounted::BeyondWindow => beyond + 10 + n,
                    Uncounted::Below => 1,
                };
                let request = pdc.request(number).retx().write(&region, 0, &[1])?;
                match t.value(&UNCOUNTED) {
                    Uncounted::Trimmed => {
                        t.send_wire(&pdc.trimmed(&request.build()?, Trimmed::Fabric, 16))?;
                    }
                    _ => t.request(&pdc, request)?,
                }
            }
            t.pause(t.soon())?;
            t.forget();
            send(t, &pdc, &region, &[20])?;
            let (seen, _) = t.need_ack(&pdc, pdc.psn(20))?;
            match seen.ack_cc().and_then(|ack| ack.ooo_count()) {
                Some(count @ ..=0xfffe) => {
                    t.between(CC_OOO_001, "ooo_count with 3 packets above a gap", 1_u16..=3, count);
                    Ok(())
                }
                _ => skip("the device does not count packets out of order"),
            }
        }),
    rule(
        "sack/ooo-count-ordered",
        "ooo_count of an ordered context is 0, since it takes no packet above a gap",
    )
    .checks(&[CC_OOO_001])
    .needs(&[ROD, NSCC])
    .run(|t| {
        t.congestion_or_both("nscc")?;
        let region = t.region(1 << 16)?;
        let mut pdc = Pdc { rod: true, ..t.initiate() };
        t.establish(&mut pdc, &region)?;
        send(t, &pdc, &region, &[1, 3, 4, 5])?;
        t.pause(t.soon())?;
        t.forget();
        t.request(&pdc, pdc.request(1).retx().write(&region, 0, &[1])?)?;
        let (seen, _) = t.need_ack(&pdc, pdc.psn(1))?;
        match seen.ack_cc().and_then(|ack| ack.ooo_count()) {
            Some(count @ ..=0xfffe) => t.check(CC_OOO_001, "ooo_count", 0, count),
            _ => return skip("the device does not count packets out of order"),
        }
        Ok(())
    }),
    rule("sack/uncleared", "A received packet above an uncleared response has its bit set")
        .checks(&[PDS_SACK_001, PDS_SACK_003])
        .run(|t| {
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(1).write_nowhere(&region, &[1])?)?;
            let (_, ack) = t.need_ack(&pdc, pdc.psn(1))?;
            if ack.cack_psn() != pdc.psn(0) {
                return Err(Stop::Inconclusive("the error was not kept".into()));
            }
            let sent = [2, 3, 4];
            let reported = reported_bits(t, &pdc, &region, &sent)?;
            if reported.is_empty() {
                return skip("the device sends no bitmap above an uncleared response");
            }
            check_only_sent(t, &reported, &[1, 2, 3, 4]);
            check_coverage(t, &reported, &sent);
            Ok(())
        }),
    rule("sack/in-window", "A bitmap starts in or below the receive window").checks(&[PDS_SACK_005]).run(
        |t| {
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
        },
    ),
    rule("sack/refused", "A refused packet has no bit in a bitmap").checks(&[PDS_SACK_001]).run(|t| {
        let (pdc, region) = t.open()?;
        send(t, &pdc, &region, &[2])?;
        t.need_ack(&pdc, pdc.psn(2))?;
        let beyond = t.beyond(&pdc)?;
        send(t, &pdc, &region, &[beyond])?;
        t.need("a refusal", t.soon(), |seen| seen.refuses(&pdc, pdc.psn(beyond)))?;
        let reported = reported_bits(t, &pdc, &region, &[2, beyond - 10])?;
        check_only_sent(t, &reported, &[2, beyond - 10]);
        Ok(())
    }),
];

/// Sends these requests, each with `ar`.
fn send(t: &mut Test<'_>, pdc: &Pdc, region: &Region, numbers: &[u32]) -> Outcome {
    for n in numbers {
        t.request(pdc, pdc.request(*n).write(region, 0, &[1])?)?;
    }
    Ok(())
}

/// Returns the PSNs in the bitmaps of these packets, as distances from Start_PSN, without lower ones.
fn bits(pdc: &Pdc, seen: &[RxPacket]) -> BTreeSet<u32> {
    let acks = seen.iter().filter(|seen| seen.is_for(pdc)).filter_map(RxPacket::ack_cc);
    let sacked = acks.flat_map(|ack| ack.sacked().collect::<Vec<_>>());
    sacked.filter(|psn| !pdc.start.is_after(*psn)).map(|psn| psn - pdc.start).collect()
}

/// Sends requests and collects the PSNs in the bitmaps until all are reported, or after many ACKs.
fn reported_bits(t: &mut Test<'_>, pdc: &Pdc, region: &Region, sent: &[u32]) -> Result<BTreeSet<u32>, Stop> {
    send(t, pdc, region, sent)?;
    let mut reported = bits(pdc, &t.gather(t.soon())?);
    for n in sent.iter().cycle().take(64) {
        if sent.iter().all(|n| reported.contains(n)) {
            break;
        }
        // The ACK of each retransmission brings another bitmap.
        t.request(pdc, pdc.request(*n).retx().write(region, 0, &[1])?)?;
        let (seen, _) = t.need_ack(pdc, pdc.psn(*n))?;
        reported.extend(bits(pdc, &[seen]));
    }
    Ok(reported)
}

/// Checks that each reported bit belongs to a sent packet.
fn check_only_sent(t: &mut Test<'_>, reported: &BTreeSet<u32>, sent: &[u32]) {
    let wrong = reported.iter().find(|n| **n != 0 && !sent.contains(n));
    let seen =
        wrong.map_or_else(|| "none".to_owned(), |n| format!("a bit for packet {n}, which was never sent"));
    t.holds(PDS_SACK_001, "every bit is that of a packet that has arrived", wrong.is_none(), seen);
}

/// Checks that each sent packet is reported.
fn check_coverage(t: &mut Test<'_>, reported: &BTreeSet<u32>, sent: &[u32]) {
    let missing = sent.iter().find(|n| !reported.contains(n));
    let seen = missing.map_or_else(|| "all reported".to_owned(), |n| format!("no bit for packet {n}"));
    t.holds(PDS_SACK_003, "the bitmaps report every packet that has arrived", missing.is_none(), seen);
}
