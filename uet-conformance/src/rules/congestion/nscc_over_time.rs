//! The window of a source over many round trips (section 3.6.13), judged by the packets in flight.

use super::nscc::{HOP, congest, filled, flow_of, in_time, late, need_in_flight};
use crate::flow::{Answers, Flow};
use crate::prelude::*;
use crate::rules::steps::{check_in_flight, full_packet_size};

/// The window from which the growth is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Small,
    Half,
}

const FROM: Axis<From> = axis("window").values(&[("small", From::Small), ("half", From::Half)]);

/// A round trip below the target delay, in base round trips. Neither has a delay of about 0.
const DELAY: Axis<f64> = axis("round-trip").values(&[("1.3", 1.3), ("1.5", 1.5)]);

/// The share of the delay that the destination states as its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Service {
    None,
    Most,
}

const SERVICE: Axis<Service> =
    axis("service-time").values(&[("none", Service::None), ("most", Service::Most)]);

/// A NACK that leaves the window alone.
const REFUSAL: Axis<NackCode> =
    axis("nack").values(&[("no-resource", NackCode::NO_RESOURCE), ("no-buffer", NackCode::NO_PKT_BUFFER)]);

/// When there is data for the room that NACKs make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NewData {
    Waiting,
    Late,
}

const NEW_DATA: Axis<NewData> =
    axis("new-data").values(&[("waiting", NewData::Waiting), ("late", NewData::Late)]);

/// The signal of congestion after the window has grown again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Congestion {
    Marks,
    Trims,
}

const SIGNAL: Axis<Congestion> =
    axis("signal").values(&[("marks", Congestion::Marks), ("trims", Congestion::Trims)]);

/// The messages before the one that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Preceding {
    /// One of many windows.
    Long,
    /// Many whose sizes are no multiples of 256 bytes.
    Odd,
}

const BEFORE: Axis<Preceding> =
    axis("before").values(&[("long", Preceding::Long), ("odd-sizes", Preceding::Odd)]);

/// The growth that the parameters of section 3.6.13 give.
pub(super) struct Growth {
    /// By fair increase, in bytes per round trip.
    fair: f64,
    /// By proportional increase, in bytes per round trip and second below the target.
    pub(super) slope: f64,
    /// By eta, in bytes per base round trip.
    pub(super) eta: f64,
    /// The base round trip, in seconds.
    pub(super) base: f64,
}

/// Begins a rule with the usual needs of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[NSCC])
}

