//! Isolation of contexts: two contexts have the same state at the same time, and each behaves as if it were
//! alone (section 3.5).

use super::steps::clear_command;
use crate::prelude::*;
use crate::rules::steps::{ORDER, ends_first};

/// The peer of the second context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SecondPeer {
    Same,
    Another,
    /// Another peer whose context has the same PDCID and Start_PSN.
    SameNumbers,
}

const SECOND_PEER: Axis<SecondPeer> = axis("second-peer").needing(&[
    ("same", SecondPeer::Same, &[]),
    ("other", SecondPeer::Another, &[TWO_ADDRESSES]),
    ("same-pdcid", SecondPeer::SameNumbers, &[TWO_ADDRESSES]),
]);

/// Begins a rule with the usual axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).over(&[&SECOND_PEER, &ORDER, &MODE])
}

pub(super) const RULES: &[Rule] = &[
    rule("isolation/gap", "Two contexts with gaps report their own gaps")
        .checks(&[PDS_ROD_002, PDS_ACK_011, PDS_PSN_002])
        .needs(&[WRITE])
        .run(|t| {
            let (region, pair) = open_two(t)?;
            // After this, no packet arrives in order.
            for (pdc, n) in pair.iter().zip(2u8..) {
                t.request(pdc, pdc.request(2).write(&region, u64::from(n), &[n])?)?;
            }
            for pdc in &pair {
                if pdc.rod {
                    t.expect_nack(PDS_ROD_002, pdc, pdc.psn(2), &[NackCode::ROD_OOO])?;
                } else {
                    t.expect_ack(PDS_ACK_011, pdc, pdc.psn(2))?;
                }
            }
            for pdc in ends_first(t, pair) {
                t.request(&pdc, pdc.request(1).write(&region, 64, &[1])?)?;
                let last = if pdc.rod { pdc.psn(1) } else { pdc.psn(2) };
                t.expect_cack(PDS_PSN_002, &pdc, last)?;
            }
            Ok(())
        }),
    rule("isolation/stored-error", "CLEAR releases only the stored error of its own context")
        .checks(&[PDS_GTD_001, PDS_GTD_002, PDS_CLR_005])
        .needs(&[WRITE])
        .run(|t| {
            let (region, pair) = open_two(t)?;
            for pdc in &pair {
                t.request(pdc, pdc.request(1).write_nowhere(&region, &[1; 16])?)?;
                let (seen, ack) = t.expect_answer(PDS_GTD_002, pdc, pdc.psn(1))?;
                t.check(PDS_GTD_002, "req", AckRequest::REQ_CLEAR, ack.req());
                t.holds(PDS_GTD_002, "the answer is an error", seen.is_error(), seen.uet());
            }
            let [released, held] = ends_first(t, pair);
            t.send(&released, &clear_command(&released, released.psn(1))?)?;
            t.request(&released, released.request(2).clear(released.psn(1)).write(&region, 0, &[1])?)?;
            // The stored error is released, and the cumulative PSN passes it. The other context keeps its
            // own, so its cumulative PSN stays at 0.
            t.expect_cack(PDS_CLR_005, &released, released.psn(2))?;
            t.forget();
            t.request(&held, held.request(1).retx().write_nowhere(&region, &[1; 16])?)?;
            let (seen, ack) = t.expect_answer(PDS_GTD_001, &held, held.psn(1))?;
            t.holds(PDS_GTD_001, "the answer is still an error", seen.is_error(), seen.uet());
            t.check(PDS_GTD_001, "cack_psn", held.psn(0), ack.cack_psn());
            Ok(())
        }),
    rule("isolation/fetched-value", "Two contexts store their own fetched values under the same PSN")
        .checks(&[SES_AMO_007, SES_GTD_003])
        .needs(&[WRITE, ATOMIC])
        .run(|t| {
            require(t.parameter("max_ack_data_size") >= 8, "the device puts no 8 bytes into an ACK")?;
            let (region, pair) = open_two(t)?;
            let one = t.operands(8, &[1]);
            for (pdc, old) in pair.iter().zip([0, 1]) {
                t.request(pdc, pdc.request(1).add(&region, 0, &one, true)?)?;
                let (seen, _) = t.expect_answer(SES_AMO_007, pdc, pdc.psn(1))?;
                t.same_bytes(SES_AMO_007, "the old value", &t.operands(8, &[old]), seen.payload());
            }
            t.forget();
            let olds = ends_first(t, [0, 1]);
            let [released, held] = ends_first(t, pair);
            t.send(&released, &clear_command(&released, released.psn(1))?)?;
            t.settle()?;
            t.request(&held, held.request(1).retx().add(&region, 0, &one, true)?)?;
            let (seen, _) = t.expect_answer(SES_GTD_003, &held, held.psn(1))?;
            t.same_bytes(SES_GTD_003, "the old value", &t.operands(8, &[olds[1]]), seen.payload());
            Ok(())
        }),
    rule("isolation/atomics", "Atomics that two contexts send at once each act on the result of the other")
        .checks(&[SES_AMO_001])
        .needs(&[WRITE, ATOMIC])
        .over(&[&SECOND_PEER, &MODE])
        .run(|t| {
            let (region, pair) = open_two(t)?;
            let one = t.operands(8, &[1]);
            for n in 1..=8 {
                for pdc in &pair {
                    t.request(pdc, pdc.request(n).add(&region, 0, &one, false)?)?;
                }
            }
            for pdc in &pair {
                t.expect_cack(SES_AMO_001, pdc, pdc.psn(8))?;
            }
            let sum = t.elements(8, &[16]);
            t.check_memory(SES_AMO_001, &region, 0, &sum)
        }),
    rule("isolation/window", "The window of one context stays in place while another advances")
        .checks(&[PDS_WIN_001, PDS_DUP_004])
        .needs(&[WRITE])
        .run(|t| {
            let (region, pair) = open_two(t)?;
            let [ahead, behind] = ends_first(t, pair);
            for n in 1..=40 {
                t.request(&ahead, ahead.request(n).write(&region, u64::from(n), &[n as u8])?)?;
            }
            t.expect_cack(PDS_WIN_001, &ahead, ahead.psn(40))?;
            t.request(&behind, behind.request(1).write(&region, 100, &[1])?)?;
            t.expect_cack(PDS_WIN_001, &behind, behind.psn(1))?;
            t.forget();
            t.request(&ahead, ahead.request(5).retx().write(&region, 5, &[5])?)?;
            let (_, ack) = t.expect_answer(PDS_DUP_004, &ahead, ahead.psn(5))?;
            t.check(PDS_DUP_004, "cack_psn", ahead.psn(40), ack.cack_psn());
            Ok(())
        }),
    rule("isolation/read-data", "An ACK of read data on one context leaves another's read data outstanding")
        .checks(&[PDS_RTO_001, SES_READ_001, PDS_PDC_003])
        .needs(&[WRITE, READ])
        .run(|t| {
            let (region, pair) = open_two(t)?;
            let length = t.beyond_ack()?;
            let mut data = Vec::new();
            for pdc in &pair {
                t.request(pdc, pdc.request(1).read(&region, 0, length)?)?;
                let mut target = Target::of_return(t, pdc);
                target.expect_new(t, SES_READ_001, 0)?;
                data.push(target);
            }
            if t.value(&ORDER) {
                data.reverse();
            }
            data[0].ack(t, 0)?;
            data[1].expect_again(t, PDS_RTO_001, 0, t.later())?;
            data[1].ack(t, 0)?;
            for target in data {
                let pdc = &target.pdc;
                t.request(pdc, pdc.request(2).write(&region, 0, &[1])?)?;
                t.expect_cack(PDS_PDC_003, pdc, pdc.psn(2))?;
            }
            Ok(())
        }),
    rule("isolation/ack-request", "ACK_REQUEST and PROBE are answered from the state of their own context")
        .checks(&[PDS_ASK_001, PDS_ASK_002, PDS_PRB_001])
        .needs(&[WRITE])
        .run(|t| {
            let (region, pair) = open_two(t)?;
            let [one, other] = ends_first(t, pair);
            t.request(&one, one.request(1).write(&region, 0, &[1])?)?;
            t.expect_cack(PDS_ASK_002, &one, one.psn(1))?;
            t.forget();
            for (pdc, arrived) in [(&other, false), (&one, true)] {
                t.send(pdc, &pdc.control(CtlType::ACK_REQUEST, pdc.psn(1), 0)?)?;
                if arrived {
                    t.expect_answer(PDS_ASK_002, pdc, pdc.psn(1))?;
                } else {
                    t.expect_nack(PDS_ASK_001, pdc, pdc.psn(1), &[NackCode::PKT_NOT_RCVD])?;
                }
            }
            for (pdc, opaque) in [(&one, 0x1111), (&other, 0x2222)] {
                t.send(pdc, &pdc.probe(opaque, pdc.psn(0))?)?;
            }
            for (pdc, opaque) in [(&one, 0x1111), (&other, 0x2222)] {
                let soon = t.soon();
                let answer = |seen: &RxPacket| seen.ack().filter(|ack| seen.is_for(pdc) && ack.p());
                let (_, ack) = t.expect(PDS_PRB_001, "an ACK with p = 1", soon, answer)?;
                t.check(PDS_PRB_001, "probe_opaque", Some(opaque), ack.probe_opaque());
            }
            Ok(())
        }),
];

/// Opens two contexts and a region.
fn open_two(t: &mut Test<'_>) -> Result<(Region, [Pdc; 2]), Stop> {
    let (first, region) = t.open()?;
    let mut second = match t.value(&SECOND_PEER) {
        SecondPeer::Same => t.initiate(),
        SecondPeer::Another => t.initiate_from(1)?,
        SecondPeer::SameNumbers => Pdc { from: t.address(1)?, remote: None, ..first.clone() },
    };
    t.establish(&mut second, &region)?;
    Ok((region, [first, second]))
}
