//! The window of congestion control at a source (section 3.6.13).

use crate::axis::{CARRIER, MODE, START};
use crate::flow::{Answers, Flow, nominal};
use crate::target::{Target, post};
use crate::{AckBuilder, Axis, Bound, Need, Outcome, Point, Rule, RxPacket, Stop, Test};
use core::time::Duration;
use uet_control::{Mode, PostKind, Status};
use uet_wire::catalogue::*;
use uet_wire::registry::NackCode;

#[rustfmt::skip] // a line each
pub(super) const CASES: &[Rule] = &[
    Rule { id: "nscc/first-window", title: "A source sends at most the largest window before the first ACK", requirements: &[CC_WINDOW_001], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER, &START], run: |t| t.measured(first_window) },
    Rule { id: "nscc/largest-window", title: "The bytes in flight never exceed the largest window", requirements: &[CC_WINDOW_002], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER], run: |t| t.measured(largest_window) },
    Rule { id: "nscc/full-window-asks", title: "The packet that fills the window asks for an ACK", requirements: &[CC_ACKREQ_001], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER, &START], run: |t| t.measured(full_window_asks) },
    Rule { id: "nscc/refused-and-arrived", title: "A packet that is refused and then acknowledged makes room once", requirements: &[CC_WINDOW_002], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER, &START], run: |t| t.measured(refused_and_arrived) },
    Rule { id: "nscc/opens", title: "The growth of rcvd_bytes makes room for as many bytes", requirements: &[CC_RCVD_004, CC_WINDOW_001], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER, &START], run: |t| t.measured(opens) },
    Rule { id: "nscc/opens-by-rounds", title: "A source sends whole windows in round after round, without a timeout", requirements: &[CC_WINDOW_001], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER, &START], run: |t| t.measured(opens_by_rounds) },
    Rule { id: "nscc/stale-count", title: "An ACK that newer ones have overtaken opens no window", requirements: &[CC_RCVD_003], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER, &START], run: |t| t.measured(stale_count) },
    Rule { id: "nscc/marked-and-late", title: "Marked ACKs above the target delay shrink the window", requirements: &[CC_QUAD_004], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER, &START], run: |t| t.measured(marked_and_late) },
    Rule { id: "nscc/marked-in-time", title: "Marked ACKs below the target delay leave the window as it is", requirements: &[CC_QUAD_003], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER], run: |t| t.measured(marked_in_time) },
    Rule { id: "nscc/grows-in-time", title: "Unmarked ACKs below the target delay let the window grow", requirements: &[CC_QUAD_001], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER], run: |t| t.measured(grows_in_time) },
    Rule { id: "nscc/grows-by-delay", title: "The window grows more with a smaller delay below the target", requirements: &[CC_QUAD_001], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER], run: |t| t.measured(grows_by_delay) },
    Rule { id: "nscc/grows-late", title: "Unmarked ACKs above the target delay let the window grow", requirements: &[CC_QUAD_002], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER, &START], run: |t| t.measured(grows_late) },
    Rule { id: "nscc/grows-over-the-wrap", title: "A window grows also when rcvd_bytes has wrapped to 0", requirements: &[CC_RCVD_004], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER], run: |t| t.measured(grows_over_the_wrap) },
    Rule { id: "nscc/never-below-a-packet", title: "A message gets through, however congested the network is", requirements: &[CC_WINDOW_003], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER, &TROUBLE], run: never_below_a_packet },
    Rule { id: "nscc/trimmed", title: "Trimmed packets shrink the window, so that not all leave again at once", requirements: &[CC_TRIM_001, CC_TRIM_004], needs: &[Need::Capability("nscc")], axes: &[&HOP, &MODE, &CARRIER, &START], run: |t| t.measured(trimmed) },
    Rule { id: "nscc/lost", title: "Lost packets shrink the window, so that at most half leave again at once", requirements: &[CC_LOSS_001], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER, &START], run: |t| t.measured(lost) },
    Rule { id: "nscc/penalty", title: "A receiver penalty shrinks the window", requirements: &[CC_PENALTY_001], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER, &START], run: |t| t.measured(penalty) },
    Rule { id: "nscc/penalty-over", title: "The window returns to its old size when the receiver penalty ends", requirements: &[CC_PENALTY_002], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER, &SAMPLES], run: |t| t.measured(penalty_over) },
    Rule { id: "nscc/cut-once", title: "The window loses at most half in a base round trip, for any queue and any number of late, marked ACKs", requirements: &[CC_QUAD_004], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER, &ALGORITHMS, &QUEUE], run: |t| t.measured(cut_once) },
    Rule { id: "nscc/marks-stop-growth", title: "Marked ACKs with a delay below the target let the window grow less than unmarked ones", requirements: &[CC_QUAD_001, CC_QUAD_003], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER], run: |t| t.measured(marks_stop_growth) },
    Rule { id: "nscc/trimmed-at-last-hop", title: "Beside receiver credit a trim at the last hop leaves the window alone", requirements: &[CC_TRIM_003], needs: &[Need::Capability("rccc"), Need::Capability("nscc")], axes: &[&MODE, &CARRIER, &START], run: |t| t.measured(trimmed_at_last_hop) },
    Rule { id: "nscc/trimmed-in-fabric", title: "A trim in the fabric shrinks the window, also beside receiver credit", requirements: &[CC_TRIM_001], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER, &ALGORITHMS], run: |t| t.measured(trimmed_in_fabric) },
    Rule { id: "nscc/penalty-by-bytes", title: "ACKs of a whole window that carry a penalty leave at most the share of the window that the penalty names", requirements: &[CC_PENALTY_001], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER, &PENALTY], run: |t| t.measured(penalty_by_bytes) },
    Rule { id: "nscc/dead-context", title: "The bytes of a context that has ended leave the window", requirements: &[CC_WINDOW_004], needs: &[Need::Capability("nscc")], axes: &[&MODE, &CARRIER, &DEATH], run: |t| t.measured(dead_context) },
    Rule { id: "nscc/uncertain-sample", title: "The ACK of a packet that was sent twice, without retx, is no sample of the round trip", requirements: &[CC_RTT_001], needs: &[Need::Capability("rud"), Need::Capability("nscc")], axes: &[&CARRIER, &START], run: |t| t.measured(uncertain_sample) },
];

