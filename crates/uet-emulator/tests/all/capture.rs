//! Captures of a network contain each sent packet as the fabric changes it, with a comment that lists the impairments.

use bytes::Bytes;
use core::time::Duration;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use uet_emulator::Network;
use uet_emulator::capture::Capture;
use uet_emulator::frame::{Outer, Record, frame};
use uet_model::{Packet, Time, TrimPoint};
use uet_wire::pds::Request;
use uet_wire::registry::Opcode;
use uet_wire::ses::Std;
use uet_wire::{Options, PdcId, Psn, Start, TrailerKind, UetBuf};

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [10, 0, 0, 2];

fn request(psn: u32, retx: bool) -> Packet {
    let pds = Request::rud().psn(Psn(psn)).spdcid(PdcId(1)).dpdcid(PdcId(2)).retx(retx).done().unwrap();
    let ses =
        Std::build(Opcode::UET_WRITE).request_length(100).head(|h| h.som(true).eom(true)).done().unwrap();
    let mut packet = UetBuf::new(pds);
    (packet.ses, packet.payload) = (Some(ses.into()), vec![7; 100]);
    Packet::from_wire(A, B, packet.consistent().to_bytes().into()).unwrap()
}

/// A network without NICs, with both addresses.
fn network(seed: u64, impairments: &[&str], capture: Capture) -> Network {
    let mut network = Network::new(seed);
    [A, B].iter().for_each(|address| network.attach(*address));
    impairments.iter().for_each(|text| network.fabric().impair(text.parse().unwrap()));
    network.capture(capture);
    network
}

/// Sends requests 1 to `count`, 100 ns apart, and returns the arrivals with their times.
fn through(network: &mut Network, count: u32) -> Vec<(Time, Packet)> {
    for number in 1..=count {
        network.send(request(number, false));
        network.run(Duration::from_nanos(100));
    }
    all(network)
}

fn all(network: &mut Network) -> Vec<(Time, Packet)> {
    network.run(Duration::from_millis(2));
    core::iter::from_fn(|| network.poll_arrival()).collect()
}

/// A file in memory.
#[derive(Clone, Default)]
pub(crate) struct File(pub(crate) Arc<Mutex<Vec<u8>>>);

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const ALL: &[&str] = &[
    "drop 3%",
    "duplicate 3%",
    "delay 2us 3%",
    "jitter 1us",
    "reorder 2 3%",
    "mark 3%",
    "trim 40 3%",
    "corrupt 3%",
    "blackout 3us 50",
];

fn captured(seed: u64, crc: bool) -> (Vec<(Time, Packet)>, Vec<u8>) {
    let file = File::default();
    let outer = Outer { crc, ..Outer::default() };
    let mut network = network(seed, ALL, Capture::new(Box::new(file.clone()), outer).unwrap());
    let arrivals = through(&mut network, 200);
    assert_eq!(network.end_capture().unwrap().finish().unwrap(), 200);
    let bytes = file.0.lock().unwrap().clone();
    (arrivals, bytes)
}

#[test]
fn same_seed_gives_same_bytes() {
    assert_eq!(captured(3, true), captured(3, true));
    assert_ne!(captured(3, true), captured(4, true));
}

#[test]
fn comments_list_the_impairments() {
    let (_, bytes) = captured(3, true);
    let classes = Outer::default().classes;
    let options = Options::default().trailer(TrailerKind::Crc).trimmed_dscp(Some(classes.0[0].trimmed));
    let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
    let mut seen = [0; 4];
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(block) = block.unwrap() else { continue };
        let comment = match &block.options[..] {
            [EnhancedPacketOption::Comment(comment)] => comment.to_string(),
            _ => String::new(),
        };
        let packet = uet_wire::Packet::parse(Start::Eth, &block.data, &options).unwrap();
        let (ip, pds) = (packet.ip.unwrap(), packet.uet.pds.unwrap());
        assert_eq!(packet.trimmed.is_some(), comment.contains("trim 40"), "{comment}");
        assert_eq!(
            ip.ecn(),
            if comment.contains("mark") { 3 } else { 2 },
            "requests can be marked: {comment}"
        );
        if let Some(trimmed) = packet.trimmed {
            assert_eq!((ip.dscp(), trimmed.missing), (12, Some(8 + 12 + 44 + 100 + 4 - 40)));
            seen[0] += 1;
        } else {
            assert_eq!(packet.crc_check().unwrap().ok(), !comment.contains("corrupt"), "{comment}");
            assert_eq!(ip.dscp(), classes.0[0].low);
            seen[1] += 1;
        }
        seen[2] += usize::from(comment.contains("drop"));
        seen[3] += usize::from(comment.contains("corrupt"));
        assert!(pds.request().is_some() || comment.contains("corrupt"));
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}

#[test]
fn write_errors_are_reported() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut network = network(1, &[], Capture::new(Box::new(Full(300)), Outer::default()).unwrap());
    assert_eq!(through(&mut network, 5).len(), 5, "the network goes on");
    assert_eq!(network.end_capture().unwrap().finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
}

#[test]
fn capture_stops_after_a_failure() {
    /// Fails once, after this many writes.
    struct Once(usize, File);
    impl Write for Once {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.wrapping_sub(1);
            if self.0 == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.1.write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let file = File::default();
    let capture = Capture::new(Box::new(Once(60, file.clone())), Outer::default()).unwrap();
    let mut network = network(1, &[], capture);
    (1..20).for_each(|_| network.send(request(1, false)));
    let length = file.0.lock().unwrap().len();
    network.send(request(2, false));
    assert_eq!(file.0.lock().unwrap().len(), length);
    assert!(network.end_capture().unwrap().finish().is_err());
}

#[test]
fn trimmed_frames_have_no_trailer() {
    let trimmed = Packet { trimmed: Some(TrimPoint::Fabric), ..request(1, false) };
    let outer = Outer { crc: true, ..Outer::default() };
    let length = |packet: &Packet| frame(&Record::new(Time(0), packet), &outer).unwrap().len();
    assert_eq!(length(&request(1, false)), length(&trimmed) + 4);
}

#[test]
fn impossible_packets_are_not_captured() {
    let file = File::default();
    let mut network = network(1, &[], Capture::new(Box::new(file.clone()), Outer::default()).unwrap());
    network.attach("fd00::2".parse::<core::net::IpAddr>().unwrap());
    let six =
        Packet { src: "fd00::1".parse().unwrap(), dst: "fd00::2".parse().unwrap(), ..request(1, false) };
    network.send(six.clone());
    network.send(Packet { dst: B.into(), ..six });
    network.send(Packet { payload: Bytes::from(vec![0; 70_000]), ..request(1, false) });
    assert_eq!(all(&mut network).len(), 3);
    assert_eq!(network.end_capture().unwrap().finish().unwrap(), 1, "only the first fits on a wire");
}
