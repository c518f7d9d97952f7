//! `uet run`, against the NIC that is built in.

mod common;

use common::uet;
use serde_json::Value;

#[test]
fn a_line_for_each_case_and_a_summary() {
    let run = uet(&["run", "--group", "ack"]);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    let mut lines = run.out.lines();
    let first: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(first, ["ack/asked-for", "pass"]);
    assert!(lines.next_back().unwrap().ends_with("seed 1)"), "{}", run.out);
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let result = |seed: &str| {
        let run = uet(&["run", "--id", "PDS-ACK-004", "--seed", seed, "--format", "json"]);
        assert_eq!(run.code, 0, "{}", run.err);
        serde_json::from_str::<Value>(&run.out).unwrap()
    };
    assert_eq!(result("5"), result("5"));
    assert_ne!(result("5")["cases"][0]["ladder"], result("6")["cases"][0]["ladder"]);
    assert_eq!(result("5")["cases"][0]["verdict"], "pass");
    assert!(result("5")["device"].as_str().unwrap().starts_with("uet-emulator "));
}

#[test]
fn a_device_that_cannot_be_heard_leaves_all_open() {
    let run = uet(&["run", "--id", "ack/asked-for", "--impair", "drop from 10.0.0.1"]);
    assert_eq!(run.code, 3);
    assert!(
        run.out.contains("inconclusive") && run.out.contains("RUD_REQ"),
        "with what had passed: {}",
        run.out
    );
    assert!(run.out.contains("again: uet run --id ack/asked-for --seed 1"), "{}", run.out);
}

#[test]
fn what_is_asked_for_must_exist() {
    for (args, said) in [
        (["--id", "ack/asked-fro"], "did you mean ack/asked-for?"),
        (["--group", "nonsense"], "there is no group 'nonsense'"),
        (["--impair", "drop request x"], "at 'x' (character 14): expected a percentage"),
        (["--timeout-scale", "NaN"], "a number from"),
    ] {
        let run = uet(&[&["run"], &args[..]].concat());
        assert_eq!(run.code, 2, "{args:?}");
        assert!(run.err.contains(said), "{args:?}: {}", run.err);
    }
}

#[test]
fn what_passed_can_be_looked_at() {
    let file = common::file("run.pcapng", b"");
    let run = uet(&["run", "--id", "ack/asked-for", "--capture", &file]);
    assert_eq!(run.code, 0, "{}", run.err);
    let run = uet(&["decode", "--format", "json", &file]);
    assert_eq!(run.code, 0, "no packet of a case that sends good ones is bad: {}", run.out);
    let packets: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> =
        packets.iter().map(|packet| packet["names"]["pds.type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["RUD_REQ", "ACK_CC", "RUD_REQ", "ACK_CC"]);
    assert_eq!(packets[1]["fields"]["ip.dscp"], 8, "ACKs go in the high place of their class");
}
