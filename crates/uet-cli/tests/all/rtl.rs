//! Devices with their own time, as docs/rtl.md describes them. The suite reaches them by UDP sockets.
#![cfg(target_os = "linux")]

use crate::common;

use common::uet;
use serde_json::Value;
use std::time::{Duration, Instant};

const NIC: &str = concat!(
    "exec:",
    env!("CARGO_BIN_EXE_uet"),
    " emulate --listen 127.0.0.1:0 --virtual-time --control stdio"
);

const BENCH: &str =
    concat!("exec:python3 ", env!("CARGO_MANIFEST_DIR"), "/../uet-control/python/rtl_bench/python_nic.py");

fn run(device: &str, more: &[&str]) -> (i32, Value) {
    let run = uet(&[&["run", "--format", "json", "--dut", device], more].concat());
    let result = serde_json::from_str(&run.out);
    (run.code, result.unwrap_or_else(|error| panic!("{error}: {}{}", run.out, run.err)))
}

/// Verdicts, counts and times of all rules.
fn rules(result: &Value) -> &[Value] {
    result["rules"].as_array().expect("rules")
}

#[test]
fn every_rule_holds_over_sockets_in_virtual_time() {
    let (code, result) = run(NIC, &[]);
    let bad = |rule: &&Value| !["pass", "skipped"].contains(&rule["verdict"].as_str().unwrap());
    assert_eq!((code, rules(&result).iter().filter(bad).collect::<Vec<_>>()), (0, vec![]));
    let passed = rules(&result).iter().filter(|rule| rule["verdict"] == "pass").count();
    assert!(passed >= 980, "{passed} passed");
}

/// Verdicts, reasons and times.
#[test]
fn runs_over_sockets_in_virtual_time_are_equal() {
    let groups = ["--group", "ack", "--group", "retransmit", "--group", "nscc", "--group", "rccc"];
    let [first, second] = [run(NIC, &groups), run(NIC, &groups)].map(|(_, result)| rules(&result).to_vec());
    assert_eq!(first, second);
}

#[test]
fn long_timeouts_take_no_real_time() {
    let begun = Instant::now();
    let (code, result) = run(NIC, &["--id", "retransmit-timer/unlimited"]);
    assert_eq!(code, 0, "{result}");
    let waited: u64 = rules(&result).iter().map(|rule| rule["duration_ns"].as_u64().unwrap()).sum();
    let waited = Duration::from_nanos(waited);
    assert!(
        waited > Duration::from_secs(2) && begun.elapsed() < waited / 2,
        "{waited:?} in {:?}",
        begun.elapsed()
    );
}

#[test]
fn bench_of_the_documentation_passes() {
    for group in ["ack", "retransmit"] {
        let (code, result) = run(BENCH, &["--group", group]);
        assert_eq!(code, 0, "{result}");
        let passed = rules(&result).iter().filter(|rule| rule["verdict"] == "pass");
        assert!(passed.count() >= 5, "{group}");
    }
}
