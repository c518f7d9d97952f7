//! Other state of a source than the size of its window (section 3.6.13): bytes in flight, the base round trip
//! and the mode of growth.

use super::steps::{
    ALGORITHMS, Growth, LONG_TIMEOUT, fill_window, flow_of_windows, flow_with_full_window, late_answers,
    need_in_flight, shrink_by_marks,
};
use crate::flow::{Answers, Flow};
use crate::prelude::*;
use crate::rules::steps::{check_in_flight, full_packet_size};
use uet_control::ClosePdc;

/// The end of the fast growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interruption {
    /// Unmarked ACKs with a delay below the target.
    Delay,
    /// Late, marked ACKs.
    Decrease,
}

const INTERRUPTION: Axis<Interruption> =
    axis("after").values(&[("decrease", Interruption::Decrease), ("delay", Interruption::Delay)]);

/// True for a receiver penalty while the round trip is measured. The window that it will restore is then too
/// large.
const PENALTY: Axis<bool> = axis("penalty").values(&[("none", false), ("during", true)]);

/// The number of packets after a missing one that rcvd_bytes counts. The ACK names the last of them.
const AHEAD: Axis<u32> = axis("counted").values(&[("4", 4), ("5", 5), ("6", 6)]);

/// The code of NACKs for packets that have arrived.
const NACK: Axis<NackCode> =
    axis("nack").values(&[("ses-procg", NackCode::RCVD_SES_PROCG), ("pkt-not-rcvd", NackCode::PKT_NOT_RCVD)]);

/// The number of packets whose bytes a wrong source counts twice.
const DOUBLE_COUNTED: u32 = 4;

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[NSCC]).over(&[&MODE, &CARRIER])
}

