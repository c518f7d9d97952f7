//! State of congestion control that has to be kept apart, forgotten or held at its largest value (sections
//! 3.6.12 to 3.6.14).

use crate::flow::{Answers, Flow, nominal};
use crate::prelude::*;
use uet_wire::Units24;
use uet_wire::pds::PdsBuf;
use uet_wire::registry::CcType;

/// How many contexts of the device lead to the suite.
const CONTEXTS: Axis<u32> = axis("contexts").values(&[("two", 2), ("three", 3)]);

/// True if the contexts are acknowledged in turn, packet by packet; otherwise one window after the other.
const ORDER: Axis<bool> = axis("acks").values(&[("in-turn", true), ("in-blocks", false)]);

const ALGORITHMS: Axis<&str> =
    axis("algorithms").needing(&[("nscc", "nscc", &[]), ("both", "both", &[RCCC])]);

const DEATH: Axis<NackCode> = axis("death")
    .values(&[("closing-in-error", NackCode::CLOSING_IN_ERR), ("response-lost", NackCode::GTD_RESP_UNAVAIL)]);

/// Events between the small window and rc = 1.
const PENALTIES: Axis<bool> = axis("between").values(&[("nothing", false), ("another-penalty", true)]);

/// How long a response waits. The field ends at 8.38848 ms, and would wrap at twice that.
const WAIT: Axis<u64> =
    axis("wait").values(&[("11-ms", 11_000), ("16-ms", 16_000), ("18-ms", 18_000), ("45-ms", 45_000)]);

/// How many packets leave on the credit of the start before the first answer.
const BURST: Axis<u32> = axis("before").values(&[("one", 1), ("four", 4)]);

/// Begins a rule with the usual needs of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[NSCC])
}

