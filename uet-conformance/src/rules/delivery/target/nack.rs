//! NACKs of a target: their fields, their causes, and packets that never cause one (section 3.5.12).
//! [`establish_refused`](super::establish_refused) has the refusals of openings, [`rod`](super::rod) those of
//! ordered contexts.

use crate::prelude::*;
use crate::rules::delivery::rule;
use uet_wire::pds::{Nack, Rudi};

pub(super) const RULES: &[Rule] = &[
    rule("nack/retx", "A NACK repeats the retx flag of the packet that it refuses")
        .checks(&[PDS_NACK_001])
        .run(|t| {
            let (pdc, region) = t.open()?;
            for (pdc, request, code) in refusable(t, &pdc, &region)? {
                for retx in [false, true] {
                    t.request(&pdc, Request { retx, ..request.clone() })?;
                    if let Some((_, nack)) =
                        t.expect_nack_of(PDS_NACK_001, (&pdc, request.psn, retx), &[code])?
                    {
                        t.check(PDS_NACK_001, "flag retx", retx, nack.retx());
                    }
                }
            }
            Ok(())
        }),
    rule("nack/mark", "A NACK reports whether the refused packet carried a congestion mark")
        .checks(&[PDS_NACK_001])
        .needs(&[ECN, SET_ECN])
        .run(|t| {
            let (pdc, region) = t.open()?;
            for (pdc, request, code) in refusable(t, &pdc, &region)? {
                for marked in [true, false] {
                    let packet = request.build()?;
                    t.send_marked(&pdc, &packet, marked)?;
                    let (_, nack) = t.expect_nack(PDS_NACK_001, &pdc, request.psn, &[code])?;
                    t.check(PDS_NACK_001, "flag m (marked)", marked, nack.m());
                }
            }
            Ok(())
        }),
    rule("nack/nt", "The NACK of a packet with a PSN has nt = 0 and no payload")
        .checks(&[WIRE_NEXT_002, WIRE_NACK_001])
        .run(|t| {
            let (pdc, region) = t.open()?;
            for (pdc, request, code) in refusable(t, &pdc, &region)? {
                t.request(&pdc, request.clone())?;
                let (seen, nack) = t.expect_nack(WIRE_NACK_001, &pdc, request.psn, &[code])?;
                t.check(WIRE_NACK_001, "nt", false, nack.nt());
                t.check(WIRE_NEXT_002, "bytes after the header", 0, seen.payload().len());
                t.check_packet(&seen, &[WIRE_NACK_001, WIRE_NEXT_002]);
            }
            Ok(())
        }),
    rule("nack/retransmission", "A retransmission with the PSN of a refused packet is delivered")
        .checks(&[PDS_NACK_011])
        .run(|t| {
            let (pdc, region) = t.open()?;
            // Another Start_PSN, but the next PSN.
            let moved = Request { syn: true, offset: 5, ..pdc.request(1).write(&region, 0, &[1; 16])? };
            t.request(&pdc, moved)?;
            t.need("a refusal", t.soon(), |seen| seen.refuses(&pdc, pdc.psn(1)))?;
            t.request(&pdc, pdc.request(1).retx().write(&region, 16, &[2; 16])?)?;
            t.expect_cack(PDS_NACK_011, &pdc, pdc.psn(1))?;
            t.expect_memory(PDS_NACK_011, &region, 0, &[[0; 16], [2; 16]].concat())
        }),
    rule("nack/never-for-nack", "A NACK is never answered, whatever its code and PDCIDs")
        .checks(&[PDS_NACK_010])
        .run(|t| {
            let unknown = Pdc { remote: Some(PdcId(0x7777)), ..t.initiate() };
            let mut packets = nacks(&unknown, unknown.local, unknown.psn(0))?;
            packets.extend(nacks(&unknown, PdcId::NONE, unknown.psn(0))?);
            for code in [NackCode::TRIMMED, NackCode::NO_RESOURCE, NackCode::CLOSING] {
                packets.push(UetBuf::new(Nack::rudi(code).nack_pkt_id(7).done()?));
            }
            expect_no_answer(t, &unknown, &packets, "no answer to a NACK")
        }),
    rule("nack/never-for-ack", "An ACK is never answered, whatever PSN and PDCIDs it names")
        .checks(&[PDS_NACK_010, PDS_PSN_004])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let unknown = t.initiate().of_nobody(pdc.remote);
            let foreign = Pdc { local: t.initiate().local, ..pdc.clone() };
            let mut packets = Vec::new();
            for pdc in [&pdc, &unknown, &foreign] {
                for psn in [pdc.start - 1, pdc.start, pdc.psn(5), pdc.psn(1 << 31)] {
                    packets.push(pdc.ack(psn).build()?);
                    packets.push(pdc.ack(psn).sack(psn, u64::MAX).build()?);
                }
            }
            expect_no_answer(t, &pdc, &packets, "no answer to an ACK")?;
            t.request(&pdc, pdc.request(1).write(&region, 0, &[1])?)?;
            t.expect_cack(PDS_PSN_004, &pdc, pdc.psn(1))?;
            Ok(())
        }),
    rule("nack/never-for-rudi-response", "An unexpected RUDI response is not answered")
        .checks(&[PDS_NACK_010])
        .needs(&[RUDI])
        .run(|t| {
            let pdc = t.initiate();
            let response = pdc.ack(pdc.start).build()?.ses;
            let mut packets = Vec::new();
            for id in [0, 1, u32::MAX] {
                let next = NextHdr::UET_HDR_RESPONSE;
                let header = Rudi::response(id).prologue(|prologue| prologue.next_hdr(next)).done()?;
                packets.push(UetBuf { ses: response, ..UetBuf::new(header) });
            }
            expect_no_answer(t, &pdc, &packets, "no answer to a RUDI response")
        }),
    rule("nack/nothing-outstanding", "NACKs do not affect a context without outstanding packets")
        .checks(&[PDS_NACK_002])
        .run(|t| {
            let (pdc, region) = t.open()?;
            // The device has sent no request that a NACK could refuse.
            for psn in [pdc.start - 1, pdc.start, pdc.psn(1)] {
                for packet in nacks(&pdc, pdc.local, psn)? {
                    t.send(&pdc, &packet)?;
                }
            }
            t.pause(t.soon())?;
            t.forget();
            t.is_kept(&pdc)?;
            t.request(&pdc, pdc.request(1).write(&region, 0, &[1; 16])?)?;
            t.expect_cack(PDS_NACK_002, &pdc, pdc.psn(1))?;
            t.expect_memory(PDS_NACK_002, &region, 0, &[1; 16])
        }),
    rule("nack/no-buffer", "A packet without a free buffer is refused and not delivered")
        .checks(&[PDS_NACK_011])
        .run(|t| {
            t.configure("rx_packets", 1)?;
            let (pdc, region) = t.open()?;
            // The last packet of a message waits for the first, and takes the only buffer.
            t.request(&pdc, pdc.request(2).half(&region, t.mtu(), 1)?)?;
            let extra = pdc.request(3).write(&region, 0, &[1])?;
            t.request(&pdc, extra)?;
            let codes = [NackCode::NO_PKT_BUFFER, NackCode::NO_RESOURCE];
            let Some((_, nack)) = t.wait(t.soon(), |seen| seen.refuses(&pdc, pdc.psn(3)))? else {
                return skip("the device has room for more");
            };
            t.one_of(PDS_NACK_011, "nack_code", &codes, nack.nack_code());
            t.check(PDS_NACK_011, "spdcid", pdc.remote, Some(nack.spdcid()));
            t.pause(t.soon())?;
            t.check_memory(PDS_NACK_011, &region, 0, &[0])
        }),
    rule("nack/no-message", "A message beyond the limit is refused, and accepted after another has ended")
        .checks(&[PDS_NACK_011, PDS_NACK_001])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            t.configure("max_messages", 1)?;
            let (pdc, region) = t.open()?;
            let other = Region { message_id: region.message_id ^ 1, ..region.clone() };
            t.request(&pdc, pdc.request(1).half(&region, t.mtu(), 0)?)?;
            let extra = pdc.request(3).half(&other, t.mtu(), 0)?.retx();
            t.request(&pdc, extra.clone())?;
            let codes = [NackCode::NO_SES_MSG_AVAIL, NackCode::NO_RESOURCE];
            let (_, nack) = t.expect_nack(PDS_NACK_011, &pdc, pdc.psn(3), &codes)?;
            t.check(PDS_NACK_001, "flag retx", true, nack.retx());
            t.request(&pdc, pdc.request(2).half(&region, t.mtu(), 1)?)?;
            t.need_ack(&pdc, pdc.psn(2))?;
            t.request(&pdc, extra)?;
            t.expect_cack(PDS_NACK_011, &pdc, pdc.psn(3))?;
            // A packet that the device acknowledged without accepting it would block the next.
            t.request(&pdc, pdc.request(4).write(&region, 0, &[1])?)?;
            t.expect_cack(PDS_NACK_011, &pdc, pdc.psn(4))?;
            Ok(())
        }),
    rule("nack/no-resource", "A packet that the device cannot track is refused and the context continues")
        .checks(&[PDS_NACK_011])
        .needs(&[RUD])
        .over(&[&CARRIER, &START])
        .run(|t| {
            t.configure("receive_slots", 8)?;
            let (pdc, region) = t.open()?;
            let codes = [NackCode::NO_RESOURCE, NackCode::NO_PKT_BUFFER, NackCode::NO_BITMAP];
            t.request(&pdc, pdc.request(100).write(&region, 0, &[1])?)?;
            t.expect_nack(PDS_NACK_011, &pdc, pdc.psn(100), &codes)?;
            t.request(&pdc, pdc.request(1).write(&region, 1, &[2])?)?;
            let (_, ack) = t.expect_ack(PDS_NACK_011, &pdc, pdc.psn(1))?;
            t.check(PDS_NACK_011, "cack_psn", pdc.psn(1), ack.cack_psn());
            t.check_memory(PDS_NACK_011, &region, 0, &[0])
        }),
];

