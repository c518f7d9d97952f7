//! Association numbers, replaced keys and epochs (section 3.7).

use super::tss::{EPOCH, MEMBER, NEEDS, executed, no_effect, open_as, opened, plain, works};
use crate::target::{Target, post};
use crate::{Axis, Outcome, Pdc, Point, Region, Rule, SECURED, Stop, Test};
use uet_control::{PostKind, Status};
use uet_wire::catalogue::*;

/// The association number of the first key.
const FIRST: Axis<bool> = Axis::new("first", &[Point::new("an-0", false), Point::new("an-1", true)]);

/// The current epoch of the device's key.
const CURRENT: Axis<u16> = Axis::new(
    "current",
    &[Point::new("wrap", 3), Point::new("late", 300), Point::new("half", 0x8003), Point::new("full", 0xffff)],
);

/// The key under which a packet of an empty slot comes.
const UNDER: Axis<Under> =
    Axis::new("key", &[Point::new("of-other-slot", Under::OtherSlot), Point::new("zeros", Under::Zeros)]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Under {
    OtherSlot,
    Zeros,
}

pub(super) const CASES: &[Rule] = &[
    Rule {
        id: "tss-rotate/both-keys",
        title: "A target opens packets under both installed keys",
        requirements: &[TSS_AN_001],
        needs: NEEDS,
        axes: &[&SECURED],
        run: both_keys,
    },
    Rule {
        id: "tss-rotate/switch",
        title: "After a switch of the association number, answers on an open context use the new key",
        requirements: &[TSS_AN_002],
        needs: NEEDS,
        axes: &[&SECURED, &FIRST],
        run: switch,
    },
    Rule {
        id: "tss-rotate/switch-initiator",
        title: "After a switch of the association number, operations leave under the new key",
        requirements: &[TSS_AN_002],
        needs: NEEDS,
        axes: &[&SECURED, &FIRST],
        run: switch_initiator,
    },
    Rule {
        id: "tss-rotate/retransmission",
        title: "A retransmission uses the current key, though the packet left under another",
        requirements: &[TSS_AN_002],
        needs: NEEDS,
        axes: &[&SECURED],
        run: retransmission,
    },
    Rule {
        id: "tss-rotate/in-flight",
        title: "A packet under the old key arrives after the switch and is executed",
        requirements: &[TSS_AN_001],
        needs: NEEDS,
        axes: &[&SECURED],
        run: in_flight,
    },
    Rule {
        id: "tss-rotate/removed",
        title: "A packet under a key that was removed has no effect",
        requirements: &[TSS_AN_003],
        needs: NEEDS,
        axes: &[&SECURED],
        run: removed,
    },
    Rule {
        id: "tss-rotate/replaced",
        title: "A packet under the earlier key of a slot has no effect",
        requirements: &[TSS_AN_003],
        needs: NEEDS,
        axes: &[&SECURED],
        run: replaced,
    },
    Rule {
        id: "tss-rotate/empty-slot",
        title: "A packet of an association number without a key has no effect",
        requirements: &[TSS_AN_003],
        needs: NEEDS,
        axes: &[&SECURED, &UNDER],
        run: empty_slot,
    },
    Rule {
        id: "tss-rotate/back",
        title: "A switch back to a key continues its counter",
        requirements: &[TSS_CTR_001],
        needs: NEEDS,
        axes: &[&SECURED],
        run: back,
    },
    Rule {
        id: "tss-rotate/same-again",
        title: "Keys that are installed again keep their counters",
        requirements: &[TSS_CTR_001],
        needs: NEEDS,
        axes: &[&SECURED],
        run: same_again,
    },
    Rule {
        id: "tss-rotate/epoch-sent",
        title: "Requests and answers carry the current epoch of their key",
        requirements: &[TSS_EPOCH_002],
        needs: NEEDS,
        axes: &[&SECURED, &EPOCH],
        run: epoch_sent,
    },
    Rule {
        id: "tss-rotate/epoch-steps",
        title: "A context continues in the next epoch of its key",
        requirements: &[TSS_EPOCH_002],
        needs: NEEDS,
        axes: &[&SECURED],
        run: epoch_steps,
    },
    Rule {
        id: "tss-rotate/old-epoch",
        title: "A packet of an epoch that is too old has no effect",
        requirements: &[TSS_EPOCH_001],
        needs: NEEDS,
        axes: &[&MEMBER, &CURRENT],
        run: old_epoch,
    },
    Rule {
        id: "tss-rotate/recent-epoch",
        title: "A packet of the oldest permitted epoch is executed",
        requirements: &[TSS_EPOCH_001],
        needs: NEEDS,
        axes: &[&MEMBER, &CURRENT],
        run: recent_epoch,
    },
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

fn both_keys(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = with_two_keys(t, TSS_AN_001)?;
    for (n, an) in [(1, true), (2, false), (3, true)] {
        t.shield()?.an = an;
        works(t, TSS_AN_001, &pdc, &region, n)?;
    }
    Ok(())
}

fn switch(t: &mut Test<'_>) -> Outcome {
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
}

fn switch_initiator(t: &mut Test<'_>) -> Outcome {
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
}

fn retransmission(t: &mut Test<'_>) -> Outcome {
    t.secure(t.value(&SECURED))?;
    add_key(t)?;
    let peer = t.peer(0)?;
    let written = t.post(post(PostKind::Write, peer, 64))?;
    let mut target = Target::accept(t)?;
    switch_to(t, true)?;
    let again = target.expect_again(t, TSS_AN_002, 0, t.later())?;
    let number = again.seen.number;
    let seen = t.shield()?.seen.iter().find(|seen| seen.number == number).map(|seen| u8::from(seen.an));
    t.check(TSS_AN_002, "association number", Some(1), seen);
    target.ack(t, 0)?;
    t.ends(TSS_AN_002, written, Status::Ok)
}

fn in_flight(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = with_two_keys(t, TSS_AN_001)?;
    let sealed = t.sealed(&plain(&pdc, &region, 1)?)?;
    switch_to(t, true)?;
    t.send_as_it_is(&sealed)?;
    executed(t, TSS_AN_001, &pdc, &region, 1)
}

/// Switches to the second key, and returns a packet under the first.
fn rotated(t: &mut Test<'_>, pdc: &Pdc, region: &Region) -> Result<crate::Wire, Stop> {
    let old = t.sealed(&plain(pdc, region, 1)?)?;
    switch_to(t, true)?;
    t.shield()?.an = true;
    Ok(old)
}

fn removed(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = with_two_keys(t, TSS_AN_003)?;
    let old = rotated(t, &pdc, &region)?;
    t.shield()?.secrets[0] = None;
    t.install()?;
    no_effect(t, [TSS_AN_003, TSS_AN_003], (&pdc, &region), 1, &[old])
}

fn replaced(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = with_two_keys(t, TSS_AN_003)?;
    let old = rotated(t, &pdc, &region)?;
    let third = t.fresh_secret();
    t.shield()?.secrets[0] = Some(third);
    t.install()?;
    no_effect(t, [TSS_AN_003, TSS_AN_003], (&pdc, &region), 1, &[old])?;
    t.shield()?.an = false;
    works(t, TSS_AN_003, &pdc, &region, 2)
}

fn empty_slot(t: &mut Test<'_>) -> Outcome {
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

fn back(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = with_two_keys(t, TSS_CTR_001)?;
    for (n, an) in [(1, false), (2, true), (3, false), (4, true)] {
        switch_to(t, an)?;
        works(t, TSS_CTR_001, &pdc, &region, n)?;
    }
    distinct(t, false)?;
    distinct(t, true)
}

fn same_again(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = open_as(t, TSS_CTR_001, t.value(&SECURED), |_| {})?;
    for n in 1..4 {
        t.install()?;
        works(t, TSS_CTR_001, &pdc, &region, n)?;
    }
    distinct(t, false)
}

fn epochs_sent(t: &mut Test<'_>, expected: u16) -> Outcome {
    let seen = t.shield()?.seen.last().map(|seen| seen.epoch);
    t.check(TSS_EPOCH_002, "epoch:", Some(expected), seen);
    Ok(())
}

fn epoch_sent(t: &mut Test<'_>) -> Outcome {
    let epoch = t.value(&EPOCH);
    let (pdc, region) = open_as(t, TSS_EPOCH_002, t.value(&SECURED), |domain| domain.epoch = epoch)?;
    works(t, TSS_EPOCH_002, &pdc, &region, 1)?;
    epochs_sent(t, epoch)?;
    let peer = t.peer(0)?;
    t.post(post(PostKind::Write, peer, 64))?;
    let target = Target::accept(t)?;
    epochs_sent(t, epoch)?;
    target.ack(t, 0)
}

fn epoch_steps(t: &mut Test<'_>) -> Outcome {
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
}

fn lifetime(t: &Test<'_>) -> Result<u16, Stop> {
    match t.parameter("rx_max_epoch_lifetime") {
        lifetime if lifetime < 1 << 14 => Ok(lifetime as u16),
        _ => Err(Stop::Skipped("the device accepts all epochs".into())),
    }
}

fn old_epoch(t: &mut Test<'_>) -> Outcome {
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
}

fn recent_epoch(t: &mut Test<'_>) -> Outcome {
    let (current, lifetime) = (t.value(&CURRENT), lifetime(t)?);
    let (pdc, region) = open_as(t, TSS_EPOCH_001, t.value(&MEMBER), |domain| domain.epoch = current)?;
    t.shield()?.epoch = current.wrapping_sub(lifetime);
    works(t, TSS_EPOCH_001, &pdc, &region, 1)
}
