//! `uet interop`: each implementation is a process of its own on loopback.
#![cfg(target_os = "linux")]

use crate::common;

use common::{file, uet};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

const UET: &str = env!("CARGO_BIN_EXE_uet");
const EXAMPLE: &str =
    concat!("exec:python3 ", env!("CARGO_MANIFEST_DIR"), "/../uet-control/python/example_device/device.py");

/// Returns a NIC in a process of its own with these options.
fn nic(name: &str, last: u8, options: &str) -> String {
    let [.., high, low] = std::process::id().to_be_bytes();
    format!("{name}=exec:{UET} emulate --listen 127.{high}.{low}.{last}:0 --control stdio {options}")
}

/// Plays scenarios and returns the exit code and those that were played, each with its pair.
fn played(arguments: &[&str]) -> (i32, Vec<(String, Value)>) {
    let run = uet(&[&["interop", "--format", "json"], arguments].concat());
    let result: Value = serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{}{}", run.out, run.err));
    let of_pair = |pair: &Value| {
        let name = format!("{}:{}", pair["initiator"].as_str().unwrap(), pair["target"].as_str().unwrap());
        let scenarios = pair["scenarios"].as_array().unwrap().clone();
        scenarios.into_iter().map(move |one| (name.clone(), one)).collect::<Vec<_>>()
    };
    let all: Vec<_> = result["pairs"].as_array().unwrap().iter().flat_map(of_pair).collect();
    (run.code, all.into_iter().filter(|(_, one)| one["verdict"] != "skipped").collect())
}

#[test]
fn correct_implementations_agree() {
    let example = format!("py={EXAMPLE}");
    let devices = ["--device", "a=embedded", "--device", &example];
    let (code, all) = played(&[&devices[..], &["--id", "write[mode=rud,size=packet"]].concat());
    let bad: Vec<_> = all.iter().filter(|(_, one)| one["verdict"] != "pass").collect();
    assert_eq!((code, bad), (0, Vec::new()));
    assert!(all.len() > 12, "{} scenarios", all.len());

    let devices = ["--device", "a=embedded", "--device", "b=embedded", "--pair", "a:b"];
    let more =
        ["--id", "deferrable_send", "--id", "fetch_atomic", "--id", "write[mode=rudi", "--id", "datagram"];
    let (code, all) = played(&[&devices[..], &more].concat());
    let bad: Vec<_> = all.iter().filter(|(_, one)| one["verdict"] != "pass").collect();
    assert_eq!((code, bad), (0, Vec::new()));
}

/// The ACKs of several packets in flight name others than their cumulative PSN.
const PACKETS: &str =
    "write[mode=rud,size=packets,network=duplicates,congestion=rccc,course=closed-by-initiator]";

const LOST: &str = "write[mode=rud,size=packets,network=outage,congestion=default,course=plain]";

#[test]
fn a_fault_is_blamed_at_its_end() {
    const EMPTY: &str = "write[mode=rud,size=nothing,network=clean,congestion=default,course=plain]";
    const READ: &str = "read[mode=rud,size=packets,network=clean,congestion=nscc,course=two-jobs]";
    const OUTAGE: &str = "write[mode=rud,size=byte,network=outage,congestion=default,course=reused]";
    const LONE_READ: &str = "read[mode=rudi,size=byte,network=clean,congestion=default,course=reused]";
    const ONE_BY_ONE: &str = "write[mode=rud,size=byte,network=clean,congestion=default,course=reused]";
    const CONTEXTS: &str = "write[mode=rud,size=byte,network=clean,congestion=default,course=many-contexts]";
    const FETCH: &str = "fetch_atomic[mode=rud,size=byte,network=clean,congestion=default,course=plain]";
    const SECURED: &str =
        "write[mode=rud,size=packets,network=outage,congestion=default,protection=direct,course=plain]";
    const REFUSED: &str =
        "write[mode=rod,size=byte,network=loss,congestion=nscc,protection=cluster,course=two-jobs]";
    let faults = [
        // The target has the fault.
        ("ignores-ar", ONE_BY_ONE, "a:b", "PDS-ACK-004"),
        ("negates-ack-offset", PACKETS, "a:b", "PDS-SYN-008"),
        ("forgets-buffer-offset", PACKETS, "a:b", "SES-PLACE-003"),
        ("names-read-by-own-id", LONE_READ, "a:b", "SES-READ-005"),
        ("ignores-close", EMPTY, "a:b", "PDS-CLOSE-004"),
        ("stays-open", EMPTY, "a:b", "PDS-CLOSE-004"),
        ("places-at-previous-offset", LOST, "a:b", "SES-PLACE-003"),
        ("delivers-duplicates", PACKETS, "a:b", "SES-PLACE-003"),
        ("reads-from-start", READ, "a:b", "SES-READ-001"),
        ("answers-reads-without-data", READ, "a:b", "SES-READ-003"),
        ("fetches-new-value", FETCH, "a:b", "SES-AMO-007"),
        // The initiator has it.
        ("keeps-syn", PACKETS, "b:a", "PDS-SYN-004"),
        ("starts-at-one", CONTEXTS, "b:a", "PDS-SYN-007"),
        ("closes-without-psn", EMPTY, "b:a", "PDS-CTL-001"),
        ("closes-without-asking", EMPTY, "b:a", "PDS-CLOSE-002"),
        ("moves-buffer-offset", READ, "b:a", "SES-CUT-006"),
        ("never-ends-message", READ, "b:a", "WIRE-SES-008"),
        ("renames-message", PACKETS, "b:a", "SES-CUT-003"),
        ("starts-every-packet", READ, "b:a", "SES-CUT-002"),
        ("never-retransmits", OUTAGE, "b:a", "PDS-RTO-001"),
        ("retransmits-in-the-clear", SECURED, "b:a", "TSS-CLEAR-002"),
        ("sends-wrong-source-identifier", SECURED, "b:a", "TSS-HDR-001"),
        ("ignores-new-start", REFUSED, "b:a", "TSS-START-003"),
    ];
    std::thread::scope(|scope| {
        for (number, (fault, id, pair, requirement)) in faults.into_iter().enumerate() {
            scope.spawn(move || {
                let bad = nic("b", 100 + number as u8, &format!("--fault {fault}"));
                let (code, all) =
                    played(&["--device", "a=embedded", "--device", &bad, "--pair", pair, "--id", id]);
                assert_eq!(code, 1, "{fault}");
                let blamed: Vec<_> =
                    all.iter().map(|(_, one)| (&one["blame"], &one["requirement"])).collect();
                assert_eq!(blamed, [(&"b".into(), &requirement.into())], "{fault}: {all:#?}");
            });
        }
    });
}

