//! A receiver of authentic packets, of trimmed and plaintext ones, and of packets of unknown domains (section
//! 3.7).

use super::header::secure_with_offset;
use super::start::{check_not_executed, open_recorded, overwrite_and_close};
use super::steps::{
    READABLE, check_write, establish_as, expect_executed, expect_no_answer, expect_no_effect, learn_start,
    open_secured, plain_write, rule,
};
use crate::prelude::*;
use crate::rules::steps::{expect_close_in_range, idempotent_region, shorten_psn_range};
use crate::{FEW_SECURED, SECURED, Trimmed, Wire, rudi};
use uet_wire::tss::ICV;

const READS: &[Need] = &[RUD, WRITE, READ, TSS];

const TRIMS: &[Need] = &[RUD, WRITE, TSS, TRIM];

/// The wrong identifier of a domain, derived from the right one.
const SDI: Axis<fn(u32) -> u32> = axis("sdi").values(&[
    ("next", |sdi| (sdi ^ 1) & 0xff_ffff),
    ("first-byte", |sdi| sdi ^ 0x80_0000),
    ("zero", |_| 0),
    ("ones", |_| 0xff_ffff),
]);

/// Limit_PSN_Range. A secured context has the limit in any case.
pub(super) const LIMITED: Axis<bool> = axis("limit").values(&[("off", false), ("on", true)]);

