//! The window of congestion control at a source (section 3.6.13).

use crate::flow::{Answers, Flow, nominal};
use crate::prelude::*;
use crate::rules::steps::{check_in_flight, full_packet_size};

/// The algorithms that the device runs.
const ALGORITHMS: Axis<&str> =
    axis("algorithms").needing(&[("nscc", "nscc", &[]), ("both", "both", &[RCCC])]);

/// Where packets are trimmed.
pub(super) const HOP: Axis<NackCode> =
    axis("trimmed").values(&[("fabric", NackCode::TRIMMED), ("last-hop", NackCode::TRIMMED_LASTHOP)]);

/// A round trip with a queue, in base round trips. The longer one asks for a cut beyond half. Neither delay
/// is above 4 base round trips, from which quick adapt may act.
const QUEUE: Axis<f64> = axis("queue").values(&[("short", 3.0), ("long", 4.75)]);

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

const TROUBLE: Axis<Trouble> = axis("trouble").values(&[
    ("marks", Trouble::Marks),
    ("trims", Trouble::Trims),
    ("losses", Trouble::Losses),
]);

/// rcv_cwnd_pend.
const PENALTY: Axis<u8> = axis("penalty").values(&[("half", 64), ("most", 96), ("all", 127)]);

/// How a context ends with a full window in flight.
#[derive(Clone, Copy, Debug)]
enum Death {
    /// By this NACK, after which nothing is tried again.
    Nack(NackCode),
    /// By its last timeout.
    Timeout,
}

const DEATH: Axis<Death> = axis("death").values(&[
    ("closing-in-error", Death::Nack(NackCode::CLOSING_IN_ERR)),
    ("response-lost", Death::Nack(NackCode::GTD_RESP_UNAVAIL)),
    ("timeout", Death::Timeout),
]);

/// Begins a rule with the usual needs of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[NSCC])
}

