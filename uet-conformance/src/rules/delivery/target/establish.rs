//! Opening a context at a target by requests with `syn` (section 3.5.8). [`establish_refused`] has the
//! refusals.
//!
//! [`establish_refused`]: super::establish_refused

use super::steps::{delay_acks, remember_closed};
use crate::prelude::*;
use crate::rules::delivery::rule;
use uet_wire::registry::List;

pub(super) const RULES: &[Rule] = &[
    rule("establish/first-packet", "The first packet is delivered and opens a context with a nonzero PDCID")
        .checks(&[PDS_SYN_003, PDS_PDC_001, PDS_SYN_008, PDS_RUD_001])
        .run(|t| {
            let region = t.region(4096)?;
            let pdc = t.initiate();
            t.request(&pdc, pdc.request(0).write(&region, 0, &[7; 16])?)?;
            let (_, ack) = t.expect_ack(PDS_SYN_003, &pdc, pdc.psn(0))?;
            t.at_least(PDS_PDC_001, "spdcid", 1, ack.spdcid().0);
            t.check(PDS_SYN_008, "cack_psn", pdc.start, ack.cack_psn());
            t.expect_memory(PDS_RUD_001, &region, 0, &[7; 16])
        }),
    rule("establish/ack-at-once", "A packet with syn is acknowledged at once, even without ar")
        .checks(&[PDS_ACK_001])
        .measure(|t| {
            delay_acks(t)?;
            let region = t.region(4096)?;
            let pdc = t.initiate();
            let sent = t.now();
            t.request(&pdc, pdc.request(0).quiet().write(&region, 0, &[7; 16])?)?;
            // A late ACK explains a failure better than no ACK.
            let (seen, _) =
                t.expect(PDS_ACK_001, "an ACK", t.soon() * 100, |seen| seen.acknowledges(&pdc, pdc.psn(0)))?;
            t.at_most(PDS_ACK_001, "the time to the ACK", t.soon(), seen.at - sent);
            Ok(())
        }),
    rule("establish/nonzero-offset", "A first packet with a nonzero psn_offset opens the context")
        .checks(&[PDS_SYN_002, PDS_SYN_008, PDS_PSN_002])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let region = t.region(4096)?;
            let mut pdc = t.initiate();
            t.request(&pdc, pdc.request(3).write(&region, 48, &[4; 16])?)?;
            let (seen, ack) = t.expect_ack(PDS_SYN_002, &pdc, pdc.psn(3))?;
            t.check(PDS_SYN_008, "cack_psn", Some(pdc.start - 1), seen.cack(&pdc));
            t.expect_memory(PDS_SYN_002, &region, 48, &[4; 16])?;
            pdc.remote = Some(ack.spdcid());
            for n in 0..3 {
                t.request(&pdc, pdc.request(n).write(&region, u64::from(n) * 16, &[n as u8; 16])?)?;
            }
            t.expect_cack(PDS_PSN_002, &pdc, pdc.psn(3))?;
            Ok(())
        }),
    rule("establish/reversed", "A burst with syn in reverse order opens one context and is delivered whole")
        .checks(&[PDS_SYN_002, PDS_SYN_005, PDS_RUD_001])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            const COUNT: u32 = 32;
            let region = t.region(4096)?;
            let pdc = t.initiate();
            for n in (0..COUNT).rev() {
                t.request(&pdc, pdc.request(n).write(&region, u64::from(n), &[n as u8 + 1])?)?;
            }
            t.expect_cack(PDS_SYN_002, &pdc, pdc.psn(COUNT - 1))?;
            let mut ids: Vec<PdcId> = t
                .gather(t.soon())?
                .iter()
                .filter(|seen| seen.is_for(&pdc))
                .filter_map(|seen| Some(seen.ack()?.spdcid()))
                .collect();
            ids.dedup();
            t.at_most(PDS_SYN_005, "the number of PDCIDs in the other ACKs", 1, ids.len());
            let expected: Vec<u8> = (1..=COUNT as u8).collect();
            t.expect_memory(PDS_RUD_001, &region, 0, &expected)
        }),
    rule("establish/second-syn", "A second packet with syn belongs to the context of the first")
        .checks(&[PDS_SYN_005])
        .run(|t| {
            let region = t.region(4096)?;
            let pdc = t.initiate();
            t.request(&pdc, pdc.request(0).write(&region, 0, &[1; 16])?)?;
            let (_, first) = t.need_ack(&pdc, pdc.psn(0))?;
            t.request(&pdc, pdc.request(1).write(&region, 16, &[2; 16])?)?;
            let (_, second) = t.expect_ack(PDS_SYN_005, &pdc, pdc.psn(1))?;
            t.check(PDS_SYN_005, "the device's PDCID", first.spdcid(), second.spdcid());
            t.check(PDS_SYN_005, "cack_psn", pdc.psn(1), second.cack_psn());
            Ok(())
        }),
    rule("establish/retransmitted-syn", "A retransmitted first packet opens no context and is not delivered")
        .checks(&[PDS_SYN_005, PDS_DUP_001, PDS_DUP_002])
        .run(|t| {
            let region = t.region(4096)?;
            let pdc = t.initiate();
            let first = pdc.request(0).write(&region, 0, &[1; 16])?;
            t.request(&pdc, first.clone())?;
            let (_, ack) = t.need_ack(&pdc, pdc.psn(0))?;
            let open = Pdc { remote: Some(ack.spdcid()), ..pdc.clone() };
            t.request(&open, open.request(1).write(&region, 0, &[2; 16])?)?;
            t.need_ack(&pdc, pdc.psn(1))?;
            t.forget();
            t.request(&pdc, first.retx())?;
            let (_, repeated) = t.expect_ack(PDS_DUP_002, &pdc, pdc.psn(0))?;
            t.check(PDS_SYN_005, "the device's PDCID", ack.spdcid(), repeated.spdcid());
            t.pause(t.soon())?;
            t.check_memory(PDS_DUP_001, &region, 0, &[2; 16])
        }),
    rule("establish/after-flood", "A retransmitted packet with syn is not delivered again after a flood")
        .checks(&[PDS_DUP_001])
        .over(&[&OPENED_BY, &MODE, &CARRIER])
        .run(|t| {
            // Open: whether the flood ends a context whose peer has only sent packets with syn, and how long
            // the device remembers it. The retransmission follows the flood immediately.
            t.configure("general_pdcs", ROOM)?;
            remember_closed(t)?;
            let (other, region) = t.open()?;
            t.prove_established(&other)?;
            let (mut pdc, n) = (t.initiate(), t.value(&OPENED_BY));
            // An ordered context accepts nothing above a gap.
            pdc.rod &= n == 0;
            let packet = pdc.request(n).write(&region, 0, &[1; 16])?;
            t.request(&pdc, packet.clone())?;
            t.need_ack(&pdc, pdc.psn(n))?;
            t.expect_memory(PDS_DUP_001, &region, 0, &[1; 16])?;
            t.request(&other, other.request(1).write(&region, 0, &[2; 16])?)?;
            t.need_ack(&other, other.psn(1))?;
            t.expect_memory(PDS_DUP_001, &region, 0, &[2; 16])?;
            t.forget();
            for _ in 0..2 * ROOM {
                let pdc = t.initiate();
                t.request(&pdc, pdc.request(0).write(&region, 64, &[3; 16])?)?;
            }
            t.request(&pdc, packet.retx())?;
            // A send that is delivered twice finds no receive.
            t.expect_silence(PDS_DUP_001, "no ACK that reports a second delivery", |seen| {
                let list = seen.response().map(|response| response.head().list());
                let second = seen.is_error() || list == Some(List::UET_OVERFLOW);
                seen.answers(&pdc, pdc.psn(n)).filter(|_| second)
            })?;
            t.check_memory(PDS_DUP_001, &region, 0, &[2; 16])
        }),
    rule("establish/syn-in-flight", "A late packet with syn belongs to a context already used without syn")
        .checks(&[PDS_SYN_005, PDS_RUD_001])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(2).write(&region, 32, &[2; 16])?)?;
            t.request(&pdc, Request { syn: true, ..pdc.request(1).write(&region, 16, &[1; 16])? })?;
            let seen = t.expect_cack(PDS_SYN_005, &pdc, pdc.psn(2))?;
            t.check(PDS_SYN_005, "the device's PDCID", pdc.remote, seen.ack().map(|ack| ack.spdcid()));
            t.expect_memory(PDS_RUD_001, &region, 16, &[[1; 16], [2; 16]].concat())
        }),
    rule("establish/max-offset", "The greatest permitted psn_offset opens a context")
        .checks(&[PDS_SYN_002, PDS_WIN_001])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let region = t.region(4096)?;
            let pdc = t.initiate();
            let farthest = (t.default_range() - 1).min(4095);
            t.request(&pdc, pdc.request(farthest).write(&region, 0, &[9; 16])?)?;
            let (_, ack) = t.expect_ack(PDS_WIN_001, &pdc, pdc.psn(farthest))?;
            t.check(PDS_SYN_002, "cack_psn", pdc.start - 1, ack.cack_psn());
            t.expect_memory(PDS_WIN_001, &region, 0, &[9; 16])
        }),
    rule("establish/any-start", "Without security, a target accepts any Start_PSN without NEW_START_PSN")
        .checks(&[PDS_SYN_002, PDS_SEC_004])
        .run(|t| {
            let region = t.region(4096)?;
            for start in [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff] {
                let pdc = Pdc { start: Psn(start), ..t.initiate() };
                t.request(&pdc, pdc.request(0).write(&region, 0, &[1; 16])?)?;
                t.expect_cack(PDS_SYN_002, &pdc, pdc.start)?;
            }
            t.expect_none(PDS_SEC_004, "no NACK NEW_START_PSN", t.soon(), |seen| {
                (seen.nack()?.nack_code() == NackCode::NEW_START_PSN).then_some(())
            })
        }),
    rule("establish/start-before-wrap", "A context whose first PSNs wrap opens with a packet after the wrap")
        .checks(&[PDS_SYN_002, PDS_PSN_006])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let region = t.region(4096)?;
            let pdc = Pdc { start: Psn(0xffff_fffe), ..t.initiate() };
            for n in [3, 0, 2] {
                t.request(&pdc, pdc.request(n).write(&region, u64::from(n) * 16, &[n as u8 + 1; 16])?)?;
                t.expect_ack(PDS_SYN_002, &pdc, pdc.psn(n))?;
            }
            t.forget();
            t.request(&pdc, pdc.request(1).write(&region, 16, &[2; 16])?)?;
            t.expect_cack(PDS_PSN_006, &pdc, Psn(1))?;
            t.expect_memory(PDS_PSN_006, &region, 0, &[[1; 16], [2; 16], [3; 16], [4; 16]].concat())
        }),
];

/// The psn_offset of the packet that opens the context.
const OPENED_BY: Axis<u32> = axis("opened-by").needing(&[("first", 0, &[]), ("second", 1, &[RUD])]);

/// The number of contexts that the device has room for during a flood.
const ROOM: u32 = 4;
