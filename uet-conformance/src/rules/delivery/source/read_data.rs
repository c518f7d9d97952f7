//! Trimmed read data, and read data with the PSN of a request (sections 3.5.8 and 3.5.15).

use crate::Trimmed;
use crate::prelude::*;

/// The switch that trims the data, and the code of the NACK.
const PLACE: Axis<(Trimmed, NackCode)> = axis("trimmed").values(&[
    ("fabric", (Trimmed::Fabric, NackCode::TRIMMED)),
    ("last-hop", (Trimmed::LastHop, NackCode::TRIMMED_LASTHOP)),
]);

/// The number of bytes that the switch keeps: those of the PDS header and a few more.
const SHORT: usize = 16;

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
            t.send_wire(&pdc.trimmed(&data.build()?, place, SHORT))?;
            let (_, nack) = t.expect_nack(PDS_TRIM_001, &pdc, pdc.psn(0), &[code])?;
            t.check(PDS_TRIM_001, "spdcid", pdc.remote, Some(nack.spdcid()));
            t.is_open(PDS_TRIM_002, read)?;
            t.must_take_data(&pdc, pdc.psn(0));
            t.request(&pdc, data.retx())?;
            t.expect_cack(PDS_TRIM_002, &pdc, pdc.psn(0))?;
            expect_data(t, PDS_TRIM_002, read, &whole)
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

/// Expects that a read completes with these bytes.
fn expect_data(t: &mut Test<'_>, requirement: &Requirement, read: Operated, whole: &[u8]) -> Outcome {
    let ended = t.ends_with(requirement, read, (Status::Ok, whole.len() as u64))?;
    let held = ended.and_then(|ended| ended.data).map(|data| data.0).unwrap_or_default();
    t.same_bytes(requirement, "the data of the read", whole, &held);
    Ok(())
}
