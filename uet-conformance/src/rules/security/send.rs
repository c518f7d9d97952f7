//! A sender of secured packets: its key, and counters that never repeat (section 3.7).

use super::receive::LIMITED;
use super::steps::{
    CLUSTER, check_write, establish_as, open_as, open_new, open_secured, plain_retransmission, plain_write,
    rule, write_in_flight,
};
use crate::prelude::*;
use crate::rules::steps::{expect_source_closes_in_range, post_datagram, post_idempotent, shorten_psn_range};
use crate::target::NOT_WELL;
use crate::{FEW_SECURED, SECURED};
use uet_control::KeyMode;

const TWO_PEERS: &[Need] = &[RUD, WRITE, TSS, TWO_ADDRESSES];

/// The limit of the counter, which no packet reaches.
const LIMIT: u64 = (1 << 48) - 1;

/// The number of counters left before the limit.
const LEFT: Axis<u64> = axis("counters-left").values(&[("0", 0), ("1", 1), ("2", 2)]);

/// A counter of the device that has a longer number than the one before.
const CARRY: Axis<u64> = axis("carry").values(&[
    ("32-bits", 1 << 32),
    ("16-bits", 1 << 16),
    ("8-bits", 1 << 8),
    ("40-bits", 1 << 40),
]);

/// The operation of a device that cannot protect its packets.
const UNPROTECTED: Axis<Mode> = axis("operation").needing(&[
    ("write", Mode::Rud, &[]),
    ("rudi-write", Mode::Rudi, &[RUDI]),
    ("datagram", Mode::Uud, &[UUD, DATAGRAM]),
]);

