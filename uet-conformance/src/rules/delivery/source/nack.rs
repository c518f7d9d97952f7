//! NACKs that cause a retransmission or a later ACK: the action of each code at an initiator (section 3.5).

use super::steps::check_opening;
use crate::prelude::*;
use crate::rules::delivery::rule;
use crate::rules::steps::message_in_flight;
use crate::target::RxRequest;
use uet_wire::pds::{Nack, NackCcx};

/// The codes after which a packet waits for NACK_Retx_Time.
const WAITS: Axis<NackCode> = axis("code").values(&[
    ("no-resource", NackCode::NO_RESOURCE),
    ("no-pkt-buffer", NackCode::NO_PKT_BUFFER),
    ("no-gtd-del", NackCode::NO_GTD_DEL_AVAIL),
    ("no-ses-msg", NackCode::NO_SES_MSG_AVAIL),
    ("oor-window", NackCode::PSN_OOR_WINDOW),
]);

/// NACK_Retx_Time as the script sets it, as a multiple of the default.
const WAIT: Axis<u64> = axis("wait").values(&[("default", 1), ("tripled", 3)]);

/// Codes after which the number of retransmissions is limited.
const LIMITED: Axis<NackCode> = axis("code").values(&[
    ("no-resource", NackCode::NO_RESOURCE),
    ("no-pkt-buffer", NackCode::NO_PKT_BUFFER),
    ("trimmed", NackCode::TRIMMED),
    ("trimmed-lasthop", NackCode::TRIMMED_LASTHOP),
    ("oor-window", NackCode::PSN_OOR_WINDOW),
    ("infer-loss", NackCode::RCVR_INFER_LOSS),
    ("exp-normal", NackCode::EXP_NACK_NORMAL),
]);

/// Max_NACK_Retx_Cnt as the script sets it, or the default.
pub(super) const MOST: Axis<Option<u64>> =
    axis("most").values(&[("default", None), ("1", Some(1)), ("0", Some(0)), ("2", Some(2))]);

