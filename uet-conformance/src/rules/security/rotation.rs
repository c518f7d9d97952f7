//! Association numbers, replaced keys and epochs (section 3.7).

use super::steps::{EPOCH, MEMBER, NEEDS, executed, no_effect, open_as, opened, plain, works};
use crate::SECURED;
use crate::prelude::*;

/// The association number of the first key.
const FIRST: Axis<bool> = axis("first").values(&[("an-0", false), ("an-1", true)]);

/// The current epoch of the device's key.
const CURRENT: Axis<u16> =
    axis("current").values(&[("wrap", 3), ("late", 300), ("half", 0x8003), ("full", 0xffff)]);

/// The key under which a packet of an empty slot comes.
const UNDER: Axis<Under> =
    axis("key").values(&[("of-other-slot", Under::OtherSlot), ("zeros", Under::Zeros)]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Under {
    OtherSlot,
    Zeros,
}

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(NEEDS).over(&[&SECURED])
}

pub(super) const RULES: &[Rule] = &[
    rule("tss-rotation/both-keys", "A target accepts packets under both installed keys")
        .checks(&[TSS_AN_001])
        .run(|t| {
            let (pdc, region) = with_two_keys(t, TSS_AN_001)?;
            for (n, an) in [(1, true), (2, false), (3, true)] {
                t.shield()?.an = an;
                works(t, TSS_AN_001, &pdc, &region, n)?;
            }
            Ok(())
        }),
    rule("tss-rotation/switch-target", "After a key switch, answers on an open context use the new key")
        .checks(&[TSS_AN_002])
        .over(&[&SECURED, &FIRST])
        .run(|t| {
            let (pdc, region) = with_two_keys(t, TSS_AN_002)?;
            if t.value(&FIRST) {
                switch_to(t, true)?;
                works(t, TSS_AN_002, &pdc, &region, 1)?;
            }
            let an = !t.value(&FIRST);
            switch_to(t, an)?;
            t.settle()?;
            works(t, TSS_AN_002, &pdc, &region, 2)?;
            let seen = latest(t)?;
            t.check(TSS_AN_002, "association number", Some(an.into()), seen);
            Ok(())
        }),
    rule("tss-rotation/switch-initiator", "After a key switch, new operations use the new key")
        .checks(&[TSS_AN_002])
        .over(&[&SECURED, &FIRST])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            add_key(t)?;
            switch_to(t, true)?;
            let an = !t.value(&FIRST);
            switch_to(t, an)?;
            let peer = t.peer(0)?;
            let written = t.post(post(PostKind::Write, peer, 64))?;
            let target = Target::accept(t)?;
            let seen = latest(t)?;
            t.check(TSS_AN_002, "association number", Some(an.into()), seen);
            target.ack(t, 0)?;
            t.ends(TSS_AN_002, written, Status::Ok)
        }),
    rule("tss-rotation/retransmission", "A retransmission after a key switch uses the new key")
        .checks(&[TSS_AN_002])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            add_key(t)?;
            let peer = t.peer(0)?;
            let written = t.post(post(PostKind::Write, peer, 64))?;
            let mut target = Target::accept(t)?;
            switch_to(t, true)?;
            let again = target.expect_again(t, TSS_AN_002, 0, t.later())?;
            let number = again.seen.number;
            let seen =
                t.shield()?.seen.iter().find(|seen| seen.number == number).map(|seen| u8::from(seen.an));
            t.check(TSS_AN_002, "association number", Some(1), seen);
            target.ack(t, 0)?;
            t.ends(TSS_AN_002, written, Status::Ok)
        }),
    rule("tss-rotation/in-flight", "A packet under the old key that arrives after a key switch is executed")
        .checks(&[TSS_AN_001])
        .run(|t| {
            let (pdc, region) = with_two_keys(t, TSS_AN_001)?;
            let sealed = t.sealed(&plain(&pdc, &region, 1)?)?;
            switch_to(t, true)?;
            t.send_as_it_is(&sealed)?;
            executed(t, TSS_AN_001, &pdc, &region, 1)
        }),
    rule("tss-rotation/removed-key", "A packet under a removed key has no effect").checks(&[TSS_AN_003]).run(
        |t| {
            let (pdc, region) = with_two_keys(t, TSS_AN_003)?;
            let old = rotated(t, &pdc, &region)?;
            t.shield()?.secrets[0] = None;
            t.install()?;
            no_effect(t, [TSS_AN_003, TSS_AN_003], (&pdc, &region), 1, &[old])
        },
    ),
    rule("tss-rotation/replaced-key", "A packet under a replaced key has no effect")
        .checks(&[TSS_AN_003])
        .run(|t| {
            let (pdc, region) = with_two_keys(t, TSS_AN_003)?;
            let old = rotated(t, &pdc, &region)?;
            let third = t.fresh_secret();
            t.shield()?.secrets[0] = Some(third);
            t.install()?;
            no_effect(t, [TSS_AN_003, TSS_AN_003], (&pdc, &region), 1, &[old])?;
            t.shield()?.an = false;
            works(t, TSS_AN_003, &pdc, &region, 2)
        }),
    rule("tss-rotation/empty-slot", "A packet with an association number without a key has no effect")
        .checks(&[TSS_AN_003])
        .over(&[&SECURED, &UNDER])
        .run(|t| {
            let (pdc, region) = opened(t)?;
            let wire = plain(&pdc, &region, 1)?;
            let under = t.value(&UNDER);
            let shield = t.shield()?;
            shield.secrets[1] = match under {
                Under::OtherSlot => shield.secrets[0],
                Under::Zeros => Some([0; 32]),
            };
            shield.an = true;
            let sealed = t.sealed(&wire);
            let shield = t.shield()?;
            shield.secrets[1] = None;
            shield.an = false;
            no_effect(t, [TSS_AN_003, TSS_AN_003], (&pdc, &region), 1, &[sealed?])
        }),
    rule("tss-rotation/switch-back", "A switch back to a key continues its counter")
        .checks(&[TSS_CTR_001])
        .run(|t| {
            let (pdc, region) = with_two_keys(t, TSS_CTR_001)?;
            for (n, an) in [(1, false), (2, true), (3, false), (4, true)] {
                switch_to(t, an)?;
                works(t, TSS_CTR_001, &pdc, &region, n)?;
            }
            distinct(t, false)?;
            distinct(t, true)
        }),
    rule("tss-rotation/reinstalled", "A key that is reinstalled keeps its counter")
        .checks(&[TSS_CTR_001])
        .run(|t| {
            let (pdc, region) = open_as(t, TSS_CTR_001, t.value(&SECURED), |_| {})?;
            for n in 1..4 {
                t.install()?;
                works(t, TSS_CTR_001, &pdc, &region, n)?;
            }
            distinct(t, false)
        }),
    rule("tss-rotation/epoch-sent", "Requests and answers carry the current epoch of their key")
        .checks(&[TSS_EPOCH_002])
        .over(&[&SECURED, &EPOCH])
        .run(|t| {
            let epoch = t.value(&EPOCH);
            let (pdc, region) = open_as(t, TSS_EPOCH_002, t.value(&SECURED), |domain| domain.epoch = epoch)?;
            works(t, TSS_EPOCH_002, &pdc, &region, 1)?;
            epochs_sent(t, epoch)?;
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, 64))?;
            let target = Target::accept(t)?;
            epochs_sent(t, epoch)?;
            target.ack(t, 0)
        }),
    rule("tss-rotation/next-epoch", "A context continues in the next epoch of its key")
        .checks(&[TSS_EPOCH_002])
        .run(|t| {
            let (pdc, region) = open_as(t, TSS_EPOCH_002, t.value(&SECURED), |domain| domain.epoch = 0xfffe)?;
            for (n, epoch) in [(1, 0xffff), (2, 0), (3, 1)] {
                let shield = t.shield()?;
                (shield.installed.epoch, shield.epoch) = (epoch, epoch);
                t.install()?;
                t.settle()?;
                works(t, TSS_EPOCH_002, &pdc, &region, n)?;
                epochs_sent(t, epoch)?;
            }
            Ok(())
        }),
    rule("tss-rotation/expired-epoch", "A packet of an expired epoch has no effect")
        .checks(&[TSS_EPOCH_001])
        .over(&[&MEMBER, &CURRENT])
        .run(|t| {
            let (current, lifetime) = (t.value(&CURRENT), lifetime(t)?);
            let (pdc, region) = open_as(t, TSS_EPOCH_001, t.value(&MEMBER), |domain| domain.epoch = current)?;
            let mut old = Vec::new();
            for behind in [lifetime + 1, lifetime + 100, 0x7fff] {
                t.shield()?.epoch = current.wrapping_sub(behind);
                let sealed = t.sealed(&plain(&pdc, &region, 1)?)?;
                old.push(sealed);
            }
            t.shield()?.epoch = current;
            no_effect(t, [TSS_EPOCH_001, TSS_EPOCH_001], (&pdc, &region), 1, &old)
        }),
    rule("tss-rotation/oldest-epoch", "A packet of the oldest permitted epoch is executed")
        .checks(&[TSS_EPOCH_001])
        .over(&[&MEMBER, &CURRENT])
        .run(|t| {
            let (current, lifetime) = (t.value(&CURRENT), lifetime(t)?);
            let (pdc, region) = open_as(t, TSS_EPOCH_001, t.value(&MEMBER), |domain| domain.epoch = current)?;
            t.shield()?.epoch = current.wrapping_sub(lifetime);
            works(t, TSS_EPOCH_001, &pdc, &region, 1)
        }),
];

