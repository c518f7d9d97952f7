//! The rotation of keys: association numbers, replaced keys and epochs (section 3.7).

use super::steps::{
    EPOCH, MEMBER, add_key, check_epoch_sent, check_write, expect_executed, expect_no_effect, latest_an,
    open_as, open_secured, plain_write, rule, switch_to, with_wrong_icv, write_in_flight,
};
use crate::SECURED;
use crate::prelude::*;

/// The association number before the switch.
const OLD: Axis<bool> = axis("old").values(&[("an-0", false), ("an-1", true)]);

/// The current epoch of the device's key.
pub(super) const CURRENT: Axis<u16> =
    axis("epoch").values(&[("3", 3), ("300", 300), ("0x8003", 0x8003), ("0xffff", 0xffff)]);

/// The configured number of past epochs that the device accepts.
const LIFETIME: Axis<u16> = axis("lifetime").values(&[("2", 2), ("0", 0), ("300", 300)]);

/// True if the packet of another epoch is authentic.
const AUTHENTIC: Axis<bool> = axis("other-packet").values(&[("authentic", true), ("forged", false)]);

/// The key of a packet whose association number has no key.
const WRONG_KEY: Axis<WrongKey> =
    axis("key").values(&[("other-slot", WrongKey::OtherSlot), ("zeros", WrongKey::Zeros)]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WrongKey {
    OtherSlot,
    Zeros,
}

pub(super) const RULES: &[Rule] = &[
    rule("tss-rotation/both-keys", "A target accepts packets under both installed keys")
        .checks(&[TSS_AN_001])
        .run(|t| {
            let (pdc, region) = open_with_two_keys(t, TSS_AN_001)?;
            for (n, an) in [(1, true), (2, false), (3, true)] {
                t.shield()?.an = an;
                check_write(t, TSS_AN_001, &pdc, &region, n)?;
            }
            Ok(())
        }),
    rule("tss-rotation/switch-target", "After a key switch, answers on an open context use the new key")
        .checks(&[TSS_AN_002])
        .over(&[&SECURED, &OLD])
        .run(|t| {
            let (pdc, region) = open_with_two_keys(t, TSS_AN_002)?;
            if t.value(&OLD) {
                switch_to(t, true)?;
                check_write(t, TSS_AN_002, &pdc, &region, 1)?;
            }
            let an = !t.value(&OLD);
            switch_to(t, an)?;
            t.settle()?;
            check_write(t, TSS_AN_002, &pdc, &region, 2)?;
            let seen = latest_an(t)?;
            t.check(TSS_AN_002, "association number", Some(an.into()), seen);
            Ok(())
        }),
    rule("tss-rotation/switch-initiator", "After a key switch, new operations use the new key")
        .checks(&[TSS_AN_002])
        .over(&[&SECURED, &OLD])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            add_key(t)?;
            switch_to(t, true)?;
            let an = !t.value(&OLD);
            switch_to(t, an)?;
            let (written, target) = write_in_flight(t)?;
            let seen = latest_an(t)?;
            t.check(TSS_AN_002, "association number", Some(an.into()), seen);
            target.ack(t, 0)?;
            t.ends(TSS_AN_002, written, Status::Ok)
        }),
    rule("tss-rotation/retransmission", "A retransmission after a key switch uses the new key")
        .checks(&[TSS_AN_002])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            add_key(t)?;
            let (written, mut target) = write_in_flight(t)?;
            switch_to(t, true)?;
            let retransmission = target.expect_again(t, TSS_AN_002, 0, t.later())?;
            let number = retransmission.seen.number;
            let seen =
                t.shield()?.seen.iter().find(|seen| seen.number == number).map(|seen| u8::from(seen.an));
            t.check(TSS_AN_002, "association number", Some(1), seen);
            target.ack(t, 0)?;
            t.ends(TSS_AN_002, written, Status::Ok)
        }),
    rule("tss-rotation/in-flight", "A packet under the old key that arrives after a key switch is executed")
        .checks(&[TSS_AN_001])
        .run(|t| {
            let (pdc, region) = open_with_two_keys(t, TSS_AN_001)?;
            let sealed = t.sealed(&plain_write(&pdc, &region, 1)?)?;
            switch_to(t, true)?;
            t.send_as_it_is(&sealed)?;
            expect_executed(t, TSS_AN_001, &pdc, &region, 1)
        }),
    rule("tss-rotation/removed-key", "A packet under a removed key has no effect").checks(&[TSS_AN_003]).run(
        |t| {
            let (pdc, region) = open_with_two_keys(t, TSS_AN_003)?;
            let old = sealed_before_switch(t, &pdc, &region)?;
            t.shield()?.secrets[0] = None;
            t.install()?;
            expect_no_effect(t, [TSS_AN_003, TSS_AN_003], (&pdc, &region), 1, &[old])
        },
    ),
    rule("tss-rotation/replaced-key", "A packet under a replaced key has no effect")
        .checks(&[TSS_AN_003])
        .run(|t| {
            let (pdc, region) = open_with_two_keys(t, TSS_AN_003)?;
            let old = sealed_before_switch(t, &pdc, &region)?;
            let third = t.fresh_secret();
            t.shield()?.secrets[0] = Some(third);
            t.install()?;
            expect_no_effect(t, [TSS_AN_003, TSS_AN_003], (&pdc, &region), 1, &[old])?;
            t.shield()?.an = false;
            check_write(t, TSS_AN_003, &pdc, &region, 2)
        }),
    rule("tss-rotation/empty-slot", "A packet with an association number without a key has no effect")
        .checks(&[TSS_AN_003])
        .over(&[&SECURED, &WRONG_KEY])
        .run(|t| {
            let (pdc, region) = open_secured(t)?;
            let wire = plain_write(&pdc, &region, 1)?;
            let key = t.value(&WRONG_KEY);
            let shield = t.shield()?;
            shield.secrets[1] = match key {
                WrongKey::OtherSlot => shield.secrets[0],
                WrongKey::Zeros => Some([0; 32]),
            };
            shield.an = true;
            let sealed = t.sealed(&wire);
            let shield = t.shield()?;
            shield.secrets[1] = None;
            shield.an = false;
            expect_no_effect(t, [TSS_AN_003, TSS_AN_003], (&pdc, &region), 1, &[sealed?])
        }),
    rule("tss-rotation/switch-back", "A switch back to a key continues its counter")
        .checks(&[TSS_CTR_001])
        .run(|t| {
            let (pdc, region) = open_with_two_keys(t, TSS_CTR_001)?;
            for (n, an) in [(1, false), (2, true), (3, false), (4, true)] {
                switch_to(t, an)?;
                check_write(t, TSS_CTR_001, &pdc, &region, n)?;
            }
            check_distinct_counters(t, false)?;
            check_distinct_counters(t, true)
        }),
    rule("tss-rotation/reinstalled", "A key that is reinstalled keeps its counter")
        .checks(&[TSS_CTR_001])
        .run(|t| {
            let (pdc, region) = open_as(t, TSS_CTR_001, t.value(&SECURED), |_| {})?;
            for n in 1..4 {
                t.install()?;
                check_write(t, TSS_CTR_001, &pdc, &region, n)?;
            }
            check_distinct_counters(t, false)
        }),
    rule("tss-rotation/key-returns", "A removed key that returns repeats no counter, or is refused")
        .checks(&[TSS_CTR_001])
        .run(|t| {
            let (pdc, region) = open_with_two_keys(t, TSS_CTR_001)?;
            check_write(t, TSS_CTR_001, &pdc, &region, 1)?;
            switch_to(t, true)?;
            let shield = t.shield()?;
            shield.an = true;
            let removed = shield.secrets[0].take();
            t.install()?;
            check_write(t, TSS_CTR_001, &pdc, &region, 2)?;
            t.shield()?.secrets[0] = removed;
            match t.install() {
                Err(Stop::Inconclusive(_)) => {}
                other => {
                    other?;
                    switch_to(t, false)?;
                }
            }
            check_write(t, TSS_CTR_001, &pdc, &region, 3)?;
            check_distinct_counters(t, false)?;
            check_distinct_counters(t, true)
        }),
    rule("tss-rotation/same-key", "A device refuses one key in both slots, or repeats no counter under it")
        .checks(&[TSS_CTR_001])
        .run(|t| {
            let (pdc, region) = open_as(t, TSS_CTR_001, t.value(&SECURED), |_| {})?;
            let shield = t.shield()?;
            shield.secrets[1] = shield.secrets[0];
            let refused = match t.install() {
                Err(Stop::Inconclusive(_)) => true,
                other => other.map(|()| false)?,
            };
            if refused {
                t.shield()?.secrets[1] = None;
                return check_write(t, TSS_CTR_001, &pdc, &region, 1);
            }
            for (n, an) in [(1, false), (2, true), (3, true)] {
                switch_to(t, an)?;
                check_write(t, TSS_CTR_001, &pdc, &region, n)?;
            }
            let counters = [counters(t, false)?, counters(t, true)?].concat();
            check_distinct(t, counters);
            Ok(())
        }),
    rule("tss-rotation/epoch-sent", "Requests and answers carry the current epoch of their key")
        .checks(&[TSS_EPOCH_002])
        .over(&[&SECURED, &EPOCH])
        .run(|t| {
            let epoch = t.value(&EPOCH);
            let (pdc, region) = open_as(t, TSS_EPOCH_002, t.value(&SECURED), |domain| domain.epoch = epoch)?;
            check_write(t, TSS_EPOCH_002, &pdc, &region, 1)?;
            check_epoch_sent(t, epoch)?;
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, 64))?;
            let target = Target::accept(t)?;
            check_epoch_sent(t, epoch)?;
            target.ack(t, 0)
        }),
    rule("tss-rotation/new-key-epoch", "A new key has its own epoch, which may be below that of the old key")
        .checks(&[TSS_EPOCH_002, TSS_EPOCH_001])
        .over(&[&SECURED, &CURRENT])
        .run(|t| {
            let old = t.value(&CURRENT);
            let (pdc, region) = open_as(t, TSS_EPOCH_002, t.value(&SECURED), |domain| domain.epoch = old)?;
            add_key(t)?;
            check_write(t, TSS_EPOCH_002, &pdc, &region, 1)?;
            check_epoch_sent(t, old)?;
            let shield = t.shield()?;
            (shield.installed.an, shield.installed.epoch) = (1, 0);
            (shield.an, shield.epoch) = (true, 0);
            match t.install() {
                // A device may refuse an earlier epoch of the old key.
                Err(Stop::Inconclusive(_)) => {
                    t.shield()?.secrets[0] = None;
                    t.install()?;
                }
                other => other?,
            }
            check_write(t, TSS_EPOCH_001, &pdc, &region, 2)?;
            check_epoch_sent(t, 0)
        }),
    rule("tss-rotation/retransmission-epoch", "A retransmission after a change of epoch has the new epoch")
        .checks(&[TSS_EPOCH_002])
        .run(|t| {
            t.secure_as(t.value(&SECURED), |domain| domain.epoch = 7)?;
            let (written, mut target) = write_in_flight(t)?;
            let shield = t.shield()?;
            (shield.installed.epoch, shield.epoch) = (8, 8);
            t.install()?;
            let number = target.expect_again(t, TSS_EPOCH_002, 0, t.later())?.seen.number;
            let seen = t.shield()?.seen.iter().find(|seen| seen.number == number).map(|seen| seen.epoch);
            t.check(TSS_EPOCH_002, "epoch of the retransmission:", Some(8), seen);
            target.ack(t, 0)?;
            t.ends(TSS_EPOCH_002, written, Status::Ok)
        }),
    rule("tss-rotation/newer-epoch", "A packet of a newer epoch does not change the epoch of the answers")
        .checks(&[TSS_EPOCH_002])
        .over(&[&MEMBER])
        .run(|t| {
            let (pdc, region) = open_as(t, TSS_EPOCH_002, t.value(&MEMBER), |domain| domain.epoch = 7)?;
            t.shield()?.epoch = 8;
            t.send_wire(&plain_write(&pdc, &region, 1)?)?;
            let within = t.soon();
            let executes = t.wait(within, |seen| seen.acknowledges(&pdc, pdc.psn(1)))?.is_some();
            require(executes, "the device drops packets of a newer epoch")?;
            check_epoch_sent(t, 7)?;
            t.shield()?.epoch = 7;
            check_write(t, TSS_EPOCH_002, &pdc, &region, 2)?;
            check_epoch_sent(t, 7)
        }),
    rule("tss-rotation/far-epoch", "A packet of a far newer epoch does not make the current epoch expire")
        .checks(&[TSS_EPOCH_001, TSS_ICV_002])
        .over(&[&MEMBER, &AUTHENTIC, &CURRENT])
        .run(|t| {
            let (current, authentic) = (t.value(&CURRENT), t.value(&AUTHENTIC));
            let requirement = if authentic { TSS_EPOCH_001 } else { TSS_ICV_002 };
            let lifetime = epoch_lifetime(t)?;
            let (pdc, region) = open_as(t, requirement, t.value(&MEMBER), |domain| domain.epoch = current)?;
            t.shield()?.epoch = current.wrapping_add(lifetime + 100);
            let wire = plain_write(&pdc, &region, 1)?;
            let far = if authentic { t.sealed(&wire)? } else { with_wrong_icv(t, &wire)? };
            t.shield()?.epoch = current;
            // Open: whether a device accepts an authentic packet of an epoch so far ahead.
            t.send_as_it_is(&far)?;
            t.settle()?;
            check_write(t, requirement, &pdc, &region, 2)
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
                check_write(t, TSS_EPOCH_002, &pdc, &region, n)?;
                check_epoch_sent(t, epoch)?;
            }
            Ok(())
        }),
    rule("tss-rotation/expired-epoch", "A packet of an expired epoch has no effect")
        .checks(&[TSS_EPOCH_001])
        .over(&[&MEMBER, &CURRENT])
        .run(|t| {
            let (current, lifetime) = (t.value(&CURRENT), epoch_lifetime(t)?);
            let (pdc, region) = open_as(t, TSS_EPOCH_001, t.value(&MEMBER), |domain| domain.epoch = current)?;
            let mut old = Vec::new();
            // The low byte of the last two is that of the current epoch.
            let multiples = [0x100, 0x1000].into_iter().filter(|behind| *behind > lifetime);
            for behind in [lifetime + 1, lifetime + 100, 0x7fff].into_iter().chain(multiples) {
                t.shield()?.epoch = current.wrapping_sub(behind);
                let sealed = t.sealed(&plain_write(&pdc, &region, 1)?)?;
                old.push(sealed);
            }
            t.shield()?.epoch = current;
            expect_no_effect(t, [TSS_EPOCH_001, TSS_EPOCH_001], (&pdc, &region), 1, &old)
        }),
    rule("tss-rotation/short-lifetime", "A configured lifetime of epochs replaces the default")
        .checks(&[TSS_EPOCH_001])
        .over(&[&MEMBER, &CURRENT, &LIFETIME])
        .run(|t| {
            let (current, lifetime) = (t.value(&CURRENT), t.value(&LIFETIME));
            t.configure("rx_max_epoch_lifetime", lifetime)?;
            let (pdc, region) = open_as(t, TSS_EPOCH_001, t.value(&MEMBER), |domain| domain.epoch = current)?;
            t.shield()?.epoch = current.wrapping_sub(lifetime + 1);
            let old = t.sealed(&plain_write(&pdc, &region, 1)?)?;
            t.shield()?.epoch = current.wrapping_sub(lifetime);
            expect_no_effect(t, [TSS_EPOCH_001, TSS_EPOCH_001], (&pdc, &region), 1, &[old])
        }),
    rule("tss-rotation/oldest-epoch", "A packet of the oldest permitted epoch is executed")
        .checks(&[TSS_EPOCH_001])
        .over(&[&MEMBER, &CURRENT])
        .run(|t| {
            let (current, lifetime) = (t.value(&CURRENT), epoch_lifetime(t)?);
            let (pdc, region) = open_as(t, TSS_EPOCH_001, t.value(&MEMBER), |domain| domain.epoch = current)?;
            t.shield()?.epoch = current.wrapping_sub(lifetime);
            check_write(t, TSS_EPOCH_001, &pdc, &region, 1)
        }),
];