/// Memory shows an early completion only until the lost packets arrive again, and a busy machine may look after that.
#[test]
fn an_early_completion_is_blamed_at_the_initiator() {
    let slow = file("slow-initiator.toml", b"rto_init_time = 5000000000\n");
    let bad = nic("b", 150, &format!("--fault completes-when-sent --config {slow}"));
    let play = |_| played(&["--device", "a=embedded", "--device", &bad, "--pair", "b:a", "--id", LOST]);
    let (_, all) = (0..20).map(play).find(|(code, _)| *code == 1).expect("one of 20 runs is soon enough");
    let blamed: Vec<_> = all.iter().map(|(_, one)| (&one["blame"], &one["requirement"])).collect();
    assert_eq!(blamed, [(&"b".into(), &"SES-DONE-001".into())], "{all:#?}");
}

/// Each packet keeps the requirements by itself. `sed` stands for an adapter that passes something else on to its NIC.
#[test]
fn other_bytes_and_another_place_are_blamed_at_their_sender() {
    const WRITE: &str = "write[mode=rud,size=packet,network=clean,congestion=default,course=plain]";
    const READ: &str = "read[mode=rud,size=packet,network=clean,congestion=default,course=plain]";
    let adapters = [
        // The initiator writes at another place, or writes other bytes.
        (r#"s/"offset":"0x40"/"offset":"0x41"/"#, WRITE, "b:a", "names the place 65, which no operation has"),
        (r#"s/{"seed":1000}/{"seed":7}/"#, WRITE, "b:a", "carries bytes that no message has there"),
        // The target's memory holds other bytes, which a read returns.
        (r#"s/{"seed":101}/{"seed":102}/"#, READ, "a:b", "carries bytes that no message has there"),
    ];
    std::thread::scope(|scope| {
        for (number, (script, id, pair, reason)) in adapters.into_iter().enumerate() {
            scope.spawn(move || {
                let adapter = format!("exec:sed -u '{script}' |");
                let bad = nic("b", 140 + number as u8, "").replace("exec:", &adapter);
                let (code, all) =
                    played(&["--device", "a=embedded", "--device", &bad, "--pair", pair, "--id", id]);
                assert_eq!((code, all.len()), (1, 1), "{script}: {all:#?}");
                let one = &all[0].1;
                assert_eq!((&one["blame"], &one["requirement"]), (&"b".into(), &Value::Null), "{one}");
                assert!(one["reason"].as_str().unwrap().ends_with(reason), "{one}");
            });
        }
    });
}

/// Each byte order of operands is permitted, but two ends need the same one.
#[test]
fn permitted_answers_that_do_not_fit_are_shown_side_by_side() {
    let config = file("big-operands.toml", b"operand_order = \"big\"\n");
    let other = nic("b", 130, &format!("--config {config}"));
    let id = "atomic[mode=rud,size=byte";
    let arguments = ["--device", "a=embedded", "--device", &other, "--pair", "a:b", "--id", id];
    let (code, all) = played(&[&arguments[..], &["--timeout-scale", "0.2"]].concat());
    let disagree: Vec<_> = all.iter().filter(|(_, one)| one["verdict"] == "disagree").collect();
    assert!(code == 1 && !disagree.is_empty(), "{all:#?}");
    for (_, one) in disagree {
        assert_eq!((&one["blame"], &one["requirement"]), (&Value::Null, &Value::Null));
        assert!(one["rerun"].as_str().unwrap().contains(" --timeout-scale 0.2 --pair a:b "), "{one}");
        let readings: Vec<&str> =
            one["readings"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(
            readings[0].starts_with("a (initiator): ") && readings[1].starts_with("b (target): "),
            "{one}"
        );
    }
}

#[test]
fn a_dead_implementation_is_blamed_and_the_run_ends() {
    let link = json!({"kind": "udp", "addr": "127.0.0.78", "port": 4996});
    let welcome = json!({"id": 1, "ok": true, "protocol": 1, "name": "short", "capabilities": ["rud", "write"], "link": link});
    let short = format!("short=exec:read -r line; echo '{welcome}'; read -r line");
    let (code, all) = played(&["--device", "a=embedded", "--device", &short, "--pair", "a:short"]);
    assert_eq!(code, 1);
    let (played, rest) = all.split_at(2);
    let blamed = |(_, one): &(String, Value)| one["blame"] == "short" && one["requirement"] == "ROB-LIFE-001";
    assert!(played.iter().all(blamed), "{all:#?}");
    let left = |(_, one): &(String, Value)| one["reason"] == "not played: short has died twice";
    assert!(!rest.is_empty() && rest.iter().all(left), "{all:#?}");
}

#[test]
fn reports_agree() {
    let [page, junit, json] = ["grid.html", "interop.xml", "interop.json"].map(|name| file(name, b""));
    let bad = nic("b", 120, "--fault negates-ack-offset");
    let common = ["interop", "--device", "a=embedded", "--device", &bad, "--id", PACKETS];
    let captures = format!("{page}.captures");
    let run = uet(&[
        &common[..],
        &["--format", "json", "--json", &json, "--html", &page, "--junit", &junit, "--captures", &captures],
    ]
    .concat());
    assert_eq!(run.code, 1, "{}", run.err);
    assert_eq!(fs::read_to_string(&json).unwrap(), run.out);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("PDS-SYN-008") && page.contains("class=grid") && page.contains("b--a"), "{page}");
    assert!(fs::read_to_string(junit).unwrap().contains("<testsuite name=\"a to b\""));
    let result: Value = serde_json::from_str(&run.out).unwrap();
    let failed =
        result["pairs"][0]["scenarios"].as_array().unwrap().iter().find(|one| one["verdict"] == "fail");
    let capture = failed.unwrap()["capture"].as_str().unwrap();
    assert!(uet(&["check", capture]).out.contains("PDS-SYN-008"));

    let again = uet(&[&common[..], &["--format", "markdown", "--baseline", &json]].concat());
    assert!(again.out.starts_with("| initiator \\ target | a | b |"), "{}", again.out);
    assert_eq!(again.code, 0, "nothing is worse than before: {}", again.err);
    let earlier = run.out.replace("\"fail\"", "\"pass\"");
    fs::write(&json, earlier).unwrap();
    let worse = uet(&[&common[..], &["--baseline", &json]].concat());
    assert!(worse.code == 1 && worse.err.contains("worse than before: a to b"), "{}", worse.err);
}

#[test]
fn a_report_that_cannot_be_written_leaves_the_others() {
    let (json, junit) = (file("kept.json", b""), file("kept.xml", b""));
    let nowhere = format!("{json}/grid.html");
    let id = "write[mode=rud,size=nothing,network=clean,congestion=default,course=plain]";
    let devices = ["--device", "a=embedded", "--device", "b=embedded", "--pair", "a:b", "--id", id];
    let run = uet(
        &[&["interop"], &devices[..], &["--json", &json, "--html", &nowhere, "--junit", &junit]].concat()
    );
    assert!(run.code == 2 && run.err.contains("grid.html"), "{} {}", run.code, run.err);
    for path in [json, junit] {
        assert!(!fs::read_to_string(&path).unwrap().is_empty(), "{path}");
    }
}

#[test]
fn implementations_restart_and_open_many_contexts() {
    let devices = ["--device", "a=embedded", "--device", "b=embedded", "--pair", "a:b"];
    let ids = [
        "write[mode=rud,size=mebibyte,network=clean,congestion=default,course=target-restarts]",
        "write[mode=rud,size=mebibyte,network=clean,congestion=default,course=initiator-restarts]",
        "write[mode=rud,size=byte,network=clean,congestion=default,course=many-contexts]",
        "send[mode=rod,size=packet,network=loss,congestion=default,course=many-contexts]",
    ];
    let ids: Vec<&str> = ids.iter().flat_map(|id| ["--id", id]).collect();
    let (code, all) = played(&[&devices[..], &ids, &["--full"]].concat());
    let verdicts: Vec<_> = all.iter().map(|(_, one)| one["verdict"].as_str().unwrap()).collect();
    assert_eq!((code, verdicts), (0, vec!["pass"; 4]), "{all:#?}");
}

#[test]
fn a_target_asks_for_the_close_between_operations() {
    let devices = ["--device", "a=embedded", "--device", "b=embedded", "--pair", "a:b"];
    let ids = [
        "write[mode=rud,size=byte,network=clean,congestion=default,course=closed-by-target]",
        "read[mode=rod,size=packets,network=loss,congestion=nscc,course=closed-by-target]",
        "send[mode=rud,size=packet,network=outage,congestion=rccc,course=closed-by-target]",
    ];
    let ids: Vec<&str> = ids.iter().flat_map(|id| ["--id", id]).collect();
    let (code, all) = played(&[&devices[..], &ids].concat());
    let verdicts: Vec<_> = all.iter().map(|(_, one)| one["verdict"].as_str().unwrap()).collect();
    assert_eq!((code, verdicts), (0, vec!["pass"; 3]), "{all:#?}");
}

/// `sed` stands for an adapter that answers as if its NIC had no context.
#[test]
fn a_target_that_does_not_ask_for_the_close_disagrees() {
    let id = "write[mode=rud,size=byte,network=clean,congestion=default,course=closed-by-target]";
    let adapter = r#"exec:sed -u '/request_close/s/"peer":[0-9]*/"peer":99/' |"#;
    let other = nic("b", 150, "").replace("exec:", adapter);
    let arguments = ["--device", "a=embedded", "--device", &other, "--pair", "a:b", "--id", id];
    let (code, all) = played(&arguments);
    assert_eq!((code, all.len()), (1, 1), "{all:#?}");
    let one = &all[0].1;
    let reason = "the target does not ask for the close: request_close: not found: there is no peer 99";
    assert_eq!((&one["verdict"], &one["reason"]), (&"disagree".into(), &reason.into()), "{one}");
    assert_eq!(one["readings"][1], "b (target): no report");
}

#[test]
fn a_soak_plays_on_with_other_seeds() {
    let devices = ["--device", "a=embedded", "--device", "b=embedded", "--pair", "a:b"];
    let (code, all) =
        played(&[&devices[..], &["--id", "write[mode=rud,size=nothing", "--soak", "1s"]].concat());
    let last = &all.last().unwrap().1;
    assert_eq!((code, &last["id"]), (0, &"soak".into()), "{all:#?}");
    let count = last["reason"].as_str().unwrap().split(' ').next().unwrap().parse::<usize>().unwrap();
    assert!(count > 0, "{last}");
}

#[test]
fn wrong_use_is_an_error() {
    let lab = file("lab.toml", b"[devices]\na = \"embedded\"\nb = \"nowhere\"\n");
    for (arguments, said) in [
        (&["--device", "a=embedded"][..], "two implementations are needed"),
        (&["--device", "a=embedded", "--device", "a=embedded"], "two implementations have the name a"),
        (&["--device", "a=embedded", "--device", "b=embedded", "--pair", "a:c"], "there is no pair a:c"),
        (&["--id", "wriet"], "there is no scenario 'wriet'; did you mean write?"),
        (&["--id", "nope"], "there is no scenario 'nope'; there are write, read, send"),
        (&["--timeout-scale", "0"], "--timeout-scale"),
        (&[&lab], "b: expected NAME=HOST:PORT"),
        (
            &["--device", "a=embedded", "--device", "b=255.255.255.255:1"],
            "b: cannot reach the control channel",
        ),
    ] {
        let run = uet(&[&["interop"], arguments].concat());
        assert_eq!(run.code, 2, "{arguments:?}");
        assert!(run.err.contains(said), "{arguments:?}: {}", run.err);
    }
}

#[test]
fn signal_blames_no_end() {
    let mut run = Command::new(UET)
        .args(["interop", "--device", "a=embedded", "--device", "b=embedded", "--full"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(run.stdout.take().unwrap());
    let mut lines = String::new();
    out.read_line(&mut lines).unwrap();
    assert!(lines.starts_with("a to b, "), "{lines}");
    common::signal(run.id(), "-INT");
    out.read_to_string(&mut lines).unwrap();
    let mut errors = String::new();
    run.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(3), "{lines}{errors}");
    assert!(errors.contains("a signal ended the run: ") && errors.contains(" were not played"), "{errors}");
    assert!(!lines.contains("\nfail ") && !lines.contains("not played"), "{lines}");
}
