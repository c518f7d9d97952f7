//! The credit of a source of RCCC: what grants add and packets spend (section 3.6.14).

use super::steps::{
    WRAP, bytes_after_grant, check_granted_bytes, credit_flow, credit_target, expect_granted_bytes,
    flow_without_credit, grant_by_ack, grant_by_control, opening_request, short_silence, watch_for,
};
use crate::flow::{Answers, Flow};
use crate::prelude::*;
use crate::rules::steps::full_packet_size;

/// A NACK that causes a retransmission.
const NACK: Axis<NackCode> = axis("nack").values(&[
    ("trimmed", NackCode::TRIMMED),
    ("trimmed-last-hop", NackCode::TRIMMED_LASTHOP),
    ("no-resource", NackCode::NO_RESOURCE),
]);

/// The reserved bits of the payload of CREDIT.
const UPPER_BITS: Axis<u32> = axis("reserved").values(&[("clear", 0), ("set", 0xff00_0000)]);

/// True if an ACK carries the grant, false if a control packet does.
const BY_ACK: Axis<bool> = axis("grant").values(&[("credit", false), ("ack-cc", true)]);

/// The other context: its address of the suite, and its traffic class.
const OTHER: Axis<(usize, u8)> =
    axis("other").needing(&[("class", (0, 1), &[]), ("destination", (1, 0), &[TWO_ADDRESSES])]);

/// True if an ACK repeats the grant of a control packet, false if another control packet does.
const AGAIN_BY_ACK: Axis<bool> = axis("again-in").values(&[("credit", false), ("ack-cc", true)]);

