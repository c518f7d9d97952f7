//! Steps that rules of congestion control share: long writes of the device, the replies of a network and a
//! destination, and grants of credit.

use crate::flow::{Answers, Flow};
use crate::prelude::*;
use crate::rules::steps::full_packet_size;
use uet_wire::Units24;
use uet_wire::pds::{Pds, PdsBuf};
use uet_wire::registry::CcType;

/// The algorithms that the device runs.
pub(super) const ALGORITHMS: Axis<&str> =
    axis("algorithms").needing(&[("nscc", "nscc", &[]), ("both", "both", &[RCCC])]);

/// The place where packets are trimmed.
pub(super) const HOP: Axis<NackCode> =
    axis("trimmed").values(&[("fabric", NackCode::TRIMMED), ("last-hop", NackCode::TRIMMED_LASTHOP)]);

/// The number of units after which the counters of credit and demand wrap.
pub(super) const WRAP: u32 = 1 << 24;

/// A timeout in nanoseconds that ends no rule before its last answer.
pub(super) const LONG_TIMEOUT: u64 = 50_000_000;

// ---- Windows of NSCC.

/// Starts a write of 24 maximum windows on a device that runs NSCC. Returns it and the maximum window.
pub(super) fn long_flow(t: &mut Test<'_>) -> Result<(Flow, u64), Stop> {
    flow_of_windows(t, 24)
}

/// Starts a write of this number of maximum windows on a device that runs NSCC. Returns it and the maximum
/// window.
pub(super) fn flow_of_windows(t: &mut Test<'_>, windows: u64) -> Result<(Flow, u64), Stop> {
    t.congestion_or_both("nscc")?;
    slowed_flow(t, windows)
}

/// Starts a write of 24 maximum windows on a device that runs these algorithms.
pub(super) fn flow_under(t: &mut Test<'_>, algorithms: &str) -> Result<Flow, Stop> {
    t.congestion(algorithms)?;
    Ok(slowed_flow(t, 24)?.0)
}

/// Starts a write with longer timers, on a network whose round trip is measured.
fn slowed_flow(t: &mut Test<'_>, windows: u64) -> Result<(Flow, u64), Stop> {
    t.slowed()?;
    let round_trip = t.keeps_base_rtt()?;
    let max_window = t.bdp()? * 3 / 2;
    let packets = (windows * max_window / t.mtu() as u64).clamp(64, 4000) as usize;
    let mut flow = Flow::start(t, Mode::Rud, packets)?;
    flow.way = round_trip;
    Ok((flow, max_window))
}

/// Fills the window, acknowledges one packet, and fills it again. With RCCC, the first ACK lets the suite
/// grant credit.
pub(super) fn fill_window(t: &mut Test<'_>, flow: &mut Flow) -> Outcome {
    flow.fill(t)?;
    flow.acknowledge(t, &Answers::default())?;
    flow.fill(t)
}

/// Starts a write that fills its window. Returns it and the maximum window.
pub(super) fn flow_with_full_window(t: &mut Test<'_>) -> Result<(Flow, u64), Stop> {
    let (mut flow, max_window) = long_flow(t)?;
    fill_window(t, &mut flow)?;
    Ok((flow, max_window))
}

/// Continues for this time with these answers, then without any until ACKs that left together have filled the
/// window again. Returns what [`Flow::run`] does, and requires this number of packets in flight.
pub(super) fn run_until_full(
    t: &mut Test<'_>,
    flow: &mut Flow,
    span: Duration,
    answers: &Answers,
    least: u32,
) -> Result<u64, Stop> {
    let most = flow.run(t, span, answers)?;
    let refill = t.base_rtt()? / 4;
    watch_for(t, flow, refill)?;
    need_in_flight(flow, least)?;
    Ok(most)
}

/// Requires this number of packets in flight; otherwise, the rule is inconclusive.
pub(super) fn need_in_flight(flow: &Flow, least: u32) -> Outcome {
    match flow.count() - flow.acked() {
        count if count < least => Err(Stop::Inconclusive(format!(
            "only {count} packets are in flight: too few to judge a window by"
        ))),
        _ => Ok(()),
    }
}

