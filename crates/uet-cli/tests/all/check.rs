//! `uet check`.

use crate::common;

use common::capture::{Order, block, enhanced, interface, section};
use common::{ack, file, frame, lines, malformed, odd, sent, uet, uet_with, write};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::time::Duration;
use uet_conformance::passive::Origin;
use uet_packet_io::capture::{CaptureWriter, CapturedFrame, LinkType};
use uet_packet_io::input;
use uet_wire::Start;

/// Builds a write of four bytes with this PSN and these additional fields.
fn request(psn: u32, more: &[(&str, Value)]) -> Vec<u8> {
    let mut fields = json!({
        "pds.type": 2, "pds.clear_psn_offset": -1, "pds.psn": psn, "pds.spdcid": 0x4001, "pds.dpdcid": 0x8001,
        "ses.opcode": 1, "ses.som": 1, "ses.eom": 1, "ses.message_id": psn, "ses.request_length": 4,
    });
    for (name, value) in more {
        fields[*name] = value.clone();
    }
    frame(&json!({
        "src": "10.0.0.1", "dst": "10.0.0.2", "stack": ["eth", "ipv4", "udp", "pds", "ses", "payload"],
        "fields": fields, "payload_hex": "01020304",
    }))
}

#[test]
fn a_clean_conversation_has_no_findings() {
    let text = lines(&[request(5, &[]), request(6, &[])]);
    let run = uet_with(text.as_bytes(), &["check", "-"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", run.out);
    assert!(run.out.starts_with("2 packets, 1 context, 0 findings"), "{}", run.out);
}

#[test]
fn a_first_packet_that_clears_itself_gets_the_value_that_it_needs() {
    let fields = json!({
        "pds.type": 2, "pds.flags": 4, "pds.psn": 5, "pds.spdcid": 0x4001,
        "ses.opcode": 1, "ses.som": 1, "ses.eom": 1, "ses.message_id": 1,
    });
    let run = uet_with(lines(&[sent(fields, 0)]).as_bytes(), &["check", "-"]);
    let finding = ": syn is 1, but clear_psn 5 says that an ACK has come; without one, it is 4 ";
    assert!(run.code == 1 && run.out.contains(finding), "{}", run.out);
}

/// Writes a copy of a capture to learn from. Each packet is changed by its number.
fn changed(name: &str, capture: &str, mut change: impl FnMut(usize, &mut [u8])) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpora/captures/learn/");
    let mut frames: Vec<Vec<u8>> = Vec::new();
    let capture = std::fs::File::open(format!("{folder}{capture}")).unwrap();
    input::read(capture, Start::Eth, &mut |record| {
        let mut frame = record.bytes.to_vec();
        change(frames.len() + 1, &mut frame);
        frames.push(frame);
        Ok(ControlFlow::Continue(()))
    })
    .unwrap();
    file(name, &common::capture::simple(&frames))
}

/// Packet 15 is an ACK, and packet 21 is a retransmission.
#[test]
fn a_wrong_pdcid_is_found() {
    let told = |id, sender, dpdcid, own| {
        format!(" error {id} {sender}: dpdcid is {dpdcid}, but its receiver uses {own}\n")
    };
    for (number, low, told) in [
        (15, 0x11, told("PDS-PDC-001", "10.2.0.2", "0x2011", "0x2010")),
        (21, 0x99, told("PDS-SYN-004", "10.2.0.1", "0x2099", "0x2020")),
    ] {
        let path = changed("wrong-pdcid.pcap", "loss.pcapng", |at, frame| {
            if at == number {
                frame[53] = low;
            }
        });
        let run = uet(&["check", &path]);
        assert!(run.code == 1 && run.out.contains(&format!("    {number}{told}")), "{}", run.out);
    }
    // The first ACKs fit no context. The next packet of their receiver shows its PDCID, and the next ACK of new packets
    // is judged by it.
    let path = changed("wrong-pdcids.pcap", "loss.pcapng", |_, frame| {
        let is_ack_cc = frame[42] >> 3 == 8;
        if is_ack_cc {
            frame[53] = 0x77;
        }
    });
    let run = uet(&["check", &path]);
    let told = told("PDS-PDC-001", "10.2.0.2", "0x2077", "0x2010");
    assert!(run.code == 1 && run.out.contains(&format!("    24{told}")), "{}", run.out);
}

/// Packet 26 is the last ACK, and packet 5 is a request.
#[test]
fn an_ack_beyond_the_last_packet_is_a_warning() {
    let check = |is_complete: bool| {
        let path = changed("beyond.pcap", "loss.pcapng", |at, frame| match at {
            26 => frame[49] += 5,
            5 if !is_complete => frame[36..38].copy_from_slice(&[0, 9]),
            _ => {}
        });
        uet(&["check", &path])
    };
    let run = check(true);
    let told = "    26 warning PDS-PSN-002 10.2.0.2: acknowledges 5 PSNs above the last one sent; the capture has \
                the 12 before them\n";
    assert!(run.code == 0 && run.out.starts_with(told), "{}", run.out);
    assert!(run.out.contains(" 1 finding (1 warning);"), "{}", run.out);
    let run = check(false);
    assert!(run.out.contains("6 packets acknowledged, but not in the capture; packet "), "{}", run.out);
    assert!(run.code == 0 && run.out.contains(" 0 findings;"), "{}", run.out);
}

/// docs/walkthroughs.md says so for each.
#[test]
fn captures_to_learn_from_have_no_findings() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpora/captures/learn");
    let mut found = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let run = uet(&["check", path.to_str().unwrap()]);
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{}: {}", path.display(), run.out);
        assert!(run.out.contains(" 0 findings;"), "{}: {}", path.display(), run.out);
        found += 1;
    }
    assert!(found >= 7, "{found}");
}

