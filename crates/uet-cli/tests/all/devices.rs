//! `uet run` and `uet doctor` with devices other than the embedded NIC, on loopback.
#![cfg(target_os = "linux")]

use crate::common;

use common::nic::Nic;
use common::uet;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Returns the option that makes the suite start the emulated NIC.
fn started() -> String {
    format!("exec:{} emulate --listen 127.0.0.1:0 --control stdio", env!("CARGO_BIN_EXE_uet"))
}

#[test]
fn a_device_is_started_by_its_command() {
    let run = uet(&["run", "--id", "ack/requested", "--dut", &started(), "--timeout-scale", "10"]);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    assert!(run.out.contains("1 pass (uet-emulator "), "{}", run.out);
}

/// The devices share a port at different addresses. Each suite wants that port at its own addresses, which are the
/// same.
#[test]
fn parallel_runs_do_not_collide() {
    let port = std::net::UdpSocket::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port();
    let ids = ["--group", "establish", "--group", "ack", "--max-instances", "40", "--timeout-scale", "10"];
    let run = |last: u8| {
        let at = format!("127.0.0.{last}:{port}");
        let device = format!("exec:{} emulate --listen {at} --control stdio", env!("CARGO_BIN_EXE_uet"));
        uet(&[&["run", "--dut", &device], &ids[..]].concat())
    };
    let runs = std::thread::scope(|scope| {
        let started = [11, 12, 13, 14].map(|last| scope.spawn(move || run(last)));
        started.map(|run| run.join().unwrap())
    });
    for run in runs {
        assert!(!run.err.contains("in use") && run.code == 0, "{}{}", run.out, run.err);
    }
}

#[test]
fn running_device_is_reached_by_its_addresses() {
    let nic = Nic::start("127.0.0.1", &[]);
    let (at, control) = (nic.port(), &nic.ready["control"]["port"]);
    let (at, told) = (format!("udp://localhost:{at}"), format!("127.0.0.1:{control}"));
    let control = format!("tcp://localhost:{control}");
    for device in [&["--control", &told][..], &["--dut", &at, "--control", &control]] {
        let run = uet(&[&["run", "--id", "ack/requested", "--timeout-scale", "10"], device].concat());
        assert_eq!(run.code, 0, "{device:?}: {}{}", run.out, run.err);
    }
}

/// IPv6 loopback has one address. The suite shares it with the device and tells the device its port.
#[test]
fn a_device_on_ipv6_loopback_is_reached() {
    if let Err(error) = std::net::UdpSocket::bind("[::1]:0") {
        println!("NOT RUN: this machine has no ::1: {error}");
        return;
    }
    let nic = Nic::start("[::1]", &[]);
    assert_eq!(nic.ready["link"]["addr"], "::1");
    let control = format!("127.0.0.1:{}", nic.ready["control"]["port"]);
    let at = format!("udp://[::1]:{}", nic.port());
    let ids = [
        "establish/first-packet",
        "establish/two-peers",
        "ack/mark",
        "write/one-packet",
        "source-establish/established",
    ];
    let ids: Vec<&str> = ids.iter().flat_map(|id| ["--id", id]).collect();
    for device in [&["--control", &control][..], &["--control", &control, "--dut", &at]] {
        let run = uet(&[&["run", "--timeout-scale", "10", "--format", "json"], &ids[..], device].concat());
        assert_eq!(run.code, 0, "{device:?}: {}{}", run.out, run.err);
        let result: Value = serde_json::from_str(&run.out).unwrap();
        for rule in result["rules"].as_array().unwrap() {
            let two = rule["reason"].as_str().unwrap_or_default().starts_with("needs 2 addresses");
            assert!(rule["verdict"] == "pass" || two, "{rule}");
        }
    }

    // A device without support for peer ports cannot be reached.
    let welcome = r#"{"id":1,"ok":true,"protocol":1,"name":"short","capabilities":[],"link":{"kind":"udp","addr":"::1","port":4997}}"#;
    let refusal = r#"{"id":2,"error":{"code":"unsupported","message":"no peers"}}"#;
    let device =
        format!("exec:read -r line; echo '{welcome}'; read -r line; echo '{refusal}'; cat >/dev/null");
    let run = uet(&["run", "--dut", &device]);
    assert!(run.code == 2 && run.err.contains("has the address of the suite"), "{}{}", run.out, run.err);
}

