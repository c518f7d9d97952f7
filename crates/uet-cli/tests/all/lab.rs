//! Everyday life of a lab: failed rules again, pauses, several devices, no control channel, and the end of a device.
#![cfg(target_os = "linux")]

use crate::common::{self, nic::Nic, uet};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const UET: &str = env!("CARGO_BIN_EXE_uet");

#[test]
fn failed_runs_the_failing_instances_again() {
    let before = common::file("before.json", b"");
    let fault = ["--fault", "forgets-ecn-echo"];
    assert_eq!(uet(&[&["run", "--group", "ack", "--json", &before], &fault[..]].concat()).code, 1);
    let run = uet(&[&["run", "--format", "json", "--failed", &before], &fault[..]].concat());
    assert_eq!(run.code, 1, "{}", run.err);
    let instances = |text: &str| -> Vec<String> {
        let result: Value = serde_json::from_str(text).unwrap();
        let rules = result["rules"].as_array().unwrap().clone();
        let failing = rules.iter().flat_map(|rule| rule["failing"].as_array().unwrap().clone());
        failing.map(|found| found["instance"].as_str().unwrap().to_owned()).collect()
    };
    let failed = instances(&fs::read_to_string(&before).unwrap());
    assert!(failed.len() > 1);
    assert_eq!(instances(&run.out), failed);
    let result: Value = serde_json::from_str(&run.out).unwrap();
    let ran =
        result["rules"].as_array().unwrap().iter().map(|rule| rule["instances"]["pass"].as_u64().unwrap());
    assert_eq!(ran.sum::<u64>(), 0, "only failing instances run");

    // Without the fault, all of them pass, and then nothing is left.
    let after = common::file("after.json", b"");
    assert_eq!(uet(&["run", "--failed", &before, "--json", &after]).code, 0);
    let run = uet(&["run", "--failed", &after]);
    assert_eq!((run.code, run.out.as_str()), (0, ""));
    assert!(run.err.contains("nothing failed"), "{}", run.err);
    let gone = common::file("gone-rule.json", br#"{"rules":[{"id":"old/rule","verdict":"fail"}]}"#);
    let run = uet(&["run", "--failed", &gone]);
    assert!(run.code == 2 && run.err.contains("no longer has old/rule"), "{}", run.err);
    assert_eq!(uet(&["run", "--failed", &gone, "--id", "ack/requested"]).code, 2);
}

#[test]
fn pause_waits_for_enter() {
    let id = ["run", "--id", "ack/requested", "--max-instances", "1", "--pause"];
    let run = uet(&[&id[..], &["ack/requested"]].concat());
    assert!(run.code == 2 && run.err.contains("standard input is not a terminal"), "{}", run.err);
    let run = uet(&[&id[..], &["ack/requestde"]].concat());
    assert!(run.code == 2 && run.err.contains("did you mean ack/requested"), "{}", run.err);

    let terminal = nix::pty::openpty(None, None).unwrap();
    let mut run = Command::new(UET)
        .args(id)
        .arg("ack/requested")
        .stdin(Stdio::from(terminal.slave))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut asked = vec![0; "before ack/requested[".len()];
    run.stderr.as_mut().unwrap().read_exact(&mut asked).unwrap();
    assert_eq!(asked, b"before ack/requested[");
    std::thread::sleep(Duration::from_millis(300));
    assert!(run.try_wait().unwrap().is_none(), "it waits");
    File::from(terminal.master.try_clone().unwrap()).write_all(b"\n").unwrap();
    let ended = run.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    assert!(String::from_utf8(ended.stdout).unwrap().contains("1 pass"));
}

#[test]
fn several_devices_share_a_matrix() {
    let bad = format!("bad=exec:{UET} emulate --listen 127.0.0.1:0 --control stdio --fault forgets-ecn-echo");
    let (json, html) = (common::file("matrix.json", b""), common::file("matrix.html", b""));
    let ids = ["--id", "ack/mark", "--id", "ack/requested", "--max-instances", "2"];
    // No route leads there, so the suite does not wait.
    let devices = ["--device", "good=embedded", "--device", &bad, "--device", "gone=255.255.255.255:1"];
    let run = uet(&[&["run", "--json", &json, "--html", &html], &ids[..], &devices[..]].concat());
    assert_eq!(run.code, 2, "one device cannot be reached: {}{}", run.out, run.err);
    assert!(run.err.contains("gone: cannot reach the control channel"), "{}", run.err);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let row =
        |id: &str| run.out.lines().map(words).rfind(|words| words.first().is_some_and(|word| word == id));
    assert_eq!(row("rule").unwrap(), ["rule", "good", "bad", "gone"]);
    assert_eq!(row("ack/mark").unwrap(), ["ack/mark", "pass", "fail", "-"]);
    assert!(run.out.contains("1 other rules pass on every device"), "{}", run.out);
    let result: Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    let expected = json!({"id": "ack/mark", "verdicts": {"good": "pass", "bad": "fail", "gone": null}});
    assert!(result["matrix"].as_array().unwrap().contains(&expected), "{}", result["matrix"]);
    assert_eq!(result["devices"][1]["result"]["rules"].as_array().unwrap().len(), 2);
    assert!(result["devices"][2]["error"].is_string());
    let page = fs::read_to_string(html).unwrap();
    assert!(
        page.contains("<tr><td><code>ack/mark</code><td class=pass title=\"\">pass<td class=fail title="),
        "{page}"
    );

    for (args, said) in [
        (["--device", "embedded"], "expected NAME=HOST:PORT"),
        (["--device", "a/b=embedded"], "a name has letters"),
        (["--device=a=embedded", "--device=a=embedded"], "names two devices 'a'"),
        (["--device=a=embedded", "--dut=embedded"], "cannot be combined"),
        (["--device=a=embedded", "--junit=x.xml"], "cannot be used with"),
    ] {
        let run = uet(&[&["run"], &args[..]].concat());
        assert!(run.code == 2 && run.err.contains(said), "{args:?}: {}", run.err);
    }
}

/// Exposes memory through the control channel of a NIC, as another program would.
fn expose(nic: &Nic, length: u64, key: &str) {
    let port = nic.ready["control"]["port"].as_u64().unwrap() as u16;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let expose = json!({"id": 1, "op": "expose_region", "length": length, "key": key, "job": 101, "process": 2, "index": 10});
    writeln!(stream, "{}\n{expose}", json!({"id": 0, "op": "hello", "protocol": 1})).unwrap();
    let lines: Vec<String> = BufReader::new(&stream).lines().take(2).map(Result::unwrap).collect();
    assert!(lines[1].contains("\"region\""), "{lines:?}");
}

#[test]
fn packets_alone_test_a_device_without_a_control_channel() {
    let nic = Nic::start("127.0.0.1", &[]);
    let device = format!("udp://127.0.0.1:{}", nic.ready["link"]["port"]);
    let args = ["run", "--dut", &device, "--no-control", "--group", "ack", "--group", "nack"];
    let run = uet(&args);
    assert!(run.out.contains("needs a region of 65536 bytes"), "{}", run.out);
    let count = |out: &str| -> usize {
        let line = out.lines().find(|line| line.starts_with("without a control channel: ")).unwrap();
        line.split_whitespace().nth(4).unwrap().parse().unwrap()
    };
    let before = count(&run.out);

    expose(&nic, 65536, "0x5eed");
    let statement = "[[regions]]\nlength = 65536\nkey = '0x5eed'\njob = 101\nprocess = 2\nindex = 10\n";
    let statement = common::file("regions.toml", statement.as_bytes());
    let capture = common::file("blind.pcapng", b"");
    let run = uet(&[&args[..], &["--statement", &statement, "--capture", &capture]].concat());
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    assert!(count(&run.out) > before + 9, "{}", run.out);
    assert!(
        run.out.contains("skipped: read_memory: unsupported: the run has no control channel"),
        "{}",
        run.out
    );
    assert!(uet(&["decode", "--format", "summary", &capture]).out.lines().count() > 20);

    // A wrong key is no failure of the device.
    let wrong = fs::read_to_string(&statement).unwrap().replace("0x5eed", "0xbad");
    let wrong = common::file("wrong-key.toml", wrong.as_bytes());
    let run = uet(&[&args[..], &["--statement", &wrong]].concat());
    assert_eq!(run.code, 0, "{}", run.out);
    assert!(run.out.contains("the device takes no write to the region of 65536 bytes"), "{}", run.out);
    for (args, said) in [
        (&["--no-control"][..], "--dut"),
        (&["--no-control", "--dut", "embedded"], "--no-control needs the address of the device"),
        (&["--no-control", "--dut", &device, "--control", "127.0.0.1:9"], "cannot be used with"),
    ] {
        let run = uet(&[&["run"], args].concat());
        assert!(run.code == 2 && run.err.contains(said), "{args:?}: {}", run.err);
    }
}

#[test]
fn killed_run_leaves_no_device_behind() {
    let pids = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stubborn.pid");
    let _ = fs::remove_file(&pids);
    let welcome = r#"{"id":1,"ok":true,"protocol":1,"name":"stubborn","capabilities":["rud"],"link":{"kind":"udp","addr":"127.0.0.79","port":4998}}"#;
    // It ignores the end of its channel, SIGTERM and SIGHUP, and has a child.
    let device = format!(
        "exec:trap '' TERM HUP; sleep 600 & echo $! $$ > {}; read -r line; echo '{welcome}'; while true; do sleep 1; done",
        pids.display()
    );
    let mut run = Command::new(UET)
        .args(["run", "--id", "ack/requested", "--dut", &device])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let within = |limit: u64, mut done: Box<dyn FnMut() -> bool + '_>| {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(limit) {
            if done() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    };
    let read = || fs::read_to_string(&pids).unwrap_or_default();
    assert!(within(60, Box::new(|| read().split_whitespace().count() == 2)));
    std::thread::sleep(Duration::from_millis(200));
    run.kill().unwrap();
    run.wait().unwrap();
    for pid in read().split_whitespace() {
        // An ended process that nobody has waited for is a zombie.
        let ended = || match fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
            Err(_) => true,
        };
        assert!(within(60, Box::new(ended)), "process {pid} goes on");
    }
}