/// A grant that is behind one of 200 units. From 2^23 units on, a difference counts as behind.
const STALE: Axis<u32> = axis("stale").values(&[("older", 50), ("half-range", 200 + WRAP / 2)]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[RCCC]).over(&[&MODE, &CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("rccc/initial-credit", "A source sends at most about one BDP before the first ACK")
        .checks(&[RCCC_START_001])
        .measure(|t| {
            let mut flow = credit_flow(t, "rccc", Mode::Rud)?;
            flow.fill(t)?;
            let most = Bound::from(t.bdp()? * 3 / 2)
                .from_parameter("rate times base_rtt")
                .tolerating("half as much again");
            t.at_most(RCCC_START_001, "bytes before the first ACK", most, flow.bytes());
            Ok(())
        }),
    rule("rccc/no-credit", "A source sends no new packet after ACKs that grant no credit")
        .checks(&[RCCC_CREDIT_001])
        .measure(|t| {
            let mut flow = flow_without_credit(t)?;
            let (highest, during) = (flow.count(), short_silence(t)?);
            flow.target
                .expect_none(t, RCCC_CREDIT_001, "a new packet without credit", during, |n| n >= highest)?;
            grant_by_ack(t, &flow, 500)?;
            flow.target.expect_new(t, RCCC_CREDIT_001, highest)?;
            Ok(())
        }),
    rule("rccc/granted-bytes", "A source sends granted bytes and exceeds them by at most one packet")
        .checks(&[RCCC_CREDIT_001])
        .measure(|t| {
            let mut flow = flow_without_credit(t)?;
            grant_by_ack(t, &flow, 100)?;
            expect_granted_bytes(t, RCCC_CREDIT_001, 100, &mut flow)
        }),
    rule("rccc/granted-by-credit", "A CREDIT control packet grants credit as an ACK_CC does")
        .checks(&[RCCC_CREDIT_001])
        .over(&[&MODE, &CARRIER, &START, &UPPER_BITS])
        .measure(|t| {
            let mut flow = flow_without_credit(t)?;
            // The credit is the lower 24 bits of the payload.
            grant_by_control(t, &flow.target, t.value(&UPPER_BITS) | 100)?;
            expect_granted_bytes(t, RCCC_CREDIT_001, 100, &mut flow)
        }),
    rule("rccc/grant-difference", "A grant adds its difference from the last grant")
        .checks(&[RCCC_COUNT_001])
        .measure(|t| {
            let mut flow = flow_without_credit(t)?;
            for (credit, more) in [(100, 100), (180, 80), (260, 80)] {
                grant_by_control(t, &flow.target, credit)?;
                expect_granted_bytes(t, RCCC_COUNT_001, more, &mut flow)?;
            }
            Ok(())
        }),
    rule("rccc/duplicate-grant", "A duplicate grant adds no credit")
        .checks(&[RCCC_COUNT_001, RCCC_CREDIT_001])
        .over(&[&AGAIN_BY_ACK, &MODE, &CARRIER, &START])
        .measure(|t| {
            let mut flow = flow_without_credit(t)?;
            grant_by_control(t, &flow.target, 100)?;
            bytes_after_grant(t, &mut flow)?;
            let (highest, during) = (flow.count(), short_silence(t)?);
            if t.value(&AGAIN_BY_ACK) {
                grant_by_ack(t, &flow, 100)?;
            } else {
                grant_by_control(t, &flow.target, 100)?;
            }
            flow.target.expect_none(
                t,
                RCCC_COUNT_001,
                "a new packet for a duplicate grant",
                during,
                |n| n >= highest,
            )?;
            grant_by_control(t, &flow.target, 200)?;
            flow.target.expect_new(t, RCCC_CREDIT_001, highest)?;
            Ok(())
        }),
    rule("rccc/state-in-ack", "An ACK_CC with the state of NSCC grants no credit")
        .checks(&[RCCC_CREDIT_001])
        .measure(|t| {
            // A service_time of one unit would be a credit of 256 units.
            let mut flow = flow_without_credit(t)?;
            let (highest, during) = (flow.count(), short_silence(t)?);
            let ack = flow.answer(highest, &Answers::default())?;
            t.send(&flow.target.pdc, &ack)?;
            let what = "a new packet for an ACK without credit";
            flow.target.expect_none(t, RCCC_CREDIT_001, what, during, |n| n >= highest)?;
            grant_by_control(t, &flow.target, 100)?;
            flow.target.expect_new(t, RCCC_CREDIT_001, highest)?;
            Ok(())
        }),
    rule("rccc/stale-grant", "A stale grant adds no credit, and the next grant counts from the newest one")
        .checks(&[RCCC_COUNT_002, RCCC_COUNT_001])
        .over(&[&BY_ACK, &STALE, &MODE, &CARRIER, &START])
        .measure(|t| {
            let mut flow = flow_without_credit(t)?;
            grant(t, &flow, 200)?;
            bytes_after_grant(t, &mut flow)?;
            let (highest, during) = (flow.count(), short_silence(t)?);
            grant(t, &flow, t.value(&STALE))?;
            flow.target
                .expect_none(t, RCCC_COUNT_002, "a new packet for a stale grant", during, |n| n >= highest)?;
            grant(t, &flow, 300)?;
            expect_granted_bytes(t, RCCC_COUNT_001, 100, &mut flow)
        }),
    rule("rccc/grant-per-context", "A grant serves the context that it names, and no other")
        .checks(&[RCCC_CREDIT_001])
        .over(&[&BY_ACK, &OTHER, &MODE, &CARRIER, &START])
        .measure(|t| {
            // Each destination and each traffic class has its own credit.
            let mut first = flow_without_credit(t)?;
            let (address, class) = t.value(&OTHER);
            let (peer, mode) = (t.peer(address)?, t.value(&MODE));
            let length = first.count() as usize * 4 * t.mtu();
            let other = t.post(Post { mode, class, ..post(PostKind::Write, peer, length) })?;
            let opened = opening_request(t, RCCC_CREDIT_001, 0)?;
            let mut second = Flow::of(t, opened, other)?;
            for _ in 0..2 {
                second.fill(t)?;
                grant_by_ack(t, &second, 0)?;
            }
            // After a long silence, the first context may send a packet without credit.
            let silence = short_silence(t)?;
            grant_by_ack(t, &first, 0)?;
            watch_for(t, &mut first, silence)?;
            let (highest, granted) = (first.count(), t.now());
            grant(t, &second, 100)?;
            expect_granted_bytes(t, RCCC_CREDIT_001, 100, &mut second)?;
            if t.now() > granted + silence {
                return Ok(());
            }
            watch_for(t, &mut first, Duration::ZERO)?;
            let what = "packets of a context without credit after a grant to another one";
            t.check(RCCC_CREDIT_001, what, 0, first.count() - highest);
            Ok(())
        }),
    rule("rccc/granted-bytes-with-nscc", "With NSCC, a source exceeds granted bytes by at most one packet")
        .checks(&[RCCC_CREDIT_001])
        .needs(&[RCCC, NSCC])
        .measure(|t| {
            // ACKs carry the state of NSCC and free its window. Grants travel in control packets.
            let mut flow = credit_flow(t, "both", Mode::Rud)?;
            for _ in 0..2 {
                flow.fill(t)?;
                let ack = flow.answer(flow.count(), &Answers::default())?;
                t.send(&flow.target.pdc, &ack)?;
            }
            let (highest, during) = (flow.count(), short_silence(t)?);
            flow.target
                .expect_none(t, RCCC_CREDIT_001, "a new packet without credit", during, |n| n >= highest)?;
            grant_by_control(t, &flow.target, 100)?;
            expect_granted_bytes(t, RCCC_CREDIT_001, 100, &mut flow)
        }),
    rule("rccc/grant-across-wrap", "A grant that wraps at 2^24 units adds its difference from the last one")
        .checks(&[RCCC_COUNT_001, RCCC_COUNT_002])
        .measure(|t| {
            // Grants bring the counter close to its wrap. The device loses the credit while it is idle.
            t.congestion("rccc")?;
            t.slowed()?;
            t.auto_credit = false;
            let (_, target) = Target::with_peer(t, Mode::Rud)?;
            let near = WRAP - 100;
            for credit in [8_000_000, 16_000_000, near] {
                grant_by_control(t, &target, credit)?;
            }
            t.settle()?;
            t.pause(t.base_rtt()? * 200)?;
            let packets = (8 * t.bdp()? / t.mtu() as u64).clamp(64, 800) as usize;
            let mut flow = Flow::start_on(t, target, packets)?;
            for _ in 0..2 {
                flow.fill(t)?;
                grant_by_ack(t, &flow, near)?;
            }
            let before = flow.count();
            flow.fill(t)?;
            // A device with credit left still sends, or has sent the whole write.
            let waits = before as usize <= packets && flow.count() <= before;
            require(waits, "the device keeps its credit while it is idle")?;
            grant_by_control(t, &flow.target, 100)?;
            let bytes = bytes_after_grant(t, &mut flow)?;
            t.is_kept(&flow.target.pdc)?;
            check_granted_bytes(t, RCCC_COUNT_001, 200, bytes);
            // The grant after the wrap has made this one stale.
            let (highest, during) = (flow.count(), short_silence(t)?);
            grant_by_control(t, &flow.target, WRAP - 50)?;
            flow.target
                .expect_none(t, RCCC_COUNT_002, "a new packet for a stale grant", during, |n| n >= highest)?;
            // A write that has ended needs no more credit.
            if (flow.count() as usize) < packets + 1 {
                grant_by_control(t, &flow.target, 200)?;
                flow.target.expect_new(t, RCCC_COUNT_001, highest)?;
            }
            Ok(())
        }),
    rule(
        "rccc/largest-grant",
        "A source uses a grant of 2^23 - 1 units, the largest one, and those after it",
    )
    .checks(&[RCCC_CREDIT_001])
    .over(&[&BY_ACK, &MODE, &CARRIER])
    .measure(|t| {
        // In bytes, the credit then exceeds 31 bits. A source that limits its credit needs the later
        // grants.
        let mut flow = flow_without_credit(t)?;
        let (bdp, begun, mut credit) = (t.bdp()?, flow.count(), WRAP / 2 - 1);
        grant(t, &flow, credit)?;
        credit += 1024;
        grant(t, &flow, credit)?;
        let packets = (8 * bdp / t.mtu() as u64).clamp(64, 800) as u32;
        for _ in 0..40 {
            flow.fill(t)?;
            if flow.count() >= packets {
                break;
            }
            credit += (bdp / 256) as u32;
            grant_by_ack(t, &flow, credit)?;
        }
        let (least, left) = (packets - begun, flow.count() - begun);
        t.at_least(RCCC_CREDIT_001, "packets that leave for the grants", least, left);
        Ok(())
    }),
    rule("rccc/overdrawn", "A source repays overdrawn credit from later grants")
        .checks(&[RCCC_CREDIT_001])
        .measure(|t| {
            // Each grant is smaller than a packet. Together they pay for all packets but the last one.
            let mut flow = flow_without_credit(t)?;
            let (mut credit, begun) = (0, flow.bytes());
            for _ in 0..12 {
                credit += 5;
                grant_by_control(t, &flow.target, credit)?;
                watch_for(t, &mut flow, t.grace() / 4)?;
            }
            let full = full_packet_size(t);
            let paid = u64::from(credit) * 256;
            let spent = flow.bytes() - begun;
            t.at_most(RCCC_CREDIT_001, "bytes sent for 12 small grants, less a packet", paid + full, spent);
            t.at_least(
                RCCC_CREDIT_001,
                "bytes sent for 12 small grants",
                paid.saturating_sub(2 * full).min(full),
                spent,
            );
            Ok(())
        }),
    rule("rccc/retransmission-credit", "A retransmission after a NACK needs credit, and carries the demand")
        .checks(&[RCCC_CREDIT_001, RCCC_TYPE_001])
        .over(&[&MODE, &CARRIER, &NACK])
        .measure(|t| {
            let mut flow = flow_without_credit(t)?;
            grant_by_control(t, &flow.target, 100)?;
            let first = flow.count();
            bytes_after_grant(t, &mut flow)?;
            let last = flow.count();
            if last - first < 3 {
                return Err(Stop::Inconclusive("fewer than three packets left for the grant".into()));
            }
            for n in first..last {
                flow.refuse(t, t.value(&NACK), n)?;
            }
            let (before, silence) = (flow.target.got.len(), short_silence(t)?);
            watch_for(t, &mut flow, silence)?;
            let retransmitted = flow.target.got.len() - before;
            t.check(RCCC_CREDIT_001, "retransmissions without credit", 0, retransmitted);
            grant_by_control(t, &flow.target, 300)?;
            let again = flow.target.expect_again(t, RCCC_CREDIT_001, first, t.later())?;
            let demands = credit_target(&again.seen).is_some();
            t.holds(RCCC_TYPE_001, "a retransmission carries the demand", demands, again.seen.uet());
            watch_for(t, &mut flow, silence)?;
            if t.nack_wait() > silence {
                // The source may have started with new credit while it waited.
                return Ok(());
            }
            let sent = (flow.target.got.len() - before) as u64 * full_packet_size(t);
            let most = Bound::from(200 * 256 + full_packet_size(t)).tolerating("a packet");
            t.at_most(RCCC_CREDIT_001, "bytes sent for 200 units, retransmissions included", most, sent);
            Ok(())
        }),
    rule("rccc/message-completes", "A message completes when its demand is granted")
        .checks(&[RCCC_CREDIT_001])
        .measure(|t| {
            t.congestion("rccc")?;
            t.auto_credit = false;
            let mut flow = Flow::start(t, Mode::Rud, 60)?;
            flow.fill(t)?;
            for round in 1..=40 {
                if flow.count() == 60 {
                    break;
                }
                grant_by_ack(t, &flow, 100 * round)?;
                flow.fill(t)?;
            }
            t.check(RCCC_CREDIT_001, "packets that arrived", 60, flow.count());
            grant_by_ack(t, &flow, 100 * 40)?;
            t.ends(RCCC_CREDIT_001, flow.operation, Status::Ok)
        }),
];

/// Grants this cumulative credit in a packet of the type that the rule varies.
fn grant(t: &mut Test<'_>, flow: &Flow, credit: u32) -> Outcome {
    match t.value(&BY_ACK) {
        true => grant_by_ack(t, flow, credit),
        false => grant_by_control(t, &flow.target, credit),
    }
}
