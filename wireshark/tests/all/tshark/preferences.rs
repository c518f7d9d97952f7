//! Each preference works. These tests need tshark; `wireshark/test` runs them.

use super::{Captured, SCRIPT, Scratch, tshark, write_capture};
use std::collections::BTreeSet;
use uet_wire::pds::{Ack, Nack, PdsBuf, Request};
use uet_wire::registry::{NackCode, NextHdr, Opcode};
use uet_wire::ses::Std;
use uet_wire::tss::TssShort;
use uet_wire::{FrameBuilder, PdcId, Psn, UetBuf};

const ETHERNET: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

fn request() -> PdsBuf {
    let done = Request::rud().clear_psn_offset(-1).psn(Psn(7)).spdcid(PdcId(1)).dpdcid(PdcId(2)).done();
    done.unwrap().into()
}

fn bytes(frame: FrameBuilder<'_>) -> Vec<u8> {
    let mut bytes = vec![0; frame.len()];
    frame.emit(&mut bytes).unwrap();
    bytes
}

/// Puts a packet in UDP over IPv4 to this port.
fn over_udp(frame: FrameBuilder<'_>, port: u16) -> Vec<u8> {
    bytes(frame.udp_to(50_000, port).ipv4([10, 0, 0, 1], [10, 0, 0, 2]).ethernet(ETHERNET[0], ETHERNET[1]))
}

/// Puts a packet in the native encapsulation with this IP protocol.
fn native(frame: FrameBuilder<'_>, protocol: u8) -> Vec<u8> {
    let frame = frame.native(50_000).ipv4([10, 0, 0, 1], [10, 0, 0, 2]).ethernet(ETHERNET[0], ETHERNET[1]);
    let mut bytes = bytes(frame);
    bytes[23] = protocol;
    bytes
}

fn with_dscp(mut frame: Vec<u8>, dscp: u8) -> Vec<u8> {
    frame[15] = dscp << 2;
    frame
}

/// Builds a secured packet with `inner` behind the security header.
fn secured(inner: &[u8]) -> Vec<u8> {
    over_udp(FrameBuilder::secured(TssShort::build().done().unwrap(), inner, [0; 16]), 4793)
}

fn inner() -> Vec<u8> {
    let write = Std::build(Opcode::UET_WRITE).head(|head| head.som(true).eom(true)).request_length(64);
    let request = Request::rud().prologue(|prologue| prologue.next_hdr(NextHdr::UET_HDR_REQUEST_STD));
    let request = request.clear_psn_offset(-1).psn(Psn(7)).spdcid(PdcId(1)).dpdcid(PdcId(2)).done().unwrap();
    let packet = UetBuf {
        pds: Some(request.into()),
        ses: Some(write.done().unwrap().into()),
        payload: vec![0x5a; 64],
        ..UetBuf::default()
    };
    packet.to_bytes()
}

/// Builds a packet with a part of a message of two packets.
fn part(number: u32) -> Vec<u8> {
    let write = Std::build(Opcode::UET_WRITE).head(|head| head.som(number == 0).eom(number == 1));
    let write = write.message_id(1).request_length(8);
    let write = if number == 0 { write } else { write.payload_length(4).message_offset(4) };
    let pds = Request::rud().clear_psn_offset(-1).psn(Psn(7 + number)).spdcid(PdcId(1)).dpdcid(PdcId(2));
    over_udp(FrameBuilder::new(pds.done().unwrap()).ses(write.done().unwrap()).payload(&[7; 4]), 4793)
}

const NO_KEYS: &str =
    "The packet is encrypted; `uet decrypt IN OUT --keys FILE` writes the capture in the clear";
const NO_FILE: &str = "The packet is encrypted; `uet decrypt IN OUT --keys FILE` writes the capture in the clear \
                       (key file /nowhere/keys.toml: the file cannot be read)";

/// Preference and value; a packet; the values of a field without the preference and with it.
struct Case(&'static str, Vec<Vec<u8>>, &'static str, &'static str, &'static str);