pub(super) const RULES: &[Rule] = &[
    rule("tss-receive/psn-range", "A target near the end of its secured return PSNs requests a close")
        .checks(&[PDS_CLOSE_012])
        .needs(READS)
        .over(&[&FEW_SECURED, &LIMITED])
        .run(|t| {
            shorten_psn_range(t, t.value(&LIMITED))?;
            t.secure(t.value(&FEW_SECURED))?;
            let (pdc, region) = t.open()?;
            expect_close_in_range(t, &pdc, &region)
        }),
    rule("tss-receive/request", "A target executes a secured request and protects its ACK")
        .checks(&[TSS_KEY_001])
        .run(|t| {
            let (pdc, region) = open_secured(t)?;
            let before = t.shield()?.seen.len();
            t.request(&pdc, pdc.request(1).write(&region, 0, &[7; 32])?)?;
            t.expect_ack(TSS_KEY_001, &pdc, pdc.psn(1))?;
            t.expect_memory(TSS_KEY_001, &region, 0, &[7; 32])?;
            let answers = t.shield()?.seen.len() - before;
            t.check(TSS_KEY_001, "protected answers:", 1, answers);
            Ok(())
        }),
    rule("tss-receive/unknown-domain", "A packet of an unknown domain has no effect and gets no answer")
        .checks(&[TSS_SDI_001])
        .over(&[&SECURED, &SDI])
        .run(|t| {
            let (pdc, region) = open_secured(t)?;
            let sealed = seal_for_other_domain(t, &plain_write(&pdc, &region, 1)?)?;
            expect_no_effect(t, [TSS_SDI_001, TSS_SDI_001], (&pdc, &region), 1, &[sealed])
        }),
    rule("tss-receive/unknown-domain-opening", "An opening packet of an unknown domain gets no answer")
        .checks(&[TSS_SDI_001])
        .over(&[&SECURED, &SDI])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let region = t.region(1 << 16)?;
            let mut pdc = t.initiate();
            let opening = seal_for_other_domain(t, &plain_write(&pdc, &region, 0)?)?;
            t.send_as_it_is(&opening)?;
            expect_no_answer(t, TSS_SDI_001)?;
            t.check_memory(TSS_SDI_001, &region, 0, &[0; 32])?;
            establish_as(t, TSS_SDI_001, &mut pdc, &region)
        }),
    rule("tss-receive/duplicate", "A duplicate of a secured packet is not executed again")
        .checks(&[PDS_DUP_001])
        .run(|t| {
            let (pdc, region) = open_secured(t)?;
            let sealed = t.sealed(&plain_write(&pdc, &region, 1)?)?;
            t.send_as_it_is(&sealed)?;
            expect_executed(t, PDS_DUP_001, &pdc, &region, 1)?;
            t.request(&pdc, pdc.request(2).write(&region, 64, &[9; 32])?)?;
            t.need_ack(&pdc, pdc.psn(2))?;
            t.settle()?;
            t.send_as_it_is(&sealed)?;
            // The sources leave open if a duplicate without `retx` is acknowledged.
            t.settle()?;
            t.check_memory(PDS_DUP_001, &region, 64, &[9; 32])?;
            check_write(t, PDS_DUP_001, &pdc, &region, 3)
        }),
    rule("tss-receive/read", "A target protects the data of a read")
        .checks(&[TSS_CLEAR_002, SES_READ_001])
        .needs(READS)
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let (region, pattern) = t.patterned(4096)?;
            let mut pdc = t.initiate();
            t.request(&pdc, pdc.request(0).read(&region, 0, 32)?)?;
            if learn_start(t, &mut pdc, |_, seen| !seen.payload().is_empty())? {
                t.request(&pdc, pdc.request(0).read(&region, 0, 32)?)?;
            }
            let data = |seen: &RxPacket| (!seen.payload().is_empty()).then(|| seen.payload().to_vec());
            let within = t.soon();
            let (_, received) = t.expect(SES_READ_001, "the data of the read", within, data)?;
            t.same_bytes(SES_READ_001, "the data of the read", &pattern[..32], &received);
            let clear = t.shield()?.clear;
            t.check(TSS_CLEAR_002, "packets in the clear:", 0, clear);
            Ok(())
        }),
    rule("tss-receive/rudi", "A target executes a secured RUDI request and protects its response")
        .checks(&[TSS_CLEAR_002, TSS_ICV_001])
        .needs(&[RUD, WRITE, RUDI, TSS])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let (region, pdc) = idempotent_region(t)?;
            let request = pdc.request(0).write(&region, 0, &[7; 32])?;
            t.send(&pdc, &rudi(0x1234, &request)?)?;
            let answers = |seen: &RxPacket| seen.rudi().filter(|header| header.pkt_id() == 0x1234);
            t.expect(TSS_ICV_001, "a response", t.soon(), answers)?;
            t.expect_memory(TSS_ICV_001, &region, 0, &[7; 32])?;
            let clear = t.shield()?.clear;
            t.check(TSS_CLEAR_002, "packets in the clear:", 0, clear);
            Ok(())
        }),
    rule("tss-receive/rudi-reordered", "Secured RUDI requests are executed in any order of their counters")
        .checks(&[TSS_KEY_003])
        .needs(&[RUD, WRITE, RUDI, TSS])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let (region, pdc) = idempotent_region(t)?;
            let mut sealed = Vec::new();
            for (id, data) in [(0x21, 1), (0x22, 2)] {
                let request = pdc.request(0).write(&region, 32 * (id & 1), &[data; 32])?;
                sealed.push(t.sealed(&pdc.wire(&rudi(id as u32, &request)?))?);
            }
            for (packet, id) in sealed.iter().rev().zip([0x22, 0x21]) {
                t.send_as_it_is(packet)?;
                let answers = |seen: &RxPacket| seen.rudi().filter(|header| header.pkt_id() == id);
                t.expect(TSS_KEY_003, "a response", t.soon(), answers)?;
            }
            t.expect_memory(TSS_KEY_003, &region, 0, &[[2; 32], [1; 32]].concat())
        }),
    rule("tss-receive/trimmed", "A trimmed secured request is neither executed nor acknowledged")
        .checks(&[TSS_TRIM_001])
        .needs(TRIMS)
        .over(&[&SECURED, &READABLE])
        .run(|t| {
            let readable = t.value(&READABLE);
            secure_with_offset(t, readable)?;
            let (pdc, region) = t.open()?;
            let sealed = t.sealed(&plain_write(&pdc, &region, 1)?)?;
            send_trimmed(t, &sealed)?;
            t.expect_none(TSS_TRIM_001, "an ACK", t.soon(), |seen| seen.acknowledges(&pdc, pdc.psn(1)))?;
            t.check_memory(TSS_TRIM_001, &region, 64, &[0; 32])?;
            check_write(t, TSS_TRIM_001, &pdc, &region, 1)
        }),
    rule("tss-receive/trimmed-opening", "A trimmed secured opening packet opens no context")
        .checks(&[TSS_TRIM_001])
        .needs(TRIMS)
        .over(&[&SECURED, &READABLE])
        .run(|t| {
            let readable = t.value(&READABLE);
            secure_with_offset(t, readable)?;
            let region = t.region(1 << 16)?;
            let mut pdc = t.initiate();
            let sealed = t.sealed(&plain_write(&pdc, &region, 0)?)?;
            send_trimmed(t, &sealed)?;
            // The sources leave open if a NACK reports the trim.
            t.expect_none(TSS_TRIM_001, "an ACK or a NACK NEW_START_PSN", t.soon(), |seen| {
                let acknowledged = seen.acknowledges(&pdc, pdc.psn(0)).is_some();
                (acknowledged || seen.new_start(&pdc).is_some()).then_some(())
            })?;
            t.check_memory(TSS_TRIM_001, &region, 0, &[0; 32])?;
            t.forget();
            t.send_wire(&plain_write(&pdc, &region, 0)?)?;
            if learn_start(t, &mut pdc, |pdc, seen| seen.acknowledges(pdc, pdc.psn(0)).is_some())? {
                t.send_wire(&plain_write(&pdc, &region, 0)?)?;
            }
            expect_executed(t, TSS_TRIM_001, &pdc, &region, 0)
        }),
    rule("tss-receive/plaintext", "A secured context accepts no plaintext request")
        .checks(&[TSS_CLEAR_002])
        .run(|t| {
            let (pdc, region) = open_secured(t)?;
            let request = pdc.request(1).write(&region, 0, &[7; 32])?.build()?;
            t.send_as_it_is(&pdc.wire(&request))?;
            t.pause(t.soon())?;
            t.expect_memory(TSS_CLEAR_002, &region, 0, &[0; 32])?;
            t.send(&pdc, &request)?;
            t.expect_ack(TSS_CLEAR_002, &pdc, pdc.psn(1))?;
            t.expect_memory(TSS_CLEAR_002, &region, 0, &[7; 32])
        }),
    rule("tss-receive/replayed-opening", "A replayed opening packet executes nothing after the close")
        .checks(&[TSS_START_001])
        .run(|t| {
            t.secure(t.value(&SECURED))?;
            let region = t.region(1 << 16)?;
            let (pdc, opening) = open_recorded(t, &region)?;
            overwrite_and_close(t, &pdc, &region)?;
            t.send_as_it_is(&opening)?;
            check_not_executed(t, &region)
        }),
];

/// Sends what three switches leave of a sealed packet. The last one takes its ICV only.
pub(super) fn send_trimmed(t: &mut Test<'_>, sealed: &Wire) -> Outcome {
    let whole = sealed.bytes.len() - ICV;
    for (place, keep) in [(Trimmed::Fabric, 24), (Trimmed::LastHop, 40), (Trimmed::LastHop, whole)] {
        let mut short = sealed.clone();
        short.trimmed = Some(place);
        short.taken = short.bytes.split_off(keep);
        t.send_as_it_is(&short)?;
    }
    Ok(())
}

/// Seals a packet for another domain, under the right key.
fn seal_for_other_domain(t: &mut Test<'_>, wire: &Wire) -> Result<Wire, Stop> {
    let other = t.value(&SDI);
    let right = t.shield()?.domain.sdi;
    t.shield()?.domain.sdi = other(right);
    let sealed = t.sealed(wire);
    t.shield()?.domain.sdi = right;
    sealed
}
