//! The NIC that is built in, in virtual time.

use super::{packet, wire};
use core::net::IpAddr;
use core::time::Duration;
use serde_json::{Map, Value};
use uet_conformance::{Dut, DutError, Facts, Wire};
use uet_control::{Answer, CallError, Event, Hello, Link, Op, PROTOCOL, Request, Welcome};
use uet_emulator::config::ConfigError;
use uet_emulator::control::Control;
use uet_emulator::fault::Fault;
use uet_emulator::frame::{Framed, Outer, Record, frame, read};
use uet_emulator::{Config, Network, Nic, NicId};
use uet_model::{Packet, Time};

const DEVICE: [u8; 4] = [10, 0, 0, 1];
const SUITE: [[u8; 4]; 3] = [[10, 0, 1, 1], [10, 0, 1, 2], [10, 0, 1, 3]];

/// After this time nothing is under way, whatever the network does.
const UNDER_WAY: Duration = Duration::from_millis(10);

/// The NIC that is built in, on a network of its own, in virtual time. The suite sees of it what it would see of any
/// other: packets, and the control channel.
///
/// ```
/// use uet_harness::dut::Embedded;
/// use uet_conformance::{Options, Verdict, run};
/// use uet_emulator::Config;
///
/// let options = Options { ids: vec!["ack/asked-for".into()], ..Options::default() };
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
    requests: u64,
}

impl Embedded {
    /// A NIC with this configuration.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        Self::with_faults(config, &[])
    }

    /// The same, wrong on purpose.
    pub fn with_faults(config: Config, faults: &[&'static Fault]) -> Result<Self, ConfigError> {
        let mut network = Network::new(config.seed);
        let nic = network.add(Nic::new(DEVICE, config)?.with_faults(faults)?);
        SUITE.iter().for_each(|address| network.attach(*address));
        let link = Link::Inside { addr: DEVICE.into() };
        let control = Control::new(&network[nic], link.clone(), &["ecn", "dscp", "trim", "crc"]);
        let facts = Facts {
            trim: true,
            set_ecn: true,
            set_entropy: true,
            see_class: true,
            see_entropy: true,
            crc: true,
            virtual_time: true,
            ..Facts::new(&SUITE.map(IpAddr::from), DEVICE.into())
        };
        let mut embedded =
            Embedded { network, nic, control, welcome: Welcome::new("", link), facts, requests: 0 };
        embedded.greet();
        Ok(embedded)
    }

    /// The network, for impairments and captures.
    pub fn network(&mut self) -> &mut Network {
        &mut self.network
    }

    /// Asks who it is, as of any device.
    fn greet(&mut self) {
        let said = self.ask(Hello { protocol: PROTOCOL }.into());
        let answer = said.map(|result| Answer { id: 0, ok: Some(true), error: None, result });
        if let Some(welcome) = answer.ok().and_then(|answer| answer.into_result::<Hello>().ok()) {
            self.welcome = welcome;
        }
    }

    /// A packet of the NIC with what is around it. The network has frames only in its captures, and without trailers: what a
    /// frame of the NIC would look like shows here.
    fn framed(&self, at: Time, packet: Packet) -> Framed {
        let outer = Outer { crc: true, ..Outer::default() };
        let record = Record { corrupt: self.network[self.nic].spoilt(&packet), ..Record::new(at, &packet) };
        let findings = frame(&record, &outer).ok().and_then(|frame| Some(read(&frame, &outer)?.findings));
        Framed { findings: findings.unwrap_or_default(), ..Framed::inside(packet) }
    }

    fn answer(&mut self, request: Request) -> Option<Answer> {
        let Embedded { network, nic, control, .. } = self;
        let now = network.now();
        if let Some(answer) = control.handle(now, &mut network[*nic], request) {
            return Some(answer);
        }
        // Until it has ended, or was to have ended.
        let until = control.poll_timeout().unwrap_or(now);
        network.run_until(until, |network| control.poll_answer(network.now(), &mut network[*nic]))
    }
}

impl Dut for Embedded {
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
        self.network.send_flipped(packet(wire), wire.flipped);
        Ok(())
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError> {
        let arrival = self.network.run_until(Time::ZERO + until, |network| network.poll_arrival());
        Ok(arrival.map(|(at, packet)| wire(self.framed(at, packet))))
    }

    fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
        self.requests += 1;
        let (name, reset) = (op.name(), matches!(op, Op::Reset(_)));
        let answer = self.answer(Request { id: self.requests, op });
        if reset {
            // What is still under way is of what has been forgotten.
            self.network.run(UNDER_WAY);
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

    fn event(&mut self) -> Option<Event> {
        let Embedded { network, nic, control, .. } = self;
        control.poll_event(&mut network[*nic])
    }
}
