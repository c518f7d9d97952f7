//! CRC trailers: packets that were damaged on their way, and what the device sends itself (section 3.5).

use super::ack_taken::is_none;
use crate::axis::{CARRIER, MODE, START};
use crate::target::{Target, post};
use crate::{Need, Outcome, Pdc, Rule, RxPacket, Test};
use uet_control::{Mode, PostKind};
use uet_wire::catalogue::*;
use uet_wire::registry::CtlType;
use uet_wire::{Psn, UetBuf};

pub(super) const CASES: &[Rule] = &[
    Rule {
        id: "crc/damaged-data",
        title: "A request whose payload was damaged on its way is neither delivered nor acknowledged",
        requirements: &[ROB_CRC_001],
        needs: &[Need::Crc],
        axes: &[&MODE, &CARRIER, &START],
        run: damaged_data,
    },
    Rule {
        id: "crc/damaged-headers",
        title: "Wherever in its headers a request was damaged, it writes nothing",
        requirements: &[ROB_CRC_001],
        needs: &[Need::Crc],
        axes: &[&MODE, &CARRIER, &START],
        run: damaged_headers,
    },
    Rule {
        id: "crc/damaged-trailer",
        title: "A request of which only the CRC was damaged is dropped too, whichever byte it was",
        requirements: &[ROB_CRC_001],
        needs: &[Need::Crc],
        axes: &[&MODE, &CARRIER, &START],
        run: damaged_trailer,
    },
    Rule {
        id: "crc/damaged-first",
        title: "A damaged first packet opens no context",
        requirements: &[ROB_CRC_001],
        needs: &[Need::Crc],
        axes: &[&MODE, &CARRIER, &START],
        run: damaged_first,
    },
    Rule {
        id: "crc/damaged-control",
        title: "A damaged control packet is not acknowledged",
        requirements: &[ROB_CRC_001],
        needs: &[Need::Crc],
        axes: &[&MODE, &CARRIER, &START],
        run: damaged_control,
    },
    Rule {
        id: "crc/damaged-ack",
        title: "A damaged ACK acknowledges nothing",
        requirements: &[ROB_CRC_001],
        needs: &[Need::Crc],
        axes: &[&MODE, &CARRIER, &START],
        run: damaged_ack,
    },
    Rule {
        id: "crc/answers",
        title: "Each answer of the device ends with a right CRC, however long it is",
        requirements: &[WIRE_CRC_001],
        needs: &[Need::Capability("read"), Need::Crc],
        axes: &[&MODE, &CARRIER, &START],
        run: answers,
    },
    Rule {
        id: "crc/requests",
        title: "Each request of the device ends with a right CRC, however long it is",
        requirements: &[WIRE_CRC_001],
        needs: &[Need::Crc],
        axes: &[&MODE, &CARRIER, &START],
        run: requests,
    },
];

/// Sends a packet that takes `psn`, with this bit damaged: nobody may say that it has arrived.
fn drops(t: &mut Test<'_>, pdc: &Pdc, psn: Psn, packet: &UetBuf, bit: usize) -> Outcome {
    t.send_wire(&pdc.flipped(packet, bit))?;
    t.expect_none(ROB_CRC_001, &format!("no ACK that covers {psn}"), t.soon(), |seen| {
        seen.acknowledges(pdc, psn)
    })
}

fn damaged_data(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = t.open()?;
    let request = pdc.request(1).write(&region, 0, &[1; 200])?;
    let packet = request.build()?;
    let end = packet.to_bytes().len() * 8;
    for bit in [end - 200 * 8, end - 803, end - 1] {
        drops(t, &pdc, pdc.psn(1), &packet, bit)?;
    }
    t.check_memory(ROB_CRC_001, &region, 0, &[0; 200])?;
    t.request(&pdc, request.retx())?;
    t.expect_cack(ROB_CRC_001, &pdc, pdc.psn(1))?;
    t.expect_memory(ROB_CRC_001, &region, 0, &[1; 200])
}

