//! The suite against an independent device: the Python example that docs/adapter.md explains.
#![cfg(target_os = "linux")]

use crate::common;

use common::uet;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::resume_unwind;
use std::process::Command;

const DEVICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../uet-control/python/example_device/device.py");

/// Python is slow, and the machine may be busy.
const PATIENCE: &str = "5";

fn run(more: &[&str], bug: Option<&str>) -> (i32, Value) {
    run_with(PATIENCE, more, bug)
}

/// Runs a task for each item at once: these runs wait for Python and for the clock.
fn at_once<I: Send, O: Send>(items: impl IntoIterator<Item = I>, task: impl Fn(I) -> O + Sync) -> Vec<O> {
    std::thread::scope(|scope| {
        let task = &task;
        let tasks: Vec<_> = items.into_iter().map(|item| scope.spawn(move || task(item))).collect();
        tasks.into_iter().map(|task| task.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

fn run_with(patience: &str, more: &[&str], bug: Option<&str>) -> (i32, Value) {
    let bug = bug.map_or_else(String::new, |bug| format!(" --bug {bug}"));
    let device = format!("exec:python3 {DEVICE}{bug}");
    let run =
        uet(&[&["run", "--format", "json", "--dut", &device, "--timeout-scale", patience], more].concat());
    let result = serde_json::from_str(&run.out);
    (run.code, result.unwrap_or_else(|error| panic!("{error}: {}{}", run.out, run.err)))
}

fn rules<'a>(result: &'a Value, verdict: &str) -> Vec<&'a Value> {
    let all = result["rules"].as_array().expect("rules").iter();
    all.filter(|rule| rule["verdict"] == verdict).collect()
}

/// Parts of the suite that run at once.
const SHARDS: usize = 6;

/// Every rule passes or is skipped.
#[test]
fn it_passes_the_rules_for_a_write_device() {
    let results = at_once(1..=SHARDS, |n| run_with("2", &["--shard", &format!("{n}/{SHARDS}")], None).1);
    let bad = results.iter().flat_map(|result| result["rules"].as_array().unwrap());
    for rule in bad.filter(|rule| !["pass", "skipped"].contains(&rule["verdict"].as_str().unwrap())) {
        // A busy machine may have been slow once.
        let (code, again) = run(&["--id", rule["id"].as_str().unwrap()], None);
        assert_eq!(code, 0, "{}", again["rules"][0]);
    }
    for result in &results {
        assert_eq!(
            result["packets"]["findings"],
            serde_json::json!([]),
            "each of its packets is well formed"
        );
    }
    let all = |verdict| results.iter().flat_map(move |result| rules(result, verdict));
    let skips: BTreeSet<&str> = all("skipped").map(|rule| rule["id"].as_str().unwrap()).collect();
    let predicted = predicted_skips();
    let wrong: Vec<_> = predicted.iter().filter(|(id, _)| !skips.contains(id.as_str())).collect();
    assert!(wrong.is_empty(), "predicted, but not skipped: {wrong:?}");
    assert!(predicted.len() + 15 > skips.len(), "{} of {} skips are predicted", predicted.len(), skips.len());
    let passed = all("pass").count();
    assert!(passed >= 330, "{passed} passed");
    for skipped in all("skipped") {
        let reason = skipped["reason"].as_str().unwrap();
        let known = [
            "does not",
            "wait for their responses",
            "unsupported",
            "the link ",
            "sends no",
            "and does nothing else",
            "tells no",
            "supports only",
            "chooses the header form itself",
        ];
        assert!(known.iter().any(|known| reason.contains(known)), "{}: {reason}", skipped["id"]);
    }
}

/// Returns the rules that `uet list` says will be skipped, with the reasons.
fn predicted_skips() -> BTreeMap<String, String> {
    let device = format!("exec:python3 {DEVICE}");
    let list = uet(&["list", "--format", "json", "--dut", &device]);
    assert_eq!(list.code, 0, "{}", list.err);
    let lines = list.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let skipped = |line: Value| Some((line["id"].as_str()?.to_owned(), line["skipped"].as_str()?.to_owned()));
    lines.filter_map(skipped).collect()
}

#[test]
fn doctor_and_list_predict_the_same_skips() {
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    predicted_skips().into_values().for_each(|reason| *reasons.entry(reason).or_default() += 1);
    let device = format!("exec:python3 {DEVICE}");
    let doctor = uet(&["doctor", "--format", "json", "--dut", &device]);
    let lines = doctor.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told =
        lines.filter(|line| line["check"] == "skipped").map(|line| line["what"].as_str().unwrap().to_owned());
    let told: Vec<String> = told.collect();
    assert_eq!(told.len(), reasons.len());
    for (reason, count) in &reasons {
        let said = format!("{count} skipped: {reason} (");
        assert!(told.iter().any(|line| line.starts_with(&said)), "{said} is missing: {told:#?}");
    }
    for learned in
        ["the device does not let 'idle_time' be set", "post: unsupported: plain writes by RUD only"]
    {
        assert!(reasons.contains_key(learned), "{learned}: {reasons:#?}");
    }
}

#[test]
fn profiles_and_statements_change_what_doctor_and_list_predict() {
    let device = format!("exec:python3 {DEVICE}");
    let statement = common::file("no-ecn.toml", b"disclaims = ['ecn']");
    let without = ["--statement", &statement, "--dut", &device];
    let doctor = uet(&[&["doctor"], &without[..]].concat()).out;
    assert!(doctor.contains("the device does not claim 'ecn'; rules about marks are skipped"), "{doctor}");
    let list = uet(&[&["list", "--id", "ack/mark"], &without[..]].concat()).out;
    assert!(list.contains("skipped: the device does not claim 'ecn'"), "{list}");
    let list = uet(&["list", "--id", "read/few-bytes", "--profile", "writes"]).out;
    assert!(list.contains("skipped: the device does not claim 'read'"), "{list}");
}

#[test]
fn each_of_its_bugs_breaks_the_requirement_that_it_names() {
    let list = Command::new("python3").args([DEVICE, "--list-bugs"]).output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    let bugs: Vec<&str> = list.lines().collect();
    assert!(bugs.len() >= 5);
    at_once(bugs, |line| {
        let (name, about) = line.split_once('\t').unwrap();
        let requirement = about.rsplit_once('(').unwrap().1.trim_end_matches(')');
        let (code, result) = run(&["--id", requirement], Some(name));
        let broken =
            rules(&result, "fail").into_iter().flat_map(|rule| rule["requirements"].as_array().unwrap());
        let broken: Vec<&Value> = broken.collect();
        assert!(code == 1 && broken.iter().any(|id| *id == requirement), "{name}: {code} {broken:?}");
    });
}

#[test]
fn doctor_predicts_skips_and_no_failures_about_marks() {
    let folder = DEVICE.rsplit_once('/').unwrap().0;
    let device = format!(r#"exec:PYTHONPATH={folder} python3 -c "$(sed 's/, "ecn"//' {DEVICE})""#);
    let run = uet(&["doctor", "--dut", &device]);
    let said = "the device does not claim 'ecn'; rules about marks are skipped";
    assert!(run.out.contains(said), "{}{}", run.out, run.err);
}

#[test]
fn doctor_says_which_claim_shows_entropy_values() {
    let folder = DEVICE.rsplit_once('/').unwrap().0;
    let device = format!(r#"exec:PYTHONPATH={folder} python3 -c "$(sed 's/, "entropy"//' {DEVICE})""#);
    let run = uet(&["doctor", "--dut", &device]);
    let said = "entropy values are not seen; if the source ports of the device tell them, claim 'entropy'";
    assert!(run.out.contains(said), "{}{}", run.out, run.err);
}

/// The second packet of the message is written over the first one, so the request for the first byte is shown.
#[test]
fn wrong_memory_shows_the_request_that_should_have_written_it() {
    let device = format!("exec:python3 {DEVICE} --bug wrong-place");
    let run = uet(&["run", "--dut", &device, "--id", "write/several-packets", "--timeout-scale", PATIENCE]);
    let marked = run.out.lines().find(|line| line.starts_with('>')).expect(&run.out);
    assert!(marked.contains("-->") && marked.contains("[SOM"), "{}", run.out);
}

#[test]
fn doctor_reads_back_what_it_writes() {
    let folder = DEVICE.rsplit_once('/').unwrap().0;
    // It reads only the begin of a large packet.
    let short =
        format!(r#"PYTHONPATH={folder} python3 -c "$(sed 's/recvmsg(65536/recvmsg(2000/' {DEVICE})""#);
    for (device, lines) in [
        (
            format!("python3 {DEVICE}"),
            &[
                "memory     ok       read_memory returns the 64 bytes of a write\n",
                "mtu        ok       a packet with the payload_mtu of 4096 bytes arrives\n",
            ][..],
        ),
        (
            format!("python3 {DEVICE} --bug places-nothing"),
            &["memory     broken   a write of 64 bytes is not read back: the write is acknowledged, but \
               read_memory returns 0x00 instead of 0x53 at byte 0; place the payload"],
        ),
        (
            short,
            &[
                "memory     ok       read_memory",
                "mtu        broken   a write with the payload_mtu of 4096 bytes is not read back: ",
            ],
        ),
    ] {
        let run = uet(&["doctor", "--dut", &format!("exec:{device}")]);
        for line in lines {
            assert!(run.out.contains(line), "{line}: {}{}", run.out, run.err);
        }
    }
}
