//! Hints of `uet check` and `uet decode` about CRCs that the settings do not expect.

use crate::common::{file, frame, lines, uet};
use serde_json::json;

/// Builds packets of this sender that end with a right CRC.
fn packets(src: &str) -> Vec<Vec<u8>> {
    let packet = |psn: u32| {
        frame(&json!({"src": src, "dst": "10.0.1.12", "stack": ["crc"], "fields": {
            "pds.type": 2, "pds.clear_psn_offset": -1, "pds.psn": psn, "pds.spdcid": 0x4001, "pds.dpdcid": 0x8001
        }}))
    };
    (5..9).map(packet).collect()
}

fn reversed(src: &str) -> Vec<Vec<u8>> {
    let mut packets = packets(src);
    for packet in &mut packets {
        let crc = packet.len() - 4;
        packet[crc..].reverse();
    }
    packets
}

const REVERSED: &str =
    "uet: 10.0.0.1 appends a CRC-32C in reverse byte order; the most significant byte must come first\n";

#[test]
fn reversed_crc_is_reported_once_per_sender() {
    let path = file("reversed.hex", lines(&[reversed("10.0.0.1"), packets("10.0.0.2")].concat()).as_bytes());
    for command in
        [&["check"] as &[_], &["check", "--trailer", "crc"], &["decode"], &["decode", "--trailer", "crc"]]
    {
        let run = uet(&[command, &[&path]].concat());
        assert_eq!(run.err, REVERSED, "{command:?}");
        assert!(!run.out.contains("trailer is right"), "{}", run.out);
    }
    let check = uet(&["check", "--trailer", "crc", &path]).out;
    assert!(check.contains("WIRE-CRC-001 10.0.0.1: crc is ") && check.contains("; expected 0x"), "{check}");
    let run = uet(&["decode", "--trailer", "crc", "--packets", "1", &path]);
    assert!(run.out.contains("in reverse byte order, expected 0x"), "{}", run.out);
    assert!(
        run.out.contains("WIRE-CRC-001: crc is ") && run.out.contains("must equal the CRC-32C"),
        "{}",
        run.out
    );
}

#[test]
fn right_crc_under_another_trailer_is_reported() {
    let path = file("other.hex", lines(&packets("10.0.0.1")).as_bytes());
    let hint = "uet: 10.0.0.1 appends a right CRC-32C that --trailer does not name: try --trailer crc\n";
    for (trailer, expected) in [("none", hint), ("icv", hint), ("crc", ""), ("auto", "")] {
        assert_eq!(uet(&["check", "--trailer", trailer, &path]).err, expected, "{trailer}");
    }
}

#[test]
fn wrong_crcs_are_reported_and_cut_packets_give_no_hint() {
    let mut wrong = packets("10.0.0.1");
    wrong.iter_mut().for_each(|packet| *packet.last_mut().unwrap() ^= 1);
    let path = file("wrong.hex", lines(&wrong).as_bytes());
    let hint = "uet: 10.0.0.1 appends 4 bytes that its headers do not announce; if they are a CRC-32C, all are \
                wrong: try --trailer crc\n";
    for (trailer, expected) in [("auto", hint), ("none", hint), ("crc", "")] {
        assert_eq!(uet(&["check", "--trailer", trailer, &path]).err, expected, "{trailer}");
    }
    // A packet that is too short for an ICV may be secured.
    let outer = "02000000000202000000000108004500002b00004000401125b60a0000010a00010cbeef12b900170000";
    let path = file("short-icv.hex", format!("{outer}{}\n", "08".repeat(15)).as_bytes());
    assert_eq!(uet(&["check", "--trailer", "icv", &path]).err, "");
}

const LEARN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpora/captures/learn");

#[test]
fn icv_of_other_packets_than_secured_ones_is_reported() {
    let clear = "sends packets in the clear, which have no ICV: try --trailer auto";
    let secured = "sends secured packets, which end with an ICV: try --trailer auto";
    for (trailer, capture, network, hint) in
        [("icv", "write", 1, clear), ("crc", "secured", 7, secured), ("none", "secured", 7, secured)]
    {
        let path = format!("{LEARN}/{capture}.pcapng");
        let hint = [1, 2].map(|host| format!("uet: 10.{network}.0.{host} {hint}\n")).concat();
        assert_eq!(uet(&["check", "--trailer", trailer, &path]).err, hint, "{trailer} {capture}");
        assert_eq!(uet(&["check", "--trailer", "auto", &path]).err, "", "{capture}");
    }
}

#[test]
fn missing_crc_is_reported() {
    let learn = &format!("{LEARN}/write.pcapng");
    let hint =
        |sender| format!("uet: {sender} appends no CRC, but --trailer names one: try --trailer none\n");
    let both = hint("10.1.0.1") + &hint("10.1.0.2");
    for command in ["check", "decode"] {
        assert_eq!(uet(&[command, "--trailer", "crc", learn]).err, both, "{command}");
        assert_eq!(uet(&[command, "--trailer", "none", learn]).err, "");
    }
}