/// Returns the findings in a recording of the built-in NIC that are not on purpose, the others, and the summary.
fn recorded(name: &str, rules: &[&str]) -> (Vec<Value>, Vec<Value>, Value) {
    let path = file(name, b"");
    let run = uet(&[&["run", "--max-instances", "60", "--capture", &path], rules].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    let run = uet(&["check", "--format", "json", "--limit", "10000", &path]);
    let mut lines: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = lines.pop().unwrap();
    let (notes, bad) = lines.into_iter().partition(|finding| finding["severity"] == "note");
    (bad, notes, summary)
}

/// The device forgets its contexts between two instances, and then uses the same numbers again.
#[test]
fn capture_of_many_instances_shows_no_violation_of_a_correct_device() {
    let (bad, notes, summary) = recorded("many-instances.pcapng", &["--group", "source-establish"]);
    assert_eq!(bad, Vec::<Value>::new());
    assert!(summary["contexts"].as_u64().unwrap() > 60, "{summary}");
    let named =
        |finding: &&Value| finding["message"].as_str().unwrap().contains("the suite tests source-establish/");
    assert!(notes.iter().any(|finding| named(&finding)), "notes name the instance");
}

/// The suite's own violations change what an answer of the device means.
#[test]
fn violations_of_the_suite_are_not_blamed_on_the_device() {
    const PLAYED: [&str; 6] = [
        "robustness/control-flood",
        "robustness/bit-errors",
        "resources/refused",
        "window/position",
        "nack-retry/delivered",
        "crc/damaged-headers",
    ];
    let rules: Vec<&str> = PLAYED.iter().flat_map(|rule| ["--id", rule]).collect();
    let (bad, _, _) = recorded("own-violations.pcapng", &rules);
    assert_eq!(bad, Vec::<Value>::new());
}

#[test]
fn contradictions_name_both_packets() {
    let again = request(5, &[("pds.clear_psn_offset", json!(-3))]);
    let path = file("check-unmarked.hex", lines(&[request(5, &[]), again]).as_bytes());
    let run = uet(&["check", &path]);
    assert_eq!(run.code, 1);
    assert!(
        run.out.contains("2 error PDS-RTO-005 10.0.0.1: sent again without retx (packet 1)"),
        "{}",
        run.out
    );

    let run = uet(&["check", "--format", "json", &path]);
    let lines: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["id"], &lines[0]["with"]), (&json!("PDS-RTO-005"), &json!(1)));
    assert_eq!(lines[1]["findings"]["PDS-RTO-005"], 1);
    assert!(lines[1]["judged"]["PDS-RTO-005"].as_u64() > Some(0));
}

#[test]
fn many_findings_of_a_kind_are_counted() {
    let zero = |psn| request(psn, &[("pds.spdcid", json!(0))]);
    let frames: Vec<_> = (5..20).map(zero).collect();
    let run = uet_with(lines(&frames).as_bytes(), &["check", "--limit", "2", "-"]);
    assert_eq!(run.code, 1);
    assert_eq!(run.out.matches(": pds.spdcid is 0").count(), 2, "{}", run.out);
    assert!(
        run.out.contains("error WIRE-PDCID-001 10.0.0.1: 13 more, the last in packet 15\n"),
        "{}",
        run.out
    );
    assert!(
        run.out.ends_with(" 15 findings (15 errors); 4 requirements judged over several packets\n"),
        "{}",
        run.out
    );
}

