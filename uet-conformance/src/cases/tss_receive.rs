//! A receiver of secured packets: what it accepts, and what must change nothing (section 3.7).

use crate::{Axis, Need, Outcome, Pdc, Point, Region, Rule, SECURED, Stop, Test, Wire};
use uet_wire::catalogue::*;

const NEEDS: &[Need] = &[Need::Capability("rud"), Need::Capability("write"), Need::Capability("tss")];

/// A change that the ICV shows: a bit of the secured packet, counted from its first byte, or from its end.
const ALTERED: Axis<Altered> = Axis::new(
    "bit",
    &[
        Point::new("reserved", Altered::Header(6)),
        Point::new("epoch", Altered::Counter(15)),
        Point::new("counter-first", Altered::Counter(16)),
        Point::new("counter-last", Altered::Counter(63)),
        Point::new("first-encrypted", Altered::Body(0)),
        Point::new("payload", Altered::End(17)),
        Point::new("icv-first", Altered::End(16)),
        Point::new("icv-last", Altered::End(1)),
    ],
);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Altered {
    /// A bit of the security header.
    Header(usize),
    /// A bit of epoch and counter.
    Counter(usize),
    /// A bit of the encrypted part.
    Body(usize),
    /// The lowest bit of a byte, counted from the end.
    End(usize),
}

pub(super) const CASES: &[Rule] = &[
    Rule {
        id: "tss-receive/serves",
        title: "A secured request is executed, and its ACK is protected under the same domain",
        requirements: &[TSS_KEY_001],
        needs: NEEDS,
        axes: &[&SECURED],
        run: serves,
    },
    Rule {
        id: "tss-receive/altered",
        title: "A packet with one changed bit changes nothing and gets no answer",
        requirements: &[TSS_ICV_002, TSS_ICV_003],
        needs: NEEDS,
        axes: &[&SECURED, &ALTERED],
        run: altered,
    },
    Rule {
        id: "tss-receive/clear",
        title: "A secured context accepts nothing in the clear",
        requirements: &[TSS_CLEAR_002],
        needs: NEEDS,
        axes: &[&SECURED],
        run: clear,
    },
    Rule {
        id: "tss-receive/replayed-opening",
        title: "A copy of an opening packet executes nothing after the context has closed",
        requirements: &[TSS_START_001],
        needs: NEEDS,
        axes: &[&SECURED],
        run: replayed_opening,
    },
];

/// Secures the device and opens a context.
pub(super) fn opened(t: &mut Test<'_>) -> Result<(Pdc, Region), Stop> {
    t.secure(t.value(&SECURED))?;
    t.open()
}

fn serves(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = opened(t)?;
    let before = t.shield()?.seen.len();
    t.request(&pdc, pdc.request(1).write(&region, 0, &[7; 32])?)?;
    t.expect_ack(&TSS_KEY_001, &pdc, pdc.psn(1))?;
    t.expect_memory(&TSS_KEY_001, &region, 0, &[7; 32])?;
    let answers = t.shield()?.seen.len() - before;
    t.check(&TSS_KEY_001, "protected answers:", 1, answers);
    Ok(())
}

fn altered(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = opened(t)?;
    let request = pdc.request(1).write(&region, 0, &[7; 32])?.build()?;
    let whole = t.sealed(&pdc.wire(&request))?;
    let header = if t.shield()?.domain.ssi { 16 } else { 12 };
    let bit = match t.value(&ALTERED) {
        Altered::Header(bit) => bit,
        Altered::Counter(bit) => (header - 8) * 8 + bit,
        Altered::Body(bit) => header * 8 + bit,
        Altered::End(from) => (whole.bytes.len() - from) * 8 + 7,
    };
    let mut changed = whole.clone();
    flip(&mut changed, bit);
    let before = t.shield()?.seen.len();
    t.send_as_it_is(&changed)?;
    t.expect_none(&TSS_ICV_003, "an answer to a packet that is not authentic", t.soon(), |seen| {
        seen.acknowledges(&pdc, pdc.psn(1)).then_some(()).or_else(|| seen.nack().map(|_| ()))
    })?;
    t.expect_memory(&TSS_ICV_002, &region, 0, &[0; 32])?;
    let answers = t.shield()?.seen.len() - before;
    t.check(&TSS_ICV_003, "answers to a packet that is not authentic:", 0, answers);
    // The unchanged packet is new to the device.
    t.send_as_it_is(&whole)?;
    t.expect_ack(&TSS_ICV_002, &pdc, pdc.psn(1))?;
    t.expect_memory(&TSS_ICV_002, &region, 0, &[7; 32])
}

fn flip(wire: &mut Wire, bit: usize) {
    if let Some(byte) = wire.bytes.get_mut(bit / 8) {
        *byte ^= 0x80 >> (bit % 8);
    }
}

fn clear(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = opened(t)?;
    let request = pdc.request(1).write(&region, 0, &[7; 32])?.build()?;
    t.send_as_it_is(&pdc.wire(&request))?;
    let soon = t.soon();
    t.pause(soon)?;
    t.expect_memory(&TSS_CLEAR_002, &region, 0, &[0; 32])?;
    t.send(&pdc, &request)?;
    t.expect_ack(&TSS_CLEAR_002, &pdc, pdc.psn(1))?;
    t.expect_memory(&TSS_CLEAR_002, &region, 0, &[7; 32])
}

fn replayed_opening(t: &mut Test<'_>) -> Outcome {
    t.secure(t.value(&SECURED))?;
    let region = t.region(64)?;
    let mut pdc = t.initiate();
    let opening = pdc.request(0).write(&region, 0, &[7; 32])?.build()?;
    let sealed = t.sealed(&pdc.wire(&opening))?;
    t.send_as_it_is(&sealed)?;
    let (_, ack) = t.need("an open context", t.soon(), |seen| {
        seen.acknowledges(&pdc, pdc.psn(0)).then(|| seen.ack()).flatten()
    })?;
    pdc.remote = Some(ack.spdcid());
    t.expect_memory(&TSS_START_001, &region, 0, &[7; 32])?;
    let clear = pdc.request(1).write(&region, 0, &[0; 32])?;
    t.request(&pdc, clear)?;
    t.need_ack(&pdc, pdc.psn(1))?;
    t.send(&pdc, &pdc.numbered(uet_wire::registry::CtlType::CLOSE_COMMAND, 2)?)?;
    t.need_ack(&pdc, pdc.psn(2))?;
    // Late packets are remembered for a time; the copy comes after it.
    let kept = t.parameter("syn_retx_safety_time", 0);
    let kept = t.scaled(core::time::Duration::from_nanos(kept));
    t.pause(kept * 2)?;
    t.send_as_it_is(&sealed)?;
    let soon = t.soon();
    t.pause(soon)?;
    t.expect_memory(&TSS_START_001, &region, 0, &[0; 32])
}