fn cases() -> Vec<Case> {
    let plain = || over_udp(FrameBuilder::new(request()), 4793);
    let crc = bytes(
        FrameBuilder::new(request())
            .udp(50_000)
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2])
            .crc()
            .ethernet(ETHERNET[0], ETHERNET[1]),
    );
    // A code that the latest version removes.
    let nack = Nack::build(NackCode::TRIMMED_ACK).nack_psn(Psn(7)).spdcid(PdcId(2)).dpdcid(PdcId(1)).done();
    let nack = over_udp(FrameBuilder::new(nack.unwrap()), 4793);
    let ack = Ack::build().cack_psn(Psn(7)).spdcid(PdcId(2)).dpdcid(PdcId(1)).done().unwrap();
    let mut ack = over_udp(FrameBuilder::new(ack), 4793);
    let (source, target) = (ack[26..30].to_vec(), ack[30..34].to_vec());
    ack[26..30].copy_from_slice(&target);
    ack[30..34].copy_from_slice(&source);
    let long = over_udp(FrameBuilder::new(request()).payload(&[0x5a; 20]), 4793);
    // A packet from the port of another protocol, which Wireshark tries first.
    let foreign = {
        let frame = FrameBuilder::new(request()).udp_to(53, 4793).ipv4([10, 0, 0, 1], [10, 0, 0, 2]);
        bytes(frame.ethernet(ETHERNET[0], ETHERNET[1]))
    };
    vec![
        Case("ports:5000-5002", vec![over_udp(FrameBuilder::new(request()), 5001)], "uet.pds.psn", "", "7"),
        Case("ip_proto:254", vec![native(FrameBuilder::new(request()), 254)], "uet.pds.psn", "", "7"),
        Case("trailer:none", vec![crc], "uet.crc.ok", "1", ""),
        Case("trailer:crc", vec![plain()], "uet.crc.ok", "", "0"),
        Case("trailer:icv", vec![long], "uet.icv", "", "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"),
        Case("trailer:none", vec![secured(&inner())], "uet.icv", "00000000000000000000000000000000", ""),
        // `secured.rs` has valid key files.
        Case("keys:/nowhere/keys.toml", vec![secured(&inner())], "_ws.expert.message", NO_KEYS, NO_FILE),
        // Bytes behind the security header: of the PDS header, of both headers, of all.
        Case("tss_clear:2", vec![secured(&inner())], "uet.pds.psn", "", ""),
        Case("tss_clear:11", vec![secured(&inner())], "uet.pds.psn", "", ""),
        Case("tss_clear:12", vec![secured(&inner())], "uet.pds.psn", "", "7"),
        Case("tss_clear:55", vec![secured(&inner())], "uet.ses.request_length", "", ""),
        Case("tss_clear:56", vec![secured(&inner())], "uet.ses.request_length", "", "64"),
        Case("tss_clear:65535", vec![secured(&inner())], "uet.ses.request_length", "", "64"),
        Case("trimmed_dscp:5,9-10", vec![with_dscp(plain(), 10)], "uet.trimmed", "", "1"),
        Case("trimmed_lasthop_dscp:6", vec![with_dscp(plain(), 6)], "uet.trimmed.last_hop", "", "1"),
        Case("version:1.0.2", vec![nack], "uet.finding", "WIRE-NACK-001", ""),
        Case("take_over:FALSE", vec![foreign], "uet.pds.psn", "7", ""),
        Case("reassemble:FALSE", vec![part(0), part(1)], "uet.message.reassembled_in", "2", ""),
        Case("reassembly_limit:0", vec![part(0), part(1)], "uet.message.reassembled_in", "2", ""),
        Case("analysis:FALSE", vec![plain(), ack], "uet.acked_in", "2", ""),
    ]
}

fn says(field: &str, file: &Scratch, preference: Option<&str>) -> String {
    let mut arguments = vec!["-2", "-r", file.0.to_str().unwrap(), "-T", "fields", "-e", field];
    let option = preference.map(|preference| format!("uet.{preference}"));
    if let Some(option) = &option {
        arguments.extend(["-o", option]);
    }
    let said = tshark(&[SCRIPT], &arguments);
    let first = said.lines().next().unwrap_or_default();
    // The versions write Booleans and bytes differently.
    match first {
        "True" => "1".into(),
        "False" => "0".into(),
        digits if digits.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':') => {
            digits.replace(':', "")
        }
        text => text.into(),
    }
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn each_preference_is_heeded() {
    for Case(preference, packets, field, without, with) in cases() {
        let file = Scratch::new("pcap");
        let packets: Vec<_> = packets.into_iter().map(Captured::whole).collect();
        write_capture(&file.0, 1, &packets);
        assert_eq!(says(field, &file, None), without, "{field} without {preference}");
        assert_eq!(says(field, &file, Some(preference)), with, "{field} with {preference}");
    }
}

/// `analysis.rs` covers preferences of the statistics table, and `reassembly.rs` those with output of their own.
#[test]
#[ignore = "needs tshark: wireshark/test"]
fn every_preference_has_a_case() {
    let said = tshark(&[SCRIPT], &["-G", "currentprefs"]);
    let there = said.lines().filter_map(|line| line.trim_start_matches('#').strip_prefix("uet."));
    let there: BTreeSet<_> = there.filter_map(|line| Some(line.split_once(':')?.0.to_owned())).collect();
    let tested = cases().iter().map(|case| case.0.split(':').next().unwrap().to_owned()).collect::<Vec<_>>();
    let tested: BTreeSet<_> =
        tested.into_iter().chain(["statistics", "follow", "export"].map(str::to_owned)).collect();
    assert_eq!(there, tested);
}

#[test]
#[ignore = "needs tshark: wireshark/test"]
fn clear_bytes_behind_tss_break_no_length_rule() {
    let file = Scratch::new("pcap");
    write_capture(&file.0, 1, &[Captured::whole(secured(&inner()))]);
    for clear in ["tss_clear:12", "tss_clear:56"] {
        assert_eq!(says("uet.finding", &file, Some(clear)), "");
        assert_eq!(says("uet.malformed", &file, Some(clear)), "");
    }
}
