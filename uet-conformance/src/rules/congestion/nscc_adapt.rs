//! Quick adapt of a source's window (section 3.6.13), where it must not act. It may be switched off.

use super::steps::{flow_of_windows, need_in_flight, run_until_full, timely_answers, watch_for};
use crate::flow::{Answers, Flow};
use crate::prelude::*;

/// The bytes that arrive in the period that a trim ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Arrived {
    /// None: it is the first period of the context.
    First,
    /// This share of the maximum window, which is above an eighth.
    Share(f64),
    /// Nearly none. A long delay ends the period, and no trim. With trimming, only trims count as losses.
    Little,
}

const ARRIVED: Axis<Arrived> = axis("arrived").values(&[
    ("first-period", Arrived::First),
    ("quarter", Arrived::Share(0.25)),
    ("half", Arrived::Share(0.5)),
    ("little-without-trim", Arrived::Little),
]);

pub(super) const RULES: &[Rule] = &[crate::rule(
    "nscc/quick-adapt-limits",
    "Quick adapt acts only after a trim, and only if little of a window arrives",
)
.checks(&[CC_TRIM_002])
.needs(&[RUD, NSCC])
.over(&[&ARRIVED, &CARRIER, &START])
.measure(|t| {
    // Quick adapt looks back once per round trip and target delay, which last two base round trips at
    // most. It acts if less than an eighth of the maximum window has arrived after a trim.
    let (mut flow, max_window) = flow_of_windows(t, 40)?;
    let (answers, round) = timely_answers(t, &flow)?;
    let (arrived, pause) = (t.value(&ARRIVED), t.base_rtt()? * 2);
    let before = match arrived {
        Arrived::First => {
            flow.fill(t)?;
            flow.in_flight()
        }
        _ => run_until_full(t, &mut flow, round * 8, &answers, 12)?,
    };
    match arrived {
        // An ACK without a sample begins no period.
        Arrived::First => acknowledge_bytes(t, &mut flow, 1)?,
        Arrived::Share(share) => {
            t.round_trips(7)?;
            let bytes = (max_window as f64 * share) as u64;
            require(before >= bytes + max_window / 4, "the window is far below its maximum")?;
            // The ACK after the pause ends the period before.
            watch_for(t, &mut flow, pause)?;
            flow.acknowledge(t, &answers)?;
            acknowledge_bytes(t, &mut flow, bytes)?;
            watch_for(t, &mut flow, pause)?;
        }
        Arrived::Little => {
            let trims = t.device().parameters.get("trimming").is_some_and(|it| it == true);
            require(trims, "the device does not say that switches trim")?;
            t.round_trips(8)?;
            watch_for(t, &mut flow, pause)?;
            flow.acknowledge(t, &answers)?;
            watch_for(t, &mut flow, pause * 2)?;
            flow.acknowledge(t, &answers)?;
        }
    }
    if arrived != Arrived::Little {
        let trimmed = flow.acked();
        flow.refuse(t, NackCode::TRIMMED, trimmed)?;
    }
    // The other packets have waited for long, so their ACKs give no sample.
    while flow.acked() < flow.count() {
        flow.acknowledge(t, &Answers { unmeasured: true, ..answers })?;
    }
    flow.fill(t)?;
    let least = Bound::from(before * 3 / 4).tolerating("a quarter");
    t.at_least(CC_TRIM_002, "bytes in flight after that", least, flow.in_flight());
    Ok(())
})];

/// Acknowledges packets of this number of bytes or a little more, by ACKs that give no sample.
fn acknowledge_bytes(t: &mut Test<'_>, flow: &mut Flow, bytes: u64) -> Outcome {
    let wanted = flow.acknowledged() + bytes;
    while flow.acknowledged() < wanted {
        need_in_flight(flow, 2)?;
        flow.acknowledge(t, &Answers { unmeasured: true, ..Answers::default() })?;
    }
    Ok(())
}