/// The algorithms that the device runs.
const ALGORITHMS: Axis<&str> = Axis::new(
    "algorithms",
    &[Point::new("nscc", "nscc"), Point::needing("both", "both", &[Need::Capability("rccc")])],
);

/// Where packets are trimmed.
pub(super) const HOP: Axis<NackCode> = Axis::new(
    "trimmed",
    &[Point::new("fabric", NackCode::TRIMMED), Point::new("last-hop", NackCode::TRIMMED_LASTHOP)],
);

/// A round trip with a queue, in base round trips. The longer one asks for a cut beyond half. Neither delay is above 4 base round
/// trips, from which quick adapt may act.
const QUEUE: Axis<f64> = Axis::new("queue", &[Point::new("short", 3.0), Point::new("long", 4.75)]);

/// How the network treats the packets of a message.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    /// It marks and delays each, and the destination asks for one packet in a round trip.
    Marks,
    /// It trims the first transmission of each.
    Trims,
    /// It loses the first transmission of each.
    Losses,
}

const TROUBLE: Axis<Trouble> = Axis::new(
    "trouble",
    &[
        Point::new("marks", Trouble::Marks),
        Point::new("trims", Trouble::Trims),
        Point::new("losses", Trouble::Losses),
    ],
);

/// rcv_cwnd_pend.
const PENALTY: Axis<u8> =
    Axis::new("penalty", &[Point::new("half", 64), Point::new("most", 96), Point::new("all", 127)]);

/// How a context ends with a full window in flight.
#[derive(Clone, Copy, Debug)]
enum Death {
    /// By this NACK, after which nothing is tried again.
    Nack(NackCode),
    /// By its last timeout.
    Timeout,
}

const DEATH: Axis<Death> = Axis::new(
    "death",
    &[
        Point::new("closing-in-error", Death::Nack(NackCode::CLOSING_IN_ERR)),
        Point::new("response-lost", Death::Nack(NackCode::GTD_RESP_UNAVAIL)),
        Point::new("timeout", Death::Timeout),
    ],
);

