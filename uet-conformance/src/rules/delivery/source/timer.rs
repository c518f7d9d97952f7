//! The retransmission timer of each kind of packet: its timeout, count and limit (section 3.5).

use crate::axis::Carrier;
use crate::prelude::*;
use crate::rules::steps::{
    RETRYING, message_in_flight, post_idempotent, require_retransmissions, rudi_request,
};
use uet_control::ClosePdc;

/// A packet of the device that gets no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unanswered {
    /// The request that opens a context.
    Opening,
    /// A request of an open context.
    Request,
    /// The last request of a message. The others are acknowledged.
    Last,
    /// CLOSE_COMMAND.
    Close,
    /// Read data on the return direction.
    Data,
    /// A RUDI request.
    Rudi,
}

const PACKET: Axis<Unanswered> = axis("packet").needing(&[
    ("request", Unanswered::Request, &[]),
    ("opening", Unanswered::Opening, &[]),
    ("last", Unanswered::Last, &[]),
    ("close-command", Unanswered::Close, &[CLOSE]),
    ("return-data", Unanswered::Data, &[READ, WRITE]),
]);

/// A packet whose loss makes its context fail.
const FAILED: Axis<Unanswered> =
    axis("failed").values(&[("request", Unanswered::Request), ("opening", Unanswered::Opening)]);

/// A packet whose retransmissions have no limit.
const UNLIMITED: Axis<Unanswered> = axis("packet")
    .needing(&[("request", Unanswered::Request, &[]), ("rudi-request", Unanswered::Rudi, &[RUDI])]);

/// Max_RTO_Retx_Cnt as the script sets it. 0 leaves the default.
const LIMIT: Axis<u64> = axis("limit").values(&[("default", 0), ("1", 1), ("2", 2)]);

/// RTO_Init_Time as the script sets it, as a multiple of the default.
const FIRST_TIMEOUT: Axis<u64> = axis("rto").values(&[("default", 1), ("doubled", 2)]);

/// A Max_RTO_Retx_Cnt that means no limit.
const NO_LIMIT: Axis<u64> = axis("count").values(&[("15", 15), ("31", 31)]);

/// The operation whose packet gets no reply.
const OPERATION: Axis<PostKind> = axis("operation").needing(&[
    ("write", PostKind::Write, &[]),
    ("read", PostKind::Read, &[READ]),
    ("send", PostKind::Send, &[SEND]),
    ("tsend", PostKind::Tsend, &[TSEND]),
]);

/// The identity of a packet and its retransmissions: the PDCID of the sender and the PSN, or the pkt_id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    spdcid: PdcId,
    psn: Psn,
}

