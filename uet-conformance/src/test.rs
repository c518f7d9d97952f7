use crate::axis::{MODE, START, Start};
use crate::carrier::Sends;
use crate::{
    Axis, Bound, Dut, DutError, DutExt, Entry, Instance, Ladder, Observation, Pdc, Relation, RxPacket, Show,
    Wire,
};
use core::fmt;
use core::net::IpAddr;
use core::ops::RangeInclusive;
use core::time::Duration;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use uet_control::{
    AddPeer, CallError, Completion, Event, ExposeRegion, Fill, Hex64, Mode, Op, Operated, Operation,
    Permission, Post, ReadMemory, Reset, WaitCompletion,
};
use uet_observe::{Observed, Observer};
use uet_wire::catalogue::Requirement;
use uet_wire::registry::PdsType;
use uet_wire::{PdcId, Psn, Spec, UetBuf, WriteError};

/// How a script ends: well, or stopped.
pub type Outcome = Result<(), Stop>;

/// Why a script stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A check did not hold and nothing after it makes sense. The check is on record.
    Failed,
    /// What was expected did not come, and nothing else did: whether the device lives has to be found out.
    Silent,
    /// The device did not get to where the case checks something.
    Inconclusive(String),
    /// The device lacks something.
    Skipped(String),
    /// The device or the way to it is gone.
    Gone(String),
}

impl From<DutError> for Stop {
    fn from(error: DutError) -> Self {
        Stop::Gone(error.to_string())
    }
}

impl From<WriteError> for Stop {
    /// A case that builds what cannot be built is wrong itself.
    fn from(error: WriteError) -> Self {
        Stop::Inconclusive(format!("the case builds a packet that cannot be: {error}"))
    }
}

/// How long a device may take for what it does at once, by the link's clock, before `--timeout-scale`.
pub(crate) const SOON: Duration = Duration::from_millis(20);

/// How long a system that does other things too may keep a device, or the suite, from what it would do at once. What comes
/// is waited for so long; that nothing comes is believed earlier, by a device that has answered.
const STALL: Duration = Duration::from_millis(200);

/// How often a measurement is made, where others use the machine and the way.
const TRIES: u32 = 3;

/// How many packets are sent in a row. A real link loses what comes faster than it is read, at either end.
const BURST: usize = 32;

/// A memory region of the device, and how requests reach it.
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
    /// The message id that requests for it carry.
    pub message_id: u16,
    /// Its length.
    pub length: u64,
}