/// Returns requests that an open context refuses for different reasons, each with its sender and code.
fn refusable(t: &mut Test<'_>, pdc: &Pdc, region: &Region) -> Result<Vec<(Pdc, Request, NackCode)>, Stop> {
    let unknown = t.initiate().of_nobody(pdc.remote);
    let foreign = Pdc { local: t.initiate().local, ..pdc.clone() };
    let moved = Request { syn: true, offset: 5, ..pdc.request(1) };
    let mut requests = vec![
        (unknown.clone(), unknown.request(0), NackCode::INV_DPDCID),
        (foreign.clone(), foreign.request(1), NackCode::PDC_HDR_MISMATCH),
        (pdc.clone(), moved, NackCode::INVALID_SYN),
    ];
    if let Ok(beyond) = t.beyond(pdc) {
        requests.push((pdc.clone(), pdc.request(beyond), NackCode::PSN_OOR_WINDOW));
    }
    requests
        .into_iter()
        .map(|(pdc, request, code)| Ok((pdc, request.write(region, 0, &[1])?, code)))
        .collect()
}

/// Builds a NACK of each code, including reserved ones.
fn nacks(pdc: &Pdc, spdcid: PdcId, psn: Psn) -> Result<Vec<UetBuf>, Stop> {
    let remote = pdc.remote.unwrap_or_default();
    let codes = (0..=u8::MAX).filter_map(NackCode::new);
    let nacks = codes.map(|code| Nack::build(code).nack_psn(psn).spdcid(spdcid).dpdcid(remote));
    nacks.map(|nack| Ok(UetBuf::new(nack.done()?))).collect()
}

/// Expects no reply to these packets.
fn expect_no_answer(t: &mut Test<'_>, pdc: &Pdc, packets: &[UetBuf], what: &str) -> Outcome {
    t.forget();
    for packet in packets {
        t.send(pdc, packet)?;
    }
    t.expect_silence(PDS_NACK_010, what, |seen| {
        (seen.wire.dst == pdc.from && (seen.nack().is_some() || seen.ack().is_some())).then_some(())
    })
}
