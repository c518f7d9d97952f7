//! The window of a source after many round trips of ACKs, trims or messages (section 3.6.13), measured by the
//! packets in flight.

use super::steps::{
    HOP, LONG_TIMEOUT, fill_window, flow_of_windows, flow_with_full_window, late_answers, need_in_flight,
    shrink_by_marks, timely_answers, watch_for,
};
use crate::flow::{Answers, Flow};
use crate::prelude::*;
use crate::rules::steps::{check_in_flight, full_packet_size};

/// The share of the delay that `service_time` states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServiceTime {
    None,
    Most,
    /// Most of it, and more than half of the range of the field.
    Long,
}

const SERVICE_TIME: Axis<ServiceTime> = axis("service-time").values(&[
    ("none", ServiceTime::None),
    ("most", ServiceTime::Most),
    ("long", ServiceTime::Long),
]);

/// A service_time in the upper half of the range of its field, which ends at 8.38848 ms.
const LONG_SERVICE: Duration = Duration::from_millis(5);

/// A NACK that does not shrink the window.
const NACK: Axis<NackCode> =
    axis("nack").values(&[("no-resource", NackCode::NO_RESOURCE), ("no-buffer", NackCode::NO_PKT_BUFFER)]);

/// The time at which new data can take the part of the window that NACKs free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NewData {
    /// At once.
    Waiting,
    /// After NACK_Retx_Time.
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

/// The way in which a window collapses to its floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Collapse {
    /// All packets in flight are trimmed, the last one much later.
    Trims,
    /// A penalty leaves little of a small window, and a late mark halves the rest.
    Marks,
}

const COLLAPSE: Axis<Collapse> =
    axis("after").values(&[("trims", Collapse::Trims), ("penalty-and-mark", Collapse::Marks)]);

/// The messages before the measured one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Previous {
    /// One of several windows.
    Long,
    /// Many whose sizes are no multiples of 256 bytes.
    OddSizes,
}