/// Returns the answers of a network without a queue, and the round-trip time with them. That time is longer
/// than the configured one, so that the device learns no smaller one. It is below the target, which lies at
/// least 0.75 base round trips above.
pub(super) fn timely_answers(t: &Test<'_>, flow: &Flow) -> Result<(Answers, Duration), Stop> {
    let round = t.round_trips(1)?.mul_f64(1.25);
    Ok((Answers { delay: round.saturating_sub(flow.way), ..Answers::default() }, round))
}

/// Returns the answers of a network with a long queue.
pub(super) fn late_answers(t: &Test<'_>) -> Result<Answers, Stop> {
    Ok(Answers { delay: t.round_trips(4)?, ..Answers::default() })
}

/// Sends late, marked ACKs until the window is small. Returns the most bytes in flight at the end.
pub(super) fn shrink_by_marks(t: &mut Test<'_>, flow: &mut Flow) -> Result<u64, Stop> {
    let answers = Answers { marked: true, ..late_answers(t)? };
    flow.run(t, answers.delay * 16, &answers)
}

/// Refuses half of the packets in flight with this code. Returns the number of packets that leave after that
/// and before the timeout, and the number of refused packets.
pub(super) fn refuse_half(t: &mut Test<'_>, flow: &mut Flow, code: NackCode) -> Result<(u32, u32), Stop> {
    fill_window(t, flow)?;
    need_in_flight(flow, 8)?;
    let (count, first) = (flow.count(), flow.acked());
    let half = (count - first) / 2;
    let before = flow.target.got.len();
    for n in first..first + half {
        flow.refuse(t, code, n)?;
    }
    watch_for(t, flow, t.rto() / 4)?;
    Ok(((flow.target.got.len() - before) as u32, half))
}

/// Expects that trims at the last hop leave the window of NSCC unchanged while RCCC runs too.
pub(super) fn expect_window_after_last_hop_trims(t: &mut Test<'_>) -> Outcome {
    // The window is full, so each packet that leaves takes the place of a trimmed one.
    let mut flow = flow_under(t, "both")?;
    let (left, half) = refuse_half(t, &mut flow, NackCode::TRIMMED_LASTHOP)?;
    let least = Bound::from(half.saturating_sub(1)).tolerating("one packet");
    t.at_least(CC_TRIM_003, "packets that leave after trims at the last hop", least, left);
    Ok(())
}

/// Receives packets for this time, without an answer.
pub(super) fn watch_for(t: &mut Test<'_>, flow: &mut Flow, during: Duration) -> Outcome {
    let end = t.now() + during;
    flow.watch_until(t, end)
}

/// Waits for a request that opens a context. From the second round on, `requirement` demands one.
pub(super) fn opening_request(
    t: &mut Test<'_>,
    requirement: &Requirement,
    round: u32,
) -> Result<RxPacket, Stop> {
    let opens = |seen: &RxPacket| seen.request().filter(|request| request.syn());
    let within = t.later();
    let (opened, _) = match round {
        0 => t.need("a request that opens a context", within, opens)?,
        _ => t.expect(requirement, "a request that opens the next context", within, opens)?,
    };
    Ok(opened)
}

/// Starts a write of two windows on a new context, and lets it fill its window.
pub(super) fn flow_on_new_context(t: &mut Test<'_>, round: u32) -> Result<Flow, Stop> {
    let window = t.bdp()? * 3 / 2 / t.mtu() as u64;
    let packets = (window as usize * 2).clamp(16, 400);
    t.forget();
    let peer = t.peer(0)?;
    let operation = t.post(post(PostKind::Write, peer, packets * t.mtu()))?;
    let opened = opening_request(t, CC_WINDOW_004, round)?;
    let mut flow = Flow::of(t, opened, operation)?;
    flow.fill(t)?;
    Ok(flow)
}

/// The growth of a window that the parameters of section 3.6.13 give.
pub(super) struct Growth {
    /// By fair increase, in bytes per round trip.
    pub(super) fair: f64,
    /// By proportional increase, in bytes per round trip and second below the target.
    pub(super) slope: f64,
    /// By fast increase, as a share of the acknowledged bytes.
    pub(super) share: f64,
    /// By eta, in bytes per base round trip.
    pub(super) eta: f64,
    /// The base round trip, in seconds.
    pub(super) base: f64,
}

