use crate::axis::{MODE, START, Start};
use crate::carrier::Sends;
use crate::passive::{Checker, Finding};
use crate::phase::Phases;
use crate::shield::Shield;
use crate::{
    Axis, Bound, Dut, DutError, DutExt, Entry, Instance, Ladder, Observation, Pdc, Relation, RxPacket, Show,
    Wire,
};
use core::cell::RefCell;
use core::fmt;
use core::net::IpAddr;
use core::ops::RangeInclusive;
use core::time::Duration;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use uet_control::{
    AddPeer, CallError, Completion, Event, ExposeRegion, Fill, Hex64, Mode, Op, Operated, Operation,
    Parameter, Permission, Post, ReadMemory, Reset, Status, WaitCompletion,
};
use uet_observe::{Observed, Observer};
use uet_wire::catalogue::Requirement;
use uet_wire::pds::Pds;
use uet_wire::registry::{CtlType, PdsType};
use uet_wire::{PdcId, Psn, Spec, UetBuf, WriteError};

/// The end of a script: success, or a stop.
pub type Outcome = Result<(), Stop>;

/// The reason why a script stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A check failed and the following steps depend on it. The check is recorded.
    Failed,
    /// Neither the expected packet nor another one arrived. The suite must find out if the device is alive.
    Silent,
    /// The device did not reach the state that the case checks.
    Inconclusive(String),
    /// The device lacks something.
    Skipped(String),
    /// The device or its link has failed.
    Gone(String),
}

impl From<DutError> for Stop {
    fn from(error: DutError) -> Self {
        Stop::Gone(error.to_string())
    }
}

impl From<WriteError> for Stop {
    /// Handles a case that builds an impossible packet: the case itself is wrong.
    fn from(error: WriteError) -> Self {
        Stop::Inconclusive(format!("the case builds a packet that cannot be: {error}"))
    }
}

/// Maximum time for an immediate reaction of a device, by the link's clock, before `--timeout-scale`.
pub(crate) const SOON: Duration = Duration::from_millis(20);

/// Maximum time by which a busy system may delay the device or the suite. The suite waits this long for an expected
/// packet. It accepts silence earlier from a device that has answered.
const STALL: Duration = Duration::from_millis(200);

/// Number of attempts of a measurement on a shared machine or link.
const TRIES: u32 = 3;

/// Maximum number of packets sent in a row. A real link loses packets that arrive faster than either end reads them.
const BURST: usize = 32;

/// A memory region of the device with the fields that address it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its number in the control channel.
    pub number: u64,
    /// The job.
    pub job: u32,
    /// The process.
    pub process: u16,
    /// The resource index.
    pub index: u16,
    /// Its generation.
    pub generation: u8,
    /// The memory key.
    pub key: u64,
    /// Message id of requests for it.
    pub message_id: u16,
    /// Its length.
    pub length: u64,
}

/// The interface of a script to the suite and the device.
pub struct Test<'a> {
    pub(crate) dut: &'a mut dyn Dut,
    spec: &'static Spec,
    /// The running instance; `None` outside a rule.
    instance: Option<Instance>,
    scale: f64,
    pub(crate) rng: fastrand::Rng,
    /// True if the suite grants the requested credit automatically.
    pub auto_credit: bool,
    /// True if the suite acknowledges control packets automatically.
    pub auto_ack_control: bool,
    /// True if the script runs over IPv4. If the link carries both versions, the seed decides.
    ipv4: bool,
    /// The suite's PDCID of the next context; each context of a case has its own.
    next_pdcid: u16,
    /// Parameters that the case has set.
    pub(crate) set: BTreeMap<String, Value>,
    /// Names of parameters that the case has read.
    pub(crate) read: RefCell<BTreeSet<String>>,
    /// The context and region of the liveness check.
    pub(crate) liveness: Option<(Pdc, Region)>,
    /// Maximum delay of the suite's answers.
    late: Duration,
    pub(crate) ladder: Ladder,
    pub(crate) phases: Phases,
    pub(crate) observations: Vec<Observation>,
    pub(crate) packets: usize,
    pub(crate) heard: bool,
    /// Writes sent as sends.
    pub(crate) sends: Sends,
    /// Number of completions of each operation.
    ended: BTreeMap<u64, usize>,
    /// Completions that the device has told; it need not tell them again.
    completions: BTreeMap<u64, Completion>,
    /// Read data that the device must take, by the PDCID of the suite and the PSN.
    pub(crate) proper_data: BTreeSet<(u16, u32)>,
    /// The ACK that refused such data.
    refused_data: Option<RxPacket>,
    /// The last control packet of a type that a device need not support, and its number.
    optional_control: Option<(CtlType, usize)>,
    /// Follows the contexts between suite and device, unless the checker does.
    observer: Observer,
    /// Judges the packets of both ends, in a random conversation.
    checker: Option<Box<Checker>>,
    passive_findings: VecDeque<Finding>,
    /// Ends, and numbers of idempotent requests, of packets that no peer sends. Nobody observes the answers to them.
    pub(crate) strange_ends: BTreeSet<(IpAddr, PdcId)>,
    pub(crate) strange_packets: BTreeSet<u32>,
    /// Number of packets sent since the last receive.
    unread: usize,
    /// Received packets that no expectation has taken.
    inbox: VecDeque<RxPacket>,
    /// The suite's part in the secure domain of the device.
    pub(crate) shield: Option<Box<Shield>>,
}

