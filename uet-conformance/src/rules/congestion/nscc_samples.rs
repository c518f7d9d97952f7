//! The ACKs and NACKs that give a source a sample of the round-trip time, and those that give none (section
//! 3.6.13).

use super::steps::{flow_of_windows, late_answers, run_until_full, timely_answers, watch_for};
use crate::flow::{Answers, Flow};
use crate::prelude::*;

/// An answer that may belong to any of several transmissions of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ambiguous {
    /// An ACK of a retransmission, without `retx`.
    Unmarked,
    /// An ACK with `retx` after the second retransmission. It may be that of the first.
    SecondRetransmission,
    /// A second NACK, right after the retransmission.
    Nack,
}

const AMBIGUOUS: Axis<Ambiguous> = axis("answer").values(&[
    ("ack-without-retx", Ambiguous::Unmarked),
    ("ack-after-two", Ambiguous::SecondRetransmission),
    ("second-nack", Ambiguous::Nack),
]);

/// The ACK that must not shorten the base round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Short {
    /// An ACK without congestion state, after others with a long `service_time`.
    Plain,
    /// ACKs of packets that were acknowledged long before. Their PSNs differ from that of a packet in flight
    /// by powers of two.
    Old,
}

const SHORT: Axis<Short> = axis("ack").values(&[("plain", Short::Plain), ("old-psn", Short::Old)]);

/// The distances of old PSNs from one in flight.
const BACK: [u32; 3] = [1024, 512, 256];