pub(super) const RULES: &[Rule] = &[
    rule("source-nack/no-resource", "A packet refused for lack of a resource is retransmitted")
        .checks(&[PDS_NACK_004, PDS_RTO_005])
        .run(|t| {
            let (mut target, written) = message_in_flight(t, 4)?;
            let codes = [
                NackCode::NO_PKT_BUFFER,
                NackCode::NO_GTD_DEL_AVAIL,
                NackCode::NO_SES_MSG_AVAIL,
                NackCode::NO_RESOURCE,
            ];
            for (n, code) in (1..).zip(codes) {
                target.refuse(t, code, n)?;
            }
            for (n, code) in (1..).zip(codes) {
                t.note(format!("after {code}"));
                let again = target.expect_again(t, PDS_NACK_004, n, t.later())?;
                t.check(PDS_RTO_005, "SES header and payload", target.packet(n)?.content(), again.content());
            }
            target.ack(t, 4)?;
            t.ends(PDS_NACK_004, written, Status::Ok)
        }),
    rule("source-nack/only-refused", "A RUD source retransmits only the refused packet before the timeout")
        .checks(&[PDS_NACK_004])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .measure(|t| {
            require_short_nack_wait(t)?;
            let (mut target, _) = message_in_flight(t, 3)?;
            let since = target.asked;
            target.refuse(t, NackCode::NO_RESOURCE, 2)?;
            target.expect_again(t, PDS_NACK_004, 2, t.later())?;
            let left = (since + t.early()).saturating_sub(t.now());
            target.expect_none(t, PDS_NACK_004, "no other packet than the refused one", left, |n| n != 2)
        }),
    rule("source-nack/nack-retx-time", "After a normal NACK, the packet waits for NACK_Retx_Time")
        .checks(&[PDS_NACK_006, PDS_NACK_004])
        .over(&[&MODE, &CARRIER, &START, &WAITS, &WAIT])
        .measure(|t| {
            if let times @ 2.. = t.value(&WAIT) {
                t.configure("nack_retx_time", t.parameter("nack_retx_time") * times)?;
            }
            let (mut target, _) = message_in_flight(t, 1)?;
            let refused = t.now();
            target.refuse(t, t.value(&WAITS), 1)?;
            let again = expect_retransmission(t, &mut target, 1)?;
            let waited = again.seen.at.saturating_sub(refused);
            let bound = Bound::from(t.nack_wait()).from_parameter("nack_retx_time");
            t.at_least(PDS_NACK_006, "the time before the retransmission", bound, waited);
            Ok(())
        }),
    rule("source-nack/trimmed", "A trimmed packet is retransmitted well before its timeout")
        .checks(&[PDS_NACK_004, PDS_NACK_007])
        .measure(|t| {
            expect_early_retransmissions(t, &[NackCode::TRIMMED, NackCode::TRIMMED_LASTHOP], PDS_NACK_007)
        }),
    rule("source-nack/trimmed-first", "A trimmed packet is retransmitted before an earlier refused one")
        .checks(&[PDS_NACK_007, PDS_NACK_004])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .measure(|t| {
            require_short_nack_wait(t)?;
            require(!t.nack_wait().is_zero(), "NACK_Retx_Time is zero")?;
            let (mut target, _) = message_in_flight(t, 2)?;
            target.refuse(t, NackCode::NO_RESOURCE, 1)?;
            target.refuse(t, NackCode::TRIMMED, 2)?;
            let first = target.expect_any_again(t, PDS_NACK_004, 2)?;
            t.check(PDS_NACK_007, "the first retransmitted packet", 2, target.index(&first));
            Ok(())
        }),
    rule("source-nack/inferred-loss", "After RCVR_INFER_LOSS, a packet is retransmitted before its timeout")
        .checks(&[PDS_NACK_004])
        .measure(|t| {
            require_short_nack_wait(t)?;
            expect_early_retransmissions(t, &[NackCode::RCVR_INFER_LOSS], PDS_NACK_004)
        }),
    rule("source-nack/experimental", "The non-fatal experimental codes cause a retransmission")
        .checks(&[PDS_NACK_004])
        .measure(|t| {
            let (mut target, written) = message_in_flight(t, 2)?;
            target.refuse(t, NackCode::EXP_NACK_NORMAL, 1)?;
            target.refuse(t, NackCode::EXP_NACK_ERR, 2)?;
            expect_retransmission(t, &mut target, 1)?;
            expect_retransmission(t, &mut target, 2)?;
            target.ack(t, 2)?;
            t.ends(PDS_NACK_004, written, Status::Ok)
        }),
    rule("source-nack/no-context", "An opening packet refused for lack of a context is retransmitted")
        .checks(&[PDS_NACK_004, PDS_SYN_001])
        .measure(|t| {
            // Each code gets its own context, since the device may limit the NACKs of a packet.
            let mut before = Vec::new();
            for (job, code) in
                (101..).zip([NackCode::NO_PDC_AVAIL, NackCode::NO_CCC_AVAIL, NackCode::NO_BITMAP])
            {
                t.note(format!("after {code}"));
                let peer = t.peer_of_job(job)?;
                let written = t.post(post(PostKind::Write, peer, 64))?;
                let mut target = Target::accept_beside(t, &before.iter().collect::<Vec<_>>())?;
                target.refuse_without_context(t, code, 0)?;
                let again = expect_retransmission(t, &mut target, 0)?;
                check_opening(t, &again.request);
                target.ack(t, 0)?;
                t.ends(PDS_NACK_004, written, Status::Ok)?;
                before.push(target);
            }
            Ok(())
        }),
    rule("source-nack/then-accepted", "The first ACK establishes a context that was refused at first")
        .checks(&[PDS_NACK_004, PDS_SYN_004])
        .run(|t| {
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, 64))?;
            let mut target = Target::accept(t)?;
            target.refuse_without_context(t, NackCode::NO_PDC_AVAIL, 0)?;
            t.settle()?;
            target.expect_again(t, PDS_NACK_004, 0, t.later())?;
            target.ack(t, 0)?;
            t.settle()?;
            t.post(post(PostKind::Write, peer, 128))?;
            let next = target.expect_new(t, PDS_SYN_004, 1)?;
            t.check(PDS_SYN_004, "syn", false, next.request.syn());
            t.check(PDS_SYN_004, "dpdcid", Some(target.pdc.local), next.request.dpdcid());
            Ok(())
        }),
    rule("source-nack/limit", "NACKs cause at most Max_NACK_Retx_Cnt retransmissions of a packet")
        .checks(&[PDS_NACK_005])
        .over(&[&LIMITED, &MOST, &MODE, &CARRIER, &START])
        .run(|t| {
            let most = set_most(t)?;
            let code = t.value(&LIMITED);
            let (mut target, written) = message_in_flight(t, 1)?;
            expect_given_up(t, &mut target, (1, most), |t, target| target.refuse(t, code, 1))?;
            t.fails(PDS_NACK_005, written, t.until_given_up())
        }),
    rule("source-nack/outside-window", "A packet refused as outside the target's window is retransmitted")
        .checks(&[PDS_NACK_004])
        .measure(|t| {
            let (mut target, written) = message_in_flight(t, 2)?;
            target.ack(t, 1)?;
            target.refuse(t, NackCode::PSN_OOR_WINDOW, 2)?;
            expect_retransmission(t, &mut target, 2)?;
            target.ack(t, 2)?;
            t.ends(PDS_NACK_004, written, Status::Ok)
        }),
    rule("source-nack/not-received", "A packet that an ACK_REQUEST finds missing is retransmitted")
        .checks(&[PDS_NACK_015, PDS_RTO_005, PDS_SACK_004])
        .run(|t| {
            let (mut target, written) = message_in_flight(t, 2)?;
            target.ack(t, 1)?;
            target.sack(t, 2, &[2])?;
            target.expect_control(t, PDS_SACK_004, CtlType::ACK_REQUEST, t.later())?;
            target.refuse(t, NackCode::PKT_NOT_RCVD, 2)?;
            let again = target.expect_again(t, PDS_NACK_015, 2, t.later())?;
            t.check(PDS_RTO_005, "SES header and payload", target.packet(2)?.content(), again.content());
            target.ack(t, 2)?;
            t.ends(PDS_NACK_015, written, Status::Ok)
        }),
    rule("source-nack/ack-with-data", "A read whose data was lost with its ACK is retransmitted")
        .checks(&[PDS_NACK_015, PDS_RTO_005, PDS_SACK_004])
        .needs(&[READ])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            t.post(post(PostKind::Read, peer, 8))?;
            target.collect(t, 2)?;
            // The ACK with the data is lost. A later one reports that the request has arrived.
            target.sack(t, 1, &[1])?;
            target.expect_control(t, PDS_SACK_004, CtlType::ACK_REQUEST, t.later())?;
            target.refuse(t, NackCode::ACK_WITH_DATA, 1)?;
            let again = target.expect_again(t, PDS_NACK_015, 1, t.later())?;
            t.check(PDS_RTO_005, "SES header", target.packet(1)?.content(), again.content());
            Ok(())
        }),
    rule("source-nack/processing-then-ack", "After RCVD_SES_PROCG, a timely ACK prevents retransmission")
        .checks(&[PDS_NACK_012])
        .measure(|t| {
            t.slowed()?;
            let (mut target, written) = message_in_flight(t, 1)?;
            let until = t.now() + t.nack_wait() / 2;
            target.refuse(t, NackCode::RCVD_SES_PROCG, 1)?;
            let psn = target.psn(1);
            t.expect_none(PDS_NACK_012, "no request at once", t.nack_wait() / 2, |seen| {
                seen.request().filter(|request| request.psn() == psn && seen.at <= until)
            })?;
            if t.now() > until + t.nack_wait() / 4 {
                return Err(Stop::Inconclusive("the suite was too slow to acknowledge in time".into()));
            }
            target.ack(t, 1)?;
            t.ends(PDS_NACK_012, written, Status::Ok)?;
            t.settle_if_busy()?;
            let span = 2 * t.nack_wait() + 2 * t.rto();
            target.expect_none(t, PDS_NACK_012, "no retransmission", span, |n| n == 1)?;
            let peer = t.peer(0)?;
            t.expect_action(peer)
        }),
    rule("source-nack/processing", "RCVD_SES_PROCG without an ACK leads to a retry before the timeout")
        .checks(&[PDS_NACK_012])
        .measure(|t| {
            let (target, written) = message_in_flight(t, 1)?;
            target.refuse(t, NackCode::RCVD_SES_PROCG, 1)?;
            let (psn, within) = (target.psn(1), t.later());
            let expected = format!("PSN {psn} again, or an ACK_REQUEST for it");
            let (reaction, ()) = t.expect(PDS_NACK_012, &expected, within, |seen| {
                let resent = seen.request().is_some_and(|request| request.psn() == psn && request.retx());
                let requested = target.control(seen, CtlType::ACK_REQUEST).is_some_and(|it| it.psn() == psn);
                (resent || requested).then_some(())
            })?;
            if nack_wait_is_short(t) {
                check_early(t, PDS_NACK_012, target.packet(1)?, &reaction);
            }
            target.ack(t, 1)?;
            t.ends(PDS_NACK_012, written, Status::Ok)
        }),
    rule("source-nack/nack-ccx", "A NACK_CCX causes a retransmission like a NACK")
        .checks(&[PDS_NACK_004])
        .measure(|t| {
            let (mut target, written) = message_in_flight(t, 1)?;
            let remote = target.pdc.remote.unwrap_or(PdcId::NONE);
            let code = NackCode::NO_RESOURCE;
            let nack = NackCcx::build(code)
                .nack(|nack| nack.nack_psn(target.psn(1)).spdcid(target.pdc.local).dpdcid(remote));
            let refused = t.now();
            t.send(&target.pdc, &UetBuf::new(nack.done()?))?;
            let again = target.expect_again(t, PDS_NACK_004, 1, t.later())?;
            if nack_wait_is_short(t) {
                let waited = again.seen.at.saturating_sub(refused);
                let bound = Bound::from(t.early()).from_parameter("70 % of rto_init_time");
                t.at_most(PDS_NACK_004, "the time before the retransmission", bound, waited);
            }
            target.ack(t, 1)?;
            t.ends(PDS_NACK_004, written, Status::Ok)
        }),
    rule("source-nack/new-start", "After NEW_START_PSN, all packets get new PSNs and psn_offsets")
        .checks(&[PDS_NACK_009])
        .run(|t| {
            let peer = t.peer(0)?;
            let written = t.post(post(PostKind::Write, peer, 3 * t.mtu()))?;
            let mut target = Target::accept(t)?;
            target.watch(t, t.grace())?;
            let sent = target.highest();
            let before: Vec<_> =
                target.got.iter().map(|got| (target.index(&got.request), got.content())).collect();
            let start = Psn(target.pdc.start.0.wrapping_add(0x1234_5678));
            let remote = target.pdc.remote.unwrap_or(PdcId::NONE);
            let nack = Nack::build(NackCode::NEW_START_PSN).nack_psn(target.psn(0)).spdcid(target.pdc.local);
            t.send(&target.pdc, &UetBuf::new(nack.dpdcid(remote).payload(start.0).done()?))?;
            t.settle()?;
            // Only a secured target sends this. Without security, a device may drop it or end the context.
            let renumbered =
                |seen: &RxPacket| seen.request().is_some_and(|request| request.psn() - start < 4096);
            require(
                t.hear(t.patience(t.later()), renumbered)?,
                "the device ignores NEW_START_PSN without security",
            )?;
            target.pdc.start = start;
            target.got.clear();
            for n in 0..=sent {
                let packet = target.expect_new(t, PDS_NACK_009, n)?;
                t.check(PDS_NACK_009, "syn", true, packet.request.syn());
                let offset = packet.request.psn_offset().map(|offset| u32::from(offset.get()));
                t.check(PDS_NACK_009, "psn_offset", Some(n), offset);
                let earlier = before.iter().find(|(index, _)| *index == n);
                let differs = earlier.is_none_or(|(_, content)| *content != packet.content());
                t.check(PDS_NACK_009, "packets whose content has changed", 0, u32::from(differs));
            }
            target.collect(t, 3)?;
            target.ack(t, 2)?;
            t.ends(PDS_NACK_009, written, Status::Ok)
        }),
];

