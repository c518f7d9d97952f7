//! A device on UDP or on Ethernet, with its control channel on TCP or on its standard input and output.
//!
//! A device with the capability `time` is the clock of the run: time passes only while the suite tells it to advance.

use super::busy;
use super::channel::LOOK;
use super::clock::{Clock, EarlyStops};
use super::dropped::{Drops, is_unread_at};
use super::reached::{Reached, address, raw, udp, udp_place};
use super::session::{SILENCE, Session};
use super::wire;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use uet_conformance::{Dut, DutError, Facts, NetworkEffects, Wire};
use uet_control::{AddPeer, Advance, CallError, ErrorCode, Event, Now, Op, WaitCompletion, Welcome};
use uet_emulator::capture::Capture;
use uet_emulator::classes::Classes;
use uet_emulator::frame::{Framed, Outer, Record};
use uet_emulator::link::neighbor::PeerMac;
use uet_emulator::link::udp::wait;
use uet_emulator::link::{Link, since_1970};
use uet_model::{Packet, Time};
use uet_wire::tss;

/// How much longer a simulator may take for one `advance`.
const SIMULATOR: u32 = 20;

/// Maximum number of packets read from a link at once.
const BATCH: usize = 256;

/// Maximum number of such batches discarded after a reset.
const STALE_BATCHES: usize = 64;

/// Number of packets sent in a row, and the pause after them.
const BURST: u32 = 32;
const BREATH: Duration = Duration::from_millis(2);

/// Destination of packets to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// The address that the device reports, over UDP.
    AsItSays,
    /// This `HOST:PORT`, over UDP.
    Udp(String),
    /// The address that the device reports, as frames.
    Raw {
        /// The local interface.
        interface: String,
        /// Configured Ethernet addresses.
        peers: Vec<PeerMac>,
    },
}

/// A device on UDP or on Ethernet, with its control channel on TCP or on its standard input and output.
#[derive(Debug)]
pub struct Remote {
    session: Session,
    /// UDP: one link for each address of the suite. Frames: one link for all.
    links: Vec<Link>,
    arrived: VecDeque<Wire>,
    /// Last entropy value sent from a port of an address of the suite.
    entropies: HashMap<(IpAddr, u16), u16>,
    /// Source ports of the device's packets that stand for no entropy value.
    ports: HashSet<u16>,
    /// Packets sent since the last wait.
    burst: u32,
    facts: Facts,
    port: u16,
    capture: Option<Capture>,
    clock: Clock,
    /// Wall-clock time at its start.
    begun_at: Duration,
    early_stops: EarlyStops,
    /// Maximum time without an answer beyond the wait that a request asks for.
    silence: Duration,
    drops: Drops,
}

/// Starts of a program whose port is taken.
const STARTS: usize = 3;

/// Starts a device. The port that the system gives it may be taken at an address of the suite: its next start gets
/// another.
fn with_free_port<T>(mut start: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..STARTS {
        match start() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            started => return started,
        }
    }
    start()
}

impl Remote {
    /// Connects to a running device by the `HOST:PORT` of its control channel. Its packets go to `at`, or to the
    /// address that it reports.
    ///
    /// The suite sends from these local addresses, or from loopback addresses if there are none. The device answers to
    /// its own port unless it is told another, so the suite listens on that port.
    pub fn connect(control: &str, at: &At, local: &[IpAddr]) -> io::Result<Self> {
        Self::around(Session::connect(control)?, at, local)
    }

    /// Starts a device with a shell command; its standard input and output are the control channel.
    pub fn start(command: &str, local: &[IpAddr]) -> io::Result<Self> {
        with_free_port(|| Self::around(Session::start(command)?, &At::AsItSays, local))
    }

