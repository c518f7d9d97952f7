//! Recognition of trailers. These tests need tshark; `wireshark/test` runs them.

use super::codec::agree_as;
use super::random::{Random, Trailer};
use super::{Captured, SCRIPT, Scratch, tshark, write_capture};
use serde_json::Value;
use uet_packet_io::Decoder;
use uet_packet_io::json::Record;
use uet_wire::pds::Request;
use uet_wire::{FrameBuilder, Options, Start};

/// Returns the packets of a capture as the codec reads them one after the other.
fn decode(packets: &[Captured]) -> Vec<Value> {
    let mut decoder = Decoder::new(Options::default(), false).recognizing_trailers();
    let each = packets.iter().zip(1..).map(|(packet, number)| {
        let (bytes, wire) = (&packet.bytes[..], packet.wire);
        let record = Record { number, start: Start::Eth, bytes, wire, ..Record::default() };
        let mut json = Vec::new();
        decoder.decode(record).write(&mut json);
        serde_json::from_slice(&json).unwrap()
    });
    each.collect()
}

/// Each capture has few packets of each sender, because the dissector tries only the first 16.
#[test]
#[ignore = "needs tshark: wireshark/test"]
fn trailers_of_random_captures_are_the_codecs() {
    let (mut right, mut wrong, mut icv) = (0, 0, 0);
    for seed in 20..32 {
        let mut random = Random::new(seed);
        let packets: Vec<_> = (0..80)
            .map(|index| {
                let trailer = match random.below(8) {
                    0 => Trailer::None,
                    1 => Trailer::Icv,
                    _ => Trailer::Crc,
                };
                random.frame(trailer, index % 2 == 0)
            })
            .collect();
        let expected = decode(&packets);
        for packet in &expected {
            let trailer = &packet["trailer"];
            right += usize::from(trailer["ok"] == true);
            wrong += usize::from(trailer["ok"] == false);
            icv += usize::from(trailer["kind"] == "icv");
        }
        agree_as(&expected, &packets, &["uet.trailer:auto".into()]);
    }
    assert!(right > 200 && wrong > 25 && icv > 20, "{right} right, {wrong} wrong, {icv} ICVs");
}

/// Builds a packet of a host: with a right CRC, with a wrong one, or without any.
fn frame(host: u8, crc: Option<bool>) -> Captured {
    let request = Request::rud().clear_psn_offset(-1).done().unwrap();
    let frame = FrameBuilder::new(request).udp(50_000).ipv4([10, 0, 0, host], [10, 0, 1, 1]);
    let frame = if crc.is_some() { frame.crc() } else { frame };
    let frame = frame.ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let mut bytes = vec![0; frame.len()];
    frame.emit(&mut bytes).unwrap();
    if crc == Some(false) {
        *bytes.last_mut().unwrap() ^= 1;
    }
    Captured::whole(bytes)
}

/// Returns for each packet if its CRC is right; empty without a CRC.
fn shown(packets: &[Captured], more: &[&str]) -> Vec<String> {
    let file = Scratch::new("pcap");
    write_capture(&file.0, 1, packets);
    let arguments = ["-r", file.0.to_str().unwrap(), "-T", "fields", "-e", "uet.crc.ok"];
    let said = tshark(&[SCRIPT], &[&arguments, more].concat());
    said.lines().map(|line| line.replace("True", "1").replace("False", "0")).collect()
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn second_right_crc_makes_wrong_ones_errors() {
    let (right, wrong, none) = (Some(true), Some(false), None);
    let crcs = [wrong, right, wrong, right, wrong, none];
    let mut packets: Vec<_> = crcs.into_iter().map(|crc| frame(1, crc)).collect();
    packets.push(frame(2, wrong));
    let expected = ["", "1", "", "1", "0", "0", ""];
    assert_eq!(shown(&packets, &[]), expected);
    // The second pass knows the later packets, but judges the earlier ones as the first pass does.
    assert_eq!(shown(&packets, &["-2"]), expected);
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn only_the_first_16_packets_of_a_sender_are_tried() {
    for (without, known) in [(14, true), (15, false), (16, false)] {
        let mut packets = vec![frame(1, None); without];
        packets.extend(vec![frame(1, Some(true)); 4]);
        let last = shown(&packets, &[]).pop().unwrap();
        assert_eq!(last == "1", known, "{without} packets without a CRC");
    }
}
