//! The tree and the line that show common packets.

use crate::common;

use common::{ack, answered, forbidden, frame, lines, malformed, odd, sent, uet_with, write};
use serde_json::{Value, json};

/// Builds a request on an established context with these SES fields.
fn request(kind: u8, ses: Value, payload: usize) -> Vec<u8> {
    let mut fields = json!({
        "pds.type": kind, "pds.clear_psn_offset": -1, "pds.psn": 73729, "pds.spdcid": 0x4001, "pds.dpdcid": 0x8001
    });
    fields.as_object_mut().unwrap().extend(ses.as_object().unwrap().clone());
    sent(fields, payload)
}

fn ack_cc(more: Value) -> Vec<u8> {
    let mut fields = json!({
        "pds.type": 8, "pds.cack_psn": 333, "pds.spdcid": 0x8001, "pds.dpdcid": 0x4001, "pds.mpr": 8,
        "pds.sack_psn_offset": 2, "pds.sack_bitmap": "0xb"
    });
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    answered(fields, 0)
}

fn control(more: Value) -> Vec<u8> {
    let mut fields = json!({"pds.type": 11, "pds.spdcid": 0x4001});
    if more.get("pds.flags.syn").is_none() {
        fields["pds.dpdcid"] = 0x8001.into();
    }
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    sent(fields, 0)
}

/// Returns packets of every type, then invalid ones.
fn packets() -> Vec<Vec<u8>> {
    let std = |ses: Value, payload| request(2, ses, payload);
    let middle = json!({
        "pds.next_hdr": 3, "ses.opcode": 1, "ses.message_id": 1, "ses.payload_length": 64, "ses.message_offset": 4096,
        "ses.request_length": 16384
    });
    let last = json!({
        "pds.flags.retx": 1, "pds.next_hdr": 3, "ses.opcode": 1, "ses.eom": 1, "ses.message_id": 1,
        "ses.payload_length": 64, "ses.message_offset": 128, "ses.request_length": 192
    });
    let tagged = json!({
        "pds.next_hdr": 2, "ses.opcode": 9, "ses.som": 1, "ses.eom": 1, "ses.request_length": 64, "ses.match_bits": "0x77"
    });
    let read =
        json!({"pds.next_hdr": 1, "ses.opcode": 2, "ses.som": 1, "ses.eom": 1, "ses.request_length": 8});
    let swap = json!({
        "pds.next_hdr": 2, "ses.opcode": 4, "ses.som": 1, "ses.eom": 1, "ses.request_length": 4,
        "ses.memory_key": "0xacce5", "ses.atomic_opcode": 13, "ses.atomic_datatype": 5, "ses.compare_value": "0x7",
        "ses.swap_value": "0x8"
    });
    let rendezvous = json!({
        "pds.next_hdr": 3, "ses.opcode": 6, "ses.som": 1, "ses.message_id": 3, "ses.request_length": 100_000,
        "ses.eager_length": 64
    });
    let data = json!({
        "pds.next_hdr": 5, "ses.opcode": 2, "ses.return_code": 1, "ses.response_message_id": 9,
        "ses.read_request_message_id": 1, "ses.payload_length": 64, "ses.modified_length": 8192,
        "ses.message_offset": 4096
    });
    let small_data = json!({
        "pds.next_hdr": 6, "ses.opcode": 2, "ses.return_code": 1, "ses.payload_length": 8,
        "ses.original_request_psn": 333
    });
    let datagram = json!({
        "pds.type": 6, "pds.next_hdr": 3, "ses.opcode": 7, "ses.som": 1, "ses.eom": 1, "ses.request_length": 32
    });
    let idempotent = json!({
        "pds.type": 4, "pds.pkt_id": 0xdead_beef_u32, "pds.next_hdr": 1, "ses.opcode": 2, "ses.som": 1, "ses.eom": 1,
        "ses.request_length": 8
    });
    let refused = json!({
        "pds.type": 5, "pds.pkt_id": 0xdead_beef_u32, "pds.flags.retx": 1, "pds.next_hdr": 4, "ses.opcode": 1,
        "ses.return_code": 5
    });
    let mut trimmed = write();
    trimmed.truncate(80);
    trimmed[16..18].copy_from_slice(&66u16.to_be_bytes());
    let mut fragment = write();
    fragment[20] |= 0x20;
    let mut other = write();
    other[36..38].copy_from_slice(&53u16.to_be_bytes());
    vec![
        write(),
        std(middle, 64),
        std(last, 64),
        request(3, tagged, 64),
        std(read, 0),
        std(swap, 0),
        std(rendezvous, 64),
        std(data, 64),
        answered(
            json!({"pds.type": 7, "pds.cack_psn": 333, "pds.spdcid": 1, "pds.dpdcid": 2, "pds.flags.req": 1,
                "pds.next_hdr": 6, "ses.opcode": 2, "ses.return_code": 1, "ses.payload_length": 8,
                "ses.original_request_psn": 333}),
            8,
        ),
        std(small_data, 8),
        request(13, json!({"pds.ccc_id": 161, "pds.credit_target": 512}), 0),
        ack(),
        answered(
            json!({"pds.type": 7, "pds.flags.p": 1, "pds.probe_opaque": 9, "pds.cack_psn": 5, "pds.spdcid": 1,
                "pds.dpdcid": 2, "pds.flags.m": 1}),
            0,
        ),
        ack_cc(json!({"pds.cc_type": 0, "pds.service_time": 8, "pds.rcvd_bytes": 64})),
        ack_cc(json!({"pds.cc_type": 1, "pds.credit": 64})),
        odd(),
        answered(json!({"pds.type": 10, "pds.flags.nt": 1, "pds.nack_code": 10, "pds.nack_pkt_id": 7}), 0),
        control(json!({"pds.ctl_type": 0, "pds.flags.syn": 1, "pds.flags.ar": 1, "pds.psn": 73728})),
        control(json!({"pds.ctl_type": 2, "pds.payload": 333})),
        control(json!({"pds.ctl_type": 6, "pds.probe_opaque": 9, "pds.flags.ar": 1})),
        control(json!({"pds.ctl_type": 7, "pds.payload": 64})),
        control(json!({"pds.ctl_type": 8, "pds.payload": 0xa100_0200_u32})),
        sent(idempotent, 0),
        answered(refused, 0),
        sent(datagram, 32),
        sent(json!({"tss.type": 1, "tss.an": 1, "tss.sdi": 7, "tss.epoch": 2, "tss.counter": "0x100"}), 40),
        sent(json!({"pds.type": 20}), 10),
        frame(
            &json!({"fields": {"pds.entropy": 3, "pds.type": 7, "pds.cack_psn": 1, "pds.spdcid": 1, "pds.dpdcid": 2},
            "src": "fd00::1", "dst": "fd00::2", "padding": {"length": 4}}),
        ),
        frame(&json!({"fields": {"vlan.id": 100, "vlan.inner.id": 200, "pds.type": 7, "pds.cack_psn": 1,
            "pds.spdcid": 1, "pds.dpdcid": 2}, "src": "10.0.0.1", "dst": "10.0.0.2"})),
        forbidden(),
        malformed(),
        trimmed,
        fragment,
        other,
        vec![0; 20],
        vec![],
    ]
}

