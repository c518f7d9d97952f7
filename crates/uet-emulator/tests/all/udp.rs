//! Tests of UDP sockets and their limits.

use crate::ENDLESS;
use core::net::IpAddr;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Instant;
use uet_emulator::link::udp::{UdpLink, wait};
use uet_model::{Head, Packet, Priority, TrimPoint};

fn packet(from: &UdpLink, to: &UdpLink, entropy: u16) -> Packet {
    Packet {
        src: from.local().ip(),
        dst: to.local().ip(),
        class: 0,
        priority: Priority::Low,
        marked: false,
        security: None,
        trimmed: None,
        entropy,
        ttl: Packet::TTL,
        udp_checksum: 0,
        head: Head::try_from(&[0x38, 0, 0, 0, 0, 0, 0, 7, 0x80, 1, 0x40, 1][..]).unwrap(),
        payload: bytes::Bytes::new(),
    }
}

fn pair(addresses: [&str; 2]) -> Option<[UdpLink; 2]> {
    let bind = |address: &str| UdpLink::bind(SocketAddr::new(address.parse::<IpAddr>().unwrap(), 0)).ok();
    Some([bind(addresses[0])?, bind(addresses[1])?])
}

fn pass(from: &UdpLink, to: &mut UdpLink, packet: &Packet) -> Packet {
    from.send(packet, to.local().port()).unwrap();
    let begun = Instant::now();
    loop {
        wait(core::slice::from_ref(to), ENDLESS).unwrap();
        if let Some(packet) = to.receive().unwrap() {
            return packet;
        }
        assert!(begun.elapsed() < ENDLESS, "it has not come");
    }
}

#[test]
fn class_place_and_mark_pass() {
    let mut pairs = vec![pair(["127.0.0.11", "127.0.0.12"]).unwrap()];
    // Not every machine has IPv6.
    pairs.extend(pair(["::1", "::1"]));
    for [a, b] in &mut pairs {
        for class in 0..4 {
            for (priority, marked, trimmed) in [
                (Priority::Low, false, None),
                (Priority::Low, true, None),
                (Priority::High, false, None),
                (Priority::Medium, false, Some(TrimPoint::Fabric)),
                (Priority::Medium, true, Some(TrimPoint::LastHop)),
            ] {
                let sent = Packet { class, priority, marked, trimmed, ..packet(a, b, 7) };
                let came = pass(a, b, &sent);
                assert_eq!(Packet { entropy: 7, ..came }, sent);
            }
        }
    }
}

#[test]
fn entropy_is_the_source_port() {
    let [a, mut b] = pair(["127.0.0.13", "127.0.0.14"]).unwrap();
    let came = |entropy: u16, a: &UdpLink, b: &mut UdpLink| {
        let sent = packet(a, b, entropy);
        pass(a, b, &sent).entropy
    };
    let ports: Vec<u16> = (0..16).map(|entropy| came(entropy, &a, &mut b)).collect();
    assert_eq!(ports[..8], ports[8..], "each value keeps its port");
    assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), 8);
    assert!(!ports.contains(&a.local().port()), "what is sent there is for the endpoint");
}

#[test]
fn send_errors_are_reported() {
    let [a, b] = pair(["127.0.0.15", "127.0.0.16"]).unwrap();
    let long = Packet { payload: vec![0; 70_000].into(), ..packet(&a, &b, 0) };
    assert_eq!(a.send(&long, b.local().port()), Err("not sent: too long for the system"));
    let other = Packet { dst: "fd00::1".parse().unwrap(), ..packet(&a, &b, 0) };
    assert_eq!(a.send(&other, 1), Err("not sent: the system cannot"));
    assert!(UdpLink::bind(([0, 0, 0, 0], 0).into()).is_err());
    assert!(UdpLink::bind(([224, 0, 0, 1], 0).into()).is_err());
}

#[test]
fn batches_keep_the_order_of_each_entropy_value() {
    let [a, b] = pair(["127.0.0.17", "127.0.0.18"]).unwrap();
    many_at_once(a, b);
}

#[test]
fn offload_keeps_the_order_too() {
    let [mut a, mut b] = pair(["127.0.0.19", "127.0.0.20"]).unwrap();
    // Without offload support, the results are equal.
    a.offload();
    b.offload();
    many_at_once(a, b);
}

fn many_at_once(a: UdpLink, mut b: UdpLink) {
    let port = b.local().port();
    let numbered = |number: u16| Packet {
        priority: if number % 3 == 0 { Priority::High } else { Priority::Low },
        payload: number.to_be_bytes().to_vec().into(),
        ..packet(&a, &b, number % 5)
    };
    let mut packets: Vec<_> = (0..200).map(|number| (numbered(number), port)).collect();
    packets[100].0.payload = vec![0; 70_000].into();
    let mut lost = Vec::new();
    a.send_all(&packets, |why| lost.push(why));
    assert_eq!(lost, ["not sent: too long for the system"]);

    let mut came = std::collections::BTreeMap::<(u16, Priority), Vec<u16>>::new();
    for _ in 0..199 {
        wait(core::slice::from_ref(&b), ENDLESS).unwrap();
        let packet = b.receive().unwrap().expect("it has come");
        let number = packet.to_wire().last_chunk().map(|bytes| u16::from_be_bytes(*bytes)).unwrap();
        came.entry((packet.entropy, packet.priority)).or_default().push(number);
    }
    assert_eq!(b.receive().unwrap(), None);
    assert_eq!(came.len(), 10);
    assert!(came.values().all(|numbers| numbers.is_sorted()), "{came:?}");
}