pub(super) const RULES: &[Rule] = &[
    rule("tss-send/operation", "A device sends an operation under the key of its domain")
        .checks(&[TSS_ICV_001, TSS_AN_002, TSS_EPOCH_002])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let (written, target) = write_in_flight(t)?;
            let shield = t.shield()?;
            let (an, epoch, clear) = (shield.an, shield.epoch, shield.clear);
            let Some(first) = shield.seen.first().copied() else {
                return t
                    .expect(TSS_ICV_001, "a packet under the key of the domain", t.soon(), |_| None)
                    .map(|(_, ())| ());
            };
            t.check(TSS_ICV_001, "packets in the clear:", 0, clear);
            t.check(TSS_AN_002, "association number:", u8::from(an), u8::from(first.an));
            t.check(TSS_EPOCH_002, "epoch:", epoch, first.epoch);
            target.ack(t, 0)?;
            t.ends(TSS_ICV_001, written, Status::Ok)
        }),
    rule("tss-send/retransmission", "A retransmission has a higher counter than the lost packet")
        .checks(&[TSS_CTR_001])
        .over(&[&SECURED, &MODE])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let (written, mut target) = write_in_flight(t)?;
            let retransmission = target.expect_again(t, TSS_CTR_001, 0, t.later())?;
            let numbers = (target.packet(0)?.seen.number, retransmission.seen.number);
            let shield = t.shield()?;
            let counter =
                |number| shield.seen.iter().find(|seen| seen.number == number).map(|seen| seen.counter);
            let (first, second) = (counter(numbers.0).unwrap_or(0), counter(numbers.1).unwrap_or(0));
            t.at_least(TSS_CTR_001, "counter of the retransmission", first + 1, second);
            target.ack(t, 0)?;
            t.ends(TSS_CTR_001, written, Status::Ok)
        }),
    rule("tss-send/retransmission-content", "A retransmission has the content of the lost packet")
        .checks(&[TSS_CTR_001])
        .over(&[&SECURED, &MODE])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let peer = t.peer(0)?;
            let written = t.post(post(PostKind::Write, peer, 200))?;
            let mut target = Target::accept(t)?;
            let first = target.packet(0)?.content();
            for _ in 0..2 {
                let copy = target.expect_again(t, TSS_CTR_001, 0, t.later() * 2)?;
                t.same_bytes(TSS_CTR_001, "the content of the retransmission", &first, &copy.content());
            }
            check_distinct_counters(t)?;
            target.ack(t, 0)?;
            t.ends(TSS_CTR_001, written, Status::Ok)
        }),
    rule("tss-send/unique-counters", "Requests, ACKs, NACKs and control packets never share a counter value")
        .checks(&[TSS_CTR_001])
        .over(&[&SECURED, &MODE])
        .run(|t| {
            let (pdc, region) = open_secured(t)?;
            for n in 1..6 {
                check_write(t, TSS_CTR_001, &pdc, &region, n)?;
            }
            // These cause NACKs with and without a context.
            t.send(&pdc, &pdc.control(CtlType::ACK_REQUEST, pdc.psn(9), 0)?)?;
            t.send(&pdc, &pdc.of_nobody(None).control(CtlType::ACK_REQUEST, pdc.psn(1), 0)?)?;
            t.send(&pdc, &pdc.probe(3, pdc.psn(0))?)?;
            let peer = t.peer(0)?;
            let written = t.post(post(PostKind::Write, peer, 3 * t.mtu()))?;
            let mut target = Target::accept(t)?;
            target.collect(t, 3)?;
            target.refuse(t, NackCode::TRIMMED, 1)?;
            target.expect_again(t, TSS_CTR_001, 1, t.later())?;
            target.ack(t, 2)?;
            t.ends(TSS_CTR_001, written, Status::Ok)?;
            let sent = t.shield()?.seen.len();
            t.at_least(TSS_CTR_001, "protected packets", 9, sent);
            check_distinct_counters(t)
        }),
    rule("tss-send/repeated-ack", "A retransmission is acknowledged again, with a new counter")
        .checks(&[TSS_CTR_001, PDS_DUP_002])
        .run(|t| {
            let (pdc, region) = open_secured(t)?;
            check_write(t, TSS_CTR_001, &pdc, &region, 1)?;
            for _ in 0..3 {
                t.settle()?;
                t.send_wire(&plain_write(&pdc, &region, 1)?)?;
                // The sources leave open if a duplicate without `retx` is acknowledged.
                let soon = t.soon();
                t.wait(soon, |seen| seen.acknowledges(&pdc, pdc.psn(1)))?;
                t.send_wire(&plain_retransmission(&pdc, &region, 1)?)?;
                t.expect_ack(PDS_DUP_002, &pdc, pdc.psn(1))?;
            }
            check_distinct_counters(t)
        }),
    rule("tss-send/after-failure", "The counter goes on after an operation that nobody has answered")
        .checks(&[TSS_CTR_001, PDS_RTO_004])
        .run(|t| {
            t.timeout_limit()?;
            t.secure(t.value(&SECURED))?;
            let peer = t.peer(0)?;
            let lost = t.post(post(PostKind::Write, peer, 64))?;
            Target::accept(t)?;
            let within = t.until_given_up();
            t.fails(PDS_RTO_004, lost, within)?;
            t.settle()?;
            t.forget();
            let written = t.post(post(PostKind::Write, peer, 64))?;
            Target::accept(t)?.ack(t, 0)?;
            t.ends(TSS_CTR_001, written, Status::Ok)?;
            check_distinct_counters(t)
        }),
    rule("tss-send/control-packets", "CLEAR_COMMAND and CLOSE_COMMAND have counters of their own")
        .checks(&[TSS_CTR_001, TSS_ICV_001])
        .needs(&[RUD, WRITE, TSS, CLOSE])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let (peer, target) = Target::with_peer(t, Mode::Rud)?;
            let clear = target.pdc.control(CtlType::CLEAR_REQUEST, Psn(0), target.psn(0).0)?;
            t.send(&target.pdc, &clear)?;
            let within = t.soon();
            t.wait(within, |seen| target.control(seen, CtlType::CLEAR_COMMAND))?;
            target.end(t, peer)?;
            t.settle()?;
            let span = 4 * t.rto();
            t.expect_none(TSS_ICV_001, "no CLOSE_COMMAND after its ACK", span, |seen| {
                target.control(seen, CtlType::CLOSE_COMMAND)
            })?;
            check_distinct_counters(t)
        }),
    rule("tss-send/no-key", "A device without a key in its current slot sends nothing")
        .checks(&[TSS_AN_002, SES_DONE_001])
        .over(&[&SECURED, &UNPROTECTED])
        .run(|t| {
            match t.secure_as(t.value(&SECURED), |domain| domain.an = 1) {
                // A device may refuse such a domain.
                Err(Stop::Inconclusive(reason)) => return skip(reason),
                other => other?,
            }
            let peer = t.peer(0)?;
            post_unprotected(t, peer)?;
            let shield = t.shield()?;
            let (sent, clear) = (shield.seen.len(), shield.clear);
            t.check(TSS_AN_002, "protected packets:", 0, sent);
            t.check(TSS_AN_002, "packets in the clear:", 0, clear);
            // With the key that it has, the same device sends.
            t.shield()?.installed.an = 0;
            t.shield()?.an = false;
            t.install()?;
            t.post(post(PostKind::Write, peer, 64))?;
            Target::accept(t)?.ack(t, 0)
        }),
    rule("tss-send/two-peers", "Packets to two peers have different counters")
        .checks(&[TSS_CTR_001])
        .needs(TWO_PEERS)
        .over(&[&CLUSTER])
        .run(|t| {
            t.secure(t.value(&CLUSTER))?;
            let region = t.region(1 << 16)?;
            let mut first = t.initiate();
            let mut second = t.initiate_from(1)?;
            establish_as(t, TSS_CTR_001, &mut first, &region)?;
            establish_as(t, TSS_CTR_001, &mut second, &region)?;
            for n in 0..3 {
                check_write(t, TSS_CTR_001, &first, &region, 2 * n + 1)?;
                check_write(t, TSS_CTR_001, &second, &region, 2 * n + 2)?;
            }
            check_distinct_counters(t)
        }),
    rule("tss-send/contexts", "Packets of several contexts with one peer have different counters")
        .checks(&[TSS_CTR_001])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let region = t.region(1 << 16)?;
            let mut contexts = [t.initiate(), t.initiate(), t.initiate()];
            for pdc in &mut contexts {
                establish_as(t, TSS_CTR_001, pdc, &region)?;
            }
            for n in 1..3 {
                for pdc in &contexts {
                    check_write(t, TSS_CTR_001, pdc, &region, n)?;
                }
            }
            check_distinct_counters(t)
        }),
    rule("tss-send/carry", "The counter of a device goes on beyond 8, 16, 32 and 40 bits")
        .checks(&[TSS_CTR_001])
        .over(&[&SECURED, &CARRY])
        .run(|t| {
            let mut first = t.value(&CARRY) - 3;
            t.secure_as(t.value(&SECURED), |domain| {
                // A server may have the upper half of the counters.
                if domain.mode == KeyMode::Server {
                    first |= 1 << 47;
                }
                domain.counter = Some(first);
            })?;
            t.shield()?.opens = TSS_IV_001;
            let (pdc, region) = open_new(t, TSS_CTR_001)?;
            for n in 1..6 {
                check_write(t, TSS_CTR_001, &pdc, &region, n)?;
            }
            let highest = t.shield()?.seen.iter().map(|seen| seen.counter).max().unwrap_or(0);
            t.between(TSS_CTR_001, "the highest counter", first + 5..=first + 64, highest);
            Ok(())
        }),
    rule("tss-send/psn-range", "An initiator closes a secured context before the end of its PSNs")
        .checks(&[PDS_CLOSE_012])
        .over(&[&FEW_SECURED, &LIMITED])
        .run(|t| {
            shorten_psn_range(t, t.value(&LIMITED))?;
            t.secure(t.value(&FEW_SECURED))?;
            expect_source_closes_in_range(t, 512)
        }),
    rule("tss-send/limit-target", "A target sends nothing more once its counter reaches the limit")
        .checks(&[TSS_CTR_002])
        .over(&[&SECURED, &LEFT])
        .run(|t| {
            let (_, region) = open_as(t, TSS_CTR_002, t.value(&SECURED), |_| {})?;
            leave_few_counters(t)?;
            for _ in 0..3 {
                let pdc = t.initiate();
                t.send_wire(&plain_write(&pdc, &region, 0)?)?;
                t.pause(t.soon())?;
            }
            check_counter_limit(t)
        }),
    rule("tss-send/limit-initiator", "An initiator sends nothing more once its counter reaches the limit")
        .checks(&[TSS_CTR_002, SES_DONE_001])
        .over(&[&SECURED, &LEFT, &UNPROTECTED])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let peer = t.peer(0)?;
            Target::established(t, peer, Mode::Rud)?;
            leave_few_counters(t)?;
            post_unprotected(t, peer)?;
            check_counter_limit(t)
        }),
    rule("tss-send/new-key", "A new key lets a device at its counter limit send again")
        .checks(&[TSS_AN_002, TSS_CTR_002])
        .run(|t| {
            let (pdc, region) = open_as(t, TSS_AN_002, t.value(&SECURED), |_| {})?;
            let second = t.fresh_secret();
            let shield = t.shield()?;
            shield.secrets[1] = Some(second);
            shield.installed.counter = Some(LIMIT);
            t.install()?;
            t.send_wire(&plain_write(&pdc, &region, 1)?)?;
            t.pause(t.soon())?;
            t.forget();
            let shield = t.shield()?;
            (shield.installed.counter, shield.installed.an) = (None, 1);
            t.install()?;
            check_write(t, TSS_AN_002, &pdc, &region, 2)?;
            let an = t.shield()?.seen.last().map(|seen| u8::from(seen.an));
            t.check(TSS_AN_002, "association number", Some(1), an);
            // The first key is still at its limit.
            t.settle()?;
            let shield = t.shield()?;
            shield.installed.an = 0;
            let before = shield.seen.len();
            match t.install() {
                // A device may refuse a key without counters.
                Err(Stop::Inconclusive(_)) => return Ok(()),
                other => other?,
            }
            t.send_wire(&plain_write(&pdc, &region, 3)?)?;
            t.pause(t.soon())?;
            let sent = t.shield()?.seen.iter().skip(before).filter(|seen| !seen.an).count();
            t.check(TSS_CTR_002, "packets under the key at its limit:", 0, sent);
            Ok(())
        }),
];