    fn around(mut session: Session, at: &At, local: &[IpAddr]) -> io::Result<Self> {
        let welcome = &session.welcome;
        let classes = match welcome.parameters.get("dscps") {
            Some(dscps) => Classes::try_from(dscps).map_err(|wanted| {
                io::Error::other(format!("the device's parameter dscps must be {wanted}"))
            })?,
            None => Classes::default(),
        };
        let Reached { links, local, device } = match at {
            At::AsItSays => udp(udp_place(welcome)?, local, &classes)?,
            At::Udp(place) => udp(address(place)?, local, &classes)?,
            At::Raw { interface, peers } => raw(interface, peers, welcome, local, classes)?,
        };
        let claims = |name: &str| welcome.capabilities.iter().any(|claim| claim == name);
        let (time, see_class, see_entropy) = (claims("time"), claims("dscp"), claims("entropy"));
        let clock = match time {
            true => Clock::of_device(session.call(Now {}, SILENCE).map_err(io::Error::other)?.now_ns),
            false => Clock::Real(Instant::now()),
        };
        let outer = raw_outer(&links);
        let facts = Facts {
            trim: outer.is_some(),
            set_ecn: true,
            // Sockets have few source ports.
            set_entropy: outer.is_some(),
            set_ttl: outer.is_some(),
            see_class,
            // A source port stands for an entropy value; not every device can copy any port into its answer.
            see_entropy,
            crc: outer.is_some_and(|outer| outer.crc),
            virtual_time: clock.is_of_device(),
            ..Facts::new(&local, device.ip())
        };
        let port = device.port();
        let begun_at = since_1970();
        let mut remote = Remote {
            session,
            links,
            arrived: VecDeque::new(),
            entropies: HashMap::new(),
            ports: HashSet::new(),
            burst: 0,
            facts,
            port,
            capture: None,
            clock,
            begun_at,
            early_stops: EarlyStops::default(),
            silence: SILENCE,
            drops: Drops::default(),
        };
        remote.tell_ports().map_err(|error| {
            io::Error::other(format!(
                "{device} has the address of the suite and rejected another port: {error}; give the suite other addresses \
                 with --local ADDRESS,..."
            ))
        })?;
        Ok(remote)
    }

