//! IP headers: ECN marks, and addresses that differ in few bits, over IPv4 and IPv6 (section 3.5).

use crate::prelude::*;
use crate::rules::steps::expect_ack_ignored;
use uet_control::AddPeer;

const MARKS: &[Need] = &[RUD, WRITE, ECN, SET_ECN, SET_ENTROPY];

const PEERS: &[Need] = &[RUD, WRITE, TWO_ADDRESSES];

/// Begins a rule with the usual needs of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(PEERS)
}

pub(super) const RULES: &[Rule] = &[
    rule("ip/ecn-mark", "An ACK reports in m whether its request was ECN marked, on every path")
        .checks(&[PDS_ACK_002])
        .needs(MARKS)
        .run(|t| {
            let (mut pdc, region) = t.open()?;
            for n in 1..=32 {
                // Over IPv6, the flow label may differ between paths.
                pdc.entropy = 0xc000 | (n * 0x1d3) as u16 & 0x3fff;
                let marked = n % 3 == 0;
                let packet = pdc.request(n).write(&region, 0, &[1; 16])?.build()?;
                t.send_marked(&pdc, &packet, marked)?;
                let (_, ack) = t.expect_answer(PDS_ACK_002, &pdc, pdc.psn(n))?;
                t.check(PDS_ACK_002, "flag m (marked)", marked, ack.m());
            }
            Ok(())
        }),
    rule("ip/ack-addresses", "An ACK swaps the source and destination addresses of its request")
        .checks(&[PDS_ACK_001, PDS_PDC_003])
        .run(|t| {
            let region = t.region(4096)?;
            for pdc in contexts_to_open(t)? {
                t.request(&pdc, pdc.request(0).write(&region, 0, &[1; 16])?)?;
                let (seen, _) = t.expect_ack(PDS_ACK_001, &pdc, pdc.psn(0))?;
                t.check(PDS_PDC_003, "source address", pdc.to, seen.wire.src);
            }
            Ok(())
        }),
    rule("ip/same-pdcid", "Equal PDCIDs from similar addresses belong to different contexts")
        .checks(&[PDS_SYN_005, PDS_PDC_003])
        .run(|t| {
            let region = t.region(4096)?;
            let mut open: Vec<Pdc> = Vec::new();
            for mut pdc in contexts_to_open(t)? {
                pdc.local = open.first().map_or(pdc.local, |first| first.local);
                t.request(&pdc, pdc.request(0).write(&region, region.length - 1, &[0])?)?;
                let (_, ack) = t.expect_ack(PDS_SYN_005, &pdc, pdc.psn(0))?;
                pdc.remote = Some(ack.spdcid());
                let used = open.iter().any(|other| other.remote == pdc.remote);
                t.holds(PDS_SYN_005, "no other context has this PDCID of the device", !used, ack.spdcid());
                open.push(pdc);
            }
            let mut expected = Vec::new();
            for (pdc, n) in open.iter().zip(1u8..) {
                let offset = expected.len() as u64;
                t.request(pdc, pdc.request(1).write(&region, offset, &[n; 16])?)?;
                t.expect_cack(PDS_PDC_003, pdc, pdc.psn(1))?;
                expected.extend([n; 16]);
            }
            t.expect_memory(PDS_PDC_003, &region, 0, &expected)
        }),
    rule("ip/spoofed-request", "A request from an address similar to the peer's does not change the context")
        .checks(&[PDS_OPEN_003])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let spoofers = contexts_to_open(t)?;
            for (spoofer, n) in spoofers.iter().skip(1).zip(1..) {
                expect_refused(t, &pdc, spoofer, n, &region)?;
            }
            t.pause(t.soon())?;
            t.check_memory(PDS_OPEN_003, &region, 0, &[0; 16])?;
            // The PSNs are still free for the peer.
            for n in 1..spoofers.len() as u32 {
                t.request(&pdc, pdc.request(n).write(&region, 16, &[2; 16])?)?;
                t.expect_cack(PDS_OPEN_003, &pdc, pdc.psn(n))?;
            }
            t.expect_memory(PDS_OPEN_003, &region, 0, &[[0; 16], [2; 16]].concat())
        }),
    rule("ip/spoofed-ack", "The device ignores an ACK from an address similar to the peer's")
        .checks(&[PDS_PDC_003])
        .run(|t| {
            let spoofers = contexts_to_open(t)?;
            expect_ack_ignored(t, PDS_PDC_003, |target, t| {
                for Pdc { from, to, .. } in spoofers.iter().skip(1).cloned() {
                    t.send(&Pdc { from, to, ..target.pdc.clone() }, &target.acking(1).build()?)?;
                }
                Ok(())
            })
        }),
    rule("ip/request-addresses", "The device sends to each peer from its own address of the same IP version")
        .checks(&[PDS_PDC_002])
        .run(|t| {
            for Pdc { from, to, .. } in contexts_to_open(t)? {
                let peer =
                    t.call(AddPeer { address: from, port: None, job: 101, process: 1, initiator: 0 })?.peer;
                let written = t.post(post(PostKind::Write, peer, 64))?;
                let within = t.later();
                let (first, _) = t.expect(PDS_PDC_002, &format!("a request to {from}"), within, |seen| {
                    seen.request().filter(|request| request.syn() && seen.wire.dst == from)
                })?;
                t.check(PDS_PDC_002, "source address", to, first.wire.src);
                let target = Target::opened_by(t, first)?;
                target.ack(t, 0)?;
                t.ends(PDS_PDC_002, written, Status::Ok)?;
            }
            Ok(())
        }),
];

/// Returns a context to open from each address of the suite. Those of the other IP version come last.
fn contexts_to_open(t: &mut Test<'_>) -> Result<Vec<Pdc>, Stop> {
    let own: Result<Vec<Pdc>, Stop> = (0..t.addresses()).map(|address| t.initiate_from(address)).collect();
    let others: Vec<Pdc> = (0..).map_while(|address| t.initiate_over_other_ip(address)).collect();
    Ok(own?.into_iter().chain(others).collect())
}

/// Sends request `n` of a context from the address of `spoofer`, and expects a NACK.
fn expect_refused(t: &mut Test<'_>, pdc: &Pdc, spoofer: &Pdc, n: u32, region: &Region) -> Outcome {
    let spoofer = Pdc { from: spoofer.from, to: spoofer.to, ..pdc.clone() };
    t.request(&spoofer, spoofer.request(n).write(region, 0, &[1; 16])?)?;
    t.expect_nack(PDS_OPEN_003, &spoofer, pdc.psn(n), &[NackCode::PDC_HDR_MISMATCH])?;
    Ok(())
}