#[test]
fn device_of_another_version_gets_a_warning() {
    for (command, ok) in [("run", "1 pass"), ("doctor", "spec")] {
        let id: &[&str] = if command == "run" { &["--id", "ack/requested"] } else { &[] };
        let judge = |version| {
            let device = started();
            let options = ["--dut", &device, "--spec", version, "--timeout-scale", "10"];
            let options = if command == "run" { &options[..] } else { &options[..4] };
            uet(&[&[command], id, options].concat())
        };
        let (other, same) = (judge("1.0.1"), judge("1.0.3"));
        let warning = "the device implements specification 1.0.3, but it is judged by 1.0.1";
        assert!(other.out.contains(ok), "{command}: {}{}", other.out, other.err);
        assert!((other.out + &other.err).contains(warning), "{command}");
        assert!(!(same.out + &same.err).contains("implements specification"), "{command}");
    }
}

/// Returns an address where nobody listens.
fn closed(address: &str) -> String {
    std::net::TcpListener::bind((address, 0)).unwrap().local_addr().unwrap().to_string()
}

#[test]
fn suite_waits_for_a_device_that_is_starting() {
    let control = closed("127.0.0.224");
    let mut run = Command::new(env!("CARGO_BIN_EXE_uet"))
        .args(["run", "--id", "ack/requested", "--timeout-scale", "10", "--control", &control])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next(), Some(format!("uet: nobody listens at {control} yet; trying again")));
    let _nic = Nic::start("127.0.0.1", &["--control", &control]);
    let later: Vec<String> = lines.collect();
    let ended = run.wait_with_output().unwrap();
    let out = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && out.contains("1 pass"), "{out}{later:?}");
    assert!(!later.iter().any(|line| line.contains("nobody listens")), "{later:?}");
}