pub(super) const RULES: &[Rule] = &[
    rule("retransmit-timer/schedule", "The timeouts of a packet start at RTO_Init_Time and double")
        .checks(&[PDS_RTO_001, PDS_RTO_002, PDS_RTO_005])
        .over(&[&MODE, &CARRIER, &PACKET, &FIRST_TIMEOUT])
        .measure(|t| {
            t.require_plain_timeouts()?;
            positive_limit(t)?;
            if let times @ 2.. = t.value(&FIRST_TIMEOUT) {
                t.configure("rto_init_time", t.parameter("rto_init_time") * times)?;
            }
            let times = transmissions(t, t.value(&PACKET))?;
            t.at_least(PDS_RTO_001, "transmissions of the packet", 2, times.len());
            for (n, pair) in times.windows(2).enumerate() {
                let (waited, due) = (pair[1].0.saturating_sub(pair[0].0), t.rto() * (1 << n));
                let longest = t.scaled(due.mul_f64(1.5)) + t.grace();
                let range = Bound::from(due.mul_f64(0.6)..=longest)
                    .from_parameter("rto_init_time, doubled for each retransmission")
                    .tolerating("from 60 % to 150 %");
                t.between(PDS_RTO_002, &format!("the time before retransmission {}", n + 1), range, waited);
                t.check(PDS_RTO_005, &format!("retx of retransmission {}", n + 1), true, pair[1].1);
            }
            Ok(())
        }),
    rule("retransmit-timer/count", "Max_RTO_Retx_Cnt limits the retransmissions of each kind of packet")
        .checks(&[PDS_RTO_001, PDS_RTO_003])
        .over(&[&MODE, &CARRIER, &PACKET, &LIMIT])
        .run(|t| {
            if let limit @ 1.. = t.value(&LIMIT) {
                t.configure("max_rto_retx_cnt", limit)?;
            }
            let most = positive_limit(t)? as usize + 1;
            let times = transmissions(t, t.value(&PACKET))?.len();
            t.at_least(PDS_RTO_001, "transmissions of the packet", 2, times);
            t.at_most(
                PDS_RTO_003,
                "transmissions of the packet",
                Bound::from(most).from_parameter("max_rto_retx_cnt"),
                times,
            );
            Ok(())
        }),
    rule("retransmit-timer/failure", "An operation fails only when its retransmissions are exhausted")
        .checks(&[PDS_RTO_004])
        .over(&[&MODE, &CARRIER, &OPERATION])
        .measure(|t| {
            // The packet of the operation is lost until the device gives it up.
            let most = positive_limit(t)?;
            let peer = t.peer(0)?;
            let kind = t.value(&OPERATION);
            Target::established(t, peer, Mode::Rud)?;
            let plain = post(kind, peer, 64);
            let tag = (kind == PostKind::Tsend).then_some(uet_control::Hex64(0x7a9));
            let operation = t.post(uet_control::Post { tag, ..plain })?;
            let within = t.later();
            let (_, request) = t.need("the request of the operation", within, |seen| seen.request())?;
            let (key, mut times) = (Key { spdcid: request.spdcid(), psn: request.psn() }, 1u32);
            loop {
                let longest = t.scaled(t.rto() * (2 << times.min(10))) + t.soon();
                let again = t.wait(longest, |seen| key_of(seen).filter(|(other, _)| *other == key))?;
                if again.is_none() {
                    break;
                }
                // The operation had not failed when its packet was retransmitted.
                let early = t.completion(operation, Duration::ZERO)?.map(|completion| completion.status);
                t.check(PDS_RTO_004, &format!("the completion at retransmission {times}"), None, early);
                times += 1;
            }
            let ended = t.completion(operation, t.soon())?.map(|completion| completion.status);
            let least =
                Bound::from(most as u32).from_parameter("max_rto_retx_cnt").tolerating("one retransmission");
            t.at_least(PDS_RTO_004, "transmissions when the operation fails", least, times);
            t.holds(
                PDS_RTO_004,
                "the operation fails when its retransmissions are exhausted",
                ended.is_some_and(|status| status != Status::Ok),
                crate::Show::show(&ended),
            );
            Ok(())
        }),
    rule("retransmit-timer/last-chance", "An ACK of the last retransmission completes the operation")
        .checks(&[PDS_RTO_004])
        .over(&[&MODE, &CARRIER])
        .run(|t| {
            // A device may use fewer retransmissions than the limit, so the script counts them first.
            let most = positive_limit(t)?;
            let times = transmissions(t, Unanswered::Request)?.len() as u32;
            if times < 2 {
                return Err(Stop::Inconclusive(format!("the packet was sent once, not {} times", most + 1)));
            }
            let peer = t.peer_of_job(202)?;
            let mut target = Target::established(t, peer, Mode::Rud)?;
            let written = t.post(post(PostKind::Write, peer, 64))?;
            target.collect(t, 2)?;
            for n in 1..times {
                let within = t.soon() + t.scaled(t.rto() * (2 << n));
                let seen = target.next(t, within)?.is_some();
                if !seen {
                    return Err(Stop::Inconclusive(format!("retransmission {n} has not arrived")));
                }
            }
            target.ack(t, 1)?;
            t.ends(PDS_RTO_004, written, Status::Ok)
        }),
    rule("retransmit-timer/each-packet", "The retransmissions of one packet do not count for another")
        .checks(&[PDS_RTO_002, PDS_RTO_003, PDS_RTO_004])
        .over(&[&MODE, &CARRIER])
        .measure(|t| {
            // Each packet is lost once. A count of the whole context would reach the limit.
            let most = positive_limit(t)?;
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            for n in 1..=(most + 2) as u32 {
                let written = t.post(post(PostKind::Write, peer, 64))?;
                let first = target.expect_new(t, PDS_RTO_004, n)?.seen.at;
                let again = target.expect_again(t, PDS_RTO_003, n, t.later())?.seen.at;
                let longest = t.scaled(t.rto().mul_f64(1.5)) + t.grace();
                let bound = Bound::from(longest).from_parameter("rto_init_time").tolerating("50 %");
                t.at_most(
                    PDS_RTO_002,
                    "the time before the first retransmission",
                    bound,
                    again.saturating_sub(first),
                );
                target.ack(t, n)?;
                t.ends(PDS_RTO_004, written, Status::Ok)?;
            }
            Ok(())
        }),
    rule(
        "retransmit-timer/beside-timeouts",
        "The timeouts of a packet do not lengthen that of another packet",
    )
    .checks(&[PDS_RTO_001, PDS_RTO_002])
    .needs(&[RUD])
    .over(&[&CARRIER])
    .measure(|t| {
        // The first packet stays unanswered, so the context always has one that waits longer.
        t.require_plain_timeouts()?;
        require_retransmissions(t, 3)?;
        let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
        t.post(post(PostKind::Write, peer, 64))?;
        for _ in 0..2 {
            target.expect_again(t, PDS_RTO_001, 1, t.later() * 2)?;
        }
        t.post(post(PostKind::Write, peer, 64))?;
        target.collect(t, 3)?;
        let first = target.packet(2)?.seen.at;
        let again = target.expect_again(t, PDS_RTO_001, 2, t.later() * 2)?.seen.at;
        let longest = t.scaled(t.rto().mul_f64(1.5)) + t.grace();
        let bound = Bound::from(longest).from_parameter("rto_init_time").tolerating("50 %");
        let waited = again.saturating_sub(first);
        t.at_most(PDS_RTO_002, "the time before the first retransmission", bound, waited);
        Ok(())
    }),
    rule(
        "retransmit-timer/next-context",
        "The timeouts of a failed context do not lengthen those of the next",
    )
    .checks(&[PDS_RTO_001, PDS_RTO_002])
    .over(&[&MODE, &CARRIER, &FAILED])
    .measure(|t| {
        t.require_plain_timeouts()?;
        // The next context may get the PDCID of the failed one.
        t.try_configure("general_pdcs", 1)?;
        positive_limit(t)?;
        transmissions(t, t.value(&FAILED))?;
        let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
        t.post(post(PostKind::Write, peer, 64))?;
        let first = target.expect_new(t, PDS_RTO_001, 1)?.seen.at;
        let again = target.expect_again(t, PDS_RTO_001, 1, t.later() * 2)?.seen.at;
        let longest = t.scaled(t.rto().mul_f64(1.5)) + t.grace();
        let bound = Bound::from(longest).from_parameter("rto_init_time").tolerating("50 %");
        let waited = again.saturating_sub(first);
        t.at_most(PDS_RTO_002, "the time before the first retransmission", bound, waited);
        Ok(())
    }),
    rule("retransmit-timer/beside-acks", "ACKs of other packets do not restart the timer of a lost packet")
        .checks(&[PDS_RTO_001, PDS_RTO_002])
        .needs(&[RUD])
        .over(&[&CARRIER])
        .measure(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            t.post(post(PostKind::Write, peer, 64))?;
            let lost = target.expect_new(t, PDS_RTO_001, 1)?.seen.at;
            let longest = t.scaled(t.rto().mul_f64(1.5)) + t.grace();
            let mut acked = 2;
            while t.now() < lost + longest {
                t.post(post(PostKind::Write, peer, 64))?;
                let until = t.now() + t.rto() / 4;
                while target.next(t, until.saturating_sub(t.now()))?.is_some() {}
                while target.times(acked) > 0 {
                    target.name(t, acked, 1)?;
                    acked += 1;
                }
                if target.times(1) > 1 {
                    break;
                }
            }
            // A device may take the ACKs above the gap for a sign of loss, and retransmit at once.
            require(acked > 3 || target.times(1) > 1, "the device sends no message beside a lost packet")?;
            let again = target.of(1).nth(1).map(|again| again.seen.at.saturating_sub(lost));
            let bound = Bound::from(longest).from_parameter("rto_init_time").tolerating("50 %");
            match again {
                Some(waited) => {
                    t.at_most(PDS_RTO_002, "the time before the first retransmission", bound, waited);
                }
                None => t.holds(PDS_RTO_001, "the lost packet is retransmitted", false, "no retransmission"),
            }
            Ok(())
        }),
    rule("retransmit-timer/after-nack", "A packet retransmitted after a NACK still has a timeout")
        .checks(&[PDS_NACK_004, PDS_RTO_001])
        .over(&[&MODE, &CARRIER, &RETRYING])
        .run(|t| {
            let code = t.value(&RETRYING);
            let (mut target, written): (Target, Operated) = message_in_flight(t, 1)?;
            target.refuse(t, code, 1)?;
            target.expect_again(t, PDS_NACK_004, 1, t.later())?;
            let content = target.packet(1)?.content();
            let again = target.expect_again(t, PDS_RTO_001, 1, t.later() * 2)?;
            t.check(PDS_NACK_004, "the content of the second retransmission", content, again.content());
            target.ack(t, 1)?;
            t.ends(PDS_RTO_001, written, Status::Ok)
        }),
    rule("retransmit-timer/unlimited", "A Max_RTO_Retx_Cnt of 15 or 31 means no limit")
        .checks(&[PDS_RTO_003])
        .needs(&[PARAMETERS])
        .over(&[&NO_LIMIT, &UNLIMITED, &MODE])
        .run(|t| {
            // The timeout doubles, so only virtual time is fast enough.
            require(t.facts().virtual_time, "so many timeouts take too long")?;
            t.configure("max_rto_retx_cnt", t.value(&NO_LIMIT))?;
            t.try_configure("rto_init_time", 20_000)?;
            let (key, _) = send_unanswered(t, t.value(&UNLIMITED))?;
            // 31 doublings take too long, but a device with a smaller limit stops within 26.
            for n in 0..26 {
                let within = t.soon() + t.rto() * (2 << n);
                let expected = format!("retransmission {}", n + 1);
                let again = |seen: &RxPacket| key_of(seen).filter(|(other, retx)| *other == key && *retx);
                t.expect(PDS_RTO_003, &expected, within, again)?;
            }
            Ok(())
        }),
];

