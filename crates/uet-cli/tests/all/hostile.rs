//! Hostile strings of devices, files and arguments never reach the output unescaped, whatever the command and the format.

use crate::common;

use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, UdpSocket};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Clears the screen, sets the title, colors, reorders and hides text.
pub(crate) const HOSTILE: &str = "x\u{1b}[2J\u{1b}]0;t\u{7}\u{9b}31m\u{202e}\u{2066}\u{200f}\u{7f}\r\u{8}y";

pub(crate) fn assert_clean(what: &str, text: &str) {
    let unsafe_character = |c: &char| {
        c.is_control() && *c != '\n'
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
    };
    if let Some(at) = text.find(|c| unsafe_character(&c)) {
        let from = text[..at].char_indices().rev().nth(60).map_or(0, |(from, _)| from);
        panic!("{what}: {:?}", text[from..].chars().take(120).collect::<String>());
    }
}

fn uet<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_uet"));
    command.args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Runs a command and returns its exit code.
fn check<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> i32 {
    let arguments: Vec<_> = arguments.into_iter().map(|word| word.as_ref().to_owned()).collect();
    let output = uet(&arguments);
    let what = format!("{arguments:?}");
    assert_clean(&what, &String::from_utf8_lossy(&output.stdout));
    assert_clean(&what, &String::from_utf8_lossy(&output.stderr));
    output.status.code().unwrap_or_else(|| panic!("{what} was ended by a signal"))
}

/// A device that sends hostile strings and refuses every operation but `reset`. Its packets come to this port.
fn hostile_device(port: u16) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut writer = stream.try_clone().unwrap();
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let request: Value = serde_json::from_str(&line).unwrap();
                let id = &request["id"];
                let answer = match request["op"].as_str() {
                    Some("hello") => json!({
                        "id": id, "ok": true, "protocol": 1, "name": HOSTILE, "version": HOSTILE,
                        "specification": HOSTILE, "capabilities": ["rud", "write", HOSTILE],
                        "parameters": {HOSTILE: HOSTILE, "payload_mtu": HOSTILE},
                        "link": {"kind": "udp", "addr": "127.0.0.1", "port": port},
                    }),
                    Some("reset") => json!({"id": id, "ok": true}),
                    Some("counters") => json!({HOSTILE: id, "ok": HOSTILE}),
                    _ => json!({"id": id, "error": {"code": "internal", "message": HOSTILE}}),
                };
                if writeln!(writer, "{answer}").is_err() {
                    break;
                }
            }
        }
    });
    address.to_string()
}

#[test]
fn hostile_device_cannot_reach_the_terminal() {
    // Nobody else gets a port while this socket is open.
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let control = hostile_device(address.port());
    let device = ["--control", &control, "--local", "127.0.0.2,127.0.0.3"];
    let run = |arguments: &[&str]| check(arguments.iter().chain(&device));
    let files = ["json", "xml", "html"].map(|kind| common::file(&format!("hostile.{kind}"), b""));
    for format in ["text", "json"] {
        run(&["doctor", "--format", format]);
        run(&["run", "--group", "ack", "--timeout-scale", "0.05", "--format", format]);
    }
    let [json, xml, html] = &files;
    run(&["run", "--id", "ack/retx", "--json", json, "--junit", xml, "--html", html]);
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        assert!(text.contains(r"\u{1b}[2J") || text.contains(r"\\u{1b}[2J"), "{file} quotes the device");
        assert_clean(file, &text);
    }
    check(["fuzz", &format!("udp://{address}"), "--control", &control, "--cases", "1"]);
}

