//! An initiator that gets answers under old and new keys and in several epochs (section 3.7).

use super::rotation::{CURRENT, epoch_lifetime};
use super::steps::{
    MEMBER, add_key, check_epoch_sent, expect_ended_by_ack, latest_an, rule, switch_to, write_in_flight,
};
use crate::prelude::*;
use crate::{SECURED, Wire};

/// True if another key takes the place of the removed one.
const REPLACED: Axis<bool> = axis("slot").values(&[("empty", false), ("other-key", true)]);

pub(super) const RULES: &[Rule] = &[
    rule("tss-rotation/ack-in-flight", "An ACK under the old key that arrives after a key switch counts")
        .checks(&[TSS_AN_001])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            add_key(t)?;
            let (written, target) = write_in_flight(t)?;
            let ack = sealed_ack(t, &target)?;
            switch_to(t, true)?;
            t.send_as_it_is(&ack)?;
            t.ends(TSS_AN_001, written, Status::Ok)
        }),
    rule("tss-rotation/answers-under-both-keys", "An initiator accepts answers under both installed keys")
        .checks(&[TSS_AN_001])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            add_key(t)?;
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            for (n, an) in [(1, true), (2, false), (3, true)] {
                let written = t.post(post(PostKind::Write, peer, 64))?;
                target.collect(t, n + 1)?;
                t.shield()?.an = an;
                target.ack(t, n)?;
                t.ends(TSS_AN_001, written, Status::Ok)?;
            }
            Ok(())
        }),
    rule("tss-rotation/open-context", "A context of an initiator continues under the other key")
        .checks(&[TSS_AN_002, PDS_SYN_004])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            add_key(t)?;
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            for (n, an) in [(1, true), (2, false)] {
                switch_to(t, an)?;
                t.shield()?.an = an;
                let written = t.post(post(PostKind::Write, peer, 64))?;
                let next = target.expect_new(t, PDS_SYN_004, n)?;
                t.check(PDS_SYN_004, "dpdcid", Some(target.pdc.local), next.request.dpdcid());
                let seen = latest_an(t)?;
                t.check(TSS_AN_002, "association number", Some(an.into()), seen);
                target.ack(t, n)?;
                t.ends(TSS_AN_002, written, Status::Ok)?;
            }
            Ok(())
        }),
    rule("tss-rotation/ack-under-removed-key", "An ACK under a removed or replaced key ends no operation")
        .checks(&[TSS_AN_003])
        .over(&[&SECURED, &REPLACED])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            add_key(t)?;
            let (written, mut target) = write_in_flight(t)?;
            let ack = sealed_ack(t, &target)?;
            switch_to(t, true)?;
            t.settle()?;
            let third = t.fresh_secret();
            let replaced = t.value(&REPLACED);
            let shield = t.shield()?;
            shield.an = true;
            let old = core::mem::replace(&mut shield.secrets[0], Some(third).filter(|_| replaced));
            t.install()?;
            // A packet that left before still opens.
            t.shield()?.secrets[0] = old;
            t.send_as_it_is(&ack)?;
            expect_ended_by_ack(t, TSS_AN_003, &mut target, written)
        }),
    rule("tss-rotation/expired-ack", "An ACK of an expired epoch ends no operation")
        .checks(&[TSS_EPOCH_001])
        .over(&[&MEMBER, &CURRENT])
        .run(|t| {
            let (written, mut target, lifetime) = write_at_epoch(t)?;
            let current = t.value(&CURRENT);
            for behind in [lifetime + 1, 0x7fff] {
                t.shield()?.epoch = current.wrapping_sub(behind);
                let ack = sealed_ack(t, &target)?;
                t.shield()?.epoch = current;
                t.send_as_it_is(&ack)?;
            }
            expect_ended_by_ack(t, TSS_EPOCH_001, &mut target, written)
        }),
    rule("tss-rotation/oldest-ack", "An ACK of the oldest permitted epoch ends its operation")
        .checks(&[TSS_EPOCH_001])
        .over(&[&MEMBER, &CURRENT])
        .run(|t| {
            let (written, target, lifetime) = write_at_epoch(t)?;
            let current = t.value(&CURRENT);
            t.shield()?.epoch = current.wrapping_sub(lifetime);
            target.ack(t, 0)?;
            t.ends(TSS_EPOCH_001, written, Status::Ok)
        }),
    rule("tss-rotation/newer-ack", "An ACK of a newer epoch does not change the epoch of later requests")
        .checks(&[TSS_EPOCH_002])
        .over(&[&MEMBER])
        .run(|t| {
            t.secure_as(t.value(&MEMBER), |domain| domain.epoch = 7)?;
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let written = t.post(post(PostKind::Write, peer, 64))?;
            target.collect(t, 2)?;
            t.shield()?.epoch = 8;
            target.ack(t, 1)?;
            let accepts = t.completion(written, t.soon())?.is_some();
            require(accepts, "the device drops packets of a newer epoch")?;
            t.shield()?.epoch = 7;
            let next = t.post(post(PostKind::Write, peer, 64))?;
            target.expect_new(t, TSS_EPOCH_002, 2)?;
            check_epoch_sent(t, 7)?;
            target.ack(t, 2)?;
            t.ends(TSS_EPOCH_002, next, Status::Ok)
        }),
];

/// Returns the ACK of the first packet, protected with the key and the epoch of the suite.
fn sealed_ack(t: &mut Test<'_>, target: &Target) -> Result<Wire, Stop> {
    let ack = target.acking(0).build()?;
    t.sealed(&target.pdc.wire(&ack))
}

/// Has the device write in the current epoch. Returns the operation, its target and the lifetime of an epoch.
fn write_at_epoch(t: &mut Test<'_>) -> Result<(Operated, Target, u16), Stop> {
    let (current, lifetime) = (t.value(&CURRENT), epoch_lifetime(t)?);
    t.secure_as(t.value(&MEMBER), |domain| domain.epoch = current)?;
    let (written, target) = write_in_flight(t)?;
    Ok((written, target, lifetime))
}
