//! The growth of a source's window over many round trips (section 3.6.13), measured by the packets in flight.

use super::steps::{Growth, flow_of_windows, late_answers, shrink_by_marks, timely_answers};
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

/// The bytes that the network holds: as the device reports it, or more. With the most, the sum of increases
/// exceeds 32 bits.
const HOLDS: Axis<Option<u64>> =
    axis("bdp").values(&[("reported", None), ("600-kb", Some(600_000)), ("1-mb", Some(1_000_000))]);

/// The number of packets that an ACK covers.
const ACKS: Axis<u32> = axis("packets-per-ack").values(&[("1", 1), ("4", 4)]);

/// True if switches trim. The target delay is then 0.75 base round trips, and 1 otherwise.
const TRIMMING: Axis<bool> = axis("trimming").values(&[("on", true), ("off", false)]);

/// True for a delay above the target.
const ABOVE: Axis<bool> = axis("delay").values(&[("above", true), ("below", false)]);

/// The distance to the target delay, which is four times the resolution that a source must have.
const NEAR: Duration = Duration::from_nanos(512);

/// The bytes that a fast network holds.
const LARGE: Axis<u64> = axis("bdp").values(&[("600-kb", 600_000)]);

/// The bytes that the network holds.
const SMALL: Axis<u64> = axis("bdp").values(&[("75-kb", 75_000), ("19-kb", 18_750)]);

/// Begins a rule with the usual needs of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[NSCC])
}

