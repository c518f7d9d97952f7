//! A device on UDP of which nothing is known but where it is: there is no control channel.

use super::channel::addresses;
use super::{packet, unknown, wire};
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use serde_json::{Map, Value};
use std::io;
use std::time::Instant;
use uet_conformance::{Dut, DutError, Facts, Wire};
use uet_control::{CallError, ErrorCode, Link, Op, Refusal, Welcome};
use uet_emulator::frame::Framed;
use uet_emulator::link::udp::{UdpLink, wait};

/// A device on UDP without a control channel: whatever it is asked to do, it cannot.
#[derive(Debug)]
pub struct Blind {
    link: Option<UdpLink>,
    place: SocketAddr,
    welcome: Welcome,
    facts: Facts,
    begun: Instant,
}

impl Blind {
    /// The device at `HOST:PORT`, met from this address of this machine.
    pub fn new(at: &str, local: Option<IpAddr>) -> io::Result<Self> {
        let about = |error: io::Error| io::Error::new(error.kind(), format!("{at}: {error}"));
        let place = addresses(at).map_err(about)?.first().copied();
        let place = place.ok_or_else(|| io::Error::other(format!("{at}: no such address")))?;
        let local = match (local, place.ip()) {
            (Some(local), _) => local,
            (None, IpAddr::V4(device)) if device.is_loopback() => [127, 0, 0, 2].into(),
            (None, device) => {
                let message = format!("give an address from which {device} can be reached: --local ADDRESS");
                return Err(io::Error::other(message));
            }
        };
        let mut blind = Blind::nobody();
        // The device answers to its own port.
        blind.link = Some(UdpLink::bind(SocketAddr::new(local, place.port()))?);
        blind.place = place;
        blind.facts = Facts { local: vec![local], device: place.ip(), ..blind.facts };
        blind.welcome.link = Link::Udp { addr: place.ip(), port: place.port() };
        Ok(blind)
    }

    /// What stands for a device that is not there.
    pub(crate) fn nobody() -> Self {
        let place = SocketAddr::from(([0, 0, 0, 0], 0));
        let facts = Facts {
            local: Vec::new(),
            device: place.ip(),
            second_device: None,
            trim: false,
            set_ecn: true,
            set_entropy: false,
            see_class: true,
            see_entropy: false,
            crc: false,
            virtual_time: false,
        };
        let welcome = unknown(Link::Udp { addr: place.ip(), port: place.port() });
        Blind { link: None, place, welcome, facts, begun: Instant::now() }
    }

    fn link(&mut self) -> Result<&mut UdpLink, DutError> {
        self.link.as_mut().ok_or_else(|| DutError("there is no device".into()))
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
        let gone = |error: io::Error| DutError(error.to_string());
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
        let message = "there is no control channel".into();
        Err(CallError::Refused { op: op.name(), refusal: Refusal { code: ErrorCode::Unsupported, message } })
    }
}
