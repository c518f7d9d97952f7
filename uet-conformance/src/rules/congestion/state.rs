//! State of congestion control that a device keeps per context, releases with a failed context, or limits to
//! the range of a field (sections 3.6.12 to 3.6.14).

use super::steps::{
    ALGORITHMS, expect_window_after_last_hop_trims, flow_of_windows, flow_on_new_context, grant_by_ack,
    late_answers, opening_request, short_silence, shrink_by_marks, timely_answers, watch_for,
};
use crate::flow::{Answers, Flow};
use crate::prelude::*;
use crate::rules::steps::full_packet_size;

/// The number of contexts from the device to the suite.
const CONTEXTS: Axis<u32> = axis("contexts").values(&[("two", 2), ("three", 3)]);

/// True to acknowledge one packet of each context in turn, false to acknowledge one window after the other.
const ORDER: Axis<bool> = axis("acks").values(&[("in-turn", true), ("in-blocks", false)]);

/// The NACK that ends a context in error.
const FAILURE: Axis<NackCode> = axis("failure")
    .values(&[("closing-in-error", NackCode::CLOSING_IN_ERR), ("response-lost", NackCode::GTD_RESP_UNAVAIL)]);

/// True for another penalty between the decrease and rc = 1.
const BETWEEN: Axis<bool> = axis("between").values(&[("nothing", false), ("another-penalty", true)]);

/// The delay of a response in microseconds. The field ends at 8.38848 ms, and would wrap at twice that.
const WAIT: Axis<u64> =
    axis("wait").values(&[("11-ms", 11_000), ("16-ms", 16_000), ("18-ms", 18_000), ("45-ms", 45_000)]);

/// The number of packets that leave on initial credit before the first ACK.
const BURST: Axis<u32> = axis("burst").values(&[("one", 1), ("four", 4)]);

/// The number of packets of a context that stay in flight until the last one has arrived. With nothing in
/// flight, a source that counts wrongly might reset its count.
const HELD: u32 = 3;

/// Begins a rule with the usual needs of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[NSCC])
}

