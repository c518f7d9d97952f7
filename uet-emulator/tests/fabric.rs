//! The network does what it is told, the same each time, and what passed can be read.

use bytes::Bytes;
use core::time::Duration;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use uet_emulator::capture::Capture;
use uet_emulator::fabric::{Arrival, Effect, Fabric, HELD, Impairment, Kind};
use uet_emulator::frame::{Outer, Record, frame};
use uet_model::{Packet, Priority, Time, TrimPoint};
use uet_wire::pds::{Ack, Nack, Request};
use uet_wire::registry::{NackCode, Opcode};
use uet_wire::ses::Std;
use uet_wire::{Options, PdcId, Psn, Start, TrailerKind, UetBuf};

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [10, 0, 0, 2];

fn from_buf(packet: UetBuf) -> Packet {
    Packet::from_wire(A, B, packet.consistent().to_bytes().into()).unwrap()
}

fn request(psn: u32, retx: bool) -> Packet {
    let pds = Request::rud().psn(Psn(psn)).spdcid(PdcId(1)).dpdcid(PdcId(2)).retx(retx).done().unwrap();
    let ses =
        Std::build(Opcode::UET_WRITE).request_length(100).head(|h| h.som(true).eom(true)).done().unwrap();
    let mut packet = UetBuf::new(pds);
    (packet.ses, packet.payload) = (Some(ses.into()), vec![7; 100]);
    from_buf(packet)
}

fn ack(psn: u32) -> Packet {
    let ack = Ack::build().cack_psn(Psn(psn)).done().unwrap();
    Packet { priority: Priority::High, ..from_buf(UetBuf::new(ack)) }
}

fn nack(psn: u32) -> Packet {
    let nack = Nack::build(NackCode::NO_PKT_BUFFER).nack_psn(Psn(psn)).done().unwrap();
    from_buf(UetBuf::new(nack))
}

fn psn(packet: &Packet) -> u32 {
    let bytes = packet.to_wire();
    let pds = uet_wire::Uet::parse_lax(&bytes).0.pds.unwrap();
    pds.request().map(|request| request.psn().0).or(pds.ack().map(|ack| ack.cack_psn().0)).unwrap()
}

fn fabric(impairments: &[&str]) -> Fabric {
    let mut fabric = Fabric::new(1);
    impairments.iter().for_each(|text| fabric.impair(text.parse().unwrap()));
    fabric
}

/// Sends requests 1 to `count`, 100 ns apart, and gives what arrives and when.
fn through(fabric: &mut Fabric, count: u32) -> Vec<(Time, Arrival)> {
    (1..=count).for_each(|n| fabric.send(Time(u64::from(n) * 100), request(n, false)));
    all(fabric)
}

fn all(fabric: &mut Fabric) -> Vec<(Time, Arrival)> {
    let mut arrivals = Vec::new();
    while let Some(at) = fabric.next() {
        while let Some(arrival) = fabric.receive(at) {
            arrivals.push((at, arrival));
        }
    }
    arrivals
}

fn psns(arrivals: &[(Time, Arrival)]) -> Vec<u32> {
    arrivals.iter().map(|(_, arrival)| psn(&arrival.packet)).collect()
}

#[test]
fn without_impairments_all_arrives_in_order_after_the_latency() {
    let mut fabric = fabric(&[]);
    fabric.latency = Duration::from_nanos(70);
    let arrivals = through(&mut fabric, 3);
    assert_eq!(psns(&arrivals), [1, 2, 3]);
    assert_eq!(arrivals[0].0, Time(170));
    assert_eq!(arrivals[0].1, Arrival { packet: request(1, false), corrupt: false });
}

#[test]
fn what_is_lost_is_lost_by_position() {
    assert_eq!(psns(&through(&mut fabric(&["drop request 3"]), 5)), [1, 2, 4, 5]);
    assert_eq!(psns(&through(&mut fabric(&["drop 2..4"]), 5)), [1, 5]);
    assert_eq!(psns(&through(&mut fabric(&["drop every 2"]), 5)), [1, 3, 5]);
    assert_eq!(psns(&through(&mut fabric(&["drop after 200ns before 400ns"]), 5)), [1, 4, 5]);
    assert_eq!(psns(&through(&mut fabric(&["drop from 10.0.0.2"]), 2)), [1, 2]);
    assert_eq!(psns(&through(&mut fabric(&["drop to 10.0.0.2"]), 2)), [0u32; 0]);
}

