//! The window of NSCC at a source (section 3.6.13): its size, and the bytes in flight that it limits.

use super::steps::{
    ALGORITHMS, flow_on_new_context, flow_with_full_window, grant_by_ack, late_answers, long_flow,
    opening_request, timely_answers,
};
use crate::flow::{Answers, Flow};
use crate::prelude::*;
use crate::rules::steps::{check_in_flight, full_packet_size};

/// The signal of congestion that the network gives for each packet of a message.
#[derive(Clone, Copy, Debug)]
enum Signal {
    /// It marks and delays each packet, and the destination states the largest penalty.
    Marks,
    /// It trims the first transmission of each packet.
    Trims,
    /// It loses the first transmission of each packet.
    Losses,
}

const SIGNAL: Axis<Signal> =
    axis("signal").values(&[("marks", Signal::Marks), ("trims", Signal::Trims), ("losses", Signal::Losses)]);

/// The failure of a context with a full window in flight.
#[derive(Clone, Copy, Debug)]
enum Failure {
    /// A fatal NACK with this code.
    Nack(NackCode),
    /// The last timeout.
    Timeout,
}

const FAILURE: Axis<Failure> = axis("failure").values(&[
    ("closing-in-error", Failure::Nack(NackCode::CLOSING_IN_ERR)),
    ("response-lost", Failure::Nack(NackCode::GTD_RESP_UNAVAIL)),
    ("timeout", Failure::Timeout),
]);

/// The share of the sender's rate that the receiver has.
const RECEIVER: Axis<u64> = axis("receiver").values(&[("as-configured", 1), ("a-quarter", 4)]);

/// The round trip of all packets, in base round trips: with a little delay, with a delay of about 0, and with
/// a long one.
const ROUND_TRIP: Axis<f64> = axis("round-trip").values(&[("1.25", 1.25), ("1", 1.0), ("5", 5.0)]);

/// An `rcvd_bytes` that is behind the newest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stale {
    /// The number in an earlier ACK.
    Earlier,
    /// It is exactly 2^23 units away, from where values count as behind.
    HalfRange,
}

const STALE: Axis<Stale> =
    axis("rcvd-bytes").values(&[("earlier", Stale::Earlier), ("half-range", Stale::HalfRange)]);

/// True if one ACK covers all refused packets.
const ONE_ACK: Axis<bool> = axis("acks").values(&[("each", false), ("one", true)]);

/// The value of `rc` in ACKs without an earlier penalty.
const RC: Axis<bool> = axis("rc").values(&[("0", false), ("1", true)]);

