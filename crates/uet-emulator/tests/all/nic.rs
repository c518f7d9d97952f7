//! Two NICs on a network: every kind of operation, on a good network and on bad ones.

use crate::capture::File;
use bytes::Bytes;
use uet_emulator::capture::Capture;
use uet_emulator::frame::Outer;
use uet_emulator::{Config, Network, Nic, NicId};
use uet_model::network::Impairment;
use uet_model::ses::{
    Access, AtomicOn, Done, Key, Operand, Operation, OperationError, Peer, Process, Receive, Region,
    RegionId, ResourceIndex, Work,
};
use uet_model::{Failure, Mode, Time};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode, NackCode, ReturnCode};

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [10, 0, 0, 2];
const INDEX: ResourceIndex = ResourceIndex { process: Process::Relative { job: 101, pid: 2 }, index: 0 };
const KEY: Key = Key(0xacce5);

struct Pair {
    net: Network,
    a: NicId,
    b: NicId,
}

impl Pair {
    fn new(seed: u64, impairments: &[&str]) -> Self {
        let config = || Config { seed, ..Config::default() };
        let mut net = Network::new(seed);
        let a = net.add(Nic::new(A, config()).unwrap());
        let b = net.add(Nic::new(B, config()).unwrap());
        impairments.iter().for_each(|text| net.fabric().impair(text.parse().unwrap()));
        Pair { net, a, b }
    }

    fn expose(&mut self, data: Vec<u8>) -> RegionId {
        let region = Region { key: KEY, base: 0, access: Access::ALL, data };
        self.net[self.b].expose(INDEX, region).unwrap()
    }

    fn memory(&self, region: RegionId) -> &[u8] {
        self.net[self.b].memory(region).unwrap()
    }

    fn to(&mut self, peer: Peer, work: Work) -> Result<Done, OperationError> {
        let operation = self.net[self.a].post(Operation::new(peer, work)).unwrap();
        self.net.operation(self.a, operation).expect("an end")
    }

    fn work(&mut self, work: Work) -> Result<Done, OperationError> {
        self.to(peer(), work)
    }
}

fn peer() -> Peer {
    Peer::relative(B, 101, 2)
}

fn data(length: usize) -> Bytes {
    uet_control::pattern(3).take(length).collect()
}

fn write(data: Bytes) -> Work {
    Work::Write { key: KEY, offset: 0, data }
}

#[test]
fn writes_of_every_length() {
    let mut pair = Pair::new(1, &[]);
    let region = pair.expose(vec![0; 100_000]);
    for length in [0, 1, 4095, 4096, 4097, 8192, 100_000] {
        assert_eq!(pair.work(write(data(length))).unwrap().length as usize, length);
        assert_eq!(pair.memory(region)[..length], data(length));
    }
}

#[test]
fn reads_short_and_long() {
    let mut pair = Pair::new(2, &[]);
    pair.expose(data(50_000).to_vec());
    for length in [1, 16, 17, 4096, 4097, 50_000] {
        let done = pair.work(Work::Read { key: KEY, offset: 0, length }).unwrap();
        assert_eq!(done.data, data(length as usize), "{length}");
    }
}

#[test]
fn sends_match_posted_and_later_receives() {
    let mut pair = Pair::new(3, &[]);
    let (a, b) = (pair.a, pair.b);
    let first = pair.net[b].receive(INDEX, Receive::new(10_000)).unwrap();
    pair.work(Work::Send { tag: None, data: data(9_000) }).unwrap();
    assert_eq!(pair.net.received(b, first).unwrap().data, data(9_000));

    let send = Operation::new(peer(), Work::Send { tag: Some(0x7a), data: data(5_000) });
    let send = Operation { header_data: Some(11), ..send };
    let operation = pair.net[a].post(send).unwrap();
    pair.net.operation(a, operation).unwrap().unwrap();
    let late = pair.net[b].receive(INDEX, Receive::tagged(10_000, 0x7a)).unwrap();
    let received = pair.net.received(b, late).unwrap();
    assert_eq!((received.data, received.header_data), (data(5_000), Some(11)));
}

#[test]
fn atomics_that_fetch() {
    let mut pair = Pair::new(4, &[]);
    let region = pair.expose(41u64.to_le_bytes().to_vec());
    let add = Work::Atomic {
        on: AtomicOn::Memory { key: KEY, offset: 0 },
        opcode: AtomicOpcode::SUM,
        datatype: AtomicDatatype::UINT64,
        operand: Operand::Elements(Bytes::copy_from_slice(&1u64.to_le_bytes())),
        fetch: true,
    };
    let done = pair.work(add).unwrap();
    assert_eq!(done.data, 41u64.to_le_bytes()[..]);
    assert_eq!(pair.memory(region), 42u64.to_le_bytes());
}

