//! A device on UDP with a known address and no control channel.

use super::channel::{LOOK, check};
use super::reached::{NETWORKS, about, address, addresses_of_suite, in_free_network, in_network};
use super::remote::gone;
use super::{packet, wire};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use serde_json::{Map, Value};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use uet_conformance::{Dut, DutError, Facts, Wire};
use uet_control::{CallError, ErrorCode, Link, Op, Refusal, Welcome};
use uet_emulator::capture::Capture;
use uet_emulator::frame::{Framed, Record};
use uet_emulator::link::since_1970;
use uet_emulator::link::udp::{UdpLink, wait};
use uet_model::{Packet, Time};

/// A device on UDP without a control channel. It refuses every operation, except `reset` for a run of the suite.
#[derive(Debug)]
pub struct Blind {
    /// The number of the next loopback address, if the suite runs.
    addresses: Option<u16>,
    link: Option<UdpLink>,
    place: SocketAddr,
    welcome: Welcome,
    facts: Facts,
    begun: Instant,
    /// Wall-clock time of that moment.
    begun_at: Duration,
    capture: Option<Capture>,
    /// True ends all waits for the device.
    interrupt: Arc<AtomicBool>,
}

impl Blind {
    /// Connects to the device at `HOST:PORT` from this local address.
    pub fn new(at: &str, local: Option<IpAddr>) -> io::Result<Self> {
        let place = address(at)?;
        let networks = if local.is_none() && place.is_ipv4() { NETWORKS } else { 1 };
        let local = *addresses_of_suite(place.ip(), local.as_slice())?.first().unwrap_or(&place.ip());
        let mut blind = Blind::nobody();
        // The device answers to its own port.
        let (link, local) = in_free_network(networks, |n| {
            let local = in_network(local, n);
            let socket = SocketAddr::new(local, place.port());
            Ok((UdpLink::bind(socket).map_err(|error| about(socket, error))?, local))
        })?;
        blind.link = Some(link);
        blind.place = place;
        blind.facts = Facts { local: vec![local], device: place.ip(), ..blind.facts };
        blind.welcome.link = Link::Udp { addr: place.ip(), port: place.port() };
        Ok(blind)
    }

    /// Connects to the device for a run of the suite, with the capabilities that every target of writes has. A device
    /// statement adds others.
    ///
    /// Nothing resets the device between two rules. On IPv4 loopback, each rule therefore has an address of its own. The
    /// random numbers differ from run to run, because the device may still have the contexts of an earlier one.
    pub fn for_suite(at: &str, local: Option<IpAddr>) -> io::Result<Self> {
        let mut blind = Blind::new(at, local)?;
        blind.addresses = Some(1);
        blind.facts.control = false;
        blind.welcome.name = "device".into();
        blind.welcome.capabilities = ["rud", "write"].map(String::from).into();
        Ok(blind)
    }

    /// Forgets packets that have arrived, and moves to the loopback address of this number, or the next one at which no
    /// other program has the port.
    fn reset(&mut self, mut number: u16) -> io::Result<()> {
        if let Some(IpAddr::V4(local)) = self.facts.local.first().filter(|local| local.is_loopback()) {
            let [first, .., last] = local.octets();
            let (link, next) = in_free_network(NETWORKS, |n| {
                let [second, third] = number.wrapping_add(n.into()).to_be_bytes();
                let next = Ipv4Addr::new(first, second, third, last);
                Ok((UdpLink::bind((next, self.place.port()).into())?, next))
            })?;
            let [_, second, third, _] = next.octets();
            number = u16::from_be_bytes([second, third]);
            self.link = Some(link);
            self.facts.local = vec![next.into()];
        }
        self.addresses = Some(number.checked_add(1).unwrap_or(1));
        while self.link.as_mut().map_or(Ok(None), UdpLink::receive)?.is_some() {}
        Ok(())
    }

    /// Creates a placeholder for an absent device.
    pub(crate) fn nobody() -> Self {
        let place = SocketAddr::from(([0, 0, 0, 0], 0));
        let facts = Facts { set_ecn: true, see_class: true, ..Facts::new(&[], place.ip()) };
        let welcome = Welcome::new("", Link::Udp { addr: place.ip(), port: place.port() });
        let begun_at = since_1970();
        let (begun, interrupt) = (Instant::now(), Arc::default());
        Blind {
            addresses: None,
            link: None,
            place,
            welcome,
            facts,
            begun,
            begun_at,
            capture: None,
            interrupt,
        }
    }

    /// Ends all waits for the device once this flag is true.
    pub fn set_interrupt(&mut self, interrupt: Arc<AtomicBool>) {
        self.interrupt = interrupt;
    }

    /// Captures all packets from now on.
    pub fn capture(&mut self, capture: Capture) {
        self.capture = Some(capture);
    }

    /// Stops capturing and returns the capture.
    pub fn end_capture(&mut self) -> Option<Capture> {
        self.capture.take()
    }

    fn record(&mut self, packet: &Packet) {
        let at = Time::ZERO + self.begun_at + self.begun.elapsed();
        if let Some(capture) = &mut self.capture {
            capture.write(&Record::new(at, packet));
        }
    }

    fn link(&mut self) -> Result<&mut UdpLink, DutError> {
        self.link.as_mut().ok_or_else(|| DutError("the run has no device".into()))
    }
}

impl Dut for Blind {
    fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn send(&mut self, wire: &Wire) -> Result<(), DutError> {
        let port = self.place.port();
        let packet = packet(wire);
        self.record(&packet);
        self.link()?.send(&packet, port).map_err(|why| DutError(why.into()))
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError> {
        loop {
            check(&self.interrupt).map_err(gone)?;
            if let Some(packet) = self.link()?.receive().map_err(gone)? {
                self.record(&packet);
                return Ok(Some(wire(Framed::inside(packet))));
            }
            let left = until.saturating_sub(self.begun.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            let link = self.link()?;
            wait(core::slice::from_ref(link), left.min(LOOK)).map_err(gone)?;
        }
    }

    fn begin(&mut self, instance: &str) {
        if let Some(capture) = &mut self.capture {
            capture.comment_next(&uet_conformance::passive::Origin::begin(instance));
        }
    }

    fn nonce(&self) -> u64 {
        self.addresses.map_or(0, |_| self.begun_at.as_nanos() as u64)
    }

    fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
        if let (Op::Reset(_), Some(number)) = (&op, self.addresses) {
            let broken = |error| CallError::Channel { op: "reset", error };
            return self.reset(number).map_err(broken).map(|()| Map::new());
        }
        let message = "the run has no control channel".into();
        Err(CallError::Refused { op: op.name(), refusal: Refusal { code: ErrorCode::Unsupported, message } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn it_moves_away_from_a_port_in_use() {
        let first = UdpSocket::bind("127.0.0.2:0").unwrap();
        let port = first.local_addr().unwrap().port();
        let _second = UdpSocket::bind(("127.0.1.2", port)).unwrap();
        let mut blind = Blind::for_suite(&format!("127.0.0.1:{port}"), None).unwrap();
        assert_eq!(blind.facts.local, [IpAddr::from([127, 0, 2, 2])]);
        // The run that begins takes the first address that is free.
        drop(blind.link.take());
        blind.reset(1).unwrap();
        assert_eq!((&blind.facts.local[..], blind.addresses), (&[IpAddr::from([127, 0, 2, 2])][..], Some(3)));
    }
}
