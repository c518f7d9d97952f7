//! NACKs that an initiator ignores: for PSNs that are not outstanding, and of other contexts (section 3.5).

use super::steps::other_pdcid;
use crate::prelude::*;
use crate::rules::delivery::rule;
use crate::rules::steps::message_in_flight;
use uet_wire::pds::Nack;

/// One code of each action.
const CODES: &[NackCode] = &[
    NackCode::NO_RESOURCE,
    NackCode::TRIMMED,
    NackCode::ROD_OOO,
    NackCode::PKT_NOT_RCVD,
    NackCode::CLOSING_IN_ERR,
    NackCode::GTD_RESP_UNAVAIL,
    NackCode::INV_DPDCID,
    NackCode::CLOSING,
];

pub(super) const RULES: &[Rule] = &[
    rule("source-nack-ignored/acknowledged", "A NACK of any class for an acknowledged PSN is ignored")
        .checks(&[PDS_NACK_002])
        .run(|t| {
            let (mut target, written) = message_in_flight(t, 2)?;
            target.ack(t, 1)?;
            t.settle()?;
            for code in CODES {
                target.refuse(t, *code, 1)?;
            }
            t.settle()?;
            target.expect_again(t, PDS_NACK_002, 2, t.later())?;
            target.expect_none(t, PDS_NACK_002, "no acknowledged packet", t.rto(), |n| n < 2)?;
            target.ack(t, 2)?;
            t.ends(PDS_NACK_002, written, Status::Ok)
        }),
    rule("source-nack-ignored/never-sent", "A NACK of any class for a PSN never sent is ignored")
        .checks(&[PDS_NACK_002])
        .run(|t| {
            let (mut target, written) = message_in_flight(t, 1)?;
            for code in CODES {
                for n in [2, 400, (1 << 16) + 1, (1 << 24) + 1] {
                    target.refuse(t, *code, n)?;
                }
            }
            t.settle()?;
            target.expect_again(t, PDS_NACK_002, 1, t.later())?;
            target.ack(t, 1)?;
            t.ends(PDS_NACK_002, written, Status::Ok)?;
            let peer = t.peer(0)?;
            t.post(post(PostKind::Write, peer, 64))?;
            let next = target.expect_new(t, PDS_NACK_002, 2)?;
            t.check(PDS_NACK_002, "flag retx", false, next.request.retx());
            Ok(())
        }),
    rule("source-nack-ignored/other-address", "A NACK from another address is ignored")
        .checks(&[PDS_PDC_003, PDS_RTO_001])
        .needs(&[TWO_ADDRESSES])
        .run(|t| {
            let from = t.address(1)?;
            expect_ignored(t, |target, t| {
                let other = Pdc { from, ..target.pdc.clone() };
                for code in [NackCode::TRIMMED, NackCode::INV_DPDCID, NackCode::CLOSING_IN_ERR] {
                    t.send(&other, &other.nack(code, target.psn(1))?)?;
                }
                Ok(())
            })
        }),
    rule("source-nack-ignored/other-pdcid", "A NACK from another PDCID of the target is ignored")
        .checks(&[PDS_PDC_003, PDS_RTO_001])
        .run(|t| {
            expect_ignored(t, |target, t| {
                let local = other_pdcid(&target.pdc);
                let other = Pdc { local, ..target.pdc.clone() };
                for code in [NackCode::TRIMMED, NackCode::PDC_MODE_MISMATCH, NackCode::CLOSING_IN_ERR] {
                    t.send(&other, &other.nack(code, target.psn(1))?)?;
                }
                Ok(())
            })
        }),
    rule(
        "source-nack-ignored/reserved-codes",
        "After NACKs with reserved codes, the device still sends requests",
    )
    .checks(&[ROB_LIFE_001])
    .run(|t| {
        let (target, _) = message_in_flight(t, 1)?;
        let unassigned: Vec<NackCode> = NackCode::unassigned(t.spec()).collect();
        for code in unassigned.iter().step_by(unassigned.len().div_ceil(5)) {
            target.refuse(t, *code, 1)?;
        }
        t.settle()?;
        // The sources leave open if the message continues, and on which context.
        let peer = t.peer(0)?;
        let since = t.now();
        let written = t.post(post(PostKind::Write, peer, 64))?;
        let within = t.later();
        let (seen, request) = t.expect(ROB_LIFE_001, "a new request", within, |seen| {
            seen.request().filter(|request| !request.retx() && seen.at > since)
        })?;
        let pdc = if request.syn() { t.accept(&seen)? } else { target.pdc.clone() };
        t.send(&pdc, &pdc.ack(request.psn()).build()?)?;
        t.ends(ROB_LIFE_001, written, Status::Ok)
    }),
    rule("source-nack-ignored/rudi-nack", "A RUDI NACK does not affect a PSN with the same number")
        .checks(&[PDS_PDC_003, PDS_RTO_001])
        .run(|t| {
            expect_ignored(t, |target, t| {
                for code in [NackCode::TRIMMED, NackCode::NO_RESOURCE] {
                    let nack = Nack::rudi(code).nack_pkt_id(target.psn(1).0).done()?;
                    t.send(&target.pdc, &UetBuf::new(nack))?;
                }
                Ok(())
            })
        }),
    rule("source-nack-ignored/no-reply", "ACKs and NACKs for no context get no reply")
        .checks(&[PDS_NACK_010])
        .run(|t| {
            let (target, written) = message_in_flight(t, 1)?;
            let remote = target.pdc.remote.unwrap_or(PdcId::NONE).0;
            let unknown = Pdc {
                remote: Some(PdcId(if remote == 0xffff { 0xfffe } else { 0xffff })),
                ..target.pdc.clone()
            };
            t.send(&unknown, &unknown.ack(target.psn(1)).build()?)?;
            t.send(&unknown, &unknown.nack(NackCode::NO_RESOURCE, target.psn(1))?)?;
            t.send(&target.pdc, &target.pdc.nack(NackCode::NO_RESOURCE, target.psn(9))?)?;
            t.expect_none(PDS_NACK_010, "no NACK for an ACK or a NACK", t.rto(), RxPacket::nack)?;
            target.ack(t, 1)?;
            t.ends(PDS_NACK_010, written, Status::Ok)
        }),
];

