//! A device on UDP, with its control channel on TCP or on its standard input and output.

use super::channel::{Program, Stream, addresses};
use super::{packet, wire};
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use serde_json::{Map, Value};
use std::collections::{HashMap, VecDeque};
use std::io::{self, BufReader};
use std::time::{Instant, SystemTime};
use uet_conformance::{Dut, DutError, Facts, Wire};
use uet_control::{Bye, CallError, Client, Hello, Link, Op, PROTOCOL, Welcome};
use uet_emulator::capture::Capture;
use uet_emulator::frame::Record;
use uet_emulator::link::udp::{UdpLink, wait};
use uet_model::{Packet, Time};

/// How long the control channel may be silent, if nobody says otherwise.
const SILENCE: Duration = Duration::from_secs(30);

/// How long a device may take to say who it is.
const GREETING: Duration = Duration::from_secs(10);

/// How many packets leave in a row, and how long the next then wait.
const BURST: u32 = 32;
const BREATH: Duration = Duration::from_millis(2);

/// The suite's addresses for a device on loopback.
const LOOPBACK: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3))];

/// A device on UDP, with its control channel on TCP or on its standard input and output.
#[derive(Debug)]
pub struct Remote {
    control: Client<BufReader<Stream>, Stream>,
    stream: Stream,
    /// One for each address of the suite.
    links: Vec<UdpLink>,
    arrived: VecDeque<Wire>,
    /// Which entropy value last left from a port of an address of the suite.
    entropies: HashMap<(IpAddr, u16), u16>,
    /// Packets sent since somebody last waited.
    burst: u32,
    welcome: Welcome,
    facts: Facts,
    port: u16,
    capture: Option<Capture>,
    begun: Instant,
    /// The same moment by the clock on the wall.
    begun_at: Duration,
    /// How long the control channel may be silent beyond what it was asked to wait.
    silence: Duration,
    /// Last, so that it hears `bye` before it is ended.
    program: Option<Program>,
}

impl Remote {
    /// Reaches a device that runs already, by the `HOST:PORT` of its control channel; its packets go to `at`, or where it
    /// says that it listens.
    ///
    /// The suite's packets come from these addresses of this machine, and when there are none from addresses of loopback.
    /// The device answers to its own port, where it has not been told another: that is where the suite listens.
    pub fn connect(control: &str, at: Option<&str>, local: &[IpAddr]) -> io::Result<Self> {
        Self::greet(None, Stream::connect(control)?, at, local)
    }

    /// Starts a device by a command of the shell; its standard input and output are the control channel.
    pub fn start(command: &str, local: &[IpAddr]) -> io::Result<Self> {
        let (program, stream) = Program::start(command)?;
        Self::greet(Some(program), stream, None, local)
    }

    fn greet(
        mut program: Option<Program>,
        stream: Stream,
        at: Option<&str>,
        local: &[IpAddr],
    ) -> io::Result<Self> {
        stream.set_patience(GREETING)?;
        let mut control = Client::new(BufReader::new(stream.second()?), stream.second()?);
        let welcome = control.call(Hello { protocol: PROTOCOL }).map_err(|error| {
            let ended = program.as_mut().and_then(Program::ended);
            let ended = ended.map_or_else(String::new, |status| format!("; it has ended: {status}"));
            io::Error::other(format!("the device does not say who it is: {error}{ended}"))
        })?;
        let (addr, port) = match (at, &welcome.link) {
            (Some(place), _) => {
                let found = addresses(place).map_err(|error| about(place, error))?.first().copied();
                found.map(|found| (found.ip(), found.port())).ok_or_else(|| io::Error::other("no address"))?
            }
            (None, Link::Udp { addr, port }) => (*addr, *port),
            (None, other) => {
                let message = format!("the device is not on UDP, but on {}", serde_json::to_string(other)?);
                return Err(io::Error::other(message));
            }
        };
        let local = match local {
            [] if addr.is_loopback() && addr.is_ipv4() => &LOOPBACK,
            [] => {
                let message =
                    format!("give the suite addresses from which {addr} can be reached: --local ADDRESS,...");
                return Err(io::Error::other(message));
            }
            given => given,
        };
        let bind = |ip: &IpAddr| {
            let local = SocketAddr::new(*ip, port);
            UdpLink::bind(local).map_err(|error| about(local, error))
        };
        let links = local.iter().map(bind).collect::<io::Result<_>>()?;
        let facts = Facts {
            local: local.to_vec(),
            device: addr,
            trim: false,
            set_ecn: true,
            // Sockets have few source ports.
            set_entropy: false,
            see_class: welcome.capabilities.iter().any(|claim| claim == "dscp"),
            // A source port stands for an entropy value; not every device can take over any port in its answer.
            see_entropy: welcome.capabilities.iter().any(|claim| claim == "entropy"),
            crc: false,
            virtual_time: false,
        };
        let begun_at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (begun, capture) = (Instant::now(), None);
        Ok(Remote {
            control,
            stream,
            links,
            arrived: VecDeque::new(),
            entropies: HashMap::new(),
            burst: 0,
            welcome,
            facts,
            port,
            capture,
            begun,
            begun_at,
            silence: SILENCE,
            program,
        })
    }

    /// Waits no longer than this for the control channel, beyond what it is asked to wait.
    pub fn with_silence(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    /// How the program that was started has ended, when it has.
    pub fn ended(&mut self) -> Option<String> {
        self.program.as_mut().and_then(Program::ended)
    }

    /// Where the device's packets go.
    pub fn place(&self) -> SocketAddr {
        SocketAddr::new(self.facts.device, self.port)
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
                let sent_with = self.entropies.get(&(packet.dst, packet.entropy)).copied();
                let packet = Packet { entropy: sent_with.unwrap_or(packet.entropy), ..packet };
                self.record(&packet);
                self.arrived.push_back(wire(packet));
            }
        }
        Ok(())
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // Whether it hears it or not, nothing more is asked.
        let _ = self.stream.set_patience(Duration::from_secs(1));
        let _ = self.control.call(Bye {});
        drop(self.program.take());
    }
}

fn about(place: impl fmt::Display, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{place}: {error}"))
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
        if let Some(port) = link.source_port(packet.entropy) {
            self.entropies.insert((packet.src, port), packet.entropy);
        }
        link.send(&packet, port).map_err(|why| DutError(why.into()))?;
        self.burst += 1;
        if self.burst % BURST == 0 {
            // What the system's queues cannot hold is lost, and would be held against the device.
            std::thread::sleep(BREATH);
        }
        Ok(())
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError> {
        self.burst = 0;
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
            Op::WaitCompletion(wait) => self.silence + Duration::from_nanos(wait.timeout_ns),
            _ => self.silence,
        };
        let broken = |error| CallError::Channel { op: name, error };
        self.stream.set_patience(patience).map_err(broken)?;
        let result = self.control.ask(op)?;
        if reset {
            // What has come is of what has been forgotten.
            self.collect().map_err(broken)?;
            self.arrived.clear();
        }
        Ok(result)
    }
}