#[test]
fn finding_that_repeats_is_said_once_per_sender() {
    let path = file("check-repeats.hex", lines(&[odd(), odd(), odd()]).as_bytes());
    let run = uet(&["check", &path]);
    assert_eq!(run.out.matches(" warning WIRE-RSVD-001 ").count(), 1, "{}", run.out);
    assert!(run.out.contains(": 2 more, the last in packet 3\n"), "{}", run.out);
}

#[test]
fn findings_are_left_out_by_identifier_and_severity() {
    let zero = |psn| request(psn, &[("pds.spdcid", json!(0))]);
    let path = file("check-ignored.hex", lines(&[zero(5), odd()]).as_bytes());
    let found = |more: &[&str]| {
        let run = uet(&[&["check", &path], more].concat());
        let errors = run.out.matches(" error WIRE-PDCID-001 ").count();
        (run.code, errors, run.out.matches(" warning WIRE-RSVD-001 ").count())
    };
    assert_eq!(found(&[]), (1, 1, 1));
    assert_eq!(found(&["--severity", "error"]), (1, 1, 0));
    assert_eq!(found(&["--ignore", "WIRE-PDCID-001"]), (0, 0, 1));
    assert_eq!(found(&["--ignore", "WIRE-"]), (0, 0, 0));
    let run = uet(&["check", "--ignore", "WIRE-", &path]);
    assert!(run.out.contains("2 findings left out by --ignore or --severity\n"), "{}", run.out);
    for list in ["", "WIRE-,"] {
        let run = uet(&["check", "--ignore", list, &path]);
        assert!(run.code == 2 && run.err.contains("an empty identifier"), "{list}: {}", run.err);
    }
    let run = uet(&["check", "--ignore", "WIRE-PDCIT-001", &path]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("WIRE-PDCIT-001") && run.err.contains("WIRE-PDCID-001"), "{}", run.err);
}

#[test]
fn finding_in_one_of_several_files_names_it() {
    let clean = file("check-first.hex", lines(&[request(5, &[]), request(6, &[])]).as_bytes());
    let again = request(5, &[("pds.clear_psn_offset", json!(-3))]);
    let second = file("check-second.hex", lines(&[request(5, &[]), again]).as_bytes());
    let run = uet(&["check", &clean, &second]);
    let found = format!("{second}:\n     2 error PDS-RTO-005 10.0.0.1: sent again without retx (packet 1)\n");
    assert!(run.out.starts_with(&found), "{}", run.out);
    let run = uet(&["check", "--format", "json", &clean, &second]);
    let line: Value = serde_json::from_str(run.out.lines().next().unwrap()).unwrap();
    assert_eq!([&line["file"], &line["number"], &line["with"]], [&json!(second), &json!(2), &json!(1)]);
}