pub(super) const RULES: &[Rule] = &[
    rule("cc-state/several-contexts", "Contexts to one destination complete, each with its own rcvd_bytes")
        .checks(&[CC_RCVD_005])
        .over(&[&CONTEXTS, &ORDER, &ALGORITHMS, &MODE])
        .measure(|t| {
            let (count, in_turn, mode) = (t.value(&CONTEXTS), t.value(&ORDER), t.value(&MODE));
            t.congestion(t.value(&ALGORITHMS))?;
            let window = t.bdp()? * 3 / 2 / full(t);
            // The ACKs of a block are late, so the window may close by half.
            require(window >= u64::from(count * HELD) * 5 / 2, "the window holds too few packets")?;
            let packets = (window as usize * 2).clamp(32, 200);
            let mut flows: Vec<Flow> = Vec::new();
            for n in 0..count {
                let peer = t.peer_of_job(101 + n)?;
                let operation = t.post(Post { mode, ..post(PostKind::Write, peer, packets * t.mtu()) })?;
                // The window may be full: then the first packet of a context waits for the others.
                match next_context(t, &mut flows, packets)? {
                    Some(first) => flows.push(Flow::of(t, first, operation)?),
                    None if n == 0 => return Err(Stop::Inconclusive("the device opens no context".into())),
                    None => {
                        t.at_least(CC_RCVD_005, "contexts that send", count, n);
                        return Err(Stop::Failed);
                    }
                }
            }
            let rounds = packets as u32 * count * 4;
            let mut idle = 0;
            for _ in 0..rounds {
                let mut moved = false;
                for flow in &mut flows {
                    moved |= take(t, flow, packets, if in_turn { 1 } else { u32::MAX })?;
                }
                if flows.iter().all(|flow| flow.acked() as usize == packets) {
                    break;
                }
                if !moved {
                    idle += 1;
                    t.pause(t.grace())?;
                }
                // Well before anything is given up.
                if idle > 40 {
                    break;
                }
            }
            for flow in &flows {
                t.check(CC_RCVD_005, "packets of a context that got through", packets as u32, flow.acked());
                t.ends(CC_RCVD_005, flow.operation, Status::Ok)?;
            }
            Ok(())
        }),
    rule("cc-state/failed-context", "The context after a failed one has the full window again")
        .checks(&[CC_WINDOW_004])
        .over(&[&DEATH, &MODE])
        .measure(|t| {
            // The device fills the window again and again, and each time its context ends in error.
            t.congestion_or_both("nscc")?;
            let (code, mode) = (t.value(&DEATH), t.value(&MODE));
            let window = t.bdp()? * 3 / 2 / t.mtu() as u64;
            let packets = (window as usize * 2).clamp(16, 400);
            let mut first = 0;
            for round in 0..4 {
                t.forget();
                let peer = t.peer(0)?;
                let operation = t.post(Post { mode, ..post(PostKind::Write, peer, packets * t.mtu()) })?;
                let opens = |seen: &RxPacket| seen.request().filter(|request| request.syn());
                let within = t.later();
                let what = "a request that opens the next context";
                let (opened, _) = match round {
                    0 => t.need(what, within, opens)?,
                    _ => t.expect(CC_WINDOW_004, what, within, opens)?,
                };
                let mut flow = Flow::of(t, opened, operation)?;
                flow.fill(t)?;
                match round {
                    0 => first = flow.count(),
                    _ => {
                        let least = Bound::from(first * 3 / 4).tolerating("a quarter");
                        let what = "packets that leave on a new context before the first ACK";
                        t.at_least(CC_WINDOW_004, what, least, flow.count());
                    }
                }
                flow.refuse(t, code, 0)?;
                let within = t.soon();
                // An operation that is tried again has a context of its own: that breaks another requirement.
                let again = |seen: &RxPacket| seen.request().filter(|request| request.syn()).map(drop);
                if t.completion(flow.operation, within)?.is_none() {
                    let why = match t.wait(Duration::ZERO, again)? {
                        Some(_) => "the device tries the operation of the ended context again",
                        None => "the operation of the ended context has not ended",
                    };
                    return Err(Stop::Inconclusive(why.into()));
                }
                t.settle()?;
            }
            Ok(())
        }),
    rule("cc-state/second-penalty-end", "A second rc = 1 does not undo the decrease that marks have caused")
        .checks(&[CC_PENALTY_003])
        .over(&[&PENALTIES, &MODE])
        .measure(|t| {
            // Penalty, rc = 1, marks, perhaps another penalty, rc = 1 again.
            t.congestion_or_both("nscc")?;
            t.slowed()?;
            let way = t.keeps_base_rtt()?;
            let largest = t.bdp()? * 3 / 2;
            let packets = (40 * largest / t.mtu() as u64).clamp(64, 4000) as usize;
            let mut flow = Flow::start(t, t.value(&MODE), packets)?;
            flow.way = way;
            let round = t.round_trips(1)?.mul_f64(1.25);
            let answers = Answers { delay: round.saturating_sub(flow.way), ..Answers::default() };
            let large = flow.run(t, round * 8, &answers)?;
            flow.run(t, round * 10, &Answers { penalty: 120, ..answers })?;
            flow.run(t, round * 4, &Answers { restore: true, ..answers })?;
            let late = Answers { marked: true, delay: t.round_trips(4)?, ..Answers::default() };
            let small = flow.run(t, late.delay * 16, &late)?;
            if small * 2 > large {
                return Err(Stop::Inconclusive(format!(
                    "the window is {small} bytes after marks, {large} before"
                )));
            }
            // Marked, so that the window does not grow by itself.
            let marked = Answers { marked: true, ..answers };
            if t.value(&PENALTIES) {
                flow.run(t, round * 4, &Answers { penalty: 20, ..marked })?;
            }
            let after = flow.run(t, round * 4, &Answers { restore: true, ..marked })?;
            let most = Bound::from((small + large) / 2).tolerating("half of the way to the earlier window");
            t.at_most(CC_PENALTY_003, "bytes in flight after the second rc = 1", most, after);
            Ok(())
        }),
    rule("cc-state/last-hop-trims", "Trims at the last hop leave the window unchanged if RCCC runs too")
        .checks(&[CC_TRIM_003])
        .needs(&[RCCC, NSCC])
        .over(&[&MODE])
        .measure(|t| {
            // The window of NSCC is full: each packet that leaves takes the place of a trimmed one.
            t.congestion("both")?;
            t.slowed()?;
            t.keeps_base_rtt()?;
            let packets = (24 * t.bdp()? * 3 / 2 / t.mtu() as u64).clamp(64, 4000) as usize;
            let mut flow = Flow::start(t, t.value(&MODE), packets)?;
            flow.fill(t)?;
            flow.acknowledge(t, &Answers::default())?;
            flow.fill(t)?;
            let (count, first) = (flow.count(), flow.acked());
            if count - first < 8 {
                return Err(Stop::Inconclusive("too few packets are in flight to judge a window by".into()));
            }
            let (half, before) = ((count - first) / 2, flow.target.got.len());
            for n in first..first + half {
                flow.refuse(t, NackCode::TRIMMED_LASTHOP, n)?;
            }
            let end = t.now() + t.rto() / 4;
            flow.watch_until(t, end)?;
            let left = (flow.target.got.len() - before) as u32;
            let least = Bound::from(half.saturating_sub(1)).tolerating("one packet");
            t.at_least(CC_TRIM_003, "packets that leave after trims at the last hop", least, left);
            Ok(())
        }),
    rule("cc-state/long-service-time", "A service_time above the range of the field is 0xFFFF or 0")
        .checks(&[CC_SERVICE_002])
        .needs(&[RUD, WRITE, NSCC])
        .over(&[&WAIT])
        .run(|t| {
            // The last packet of a write is answered once the first has come, long after it.
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
            // The first answer ends the speculation, and grants nothing: what is left of the credit of the
            // start is 0. A device that keeps it may send far more than the one packet by which 0 would be
            // overdrawn.
            t.congestion("rccc")?;
            t.slowed()?;
            t.auto_credit = false;
            let (peer, mode, burst) = (t.peer(0)?, t.value(&MODE), t.value(&BURST));
            require(t.bdp()? >= 16 * full(t), "the network holds too few packets")?;
            let operation = t.post(Post { mode, ..post(PostKind::Write, peer, burst as usize * 1000) })?;
            let within = t.later();
            let opens = |seen: &RxPacket| seen.request().filter(|request| request.syn());
            let (opened, _) = t.need("a request that opens a context", within, opens)?;
            let mut flow = Flow::of(t, opened, operation)?;
            flow.fill(t)?;
            let mut packet = flow.answer(flow.count(), &Answers::default())?;
            if let Some(PdsBuf::AckCc(header)) = packet.pds {
                let header = header.edit().cc_type(CcType::CREDIT).credit(Units24::default()).ooo_count(0);
                packet.pds = Some(header.done()?.into());
            }
            t.send(&flow.target.pdc, &packet)?;
            let highest = flow.count();
            if t.completion(operation, t.soon())?.is_none() {
                return Err(Stop::Inconclusive("the acknowledged write has not ended".into()));
            }
            t.post(Post { mode, ..post(PostKind::Write, peer, 8 * t.mtu()) })?;
            // Not for long: a source that waits in vain may try whether the destination still knows it.
            let end = t.now() + t.grace().min(t.base_rtt()? * 8);
            flow.watch_until(t, end)?;
            match flow.count() - highest {
                2.. => skip("the device keeps the credit of its start after the first answer"),
                left => {
                    t.check(RCCC_CREDIT_001, "packets that leave without credit", 0, left);
                    Ok(())
                }
            }
        }),
];