impl Growth {
    /// Returns the growth for the parameters that the device reports. Others have the defaults of the
    /// specification.
    pub(super) fn of(t: &Test<'_>) -> Result<Self, Stop> {
        let (mtu, scaling_a) = (t.mtu() as f64, t.bdp()? as f64 / 150_000.0);
        // A device that does not compute a value reports 0.
        let or = |name, default| t.reported_fraction(name).filter(|value| *value > 0.0).unwrap_or(default);
        Ok(Growth {
            fair: or("fi", 5.0 * mtu * scaling_a),
            slope: or("alpha", 4.0 * scaling_a * mtu / 12e-6),
            share: or("fi_scale", 0.25 * scaling_a),
            eta: or("eta", 0.15 * mtu * scaling_a),
            base: t.base_rtt()?.as_secs_f64(),
        })
    }
}

// ---- Credit of RCCC.

/// Starts a long write on a device that runs these algorithms, without automatic grants.
pub(super) fn credit_flow(t: &mut Test<'_>, algorithms: &str, mode: Mode) -> Result<Flow, Stop> {
    t.congestion(algorithms)?;
    t.slowed()?;
    t.auto_credit = false;
    let packets = (8 * t.bdp()? / t.mtu() as u64).clamp(64, 800) as usize;
    Flow::start(t, mode, packets)
}

/// Starts a long write, and acknowledges its packets without a grant until the source has no credit.
pub(super) fn flow_without_credit(t: &mut Test<'_>) -> Result<Flow, Stop> {
    let mut flow = credit_flow(t, "rccc", Mode::Rud)?;
    for _ in 0..2 {
        flow.fill(t)?;
        grant_by_ack(t, &flow, 0)?;
    }
    Ok(flow)
}

/// Acknowledges all packets that have arrived, with this cumulative credit.
pub(in crate::rules) fn grant_by_ack(t: &mut Test<'_>, flow: &Flow, credit: u32) -> Outcome {
    let packet = with_credit(flow.answer(flow.count(), &Answers::default())?, credit)?;
    t.send(&flow.target.pdc, &packet)
}

/// Replaces the state of NSCC in an ACK_CC by this cumulative credit.
pub(in crate::rules) fn with_credit(mut packet: UetBuf, credit: u32) -> Result<UetBuf, Stop> {
    if let Some(PdsBuf::AckCc(header)) = packet.pds {
        let header = header.edit().cc_type(CcType::CREDIT);
        let header = header.credit(Units24::default() + credit).ooo_count(0);
        packet.pds = Some(header.done()?.into());
    }
    Ok(packet)
}

/// Sends a CREDIT control packet with this cumulative credit.
pub(in crate::rules) fn grant_by_control(t: &mut Test<'_>, target: &Target, credit: u32) -> Outcome {
    let packet = target.pdc.control(CtlType::CREDIT, Psn(0), credit)?;
    t.send(&target.pdc, &packet)
}

/// Receives the packets that a grant lets leave. Returns the number of their bytes.
pub(super) fn bytes_after_grant(t: &mut Test<'_>, flow: &mut Flow) -> Result<u64, Stop> {
    let before = flow.bytes();
    flow.fill(t)?;
    Ok(flow.bytes() - before)
}

/// Receives the packets that a grant of `units` lets leave, and checks the number of their bytes.
pub(in crate::rules) fn expect_granted_bytes(
    t: &mut Test<'_>,
    requirement: &Requirement,
    units: u32,
    flow: &mut Flow,
) -> Outcome {
    let bytes = bytes_after_grant(t, flow)?;
    check_granted_bytes(t, requirement, units, bytes);
    Ok(())
}

/// Checks that the source used a grant of `units`, and exceeded it by at most one packet.
pub(super) fn check_granted_bytes(t: &mut Test<'_>, requirement: &Requirement, units: u32, bytes: u64) {
    let most = Bound::from(u64::from(units) * 256 + full_packet_size(t)).tolerating("a packet");
    t.at_most(requirement, "bytes sent for the grant", most, bytes);
    t.at_least(requirement, "bytes sent for the grant", 1, bytes);
}

/// Returns a short time without credit. After a longer one, a source may send a packet to find out if its
/// destination still has the context.
pub(in crate::rules) fn short_silence(t: &Test<'_>) -> Result<Duration, Stop> {
    Ok(t.grace().min(t.base_rtt()? * 8))
}

/// Returns the demand that a request carries.
pub(super) fn credit_target(seen: &RxPacket) -> Option<Units24> {
    match seen.uet().pds? {
        Pds::RequestCc(header) => Some(header.credit_target()),
        _ => None,
    }
}
