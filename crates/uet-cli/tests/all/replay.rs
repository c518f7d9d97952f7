//! `uet replay` plays one side of a recorded conversation to other NICs.
#![cfg(target_os = "linux")]

use crate::common;

use common::uet;
use std::fs::File;
use std::path::Path;
use uet_emulator::capture::Capture;
use uet_emulator::frame::Outer;
use uet_emulator::{Config, Network, Nic};
use uet_model::ses::{Access, Key, Operation, Peer, Process, Region, ResourceIndex, Work};

/// Records a write of three packets to memory of this length; returns the capture.
fn recorded(name: &str, length: usize) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut net = Network::new(3);
    let a = net.add(Nic::new([10, 0, 0, 1], Config::default()).unwrap());
    let b = net.add(Nic::new([10, 0, 0, 2], Config::default()).unwrap());
    let index = ResourceIndex { process: Process::Relative { job: 101, pid: 2 }, index: 0 };
    let region = Region { key: Key(7), base: 0, access: Access::ALL, data: vec![0; length] };
    net[b].expose(index, region).unwrap();
    net.capture(Capture::new(Box::new(File::create(&path).unwrap()), Outer::default()).unwrap());
    let write = Work::Write { key: Key(7), offset: 0, data: vec![1; 12_288].into() };
    let write = net[a].post(Operation::new(Peer::relative([10, 0, 0, 2], 101, 2), write)).unwrap();
    assert_eq!(net.operation(a, write).unwrap().is_ok(), length >= 12_288);
    net.end_capture().unwrap().finish().unwrap();
    path.display().to_string()
}

#[test]
fn a_nic_like_the_other_answers_the_same() {
    let capture = recorded("replay-same.pcapng", 12_288);
    let run = uet(&["replay", &capture]);
    assert_eq!((run.code, run.out.as_str()), (0, "3 sent, 3 received, 0 missing, 0 new\n"), "{}", run.err);
    let device = format!("exec:{} emulate --control stdio --listen 127.0.0.38:0", env!("CARGO_BIN_EXE_uet"));
    let run = uet(&["replay", &capture, "--to", &device, "--wait", "200"]);
    assert!(run.out.contains("3 sent, 3 received"), "{}{}", run.out, run.err);
}

#[test]
fn differences_are_reported() {
    // A write too long for one region can fit in another.
    let capture = recorded("replay-other.pcapng", 100);
    let run = uet(&["replay", &capture]);
    assert_eq!(run.code, 1, "{}", run.err);
    let lines = |sign: &str, word: &str| {
        run.out.lines().filter(|line| line.starts_with(sign) && line.contains(word)).count()
    };
    assert!(lines("- ", "BAD_ADDR") > 0 && lines("+ ", "OK") > 0, "{}", run.out);

    // The replayed ACKs acknowledge requests that the device never sent.
    let run = uet(&["replay", &capture, "--side", "10.0.0.2"]);
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(run.out.contains("- RUD_REQ") && run.out.contains(" 0 received"), "{}", run.out);
    let run = uet(&["replay", &capture, "--side", "10.0.0.9"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("the capture contains no packet of the selected side"), "{}", run.err);
}

#[test]
fn long_recording_is_refused_with_the_limit() {
    let frames = vec![common::write(); 65_537];
    let path = common::file("long.pcap", &common::capture::simple(&frames));
    // The fuzzer keeps 64 packets of each address.
    let source = |number: usize, mut frame: Vec<u8>| {
        frame[27..30].copy_from_slice(&(number as u32 / 64).to_be_bytes()[1..]);
        frame
    };
    let frames: Vec<_> = (0..).map(|number| source(number, common::write())).take(65_537).collect();
    let spread = common::file("spread.pcap", &common::capture::simple(&frames));
    let fuzz = ["fuzz", "embedded", "--cases", "1", "--from", &spread];
    for arguments in [&["replay", &path][..], &fuzz] {
        let run = uet(arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.out);
        let told = "the conversation is longer than the limit of 65536 packets and 64 MiB; cut the capture";
        assert!(run.err.contains(told), "{arguments:?}: {}", run.err);
    }
}
