//! The fabric applies its packet rules, and runs with equal seeds are identical.

use core::time::Duration;
use uet_model::network::{Arrival, Fabric, HELD, Impairment, PacketKind};
use uet_model::{Packet, Priority, Time, TrimPoint};
use uet_wire::pds::{Ack, Nack, Request};
use uet_wire::registry::{NackCode, Opcode};
use uet_wire::ses::Std;
use uet_wire::{PdcId, Psn, UetBuf};

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

/// Sends requests 1 to `count`, 100 ns apart, and returns the arrivals with their times.
fn through(fabric: &mut Fabric, count: u32) -> Vec<(Time, Arrival)> {
    (1..=count).for_each(|n| fabric.send(Time(u64::from(n) * 100), request(n, false)));
    all(fabric)
}

fn all(fabric: &mut Fabric) -> Vec<(Time, Arrival)> {
    let mut arrivals = Vec::new();
    while let Some(at) = fabric.next_at() {
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
fn packets_arrive_in_order_after_the_latency() {
    let mut fabric = fabric(&[]);
    fabric.latency = Duration::from_nanos(70);
    let arrivals = through(&mut fabric, 3);
    assert_eq!(psns(&arrivals), [1, 2, 3]);
    assert_eq!(arrivals[0].0, Time(170));
    assert_eq!(arrivals[0].1, Arrival { packet: request(1, false), corrupt: false });
}

#[test]
fn drop_selects_by_position_time_and_address() {
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
fn kinds_differ() {
    let packets = [request(1, false), request(2, true), ack(3), nack(4)];
    let kinds = [
        (PacketKind::Packet, [true; 4]),
        (PacketKind::Request, [true, true, false, false]),
        (PacketKind::First, [true, false, false, false]),
        (PacketKind::Retransmission, [false, true, false, false]),
        (PacketKind::Ack, [false, false, true, false]),
        (PacketKind::Nack, [false, false, false, true]),
        (PacketKind::Control, [false; 4]),
    ];
    for (kind, expected) in kinds {
        assert_eq!(packets.each_ref().map(|packet| kind.is(packet)), expected, "{kind:?}");
    }
}

#[test]
fn predicates_select() {
    let mut fabric = fabric(&[]);
    fabric.impair("drop".parse::<Impairment>().unwrap().only(|packet| psn(packet) > 2));
    assert_eq!(psns(&through(&mut fabric, 4)), [1, 2]);
}

#[test]
fn percentages_hold() {
    let mut fabric = fabric(&["drop 20%"]);
    let arrived = through(&mut fabric, 10_000).len();
    assert!((7_800..8_200).contains(&arrived), "{arrived}");
    assert_eq!(fabric.counters().lost as usize, 10_000 - arrived);
}

#[test]
fn duplicates_arrive_twice() {
    assert_eq!(psns(&through(&mut fabric(&["duplicate 2"]), 3)), [1, 2, 2, 3]);
}

#[test]
fn delays_add_up() {
    let arrivals = through(&mut fabric(&["delay 2us 1", "delay 3us first 1"]), 2);
    assert_eq!(psns(&arrivals), [2, 1]);
    assert_eq!(arrivals[1].0, Time(100 + 1_000 + 5_000));
}

#[test]
fn copies_have_their_own_jitter() {
    let times =
        |rules: &[&str]| through(&mut fabric(rules), 1).iter().map(|(at, _)| at.0).collect::<Vec<_>>();
    let [first, second] = times(&["duplicate", "jitter 1ms"])[..] else { panic!() };
    assert!(1_100 < first && first < second);
    let [first, second] = times(&["jitter 1ms", "duplicate"])[..] else { panic!() };
    assert_eq!(first, second, "rules apply in order");
}

#[test]
fn rules_can_do_everything() {
    let mut fabric = fabric(&[]);
    fabric.rule(|_, packet, treatment| treatment.lost = psn(packet) % 2 == 0);
    assert_eq!(psns(&through(&mut fabric, 5)), [1, 3, 5]);
    fabric.repair();
    assert_eq!(psns(&through(&mut fabric, 2)), [1, 2]);
}

#[test]
fn same_seed_gives_same_run() {
    const RULES: &[&str] =
        &["drop 3%", "duplicate 3%", "jitter 1us", "reorder 2 3%", "trim 40 3%", "corrupt 3%"];
    let run = |seed| {
        let mut fabric = Fabric::new(seed);
        RULES.iter().for_each(|text| fabric.impair(text.parse().unwrap()));
        (through(&mut fabric, 200), fabric.counters())
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
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
fn reordered_packets_are_overtaken() {
    let arrivals = through(&mut fabric(&["reorder 2 1"]), 4);
    assert_eq!(psns(&arrivals), [2, 3, 1, 4]);
    // No further packet overtakes it.
    let arrivals = through(&mut fabric(&["reorder 2 1"]), 2);
    assert_eq!(psns(&arrivals), [2, 1]);
    assert_eq!(arrivals[1].0, Time(100) + HELD);
}

#[test]
fn marks_arrive() {
    let arrivals = through(&mut fabric(&["mark 2"]), 3);
    let marked: Vec<bool> = arrivals.iter().map(|(_, arrival)| arrival.packet.marked).collect();
    assert_eq!(marked, [false, true, false]);
}

#[test]
fn trimmed_packets_keep_their_pds_header() {
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
fn corrupt_packets_are_flagged() {
    let arrivals = through(&mut fabric(&["corrupt 2"]), 2);
    assert_eq!(arrivals.iter().map(|(_, arrival)| arrival.corrupt).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn blackout_drops_all_for_a_time() {
    // From the second packet, at 200 ns, until 500 ns.
    assert_eq!(psns(&through(&mut fabric(&["blackout 300ns request 2"]), 6)), [1, 5, 6]);
}

#[test]
fn full_network_drops() {
    let mut fabric = fabric(&[]);
    fabric.capacity = 3;
    assert_eq!(psns(&through(&mut fabric, 5)), [1, 2, 3]);
    assert_eq!(fabric.counters().full, 2);
}

#[test]
fn each_impairment_has_its_own_stream() {
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
