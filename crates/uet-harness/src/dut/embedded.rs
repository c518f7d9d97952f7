//! The embedded NIC, in virtual time.

use super::{before_trimming, packet, wire};
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;
use core::time::Duration;
use serde_json::{Map, Value};
use uet_conformance::{Dut, DutError, Facts, NetworkEffects, Twins, Wire};
use uet_control::{Answer, CallError, Event, Hello, Link, Op, PROTOCOL, Request, Welcome};
use uet_emulator::config::ConfigError;
use uet_emulator::control::Control;
use uet_emulator::fault::Fault;
use uet_emulator::frame::{Framed, Outer, Record, carried, frame, read};
use uet_emulator::{Config, Network, Nic, NicId};
use uet_model::{Packet, Time};

const DEVICE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Each address after the first differs from it in one byte.
const SUITE: [Ipv4Addr; 5] = [
    Ipv4Addr::new(10, 0, 1, 1),
    Ipv4Addr::new(10, 0, 1, 2),
    Ipv4Addr::new(10, 0, 2, 1),
    Ipv4Addr::new(10, 1, 1, 1),
    Ipv4Addr::new(11, 0, 1, 1),
];

/// Each address after the first differs from it in one of its four words.
const DEVICE_6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 1);
const SUITE_6: [Ipv6Addr; 5] = [
    Ipv6Addr::new(0xfd00, 0, 0, 2, 0, 0, 0, 1),
    Ipv6Addr::new(0xfd00, 0, 0, 2, 0, 0, 0, 2),
    Ipv6Addr::new(0xfd00, 0, 0, 3, 0, 0, 0, 1),
    Ipv6Addr::new(0xfd00, 0, 0, 2, 0, 1, 0, 1),
    Ipv6Addr::new(0xfd01, 0, 0, 2, 0, 0, 0, 1),
];

/// Time after which no packet is in flight, unless an impairment delays it longer.
const UNDER_WAY: Duration = Duration::from_millis(10);

/// Maximum number of arrivals after that, of packets that an impairment delays.
const LONG_DELAYS: u32 = 10_000;

/// IP versions of the link to the embedded NIC.
///
/// ```
/// use uet_harness::dut::Family;
///
/// assert_eq!("both".parse(), Ok(Family::Both));
/// assert_eq!(Family::V6.to_string(), "6");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
    /// Both: device and suite have addresses of either version. The seed selects the version for each rule.
    Both,
}

impl FromStr for Family {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "4" => Ok(Family::V4),
            "6" => Ok(Family::V6),
            "both" => Ok(Family::Both),
            _ => Err("expected 4, 6 or both"),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::V4 => "4",
            Family::V6 => "6",
            Family::Both => "both",
        })
    }
}

/// The embedded NIC on a network of its own, in virtual time. The suite sees only packets and the control channel, as
/// with any other device.
///
/// ```
/// use uet_harness::dut::Embedded;
/// use uet_conformance::{Options, Verdict, run};
/// use uet_emulator::Config;
///
/// let options = Options { ids: vec!["ack/requested".into()], ..Options::default() };
/// let result = run(&mut Embedded::new(Config::default())?, &options, |_| ());
/// assert_eq!(result.count(Verdict::Pass), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Embedded {
    network: Network,
    nic: NicId,
    control: Control,
    welcome: Welcome,
    facts: Facts,
    /// Encapsulation of packets on the link.
    outer: Outer,
    requests: u64,
    /// Packets whose bits the suite has flipped; the network counts them as damaged.
    flipped: u64,
    /// The arguments that made it; `None` if the network may have been changed since.
    made: Option<(Family, Config, Vec<&'static Fault>)>,
}

