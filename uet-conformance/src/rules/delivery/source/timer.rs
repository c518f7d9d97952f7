//! The retransmission timer of each kind of packet that a device sends (section 3.5): when it runs out, how
//! often, and what then.

use crate::axis::Carrier;
use crate::prelude::*;
use crate::rules::steps::{message_in_flight, post_idempotent, rudi_request};
use uet_control::ClosePdc;

/// A packet of the device that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// The request that opens a context.
    Opening,
    /// A request of an open context.
    Request,
    /// The last request of a message whose others are acknowledged.
    Last,
    /// CLOSE_COMMAND.
    Close,
    /// Read data on the return direction.
    Data,
    /// A request of RUDI.
    Idempotent,
}

const WAITING: Axis<Waiting> = axis("packet").needing(&[
    ("request", Waiting::Request, &[]),
    ("opening", Waiting::Opening, &[]),
    ("last", Waiting::Last, &[]),
    ("close-command", Waiting::Close, &[CLOSE]),
    ("return-data", Waiting::Data, &[READ, WRITE]),
]);

/// A packet that the device sends again without end.
const LASTING: Axis<Waiting> = axis("packet")
    .needing(&[("request", Waiting::Request, &[]), ("idempotent", Waiting::Idempotent, &[RUDI])]);

/// Max_RTO_Retx_Cnt as the script sets it; 0 leaves it as it is.
const LIMIT: Axis<u64> = axis("limit").values(&[("default", 0), ("1", 1), ("2", 2)]);

/// A Max_RTO_Retx_Cnt that stands for no limit.
const ENDLESS: Axis<u64> = axis("count").values(&[("15", 15), ("31", 31)]);

/// The operation whose packet is not answered.
const OPERATION: Axis<PostKind> = axis("operation").needing(&[
    ("write", PostKind::Write, &[]),
    ("read", PostKind::Read, &[READ]),
    ("send", PostKind::Send, &[SEND]),
    ("tsend", PostKind::Tsend, &[TSEND]),
]);

/// NACKs after which the packet comes again.
const REFUSAL: Axis<NackCode> = axis("code").values(&[
    ("no-resource", NackCode::NO_RESOURCE),
    ("no-pkt-buffer", NackCode::NO_PKT_BUFFER),
    ("no-gtd-del", NackCode::NO_GTD_DEL_AVAIL),
    ("no-ses-msg", NackCode::NO_SES_MSG_AVAIL),
    ("trimmed", NackCode::TRIMMED),
    ("trimmed-lasthop", NackCode::TRIMMED_LASTHOP),
    ("oor-window", NackCode::PSN_OOR_WINDOW),
    ("infer-loss", NackCode::RCVR_INFER_LOSS),
    ("pkt-not-rcvd", NackCode::PKT_NOT_RCVD),
    ("exp-normal", NackCode::EXP_NACK_NORMAL),
    ("exp-err", NackCode::EXP_NACK_ERR),
]);

/// A packet by which it is known again: its sender's PDCID and PSN, or the pkt_id alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    spdcid: PdcId,
    psn: Psn,
}