/// A write that is longer than the window, on a device that runs NSCC; MaxWnd too.
fn flow(t: &mut Test<'_>) -> Result<(Flow, u64), Stop> {
    flow_of(t, 24)
}

/// A write of so many of the largest windows, and that window.
pub(super) fn flow_of(t: &mut Test<'_>, windows: u64) -> Result<(Flow, u64), Stop> {
    t.congestion_or_both("nscc")?;
    t.slowed()?;
    let way = t.keeps_base_rtt()?;
    let largest = t.bdp()? * 3 / 2;
    let packets = (windows * largest / t.mtu() as u64).clamp(64, 4000) as usize;
    let mut flow = Flow::start(t, Mode::Rud, packets)?;
    flow.way = way;
    Ok((flow, largest))
}

/// Returns a flow that fills its window. The first answer opens the way for credit, if credit runs beside.
pub(super) fn filled(t: &mut Test<'_>) -> Result<(Flow, u64), Stop> {
    let (mut flow, largest) = flow(t)?;
    flow.fill(t)?;
    flow.acknowledge(t, &Answers::default())?;
    flow.fill(t)?;
    Ok((flow, largest))
}

/// Returns the answers of a network without a queue, and the round-trip time with them. That time is longer than the
/// configured one, so that the device learns no smaller one. It is below the target, which lies at least 0.75 base round
/// trips above.
pub(super) fn in_time(t: &Test<'_>, flow: &Flow) -> Result<(Answers, Duration), Stop> {
    let round = t.round_trips(1)?.mul_f64(1.25);
    Ok((Answers { delay: round.saturating_sub(flow.way), ..Answers::default() }, round))
}

/// Answers as of a network with a long queue.
pub(super) fn late(t: &Test<'_>) -> Result<Answers, Stop> {
    Ok(Answers { delay: t.round_trips(4)?, ..Answers::default() })
}

/// Marks and delay for so long that the window is small; the most in flight then.
pub(super) fn congest(t: &mut Test<'_>, flow: &mut Flow) -> Result<u64, Stop> {
    let answers = Answers { marked: true, ..late(t)? };
    flow.run(t, answers.delay * 16, &answers)
}

/// Checks that no more is in flight than the largest window.
pub(super) fn most_in_flight(t: &mut Test<'_>, requirement: &Requirement, largest: u64, seen: u64) {
    let bound = Bound::from(largest).from_parameter("1.5 times the rate times base_rtt");
    t.at_most(requirement, "bytes in flight", bound, seen);
}

fn first_window(t: &mut Test<'_>) -> Outcome {
    let (mut flow, largest) = flow(t)?;
    flow.fill(t)?;
    most_in_flight(t, CC_WINDOW_001, largest, flow.in_flight());
    Ok(())
}

fn largest_window(t: &mut Test<'_>) -> Outcome {
    let (mut flow, largest) = flow(t)?;
    let (answers, round) = in_time(t, &flow)?;
    let most = flow.run(t, round * 12, &answers)?;
    most_in_flight(t, CC_WINDOW_002, largest, most);
    Ok(())
}

fn full_window_asks(t: &mut Test<'_>) -> Outcome {
    // Beside receiver credit it is that which ends first.
    t.congestion("nscc")?;
    let (mut flow, _) = flow(t)?;
    flow.fill(t)?;
    let last = flow.target.packet(flow.count() - 1)?.request.ar();
    t.check(CC_ACKREQ_001, "ar of the last packet that the window lets leave", true, last);
    Ok(())
}

/// A NACK takes a packet out of flight; the ACK of an earlier copy, which comes while it waits to leave again, does not do so once
/// more.
fn refused_and_arrived(t: &mut Test<'_>) -> Outcome {
    let (mut flow, largest) = filled(t)?;
    let (first, half) = (flow.acked(), (flow.count() - flow.acked()) / 2);
    for n in first..first + half {
        flow.refuse(t, NackCode::NO_RESOURCE, n)?;
    }
    for _ in 0..half {
        flow.acknowledge(t, &Answers::default())?;
    }
    let before = flow.count();
    flow.fill(t)?;
    most_in_flight(t, CC_WINDOW_002, largest, flow.in_flight());
    if flow.count() == before {
        return Err(Stop::Inconclusive("nothing more has left".into()));
    }
    Ok(())
}

