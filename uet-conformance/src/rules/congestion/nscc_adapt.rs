//! Quick adapt of a source's window (section 3.6.13), where it must not act. It may be switched off.
//!
//! Once per period of a base round trip and the target delay, the source looks back at the bytes that have
//! arrived. If a packet was trimmed and less than an eighth of the maximum window has arrived, quick adapt
//! sets the window to these bytes.

use super::steps::{flow_of_windows, need_in_flight, run_until_full, timely_answers, watch_for};
use crate::flow::{Answers, Flow};
use crate::prelude::*;

/// A period after which quick adapt leaves the window as it is.
#[derive(Clone, Copy, Debug)]
enum Period {
    /// The first period of the context, with a trim: there is no earlier one to look back at.
    First,
    /// A period in which this share of the maximum window arrives, which is above an eighth, and then a trim.
    Share(f64),
    /// A period in which nearly nothing arrives, and then an ACK with a long delay, without a trim. If
    /// switches trim, the delay alone is no sign of a loss.
    WithoutTrim,
}

const PERIOD: Axis<Period> = axis("arrived").values(&[
    ("first-period", Period::First),
    ("quarter", Period::Share(0.25)),
    ("half", Period::Share(0.5)),
    ("little-without-trim", Period::WithoutTrim),
]);

/// The longest period in base round trips: the target delay is at most one.
const LONGEST: u32 = 2;

pub(super) const RULES: &[Rule] = &[crate::rule(
    "nscc/quick-adapt-limits",
    "Quick adapt acts only after a trim, and only if little of a window arrives",
)
.checks(&[CC_TRIM_002])
.needs(&[RUD, NSCC])
.over(&[&PERIOD, &CARRIER, &START])
.measure(|t| {
    let (mut flow, max_window) = flow_of_windows(t, 40)?;
    let (answers, round) = timely_answers(t, &flow)?;
    let longest = t.base_rtt()? * LONGEST;
    let before = match t.value(&PERIOD) {
        Period::First => {
            flow.fill(t)?;
            let before = flow.in_flight();
            // An ACK without a sample ends no period and begins none.
            acknowledge_bytes(t, &mut flow, 1)?;
            trim_oldest(t, &flow)?;
            before
        }
        Period::Share(share) => {
            let before = run_until_full(t, &mut flow, round * 8, &answers, 12)?;
            t.round_trips(7)?;
            let bytes = (max_window as f64 * share) as u64;
            require(before >= bytes + max_window / 4, "the window is far below its maximum")?;
            begin_period(t, &mut flow, longest, &answers)?;
            acknowledge_bytes(t, &mut flow, bytes)?;
            watch_for(t, &mut flow, longest)?;
            trim_oldest(t, &flow)?;
            before
        }
        Period::WithoutTrim => {
            let before = run_until_full(t, &mut flow, round * 8, &answers, 12)?;
            let trims = t.device().parameters.get("trimming").is_some_and(|it| it == true);
            require(trims, "the device does not say that switches trim")?;
            t.round_trips(8)?;
            begin_period(t, &mut flow, longest, &answers)?;
            watch_for(t, &mut flow, longest * 2)?;
            flow.acknowledge(t, &answers)?;
            before
        }
    };
    // The other packets have waited for long. Their ACKs give no sample: only quick adapt can have shrunk the
    // window by more than the trimmed packet.
    while flow.acked() < flow.count() {
        flow.acknowledge(t, &without_sample())?;
    }
    flow.fill(t)?;
    let least = Bound::from(before * 3 / 4).tolerating("a quarter");
    t.at_least(CC_TRIM_002, "bytes in flight after that", least, flow.in_flight());
    Ok(())
})];

/// Returns answers that give no sample of the round-trip time. Quick adapt counts their bytes, but does not
/// look back.
fn without_sample() -> Answers {
    Answers { unmeasured: true, ..Answers::default() }
}

/// Waits until the current period is over. Then an ACK with a sample ends it and begins the next one.
fn begin_period(t: &mut Test<'_>, flow: &mut Flow, longest: Duration, answers: &Answers) -> Outcome {
    watch_for(t, flow, longest)?;
    flow.acknowledge(t, answers)
}

/// Acknowledges packets of this number of bytes or a little more, without a sample.
fn acknowledge_bytes(t: &mut Test<'_>, flow: &mut Flow, bytes: u64) -> Outcome {
    let wanted = flow.acknowledged() + bytes;
    while flow.acknowledged() < wanted {
        need_in_flight(flow, 2)?;
        flow.acknowledge(t, &without_sample())?;
    }
    Ok(())
}

/// Trims the oldest packet in flight.
fn trim_oldest(t: &mut Test<'_>, flow: &Flow) -> Outcome {
    flow.refuse(t, NackCode::TRIMMED, flow.acked())
}