#[test]
fn unreadable_input_is_reported() {
    let run = uet(&["check", "no-such-file"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.contains("no-such-file"), "{}", run.err);
}

#[test]
fn a_finding_of_a_single_packet_is_said_once() {
    let path = file("check-once.hex", lines(&[odd()]).as_bytes());
    let run = uet(&["check", &path]);
    let line = run.out.lines().next().unwrap();
    assert!(line.contains(" warning WIRE-RSVD-001 ") && line.matches("WIRE-RSVD-001").count() == 1, "{line}");
    assert_eq!(line.matches("warning").count(), 1, "{line}");
    let run = uet(&["check", "--format", "json", &path]);
    let line: Value = serde_json::from_str(run.out.lines().next().unwrap()).unwrap();
    assert!(!line["message"].as_str().unwrap().contains("WIRE-"), "{line}");
}

#[test]
fn closed_output_keeps_the_verdict() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let mut frames: Vec<_> = (5..6000).map(|psn| request(psn, &[("ses.version", json!(1))])).collect();
    frames.push(request(4, &[("pds.spdcid", json!(0))]));
    let path = file("check-long.hex", lines(&frames).as_bytes());
    let mut uet = Command::new(env!("CARGO_BIN_EXE_uet"));
    let uet = uet.args(["check", "--limit", "100000", &path]).stdout(Stdio::piped());
    let mut child = uet.spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    drop(out);
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn interface_options_are_refused_with_files() {
    for option in ["--seconds", "--count"] {
        let run = uet(&["check", option, "5", "x.pcap"]);
        assert_eq!(run.code, 2);
        assert!(run.err.contains("cannot be used with"), "{}", run.err);
    }
}

#[test]
fn annotate_writes_findings_as_packet_comments() {
    let again = request(5, &[("pds.clear_psn_offset", json!(-3))]);
    let path = file("annotate-in.hex", lines(&[request(5, &[]), again]).as_bytes());
    let out = file("annotated.pcapng", b"");
    let run = uet(&["check", "--annotate", &out, &path]);
    assert_eq!(run.code, 1, "{}", run.err);
    let bytes = std::fs::read(&out).unwrap();
    let comment = "error PDS-RTO-005: sent again without retx (packet 1)";
    assert_eq!(String::from_utf8_lossy(&bytes).matches(comment).count(), 1);
    // The packets are the same, and so are the findings.
    let again = uet(&["check", &out]);
    assert_eq!((again.code, again.out), (1, run.out));
    let tshark = std::process::Command::new("tshark");
    let tshark = { tshark }.args(["-r", &out, "-T", "fields", "-e", "frame.comment"]).output();
    if let Ok(shown) = tshark.map(|ended| String::from_utf8_lossy(&ended.stdout).into_owned()) {
        assert_eq!(shown.trim(), comment);
    }

    let same = uet(&["check", "--annotate", &out, &out]);
    assert!(same.code == 2 && same.err.contains("would replace its input"), "{}", same.err);
    let nowhere = uet(&["check", "--annotate", "/nowhere/out.pcapng", &path]);
    assert!(nowhere.code == 2 && nowhere.err.contains("/nowhere/out.pcapng"), "{}", nowhere.err);
    let behind = file("behind-ip.hex", b"380000000001200380014001\n");
    let run = uet(&["check", "--annotate", &out, &behind]);
    assert!(run.code == 0 || run.code == 1, "{}", run.err);
}

#[test]
fn the_suite_breaks_requirements_on_purpose() {
    let all = file("on-purpose.pcapng", b"");
    assert_eq!(uet(&["run", "--group", "robustness", "--max-instances", "1", "--capture", &all]).code, 0);
    let run = uet(&["check", "--limit", "1000", &all]);
    assert_eq!(run.code, 0, "no finding is about the device: {}", run.out);
    assert!(run.out.contains("; on purpose: the suite tests robustness/"), "{}", run.out);

    // The device is to blame for its own faults, in the capture of a rule too.
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("on-purpose");
    let _ = std::fs::remove_dir_all(&directory);
    let directory = directory.to_str().unwrap();
    let fault = ["--fault", "fills-reserved-bits", "--id", "encoding/ack", "--max-instances", "1"];
    assert_eq!(uet(&[&["run", "--capture", directory], &fault[..]].concat()).code, 1);
    let capture = std::fs::read_dir(directory).unwrap().next().unwrap().unwrap().path();
    let run = uet(&["check", capture.to_str().unwrap()]);
    assert!(
        run.out.contains(" WIRE-RSVD-001 10.0.0.1: ") || run.out.contains(" WIRE-RSVD-001 fd00:"),
        "{}",
        run.out
    );
    assert!(!run.out.contains("on purpose"), "{}", run.out);
}

/// Writes a capture of the suite on this device.
fn of_suite(name: &str, device: &str, frames: &[Vec<u8>]) -> String {
    let path = file(name, b"");
    let origin = Origin { instance: None, device: vec![device.parse().unwrap()] };
    let out = std::fs::File::create(&path).unwrap();
    let mut out = CaptureWriter::commented(out, LinkType::Ethernet, "uet", &origin.comment()).unwrap();
    for frame in frames {
        out.write(&CapturedFrame::new(Duration::ZERO, frame)).unwrap();
    }
    out.finish().unwrap();
    path
}

#[test]
fn comment_excuses_only_packets_to_a_device_that_answers() {
    let device = "10.0.1.12";
    let third = common::frame(&json!({
        "src": "10.0.0.9", "dst": "10.0.0.8", "fields": {"pds.type": 2, "pds.psn": 9, "pds.clear_psn_offset": -1},
        "error": {"layer": "pds", "present": 8}
    }));
    let cases: [(&str, Vec<Vec<u8>>, usize, u64); 4] = [
        ("192.0.2.1", vec![malformed(), ack()], 1, 0),
        (device, vec![malformed(), malformed()], 2, 0),
        (device, vec![malformed(), ack(), malformed()], 0, 2),
        (device, vec![malformed(), ack(), third], 1, 1),
    ];
    for (device, frames, errors, excused) in cases {
        let path = of_suite("comment.pcapng", device, &frames);
        let run = uet(&["check", "--format", "json", &path]);
        assert_eq!(run.code, i32::from(errors > 0), "{}", run.out);
        assert_eq!(run.out.matches(r#""severity":"error""#).count(), errors, "{}", run.out);
        assert!(run.out.contains(&format!(r#""excused":{excused}}}"#)), "{}", run.out);
        let told = uet(&["check", &path]).out;
        assert_eq!(told.contains("captured by the suite: 2 errors are notes, "), excused == 2);
        assert_eq!(told.contains("captured by the suite: 1 error is a note, "), excused == 1);
    }
}

#[test]
fn a_contradiction_that_the_suite_may_have_caused_is_a_note() {
    // Both packets open one context, and contradict each other in its first PSN.
    let opening = |psn: u32| {
        let fields = json!({
            "pds.type": 2, "pds.flags.syn": 1, "pds.clear_psn_offset": -1, "pds.psn": psn, "pds.spdcid": 0x4001,
            "pds.psn_offset": 0, "ses.opcode": 1, "ses.som": 1, "ses.eom": 1, "ses.message_id": 1,
            "ses.job_id": 101, "ses.request_length": 64
        });
        common::answered(fields, 64)
    };
    for (first, severity) in [(common::write(), "error"), (malformed(), "note")] {
        let path = of_suite("consequence.pcapng", "10.0.1.12", &[first, opening(333), opening(334)]);
        let run = uet(&["check", &path]);
        assert!(run.out.contains(&format!(" {severity} PDS-SYN-001 10.0.1.12: ")), "{}", run.out);
    }
}

#[test]
fn each_capture_is_judged_for_itself() {
    let suite = of_suite("suite.pcapng", "10.0.1.12", &[malformed(), ack()]);
    let plain = file("beside-suite.pcap", &common::capture::simple(&[malformed(), ack()]));
    assert_eq!(uet(&["check", &suite]).code, 0);
    for order in [[&suite, &plain], [&plain, &suite]] {
        let run = uet(&["check", order[0], order[1]]);
        assert_eq!((run.code, run.out.matches(" error malformed ").count()), (1, 1), "{}", run.out);
    }
    // Packets of two captures are no retransmissions of each other.
    let written = file("written.pcap", &common::capture::simple(&[write()]));
    let run = uet(&["check", &written, &written]);
    assert_eq!(run.code, 0, "{}", run.out);
    assert!(run.out.contains("2 contexts, 0 findings"), "{}", run.out);
}

#[test]
fn replies_without_a_request_are_counted() {
    let path = file("replies.pcap", &common::capture::simple(&[ack(), ack()]));
    for command in ["check", "stats"] {
        let run = uet(&[command, &path]);
        assert_eq!(run.code, 0, "{}", run.out);
        assert!(run.out.contains("2 replies belong to no request of the capture\n"), "{}", run.out);
        let out = uet(&[command, "--format", "json", &path]).out;
        let summary: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
        assert_eq!(summary["unmatched"], 2, "{summary}");
    }
}

/// An ACK of three packets, of which the capture has one. Its statistics state drops twice: the sum so far counts.
#[test]
fn packets_that_a_capture_lacks_are_counted() {
    for order in [Order::Little, Order::Big] {
        let statistics = |dropped: u64| {
            let dropped = match order {
                Order::Big => dropped.to_be_bytes(),
                Order::Little => dropped.to_le_bytes(),
            };
            let options = [&order.two(5)[..], &order.two(8), &dropped, &[0; 4]].concat();
            block(order, 5, &[&[0u8; 12][..], &options].concat())
        };
        let packet = |bytes: Vec<u8>| enhanced(order, 0, 0, bytes.len(), &bytes);
        let blocks = [
            section(order),
            interface(order, 1, None, None),
            packet(write()),
            statistics(3),
            packet(ack()),
            statistics(4),
        ];
        let path = file("lacking.pcapng", &blocks.concat());
        for command in ["check", "stats"] {
            let out = uet(&[command, &path]).out;
            assert!(out.contains("4 packets dropped while capturing, as the capture states\n"), "{out}");
            let first = if command == "check" { "; packet 2 is the first such ACK" } else { "" };
            let unseen = format!("2 packets acknowledged, but not in the capture{first}\n");
            assert!(out.contains(&unseen), "{out}");
            let out = uet(&[command, "--format", "json", &path]).out;
            let summary: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
            assert_eq!((&summary["dropped"], &summary["unseen"]), (&json!(4), &json!(2)), "{summary}");
        }
    }
}
