//! The ACKs and NACKs that give a source a sample of the round-trip time, and those that give none (section
//! 3.6.13).
//!
//! A sample is the time from the transmission of a packet to its ACK, less `service_time`. It counts only if
//! the source knows which transmission the ACK answers. The smallest sample is the base round trip, which
//! limits the window. So a wrong sample that is too short shows as fewer bytes in flight.

use super::steps::{flow_of_windows, late_answers, run_until_full, timely_answers, watch_for};
use crate::flow::{Answers, Flow};
use crate::prelude::*;

/// An answer that may belong to any of several transmissions of a packet. It arrives right after the newest
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AmbiguousAnswer {
    /// An ACK without `retx` after a retransmission. It may be that of the first transmission.
    Unmarked,
    /// An ACK with `retx` after the second retransmission. It may be that of the first.
    SecondRetransmission,
    /// A second NACK after the retransmission.
    Nack,
}

const AMBIGUOUS: Axis<AmbiguousAnswer> = axis("answer").values(&[
    ("ack-without-retx", AmbiguousAnswer::Unmarked),
    ("ack-after-two", AmbiguousAnswer::SecondRetransmission),
    ("second-nack", AmbiguousAnswer::Nack),
]);

/// An ACK that gives no sample, from which a wrong source takes one that is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnmeasuredAck {
    /// An ACK without congestion state, after others with a long `service_time`. A wrong source subtracts the
    /// `service_time` of an earlier one.
    Plain,
    /// ACKs of packets that were acknowledged long before. Their PSNs differ from that of a packet in flight
    /// by powers of two. A wrong source keeps the times of transmission in a ring, and takes the time of the
    /// packet in flight.
    Old,
}

const UNMEASURED: Axis<UnmeasuredAck> =
    axis("ack").values(&[("plain", UnmeasuredAck::Plain), ("old-psn", UnmeasuredAck::Old)]);

/// The distances of old PSNs from one in flight, the longest first.
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
        .over(&[&AMBIGUOUS, &CARRIER])
        .measure(|t| {
            t.make_patient()?;
            let (mut flow, _) = flow_of_windows(t, 60)?;
            let base = t.base_rtt()?;
            let short = flow.way * 2 <= base && t.nack_wait() * 4 <= t.rto();
            require(short, "a round trip is not well below the device's base_rtt")?;
            let (answers, round) = timely_answers(t, &flow)?;
            let before = run_until_full(t, &mut flow, round * 12, &answers, 12)?;
            // The oldest packet in flight is refused and retransmitted. A NACK may be a sample too, so it
            // arrives no earlier than the ACKs.
            let refused = flow.acked();
            let due = flow.newest() + answers.delay;
            flow.watch_until(t, due)?;
            flow.refuse(t, NackCode::NO_RESOURCE, refused)?;
            watch_for(t, &mut flow, t.nack_wait())?;
            // New packets have taken its place in the window. ACKs of later packets free some of it.
            acknowledge_four_above(t, &flow, refused, refused + 1)?;
            need_transmissions(t, &mut flow, refused, 2)?;
            // A source that counts the answer from the last transmission sees a tiny round trip.
            match t.value(&AMBIGUOUS) {
                AmbiguousAnswer::Unmarked => flow.acknowledge(t, &Answers::default())?,
                AmbiguousAnswer::SecondRetransmission => {
                    // The source retransmits at once, as soon as the window has room.
                    flow.refuse(t, NackCode::PKT_NOT_RCVD, refused)?;
                    acknowledge_four_above(t, &flow, refused, refused + 5)?;
                    need_transmissions(t, &mut flow, refused, 3)?;
                    let counted = flow.target.counted(flow.target.bytes_before(refused + 1));
                    let ack = flow.target.acking(refused);
                    flow.target.answer(t, AckBuilder { retx: true, nscc: Some((counted, 1)), ..ack })?;
                }
                AmbiguousAnswer::Nack => flow.refuse(t, NackCode::NO_RESOURCE, refused)?,
            }
            let after = flow.run(t, round * 40, &answers)?;
            check_window_kept(t, CC_RTT_001, "bytes in flight after the ambiguous sample", before, after);
            Ok(())
        }),
    rule("nscc/short-sample", "An ACK without state or of an old PSN does not shorten the base round trip")
        .checks(&[CC_RTT_001])
        .over(&[&UNMEASURED, &CARRIER, &START])
        .measure(|t| {
            let (mut flow, _) = flow_of_windows(t, 120)?;
            let base = t.base_rtt()?;
            require(flow.way * 2 <= base, "a round trip is not well below the device's base_rtt")?;
            let (answers, round) = timely_answers(t, &flow)?;
            let before = run_until_full(t, &mut flow, round * 8, &answers, 8)?;
            match t.value(&UNMEASURED) {
                UnmeasuredAck::Plain => acknowledge_without_state(t, &mut flow, (answers, round))?,
                UnmeasuredAck::Old => acknowledge_old_psns(t, &mut flow, (answers, round))?,
            }
            let after = flow.run(t, round * 12, &answers)?;
            check_window_kept(t, CC_RTT_001, "bytes in flight after such ACKs", before, after);
            Ok(())
        }),
    rule("nscc/sample-above-gap", "ACKs above a gap measure the round trip of the packets that they name")
        .checks(&[CC_QUAD_003, CC_QUAD_004])
        .over(&[&LATE, &CARRIER, &START])
        .measure(|t| {
            let (mut flow, _) = flow_of_windows(t, 24)?;
            let (answers, round) = timely_answers(t, &flow)?;
            let before = run_until_full(t, &mut flow, round * 8, &answers, 8)?;
            // From now on, a packet is missing, so the cumulative PSN stands still. All ACKs are marked: late
            // ones shrink the window, and timely ones leave it as it is.
            let (late, missing) = (t.value(&LATE), flow.acked());
            let answers = if late { late_answers(t)? } else { answers };
            let answers = Answers { marked: true, missing: Some(missing), ..answers };
            // The first ACK names the packet after the missing one.
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
                let what = "bytes in flight after timely marks above a gap";
                check_window_kept(t, CC_QUAD_003, what, before, after);
            }
            Ok(())
        }),
];

