//! Retransmissions at an initiator: timeouts, limits, and the effect of SACK bitmaps (section 3.5).

use super::steps::check_apart;
use crate::prelude::*;
use crate::rules::steps::{message_in_flight, require_retransmissions, retransmissions};

/// Begins a rule with the usual axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).over(&[&MODE, &CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule(
        "retransmit/timeout",
        "An unacknowledged packet is retransmitted, and its ACK completes the message",
    )
    .checks(&[PDS_RTO_001])
    .run(|t| {
        let (mut target, written) = message_in_flight(t, 1)?;
        target.expect_again(t, PDS_RTO_001, 1, t.later())?;
        target.ack(t, 1)?;
        t.ends(PDS_RTO_001, written, Status::Ok)
    }),
    rule("retransmit/same-packet", "A retransmission repeats the PSN and content of its packet and has retx")
        .checks(&[PDS_RTO_005])
        .run(|t| {
            let count = retransmissions(t, 3)?;
            let (mut target, _) = message_in_flight(t, 2)?;
            for _ in 0..count {
                for n in [1, 2] {
                    let first = target.packet(n)?.clone();
                    let within = t.soon() + t.scaled(16 * t.rto());
                    let again = target.expect_again(t, PDS_RTO_005, n, within)?;
                    t.check(PDS_RTO_005, "SES header and payload", first.content(), again.content());
                    t.check(PDS_RTO_005, "spdcid", first.request.spdcid(), again.request.spdcid());
                    let (before, now) = (first.request.prologue(), again.request.prologue());
                    t.check(PDS_RTO_005, "type", before.kind(), now.kind());
                }
            }
            Ok(())
        }),
    rule("retransmit/first-without-retx", "A first transmission has no retx")
        .checks(&[PDS_RTO_005, PDS_PSN_001, PDS_RTO_001])
        .run(|t| {
            let (mut target, _) = message_in_flight(t, 3)?;
            // An earlier retransmission does not affect later packets.
            target.expect_again(t, PDS_RTO_001, 2, t.later())?;
            target.ack(t, 3)?;
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, 2 * t.mtu()))?;
            for n in 1..6 {
                let retx = target.expect_new(t, PDS_PSN_001, n)?.request.retx();
                t.check(PDS_RTO_005, "flag retx", false, retx);
            }
            Ok(())
        }),
    rule("retransmit/rto-init-time", "A packet is not retransmitted before RTO_Init_Time")
        .checks(&[PDS_RTO_002, PDS_RTO_001])
        .run(|t| {
            let (mut target, _) = message_in_flight(t, 1)?;
            let again = target.expect_again(t, PDS_RTO_001, 1, t.later())?;
            let waited = again.seen.at.saturating_sub(target.asked);
            let bound = Bound::from(t.earliest_retransmission()).from_parameter("rto_init_time");
            t.at_least(PDS_RTO_002, "the time before the retransmission", bound, waited);
            Ok(())
        }),
    rule("retransmit/back-off", "The timeout doubles with each retransmission")
        .checks(&[PDS_RTO_002, PDS_RTO_001])
        .measure(|t| {
            t.require_plain_timeouts()?;
            require_retransmissions(t, 2)?;
            let count = retransmissions(t, 4)?;
            let (mut target, _) = message_in_flight(t, 1)?;
            for n in 0..count {
                let within = t.soon() + t.scaled(t.rto() * (2 << n));
                target.expect_again(t, PDS_RTO_001, 1, within)?;
            }
            let times = arrival_times(&target, 1);
            for (n, pair) in times.windows(2).enumerate() {
                let (waited, due) = (pair[1].saturating_sub(pair[0]), t.rto() * (1 << n));
                let most = t.scaled(due.mul_f64(1.5)) + t.grace();
                let range = Bound::from(due.mul_f64(0.6)..=most)
                    .from_parameter("rto_init_time, doubled for each retransmission")
                    .tolerating("from 60 % to 150 %");
                t.between(PDS_RTO_002, &format!("the time before retransmission {}", n + 1), range, waited);
            }
            Ok(())
        }),
    rule("retransmit/fresh-timeout", "The back-off of a packet does not apply to the next one")
        .checks(&[PDS_RTO_002, PDS_PSN_001, PDS_RTO_001])
        .measure(|t| {
            let count = retransmissions(t, 2)?;
            let (mut target, _) = message_in_flight(t, 1)?;
            for n in 0..count {
                let within = t.soon() + t.scaled(t.rto() * (2 << n));
                target.expect_again(t, PDS_RTO_001, 1, within)?;
            }
            target.ack(t, 1)?;
            t.settle()?;
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, 64))?;
            target.expect_new(t, PDS_PSN_001, 2)?;
            target.expect_again(t, PDS_RTO_001, 2, t.later())?;
            let times = arrival_times(&target, 2);
            let waited = times[1].saturating_sub(times[0]);
            let longest = t.scaled(t.rto().mul_f64(1.5)) + t.grace();
            let bound = Bound::from(longest).from_parameter("rto_init_time").tolerating("50 %");
            t.at_most(PDS_RTO_002, "the time before the first retransmission", bound, waited);
            Ok(())
        }),
    rule("retransmit/limit", "A packet is retransmitted at most Max_RTO_Retx_Cnt times")
        .checks(&[PDS_RTO_003, PDS_RTO_004])
        .run(|t| {
            let most = t.timeout_limit()? as usize;
            let (mut target, written) = message_in_flight(t, 1)?;
            target.watch(t, t.until_given_up())?;
            let times = target.times(1);
            let range = Bound::from(2..=most + 1).from_parameter("max_rto_retx_cnt");
            t.between(PDS_RTO_003, "transmissions of the packet", range, times);
            t.fails(PDS_RTO_004, written, t.soon())
        }),
    rule("retransmit/failure", "After the last retransmission, every operation of the context fails")
        .checks(&[PDS_RTO_004])
        .run(|t| {
            t.timeout_limit()?;
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let one = t.post(post(PostKind::Write, peer, 64))?;
            let other = t.post(post(PostKind::Write, peer, 2 * t.mtu()))?;
            target.collect(t, 4)?;
            // An ordered context may count timeouts per packet, and retransmits all three packets at each.
            let packets = if t.value(&MODE) == Mode::Rod { 3 } else { 1 };
            target.watch(t, t.until_given_up() * packets)?;
            t.fails(PDS_RTO_004, one, t.soon())?;
            t.fails(PDS_RTO_004, other, t.soon())
        }),
    rule("retransmit/after-failure", "After a context fails, the next message opens another context")
        .checks(&[PDS_RTO_004, PDS_SYN_001, PDS_SYN_007])
        .run(|t| {
            t.timeout_limit()?;
            let (mut target, written) = message_in_flight(t, 1)?;
            target.watch(t, t.until_given_up())?;
            t.fails(PDS_RTO_004, written, t.soon())?;
            let peer = t.peer(0)?;
            let next = t.post(post(PostKind::Write, peer, 64))?;
            let within = t.later();
            let (seen, request) = t.expect(PDS_RTO_004, "a request of a new context", within, |seen| {
                seen.request().filter(|request| !request.retx() && request.psn() != target.psn(1))
            })?;
            t.check(PDS_SYN_001, "syn", true, request.syn());
            check_apart(t, &target, target.psn(1), request.spdcid(), request.psn());
            let pdc = t.accept(&seen)?;
            t.send(&pdc, &pdc.ack(pdc.psn(0)).build()?)?;
            t.ends(PDS_RTO_004, next, Status::Ok)
        }),
    rule("retransmit/late-ack", "An ACK after several retransmissions completes the message")
        .checks(&[PDS_RTO_001])
        .run(|t| {
            let count = retransmissions(t, 3)?;
            let (mut target, written) = message_in_flight(t, 1)?;
            for n in 0..count {
                let within = t.soon() + t.scaled(t.rto() * (2 << n));
                target.expect_again(t, PDS_RTO_001, 1, within)?;
            }
            target.answer(t, AckBuilder { retx: true, ..target.acking(1) })?;
            t.ends(PDS_RTO_001, written, Status::Ok)?;
            t.settle()?;
            target.expect_none(t, PDS_RTO_001, "no further retransmission", 16 * t.rto(), |n| n == 1)?;
            let peer = t.peer(0)?;
            t.expect_action(peer)
        }),
    rule("retransmit/only-missing", "An acknowledged packet is not retransmitted with a missing one")
        .checks(&[PDS_RTO_001, PDS_PSN_002])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (mut target, written) = message_in_flight(t, 4)?;
            target.ack(t, 1)?;
            target.name(t, 3, 2)?;
            target.name(t, 4, 2)?;
            t.settle()?;
            target.expect_again(t, PDS_RTO_001, 2, t.later())?;
            target
                .expect_none(t, PDS_PSN_002, "no other packet than the missing one", t.rto(), |n| n != 2)?;
            target.ack(t, 4)?;
            t.ends(PDS_RTO_001, written, Status::Ok)
        }),
    rule("retransmit/acknowledged", "The device does not retransmit packets that a cumulative PSN covers")
        .checks(&[PDS_PSN_005])
        .run(|t| {
            let (mut target, written) = message_in_flight(t, 4)?;
            target.ack(t, 4)?;
            t.ends(PDS_PSN_005, written, Status::Ok)?;
            t.settle()?;
            target.expect_none(t, PDS_PSN_005, "no acknowledged packet", 4 * t.rto(), |n| n <= 4)?;
            let peer = t.peer(0)?;
            t.expect_action(peer)
        }),
    rule(
        "retransmit/sacked",
        "For a packet that only SACK reports, the device sends ACK_REQUEST, no payload",
    )
    .checks(&[PDS_SACK_004])
    .run(|t| {
        let (mut target, written) = message_in_flight(t, 2)?;
        target.ack(t, 1)?;
        target.sack(t, 2, &[2])?;
        t.settle()?;
        let (_, request) = target.expect_control(t, PDS_SACK_004, CtlType::ACK_REQUEST, t.later())?;
        t.check(PDS_SACK_004, "psn", target.psn(2), request.psn());
        // Later, the device may give up because its last ACK_REQUEST gets no answer.
        let span = retransmissions(t, 2)? * t.rto();
        target.expect_none(t, PDS_SACK_004, "no payload that has arrived", span, |n| n == 2)?;
        t.is_open(PDS_SACK_004, written)?;
        target.ack(t, 2)?;
        t.ends(PDS_SACK_004, written, Status::Ok)
    }),
    rule("retransmit/ack-request", "The device repeats ACK_REQUEST until an ACK completes the message")
        .checks(&[PDS_SACK_004, PDS_ASK_003])
        .run(|t| {
            let (target, written) = message_in_flight(t, 2)?;
            target.ack(t, 1)?;
            target.sack(t, 2, &[2])?;
            t.settle()?;
            // The first answer is lost, so the device repeats its ACK_REQUEST.
            for n in 0..retransmissions(t, 2)? {
                let within = t.soon() + t.scaled(t.rto() * (4 << n));
                target.expect_control(t, PDS_SACK_004, CtlType::ACK_REQUEST, within)?;
            }
            target.ack(t, 2)?;
            t.ends(PDS_ASK_003, written, Status::Ok)
        }),
    rule("retransmit/sack-bits", "Bit i of a SACK bitmap reports the i-th PSN from its base")
        .checks(&[PDS_SACK_001])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (mut target, _) = message_in_flight(t, 7)?;
            target.ack(t, 1)?;
            target.sack(t, 2, &[3, 6])?;
            expect_all_but(t, &mut target, 2, 7, &[3, 6], PDS_SACK_001)
        }),
    rule("retransmit/high-sack-base", "A SACK bitmap far above the cumulative PSN counts from its base")
        .checks(&[PDS_SACK_005])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            t.try_configure("payload_mtu", 1024)?;
            t.try_configure("congestion", "none")?;
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            t.post(post(PostKind::Write, peer, 80 * t.mtu()))?;
            target.collect(t, 25)?;
            let last = target.highest();
            // The bitmap has a gap before the last packet.
            let base = last - 4;
            target.ack(t, 1)?;
            target.answer(t, ack_with_bitmap(&target, 2, base, 0b10111))?;
            expect_all_but(t, &mut target, 2, last, &[base, base + 1, base + 2, base + 4], PDS_SACK_005)
        }),
    rule("retransmit/low-sack-base", "A SACK bitmap from below the cumulative PSN counts from its base")
        .checks(&[PDS_SACK_005])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (mut target, _) = message_in_flight(t, 7)?;
            target.ack(t, 3)?;
            // Bit i is packet i: 0 to 3 again, and 5. A device that counts from the cumulative PSN takes 4 to
            // 7 for received.
            target.answer(t, ack_with_bitmap(&target, 4, 0, 0b10_1111))?;
            expect_all_but(t, &mut target, 4, 7, &[5], PDS_SACK_005)
        }),
    rule("retransmit/cleared-sack-bit", "A later SACK bitmap without a bit does not revoke an earlier one")
        .checks(&[PDS_SACK_004])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (mut target, _) = message_in_flight(t, 4)?;
            target.ack(t, 1)?;
            target.sack(t, 2, &[3, 4])?;
            target.sack(t, 2, &[4])?;
            expect_all_but(t, &mut target, 2, 4, &[3, 4], PDS_SACK_004)
        }),
    rule("retransmit/other-message", "A lost packet of one message does not delay the completion of another")
        .checks(&[PDS_RUD_001, PDS_RTO_001])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let lost = t.post(post(PostKind::Write, peer, 64))?;
            let other = t.post(post(PostKind::Write, peer, 128))?;
            target.collect(t, 3)?;
            target.name(t, 2, 1)?;
            t.ends(PDS_RUD_001, other, Status::Ok)?;
            t.is_open(PDS_RTO_001, lost)?;
            target.expect_again(t, PDS_RTO_001, 1, t.later())?;
            target.ack(t, 2)?;
            t.ends(PDS_RTO_001, lost, Status::Ok)
        }),
    rule("retransmit/read", "An unacknowledged read request is retransmitted")
        .checks(&[PDS_RTO_001, PDS_RTO_005])
        .needs(&[READ])
        .over(&[&MODE, &START])
        .run(|t| {
            let peer = t.peer(0)?;
            t.post(post(PostKind::Read, peer, 64))?;
            let mut target = Target::accept(t)?;
            let again = target.expect_again(t, PDS_RTO_001, 0, t.later())?;
            let first = target.packet(0)?.content();
            t.check(PDS_RTO_005, "SES header", first, again.content());
            Ok(())
        }),
];

/// Returns the arrival times of the packets with the `n`-th PSN.
fn arrival_times(target: &Target, n: u32) -> Vec<Duration> {
    target.of(n).map(|packet| packet.seen.at).collect()
}

/// Expects retransmissions of the packets from `below` to `last`, except those that have arrived.
fn expect_all_but(
    t: &mut Test<'_>,
    target: &mut Target,
    below: u32,
    last: u32,
    arrived: &[u32],
    requirement: &Requirement,
) -> Outcome {
    t.settle()?;
    let first = arrived.iter().min().copied().unwrap_or(last);
    for n in (below..=last).filter(|n| !arrived.contains(n)) {
        target.expect_again(t, requirement, n, t.later())?;
        // After losses, the congestion window may permit one packet per ACK.
        if n < first {
            target.ack(t, n)?;
        }
    }
    target.expect_none(t, requirement, "no packet that has arrived", t.rto() / 2, |n| arrived.contains(&n))
}

/// Returns a repeated ACK of all packets before `next`, with a bitmap from the `first` PSN on.
fn ack_with_bitmap(target: &Target, next: u32, first: u32, bits: u64) -> AckBuilder {
    AckBuilder { response: None, ..target.acking(next - 1).sack(target.psn(first), bits) }
}