/// A count of bytes that the third packet of 4 KiB takes over the wrap of `rcvd_bytes`.
pub(crate) const BEFORE_WRAP: u64 = (1 << 32) - 40 * 256;

impl fmt::Debug for Test<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Test")
            .field("ladder", &self.ladder)
            .field("observations", &self.observations)
            .finish_non_exhaustive()
    }
}

impl<'a> Test<'a> {
    pub(crate) fn new(dut: &'a mut dyn Dut, spec: &'static Spec, seed: u64, scale: f64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let facts = dut.facts();
        // Consecutive seeds alternate.
        let ipv4 = facts.device.is_ipv4() != (facts.second_device.is_some() && seed % 2 == 1);
        Test {
            ipv4,
            dut,
            spec,
            instance: None,
            scale,
            auto_credit: true,
            auto_ack_control: true,
            next_pdcid: rng.u16(1..),
            rng,
            set: BTreeMap::new(),
            read: RefCell::default(),
            liveness: None,
            late: Duration::ZERO,
            ladder: Ladder::default(),
            phases: Phases::default(),
            observations: Vec::new(),
            packets: 0,
            heard: false,
            sends: Sends::default(),
            ended: BTreeMap::new(),
            completions: BTreeMap::new(),
            proper_data: BTreeSet::new(),
            refused_data: None,
            optional_control: None,
            observer: Observer::default(),
            checker: None,
            passive_findings: VecDeque::new(),
            strange_ends: BTreeSet::new(),
            strange_packets: BTreeSet::new(),
            unread: 0,
            inbox: VecDeque::new(),
            shield: None,
        }
    }

    /// Runs as this instance of a rule.
    pub(crate) fn at(self, instance: &Instance) -> Self {
        Test { instance: Some(instance.clone()), ..self }
    }

    /// Makes the PSNs of the device's own contexts and its counts of bytes start where [`START`] says, if the device lets
    /// them be set.
    pub(crate) fn begin(&mut self) -> Outcome {
        let start = self.value(&START);
        let counted = match start {
            Start::Any => return Ok(()),
            Start::Wrap => BEFORE_WRAP,
            Start::Half => BEFORE_WRAP - (1 << 31),
        };
        if self.claims("parameters") {
            let psn = self.start_at(start).0;
            self.try_configure("start_psn", psn)?;
            self.try_configure("start_rcvd_bytes", counted)?;
        }
        Ok(())
    }

    /// Returns the number of bytes from which `rcvd_bytes` counts.
    pub(crate) fn start_of_count(&self) -> u64 {
        self.parameter("start_rcvd_bytes")
    }

    /// Returns the value of an axis in this instance; the first value if the rule lacks the axis.
    pub fn value<T: Copy>(&self, axis: &Axis<T>) -> T {
        let index = self.instance.as_ref().and_then(|instance| instance.index(axis.name));
        axis.points[index.unwrap_or(0)].value
    }

    /// Returns the device's answer to `hello`.
    pub fn device(&self) -> &uet_control::Welcome {
        self.dut.welcome()
    }

    /// Returns the abilities of the link.
    pub fn facts(&self) -> &crate::Facts {
        self.dut.facts()
    }

    /// Returns a numeric parameter of the device, or the [default](uet_control::PARAMETERS) if the device does not report it.
    pub fn parameter(&self, name: &str) -> u64 {
        let default = || Parameter::find(name).and_then(Parameter::number);
        self.reported(name).or_else(default).unwrap_or_default()
    }

    /// Returns a numeric parameter that the device reports or the script has set.
    pub fn reported(&self, name: &str) -> Option<u64> {
        self.set.get(name).or_else(|| self.told(name))?.as_u64()
    }

    /// Returns a parameter of the device that is a word.
    pub fn word(&self, name: &str) -> Option<&str> {
        self.told(name)?.as_str()
    }

