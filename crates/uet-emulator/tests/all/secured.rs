//! Two NICs with keys over UDP sockets: all that they send opens with the keys, in a capture too.

use crate::ENDLESS;
use bytes::Bytes;
use core::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use uet_control::{Link as Place, Request};
use uet_emulator::capture::Capture;
use uet_emulator::control::Control;
use uet_emulator::frame::Outer;
use uet_emulator::link::driver::Driver;
use uet_emulator::link::udp::UdpLink;
use uet_emulator::{Config, Nic};
use uet_model::Time;
use uet_model::ses::{Access, Key, Operation, Peer, Process, Region, ResourceIndex, Work};
use uet_packet_io::keys::{KeyRing, domains_from_toml};
use uet_packet_io::{Decoder, input};
use uet_wire::{Options, Start};

const KEYS: &str = "[[domain]]\nsdi = 0x012345\nmode = \"cluster\"\nrekey_mask = 0xfffffffc\nrekey_shift = 2\n\
                    keys = { 0 = \"5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a\" }\n";

/// A file in memory that outlives its writer.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns a NIC with keys on its link, as the server of `uet emulate --keys` sets it up.
fn secured(address: [u8; 4], peer: ([u8; 4], u16)) -> Driver {
    let link = UdpLink::bind((address, 4793).into()).unwrap();
    let mut nic = Nic::new(address, Config::real_time()).unwrap();
    let place = Place::Udp { addr: address.into(), port: link.local().port() };
    let control = Control::new(&nic, place, &[]).with_source_ports(link.source_ports());
    let mut control = control.with_keys(&mut nic, &domains_from_toml(KEYS).unwrap()).unwrap();
    let peer = format!(
        r#"{{"id":1,"op":"add_peer","address":"{}","port":{},"job":101}}"#,
        core::net::Ipv4Addr::from(peer.0),
        peer.1
    );
    control.handle(Time::ZERO, &mut nic, Request::parse(&peer).unwrap());
    Driver::new(nic, link)
}

#[test]
fn a_capture_of_secured_packets_opens_with_the_keys() {
    // Addresses that no other process uses, so that the port is free.
    let [.., high, low] = std::process::id().to_be_bytes();
    let (at_a, at_b) = ([127, high, low, 1], [127, high, low, 2]);
    let (mut a, mut b) = (secured(at_a, (at_b, 4793)), secured(at_b, (at_a, 4793)));
    let file = Shared::default();
    a.capture(Capture::new(Box::new(file.clone()), Outer::default()).unwrap());
    let index = ResourceIndex { process: Process::Relative { job: 101, pid: 2 }, index: 0 };
    let region = Region { key: Key(7), base: 0, access: Access::ALL, data: vec![0; 20_000] };
    let region = b.nic.expose(index, region).unwrap();
    let data = Bytes::from(vec![7; 20_000]);
    let write = Work::Write { key: Key(7), offset: 0, data: data.clone() };
    let write = a.nic.post(Operation::new(Peer::relative(at_b, 101, 2), write)).unwrap();
    let until = Instant::now() + ENDLESS;
    let result = loop {
        a.turn(|_| 4793).unwrap();
        b.turn(|_| 4793).unwrap();
        if let Some(result) = a.nic.operation(write) {
            break result;
        }
        assert!(Instant::now() < until, "{:?}", b.nic.counted());
    };
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(b.nic.memory(region), Some(&data[..]));
    a.end_capture().unwrap().finish().unwrap();

    let mut decoder = Decoder::new(Options::default(), false).with_keys(KeyRing::from_toml(KEYS).unwrap());
    let (mut authentic, mut sent) = (0, 0);
    let capture = file.0.lock().unwrap().clone();
    input::read(&capture[..], Start::Eth, &mut |record| {
        let decoded = decoder.decode(record);
        let protection = decoded.protection.clone().expect("every packet is secured");
        assert_eq!((protection.authenticated, protection.reason), (Some(true), None));
        authentic += 1;
        sent += usize::from(decoded.packet.ip.is_some_and(|ip| ip.src() == core::net::IpAddr::from(at_a)));
        Ok(ControlFlow::Continue(()))
    })
    .unwrap();
    assert!(sent >= 5 && authentic > sent, "{sent} sent, {authentic} in all");
}