#[test]
fn hostile_files_and_arguments_cannot_reach_the_terminal() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = |name: &str, text: &str| {
        let path = folder.join(format!("{HOSTILE}{name}"));
        fs::write(&path, text).unwrap();
        path.into_os_string()
    };
    let quoted = json!(HOSTILE).to_string().replace('\u{7f}', "\\u007f");
    let key = file(
        "key.json",
        &format!("{{{quoted}: 1}}\n{{\"fields\": {{{quoted}: 1}}}}\n{{\"src\": {quoted}}}\n"),
    );
    assert_eq!(check(["encode".as_ref(), key.as_os_str()]), 1);
    let toml = file(
        "statement.toml",
        &format!("name = {quoted}\nclaims = [{quoted}]\n[[waivers]]\nid = \"ack/retx\"\nreason = {quoted}\n"),
    );
    check(["run".as_ref(), "--id".as_ref(), "ack/retx".as_ref(), "--statement".as_ref(), toml.as_os_str()]);
    let broken = file("broken.toml", &format!("name = {HOSTILE}\n"));
    for option in ["--statement", "--config", "--baseline"] {
        assert_eq!(check(["run".as_ref(), option.as_ref(), broken.as_os_str()]), 2, "{option}");
    }
    let key = file("key.toml", "[[requirements]]\n\"\\n::set-output name=x::y\" = 1\n[sweep]\n");
    for words in [
        &["check", "--catalogue"][..],
        &["run", "--statement"],
        &["run", "--config"],
        &["simulate", "--sweep"],
    ] {
        let output = uet(words.iter().map(OsStr::new).chain([key.as_os_str(), OsStr::new("x")]));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && !said.contains("\n::"), "{words:?}: {said}");
    }
    for command in ["decode", "check"] {
        assert_eq!(check([command.as_ref(), broken.as_os_str()]), 2, "{command}");
    }
    for option in ["--matrix", "--workload", "--goal", "--sweep", "--"] {
        assert_eq!(check(["simulate".as_ref(), option.as_ref(), broken.as_os_str()]), 2, "{option}");
    }
    let named = file(
        "workload.toml",
        &format!("[[job]]\nname = {quoted}\npattern = \"all-gather\"\nsize = 100\nhosts = [0, 1]\n"),
    );
    assert_eq!(check(["simulate".as_ref(), "--workload".as_ref(), named.as_os_str()]), 2);
    let sweep = file("sweep.toml", &format!("[sweep]\nmatrix = [{quoted}]\n"));
    assert_eq!(check(["simulate".as_ref(), "--sweep".as_ref(), sweep.as_os_str()]), 3);
    assert_eq!(check(["fuzz".as_ref(), "--again".as_ref(), broken.as_os_str()]), 2);
    for words in [
        &["explain", HOSTILE][..],
        &["run", "--id", HOSTILE],
        &["run", "--group", HOSTILE],
        &["run", "--impair", HOSTILE],
        &["run", "--fault", HOSTILE],
        &["run", "--control", HOSTILE],
        &["layout", HOSTILE],
        &["list", HOSTILE],
        &["decode", "--from", HOSTILE],
        &["simulate", "--pattern", HOSTILE],
        &[HOSTILE],
    ] {
        assert_ne!(check(words), 0, "{words:?}");
    }
}

#[test]
fn endless_files_are_refused_with_the_limit() {
    for (words, limit) in [
        (&["run", "--statement", "/dev/zero"][..], "limit of 1048576 bytes"),
        (&["run", "--config", "/dev/zero"], "limit of 1048576 bytes"),
        (&["emulate", "--config", "/dev/zero"], "limit of 1048576 bytes"),
        (&["simulate", "--matrix", "/dev/zero"], "limit of 67108864 bytes"),
        (&["simulate", "--workload", "/dev/zero"], "limit of 67108864 bytes"),
        (&["simulate", "--goal", "/dev/zero"], "limit of 67108864 bytes"),
        (&["simulate", "--sweep", "/dev/zero"], "limit of 1048576 bytes"),
        (&["run", "--baseline", "/dev/zero"], "limit of 16777216 bytes"),
        (&["fuzz", "--again", "/dev/zero"], "limit of 16777216 bytes"),
        (&["encode", "/dev/zero"], "line 1: the line is longer than the limit of 4194304 bytes"),
    ] {
        let output = uet(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(limit), "{words:?}: {said}");
    }
}

