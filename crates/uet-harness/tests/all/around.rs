//! Devices around the embedded NIC. Each changes only the calls that its test is about.

use core::time::Duration;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::io;
use uet_conformance::{Dut, DutError, Facts, NetworkEffects, Wire};
use uet_control::{CallError, Event, Op, Welcome};
use uet_emulator::Config;
use uet_harness::dut::Embedded;
use uet_wire::tss::Outer;

/// The embedded NIC, with changes of its calls.
pub(crate) struct Device<C> {
    pub(crate) nic: Embedded,
    pub(crate) welcome: Welcome,
    pub(crate) facts: Facts,
    pub(crate) changes: C,
}

/// Changes of the calls. A call without a change goes to the NIC.
pub(crate) trait Changes {
    fn send(&mut self, nic: &mut Embedded, packet: &Wire) -> Result<(), DutError> {
        nic.send(packet)
    }

    fn receive(&mut self, nic: &mut Embedded, until: Duration) -> Result<Option<Wire>, DutError> {
        nic.receive(until)
    }

    fn ask(&mut self, nic: &mut Embedded, op: Op) -> Result<Map<String, Value>, CallError> {
        nic.ask(op)
    }

    fn event(&mut self, nic: &mut Embedded) -> Option<Event> {
        nic.event()
    }

    fn network_effects(&mut self, nic: &mut Embedded) -> NetworkEffects {
        nic.network_effects()
    }

    fn reads_nothing(&mut self) -> bool {
        false
    }

    fn is_host_busy(&mut self) -> bool {
        false
    }

    fn ended(&mut self) -> Option<String> {
        None
    }

    fn restart(&mut self) -> io::Result<bool> {
        Ok(false)
    }
}

impl<C> Device<C> {
    pub(crate) fn new(changes: C) -> Self {
        Self::with(Config::default(), changes)
    }

    pub(crate) fn with(config: Config, changes: C) -> Self {
        let nic = Embedded::new(config).unwrap();
        let (welcome, facts) = (nic.welcome().clone(), nic.facts().clone());
        Device { nic, welcome, facts, changes }
    }
}

impl<C: Changes> Dut for Device<C> {
    fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn now(&self) -> Duration {
        self.nic.now()
    }

    fn send(&mut self, packet: &Wire) -> Result<(), DutError> {
        self.changes.send(&mut self.nic, packet)
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError> {
        self.changes.receive(&mut self.nic, until)
    }

    fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
        self.changes.ask(&mut self.nic, op)
    }

    fn event(&mut self) -> Option<Event> {
        self.changes.event(&mut self.nic)
    }

    fn outer(&self, packet: &Wire, length: usize, leaving: bool) -> Option<Outer> {
        self.nic.outer(packet, length, leaving)
    }

    fn network_effects(&mut self) -> NetworkEffects {
        self.changes.network_effects(&mut self.nic)
    }

    fn reads_nothing(&mut self) -> bool {
        self.changes.reads_nothing()
    }

    fn is_host_busy(&mut self) -> bool {
        self.changes.is_host_busy()
    }

    fn ended(&mut self) -> Option<String> {
        self.changes.ended()
    }

    fn restart(&mut self) -> io::Result<bool> {
        self.changes.restart()
    }
}

/// Receives a packet of the NIC. Meanwhile, the NIC reads each of these packets at its time.
pub(crate) fn receive_and_read(
    unread: &mut VecDeque<(Duration, Wire)>,
    nic: &mut Embedded,
    until: Duration,
) -> Result<Option<Wire>, DutError> {
    while let Some((at, packet)) = unread.pop_front() {
        let received = nic.receive(at.min(until).max(nic.now()))?;
        if received.is_some() || at > until {
            unread.push_front((at, packet));
            return Ok(received);
        }
        nic.send(&packet)?;
    }
    nic.receive(until)
}
