//! Hints of `uet check` about packets that look trimmed.

use crate::common::{file, frame, lines, uet};
use serde_json::json;

/// Builds the first packet of a write with 256 bytes and this traffic class.
fn packet(dscp: u8) -> Vec<u8> {
    frame(&json!({
        "src": "10.0.0.1", "dst": "10.0.1.12", "payload": {"length": 256}, "fields": {
            "ip.dscp": dscp, "pds.type": 2, "pds.flags.syn": 1, "pds.flags.ar": 1, "pds.clear_psn_offset": -1,
            "pds.psn": 9, "pds.spdcid": 0x4001, "ses.opcode": 1, "ses.som": 1, "ses.message_id": 1,
            "ses.job_id": 101, "ses.request_length": 256, "ses.eom": 1
        }
    }))
}

/// Cuts a packet as switches do that leave the length of the IP header alone.
fn cut(dscp: u8) -> Vec<u8> {
    let mut packet = packet(dscp);
    packet.truncate(14 + 128);
    packet
}

#[test]
fn packets_that_look_trimmed_give_their_class() {
    let path = file("trims.hex", lines(&[packet(10), cut(12), cut(12)]).as_bytes());
    let hint = "uet: 2 packets with DSCP 12 look trimmed by a switch: try --trimmed-dscp 12\n";
    assert!(uet(&["check", &path]).err.contains(hint), "{}", uet(&["check", &path]).err);
    let run = uet(&["check", "--trimmed-dscp", "12", &path]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", run.out);
}

/// The class of trims differs from that of other packets.
#[test]
fn cut_packets_of_a_usual_class_give_no_hint() {
    let path = file("cut.hex", lines(&[packet(10), cut(10)]).as_bytes());
    let run = uet(&["check", &path]);
    assert!(run.code == 1 && !run.err.contains("--trimmed-dscp"), "{}{}", run.out, run.err);
}