/// A part of the delay, so that a device that rounds times measures no round trip below the configured one.
const ROUNDING: Duration = Duration::from_nanos(384);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[NSCC]).over(&[&MODE, &CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("nscc/initial-window", "A source sends at most the maximum window before the first ACK")
        .checks(&[CC_WINDOW_001])
        .over(&[&RECEIVER, &MODE, &CARRIER, &START])
        .measure(|t| {
            // The slower of the two links determines what the network holds.
            if let share @ 2.. = t.value(&RECEIVER) {
                let rate = t.reported("sender_rate").unwrap_or(0) / share;
                require(rate > 0, "the device does not say the rates of its network")?;
                t.configure("receiver_rate", rate)?;
            }
            let (mut flow, max_window) = long_flow(t)?;
            flow.fill(t)?;
            check_in_flight(t, CC_WINDOW_001, max_window, flow.in_flight());
            Ok(())
        }),
    rule("nscc/maximum-window", "The bytes in flight never exceed the maximum window")
        .checks(&[CC_WINDOW_002])
        .over(&[&ROUND_TRIP, &ALGORITHMS, &MODE, &CARRIER])
        .measure(|t| {
            // The window grows by another formula for each of the delays.
            t.congestion(t.value(&ALGORITHMS))?;
            let (mut flow, max_window) = long_flow(t)?;
            t.round_trips(6)?;
            let round = t.base_rtt()?.mul_f64(t.value(&ROUND_TRIP)) + ROUNDING;
            let answers = Answers { delay: round.saturating_sub(flow.way), ..Answers::default() };
            let most = flow.run(t, round * 12, &answers)?;
            check_in_flight(t, CC_WINDOW_002, max_window, most);
            Ok(())
        }),
    rule("nscc/full-window-ack-request", "The packet that fills the window requests an ACK")
        .checks(&[CC_ACKREQ_001])
        .measure(|t| {
            // With RCCC, credit ends before the window.
            t.congestion("nscc")?;
            let (mut flow, _) = long_flow(t)?;
            require_filled(t, &mut flow)?;
            let last = flow.target.packet(flow.count() - 1)?.request.ar();
            t.check(CC_ACKREQ_001, "ar of the last packet that the window lets leave", true, last);
            Ok(())
        }),
    rule("nscc/ack-request-of-two", "The packet that fills a window of two contexts requests an ACK")
        .checks(&[CC_ACKREQ_001])
        .over(&[&MODE, &CARRIER])
        .measure(|t| {
            t.congestion("nscc")?;
            t.slowed()?;
            let max_window = t.bdp()? * 3 / 2;
            let packets = (max_window / full_packet_size(t)) as usize;
            require(packets >= 6, "the window holds too few packets")?;
            let (mode, mtu) = (t.value(&MODE), t.mtu());
            let peers = [t.peer(0)?, t.peer_of_job(102)?];
            t.post(Post { mode, ..post(PostKind::Write, peers[0], packets / 2 * mtu) })?;
            let mut first = Target::accept(t)?;
            first.collect(t, (packets / 2) as u32)?;
            let operation = t.post(Post { mode, ..post(PostKind::Write, peers[1], 2 * packets * mtu) })?;
            let opened = opening_request(t, CC_ACKREQ_001, 0)?;
            let mut flow = Flow::of(t, opened, operation)?;
            require_filled(t, &mut flow)?;
            require(flow.count() < packets as u32, "each context has its own window")?;
            let last = flow.target.packet(flow.count() - 1)?.request.ar();
            t.check(CC_ACKREQ_001, "ar of the last packet that the window lets leave", true, last);
            Ok(())
        }),
    rule(
        "nscc/second-message",
        "A second message leaves while the first is in flight, if the window has room",
    )
    .checks(&[CC_WINDOW_001])
    .over(&[&MODE, &CARRIER])
    .measure(|t| {
        t.congestion("nscc")?;
        t.slowed()?;
        require(t.bdp()? * 3 / 2 > 4 * full_packet_size(t), "the window holds too few packets")?;
        let (mode, peer) = (t.value(&MODE), t.peer(0)?);
        let mut target = Target::established(t, peer, mode)?;
        t.post(Post { mode, ..post(PostKind::Write, peer, 64) })?;
        target.collect(t, 2)?;
        t.post(Post { mode, ..post(PostKind::Write, peer, 64) })?;
        let psn = target.psn(2);
        t.expect(CC_WINDOW_001, &format!("PSN {psn} before an ACK"), t.rto() / 2, |seen| {
            seen.request().filter(|request| request.psn() == psn)
        })?;
        target.ack(t, 2)
    }),
    rule("nscc/message-order", "A short message waits while the window holds back a long one")
        .checks(&[SES_ORDER_001])
        .run(|t| {
            let (mut flow, _) = flow_with_full_window(t)?;
            let peer = t.peer(0)?;
            t.post(Post { mode: t.value(&MODE), ..post(PostKind::Write, peer, 64) })?;
            // The long message takes 24 round trips at least.
            let span = t.base_rtt()? * 6;
            flow.run(t, span, &Answers::default())?;
            let ids = (0..flow.count()).map(|n| flow.target.said(n).map(|said| said.message_id));
            let ids = ids.collect::<Result<Vec<_>, Stop>>()?;
            let other = ids.iter().position(|id| Some(id) != ids.first());
            let what = "no packet of the next message before the last one of this";
            t.holds(SES_ORDER_001, what, other.is_none(), format!("packet {other:?}"));
            Ok(())
        }),
    rule("nscc/credit-in-ack", "An ACK_CC with credit does not stop a source that runs NSCC alone")
        .checks(&[CC_WINDOW_001])
        .over(&[&MODE])
        .measure(|t| {
            t.congestion("nscc")?;
            t.slowed()?;
            let mut flow = Flow::start(t, t.value(&MODE), 40)?;
            flow.fill(t)?;
            grant_by_ack(t, &flow, 1)?;
            for _ in 0..40 {
                flow.fill(t)?;
                if flow.count() == 40 {
                    break;
                }
                let ack = flow.answer(flow.count(), &Answers::default())?;
                t.send(&flow.target.pdc, &ack)?;
            }
            t.check(CC_WINDOW_001, "packets that arrived", 40, flow.count());
            Ok(())
        }),
    rule("nscc/nack-then-ack", "A packet that gets a NACK and then an ACK frees its bytes only once")
        .checks(&[CC_WINDOW_002])
        .over(&[&ONE_ACK, &MODE, &CARRIER, &START])
        .measure(|t| {
            // A NACK takes a packet out of flight. The ACK of an earlier copy arrives before the
            // retransmission, and must not count the packet down again.
            let (mut flow, max_window) = flow_with_full_window(t)?;
            let (first, half) = (flow.acked(), (flow.count() - flow.acked()) / 2);
            for n in first..first + half {
                flow.refuse(t, NackCode::NO_RESOURCE, n)?;
            }
            let (acks, each) = if t.value(&ONE_ACK) { (1, half) } else { (half, 1) };
            for _ in 0..acks {
                flow.acknowledge_many(t, each, &Answers::default())?;
            }
            let before = flow.count();
            flow.fill(t)?;
            check_in_flight(t, CC_WINDOW_002, max_window, flow.in_flight());
            if flow.count() == before {
                return Err(Stop::Inconclusive("the device sent no new packet".into()));
            }
            Ok(())
        }),
    rule("nscc/ack-frees-window", "A source sends as many new bytes as rcvd_bytes increases")
        .checks(&[CC_RCVD_004, CC_WINDOW_001])
        .measure(|t| {
            let (mut flow, max_window) = long_flow(t)?;
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
            check_in_flight(t, CC_WINDOW_001, max_window, flow.in_flight());
            Ok(())
        }),
    rule("nscc/steady-throughput", "A source sends six maximum windows within 40 uncongested round trips")
        .checks(&[CC_WINDOW_001])
        .over(&[&RC, &MODE, &CARRIER, &START])
        .measure(|t| {
            let (mut flow, max_window) = long_flow(t)?;
            let (answers, round) = timely_answers(t, &flow)?;
            let answers = Answers { restore: t.value(&RC), ..answers };
            let until = t.now() + round * 40;
            while flow.bytes() < max_window * 6 && t.now() < until {
                flow.run(t, round, &answers)?;
            }
            t.at_least(CC_WINDOW_001, "bytes sent in 40 round trips", max_window * 6, flow.bytes());
            Ok(())
        }),
    rule("nscc/stale-rcvd-bytes", "An ACK with an outdated rcvd_bytes frees no bytes in flight")
        .checks(&[CC_RCVD_003])
        .over(&[&STALE, &MODE, &CARRIER, &START])
        .measure(|t| {
            let (mut flow, max_window) = long_flow(t)?;
            flow.fill(t)?;
            let answers = Answers::default();
            let earlier = flow.answer(1, &answers)?;
            for _ in 0..4 {
                flow.acknowledge(t, &answers)?;
            }
            flow.fill(t)?;
            let stale = match t.value(&STALE) {
                Stale::Earlier => earlier,
                Stale::HalfRange => {
                    let counted = flow.target.counted(flow.acknowledged()) + (1 << 23);
                    let ack = flow.target.acking(flow.acked() - 1);
                    AckBuilder { nscc: Some((counted, 1)), ..ack }.build()?
                }
            };
            let highest = flow.count();
            t.send(&flow.target.pdc, &stale)?;
            let during = t.grace();
            flow.target
                .expect_none(t, CC_RCVD_003, "a new packet for a stale ACK", during, |n| n >= highest)?;
            let (answers, round) = timely_answers(t, &flow)?;
            let until = t.now() + t.soon();
            while flow.count() <= highest && t.now() < until {
                flow.run(t, round * 2, &answers)?;
            }
            t.at_least(CC_RCVD_003, "packets that arrived after new ACKs", highest + 1, flow.count());
            // A source that has taken the old count for the newest counts the same bytes twice.
            let most = flow.run(t, round * 4, &answers)?;
            check_in_flight(t, CC_RCVD_003, max_window, most);
            Ok(())
        }),
    rule("nscc/minimum-window", "A message completes if every packet is marked, trimmed once or lost once")
        .checks(&[CC_WINDOW_003])
        .over(&[&MODE, &CARRIER, &SIGNAL])
        .run(|t| {
            t.congestion_or_both("nscc")?;
            let mut flow = Flow::start(t, Mode::Rud, 40)?;
            match t.value(&SIGNAL) {
                Signal::Marks => {
                    let answers = Answers { marked: true, penalty: 127, ..late_answers(t)? };
                    let until = t.now() + answers.delay * 200 + t.soon();
                    while flow.acked() < 40 && t.now() < until {
                        flow.run(t, answers.delay, &answers)?;
                    }
                }
                Signal::Trims => acknowledge_retransmissions(t, &mut flow, true)?,
                Signal::Losses => acknowledge_retransmissions(t, &mut flow, false)?,
            }
            t.check(CC_WINDOW_003, "packets that were acknowledged", 40, flow.acked());
            t.ends(CC_WINDOW_003, flow.operation, Status::Ok)
        }),
    rule("nscc/failed-context", "A context that ends in error frees its bytes in flight")
        .checks(&[CC_WINDOW_004])
        .over(&[&MODE, &CARRIER, &FAILURE])
        .measure(|t| {
            t.congestion_or_both("nscc")?;
            let failure = t.value(&FAILURE);
            if let (Failure::Timeout, 8..) = (failure, t.parameter("max_rto_retx_cnt")) {
                return skip("the device retransmits without end, or for too long");
            }
            let mut first = 0;
            for round in 0..3 {
                let mut flow = flow_on_new_context(t, round)?;
                if round == 0 {
                    first = flow.count();
                }
                // Losses shrink the window. A NACK that ends a context is no sign of congestion.
                let least = match failure {
                    Failure::Nack(_) => first / 2,
                    Failure::Timeout => 1,
                };
                let what = "packets that leave on a new context before the first ACK";
                t.at_least(CC_WINDOW_004, what, least, flow.count());
                fail_context(t, &mut flow, failure)?;
            }
            t.forget();
            let peer = t.peer(0)?;
            let written = t.post(post(PostKind::Write, peer, 64))?;
            let first = opening_request(t, CC_WINDOW_004, 3)?;
            Target::opened_by(t, first)?.ack(t, 0)?;
            t.ends(CC_WINDOW_004, written, Status::Ok)
        }),
];

/// Receives packets until the window is full. Otherwise the rule is inconclusive.
fn require_filled(t: &mut Test<'_>, flow: &mut Flow) -> Outcome {
    if flow.is_filled(t)? {
        return Ok(());
    }
    Err(Stop::Inconclusive("packets still arrive near the timeout".into()))
}

/// Acknowledges 40 packets in order, each after its second transmission. The first one is trimmed or lost.
fn acknowledge_retransmissions(t: &mut Test<'_>, flow: &mut Flow, trimmed: bool) -> Outcome {
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

/// Ends the context in error, and its operation with it.
fn fail_context(t: &mut Test<'_>, flow: &mut Flow, failure: Failure) -> Outcome {
    match failure {
        Failure::Nack(code) => flow.refuse(t, code, 0)?,
        // A window that shrinks with each loss makes the retransmissions wait.
        Failure::Timeout => drop(t.completion(flow.operation, t.until_given_up() * flow.count().max(8))?),
    }
    if t.completion(flow.operation, t.soon())?.is_none() {
        return Err(Stop::Inconclusive("the operation of the failed context has not ended".into()));
    }
    t.settle()
}