#[test]
fn script_with_a_number_above_its_limit_is_refused() {
    let script = "{\"trouble\": \"crash\", \"what\": \"\", \"seed\": 1, \"case\": 1, \"reproduced\": true,\n\
        \"script\": {\"regions\": [], \"contexts\": [], \"steps\": [\n\
        {\"step\": \"message\", \"context\": 0, \"kind\": \"write\", \"length\": 2147483648}]}}";
    let path = common::file("hostile-script.json", script.as_bytes());
    let output = uet(["fuzz", "--again", &path]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in
        ["hostile-script.json", "step 1: `length` is 2147483648, above the limit of 1048576", "line 3"]
    {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn endless_line_from_a_pipe_is_refused_with_the_limit() {
    for (words, limit) in [
        (&["encode", "-"][..], "limit of 4194304 bytes"),
        (&["run", "--statement", "/dev/stdin"], "limit of 1048576 bytes"),
        (&["fuzz", "--again", "/dev/stdin"], "limit of 16777216 bytes"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_uet"));
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || while pipe.write_all(&[b'a'; 65_536]).is_ok() {});
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(limit), "{words:?}: {said}");
    }
}

#[test]
fn bad_input_leaves_the_old_output_alone() {
    let old = common::file("hostile-old.pcapng", b"old");
    let endless = uet(["encode", "/dev/zero", "-o", &old, "--format", "pcapng"]);
    assert_eq!(endless.status.code(), Some(2));
    assert_eq!(fs::read(&old).unwrap(), b"old");
}

#[test]
fn signal_ends_an_emulator_whose_capture_never_opens() {
    // A file of an earlier run is a pipe too, which nobody may open.
    let pipe = format!("{}/hostile-pipe-{}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut child = Command::new(env!("CARGO_BIN_EXE_uet"))
        .args(["emulate", "--listen", "127.0.0.1:0", "--capture", &pipe])
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    common::signal(child.id(), "-TERM");
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let ended = child.try_wait().unwrap().is_some();
    let _ = child.kill();
    fs::remove_file(&pipe).unwrap();
    assert!(ended, "SIGTERM did not end it");
}

#[test]
#[cfg(target_os = "linux")]
fn hostile_paths_are_printed_escaped() {
    let folder =
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile-paths").join("x\u{1b}[2J\u{202e}'y");
    fs::create_dir_all(&folder).unwrap();
    let (library, fake) = (folder.join("lib.so"), folder.join("tshark"));
    fs::write(&library, "library").unwrap();
    fs::write(&fake, "#!/bin/sh\nprintf 'Personal Lua Plugins:\\t%s\\n' \"${0%/*}\"\n").unwrap();
    fs::set_permissions(&fake, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_uet"));
        let run = command.args(arguments).env("PATH", &folder).output().unwrap();
        assert!(run.status.success(), "{arguments:?}: {run:?}");
        let out = String::from_utf8(run.stdout).unwrap();
        assert_clean(&format!("{arguments:?}"), &out);
        out
    };
    run(&["wireshark", "--install"]);
    assert!(folder.join("uet.lua").exists());
    run(&["site", &text(&folder.join("site"))]);
    let line = run(&["libfabric", "--install", &text(&folder), "--library", &text(&library)]);
    let shell =
        Command::new("bash").args(["-c", &format!("{line}\nprintf %s \"$FI_PROVIDER_PATH\"")]).output();
    let canonical = fs::canonicalize(&folder).unwrap();
    assert_eq!(String::from_utf8(shell.unwrap().stdout).unwrap(), text(&canonical));
}

/// Each of these files once took many times its size.
#[test]
fn inputs_do_not_multiply_in_memory() {
    let frugal = |words: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 300000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_uet")]);
        let output = command.args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let objects = vec![r#"{"a":0}"#; 1 << 20].join(",");
    let result = common::file("objects.json", format!(r#"{{"rules":[],"x":[{objects}]}}"#).as_bytes());
    frugal(&["pics", "--from", &result]);

    // Each of 4,000 senders has one response, after more than a century.
    let request = common::sent(json!({"pds.type": 2, "pds.psn": 1, "pds.spdcid": 9, "pds.flags.syn": 1}), 1);
    let ack = common::frame(&json!({"src": "10.0.1.12", "dst": "10.0.0.1",
        "fields": {"pds.type": 7, "pds.cack_psn": 1, "pds.spdcid": 3, "pds.dpdcid": 9}}));
    let mut frames = Vec::new();
    for sender in 0..4_000_u32 {
        let (mut request, mut ack) = (request.clone(), ack.clone());
        request[26..30].copy_from_slice(&(0x0b00_0001 + sender).to_be_bytes());
        ack[30..34].copy_from_slice(&(0x0b00_0001 + sender).to_be_bytes());
        frames.extend([(0, request), (u32::MAX, ack)]);
    }
    let packets: Vec<_> = frames.iter().map(|(time, frame)| (*time, 0, frame.len(), &frame[..])).collect();
    let capture = common::capture::pcap(common::capture::Order::Little, false, 1, &packets);
    let out = frugal(&["stats", "--format", "json", &common::file("senders.pcap", &capture)]);
    let stats: Value = serde_json::from_slice(&out).unwrap();
    assert!(
        stats["total"]["response_ns"]["p50"].as_u64() > Some(4_000_000_000_000_000_000),
        "{}",
        stats["total"]
    );
}