/// The nominal size of a full packet.
fn full(t: &Test<'_>) -> u64 {
    nominal(t.mtu() + 16 + 44)
}

/// Packets of a context that stay in flight until all of it has come. A source that counts wrongly may start
/// anew when nothing is in flight.
const HELD: u32 = 3;

/// Takes in what has come of so many packets, and acknowledges up to `most` of them; whether there was one.
fn take(t: &mut Test<'_>, flow: &mut Flow, packets: usize, most: u32) -> Result<bool, Stop> {
    let now = t.now();
    flow.watch_until(t, now)?;
    let held = if flow.count() as usize == packets { 0 } else { HELD };
    let mut left = most;
    while left > 0 && flow.acked() + held < flow.count() && flow.target.times(flow.acked()) > 0 {
        flow.acknowledge(t, &Answers::default())?;
        left -= 1;
    }
    Ok(left < most)
}

/// The first packet of the next context that the device opens, while the others are served.
fn next_context(t: &mut Test<'_>, flows: &mut [Flow], packets: usize) -> Result<Option<RxPacket>, Stop> {
    let until = t.now() + t.later();
    while t.now() < until {
        let known: Vec<_> = flows.iter().map(|flow| flow.target.pdc.remote).collect();
        let opens = |seen: &RxPacket| {
            seen.request().filter(|request| request.syn() && !known.contains(&Some(request.spdcid())))
        };
        let grace = t.grace();
        if let Some((seen, _)) = t.wait(grace, opens)? {
            return Ok(Some(seen));
        }
        for flow in flows.iter_mut() {
            take(t, flow, packets, 4)?;
        }
    }
    Ok(None)
}
