//! Trimmed read data, read data with the PSN of a request, and the fields of replies (sections 3.5.8, 3.5.12
//! and 3.5.15).

use crate::prelude::*;
use crate::{Trimmed, Wire};

/// The switch that trims the data, and the code of the NACK.
const PLACE: Axis<(Trimmed, NackCode)> = axis("trimmed").values(&[
    ("fabric", (Trimmed::Fabric, NackCode::TRIMMED)),
    ("last-hop", (Trimmed::LastHop, NackCode::TRIMMED_LASTHOP)),
]);

/// The number of bytes that the switch keeps: those of the PDS header and a few more.
const SHORT: usize = 16;

/// The read data that gets a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RepliedData {
    New,
    AboveGap,
    Duplicate,
    Trimmed,
}

const REPLIED_DATA: Axis<RepliedData> = axis("data").needing(&[
    ("new", RepliedData::New, &[]),
    ("above-gap", RepliedData::AboveGap, &[RUD]),
    ("duplicate", RepliedData::Duplicate, &[]),
    ("trimmed", RepliedData::Trimmed, &[TRIM]),
]);

/// True if the data has `retx`.
const RETX: Axis<bool> = axis("retx").values(&[("no", false), ("yes", true)]);

/// True if a switch has marked the data.
const MARK: Axis<bool> = axis("mark").needing(&[("no", false, &[]), ("yes", true, &[ECN, SET_ECN])]);