fn opens(t: &mut Test<'_>) -> Outcome {
    let (mut flow, largest) = flow(t)?;
    flow.fill(t)?;
    let (before, answers) = (flow.count(), Answers::default());
    for _ in 0..4 {
        flow.acknowledge(t, &answers)?;
    }
    let next = flow.target.pdc.psn(before);
    let within = t.rto() / 2;
    t.expect(CC_RCVD_004, &format!("PSN {next}, for which there is room"), within, |seen| {
        seen.request().filter(|request| request.psn() == next)
    })?;
    flow.fill(t)?;
    most_in_flight(t, CC_WINDOW_001, largest, flow.in_flight());
    Ok(())
}

fn opens_by_rounds(t: &mut Test<'_>) -> Outcome {
    let (mut flow, largest) = flow(t)?;
    let (answers, round) = in_time(t, &flow)?;
    let until = t.now() + round * 40;
    while flow.bytes() < largest * 6 && t.now() < until {
        flow.run(t, round, &answers)?;
    }
    t.at_least(CC_WINDOW_001, "bytes that got through in 40 round trips", largest * 6, flow.bytes());
    Ok(())
}

fn stale_count(t: &mut Test<'_>) -> Outcome {
    let (mut flow, _) = flow(t)?;
    flow.fill(t)?;
    let answers = Answers::default();
    let old = flow.answer(1, &answers)?;
    for _ in 0..4 {
        flow.acknowledge(t, &answers)?;
    }
    flow.fill(t)?;
    let highest = flow.count();
    t.send(&flow.target.pdc, &old)?;
    let during = t.grace();
    flow.target.expect_none(t, CC_RCVD_003, "no new packet for an old ACK", during, |n| n >= highest)?;
    let (answers, round) = in_time(t, &flow)?;
    let until = t.now() + t.soon();
    while flow.count() <= highest && t.now() < until {
        flow.run(t, round * 2, &answers)?;
    }
    t.at_least(CC_RCVD_003, "packets that came, with new ACKs", highest + 1, flow.count());
    Ok(())
}

fn marked_and_late(t: &mut Test<'_>) -> Outcome {
    let (mut flow, _) = flow(t)?;
    flow.fill(t)?;
    let before = flow.in_flight();
    let after = congest(t, &mut flow)?;
    t.at_most(
        CC_QUAD_004,
        "bytes in flight after marks and delay",
        Bound::from(before * 3 / 4).tolerating("three quarters of before"),
        after,
    );
    Ok(())
}

fn marked_in_time(t: &mut Test<'_>) -> Outcome {
    let (mut flow, _) = flow(t)?;
    let (answers, round) = in_time(t, &flow)?;
    let before = flow.run(t, round * 8, &answers)?;
    let answers = Answers { marked: true, ..answers };
    let after = flow.run(t, round * 12, &answers)?;
    t.at_least(
        CC_QUAD_003,
        "bytes in flight after marks without delay",
        Bound::from(before * 3 / 4).tolerating("a quarter"),
        after,
    );
    Ok(())
}

fn grows_in_time(t: &mut Test<'_>) -> Outcome {
    let (mut flow, _) = flow(t)?;
    let before = congest(t, &mut flow)?;
    let (answers, round) = in_time(t, &flow)?;
    let after = flow.run(t, round * 40, &answers)?;
    t.at_least(CC_QUAD_001, "bytes in flight, with less delay", before + 1, after);
    Ok(())
}

/// The target is 0.75 base round trips at least: both delays are below it, and neither is about 0.
fn grows_by_delay(t: &mut Test<'_>) -> Outcome {
    let (mut flow, _) = flow_of(t, 60)?;
    let base = t.round_trips(1)?;
    let mut grown = Vec::new();
    for round_trip in [base.mul_f64(1.25), base.mul_f64(1.65)] {
        let before = congest(t, &mut flow)?;
        let answers = Answers { delay: round_trip.saturating_sub(flow.way), ..Answers::default() };
        let after = flow.run(t, round_trip * 32, &answers)?;
        grown.push(after.saturating_sub(before));
    }
    // The flight is seen in whole packets, and may be one off at each of four times.
    let least = Bound::from(grown[1] + 3 * nominal(t.mtu())).tolerating("three packets");
    t.at_least(
        CC_QUAD_001,
        "bytes of growth with the smaller delay, against the larger one,",
        least,
        grown[0],
    );
    Ok(())
}