#[test]
fn suite_does_not_wait_forever() {
    let control = closed("127.0.0.225");
    let run = uet(&["run", "--control", &control]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert_eq!(run.err.matches("nobody listens").count(), 1, "{}", run.err);
    let error = format!("cannot reach the control channel at {control}");
    assert!(run.err.contains(&error), "{}", run.err);
    assert!(run.err.contains("no program listens there: start the device"), "{}", run.err);
}

#[test]
fn unreachable_device_is_an_error_without_verdict() {
    for (device, said) in [
        (&["--control", "nowhere.invalid:1"][..], "cannot reach the control channel at nowhere.invalid:1"),
        (&["--control", "127.0.0.1"], "write HOST:PORT"),
        (&["--dut", "udp://127.0.0.1:4793"], "need --control tcp://HOST:PORT"),
        (&["--dut", "udp://127.0.0.1"], "expected udp://HOST:PORT"),
        (
            &["--dut", "exec:exit 3"],
            "the device's program ended with exit status: 3, before it answered `hello`",
        ),
        (&["--dut", "exec:echo hello; cat"], "an answer is one line of JSON"),
        (&["--dut", "tcp://127.0.0.1:9000"], "write --control HOST:PORT"),
        (&["--control", "127.0.0.1:99999"], "a port of at most 65535"),
        (&["--dut", "exec:x", "--control", "127.0.0.1:9"], "--control needs a running device"),
        (&["--dut", "exec:x", "--impair", "drop 5%"], "uet proxy"),
        (&["--dut", "exec:x", "--family", "6"], "--family and --config apply only to the built-in NIC"),
        (&["--family", "5"], "expected 4, 6 or both"),
        (&["--dut", "warp:9"], "expected exec:COMMAND, udp://HOST:PORT, raw:INTERFACE or embedded"),
        (&["--local", "127.0.0.9"], "--local needs an external device"),
    ] {
        for command in ["run", "doctor"] {
            let run = uet(&[&[command], device].concat());
            assert_eq!((run.code, run.out.as_str()), (2, ""), "{command} {device:?}");
            assert!(run.err.contains(said), "{command} {device:?}: {}", run.err);
        }
    }
}

/// Returns a device in shell that answers `hello` and then runs this.
fn greeting_and(then: &str) -> String {
    let welcome = r#"{"id":1,"ok":true,"protocol":1,"name":"short","capabilities":["rud","write"],"link":{"kind":"udp","addr":"127.0.0.78","port":4996}}"#;
    format!("exec:read -r line; echo '{welcome}'; {then}")
}

#[test]
fn dying_device_fails_the_rule_and_is_restarted() {
    // It receives `hello` and `reset`, each time. With one request more, a busy machine could finish a rule before the
    // end.
    let hears = "n=0; while [ $n -lt 2 ] && read -r line; do n=$((n+1)); printf '%s\\n' \"$line\"; done";
    let nic = env!("CARGO_BIN_EXE_uet");
    let device = format!("exec:{hears} | {nic} emulate --listen 127.0.0.1:0 --control stdio; exit 7");
    let run = uet(&["run", "--dut", &device, "--id", "ack/requested", "--id", "ack/retx"]);
    assert_eq!(run.code, 1, "{}{}", run.out, run.err);
    let told = "fail  ROB-LIFE-001: expected that the device goes on, seen it ended: exit status: 7";
    assert_eq!(run.out.lines().filter(|line| line.contains(told)).count(), 2, "{}", run.out);
    assert!(run.out.contains("2 fail (uet-emulator "), "{}", run.out);
}

#[test]
fn dead_device_ends_the_run_with_partial_reports() {
    let json = common::file("gone.json", b"");
    let junit = common::file("gone.xml", b"");
    let run = uet(&["run", "--dut", &greeting_and("exit 7"), "--json", &json, "--junit", &junit]);
    assert_eq!(run.code, 2, "{}{}", run.out, run.err);
    assert!(run.out.contains("the device had ended before: exit status: 7"), "{}", run.out);
    let why = "the device has ended: exit status: 7";
    assert!(run.out.contains(&format!(" not run; stopped: {why} (short")), "{}", run.out);
    let result: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!((result["rules"].as_array().unwrap().len(), &result["stopped"]), (1, &Value::from(why)));
    let left = result["not_run_rules"].as_array().unwrap();
    assert_eq!((&result["not_run"], &result["ended_by"]), (&Value::from(left.len()), &Value::Null));
    assert!(run.out.contains(&format!("\nnot run: {}, ", left[0].as_str().unwrap())), "{}", run.out);
    assert!(std::fs::read_to_string(junit).unwrap().contains(why));
}

/// As a CI system cancels a job: SIGINT, and SIGTERM while the suite waits for a device that answers no request.
#[test]
fn second_signal_ends_the_wait_for_a_silent_device() {
    use std::time::{Duration, Instant};

    let (json, junit) = (common::file("silent.json", b""), common::file("silent.xml", b""));
    let mut run = Command::new(env!("CARGO_BIN_EXE_uet"))
        .args([
            "run",
            "--group",
            "ack",
            "--dut",
            &greeting_and("sleep 1000"),
            "--json",
            &json,
            "--junit",
            &junit,
        ])
        .args(["--format", "json"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = run.id();
    // Bit 14 stands for SIGTERM. The suite listens to it once it runs.
    let listens = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim().to_owned();
        u64::from_str_radix(&caught, 16).unwrap() >> 14 & 1 == 1
    };
    let until = Instant::now() + Duration::from_secs(60);
    while !listens() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    for signal in ["-INT", "-TERM"] {
        common::signal(pid, signal);
    }
    assert_eq!(run.wait().unwrap().code(), Some(3));
    let result: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert!(result["not_run"].as_u64() > Some(0), "{result}");
    assert!(std::fs::read_to_string(junit).unwrap().contains("rules did not run"));
}

/// DSCP 8 is `high` of class 0 in the suite's table, and `low` here.
#[test]
fn the_dscps_of_a_device_are_its_own() {
    let nic = Nic::start("127.0.0.1", &["--dscps", "8,12,14,46;0,1,2,10"]);
    let control = format!("127.0.0.1:{}", nic.ready["control"]["port"]);
    let args = ["run", "--id", "control/high-class", "--timeout-scale", "10", "--control", &control];
    let run = uet(&args);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    assert!(run.out.contains("1 pass"), "{}", run.out);

    let wrong = uet(&["emulate", "--dscps", "1,2,3,3"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("each with four DSCPs from 0 to 63"), "{}", wrong.err);
}

/// Runs the doctor and returns its checks and verdicts.
fn doctor(args: &[&str]) -> Vec<(String, String)> {
    let run = uet(&[&["doctor", "--format", "json"], args].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    let word = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
    let lines = run.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| (word(&line, "check"), word(&line, "verdict"))).collect()
}

#[test]
fn the_doctor_finds_nothing_wrong_with_the_reference() {
    assert!(doctor(&[]).iter().all(|(_, verdict)| verdict == "ok"));
}

#[test]
fn doctor_waits_for_a_distant_device() {
    let run = uet(&["doctor", "--impair", "delay 150ms"]);
    assert!(run.out.contains("a write is answered in 300."), "{}", run.out);
    assert!(run.out.contains("a marked write is acknowledged with m = 1"), "{}", run.out);
}

#[test]
fn doctor_reports_missing_parts() {
    let device = started();
    let lines = doctor(&["--dut", &device, "--local", "127.0.0.2"]);
    let of = |check: &str| lines.iter().find(|(name, _)| name == check).map(|(_, verdict)| verdict.as_str());
    assert_eq!(of("control"), Some("ok"));
    assert_eq!(of("addresses"), Some("limited"), "one address");
    assert_eq!(of("rules"), Some("limited"));

    // A device with a control channel whose packets never arrive.
    let welcome = r#"{"id":1,"ok":true,"protocol":1,"name":"mute","capabilities":["rud","write"],"link":{"kind":"udp","addr":"127.0.0.77","port":4997}}"#;
    let script = format!(
        "n=0; while read -r line; do n=$((n+1)); case $n in 1) echo '{welcome}';; *) echo '{{\"id\":'$n',\"ok\":true,\"region\":1}}';; esac; done"
    );
    let device = format!("exec:{script}");
    let lines = doctor(&["--dut", &device]);
    let of = |check: &str| lines.iter().find(|(name, _)| name == check).map(|(_, verdict)| verdict.as_str());
    assert_eq!((of("reset"), of("link"), of("ecn")), (Some("ok"), Some("broken"), None));
    assert_eq!(of("operations"), Some("broken"), "its answers have no numbers");
    assert_eq!(uet(&["doctor", "--strict", "--dut", &device]).code, 1);
    assert_eq!(uet(&["doctor", "--strict"]).code, 0);
}

#[test]
fn doctor_names_unknown_words() {
    let welcome = r#"{"id":1,"ok":true,"protocol":1,"name":"a\u001b[31m\nb","capabilities":["rud","wriet"],"parameters":{"payload_mtu":"1024","rto_init_tim":5,"base_rtt":60000000001},"link":{"kind":"udp","addr":"127.0.0.77","port":4996}}"#;
    let script = format!(
        "read -r line; printf '%s\\n' '{welcome}'; n=1; while read -r line; do n=$((n+1)); echo '{{\"id\":'$n',\"ok\":true}}'; done"
    );
    let device = format!("exec:{script}");
    let run = uet(&["doctor", "--dut", &device]);
    for said in [
        r"control    ok       a\u{1b}[31m\nb",
        "claims     limited  there is no capability 'wriet'; did you mean write?",
        "parameters limited  payload_mtu is \"1024\", but must be a whole number (bytes)",
        "parameters limited  there is no parameter 'rto_init_tim'; did you mean rto_init_time",
        "parameters limited  base_rtt is 60000000001, but must be from 0 to 60000000000 (ns); the suite refuses it",
    ] {
        assert!(run.out.lines().any(|line| line.starts_with(said)), "{said}: {}{}", run.out, run.err);
    }
}

#[test]
fn excessive_parameters_of_a_device_are_refused() {
    let long = u64::MAX.to_string();
    for (name, value, stated, range) in [
        ("rto_init_time", long.as_str(), 1_000_000, "from 0 to 60000000000 (ns)"),
        ("syn_retx_safety_time", &long, 1_000_000, "from 0 to 60000000000 (ns)"),
        ("payload_mtu", "0", 1024, "from 1024 to 8192 (bytes)"),
        ("default_mpr", "256", 8, "from 1 to 255 (128 PSNs)"),
        ("max_nack_retx_cnt", &long, 5, "from 0 to 4294967295 (packets)"),
    ] {
        let welcome = format!(
            r#"{{"id":1,"ok":true,"protocol":1,"name":"a","capabilities":["rud","write"],"parameters":{{"{name}":{value},"idle_time":{long}}},"link":{{"kind":"udp","addr":"127.0.0.77","port":4996}}}}"#
        );
        let script = format!(
            "read -r line; printf '%s\\n' '{welcome}'; n=1; while read -r line; do n=$((n+1)); echo '{{\"id\":'$n',\"ok\":true}}'; done"
        );
        let device = format!("exec:{script}");
        let rule = ["run", "--dut", &device, "--id", "write/one-packet", "--timeout-scale", "0.1"];
        let run = uet(&rule);
        let said = format!("the device's parameter {name} is {value}, but must be {range}; correct");
        assert!(run.code == 2 && run.err.contains(&said), "{}: {}", run.code, run.err);
        let text = format!("[parameters]\n{name} = {stated}\n");
        let statement = common::file(&format!("{name}.toml"), text.as_bytes());
        let run = uet(&[&rule[..], &["--statement", &statement]].concat());
        assert!(run.code == 3 && !run.err.contains("but must be"), "{}: {}", run.code, run.err);
    }
}

#[test]
fn rule_that_would_send_a_million_packets_is_skipped() {
    let config = common::file("trigger.toml", b"ack_gen_trigger = 4294967295\n");
    let run = uet(&["run", "--id", "ack/trigger", "--config", &config]);
    assert!(run.out.contains("1048576 packets for an ACK are too many"), "{}{}", run.out, run.err);
}

#[test]
fn an_answer_to_another_question_is_none() {
    let run = uet(&["doctor", "--dut", "exec:read -r line; echo '{\"id\":7,\"ok\":true}'; cat > /dev/null"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("the answer to 1 has the id 7"), "{}", run.err);
}
