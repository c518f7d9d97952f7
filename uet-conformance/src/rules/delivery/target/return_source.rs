//! A target as the source of read data: NACKs of the data and its CLEAR_PSN (sections 3.5.8 and 3.5.11).

use super::return_direction::{collect_data, send_reads};
use crate::Trimmed;
use crate::prelude::*;
use crate::rules::steps::RETRYING;
use uet_wire::Version;

/// A code of each action.
const IGNORED: Axis<NackCode> = axis("code").values(&[
    ("no-resource", NackCode::NO_RESOURCE),
    ("trimmed", NackCode::TRIMMED),
    ("rod-ooo", NackCode::ROD_OOO),
    ("inv-dpdcid", NackCode::INV_DPDCID),
    ("closing-in-err", NackCode::CLOSING_IN_ERR),
]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[WRITE, READ]).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("return-direction/nack", "Read data that gets a NACK is retransmitted before its timeout")
        .checks(&[PDS_NACK_004, PDS_RTO_005])
        .over(&[&RETRYING, &MODE, &START])
        .measure(|t| {
            let (mut target, _) = collect_data(t, 2, false)?;
            target.refuse(t, t.value(&RETRYING), 1)?;
            let retransmission = target.expect_again(t, PDS_NACK_004, 1, t.later())?;
            let content = target.packet(1)?.content();
            t.check(PDS_RTO_005, "the SES header and payload", content, retransmission.content());
            if t.nack_wait() * 2 + t.grace() < t.rto() {
                let waited = retransmission.seen.at.saturating_sub(target.packet(1)?.seen.at);
                let bound = Bound::from(t.rto()).from_parameter("rto_init_time, device");
                t.at_most(PDS_NACK_004, "the time to the retransmission", bound, waited);
            }
            Ok(())
        }),
    rule("return-direction/nack-ignored", "A NACK of acknowledged data, or of data never sent, is ignored")
        .checks(&[PDS_NACK_002])
        .over(&[&IGNORED, &MODE, &START])
        .run(|t| {
            // The forward direction has used the PSN after that of the last data.
            let (mut target, _) = collect_data(t, 3, false)?;
            target.ack(t, 0)?;
            t.settle()?;
            for n in [0, 3, 400, (1 << 16) + 1, (1 << 24) + 1] {
                target.refuse(t, t.value(&IGNORED), n)?;
            }
            t.settle()?;
            target.expect_again(t, PDS_NACK_002, 1, t.later())?;
            target.expect_none(t, PDS_NACK_002, "no acknowledged data", t.rto(), |n| n == 0)
        }),
    rule("return-direction/trimmed-ack", "A trimmed ACK of read data is ignored and gets no NACK")
        .checks(&[PDS_TRIM_005, PDS_NACK_010])
        .needs(&[WRITE, READ, TRIM])
        .run(|t| {
            let (mut target, _) = collect_data(t, 2, false)?;
            let whole = target.acking(1).build()?;
            // Cut after its header, and not at all.
            for keep in [16, 64] {
                t.send_wire(&target.pdc.trimmed(&whole, Trimmed::Fabric, keep))?;
            }
            // Before 1.0.3, the device may report the trim of an ACK.
            let reports = t.spec().released() < Version::V1_0_3;
            t.expect_none(PDS_NACK_010, "no NACK for the ACK", t.grace(), |seen| {
                seen.nack().filter(|nack| !reports || nack.nack_code() != NackCode::TRIMMED_ACK)
            })?;
            for n in 0..2 {
                target.expect_again(t, PDS_TRIM_005, n, t.later())?;
            }
            target.ack(t, 1)
        }),
    rule("return-direction/nack-wait", "After a normal NACK, read data waits for NACK_Retx_Time")
        .checks(&[PDS_NACK_004, PDS_NACK_006])
        .measure(|t| {
            let (mut target, _) = collect_data(t, 1, false)?;
            let refused = t.now();
            target.refuse(t, NackCode::NO_PKT_BUFFER, 0)?;
            let again = target.expect_again(t, PDS_NACK_004, 0, t.later())?;
            let bound = Bound::from(t.nack_wait()).from_parameter("nack_retx_time, device");
            let waited = again.seen.at.saturating_sub(refused);
            t.at_least(PDS_NACK_006, "the time before the retransmission", bound, waited);
            Ok(())
        }),
    rule("return-direction/nack-limit", "NACKs cause at most Max_NACK_Retx_Cnt retransmissions of read data")
        .checks(&[PDS_NACK_005, ROB_LIFE_001])
        .run(|t| {
            // The suite also refuses packets that the device retransmits at a timeout.
            let most = (t.nack_limit()? + t.parameter("max_rto_retx_cnt")) as usize;
            let (mut target, _) = collect_data(t, 1, false)?;
            target.refuse(t, NackCode::NO_RESOURCE, 0)?;
            while target.next(t, t.later())?.is_some() && target.times(0) <= most + 3 {
                target.refuse(t, NackCode::NO_RESOURCE, 0)?;
            }
            let bound = Bound::from(most + 1).from_parameter("max_nack_retx_cnt and max_rto_retx_cnt");
            t.at_most(PDS_NACK_005, "transmissions of the data", bound, target.times(0));
            t.expect_life(ROB_LIFE_001)
        }),
    rule("return-direction/clear-again", "A retransmission of read data carries the current CLEAR_PSN")
        .checks(&[PDS_CLR_003, PDS_RTO_001])
        .run(|t| {
            let (mut target, _) = collect_data(t, 3, false)?;
            target.ack(t, 0)?;
            t.settle()?;
            for n in [1, 2] {
                let again = target.expect_again(t, PDS_RTO_001, n, t.later())?;
                t.check(PDS_CLR_003, "CLEAR_PSN", target.psn(0), again.request.clear_psn());
            }
            Ok(())
        }),
    rule(
        "return-direction/clear-gap",
        "The CLEAR_PSN of read data stops at a gap, and passes it once filled",
    )
    .checks(&[PDS_CLR_001, PDS_PSN_001])
    .needs(&[RUD, WRITE, READ])
    .over(&[&START])
    .run(|t| {
        let (mut target, region) = collect_data(t, 3, false)?;
        let pdc = target.pdc.clone();
        target.name(t, 0, 1)?;
        target.name(t, 2, 1)?;
        t.settle()?;
        send_reads(t, &pdc, &region, 4, 4)?;
        let next = target.expect_new(t, PDS_PSN_001, 3)?;
        t.check(PDS_CLR_001, "CLEAR_PSN", target.psn(0), next.request.clear_psn());
        target.name(t, 1, 1)?;
        t.settle()?;
        send_reads(t, &pdc, &region, 5, 5)?;
        let next = target.expect_new(t, PDS_PSN_001, 4)?;
        t.check(PDS_CLR_001, "CLEAR_PSN", target.psn(2), next.request.clear_psn());
        Ok(())
    }),
];
