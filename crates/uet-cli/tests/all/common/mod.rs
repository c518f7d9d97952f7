//! Runs the program and builds packets for its tests.

pub(crate) mod capture;
#[cfg(target_os = "linux")]
pub(crate) mod nic;

use serde_json::{Value, json};
use std::io::Write;
use std::panic::Location;
use std::path::Path;
use std::process::{Command, Stdio};
#[cfg(target_os = "linux")]
use std::time::Duration;
use uet_packet_io::hex::Hex;
use uet_packet_io::json::{Settings, encode};

/// Ends a test that hangs. No machine is so busy that this ends another.
#[cfg(target_os = "linux")]
pub(crate) const ENDLESS: Duration = Duration::from_secs(60);

/// Result of a run of the program.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs the program; its output is not a terminal. `run` gets one instance of each rule unless the test says otherwise: each
/// instance takes real time on a device in real time.
pub(crate) fn uet(args: &[&str]) -> Run {
    match args {
        ["run", rest @ ..] if !rest.contains(&"--max-instances") => {
            uet_with(b"", &[&["run", "--max-instances", "1"], rest].concat())
        }
        _ => uet_with(b"", args),
    }
}

/// Runs the program with this standard input.
pub(crate) fn uet_with(stdin: &[u8], args: &[&str]) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_uet"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let stdin = stdin.to_vec();
    // A thread writes, because the program may print before it has read all, or exit without reading.
    let writer = std::thread::spawn(move || drop(input.write_all(&stdin)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Sends a signal to a process.
#[cfg(target_os = "linux")]
pub(crate) fn signal(process: u32, name: &str) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

/// Writes a file for one test. Each module of tests has a folder of its own, because the tests run at the same time.
#[track_caller]
pub(crate) fn file(name: &str, content: &[u8]) -> String {
    let module = Path::new(Location::caller().file()).file_stem().unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("files").join(module);
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Returns the frame that this JSON describes.
pub(crate) fn frame(packet: &Value) -> Vec<u8> {
    encode(packet, &Settings::default()).unwrap()
}

/// Returns a line of hexadecimal digits for each frame.
pub(crate) fn lines(frames: &[Vec<u8>]) -> String {
    frames.iter().map(|frame| format!("{}\n", Hex(frame))).collect()
}

/// Builds a packet of an initiator with these fields.
pub(crate) fn sent(fields: Value, payload: usize) -> Vec<u8> {
    let (src, dst) = ("10.0.0.1", "10.0.1.12");
    frame(&json!({"src": src, "dst": dst, "fields": fields, "payload": {"length": payload}}))
}

/// Builds a packet of a target with these fields.
pub(crate) fn answered(fields: Value, payload: usize) -> Vec<u8> {
    let (src, dst) = ("10.0.1.12", "10.0.0.1");
    frame(&json!({"src": src, "dst": dst, "fields": fields, "payload": {"length": payload}}))
}

/// Builds the first packet of a write of 16 KiB.
pub(crate) fn write() -> Vec<u8> {
    let fields = json!({
        "udp.src_port": 48879, "ip.dscp": 10, "pds.type": 2, "pds.flags.ar": 1, "pds.flags.syn": 1,
        "pds.clear_psn_offset": -1, "pds.psn": 73728, "pds.spdcid": 0x4001, "pds.psn_offset": 0, "ses.opcode": 1,
        "ses.rel": 1, "ses.hd": 1, "ses.som": 1, "ses.message_id": 1, "ses.ri_generation": 1, "ses.job_id": 101,
        "ses.pid_on_fep": 2, "ses.resource_index": 10, "ses.memory_key": "0xacce5", "ses.header_data": "0xb",
        "ses.request_length": 16384
    });
    sent(fields, 64)
}

/// Builds an acknowledgment of it.
pub(crate) fn ack() -> Vec<u8> {
    let fields = json!({
        "pds.type": 7, "pds.ack_psn_offset": -2, "pds.cack_psn": 73730, "pds.spdcid": 0x8001, "pds.dpdcid": 0x4001,
        "ses.opcode": 0, "ses.return_code": 1, "ses.message_id": 1, "ses.job_id": 101
    });
    answered(fields, 0)
}

/// Builds a small request that claims not to start its message: WIRE-SES-003, an error.
pub(crate) fn forbidden() -> Vec<u8> {
    let fields = json!({
        "pds.type": 3, "pds.clear_psn_offset": -1, "pds.psn": 7, "pds.spdcid": 0x4002, "pds.dpdcid": 0x8002,
        "pds.next_hdr": 1, "ses.opcode": 5, "ses.eom": 1, "ses.request_length": 8, "ses.job_id": 101
    });
    sent(fields, 8)
}

/// Builds a NACK with reserved bits set: a warning.
pub(crate) fn odd() -> Vec<u8> {
    let fields = json!({
        "pds.type": 10, "pds.nack_code": 13, "pds.nack_psn": 335, "pds.spdcid": 0x8001, "pds.dpdcid": 0x4001
    });
    let packet =
        json!({"src": "10.0.1.12", "dst": "10.0.0.1", "fields": fields, "reserved": {"nack@13:3": 5}});
    frame(&packet)
}

/// Builds a malformed request, truncated in its PDS header with matching lengths.
pub(crate) fn malformed() -> Vec<u8> {
    let fields = json!({"pds.type": 2, "pds.psn": 9, "pds.clear_psn_offset": -1});
    frame(
        &json!({"src": "10.0.0.1", "dst": "10.0.1.12", "fields": fields, "error": {"layer": "pds", "present": 8}}),
    )
}