#[test]
fn each_impairment_counts_all_packets() {
    assert_eq!(psns(&through(&mut fabric(&["drop 2", "drop 4"]), 5)), [1, 3, 5]);
}

#[test]
fn kinds_are_told_apart() {
    let packets = [request(1, false), request(2, true), ack(3), nack(4)];
    let kinds = [
        (Kind::Packet, [true; 4]),
        (Kind::Request, [true, true, false, false]),
        (Kind::First, [true, false, false, false]),
        (Kind::Retransmission, [false, true, false, false]),
        (Kind::Ack, [false, false, true, false]),
        (Kind::Nack, [false, false, false, true]),
        (Kind::Control, [false; 4]),
    ];
    for (kind, expected) in kinds {
        assert_eq!(packets.each_ref().map(|packet| kind.is(packet)), expected, "{kind:?}");
    }
}

#[test]
fn a_predicate_is_asked() {
    let mut fabric = fabric(&[]);
    fabric.impair(Impairment::new(Effect::Drop).only(|packet| psn(packet) > 2));
    assert_eq!(psns(&through(&mut fabric, 4)), [1, 2]);
}

#[test]
fn a_percentage_is_met() {
    let mut fabric = fabric(&["drop 20%"]);
    let arrived = through(&mut fabric, 10_000).len();
    assert!((7_800..8_200).contains(&arrived), "{arrived}");
    assert_eq!(fabric.counters().lost as usize, 10_000 - arrived);
}

#[test]
fn what_is_duplicated_comes_twice() {
    assert_eq!(psns(&through(&mut fabric(&["duplicate 2"]), 3)), [1, 2, 2, 3]);
}

#[test]
fn delays_add_up() {
    let arrivals = through(&mut fabric(&["delay 2us 1", "delay 3us first 1"]), 2);
    assert_eq!(psns(&arrivals), [2, 1]);
    assert_eq!(arrivals[1].0, Time(100 + 1_000 + 5_000));
}

#[test]
fn jitter_stays_within_its_span() {
    let arrivals = through(&mut fabric(&["jitter 1us"]), 1_000);
    let sent = |arrival: &Arrival| u64::from(psn(&arrival.packet)) * 100;
    let late: Vec<u64> = arrivals.iter().map(|(at, arrival)| at.0 - sent(arrival) - 1_000).collect();
    assert!(late.iter().all(|late| *late <= 1_000));
    assert!(late.iter().any(|late| *late > 900) && late.iter().any(|late| *late < 100));
}

#[test]
fn what_is_held_back_is_overtaken() {
    let arrivals = through(&mut fabric(&["reorder 2 1"]), 4);
    assert_eq!(psns(&arrivals), [2, 3, 1, 4]);
    // Nobody comes to overtake it.
    let arrivals = through(&mut fabric(&["reorder 2 1"]), 2);
    assert_eq!(psns(&arrivals), [2, 1]);
    assert_eq!(arrivals[1].0, Time(100) + HELD);
}

#[test]
fn a_mark_is_seen() {
    let arrivals = through(&mut fabric(&["mark 2"]), 3);
    let marked: Vec<bool> = arrivals.iter().map(|(_, arrival)| arrival.packet.marked).collect();
    assert_eq!(marked, [false, true, false]);
}

#[test]
fn what_is_trimmed_keeps_its_delivery_header() {
    let arrivals = through(&mut fabric(&["trim 24 1", "trim-last-hop 64 2"]), 3);
    let [(_, first), (_, second), (_, third)] = &arrivals[..] else { panic!() };
    assert_eq!(first.packet.trimmed, Some(TrimPoint::Fabric));
    assert_eq!(first.packet.to_wire(), request(1, false).to_wire()[..16]);
    assert_eq!(first.packet.priority, Priority::Medium);
    assert_eq!(second.packet.trimmed, Some(TrimPoint::LastHop));
    assert_eq!(second.packet.to_wire(), request(2, false).to_wire()[..56]);
    assert_eq!(third.packet, request(3, false));
}