#[test]
fn a_refusal_ends_the_operation() {
    let mut pair = Pair::new(5, &[]);
    pair.expose(vec![0; 8]);
    let wrong = Work::Write { key: Key(1), offset: 0, data: data(4) };
    assert_eq!(pair.work(wrong).unwrap_err().code, ReturnCode::BAD_MKEY);
    assert_eq!(pair.work(write(data(9))).unwrap_err().code, ReturnCode::BAD_ADDR);
}

#[test]
fn absent_peer_fails_the_operation() {
    let mut pair = Pair::new(6, &[]);
    let peer = Peer::relative([10, 0, 0, 9], 101, 2);
    let fault = pair.to(peer, write(data(4))).unwrap_err();
    assert_eq!(fault.code, ReturnCode::UNDELIVERABLE);
    assert!(pair.net.now().0 > 1_000_000, "after all retransmissions");
}

#[test]
fn every_mode_writes() {
    let mut pair = Pair::new(7, &[]);
    let key = KEY.idempotent();
    let region = Region { key, base: 0, access: Access::ALL, data: vec![0; 20_000] };
    let b = pair.b;
    let region = pair.net[b].expose(INDEX, region).unwrap();
    for mode in [Mode::Rud, Mode::Rod, Mode::Rudi] {
        pair.net[b].memory_mut(region).unwrap().fill(0);
        pair.to(peer().by(mode), Work::Write { key, offset: 0, data: data(20_000) }).unwrap();
        assert_eq!(pair.memory(region), data(20_000), "{mode:?}");
    }
}

/// Impairments of networks. Every message still arrives exactly once.
const BAD: &[&[&str]] = &[
    &["drop 5%"],
    &["drop request 3", "drop ack 1"],
    &["duplicate 20%"],
    &["jitter 20us"],
    &["reorder 5 20%"],
    &["mark 50%"],
    &["trim 64 first 10%"],
    &["trim-last-hop 24 2"],
    &["corrupt 5%"],
    &["blackout 150us request 4"],
    &["drop 3%", "duplicate 3%", "jitter 5us", "reorder 3 5%", "mark 10%", "trim 64 3%", "corrupt 3%"],
];

#[test]
fn bad_networks_lose_nothing() {
    for (impairments, seed) in BAD.iter().zip(1..) {
        for mode in [Mode::Rud, Mode::Rod] {
            let mut pair = Pair::new(seed, impairments);
            let region = pair.expose(vec![0; 60_000]);
            let what = format!("{impairments:?} {mode:?}");
            let peer = peer().by(mode);
            pair.to(peer, write(data(60_000))).unwrap_or_else(|fault| panic!("{what}: {fault:?}"));
            assert_eq!(pair.memory(region), data(60_000), "{what}");
            let done = pair.to(peer, Work::Read { key: KEY, offset: 0, length: 60_000 }).unwrap();
            assert_eq!(done.data, data(60_000), "{what}");
        }
    }
}

#[test]
fn adds_happen_once() {
    for (impairments, seed) in BAD.iter().zip(1..) {
        let mut pair = Pair::new(seed, impairments);
        let region = pair.expose(vec![0; 8]);
        for _ in 0..20 {
            let add = Work::Atomic {
                on: AtomicOn::Memory { key: KEY, offset: 0 },
                opcode: AtomicOpcode::SUM,
                datatype: AtomicDatatype::UINT64,
                operand: Operand::Elements(Bytes::copy_from_slice(&1u64.to_le_bytes())),
                fetch: false,
            };
            pair.work(add).unwrap();
        }
        assert_eq!(pair.memory(region), 20u64.to_le_bytes(), "{impairments:?}");
    }
}

#[test]
fn damaged_packets_are_counted() {
    let mut pair = Pair::new(8, &["corrupt request 2"]);
    pair.expose(vec![0; 20_000]);
    pair.work(write(data(20_000))).unwrap();
    assert_eq!(pair.net[pair.b].counted().dropped["bad CRC"], 1);
}

#[test]
fn nothing_is_held_when_nothing_goes_on() {
    let mut pair = Pair::new(9, &["drop 5%"]);
    pair.expose(vec![0; 60_000]);
    pair.work(write(data(60_000))).unwrap();
    pair.net.run(core::time::Duration::from_millis(100));
    for nic in [pair.a, pair.b] {
        assert_eq!(pair.net[nic].counted().held, 0, "{:?}", pair.net[nic].counted());
    }
}