    /// Sets the maximum time without an answer, beyond the wait that a request asks for.
    pub fn with_silence(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    /// Ends all waits for the device once this flag is true. Requests then fail.
    pub fn set_interrupt(&mut self, interrupt: Arc<AtomicBool>) {
        self.session.set_interrupt(interrupt);
    }

    /// Returns the destination of the device's packets.
    pub fn place(&self) -> SocketAddr {
        SocketAddr::new(self.facts.device, self.port)
    }

    /// Returns the encapsulation of its packets, for captures.
    pub fn outer(&self) -> Outer {
        let sockets = || Outer {
            classes: self.links.first().map(Link::classes).cloned().unwrap_or_default(),
            ..Outer::default()
        };
        raw_outer(&self.links).cloned().unwrap_or_else(sockets)
    }

    /// Captures all packets from now on.
    pub fn capture(&mut self, capture: Capture) {
        self.capture = Some(capture);
    }

    /// Stops capturing and returns the capture.
    pub fn end_capture(&mut self) -> Option<Capture> {
        self.capture.take()
    }

    /// Returns the port of this address of the suite, if it differs from the device's own.
    fn told_port(&self, address: IpAddr) -> Option<u16> {
        let place = self.own_places().find(|place| place.ip() == address);
        place.map(|place| place.port()).filter(|port| *port != self.port)
    }

    /// Returns the addresses of the suite that are sockets.
    fn own_places(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.links.iter().filter_map(|link| match link {
            Link::Udp(link) => Some(link.local()),
            Link::Raw(_) => None,
        })
    }

    /// Tells the device the ports of the suite's addresses that differ from its own; it answers there.
    fn tell_ports(&mut self) -> Result<(), CallError> {
        for address in self.facts.local.clone() {
            if let Some(port) = self.told_port(address) {
                let port = Some(port);
                self.session.call(AddPeer { address, port, job: 101, process: 1, initiator: 0 }, SILENCE)?;
            }
        }
        Ok(())
    }

    fn record(&mut self, record: &Record<'_>) {
        let at = Time::ZERO + self.begun_at + self.clock.now();
        if let Some(capture) = &mut self.capture {
            capture.write(&Record { at, ..*record });
        }
    }

    /// Reads arrived packets, at most [`BATCH`] per link, unless that many wait already. A flood stays in the system's
    /// bounded buffers. A device with its own time sends only while the suite lets it, so all of its packets are read.
    fn collect(&mut self) -> io::Result<()> {
        let most = if self.clock.is_of_device() { BATCH * STALE_BATCHES } else { BATCH };
        if self.arrived.len() >= most {
            return Ok(());
        }
        for index in 0..self.links.len() {
            for _ in 0..BATCH {
                let Some(framed) = self.links.get_mut(index).map_or(Ok(None), Link::receive)? else { break };
                let packet = framed.packet;
                let sent_with = self.entropies.get(&(packet.dst, packet.entropy)).copied();
                if sent_with.is_none() {
                    self.ports.insert(packet.entropy);
                }
                let packet = Packet { entropy: sent_with.unwrap_or(packet.entropy), ..packet };
                self.record(&Record::new(Time::ZERO, &packet));
                self.arrived.push_back(wire(Framed { packet, ..framed }));
            }
        }
        Ok(())
    }
}

/// The control channel.
impl Remote {
    /// Lets the device's time pass by one step towards `until`, and reads the packets that it has sent.
    fn advance(&mut self, until: Duration) -> Result<(), CallError> {
        let (before, step) = (self.clock.now(), self.clock.step(until));
        let name = "advance";
        let number = |answer: &Map<String, Value>| answer.get("now_ns").and_then(Value::as_u64);
        let by_ns = step.as_nanos() as u64;
        let answer = self.session.ask(Advance { by_ns }.into(), self.silence * SIMULATOR)?;
        match number(&answer) {
            Some(now_ns) => self.clock.set(now_ns, true),
            None => {
                let answer = self.session.ask(Now {}.into(), self.silence)?;
                self.clock.set(number(&answer).unwrap_or_default(), false);
            }
        }
        let waiting = self.arrived.len();
        self.collect().map_err(|error| CallError::Channel { op: name, error })?;
        let packets = self.arrived.len().saturating_sub(waiting);
        let now = self.clock.now();
        if self.early_stops.are_too_many_after(step, now.saturating_sub(before), packets) {
            let error = io::Error::other(format!(
                "in {} calls, `advance` brought no packet and hardly moved the device's clock, now at {now:?}; \
                 run for `by_ns`, or up to a packet or the end of an operation",
                EarlyStops::MOST
            ));
            return Err(CallError::Channel { op: name, error });
        }
        Ok(())
    }

