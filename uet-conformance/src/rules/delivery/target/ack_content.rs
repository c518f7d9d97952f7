//! The contents of ACKs: cumulative PSN, named PSN, response and type (section 3.5.12).

use super::steps::numbered_control;
use crate::prelude::*;
use crate::rules::delivery::rule;

pub(super) const RULES: &[Rule] = &[
    rule("ack/coalesced", "One ACK at the end of a burst covers the whole burst")
        .checks(&[PDS_PSN_002, PDS_ACK_012])
        .run(|t| {
            let (pdc, region) = t.open()?;
            for n in 1..8 {
                t.request(&pdc, pdc.request(n).quiet().write(&region, u64::from(n), &[n as u8])?)?;
            }
            t.request(&pdc, pdc.request(8).write(&region, 8, &[8])?)?;
            let (_, ack) = t.expect_answer(PDS_ACK_012, &pdc, pdc.psn(8))?;
            t.check(PDS_PSN_002, "cack_psn", pdc.psn(8), ack.cack_psn());
            Ok(())
        }),
    rule("ack/response", "The response in an ACK belongs to the packet that the ACK names")
        .checks(&[PDS_ACK_016, SES_RESP_003])
        .needs(&[WRITE])
        .over(&[&MODE, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let named = |n: u32| Region { message_id: 0x100 + n as u16, ..region.clone() };
            // The errors are not cleared, so the cumulative PSN stays below them.
            for n in 1..=6 {
                let request = pdc.request(n);
                let request = if n % 2 == 0 {
                    request.write_nowhere(&named(n), &[1; 16])?
                } else {
                    request.write(&named(n), 0, &[1; 16])?
                };
                t.request(&pdc, request)?;
            }
            for n in [2, 4, 6] {
                let (seen, _) = t.expect_answer(PDS_ACK_016, &pdc, pdc.psn(n))?;
                let Some(response) = seen.response() else {
                    t.holds(PDS_ACK_016, "the ACK carries a response", false, seen.uet());
                    continue;
                };
                t.holds(PDS_ACK_016, "the response is an error", seen.is_error(), seen.uet());
                t.check(SES_RESP_003, "message_id", 0x100 + n as u16, response.message_id());
                t.check(SES_RESP_003, "job_id", region.job, response.job_id());
            }
            t.expect_none(PDS_ACK_016, "no error for a valid write", t.soon(), |seen| {
                let succeeded = [1, 3, 5].into_iter().any(|n| seen.answers(&pdc, pdc.psn(n)).is_some());
                (succeeded && seen.is_error()).then_some(())
            })
        }),
    rule("ack/gaps", "The cumulative PSN stops at the first gap and advances to the next when it is filled")
        .checks(&[PDS_PSN_002])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            // Packets 1, 4 and 7 are missing.
            for n in [2, 3, 5, 6, 8] {
                t.request(&pdc, pdc.request(n).write(&region, 0, &[1])?)?;
                let (_, ack) = t.expect_ack(PDS_PSN_002, &pdc, pdc.psn(n))?;
                t.check(PDS_PSN_002, "cack_psn", pdc.psn(0), ack.cack_psn());
            }
            for (missing, cack) in [(1, 3), (7, 3), (4, 8)] {
                t.pause(t.soon())?;
                t.forget();
                t.request(&pdc, pdc.request(missing).write(&region, 0, &[1])?)?;
                let (_, ack) = t.expect_ack(PDS_PSN_002, &pdc, pdc.psn(missing))?;
                t.check(PDS_PSN_002, "cack_psn", pdc.psn(cack), ack.cack_psn());
            }
            Ok(())
        }),
    rule("ack/monotonic-cack", "The cumulative PSN never decreases, whatever the order of arrival")
        .checks(&[PDS_PSN_003])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let mut order: Vec<u32> = (1..=64).chain(1..=64).collect();
            t.rng().shuffle(&mut order);
            for n in order {
                t.request(&pdc, pdc.request(n).retx().write(&region, 0, &[1])?)?;
            }
            let mut cacks: Vec<_> = t.gather(t.soon())?.iter().filter_map(|seen| seen.cack(&pdc)).collect();
            // A busy host may lose some of these packets.
            for _ in 0..3 {
                let next = cacks.last().map_or(1, |cack| *cack + 1 - pdc.start);
                if t.facts().virtual_time || next > 64 {
                    break;
                }
                t.request(&pdc, pdc.request(next).retx().write(&region, 0, &[1])?)?;
                cacks.extend(t.gather(t.soon())?.iter().filter_map(|seen| seen.cack(&pdc)));
            }
            let decrease = cacks.windows(2).find(|pair| pair[0].is_after(pair[1]));
            let seen =
                decrease.map_or_else(|| "none".to_owned(), |pair| format!("{} after {}", pair[1], pair[0]));
            t.holds(PDS_PSN_003, "the cumulative PSN never moves back", decrease.is_none(), seen);
            t.check(PDS_PSN_003, "the last cack_psn", Some(&pdc.psn(64)), cacks.last());
            Ok(())
        }),
    rule("ack/unsent-psn", "No ACK names or covers a PSN that was never sent").checks(&[PDS_SACK_001]).run(
        |t| {
            let (pdc, region) = t.open()?;
            let sent = [0, 2, 3, 7, 20, 63, 64, 65, 100];
            for n in &sent[1..] {
                t.request(&pdc, pdc.request(*n).retx().write(&region, 0, &[1])?)?;
            }
            let mut reported = Vec::new();
            for seen in t.gather(t.soon())?.iter().filter(|seen| seen.is_for(&pdc)) {
                reported.extend(seen.ack().and_then(|ack| ack.ack_psn()));
                reported.extend(seen.cack(&pdc));
                reported.extend(seen.ack_cc().into_iter().flat_map(|ack| ack.sacked()));
            }
            // Bits below the first PSN count as received.
            let wrong = reported.into_iter().filter(|psn| !pdc.start.is_after(*psn));
            let wrong = wrong.map(|psn| psn - pdc.start).find(|n| !sent.contains(n));
            let seen =
                wrong.map_or_else(|| "none".to_owned(), |n| format!("packet {n}, which was never sent"));
            t.holds(PDS_SACK_001, "ACKs report only packets that were sent", wrong.is_none(), seen);
            Ok(())
        },
    ),
    rule("ack/control", "The ACK of a control packet carries no response")
        .checks(&[PDS_ACK_014, PDS_ACK_011, PDS_CTL_001])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let other = if t.claims("negotiation") { CtlType::NEGOTIATION } else { CtlType::NOOP };
            for (n, kind) in [(1, CtlType::NOOP), (2, other)] {
                t.send(&pdc, &pdc.numbered(kind, n)?)?;
                let (seen, ack) = t.expect_answer(PDS_CTL_001, &pdc, pdc.psn(n))?;
                t.check(PDS_ACK_014, "next_hdr", NextHdr::UET_HDR_NONE, ack.prologue().next_hdr());
                t.check(PDS_ACK_014, "bytes after the header", 0, seen.payload().len());
            }
            // If the control packets took no PSN, this request would follow a gap.
            t.request(&pdc, pdc.request(3).write(&region, 0, &[1])?)?;
            t.expect_cack(PDS_CTL_001, &pdc, pdc.psn(3))?;
            // The ACK of a NOOP without `ar` may be delayed.
            t.send(&pdc, &numbered_control(&pdc, CtlType::NOOP, 4, false, false)?)?;
            let (_, ack) = t.expect(PDS_ACK_011, "an ACK in the end", t.soon() * 50, |seen| {
                seen.acknowledges(&pdc, pdc.psn(4))
            })?;
            t.check(PDS_ACK_014, "next_hdr", NextHdr::UET_HDR_NONE, ack.prologue().next_hdr());
            // A NOOP above a gap, and its retransmission.
            for retx in [false, true] {
                t.send(&pdc, &numbered_control(&pdc, CtlType::NOOP, 6, true, retx)?)?;
                let (_, ack) = t.expect_answer(PDS_CTL_001, &pdc, pdc.psn(6))?;
                t.check(PDS_ACK_014, "next_hdr", NextHdr::UET_HDR_NONE, ack.prologue().next_hdr());
            }
            Ok(())
        }),
    rule("ack/type", "An ACK is an ACK_CC or ACK_CCX at a gap or with congestion control")
        .checks(&[PDS_ACK_015])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let idle = t.word("congestion") == Some("none");
            check_types(t, (t.claims("nscc") || t.claims("rccc")) && !idle)?;
            if t.try_configure("congestion", "none")? { check_types(t, false) } else { Ok(()) }
        }),
    rule("ack/plain-success", "The ACK of a success carries the default response and requests no CLEAR")
        .checks(&[SES_RESP_002])
        .run(|t| {
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(1).write(&region, 0, &[1; 16])?)?;
            let (seen, ack) = t.expect_answer(SES_RESP_002, &pdc, pdc.psn(1))?;
            let requests = [AckRequest::NO_REQUEST, AckRequest::REQ_CLOSE];
            t.one_of(SES_RESP_002, "pds.req", &requests, ack.req());
            t.check(SES_RESP_002, "cack_psn", pdc.psn(1), ack.cack_psn());
            t.holds(SES_RESP_002, "the response is no error", !seen.is_error(), seen.uet());
            let list = seen.response().map(|response| response.head().list().code());
            t.check(SES_RESP_002, "list", Some(0), list);
            Ok(())
        }),
];

/// Checks the types of two ACKs, the second at a gap. `state` says that the device keeps congestion state. A
/// device may send a longer type than necessary.
fn check_types(t: &mut Test<'_>, state: bool) -> Outcome {
    const LONG: [PdsType; 2] = [PdsType::ACK_CC, PdsType::ACK_CCX];
    let ack_type = |seen: &RxPacket| seen.uet().pds.map_or(PdsType::ACK, |pds| pds.kind());
    let (pdc, region) = t.open()?;
    t.request(&pdc, pdc.request(1).write(&region, 0, &[1])?)?;
    let (seen, _) = t.expect_answer(PDS_ACK_015, &pdc, pdc.psn(1))?;
    let allowed = if state { &LONG[..] } else { &[PdsType::ACK, LONG[0], LONG[1]] };
    t.one_of(PDS_ACK_015, "pds.type without a gap", allowed, ack_type(&seen));
    t.request(&pdc, pdc.request(3).write(&region, 0, &[1])?)?;
    let (seen, _) = t.expect_answer(PDS_ACK_015, &pdc, pdc.psn(3))?;
    t.one_of(PDS_ACK_015, "pds.type at a gap", &LONG, ack_type(&seen));
    Ok(())
}
