//! The reaction of a source's window to marks and delay (section 3.6.13).

use super::steps::{
    ALGORITHMS, LONG_TIMEOUT, fill_window, flow_of_windows, flow_under, late_answers, long_flow,
    need_in_flight, run_until_full, shrink_by_marks, timely_answers, watch_for,
};
use crate::flow::{Answers, Flow};
use crate::packets::nominal;
use crate::prelude::*;
use crate::rules::steps::{check_in_flight, full_packet_size};
use crate::test::BEFORE_WRAP;

/// A round trip with a queue, in base round trips. The longer one would cut the window by more than half.
/// Neither delay is above 4 base round trips, from which quick adapt may act.
const QUEUE: Axis<f64> = axis("queue").values(&[("short", 3.0), ("long", 4.75)]);

/// True for packets right after a queue, so that the average delay is still long.
const QUEUED: Axis<bool> = axis("after").values(&[("no-queue", false), ("queue", true)]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[NSCC]).over(&[&MODE, &CARRIER])
}

pub(super) const RULES: &[Rule] = &[
    rule("nscc/marked-above-target", "Marked ACKs above the target delay shrink the window")
        .checks(&[CC_QUAD_004])
        .over(&[&ALGORITHMS, &MODE, &CARRIER, &START])
        .measure(|t| {
            let mut flow = flow_under(t, t.value(&ALGORITHMS))?;
            flow.fill(t)?;
            let before = flow.in_flight();
            let after = shrink_by_marks(t, &mut flow)?;
            t.at_most(
                CC_QUAD_004,
                "bytes in flight after marks and delay",
                Bound::from(before * 3 / 4).tolerating("three quarters of before"),
                after,
            );
            Ok(())
        }),
    rule("nscc/first-late-mark", "The first late, marked ACK does not open the window beyond its maximum")
        .checks(&[CC_WINDOW_002])
        .measure(|t| {
            // The first late ACK ends the period for which a source may gather increases. With the marked
            // ones right after it, the average delay is still below the target.
            let (mut flow, max_window) = long_flow(t)?;
            let (answers, round) = timely_answers(t, &flow)?;
            flow.run(t, round * 12, &answers)?;
            watch_for(t, &mut flow, t.base_rtt()? / 2)?;
            need_in_flight(&flow, 4)?;
            let late = late_answers(t)?;
            let due = flow.newest() + late.delay;
            flow.watch_until(t, due)?;
            for marked in [false, true, true] {
                flow.acknowledge(t, &Answers { marked, ..late })?;
            }
            watch_for(t, &mut flow, t.rto() / 4)?;
            check_in_flight(t, CC_WINDOW_002, max_window, flow.in_flight());
            Ok(())
        }),
    rule("nscc/marked-below-target", "Marked ACKs below the target delay do not shrink the window")
        .checks(&[CC_QUAD_003])
        .over(&[&QUEUED, &MODE, &CARRIER])
        .measure(|t| {
            let (mut flow, _) = flow_of_windows(t, 40)?;
            let (answers, round) = timely_answers(t, &flow)?;
            let before = flow.run(t, round * 8, &answers)?;
            if t.value(&QUEUED) {
                let late = late_answers(t)?;
                flow.run(t, late.delay * 6, &late)?;
                // The packets that wait for such late ACKs give no sample.
                while flow.acked() < flow.count() {
                    flow.acknowledge(t, &Answers { unmeasured: true, ..answers })?;
                }
            }
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
        .measure(|t| {
            let (mut flow, _) = long_flow(t)?;
            let before = shrink_by_marks(t, &mut flow)?;
            let (answers, round) = timely_answers(t, &flow)?;
            let after = flow.run(t, round * 40, &answers)?;
            t.at_least(CC_QUAD_001, "bytes in flight with less delay", before + 1, after);
            Ok(())
        }),
    rule("nscc/growth-by-delay", "A smaller delay below the target lets the window grow more")
        .checks(&[CC_QUAD_001])
        .measure(|t| {
            // The target is at least 0.75 base round trips. Both delays are below it, and neither is about 0.
            let (mut flow, _) = flow_of_windows(t, 60)?;
            let base = t.round_trips(1)?;
            let mut grown = Vec::new();
            for round_trip in [base.mul_f64(1.25), base.mul_f64(1.65)] {
                let before = shrink_by_marks(t, &mut flow)?;
                let answers = Answers { delay: round_trip.saturating_sub(flow.way), ..Answers::default() };
                let after = flow.run(t, round_trip * 32, &answers)?;
                grown.push(after.saturating_sub(before));
            }
            // The script counts whole packets in flight, and may miss one at each of four times.
            let least = Bound::from(grown[1] + 3 * nominal(t.mtu())).tolerating("three packets");
            t.at_least(
                CC_QUAD_001,
                "bytes of growth with the smaller delay, compared with the larger",
                least,
                grown[0],
            );
            Ok(())
        }),
    rule("nscc/unmarked-above-target", "Unmarked ACKs above the target delay let the window grow")
        .checks(&[CC_QUAD_002])
        .over(&[&MODE, &CARRIER, &START])
        .measure(|t| check_late_growth(t, CC_QUAD_002)),
    rule("nscc/growth-after-wrap", "The window grows after rcvd_bytes has wrapped to 0")
        .checks(&[CC_RCVD_004])
        .measure(|t| {
            t.configure("start_rcvd_bytes", BEFORE_WRAP)?;
            check_late_growth(t, CC_RCVD_004)
        }),
    rule("nscc/one-decrease-per-rtt", "Late, marked ACKs at most halve the window within a base round trip")
        .checks(&[CC_QUAD_004])
        .over(&[&MODE, &CARRIER, &ALGORITHMS, &QUEUE])
        .measure(|t| {
            // A queue without marks fills, so the window stays large and the average delay exceeds the
            // target. Then late, marked ACKs acknowledge three quarters of the bytes in flight at once. One
            // decrease leaves half the window, which is more than the last quarter.
            let mut flow = flow_under(t, t.value(&ALGORITHMS))?;
            let (base, span) = (t.base_rtt()?, t.value(&QUEUE));
            t.round_trips(7)?;
            let queue = Answers { delay: base.mul_f64(span).saturating_sub(flow.way), ..Answers::default() };
            flow.run(t, queue.delay * 8, &queue)?;
            let marked = Answers { marked: true, ..queue };
            watch_for(t, &mut flow, base / 2)?;
            need_in_flight(&flow, 12)?;
            let due = flow.newest() + queue.delay;
            flow.watch_until(t, due)?;
            let (before, begun) = (flow.in_flight(), t.now());
            for _ in 0..(flow.count() - flow.acked()) * 3 / 4 {
                flow.acknowledge(t, &marked)?;
            }
            t.was_late(t.now() - begun);
            watch_for(t, &mut flow, t.rto() / 4)?;
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
    rule("nscc/steady-marks", "Late, marked ACKs at short distances shrink the window more than once")
        .checks(&[CC_QUAD_004])
        .measure(|t| {
            // A queue without marks fills, with ACKs at equal distances of less than a base round trip. Then
            // ACKs at the same distances have marks for about four base round trips, which permits several
            // decreases by half. After a single one, new packets would leave for the last ACKs.
            t.try_configure("rto_init_time", LONG_TIMEOUT)?;
            let (mut flow, _) = flow_of_windows(t, 40)?;
            let (answers, timely) = timely_answers(t, &flow)?;
            run_until_full(t, &mut flow, timely * 8, &answers, 12)?;
            t.round_trips(10)?;
            let base = t.base_rtt()?;
            let round = base.mul_f64(4.75);
            let (delay, pace) = (round.saturating_sub(flow.way), round / (flow.count() - flow.acked()));
            let queue = Answers { delay, pace, ..Answers::default() };
            flow.run(t, round * 7, &queue)?;
            watch_for(t, &mut flow, base)?;
            need_in_flight(&flow, 8)?;
            let (before, waiting) = (flow.in_flight(), flow.count() - flow.acked());
            flow.run(t, pace * (waiting * 7 / 8), &Answers { marked: true, ..queue })?;
            watch_for(t, &mut flow, base)?;
            let most = Bound::from(before / 3 + full_packet_size(t)).tolerating("a third, and a packet");
            t.at_most(CC_QUAD_004, "bytes in flight after marks at short distances", most, flow.in_flight());
            Ok(())
        }),
    rule("nscc/decrease-elsewhere", "A decrease for one destination does not prevent that for another")
        .checks(&[CC_QUAD_004])
        .needs(&[RUD, NSCC, TWO_ADDRESSES])
        .over(&[&CARRIER])
        .measure(|t| {
            // The marked ACKs of the second destination always arrive right after those of the first. A
            // source with one time of the last decrease for all destinations never shrinks the second window.
            t.try_configure("rto_init_time", LONG_TIMEOUT)?;
            let (mut first, max_window) = flow_of_windows(t, 40)?;
            fill_window(t, &mut first)?;
            let peer = t.peer(1)?;
            let packets = (40 * max_window / t.mtu() as u64).clamp(64, 4000) as usize;
            let mut second = Flow::beside(t, peer, Mode::Rud, packets, &[&first.target])?;
            fill_window(t, &mut second)?;
            need_in_flight(&second, 8)?;
            let before = second.in_flight();
            // The packets that have filled the windows have waited for long, so their ACKs give no sample.
            let unmeasured = Answers { unmeasured: true, ..Answers::default() };
            acknowledge_all(t, [&mut first, &mut second], &unmeasured)?;
            let late = late_answers(t)?;
            for _ in 0..24 {
                let due = t.now() + late.delay;
                first.watch_until(t, due)?;
                second.watch_until(t, due)?;
                acknowledge_all(t, [&mut first, &mut second], &Answers { marked: true, ..late })?;
            }
            watch_for(t, &mut second, late.delay)?;
            let most = Bound::from(before * 3 / 4).tolerating("three quarters of before");
            let what = "bytes in flight to the second destination after marks and delay";
            t.at_most(CC_QUAD_004, what, most, second.in_flight());
            Ok(())
        }),
    rule("nscc/late-outlier", "A single late, marked ACK among timely ones leaves the window as it is")
        .checks(&[CC_QUAD_004])
        .needs(&[RUD, NSCC])
        .over(&[&CARRIER])
        .measure(|t| {
            // The average delay over a round trip decides, and one ACK of many hardly changes it.
            let (mut flow, _) = flow_of_windows(t, 40)?;
            let (answers, round) = timely_answers(t, &flow)?;
            let before = run_until_full(t, &mut flow, round * 8, &answers, 12)?;
            let outlier = flow.acked();
            let answers = Answers { missing: Some(outlier), ..answers };
            let arrived = flow.target.arrived.get(&(outlier + 1)).map_or(t.now(), |(at, _)| *at);
            flow.watch_until(t, arrived + answers.delay)?;
            flow.acknowledge_many(t, 2, &answers)?;
            let wait = t.round_trips(3)?;
            flow.run(t, wait, &answers)?;
            // Now the ACK arrives that names the packet.
            let counted = flow.target.counted(flow.acknowledged());
            let ack = flow.target.acking(flow.acked() - 1);
            let psn = flow.target.psn(outlier);
            flow.target.answer(t, AckBuilder { psn, marked: true, nscc: Some((counted, 1)), ..ack })?;
            let after = flow.run(t, round * 6, &Answers { marked: true, missing: None, ..answers })?;
            let least = Bound::from(before * 3 / 4).tolerating("a quarter");
            t.at_least(CC_QUAD_004, "bytes in flight after a late, marked ACK", least, after);
            Ok(())
        }),
    rule("nscc/marks-limit-growth", "Below the target delay, marks limit the growth of the window")
        .checks(&[CC_QUAD_001, CC_QUAD_003])
        .measure(|t| {
            let (mut flow, max_window) = flow_of_windows(t, 60)?;
            let mut grown = [0, 0];
            for (grown, marked) in grown.iter_mut().zip([true, false]) {
                let before = shrink_by_marks(t, &mut flow)?;
                let (answers, round) = timely_answers(t, &flow)?;
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
            // With or without marks, the window grows by eta per period, a small part of a packet.
            let most = Bound::from(unmarked / 2 + 2 * full_packet_size(t))
                .tolerating("half of that without marks, and two packets");
            if unmarked < (6 * full_packet_size(t)).min(max_window / 4) {
                return Err(Stop::Inconclusive(format!(
                    "the window grew by {unmarked} bytes: too little to compare"
                )));
            }
            t.at_most(CC_QUAD_003, "bytes by which marked ACKs let the window grow", most, marked);
            Ok(())
        }),
];

/// Acknowledges all packets that have arrived, one by one, of one flow after the other.
fn acknowledge_all(t: &mut Test<'_>, flows: [&mut Flow; 2], answers: &Answers) -> Outcome {
    for flow in flows {
        while flow.acked() < flow.count() {
            flow.acknowledge(t, answers)?;
        }
    }
    Ok(())
}

/// Checks that the window grows with unmarked ACKs above the target delay.
fn check_late_growth(t: &mut Test<'_>, requirement: &Requirement) -> Outcome {
    let (mut flow, _) = long_flow(t)?;
    let before = shrink_by_marks(t, &mut flow)?;
    let answers = late_answers(t)?;
    let after = flow.run(t, answers.delay * 12, &answers)?;
    t.at_least(requirement, "bytes in flight without marks", before + 1, after);
    Ok(())
}
