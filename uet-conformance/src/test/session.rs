//! The session with the device: the link, the control channel, parameters and time.

use crate::{Dut, DutError, DutExt, Facts, StandingRegion, Stop, Wire};
use core::cell::{Cell, RefCell};
use core::net::IpAddr;
use core::time::Duration;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use uet_control::{
    CallError, Completion, ErrorCode, Event, Op, Operation, Parameter, Status, WaitCompletion, Welcome,
};
use uet_wire::Spec;
use uet_wire::tss::Outer;

/// Maximum time for an immediate reaction of a device, by the link's clock, before `--timeout-scale`.
const SOON: Duration = Duration::from_millis(20);

/// Maximum time by which a busy system may delay the device or the suite. The suite waits this long for an
/// expected packet. It accepts silence earlier from a device that has answered.
const STALL: Duration = Duration::from_millis(200);

/// Maximum number of packets sent in a row. A real link loses packets that arrive faster than either end
/// reads them.
const BURST: usize = 32;

/// The device, and what the script knows of it through the control channel.
pub(super) struct Session<'a> {
    dut: &'a mut dyn Dut,
    spec: &'static Spec,
    /// Factor for all expected times.
    scale: f64,
    /// True if the script runs over IPv4. If the link carries both versions, the seed decides.
    ipv4: bool,
    /// Parameters that the rule has set.
    set: BTreeMap<String, Value>,
    /// Names of parameters that the rule has read.
    read: RefCell<BTreeSet<String>>,
    /// True if the device has refused a feature that only a profile requires.
    declined: Cell<bool>,
    /// Number of completion events of each operation.
    ended: BTreeMap<u64, usize>,
    /// Completions that the device has told; it need not tell them again.
    completions: BTreeMap<u64, Completion>,
    /// Number of packets sent since the last receive.
    unread: usize,
}

impl<'a> Session<'a> {
    pub(super) fn new(dut: &'a mut dyn Dut, spec: &'static Spec, seed: u64, scale: f64) -> Self {
        let facts = dut.facts();
        // Consecutive seeds alternate. Bits of the lower half alone give ids with equal parts the same
        // version.
        let second = (seed ^ seed >> 32) % 2 == 1;
        let ipv4 = facts.device.is_ipv4() != (facts.second_device.is_some() && second);
        Session {
            dut,
            spec,
            scale,
            ipv4,
            set: BTreeMap::new(),
            read: RefCell::default(),
            declined: Cell::new(false),
            ended: BTreeMap::new(),
            completions: BTreeMap::new(),
            unread: 0,
        }
    }

    /// Forgets what a reset of the device has undone.
    pub(super) fn restart(&mut self) {
        self.set.clear();
        self.ended.clear();
        self.completions.clear();
    }

    /// Notes that the device refuses a feature that only a profile requires.
    pub(super) fn declines(&self) {
        self.declined.set(true);
    }

    pub(super) fn declined(&self) -> bool {
        self.declined.get()
    }

    /// Returns the names of the parameters that the rule has read and set.
    pub(super) fn parameters_used(self) -> (BTreeSet<String>, BTreeSet<String>) {
        (self.read.into_inner(), self.set.into_keys().collect())
    }

    pub(super) fn facts(&self) -> &Facts {
        self.dut.facts()
    }

    pub(super) fn welcome(&self) -> &Welcome {
        self.dut.welcome()
    }

