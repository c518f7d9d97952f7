//! A device on UDP, with its control channel on TCP.

use super::{packet, wire};
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::io::{self, BufReader};
use std::net::TcpStream;
use std::time::{Instant, SystemTime};
use uet_conformance::{Dut, DutError, Facts, Wire};
use uet_control::{CallError, Client, Hello, Link, Op, PROTOCOL, Welcome};
use uet_emulator::capture::{Capture, Record};
use uet_emulator::link::udp::{UdpLink, wait};
use uet_model::{Packet, Time};

/// How long the control channel may be silent beyond what it was asked to wait.
const SILENCE: Duration = Duration::from_secs(30);

/// A device on UDP, with its control channel on TCP.
#[derive(Debug)]
pub struct Remote {
    control: Client<BufReader<TcpStream>, TcpStream>,
    stream: TcpStream,
    /// One for each address of the suite.
    links: Vec<UdpLink>,
    arrived: VecDeque<Wire>,
    welcome: Welcome,
    facts: Facts,
    port: u16,
    capture: Option<Capture>,
    begun: Instant,
    /// The same moment by the clock on the wall.
    begun_at: Duration,
}

impl Remote {
    /// Greets the device whose control channel is here. The suite's packets come from these addresses of this machine.
    /// The device answers to its own port, where it has not been told another: that is where the suite listens.
    pub fn connect(control: SocketAddr, local: &[IpAddr]) -> io::Result<Self> {
        let told = |what: &str, error: io::Error| io::Error::new(error.kind(), format!("{what}: {error}"));
        let stream = TcpStream::connect(control).map_err(|error| told(&control.to_string(), error))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE))?;
        let mut control = Client::new(BufReader::new(stream.try_clone()?), stream.try_clone()?);
        let welcome = control.call(Hello { protocol: PROTOCOL }).map_err(io::Error::other)?;
        let Link::Udp { addr, port } = welcome.link else {
            return Err(io::Error::other(format!("the device is not on UDP: {:?}", welcome.link)));
        };
        let bind = |ip: &IpAddr| {
            let local = SocketAddr::new(*ip, port);
            UdpLink::bind(local).map_err(|error| told(&local.to_string(), error))
        };
        let links = local.iter().map(bind).collect::<io::Result<_>>()?;
        let facts = Facts {
            local: local.to_vec(),
            device: addr,
            trim: false,
            set_ecn: true,
            see_class: welcome.capabilities.iter().any(|claim| claim == "dscp"),
            see_entropy: true,
            crc: false,
            virtual_time: false,
        };
        let begun_at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (arrived, begun) = (VecDeque::new(), Instant::now());
        Ok(Remote { control, stream, links, arrived, welcome, facts, port, capture: None, begun, begun_at })
    }

    /// Writes what passes.
    pub fn capture(&mut self, capture: Capture) {
        self.capture = Some(capture);
    }

    /// Ends writing.
    pub fn end_capture(&mut self) -> Option<Capture> {
        self.capture.take()
    }

    fn record(&mut self, packet: &Packet) {
        let at = Time::ZERO + self.begun_at + self.begun.elapsed();
        if let Some(capture) = &mut self.capture {
            capture.write(&Record::new(at, packet));
        }
    }

    /// Takes in what has come.
    fn collect(&mut self) -> io::Result<()> {
        for index in 0..self.links.len() {
            while let Some(packet) = self.links.get_mut(index).map_or(Ok(None), UdpLink::receive)? {
                self.record(&packet);
                self.arrived.push_back(wire(packet));
            }
        }
        Ok(())
    }
}

fn gone(error: io::Error) -> DutError {
    DutError(error.to_string())
}

impl Dut for Remote {
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
        let packet = packet(wire);
        self.record(&packet);
        let port = self.port;
        let link = self.links.iter().find(|link| link.local().ip() == packet.src);
        let link = link.ok_or_else(|| DutError(format!("{} is no address of the suite", packet.src)))?;
        link.send(&packet, port).map_err(|why| DutError(why.into()))
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError> {
        loop {
            self.collect().map_err(gone)?;
            if let Some(wire) = self.arrived.pop_front() {
                return Ok(Some(wire));
            }
            let left = until.saturating_sub(self.now());
            if left.is_zero() {
                return Ok(None);
            }
            wait(&self.links, left).map_err(gone)?;
        }
    }

    fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
        let (name, reset) = (op.name(), matches!(op, Op::Reset(_)));
        let patience = match &op {
            Op::WaitCompletion(wait) => SILENCE + Duration::from_nanos(wait.timeout_ns),
            _ => SILENCE,
        };
        let broken = |error| CallError::Channel { op: name, error };
        self.stream.set_read_timeout(Some(patience)).map_err(broken)?;
        let result = self.control.ask(op)?;
        if reset {
            // What has come is of what has been forgotten.
            self.collect().map_err(broken)?;
            self.arrived.clear();
        }
        Ok(result)
    }
}
