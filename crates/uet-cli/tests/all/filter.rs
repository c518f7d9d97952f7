//! `uet decode --filter`, and captures of the packets that it selects.

use crate::common::{file, lines, odd, uet, write};
use serde_json::Value;

fn learn(name: &str) -> String {
    format!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpora/captures/learn/{}.pcapng"), name)
}

/// Decodes a capture as JSON; leaves out the packet numbers, which a selection changes.
fn packets(args: &[&str], capture: &str) -> Vec<Value> {
    let run = uet(&[&["decode", "--format", "json"], args, &[capture]].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    let packet = |line| {
        let mut packet: Value = serde_json::from_str(line).unwrap();
        packet.as_object_mut().unwrap().remove("number");
        packet
    };
    run.out.lines().map(packet).collect()
}

#[test]
fn filter_selects_by_fields() {
    let loss = &learn("loss");
    let retransmitted = packets(&["--filter", "pds.psn > 5 && pds.flags.retx"], loss);
    let expected =
        |packet: &Value| packet["fields"]["pds.psn"].is_u64() && packet["fields"]["pds.flags.retx"] == 1;
    let all = packets(&[], loss);
    assert_eq!(retransmitted, all.iter().filter(|packet| expected(packet)).cloned().collect::<Vec<_>>());
    assert_eq!(retransmitted.len(), 2);
    let both = packets(&["--filter", "pds.flags.retx", "--packets", "1-20"], loss);
    assert!(both.len() < 2, "all filters must match: {both:?}");
}

#[test]
fn a_capture_of_the_selected_packets_has_the_same_packets() {
    let out = file("some.pcapng", b"");
    for (capture, condition) in [("loss", "ses.opcode"), ("incast", "ip.ecn == 3"), ("secured", "tss.sdi")] {
        let capture = &learn(capture);
        let run = uet(&["decode", "--filter", condition, "--format", "pcapng", "-o", &out, capture]);
        assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (0, "", ""), "{condition}");
        let wanted = packets(&["--filter", condition], capture);
        assert!(!wanted.is_empty(), "{condition}");
        let written = packets(&[], &out);
        let fields =
            |packets: &[Value]| packets.iter().map(|packet| packet["fields"].clone()).collect::<Vec<_>>();
        match condition {
            // The new capture has no keys, so its packets stay secured.
            "tss.sdi" => assert!(written.iter().all(|packet| packet["fields"].get("pds.type").is_none())),
            _ => assert_eq!(fields(&written), fields(&wanted)),
        }
        assert_eq!(written.len(), wanted.len());
    }
    let same = uet(&["decode", "--format", "pcapng", "-o", &out, &out]);
    assert!(same.code == 2 && same.err.contains("--output would replace its input"), "{}", same.err);
}

#[test]
fn a_capture_of_all_packets_keeps_its_comments() {
    let suite = file("suite.pcapng", b"");
    assert_eq!(uet(&["run", "--group", "robustness", "--capture", &suite]).code, 0);
    let out = file("suite-uet.pcapng", b"");
    let run = uet(&["decode", "--format", "pcapng", "-o", &out, &suite]);
    assert!(run.code < 2, "{}", run.err);
    let [before, after] = [&suite, &out].map(|capture| uet(&["check", "--limit", "9999", capture]));
    assert_eq!((before.code, before.out), (after.code, after.out));
}

/// The packets that are left out could explain whatever the others lack.
#[test]
fn packets_of_a_selection_are_judged_by_themselves() {
    let out = file("selection.pcapng", b"");
    for filter in ["!ses.som", "pds.cack_psn", "payload"] {
        let run = uet(&["decode", "--filter", filter, "--format", "pcapng", "-o", &out, &learn("loss")]);
        assert!(run.code < 2, "{}", run.err);
        let check = uet(&["check", &out]);
        assert!(check.code == 0 && check.out.contains(" 0 findings"), "{filter}: {}", check.out);
        assert!(check.err.contains("each one is judged by itself"), "{}", check.err);
    }
    // A selection of a selection is one.
    let again = file("selection-again.pcapng", b"");
    assert!(uet(&["decode", "--format", "pcapng", "-o", &again, &out]).code < 2);
    assert!(uet(&["check", &again]).err.contains("each one is judged by itself"));
    let wrong = file("selection.hex", lines(&[write(), odd()]).as_bytes());
    let run = uet(&["decode", "--finding", "warning", "--format", "pcapng", "-o", &out, &wrong]);
    assert!(run.code < 2, "{}", run.err);
    let check = uet(&["check", &out]);
    assert!(check.out.contains("1 packet, ") && check.out.contains("WIRE-RSVD-001"), "{}", check.out);
}

#[test]
fn findings_of_several_packets_select_none() {
    let run = uet(&["decode", "--finding", "SES-CUT-002", &learn("loss")]);
    assert!(run.code == 2 && run.err.contains("uet check --annotate"), "{}", run.err);
    let run = uet(&["decode", "--finding", "malformed", "--format", "summary", &learn("loss")]);
    assert_eq!((run.code, run.err.as_str()), (0, "uet: 0 of 26 packets match\n"));
    let run = uet(&["decode", "--finding", "warning,error", &learn("loss")]);
    let hint = "; findings over several packets need `uet check`";
    assert_eq!((run.code, run.err), (0, format!("uet: 0 of 26 packets match{hint}\n")));
    let run = uet(&["decode", "--packets", "1000-", &learn("loss")]);
    assert_eq!((run.code, run.err.as_str()), (0, "uet: 0 of 26 packets match\n"));
}

#[test]
fn nothing_that_matches_is_reported() {
    let run = uet(&["decode", "--filter", "pds.psn < 5 && pds.psn > 5", &learn("loss")]);
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (0, "", "uet: 0 of 26 packets match\n"));
}

#[test]
fn conditions_with_errors_are_refused() {
    let input = file("one.hex", lines(&[write()]).as_bytes());
    for (condition, expected) in [
        ("pds.pns > 5", "there is no field 'pds.pns'; did you mean pds.psn"),
        ("pds.psn >", "expected a value at character 10, seen the end"),
    ] {
        let run = uet(&["decode", "--filter", condition, &input]);
        assert!(run.code == 2 && run.err.contains(expected), "{}", run.err);
    }
    let run = uet(&["decode", "--interface", "lo", &input]);
    assert!(run.code == 2 && run.err.contains("cannot be used with"), "{}", run.err);
    let run = uet(&["decode", "--interface", "no-such-interface"]);
    assert!(run.code == 2 && run.err.contains("no-such-interface"), "{}", run.err);
}