const PREVIOUS: Axis<Previous> =
    axis("previous").values(&[("long", Previous::Long), ("odd-sizes", Previous::OddSizes)]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[NSCC]).over(&[&MODE, &CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("nscc-over-time/marks-without-delay", "Marks without queuing delay do not shrink the window")
        .checks(&[CC_QUAD_003])
        .over(&[&MODE, &CARRIER, &SERVICE_TIME])
        .measure(|t| {
            if t.value(&SERVICE_TIME) == ServiceTime::Long {
                t.try_configure("rto_init_time", LONG_TIMEOUT)?;
                require(t.rto() > LONG_SERVICE * 4, "the timeout is too short for so late an ACK")?;
            }
            let (mut flow, _) = flow_of_windows(t, 60)?;
            let (answers, round) = timely_answers(t, &flow)?;
            let before = flow.run(t, round * 8, &answers)?;
            let service = match t.value(&SERVICE_TIME) {
                ServiceTime::None => Duration::ZERO,
                ServiceTime::Most => t.round_trips(3)?,
                ServiceTime::Long => LONG_SERVICE,
            };
            require(service.as_nanos() / 128 < 0xffff, "service_time cannot hold three base round trips")?;
            // The delay less service_time is that of a timely ACK.
            let answers = Answers { marked: true, delay: answers.delay + service, service, ..answers };
            let after = flow.run(t, (round + service) * 12, &answers)?;
            let least = Bound::from(before * 3 / 4).tolerating("a quarter");
            t.at_least(CC_QUAD_003, "bytes in flight after 12 round trips of marks", least, after);
            Ok(())
        }),
    rule("nscc-over-time/repeated-decrease", "Late, marked ACKs shrink the window to a quarter or less")
        .checks(&[CC_QUAD_004])
        .measure(|t| {
            // The first decreases are by half, and each later one by more than a tenth.
            let (mut flow, _) = flow_with_full_window(t)?;
            need_in_flight(&flow, 8)?;
            let before = flow.in_flight();
            let answers = Answers { marked: true, ..late_answers(t)? };
            flow.run(t, answers.delay * 20, &answers)?;
            let after = flow.run(t, answers.delay * 4, &answers)?;
            let most = Bound::from(before / 4 + full_packet_size(t)).tolerating("a quarter, and a packet");
            t.at_most(CC_QUAD_004, "bytes in flight after 24 round trips of marks and delay", most, after);
            Ok(())
        }),
    rule("nscc-over-time/retransmissions-fit", "A retransmission is sent only if the window has room for it")
        .checks(&[CC_WINDOW_001])
        .needs(&[RUD, NSCC])
        .over(&[&CARRIER, &NACK, &NEW_DATA])
        .measure(|t| {
            // New data that waits takes the part of the window that the NACKs free, and the retransmissions
            // wait for ACKs. New data that is posted later waits for the retransmissions.
            require(t.nack_wait() * 4 <= t.rto(), "NACK_Retx_Time is too close to the timeout")?;
            t.congestion_or_both("nscc")?;
            t.slowed()?;
            let max_window = t.bdp()? * 3 / 2;
            let peer = t.peer(0)?;
            let more = post(PostKind::Write, peer, (max_window * 2) as usize);
            let late = t.value(&NEW_DATA) == NewData::Late;
            let window = max_window / full_packet_size(t);
            let packets = if late { window * 3 / 4 } else { window * 3 };
            let mut flow = Flow::start(t, Mode::Rud, packets as usize)?;
            fill_window(t, &mut flow)?;
            need_in_flight(&flow, 6)?;
            let (first, newest) = (flow.acked(), flow.count());
            let half = (newest - first) / 2;
            for n in first..first + half {
                flow.refuse(t, t.value(&NACK), n)?;
            }
            watch_for(t, &mut flow, t.nack_wait() * 2)?;
            if late {
                t.post(more)?;
                watch_for(t, &mut flow, t.grace())?;
            }
            let refused: u64 = (first..first + half).map(|n| flow.bytes_of(n)).sum();
            let retransmitted: u64 =
                (first..first + half).filter(|n| flow.target.times(*n) > 1).map(|n| flow.bytes_of(n)).sum();
            if retransmitted == 0 && flow.count() == newest {
                return Err(Stop::Inconclusive("no packet has taken the place of the refused ones".into()));
            }
            check_in_flight(t, CC_WINDOW_001, max_window, flow.in_flight() - refused + retransmitted);
            Ok(())
        }),
    rule("nscc-over-time/trim-size", "Each trim in the fabric shrinks the window by the size of its packet")
        .checks(&[CC_TRIM_001])
        .measure(|t| {
            // A quarter of the window is trimmed, and marks prevent new growth. So much has arrived before
            // that quick adapt does not act.
            let (mut flow, _) = flow_of_windows(t, 60)?;
            let (answers, round) = timely_answers(t, &flow)?;
            let before = flow.run(t, round * 8, &answers)?;
            check_trimmed_quarter(t, &mut flow, before)
        }),
    rule("nscc-over-time/after-collapse", "Marks and trims shrink a window that recovered from a collapse")
        .checks(&[CC_QUAD_004, CC_TRIM_001])
        .needs(&[RUD, NSCC])
        .over(&[&SIGNAL, &CARRIER, &START])
        .measure(|t| {
            // Nothing arrives in the two base round trips between the trims, so quick adapt may close the
            // window. It may then ignore signals for the packets that were in flight. All of them are
            // acknowledged before the window is judged.
            let (mut flow, max_window) = flow_of_windows(t, 80)?;
            let (answers, round) = timely_answers(t, &flow)?;
            flow.run(t, round * 8, &answers)?;
            watch_for(t, &mut flow, t.base_rtt()? / 2)?;
            need_in_flight(&flow, 8)?;
            let (first, silence) = (flow.acked(), t.round_trips(3)?);
            flow.refuse(t, NackCode::TRIMMED, first)?;
            watch_for(t, &mut flow, silence)?;
            flow.refuse(t, NackCode::TRIMMED, first + 1)?;
            let (mut before, mut tries) = (0, 0);
            while before < max_window / 2 {
                if tries == 60 {
                    return Err(Stop::Inconclusive("the window has not grown to half of the maximum".into()));
                }
                tries += 1;
                before = flow.run(t, round * 4, &answers)?;
            }
            if t.value(&SIGNAL) == Congestion::Trims {
                return check_trimmed_quarter(t, &mut flow, before);
            }
            let after = shrink_by_marks(t, &mut flow)?;
            let most = Bound::from(before * 3 / 4).tolerating("three quarters of before");
            t.at_most(CC_QUAD_004, "bytes in flight after marks and delay", most, after);
            Ok(())
        }),
    rule(
        "nscc-over-time/least-window",
        "A source still sends after signals that leave one packet of its window",
    )
    .checks(&[CC_WINDOW_003])
    .needs(&[RUD, NSCC])
    .over(&[&COLLAPSE, &CARRIER, &START])
    .measure(|t| {
        let flow = match t.value(&COLLAPSE) {
            Collapse::Trims => trim_window(t)?,
            Collapse::Marks => penalize_window(t)?,
        };
        let mut target = flow.target;
        let left = target.next(t, t.patience(t.later()))?.is_some();
        let what = "packets that leave after the answers to all packets in flight";
        t.at_least(CC_WINDOW_003, what, 1, u32::from(left));
        Ok(())
    }),
    rule("nscc-over-time/single-trim", "An occasional trim leaves at least half of the window")
        .checks(&[CC_TRIM_002])
        .needs(&[RUD, NSCC])
        .over(&[&HOP, &CARRIER, &START])
        .measure(|t| {
            // Each trim shrinks the window by at most one packet. If quick adapt acts, it leaves the bytes
            // that arrived in more than a round trip. A ROD context would retransmit all packets after the
            // trimmed one.
            let (mut flow, _) = flow_of_windows(t, 60)?;
            let (answers, round) = timely_answers(t, &flow)?;
            let before = flow.run(t, round * 8, &answers)?;
            for _ in 0..3 {
                watch_for(t, &mut flow, t.base_rtt()? / 2)?;
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
        .measure(|t| {
            // Late, marked ACKs make the window small. One ACK of all packets in flight then lets several
            // leave at once, which fill the window. With RCCC, credit ends before the window.
            t.congestion("nscc")?;
            // More packets fit into a small window.
            t.try_configure("payload_mtu", 1024)?;
            let trigger = t.parameter("ack_gen_trigger").min(16_384);
            let (mut flow, _) = flow_of_windows(t, 60)?;
            flow.fill(t)?;
            let answers = Answers { marked: true, ..late_answers(t)? };
            let mut tries = 0;
            while flow.run(t, answers.delay * 2, &answers)? + full_packet_size(t) > trigger {
                tries += 1;
                require(tries != 40, "the window does not shrink below ACK_Gen_Trigger")?;
            }
            watch_for(t, &mut flow, t.base_rtt()? / 2)?;
            let (first, before) = (flow.count(), flow.bytes());
            let ack = flow.answer(first, &Answers::default())?;
            t.send(&flow.target.pdc, &ack)?;
            flow.fill(t)?;
            let end = flow.count();
            if end == first || flow.bytes() - before + full_packet_size(t) > trigger {
                return Err(Stop::Inconclusive("the window has grown to ACK_Gen_Trigger".into()));
            }
            let mut without = 0;
            for n in first..end {
                without += u32::from(!flow.target.packet(n)?.request.ar());
            }
            t.check(CC_ACKREQ_002, "packets without ar while the window is small", 0, without);
            Ok(())
        }),
    rule("nscc-over-time/next-message", "The next message has the full window if nothing is in flight")
        .checks(&[CC_WINDOW_001])
        .over(&[&MODE, &CARRIER, &PREVIOUS])
        .measure(|t| {
            t.congestion("nscc")?;
            let (mut flow, max_window) = flow_of_windows(t, 2)?;
            flow.fill(t)?;
            let first = flow.in_flight();
            let until = t.now() + t.soon();
            let (answers, round) = timely_answers(t, &flow)?;
            while t.now() < until && (flow.acked() < flow.count() || flow.count() == 0) {
                flow.run(t, round, &answers)?;
            }
            let mut target = flow.target;
            let peer = t.peer(0)?;
            if t.value(&PREVIOUS) == Previous::OddSizes {
                for n in 0..60 {
                    let operation = t.post(post(PostKind::Write, peer, 1 + n * 7 % 300))?;
                    let next = target.highest() + 1;
                    target.collect(t, next + 1)?;
                    target.ack(t, next)?;
                    t.completion(operation, t.soon())?;
                }
            }
            let packets = (2 * max_window / t.mtu() as u64).clamp(64, 4000) as usize;
            let mut flow = Flow::start_on(t, target, packets)?;
            flow.fill(t)?;
            check_in_flight(t, CC_WINDOW_001, max_window, flow.in_flight());
            let least = Bound::from(first.saturating_sub(2 * full_packet_size(t))).tolerating("two packets");
            t.at_least(CC_WINDOW_001, "bytes in flight on the next message", least, flow.in_flight());
            Ok(())
        }),
];

/// Trims a quarter of the window, and checks that the window shrinks by it. There were `before` bytes in
/// flight.
fn check_trimmed_quarter(t: &mut Test<'_>, flow: &mut Flow, before: u64) -> Outcome {
    let (answers, round) = timely_answers(t, flow)?;
    watch_for(t, flow, t.base_rtt()? / 2)?;
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

/// Trims all packets of a full window. Nothing arrives in the base round trips before the last trim, so quick
/// adapt may set the window to no bytes. Then no packet is in flight.
fn trim_window(t: &mut Test<'_>) -> Result<Flow, Stop> {
    t.try_configure("rto_init_time", LONG_TIMEOUT)?;
    let (mut flow, _) = flow_with_full_window(t)?;
    need_in_flight(&flow, 4)?;
    let (silence, last) = (t.round_trips(3)?, flow.count() - 1);
    for n in flow.acked()..last {
        flow.refuse(t, NackCode::TRIMMED, n)?;
    }
    watch_for(t, &mut flow, silence)?;
    flow.refuse(t, NackCode::TRIMMED, last)?;
    Ok(flow)
}

/// Acknowledges all packets of a small window at once: with the largest penalty, and the last one with a late
/// mark. Only the first ACK and the last one give a sample, so the mark moves the window last.
fn penalize_window(t: &mut Test<'_>) -> Result<Flow, Stop> {
    t.try_configure("payload_mtu", 1024)?;
    let (mut flow, _) = flow_of_windows(t, 60)?;
    let late = late_answers(t)?;
    shrink_by_marks(t, &mut flow)?;
    let mut tries = 0;
    while flow.run(t, late.delay, &late)? < 3 * full_packet_size(t) {
        tries += 1;
        require(tries < 60, "the window does not grow to a few packets")?;
    }
    // Marks without delay leave the window as it is, so no gathered increase is left.
    let (answers, round) = timely_answers(t, &flow)?;
    flow.run(t, round * 2, &answers)?;
    flow.run(t, round * 2, &Answers { marked: true, ..answers })?;
    watch_for(t, &mut flow, t.base_rtt()? / 2)?;
    need_in_flight(&flow, 3)?;
    let due = flow.newest() + late.delay;
    flow.watch_until(t, due)?;
    let (first, last) = (flow.acked(), flow.count() - 1);
    for n in first..last {
        flow.acknowledge(t, &Answers { penalty: 127, unmeasured: n > first, ..late })?;
    }
    flow.acknowledge(t, &Answers { marked: true, ..late })?;
    Ok(flow)
}
