//! The reaction of a source's window to trims, losses and the receiver penalty (section 3.6.13).

use super::steps::{
    ALGORITHMS, HOP, LONG_TIMEOUT, expect_window_after_last_hop_trims, fill_window, flow_of_windows,
    flow_under, flow_with_full_window, long_flow, need_in_flight, opening_request, refuse_half,
    run_until_full, shrink_by_marks, timely_answers, watch_for,
};
use crate::flow::{Answers, Flow};
use crate::prelude::*;
use crate::rules::steps::full_packet_size;

/// The value of rcv_cwnd_pend.
const PENALTY: Axis<u8> = axis("rcv-cwnd-pend").values(&[("64", 64), ("96", 96), ("127", 127)]);

/// True if the ACKs that end the penalty give samples of the round-trip time.
const SAMPLES: Axis<bool> = axis("samples").values(&[("valid", true), ("none", false)]);

/// A NACK that reports no trim.
const REFUSAL: Axis<NackCode> = axis("code").values(&[
    ("no-pkt-buffer", NackCode::NO_PKT_BUFFER),
    ("no-resource", NackCode::NO_RESOURCE),
    ("ses-procg", NackCode::RCVD_SES_PROCG),
]);

/// The signals from one of two destinations.
#[derive(Clone, Copy, Debug)]
enum Elsewhere {
    Penalty,
    Marks,
    /// All packets in flight are trimmed.
    Trims,
    /// Round trips below the configured one.
    ShortRoundTrips,
}

const ELSEWHERE: Axis<Elsewhere> = axis("signal").values(&[
    ("penalty", Elsewhere::Penalty),
    ("marks", Elsewhere::Marks),
    ("trims", Elsewhere::Trims),
    ("short-round-trips", Elsewhere::ShortRoundTrips),
]);

/// True if the other context has another traffic class, false if it has another destination.
const OTHER_CLASS: Axis<bool> =
    axis("other").needing(&[("destination", false, &[TWO_ADDRESSES]), ("class", true, &[])]);

