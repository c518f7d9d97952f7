//! Stored responses: their data, CLEAR_REQUEST, and the limit of the storage (sections 3.5.11 and 3.5.16.3).

use super::steps::{clear_command, next_cack, open_with_error, provoke_error};
use crate::prelude::*;
use crate::rules::delivery::rule;

/// Maximum number of responses that a device stores with `stored_responses` set to 2.
const MAX_STORED: u32 = 4;

pub(super) const RULES: &[Rule] = &[
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
            let first = ack_with_data(t, &pdc, 2)?;
            t.check(SES_AMO_007, "the old value", &t.operands(8, &[5])[..], first.payload());
            t.check(PDS_GTD_002, "req", Some(AckRequest::REQ_CLEAR), first.ack().map(|ack| ack.req()));
            for _ in 0..3 {
                t.forget();
                t.request(&pdc, fetch.clone().retx())?;
                let repeated = ack_with_data(t, &pdc, 2)?;
                t.check(SES_GTD_003, "the old value", &t.operands(8, &[5])[..], repeated.payload());
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
            let first = ack_with_data(t, &pdc, 2)?;
            t.check(PDS_GTD_002, "req", Some(AckRequest::REQ_CLEAR), first.ack().map(|ack| ack.req()));
            t.forget();
            t.request(&pdc, read.retx())?;
            let repeated = ack_with_data(t, &pdc, 2)?;
            t.check(PDS_DUP_002, "the data", first.payload(), repeated.payload());
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
            let first = ack_with_data(t, &pdc, 1)?;
            t.check(SES_GTD_004, "what was there", &[0, 0, 0, 0][..length], first.payload());
            t.request(&pdc, pdc.request(2).write(&region, 0, &[7; 4])?)?;
            t.need_ack(&pdc, pdc.psn(2))?;
            t.expect_memory(PDS_RUD_001, &region, 0, &[7; 4])?;
            t.forget();
            t.request(&pdc, read.retx())?;
            let repeated = ack_with_data(t, &pdc, 1)?;
            let either = [vec![0; length], vec![7; length]];
            t.one_of(PDS_GTD_003, "the data of the second read", &either, repeated.payload().to_vec());
            Ok(())
        }),
    rule("clear/clear-request", "CLEAR_REQUEST names a stored response and stops once all are cleared")
        .checks(&[PDS_CLR_010, WIRE_CTL_004, PDS_CLR_005])
        .over(&[&STORED, &MODE, &CARRIER, &START])
        .run(|t| {
            let (pdc, region, ..) = open_with_error(t)?;
            let stored = t.value(&STORED);
            for n in 2..=stored {
                provoke_error(t, &pdc, &region, n)?;
            }
            let clear_request =
                |seen: &RxPacket| seen.control(CtlType::CLEAR_REQUEST).filter(|_| seen.is_for(&pdc));
            let Some((_, request)) = t.wait(t.soon(), clear_request)? else {
                return skip("the device sends no CLEAR_REQUEST");
            };
            let named = request.clear_psn().unwrap_or_default();
            let psns: Vec<Psn> = (1..=stored).map(|n| pdc.psn(n)).collect();
            t.one_of(PDS_CLR_010, "the PSN to be cleared", &psns, named);
            t.check(WIRE_CTL_004, "psn", Psn(0), request.psn());
            t.send(&pdc, &clear_command(&pdc, pdc.psn(stored))?)?;
            let cack = next_cack(t, &pdc, &region, stored + 1)?;
            t.check(PDS_CLR_005, "cack_psn", pdc.psn(stored + 1), cack);
            t.forget();
            t.expect_silence(PDS_CLR_010, "no CLEAR_REQUEST when nothing is stored", clear_request)
        }),
    rule("clear/full-storage", "Without storage for its response, a request is refused until CLEAR")
        .checks(&[PDS_GTD_005, PDS_NACK_011])
        .run(|t| {
            t.configure("stored_responses", 2)?;
            let (pdc, region) = t.open()?;
            let Some((n, refused)) = fill_storage(t, &pdc, &region, 1)? else { return Ok(()) };
            t.request(&pdc, refused.retx().clear(pdc.psn(n - 1)))?;
            t.expect_answer(PDS_NACK_011, &pdc, pdc.psn(n))?;
            Ok(())
        }),
    rule("clear/full-above-gap", "A missing request is accepted while responses above it fill the storage")
        .checks(&[PDS_WIN_001, PDS_GTD_005, PDS_NACK_011])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            // CLEAR_PSN does not pass the gap, so nothing frees storage before the missing request arrives.
            // Its default response needs none. Open: whether there is storage for any other response.
            t.configure("stored_responses", 2)?;
            let (pdc, region) = t.open()?;
            let Some((n, refused)) = fill_storage(t, &pdc, &region, 2)? else { return Ok(()) };
            let missing = pdc.request(1).write(&region, 0, &[1; 16])?;
            // A source retransmits a refused request a few times.
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

/// Waits for the ACK of the `n`-th PSN with its data. Skips the rule if the data uses the return direction.
fn ack_with_data(t: &mut Test<'_>, pdc: &Pdc, n: u32) -> Result<RxPacket, Stop> {
    let (seen, ack) = t.need("the data", t.soon(), |seen| {
        (seen.is_for(pdc) && !seen.payload().is_empty()).then(|| seen.ack())
    })?;
    require(
        ack.and_then(|ack| ack.ack_psn()) == Some(pdc.psn(n)),
        "the device sends small data on the return direction",
    )?;
    Ok(seen)
}

/// The number of stored errors.
const STORED: Axis<u32> = axis("stored").values(&[("two", 2), ("one", 1)]);

/// Provokes errors from the `first` request on until one is refused. Returns the refused request and its
/// number.
fn fill_storage(
    t: &mut Test<'_>,
    pdc: &Pdc,
    region: &Region,
    first: u32,
) -> Result<Option<(u32, Request)>, Stop> {
    for n in first..=first + MAX_STORED {
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
    t.at_most(PDS_GTD_005, "responses stored by a device that stores 4", MAX_STORED, MAX_STORED + 1);
    Ok(None)
}