pub(super) const RULES: &[Rule] = &[
    rule("cc-state/several-contexts", "Contexts to one destination complete, each with its own rcvd_bytes")
        .checks(&[CC_RCVD_005])
        .over(&[&CONTEXTS, &ORDER, &ALGORITHMS, &MODE])
        .measure(|t| {
            let (count, in_turn) = (t.value(&CONTEXTS), t.value(&ORDER));
            t.congestion(t.value(&ALGORITHMS))?;
            let window = t.bdp()? * 3 / 2 / full_packet_size(t);
            // The ACKs of a block are late, so the window may shrink by half.
            require(window >= u64::from(count * HELD) * 5 / 2, "the window holds too few packets")?;
            let packets = (window as usize * 2).clamp(32, 200);
            let mut flows = open_flows(t, count, packets)?;
            complete_flows(t, &mut flows, packets, if in_turn { 1 } else { u32::MAX }, HELD)?;
            if !t.facts().virtual_time && !are_complete(&flows, packets) {
                // Late answers may have reduced the window of a device on a real link below the packets held
                // back.
                complete_flows(t, &mut flows, packets, 1, 0)?;
                require(!are_complete(&flows, packets), "the window is smaller than the packets in flight")?;
            }
            for flow in &flows {
                let what = "acknowledged packets of a context";
                t.check(CC_RCVD_005, what, packets as u32, flow.acked());
                t.ends(CC_RCVD_005, flow.operation, Status::Ok)?;
            }
            Ok(())
        }),
    rule("cc-state/failed-context", "The context after a failed one has the full window again")
        .checks(&[CC_WINDOW_004])
        .over(&[&FAILURE, &MODE])
        .measure(|t| {
            // The device fills the window again and again, and each time its context ends in error.
            t.congestion_or_both("nscc")?;
            let mut first = 0;
            for round in 0..4 {
                let flow = flow_on_new_context(t, round)?;
                if round == 0 {
                    first = flow.count();
                } else {
                    let least = Bound::from(first * 3 / 4).tolerating("a quarter");
                    let what = "packets that leave on a new context before the first ACK";
                    t.at_least(CC_WINDOW_004, what, least, flow.count());
                }
                flow.refuse(t, t.value(&FAILURE), 0)?;
                need_failed_operation(t, &flow)?;
                t.settle()?;
            }
            Ok(())
        }),
    rule("cc-state/second-penalty-end", "A second rc = 1 does not undo the decrease that marks have caused")
        .checks(&[CC_PENALTY_003])
        .over(&[&BETWEEN, &MODE])
        .measure(|t| {
            let (mut flow, _) = flow_of_windows(t, 40)?;
            let (answers, round) = timely_answers(t, &flow)?;
            let large = flow.run(t, round * 8, &answers)?;
            flow.run(t, round * 10, &Answers { penalty: 120, ..answers })?;
            flow.run(t, round * 4, &Answers { restore: true, ..answers })?;
            let small = shrink_by_marks(t, &mut flow)?;
            if small * 2 > large {
                return Err(Stop::Inconclusive(format!(
                    "the window is {small} bytes after marks, {large} before"
                )));
            }
            // Marks prevent growth of the window.
            let marked = Answers { marked: true, ..answers };
            if t.value(&BETWEEN) {
                flow.run(t, round * 4, &Answers { penalty: 20, ..marked })?;
            }
            let after = flow.run(t, round * 4, &Answers { restore: true, ..marked })?;
            let most =
                Bound::from((small + large) / 2).tolerating("half of the difference to the earlier window");
            t.at_most(CC_PENALTY_003, "bytes in flight after the second rc = 1", most, after);
            Ok(())
        }),
    rule("cc-state/lasting-rc", "Marks shrink the window although each ACK after a penalty still has rc = 1")
        .checks(&[CC_PENALTY_003])
        .over(&[&MODE])
        .measure(|t| {
            let (mut flow, _) = flow_of_windows(t, 40)?;
            let (answers, round) = timely_answers(t, &flow)?;
            let large = flow.run(t, round * 8, &answers)?;
            flow.run(t, round * 10, &Answers { penalty: 120, ..answers })?;
            flow.run(t, round * 4, &Answers { restore: true, ..answers })?;
            let late = late_answers(t)?;
            let after = flow.run(t, late.delay * 16, &Answers { marked: true, restore: true, ..late })?;
            let most = Bound::from(large * 3 / 4).tolerating("three quarters of before");
            t.at_most(CC_PENALTY_003, "bytes in flight after marks with rc = 1", most, after);
            Ok(())
        }),
    rule("cc-state/last-hop-trims", "Trims at the last hop leave the window unchanged if RCCC runs too")
        .checks(&[CC_TRIM_003])
        .needs(&[RCCC, NSCC])
        .over(&[&MODE])
        .measure(expect_window_after_last_hop_trims),
    rule("cc-state/long-service-time", "A service_time above the range of the field is 0xFFFF or 0")
        .checks(&[CC_SERVICE_002])
        .needs(&[RUD, WRITE, NSCC])
        .over(&[&WAIT])
        .run(|t| {
            // The last packet of a write gets its response after the first packet has arrived, much later.
            t.congestion_or_both("nscc")?;
            let mtu = t.mtu();
            let (pdc, region) = t.open()?;
            let last = pdc.request(2).half(&region, mtu, 1)?;
            t.request(&pdc, last.clone())?;
            t.pause(t.scaled(Duration::from_micros(t.value(&WAIT))))?;
            t.request(&pdc, pdc.request(1).half(&region, mtu, 0)?)?;
            let (seen, _) = t.need("an ACK of the last packet", t.soon(), |seen| {
                seen.answers(&pdc, last.psn).filter(|_| seen.ack_cc().is_some())
            })?;
            let service = seen.ack_cc().map_or(0, |ack| ack.service_time().unwrap_or(0));
            t.one_of(CC_SERVICE_002, "service_time", &[0xffff, 0], service);
            Ok(())
        }),
    rule("cc-state/zero-credit", "A source whose credit is exactly 0 sends no packet")
        .checks(&[RCCC_CREDIT_001])
        .needs(&[RCCC])
        .over(&[&BURST, &MODE])
        .measure(|t| {
            // The first ACK ends the use of initial credit, and grants nothing, so the credit is 0. A device
            // that keeps its initial credit may send far more than the one packet that overdraws 0.
            t.congestion("rccc")?;
            t.slowed()?;
            t.auto_credit = false;
            let peer = t.peer(0)?;
            require(t.bdp()? >= 16 * full_packet_size(t), "the network holds too few packets")?;
            let operation = t.post(post(PostKind::Write, peer, t.value(&BURST) as usize * 1000))?;
            let opened = opening_request(t, RCCC_CREDIT_001, 0)?;
            let mut flow = Flow::of(t, opened, operation)?;
            flow.fill(t)?;
            grant_by_ack(t, &flow, 0)?;
            let highest = flow.count();
            if t.completion(operation, t.soon())?.is_none() {
                return Err(Stop::Inconclusive("the acknowledged write has not ended".into()));
            }
            t.post(post(PostKind::Write, peer, 8 * t.mtu()))?;
            watch_for(t, &mut flow, short_silence(t)?)?;
            let left = flow.count() - highest;
            require(left < 2, "the device keeps its initial credit after the first ACK")?;
            t.check(RCCC_CREDIT_001, "packets that leave without credit", 0, left);
            Ok(())
        }),
];

