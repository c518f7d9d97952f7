//! Guaranteed delivery of responses, and CLEAR (sections 3.5.11 and 3.5.16.3).
//!
//! The response that is kept is, but where said otherwise, the error that a write without a region gets.

use crate::prelude::*;
use uet_wire::pds::Ack;

/// The most responses that a device keeps which has been told to keep 2.
const MOST_KEPT: u32 = 4;

/// Begins a rule with the usual axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).over(&[&MODE, &CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("clear/requested", "The ACK of an error requests CLEAR and holds the cumulative PSN below it")
        .checks(&[PDS_GTD_002, PDS_PSN_002, SES_GTD_001])
        .run(|t| {
            let (pdc, _, seen, ack) = with_error(t)?;
            t.check(PDS_GTD_002, "req", AckRequest::REQ_CLEAR, ack.req());
            t.check(PDS_PSN_002, "cack_psn", pdc.psn(0), ack.cack_psn());
            t.holds(SES_GTD_001, "the response is an error", seen.is_error(), seen.uet());
            Ok(())
        }),
    rule("clear/held", "Later packets do not move the cumulative PSN past an uncleared response")
        .checks(&[PDS_PSN_002])
        .run(|t| {
            let (pdc, region, ..) = with_error(t)?;
            for n in 2..=6 {
                let told = cack(t, &pdc, &region, n)?;
                t.check(PDS_PSN_002, "cack_psn", pdc.psn(0), told);
            }
            Ok(())
        }),
    rule("clear/by-request", "The clear_psn_offset of the next request clears and moves the cumulative PSN")
        .checks(&[PDS_CLR_005])
        .run(|t| {
            let (pdc, region, ..) = with_error(t)?;
            t.request(&pdc, pdc.request(2).clear(pdc.psn(1)).write(&region, 0, &[1])?)?;
            t.expect_cack(PDS_CLR_005, &pdc, pdc.psn(2))?;
            Ok(())
        }),
    rule("clear/by-retransmission", "A retransmission clears stored responses like a first transmission")
        .checks(&[PDS_CLR_005])
        .run(|t| {
            let (pdc, region, ..) = with_error(t)?;
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
            let (pdc, region, ..) = with_error(t)?;
            t.forget();
            t.send(&pdc, &clear_command(&pdc, pdc.psn(1))?)?;
            t.expect_silence(PDS_CLR_011, "no answer to CLEAR_COMMAND", |seen| {
                (seen.is_for(&pdc) && (seen.ack().is_some() || seen.nack().is_some())).then_some(())
            })?;
            let told = cack(t, &pdc, &region, 2)?;
            t.check(PDS_CLR_004, "cack_psn", pdc.psn(2), told);
            Ok(())
        }),
    rule("clear/by-close", "CLOSE_COMMAND clears all stored responses").checks(&[PDS_CLOSE_004]).run(|t| {
        let (pdc, region, ..) = with_error(t)?;
        error(t, &pdc, &region, 2)?;
        t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(3), 0)?)?;
        let (_, ack) = t.expect_answer(PDS_CLOSE_004, &pdc, pdc.psn(3))?;
        t.check(PDS_CLOSE_004, "cack_psn", pdc.psn(3), ack.cack_psn());
        Ok(())
    }),
    rule("clear/stored", "Each retransmission before CLEAR gets the same response as the first")
        .checks(&[PDS_GTD_001, PDS_DUP_002, PDS_GTD_002])
        .run(|t| {
            let (pdc, region, first, _) = with_error(t)?;
            for _ in 0..5 {
                t.request(&pdc, pdc.request(1).retx().write_nowhere(&region, &[1])?)?;
                let (again, ack) = t.expect_answer(PDS_DUP_002, &pdc, pdc.psn(1))?;
                t.check(PDS_GTD_001, "the response", first.response(), again.response());
                t.check(PDS_GTD_002, "req", AckRequest::REQ_CLEAR, ack.req());
            }
            Ok(())
        }),
    rule("clear/released", "A retransmission after CLEAR is acknowledged and requests no CLEAR")
        .checks(&[PDS_DUP_002, PDS_CLR_005])
        .run(|t| {
            let (pdc, region, ..) = with_error(t)?;
            t.send(&pdc, &clear_command(&pdc, pdc.psn(1))?)?;
            let told = cack(t, &pdc, &region, 2)?;
            t.check(PDS_CLR_005, "cack_psn", pdc.psn(2), told);
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
            let (pdc, region, ..) = with_error(t)?;
            let mut responses = Vec::new();
            for n in 2..=4 {
                responses.push((n, error(t, &pdc, &region, n)?.0.response()));
            }
            t.send(&pdc, &clear_command(&pdc, pdc.psn(2))?)?;
            let told = cack(t, &pdc, &region, 5)?;
            t.check(PDS_CLR_005, "cack_psn", pdc.psn(2), told);
            for (n, first) in responses.into_iter().skip(1) {
                t.request(&pdc, pdc.request(n).retx().write_nowhere(&region, &[n as u8])?)?;
                let (again, _) = t.expect_answer(PDS_GTD_001, &pdc, pdc.psn(n))?;
                t.check(PDS_GTD_001, "the response", first, again.response());
            }
            Ok(())
        }),
    rule("clear/older-clear", "A late packet with an older CLEAR does not undo a newer one")
        .checks(&[PDS_PSN_003, PDS_CLR_005])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (pdc, region, ..) = with_error(t)?;
            error(t, &pdc, &region, 2)?;
            // Of three requests the newest comes first, and clears.
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
            let (pdc, region, first, _) = with_error(t)?;
            let next = pdc.request(2).clear(pdc.psn(2) - 0x8000);
            t.request(&pdc, next.write(&region, 0, &[1])?)?;
            let (_, ack) = t.expect_ack(PDS_CLR_005, &pdc, pdc.psn(2))?;
            t.check(PDS_CLR_012, "cack_psn", pdc.psn(0), ack.cack_psn());
            t.request(&pdc, pdc.request(1).retx().write_nowhere(&region, &[1])?)?;
            let (again, _) = t.expect_answer(PDS_GTD_001, &pdc, pdc.psn(1))?;
            t.check(PDS_GTD_001, "the response", first.response(), again.response());
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
                error(t, &pdc, &region, n)?;
            }
            t.forget();
            t.request(&pdc, pdc.request(6).clear(Psn(0xffff_ffff)).write(&region, 0, &[1])?)?;
            let (_, ack) = t.expect_ack(PDS_CLR_005, &pdc, Psn(3))?;
            t.check(PDS_PSN_006, "cack_psn", Psn(0xffff_ffff), ack.cack_psn());
            t.send(&pdc, &clear_command(&pdc, Psn(1))?)?;
            let told = cack(t, &pdc, &region, 7)?;
            t.check(PDS_CLR_004, "cack_psn", Psn(1), told);
            Ok(())
        }),
    rule("clear/unreceived", "CLEAR beyond the received PSNs does not move the cumulative PSN over a gap")
        .checks(&[PDS_PSN_002])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (pdc, region, ..) = with_error(t)?;
            t.request(&pdc, pdc.request(3).write(&region, 0, &[1])?)?;
            t.need_ack(&pdc, pdc.psn(3))?;
            t.send(&pdc, &clear_command(&pdc, pdc.psn(40))?)?;
            let told = cack(t, &pdc, &region, 4)?;
            let held = !told.is_after(pdc.psn(1));
            t.holds(PDS_PSN_002, "the cumulative PSN stays below the gap", held, format!("cack_psn {told}"));
            t.forget();
            t.request(&pdc, pdc.request(2).clear(pdc.psn(1)).write(&region, 0, &[1])?)?;
            t.expect_cack(PDS_PSN_002, &pdc, pdc.psn(4))?;
            Ok(())
        }),
    rule("clear/many", "One CLEAR releases up to a hundred stored responses")
        .checks(&[PDS_GTD_001, PDS_CLR_005])
        .run(|t| {
            let count = t.parameter("stored_responses").min(100) as u32;
            let (pdc, region, first, _) = with_error(t)?;
            for n in 2..=count {
                error(t, &pdc, &region, n)?;
            }
            t.forget();
            t.request(&pdc, pdc.request(1).retx().write_nowhere(&region, &[1])?)?;
            let (again, ack) = t.expect_answer(PDS_GTD_001, &pdc, pdc.psn(1))?;
            t.check(PDS_GTD_001, "the response", first.response(), again.response());
            t.check(PDS_GTD_001, "cack_psn", pdc.psn(0), ack.cack_psn());
            t.request(&pdc, pdc.request(count + 1).clear(pdc.psn(count)).write(&region, 0, &[1])?)?;
            t.expect_cack(PDS_CLR_005, &pdc, pdc.psn(count + 1))?;
            Ok(())
        }),
    rule("clear/mixed", "CLEAR moves the cumulative PSN up to the next stored response")
        .checks(&[PDS_PSN_002, PDS_CLR_005])
        .run(|t| {
            let (pdc, region, ..) = with_error(t)?;
            // Kept are 1, 3 and 6.
            cack(t, &pdc, &region, 2)?;
            error(t, &pdc, &region, 3)?;
            cack(t, &pdc, &region, 4)?;
            cack(t, &pdc, &region, 5)?;
            error(t, &pdc, &region, 6)?;
            for (next, clear, told) in [(7, 1, 2), (8, 3, 5), (9, 6, 9)] {
                t.forget();
                t.request(&pdc, pdc.request(next).clear(pdc.psn(clear)).write(&region, 0, &[1])?)?;
                let (_, ack) = t.expect_ack(PDS_CLR_005, &pdc, pdc.psn(next))?;
                t.check(PDS_PSN_002, "cack_psn", pdc.psn(told), ack.cack_psn());
            }
            Ok(())
        }),
    rule("clear/other-context", "CLEAR on one context releases nothing on another")
        .checks(&[PDS_CLR_004, PDS_GTD_001])
        .run(|t| {
            let (one, region, first, _) = with_error(t)?;
            // The PSNs are the same, the contexts are not.
            let mut two = Pdc { start: one.start, ..t.initiate() };
            t.establish(&mut two, &region)?;
            error(t, &two, &region, 1)?;
            t.send(&two, &clear_command(&two, two.psn(1))?)?;
            let told = cack(t, &two, &region, 2)?;
            t.check(PDS_CLR_004, "cack_psn", two.psn(2), told);
            t.request(&one, one.request(1).retx().write_nowhere(&region, &[1])?)?;
            let (again, ack) = t.expect_answer(PDS_GTD_001, &one, one.psn(1))?;
            t.check(PDS_GTD_001, "the response", first.response(), again.response());
            t.check(PDS_GTD_001, "cack_psn", one.psn(0), ack.cack_psn());
            Ok(())
        }),
    rule("clear/fetched-value", "The result of a fetching atomic is stored and duplicates are not executed")
        .checks(&[SES_GTD_003, PDS_DUP_001, SES_AMO_007, PDS_GTD_002])
        .needs(&[WRITE, FETCH_ATOMIC])
        .over(&[&MODE, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(1).write(&region, 0, &t.elements(8, &[5]))?)?;
            t.need_ack(&pdc, pdc.psn(1))?;
            let fetch = pdc.request(2).add(&region, 0, &t.operands(8, &[3]), true)?;
            t.request(&pdc, fetch.clone())?;
            let first = data(t, &pdc, 2)?;
            t.check(SES_AMO_007, "the old value", &t.operands(8, &[5])[..], first.payload());
            t.check(PDS_GTD_002, "req", Some(AckRequest::REQ_CLEAR), first.ack().map(|ack| ack.req()));
            for _ in 0..3 {
                t.forget();
                t.request(&pdc, fetch.clone().retx())?;
                let again = data(t, &pdc, 2)?;
                t.check(SES_GTD_003, "the old value", &t.operands(8, &[5])[..], again.payload());
            }
            t.check_memory(PDS_DUP_001, &region, 0, &t.elements(8, &[8]))
        }),
    rule("clear/read-data", "Read data in an ACK requests CLEAR, and a retransmission gets the data again")
        .checks(&[PDS_GTD_002, PDS_DUP_002, PDS_CLR_005])
        .needs(&[WRITE, READ])
        .over(&[&MODE, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(1).write(&region, 0, &[1, 2, 3, 4])?)?;
            t.need_ack(&pdc, pdc.psn(1))?;
            let length = (t.parameter("max_ack_data_size") as u32).clamp(1, 4);
            let read = pdc.request(2).read(&region, 0, length)?;
            t.request(&pdc, read.clone())?;
            let first = data(t, &pdc, 2)?;
            t.check(PDS_GTD_002, "req", Some(AckRequest::REQ_CLEAR), first.ack().map(|ack| ack.req()));
            t.forget();
            t.request(&pdc, read.retx())?;
            let again = data(t, &pdc, 2)?;
            t.check(PDS_DUP_002, "the data", first.payload(), again.payload());
            t.request(&pdc, pdc.request(3).clear(pdc.psn(2)).write(&region, 0, &[1])?)?;
            t.expect_cack(PDS_CLR_005, &pdc, pdc.psn(3))?;
            Ok(())
        }),
    rule("clear/repeated-read", "A retransmitted read returns the old data or the current memory")
        .checks(&[PDS_GTD_003, SES_GTD_004, PDS_RUD_001])
        .needs(&[WRITE, READ])
        .over(&[&MODE, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let length = (t.parameter("max_ack_data_size") as usize).clamp(1, 4);
            let read = pdc.request(1).read(&region, 0, length as u32)?;
            t.request(&pdc, read.clone())?;
            let first = data(t, &pdc, 1)?;
            t.check(SES_GTD_004, "what was there", &[0, 0, 0, 0][..length], first.payload());
            t.request(&pdc, pdc.request(2).write(&region, 0, &[7; 4])?)?;
            t.need_ack(&pdc, pdc.psn(2))?;
            t.expect_memory(PDS_RUD_001, &region, 0, &[7; 4])?;
            t.forget();
            t.request(&pdc, read.retx())?;
            let again = data(t, &pdc, 1)?;
            let either = [vec![0; length], vec![7; length]];
            t.one_of(PDS_GTD_003, "the data of the second read", &either, again.payload().to_vec());
            Ok(())
        }),
    rule("clear/clear-request", "CLEAR_REQUEST names a stored response and stops once all are cleared")
        .checks(&[PDS_CLR_010, WIRE_CTL_004, PDS_CLR_005])
        .over(&[&KEPT, &MODE, &CARRIER, &START])
        .run(|t| {
            let (pdc, region, ..) = with_error(t)?;
            let kept = t.value(&KEPT);
            for n in 2..=kept {
                error(t, &pdc, &region, n)?;
            }
            let asks = |seen: &RxPacket| seen.control(CtlType::CLEAR_REQUEST).filter(|_| seen.is_for(&pdc));
            let Some((_, asked)) = t.wait(t.soon(), asks)? else {
                return skip("the device sends no CLEAR_REQUEST");
            };
            let named = asked.clear_psn().unwrap_or_default();
            let psns: Vec<Psn> = (1..=kept).map(|n| pdc.psn(n)).collect();
            t.one_of(PDS_CLR_010, "the PSN to be cleared", &psns, named);
            t.check(WIRE_CTL_004, "psn", Psn(0), asked.psn());
            t.send(&pdc, &clear_command(&pdc, pdc.psn(kept))?)?;
            let told = cack(t, &pdc, &region, kept + 1)?;
            t.check(PDS_CLR_005, "cack_psn", pdc.psn(kept + 1), told);
            t.forget();
            t.expect_silence(PDS_CLR_010, "no CLEAR_REQUEST when nothing is kept", asks)
        }),
    rule("clear/full-storage", "Without storage for its response, a request is refused until CLEAR")
        .checks(&[PDS_GTD_005, PDS_NACK_011])
        .run(|t| {
            t.configure("stored_responses", 2)?;
            let (pdc, region) = t.open()?;
            let Some((n, refused)) = fill_up(t, &pdc, &region, 1)? else { return Ok(()) };
            t.request(&pdc, refused.retx().clear(pdc.psn(n - 1)))?;
            t.expect_answer(PDS_NACK_011, &pdc, pdc.psn(n))?;
            Ok(())
        }),
    rule(
        "clear/full-above-gap",
        "A missing request is accepted although responses above it fill the storage",
    )
    .checks(&[PDS_WIN_001, PDS_GTD_005, PDS_NACK_011])
    .needs(&[RUD])
    .over(&[&CARRIER, &START])
    .run(|t| {
        // CLEAR_PSN does not pass the gap, so nothing makes room before the missing request is taken. Its
        // response is the default one and needs no room. Open: if a request whose response needs room finds
        // some.
        t.configure("stored_responses", 2)?;
        let (pdc, region) = t.open()?;
        let Some((n, refused)) = fill_up(t, &pdc, &region, 2)? else { return Ok(()) };
        let missing = pdc.request(1).write(&region, 0, &[1; 16])?;
        // A source sends what is refused again, a few times.
        t.request(&pdc, missing.clone())?;
        for _ in 0..3 {
            let arrived = |seen: &RxPacket| seen.acknowledges(&pdc, pdc.psn(1)).is_some();
            if !t.hear(t.soon(), arrived)? {
                t.request(&pdc, missing.clone().retx())?;
            }
        }
        t.expect_ack(PDS_WIN_001, &pdc, pdc.psn(1))?;
        t.request(&pdc, refused.retx().clear(pdc.psn(n - 1)))?;
        t.expect_answer(PDS_NACK_011, &pdc, pdc.psn(n))?;
        Ok(())
    }),
];