/// True if the ACKs above the gap are late.
const LATE: Axis<bool> = axis("acks").values(&[("late", true), ("timely", false)]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[RUD, NSCC]).over(&[&CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("nscc/ambiguous-sample", "An answer to an unknown transmission of a packet is no round-trip sample")
        .checks(&[CC_RTT_001])
        .over(&[&AMBIGUOUS, &CARRIER, &START])
        .measure(|t| {
            let (mut flow, _) = flow_of_windows(t, 60)?;
            let base = t.base_rtt()?;
            let short = flow.way * 2 <= base && t.nack_wait() * 4 <= t.rto();
            require(short, "a round trip is not well below the device's base_rtt")?;
            let (answers, round) = timely_answers(t, &flow)?;
            let before = run_until_full(t, &mut flow, round * 12, &answers, 12)?;
            let n = flow.acked();
            // A NACK may be a sample too, so it arrives no earlier than the ACKs.
            let due = flow.newest() + answers.delay;
            flow.watch_until(t, due)?;
            flow.refuse(t, NackCode::NO_RESOURCE, n)?;
            watch_for(t, &mut flow, t.nack_wait())?;
            // New packets have taken its place in the window. ACKs of later packets free some of it.
            acknowledge_later(t, &flow, n, n + 1)?;
            need_transmission(t, &mut flow, n, 2)?;
            match t.value(&AMBIGUOUS) {
                // Without retx, it may be the ACK of the first transmission.
                Ambiguous::Unmarked => flow.acknowledge(t, &Answers::default())?,
                Ambiguous::SecondRetransmission => {
                    // The source retransmits at once, as soon as the window has room.
                    flow.refuse(t, NackCode::PKT_NOT_RCVD, n)?;
                    acknowledge_later(t, &flow, n, n + 5)?;
                    need_transmission(t, &mut flow, n, 3)?;
                    let counted = flow.target.counted(flow.target.bytes_before(n + 1));
                    let ack = AckBuilder { retx: true, nscc: Some((counted, 1)), ..flow.target.acking(n) };
                    flow.target.answer(t, ack)?;
                }
                // A source that counts it from the last transmission sees a tiny round trip.
                Ambiguous::Nack => flow.refuse(t, NackCode::NO_RESOURCE, n)?,
            }
            let after = flow.run(t, round * 40, &answers)?;
            let least = Bound::from(before * 3 / 4).tolerating("a quarter");
            t.at_least(CC_RTT_001, "bytes in flight after the ambiguous sample", least, after);
            Ok(())
        }),
    rule("nscc/short-sample", "An ACK without state or of an old PSN does not shorten the base round trip")
        .checks(&[CC_RTT_001])
        .over(&[&SHORT, &CARRIER, &START])
        .measure(|t| {
            let (mut flow, _) = flow_of_windows(t, 80)?;
            let base = t.base_rtt()?;
            require(flow.way * 2 <= base, "a round trip is not well below the device's base_rtt")?;
            let (answers, round) = timely_answers(t, &flow)?;
            let before = run_until_full(t, &mut flow, round * 8, &answers, 8)?;
            match t.value(&SHORT) {
                Short::Plain => {
                    // The destination takes a base round trip for each answer but the plain one.
                    let served = Answers { delay: answers.delay + base, service: base, ..answers };
                    flow.run(t, round * 6, &served)?;
                    let due = flow.newest() + answers.delay;
                    flow.watch_until(t, due)?;
                    let count = flow.count() - flow.acked();
                    let ack = AckBuilder { nscc: None, ..flow.target.acking(flow.count() - 1) };
                    flow.target.answer(t, ack)?;
                    flow.acknowledge_many(t, count, &Answers { unmeasured: true, ..answers })?;
                }
                Short::Old => {
                    let mut tries = 0;
                    while flow.acked() <= BACK[0] {
                        tries += 1;
                        require(tries < 40, "the window is too small for so many packets")?;
                        flow.run(t, round * 8, &answers)?;
                    }
                    // The ACKs leave right after a packet whose PSN differs by a power of two.
                    flow.acknowledge(t, &Answers { unmeasured: true, ..answers })?;
                    let until = t.now() + t.grace();
                    flow.next(t, until)?;
                    let (newest, acked) = (flow.count() - 1, flow.acked());
                    let counted = flow.target.counted(flow.target.bytes_before(acked));
                    for back in BACK {
                        let ack = flow.target.naming(newest - back, acked);
                        flow.target.answer(t, AckBuilder { nscc: Some((counted, 1)), ..ack })?;
                    }
                }
            }
            let after = flow.run(t, round * 12, &answers)?;
            let least = Bound::from(before * 3 / 4).tolerating("a quarter");
            t.at_least(CC_RTT_001, "bytes in flight after such ACKs", least, after);
            Ok(())
        }),
    rule("nscc/sample-above-gap", "ACKs above a gap measure the round trip of the packets that they name")
        .checks(&[CC_QUAD_003, CC_QUAD_004])
        .over(&[&LATE, &CARRIER, &START])
        .measure(|t| {
            // A packet is missing for the whole time, so the cumulative PSN stands still. All ACKs are
            // marked: late ones shrink the window, and timely ones leave it as it is.
            let (mut flow, _) = flow_of_windows(t, 24)?;
            let (answers, round) = timely_answers(t, &flow)?;
            let before = run_until_full(t, &mut flow, round * 8, &answers, 8)?;
            let (late, missing) = (t.value(&LATE), flow.acked());
            let answers = if late { late_answers(t)? } else { answers };
            let answers = Answers { marked: true, missing: Some(missing), ..answers };
            let arrived = flow.target.arrived.get(&(missing + 1)).map_or(t.now(), |(at, _)| *at);
            flow.watch_until(t, arrived + answers.delay)?;
            flow.acknowledge_many(t, 2, &answers)?;
            if late {
                let after = flow.run(t, answers.delay * 12, &answers)?;
                let most = Bound::from(before * 3 / 4).tolerating("three quarters of before");
                t.at_most(CC_QUAD_004, "bytes in flight after late marks above a gap", most, after);
            } else {
                // This ends before the timeout of the missing packet.
                let span = (round * 10).min(t.rto() / 2);
                let after = flow.run(t, span, &answers)?;
                let least = Bound::from(before * 3 / 4).tolerating("a quarter");
                t.at_least(CC_QUAD_003, "bytes in flight after timely marks above a gap", least, after);
            }
            Ok(())
        }),
];

/// Acknowledges four packets from the `first`-th on, above the missing `n`-th.
fn acknowledge_later(t: &mut Test<'_>, flow: &Flow, n: u32, first: u32) -> Outcome {
    for later in first..first + 4 {
        let received = flow.target.counted(flow.target.bytes_before(later + 1) - flow.bytes_of(n));
        let ack = AckBuilder { nscc: Some((received, 1)), ..flow.target.naming(later, n) };
        flow.target.answer(t, ack)?;
    }
    Ok(())
}

/// Waits for this number of transmissions of the `n`-th packet, within NACK_Retx_Time and a pause.
fn need_transmission(t: &mut Test<'_>, flow: &mut Flow, n: u32, count: usize) -> Outcome {
    let end = t.now() + t.nack_wait() + t.grace();
    while flow.target.times(n) < count && flow.next(t, end)?.is_some() {}
    if flow.target.times(n) < count {
        return Err(Stop::Inconclusive("the device did not retransmit the refused packet".into()));
    }
    Ok(())
}