fn grows_late(t: &mut Test<'_>) -> Outcome {
    grows(t, CC_QUAD_002)
}

fn grows_over_the_wrap(t: &mut Test<'_>) -> Outcome {
    t.configure("start_rcvd_bytes", crate::test::BEFORE_WRAP)?;
    grows(t, CC_RCVD_004)
}

fn grows(t: &mut Test<'_>, requirement: &Requirement) -> Outcome {
    let (mut flow, _) = flow(t)?;
    let before = congest(t, &mut flow)?;
    let answers = late(t)?;
    let after = flow.run(t, answers.delay * 12, &answers)?;
    t.at_least(requirement, "bytes in flight, without marks", before + 1, after);
    Ok(())
}

fn never_below_a_packet(t: &mut Test<'_>) -> Outcome {
    t.congestion_or_both("nscc")?;
    let mut flow = Flow::start(t, Mode::Rud, 40)?;
    match t.value(&TROUBLE) {
        Trouble::Marks => {
            let answers = Answers { marked: true, penalty: 127, ..late(t)? };
            let until = t.now() + answers.delay * 200 + t.soon();
            while flow.acked() < 40 && t.now() < until {
                flow.run(t, answers.delay, &answers)?;
            }
        }
        Trouble::Trims => second_only(t, &mut flow, true)?,
        Trouble::Losses => second_only(t, &mut flow, false)?,
    }
    t.check(CC_WINDOW_003, "packets that got through", 40, flow.acked());
    t.ends(CC_WINDOW_003, flow.operation, Status::Ok)
}

/// Acknowledges packets in order, each after its second transmission: the first is trimmed or lost.
fn second_only(t: &mut Test<'_>, flow: &mut Flow, trimmed: bool) -> Outcome {
    let end = t.now() + t.until_given_up() * 4;
    let mut refused = 0;
    while flow.acked() < 40 && t.now() < end {
        while trimmed && flow.target.times(refused) > 0 {
            flow.refuse(t, NackCode::TRIMMED, refused)?;
            refused += 1;
        }
        if flow.target.times(flow.acked()) > 1 {
            flow.acknowledge(t, &Answers::default())?;
            continue;
        }
        let next = (t.now() + t.later()).min(end);
        if flow.next(t, next)?.is_none() {
            break;
        }
    }
    Ok(())
}

fn trimmed(t: &mut Test<'_>) -> Outcome {
    let code = t.value(&HOP);
    let requirement = match code {
        // Beside receiver credit it leaves the window alone.
        NackCode::TRIMMED_LASTHOP => {
            t.congestion("nscc")?;
            CC_TRIM_004
        }
        _ => CC_TRIM_001,
    };
    let (mut flow, _) = filled(t)?;
    let (count, first) = (flow.count(), flow.acked());
    let half = (count - first) / 2;
    if half < 4 {
        return Err(Stop::Inconclusive("the window is too small to be seen to shrink".into()));
    }
    for n in first..first + half {
        flow.refuse(t, code, n)?;
    }
    let end = t.now() + t.rto() / 4;
    while flow.next(t, end)?.is_some() {}
    let again = (first..first + half).filter(|n| flow.target.times(*n) > 1).count() as u32;
    let more = flow.count() - count;
    t.at_most(requirement, "packets that leave after the trims", half - 1, again + more);
    Ok(())
}

fn lost(t: &mut Test<'_>) -> Outcome {
    let (mut flow, _) = flow(t)?;
    flow.fill(t)?;
    let count = flow.count();
    if count < 8 {
        return Err(Stop::Inconclusive("the window is too small to be seen to shrink".into()));
    }
    let within = t.later();
    t.need("a retransmission", within, |seen| seen.request().filter(|request| request.retx()))?;
    let end = t.now() + t.rto() / 2;
    while flow.next(t, end)?.is_some() {}
    let again = (0..count).filter(|n| flow.target.times(*n) > 1).count() as u32 + 1;
    let most = Bound::from(count / 2).tolerating("half of the window");
    t.at_most(CC_LOSS_001, "packets that leave again at once", most, again);
    Ok(())
}

