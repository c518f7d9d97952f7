//! The growth of a source's window over many round trips (section 3.6.13), measured by the packets in flight.

use super::steps::{Growth, flow_of_windows, late_answers, shrink_by_marks};
use crate::flow::{Answers, Flow};
use crate::prelude::*;
use crate::rules::steps::full_packet_size;

/// The window from which the growth is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StartWindow {
    Small,
    /// Half of the maximum window.
    Half,
}

const START_WINDOW: Axis<StartWindow> =
    axis("window").values(&[("small", StartWindow::Small), ("half", StartWindow::Half)]);

/// True if a receiver penalty has shrunk the window, false if marks have.
const PENALTY: Axis<bool> = axis("after").values(&[("marks", false), ("penalty", true)]);

/// A round trip below the target delay, in base round trips. Neither has a delay of about 0.
const ROUND_TRIP: Axis<f64> = axis("round-trip").values(&[("1.3", 1.3), ("1.5", 1.5)]);

/// Begins a rule with the usual needs of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[NSCC])
}

pub(super) const RULES: &[Rule] = &[
    rule("nscc-over-time/fair-growth", "Late, unmarked ACKs let every window grow equally per round trip")
        .checks(&[CC_QUAD_002])
        .over(&[&PENALTY, &MODE, &CARRIER, &START_WINDOW])
        .measure(|t| {
            let (mut flow, max_window) = flow_of_windows(t, 80)?;
            let (growth, answers) = (Growth::of(t)?, late_answers(t)?);
            let round = answers.delay;
            let in_round = growth.fair + growth.eta * round.as_secs_f64() / growth.base;
            if t.value(&PENALTY) {
                flow.run(t, round * 8, &Answers { penalty: 120, ..answers })?;
            } else {
                shrink_by_marks(t, &mut flow)?;
            }
            let mut tries = 0;
            while t.value(&START_WINDOW) == StartWindow::Half
                && flow.run(t, round, &answers)? < max_window / 2
            {
                tries += 1;
                if tries > 60 {
                    return Err(Stop::Inconclusive("the window has not grown to half of the maximum".into()));
                }
            }
            let rounds = (max_window as f64 * 0.4 / in_round).clamp(1.0, 60.0) as u32;
            let seen = measure_growth(t, &mut flow, round, rounds, &answers)?;
            let expected = in_round * f64::from(rounds);
            check_growth(t, CC_QUAD_002, rounds, (expected, expected), seen);
            Ok(())
        }),
    rule("nscc-over-time/proportional-growth", "Growth is proportional to the distance to the target delay")
        .checks(&[CC_QUAD_001])
        .over(&[&MODE, &CARRIER, &ROUND_TRIP])
        .measure(|t| {
            // The target is 0.75 base round trips with trimming, and 1 without.
            let (mut flow, max_window) = flow_of_windows(t, 80)?;
            let growth = Growth::of(t)?;
            let span = t.round_trips(1)?.mul_f64(t.value(&ROUND_TRIP));
            let answers = Answers { delay: span.saturating_sub(flow.way), ..Answers::default() };
            let delay = span.as_secs_f64() - growth.base;
            let in_round = |target: f64| {
                growth.slope * (target * growth.base - delay) + growth.eta * span.as_secs_f64() / growth.base
            };
            shrink_by_marks(t, &mut flow)?;
            let rounds = (max_window as f64 * 0.4 / in_round(1.0)).clamp(1.0, 60.0) as u32;
            let seen = measure_growth(t, &mut flow, span, rounds, &answers)?;
            let expected = [0.75, 1.0].map(|target| in_round(target) * f64::from(rounds));
            check_growth(t, CC_QUAD_001, rounds, (expected[0], expected[1]), seen);
            Ok(())
        }),
];

/// Runs this number of round trips with these answers. Returns the growth of the most bytes in flight.
fn measure_growth(
    t: &mut Test<'_>,
    flow: &mut Flow,
    round: Duration,
    rounds: u32,
    answers: &Answers,
) -> Result<u64, Stop> {
    let before = flow.run(t, round, answers)?;
    if rounds > 1 {
        flow.run(t, round * (rounds - 1), answers)?;
    }
    let after = flow.run(t, round, answers)?;
    Ok(after.saturating_sub(before))
}

/// Checks a growth against the expected range. The script counts whole packets, at two times.
fn check_growth(t: &mut Test<'_>, requirement: &Requirement, rounds: u32, expected: (f64, f64), seen: u64) {
    let (least, most) = (expected.0 / 2.0, expected.1 * 2.0);
    let what = format!("bytes by which the window grows in {rounds} round trips");
    let packet = full_packet_size(t);
    let range = (least as u64).saturating_sub(packet)..=most as u64 + 2 * packet;
    let bound = Bound::from(range)
        .from_parameter("fi, alpha, eta and base_rtt")
        .tolerating("a factor of 2, and two packets");
    t.between(requirement, &what, bound, seen);
}