pub(super) const RULES: &[Rule] = &[
    rule("nscc-state/rcvd-bytes", "rcvd_bytes, not the cumulative PSN, determines the bytes in flight")
        .checks(&[CC_RCVD_004, CC_WINDOW_001])
        .over(&[&AHEAD, &MODE, &CARRIER, &START])
        .measure(|t| {
            let ahead = t.value(&AHEAD);
            let (mut flow, max_window) = flow_with_full_window(t)?;
            need_in_flight(&flow, 8)?;
            let (missing, before) = (flow.acked(), flow.count());
            let last = missing + ahead;
            let target = &flow.target;
            let counted = target.counted(target.bytes_before(last + 1) - flow.bytes_of(missing));
            target.answer(t, AckBuilder { nscc: Some((counted, 1)), ..target.naming(last, missing) })?;
            // The count is in units of 256 bytes, so it may be short by one packet. The source may infer a
            // loss of the missing packet and retransmit it.
            let next = target.psn(before + ahead - 3);
            let within = t.rto() / 2;
            t.expect(CC_RCVD_004, &format!("PSN {next}, for which there is room"), within, |seen| {
                seen.request().filter(|request| request.psn() == next)
            })?;
            // The cumulative PSN covers the counted packets later, which frees no bytes again.
            for _ in missing..=last {
                flow.acknowledge(t, &Answers::default())?;
            }
            flow.fill(t)?;
            check_in_flight(t, CC_WINDOW_001, max_window, flow.in_flight());
            Ok(())
        }),
    rule("nscc-state/sack-then-nack", "A packet that gets a SACK bit and then a NACK frees its bytes once")
        .checks(&[CC_WINDOW_001])
        .needs(&[NSCC, RUD])
        .over(&[&NACK, &CARRIER, &START])
        .measure(|t| {
            // The first packet is missing, and the next ones have arrived.
            t.try_configure("rto_init_time", LONG_TIMEOUT)?;
            let (mut flow, max_window) = flow_with_full_window(t)?;
            need_in_flight(&flow, 2 * DOUBLE_COUNTED)?;
            let (missing, before, target) = (flow.acked(), flow.count(), &flow.target);
            let arrived = missing + 1..=missing + DOUBLE_COUNTED;
            let bytes = target.bytes_before(missing + DOUBLE_COUNTED + 1) - flow.bytes_of(missing);
            let bits = ((1 << DOUBLE_COUNTED) - 1) << 1;
            let ack = AckBuilder {
                response: None,
                nscc: Some((target.counted(bytes), 1)),
                ..target.acking(missing - 1)
            };
            target.answer(t, ack.sack(target.psn(missing), bits))?;
            flow.fill(t)?;
            if flow.count() < before + DOUBLE_COUNTED / 2 {
                return Err(Stop::Inconclusive("the SACK bits free no bytes".into()));
            }
            for n in arrived {
                flow.refuse(t, t.value(&NACK), n)?;
            }
            flow.fill(t)?;
            check_about_in_flight(t, max_window, flow.bytes() - bytes);
            Ok(())
        }),
    rule("nscc-state/close-nack", "A NACK of CLOSE_COMMAND takes no packet of other contexts out of flight")
        .checks(&[CC_WINDOW_001])
        .measure(|t| {
            // As many packets as failed contexts stay in flight. A source that counts a packet down for each
            // CLOSE_COMMAND finds nothing in flight, and fills the window again.
            t.congestion_or_both("nscc")?;
            t.slowed()?;
            t.try_configure("rto_init_time", LONG_TIMEOUT)?;
            let (mode, max_window) = (t.value(&MODE), t.bdp()? * 3 / 2);
            let mut others = Vec::new();
            for job in 0..DOUBLE_COUNTED {
                let peer = t.peer_of_job(102 + job)?;
                others.push((peer, Target::established(t, peer, mode)?));
            }
            let mut flow = Flow::start(t, mode, (4 * max_window / t.mtu() as u64).clamp(64, 4000) as usize)?;
            fill_window(t, &mut flow)?;
            need_in_flight(&flow, 2 * DOUBLE_COUNTED)?;
            for (peer, other) in others {
                t.call(ClosePdc { peer, mode, class: 0 })?;
                let closes = |seen: &RxPacket| other.control(seen, CtlType::CLOSE_COMMAND);
                let (_, command) = t.need("CLOSE_COMMAND", t.later(), closes)?;
                t.send(&other.pdc, &other.pdc.nack(NackCode::CLOSING_IN_ERR, command.psn())?)?;
            }
            while flow.acked() + DOUBLE_COUNTED < flow.count() {
                flow.acknowledge(t, &Answers::default())?;
            }
            flow.fill(t)?;
            check_about_in_flight(t, max_window, flow.in_flight());
            Ok(())
        }),
    rule("nscc-state/next-context", "A context on a reused PDCID counts rcvd_bytes from its own start")
        .checks(&[CC_RCVD_005])
        .needs(&[NSCC, CLOSE])
        .over(&[&ALGORITHMS, &MODE, &START])
        .measure(|t| {
            // With a pool of one PDCID, the device reuses it at once. Each message is longer than a window,
            // and the first is the longest.
            t.congestion(t.value(&ALGORITHMS))?;
            t.slowed()?;
            t.try_configure("general_pdcs", 1)?;
            let (peer, mode) = (t.peer(0)?, t.value(&MODE));
            let window = (t.bdp()? * 3 / 2 / t.mtu() as u64).clamp(8, 200) as usize;
            for packets in [4 * window, 2 * window, 2 * window] {
                let mut flow = Flow::start(t, mode, packets)?;
                let mut idle = 0;
                while (flow.acked() as usize) < packets && idle < 2 {
                    let before = flow.count();
                    flow.fill(t)?;
                    for _ in flow.acked()..flow.count() {
                        flow.acknowledge(t, &Answers::default())?;
                    }
                    idle = if flow.count() == before { idle + 1 } else { 0 };
                }
                t.check(CC_RCVD_005, "acknowledged packets of a context", packets as u32, flow.acked());
                t.ends(CC_RCVD_005, flow.operation, Status::Ok)?;
                flow.target.end(t, peer)?;
            }
            Ok(())
        }),
    rule("nscc-state/shorter-rtt", "A round trip below base_rtt reduces the maximum window")
        .checks(&[CC_WINDOW_002])
        .over(&[&PENALTY, &MODE, &CARRIER])
        .measure(|t| {
            t.congestion_or_both("nscc")?;
            let round_trip = t.keeps_base_rtt()?;
            if t.base_rtt()? < 8 * round_trip {
                t.try_configure("base_rtt", (8 * round_trip).as_nanos() as u64)?;
            }
            let (mut flow, max_window) = flow_of_windows(t, 24)?;
            let rate = t.reported("sender_rate").unwrap_or(0) as f64;
            let span = (flow.way * 12).max(t.base_rtt()?);
            let penalty = if t.value(&PENALTY) { 100 } else { 0 };
            flow.run(t, span, &Answers { penalty, ..Answers::default() })?;
            // A slow device measures longer round trips than that of a packet of one byte.
            let round_trip = flow.way.max(shortest_reaction(t, &mut flow)?);
            let needed = rate * round_trip.as_secs_f64() / 8.0 * 1.5;
            let most = 2 * needed as u64 + 2 * full_packet_size(t);
            require(2 * most <= max_window, "a round trip takes about as long as base_rtt")?;
            flow.fill(t)?;
            if t.value(&PENALTY) {
                // The end of the penalty restores the window, at most the maximum of today.
                need_in_flight(&flow, 1)?;
                flow.acknowledge(t, &Answers { restore: true, unmeasured: true, ..Answers::default() })?;
                flow.fill(t)?;
            }
            if flow.in_flight() == 0 {
                return Err(Stop::Inconclusive("the write has ended".into()));
            }
            let bound = Bound::from(most)
                .from_parameter("1.5 times sender_rate times the round trip")
                .tolerating("a factor of 2, and two packets");
            t.at_most(CC_WINDOW_002, "bytes in flight after short round trips", bound, flow.in_flight());
            Ok(())
        }),
    rule("nscc-state/fast-growth", "After delay or a decrease, fast growth waits for a window without delay")
        .checks(&[CC_QUAD_001])
        .over(&[&INTERRUPTION, &MODE, &CARRIER])
        .measure(|t| {
            // The script counts whole packets, so growth shows only in a large window.
            for name in ["sender_rate", "receiver_rate"] {
                t.try_configure(name, 800_000_000_000u64)?;
            }
            let (mut flow, max_window) = flow_of_windows(t, 16)?;
            let (growth, base) = (Growth::of(t)?, t.round_trips(1)?);
            // A little above base_rtt, so that the device measures no shorter round trip.
            let delay_of = |span: Duration, measured: Duration| {
                span.saturating_sub(measured) + Duration::from_nanos(384)
            };
            let prompt = Answers { delay: delay_of(base, flow.way), ..Answers::default() };
            shrink_by_marks(t, &mut flow)?;
            let mut rounds = 0;
            while flow.run(t, base, &prompt)? < max_window / 3 {
                rounds += 1;
                if rounds > 100 {
                    return Err(Stop::Inconclusive(
                        "the window has not grown to a third of the maximum".into(),
                    ));
                }
            }
            let (answers, span) = match t.value(&INTERRUPTION) {
                Interruption::Delay => {
                    (Answers { delay: delay_of(base.mul_f64(1.5), flow.way), ..prompt }, base * 3)
                }
                Interruption::Decrease => (Answers { marked: true, ..late_answers(t)? }, base * 6),
            };
            flow.run(t, span, &answers)?;
            // Marks without delay neither grow nor shrink the window.
            let before = flow.run(t, base * 8, &Answers { marked: true, ..prompt })?;
            // The packets that one window of ACKs lets leave arrive in this time.
            let after = flow.run(t, base + flow.way, &prompt)?;
            let expected = 2.0 * (growth.slope * growth.base + 2.0 * growth.eta);
            let most = Bound::from(before + expected as u64 + 3 * full_packet_size(t))
                .from_parameter("alpha, eta and base_rtt")
                .tolerating("a factor of 2, and three packets");
            t.at_most(CC_QUAD_001, "bytes in flight after a window without delay", most, after);
            Ok(())
        }),
];

/// Returns the shortest time from an ACK to the next packet of the device.
fn shortest_reaction(t: &mut Test<'_>, flow: &mut Flow) -> Result<Duration, Stop> {
    let mut shortest = None;
    for _ in 0..8 {
        flow.fill(t)?;
        if flow.acked() == flow.count() {
            break;
        }
        let sent = t.now();
        flow.acknowledge(t, &Answers::default())?;
        let until = sent + t.grace();
        if let Some(seen) = flow.next(t, until)? {
            shortest = shortest.into_iter().chain([seen.at - sent]).min();
        }
    }
    Ok(shortest.unwrap_or_default())
}

/// Checks the bytes in flight. Source and destination may disagree about two packets.
fn check_about_in_flight(t: &mut Test<'_>, max_window: u64, seen: u64) {
    let bound = Bound::from(max_window + 2 * full_packet_size(t))
        .from_parameter("1.5 times the rate times base_rtt")
        .tolerating("two packets");
    t.at_most(CC_WINDOW_001, "bytes in flight", bound, seen);
}