/// Checks that the window is about as large as before.
fn check_window_kept(t: &mut Test<'_>, requirement: &Requirement, what: &str, before: u64, after: u64) {
    let least = Bound::from(before * 3 / 4).tolerating("a quarter");
    t.at_least(requirement, what, least, after);
}

/// Lets the destination take a base round trip for each answer. Then acknowledges all packets by one ACK
/// without congestion state, and so without `service_time`, for which it took no time.
fn acknowledge_without_state(
    t: &mut Test<'_>,
    flow: &mut Flow,
    (answers, round): (Answers, Duration),
) -> Outcome {
    let base = t.base_rtt()?;
    let served = Answers { delay: answers.delay + base, service: base, ..answers };
    flow.run(t, round * 6, &served)?;
    let due = flow.newest() + answers.delay;
    flow.watch_until(t, due)?;
    let count = flow.count() - flow.acked();
    let ack = AckBuilder { nscc: None, ..flow.target.acking(flow.count() - 1) };
    flow.target.answer(t, ack)?;
    // It did not say that their bytes have arrived.
    flow.acknowledge_many(t, count, &Answers { unmeasured: true, ..answers })
}

/// Acknowledges old packets again, right after a packet has left whose PSN differs from theirs by powers of
/// two.
fn acknowledge_old_psns(t: &mut Test<'_>, flow: &mut Flow, (answers, round): (Answers, Duration)) -> Outcome {
    let mut tries = 0;
    while flow.acked() <= BACK[0] {
        tries += 1;
        require(tries < 40, "the window is too small for so many packets")?;
        flow.run(t, round * 8, &answers)?;
    }
    // An ACK makes room for one more packet, which is the newest.
    flow.acknowledge(t, &Answers { unmeasured: true, ..answers })?;
    let until = t.now() + t.grace();
    flow.next(t, until)?;
    let (newest, acked) = (flow.count() - 1, flow.acked());
    let counted = flow.target.counted(flow.target.bytes_before(acked));
    for back in BACK {
        let ack = flow.target.naming(newest - back, acked);
        flow.target.answer(t, AckBuilder { nscc: Some((counted, 1)), ..ack })?;
    }
    Ok(())
}

/// Acknowledges four packets from the `first`-th on, above the `missing`-th.
fn acknowledge_four_above(t: &mut Test<'_>, flow: &Flow, missing: u32, first: u32) -> Outcome {
    for n in first..first + 4 {
        let received = flow.target.counted(flow.target.bytes_before(n + 1) - flow.bytes_of(missing));
        let ack = AckBuilder { nscc: Some((received, 1)), ..flow.target.naming(n, missing) };
        flow.target.answer(t, ack)?;
    }
    Ok(())
}

/// Waits until the `n`-th packet has arrived this many times, for at most NACK_Retx_Time and a pause.
fn need_transmissions(t: &mut Test<'_>, flow: &mut Flow, n: u32, count: usize) -> Outcome {
    let end = t.now() + t.nack_wait() + t.grace();
    while flow.target.times(n) < count && flow.next(t, end)?.is_some() {}
    if flow.target.times(n) < count {
        return Err(Stop::Inconclusive("the device did not retransmit the refused packet".into()));
    }
    Ok(())
}
