//! Opening a context at a target (section 3.5.8). Refusals are in [`refused`](super::establish_refused).

use crate::prelude::*;
use uet_wire::registry::List;

/// Begins a rule with the usual axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).over(&[&MODE, &CARRIER, &START])
}

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
        .run(|t| {
            // So that no timer of the device's is taken for haste.
            t.try_configure("ack_delay", 1_000_000_000)?;
            let region = t.region(4096)?;
            let pdc = t.initiate();
            let sent = t.now();
            t.request(&pdc, pdc.request(0).quiet().write(&region, 0, &[7; 16])?)?;
            // Of a device that has said nothing yet, a late answer says more than none.
            let (seen, _) =
                t.expect(PDS_ACK_001, "an ACK", t.soon() * 100, |seen| seen.acknowledges(&pdc, pdc.psn(0)))?;
            t.at_most(PDS_ACK_001, "the time to the ACK", t.soon(), seen.at - sent);
            Ok(())
        }),
    rule("establish/nonzero-offset", "A first packet with a nonzero psn_offset opens the context")
        .checks(&[PDS_SYN_002, PDS_SYN_008, PDS_PSN_002])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(later_first),
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
        .run(repeated_syn),
    rule("establish/after-flood", "A retransmitted packet with syn is not delivered again after a flood")
        .checks(&[PDS_DUP_001])
        .over(&[&OPENED_BY, &MODE, &CARRIER])
        .run(|t| {
            // Open: whether the flood ends a context whose peer has only sent packets with syn, and how long
            // the device remembers it. The retransmission follows the flood immediately.
            t.configure("general_pdcs", ROOM)?;
            t.try_configure("syn_retx_safety_time", 1_000_000_000)?;
            let (other, region) = t.open()?;
            t.prove_established(&other)?;
            let (mut pdc, n) = (t.initiate(), t.value(&OPENED_BY));
            // An ordered context takes nothing above a gap.
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
            // A send that is delivered again finds no receive.
            t.expect_silence(PDS_DUP_001, "no answer that tells of a second delivery", |seen| {
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
    rule("establish/two-contexts", "Two PDCIDs of one peer are two contexts, each with its own PSNs")
        .checks(&[PDS_PDC_001, PDS_PDC_003, PDS_PSN_002])
        .run(|t| {
            let (one, region) = t.open()?;
            let mut two = t.initiate();
            t.establish(&mut two, &region)?;
            let distinct = one.remote != two.remote;
            let ids = format!("{} and {}", one.remote.unwrap_or_default(), two.remote.unwrap_or_default());
            t.holds(PDS_PDC_001, "the device names its contexts by different PDCIDs", distinct, ids);
            for n in 1..4 {
                t.request(&one, one.request(n).write(&region, u64::from(n) * 16, &[1; 16])?)?;
            }
            t.request(&two, two.request(1).write(&region, 0, &[2; 16])?)?;
            t.expect_cack(PDS_PSN_002, &one, one.psn(3))?;
            t.expect_cack(PDS_PSN_002, &two, two.psn(1))?;
            t.expect_memory(PDS_PDC_003, &region, 0, &[[2; 16], [1; 16], [1; 16], [1; 16]].concat())
        }),
    rule("establish/many", "Later packets with syn find each of many contexts, even after others close")
        .checks(&[PDS_SYN_005])
        .over(&[&MODE, &CARRIER])
        .run(|t| {
            let region = t.region(4096)?;
            let mut open = Vec::new();
            for _ in 0..MANY {
                let pdc = t.initiate();
                t.request(&pdc, pdc.request(0).write(&region, 0, &[1])?)?;
                let (_, named) = t.need("an open context, or a refusal", t.soon(), |seen| {
                    let ack = seen.acknowledges(&pdc, pdc.psn(0));
                    ack.map(|ack| Some(ack.spdcid())).or(seen.refuses(&pdc, pdc.psn(0)).map(|_| None))
                })?;
                let Some(named) = named else { break };
                t.prove_established(&Pdc { remote: Some(named), ..pdc.clone() })?;
                open.push((pdc, named));
            }
            for (pdc, named) in &open {
                t.request(pdc, pdc.request(1).write(&region, 0, &[2])?)?;
                let (_, ack) = t.expect_ack(PDS_SYN_005, pdc, pdc.psn(1))?;
                t.check(PDS_SYN_005, "spdcid of a context that the device has named", *named, ack.spdcid());
            }
            let (closed, kept): (Vec<_>, Vec<_>) =
                open.into_iter().enumerate().partition(|(n, _)| n % 2 == 0);
            for (_, (pdc, named)) in closed {
                let (pdc, last) = (Pdc { remote: Some(named), ..pdc.clone() }, pdc.psn(2));
                t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, last, 0)?)?;
                t.need("the end of the context", t.soon(), |seen| {
                    (seen.answers(&pdc, last).is_some() || seen.refuses(&pdc, last).is_some()).then_some(())
                })?;
            }
            // Then their numbers are free.
            let told = Duration::from_nanos(t.parameter("syn_retx_safety_time"));
            t.pause(t.scaled(told))?;
            for (_, (pdc, named)) in kept {
                if t.is_kept(&pdc).is_ok() {
                    t.request(&pdc, pdc.request(2).write(&region, 0, &[3])?)?;
                    let (_, ack) = t.expect_ack(PDS_SYN_005, &pdc, pdc.psn(2))?;
                    t.check(PDS_SYN_005, "spdcid after the end of other contexts", named, ack.spdcid());
                }
            }
            Ok(())
        }),
    rule("establish/two-peers", "The same PDCID from two addresses is two contexts")
        .checks(&[PDS_SYN_005, PDS_PDC_003])
        .needs(&[TWO_ADDRESSES])
        .run(|t| {
            let (one, region) = t.open()?;
            let mut two = Pdc { local: one.local, ..t.initiate_from(1)? };
            t.request(&two, two.request(0).write(&region, 0, &[2; 16])?)?;
            let (_, ack) = t.expect_ack(PDS_SYN_005, &two, two.psn(0))?;
            let distinct = one.remote != Some(ack.spdcid());
            let ids = format!("{} and {}", one.remote.unwrap_or_default(), ack.spdcid());
            t.holds(PDS_SYN_005, "the device names its contexts by different PDCIDs", distinct, ids);
            two.remote = Some(ack.spdcid());
            t.request(&one, one.request(1).write(&region, 16, &[1; 16])?)?;
            t.request(&two, two.request(1).write(&region, 32, &[2; 16])?)?;
            t.expect_cack(PDS_PDC_003, &one, one.psn(1))?;
            t.expect_cack(PDS_PDC_003, &two, two.psn(1))?;
            t.expect_memory(PDS_PDC_003, &region, 0, &[[2; 16], [1; 16], [2; 16]].concat())
        }),
    rule("establish/both-modes", "Contexts of both delivery modes coexist")
        .checks(&[PDS_SYN_003, PDS_PDC_003])
        .needs(&[ROD])
        .run(|t| {
            let (rud, region) = t.open()?;
            let mut rod = Pdc { rod: true, ..t.initiate() };
            t.request(&rod, rod.request(0).write(&region, 0, &[1; 16])?)?;
            let (_, ack) = t.expect_ack(PDS_SYN_003, &rod, rod.psn(0))?;
            rod.remote = Some(ack.spdcid());
            t.request(&rod, rod.request(1).write(&region, 16, &[2; 16])?)?;
            t.request(&rud, rud.request(1).write(&region, 32, &[3; 16])?)?;
            t.expect_cack(PDS_PDC_003, &rod, rod.psn(1))?;
            t.expect_cack(PDS_PDC_003, &rud, rud.psn(1))?;
            t.expect_memory(PDS_PDC_003, &region, 0, &[[1; 16], [2; 16], [3; 16]].concat())
        }),
    rule("establish/by-noop", "A NOOP with syn opens a context whose mode follows isrod")
        .checks(&[PDS_SYN_009, PDS_OPEN_008])
        .needs(&[ROD])
        .run(|t| by_control(t, CtlType::NOOP)),
    rule("establish/by-negotiation", "A NEGOTIATION with syn opens a context whose mode follows isrod")
        .checks(&[PDS_SYN_009, PDS_OPEN_008])
        .needs(&[ROD, NEGOTIATION])
        .run(|t| by_control(t, CtlType::NEGOTIATION)),
    rule("establish/not-by-other-control", "No control packet but NOOP and NEGOTIATION opens a context")
        .checks(&[PDS_SYN_010])
        .run(|t| {
            const OTHERS: [CtlType; 8] = [
                CtlType::ACK_REQUEST,
                CtlType::CLEAR_COMMAND,
                CtlType::CLEAR_REQUEST,
                CtlType::CLOSE_COMMAND,
                CtlType::CLOSE_REQUEST,
                CtlType::PROBE,
                CtlType::CREDIT,
                CtlType::CREDIT_REQUEST,
            ];
            let region = t.region(4096)?;
            let mut tried = Vec::new();
            for kind in OTHERS {
                let pdc = t.initiate();
                t.send(&pdc, &uet_wire::UetBuf::new(pdc.opening(kind, 0).done()?))?;
                tried.push(pdc);
            }
            t.expect_silence(PDS_SYN_010, "no ACK of a control packet that may not open", |seen| {
                tried.iter().any(|pdc| seen.is_for(pdc) && seen.ack().is_some()).then_some(())
            })?;
            // Had one made a context, this would be one of its packets, from a wrong start.
            for pdc in tried {
                let pdc = Pdc { start: pdc.start + (1 << 20), ..pdc };
                t.request(&pdc, pdc.request(0).write(&region, 0, &[1; 16])?)?;
                t.expect_ack(PDS_SYN_010, &pdc, pdc.psn(0))?;
            }
            Ok(())
        }),
    rule("establish/return-direction", "The return direction also starts at Start_PSN")
        .checks(&[PDS_SYN_008])
        .needs(&[WRITE, READ])
        .over(&[&MODE, &START])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let length = t.beyond_ack()?;
            t.request(&pdc, pdc.request(1).read(&region, 0, length)?)?;
            let wanted = "a request with read data";
            let (_, data) = t.expect(PDS_SYN_008, wanted, t.soon(), |seen| {
                seen.request().filter(|_| seen.is_for(&pdc) && !seen.payload().is_empty())
            })?;
            t.is_kept(&pdc)?;
            t.check(PDS_SYN_008, "psn", pdc.start, data.psn());
            t.check(PDS_SYN_008, "clear_psn", pdc.start - 1, data.clear_psn());
            t.send(&pdc, &pdc.ack(data.psn()).build()?)
        }),
    rule("establish/reserved-pool", "The reserved pool supplies a context when the general pool is empty")
        .checks(&[PDS_SYN_011, PDS_SYN_002, PDS_OPEN_001])
        .run(|t| {
            t.configure("general_pdcs", 1)?;
            t.configure("reserved_pdcs", 1)?;
            let (first, region) = t.open()?;
            t.prove_established(&first)?;
            let refused = t.initiate();
            t.request(&refused, refused.request(0).write(&region, 0, &[1; 16])?)?;
            t.need("an empty pool", t.soon(), |seen| seen.refuses(&refused, refused.psn(0)))?;
            let urgent = t.initiate();
            t.request(
                &urgent,
                Request { reserved_pool: true, ..urgent.request(0).write(&region, 16, &[2; 16])? },
            )?;
            // pdc_info is no part of psn_offset.
            let misread = |seen: &RxPacket| {
                let refusal = seen.refuses(&urgent, urgent.psn(0));
                refusal.filter(|nack| nack.nack_code() == NackCode::INVALID_SYN)
            };
            let answers = |seen: &RxPacket| {
                misread(seen).is_some() || seen.acknowledges(&urgent, urgent.psn(0)).is_some()
            };
            let within = t.patience(t.soon());
            t.hear(within, answers)?;
            t.expect_none(PDS_SYN_002, "no INVALID_SYN for psn_offset 0", Duration::ZERO, misread)?;
            let (seen, ack) = t.expect_ack(PDS_SYN_011, &urgent, urgent.psn(0))?;
            t.check(PDS_SYN_002, "cack_psn, which tells Start_PSN", Some(urgent.psn(0)), seen.cack(&urgent));
            if !ack.spdcid().is_valid() {
                return Err(Stop::Failed);
            }
            t.check_memory(PDS_OPEN_001, &region, 0, &[0; 16])
        }),
];

