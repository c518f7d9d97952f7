//! Hostile captures do not make the dissector slow. Counted in Lua instructions, which no other program changes. These
//! tests need tshark; `wireshark/test` runs them.

use super::{Captured, SCRIPT, Scratch, tshark, write_capture};
use uet_wire::pds::{Ack, PdsBuf, Request};
use uet_wire::registry::Opcode;
use uet_wire::ses::{SesBuf, Std};
use uet_wire::{FrameBuilder, PdcId, Psn};

const COUNTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/tshark/steps.lua");

fn packet(pds: impl Into<PdsBuf>, ses: Option<SesBuf>, payload: &[u8], reply: bool) -> Captured {
    let (mut src, mut dst) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    if reply {
        core::mem::swap(&mut src, &mut dst);
    }
    let frame = FrameBuilder::new(pds);
    let frame = match ses {
        Some(ses) => frame.ses(ses).payload(payload),
        None => frame,
    };
    let frame = frame.udp(50_000).ipv4(src, dst).ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let mut bytes = vec![0; frame.len()];
    frame.emit(&mut bytes).unwrap();
    Captured::whole(bytes)
}

/// Builds a request with a part of a message of this length.
fn part(psn: u32, offset: u32, payload: &[u8], length: u32) -> Captured {
    let pds = Request::rud().clear_psn_offset(-1).psn(Psn(psn)).spdcid(PdcId(1)).dpdcid(PdcId(2));
    let ses = Std::build(Opcode::UET_WRITE).head(|head| head.rel(true)).message_id(1).request_length(length);
    let ses = ses.payload_length(payload.len() as u16).message_offset(offset);
    packet(pds.done().unwrap(), Some(ses.done().unwrap().into()), payload, false)
}

/// Returns how many Lua instructions tshark needs for each packet, on average.
fn instructions(packets: &[Captured]) -> usize {
    let file = Scratch::new("pcap");
    write_capture(&file.0, 1, packets);
    let fields = ["-T", "fields", "-e", "uet.message.data"];
    let told = tshark(&[SCRIPT, COUNTER], &[&["-r", file.0.to_str().unwrap()], &fields[..]].concat());
    let thousands = told.lines().find_map(|line| line.strip_prefix("thousands of instructions: "));
    thousands.unwrap().parse::<usize>().unwrap() * 1000 / packets.len()
}

/// Between two ACKs lie 65,536 PSNs. An outstanding packet far ahead changes nothing.
#[test]
#[ignore = "needs tshark: wireshark/test"]
fn ack_far_ahead_looks_up_few_psns() {
    let ack = |number: u32| {
        let cack = Psn(1000 + number * 65_536);
        let ack = Ack::build().cack_psn(cack).spdcid(PdcId(2)).dpdcid(PdcId(1)).done().unwrap();
        packet(ack, None, &[], true)
    };
    let first = [part(1000, 0, b"x", 1), part(1 << 30, 0, b"x", 1)];
    let packets: Vec<_> = first.into_iter().chain((1..=100).map(ack)).collect();
    let each = instructions(&packets);
    assert!(each < 50_000, "{each}");
}

/// Parts of one byte, a hole, and then parts that overlap.
#[test]
#[ignore = "needs tshark: wireshark/test"]
fn overlapping_parts_are_walked_once() {
    const PARTS: u32 = 1500;
    let single = (0..PARTS).map(|at| part(at, at, b"x", 2 * PARTS));
    let long = part(PARTS, PARTS + 1, &[0; PARTS as usize - 1], 2 * PARTS);
    let overlapping = (PARTS + 2..2 * PARTS).map(|at| part(at, at, b"x", 2 * PARTS));
    let packets: Vec<_> = single.chain([long]).chain(overlapping).collect();
    let each = instructions(&packets);
    assert!(each < 10_000, "{each}");
}