/// The requirement that this fault breaks.
const BREAKING: [&str; 6] = ["run", "--id", "ack/mark", "--fault", "forgets-ecn-echo", "--max-instances"];

#[test]
fn corrections_change_level_and_sentence_and_withdraw() {
    let broken = uet(&[&BREAKING[..], &["1"]].concat());
    assert_eq!(broken.code, 1);
    let id = broken.out.split("fail  ").nth(1).unwrap().split(':').next().unwrap().to_owned();
    let with = |text: &str| {
        let path =
            common::file("corrections.toml", format!("# By section.\n[[requirements]]\n{text}").as_bytes());
        uet(&[&BREAKING[..], &["1", "--catalogue", &path]].concat())
    };
    let run =
        with(&format!("id = '{id}'\nlevel = 'must'\nsentence = 'It echoes marks'\nreason = 'section 9'\n"));
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(
        run.out.contains("(must, section") && run.out.contains(", corrected): It echoes marks"),
        "{}",
        run.out
    );
    assert!(run.out.contains(&format!("corrected in the catalogue: {id}: ")), "{}", run.out);
    assert!(run.out.contains("again: uet run --fault forgets-ecn-echo --catalogue "), "{}", run.out);

    let junit = common::file("corrections.xml", b"");
    let path = common::file(
        "corrections.toml",
        format!("[[requirements]]\nid = '{id}'\nlevel = 'must'\nreason = 'section 9'\n").as_bytes(),
    );
    uet(&[&BREAKING[..], &["1", "--catalogue", &path, "--junit", &junit]].concat());
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert!(
        xml.contains(&format!("<testcase name=\"catalogue/{id}\"")) && xml.contains("section 9"),
        "{xml}"
    );

    for change in ["withdrawn = true", "level = 'may'"] {
        let run = with(&format!("id = '{}'\n{change}\nreason = 'section 9'\n", id.to_lowercase()));
        assert_eq!(run.code, 3, "{change}: nothing is left to fail: {}{}", run.out, run.err);
        assert!(
            run.out.contains(&format!("skipped  the catalogue is corrected: {id}: ")),
            "{change}: {}",
            run.out
        );
    }

    for (text, said) in [
        (
            "id = 'PDS-ACK-999'\nlevel = 'may'\nreason = 'x'\n",
            "line 3: there is no requirement 'PDS-ACK-999'",
        ),
        ("id = 'PDS-ACK-004'\nlevel = 'shall'\nreason = 'x'\n", "line 4: a level is must, should or may"),
        (
            "id = 'PDS-ACK-004'\nreason = 'x'\n",
            "line 3: PDS-ACK-004 needs `level`, `sentence` or `withdrawn = true`",
        ),
        (
            "id = 'PDS-ACK-004'\nwithdrawn = true\nlevel = 'may'\nreason = 'x'\n",
            "is withdrawn, and so has no level",
        ),
        ("id = 'PDS-ACK-004'\nwithdrawn = true\n", "missing field `reason`"),
        ("id = 'PDS-ACK-004'\nlevle = 'may'\nreason = 'x'\n", "line 4"),
    ] {
        let run = with(text);
        assert!(run.code == 2 && run.err.contains(said), "{text}: {}", run.err);
    }
}

