//! Packets that a switch has trimmed (section 3.5.15).

use super::steps::{clear_command, open_with_error};
use crate::prelude::*;
use crate::{Trimmed, Wire, rudi, uud};
use uet_wire::pds::Rudi;

/// True if the request is a RUDI request.
const KIND: Axis<bool> = axis("kind").needing(&[("context", false, &[]), ("rudi", true, &[RUDI])]);

/// True if the switch leaves the IP length and the IPv4 checksum as they were.
const IP_LENGTH: Axis<bool> = axis("ip-length").values(&[("fixed", false), ("stale", true)]);

/// The number of bytes that the switch keeps behind the IP header.
const KEPT: Axis<usize> = axis("kept").values(&[("24", 24), ("64", 64), ("128", 128), ("256", 256)]);

/// The number of bytes left behind the UDP header. The traffic class alone says that a packet is trimmed.
const LEFT: Axis<usize> = axis("left").values(&[("header", SHORT), ("all", usize::MAX)]);

/// The length of the UDP header.
const UDP: usize = 8;

/// The length of a trimmed packet: a PDS header and a few bytes.
const SHORT: usize = 16;

/// The key of a region for RUDI requests.
const SAFE: Hex64 = Hex64(1 << 63 | 0xacce5);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[TRIM]).over(&[&MODE, &CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("trim/request", "A trimmed request gets TRIMMED, or TRIMMED_LASTHOP if cut at the last hop")
        .checks(&[PDS_TRIM_001, PDS_TRIM_002])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let places =
                [(Trimmed::Fabric, NackCode::TRIMMED), (Trimmed::LastHop, NackCode::TRIMMED_LASTHOP)];
            for (n, (place, code)) in (1..).zip(places) {
                let request = pdc.request(n).write(&region, 0, &[1; 200])?;
                send(t, &pdc, &request, place, SHORT)?;
                let (_, nack) = t.expect_nack(PDS_TRIM_001, &pdc, pdc.psn(n), &[code])?;
                t.check(PDS_TRIM_001, "spdcid", pdc.remote, Some(nack.spdcid()));
            }
            t.pause(t.soon())?;
            t.check_memory(PDS_TRIM_002, &region, 0, &[0; 200])
        }),
    rule("trim/any-length", "A request trimmed to any length gets NACK TRIMMED")
        .checks(&[PDS_TRIM_001, PDS_TRIM_002])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let whole = pdc.request(1).write(&region, 0, &[1; 200])?;
            let length = whole.build()?.to_bytes().len();
            // Cut in the headers, at their end, in the payload, before the last byte, and not at all.
            for keep in [16, 17, 30, 55, 56, 57, 100, length - 1, length] {
                send(t, &pdc, &whole, Trimmed::Fabric, keep)?;
                t.expect_nack(PDS_TRIM_001, &pdc, pdc.psn(1), &[NackCode::TRIMMED])?;
            }
            t.pause(t.soon())?;
            t.check_memory(PDS_TRIM_002, &region, 0, &[0; 200])
        }),
    rule(
        "trim/switch",
        "A request gets NACK TRIMMED at the sizes of real switches, with a right or a stale IP length",
    )
    .checks(&[PDS_TRIM_001, PDS_TRIM_002])
    .over(&[&IP_LENGTH, &KEPT, &CARRIER])
    .run(|t| {
        let (stale_length, keep) = (t.value(&IP_LENGTH), t.value(&KEPT) - UDP);
        let (pdc, region) = t.open()?;
        let packet = pdc.request(1).write(&region, 0, &[1; 400])?.build()?;
        let places = [(Trimmed::Fabric, NackCode::TRIMMED), (Trimmed::LastHop, NackCode::TRIMMED_LASTHOP)];
        for (place, code) in places {
            t.forget();
            t.send_wire(&Wire { stale_length, ..pdc.trimmed(&packet, place, keep) })?;
            t.expect_nack(PDS_TRIM_001, &pdc, pdc.psn(1), &[code])?;
        }
        t.pause(t.soon())?;
        t.check_memory(PDS_TRIM_002, &region, 0, &[0; 400])
    }),
    rule("trim/retransmission", "A trimmed packet is delivered when it is retransmitted whole")
        .checks(&[PDS_TRIM_002])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let request = pdc.request(1).write(&region, 0, &[1; 200])?;
            send(t, &pdc, &request, Trimmed::Fabric, SHORT)?;
            t.need("a NACK", t.soon(), |seen| seen.refuses(&pdc, pdc.psn(1)))?;
            t.request(&pdc, request.retx())?;
            t.expect_cack(PDS_TRIM_002, &pdc, pdc.psn(1))?;
            t.expect_memory(PDS_TRIM_002, &region, 0, &[1; 200])
        }),
    rule("trim/no-state", "A trimmed packet moves no cumulative PSN, sets no bit and clears nothing")
        .checks(&[PDS_TRIM_002])
        .needs(&[RUD, TRIM])
        .over(&[&HEADER, &CARRIER, &START])
        .run(|t| {
            let fields = t.value(&HEADER);
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(1).write_nowhere(&region, &[1])?)?;
            t.need_ack(&pdc, pdc.psn(1))?;
            let request = pdc.request(3).write(&region, 0, &[1; 200])?;
            let request = match fields {
                Fields::Plain => request,
                Fields::Clear => request.clear(pdc.psn(1)),
                Fields::Retx => request.retx(),
                Fields::WithoutAr => request.quiet(),
            };
            send(t, &pdc, &request, Trimmed::Fabric, SHORT)?;
            t.pause(t.soon())?;
            t.forget();
            t.request(&pdc, pdc.request(4).write(&region, 0, &[1])?)?;
            let (seen, ack) = t.need_ack(&pdc, pdc.psn(4))?;
            t.check(PDS_TRIM_002, "cack_psn", pdc.psn(0), ack.cack_psn());
            let bit = seen.ack_cc().is_some_and(|ack| ack.sacked().any(|psn| psn == pdc.psn(3)));
            t.holds(PDS_TRIM_002, "the bitmap has no bit for the trimmed packet", !bit, seen.uet());
            Ok(())
        }),
    rule("trim/retx", "The NACK of a trimmed packet repeats its retx flag").checks(&[PDS_NACK_001]).run(
        |t| {
            let (pdc, region) = t.open()?;
            for retx in [true, false] {
                let request = Request { retx, ..pdc.request(1).write(&region, 0, &[1; 200])? };
                send(t, &pdc, &request, Trimmed::Fabric, SHORT)?;
                let (_, nack) = t.expect_nack(PDS_NACK_001, &pdc, pdc.psn(1), &[NackCode::TRIMMED])?;
                t.check(PDS_NACK_001, "flag retx", retx, nack.retx());
            }
            Ok(())
        },
    ),
    rule("trim/nack-flags", "The NACK of a trimmed packet repeats m and retx, with and without a context")
        .checks(&[PDS_NACK_001])
        .needs(&[TRIM, ECN, SET_ECN])
        .over(&[&KIND, &MODE, &CARRIER])
        .run(|t| {
            let rudi_request = t.value(&KIND);
            let (pdc, region) = if rudi_request {
                (t.initiate(), t.exposed(4096, |it| ExposeRegion { key: SAFE, ..it })?.0)
            } else {
                t.open()?
            };
            for (n, length) in (1..).zip([1, 200, t.mtu()]) {
                for place in [Trimmed::Fabric, Trimmed::LastHop] {
                    for (marked, retx) in [(false, false), (true, false), (false, true), (true, true)] {
                        let request = Request { retx, ..pdc.request(n).write(&region, 0, &vec![1; length])? };
                        let packet = if rudi_request { rudi(n, &request)? } else { request.build()? };
                        t.forget();
                        t.send_wire(&Wire { marked, ..pdc.trimmed(&packet, place, SHORT) })?;
                        let (_, nack) =
                            t.expect(PDS_NACK_001, "a NACK of the trimmed request", t.soon(), |seen| {
                                let nack = seen.nack().filter(|_| seen.wire.dst == pdc.from)?;
                                let named = if rudi_request {
                                    nack.nack_pkt_id() == Some(n)
                                } else {
                                    nack.nack_psn() == Some(request.psn)
                                };
                                named.then_some(nack)
                            })?;
                        t.check(PDS_NACK_001, "flag m (marked)", marked, nack.m());
                        t.check(PDS_NACK_001, "flag retx", retx, nack.retx());
                    }
                }
            }
            Ok(())
        }),
    rule("trim/syn", "A trimmed first packet opens no context")
        .checks(&[PDS_TRIM_004])
        .over(&[&LEFT, &MODE, &CARRIER, &START])
        .run(|t| {
            let region = t.region(4096)?;
            let pdc = t.initiate();
            let first = pdc.request(0).write(&region, 0, &[1; 200])?;
            send(t, &pdc, &first, Trimmed::Fabric, t.value(&LEFT))?;
            // Open: whether the device replies. A reply names no context.
            if let Some((_, nack)) = t.wait(t.soon(), |seen| seen.refuses(&pdc, pdc.psn(0)))? {
                t.check(PDS_TRIM_004, "spdcid", PdcId::NONE, nack.spdcid());
            }
            // A context opened by the trimmed packet would refuse this Start_PSN.
            let pdc = Pdc { start: pdc.start + (1 << 20), ..pdc };
            t.request(&pdc, pdc.request(0).write(&region, 0, &[2; 16])?)?;
            t.expect_cack(PDS_TRIM_004, &pdc, pdc.psn(0))?;
            t.expect_memory(PDS_TRIM_004, &region, 0, &[2; 16])
        }),
    rule("trim/duplicate", "A trimmed duplicate of a delivered packet changes nothing")
        .checks(&[PDS_TRIM_002])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let first = pdc.request(1).write(&region, 0, &[1; 200])?;
            t.request(&pdc, first.clone())?;
            t.need_ack(&pdc, pdc.psn(1))?;
            t.request(&pdc, pdc.request(2).write(&region, 0, &[2; 200])?)?;
            t.need_ack(&pdc, pdc.psn(2))?;
            send(t, &pdc, &first.retx(), Trimmed::Fabric, SHORT)?;
            t.pause(t.soon())?;
            t.forget();
            t.request(&pdc, pdc.request(3).write(&region, 300, &[3])?)?;
            let (_, ack) = t.expect_ack(PDS_TRIM_002, &pdc, pdc.psn(3))?;
            t.check(PDS_TRIM_002, "cack_psn", pdc.psn(3), ack.cack_psn());
            t.check_memory(PDS_TRIM_002, &region, 0, &[2; 200])
        }),
    rule("trim/ordered", "On an ordered context, a trimmed packet leaves a gap")
        .checks(&[PDS_TRIM_001, PDS_TRIM_002, PDS_ROD_001])
        .needs(&[ROD, WRITE, TRIM])
        .over(&[&START])
        .run(|t| {
            let region = t.region(4096)?;
            let mut pdc = Pdc { rod: true, ..t.initiate() };
            t.establish(&mut pdc, &region)?;
            let cut = pdc.request(1).write(&region, 0, &[1; 200])?;
            send(t, &pdc, &cut, Trimmed::LastHop, SHORT)?;
            t.expect_nack(PDS_TRIM_001, &pdc, pdc.psn(1), &[NackCode::TRIMMED_LASTHOP])?;
            t.request(&pdc, pdc.request(2).write(&region, 0, &[2; 100])?)?;
            t.pause(t.soon())?;
            t.check_memory(PDS_ROD_001, &region, 0, &[0; 200])?;
            t.request(&pdc, cut.retx())?;
            t.request(&pdc, pdc.request(2).retx().write(&region, 0, &[2; 100])?)?;
            t.expect_cack(PDS_TRIM_002, &pdc, pdc.psn(2))?;
            t.expect_memory(PDS_ROD_001, &region, 0, &[[2; 100], [1; 100]].concat())
        }),
    rule("trim/above-gap", "On an ordered context, a trimmed packet above a gap does not report the gap")
        .checks(&[PDS_TRIM_002, PDS_ROD_002])
        .needs(&[ROD, WRITE, TRIM])
        .over(&[&CARRIER, &START])
        .run(|t| {
            let region = t.region(4096)?;
            let mut pdc = Pdc { rod: true, ..t.initiate() };
            t.establish(&mut pdc, &region)?;
            let above = pdc.request(2).write(&region, 0, &[2; 100])?;
            send(t, &pdc, &above, Trimmed::Fabric, SHORT)?;
            let (_, nack) = t.need("a NACK", t.soon(), |seen| seen.refuses(&pdc, pdc.psn(2)))?;
            require(nack.nack_code() != NackCode::ROD_OOO, "the NACK of the trimmed packet reports the gap")?;
            t.forget();
            t.request(&pdc, above)?;
            t.expect_nack(PDS_ROD_002, &pdc, pdc.psn(2), &[NackCode::ROD_OOO])?;
            t.pause(t.soon())?;
            t.check_memory(PDS_TRIM_002, &region, 0, &[0; 100])
        }),
    rule("trim/stored-response", "A trimmed copy of a refused request does not release its stored response")
        .checks(&[PDS_TRIM_002])
        .run(|t| {
            let (pdc, region, first, _) = open_with_error(t)?;
            let again = pdc.request(1).retx().write_nowhere(&region, &[1])?;
            for place in [Trimmed::Fabric, Trimmed::LastHop] {
                send(t, &pdc, &again, place, SHORT)?;
            }
            t.pause(t.soon())?;
            t.forget();
            t.request(&pdc, again)?;
            let (repeated, ack) = t.expect_answer(PDS_TRIM_002, &pdc, pdc.psn(1))?;
            t.check(PDS_TRIM_002, "the response", first.response(), repeated.response());
            t.check(PDS_TRIM_002, "cack_psn", pdc.psn(0), ack.cack_psn());
            Ok(())
        }),
    rule("trim/control", "Trimmed control packets, ACKs and NACKs are dropped").checks(&[PDS_TRIM_005]).run(
        |t| {
            let (pdc, region) = t.open()?;
            t.request(&pdc, pdc.request(1).write_nowhere(&region, &[1])?)?;
            t.need_ack(&pdc, pdc.psn(1))?;
            t.pause(t.soon())?;
            t.forget();
            let mut packets = vec![
                pdc.control(CtlType::NOOP, pdc.psn(2), 0)?,
                pdc.control(CtlType::NEGOTIATION, pdc.psn(2), 0)?,
                pdc.control(CtlType::ACK_REQUEST, pdc.psn(1), 0)?,
                clear_command(&pdc, pdc.psn(1))?,
                pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(2), 0)?,
                pdc.probe(1, pdc.psn(1))?,
                pdc.ack(pdc.start).build()?,
                pdc.nack(NackCode::NO_RESOURCE, pdc.start)?,
            ];
            for kind in CtlType::unassigned(t.spec()) {
                packets.push(pdc.control(kind, pdc.psn(2), 0)?);
            }
            for packet in &packets {
                t.send_wire(&pdc.trimmed(packet, Trimmed::Fabric, SHORT))?;
            }
            t.expect_silence(PDS_TRIM_005, "no answer", |seen| {
                (seen.is_for(&pdc) && (seen.ack().is_some() || seen.nack().is_some())).then_some(())
            })?;
            // Nothing was cleared, closed or received.
            t.request(&pdc, pdc.request(2).write(&region, 0, &[1])?)?;
            let (_, ack) = t.expect_ack(PDS_TRIM_005, &pdc, pdc.psn(2))?;
            t.check(PDS_TRIM_005, "cack_psn", pdc.psn(0), ack.cack_psn());
            Ok(())
        },
    ),
    rule("trim/rudi", "A trimmed RUDI request gets a NACK with nt = 1 and its pkt_id")
        .checks(&[PDS_TRIM_003, PDS_NACK_008, WIRE_NACK_002, PDS_TRIM_005, PDS_TRIM_002])
        .needs(&[RUDI, TRIM])
        .over(&[&LEFT, &CARRIER])
        .run(|t| {
            let (region, held) = t.exposed(4096, |region| ExposeRegion { key: SAFE, ..region })?;
            let initiator = t.initiate();
            // The PDCIDs of this packet must not appear in the NACKs of RUDI requests.
            let foreign = t.initiate().of_nobody(Some(PdcId(0x77)));
            t.send(&foreign, &foreign.request(0).write(&region, 0, &[1])?.build()?)?;
            t.wait(t.soon(), |seen| seen.refuses(&foreign, foreign.psn(0)))?;
            t.forget();
            let packet = rudi(0x1234_5678, &initiator.request(0).write(&region, 0, &[1; 200])?)?;
            for (place, code) in
                [(Trimmed::Fabric, NackCode::TRIMMED), (Trimmed::LastHop, NackCode::TRIMMED_LASTHOP)]
            {
                t.send_wire(&initiator.trimmed(&packet, place, t.value(&LEFT)))?;
                let (_, nack) = t.expect(PDS_TRIM_003, "a NACK", t.soon(), |seen| {
                    seen.nack().filter(|_| seen.wire.dst == initiator.from)
                })?;
                t.check(PDS_TRIM_003, "nack_code", code, nack.nack_code());
                t.check(PDS_NACK_008, "nt", true, nack.nt());
                t.check(PDS_NACK_008, "nack_pkt_id", Some(0x1234_5678), nack.nack_pkt_id());
                let ids = (nack.spdcid(), nack.dpdcid());
                t.check(WIRE_NACK_002, "spdcid and dpdcid", (PdcId::NONE, PdcId::NONE), ids);
            }
            // A trimmed response is dropped.
            let response = Rudi::response(1).done()?;
            t.send_wire(&initiator.trimmed(&UetBuf::new(response), Trimmed::Fabric, 8))?;
            t.expect_none(PDS_TRIM_005, "no answer to a trimmed response", t.soon(), |seen| seen.nack())?;
            t.still_holds(PDS_TRIM_002, &region, &held)
        }),
    rule("trim/datagram", "A trimmed datagram is not answered")
        .checks(&[PDS_UUD_001])
        .needs(&[UUD, TRIM])
        .over(&[&LEFT])
        .run(|t| {
            let region = t.region(4096)?;
            let initiator = t.initiate();
            let packet = uud(&initiator.request(0).write(&region, 0, &[1; 200])?)?;
            t.send_wire(&initiator.trimmed(&packet, Trimmed::Fabric, t.value(&LEFT)))?;
            let ours = initiator.from;
            t.expect_silence(PDS_UUD_001, "no answer", |seen| (seen.wire.dst == ours).then_some(()))
        }),
    rule("trim/unknown-context", "A trimmed packet for an unknown context is refused or dropped")
        .checks(&[PDS_TRIM_002])
        .run(|t| {
            let (open, region) = t.open()?;
            let pdc = t.initiate().of_nobody(open.remote);
            let request = pdc.request(0).write(&region, 0, &[1; 200])?;
            send(t, &pdc, &request, Trimmed::Fabric, SHORT)?;
            let codes = [NackCode::INV_DPDCID, NackCode::TRIMMED];
            t.expect_silence(PDS_TRIM_002, "nothing but NACK INV_DPDCID or TRIMMED", |seen| {
                let allowed =
                    seen.refuses(&pdc, pdc.psn(0)).is_some_and(|nack| codes.contains(&nack.nack_code()));
                (seen.is_for(&pdc) && !allowed).then_some(())
            })?;
            t.check_memory(PDS_TRIM_002, &region, 0, &[0; 200])
        }),
];

/// Sends a request as a switch at `place` trims it to `keep` bytes.
fn send(t: &mut Test<'_>, pdc: &Pdc, request: &Request, place: Trimmed, keep: usize) -> Outcome {
    t.send_wire(&pdc.trimmed(&request.build()?, place, keep))
}

/// The fields of the trimmed packet that could change the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fields {
    Plain,
    Clear,
    Retx,
    WithoutAr,
}

const HEADER: Axis<Fields> = axis("header").values(&[
    ("plain", Fields::Plain),
    ("clears", Fields::Clear),
    ("retx", Fields::Retx),
    ("no-ar", Fields::WithoutAr),
]);