    pub(super) fn spec(&self) -> &'static Spec {
        self.spec
    }

    pub(super) fn now(&self) -> Duration {
        self.dut.now()
    }

    pub(super) fn scaled(&self, span: Duration) -> Duration {
        span.mul_f64(self.scale)
    }

    pub(super) fn soon(&self) -> Duration {
        self.scaled(SOON + self.dut.round_trip())
    }

    pub(super) fn patience(&self, within: Duration) -> Duration {
        if self.facts().virtual_time || within < self.soon() { within } else { within + self.scaled(STALL) }
    }

    /// Returns the suite's addresses of the IP version that the script runs over.
    pub(super) fn addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.facts().local_of(self.ipv4)
    }

    /// Returns the suite's first address and the device's address.
    pub(super) fn ends(&self) -> (IpAddr, IpAddr) {
        let to = self.facts().device_of(self.ipv4).unwrap_or(self.facts().device);
        (self.addresses().next().unwrap_or(to), to)
    }

    /// Returns such a pair of the other IP version, if the link carries it.
    pub(super) fn ends_over_other_ip(&self, address: usize) -> Option<(IpAddr, IpAddr)> {
        Some((self.facts().local_of(!self.ipv4).nth(address)?, self.facts().device_of(!self.ipv4)?))
    }

    pub(super) fn parameter(&self, name: &str) -> u64 {
        let default = || Parameter::find(name).and_then(Parameter::number);
        self.reported(name).or_else(default).unwrap_or_default()
    }

    pub(super) fn reported(&self, name: &str) -> Option<u64> {
        self.reported_value(name)?.as_u64()
    }

    pub(super) fn reported_value(&self, name: &str) -> Option<&Value> {
        self.set.get(name).or_else(|| self.told(name))
    }

    pub(super) fn told(&self, name: &str) -> Option<&Value> {
        if !self.read.borrow().contains(name) {
            self.read.borrow_mut().insert(name.into());
        }
        self.welcome().parameters.get(name)
    }

    /// Returns a parameter that is a word, as the script has set it. Does not count as reading it.
    pub(super) fn parameter_word(&self, name: &str) -> Option<&str> {
        self.set.get(name).or_else(|| self.welcome().parameters.get(name))?.as_str()
    }

    /// Records parameters that the device has accepted.
    pub(super) fn was_set(&mut self, parameters: impl IntoIterator<Item = (String, Value)>) {
        self.set.extend(parameters);
    }

    pub(super) fn has_set_any(&self) -> bool {
        !self.set.is_empty()
    }

    /// Returns the standing regions of a device without a control channel.
    pub(super) fn standing_regions(&self) -> Vec<StandingRegion> {
        let known = self.welcome().parameters.get(crate::statement::REGIONS);
        known.and_then(|known| serde_json::from_value(known.clone()).ok()).unwrap_or_default()
    }

    pub(super) fn refuses_region(&self, length: u64) -> bool {
        self.dut.refuses_region(length)
    }

    /// Sends a packet. Returns whether the receiver needs a pause now.
    pub(super) fn send(&mut self, packet: &Wire) -> Result<bool, DutError> {
        self.dut.send(packet)?;
        self.unread += 1;
        Ok(self.unread >= BURST && !self.facts().virtual_time)
    }

    /// Notes that the script waits, so that both ends can read what they were sent.
    pub(super) fn rest(&mut self) {
        self.unread = 0;
    }

    /// Returns whether packets to the device lie unread on this host, as far as that is known. Virtual time
    /// waits for the device.
    pub(super) fn has_unread(&mut self) -> bool {
        !self.facts().virtual_time && self.dut.reads_nothing()
    }

    /// Returns whether programs on the host of the suite and a real-time device wait for a processor.
    pub(super) fn is_host_busy(&mut self) -> bool {
        !self.facts().virtual_time && self.dut.is_host_busy()
    }

    pub(super) fn receive(&mut self, until: Duration) -> Result<Option<Wire>, DutError> {
        self.dut.receive(until)
    }

    /// Returns the packets that the network has lost since the last call.
    pub(super) fn lost(&mut self) -> Vec<(Duration, Wire)> {
        self.dut.lost()
    }

    pub(super) fn outer(&self, packet: &Wire, length: usize, leaving: bool) -> Option<Outer> {
        self.dut.outer(packet, length, leaving)
    }

    /// Requests an operation, which is an `O`.
    pub(super) fn call<O: Operation>(&mut self, op: Op) -> Result<O::Answer, Stop> {
        if matches!(op, Op::Reset(_) | Op::Configure(_)) {
            self.completions.clear();
        }
        self.dut.call_any::<O>(op).map_err(stop)
    }

    /// Returns a completion that the device has told already.
    pub(super) fn known_completion(&self, operation: u64) -> Option<&Completion> {
        self.completions.get(&operation)
    }

    /// Waits for a completion. Returns `None` if the operation does not complete in this time.
    pub(super) fn wait_completion(&mut self, wait: WaitCompletion) -> Result<Option<Completion>, Stop> {
        match self.dut.call(wait) {
            Ok(completion) => {
                self.completions.insert(wait.operation, completion.clone());
                Ok(Some(completion))
            }
            Err(CallError::Refused { refusal, .. }) if refusal.code == ErrorCode::Timeout => Ok(None),
            Err(error) => Err(stop(error)),
        }
    }

    /// Returns the completions that the device has told on its own since the last call.
    pub(super) fn events(&mut self) -> Vec<Completion> {
        let mut events = Vec::new();
        while let Some(Event::Completion(ended)) = self.dut.event() {
            events.push(ended);
        }
        events
    }

    /// Returns the number of completion events of an operation so far; `None` if there was none.
    pub(super) fn times_ended(&mut self, operation: u64) -> Option<usize> {
        for ended in self.events() {
            *self.ended.entry(ended.operation).or_default() += 1;
        }
        self.ended.get(&operation).copied()
    }

    /// Returns the operations that are known to have failed, with their completions.
    pub(super) fn failed_operations(&mut self) -> Vec<Completion> {
        let mut ended = core::mem::take(&mut self.completions);
        for told in self.events() {
            ended.entry(told.operation).or_insert(told);
        }
        ended.into_values().filter(|told| told.status != Status::Ok).collect()
    }
}

/// Returns why a script cannot go on without the answer to an operation.
fn stop(error: CallError) -> Stop {
    match error {
        CallError::Channel { .. } => Stop::Gone(error.to_string()),
        _ if error.is_unsupported() => Stop::Skipped(error.to_string()),
        _ => Stop::Inconclusive(error.to_string()),
    }
}