#[test]
fn check_applies_corrections() {
    let capture = common::file("corrected.pcapng", b"");
    let fault = ["--fault", "fills-reserved-bits", "--id", "encoding/ack", "--max-instances", "1"];
    uet(&[&["run", "--capture", &capture], &fault[..]].concat());
    let wrong = |args: &[&str]| {
        let run = uet(&[&["check", &capture], args].concat());
        (
            run.code,
            run.out.matches(" warning WIRE-RSVD-001").count(),
            run.out.matches(" error WIRE-RSVD-001").count(),
        )
    };
    let (code, warnings, errors) = wrong(&[]);
    assert!(code == 0 && warnings > 0 && errors == 0);
    let corrections = |change: &str| {
        let text = format!("[[requirements]]\nid = 'WIRE-RSVD-001'\n{change}\nreason = 'section 9'\n");
        common::file("check-corrections.toml", text.as_bytes())
    };
    assert_eq!(wrong(&["--catalogue", &corrections("level = 'must'")]), (1, 0, warnings));
    assert_eq!(wrong(&["--catalogue", &corrections("withdrawn = true")]), (0, 0, 0));
}

#[test]
fn answers_of_an_audit_correct_a_run() {
    let page = uet(&["audit"]).out;
    let row = page.lines().find(|line| line.starts_with("| PDS-ACK-004 |")).unwrap();
    let answered = page.replace(row, &row.replace("| | |", "| no | 3.5.12 |"));
    let file = common::file("answered.md", answered.as_bytes());
    let corrections = common::file("answered.toml", uet(&["audit", &file]).out.as_bytes());
    let args = ["run", "--id", "ack/requested", "--max-instances", "1", "--fault", "ignores-ar"];
    assert_eq!(uet(&args).code, 1);
    let run = uet(&[&args[..], &["--catalogue", &corrections]].concat());
    assert!(run.code == 3 && run.out.contains("3.5.12"), "{}", run.out);
}