pub(super) const RULES: &[Rule] = &[
    rule("nscc-over-time/fair-growth", "Late, unmarked ACKs let every window grow equally per round trip")
        .checks(&[CC_QUAD_002])
        .over(&[&PENALTY, &MODE, &CARRIER, &START_WINDOW, &HOLDS, &ACKS])
        .measure(|t| {
            if let Some(bytes) = t.value(&HOLDS) {
                hold_more(t, bytes)?;
            }
            let (mut flow, max_window) = flow_of_windows(t, 80)?;
            let (growth, answers) = (Growth::of(t)?, late_answers(t)?);
            // The bytes count, not the ACKs.
            let answers = Answers { coalesced: t.value(&ACKS), ..answers };
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
            let (before, after) = measure_growth(t, &mut flow, round, rounds, &answers)?;
            let expected = in_round * f64::from(rounds);
            check_growth(t, CC_QUAD_002, rounds, (expected, expected), after.saturating_sub(before));
            Ok(())
        }),
    rule("nscc-over-time/proportional-growth", "Growth is proportional to the distance to the target delay")
        .checks(&[CC_QUAD_001])
        .over(&[&MODE, &CARRIER, &ROUND_TRIP, &HOLDS])
        .measure(|t| {
            if let Some(bytes) = t.value(&HOLDS) {
                hold_more(t, bytes)?;
            }
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
            let (before, after) = measure_growth(t, &mut flow, span, rounds, &answers)?;
            let trims = t.device().parameters.get("trimming").is_some_and(|it| it == true);
            let targets = if trims { [0.75, 0.75] } else { [0.75, 1.0] };
            let expected = targets.map(|target| in_round(target) * f64::from(rounds));
            check_growth(t, CC_QUAD_001, rounds, (expected[0], expected[1]), after.saturating_sub(before));
            Ok(())
        }),
    rule("nscc-over-time/near-target", "Growth is fair just above the target delay, and small just below it")
        .checks(&[CC_QUAD_001, CC_QUAD_002])
        .over(&[&TRIMMING, &ABOVE, &LARGE, &MODE, &CARRIER])
        .measure(|t| {
            const ROUNDS: u32 = 8;
            require(t.facts().virtual_time, "a real link has no exact delay")?;
            t.configure("trimming", t.value(&TRIMMING))?;
            hold_more(t, t.value(&LARGE))?;
            let (mut flow, _) = flow_of_windows(t, 80)?;
            let (growth, base, above) = (Growth::of(t)?, t.round_trips(1)?, t.value(&ABOVE));
            let target = base.mul_f64(if t.value(&TRIMMING) { 0.75 } else { 1.0 });
            let delay = if above { target + NEAR } else { target - NEAR };
            let span = base + delay;
            // Each ACK states a service_time of one unit.
            let unit = Duration::from_nanos(128);
            let answers = Answers { delay: (span + unit).saturating_sub(flow.way), ..Answers::default() };
            shrink_by_marks(t, &mut flow)?;
            let (before, after) = measure_growth(t, &mut flow, span, ROUNDS, &answers)?;
            let eta = growth.eta * span.as_secs_f64() / growth.base;
            let below = growth.slope * NEAR.as_secs_f64();
            let (requirement, in_round) =
                if above { (CC_QUAD_002, growth.fair + eta) } else { (CC_QUAD_001, below + eta) };
            let expected = in_round * f64::from(ROUNDS);
            check_growth(t, requirement, ROUNDS, (expected, expected), after.saturating_sub(before));
            Ok(())
        }),
    rule(
        "nscc-over-time/periodic-growth",
        "Each base round trip adds eta to the window, although packets are marked",
    )
    .checks(&[CC_QUAD_005])
    .over(&[&MODE, &CARRIER, &LARGE])
    .measure(|t| {
        // Timely marks add nothing else. The source counts the round trips by time, although it also adds
        // its growth whenever enough bytes have arrived. It does so several times in each round trip, because
        // the path spreads the ACKs.
        const ROUNDS: u32 = 16;
        hold_more(t, t.value(&LARGE))?;
        let (mut flow, max_window) = flow_of_windows(t, 80)?;
        let growth = Growth::of(t)?;
        let (answers, round) = timely_answers(t, &flow)?;
        let pace = round.mul_f64(full_packet_size(t) as f64 / max_window as f64);
        let answers = Answers { pace, ..answers };
        shrink_by_marks(t, &mut flow)?;
        let mut tries = 0;
        while flow.run(t, round, &answers)? < max_window / 3 {
            tries += 1;
            require(tries < 60, "the window does not grow to a third of the maximum")?;
        }
        let marked = Answers { marked: true, ..answers };
        flow.run(t, round * 2, &marked)?;
        let (before, after) = measure_growth(t, &mut flow, round, ROUNDS, &marked)?;
        let passed = (round * ROUNDS).as_secs_f64() / growth.base;
        let room = max_window.saturating_sub(before) as f64;
        let expected = (growth.eta * passed).min(room);
        check_growth(t, CC_QUAD_005, ROUNDS, (expected, expected), after.saturating_sub(before));
        Ok(())
    }),
    rule("nscc-over-time/small-penalty", "Under a small receiver penalty, only eta lets the window grow")
        .checks(&[CC_PENALTY_001])
        .over(&[&MODE, &CARRIER, &LARGE])
        .measure(|t| {
            // The penalty takes an eighth of the acknowledged bytes. With eta, a thirtieth of the window is
            // left. Growth by any other formula would balance the penalty at a sixth or more.
            // With RCCC too, the credit limits the bytes in flight, and not the window.
            t.congestion("nscc")?;
            hold_more(t, t.value(&LARGE))?;
            let (mut flow, _) = flow_of_windows(t, 80)?;
            let (answers, round) = timely_answers(t, &flow)?;
            let before = flow.run(t, round * 2, &answers)?;
            let after = flow.run(t, round * 56, &Answers { penalty: 16, ..answers })?;
            if flow.in_flight() == 0 {
                return Err(Stop::Inconclusive("the write has ended".into()));
            }
            let most = Bound::from(before / 8).tolerating("four times what eta leaves");
            t.at_most(CC_PENALTY_001, "bytes in flight under the small penalty", most, after);
            Ok(())
        }),
    rule("nscc-over-time/fast-increase", "Without delay, a window grows at most by fi_scale")
        .checks(&[CC_QUAD_001])
        .over(&[&SMALL, &MODE, &CARRIER])
        .measure(|t| {
            // The sources leave open which delay is about 0, so the delay is 0. A long round trip gives the
            // proportional increase much more weight than fi_scale, and small packets show the growth.
            const ROUNDS: u32 = 4;
            require(t.facts().virtual_time, "a real link has no exact delay")?;
            for (name, value) in [("rto_init_time", 50_000_000), ("base_rtt", 48_000), ("payload_mtu", 1024)]
            {
                t.try_configure(name, value)?;
            }
            hold(t, t.value(&SMALL))?;
            let (mut flow, max_window) = flow_of_windows(t, 80)?;
            let (growth, base, packet) = (Growth::of(t)?, t.round_trips(1)?, full_packet_size(t));
            let answers = Answers { delay: base.saturating_sub(flow.way), ..Answers::default() };
            shrink_by_marks(t, &mut flow)?;
            // Fast increase begins when more than a window has arrived without delay. The packets in flight
            // now are late.
            let (begun, mut tries) = (flow.bytes(), 0);
            while flow.run(t, base, &answers)? + 2 * packet > flow.acknowledged().saturating_sub(begun) {
                tries += 1;
                require(tries < 20, "the window grows faster than its bytes are acknowledged")?;
            }
            let (before, after) = measure_growth(t, &mut flow, base, ROUNDS, &answers)?;
            let share = 1.0 + 1.5 * growth.share;
            let most = (before + packet) as f64 * share.powi(ROUNDS as i32);
            let bound = Bound::from((most + growth.eta * f64::from(ROUNDS)) as u64 + packet)
                .from_parameter("fi_scale and eta")
                .tolerating("half of fi_scale, and two packets");
            require(before * 2 < max_window, "the window is too large for fast growth")?;
            let what = format!("bytes in flight after {ROUNDS} round trips without delay");
            t.at_most(CC_QUAD_001, &what, bound, after);
            Ok(())
        }),
];

/// Lets the network hold this number of bytes, in packets of 4,096 bytes.
fn hold_more(t: &mut Test<'_>, bytes: u64) -> Outcome {
    t.try_configure("payload_mtu", 4096)?;
    require(t.mtu() == 4096, "the packets are too small or too large for so large a window")?;
    hold(t, bytes)
}

/// Sets the rates of the device so that the network holds this number of bytes.
fn hold(t: &mut Test<'_>, bytes: u64) -> Outcome {
    let rate = (bytes as f64 * 8.0 / t.base_rtt()?.as_secs_f64()) as u64;
    for name in ["sender_rate", "receiver_rate"] {
        t.try_configure(name, rate)?;
    }
    Ok(())
}

/// Runs this number of round trips with these answers. Returns the most bytes in flight in the first and in
/// the last.
fn measure_growth(
    t: &mut Test<'_>,
    flow: &mut Flow,
    round: Duration,
    rounds: u32,
    answers: &Answers,
) -> Result<(u64, u64), Stop> {
    let before = flow.run(t, round, answers)?;
    if rounds > 1 {
        flow.run(t, round * (rounds - 1), answers)?;
    }
    let after = flow.run(t, round, answers)?;
    Ok((before, after))
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