/// Opens a context and installs a second key, which is not in use yet.
fn open_with_two_keys(t: &mut Test<'_>, requirement: &Requirement) -> Result<(Pdc, Region), Stop> {
    let (pdc, region) = open_as(t, requirement, t.value(&SECURED), |_| {})?;
    add_key(t)?;
    Ok((pdc, region))
}

/// Switches to the second key, and returns a packet under the first.
fn sealed_before_switch(t: &mut Test<'_>, pdc: &Pdc, region: &Region) -> Result<crate::Wire, Stop> {
    let old = t.sealed(&plain_write(pdc, region, 1)?)?;
    switch_to(t, true)?;
    t.shield()?.an = true;
    Ok(old)
}

/// Returns the counters of all packets under this association number.
fn counters(t: &mut Test<'_>, an: bool) -> Result<Vec<u64>, Stop> {
    let seen = t.shield()?.seen.iter();
    Ok(seen.filter(|seen| seen.an == an).map(|seen| seen.counter).collect())
}

/// Checks that no two packets under this association number have the same counter.
fn check_distinct_counters(t: &mut Test<'_>, an: bool) -> Outcome {
    let counters = counters(t, an)?;
    check_distinct(t, counters);
    Ok(())
}

fn check_distinct(t: &mut Test<'_>, mut counters: Vec<u64>) {
    let sent = counters.len();
    counters.sort_unstable();
    counters.dedup();
    t.check(TSS_CTR_001, "repeated counters:", 0, sent - counters.len());
}

/// Returns the number of past epochs that the device accepts.
pub(super) fn epoch_lifetime(t: &Test<'_>) -> Result<u16, Stop> {
    match t.parameter("rx_max_epoch_lifetime") {
        lifetime if lifetime < 1 << 14 => Ok(lifetime as u16),
        _ => skip("the device accepts all epochs"),
    }
}