/// What a script acts by.
pub struct Test<'a> {
    dut: &'a mut dyn Dut,
    spec: &'static Spec,
    /// The rule at its values; `None` where no rule runs.
    instance: Option<Instance>,
    scale: f64,
    pub(crate) rng: fastrand::Rng,
    /// Whether a device gets what credit it wants without the script's doing.
    pub auto_credit: bool,
    /// Whether control packets of a device that want an ACK get one without the script's doing.
    pub auto_ack_control: bool,
    /// Whether the script runs over IPv4. Where the link carries both versions, the seed decides.
    ipv4: bool,
    /// The suite's PDCID of the next context: no two of a case have the same.
    next_pdcid: u16,
    /// Parameters that the case has set.
    pub(crate) set: BTreeMap<String, Value>,
    /// Where to look whether the device lives.
    pub(crate) liveness: Option<(Pdc, Region)>,
    /// By how much answers of the suite left late, at most.
    late: Duration,
    pub(crate) ladder: Ladder,
    pub(crate) observations: Vec<Observation>,
    pub(crate) packets: usize,
    pub(crate) heard: bool,
    /// Writes that travel as sends.
    pub(crate) sends: Sends,
    /// How often operations have ended.
    ended: BTreeMap<u64, usize>,
    /// Follows the contexts between suite and device.
    pub(crate) observer: Observer,
    /// How many packets were sent since the last look at what has come.
    unread: usize,
    /// What came and was not what an expectation waited for.
    inbox: VecDeque<RxPacket>,
}

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
        // Seeds in a row take turns.
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
            liveness: None,
            late: Duration::ZERO,
            ladder: Ladder::default(),
            observations: Vec::new(),
            packets: 0,
            heard: false,
            sends: Sends::default(),
            ended: BTreeMap::new(),
            observer: Observer::default(),
            unread: 0,
            inbox: VecDeque::new(),
        }
    }

    /// Runs as this instance of a rule.
    pub(crate) fn at(self, instance: &Instance) -> Self {
        Test { instance: Some(instance.clone()), ..self }
    }

    /// The value of an axis in this instance; the first value if the rule lacks the axis.
    pub fn value<T: Copy>(&self, axis: &Axis<T>) -> T {
        let index = self.instance.as_ref().and_then(|instance| instance.index(axis.name));
        axis.points[index.unwrap_or(0)].value
    }

    /// What the device said of itself.
    pub fn device(&self) -> &uet_control::Welcome {
        self.dut.welcome()
    }

    /// What the link can do and show.
    pub fn facts(&self) -> &crate::Facts {
        self.dut.facts()
    }

    /// A parameter of the device that is a number; the default when it does not say.
    pub fn parameter(&self, name: &str, default: u64) -> u64 {
        let value = self.set.get(name).or_else(|| self.dut.welcome().parameters.get(name));
        value.and_then(|value| value.as_u64()).unwrap_or(default)
    }

    /// A parameter of the device that is a word.
    pub fn word(&self, name: &str) -> Option<&str> {
        self.dut.welcome().parameters.get(name)?.as_str()
    }

    /// Whether the device says that it can do this.
    pub fn claims(&self, name: &str) -> bool {
        self.dut.welcome().capabilities.iter().any(|claim| claim == name)
    }

    /// The payload MTU of the device: of those that there are, whatever it says.
    pub fn mtu(&self) -> usize {
        self.parameter("payload_mtu", 4096).clamp(1024, 8192) as usize
    }

    /// The version of the specification that the device is judged by.
    pub fn spec(&self) -> &'static Spec {
        self.spec
    }

    /// The time, by the link's clock.
    pub fn now(&self) -> Duration {
        self.dut.now()
    }

    /// This span, stretched by `--timeout-scale`.
    pub fn scaled(&self, span: Duration) -> Duration {
        span.mul_f64(self.scale)
    }

    /// How long a device may take for what it does at once.
    pub fn soon(&self) -> Duration {
        self.scaled(SOON)
    }

    /// How long what is due within this time is waited for. What is due earlier than [`soon`](Self::soon) is measured, and so is
    /// all in virtual time.
    pub(crate) fn patience(&self, within: Duration) -> Duration {
        match self.facts().virtual_time || within < self.soon() {
            true => within,
            false => within + self.scaled(STALL),
        }
    }

    /// Says in the ladder what comes next.
    pub fn note(&mut self, text: impl Into<String>) {
        self.ladder.add(self.dut.now(), Entry::Note(text.into()));
    }

    /// Asks the device for an operation. A device that lacks it is not tested further.
    pub fn call<O: Operation>(&mut self, op: O) -> Result<O::Answer, Stop> {
        let op: Op = op.into();
        self.ladder.add(self.dut.now(), Entry::Called(op.clone()));
        self.dut.call_any::<O>(op).map_err(|error| match error {
            CallError::Channel { .. } => Stop::Gone(error.to_string()),
            _ if error.is_unsupported() => Stop::Skipped(error.to_string()),
            _ => Stop::Inconclusive(error.to_string()),
        })
    }

    /// Memory of the device for job 101, process 2, that everyone may use; it holds zeros.
    pub fn region(&mut self, length: u64) -> Result<Region, Stop> {
        self.region_for(length, &[Permission::Read, Permission::Write, Permission::Atomic], None)
    }

    /// The same, with these permissions, and holding this.
    pub fn region_for(
        &mut self,
        length: u64,
        permissions: &[Permission],
        fill: Option<Fill>,
    ) -> Result<Region, Stop> {
        let key = u64::from(self.rng.u32(1..)) & 0xffff_ffff;
        let region = Region {
            number: 0,
            job: 101,
            process: 2,
            index: 10,
            generation: 0,
            key,
            message_id: self.rng.u16(1..),
            length,
        };
        if let Some(number) = self.unexposed() {
            self.sends.keys.push(key);
            return Ok(Region { number, ..region });
        }
        let exposed = self.call(ExposeRegion {
            length,
            key: Hex64(key),
            job: Some(region.job),
            process: region.process,
            index: region.index,
            generation: region.generation,
            permissions: permissions.to_vec(),
            fill,
        })?;
        Ok(Region { number: exposed.region, ..region })
    }

    /// What the device's memory holds.
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

    /// An address of the suite, of the IP version that the script runs over.
    pub fn address(&self, index: usize) -> Result<IpAddr, Stop> {
        let address = self.dut.facts().local_of(self.ipv4).nth(index);
        address.ok_or_else(|| Stop::Skipped("the suite has too few addresses".into()))
    }

    /// How many addresses the suite has, of the IP version that the script runs over.
    pub fn addresses(&self) -> usize {
        self.dut.facts().local_of(self.ipv4).count()
    }

    /// A context to be opened over the IP version that the script does not run over otherwise, with numbers of chance; `None`
    /// where the link carries only one.
    pub fn initiate_over_other_ip(&mut self) -> Option<Pdc> {
        let facts = self.dut.facts();
        let (from, to) = (facts.local_of(!self.ipv4).next()?, facts.device_of(!self.ipv4)?);
        Some(Pdc { from, to, ..self.initiate() })
    }

    /// The suite as a peer of the device, by its number in the control channel.
    pub fn peer(&mut self, address: usize) -> Result<u64, Stop> {
        let peer =
            AddPeer { address: self.address(address)?, port: None, job: 101, process: 1, initiator: 0 };
        Ok(self.call(peer)?.peer)
    }

    /// Makes the device do something as an initiator.
    pub fn post(&mut self, post: Post) -> Result<Operated, Stop> {
        self.call(self.carried(post))
    }

    /// How an operation of the device ends, within this time; `None` when it does not.
    pub fn completion(&mut self, operation: Operated, within: Duration) -> Result<Option<Completion>, Stop> {
        let timeout_ns = self.patience(within).as_nanos() as u64;
        let wait = WaitCompletion { operation: operation.operation, timeout_ns };
        self.ladder.add(self.dut.now(), Entry::Called(wait.into()));
        match self.dut.call(wait) {
            Ok(completion) => Ok(Some(completion)),
            Err(CallError::Refused { refusal, .. }) if refusal.code == uet_control::ErrorCode::Timeout => {
                Ok(None)
            }
            Err(error) if error.is_unsupported() => Err(Stop::Skipped(error.to_string())),
            Err(error @ CallError::Channel { .. }) => Err(Stop::Gone(error.to_string())),
            Err(error) => Err(Stop::Inconclusive(error.to_string())),
        }
    }

    /// How often an operation has ended, by the events that the device tells with its answers; that of the next question is
    /// waited for. A device that tells none is not tested for it.
    pub fn times_ended(&mut self, operation: Operated) -> Result<usize, Stop> {
        self.peer(0)?;
        while let Some(Event::Completion(ended)) = self.dut.event() {
            *self.ended.entry(ended.operation).or_default() += 1;
        }
        let times = self.ended.get(&operation.operation).copied();
        times.ok_or_else(|| Stop::Skipped("the device tells no events".into()))
    }

    /// A context to be opened by the suite, with numbers of chance.
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

    /// The same, from another address of the suite's. A case that does so says [`Need::Addresses`](crate::Need).
    pub fn initiate_from(&mut self, address: usize) -> Result<Pdc, Stop> {
        let from = self.address(address)?;
        Ok(Pdc { from, ..self.initiate() })
    }

    fn start(&mut self) -> Psn {
        match self.value(&START) {
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

    /// The suite's side of the context that a request of the device opens.
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

    /// Sends a packet as it is.
    pub fn send_wire(&mut self, packet: &Wire) -> Outcome {
        self.packets += 1;
        self.ladder.add(self.dut.now(), Entry::Sent(packet.clone()));
        self.observe(packet);
        if let Some(bit) = packet.flipped {
            self.note(format!("bit {bit} of it changes on its way"));
        }
        self.dut.send(packet)?;
        self.unread += 1;
        match self.unread {
            BURST.. if !self.facts().virtual_time => self.pause(self.soon() / 20),
            _ => Ok(()),
        }
    }

    fn observe(&mut self, wire: &Wire) {
        let packet = Observed::new(self.packets as u64, wire.src, wire.dst, &wire.bytes);
        let whole = packet.whole && wire.trimmed.is_none() && wire.flipped.is_none();
        self.observer.observe(&Observed { whole, marked: wire.marked, ..packet });
    }

    /// Waits for the next packet until this time.
    fn receive(&mut self, until: Duration) -> Result<Option<RxPacket>, Stop> {
        let Some(wire) = self.dut.receive(until)? else { return Ok(None) };
        self.packets += 1;
        self.heard = true;
        let at = self.dut.now();
        self.ladder.add(at, Entry::Received(wire.clone()));
        let seen = RxPacket { at, number: self.packets, wire };
        self.observe(&seen.wire);
        self.keep_up(&seen)?;
        Ok(Some(seen))
    }

    /// The first packet, of those that came and are not yet accounted for and those that come within this time, of which
    /// `wanted` says something. The others stay for later expectations.
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

    /// Waits until what has come is enough, at most so long. It stays for later expectations; whether it was enough.
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

    /// All packets that came and are not yet accounted for, and those that come within this time. On a real link what a device
    /// does at once may come later: as long as something comes, more is waited for.
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

    /// What has come so far is looked at no more.
    pub fn forget(&mut self) {
        self.inbox.clear();
    }

    /// Measures as the case says. Where others use the machine and the way, what is seen may be their doing: what did not hold
    /// is measured again, and a device that is wrong is wrong each time. Where the suite itself was too late, nothing is known.
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
            self.sends = Sends::default();
        }
    }

    /// Notes that an answer left so much later than it should, where a device notices that.
    pub(crate) fn was_late(&mut self, by: Duration) {
        if self.base_rtt().is_ok_and(|base| by * 4 > base) {
            self.late = self.late.max(by);
        }
    }

    /// Expects a packet, because of this requirement. Without it the case has failed.
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
                self.push(self.observation(requirement, false, Relation::Present, expected, self.others()));
                Err(Stop::Failed)
            }
        }
    }

    /// Nothing is said of a device that has told, after packet `since`, that it has no room for what it was sent, unless the case
    /// has set how much it has.
    pub(crate) fn had_room(&self, since: usize) -> Outcome {
        match self.inbox.iter().find(|seen| seen.number > since && seen.lacks_room()) {
            Some(full) if self.set.is_empty() => {
                Err(Stop::Inconclusive(format!("the device has no room: {}", full.uet())))
            }
            _ => Ok(()),
        }
    }

    /// What came instead.
    fn others(&self) -> String {
        match self.inbox.back() {
            Some(last) => format!("{}, and {} before", last.uet(), self.inbox.len() - 1),
            None => "nothing".into(),
        }
    }

    /// Reaches a state in which something can be checked: without this packet the case stays open.
    pub fn need<T>(
        &mut self,
        what: &str,
        within: Duration,
        wanted: impl FnMut(&RxPacket) -> Option<T>,
    ) -> Result<(RxPacket, T), Stop> {
        self.wait(self.patience(within), wanted)?
            .ok_or_else(|| Stop::Inconclusive(format!("did not get to: {what}")))
    }

    /// Expects that no such packet comes in this time, because of this requirement.
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

    /// Checks that a value equals the expected one. The script goes on in any case.
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

    /// Checks that a value is the bound or more. The script goes on in any case.
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

    /// Checks that a value is the bound or less. The script goes on in any case.
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

    /// Checks that a value lies in a range, ends included. The script goes on in any case.
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

    /// Checks that a value is one of several. The script goes on in any case.
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

    /// Checks a statement that no comparison expresses. `seen` says what was found, never yes or no.
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
        self.ladder.add(self.dut.now(), Entry::Observed(Box::new(observation.clone())));
        self.observations.push(observation);
    }
}