/// Opens a context and installs a second key, which nobody uses yet.
fn with_two_keys(t: &mut Test<'_>, requirement: &Requirement) -> Result<(Pdc, Region), Stop> {
    let (pdc, region) = open_as(t, requirement, t.value(&SECURED), |_| {})?;
    add_key(t)?;
    Ok((pdc, region))
}

fn add_key(t: &mut Test<'_>) -> Outcome {
    let second = t.fresh_secret();
    t.shield()?.secrets[1] = Some(second);
    t.install()
}

/// Makes the device send under this association number.
fn switch_to(t: &mut Test<'_>, an: bool) -> Outcome {
    t.shield()?.installed.an = an.into();
    t.install()
}

fn latest(t: &mut Test<'_>) -> Result<Option<u8>, Stop> {
    Ok(t.shield()?.seen.last().map(|seen| seen.an.into()))
}

/// Switches to the second key, and returns a packet under the first.
fn rotated(t: &mut Test<'_>, pdc: &Pdc, region: &Region) -> Result<crate::Wire, Stop> {
    let old = t.sealed(&plain(pdc, region, 1)?)?;
    switch_to(t, true)?;
    t.shield()?.an = true;
    Ok(old)
}

fn counters(t: &mut Test<'_>, an: bool) -> Result<Vec<u64>, Stop> {
    let seen = t.shield()?.seen.iter();
    Ok(seen.filter(|seen| seen.an == an).map(|seen| seen.counter).collect())
}

fn distinct(t: &mut Test<'_>, an: bool) -> Outcome {
    let mut all = counters(t, an)?;
    let sent = all.len();
    all.sort_unstable();
    all.dedup();
    t.check(TSS_CTR_001, "counters that come again:", 0, sent - all.len());
    Ok(())
}

fn epochs_sent(t: &mut Test<'_>, expected: u16) -> Outcome {
    let seen = t.shield()?.seen.last().map(|seen| seen.epoch);
    t.check(TSS_EPOCH_002, "epoch:", Some(expected), seen);
    Ok(())
}

fn lifetime(t: &Test<'_>) -> Result<u16, Stop> {
    match t.parameter("rx_max_epoch_lifetime") {
        lifetime if lifetime < 1 << 14 => Ok(lifetime as u16),
        _ => skip("the device accepts all epochs"),
    }
}