/// Returns the key of a packet that the device may retransmit, and its retx.
fn key_of(seen: &RxPacket) -> Option<(Key, bool)> {
    let request = seen.request().map(|it| (Key { spdcid: it.spdcid(), psn: it.psn() }, it.retx()));
    let close = seen.control(CtlType::CLOSE_COMMAND);
    let idempotent =
        rudi_request(seen).map(|it| (Key { spdcid: PdcId::NONE, psn: Psn(it.pkt_id()) }, it.retx()));
    request.or(close.map(|it| (Key { spdcid: it.spdcid(), psn: it.psn() }, it.retx()))).or(idempotent)
}

/// Returns Max_RTO_Retx_Cnt. Skips the rule if it is 0, or too large to wait for the last retransmission.
fn positive_limit(t: &Test<'_>) -> Result<u64, Stop> {
    let limit = t.timeout_limit()?;
    require(limit > 0, "the device does not retransmit")?;
    Ok(limit)
}

/// The arrival time and retx of each transmission.
type Transmissions = Vec<(Duration, bool)>;

/// Has the device send this packet, which gets no reply. Returns its key and the transmissions so far. No
/// other packet is outstanding.
fn send_unanswered(t: &mut Test<'_>, packet: Unanswered) -> Result<(Key, Transmissions), Stop> {
    let peer = t.peer(0)?;
    let psn = match packet {
        Unanswered::Opening => {
            t.post(post(PostKind::Write, peer, 64))?;
            None
        }
        Unanswered::Rudi => {
            t.post(post_idempotent(PostKind::Write, peer, 64))?;
            None
        }
        Unanswered::Request => {
            let target = Target::established(t, peer, Mode::Rud)?;
            t.post(post(PostKind::Write, peer, 64))?;
            Some(target.psn(1))
        }
        Unanswered::Last => {
            let mut target = Target::established(t, peer, Mode::Rud)?;
            t.post(post(PostKind::Write, peer, 3 * t.mtu()))?;
            target.collect(t, 4)?;
            target.ack(t, 2)?;
            let first = &target.packet(3)?;
            let key = Key { spdcid: first.request.spdcid(), psn: first.request.psn() };
            return Ok((key, vec![(first.seen.at, first.request.retx())]));
        }
        Unanswered::Close => {
            let target = Target::established(t, peer, Mode::Rud)?;
            t.call(ClosePdc { peer, mode: t.value(&MODE), class: 0 })?;
            Some(target.psn(1))
        }
        Unanswered::Data => {
            require(t.value(&CARRIER) != Carrier::Send, "read data needs a region")?;
            let (pdc, region) = t.open()?;
            let length = t.beyond_ack()?;
            t.request(&pdc, pdc.request(1).read(&region, 0, length)?)?;
            let first = pdc.psn(0);
            t.hear(t.later(), |seen| {
                seen.is_for(&pdc) && seen.request().is_some_and(|it| it.psn() == first)
            })?;
            Some(first)
        }
    };
    let mut key = None;
    t.hear(t.patience(t.later()), |seen| {
        key = key_of(seen).map(|(key, _)| key).filter(|key| psn.is_none_or(|psn| key.psn == psn));
        key.is_some()
    })?;
    let key = key.ok_or_else(|| Stop::Inconclusive("the packet to lose has not arrived".into()))?;
    Ok((key, Vec::new()))
}

/// Returns all transmissions of this packet until the device gives it up.
fn transmissions(t: &mut Test<'_>, packet: Unanswered) -> Result<Transmissions, Stop> {
    let (key, mut times) = send_unanswered(t, packet)?;
    let span = t.until_given_up();
    let all = t.gather(span)?;
    let of_packet = all.iter().filter_map(|seen| Some((seen.at, key_of(seen)?)));
    times.extend(of_packet.filter(|(_, (other, _))| *other == key).map(|(at, (_, retx))| (at, retx)));
    Ok(times)
}
