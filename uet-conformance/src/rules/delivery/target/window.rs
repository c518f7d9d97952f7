//! PSNs and the receive window of a target (sections 3.5.8 and 3.5.12.6).

use crate::prelude::*;
use crate::rules::delivery::rule;
use crate::rules::steps::{expect_close_in_range, shorten_psn_range};

pub(super) const RULES: &[Rule] = &[
    rule("window/last-psn", "The last PSN of the window is accepted")
        .checks(&[PDS_WIN_001, PDS_PSN_002])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let edge = t.range(&pdc)?;
            t.request(&pdc, pdc.request(edge).write(&region, 0, &[1; 16])?)?;
            let (_, ack) = t.expect_ack(PDS_WIN_001, &pdc, pdc.psn(edge))?;
            t.check(PDS_PSN_002, "cack_psn", pdc.psn(0), ack.cack_psn());
            t.expect_memory(PDS_WIN_001, &region, 0, &[1; 16])
        }),
    rule("window/above", "A PSN above the window is refused with PSN_OOR_WINDOW")
        .checks(&[PDS_OPEN_006])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let beyond = t.beyond(&pdc)?;
            for n in [beyond, beyond + 1, beyond + 0x10_0000] {
                let request = pdc.request(n).clear(pdc.psn(n) - 128);
                t.request(&pdc, request.write(&region, 0, &[1; 16])?)?;
                t.expect_nack(PDS_OPEN_006, &pdc, pdc.psn(n), &[NackCode::PSN_OOR_WINDOW])?;
            }
            t.pause(t.soon())?;
            t.check_memory(PDS_OPEN_006, &region, 0, &[0; 16])
        }),
    rule("window/slides", "A packet above the window is accepted once the window has moved over it")
        .checks(&[PDS_WIN_001, PDS_NACK_011])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let beyond = t.beyond(&pdc)?;
            let early = pdc.request(beyond).write(&region, 0, &[1; 16])?;
            t.request(&pdc, early.clone())?;
            t.need("a refusal", t.soon(), |seen| seen.refuses(&pdc, pdc.psn(beyond)))?;
            let first = beyond - t.range(&pdc)?;
            advance(t, &pdc, &region, first)?;
            t.request(&pdc, early.retx())?;
            t.expect_ack(PDS_WIN_001, &pdc, pdc.psn(beyond))?;
            t.expect_memory(PDS_NACK_011, &region, 0, &[1; 16])
        }),
    rule("window/lowest-duplicate", "A PSN one window below the cumulative PSN is a duplicate")
        .checks(&[PDS_DUP_004, PDS_PSN_003])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let range = t.range(&pdc)?;
            t.request(&pdc, pdc.request(1).write(&region, 0, &[1; 16])?)?;
            t.need_ack(&pdc, pdc.psn(1))?;
            let last = 1 + range;
            let moving = Pdc { start: pdc.start + 1, ..pdc.clone() };
            advance(t, &moving, &region, range)?;
            // A second delivery would change these bytes.
            let duplicate = pdc.request(1).write(&region, 0, &[9; 16])?.retx();
            t.request(&pdc, duplicate)?;
            let (_, ack) = t.expect_ack(PDS_DUP_004, &pdc, pdc.psn(1))?;
            t.check(PDS_PSN_003, "cack_psn", pdc.psn(last), ack.cack_psn());
            t.pause(t.soon())?;
            t.check_memory(PDS_DUP_004, &region, 0, &[1; 16])
        }),
    rule("window/below", "A PSN more than a window below the cumulative PSN gets PSN_OOR_WINDOW")
        .checks(&[PDS_OPEN_006])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let beyond = t.beyond(&pdc)?;
            let old = Pdc { start: pdc.start - beyond, ..pdc.clone() };
            let request = old.request(0).write(&region, 0, &[1; 16])?;
            t.request(&old, request.clone())?;
            t.expect_nack(PDS_OPEN_006, &pdc, old.psn(0), &[NackCode::PSN_OOR_WINDOW])?;
            // A retransmission may be dropped without an answer.
            t.request(&old, request.retx())?;
            t.pause(t.soon())?;
            t.check_memory(PDS_OPEN_006, &region, 0, &[0; 16])
        }),
    rule("window/half-circle", "PSNs from the opposite half of the sequence space are refused")
        .checks(&[PDS_PSN_006, PDS_OPEN_006])
        .run(|t| {
            let (pdc, region) = t.open()?;
            for distance in [0x7fff_ffff, 0x8000_0000, 0x8000_0001] {
                let request = pdc.request(distance).clear(pdc.psn(distance) - 128);
                t.request(&pdc, request.write(&region, 0, &[1; 16])?)?;
                t.expect_nack(PDS_OPEN_006, &pdc, pdc.psn(distance), &[NackCode::PSN_OOR_WINDOW])?;
            }
            t.request(&pdc, pdc.request(1).write(&region, 16, &[2; 16])?)?;
            t.expect_cack(PDS_PSN_006, &pdc, pdc.psn(1))?;
            t.check_memory(PDS_PSN_006, &region, 0, &[0; 16])
        }),
    rule("window/wrap", "A context works across the PSN wrap, in any order of arrival")
        .checks(&[PDS_PSN_006, PDS_RUD_001])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let region = t.region(4096)?;
            let mut pdc = Pdc { start: Psn(0xffff_fff0), ..t.initiate() };
            t.establish(&mut pdc, &region)?;
            // Each pair arrives in the wrong order.
            for n in (1..31).map(|n| ((n - 1) ^ 1) + 1).chain([31]) {
                t.request(&pdc, pdc.request(n).write(&region, u64::from(n), &[n as u8])?)?;
            }
            t.expect_cack(PDS_PSN_006, &pdc, Psn(15))?;
            let expected: Vec<u8> = (0..32).collect();
            t.expect_memory(PDS_RUD_001, &region, 0, &expected)
        }),
    rule("window/reversed", "A whole window that arrives in reverse order is delivered")
        .checks(&[PDS_WIN_001, PDS_RUD_001])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let count = t.range(&pdc)?.min(1024);
            for n in (1..=count).rev() {
                t.request(&pdc, pdc.request(n).write(&region, u64::from(n), &[n as u8])?)?;
            }
            t.expect_cack(PDS_WIN_001, &pdc, pdc.psn(count))?;
            let expected: Vec<u8> = (0..=count).map(|n| n as u8).collect();
            t.expect_memory(PDS_RUD_001, &region, 0, &expected)
        }),
    rule("window/shuffled-duplicates", "Each packet of a shuffled window with duplicates takes effect once")
        .checks(&[PDS_DUP_001, PDS_PSN_002])
        .needs(&[RUD, WRITE, ATOMIC])
        .over(&[&START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let count = t.range(&pdc)?.min(256);
            let mut order: Vec<u32> = (1..=count).chain(1..=count).collect();
            t.rng().shuffle(&mut order);
            let mut sent = Vec::new();
            for n in order {
                let request = pdc.request(n).add(&region, 0, &t.operands(8, &[n.into()]), false)?;
                t.request(&pdc, if sent.contains(&n) { request.retx() } else { request })?;
                sent.push(n);
            }
            t.expect_cack(PDS_PSN_002, &pdc, pdc.psn(count))?;
            t.pause(t.soon())?;
            let sum = u64::from(count) * u64::from(count + 1) / 2;
            t.check_memory(PDS_DUP_001, &region, 0, &t.elements(8, &[sum.into()]))
        }),
    rule("window/gap", "Packets above a gap are delivered without waiting for it")
        .checks(&[PDS_RUD_001, PDS_PSN_002])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            for n in 2..=64 {
                t.request(&pdc, pdc.request(n).write(&region, u64::from(n), &[n as u8])?)?;
            }
            let (_, ack) = t.expect_ack(PDS_RUD_001, &pdc, pdc.psn(64))?;
            t.check(PDS_PSN_002, "cack_psn", pdc.psn(0), ack.cack_psn());
            let expected: Vec<u8> = (2..=64).collect();
            t.expect_memory(PDS_RUD_001, &region, 2, &expected)?;
            t.forget();
            t.request(&pdc, pdc.request(1).write(&region, 1, &[1])?)?;
            t.expect_cack(PDS_PSN_002, &pdc, pdc.psn(64))?;
            Ok(())
        }),
    rule("window/uncleared", "An uncleared response stops the window")
        .checks(&[PDS_PSN_002, PDS_OPEN_006])
        .run(|t| {
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(1).write_nowhere(&region, &[1; 16])?)?;
            t.need_ack(&pdc, pdc.psn(1))?;
            for n in 2..=4 {
                t.request(&pdc, pdc.request(n).write(&region, u64::from(n), &[1])?)?;
                let (_, ack) = t.expect_ack(PDS_PSN_002, &pdc, pdc.psn(n))?;
                t.check(PDS_PSN_002, "cack_psn", pdc.psn(0), ack.cack_psn());
            }
            let beyond = t.beyond(&pdc)?;
            t.request(&pdc, pdc.request(beyond).write(&region, 0, &[1; 2])?)?;
            t.expect_nack(PDS_OPEN_006, &pdc, pdc.psn(beyond), &[NackCode::PSN_OOR_WINDOW])?;
            t.pause(t.soon())?;
            t.check_memory(PDS_OPEN_006, &region, 0, &[0; 2])
        }),
    rule("window/smaller", "A window smaller than the default revokes no permitted PSN")
        .checks(&[PDS_WIN_003, PDS_WIN_005])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            t.configure("announced_mpr", 1)?;
            let (pdc, region) = t.open()?;
            require(t.windows(&pdc) == [1], "the device announces no window")?;
            // Packets that the first window permitted may still be in flight.
            let edge = t.default_range() - 1;
            t.request(&pdc, pdc.request(edge).write(&region, 0, &[1; 16])?)?;
            t.expect_ack(PDS_WIN_003, &pdc, pdc.psn(edge))?;
            t.expect_memory(PDS_WIN_003, &region, 0, &[1; 16])?;
            let above = pdc.psn(t.default_range() + 128);
            let request = pdc.request(t.default_range() + 128).clear(above - 128);
            t.request(&pdc, request.write(&region, 0, &[2; 16])?)?;
            t.expect_nack(PDS_WIN_005, &pdc, above, &[NackCode::PSN_OOR_WINDOW])?;
            Ok(())
        }),
    rule("window/larger", "A window larger than the default applies once it is announced")
        .checks(&[PDS_WIN_001, PDS_WIN_005])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let default = t.parameter("default_mpr");
            let mpr = (2 * default).min(255);
            require(mpr > default, "no window is larger than the default")?;
            t.configure("announced_mpr", mpr)?;
            let (pdc, region) = t.open()?;
            require(t.windows(&pdc) == [mpr as u8], "the device announces no window")?;
            let edge = t.range(&pdc)?;
            t.request(&pdc, pdc.request(edge).write(&region, 0, &[1; 16])?)?;
            t.expect_ack(PDS_WIN_001, &pdc, pdc.psn(edge))?;
            t.expect_memory(PDS_WIN_001, &region, 0, &[1; 16])?;
            let beyond = t.beyond(&pdc)?;
            t.request(&pdc, pdc.request(beyond).write(&region, 0, &[2; 16])?)?;
            t.expect_nack(PDS_WIN_005, &pdc, pdc.psn(beyond), &[NackCode::PSN_OOR_WINDOW])?;
            Ok(())
        }),
    rule("window/psn-range", "A target near the end of its return PSNs requests a close")
        .checks(&[PDS_CLOSE_012])
        .needs(&[WRITE, READ])
        .over(&[&MODE, &START])
        .run(|t| {
            shorten_psn_range(t, true)?;
            let (pdc, region) = t.open()?;
            expect_close_in_range(t, &pdc, &region)
        }),
];

/// Advances the cumulative PSN to the `n`-th.
fn advance(t: &mut Test<'_>, pdc: &Pdc, region: &Region, n: u32) -> Outcome {
    // The suite sends at most one window at a time, as a source does.
    let step = t.range(pdc)?.min(256);
    let mut next = 1;
    while next <= n {
        let last = n.min(next + step - 1);
        for k in next..=last {
            let request = pdc.request(k).clear(pdc.psn(next - 1)).write(region, 32, &[1])?;
            t.request(pdc, if k == last { request } else { request.quiet() })?;
        }
        t.need("the window to move", t.soon(), |seen| (seen.cack(pdc)? == pdc.psn(last)).then_some(()))?;
        t.forget();
        next = last + 1;
    }
    Ok(())
}