    /// Waits for a completion in the device's time, which passes only between the questions.
    fn wait_completion(&mut self, wait: WaitCompletion) -> Result<Map<String, Value>, CallError> {
        let until = self.clock.now() + Duration::from_nanos(wait.timeout_ns);
        loop {
            let answer = self.session.ask(WaitCompletion { timeout_ns: 0, ..wait }.into(), self.silence);
            let is_open = matches!(&answer, Err(CallError::Refused { refusal, .. }) if refusal.code == ErrorCode::Timeout);
            if !is_open || self.clock.now() >= until {
                return answer;
            }
            self.advance(until)?;
        }
    }
}

/// Returns the encapsulation on a link of frames.
fn raw_outer(links: &[Link]) -> Option<&Outer> {
    match links.first()? {
        Link::Udp(_) => None,
        Link::Raw(link) => Some(link.outer()),
    }
}

pub(super) fn gone(error: io::Error) -> DutError {
    DutError(error.to_string())
}

impl Dut for Remote {
    fn welcome(&self) -> &Welcome {
        &self.session.welcome
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn send(&mut self, wire: &Wire) -> Result<(), DutError> {
        let between = raw_outer(&self.links).map_or(8, Outer::between);
        let (packet, trim) = super::before_trimming(wire, between);
        let stale_length = wire.stale_length;
        let record = Record { trim, stale_length, corrupt: wire.flipped, ..Record::new(Time::ZERO, &packet) };
        self.record(&record);
        let (port, src) = (self.port, packet.src);
        let of_src = |link: &&mut Link| match link {
            Link::Udp(link) => link.local().ip() == src,
            Link::Raw(link) => link.local().contains(&src),
        };
        let link = self.links.iter_mut().find(of_src);
        let sent = match link.ok_or_else(|| DutError(format!("{src} is not an address of the suite")))? {
            Link::Udp(link) => {
                self.entropies.insert((src, link.source_port(packet.entropy)), packet.entropy);
                link.send(&packet, port)
            }
            Link::Raw(link) => link.send(&record, port),
        };
        sent.map_err(|why| DutError(why.into()))?;
        self.burst += 1;
        if self.burst % BURST == 0 {
            // A loss in the system's queues would count against the device.
            match self.clock {
                Clock::Real(_) => std::thread::sleep(BREATH),
                Clock::OfDevice { now, .. } => {
                    self.advance(now).map_err(|error| DutError(error.to_string()))?
                }
            }
        }
        Ok(())
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError> {
        self.burst = 0;
        let mut over = false;
        loop {
            self.session.check().map_err(gone)?;
            self.collect().map_err(gone)?;
            if let Some(wire) = self.arrived.pop_front() {
                return Ok(Some(wire));
            }
            let left = until.saturating_sub(self.now());
            match self.clock {
                Clock::Real(_) if left.is_zero() => return Ok(None),
                Clock::Real(_) => wait(&self.links, left.min(LOOK)).map_err(gone)?,
                Clock::OfDevice { .. } if over => return Ok(None),
                Clock::OfDevice { .. } => {
                    self.advance(until).map_err(|error| DutError(error.to_string()))?;
                    over = self.now() >= until;
                }
            }
        }
    }

    fn outer(&self, wire: &Wire, length: usize, leaving: bool) -> Option<tss::Outer> {
        let own = if leaving { wire.src } else { wire.dst };
        let is_own = |link: &&Link| match link {
            Link::Udp(link) => link.local().ip() == own,
            Link::Raw(link) => link.local().contains(&own),
        };
        let (src_port, dst_port) = match self.links.iter().find(is_own)? {
            Link::Raw(link) => match link.outer().native {
                Some(_) => return Some(tss::Outer::native(wire.src, wire.dst, wire.entropy)),
                None => (wire.entropy, link.outer().port),
            },
            Link::Udp(link) if leaving => (link.source_port(wire.entropy), self.port),
            // An entropy value that the suite chose stands for the port that it was sent from.
            Link::Udp(link) if !self.ports.contains(&wire.entropy) => {
                (link.source_port(wire.entropy), link.local().port())
            }
            Link::Udp(link) => (wire.entropy, link.local().port()),
        };
        let layer = match tss::Outer::udp(wire.src, wire.dst, src_port, length).layer {
            tss::OuterLayer::Udp { src_port, length, .. } => {
                tss::OuterLayer::Udp { src_port, dst_port, length }
            }
            native => native,
        };
        Some(tss::Outer { src: wire.src, dst: wire.dst, layer })
    }

    fn ask(&mut self, mut op: Op) -> Result<Map<String, Value>, CallError> {
        if let Op::AddPeer(peer) = &mut op {
            peer.port = peer.port.or_else(|| self.told_port(peer.address));
        }
        let (name, reset) = (op.name(), matches!(op, Op::Reset(_)));
        let broken = |error| CallError::Channel { op: name, error };
        let result = match op {
            Op::WaitCompletion(wait) if self.clock.is_of_device() => self.wait_completion(wait)?,
            Op::WaitCompletion(wait) => {
                self.session.ask(op, self.silence + Duration::from_nanos(wait.timeout_ns))?
            }
            op => self.session.ask(op, self.silence)?,
        };
        if reset {
            self.early_stops.forget();
            // Arrived packets belong to contexts that the device has forgotten. A flood is not drained to its end.
            for _ in 0..STALE_BATCHES {
                self.collect().map_err(broken)?;
                if self.arrived.is_empty() {
                    break;
                }
                self.arrived.clear();
            }
            while self.event().is_some() {}
            self.tell_ports()?;
        }
        Ok(result)
    }

    fn event(&mut self) -> Option<Event> {
        self.session.poll_event()
    }

    fn begin(&mut self, instance: &str) {
        if let Some(capture) = &mut self.capture {
            capture.comment_next(&uet_conformance::passive::Origin::begin(instance));
        }
    }

    fn network_effects(&mut self) -> NetworkEffects {
        let places: Vec<SocketAddr> = self.own_places().chain([self.place()]).collect();
        NetworkEffects { lost: self.drops.at(&places), ..NetworkEffects::default() }
    }

    fn reads_nothing(&mut self) -> bool {
        is_unread_at(self.place())
    }

    fn is_host_busy(&mut self) -> bool {
        !self.facts.virtual_time && busy::is_host_busy()
    }

    fn ended(&mut self) -> Option<String> {
        self.session.ended()
    }

    fn restart(&mut self) -> io::Result<bool> {
        let next = with_free_port(|| {
            let Some(session) = self.session.restarted()? else { return Ok(None) };
            // Frees the sockets before the next ones bind.
            self.links.clear();
            Remote::around(session, &At::AsItSays, &self.facts.local).map(Some)
        })?;
        let Some(mut next) = next else { return Ok(false) };
        // Time and captures continue.
        next.clock = next.clock.continued(self.clock);
        (next.begun_at, next.silence) = (self.begun_at, self.silence);
        next.drops = core::mem::take(&mut self.drops);
        next.capture = self.capture.take();
        *self = next;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io::{BufRead, BufReader, Write};
    use std::net::{TcpListener, UdpSocket};

    /// A device whose clock moves by 1 ns with each request.
    fn crawl(listener: &TcpListener, port: u16) {
        let (mut stream, _) = listener.accept().unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines();
        for (now_ns, line) in lines.map_while(Result::ok).enumerate() {
            let request: Value = serde_json::from_str(&line).unwrap();
            let answer = json!({
                "id": request["id"], "ok": true, "now_ns": now_ns,
                "protocol": 1, "name": "snail", "capabilities": ["time"],
                "link": {"kind": "udp", "addr": "127.0.0.1", "port": port},
            });
            if stream.write_all(format!("{answer}\n").as_bytes()).is_err() {
                break;
            }
        }
    }

    #[test]
    fn a_clock_that_crawls_ends_a_wait() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let control = listener.local_addr().unwrap().to_string();
        // Nobody else gets this port while the socket is open.
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let device = std::thread::spawn(move || crawl(&listener, port));
        let mut remote = Remote::connect(&control, &At::AsItSays, &[]).unwrap();
        let error = remote.receive(Duration::from_micros(200)).unwrap_err().to_string();
        assert!(error.contains("in 10000 calls, `advance` brought no packet"), "{error}");
        drop(remote);
        device.join().unwrap();
    }

    #[test]
    fn a_device_starts_again_if_its_port_is_taken() {
        let mut starts = 0;
        let mut taken = |times| {
            starts = 0;
            with_free_port(|| {
                starts += 1;
                if starts > times { Ok(starts) } else { Err(io::ErrorKind::AddrInUse.into()) }
            })
        };
        assert_eq!(taken(2).unwrap(), 3);
        assert_eq!(taken(3).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(taken(0).unwrap(), 1);
    }
}