fn later_first(t: &mut Test<'_>) -> Outcome {
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
}

fn repeated_syn(t: &mut Test<'_>) -> Outcome {
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

    let (_, again) = t.expect_ack(PDS_DUP_002, &pdc, pdc.psn(0))?;

    t.check(PDS_SYN_005, "the device's PDCID", ack.spdcid(), again.spdcid());

    t.pause(t.soon())?;

    t.check_memory(PDS_DUP_001, &region, 0, &[2; 16])
}

/// The psn_offset of the packet that opens the context.
const OPENED_BY: Axis<u32> = axis("opened-by").needing(&[("first", 0, &[]), ("second", 1, &[RUD])]);

/// The contexts that the device has room for in a flood.
const ROOM: u32 = 4;

/// Number of contexts, unless the device has room for fewer.
const MANY: usize = 300;

fn by_control(t: &mut Test<'_>, kind: CtlType) -> Outcome {
    let region = t.region(4096)?;
    for rod in [false, true] {
        let mut pdc = Pdc { rod, ..t.initiate() };
        t.send(&pdc, &pdc.numbered(kind, 0)?)?;
        let (_, ack) = t.expect_ack(PDS_SYN_009, &pdc, pdc.psn(0))?;
        pdc.remote = Some(ack.spdcid());
        t.request(&pdc, pdc.request(1).write(&region, 0, &[1; 16])?)?;
        t.expect_cack(PDS_SYN_009, &pdc, pdc.psn(1))?;
        let other = Pdc { rod: !rod, ..pdc.clone() };
        t.request(&other, other.request(2).write(&region, 16, &[2; 16])?)?;
        t.expect_nack(PDS_OPEN_008, &pdc, pdc.psn(2), &[NackCode::PDC_MODE_MISMATCH])?;
    }
    t.check_memory(PDS_OPEN_008, &region, 16, &[0; 16])
}
