//! `uet fuzz` with devices in other processes.
#![cfg(target_os = "linux")]

use crate::common;

use common::nic::{Nic, counted};
use common::uet;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use uet_conformance::passive::Origin;

const UET: &str = env!("CARGO_BIN_EXE_uet");

/// A device that ends after so many requests of its control channel, however fast or slow the machine is.
fn ends_after(requests: u32, address: &str) -> String {
    format!(
        "n=0; while [ $n -lt {requests} ] && read -r line; do echo \"$line\"; n=$((n+1)); done | \
         {UET} emulate --control stdio --listen {address}:0"
    )
}

fn directory(name: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
    path.display().to_string()
}

#[test]
fn a_device_that_is_started_stands_it() {
    let device = format!("exec:{UET} emulate --control stdio --listen 127.0.0.31:0");
    let run = uet(&["fuzz", &device, "--cases", "30", "--format", "json"]);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    let run: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(run["cases"], 30);
    assert!(run["received"].as_u64() > Some(30), "{run}");
}

#[test]
fn device_without_control_channel_survives() {
    let nic = Nic::start("127.0.0.32", &[]);
    let run =
        uet(&["fuzz", &format!("udp://127.0.0.32:{}", nic.port()), "--local", "127.0.0.33", "--cases", "30"]);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    assert!(run.out.starts_with("nothing found in 30 cases"), "{}", run.out);
}

#[test]
fn a_device_that_ends_is_found_and_kept() {
    let keep = directory("fuzz-ends");
    let device = format!("exec:{}", ends_after(40, "127.0.0.34"));
    let run = uet(&["fuzz", &device, "--keep", &keep]);
    assert_eq!(run.code, 1, "{}{}", run.out, run.err);
    assert!(run.out.starts_with("crash after case"), "{}", run.out);
    // The first report is on standard error, before the finding is minimized.
    let early = run.err.lines().find(|line| line.starts_with("uet: crash after case")).unwrap();
    assert!(early.contains("; minimizing; saved for now: ") && early.ends_with(".json"), "{early}");
    let cause = run.out.lines().nth(1).unwrap();
    assert!(
        ["    step 1", "    packet ", "    no step "].iter().any(|start| cause.starts_with(start)),
        "{cause}"
    );
    assert!(run.out.contains(".pcapng\n"), "{}", run.out);
    let files: Vec<_> = std::fs::read_dir(&keep).unwrap().map(|entry| entry.unwrap().path()).collect();
    let of =
        |end: &str| files.iter().find(|path| path.extension().unwrap() == end).unwrap().display().to_string();
    let summary = uet(&["decode", "--format", "summary", &of("pcapng")]);
    assert!(summary.out.lines().count() > 1, "{}", summary.err);
    let is_changed = cause.starts_with("    packet ");
    let capture = std::fs::read(of("pcapng")).unwrap();
    assert_eq!(capture.windows(9).any(|text| text == b"changed: "), is_changed, "{cause}");
    // The capture has the times of the clock, and the report has the command that plays the finding.
    assert!(!summary.out.contains("1970-"), "{}", summary.out);
    let again = run.out.lines().find_map(|line| line.trim().strip_prefix("again: uet fuzz ")).unwrap();
    assert!(again.ends_with(&format!("--seed=1 --again {}", of("json"))), "{again}");
    assert!(again.starts_with("'exec:n=...; while [ $n -lt 40 ]"), "{again}");
    assert!(run.out.contains(" cases/s)"), "{}", run.out);

    // A device that does not crash survives the saved findings.
    let device = format!("exec:{UET} emulate --control stdio --listen 127.0.0.34:0");
    let run = uet(&["fuzz", &device, "--again", &of("json")]);
    assert_eq!((run.code, run.out.trim()), (0, "the finding was not reproduced"), "{}", run.err);
}

#[test]
fn leak_of_the_example_device_needs_no_case() {
    let keep = directory("fuzz-leak");
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../uet-control/python/example_device/device.py");
    let device = format!("exec:python3 {program} --bug stays-open --listen 127.0.0.40:0");
    let run = uet(&["fuzz", &device, "--keep", &keep, "--timeout-scale", "5", "--format", "json"]);
    assert_eq!(run.code, 1, "{}{}", run.out, run.err);
    assert!(run.err.contains("uet: leak before the first case: "), "{}", run.err);
    let run: Value = serde_json::from_str(&run.out).unwrap();
    let finding = &run["findings"][0];
    assert_eq!(run["cases"], 0, "{run}");
    assert_eq!(finding["case"], 0, "{run}");
    assert_eq!(finding["reproduced"], true, "{run}");
    assert!(finding["not_minimized"].is_null(), "{run}");
    assert!(Path::new(&format!("{keep}/leak-1-0.json")).exists());
    // Errors of the fuzzer in its capture are notes.
    let capture = std::fs::read(format!("{keep}/leak-1-0.pcapng")).unwrap();
    let origin = Origin { instance: None, device: vec![[127, 0, 0, 40].into()] }.comment();
    assert!(capture.windows(origin.len()).any(|text| text == origin.as_bytes()));
}