#[test]
fn summary() {
    let run = uet_with(lines(&packets()).as_bytes(), &["decode", "--format", "summary", "-"]);
    assert_eq!((run.code, run.err.as_str()), (1, ""));
    insta::assert_snapshot!(run.out);
}

#[test]
fn text() {
    let run = uet_with(lines(&packets()).as_bytes(), &["decode", "-"]);
    assert_eq!((run.code, run.err.as_str()), (1, ""));
    assert!(run.out.lines().all(|line| !line.ends_with(' ')), "no trailing blanks");
    insta::assert_snapshot!(run.out);
}

#[test]
fn the_crc_is_judged_where_it_is() {
    let mut packet = json!({"src": "10.0.0.1", "dst": "10.0.1.12", "stack": ["crc"], "fields": {"pds.type": 7,
        "pds.cack_psn": 1, "pds.spdcid": 1, "pds.dpdcid": 2}});
    let decode = |packet: &Value, format: &str| {
        let lines = lines(&[frame(packet)]);
        uet_with(lines.as_bytes(), &["decode", "--trailer", "crc", "--format", format, "-"])
    };
    let right = decode(&packet, "text");
    assert_eq!(right.code, 0, "{}", right.err);
    assert!(right.out.contains("right"), "{}", right.out);
    packet["trailer"] = json!({"value": "0x00000000"});
    let wrong = decode(&packet, "text");
    assert_eq!(wrong.code, 1);
    assert!(wrong.out.contains("wrong, expected 0x"), "{}", wrong.out);
    assert!(decode(&packet, "summary").out.contains(" !WIRE-CRC-"));
}

#[test]
fn the_tree_tells_which_udp_checksum_would_be_right() {
    let packet = ack();
    let sum = |bytes: &[u8]| {
        let words = bytes.chunks(2).map(|word| u32::from(word[0]) * 256 + u32::from(word[1]));
        words.fold(0, |sum, word| (sum + word) % 0xffff) as u16
    };
    let pseudo = [&packet[26..34], &[0, 17], &packet[38..40]].concat();
    let right = !sum(&[&pseudo[..], &packet[34..]].concat());
    let tree = |checksum: u16, length: usize| {
        let mut packet = packet[..length].to_vec();
        packet[40..42].copy_from_slice(&checksum.to_be_bytes());
        uet_with(lines(&[packet]).as_bytes(), &["decode", "-"]).out
    };
    let wrong = format!("wrong, {right} would be right");
    let partial = format!("left to the NIC, {right} would be right");
    let whole = packet.len();
    assert!(tree(right ^ 1, whole).contains(&wrong));
    assert!(tree(sum(&pseudo), whole).contains(&partial));
    for (checksum, length) in [(0, whole), (right, whole), (right ^ 1, whole - 1)] {
        let tree = tree(checksum, length);
        assert!(tree.contains("udp.checksum") && !tree.contains("would be right"), "{tree}");
    }
}

#[test]
fn the_tree_and_the_json_agree() {
    let input = lines(&packets());
    let tree = uet_with(input.as_bytes(), &["decode", "-"]).out;
    let json = uet_with(input.as_bytes(), &["decode", "--format", "json", "-"]).out;
    let trees: Vec<&str> = tree.split_terminator("\n\n").collect();
    assert_eq!(trees.len(), json.lines().count());
    for (tree, json) in trees.iter().zip(json.lines()) {
        let json: Value = serde_json::from_str(json).unwrap();
        for key in json["fields"].as_object().unwrap().keys() {
            assert!(tree.lines().any(|line| line.split_whitespace().next() == Some(key)), "{key} in\n{tree}");
        }
        for finding in json["findings"].as_array().unwrap() {
            assert!(tree.contains(finding["id"].as_str().unwrap()), "{finding} in\n{tree}");
        }
    }
}