    /// Returns a parameter as `hello` or the statement has it.
    pub(crate) fn told(&self, name: &str) -> Option<&Value> {
        if !self.read.borrow().contains(name) {
            self.read.borrow_mut().insert(name.into());
        }
        self.dut.welcome().parameters.get(name)
    }

    /// Returns whether the device claims this capability.
    pub fn claims(&self, name: &str) -> bool {
        self.dut.welcome().capabilities.iter().any(|claim| claim == name)
    }

    /// Returns the payload MTU of the device, always a valid one.
    pub fn mtu(&self) -> usize {
        self.parameter("payload_mtu").clamp(1024, 8192) as usize
    }

    /// Returns the version of the specification that judges the device.
    pub fn spec(&self) -> &'static Spec {
        self.spec
    }

    /// Returns the time by the link's clock.
    pub fn now(&self) -> Duration {
        self.dut.now()
    }

    /// Returns this span multiplied by `--timeout-scale`.
    pub fn scaled(&self, span: Duration) -> Duration {
        span.mul_f64(self.scale)
    }

    /// Returns the maximum time for an immediate reaction of a device, including the round trip.
    pub fn soon(&self) -> Duration {
        self.scaled(SOON + self.dut.round_trip())
    }

    /// Returns how long to wait for a packet due within this time. Times below [`soon`](Self::soon) are exact, as are
    /// all times in virtual time.
    pub(crate) fn patience(&self, within: Duration) -> Duration {
        match self.facts().virtual_time || within < self.soon() {
            true => within,
            false => within + self.scaled(STALL),
        }
    }

    /// Adds a remark about the next step to the ladder.
    pub fn note(&mut self, text: impl Into<String>) {
        self.step(self.dut.now(), Entry::Note(text.into()));
    }

    /// Requests an operation of the device. Skips the test of a device that lacks it.
    pub fn call<O: Operation>(&mut self, op: O) -> Result<O::Answer, Stop> {
        let op: Op = op.into();
        self.step(self.dut.now(), Entry::Called(op.without_secrets()));
        if matches!(op, Op::Reset(_) | Op::Configure(_)) {
            self.completions.clear();
        }
        self.dut.call_any::<O>(op).map_err(|error| match error {
            CallError::Channel { .. } => Stop::Gone(error.to_string()),
            _ if error.is_unsupported() => Stop::Skipped(error.to_string()),
            _ => Stop::Inconclusive(error.to_string()),
        })
    }

    /// Exposes zeroed memory of the device for job 101, process 2, with all permissions.
    pub fn region(&mut self, length: u64) -> Result<Region, Stop> {
        self.region_for(length, &[Permission::Read, Permission::Write, Permission::Atomic], None)
    }

    /// Exposes memory with these permissions and contents.
    pub fn region_for(
        &mut self,
        length: u64,
        permissions: &[Permission],
        fill: Option<Fill>,
    ) -> Result<Region, Stop> {
        let region = self.no_region(length);
        let key = region.key;
        if !self.facts().control {
            return self.standing(&region, permissions.len() == 3 && fill.is_none());
        }
        if let Some(number) = self.unexposed() {
            self.sends.keys.push(key);
            return Ok(Region { number, ..region });
        }
        let request = ExposeRegion {
            length,
            key: Hex64(key),
            job: Some(region.job),
            process: region.process,
            index: region.index,
            generation: region.generation,
            permissions: permissions.to_vec(),
            fill,
        };
        let (number, key) = self.expose(request, false)?;
        Ok(Region { number, key, ..region })
    }

    /// Returns a region of this length that the device exposes from its start, if it fits the needs of the rule.
    fn standing(&mut self, region: &Region, fits: bool) -> Result<Region, Stop> {
        if self.dut.refuses_region(region.length) {
            let length = region.length;
            let why = format!("the device takes no write to the region of {length} bytes in the statement");
            return Err(Stop::Skipped(why));
        }
        let known = self.dut.welcome().parameters.get(crate::statement::REGIONS);
        let known: Vec<crate::StandingRegion> =
            known.and_then(|known| serde_json::from_value(known.clone()).ok()).unwrap_or_default();
        // A rule relies on the end of the region that it asks for.
        let found = known.into_iter().find(|it| fits && it.length == region.length);
        let found = found.ok_or_else(|| {
            let length = region.length;
            Stop::Skipped(match fits {
                true => {
                    format!("needs a region of {length} bytes, which [[regions]] of the statement can name")
                }
                false => "needs a region with contents or permissions of its own".into(),
            })
        })?;
        let crate::StandingRegion { key, job, process, index, generation, .. } = found;
        Ok(Region { key: key.0, job, process, index, generation, ..*region })
    }

    /// Returns a region that the device does not have.
    pub(crate) fn no_region(&mut self, length: u64) -> Region {
        let key = u64::from(self.rng.u32(1..)) & 0xffff_ffff;
        let message_id = self.rng.u16(1..);
        Region { number: 0, job: 101, process: 2, index: 10, generation: 0, key, message_id, length }
    }

    /// Reads the device's memory.
    pub fn memory(&mut self, region: &Region, offset: u64, length: u64) -> Result<Vec<u8>, Stop> {
        match Self::is_carried(region) {
            true => self.carried_memory(region, offset, length),
            false => self.raw_memory(region.number, offset, length),
        }
    }

    pub(crate) fn raw_memory(&mut self, region: u64, offset: u64, length: u64) -> Result<Vec<u8>, Stop> {
        let data = self.call(ReadMemory { region, offset, length })?.data.0;
        match data.len() as u64 == length {
            true => Ok(data),
            false => {
                Err(Stop::Inconclusive(format!("read_memory: {} bytes instead of {length}", data.len())))
            }
        }
    }

    /// Returns an address of the suite, of the IP version that the script runs over.
    pub fn address(&self, index: usize) -> Result<IpAddr, Stop> {
        let address = self.dut.facts().local_of(self.ipv4).nth(index);
        address.ok_or_else(|| Stop::Skipped("the suite has too few addresses".into()))
    }

    /// Returns the number of the suite's addresses of the IP version that the script runs over.
    pub fn addresses(&self) -> usize {
        self.dut.facts().local_of(self.ipv4).count()
    }

    /// Returns an unopened context with random numbers from an address of the other IP version; `None` if the link carries
    /// only one, or if the suite has no such address.
    pub fn initiate_over_other_ip(&mut self, address: usize) -> Option<Pdc> {
        let facts = self.dut.facts();
        let (from, to) = (facts.local_of(!self.ipv4).nth(address)?, facts.device_of(!self.ipv4)?);
        Some(Pdc { from, to, ..self.initiate() })
    }

    /// Returns the suite as a peer of the device, by its number in the control channel.
    pub fn peer(&mut self, address: usize) -> Result<u64, Stop> {
        let peer =
            AddPeer { address: self.address(address)?, port: None, job: 101, process: 1, initiator: 0 };
        Ok(self.call(peer)?.peer)
    }

    /// Posts an operation on the device as an initiator.
    pub fn post(&mut self, post: Post) -> Result<Operated, Stop> {
        self.call(self.carried(post))
    }

    /// Returns the completion of an operation of the device within this time; `None` if it does not complete.
    ///
    /// The suite asks a device for a completion until it is told. The device need not keep it after that.
    pub fn completion(&mut self, operation: Operated, within: Duration) -> Result<Option<Completion>, Stop> {
        if let Some(told) = self.completions.get(&operation.operation) {
            return Ok(Some(told.clone()));
        }
        let timeout_ns = self.patience(within).as_nanos() as u64;
        let wait = WaitCompletion { operation: operation.operation, timeout_ns };
        self.step(self.dut.now(), Entry::Called(wait.into()));
        match self.dut.call(wait) {
            Ok(completion) => {
                self.completions.insert(operation.operation, completion.clone());
                Ok(Some(completion))
            }
            Err(CallError::Refused { refusal, .. }) if refusal.code == uet_control::ErrorCode::Timeout => {
                if !self.proper_data.is_empty() {
                    // The refusal of the data may have arrived.
                    self.pause(Duration::ZERO)?;
                }
                Ok(None)
            }
            Err(error) if error.is_unsupported() => Err(Stop::Skipped(error.to_string())),
            Err(error @ CallError::Channel { .. }) => Err(Stop::Gone(error.to_string())),
            Err(error) => Err(Stop::Inconclusive(error.to_string())),
        }
    }

    /// Returns the number of completion events of an operation; waits for those that arrive with the next answer. Skips
    /// the test of a device without events.
    pub fn times_ended(&mut self, operation: Operated) -> Result<usize, Stop> {
        self.peer(0)?;
        while let Some(Event::Completion(ended)) = self.dut.event() {
            *self.ended.entry(ended.operation).or_default() += 1;
        }
        let times = self.ended.get(&operation.operation).copied();
        times.ok_or_else(|| Stop::Skipped("the device tells no events".into()))
    }

    /// Returns a context for the suite to open, with random numbers.
    pub fn initiate(&mut self) -> Pdc {
        let facts = self.dut.facts();
        let to = facts.device_of(self.ipv4).unwrap_or(facts.device);
        let from = facts.local_of(self.ipv4).next().unwrap_or(to);
        Pdc {
            from,
            to,
            local: self.pdcid(),
            remote: None,
            start: self.start(),
            rod: self.value(&MODE) == Mode::Rod,
            entropy: self.rng.u16(0xc000..),
        }
    }

    /// Returns a context from another address of the suite. Its case declares [`Need::Addresses`](crate::Need).
    pub fn initiate_from(&mut self, address: usize) -> Result<Pdc, Stop> {
        let from = self.address(address)?;
        Ok(Pdc { from, ..self.initiate() })
    }

    fn start(&mut self) -> Psn {
        self.start_at(self.value(&START))
    }

    fn start_at(&mut self, start: Start) -> Psn {
        match start {
            // `PDS-SYN-007`: in a secure domain, the floor of a new key is 0.
            Start::Any if self.shield.is_some() => Psn(self.rng.u32(1 << 16..1 << 31)),
            Start::Any => Psn(self.rng.u32(..)),
            Start::Wrap => Psn(u32::MAX - 1),
            Start::Half => Psn((1 << 31) - 2),
        }
    }

    fn pdcid(&mut self) -> PdcId {
        let id = self.next_pdcid;
        self.next_pdcid = id.checked_add(1).unwrap_or(1);
        PdcId(id)
    }

    /// Returns the suite's side of the context that a request of the device opens.
    pub fn accept(&mut self, first: &RxPacket) -> Result<Pdc, Stop> {
        let request = first.request().ok_or_else(|| Stop::Inconclusive("not a request".into()))?;
        let start =
            request.start_psn().ok_or_else(|| Stop::Inconclusive("a request that opens nothing".into()))?;
        Ok(Pdc {
            from: first.wire.dst,
            to: first.wire.src,
            local: self.pdcid(),
            remote: Some(request.spdcid()),
            start,
            rod: matches!(request.prologue().kind(), PdsType::ROD_REQ | PdsType::ROD_CC_REQ),
            entropy: first.wire.entropy,
        })
    }

    /// Sends a packet of a context.
    pub fn send(&mut self, pdc: &Pdc, packet: &UetBuf) -> Outcome {
        let packet = self.carry(pdc, packet)?;
        self.send_wire(&pdc.wire(&packet))
    }

    /// Sends a packet unchanged.
    pub fn send_wire(&mut self, packet: &Wire) -> Outcome {
        // The device ignores most packets that a script has protected by itself.
        let observed = self.shield.as_deref().is_none_or(|shield| shield.active);
        self.send_as(packet, observed)
    }

    /// Sends a packet that no peer sends.
    pub(crate) fn send_unobserved(&mut self, packet: &Wire) -> Outcome {
        self.send_as(packet, false)
    }

    fn send_as(&mut self, packet: &Wire, observed: bool) -> Outcome {
        self.packets += 1;
        self.is_stated(packet)?;
        self.step(self.dut.now(), Entry::Sent(packet.clone()));
        if observed {
            self.observe(packet);
        }
        if let Some(bit) = packet.flipped {
            self.note(format!("bit {bit} of it changes on its way"));
        }
        if packet.ttl != Wire::TTL {
            self.note(format!("its TTL is {} on arrival", packet.ttl));
        }
        if packet.udp_checksum != 0 {
            self.note(format!("its UDP checksum is {:#06x} on arrival", packet.udp_checksum));
        }
        let carried = self.shielded(packet)?;
        self.dut.send(&carried)?;
        self.note_lost(Some(&carried));
        self.unread += 1;
        match self.unread {
            BURST.. if !self.facts().virtual_time => self.pause(self.soon() / 20),
            _ => Ok(()),
        }
    }

    /// Adds the packets that the network has lost to the ladder: those of the device as entries, and those of the suite as
    /// marks. `carried` is the last packet that the suite has sent, as it went on the link.
    fn note_lost(&mut self, carried: Option<&Wire>) {
        for (at, wire) in self.dut.lost() {
            let facts = self.dut.facts();
            if wire.src == facts.device || Some(wire.src) == facts.second_device {
                self.step(at, Entry::Lost(Wire { lost: true, ..wire }));
            } else {
                let is_last =
                    carried.is_some_and(|carried| carried.src == wire.src && carried.bytes == wire.bytes);
                self.ladder.mark_lost(&wire, is_last);
            }
        }
    }

    fn observe(&mut self, wire: &Wire) {
        let packet = Observed::new(self.packets as u64, wire.src, wire.dst, &wire.bytes);
        if self.is_for_strangers(&packet) {
            return;
        }
        let whole = packet.whole && wire.trimmed.is_none() && wire.flipped.is_none();
        let packet = Observed { whole, marked: wire.marked, ..packet };
        match &mut self.checker {
            Some(checker) => self.passive_findings.extend(checker.observed(&packet)),
            None => _ = self.observer.observe(&packet),
        }
    }

    /// Returns whether a packet answers one that no peer sends.
    fn is_for_strangers(&self, packet: &Observed<'_>) -> bool {
        match packet.uet.pds {
            Some(Pds::Rudi(rudi)) => self.strange_packets.contains(&rudi.pkt_id()),
            Some(pds) if !self.strange_ends.is_empty() => {
                let place = pds.layout().field("pds.dpdcid");
                let to = place.and_then(|place| place.read(pds.bytes())).map(|id| PdcId(id as u16));
                to.is_some_and(|to| self.strange_ends.contains(&(packet.dst, to)))
            }
            _ => false,
        }
    }

    /// Judges all packets from now on by the rules for captures.
    pub(crate) fn watch_passively(&mut self) {
        self.checker = Some(Box::default());
    }

    /// Returns the contexts between suite and device.
    pub(crate) fn observer(&self) -> &Observer {
        self.checker.as_ref().map_or(&self.observer, |checker| checker.observer())
    }

    /// Returns the oldest finding of those rules.
    pub(crate) fn take_passive_finding(&mut self) -> Option<Finding> {
        self.passive_findings.pop_front()
    }

    /// Returns the completions that the device has told on its own.
    pub(crate) fn events(&mut self) -> Vec<Completion> {
        let mut events = Vec::new();
        while let Some(Event::Completion(ended)) = self.dut.event() {
            events.push(ended);
        }
        events
    }

    /// Returns a parameter that is a word, as the script has set it.
    pub(crate) fn parameter_word(&self, name: &str) -> Option<String> {
        let value = self.set.get(name).or_else(|| self.dut.welcome().parameters.get(name));
        value.and_then(|value| value.as_str()).map(str::to_owned)
    }

    /// Waits for the next packet until this time.
    fn receive(&mut self, until: Duration) -> Result<Option<RxPacket>, Stop> {
        let received = self.dut.receive(until)?;
        self.note_lost(None);
        let Some(wire) = received else { return Ok(None) };
        self.packets += 1;
        let wire = self.unshielded(wire);
        self.heard = true;
        let at = self.dut.now();
        self.step(at, Entry::Received(wire.clone()));
        let seen = RxPacket { at, number: self.packets, wire };
        self.observe(&seen.wire);
        if self.refused_data.is_none() && self.refuses_data(&seen) {
            self.refused_data = Some(seen.clone());
        }
        self.automatically(|test| test.keep_up(&seen))?;
        Ok(Some(seen))
    }

    /// Returns the first packet that `wanted` accepts, from those not yet taken and those that arrive within this time.
    /// The others stay for later expectations.
    pub fn wait<T>(
        &mut self,
        within: Duration,
        mut wanted: impl FnMut(&RxPacket) -> Option<T>,
    ) -> Result<Option<(RxPacket, T)>, Stop> {
        self.unread = 0;
        let kept = self.inbox.iter().enumerate().find_map(|(index, seen)| Some((index, wanted(seen)?)));
        if let Some((index, found)) = kept {
            return Ok(self.inbox.remove(index).map(|seen| (seen, found)));
        }
        let until = self.dut.now() + within;
        while let Some(seen) = self.receive(until)? {
            match wanted(&seen) {
                Some(found) => return Ok(Some((seen, found))),
                None => self.inbox.push_back(seen),
            }
        }
        Ok(None)
    }

    /// Waits at most this long until the received packets suffice; returns whether they do. They stay for later
    /// expectations.
    pub fn hear(
        &mut self,
        within: Duration,
        mut enough: impl FnMut(&RxPacket) -> bool,
    ) -> Result<bool, Stop> {
        let found = self.wait(within, |seen| enough(seen).then_some(()))?;
        let heard = found.is_some();
        self.inbox.extend(found.map(|(seen, ())| seen));
        Ok(heard)
    }

    /// Takes all packets not yet taken and those that arrive within this time. On a real link, immediate reactions may
    /// be late, so the wait continues while packets arrive.
    pub fn gather(&mut self, within: Duration) -> Result<Vec<RxPacket>, Stop> {
        let last = self.dut.now() + self.patience(within);
        loop {
            let before = self.inbox.len();
            self.wait(within, |_| None::<()>)?;
            if self.inbox.len() == before || self.dut.now() >= last {
                return Ok(self.inbox.drain(..).collect());
            }
        }
    }

    /// Discards all packets received so far.
    pub fn forget(&mut self) {
        self.phases.needed();
        self.inbox.clear();
    }

    /// Runs a measurement. On a shared machine or link, a failed one is repeated, since a wrong device fails each time.
    /// If the suite itself was too late, the result is inconclusive.
    pub fn measured(&mut self, measure: impl Fn(&mut Self) -> Outcome) -> Outcome {
        let mut tries = if self.facts().virtual_time { 1 } else { TRIES };
        let before = self.observations.len();
        loop {
            self.late = Duration::ZERO;
            let outcome = measure(self);
            let held = outcome.is_ok() && self.observations.iter().skip(before).all(|seen| seen.held);
            tries -= 1;
            if held
                || matches!(outcome, Err(Stop::Skipped(_) | Stop::Gone(_)))
                || tries == 0 && self.late.is_zero()
            {
                return outcome;
            }
            self.observations.truncate(before);
            if tries == 0 {
                let late = self.late;
                let why =
                    format!("an answer of the suite left {late:?} late: the machine is too busy for this");
                return Err(Stop::Inconclusive(why));
            }
            self.note("measured again");
            self.call(Reset {})?;
            (self.liveness, self.auto_credit, self.auto_ack_control) = (None, true, true);
            self.inbox.clear();
            self.set.clear();
            self.observer = Observer::default();
            self.ended.clear();
            self.completions.clear();
            self.proper_data.clear();
            self.sends = Sends::default();
        }
    }

    /// Records the delay of an answer that a device can notice.
    pub(crate) fn was_late(&mut self, by: Duration) {
        if self.base_rtt().is_ok_and(|base| by * 4 > base) {
            self.late = self.late.max(by);
        }
    }

    /// Expects a packet, as this requirement demands. The case fails without it.
    pub fn expect<T>(
        &mut self,
        requirement: &Requirement,
        expected: &str,
        within: Duration,
        wanted: impl FnMut(&RxPacket) -> Option<T>,
    ) -> Result<(RxPacket, T), Stop> {
        let heard = self.packets;
        match self.wait(self.patience(within), wanted)? {
            Some(found) => {
                let text = found.0.uet().to_string();
                let observation = self.observation(requirement, true, Relation::Present, expected, text);
                self.push(Observation { packet: found.0.number, ..observation });
                Ok(found)
            }
            None if self.packets == heard && !self.heard => {
                self.push(self.observation(
                    requirement,
                    false,
                    Relation::Present,
                    expected,
                    "nothing".into(),
                ));
                Err(Stop::Silent)
            }
            None => {
                self.had_room(heard)?;
                self.is_supported()?;
                let others = self.others(expected);
                self.push(self.observation(requirement, false, Relation::Present, expected, others));
                Err(Stop::Failed)
            }
        }
    }

    /// Makes the case inconclusive if the device has reported a lack of resources after packet `since`, unless the case
    /// has set the limit.
    pub(crate) fn had_room(&self, since: usize) -> Outcome {
        match self.inbox.iter().find(|seen| seen.number > since && seen.lacks_room()) {
            Some(full) if self.set.is_empty() => {
                Err(Stop::Inconclusive(format!("the device has no room: {}", full.uet())))
            }
            _ => Ok(()),
        }
    }

    /// Returns the packets that arrived and that no expectation has taken.
    pub(crate) fn untaken(&self) -> impl DoubleEndedIterator<Item = &RxPacket> {
        self.inbox.iter()
    }

    /// Returns the last control packet of a type that a device need not support, and its number.
    pub(crate) fn optional_control(&self) -> Option<(CtlType, usize)> {
        self.optional_control
    }

    pub(crate) fn note_optional_control(&mut self, kind: CtlType) {
        self.optional_control = Some((kind, self.packets));
    }

    /// Returns the operations that are known to have failed, with their completions.
    pub(crate) fn failed_operations(&mut self) -> Vec<Completion> {
        let mut ended = core::mem::take(&mut self.completions);
        while let Some(Event::Completion(told)) = self.dut.event() {
            ended.entry(told.operation).or_insert(told);
        }
        ended.into_values().filter(|told| told.status != Status::Ok).collect()
    }

    /// Waits for a packet that a check depends on. The case is inconclusive without it.
    pub fn need<T>(
        &mut self,
        what: &str,
        within: Duration,
        wanted: impl FnMut(&RxPacket) -> Option<T>,
    ) -> Result<(RxPacket, T), Stop> {
        let found = self.wait(self.patience(within), wanted)?;
        match found {
            Some(_) => self.phases.needed(),
            None => self.is_supported()?,
        }
        found.ok_or_else(|| Stop::Inconclusive(format!("did not get to: {what}")))
    }

    /// Expects that no such packet arrives in this time, as this requirement demands.
    pub fn expect_none<T>(
        &mut self,
        requirement: &Requirement,
        expected: &str,
        during: Duration,
        wanted: impl FnMut(&RxPacket) -> Option<T>,
    ) -> Outcome {
        match self.wait(during, wanted)? {
            None => {
                self.push(self.observation(requirement, true, Relation::Absent, expected, "nothing".into()));
                Ok(())
            }
            Some((seen, _)) => {
                let text = seen.uet().to_string();
                let observation = self.observation(requirement, false, Relation::Absent, expected, text);
                self.push(Observation { packet: seen.number, ..observation });
                Err(Stop::Failed)
            }
        }
    }

    /// Checks that a value equals the expected one. The script continues in any case.
    pub fn check<T: PartialEq + Show>(
        &mut self,
        requirement: &Requirement,
        what: &str,
        expected: T,
        seen: T,
    ) {
        let held = expected == seen;
        self.compare(requirement, held, Relation::Equal, what, expected.show(), seen.show());
    }

    /// Checks that a value is at least the bound. The script continues in any case.
    pub fn at_least<T: PartialOrd + Show>(
        &mut self,
        requirement: &Requirement,
        what: &str,
        bound: impl Into<Bound<T>>,
        seen: T,
    ) {
        let bound = bound.into();
        let held = seen >= bound.value;
        self.bounded(requirement, held, Relation::AtLeast, what, bound, &seen);
    }

    /// Checks that a value is at most the bound. The script continues in any case.
    pub fn at_most<T: PartialOrd + Show>(
        &mut self,
        requirement: &Requirement,
        what: &str,
        bound: impl Into<Bound<T>>,
        seen: T,
    ) {
        let bound = bound.into();
        let held = seen <= bound.value;
        self.bounded(requirement, held, Relation::AtMost, what, bound, &seen);
    }

    /// Checks that a value lies in a range, ends included. The script continues in any case.
    pub fn between<T: PartialOrd + Show>(
        &mut self,
        requirement: &Requirement,
        what: &str,
        range: impl Into<Bound<RangeInclusive<T>>>,
        seen: T,
    ) {
        let range = range.into();
        let held = range.value.contains(&seen);
        self.bounded(requirement, held, Relation::Between, what, range, &seen);
    }

    /// Checks that a value is one of several. The script continues in any case.
    pub fn one_of<T: PartialEq + Show>(
        &mut self,
        requirement: &Requirement,
        what: &str,
        allowed: &[T],
        seen: T,
    ) {
        let held = allowed.contains(&seen);
        self.compare(requirement, held, Relation::OneOf, what, allowed.show(), seen.show());
    }

    /// Checks a statement that no comparison expresses. `seen` describes the observation, never yes or no.
    pub fn holds(&mut self, requirement: &Requirement, statement: &str, held: bool, seen: impl fmt::Display) {
        self.compare(requirement, held, Relation::True, statement, String::new(), seen.to_string());
    }

    fn bounded<B: Show, T: Show>(
        &mut self,
        requirement: &Requirement,
        held: bool,
        relation: Relation,
        what: &str,
        bound: Bound<B>,
        seen: &T,
    ) {
        let Bound { value, from, tolerance } = bound;
        let observation = self.observation(requirement, held, relation, what, seen.show());
        self.push(Observation { expected: value.show(), from, tolerance, ..observation });
    }

    fn compare(
        &mut self,
        requirement: &Requirement,
        held: bool,
        relation: Relation,
        what: &str,
        expected: String,
        seen: String,
    ) {
        let observation = self.observation(requirement, held, relation, what, seen);
        self.push(Observation { expected, ..observation });
    }

    pub(crate) fn record(&mut self, requirement: &Requirement, held: bool, expected: &str, seen: String) {
        self.compare(requirement, held, Relation::True, expected, String::new(), seen);
    }

    fn observation(
        &self,
        requirement: &Requirement,
        held: bool,
        relation: Relation,
        what: &str,
        seen: String,
    ) -> Observation {
        Observation {
            requirement: requirement.id.to_owned(),
            what: what.to_owned(),
            relation,
            expected: String::new(),
            seen,
            tolerance: None,
            from: None,
            packet: self.packets,
            held,
        }
    }

    fn push(&mut self, observation: Observation) {
        // A device that refuses the data of a read fails in many ways; they have one cause.
        let observation = match &self.refused_data {
            Some(refusal) if !observation.held => self.refusal_of_data(refusal, observation),
            _ => observation,
        };
        self.step(self.dut.now(), Entry::Observed(Box::new(observation.clone())));
        self.observations.push(observation);
    }
}