#[test]
fn conformance_statement_is_compared_with_device_and_results() {
    let form = uet(&["pics"]);
    assert_eq!(form.code, 0);
    assert!(
        form.out.contains("\nPDS-ACK-004 = \"?\"\n") && form.out.contains("\nrud = \"?\"  # PDS-1\n"),
        "{}",
        form.out
    );
    let filled = form
        .out
        .replace("vendor = \"\"", "vendor = \"Example\"")
        .replace("rud = \"?\"", "rud = \"no\"")
        .replace("PDS-ACK-004 = \"?\"", "PDS-ACK-004 = \"yes\"")
        .replace("PDS-ACK-007 = \"?\"", "PDS-ACK-007 = \"no\"")
        .replace("CC-RCVD-004 = \"?\"", "CC-RCVD-004 = \"yes\"");
    let filled = common::file("pics.toml", filled.as_bytes());
    let args = ["run", "--id", "ack/requested", "--max-instances", "1", "--pics", &filled];
    let count = |out: &str, what: &str| -> usize {
        let line = out
            .lines()
            .find_map(|line| line.trim().strip_prefix(what))
            .unwrap_or_else(|| panic!("{what}: {out}"));
        line.trim().parse().unwrap()
    };
    let run = uet(&args);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("conformance statement of Example\n"), "{}", run.out);
    assert!(run.out.contains("conflict: hello claims 'rud', but the form answers \"no\""), "{}", run.out);
    let counts = ["supported, held", "supported, failed", "supported, not tested", "not supported"];
    assert_eq!(counts.map(|what| count(&run.out, what)), [1, 0, 1, 1]);
    let run = uet(&[&args[..], &["--fault", "ignores-ar", "--format", "json"]].concat());
    let result: Value = serde_json::from_str(&run.out).unwrap();
    let answers = result["pics"]["requirements"].as_array().unwrap();
    let expected = json!({"id": "PDS-ACK-004", "stated": "yes", "shown": "failed"});
    assert!(answers.contains(&expected), "{answers:?}");
    let junit = common::file("pics.xml", b"");
    uet(&[&args[..], &["--junit", &junit]].concat());
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert!(
        xml.contains(
            "<testcase name=\"conformance statement/PDS-ACK-004\" classname=\"conformance statement\""
        ),
        "{xml}"
    );
    assert!(xml.contains("but the form answers &quot;no&quot;"), "{xml}");
    assert!(xml.contains("stated: supported; shown: not tested"), "{xml}");
    // A statement that the run refutes is red.
    uet(&[&args[..], &["--fault", "ignores-ar", "--junit", &junit]].concat());
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("<failure message=\"stated: supported; shown: failed\""), "{xml}");

    // A result fills in what it has shown.
    let result = common::file("pics.json", b"");
    let filled_by = |more: &[&str]| {
        uet(&[&["run", "--id", "ack/requested", "--max-instances", "1", "--json", &result], more].concat());
        uet(&["pics", "--from", &result]).out
    };
    let form = filled_by(&[]);
    let told = [
        "product = \"uet-emulator\"",
        "rud = \"yes\"  # PDS-1",
        "PDS-ACK-004 = \"yes\"",
        "PDS-ACK-007 = \"?\"\n",
        // The device sent acknowledgments, and nothing with an atomic's header.
        "WIRE-ACK-001 = \"yes\"",
        "WIRE-AMO-001 = \"?\"\n",
    ];
    assert!(told.iter().all(|line| form.contains(line)), "{form}");
    let filled = common::file("filled.toml", form.as_bytes());
    let run = uet(&["run", "--id", "ack/requested", "--max-instances", "1", "--pics", &filled]);
    assert!(run.code == 0 && !run.out.contains("conflict"), "{}", run.out);
    let form = filled_by(&["--fault", "ignores-ar"]);
    assert!(form.contains("PDS-ACK-004 = \"?\"  # failed in the run"), "{form}");

    for (text, said) in [
        ("[capabilities]\nrdu = 'yes'\n", "did you mean rud"),
        ("[requirements]\nPDS-ACK-999 = 'yes'\n", "there is no requirement 'PDS-ACK-999'"),
        ("[requirements]\nPDS-ACK-004 = 'maybe'\n", "line 2"),
    ] {
        let bad = common::file("bad-pics.toml", text.as_bytes());
        let run = uet(&["run", "--pics", &bad]);
        assert!(run.code == 2 && run.err.contains(said), "{text}: {}", run.err);
    }
}