#[test]
fn damaged_packets_are_dropped_for_attached_addresses() {
    let mut net = Network::new(1);
    net.attach(B);
    net.fabric().impair("corrupt 1".parse().unwrap());
    let packet = || uet_emulator::link::packet(A.into(), B.into(), None, vec![0x30, 0, 0, 0].into());
    net.send(packet());
    net.send(packet());
    net.run(core::time::Duration::from_millis(1));
    assert!(net.poll_arrival().is_some() && net.poll_arrival().is_none());
}

#[test]
fn restart_forgets_state_and_draws_new_numbers() {
    let mut pair = Pair::new(14, &[]);
    pair.expose(vec![0; 8]);
    let a = pair.a;
    let first = pair.net[a].post(Operation::new(peer(), write(data(8)))).unwrap();
    let opening = pair.net[a].poll_transmit(Time(0)).unwrap();
    pair.net.fabric().send(Time(0), opening.clone());
    pair.work(write(data(8))).unwrap();
    let config = pair.net[a].config().clone();
    pair.net[a].restart(config).unwrap();
    assert_eq!(pair.net[a].operation(first), None);
    pair.net[a].post(Operation::new(peer(), write(data(8)))).unwrap();
    let psn = |packet: &uet_model::Packet| packet.head[4..8].to_vec();
    assert_ne!(psn(&pair.net[a].poll_transmit(Time(0)).unwrap()), psn(&opening));
}

#[test]
fn a_restart_forgets() {
    let mut pair = Pair::new(10, &[]);
    let region = pair.expose(vec![0; 8]);
    pair.work(write(data(8))).unwrap();
    let b = pair.b;
    let config = pair.net[b].config().clone();
    pair.net[b].restart(config).unwrap();
    assert_eq!(pair.net[b].memory(region), None);
    assert_eq!(pair.net[b].counted(), Default::default());
    // The peer still has its context and learns that it is gone. The lost packets are then retransmitted on a new
    // context.
    let region = pair.expose(vec![0; 8]);
    pair.work(write(data(8))).unwrap();
    assert_eq!(pair.memory(region), data(8));
    let mut config = pair.net[pair.a].config().clone();
    config.set("max_repeats", &0.into()).unwrap();
    pair.net[pair.a].restart(config.clone()).unwrap();
    pair.work(write(data(8))).unwrap();
    pair.net[pair.b].restart(config).unwrap();
    let fault = pair.work(write(data(8))).unwrap_err();
    assert_eq!(fault.why, Some(Failure::Ended(NackCode::INV_DPDCID.code())), "or fails, as configured");
}

fn captured(seed: u64) -> Vec<u8> {
    let file = File::default();
    let mut pair = Pair::new(seed, BAD.last().unwrap());
    pair.net.capture(Capture::new(Box::new(file.clone()), Outer::default()).unwrap());
    pair.expose(vec![0; 60_000]);
    pair.work(write(data(60_000))).unwrap();
    pair.work(Work::Read { key: KEY, offset: 0, length: 60_000 }).unwrap();
    pair.net.end_capture().unwrap().finish().unwrap();
    file.0.lock().unwrap().clone()
}

#[test]
fn equal_seeds_give_equal_bytes() {
    assert!(captured(11) == captured(11));
    assert!(captured(11) != captured(12));
}

#[test]
fn a_predicate_finds_its_packet() {
    let mut pair = Pair::new(12, &[]);
    let region = pair.expose(vec![0; 20_000]);
    // Only the last packet of the write is shorter.
    let short = "drop 1".parse::<Impairment>().unwrap().only(|packet| packet.payload.len() == 20_000 % 4096);
    pair.net.fabric().impair(short);
    pair.work(write(data(20_000))).unwrap();
    assert_eq!(pair.memory(region), data(20_000));
    assert_eq!(pair.net.fabric().counters().lost, 1);
}

mod robust {
    use super::*;
    use proptest::prelude::*;
    use uet_emulator::link::packet;
    use uet_model::{Packet, Priority, TrimPoint};
    use uet_wire::with_proptest::received;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn it_survives_any_packets(
            packets in prop::collection::vec((received(), any::<bool>(), prop::option::of(any::<bool>())), 0..60)
        ) {
            let mut pair = Pair::new(13, &[]);
            let region = pair.expose(vec![0; 100]);
            for (bytes, marked, cut) in packets {
                let place = cut.map(|last| if last { TrimPoint::LastHop } else { TrimPoint::Fabric });
                let packet = packet([10, 0, 0, 7].into(), B.into(), place, bytes.into());
                pair.net.send(Packet { marked, priority: Priority::High, ..packet });
            }
            pair.net.run(core::time::Duration::from_millis(10));
            pair.work(write(data(100))).unwrap();
            prop_assert_eq!(pair.memory(region), data(100));
        }
    }
}