fn damaged_headers(t: &mut Test<'_>) -> Outcome {
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
}

fn damaged_trailer(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = t.open()?;
    let request = pdc.request(1).write(&region, 0, &[1; 33])?;
    let packet = request.build()?;
    let end = packet.to_bytes().len() * 8;
    for bit in [0, 15, 18, 29] {
        drops(t, &pdc, pdc.psn(1), &packet, end + bit)?;
    }
    t.check_memory(ROB_CRC_001, &region, 0, &[0; 33])?;
    t.request(&pdc, request.retx())?;
    t.expect_cack(ROB_CRC_001, &pdc, pdc.psn(1))?;
    t.expect_memory(ROB_CRC_001, &region, 0, &[1; 33])
}

fn damaged_first(t: &mut Test<'_>) -> Outcome {
    let region = t.region(4096)?;
    let pdc = t.initiate();
    let packet = pdc.request(0).write(&region, 0, &[1; 200])?.build()?;
    drops(t, &pdc, pdc.psn(0), &packet, packet.to_bytes().len() * 8 - 9)?;
    t.check_memory(ROB_CRC_001, &region, 0, &[0; 200])?;
    // Had it opened one, this would come from a wrong start.
    let pdc = Pdc { start: pdc.start + (1 << 20), ..pdc };
    t.request(&pdc, pdc.request(0).write(&region, 0, &[2; 16])?)?;
    t.expect_cack(ROB_CRC_001, &pdc, pdc.psn(0))?;
    t.expect_memory(ROB_CRC_001, &region, 0, &[2; 16])
}

fn damaged_control(t: &mut Test<'_>) -> Outcome {
    t.need_noop()?;
    let (pdc, _) = t.open()?;
    let noop = pdc.control(CtlType::NOOP, pdc.psn(1), 0)?;
    let end = noop.to_bytes().len() * 8;
    drops(t, &pdc, pdc.psn(1), &noop, end + 7)?;
    t.send(&pdc, &noop)?;
    t.expect_cack(ROB_CRC_001, &pdc, pdc.psn(1)).map(drop)
}

fn damaged_ack(t: &mut Test<'_>) -> Outcome {
    is_none(t, ROB_CRC_001, |target, t| {
        let ack = target.acking(1).build()?;
        t.send_wire(&target.pdc.flipped(&ack, ack.to_bytes().len() * 8 + 7))
    })
}

/// Holds what came against the requirement.
fn sealed(t: &mut Test<'_>, came: &[RxPacket]) -> Outcome {
    for seen in came {
        let wrong = seen.wire.around.iter().any(|finding| finding.requirement == WIRE_CRC_001);
        let statement = format!("packet {} ends with a right CRC", seen.number);
        t.holds(WIRE_CRC_001, &statement, !wrong, seen.uet());
    }
    Ok(())
}

fn answers(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = t.open()?;
    for length in 1..=9 {
        t.request(&pdc, pdc.request(length).read(&region, 0, length)?)?;
    }
    t.request(&pdc, pdc.request(10).write_nowhere(&region, &[1])?)?;
    t.send(&pdc, &pdc.of_nobody(pdc.remote).request(11).write(&region, 0, &[1])?.build()?)?;
    let came = t.gather(t.soon())?;
    sealed(t, &came)
}

fn requests(t: &mut Test<'_>) -> Outcome {
    let peer = t.peer(0)?;
    let mut target = Target::established(t, peer, Mode::Rud)?;
    let mtu = t.mtu();
    for (n, length) in (1..).zip((1..=5).chain([mtu - 1, mtu])) {
        t.post(post(PostKind::Write, peer, length))?;
        target.collect(t, n + 1)?;
        target.ack(t, n)?;
    }
    let came: Vec<RxPacket> = target.got.iter().map(|got| got.seen.clone()).collect();
    sealed(t, &came)
}
