//! CRC trailers: the device drops damaged packets, and its own packets carry a correct CRC (section 3.5).

use crate::prelude::*;
use crate::rules::steps::expect_ack_ignored;

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[CRC]).over(&[&MODE, &CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("crc/damaged-payload", "A request with a damaged payload is neither delivered nor acknowledged")
        .checks(&[ROB_CRC_001])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let request = pdc.request(1).write(&region, 0, &[1; 208])?;
            let packet = request.build()?;
            let end = packet.to_bytes().len() * 8;
            for bit in [end - 208 * 8, end - 803, end - 1] {
                expect_dropped(t, &pdc, pdc.psn(1), &packet, bit)?;
            }
            t.check_memory(ROB_CRC_001, &region, 0, &[0; 208])?;
            t.request(&pdc, request.retx())?;
            t.expect_cack(ROB_CRC_001, &pdc, pdc.psn(1))?;
            t.expect_memory(ROB_CRC_001, &region, 0, &[1; 208])
        }),
    rule("crc/damaged-headers", "A request with a damaged header writes nothing, whichever byte is damaged")
        .checks(&[ROB_CRC_001])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let request = pdc.request(1).write(&region, 64, &[1; 16])?;
            let packet = request.build()?;
            let headers = packet.to_bytes().len() - 16;
            for byte in 0..headers {
                t.send_wire(&pdc.flipped(&packet, byte * 8 + byte % 8))?;
            }
            t.pause(t.soon())?;
            t.check_memory(ROB_CRC_001, &region, 0, &[0; 4096])?;
            t.forget();
            t.request(&pdc, request.retx())?;
            t.expect_cack(ROB_CRC_001, &pdc, pdc.psn(1))?;
            t.expect_memory(ROB_CRC_001, &region, 64, &[1; 16])
        }),
    rule("crc/damaged-trailer", "A request with a damaged CRC is dropped, whichever byte is damaged")
        .checks(&[ROB_CRC_001])
        .run(|t| {
            let (pdc, region) = t.open()?;
            let request = pdc.request(1).write(&region, 0, &[1; 33])?;
            let packet = request.build()?;
            let end = packet.to_bytes().len() * 8;
            for bit in [0, 15, 18, 29] {
                expect_dropped(t, &pdc, pdc.psn(1), &packet, end + bit)?;
            }
            t.check_memory(ROB_CRC_001, &region, 0, &[0; 33])?;
            t.request(&pdc, request.retx())?;
            t.expect_cack(ROB_CRC_001, &pdc, pdc.psn(1))?;
            t.expect_memory(ROB_CRC_001, &region, 0, &[1; 33])
        }),
    rule("crc/damaged-syn", "A damaged first packet opens no context").checks(&[ROB_CRC_001]).run(|t| {
        let region = t.region(4096)?;
        let pdc = t.initiate();
        let packet = pdc.request(0).write(&region, 0, &[1; 220])?.build()?;
        expect_dropped(t, &pdc, pdc.psn(0), &packet, packet.to_bytes().len() * 8 - 9)?;
        t.check_memory(ROB_CRC_001, &region, 0, &[0; 220])?;
        // A context opened by the damaged packet would refuse this start.
        let pdc = Pdc { start: pdc.start + (1 << 20), ..pdc };
        t.request(&pdc, pdc.request(0).write(&region, 0, &[2; 16])?)?;
        t.expect_cack(ROB_CRC_001, &pdc, pdc.psn(0))?;
        t.expect_memory(ROB_CRC_001, &region, 0, &[2; 16])
    }),
    rule("crc/damaged-control", "A damaged control packet is not acknowledged").checks(&[ROB_CRC_001]).run(
        |t| {
            t.need_noop()?;
            let (pdc, _) = t.open()?;
            let noop = pdc.control(CtlType::NOOP, pdc.psn(1), 0)?;
            let end = noop.to_bytes().len() * 8;
            expect_dropped(t, &pdc, pdc.psn(1), &noop, end + 7)?;
            t.send(&pdc, &noop)?;
            t.expect_cack(ROB_CRC_001, &pdc, pdc.psn(1)).map(drop)
        },
    ),
    rule("crc/damaged-ack", "The device ignores a damaged ACK and retransmits at its timeout")
        .checks(&[ROB_CRC_001])
        .run(|t| {
            expect_ack_ignored(t, ROB_CRC_001, |target, t| {
                let ack = target.acking(1).build()?;
                t.send_wire(&target.pdc.flipped(&ack, ack.to_bytes().len() * 8 + 7))
            })
        }),
    rule("crc/replies", "Every reply of the device ends with a correct CRC, whatever its length")
        .checks(&[WIRE_CRC_001])
        .needs(&[READ, CRC])
        .run(|t| {
            let (pdc, region) = t.open()?;
            for length in 1..=9 {
                t.request(&pdc, pdc.request(length).read(&region, 0, length)?)?;
            }
            t.request(&pdc, pdc.request(10).write_nowhere(&region, &[1])?)?;
            t.send(&pdc, &pdc.of_nobody(pdc.remote).request(11).write(&region, 0, &[1])?.build()?)?;
            let packets = t.gather(t.soon())?;
            check_crc(t, &packets)
        }),
    rule("crc/requests", "Every request of the device ends with a correct CRC, whatever its length")
        .checks(&[WIRE_CRC_001])
        .run(|t| {
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            let mtu = t.mtu();
            for (n, length) in (1..).zip((1..=5).chain([mtu - 1, mtu])) {
                t.post(post(PostKind::Write, peer, length))?;
                target.collect(t, n + 1)?;
                target.ack(t, n)?;
            }
            let packets: Vec<RxPacket> = target.got.iter().map(|request| request.seen.clone()).collect();
            check_crc(t, &packets)
        }),
];

/// Sends a packet that takes `psn` with this bit damaged, and expects no acknowledgment.
fn expect_dropped(t: &mut Test<'_>, pdc: &Pdc, psn: Psn, packet: &UetBuf, bit: usize) -> Outcome {
    t.send_wire(&pdc.flipped(packet, bit))?;
    t.expect_none(ROB_CRC_001, &format!("no ACK that covers {psn}"), t.soon(), |seen| {
        seen.acknowledges(pdc, psn)
    })
}

/// Checks the CRC of each packet of the device.
fn check_crc(t: &mut Test<'_>, packets: &[RxPacket]) -> Outcome {
    for seen in packets {
        let wrong = seen.wire.around.iter().any(|finding| finding.requirement == WIRE_CRC_001);
        let statement = format!("packet {} ends with a correct CRC", seen.number);
        t.holds(WIRE_CRC_001, &statement, !wrong, seen.uet());
    }
    Ok(())
}
