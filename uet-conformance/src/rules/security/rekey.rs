//! Implicit rekey: the key of each packet follows from its counter (section 3.7.8).

use super::steps::{CLUSTER, NEEDS, check_write, expect_no_effect, open_new, plain_write, write_in_flight};
use crate::prelude::*;

/// The mask of the counter bits that select a key, and their shift.
const REKEY: Axis<(u64, u8)> = axis("rekey-mask").values(&[
    ("upper", (0xffff_0000_0000, 32)),
    ("second-byte", (0xff00, 8)),
    ("lowest", (0xffff_ffff, 0)),
    ("unaligned", (0x0000_3ff0_0000, 20)),
    ("not-shifted", (0xff00, 0)),
    ("scattered", (0xf0f0, 4)),
]);

/// A number of rekey indexes. A device may keep the derived keys of fewer.
const INDEXES: u64 = 300;

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(NEEDS).over(&[&CLUSTER, &REKEY])
}

pub(super) const RULES: &[Rule] = &[
    rule("tss-key/rekey-received", "A target decrypts packets before and after an implicit rekey")
        .checks(&[TSS_KEY_001])
        .run(|t| {
            let (pdc, region) = open_with_rekey(t, TSS_KEY_001)?;
            for n in 1..4 {
                let before = u64::from(16 * (n + 2)) * rekey_step(t) - 1;
                t.shield()?.counter = before;
                check_write(t, TSS_KEY_001, &pdc, &region, 2 * n - 1)?;
                check_write(t, TSS_KEY_001, &pdc, &region, 2 * n)?;
            }
            Ok(())
        }),
    rule("tss-key/rekey-sent", "A sender rekeys at a new rekey index without a reset of its counter")
        .checks(&[TSS_KEY_001, TSS_CTR_001])
        .run(|t| {
            let (mask, shift) = t.value(&REKEY);
            let step = rekey_step(t);
            let first = (7 * step).saturating_sub(2);
            t.secure_as(t.value(&CLUSTER), |domain| {
                (domain.rekey_mask, domain.rekey_shift, domain.counter) = (mask, shift, Some(first));
            })?;
            t.shield()?.opens = TSS_KEY_001;
            let (pdc, region) = open_new(t, TSS_KEY_001)?;
            for n in 1..5 {
                check_write(t, TSS_KEY_001, &pdc, &region, n)?;
            }
            let seen = &t.shield()?.seen;
            let highest = seen.iter().map(|seen| seen.counter).max().unwrap_or(0);
            t.between(TSS_CTR_001, "the highest counter", first + 4..=first + 64, highest);
            Ok(())
        }),
    rule("tss-key/rekey-index-width", "A rekey index keeps its bits above the lowest 16")
        .checks(&[TSS_KEY_001])
        .over(&[&CLUSTER])
        .run(|t| {
            const SHIFT: u8 = 16;
            t.secure_as(t.value(&CLUSTER), |domain| {
                (domain.rekey_mask, domain.rekey_shift) = (0xff_ffff << SHIFT, SHIFT);
                // The device passes from one index to the next.
                domain.counter = Some((0x1_0007 << SHIFT) - 2);
            })?;
            t.shield()?.opens = TSS_KEY_001;
            let (pdc, region) = open_new(t, TSS_KEY_001)?;
            for (n, index) in [(1, 0x1_0000), (2, 0x2_0001), (3, 0xff_0001)] {
                t.shield()?.counter = (index << SHIFT) + 1;
                check_write(t, TSS_KEY_001, &pdc, &region, n)?;
            }
            Ok(())
        }),
    rule("tss-key/rekey-reordered", "A target accepts a packet of an earlier rekey index after a later one")
        .checks(&[TSS_KEY_003])
        .run(|t| {
            let (pdc, region) = open_with_rekey(t, TSS_KEY_003)?;
            for (n, index) in [(1, 9), (2, 5), (3, 8), (4, 6)] {
                let at = index * rekey_step(t) + 1;
                t.shield()?.counter = at;
                check_write(t, TSS_KEY_003, &pdc, &region, n)?;
            }
            Ok(())
        }),
    rule("tss-key/rekey-answers", "An initiator accepts ACKs of rekey indexes in any order")
        .checks(&[TSS_KEY_003])
        .run(|t| {
            secure_with_rekey(t)?;
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            for (n, index) in [(1, 9), (2, 5), (3, 8)] {
                let written = t.post(post(PostKind::Write, peer, 64))?;
                target.collect(t, n + 1)?;
                let at = index * rekey_step(t) + 1;
                t.shield()?.counter = at;
                target.ack(t, n)?;
                t.ends(TSS_KEY_003, written, Status::Ok)?;
            }
            Ok(())
        }),
    rule("tss-key/rekey-retransmission", "A retransmission of a new rekey index has the key of that index")
        .checks(&[TSS_KEY_001])
        .run(|t| {
            let (mask, shift) = t.value(&REKEY);
            // The first packet has the last counter of an index.
            let first = 7 * rekey_step(t) - 1;
            t.secure_as(t.value(&CLUSTER), |domain| {
                (domain.rekey_mask, domain.rekey_shift, domain.counter) = (mask, shift, Some(first));
            })?;
            t.shield()?.opens = TSS_KEY_001;
            let (written, mut target) = write_in_flight(t)?;
            for _ in 0..2 {
                target.expect_again(t, TSS_KEY_001, 0, t.later() * 2)?;
            }
            target.ack(t, 0)?;
            t.ends(TSS_KEY_001, written, Status::Ok)
        }),
    rule("tss-key/many-indexes", "A target executes a request after packets of many rekey indexes")
        .checks(&[TSS_KEY_001])
        .run(|t| {
            let (pdc, region) = open_with_rekey(t, TSS_KEY_001)?;
            // An ACK without a context gets no answer, and opens nothing.
            let nobody = t.initiate().of_nobody(pdc.remote);
            let ack = nobody.ack(nobody.psn(0)).build()?;
            for index in 4..4 + INDEXES {
                let at = index * rekey_step(t);
                t.shield()?.counter = at;
                t.send(&nobody, &ack)?;
            }
            t.settle()?;
            check_write(t, TSS_KEY_001, &pdc, &region, 1)?;
            let early = 3 * rekey_step(t);
            t.shield()?.counter = early;
            check_write(t, TSS_KEY_001, &pdc, &region, 2)
        }),
    rule("tss-key/rekey-mismatch", "A packet under the key of a wrong rekey index has no effect")
        .checks(&[TSS_KEY_001, TSS_ICV_003])
        .run(|t| {
            let (pdc, region) = open_with_rekey(t, TSS_KEY_001)?;
            let wire = plain_write(&pdc, &region, 1)?;
            let at = 5 * rekey_step(t);
            let shield = t.shield()?;
            let before = shield.counter;
            let mask = core::mem::replace(&mut shield.domain.rekey_mask, 0);
            shield.counter = at;
            let forged = t.sealed(&wire)?;
            let shield = t.shield()?;
            shield.domain.rekey_mask = mask;
            // The next authentic packet has an earlier rekey index.
            shield.counter = before;
            expect_no_effect(t, [TSS_KEY_001, TSS_ICV_003], (&pdc, &region), 1, &[forged])
        }),
];

/// Returns the number of counters per rekey index: the lowest bit of the mask.
fn rekey_step(t: &Test<'_>) -> u64 {
    let (mask, _) = t.value(&REKEY);
    mask & mask.wrapping_neg()
}

/// Makes the device a member of a domain with implicit rekey.
fn secure_with_rekey(t: &mut Test<'_>) -> Outcome {
    let (mask, shift) = t.value(&REKEY);
    t.secure_as(t.value(&CLUSTER), |domain| (domain.rekey_mask, domain.rekey_shift) = (mask, shift))
}

/// Opens a context in a domain with implicit rekey. The counters of the suite begin at rekey index 3.
fn open_with_rekey(t: &mut Test<'_>, requirement: &Requirement) -> Result<(Pdc, Region), Stop> {
    secure_with_rekey(t)?;
    let at = 3 * rekey_step(t);
    t.shield()?.counter = at;
    t.shield()?.opens = TSS_KEY_001;
    open_new(t, requirement)
}