/// The value of `rc` in ACKs with a penalty.
const RC: Axis<bool> = axis("rc").values(&[("0", false), ("1", true)]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[NSCC]).over(&[&MODE, &CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("nscc/trims", "Trims shrink the window, so fewer packets leave than were trimmed")
        .checks(&[CC_TRIM_001, CC_TRIM_004])
        .over(&[&HOP, &MODE, &CARRIER, &START])
        .measure(|t| {
            let code = t.value(&HOP);
            let requirement = match code {
                // With RCCC, it does not shrink the window.
                NackCode::TRIMMED_LASTHOP => {
                    t.congestion("nscc")?;
                    CC_TRIM_004
                }
                _ => CC_TRIM_001,
            };
            let (mut flow, _) = flow_with_full_window(t)?;
            let (count, first) = (flow.count(), flow.acked());
            let half = (count - first) / 2;
            if half < 4 {
                return Err(Stop::Inconclusive("the window is too small to show a decrease".into()));
            }
            for n in first..first + half {
                flow.refuse(t, code, n)?;
            }
            watch_for(t, &mut flow, t.rto() / 4)?;
            let retransmitted = (first..first + half).filter(|n| flow.target.times(*n) > 1).count() as u32;
            let new = flow.count() - count;
            t.at_most(requirement, "packets that leave after the trims", half - 1, retransmitted + new);
            Ok(())
        }),
    rule("nscc/other-nacks", "NACKs that report no trim leave the window as it is")
        .checks(&[CC_NACK_001])
        .needs(&[RUD, NSCC])
        .over(&[&REFUSAL, &CARRIER, &START])
        .measure(|t| {
            let (mut flow, _) = long_flow(t)?;
            let (answers, round) = timely_answers(t, &flow)?;
            let before = flow.run(t, round * 8, &answers)?;
            watch_for(t, &mut flow, t.base_rtt()? / 2)?;
            need_in_flight(&flow, 8)?;
            let (first, half) = (flow.acked(), (flow.count() - flow.acked()) / 2);
            for n in first..first + half {
                flow.refuse(t, t.value(&REFUSAL), n)?;
            }
            // Marks without delay neither grow nor shrink the window.
            let after = flow.run(t, round * 4, &Answers { marked: true, ..answers })?;
            let least = Bound::from(before * 3 / 4).tolerating("a quarter");
            t.at_least(CC_NACK_001, "bytes in flight after the NACKs", least, after);
            Ok(())
        }),
    rule("nscc/losses", "Losses shrink the window, so at most half of it is retransmitted at once")
        .checks(&[CC_LOSS_001])
        .measure(|t| {
            let (mut flow, _) = long_flow(t)?;
            flow.fill(t)?;
            let count = flow.count();
            if count < 8 {
                return Err(Stop::Inconclusive("the window is too small to show a decrease".into()));
            }
            let within = t.later();
            t.need("a retransmission", within, |seen| seen.request().filter(|request| request.retx()))?;
            watch_for(t, &mut flow, t.rto() / 2)?;
            let retransmitted = (0..count).filter(|n| flow.target.times(*n) > 1).count() as u32 + 1;
            let most = Bound::from(count / 2).tolerating("half of the window");
            t.at_most(CC_LOSS_001, "packets retransmitted at once", most, retransmitted);
            Ok(())
        }),
    rule("nscc/single-loss", "A loss leaves nearly the whole window to the next message")
        .checks(&[CC_LOSS_001])
        .needs(&[RUD, NSCC])
        .over(&[&CARRIER, &START])
        .measure(|t| {
            // A loss shrinks the window by the size of its packet, and not to a single packet.
            let (mut flow, max_window) = flow_of_windows(t, 4)?;
            let (answers, round) = timely_answers(t, &flow)?;
            let before = run_until_full(t, &mut flow, round * 2, &answers, 8)?;
            let lost = flow.acked();
            let answers = Answers { missing: Some(lost), ..answers };
            let arrived = flow.target.arrived.get(&(lost + 1)).map_or(t.now(), |(at, _)| *at);
            flow.watch_until(t, arrived + answers.delay)?;
            flow.acknowledge_many(t, 2, &answers)?;
            let (mut count, mut tries) = (0, 0);
            while flow.count() > count || flow.acked() < flow.count() {
                tries += 1;
                require(tries < 40, "the write does not end in time")?;
                count = flow.count();
                flow.run(t, round * 2, &answers)?;
            }
            let until = t.now() + t.later();
            while flow.target.times(lost) < 2 && flow.next(t, until)?.is_some() {}
            if flow.target.times(lost) < 2 {
                return Err(Stop::Inconclusive("the device did not retransmit the lost packet".into()));
            }
            // This ACK gives no sample.
            let counted = flow.target.counted(flow.acknowledged());
            let (psn, ack) = (flow.target.psn(lost), flow.target.acking(flow.count() - 1));
            flow.target.answer(t, AckBuilder { psn, retx: true, nscc: Some((counted, 0)), ..ack })?;
            let written = t.completion(flow.operation, t.soon())?;
            require(written.is_some(), "the write has not ended")?;
            let packets = (2 * max_window / t.mtu() as u64).clamp(64, 4000) as usize;
            let mut flow = Flow::start_on(t, flow.target, packets)?;
            flow.fill(t)?;
            let least = Bound::from(before * 3 / 4).tolerating("a quarter");
            t.at_least(CC_LOSS_001, "bytes in flight of the next message", least, flow.in_flight());
            Ok(())
        }),
    rule("nscc/penalty", "A receiver penalty shrinks the window, with or without rc")
        .checks(&[CC_PENALTY_001])
        .over(&[&RC, &ALGORITHMS, &MODE, &CARRIER, &START])
        .measure(|t| {
            let mut flow = flow_under(t, t.value(&ALGORITHMS))?;
            let (answers, round) = timely_answers(t, &flow)?;
            let before = flow.run(t, round * 8, &answers)?;
            let answers = Answers { penalty: 100, restore: t.value(&RC), ..answers };
            let after = flow.run(t, round * 10, &answers)?;
            t.at_most(
                CC_PENALTY_001,
                "bytes in flight under the penalty",
                Bound::from(before * 3 / 4).tolerating("three quarters of before"),
                after,
            );
            Ok(())
        }),
    rule(
        "nscc/penalty-elsewhere",
        "Signals leave the window to another destination or of another class as it is",
    )
    .checks(&[CC_PENALTY_001, CC_QUAD_004, CC_TRIM_001, CC_WINDOW_002, CC_WINDOW_005])
    .needs(&[RUD, NSCC])
    .over(&[&ELSEWHERE, &OTHER_CLASS, &CARRIER])
    .measure(|t| {
        // A device may measure the base round trip to a destination once for all classes.
        let short = matches!(t.value(&ELSEWHERE), Elsewhere::ShortRoundTrips);
        require(
            !(short && t.value(&OTHER_CLASS)),
            "a device may share the base round trip of a destination",
        )?;
        t.try_configure("rto_init_time", LONG_TIMEOUT)?;
        let (mut flow, max_window) = long_flow(t)?;
        fill_window(t, &mut flow)?;
        let first = flow.in_flight();
        let packets = (12 * max_window / t.mtu() as u64).clamp(64, 4000) as usize;
        let mut other = if t.value(&OTHER_CLASS) {
            let (peer, length) = (t.peer(0)?, packets * t.mtu());
            let operation = t.post(Post { class: 1, ..post(PostKind::Write, peer, length) })?;
            // The other class has a window of its own, which is empty.
            let opened = opening_request(t, CC_WINDOW_005, 1)?;
            Flow::of(t, opened, operation)?
        } else {
            let peer = t.peer(1)?;
            Flow::to(t, peer, Mode::Rud, packets)?
        };
        fill_window(t, &mut other)?;
        let least = Bound::from(first / 4).tolerating("three quarters");
        t.at_least(CC_WINDOW_005, "bytes in flight beside a full window", least, other.in_flight());
        need_in_flight(&other, 8)?;
        let before = other.in_flight();
        let (answers, round) = timely_answers(t, &flow)?;
        let requirement = match t.value(&ELSEWHERE) {
            Elsewhere::Penalty => {
                flow.run(t, round * 4, &Answers { penalty: 100, ..answers })?;
                CC_PENALTY_001
            }
            Elsewhere::Marks => {
                shrink_by_marks(t, &mut flow)?;
                CC_QUAD_004
            }
            Elsewhere::Trims => {
                need_in_flight(&flow, 8)?;
                for n in flow.acked()..flow.count() {
                    flow.refuse(t, NackCode::TRIMMED, n)?;
                }
                watch_for(t, &mut flow, round)?;
                CC_TRIM_001
            }
            Elsewhere::ShortRoundTrips => {
                // Immediate answers shorten the base round trip to that destination.
                flow.run(t, flow.way * 8, &Answers::default())?;
                CC_WINDOW_002
            }
        };
        while other.acked() < other.count() {
            other.acknowledge(t, &Answers { unmeasured: true, ..Answers::default() })?;
        }
        other.fill(t)?;
        let least = Bound::from(before * 3 / 4).tolerating("a quarter");
        let what = "bytes in flight of the other context";
        t.at_least(requirement, what, least.clone(), other.in_flight());
        // Its round trips are as long as before.
        while other.acked() < other.count() {
            other.acknowledge(t, &Answers { unmeasured: true, ..Answers::default() })?;
        }
        let after = other.run(t, round * 6, &answers)?;
        t.at_least(requirement, what, least, after);
        Ok(())
    }),
    rule("nscc/penalty-end", "The window returns to its earlier size when the receiver penalty ends")
        .checks(&[CC_PENALTY_002])
        .over(&[&MODE, &CARRIER, &SAMPLES])
        .measure(|t| {
            let (mut flow, _) = long_flow(t)?;
            let (answers, round) = timely_answers(t, &flow)?;
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
    rule("nscc/last-hop-trims-with-rccc", "With RCCC, trims at the last hop do not shrink the window")
        .checks(&[CC_TRIM_003])
        .needs(&[RCCC, NSCC])
        .measure(expect_window_after_last_hop_trims),
    rule("nscc/fabric-trims", "Trims in the fabric shrink the window, with or without RCCC")
        .checks(&[CC_TRIM_001])
        .over(&[&MODE, &CARRIER, &ALGORITHMS])
        .measure(|t| {
            let mut flow = flow_under(t, t.value(&ALGORITHMS))?;
            let (left, half) = refuse_half(t, &mut flow, NackCode::TRIMMED)?;
            t.at_most(CC_TRIM_001, "packets that leave after trims in the fabric", half - 1, left);
            Ok(())
        }),
    rule("nscc/penalty-share", "ACKs of a whole window reduce it by at least rcv_cwnd_pend / 128")
        .checks(&[CC_PENALTY_001])
        .over(&[&MODE, &CARRIER, &PENALTY])
        .measure(|t| {
            // Unlike long_flow, without a measured round trip: the penalty depends on acknowledged bytes
            // alone.
            t.congestion_or_both("nscc")?;
            let penalty = t.value(&PENALTY);
            let max_window = t.bdp()? * 3 / 2;
            let packets = (8 * max_window / t.mtu() as u64).clamp(64, 2000) as usize;
            let mut flow = Flow::start(t, Mode::Rud, packets)?;
            fill_window(t, &mut flow)?;
            need_in_flight(&flow, 12)?;
            let (before, last) = (flow.in_flight(), flow.count());
            let answers = Answers { penalty, ..Answers::default() };
            while flow.acked() < last {
                flow.acknowledge(t, &answers)?;
            }
            flow.fill(t)?;
            // The unit of rcv_cwnd_pend is 1 / 128 of the acknowledged bytes.
            let left = before - before * u64::from(penalty) / 128;
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
];