/// A context whose request 1 has got an error, which is kept.
fn with_error(t: &mut Test<'_>) -> Result<(Pdc, Region, RxPacket, Ack), Stop> {
    let (pdc, region) = t.open()?;
    let (seen, ack) = error(t, &pdc, &region, 1)?;
    Ok((pdc, region, seen, ack))
}

/// Gets an error by the `n`-th request.
fn error(t: &mut Test<'_>, pdc: &Pdc, region: &Region, n: u32) -> Result<(RxPacket, Ack), Stop> {
    t.request(pdc, pdc.request(n).write_nowhere(region, &[n as u8])?)?;
    let psn = pdc.psn(n);
    t.need(&format!("an error for {psn}"), t.soon(), |seen| seen.answers(pdc, psn))
}

fn clear_command(pdc: &Pdc, clear: Psn) -> Result<UetBuf, Stop> {
    Ok(pdc.control(CtlType::CLEAR_COMMAND, Psn(0), clear.0)?)
}

/// The cumulative PSN as the ACK of a new request tells it. The request clears nothing.
fn cack(t: &mut Test<'_>, pdc: &Pdc, region: &Region, n: u32) -> Result<Psn, Stop> {
    t.forget();
    t.request(pdc, pdc.request(n).write(region, 512, &[1])?)?;
    Ok(t.need_ack(pdc, pdc.psn(n))?.1.cack_psn())
}

