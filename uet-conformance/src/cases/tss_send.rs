//! A sender of secured packets: header, counter, key (section 3.7).

use crate::target::{Target, post};
use crate::{Need, Outcome, Rule, SECURED, Test};
use uet_control::{PostKind, Status};
use uet_wire::catalogue::*;

const NEEDS: &[Need] = &[Need::Capability("rud"), Need::Capability("write"), Need::Capability("tss")];

pub(super) const CASES: &[Rule] = &[
    Rule {
        id: "tss-send/initiates",
        title: "An operation of the device leaves under the key of its domain",
        requirements: &[TSS_ICV_001, TSS_AN_002, TSS_EPOCH_002],
        needs: NEEDS,
        axes: &[&SECURED],
        run: initiates,
    },
    Rule {
        id: "tss-send/retransmission",
        title: "A retransmission takes a new counter and opens to the packet that was lost",
        requirements: &[TSS_CTR_001],
        needs: NEEDS,
        axes: &[&SECURED],
        run: retransmission,
    },
];

fn initiates(t: &mut Test<'_>) -> Outcome {
    t.secure(t.value(&SECURED))?;
    let peer = t.peer(0)?;
    let written = t.post(post(PostKind::Write, peer, 64))?;
    let target = Target::accept(t)?;
    let shield = t.shield()?;
    let (an, epoch, clear) = (shield.an, shield.epoch, shield.clear);
    let Some(first) = shield.seen.first().copied() else {
        return t
            .expect(&TSS_ICV_001, "a packet under the key of the domain", t.soon(), |_| None)
            .map(|(_, ())| ());
    };
    t.check(&TSS_ICV_001, "packets in the clear:", 0, clear);
    t.check(&TSS_AN_002, "association number:", u8::from(an), u8::from(first.an));
    t.check(&TSS_EPOCH_002, "epoch:", epoch, first.epoch);
    target.ack(t, 0)?;
    t.ends(&TSS_ICV_001, written, Status::Ok)
}

fn retransmission(t: &mut Test<'_>) -> Outcome {
    t.secure(t.value(&SECURED))?;
    let peer = t.peer(0)?;
    let written = t.post(post(PostKind::Write, peer, 64))?;
    let mut target = Target::accept(t)?;
    let again = target.expect_again(t, &TSS_CTR_001, 0, t.later())?;
    let (first, again) = (target.packet(0)?.seen.number, again.seen.number);
    let shield = t.shield()?;
    let counter = |number| shield.seen.iter().find(|seen| seen.number == number).map(|seen| seen.counter);
    let (first, again) = (counter(first).unwrap_or(0), counter(again).unwrap_or(0));
    t.at_least(&TSS_CTR_001, "counter of the retransmission", first + 1, again);
    target.ack(t, 0)?;
    t.ends(&TSS_CTR_001, written, Status::Ok)
}