/// Returns true if a retransmission after NACK_Retx_Time comes well before the first timeout.
fn nack_wait_is_short(t: &Test<'_>) -> bool {
    t.nack_wait() * 2 + t.grace() < t.early()
}

/// Skips the rule unless a retransmission after NACK_Retx_Time comes well before the first timeout.
fn require_short_nack_wait(t: &Test<'_>) -> Outcome {
    require(nack_wait_is_short(t), "NACK_Retx_Time is not well below RTO_Init_Time")
}

/// Refuses one packet by each of these codes. Expects their retransmissions before the timeout.
fn expect_early_retransmissions(t: &mut Test<'_>, codes: &[NackCode], requirement: &Requirement) -> Outcome {
    let count = codes.len() as u32;
    let (mut target, written) = message_in_flight(t, count)?;
    for (n, code) in (1..).zip(codes) {
        target.refuse(t, *code, n)?;
    }
    for n in 1..=count {
        let again = target.expect_again(t, PDS_NACK_004, n, t.later())?;
        check_early(t, requirement, target.packet(n)?, &again.seen);
        // The next retransmission may wait until congestion control permits it.
        target.name(t, n, 1)?;
    }
    target.ack(t, count)?;
    t.ends(PDS_NACK_004, written, Status::Ok)
}