impl Embedded {
    /// Creates a NIC with this configuration.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        Self::with_faults(config, &[])
    }

    /// Creates a NIC with deliberate faults.
    pub fn with_faults(config: Config, faults: &[&'static Fault]) -> Result<Self, ConfigError> {
        Self::over(Family::V4, config, faults)
    }

    /// Creates a NIC with deliberate faults over these IP versions.
    pub fn over(family: Family, config: Config, faults: &[&'static Fault]) -> Result<Self, ConfigError> {
        let v4 = (IpAddr::from(DEVICE), SUITE.map(IpAddr::from));
        let v6 = (IpAddr::from(DEVICE_6), SUITE_6.map(IpAddr::from));
        let ((device, suite), second) = match family {
            Family::V4 => (v4, None),
            Family::V6 => (v6, None),
            Family::Both => (v4, Some(v6)),
        };
        let (second_device, second_suite) = second.unzip();
        let local: Vec<IpAddr> = suite.into_iter().chain(second_suite.into_iter().flatten()).collect();

        let outer = Outer { crc: true, ..Outer::default() };
        let made_with = config.clone();
        let mut network = Network::new(config.seed);
        let mut own = Nic::new(device, config)?.with_frames(outer.clone());
        if let Some(second) = second_device {
            own = own.with_second_address(second);
        }
        let nic = network.add(own.with_faults(faults)?);
        local.iter().for_each(|address| network.attach(*address));
        let link = Link::Inside { addr: device };
        let control = Control::new(&network[nic], link.clone(), &["ecn", "dscp", "trim", "crc"]);
        let facts = Facts {
            second_device,
            trim: true,
            set_ecn: true,
            set_entropy: true,
            set_ttl: true,
            see_class: true,
            see_entropy: true,
            crc: true,
            virtual_time: true,
            ..Facts::new(&local, device)
        };
        let mut embedded = Embedded {
            network,
            nic,
            control,
            welcome: Welcome::new("", link),
            facts,
            outer,
            requests: 0,
            flipped: 0,
            made: Some((family, made_with, faults.to_vec())),
        };
        embedded.greet();
        Ok(embedded)
    }

    /// Returns the network, for impairments and captures.
    pub fn network(&mut self) -> &mut Network {
        self.made = None;
        &mut self.network
    }

    /// Sends `hello`, as to any device.
    fn greet(&mut self) {
        let said = self.ask(Hello { protocol: PROTOCOL }.into());
        let answer = said.map(|result| Answer { id: 0, ok: Some(true), error: None, result });
        if let Some(welcome) = answer.ok().and_then(|answer| answer.into_result::<Hello>().ok()) {
            self.welcome = welcome;
        }
    }

    /// Returns a packet of the NIC as the suite reads it from its frame.
    fn framed(&self, packet: Packet) -> Framed {
        let Embedded { network, nic, outer, .. } = self;
        let nic = &network[*nic];
        let corrupt = nic.corrupted_bit(&packet);
        let ipv6_start = nic.ipv6_start(&packet, &outer.classes);
        carried(packet, corrupt, ipv6_start, outer).unwrap_or_else(Framed::inside)
    }

    /// Returns a trimmed packet with a stale IP length as the NIC reads it from its frame; `None` if the NIC drops it.
    fn read_stale(&self, wire: &Wire) -> Option<Packet> {
        let (packet, trim) = before_trimming(wire, self.outer.between());
        let record = Record { trim, stale_length: true, ..Record::new(Time::ZERO, &packet) };
        let framed = read(&frame(&record, &self.outer).ok()?, &self.outer)?;
        framed.damage.is_none().then_some(framed.packet)
    }

    fn answer(&mut self, request: Request) -> Option<Answer> {
        let Embedded { network, nic, control, .. } = self;
        let now = network.now();
        if let Some(answer) = control.handle(now, &mut network[*nic], request) {
            return Some(answer);
        }
        // Runs until the operation completes or its timeout expires.
        let until = control.poll_timeout().unwrap_or(now);
        network.run_until(until, |network| control.poll_answer(network.now(), &mut network[*nic]))
    }
}

impl Dut for Embedded {
    fn twins(&self) -> Option<Twins> {
        let (family, config, faults) = self.made.clone()?;
        Some(Box::new(move || {
            let twin = Embedded::over(family, config.clone(), &faults).ok()?;
            Some(Box::new(twin))
        }))
    }

    fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn now(&self) -> Duration {
        self.network.now() - Time::ZERO
    }

    fn send(&mut self, wire: &Wire) -> Result<(), DutError> {
        self.flipped += u64::from(wire.flipped.is_some());
        let packet = match wire.stale_length {
            true => self.read_stale(wire),
            false => Some(packet(wire)),
        };
        if let Some(packet) = packet {
            self.network.send_flipped(packet, wire.flipped);
        }
        Ok(())
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError> {
        let arrival = self.network.run_until(Time::ZERO + until, |network| network.poll_arrival());
        Ok(arrival.map(|(_, packet)| wire(self.framed(packet))))
    }

    fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
        self.requests += 1;
        let (name, reset) = (op.name(), matches!(op, Op::Reset(_)));
        let answer = self.answer(Request { id: self.requests, op });
        if reset {
            // Packets still in flight belong to forgotten contexts.
            self.network.run(UNDER_WAY);
            for _ in 0..LONG_DELAYS {
                match self.network.fabric().next_at() {
                    Some(at) => self.network.run_until(at, |_| None::<()>),
                    None => break,
                };
            }
            while self.network.poll_arrival().is_some() {}
            while self.event().is_some() {}
        }
        let closed = CallError::Channel { op: name, error: std::io::ErrorKind::UnexpectedEof.into() };
        let answer = answer.ok_or(closed)?;
        match answer.error {
            Some(refusal) => Err(CallError::Refused { op: name, refusal }),
            None => Ok(answer.result),
        }
    }

    fn outer(&self, packet: &Wire, length: usize, _: bool) -> Option<uet_wire::tss::Outer> {
        Some(uet_wire::tss::Outer::udp(packet.src, packet.dst, packet.entropy, length))
    }

    fn begin(&mut self, instance: &str) {
        self.network.comment_next(&uet_conformance::passive::Origin::begin(instance));
    }

    fn lost(&mut self) -> Vec<(Duration, Wire)> {
        let lost = core::iter::from_fn(|| self.network.poll_lost());
        lost.map(|(at, packet)| (at - Time::ZERO, wire(Framed::inside(packet)))).collect()
    }

    fn network_effects(&mut self) -> NetworkEffects {
        let counters = self.network.fabric().counters();
        NetworkEffects {
            sent: counters.sent,
            lost: counters.lost + counters.full,
            duplicated: counters.duplicated,
            delayed: counters.delayed,
            reordered: counters.reordered,
            changed: (counters.marked + counters.trimmed + counters.corrupt).saturating_sub(self.flipped),
        }
    }

    fn event(&mut self) -> Option<Event> {
        let Embedded { network, nic, control, .. } = self;
        control.poll_event(&mut network[*nic])
    }
}
