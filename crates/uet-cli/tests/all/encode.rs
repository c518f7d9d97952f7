//! `uet encode`: the inverse of decode, with errors that name line and key.

use crate::common;

use common::{ack, file, forbidden, lines, malformed, odd, uet, uet_with, write};

#[test]
fn decode_then_encode_gives_the_same_frames() {
    let mut damaged = write();
    damaged[20] ^= 0xff;
    let mut padded = ack();
    padded.extend([7; 9]);
    let cut = write()[..50].to_vec();
    let frames =
        lines(&[write(), ack(), odd(), forbidden(), malformed(), damaged, padded, cut, vec![1, 2, 3]]);
    let json = uet_with(frames.as_bytes(), &["decode", "--format", "json", "--bytes", "-"]);
    let back = uet_with(json.out.as_bytes(), &["encode"]);
    assert_eq!((back.code, back.err.as_str()), (0, ""));
    assert_eq!(back.out, frames);
}

#[test]
fn valid_frames_survive_without_bytes() {
    let frames = lines(&[write(), ack(), odd(), forbidden()]);
    let fields = |out: &str| -> Vec<serde_json::Value> {
        out.lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["fields"].take())
            .collect()
    };
    let json = uet_with(frames.as_bytes(), &["decode", "--format", "json", "-"]);
    let back = uet_with(json.out.as_bytes(), &["encode", "-"]);
    let again = uet_with(back.out.as_bytes(), &["decode", "--format", "json", "-"]);
    assert_eq!(fields(&json.out), fields(&again.out));
}

#[test]
fn a_capture_keeps_times_and_frames() {
    let capture = file("times.pcap", &common::capture::simple(&[write(), ack()]));
    let json = uet(&["decode", "--format", "json", "--bytes", &capture]).out;
    let out = file("times.pcapng", b"");
    let made = uet_with(json.as_bytes(), &["encode", "--format", "pcapng", "-o", &out]);
    assert_eq!((made.code, made.out.as_str()), (0, ""), "{}", made.err);
    assert_eq!(uet(&["decode", "--format", "json", "--bytes", &out]).out, json);
}

#[test]
fn snap_length_survives() {
    use common::capture::{Order, pcap};

    let frame = write();
    let sliced = pcap(Order::Little, false, 1, &[(5, 0, frame.len(), &frame[..60])]);
    let json = uet(&["decode", "--format", "json", "--bytes", &file("sliced.pcap", &sliced)]);
    assert_eq!(json.code, 0, "{}", json.err);
    let out = file("sliced.pcapng", b"");
    let made = uet_with(json.out.as_bytes(), &["encode", "--format", "pcapng", "-o", &out]);
    assert_eq!(made.code, 0, "{}", made.err);
    let again = uet(&["decode", "--format", "json", "--bytes", &out]);
    assert_eq!((again.code, again.out), (0, json.out));
}

#[test]
fn other_starts_work_both_ways() {
    for (start, skipped) in [("ip", 14), ("udp", 34), ("uet", 42)] {
        let digits = lines(&[write()[skipped..].to_vec()]);
        let json = uet(&["decode", "--from", start, "--format", "json", digits.trim()]);
        assert_eq!(json.code, 0, "{start}: {}", json.err);
        let with_bytes = uet(&["decode", "--from", start, "--bytes", "--format", "json", digits.trim()]);
        assert_eq!(uet_with(with_bytes.out.as_bytes(), &["encode", "--from", start]).out, digits);
    }
}

#[test]
fn every_error_names_line_and_key() {
    let cases = [
        (r#"7"#, "packet"),
        (r#"{"fields": []}"#, "fields"),
        (r#"{"fields": {"pds.type": 32}}"#, "fields.pds.type"),
        (r#"{"fields": {"pds.type": -1}}"#, "fields.pds.type"),
        (r#"{"fields": {"pds.type": "two"}}"#, "fields.pds.type"),
        (r#"{"fields": {"pds.type": 7, "pds.psn": 1}}"#, "fields.pds.psn"),
        (r#"{"fields": {"pds.type": 7, "pds.cack": 1}}"#, "fields.pds.cack"),
        (r#"{"fields": {"pds.type": 7}, "reserved": {"ack@9": 1}}"#, "reserved.ack@9"),
        (r#"{"fields": {"pds.type": 7}, "payload_hex": "0"}"#, "payload_hex"),
        (r#"{"fields": {"pds.type": 7}, "payload": {"length": -1}}"#, "payload.length"),
        (r#"{"fields": {"pds.type": 7}, "src": "nowhere"}"#, "src"),
        (r#"{"fields": {"pds.type": 7}, "time": "yesterday"}"#, "time"),
        (r#"{"fields": {"pds.type": 7}, "trailer": {"value": 1}}"#, "trailer.value"),
        (r#"{"raw": {"outer": "xx"}}"#, "raw.outer"),
        (r#"{"stack": "pds"}"#, "stack"),
        (
            r#"{"fields": {"pds.type": 7}"#,
            "the line is not JSON, as `uet decode --format json` prints it: EOF while parsing",
        ),
    ];
    let mut input = String::from("\n");
    for (json, _) in cases {
        input.push_str(json);
        input.push('\n');
    }
    let good = r#"{"fields": {"pds.type": 7, "pds.spdcid": 1, "pds.dpdcid": 2}}"#;
    let path = file("errors.jsonl", format!("{input}{good}\n").as_bytes());
    let run = uet(&["encode", "--from", "uet", &path]);
    assert_eq!(run.code, 1);
    assert_eq!(run.out, "380000000000000000010002\n", "what is right comes out all the same");
    let errors: Vec<&str> = run.err.lines().collect();
    assert_eq!(errors.len(), cases.len(), "{}", run.err);
    for ((number, error), (json, key)) in (2..).zip(errors).zip(cases) {
        let start = format!("uet: {path}: line {number}: {key}");
        assert!(error.starts_with(&start), "{json}: {error}");
    }
}

#[test]
fn unreadable_and_unwritable_files() {
    assert_eq!(uet(&["encode", "no-such-file"]).code, 2);
    assert_eq!(uet(&["encode", "-o", "/no/such/directory/file"]).code, 2);
    assert_eq!(uet_with(b"", &["encode"]).code, 0);
}
