//! A device on UDP with a known address and no control channel.

use super::remote::{address, addresses_of_suite, gone};
use super::{packet, wire};
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use serde_json::{Map, Value};
use std::io;
use std::time::Instant;
use uet_conformance::{Dut, DutError, Facts, Wire};
use uet_control::{CallError, ErrorCode, Link, Op, Refusal, Welcome};
use uet_emulator::frame::Framed;
use uet_emulator::link::udp::{UdpLink, wait};

/// A device on UDP without a control channel. It refuses every operation.
#[derive(Debug)]
pub struct Blind {
    link: Option<UdpLink>,
    place: SocketAddr,
    welcome: Welcome,
    facts: Facts,
    begun: Instant,
}

impl Blind {
    /// Connects to the device at `HOST:PORT` from this local address.
    pub fn new(at: &str, local: Option<IpAddr>) -> io::Result<Self> {
        let place = address(at)?;
        let local = *addresses_of_suite(place.ip(), local.as_slice())?.first().unwrap_or(&place.ip());
        let mut blind = Blind::nobody();
        // The device answers to its own port.
        blind.link = Some(UdpLink::bind(SocketAddr::new(local, place.port()))?);
        blind.place = place;
        blind.facts = Facts { local: vec![local], device: place.ip(), ..blind.facts };
        blind.welcome.link = Link::Udp { addr: place.ip(), port: place.port() };
        Ok(blind)
    }

    /// Creates a placeholder for an absent device.
    pub(crate) fn nobody() -> Self {
        let place = SocketAddr::from(([0, 0, 0, 0], 0));
        let facts = Facts { set_ecn: true, see_class: true, ..Facts::new(&[], place.ip()) };
        let welcome = Welcome::new("", Link::Udp { addr: place.ip(), port: place.port() });
        Blind { link: None, place, welcome, facts, begun: Instant::now() }
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
        self.link()?.send(&packet(wire), port).map_err(|why| DutError(why.into()))
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError> {
        let begun = self.begun;
        let link = self.link()?;
        loop {
            if let Some(packet) = link.receive().map_err(gone)? {
                return Ok(Some(wire(Framed::inside(packet))));
            }
            let left = until.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            wait(core::slice::from_ref(link), left).map_err(gone)?;
        }
    }

    fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
        let message = "the run has no control channel".into();
        Err(CallError::Refused { op: op.name(), refusal: Refusal { code: ErrorCode::Unsupported, message } })
    }
}
