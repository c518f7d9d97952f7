//! The source of an ordered context: the order of its packets, and go-back-N (section 3.5.21).

use crate::prelude::*;
use uet_wire::pds::Nack;

/// The number of timeouts before an ACK.
const TIMEOUTS: Axis<u64> = axis("timeouts").values(&[("one", 1), ("two", 2)]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[ROD]).over(&[&CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("source-rod/type", "All requests of an ordered context have a ROD type, retransmissions too")
        .checks(&[PDS_OPEN_008, PDS_RTO_001])
        .run(|t| {
            let (mut target, _) = ordered_message_in_flight(t, 2)?;
            target.expect_again(t, PDS_RTO_001, 1, t.later())?;
            for packet in &target.got {
                let kind = packet.request.prologue().kind();
                t.one_of(PDS_OPEN_008, "pds.type", &[PdsType::ROD_REQ, PdsType::ROD_CC_REQ], kind);
            }
            Ok(())
        }),
    rule("source-rod/in-order", "An ordered context sends its packets in PSN order")
        .checks(&[PDS_ROD_001, PDS_PSN_005])
        .run(|t| {
            let peer = t.peer(0)?;
            let count = 40;
            let written = t.post(ordered_write(peer, count as usize * t.mtu()))?;
            let mut target = Target::accept(t)?;
            target.serve(t, count, |target, packet| Some(target.acking(target.index(&packet.request))))?;
            let first = target.got.iter().filter(|packet| !packet.request.retx());
            let order: Vec<u32> = first.map(|packet| target.index(&packet.request)).collect();
            let first_out = order.windows(2).find(|pair| pair[1] != pair[0] + 1).map(|pair| pair[1]);
            t.check(PDS_ROD_001, "the first packet out of order", None, first_out);
            t.ends(PDS_PSN_005, written, Status::Ok)
        }),
    rule("source-rod/timeout", "After a timeout, all packets from the missing one on are resent in order")
        .checks(&[PDS_ROD_004])
        .over(&[&TIMEOUTS, &CARRIER, &START])
        .run(|t| {
            let timeouts = t.value(&TIMEOUTS);
            require(timeouts <= t.parameter("max_rto_retx_cnt"), "the device gives up after one timeout")?;
            let (mut target, written) = ordered_message_in_flight(t, 4)?;
            for _ in 0..timeouts {
                expect_in_order(t, &mut target, 1, 4)?;
            }
            target.ack(t, 4)?;
            t.ends(PDS_ROD_004, written, Status::Ok)
        }),
    rule(
        "source-rod/rod-ooo",
        "After ROD_OOO, all packets from the first missing one on are resent in order",
    )
    .checks(&[PDS_ROD_004])
    .measure(|t| {
        let (mut target, written) = ordered_message_in_flight(t, 5)?;
        target.ack(t, 1)?;
        let sent = target.packet(2)?.seen.at;
        // The second packet is lost, and the third is the first above the gap.
        target.refuse(t, NackCode::ROD_OOO, 3)?;
        expect_in_order(t, &mut target, 2, 5)?;
        if t.nack_wait() * 3 < t.rto() {
            let waited = t.now().saturating_sub(sent);
            let most = Bound::from(t.rto()).from_parameter("rto_init_time");
            t.at_most(PDS_ROD_004, "the time before the retransmission", most, waited);
        }
        target.ack(t, 5)?;
        t.ends(PDS_ROD_004, written, Status::Ok)
    }),
    rule("source-rod/nack-payload", "After ROD_OOO with a payload, the device resumes at the cumulative PSN")
        .checks(&[PDS_ROD_004])
        .run(|t| {
            let (mut target, written) = ordered_message_in_flight(t, 4)?;
            target.ack(t, 1)?;
            t.settle_if_busy()?;
            let remote = target.pdc.remote.unwrap_or_default();
            let nack = Nack::build(NackCode::ROD_OOO).nack_psn(target.psn(4)).spdcid(target.pdc.local);
            let nack = nack.dpdcid(remote).payload(target.psn(2).0).done()?;
            t.send(&target.pdc, &UetBuf::new(nack))?;
            expect_in_order(t, &mut target, 2, 4)?;
            target.ack(t, 4)?;
            t.ends(PDS_ROD_004, written, Status::Ok)
        }),
    rule("source-rod/acknowledged", "An ordered context does not retransmit acknowledged packets")
        .checks(&[PDS_ROD_004])
        .run(|t| {
            let (mut target, _) = ordered_message_in_flight(t, 6)?;
            target.ack(t, 3)?;
            t.settle_if_busy()?;
            target.refuse(t, NackCode::ROD_OOO, 5)?;
            expect_in_order(t, &mut target, 4, 6)?;
            target.expect_none(t, PDS_ROD_004, "no acknowledged packet", t.rto() / 2, |n| n <= 3)
        }),
    rule("source-rod/opening", "After ROD_OOO for a later packet with syn, the device restarts at Start_PSN")
        .checks(&[PDS_ROD_004, PDS_SYN_001])
        .run(|t| {
            let peer = t.peer(0)?;
            let written = t.post(ordered_write(peer, 3 * t.mtu()))?;
            let mut target = Target::accept(t)?;
            target.collect(t, 3)?;
            // As if the second packet arrived first. The sources leave open if it opens the context.
            target.refuse_without_context(t, NackCode::ROD_OOO, 1)?;
            let again = target.expect_any_again(t, PDS_ROD_004, 0)?;
            t.check(PDS_ROD_004, "the first retransmitted packet", 0, target.index(&again));
            t.check(PDS_SYN_001, "syn", true, again.syn());
            expect_in_order(t, &mut target, 1, 2)?;
            target.ack(t, 2)?;
            t.ends(PDS_ROD_004, written, Status::Ok)
        }),
    rule("source-rod/new-message", "A new message follows the retransmissions of an ordered context")
        .checks(&[PDS_ROD_004])
        .run(|t| {
            let (mut target, _) = ordered_message_in_flight(t, 3)?;
            target.refuse(t, NackCode::ROD_OOO, 3)?;
            let peer = t.peer(0)?;
            t.post(ordered_write(peer, 64))?;
            // If the message leaves before the NACK arrives, its packet is retransmitted after the others.
            expect_in_order(t, &mut target, 1, 3)?;
            let at = target.of(3).last().map_or(Duration::ZERO, |packet| packet.seen.at);
            target.watch(t, t.rto())?;
            let last = target.of(4).last().map_or(Duration::ZERO, |packet| packet.seen.at);
            t.at_least(PDS_ROD_004, "the time of the new message, against the last retransmission", at, last);
            Ok(())
        }),
    rule("source-rod/strict-target", "A target without reordering gets all packets despite losses")
        .checks(&[PDS_ROD_004])
        .run(|t| {
            let peer = t.peer(0)?;
            let count = 12;
            let written = t.post(ordered_write(peer, count as usize * t.mtu()))?;
            let mut target = Target::accept(t)?;
            let (mut expected, mut refused, mut next) = (0, None, 0);
            let until = t.now() + t.until_given_up();
            while expected < count && t.now() < until {
                let Some(packet) = target.got.get(next).cloned() else {
                    let within = t.later();
                    target.next(t, within)?;
                    continue;
                };
                next += 1;
                let n = target.index(&packet.request);
                // The first transmission of each of these packets is lost.
                let lost = [2, 3, 7].contains(&n) && !packet.request.retx();
                if lost {
                    continue;
                }
                if n > expected {
                    if refused != Some(expected) {
                        refused = Some(expected);
                        target.refuse(t, NackCode::ROD_OOO, n)?;
                    }
                    continue;
                }
                expected += u32::from(n == expected);
                target.ack(t, expected - 1)?;
            }
            t.check(PDS_ROD_004, "packets accepted in order", count, expected);
            t.ends(PDS_ROD_004, written, Status::Ok)
        }),
    rule("source-rod/no-pkt-buffer", "A packet refused for lack of a buffer is resent before later packets")
        .checks(&[PDS_ROD_004])
        .run(|t| {
            let (mut target, written) = ordered_message_in_flight(t, 3)?;
            target.refuse(t, NackCode::NO_PKT_BUFFER, 1)?;
            expect_in_order(t, &mut target, 1, 1)?;
            target.ack(t, 1)?;
            // The target dropped the later packets as out of order.
            target.refuse(t, NackCode::ROD_OOO, 2)?;
            expect_in_order(t, &mut target, 2, 3)?;
            target.ack(t, 3)?;
            t.ends(PDS_ROD_004, written, Status::Ok)
        }),
    rule("source-rod/stale-nack", "ROD_OOO for an acknowledged packet causes no retransmission")
        .checks(&[PDS_NACK_002, PDS_RTO_001])
        .run(|t| {
            let (mut target, written) = ordered_message_in_flight(t, 3)?;
            target.ack(t, 2)?;
            t.settle()?;
            target.refuse(t, NackCode::ROD_OOO, 2)?;
            let again = target.expect_again(t, PDS_RTO_001, 3, t.later())?;
            let waited = again.seen.at.saturating_sub(target.asked);
            let least = Bound::from(t.earliest_retransmission()).from_parameter("rto_init_time");
            t.at_least(PDS_NACK_002, "the time before the retransmission", least, waited);
            target.expect_none(t, PDS_NACK_002, "no acknowledged packet", t.rto(), |n| n < 3)?;
            target.ack(t, 3)?;
            t.ends(PDS_NACK_002, written, Status::Ok)
        }),
    rule("source-rod/entropy", "The packets of an ordered context use one entropy value at a time")
        .checks(&[PDS_ROD_005])
        .needs(&[ROD, SEE_ENTROPY])
        .run(|t| {
            let peer = t.peer(0)?;
            let count = 30;
            t.post(ordered_write(peer, count as usize * t.mtu()))?;
            let mut target = Target::accept(t)?;
            target.serve(t, count, |target, packet| Some(target.acking(target.index(&packet.request))))?;
            // A device may change the value, but not alternate between values.
            let mut values: Vec<u16> = target.got.iter().map(|packet| packet.seen.wire.entropy).collect();
            values.dedup();
            let changes = values.len() - 1;
            t.at_most(PDS_ROD_005, "changes of the entropy value in 30 packets", 2, changes);
            Ok(())
        }),
];

/// Returns a write on an ordered context.
fn ordered_write(peer: u64, length: usize) -> Post {
    Post { mode: Mode::Rod, ..post(PostKind::Write, peer, length) }
}

/// Has the device write `count` packets on an established ordered context. All of them have arrived, the
/// first with PSN 1, and none is acknowledged.
fn ordered_message_in_flight(t: &mut Test<'_>, count: u32) -> Result<(Target, Operated), Stop> {
    let (peer, mut target) = Target::with_peer(t, Mode::Rod)?;
    target.asked = t.now();
    let written = t.post(ordered_write(peer, count as usize * t.mtu()))?;
    target.collect(t, count + 1)?;
    Ok((target, written))
}

/// Expects retransmissions of these packets in order. A packet may be repeated, but none precedes its turn.
fn expect_in_order(t: &mut Test<'_>, target: &mut Target, first: u32, last: u32) -> Outcome {
    let mut due = first;
    while due <= last {
        let again = target.expect_any_again(t, PDS_ROD_004, due)?;
        let n = target.index(&again);
        t.between(PDS_ROD_004, "the retransmitted packet, up to the next in order,", first..=due, n);
        due += u32::from(n == due);
        if n > due {
            return Err(Stop::Failed);
        }
    }
    Ok(())
}