/// Checks that the device ignores these NACKs: it retransmits the packet at its timeout and no earlier, and
/// the message completes.
fn expect_ignored(t: &mut Test<'_>, nacks: impl Fn(&Target, &mut Test<'_>) -> Outcome) -> Outcome {
    let (mut target, written) = message_in_flight(t, 1)?;
    nacks(&target, t)?;
    let (psn, remote) = (target.psn(1), target.pdc.remote);
    let of_context = |seen: &RxPacket| seen.request().filter(|request| Some(request.spdcid()) == remote);
    let resent =
        |seen: &RxPacket| of_context(seen).is_some_and(|request| request.psn() == psn && request.retx());
    let moved =
        |seen: &RxPacket| seen.request().is_some_and(|request| request.syn()) && of_context(seen).is_none();
    t.hear(t.patience(t.later()), |seen| resent(seen) || moved(seen))?;
    let affected = t.hear(Duration::ZERO, moved)? || t.completion(written, Duration::ZERO)?.is_some();
    // If the message moves to another context or ends, the NACK caused that. Otherwise the timer is wrong.
    let requirement = if affected { PDS_PDC_003 } else { PDS_RTO_001 };
    let again = target.expect_again(t, requirement, 1, t.later())?;
    let waited = again.seen.at.saturating_sub(target.asked);
    let bound = Bound::from(t.earliest_retransmission()).from_parameter("rto_init_time");
    t.at_least(PDS_PDC_003, "the time before the retransmission", bound, waited);
    target.ack(t, 1)?;
    t.ends(PDS_PDC_003, written, Status::Ok)
}
