//! Retransmissions of RUDI requests: timeouts, NACKs, and their limits (section 3.5.6).

use super::steps::{expect_reply_ignored, expect_rudi_retransmission, respond, rudi_write};
use crate::prelude::*;
use crate::rules::steps::{
    post_idempotent, require_retransmissions, retransmissions, reverse_path, rudi_request,
};
use uet_wire::pds::Nack;

const OPERATION: Axis<PostKind> =
    axis("operation").needing(&[("write", PostKind::Write, &[WRITE]), ("read", PostKind::Read, &[READ])]);

/// Codes of the normal class other than those of trimmed packets.
const NORMAL: Axis<NackCode> = axis("code")
    .values(&[("no-resource", NackCode::NO_RESOURCE), ("no-pkt-buffer", NackCode::NO_PKT_BUFFER)]);

const REFUSED: Axis<NackCode> =
    axis("code").values(&[("no-resource", NackCode::NO_RESOURCE), ("trimmed", NackCode::TRIMMED)]);

/// Begins a rule with the usual need of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[RUDI])
}

pub(super) const RULES: &[Rule] = &[
    rule("source-rudi/timeout", "A RUDI retransmission repeats pkt_id and content and has retx")
        .checks(&[PDS_RUDI_005, PDS_RTO_005, PDS_RTO_002])
        .measure(|t| {
            let (written, seen, header) = rudi_write(t, 64)?;
            let (resent, _) = expect_rudi_retransmission(t, PDS_RUDI_005, header.pkt_id(), t.later())?;
            t.same_bytes(PDS_RTO_005, "SES and payload", &seen.wire.bytes[8..], &resent.wire.bytes[8..]);
            let waited = resent.at.saturating_sub(seen.at);
            let bound = Bound::from(t.rto()).from_parameter("rto_init_time, device");
            t.at_least(PDS_RTO_002, "time to the retransmission", bound, waited);
            respond(t, &seen, header.pkt_id(), ReturnCode::OK)?;
            t.ends(PDS_RUDI_005, written, Status::Ok)
        }),
    rule("source-rudi/nack", "After a NACK with nt = 1, a RUDI request is resent before its timeout")
        .checks(&[PDS_RUDI_004])
        .measure(|t| {
            require_short_nack_wait(t)?;
            for code in [NackCode::NO_RESOURCE, NackCode::TRIMMED] {
                let (written, seen, header) = rudi_write(t, 64)?;
                let reverse = reverse_path(t, &seen);
                t.send(&reverse, &rudi_nack(code, header.pkt_id())?)?;
                let (resent, _) = expect_rudi_retransmission(t, PDS_RUDI_004, header.pkt_id(), t.later())?;
                let waited = resent.at.saturating_sub(seen.at);
                let bound = Bound::from(t.early()).from_parameter("70 % of rto_init_time, device");
                t.at_most(PDS_RUDI_004, "time to the retransmission", bound, waited);
                respond(t, &seen, header.pkt_id(), ReturnCode::OK)?;
                t.ends(PDS_RUDI_004, written, Status::Ok)?;
            }
            Ok(())
        }),
    rule("source-rudi/nack-limit", "A RUDI request is resent after NACKs at most Max_NACK_Retx_Cnt times")
        .checks(&[PDS_NACK_005])
        .over(&[&REFUSED])
        .run(|t| {
            // The suite also refuses packets that the device retransmits at a timeout.
            let most = (t.nack_limit()? + t.parameter("max_rto_retx_cnt")) as usize;
            let (written, seen, header) = rudi_write(t, 64)?;
            let (reverse, pkt_id, later) = (reverse_path(t, &seen), header.pkt_id(), t.later());
            let nack = rudi_nack(t.value(&REFUSED), pkt_id)?;
            let mut times = 1;
            t.send(&reverse, &nack)?;
            while times <= most + 3
                && t.wait(later, |seen| rudi_request(seen).filter(|resent| resent.pkt_id() == pkt_id))?
                    .is_some()
            {
                times += 1;
                t.send(&reverse, &nack)?;
            }
            let bound = Bound::from(most + 1).from_parameter("max_nack_retx_cnt and max_rto_retx_cnt");
            t.at_most(PDS_NACK_005, "transmissions of the request", bound, times);
            t.fails(PDS_NACK_005, written, t.until_given_up())
        }),
    rule("source-rudi/limit", "A RUDI operation fails after Max_RTO_Retx_Cnt retransmissions")
        .checks(&[PDS_RTO_003, PDS_RTO_004])
        .run(|t| {
            let most = t.timeout_limit()? as usize;
            let (written, _, header) = rudi_write(t, 64)?;
            let within = t.until_given_up();
            t.pause(within)?;
            let mut times = 1;
            while t
                .wait(Duration::ZERO, |seen| rudi_request(seen).filter(|it| it.pkt_id() == header.pkt_id()))?
                .is_some()
            {
                times += 1;
            }
            let bound = Bound::from(2..=most + 1).from_parameter("max_rto_retx_cnt, device");
            t.between(PDS_RTO_003, "transmissions", bound, times);
            t.fails(PDS_RTO_004, written, t.soon())
        }),
    rule("source-rudi/context-nack", "A NACK with nt = 0 does not affect a RUDI request")
        .checks(&[PDS_NACK_008])
        .measure(|t| {
            expect_reply_ignored(t, PDS_NACK_008, |t, seen, pkt_id| {
                let reverse = reverse_path(t, seen);
                for code in [NackCode::TRIMMED, NackCode::NO_RESOURCE] {
                    let nack = Nack::build(code).nack_psn(Psn(pkt_id)).spdcid(PdcId(1)).dpdcid(PdcId(1));
                    t.send(&reverse, &UetBuf::new(nack.done()?))?;
                }
                Ok(())
            })
        }),
    rule("source-rudi/back-off", "The timeout of a RUDI request doubles with each retransmission")
        .checks(&[PDS_RTO_002, PDS_RUDI_005])
        .over(&[&OPERATION])
        .measure(|t| {
            // The suite may see a packet late, so each interval may look up to 10 % shorter.
            let peer = t.peer(0)?;
            let posted_at = t.now();
            t.post(post_idempotent(t.value(&OPERATION), peer, 64))?;
            let within = t.later();
            let (_, header) = t.need("a RUDI request", within, rudi_request)?;
            let mut last = posted_at;
            for n in 0..retransmissions(t, 4)? {
                let due = t.rto() * (1 << n);
                let within = t.soon() + t.scaled(4 * due);
                let (seen, _) = expect_rudi_retransmission(t, PDS_RUDI_005, header.pkt_id(), within)?;
                let expected = format!("time before retransmission {}", n + 1);
                let bound = Bound::from(due.mul_f64(0.9));
                let bound = bound.from_parameter("rto_init_time, device").tolerating("10 % tolerance");
                t.at_least(PDS_RTO_002, &expected, bound, seen.at.saturating_sub(last));
                last = seen.at;
            }
            Ok(())
        }),
    rule("source-rudi/nack-retx-time", "After a normal NACK, a RUDI request waits for NACK_Retx_Time")
        .checks(&[PDS_NACK_006, PDS_RUDI_004])
        .over(&[&NORMAL])
        .measure(|t| {
            require_short_nack_wait(t)?;
            let (written, seen, header) = rudi_write(t, 64)?;
            let reverse = reverse_path(t, &seen);
            let refused = t.now();
            t.send(&reverse, &rudi_nack(t.value(&NORMAL), header.pkt_id())?)?;
            let (resent, _) = expect_rudi_retransmission(t, PDS_RUDI_004, header.pkt_id(), t.later())?;
            let bound = Bound::from(t.nack_wait()).from_parameter("nack_retx_time, device");
            let waited = resent.at.saturating_sub(refused);
            t.at_least(PDS_NACK_006, "time from the NACK to the retransmission", bound, waited);
            respond(t, &seen, header.pkt_id(), ReturnCode::OK)?;
            t.ends(PDS_RUDI_004, written, Status::Ok)
        }),
    rule("source-rudi/beside-timeouts", "The timeouts of a RUDI request do not lengthen those of another")
        .checks(&[PDS_RUDI_005, PDS_RTO_002])
        .measure(|t| {
            // The first request stays unanswered, so one always waits longer.
            t.require_plain_timeouts()?;
            require_retransmissions(t, 3)?;
            let (_, _, lost) = rudi_write(t, 64)?;
            for n in 0..2 {
                let within = t.soon() + t.scaled(t.rto() * (2 << n));
                expect_rudi_retransmission(t, PDS_RUDI_005, lost.pkt_id(), within)?;
            }
            let (written, seen, header) = rudi_write(t, 65)?;
            let (resent, _) = expect_rudi_retransmission(t, PDS_RUDI_005, header.pkt_id(), t.later())?;
            let longest = t.scaled(t.rto().mul_f64(1.5)) + t.grace();
            let bound = Bound::from(longest).from_parameter("rto_init_time, device").tolerating("50 %");
            let waited = resent.at.saturating_sub(seen.at);
            t.at_most(PDS_RTO_002, "time to the first retransmission", bound, waited);
            respond(t, &seen, header.pkt_id(), ReturnCode::OK)?;
            t.ends(PDS_RUDI_005, written, Status::Ok)
        }),
    rule(
        "source-rudi/each-request",
        "Retransmissions and NACKs of one RUDI request do not count for another",
    )
    .checks(&[PDS_RUDI_004, PDS_RUDI_005, PDS_RUDI_002])
    .run(|t| {
        // Each request is lost once and gets one NACK. A count of all requests would reach its limit.
        require_retransmissions(t, 1)?;
        let (timeouts, nacks) = (t.parameter("max_rto_retx_cnt"), t.parameter("max_nack_retx_cnt"));
        require(nacks > 0, "the device does not retransmit after a NACK")?;
        let most = timeouts.max(nacks);
        require(most <= 50, format!("{most} requests take too long"))?;
        for n in 0..most + 2 {
            let (written, seen, header) = rudi_write(t, 64 + n as usize)?;
            expect_rudi_retransmission(t, PDS_RUDI_005, header.pkt_id(), t.later())?;
            let reverse = reverse_path(t, &seen);
            t.send(&reverse, &rudi_nack(NackCode::NO_RESOURCE, header.pkt_id())?)?;
            expect_rudi_retransmission(t, PDS_RUDI_004, header.pkt_id(), t.later())?;
            respond(t, &seen, header.pkt_id(), ReturnCode::OK)?;
            t.ends(PDS_RUDI_002, written, Status::Ok)?;
            t.settle()?;
        }
        Ok(())
    }),
];

/// Skips the rule unless a retransmission after NACK_Retx_Time comes well before the first timeout.
fn require_short_nack_wait(t: &Test<'_>) -> Outcome {
    let short = t.nack_wait() * 2 + t.grace() <= t.early();
    require(short, "NACK_Retx_Time is not well below RTO_Init_Time")
}

/// Returns a NACK for the RUDI request with this pkt_id.
fn rudi_nack(code: NackCode, pkt_id: u32) -> Result<UetBuf, Stop> {
    Ok(UetBuf::new(Nack::rudi(code).nack_pkt_id(pkt_id).done()?))
}