fn penalty(t: &mut Test<'_>) -> Outcome {
    let (mut flow, _) = flow(t)?;
    let (answers, round) = in_time(t, &flow)?;
    let before = flow.run(t, round * 8, &answers)?;
    let answers = Answers { penalty: 100, ..answers };
    let after = flow.run(t, round * 10, &answers)?;
    t.at_most(
        CC_PENALTY_001,
        "bytes in flight under the penalty",
        Bound::from(before * 3 / 4).tolerating("three quarters of before"),
        after,
    );
    Ok(())
}

/// True if the ACKs that end the penalty give samples of the round-trip time.
const SAMPLES: Axis<bool> = Axis::new("samples", &[Point::new("valid", true), Point::new("none", false)]);

fn penalty_over(t: &mut Test<'_>) -> Outcome {
    let (mut flow, _) = flow(t)?;
    let (answers, round) = in_time(t, &flow)?;
    let before = flow.run(t, round * 8, &answers)?;
    flow.run(t, round * 10, &Answers { penalty: 120, ..answers })?;
    let restored = Answers { restore: true, unmeasured: !t.value(&SAMPLES), ..answers };
    let after = flow.run(t, round * 4, &restored)?;
    t.at_least(
        CC_PENALTY_002,
        "bytes in flight after the penalty",
        Bound::from(before * 3 / 4).tolerating("a quarter"),
        after,
    );
    Ok(())
}

/// A long write under these algorithms on a network whose round trip is known, and the largest window.
fn flow_with(t: &mut Test<'_>, algorithms: &str, windows: u64) -> Result<(Flow, u64), Stop> {
    t.congestion(algorithms)?;
    t.slowed()?;
    let way = t.keeps_base_rtt()?;
    let largest = t.bdp()? * 3 / 2;
    let packets = (windows * largest / t.mtu() as u64).clamp(64, 4000) as usize;
    let mut flow = Flow::start(t, Mode::Rud, packets)?;
    flow.way = way;
    Ok((flow, largest))
}

/// The nominal size of a full packet.
pub(super) fn full(t: &Test<'_>) -> u64 {
    nominal(t.mtu() + 16 + 44)
}

/// Goes on only where so many packets are in flight.
pub(super) fn need_in_flight(flow: &Flow, least: u32) -> Outcome {
    match flow.count() - flow.acked() {
        count if count < least => Err(Stop::Inconclusive(format!(
            "only {count} packets are in flight: too few to judge a window by"
        ))),
        _ => Ok(()),
    }
}

/// A queue without marks fills: the window stays large, and the average delay passes the target. Then three quarters of what is
/// in flight are acknowledged at one time, marked and late. One cut leaves half the window, and so more than the last quarter.
fn cut_once(t: &mut Test<'_>) -> Outcome {
    let (mut flow, _) = flow_with(t, t.value(&ALGORITHMS), 24)?;
    let base = t.base_rtt()?;
    t.round_trips(7)?;
    let queue = Answers { delay: base.mul_f64(t.value(&QUEUE)), ..Answers::default() };
    flow.run(t, queue.delay * 8, &queue)?;
    let settled = t.now() + base / 2;
    flow.watch_until(t, settled)?;
    need_in_flight(&flow, 12)?;
    let late = flow.newest() + queue.delay;
    flow.watch_until(t, late)?;
    let (before, count, begun) = (flow.in_flight(), flow.count() - flow.acked(), t.now());
    let marked = Answers { marked: true, ..queue };
    for _ in 0..count * 3 / 4 {
        flow.acknowledge(t, &marked)?;
    }
    t.was_late(t.now() - begun);
    let end = t.now() + t.rto() / 4;
    flow.watch_until(t, end)?;
    let least = Bound::from((before / 2).saturating_sub(2 * full(t))).tolerating("half, less two packets");
    t.at_least(
        CC_QUAD_004,
        "bytes in flight after marked ACKs within one base round trip",
        least,
        flow.in_flight(),
    );
    Ok(())
}