/// Checks that no two packets under one key have the same counter.
fn check_distinct_counters(t: &mut Test<'_>) -> Outcome {
    let mut distinct: Vec<_> =
        t.shield()?.seen.iter().map(|seen| (seen.an, seen.epoch, seen.counter)).collect();
    let sent = distinct.len();
    distinct.sort_unstable();
    distinct.dedup();
    t.check(TSS_CTR_001, "repeated counters:", 0, sent - distinct.len());
    Ok(())
}

/// Leaves the device few counters before the limit.
fn leave_few_counters(t: &mut Test<'_>) -> Outcome {
    let left = t.value(&LEFT);
    let shield = t.shield()?;
    shield.installed.counter = Some(LIMIT - left);
    shield.seen.clear();
    t.install()
}

/// Has the device try the operation of [`UNPROTECTED`], and gives it time. Checks that an operation that
/// needs an answer has not ended well.
fn post_unprotected(t: &mut Test<'_>, peer: u64) -> Outcome {
    let mode = t.value(&UNPROTECTED);
    let operation = t.post(match mode {
        Mode::Uud => post_datagram(peer, 64),
        Mode::Rudi => post_idempotent(PostKind::Write, peer, 64),
        _ => post(PostKind::Write, peer, 64),
    })?;
    t.pause(t.later() * 2)?;
    if mode != Mode::Uud {
        let ended = t.completion(operation, Duration::ZERO)?.map(|completion| completion.status);
        t.one_of(SES_DONE_001, "the completion", NOT_WELL, ended);
    }
    Ok(())
}

/// Checks that the device has sent no more packets than it had counters, and no plaintext packet.
fn check_counter_limit(t: &mut Test<'_>) -> Outcome {
    let left = t.value(&LEFT) as usize;
    let shield = t.shield()?;
    let (sent, clear) = (shield.seen.len(), shield.clear);
    let wrapped = shield.seen.iter().filter(|seen| !(LIMIT - 2..LIMIT).contains(&seen.counter)).count();
    t.at_most(TSS_CTR_002, "protected packets", left, sent);
    t.check(TSS_CTR_002, "counters beyond the limit:", 0, wrapped);
    t.check(TSS_CTR_002, "packets in the clear:", 0, clear);
    Ok(())
}