pub(super) const RULES: &[Rule] = &[
    rule("nscc-over-time/fair-growth", "Late, unmarked ACKs let every window grow equally per round trip")
        .checks(&[CC_QUAD_002])
        .over(&[&MODE, &CARRIER, &FROM])
        .measure(|t| {
            let (mut flow, largest) = flow_of(t, 80)?;
            let (growth, answers) = (Growth::of(t)?, late(t)?);
            let round = answers.delay;
            let in_round = growth.fair + growth.eta * round.as_secs_f64() / growth.base;
            congest(t, &mut flow)?;
            let mut tries = 0;
            while t.value(&FROM) == From::Half && flow.run(t, round, &answers)? < largest / 2 {
                tries += 1;
                if tries > 60 {
                    return Err(Stop::Inconclusive("the window has not grown to half of the largest".into()));
                }
            }
            let rounds = (largest as f64 * 0.4 / in_round).clamp(1.0, 60.0) as u32;
            let seen = grown(t, &mut flow, round, rounds, &answers)?;
            let expected = in_round * f64::from(rounds);
            check_growth(t, CC_QUAD_002, rounds, (expected, expected), seen);
            Ok(())
        }),
    rule(
        "nscc-over-time/proportional-growth",
        "Growth is proportional to the distance from the target delay",
    )
    .checks(&[CC_QUAD_001])
    .over(&[&MODE, &CARRIER, &DELAY])
    .measure(|t| {
        // The target is 0.75 base round trips with trimming, and 1 without.
        let (mut flow, largest) = flow_of(t, 80)?;
        let growth = Growth::of(t)?;
        let span = t.round_trips(1)?.mul_f64(t.value(&DELAY));
        let answers = Answers { delay: span.saturating_sub(flow.way), ..Answers::default() };
        let delay = span.as_secs_f64() - growth.base;
        let in_round = |target: f64| {
            growth.slope * (target * growth.base - delay) + growth.eta * span.as_secs_f64() / growth.base
        };
        congest(t, &mut flow)?;
        let rounds = (largest as f64 * 0.4 / in_round(1.0)).clamp(1.0, 60.0) as u32;
        let seen = grown(t, &mut flow, span, rounds, &answers)?;
        let expected = [0.75, 1.0].map(|target| in_round(target) * f64::from(rounds));
        check_growth(t, CC_QUAD_001, rounds, (expected[0], expected[1]), seen);
        Ok(())
    }),
    rule("nscc-over-time/marks-without-delay", "Marks without queueing delay do not shrink the window")
        .checks(&[CC_QUAD_003])
        .over(&[&MODE, &CARRIER, &SERVICE])
        .measure(|t| {
            let (mut flow, _) = flow_of(t, 60)?;
            let (answers, round) = in_time(t, &flow)?;
            let before = flow.run(t, round * 8, &answers)?;
            let (answers, span) = match t.value(&SERVICE) {
                Service::None => (Answers { marked: true, ..answers }, round),
                // The rest is the delay of an ACK in time.
                Service::Most => {
                    let service = t.round_trips(3)?;
                    require(
                        service.as_nanos() / 128 < 0xffff,
                        "service_time cannot state three base round trips",
                    )?;
                    let delay = answers.delay + service;
                    (Answers { marked: true, delay, service, ..answers }, round + service)
                }
            };
            let after = flow.run(t, span * 12, &answers)?;
            let least = Bound::from(before * 3 / 4).tolerating("a quarter");
            t.at_least(CC_QUAD_003, "bytes in flight after 12 round trips of marks", least, after);
            Ok(())
        }),
    rule("nscc-over-time/repeated-decrease", "Late, marked ACKs shrink the window to a quarter or less")
        .checks(&[CC_QUAD_004])
        .over(&[&MODE, &CARRIER, &START])
        .measure(|t| {
            // By half in the first cuts, and by more than a tenth in each later one: 24 round trips are many.
            let (mut flow, _) = filled(t)?;
            need_in_flight(&flow, 8)?;
            let before = flow.in_flight();
            let answers = Answers { marked: true, ..late(t)? };
            flow.run(t, answers.delay * 20, &answers)?;
            let after = flow.run(t, answers.delay * 4, &answers)?;
            let most = Bound::from(before / 4 + full_packet_size(t)).tolerating("a quarter, and a packet");
            t.at_most(CC_QUAD_004, "bytes in flight after 24 round trips of marks and delay", most, after);
            Ok(())
        }),
    rule("nscc-over-time/retransmissions-fit", "A retransmission is sent only if the window has room for it")
        .checks(&[CC_WINDOW_001])
        .needs(&[RUD, NSCC])
        .over(&[&CARRIER, &REFUSAL, &NEW_DATA])
        .measure(|t| {
            // New data that waits takes the room that the NACKs make, and the retransmissions wait for ACKs. New
            // data that comes later waits.
            require(t.nack_wait() * 4 <= t.rto(), "NACK_Retx_Time is too close to the timeout")?;
            t.congestion_or_both("nscc")?;
            t.slowed()?;
            let largest = t.bdp()? * 3 / 2;
            let peer = t.peer(0)?;
            let more = post(PostKind::Write, peer, (largest * 2) as usize);
            let late = t.value(&NEW_DATA) == NewData::Late;
            let window = largest / full_packet_size(t);
            let packets = if late { window * 3 / 4 } else { window * 3 };
            let mut flow = Flow::start(t, Mode::Rud, packets as usize)?;
            flow.fill(t)?;
            flow.acknowledge(t, &Answers::default())?;
            flow.fill(t)?;
            need_in_flight(&flow, 6)?;
            let (first, newest) = (flow.acked(), flow.count());
            let half = (newest - first) / 2;
            for n in first..first + half {
                flow.refuse(t, t.value(&REFUSAL), n)?;
            }
            let end = t.now() + t.nack_wait() * 2;
            flow.watch_until(t, end)?;
            if late {
                t.post(more)?;
                let end = t.now() + t.grace();
                flow.watch_until(t, end)?;
            }
            let refused: u64 = (first..first + half).map(|n| flow.bytes_of(n)).sum();
            let again: u64 =
                (first..first + half).filter(|n| flow.target.times(*n) > 1).map(|n| flow.bytes_of(n)).sum();
            if again == 0 && flow.count() == newest {
                return Err(Stop::Inconclusive("nothing has taken the place of the refused packets".into()));
            }
            check_in_flight(t, CC_WINDOW_001, largest, flow.in_flight() - refused + again);
            Ok(())
        }),
    rule("nscc-over-time/trim-size", "Each trim in the fabric shrinks the window by the size of its packet")
        .checks(&[CC_TRIM_001])
        .over(&[&MODE, &CARRIER, &START])
        .measure(|t| {
            // A quarter of the window is trimmed. Marks keep the window from growing again. Preceding it, so much
            // arrives that quick adapt leaves the window alone.
            let (mut flow, _) = flow_of(t, 60)?;
            let (answers, round) = in_time(t, &flow)?;
            let before = flow.run(t, round * 8, &answers)?;
            trim_a_quarter(t, &mut flow, before)
        }),
    rule("nscc-over-time/after-collapse", "Marks and trims shrink a window that recovered from a collapse")
        .checks(&[CC_QUAD_004, CC_TRIM_001])
        .needs(&[RUD, NSCC])
        .over(&[&SIGNAL, &CARRIER, &START])
        .measure(|t| {
            // Nothing arrives in the two base round trips between the trims, so quick adapt may close the window.
            // It may then ignore signals of the packets that were in flight, which are all acknowledged before
            // the window is judged.
            let (mut flow, largest) = flow_of(t, 80)?;
            let (answers, round) = in_time(t, &flow)?;
            flow.run(t, round * 8, &answers)?;
            let settled = t.now() + t.base_rtt()? / 2;
            flow.watch_until(t, settled)?;
            need_in_flight(&flow, 8)?;
            let (first, silence) = (flow.acked(), t.round_trips(3)?);
            flow.refuse(t, NackCode::TRIMMED, first)?;
            let end = t.now() + silence;
            flow.watch_until(t, end)?;
            flow.refuse(t, NackCode::TRIMMED, first + 1)?;
            let (mut before, mut tries) = (0, 0);
            while before < largest / 2 {
                if tries == 60 {
                    return Err(Stop::Inconclusive("the window has not grown to half of the largest".into()));
                }
                tries += 1;
                before = flow.run(t, round * 4, &answers)?;
            }
            if t.value(&SIGNAL) == Congestion::Trims {
                return trim_a_quarter(t, &mut flow, before);
            }
            let after = congest(t, &mut flow)?;
            let most = Bound::from(before * 3 / 4).tolerating("three quarters of before");
            t.at_most(CC_QUAD_004, "bytes in flight after marks and delay", most, after);
            Ok(())
        }),
    rule("nscc-over-time/single-trim", "An occasional trim leaves at least half of the window")
        .checks(&[CC_TRIM_002])
        .needs(&[RUD, NSCC])
        .over(&[&HOP, &CARRIER, &START])
        .measure(|t| {
            // Each trim takes at most one packet off the window. Quick adapt, where it acts, leaves what arrived
            // in more than a round trip. An ordered context would send all packets behind the trimmed one again.
            let (mut flow, _) = flow_of(t, 60)?;
            let (answers, round) = in_time(t, &flow)?;
            let before = flow.run(t, round * 8, &answers)?;
            for _ in 0..3 {
                let settled = t.now() + t.base_rtt()? / 2;
                flow.watch_until(t, settled)?;
                need_in_flight(&flow, 8)?;
                let next = flow.acked();
                flow.refuse(t, t.value(&HOP), next)?;
                let after = flow.run(t, round * 4, &answers)?;
                let least = Bound::from(before / 2).tolerating("a half");
                t.at_least(CC_TRIM_002, "bytes in flight after the trim of a packet", least, after);
            }
            Ok(())
        }),
    rule("nscc-over-time/ack-request", "Packets request an ACK while the window is below ACK_Gen_Trigger")
        .checks(&[CC_ACKREQ_002])
        .over(&[&MODE, &CARRIER, &START])
        .measure(|t| {
            // Late, marked ACKs make the window small. One ACK of all packets in flight then lets several leave
            // at once. The window has no room for a packet beyond those. Beside receiver credit it is that which
            // ends first.
            t.congestion("nscc")?;
            // More packets fit into a small window.
            t.try_configure("payload_mtu", 1024)?;
            let trigger = t.parameter("ack_gen_trigger").min(16_384);
            let (mut flow, _) = flow_of(t, 60)?;
            flow.fill(t)?;
            let answers = Answers { marked: true, ..late(t)? };
            let mut tries = 0;
            while flow.run(t, answers.delay * 2, &answers)? + full_packet_size(t) > trigger {
                tries += 1;
                require(tries != 40, "the window does not get smaller than ACK_Gen_Trigger")?;
            }
            let settled = t.now() + t.base_rtt()? / 2;
            flow.watch_until(t, settled)?;
            let (first, before) = (flow.count(), flow.bytes());
            let all = flow.answer(first, &Answers::default())?;
            t.send(&flow.target.pdc, &all)?;
            flow.fill(t)?;
            let end = flow.count();
            if end == first || flow.bytes() - before + full_packet_size(t) > trigger {
                return Err(Stop::Inconclusive("the window is not small any more".into()));
            }
            let mut silent = 0;
            for n in first..end {
                silent += u32::from(!flow.target.packet(n)?.request.ar());
            }
            t.check(CC_ACKREQ_002, "packets without ar while the window is small", 0, silent);
            Ok(())
        }),
    rule("nscc-over-time/next-message", "The next message has the full window if nothing is in flight")
        .checks(&[CC_WINDOW_001])
        .over(&[&MODE, &CARRIER, &BEFORE])
        .measure(|t| {
            t.congestion("nscc")?;
            let (mut flow, largest) = flow_of(t, 2)?;
            flow.fill(t)?;
            let first = flow.in_flight();
            let until = t.now() + t.soon();
            let (answers, round) = in_time(t, &flow)?;
            while t.now() < until && (flow.acked() < flow.count() || flow.count() == 0) {
                flow.run(t, round, &answers)?;
            }
            let mut target = flow.target;
            let peer = t.peer(0)?;
            if t.value(&BEFORE) == Preceding::Odd {
                for n in 0..60 {
                    let operation = t.post(post(PostKind::Write, peer, 1 + n * 7 % 300))?;
                    let next = target.highest() + 1;
                    target.collect(t, next + 1)?;
                    target.ack(t, next)?;
                    t.completion(operation, t.soon())?;
                }
            }
            let packets = (2 * largest / t.mtu() as u64).clamp(64, 4000) as usize;
            let mut flow = Flow::start_on(t, target, packets)?;
            flow.fill(t)?;
            check_in_flight(t, CC_WINDOW_001, largest, flow.in_flight());
            let least = Bound::from(first.saturating_sub(2 * full_packet_size(t))).tolerating("two packets");
            t.at_least(CC_WINDOW_001, "bytes in flight on the next message", least, flow.in_flight());
            Ok(())
        }),
];