pub(super) const RULES: &[Rule] = &[
    rule("source-return-direction/trimmed", "Trimmed read data gets a NACK with its PSN and is not taken")
        .checks(&[PDS_TRIM_001, PDS_TRIM_002])
        .needs(&[READ, TRIM])
        .over(&[&PLACE, &MODE, &START])
        .run(|t| {
            let (place, code) = t.value(&PLACE);
            // The request has another PSN than its data.
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let whole = bytes(200);
            let read = t.post(Post { want_data: true, ..post(PostKind::Read, peer, whole.len()) })?;
            target.collect(t, 2)?;
            target.ack(t, 1)?;
            let (pdc, header) = (target.pdc.clone(), target.data_header(1, whole.len(), whole.len(), 0)?);
            let data = pdc.request(0).ses(header, &whole);
            // The traffic class alone says that the data is trimmed.
            for left in [SHORT, usize::MAX] {
                t.forget();
                t.send_wire(&pdc.trimmed(&data.build()?, place, left))?;
                let (_, nack) = t.expect_nack(PDS_TRIM_001, &pdc, pdc.psn(0), &[code])?;
                t.check(PDS_TRIM_001, "spdcid", pdc.remote, Some(nack.spdcid()));
            }
            t.is_open(PDS_TRIM_002, read)?;
            t.must_take_data(&pdc, pdc.psn(0));
            t.request(&pdc, data.retx())?;
            t.expect_cack(PDS_TRIM_002, &pdc, pdc.psn(0))?;
            expect_data(t, PDS_TRIM_002, read, &whole)
        }),
    rule(
        "source-return-direction/reply-fields",
        "Replies to read data copy its retx, congestion mark and entropy value",
    )
    .checks(&[PDS_ACK_002, PDS_NACK_001, CC_PATH_001])
    .needs(&[READ])
    .over(&[&REPLIED_DATA, &RETX, &MARK, &MODE])
    .run(|t| {
        let (kind, retx, marked) = (t.value(&REPLIED_DATA), t.value(&RETX), t.value(&MARK));
        let (peer, mut target) = Target::with_peer(t, t.value(&MODE))?;
        let (mtu, whole) = (t.mtu(), bytes(2 * t.mtu()));
        t.post(post(PostKind::Read, peer, whole.len()))?;
        target.collect(t, 3)?;
        target.ack(t, 2)?;
        let k = u32::from(kind == RepliedData::AboveGap && !target.pdc.rod);
        let start = k as usize * mtu;
        let header = target.data_header(1 + k, mtu, whole.len(), start)?;
        let mut pdc = target.pdc.clone();
        let data = Request { retx, ..pdc.request(k).ses(header, &whole[start..start + mtu]) };
        if kind == RepliedData::Duplicate {
            // The first copy has the other flags.
            let first = Request { retx: !retx, ..data.clone() }.build()?;
            let mark = !marked && t.claims("ecn") && t.facts().set_ecn;
            t.must_take_data(&pdc, data.psn);
            t.send_marked(&pdc, &first, mark)?;
            t.need("an ACK of the first copy", t.soon(), |seen| seen.answers(&pdc, data.psn))?;
            t.forget();
        }
        pdc.entropy ^= 0x1555;
        let packet = data.build()?;
        if kind == RepliedData::Trimmed {
            t.send_wire(&Wire { marked, ..pdc.trimmed(&packet, Trimmed::Fabric, SHORT) })?;
            let (reply, nack) = t.expect_nack(PDS_NACK_001, &pdc, data.psn, &[NackCode::TRIMMED])?;
            t.check(PDS_NACK_001, "flag retx", retx, nack.retx());
            t.check(PDS_NACK_001, "flag m (marked)", marked, nack.m());
            check_path(t, &pdc, &reply);
            return Ok(());
        }
        t.must_take_data(&pdc, data.psn);
        t.send_marked(&pdc, &packet, marked)?;
        if kind == RepliedData::Duplicate && !retx {
            let answered = t.hear(t.patience(t.soon()), |seen| seen.answers(&pdc, data.psn).is_some())?;
            require(answered, "the device drops duplicates without retx")?;
        }
        let (reply, ack) = t.expect_answer(PDS_ACK_002, &pdc, data.psn)?;
        t.check(PDS_ACK_002, "flag retx", retx, ack.retx());
        t.check(PDS_ACK_002, "flag m (marked)", marked, ack.m());
        check_path(t, &pdc, &reply);
        Ok(())
    }),
    rule("source-return-direction/same-psn", "Read data does not acknowledge the request with the same PSN")
        .checks(&[PDS_RTO_001, SES_DONE_001])
        .needs(&[RUD, READ])
        .over(&[&CARRIER, &START])
        .run(|t| {
            // The write has PSN 1, which is also the PSN of the second packet of data.
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let (mtu, whole) = (t.mtu(), bytes(2 * t.mtu()));
            let written = t.post(post(PostKind::Write, peer, 64))?;
            let read = t.post(Post { want_data: true, ..post(PostKind::Read, peer, whole.len()) })?;
            target.collect(t, 4)?;
            target.name(t, 2, 1)?;
            target.name(t, 3, 1)?;
            for n in 0..2 {
                let start = n as usize * mtu;
                let header = target.data_header(2 + n, mtu, whole.len(), start)?;
                target.give_due(t, n, header, &whole[start..start + mtu])?;
            }
            expect_data(t, SES_DONE_001, read, &whole)?;
            t.is_open(SES_DONE_001, written)?;
            target.expect_again(t, PDS_RTO_001, 1, t.later())?;
            target.ack(t, 3)?;
            t.ends(SES_DONE_001, written, Status::Ok)
        }),
];

fn bytes(length: usize) -> Vec<u8> {
    pattern(23).take(length).collect()
}

/// Checks that a reply has the entropy value of its packet, if the link shows it.
fn check_path(t: &mut Test<'_>, pdc: &Pdc, reply: &RxPacket) {
    if t.facts().set_entropy && t.facts().see_entropy {
        t.check(CC_PATH_001, "entropy", pdc.entropy, reply.wire.entropy);
    }
}

/// Expects that a read completes with these bytes.
fn expect_data(t: &mut Test<'_>, requirement: &Requirement, read: Operated, whole: &[u8]) -> Outcome {
    let ended = t.ends_with(requirement, read, (Status::Ok, whole.len() as u64))?;
    let held = ended.and_then(|ended| ended.data).map(|data| data.0).unwrap_or_default();
    t.same_bytes(requirement, "the data of the read", whole, &held);
    Ok(())
}