/// The ACK that answers this PSN, with its data, which may come on the return direction instead.
fn data(t: &mut Test<'_>, pdc: &Pdc, n: u32) -> Result<RxPacket, Stop> {
    let (seen, ack) = t.need("the data", t.soon(), |seen| {
        (seen.is_for(pdc) && !seen.payload().is_empty()).then(|| seen.ack())
    })?;
    match ack.and_then(|ack| ack.ack_psn()) == Some(pdc.psn(n)) {
        true => Ok(seen),
        false => skip("the device sends small data on the return direction"),
    }
}

/// The number of errors that are kept.
const KEPT: Axis<u32> = axis("kept").values(&[("two", 2), ("one", 1)]);

/// Has errors kept, from the `first` request on, until one is refused: that request and its number.
fn fill_up(t: &mut Test<'_>, pdc: &Pdc, region: &Region, first: u32) -> Result<Option<(u32, Request)>, Stop> {
    for n in first..=first + MOST_KEPT {
        let nowhere = pdc.request(n).write_nowhere(region, &[n as u8])?;
        t.request(pdc, nowhere.clone())?;
        let (_, refused) = t.need("an answer", t.soon(), |seen| {
            let refused = seen.refuses(pdc, pdc.psn(n)).map(|nack| Some(nack.nack_code()));
            refused.or_else(|| seen.answers(pdc, pdc.psn(n)).map(|_| None))
        })?;
        if let Some(code) = refused {
            t.check(PDS_GTD_005, "nack_code", NackCode::NO_GTD_DEL_AVAIL, code);
            t.forget();
            return Ok(Some((n, nowhere)));
        }
    }
    t.at_most(PDS_GTD_005, "responses kept, by a device that keeps 4", MOST_KEPT, MOST_KEPT + 1);
    Ok(None)
}