#[test]
fn findings_are_reported_at_once_and_a_signal_ends_the_run() {
    let keep = directory("fuzz-signal");
    let device = format!("exec:{}", ends_after(40, "127.0.0.38"));
    let mut fuzz = Command::new(UET)
        .args(["fuzz", &device, "--keep", &keep, "--seconds", "600", "--findings", "600"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(fuzz.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with("crash after case"));
    let kept = lines.by_ref().find_map(|line| Some(line.trim().strip_prefix("saved: ")?.to_owned())).unwrap();
    assert!(Path::new(&kept).exists());
    common::signal(fuzz.id(), "-INT");
    let last = lines.last().unwrap();
    assert!(last.contains(" finding") && last.contains(" cases: "), "{last}");
    assert_eq!(fuzz.wait().unwrap().code(), Some(1));
}

#[test]
fn unsaved_findings_are_reported() {
    // The program reports the error before it starts anything.
    let file = common::file("fuzz-no-directory", b"");
    let run = uet(&["fuzz", "exec:exit 3", "--keep", &format!("{file}/findings")]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.contains("fuzz-no-directory/findings: Not a directory"), "{}", run.err);

    // A later failure does not end the run. This device puts a file in place of the directory, and ends.
    let keep = directory("fuzz-lost");
    let device = format!("exec:touch {keep}; {}", ends_after(40, "127.0.0.39"));
    let run = uet(&["fuzz", &device, "--keep", &keep]);
    assert_eq!(run.code, 1, "{}{}", run.out, run.err);
    assert!(run.out.starts_with("crash after case"), "{}", run.out);
    assert!(run.out.contains("not saved: {\"trouble\":\"crash\""), "{}", run.out);
    assert!(run.err.contains("fuzz-lost: "), "{}", run.err);
}

#[test]
fn nothing_is_left_where_nothing_is_found() {
    let keep = directory("fuzz-nothing");
    let run = uet(&["fuzz", "--cases", "3", "--keep", &format!("{keep}/deep/er")]);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    assert!(!Path::new(&keep).exists());
}

#[test]
fn a_device_that_is_gone_is_brought_back() {
    let keep = directory("fuzz-restart");
    let nic = Nic::start("127.0.0.35", &[]);
    let place = format!("127.0.0.35:{}", nic.port());
    let restart = format!("exec {UET} emulate --listen {place}");
    // The target is absent until the restart; afterward the fault is gone and the fuzzer continues.
    let (id, mut suite) = (nic.id(), nic.connect());
    let killer = std::thread::spawn(move || {
        // The requests before the first case are fewer, all cases have many more.
        counted(&mut suite, |counted| counted.received >= 30);
        common::signal(id, "-KILL");
    });
    let run = uet(&[
        "fuzz",
        &format!("udp://{place}"),
        "--local",
        "127.0.0.36",
        "--restart",
        &restart,
        "--keep",
        &keep,
        "--findings",
        "2",
        "--cases",
        "200",
    ]);
    killer.join().unwrap();
    assert_eq!(run.code, 1, "{}{}", run.out, run.err);
    let why = "not minimized: it was not reproduced";
    assert!(run.out.contains("hang after case") && run.out.contains(why), "{}", run.out);
    assert!(run.out.contains("1 finding in 200 cases"), "it goes on: {}{}", run.out, run.err);
}

#[test]
fn foreign_targets_are_refused() {
    // A documentation address: it has no host, and nothing is sent.
    let run = uet(&["fuzz", "udp://192.0.2.1:4793", "--local", "127.0.0.37"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("--i-own-this-target"), "{}", run.err);
    // The refusal comes before any other complaint, so that nobody mends the rest in vain.
    for more in [&[][..], &["--control", "127.0.0.1:9"]] {
        let run = uet(&[&["fuzz", "udp://192.0.2.1:4793"], more].concat());
        assert_eq!(run.code, 2);
        assert!(
            run.err.contains("192.0.2.1 is neither") && run.err.contains("--i-own-this-target"),
            "{}",
            run.err
        );
    }
}

const CAPTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpora/captures/learn/loss.pcapng");

#[test]
fn unusable_targets_are_reported() {
    let capture = common::file("crash.pcapng", &[0xff]);
    common::file("crash.json", b"{}");
    for (args, said) in [
        (&["udp://127.0.0.1:9"][..], "a plain request gets no answer"),
        (&["udp://127.0.0.1"], "expected udp://HOST:PORT"),
        (&["embedded", "--restart", "true"], "the argument DEVICE is missing"),
        (&["exec:exit 3"], "the device's program ended"),
        (&["--again", "/nonexistent"], "/nonexistent"),
        (&["--again", CAPTURE], "; expected a file such as findings/crash-1-63.json, as `uet fuzz` saves it"),
        (&["--again", &capture], "crash.pcapng: this is no saved finding (JSON): use the file beside it, "),
    ] {
        let run = uet(&[&["fuzz"], args].concat());
        assert_eq!(run.code, 2, "{args:?}: {}{}", run.out, run.err);
        assert!(run.err.contains(said), "{args:?}: {}", run.err);
    }
}
