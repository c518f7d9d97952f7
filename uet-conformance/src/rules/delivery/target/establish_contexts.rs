//! Several contexts at a target, and contexts opened by control packets or from the reserved pool (section
//! 3.5.8).

use super::steps::return_data;
use crate::prelude::*;
use crate::rules::delivery::rule;

/// The number of contexts, unless the device has room for fewer.
const CONTEXTS: usize = 300;

pub(super) const RULES: &[Rule] = &[
    rule("establish/two-contexts", "Two PDCIDs of one peer are two contexts, each with its own PSNs")
        .checks(&[PDS_PDC_001, PDS_PDC_003, PDS_PSN_002])
        .run(|t| {
            let (one, region) = t.open()?;
            let mut two = t.initiate();
            t.establish(&mut two, &region)?;
            let distinct = one.remote != two.remote;
            let ids = format!("{} and {}", one.remote.unwrap_or_default(), two.remote.unwrap_or_default());
            t.holds(PDS_PDC_001, "the contexts have different PDCIDs", distinct, ids);
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
            for _ in 0..CONTEXTS {
                let pdc = t.initiate();
                t.request(&pdc, pdc.request(0).write(&region, 0, &[1])?)?;
                let (_, remote) = t.need("an open context, or a refusal", t.soon(), |seen| {
                    let ack = seen.acknowledges(&pdc, pdc.psn(0));
                    ack.map(|ack| Some(ack.spdcid())).or(seen.refuses(&pdc, pdc.psn(0)).map(|_| None))
                })?;
                let Some(remote) = remote else { break };
                t.prove_established(&Pdc { remote: Some(remote), ..pdc.clone() })?;
                open.push((pdc, remote));
            }
            for (pdc, remote) in &open {
                t.request(pdc, pdc.request(1).write(&region, 0, &[2])?)?;
                let (_, ack) = t.expect_ack(PDS_SYN_005, pdc, pdc.psn(1))?;
                t.check(PDS_SYN_005, "spdcid of an open context", *remote, ack.spdcid());
            }
            let (closed, kept): (Vec<_>, Vec<_>) =
                open.into_iter().enumerate().partition(|(n, _)| n % 2 == 0);
            for (_, (pdc, remote)) in closed {
                let (pdc, last) = (Pdc { remote: Some(remote), ..pdc.clone() }, pdc.psn(2));
                t.send(&pdc, &pdc.control(CtlType::CLOSE_COMMAND, last, 0)?)?;
                t.need("the end of the context", t.soon(), |seen| {
                    (seen.answers(&pdc, last).is_some() || seen.refuses(&pdc, last).is_some()).then_some(())
                })?;
            }
            // Wait until the PDCIDs are free.
            let safety_time = Duration::from_nanos(t.parameter("syn_retx_safety_time"));
            t.pause(t.scaled(safety_time))?;
            for (_, (pdc, remote)) in kept {
                if t.is_kept(&pdc).is_ok() {
                    t.request(&pdc, pdc.request(2).write(&region, 0, &[3])?)?;
                    let (_, ack) = t.expect_ack(PDS_SYN_005, &pdc, pdc.psn(2))?;
                    t.check(PDS_SYN_005, "spdcid after other contexts have closed", remote, ack.spdcid());
                }
            }
            Ok(())
        }),
    rule("establish/two-peers", "One PDCID from two addresses names two contexts")
        .checks(&[PDS_SYN_005, PDS_PDC_003])
        .needs(&[TWO_ADDRESSES])
        .run(|t| {
            let (one, region) = t.open()?;
            let mut two = Pdc { local: one.local, ..t.initiate_from(1)? };
            t.request(&two, two.request(0).write(&region, 0, &[2; 16])?)?;
            let (_, ack) = t.expect_ack(PDS_SYN_005, &two, two.psn(0))?;
            let distinct = one.remote != Some(ack.spdcid());
            let ids = format!("{} and {}", one.remote.unwrap_or_default(), ack.spdcid());
            t.holds(PDS_SYN_005, "the contexts have different PDCIDs", distinct, ids);
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
        .run(|t| expect_opening_by_control(t, CtlType::NOOP)),
    rule("establish/by-negotiation", "A NEGOTIATION with syn opens a context whose mode follows isrod")
        .checks(&[PDS_SYN_009, PDS_OPEN_008])
        .needs(&[ROD, NEGOTIATION])
        .run(|t| expect_opening_by_control(t, CtlType::NEGOTIATION)),
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
            t.expect_silence(
                PDS_SYN_010,
                "no ACK of a control packet that must not open a context",
                |seen| tried.iter().any(|pdc| seen.is_for(pdc) && seen.ack().is_some()).then_some(()),
            )?;
            // A context opened by one of these packets would refuse this Start_PSN.
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
            let (_, data) = t.expect(PDS_SYN_008, wanted, t.soon(), |seen| return_data(seen, &pdc))?;
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
            // A device must not read pdc_info as part of psn_offset.
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
            t.check(
                PDS_SYN_002,
                "cack_psn, which reports Start_PSN",
                Some(urgent.psn(0)),
                seen.cack(&urgent),
            );
            if !ack.spdcid().is_valid() {
                return Err(Stop::Failed);
            }
            t.check_memory(PDS_OPEN_001, &region, 0, &[0; 16])
        }),
];

/// Expects that a control packet of this type with `syn` opens contexts of both modes.
fn expect_opening_by_control(t: &mut Test<'_>, kind: CtlType) -> Outcome {
    let region = t.region(4096)?;
    for rod in [false, true] {
        let mut pdc = Pdc { rod, ..t.initiate() };
        t.send(&pdc, &pdc.numbered(kind, 0)?)?;
        let (_, ack) = t.expect_ack(PDS_SYN_009, &pdc, pdc.psn(0))?;
        pdc.remote = Some(ack.spdcid());
        t.request(&pdc, pdc.request(1).write(&region, 0, &[1; 16])?)?;
        t.expect_cack(PDS_SYN_009, &pdc, pdc.psn(1))?;
        let other_mode = Pdc { rod: !rod, ..pdc.clone() };
        t.request(&other_mode, other_mode.request(2).write(&region, 16, &[2; 16])?)?;
        t.expect_nack(PDS_OPEN_008, &pdc, pdc.psn(2), &[NackCode::PDC_MODE_MISMATCH])?;
    }
    t.check_memory(PDS_OPEN_008, &region, 16, &[0; 16])
}