fn marks_stop_growth(t: &mut Test<'_>) -> Outcome {
    let (mut flow, largest) = flow_of(t, 60)?;
    let mut grown = [0, 0];
    for (grown, marked) in grown.iter_mut().zip([true, false]) {
        let before = congest(t, &mut flow)?;
        let (answers, round) = in_time(t, &flow)?;
        let after = flow.run(t, round * 24, &Answers { marked, ..answers })?;
        *grown = after.saturating_sub(before);
    }
    let [marked, unmarked] = grown;
    t.at_least(CC_QUAD_001, "bytes by which unmarked ACKs let the window grow", full(t), unmarked);
    // The window grows by eta in each period, marked or not: by a small part of a packet.
    let most =
        Bound::from(unmarked / 2 + 2 * full(t)).tolerating("half of that without marks, and two packets");
    if unmarked < (6 * full(t)).min(largest / 4) {
        return Err(Stop::Inconclusive(format!(
            "the window grew by {unmarked} bytes: too little to compare"
        )));
    }
    t.at_most(CC_QUAD_003, "bytes by which marked ACKs let the window grow", most, marked);
    Ok(())
}

/// Refuses half of what is in flight by this code; how many packets leave then before their timeout, and that half.
fn trim_half(t: &mut Test<'_>, flow: &mut Flow, code: NackCode) -> Result<(u32, u32), Stop> {
    flow.fill(t)?;
    flow.acknowledge(t, &Answers::default())?;
    flow.fill(t)?;
    need_in_flight(flow, 8)?;
    let (count, first) = (flow.count(), flow.acked());
    let half = (count - first) / 2;
    let before = flow.target.got.len();
    for n in first..first + half {
        flow.refuse(t, code, n)?;
    }
    let end = t.now() + t.rto() / 4;
    flow.watch_until(t, end)?;
    Ok(((flow.target.got.len() - before) as u32, half))
}

/// The window of NSCC is full: each packet that leaves takes the place of a trimmed one.
fn trimmed_at_last_hop(t: &mut Test<'_>) -> Outcome {
    let (mut flow, _) = flow_with(t, "both", 24)?;
    let (left, half) = trim_half(t, &mut flow, NackCode::TRIMMED_LASTHOP)?;
    let least = Bound::from(half.saturating_sub(1)).tolerating("one packet");
    t.at_least(CC_TRIM_003, "packets that leave after trims at the last hop", least, left);
    Ok(())
}

fn trimmed_in_fabric(t: &mut Test<'_>) -> Outcome {
    let (mut flow, _) = flow_with(t, t.value(&ALGORITHMS), 24)?;
    let (left, half) = trim_half(t, &mut flow, NackCode::TRIMMED)?;
    t.at_most(CC_TRIM_001, "packets that leave after trims in the fabric", half - 1, left);
    Ok(())
}

/// The penalty counts acknowledged bytes, and no times: so it shows on any network.
fn penalty_by_bytes(t: &mut Test<'_>) -> Outcome {
    t.congestion_or_both("nscc")?;
    let penalty = t.value(&PENALTY);
    let largest = t.bdp()? * 3 / 2;
    let packets = (8 * largest / t.mtu() as u64).clamp(64, 2000) as usize;
    let mut flow = Flow::start(t, Mode::Rud, packets)?;
    flow.fill(t)?;
    flow.acknowledge(t, &Answers::default())?;
    flow.fill(t)?;
    need_in_flight(&flow, 12)?;
    let (before, last) = (flow.in_flight(), flow.count());
    let answers = Answers { penalty, ..Answers::default() };
    while flow.acked() < last {
        flow.acknowledge(t, &answers)?;
    }
    flow.fill(t)?;
    let left = before - ((before * u64::from(penalty)) >> 7);
    let most =
        Bound::from(left + before / 8 + 2 * full(t)).tolerating("an eighth of the window and two packets");
    t.at_most(
        CC_PENALTY_001,
        "bytes in flight after ACKs of a whole window with the penalty",
        most,
        flow.in_flight(),
    );
    Ok(())
}