impl Growth {
    /// By the parameters that the device states. The others have the defaults of the specification.
    pub(super) fn of(t: &Test<'_>) -> Result<Self, Stop> {
        let (mtu, scaling_a) = (t.mtu() as f64, t.bdp()? as f64 / 150_000.0);
        let or = |name, default: f64| match t.reported(name) {
            None | Some(0) => default,
            Some(told) => told as f64,
        };
        Ok(Growth {
            fair: or("fi", 5.0 * mtu * scaling_a),
            slope: or("alpha", 4.0 * scaling_a * mtu / 12e-6),
            eta: or("eta", 0.15 * mtu * scaling_a),
            base: t.base_rtt()?.as_secs_f64(),
        })
    }
}

/// How much the most in flight grows in so many rounds with these answers.
fn grown(
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

/// Checks a growth against the expected one. It is seen in whole packets, at two times.
fn check_growth(t: &mut Test<'_>, requirement: &Requirement, rounds: u32, expected: (f64, f64), seen: u64) {
    let (least, most) = (expected.0 / 2.0, expected.1 * 2.0);
    let what = format!("bytes by which the window grows in {rounds} round trips");
    let packet = full_packet_size(t);
    let range = (least as u64).saturating_sub(packet)..=most as u64 + 2 * packet;
    let from = "fi, alpha, eta and base_rtt";
    t.between(
        requirement,
        &what,
        Bound::from(range).from_parameter(from).tolerating("a factor of 2, and two packets"),
        seen,
    );
}

/// Trims a quarter of the window, which had so many bytes in flight.
fn trim_a_quarter(t: &mut Test<'_>, flow: &mut Flow, before: u64) -> Outcome {
    let (answers, round) = in_time(t, flow)?;
    let settled = t.now() + t.base_rtt()? / 2;
    flow.watch_until(t, settled)?;
    need_in_flight(flow, 8)?;
    let (first, quarter) = (flow.acked(), (flow.count() - flow.acked()) / 4);
    let trimmed: u64 = (first..first + quarter).map(|n| flow.bytes_of(n)).sum();
    for n in first..first + quarter {
        flow.refuse(t, NackCode::TRIMMED, n)?;
    }
    let after = flow.run(t, round * 4, &Answers { marked: true, ..answers })?;
    let most =
        Bound::from(before.saturating_sub(trimmed) + 2 * full_packet_size(t)).tolerating("two packets");
    t.at_most(CC_TRIM_001, "bytes in flight after the trims", most, after);
    Ok(())
}