/// Sets Max_NACK_Retx_Cnt as [`MOST`] says, and returns it.
pub(super) fn set_most(t: &mut Test<'_>) -> Result<u64, Stop> {
    if let Some(most) = t.value(&MOST) {
        t.configure("max_nack_retx_cnt", most)?;
        // A retransmission does not show its cause, so timeouts are few.
        t.try_configure("max_rto_retx_cnt", 1)?;
    }
    t.nack_limit()
}

/// Refuses the `n`-th packet whenever it arrives. Expects at most `most` retransmissions, apart from those after a
/// timeout.
pub(super) fn expect_given_up(
    t: &mut Test<'_>,
    target: &mut Target,
    (n, most): (u32, u64),
    refuse: impl Fn(&mut Test<'_>, &Target) -> Outcome,
) -> Outcome {
    let most = (most + t.parameter("max_rto_retx_cnt")) as usize;
    let mut seen = target.got.len();
    refuse(t, target)?;
    while target.next(t, t.later())?.is_some() && target.times(n) <= most + 3 {
        if target.got.len() > seen {
            seen = target.got.len();
            refuse(t, target)?;
        }
    }
    let bound = Bound::from(most + 1).from_parameter("max_nack_retx_cnt and max_rto_retx_cnt");
    t.at_most(PDS_NACK_005, "transmissions of the packet", bound, target.times(n));
    Ok(())
}

/// Checks that a retransmission came before the timeout.
fn check_early(t: &mut Test<'_>, requirement: &Requirement, first: &RxRequest, resent: &RxPacket) {
    let waited = resent.at.saturating_sub(first.seen.at);
    let bound = Bound::from(t.early()).from_parameter("70 % of rto_init_time");
    t.at_most(requirement, "the time before the retransmission", bound, waited);
}

/// Expects a retransmission of the `n`-th packet, before its timeout if NACK_Retx_Time is well below that.
fn expect_retransmission(t: &mut Test<'_>, target: &mut Target, n: u32) -> Result<RxRequest, Stop> {
    let again = target.expect_again(t, PDS_NACK_004, n, t.later())?;
    if nack_wait_is_short(t) {
        check_early(t, PDS_NACK_004, target.packet(n)?, &again.seen);
    }
    Ok(again)
}
