//! Stored error responses and their CLEAR (sections 3.5.11 and 3.5.16.3). The device stores the errors of
//! writes without a region.

use super::steps::{clear_command, next_cack, open_with_error, provoke_error};
use crate::prelude::*;
use crate::rules::delivery::rule;
use uet_wire::pds::Ack;
use uet_wire::ses::Response;

pub(super) const RULES: &[Rule] = &[
    rule("clear/requested", "The ACK of an error requests CLEAR and holds the cumulative PSN below it")
        .checks(&[PDS_GTD_002, PDS_PSN_002, SES_GTD_001])
        .run(|t| {
            let (pdc, _, seen, ack) = open_with_error(t)?;
            t.check(PDS_GTD_002, "req", AckRequest::REQ_CLEAR, ack.req());
            t.check(PDS_PSN_002, "cack_psn", pdc.psn(0), ack.cack_psn());
            t.holds(SES_GTD_001, "the response is an error", seen.is_error(), seen.uet());
            Ok(())
        }),
    rule("clear/held", "Later packets do not move the cumulative PSN past an uncleared response")
        .checks(&[PDS_PSN_002])
        .run(|t| {
            let (pdc, region, ..) = open_with_error(t)?;
            for n in 2..=6 {
                let cack = next_cack(t, &pdc, &region, n)?;
                t.check(PDS_PSN_002, "cack_psn", pdc.psn(0), cack);
            }
            Ok(())
        }),
    rule(
        "clear/opened-above-gap",
        "The error of a packet that opens a context above a gap waits for its CLEAR",
    )
    .checks(&[PDS_SYN_008, PDS_PSN_002, PDS_GTD_001, PDS_CLR_005])
    .needs(&[RUD])
    .over(&[&CARRIER, &START])
    .run(|t| {
        let region = t.region(4096)?;
        let mut pdc = t.initiate();
        let early = pdc.request(2).write_nowhere(&region, &[2])?;
        t.request(&pdc, early)?;
        let (first, ack) = t.need("an error", t.soon(), |seen| seen.answers(&pdc, pdc.psn(2)))?;
        t.check(PDS_SYN_008, "cack_psn", pdc.start - 1, ack.cack_psn());
        pdc.remote = Some(ack.spdcid());
        for n in 0..2 {
            let written = pdc.request(n).retx().write(&region.for_message(n), u64::from(n), &[1])?;
            t.request(&pdc, written)?;
        }
        t.expect_cack(PDS_PSN_002, &pdc, pdc.psn(1))?;
        t.forget();
        t.request(&pdc, pdc.request(2).retx().write_nowhere(&region, &[2])?)?;
        let (repeated, ack) = t.expect_answer(PDS_GTD_001, &pdc, pdc.psn(2))?;
        t.check(PDS_GTD_001, "the response", first.response(), repeated.response());
        t.check(PDS_PSN_002, "cack_psn", pdc.psn(1), ack.cack_psn());
        let next = pdc.request(3).clear(pdc.psn(2)).write(&region.for_message(3), 16, &[3])?;
        t.request(&pdc, next)?;
        t.expect_cack(PDS_CLR_005, &pdc, pdc.psn(3))?;
        Ok(())
    }),
    rule("clear/by-request", "The clear_psn_offset of the next request clears and moves the cumulative PSN")
        .checks(&[PDS_CLR_005])
        .run(|t| {
            let (pdc, region, ..) = open_with_error(t)?;
            t.request(&pdc, pdc.request(2).clear(pdc.psn(1)).write(&region, 0, &[1])?)?;
            t.expect_cack(PDS_CLR_005, &pdc, pdc.psn(2))?;
            Ok(())
        }),
    rule("clear/by-retransmission", "A retransmission clears stored responses like a first transmission")
        .checks(&[PDS_CLR_005])
        .run(|t| {
            let (pdc, region, ..) = open_with_error(t)?;
            let next = pdc.request(2).write(&region, 0, &[1])?;
            t.request(&pdc, next.clone())?;
            let (_, ack) = t.need_ack(&pdc, pdc.psn(2))?;
            t.check(PDS_CLR_005, "cack_psn", pdc.psn(0), ack.cack_psn());
            t.request(&pdc, next.retx().clear(pdc.psn(1)))?;
            t.expect_cack(PDS_CLR_005, &pdc, pdc.psn(2))?;
            Ok(())
        }),
    rule("clear/by-command", "CLEAR_COMMAND clears up to the PSN in its payload and gets no reply")
        .checks(&[PDS_CLR_004, PDS_CLR_011])
        .run(|t| {
            let (pdc, region, ..) = open_with_error(t)?;
            t.forget();
            t.send(&pdc, &clear_command(&pdc, pdc.psn(1))?)?;
            t.expect_silence(PDS_CLR_011, "no answer to CLEAR_COMMAND", |seen| {
                (seen.is_for(&pdc) && (seen.ack().is_some() || seen.nack().is_some())).then_some(())
            })?;
            let cack = next_cack(t, &pdc, &region, 2)?;
            t.check(PDS_CLR_004, "cack_psn", pdc.psn(2), cack);
            Ok(())
        }),
    rule("clear/by-close", "CLOSE_COMMAND clears all stored responses").checks(&[PDS_CLOSE_004]).run(|t| {
        let (pdc, region, ..) = open_with_error(t)?;
        provoke_error(t, &pdc, &region, 2)?;
        t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(3), 0)?)?;
        let (_, ack) = t.expect_answer(PDS_CLOSE_004, &pdc, pdc.psn(3))?;
        t.check(PDS_CLOSE_004, "cack_psn", pdc.psn(3), ack.cack_psn());
        Ok(())
    }),
    rule("clear/stored", "Each retransmission before CLEAR gets the same response as the first")
        .checks(&[PDS_GTD_001, PDS_DUP_002, PDS_GTD_002])
        .run(|t| {
            let (pdc, region, first, _) = open_with_error(t)?;
            for _ in 0..5 {
                t.request(&pdc, pdc.request(1).retx().write_nowhere(&region, &[1])?)?;
                let (repeated, ack) = t.expect_answer(PDS_DUP_002, &pdc, pdc.psn(1))?;
                t.check(PDS_GTD_001, "the response", first.response(), repeated.response());
                t.check(PDS_GTD_002, "req", AckRequest::REQ_CLEAR, ack.req());
            }
            Ok(())
        }),
    rule("clear/released", "A retransmission after CLEAR is acknowledged and requests no CLEAR")
        .checks(&[PDS_DUP_002, PDS_CLR_005])
        .run(|t| {
            let (pdc, region, ..) = open_with_error(t)?;
            t.send(&pdc, &clear_command(&pdc, pdc.psn(1))?)?;
            let cack = next_cack(t, &pdc, &region, 2)?;
            t.check(PDS_CLR_005, "cack_psn", pdc.psn(2), cack);
            t.forget();
            t.request(&pdc, pdc.request(1).retx().write_nowhere(&region, &[1])?)?;
            let (_, ack) = t.expect_ack(PDS_DUP_002, &pdc, pdc.psn(1))?;
            let requests = [AckRequest::NO_REQUEST, AckRequest::REQ_CLOSE];
            t.one_of(PDS_CLR_005, "pds.req", &requests, ack.req());
            t.check(PDS_CLR_005, "cack_psn", pdc.psn(2), ack.cack_psn());
            Ok(())
        }),
    rule("clear/partial", "CLEAR releases the stored responses up to its PSN and no others")
        .checks(&[PDS_CLR_005, PDS_GTD_001])
        .run(|t| {
            let (pdc, region, ..) = open_with_error(t)?;
            let mut responses = Vec::new();
            for n in 2..=4 {
                responses.push((n, provoke_error(t, &pdc, &region, n)?.0.response()));
            }
            t.send(&pdc, &clear_command(&pdc, pdc.psn(2))?)?;
            let cack = next_cack(t, &pdc, &region, 5)?;
            t.check(PDS_CLR_005, "cack_psn", pdc.psn(2), cack);
            for (n, first) in responses.into_iter().skip(1) {
                expect_stored(t, &pdc, &region, n, first)?;
            }
            Ok(())
        }),
    rule("clear/older-clear", "A late packet with an older CLEAR does not undo a newer one")
        .checks(&[PDS_PSN_003, PDS_CLR_005])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (pdc, region, ..) = open_with_error(t)?;
            provoke_error(t, &pdc, &region, 2)?;
            // The newest of three requests arrives first, and clears.
            t.request(&pdc, pdc.request(5).clear(pdc.psn(2)).write(&region, 0, &[1])?)?;
            let (_, ack) = t.expect_ack(PDS_CLR_005, &pdc, pdc.psn(5))?;
            t.check(PDS_CLR_005, "cack_psn", pdc.psn(2), ack.cack_psn());
            t.forget();
            t.request(&pdc, pdc.request(3).write(&region, 0, &[1])?)?;
            t.request(&pdc, pdc.request(4).clear(pdc.psn(1)).write(&region, 0, &[1])?)?;
            t.expect_cack(PDS_PSN_003, &pdc, pdc.psn(5))?;
            Ok(())
        }),
    rule("clear/max-distance", "CLEAR at the greatest distance below its packet clears nothing")
        .checks(&[PDS_CLR_005, PDS_CLR_012, PDS_GTD_001])
        .run(|t| {
            let (pdc, region, first, _) = open_with_error(t)?;
            let next = pdc.request(2).clear(pdc.psn(2) - 0x8000);
            t.request(&pdc, next.write(&region, 0, &[1])?)?;
            let (_, ack) = t.expect_ack(PDS_CLR_005, &pdc, pdc.psn(2))?;
            t.check(PDS_CLR_012, "cack_psn", pdc.psn(0), ack.cack_psn());
            expect_stored(t, &pdc, &region, 1, first.response())?;
            Ok(())
        }),
    rule("clear/old-command", "CLEAR_COMMAND with a PSN far below the cumulative one clears nothing")
        .checks(&[PDS_CLR_004, PDS_GTD_001])
        .run(|t| {
            let (pdc, region, first, _) = open_with_error(t)?;
            // The low bits are those of the stored response.
            for distance in [1 << 16, 1 << 24, 2] {
                t.send(&pdc, &clear_command(&pdc, pdc.psn(1) - distance)?)?;
            }
            let cack = next_cack(t, &pdc, &region, 2)?;
            t.check(PDS_CLR_004, "cack_psn", pdc.psn(0), cack);
            expect_stored(t, &pdc, &region, 1, first.response())?;
            Ok(())
        }),
    rule("clear/wrap", "CLEAR works across the PSN wrap, in a request and by CLEAR_COMMAND")
        .checks(&[PDS_CLR_004, PDS_CLR_005, PDS_PSN_006])
        .run(|t| {
            let region = t.region(4096)?;
            let mut pdc = Pdc { start: Psn(0xffff_fffd), ..t.initiate() };
            t.establish(&mut pdc, &region)?;
            // PSNs 0xffff_fffe to 2.
            for n in 1..=5 {
                provoke_error(t, &pdc, &region, n)?;
            }
            t.forget();
            t.request(&pdc, pdc.request(6).clear(Psn(0xffff_ffff)).write(&region, 0, &[1])?)?;
            let (_, ack) = t.expect_ack(PDS_CLR_005, &pdc, Psn(3))?;
            t.check(PDS_PSN_006, "cack_psn", Psn(0xffff_ffff), ack.cack_psn());
            t.send(&pdc, &clear_command(&pdc, Psn(1))?)?;
            let cack = next_cack(t, &pdc, &region, 7)?;
            t.check(PDS_CLR_004, "cack_psn", Psn(1), cack);
            Ok(())
        }),
    rule("clear/unreceived", "CLEAR beyond the received PSNs does not move the cumulative PSN over a gap")
        .checks(&[PDS_PSN_002])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (pdc, region, ..) = open_with_error(t)?;
            t.request(&pdc, pdc.request(3).write(&region, 0, &[1])?)?;
            t.need_ack(&pdc, pdc.psn(3))?;
            t.send(&pdc, &clear_command(&pdc, pdc.psn(40))?)?;
            let cack = next_cack(t, &pdc, &region, 4)?;
            let held = !cack.is_after(pdc.psn(1));
            t.holds(PDS_PSN_002, "the cumulative PSN stays below the gap", held, format!("cack_psn {cack}"));
            t.forget();
            t.request(&pdc, pdc.request(2).clear(pdc.psn(1)).write(&region, 0, &[1])?)?;
            t.expect_cack(PDS_PSN_002, &pdc, pdc.psn(4))?;
            Ok(())
        }),
    rule("clear/many", "One CLEAR releases up to a hundred stored responses")
        .checks(&[PDS_GTD_001, PDS_CLR_005])
        .run(|t| {
            let count = t.parameter("stored_responses").min(100) as u32;
            let (pdc, region, first, _) = open_with_error(t)?;
            for n in 2..=count {
                provoke_error(t, &pdc, &region, n)?;
            }
            t.forget();
            let ack = expect_stored(t, &pdc, &region, 1, first.response())?;
            t.check(PDS_GTD_001, "cack_psn", pdc.psn(0), ack.cack_psn());
            t.request(&pdc, pdc.request(count + 1).clear(pdc.psn(count)).write(&region, 0, &[1])?)?;
            t.expect_cack(PDS_CLR_005, &pdc, pdc.psn(count + 1))?;
            Ok(())
        }),
    rule("clear/mixed", "CLEAR moves the cumulative PSN up to the next stored response")
        .checks(&[PDS_PSN_002, PDS_CLR_005])
        .run(|t| {
            let (pdc, region, ..) = open_with_error(t)?;
            // The responses of 1, 3 and 6 are stored.
            next_cack(t, &pdc, &region, 2)?;
            provoke_error(t, &pdc, &region, 3)?;
            next_cack(t, &pdc, &region, 4)?;
            next_cack(t, &pdc, &region, 5)?;
            provoke_error(t, &pdc, &region, 6)?;
            for (next, clear, cack) in [(7, 1, 2), (8, 3, 5), (9, 6, 9)] {
                t.forget();
                t.request(&pdc, pdc.request(next).clear(pdc.psn(clear)).write(&region, 0, &[1])?)?;
                let (_, ack) = t.expect_ack(PDS_CLR_005, &pdc, pdc.psn(next))?;
                t.check(PDS_PSN_002, "cack_psn", pdc.psn(cack), ack.cack_psn());
            }
            Ok(())
        }),
    rule("clear/other-context", "CLEAR on one context releases nothing on another")
        .checks(&[PDS_CLR_004, PDS_GTD_001])
        .run(|t| {
            let (one, region, first, _) = open_with_error(t)?;
            // Both contexts use the same PSNs.
            let mut two = Pdc { start: one.start, ..t.initiate() };
            t.establish(&mut two, &region)?;
            provoke_error(t, &two, &region, 1)?;
            t.send(&two, &clear_command(&two, two.psn(1))?)?;
            let cack = next_cack(t, &two, &region, 2)?;
            t.check(PDS_CLR_004, "cack_psn", two.psn(2), cack);
            let ack = expect_stored(t, &one, &region, 1, first.response())?;
            t.check(PDS_GTD_001, "cack_psn", one.psn(0), ack.cack_psn());
            Ok(())
        }),
];

/// Retransmits the `n`-th request, and expects the response that it got first.
fn expect_stored(
    t: &mut Test<'_>,
    pdc: &Pdc,
    region: &Region,
    n: u32,
    first: Option<Response>,
) -> Result<Ack, Stop> {
    t.request(pdc, pdc.request(n).retx().write_nowhere(region, &[n as u8])?)?;
    let (repeated, ack) = t.expect_answer(PDS_GTD_001, pdc, pdc.psn(n))?;
    t.check(PDS_GTD_001, "the response", first, repeated.response());
    Ok(ack)
}