fn dead_context(t: &mut Test<'_>) -> Outcome {
    t.congestion_or_both("nscc")?;
    let death = t.value(&DEATH);
    if let (Death::Timeout, 8..) = (death, t.parameter("max_rto_retx_cnt")) {
        return Err(Stop::Skipped("the device retransmits without end, or for too long".into()));
    }
    let window = t.bdp()? * 3 / 2 / t.mtu() as u64;
    let packets = (window as usize * 2).clamp(16, 400);
    let mut first = 0;
    for round in 0..3 {
        t.forget();
        let peer = t.peer(0)?;
        let operation = t.post(post(PostKind::Write, peer, packets * t.mtu()))?;
        let opens = |seen: &RxPacket| seen.request().filter(|request| request.syn());
        let within = t.later();
        let (opened, _) = match round {
            0 => t.need("a request that opens a context", within, opens)?,
            _ => t.expect(CC_WINDOW_004, "a request that opens the next context", within, opens)?,
        };
        let mut flow = Flow::of(t, opened, operation)?;
        flow.fill(t)?;
        if round == 0 {
            first = flow.count();
        }
        // Losses shrink the window; a NACK of an ended context says nothing of the network.
        let least = match death {
            Death::Nack(_) => first / 2,
            Death::Timeout => 1,
        };
        t.at_least(
            CC_WINDOW_004,
            "packets that leave on a new context before the first ACK",
            least,
            flow.count(),
        );
        match death {
            Death::Nack(code) => flow.refuse(t, code, 0)?,
            // A window that shrinks with each loss makes the retransmissions wait.
            Death::Timeout => drop(t.completion(flow.operation, t.until_given_up() * flow.count().max(8))?),
        }
        let ended = t.completion(flow.operation, t.soon())?;
        if ended.is_none() {
            return Err(Stop::Inconclusive("the operation of the ended context has not ended".into()));
        }
        t.settle()?;
    }
    t.forget();
    let peer = t.peer(0)?;
    let written = t.post(post(PostKind::Write, peer, 64))?;
    let (opens, within) = (|seen: &RxPacket| seen.request().filter(|request| request.syn()), t.later());
    let (first, _) = t.expect(CC_WINDOW_004, "a request that opens the next context", within, opens)?;
    Target::opened_by(t, first)?.ack(t, 0)?;
    t.ends(CC_WINDOW_004, written, Status::Ok)
}

fn uncertain_sample(t: &mut Test<'_>) -> Outcome {
    let (mut flow, _) = flow_of(t, 60)?;
    let base = t.base_rtt()?;
    if flow.way * 2 > base || t.nack_wait() * 4 > t.rto() {
        return Err(Stop::Skipped("a round trip is not well below the device's base_rtt".into()));
    }
    let (answers, round) = in_time(t, &flow)?;
    let before = flow.run(t, round * 12, &answers)?;
    let n = flow.acked();
    // A NACK may be a sample too: it comes no earlier than the ACKs.
    let due = flow.newest() + answers.delay;
    flow.watch_until(t, due)?;
    flow.refuse(t, NackCode::NO_RESOURCE, n)?;
    let end = t.now() + t.nack_wait();
    flow.watch_until(t, end)?;
    // New packets have taken its place in the window: some behind it make room.
    for behind in n + 1..n + 5 {
        let missing = flow.bytes_of(n);
        let received = flow.target.counted(flow.target.bytes_before(behind + 1) - missing);
        let ack = AckBuilder { nscc: Some((received, 1)), ..flow.target.naming(behind, n) };
        flow.target.answer(t, ack)?;
    }
    let end = t.now() + t.nack_wait() + t.grace();
    while flow.target.times(n) < 2 && flow.next(t, end)?.is_some() {}
    if flow.target.times(n) < 2 {
        return Err(Stop::Inconclusive("the refused packet did not come again".into()));
    }
    // Without retx it may be the ACK of the first transmission: it says nothing of the second.
    flow.acknowledge(t, &Answers::default())?;
    let after = flow.run(t, round * 40, &answers)?;
    let least = Bound::from(before * 3 / 4).tolerating("a quarter");
    t.at_least(CC_RTT_001, "bytes in flight after the uncertain sample", least, after);
    Ok(())
}
