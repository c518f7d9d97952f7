//! The state of a source that its ACKs change beside the window (section 3.6.13): bytes in flight, and the
//! base round trip.

use super::nscc::{congest, filled, flow_of, late, need_in_flight};
use super::nscc_over_time::Growth;
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

/// How many packets rcvd_bytes counts above one that is missing. The ACK names the last of them.
const AHEAD: Axis<u32> = axis("counted").values(&[("4", 4), ("5", 5), ("6", 6)]);

/// The code of NACKs for packets that have arrived.
const REFUSAL: Axis<NackCode> =
    axis("code").values(&[("busy", NackCode::RCVD_SES_PROCG), ("not-received", NackCode::PKT_NOT_RCVD)]);

/// A timeout in nanoseconds that comes after all packets are counted.
const LONG: u64 = 50_000_000;

/// Begins a rule with the usual needs of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[NSCC])
}

pub(super) const RULES: &[Rule] = &[
    rule("nscc-state/rcvd-bytes", "rcvd_bytes, not the cumulative PSN, determines the bytes in flight")
        .checks(&[CC_RCVD_004, CC_WINDOW_001])
        .over(&[&AHEAD, &MODE, &CARRIER, &START])
        .measure(|t| {
            let ahead = t.value(&AHEAD);
            let (mut flow, largest) = filled(t)?;
            need_in_flight(&flow, 8)?;
            let (missing, before) = (flow.acked(), flow.count());
            let last = missing + ahead;
            let target = &flow.target;
            let counted = target.counted(target.bytes_before(last + 1) - flow.bytes_of(missing));
            target.answer(t, AckBuilder { nscc: Some((counted, 1)), ..target.naming(last, missing) })?;
            // The count is in units, and so may come short of one packet. The missing packet may leave again as
            // lost.
            let next = target.psn(before + ahead - 3);
            let within = t.rto() / 2;
            t.expect(CC_RCVD_004, &format!("PSN {next}, for which there is room"), within, |seen| {
                seen.request().filter(|request| request.psn() == next)
            })?;
            // The counted packets are covered later, and make no room again.
            for _ in missing..=last {
                flow.acknowledge(t, &Answers::default())?;
            }
            flow.fill(t)?;
            check_in_flight(t, CC_WINDOW_001, largest, flow.in_flight());
            Ok(())
        }),
    rule("nscc-state/sack-then-nack", "A packet that gets a SACK bit and then a NACK frees its bytes once")
        .checks(&[CC_WINDOW_001])
        .needs(&[NSCC, RUD])
        .over(&[&REFUSAL, &CARRIER, &START])
        .measure(|t| {
            // The first packet is missing, and the next ones have arrived.
            t.try_configure("rto_init_time", LONG)?;
            let (mut flow, largest) = filled(t)?;
            need_in_flight(&flow, 2 * SOME)?;
            let (missing, before, target) = (flow.acked(), flow.count(), &flow.target);
            let arrived = missing + 1..=missing + SOME;
            let bytes = target.bytes_before(missing + SOME + 1) - flow.bytes_of(missing);
            let bits = ((1 << SOME) - 1) << 1;
            let named = AckBuilder {
                response: None,
                nscc: Some((target.counted(bytes), 1)),
                ..target.acking(missing - 1)
            };
            target.answer(t, named.sack(target.psn(missing), bits))?;
            flow.fill(t)?;
            if flow.count() < before + SOME / 2 {
                return Err(Stop::Inconclusive("the bits make no room".into()));
            }
            for n in arrived {
                flow.refuse(t, t.value(&REFUSAL), n)?;
            }
            flow.fill(t)?;
            about_in_flight(t, largest, flow.bytes() - bytes);
            Ok(())
        }),
    rule("nscc-state/close-nack", "A NACK of CLOSE_COMMAND takes no packet of other contexts out of flight")
        .checks(&[CC_WINDOW_001])
        .over(&[&MODE, &CARRIER])
        .measure(|t| {
            // As many packets as contexts have ended stay in flight. A source that has counted those packets down
            // finds nothing in flight, and fills the window once more.
            t.congestion_or_both("nscc")?;
            t.slowed()?;
            t.try_configure("rto_init_time", LONG)?;
            let (mode, largest) = (t.value(&MODE), t.bdp()? * 3 / 2);
            let mut others = Vec::new();
            for job in 0..SOME {
                let peer = t.peer_of_job(102 + job)?;
                others.push((peer, Target::established(t, peer, mode)?));
            }
            let mut flow = Flow::start(t, mode, (4 * largest / t.mtu() as u64).clamp(64, 4000) as usize)?;
            flow.fill(t)?;
            flow.acknowledge(t, &Answers::default())?;
            flow.fill(t)?;
            need_in_flight(&flow, 2 * SOME)?;
            for (peer, other) in others {
                t.call(ClosePdc { peer, mode, class: 0 })?;
                let closes = |seen: &RxPacket| other.control(seen, CtlType::CLOSE_COMMAND);
                let (_, command) = t.need("CLOSE_COMMAND", t.later(), closes)?;
                t.send(&other.pdc, &other.pdc.nack(NackCode::CLOSING_IN_ERR, command.psn())?)?;
            }
            while flow.acked() + SOME < flow.count() {
                flow.acknowledge(t, &Answers::default())?;
            }
            flow.fill(t)?;
            about_in_flight(t, largest, flow.in_flight());
            Ok(())
        }),
    rule("nscc-state/shorter-rtt", "A round trip below base_rtt reduces the maximum window")
        .checks(&[CC_WINDOW_002])
        .over(&[&MODE, &CARRIER])
        .measure(|t| {
            t.congestion_or_both("nscc")?;
            let way = t.keeps_base_rtt()?;
            if t.base_rtt()? < 8 * way {
                t.try_configure("base_rtt", (8 * way).as_nanos() as u64)?;
            }
            let (mut flow, largest) = flow_of(t, 24)?;
            let rate = t.reported("sender_rate").unwrap_or(0) as f64;
            let held = rate * flow.way.as_secs_f64() / 8.0 * 1.5;
            let most = 2 * held as u64 + 2 * full_packet_size(t);
            require(2 * most <= largest, "a round trip takes about as long as base_rtt")?;
            let span = (flow.way * 12).max(t.base_rtt()?);
            flow.run(t, span, &Answers::default())?;
            flow.fill(t)?;
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
            // Growth in whole packets shows only in a large window.
            for name in ["sender_rate", "receiver_rate"] {
                t.try_configure(name, 800_000_000_000u64)?;
            }
            let (mut flow, largest) = flow_of(t, 16)?;
            let (growth, base) = (Growth::of(t)?, t.round_trips(1)?);
            // A little above base_rtt, so that the device learns no shorter round trip.
            let delay_of =
                |span: Duration, way: Duration| span.saturating_sub(way) + Duration::from_nanos(384);
            let at_once = Answers { delay: delay_of(base, flow.way), ..Answers::default() };
            congest(t, &mut flow)?;
            let mut rounds = 0;
            while flow.run(t, base, &at_once)? < largest / 3 {
                rounds += 1;
                if rounds > 100 {
                    return Err(Stop::Inconclusive(
                        "the window has not grown to a third of the largest".into(),
                    ));
                }
            }
            let (answers, span) = match t.value(&INTERRUPTION) {
                Interruption::Delay => {
                    (Answers { delay: delay_of(base.mul_f64(1.5), flow.way), ..at_once }, base * 3)
                }
                Interruption::Decrease => (Answers { marked: true, ..late(t)? }, base * 6),
            };
            flow.run(t, span, &answers)?;
            // Marks without delay leave the window as it is.
            let before = flow.run(t, base * 8, &Answers { marked: true, ..at_once })?;
            // The packets that one window of ACKs lets leave come in this time.
            let after = flow.run(t, base + flow.way, &at_once)?;
            let expected = 2.0 * (growth.slope * growth.base + 2.0 * growth.eta);
            let most = Bound::from(before + expected as u64 + 3 * full_packet_size(t))
                .from_parameter("alpha, eta and base_rtt")
                .tolerating("a factor of 2, and three packets");
            t.at_most(CC_QUAD_001, "bytes in flight after a window without delay", most, after);
            Ok(())
        }),
];

/// Checks the bytes in flight, but for two packets of which source and destination may think differently.
fn about_in_flight(t: &mut Test<'_>, largest: u64, seen: u64) {
    let bound = Bound::from(largest + 2 * full_packet_size(t))
        .from_parameter("1.5 times the rate times base_rtt")
        .tolerating("two packets");
    t.at_most(CC_WINDOW_001, "bytes in flight", bound, seen);
}

/// The number of packets whose bytes a wrong source counts twice.
const SOME: u32 = 4;