pub(super) const RULES: &[Rule] = &[
    rule("nscc/initial-window", "A source sends at most the maximum window before the first ACK")
        .checks(&[CC_WINDOW_001])
        .over(&[&MODE, &CARRIER, &START])
        .measure(|t| {
            let (mut flow, largest) = flow(t)?;
            flow.fill(t)?;
            check_in_flight(t, CC_WINDOW_001, largest, flow.in_flight());
            Ok(())
        }),
    rule("nscc/maximum-window", "The bytes in flight never exceed the maximum window")
        .checks(&[CC_WINDOW_002])
        .over(&[&MODE, &CARRIER])
        .measure(|t| {
            let (mut flow, largest) = flow(t)?;
            let (answers, round) = in_time(t, &flow)?;
            let most = flow.run(t, round * 12, &answers)?;
            check_in_flight(t, CC_WINDOW_002, largest, most);
            Ok(())
        }),
    rule("nscc/full-window-ack-request", "The packet that fills the window requests an ACK")
        .checks(&[CC_ACKREQ_001])
        .over(&[&MODE, &CARRIER, &START])
        .measure(|t| {
            // Beside receiver credit it is that which ends first.
            t.congestion("nscc")?;
            let (mut flow, _) = flow(t)?;
            flow.fill(t)?;
            let last = flow.target.packet(flow.count() - 1)?.request.ar();
            t.check(CC_ACKREQ_001, "ar of the last packet that the window lets leave", true, last);
            Ok(())
        }),
    rule("nscc/nack-then-ack", "A packet that gets a NACK and then an ACK frees its bytes only once")
        .checks(&[CC_WINDOW_002])
        .over(&[&MODE, &CARRIER, &START])
        .measure(|t| {
            // A NACK takes a packet out of flight; the ACK of an earlier copy, which comes while it waits to
            // leave again, does not do so once more.
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
            check_in_flight(t, CC_WINDOW_002, largest, flow.in_flight());
            if flow.count() == before {
                return Err(Stop::Inconclusive("nothing more has left".into()));
            }
            Ok(())
        }),
    rule("nscc/ack-frees-window", "A source sends as many new bytes as rcvd_bytes increases")
        .checks(&[CC_RCVD_004, CC_WINDOW_001])
        .over(&[&MODE, &CARRIER, &START])
        .measure(|t| {
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
            check_in_flight(t, CC_WINDOW_001, largest, flow.in_flight());
            Ok(())
        }),
    rule("nscc/steady-throughput", "A source sends six maximum windows within 40 uncongested round trips")
        .checks(&[CC_WINDOW_001])
        .over(&[&MODE, &CARRIER, &START])
        .measure(|t| {
            let (mut flow, largest) = flow(t)?;
            let (answers, round) = in_time(t, &flow)?;
            let until = t.now() + round * 40;
            while flow.bytes() < largest * 6 && t.now() < until {
                flow.run(t, round, &answers)?;
            }
            t.at_least(CC_WINDOW_001, "bytes that got through in 40 round trips", largest * 6, flow.bytes());
            Ok(())
        }),
    rule("nscc/stale-rcvd-bytes", "An ACK with an outdated rcvd_bytes frees no bytes in flight")
        .checks(&[CC_RCVD_003])
        .over(&[&MODE, &CARRIER, &START])
        .measure(|t| {
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
            flow.target
                .expect_none(t, CC_RCVD_003, "no new packet for an old ACK", during, |n| n >= highest)?;
            let (answers, round) = in_time(t, &flow)?;
            let until = t.now() + t.soon();
            while flow.count() <= highest && t.now() < until {
                flow.run(t, round * 2, &answers)?;
            }
            t.at_least(CC_RCVD_003, "packets that came, with new ACKs", highest + 1, flow.count());
            Ok(())
        }),
    rule("nscc/marked-above-target", "Marked ACKs above the target delay shrink the window")
        .checks(&[CC_QUAD_004])
        .over(&[&MODE, &CARRIER, &START])
        .measure(|t| {
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
        }),
    rule("nscc/marked-below-target", "Marked ACKs below the target delay do not shrink the window")
        .checks(&[CC_QUAD_003])
        .over(&[&MODE, &CARRIER])
        .measure(|t| {
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
        }),
    rule("nscc/unmarked-below-target", "Unmarked ACKs below the target delay let the window grow")
        .checks(&[CC_QUAD_001])
        .over(&[&MODE, &CARRIER])
        .measure(|t| {
            let (mut flow, _) = flow(t)?;
            let before = congest(t, &mut flow)?;
            let (answers, round) = in_time(t, &flow)?;
            let after = flow.run(t, round * 40, &answers)?;
            t.at_least(CC_QUAD_001, "bytes in flight, with less delay", before + 1, after);
            Ok(())
        }),
    rule("nscc/growth-by-delay", "A smaller delay below the target lets the window grow more")
        .checks(&[CC_QUAD_001])
        .over(&[&MODE, &CARRIER])
        .measure(|t| {
            // The target is 0.75 base round trips at least: both delays are below it, and neither is about 0.
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
        }),
    rule("nscc/unmarked-above-target", "Unmarked ACKs above the target delay let the window grow")
        .checks(&[CC_QUAD_002])
        .over(&[&MODE, &CARRIER, &START])
        .measure(|t| grows(t, CC_QUAD_002)),
    rule("nscc/growth-after-wrap", "The window grows after rcvd_bytes has wrapped to 0")
        .checks(&[CC_RCVD_004])
        .over(&[&MODE, &CARRIER])
        .measure(|t| {
            t.configure("start_rcvd_bytes", crate::test::BEFORE_WRAP)?;
            grows(t, CC_RCVD_004)
        }),
    rule("nscc/minimum-window", "A message completes if every packet is marked, trimmed once or lost once")
        .checks(&[CC_WINDOW_003])
        .over(&[&MODE, &CARRIER, &TROUBLE])
        .run(|t| {
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
        }),
    rule("nscc/trims", "Trims shrink the window, so fewer packets leave than were trimmed")
        .checks(&[CC_TRIM_001, CC_TRIM_004])
        .over(&[&HOP, &MODE, &CARRIER, &START])
        .measure(|t| {
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
        }),
    rule("nscc/losses", "Losses shrink the window, so at most half of it is retransmitted at once")
        .checks(&[CC_LOSS_001])
        .over(&[&MODE, &CARRIER, &START])
        .measure(|t| {
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
        }),
    rule("nscc/penalty", "A receiver penalty shrinks the window")
        .checks(&[CC_PENALTY_001])
        .over(&[&MODE, &CARRIER, &START])
        .measure(|t| {
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
        }),
    rule("nscc/penalty-end", "The window returns to its earlier size when the receiver penalty ends")
        .checks(&[CC_PENALTY_002])
        .over(&[&MODE, &CARRIER, &SAMPLES])
        .measure(|t| {
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
        }),
    rule("nscc/one-decrease-per-rtt", "Late, marked ACKs at most halve the window within a base round trip")
        .checks(&[CC_QUAD_004])
        .over(&[&MODE, &CARRIER, &ALGORITHMS, &QUEUE])
        .measure(|t| {
            // A queue without marks fills: the window stays large, and the average delay passes the target. Then
            // three quarters of what is in flight are acknowledged at one time, marked and late. One cut leaves
            // half the window, and so more than the last quarter.
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
            let least = Bound::from((before / 2).saturating_sub(2 * full_packet_size(t)))
                .tolerating("half, less two packets");
            t.at_least(
                CC_QUAD_004,
                "bytes in flight after marked ACKs within one base round trip",
                least,
                flow.in_flight(),
            );
            Ok(())
        }),
    rule("nscc/marks-limit-growth", "Below the target delay, marks limit the growth of the window")
        .checks(&[CC_QUAD_001, CC_QUAD_003])
        .over(&[&MODE, &CARRIER])
        .measure(|t| {
            let (mut flow, largest) = flow_of(t, 60)?;
            let mut grown = [0, 0];
            for (grown, marked) in grown.iter_mut().zip([true, false]) {
                let before = congest(t, &mut flow)?;
                let (answers, round) = in_time(t, &flow)?;
                let after = flow.run(t, round * 24, &Answers { marked, ..answers })?;
                *grown = after.saturating_sub(before);
            }
            let [marked, unmarked] = grown;
            t.at_least(
                CC_QUAD_001,
                "bytes by which unmarked ACKs let the window grow",
                full_packet_size(t),
                unmarked,
            );
            // The window grows by eta in each period, marked or not: by a small part of a packet.
            let most = Bound::from(unmarked / 2 + 2 * full_packet_size(t))
                .tolerating("half of that without marks, and two packets");
            if unmarked < (6 * full_packet_size(t)).min(largest / 4) {
                return Err(Stop::Inconclusive(format!(
                    "the window grew by {unmarked} bytes: too little to compare"
                )));
            }
            t.at_most(CC_QUAD_003, "bytes by which marked ACKs let the window grow", most, marked);
            Ok(())
        }),
    rule("nscc/last-hop-trims-with-rccc", "With RCCC, trims at the last hop do not shrink the window")
        .checks(&[CC_TRIM_003])
        .needs(&[RCCC, NSCC])
        .over(&[&MODE, &CARRIER, &START])
        .measure(|t| {
            // The window of NSCC is full: each packet that leaves takes the place of a trimmed one.
            let (mut flow, _) = flow_with(t, "both", 24)?;
            let (left, half) = trim_half(t, &mut flow, NackCode::TRIMMED_LASTHOP)?;
            let least = Bound::from(half.saturating_sub(1)).tolerating("one packet");
            t.at_least(CC_TRIM_003, "packets that leave after trims at the last hop", least, left);
            Ok(())
        }),
    rule("nscc/fabric-trims", "Trims in the fabric shrink the window, with or without RCCC")
        .checks(&[CC_TRIM_001])
        .over(&[&MODE, &CARRIER, &ALGORITHMS])
        .measure(|t| {
            let (mut flow, _) = flow_with(t, t.value(&ALGORITHMS), 24)?;
            let (left, half) = trim_half(t, &mut flow, NackCode::TRIMMED)?;
            t.at_most(CC_TRIM_001, "packets that leave after trims in the fabric", half - 1, left);
            Ok(())
        }),
    rule("nscc/penalty-share", "ACKs of one window reduce it by the share that rcv_cwnd_pend states")
        .checks(&[CC_PENALTY_001])
        .over(&[&MODE, &CARRIER, &PENALTY])
        .measure(|t| {
            // The penalty counts acknowledged bytes, and no times: so it shows on any network.
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
            let most = Bound::from(left + before / 8 + 2 * full_packet_size(t))
                .tolerating("an eighth of the window and two packets");
            t.at_most(
                CC_PENALTY_001,
                "bytes in flight after ACKs of a whole window with the penalty",
                most,
                flow.in_flight(),
            );
            Ok(())
        }),
    rule("nscc/failed-context", "A context that ends in error frees its bytes in flight")
        .checks(&[CC_WINDOW_004])
        .over(&[&MODE, &CARRIER, &DEATH])
        .measure(|t| {
            t.congestion_or_both("nscc")?;
            let death = t.value(&DEATH);
            if let (Death::Timeout, 8..) = (death, t.parameter("max_rto_retx_cnt")) {
                return skip("the device retransmits without end, or for too long");
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
                    Death::Timeout => {
                        drop(t.completion(flow.operation, t.until_given_up() * flow.count().max(8))?)
                    }
                }
                let ended = t.completion(flow.operation, t.soon())?;
                if ended.is_none() {
                    return Err(Stop::Inconclusive(
                        "the operation of the ended context has not ended".into(),
                    ));
                }
                t.settle()?;
            }
            t.forget();
            let peer = t.peer(0)?;
            let written = t.post(post(PostKind::Write, peer, 64))?;
            let (opens, within) =
                (|seen: &RxPacket| seen.request().filter(|request| request.syn()), t.later());
            let (first, _) =
                t.expect(CC_WINDOW_004, "a request that opens the next context", within, opens)?;
            Target::opened_by(t, first)?.ack(t, 0)?;
            t.ends(CC_WINDOW_004, written, Status::Ok)
        }),
    rule("nscc/ambiguous-sample", "An ACK without retx for a retransmitted packet is no round-trip sample")
        .checks(&[CC_RTT_001])
        .needs(&[RUD, NSCC])
        .over(&[&CARRIER, &START])
        .measure(|t| {
            let (mut flow, _) = flow_of(t, 60)?;
            let base = t.base_rtt()?;
            if flow.way * 2 > base || t.nack_wait() * 4 > t.rto() {
                return skip("a round trip is not well below the device's base_rtt");
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
        }),
];

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

/// Returns the answers of a network without a queue, and the round-trip time with them. That time is longer
/// than the configured one, so that the device learns no smaller one. It is below the target, which lies at
/// least 0.75 base round trips above.
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

fn grows(t: &mut Test<'_>, requirement: &Requirement) -> Outcome {
    let (mut flow, _) = flow(t)?;
    let before = congest(t, &mut flow)?;
    let answers = late(t)?;
    let after = flow.run(t, answers.delay * 12, &answers)?;
    t.at_least(requirement, "bytes in flight, without marks", before + 1, after);
    Ok(())
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

/// True if the ACKs that end the penalty give samples of the round-trip time.
const SAMPLES: Axis<bool> = axis("samples").values(&[("valid", true), ("none", false)]);

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

/// Goes on only where so many packets are in flight.
pub(super) fn need_in_flight(flow: &Flow, least: u32) -> Outcome {
    match flow.count() - flow.acked() {
        count if count < least => Err(Stop::Inconclusive(format!(
            "only {count} packets are in flight: too few to judge a window by"
        ))),
        _ => Ok(()),
    }
}

/// Refuses half of what is in flight by this code; how many packets leave then before their timeout, and that
/// half.
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