#[test]
fn what_is_damaged_is_told() {
    let arrivals = through(&mut fabric(&["corrupt 2"]), 2);
    assert_eq!(arrivals.iter().map(|(_, arrival)| arrival.corrupt).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn a_blackout_takes_all_for_a_time() {
    // From the second on, at 200 ns, before 500 ns.
    assert_eq!(psns(&through(&mut fabric(&["blackout 300ns request 2"]), 6)), [1, 5, 6]);
}

#[test]
fn a_full_network_loses() {
    let mut fabric = fabric(&[]);
    fabric.capacity = 3;
    assert_eq!(psns(&through(&mut fabric, 5)), [1, 2, 3]);
    assert_eq!(fabric.counters().full, 2);
}

/// A file in memory.
#[derive(Clone, Default)]
struct File(Arc<Mutex<Vec<u8>>>);

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

fn captured(seed: u64, crc: bool) -> (Vec<(Time, Arrival)>, Vec<u8>) {
    let file = File::default();
    let mut fabric = Fabric::new(seed);
    ALL.iter().for_each(|text| fabric.impair(text.parse().unwrap()));
    let outer = Outer { crc, ..Outer::default() };
    fabric.capture(Capture::new(Box::new(file.clone()), outer).unwrap());
    let arrivals = through(&mut fabric, 200);
    assert_eq!(fabric.end_capture().unwrap().finish().unwrap(), 200);
    let bytes = file.0.lock().unwrap().clone();
    (arrivals, bytes)
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    assert_eq!(captured(3, true), captured(3, true));
    assert_ne!(captured(3, true), captured(4, true));
}

#[test]
fn another_impairment_does_not_shift_the_chances_of_the_others() {
    let lost = |more: &[&str]| psns(&through(&mut fabric(&[&["drop 30%"], more].concat()), 100));
    assert_eq!(
        lost(&[]),
        lost(&["mark 50%", "delay 1us 10%"])
            .into_iter()
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    );
}

#[test]
fn what_is_captured_says_what_was_done() {
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
fn a_file_that_cannot_be_written_is_told() {
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
    let mut fabric = fabric(&[]);
    fabric.capture(Capture::new(Box::new(Full(300)), Outer::default()).unwrap());
    assert_eq!(through(&mut fabric, 5).len(), 5, "the network goes on");
    assert_eq!(fabric.end_capture().unwrap().finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
}

#[test]
fn after_a_failure_nothing_more_is_written() {
    /// Fails once, after so many pieces.
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
    let mut fabric = fabric(&[]);
    let capture = Capture::new(Box::new(Once(60, file.clone())), Outer::default()).unwrap();
    fabric.capture(capture);
    (1..20).for_each(|n| fabric.send(Time(n), request(1, false)));
    let length = file.0.lock().unwrap().len();
    fabric.send(Time(30), request(2, false));
    assert_eq!(file.0.lock().unwrap().len(), length);
    assert!(fabric.end_capture().unwrap().finish().is_err());
}

#[test]
fn what_comes_trimmed_has_no_trailer() {
    let trimmed = Packet { trimmed: Some(TrimPoint::Fabric), ..request(1, false) };
    let outer = Outer { crc: true, ..Outer::default() };
    let length = |packet: &Packet| frame(&Record::new(Time(0), packet), &outer).unwrap().len();
    assert_eq!(length(&request(1, false)), length(&trimmed) + 4);
}

#[test]
fn ipv6_and_what_is_no_packet_at_all() {
    let file = File::default();
    let mut fabric = fabric(&[]);
    fabric.capture(Capture::new(Box::new(file.clone()), Outer::default()).unwrap());
    let six = Packet { src: "fd00::1".parse().unwrap(), dst: "fd00::2".parse().unwrap(), ..ack(1) };
    fabric.send(Time(0), six.clone());
    fabric.send(Time(0), Packet { dst: B.into(), ..six });
    fabric.send(Time(0), Packet { payload: Bytes::from(vec![0; 70_000]), ..ack(1) });
    assert_eq!(all(&mut fabric).len(), 3);
    assert_eq!(fabric.end_capture().unwrap().finish().unwrap(), 1, "what fits no wire is not written");
}