pub(super) const RULES: &[Rule] = &[
    rule("retransmit-timer/schedule", "The timeouts of a packet start at RTO_Init_Time and double")
        .checks(&[PDS_RTO_001, PDS_RTO_002, PDS_RTO_005])
        .over(&[&MODE, &CARRIER, &WAITING])
        .measure(|t| {
            most(t)?;
            let times = transmissions(t, t.value(&WAITING))?;
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
        .over(&[&MODE, &CARRIER, &WAITING, &LIMIT])
        .run(|t| {
            if let limit @ 1.. = t.value(&LIMIT) {
                t.configure("max_rto_retx_cnt", limit)?;
            }
            let most = most(t)? as usize + 1;
            let times = transmissions(t, t.value(&WAITING))?.len();
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
            // Loses a packet of the operation until the device gives it up: the transmissions, and when the
            // operation failed.
            let most = most(t)?;
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
                // It had not failed when it left again.
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
            // As often as the device sent it the time before: nothing says that it has to use all its
            // retransmissions.
            let most = most(t)?;
            let times = transmissions(t, Waiting::Request)?.len() as u32;
            if times < 2 {
                return Err(Stop::Inconclusive(format!("the packet was sent once, of {} times", most + 1)));
            }
            let peer = t.peer_of_job(202)?;
            let mut target = Target::established(t, peer, Mode::Rud)?;
            let written = t.post(post(PostKind::Write, peer, 64))?;
            target.collect(t, 2)?;
            for n in 1..times {
                let within = t.soon() + t.scaled(t.rto() * (2 << n));
                let seen = target.next(t, within)?.is_some();
                if !seen {
                    return Err(Stop::Inconclusive(format!("retransmission {n} has not come")));
                }
            }
            target.ack(t, 1)?;
            t.ends(PDS_RTO_004, written, Status::Ok)
        }),
    rule("retransmit-timer/each-packet", "The retransmissions of one packet do not count for another")
        .checks(&[PDS_RTO_002, PDS_RTO_003, PDS_RTO_004])
        .over(&[&MODE, &CARRIER])
        .measure(|t| {
            // Packets one after the other, each lost once more than the last: a count of the context would
            // end it.
            let most = most(t)?;
            let peer = t.peer(0)?;
            let mut target = Target::established(t, peer, Mode::Rud)?;
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
    rule("retransmit-timer/after-nack", "A packet retransmitted after a NACK still has a timeout")
        .checks(&[PDS_NACK_004, PDS_RTO_001])
        .over(&[&MODE, &CARRIER, &REFUSAL])
        .run(|t| {
            let code = t.value(&REFUSAL);
            let (mut target, written): (Target, Operated) = message_in_flight(t, 1)?;
            target.refuse(t, code, 1)?;
            target.expect_again(t, PDS_NACK_004, 1, t.later())?;
            let same = target.packet(1)?.content();
            let again = target.expect_again(t, PDS_RTO_001, 1, t.later() * 2)?;
            t.check(PDS_NACK_004, "the content of the second retransmission", same, again.content());
            target.ack(t, 1)?;
            t.ends(PDS_RTO_001, written, Status::Ok)
        }),
    rule("retransmit-timer/unlimited", "A Max_RTO_Retx_Cnt of 15 or 31 means no limit")
        .checks(&[PDS_RTO_003])
        .needs(&[PARAMETERS])
        .over(&[&ENDLESS, &LASTING, &MODE])
        .run(|t| {
            // The timeout doubles: only virtual time passes so quickly.
            require(t.facts().virtual_time, "so many timeouts take too long")?;
            t.configure("max_rto_retx_cnt", t.value(&ENDLESS))?;
            t.try_configure("rto_init_time", 20_000)?;
            let (key, _) = waiting(t, t.value(&LASTING))?;
            // The limit of 31 is out of reach; a device that takes it for few, or stops where its timeout cannot
            // double, ends early.
            for n in 0..26 {
                let within = t.soon() + t.rto() * (2 << n);
                let statement = format!("retransmission {}", n + 1);
                let again = |seen: &RxPacket| key_of(seen).filter(|(other, retx)| *other == key && *retx);
                t.expect(PDS_RTO_003, &statement, within, again)?;
            }
            Ok(())
        }),
];

fn key_of(seen: &RxPacket) -> Option<(Key, bool)> {
    let request = seen.request().map(|it| (Key { spdcid: it.spdcid(), psn: it.psn() }, it.retx()));
    let close = seen.control(CtlType::CLOSE_COMMAND);
    let idempotent =
        rudi_request(seen).map(|it| (Key { spdcid: PdcId::NONE, psn: Psn(it.pkt_id()) }, it.retx()));
    request.or(close.map(|it| (Key { spdcid: it.spdcid(), psn: it.psn() }, it.retx()))).or(idempotent)
}

/// Max_RTO_Retx_Cnt, where a script can wait for the last retransmission.
fn most(t: &Test<'_>) -> Result<u64, Stop> {
    match t.parameter("max_rto_retx_cnt") {
        15 | 31 => skip("the device retransmits without end"),
        count if count > 7 => skip(format!("{count} retransmissions take too long")),
        0 => skip("the device does not retransmit"),
        count => Ok(count),
    }
}

/// When a packet came, and whether it had `retx`.
type Transmissions = Vec<(Duration, bool)>;

/// Has the device send such a packet, which nothing answers: the packet, and what has come of it. Nothing
/// else is outstanding.
fn waiting(t: &mut Test<'_>, kind: Waiting) -> Result<(Key, Transmissions), Stop> {
    let peer = t.peer(0)?;
    let packet = match kind {
        Waiting::Opening => {
            t.post(post(PostKind::Write, peer, 64))?;
            None
        }
        Waiting::Idempotent => {
            t.post(post_idempotent(PostKind::Write, peer, 64))?;
            None
        }
        Waiting::Request => {
            let target = Target::established(t, peer, Mode::Rud)?;
            t.post(post(PostKind::Write, peer, 64))?;
            Some(target.psn(1))
        }
        Waiting::Last => {
            let mut target = Target::established(t, peer, Mode::Rud)?;
            t.post(post(PostKind::Write, peer, 3 * t.mtu()))?;
            target.collect(t, 4)?;
            target.ack(t, 2)?;
            let first = &target.packet(3)?;
            let key = Key { spdcid: first.request.spdcid(), psn: first.request.psn() };
            return Ok((key, vec![(first.seen.at, first.request.retx())]));
        }
        Waiting::Close => {
            let target = Target::established(t, peer, Mode::Rud)?;
            t.call(ClosePdc { peer, mode: t.value(&MODE), class: 0 })?;
            Some(target.psn(1))
        }
        Waiting::Data => {
            require(t.value(&CARRIER) != Carrier::Send, "read data comes of a region")?;
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
        key = key_of(seen).map(|(key, _)| key).filter(|key| packet.is_none_or(|psn| key.psn == psn));
        key.is_some()
    })?;
    let key = key.ok_or_else(|| Stop::Inconclusive("the packet to be lost has not come".into()))?;
    Ok((key, Vec::new()))
}

/// All transmissions of such a packet, until the device has given it up.
fn transmissions(t: &mut Test<'_>, kind: Waiting) -> Result<Transmissions, Stop> {
    let (key, mut times) = waiting(t, kind)?;
    let span = t.until_given_up();
    let all = t.gather(span)?;
    let of_packet = all.iter().filter_map(|seen| Some((seen.at, key_of(seen)?)));
    times.extend(of_packet.filter(|(_, (other, _))| *other == key).map(|(at, (_, retx))| (at, retx)));
    Ok(times)
}