/// Has the device open this number of contexts, each with a write of `packets` packets.
fn open_flows(t: &mut Test<'_>, count: u32, packets: usize) -> Result<Vec<Flow>, Stop> {
    let mut flows: Vec<Flow> = Vec::new();
    for n in 0..count {
        let peer = t.peer_of_job(101 + n)?;
        let operation = t.post(post(PostKind::Write, peer, packets * t.mtu()))?;
        // If the window is full, the first packet of a context waits for the others.
        match next_context(t, &mut flows, packets)? {
            Some(first) => flows.push(Flow::of(t, first, operation)?),
            None if n == 0 => return Err(Stop::Inconclusive("the device opens no context".into())),
            None => {
                t.at_least(CC_RCVD_005, "contexts that send", count, n);
                return Err(Stop::Failed);
            }
        }
    }
    Ok(flows)
}

/// Returns whether all packets of all contexts are acknowledged.
fn are_complete(flows: &[Flow], packets: usize) -> bool {
    flows.iter().all(|flow| flow.acked() as usize == packets)
}

/// Acknowledges the packets of the contexts in turn, `most` at a time, until all are acknowledged or no more
/// arrive. Holds back the newest of each context.
fn complete_flows(t: &mut Test<'_>, flows: &mut [Flow], packets: usize, most: u32, held: u32) -> Outcome {
    let mut idle = 0;
    for _ in 0..packets * flows.len() * 4 {
        let mut moved = false;
        for flow in flows.iter_mut() {
            moved |= acknowledge_arrived(t, flow, packets, most, held)?;
        }
        if are_complete(flows, packets) {
            break;
        }
        if !moved {
            idle += 1;
            t.pause(t.grace())?;
        }
        // This is well before the device gives a packet up.
        if idle > 40 {
            break;
        }
    }
    Ok(())
}

/// Receives packets of a write of `packets` packets, and acknowledges up to `most` of them, but not the
/// newest. Returns whether it acknowledged any.
fn acknowledge_arrived(
    t: &mut Test<'_>,
    flow: &mut Flow,
    packets: usize,
    most: u32,
    held: u32,
) -> Result<bool, Stop> {
    let now = t.now();
    flow.watch_until(t, now)?;
    let held = if flow.count() as usize == packets { 0 } else { held };
    let mut left = most;
    while left > 0 && flow.acked() + held < flow.count() && flow.target.times(flow.acked()) > 0 {
        flow.acknowledge(t, &Answers::default())?;
        left -= 1;
    }
    Ok(left < most)
}

/// Returns the first packet of the next context that the device opens, and serves the others until then.
fn next_context(t: &mut Test<'_>, flows: &mut [Flow], packets: usize) -> Result<Option<RxPacket>, Stop> {
    let until = t.now() + t.later();
    while t.now() < until {
        let open: Vec<_> = flows.iter().map(|flow| flow.target.pdc.remote).collect();
        let opens = |seen: &RxPacket| {
            seen.request().filter(|request| request.syn() && !open.contains(&Some(request.spdcid())))
        };
        let grace = t.grace();
        if let Some((seen, _)) = t.wait(grace, opens)? {
            return Ok(Some(seen));
        }
        for flow in flows.iter_mut() {
            acknowledge_arrived(t, flow, packets, 4, HELD)?;
        }
    }
    Ok(None)
}

/// Requires the end of the operation of a failed context. A device that retries it on another context breaks
/// another requirement.
fn need_failed_operation(t: &mut Test<'_>, flow: &Flow) -> Outcome {
    if t.completion(flow.operation, t.soon())?.is_some() {
        return Ok(());
    }
    let opens = |seen: &RxPacket| seen.request().filter(|request| request.syn()).map(drop);
    let why = match t.wait(Duration::ZERO, opens)? {
        Some(_) => "the device retries the operation of the failed context",
        None => "the operation of the failed context has not ended",
    };
    Err(Stop::Inconclusive(why.into()))
}
