//! `uet check` on captures of the emulator. Clean captures have no findings for any configuration and network; faults
//! that show on the wire have theirs.

mod configurations;

use bytes::Bytes;
use configurations::{CONFIGURATIONS, config};
use std::collections::BTreeSet;
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock, Mutex};
use uet_conformance::passive::Checker;
use uet_emulator::capture::Capture;
use uet_emulator::fault::{self, Fault};
use uet_emulator::frame::Outer;
use uet_emulator::{Config, Network, Nic, NicId};
use uet_model::Mode;
use uet_model::ses::{
    Access, AtomicOn, Endpoint, Key, Operand, Operation, Peer, Process, Receive, Region, ResourceIndex, Tag,
    Work,
};
use uet_packet_io::input;
use uet_wire::catalogue::Level;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};
use uet_wire::{Options, Packet, Start, Version};

const NETWORKS: &[(&str, &[&str])] = &[
    ("a network that does nothing", &[]),
    ("5 % loss", &["drop 5%"]),
    ("loss, copies, disorder and marks", &["drop 2%", "duplicate 3%", "reorder 5 5%", "mark 10%"]),
    ("trims", &["trim 64 5% request"]),
];

/// A file that stays readable while it is written.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

const KEY: Key = Key(7);
const ADDRESSES: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];

fn process() -> Process {
    Process::Relative { job: 101, pid: 2 }
}

/// Posts an operation from one end to the other.
fn post(net: &mut Network, nic: NicId, to: [u8; 4], round: u32) {
    // Each round begins elsewhere in the same bytes. They are made once, because that takes long in a debug build.
    static COUNT: LazyLock<Bytes> = LazyLock::new(|| (0..50_255).map(|i: u32| i as u8).collect());
    let first = round as usize % 256;
    let data = |length: usize| COUNT.slice(first..first + length);
    let atomic = Work::Atomic {
        on: AtomicOn::Memory { key: KEY, offset: 0 },
        opcode: AtomicOpcode::SUM,
        datatype: AtomicDatatype::UINT32,
        operand: Operand::Elements(data(4)),
        fetch: true,
    };
    let works = [
        Work::Write { key: KEY, offset: 64, data: data(50_000) },
        Work::Write { key: KEY, offset: 64, data: data(10) },
        Work::Read { key: KEY, offset: 64, length: 9_000 },
        Work::Read { key: KEY, offset: 64, length: 8 },
        Work::Send { tag: None, data: data(6_000) },
        Work::Send { tag: Some(7), data: data(100) },
        atomic,
        Work::Write { key: Key(8), offset: 0, data: data(9_000) },
    ];
    for (number, work) in works.into_iter().enumerate() {
        let mut peer = Peer::relative(to, 101, 2);
        if number as u32 % 3 == round % 3 {
            peer.route.mode = Mode::Rod;
        }
        let _ = net[nic].post(Operation::new(peer, work));
    }
}

/// Returns the frames of a conversation of two NICs, the first with these faults.
fn conversation(config: &Config, faults: &[&'static Fault], impairments: &[&str]) -> Vec<Vec<u8>> {
    let mut net = Network::new(11);
    let file = Shared::default();
    net.capture(Capture::new(Box::new(file.clone()), Outer::default()).expect("a capture"));
    impairments.iter().for_each(|text| net.fabric().impair(text.parse().expect("an impairment")));
    let faulty = Nic::new(ADDRESSES[0], config.clone()).and_then(|nic| nic.with_faults(faults));
    let nics = [faulty, Nic::new(ADDRESSES[1], config.clone())].map(|nic| net.add(nic.expect("a NIC")));
    for nic in nics {
        let index = ResourceIndex { process: process(), index: 0 };
        net[nic].open(Endpoint { process: process(), start: 0, count: 1 }).expect("an endpoint");
        let region = Region { key: KEY, base: 0, access: Access::ALL, data: vec![0; 65_536] };
        net[nic].expose(index, region).expect("a region");
        for _ in 0..3 {
            net[nic].receive(index, Receive::new(8_192)).expect("a receive");
            let tag = Some(Tag { bits: 7, ignore: 0 });
            net[nic].receive(index, Receive { tag, ..Receive::new(8_192) }).expect("a receive");
        }
    }
    for round in 0..3 {
        for (nic, to) in [(nics[0], ADDRESSES[1]), (nics[1], ADDRESSES[0])] {
            post(&mut net, nic, to, round);
        }
        net.run(core::time::Duration::from_millis(20));
    }
    net.end_capture().map(Capture::finish).transpose().expect("written");
    let bytes = file.0.lock().expect("no panic").clone();
    let mut frames = Vec::new();
    input::read(&bytes[..], Start::Eth, &mut |record| {
        frames.push(record.bytes.to_vec());
        Ok(ControlFlow::Continue(()))
    })
    .expect("what was written can be read");
    frames
}

/// Returns the findings of `uet check`: identifier and message.
fn findings<'a>(frames: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<(&'static str, String)> {
    let options = Options::default().trimmed_dscp(Some(12)).trimmed_lasthop_dscp(Some(14));
    let mut checker = Checker::default();
    let mut found = Vec::new();
    for (number, frame) in frames.into_iter().enumerate() {
        let packet = Packet::parse_lax(Start::Eth, frame, &options).0;
        for finding in packet.validate(Version::default()) {
            if finding.requirement.level > Level::May {
                found.push((finding.requirement.id, format!("{}: {finding}", number + 1)));
            }
        }
        for finding in checker.packet(number as u64 + 1, &packet) {
            found
                .push((finding.requirement.id, format!("{number}: {} {}", finding.culprit, finding.message)));
        }
    }
    found
}

#[test]
fn clean_captures_have_no_findings() {
    let mut wrong = Vec::new();
    for (name, parameters) in CONFIGURATIONS {
        for (network, impairments) in NETWORKS {
            let frames = conversation(&config(parameters), &[], impairments);
            assert!(frames.len() > 150, "{name}, {network}: {} packets", frames.len());
            let mut rng = fastrand::Rng::with_seed(3);
            let kept: Vec<_> = frames.iter().filter(|_| rng.f64() > 0.01).collect();
            let later = &frames[frames.len() / 3..];
            for (what, found) in [
                ("whole", findings(&frames)),
                ("1 % deleted", findings(kept)),
                ("from the middle", findings(later)),
            ] {
                wrong.extend(
                    found.iter().take(3).map(|finding| format!("{name}, {network}, {what}: {finding:?}")),
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{} findings:\n{}", wrong.len(), wrong.join("\n"));
}

/// `UPDATE=1` rewrites the table.
#[test]
fn faults_that_show_on_the_wire_are_found() {
    let mut table =
        String::from("# What `uet check` finds of a NIC with a fault, in a capture of ordinary traffic.\n");
    for fault in fault::all() {
        let mut found = BTreeSet::new();
        for (_, impairments) in &NETWORKS[..3] {
            let frames = conversation(&Config { seed: 5, ..Config::default() }, &[fault], impairments);
            found.extend(findings(&frames).into_iter().map(|(id, _)| id));
        }
        if !found.is_empty() {
            let found: Vec<_> = found.into_iter().collect();
            table += &format!("{} {}\n", fault.name, found.join(" "));
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/passive-faults.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &table).expect("written");
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    let stale = there.lines().zip(table.lines()).find(|(there, found)| there != found);
    assert!(
        there == table,
        "tests/passive-faults.txt is out of date: UPDATE=1 cargo test -p uet-harness --test all passive; first: {stale:?}"
    );
}
