//! The state of an exploration: both endpoints, the packets between them, and what has been delivered.

use crate::endpoint::Endpoint;
use crate::referee::Referee;
use crate::scenario::{Action, Budget, LIFETIME, Scenario};
use crate::trace::Trace;
use bytes::Bytes;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::net::{IpAddr, Ipv4Addr};
use std::collections::VecDeque;
use uet_model::pds::{EventKind, Role};
use uet_model::ses::{
    Access, AtomicOn, Completion, Key, Operand, Operation, OperationId, Peer, Process, Receive, Region,
    RegionId, ResourceIndex, Work,
};
use uet_model::{Event, Packet, PdcHandle, Time, TrimPoint};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode, ReturnCode};

/// The addresses of both endpoints.
pub(crate) const ADDRESSES: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2))];
/// The names of both endpoints.
pub(crate) const NAMES: [&str; 2] = ["A", "B"];

const INDEX: ResourceIndex = ResourceIndex { process: Process::Relative { job: 101, pid: 2 }, index: 10 };
/// The region that the peer writes to.
const TARGET: Key = Key(7);
/// The region that the peer reads.
const SOURCE: Key = Key(8);
/// The length of the place of each operation in both regions: a message of two packets.
const SPAN: usize = crate::scenario::MTU as usize + 16;
/// The number of operations with a place of their own.
const PLACES: usize = 4;
/// The place of the number that [`Action::Add`] changes.
const NUMBER: usize = SPAN * PLACES;
/// The length of both regions.
const LENGTH: usize = NUMBER + 8;
/// The length of a trimmed packet: its headers.
const TRIMMED: u16 = 64;

/// The most steps from any state to rest.
pub(crate) const PATIENCE: usize = 2_000;
pub(crate) const RESTLESS: &str = "both endpoints never come to rest";

/// The fate of a packet in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It arrives.
    Arrive,
    /// It is lost.
    Drop,
    /// It arrives, and a copy of it stays in the network.
    Copy,
    /// It arrives marked (ECN-CE).
    Mark,
    /// It arrives trimmed.
    Trim,
}

/// A choice of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// The application of this endpoint takes its next step.
    Act(u8),
    /// The packet at this place among those to this endpoint meets its fate.
    Packet(u8, u8, Fate),
    /// Time passes until the next timer, which fires.
    Timer,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Act(side) => write!(f, "Act({side})"),
            Choice::Packet(to, place, fate) => write!(f, "Packet({to}, {place}, Fate::{fate:?})"),
            Choice::Timer => f.write_str("Timer"),
        }
    }
}

/// A packet in the network.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Flight {
    packet: Packet,
    /// The time until which it must arrive or be lost.
    until: Time,
}

/// An operation that an application posted.
#[derive(Clone, Copy, Debug, Hash)]
struct Posted {
    action: Action,
    side: usize,
    id: OperationId,
    result: Option<Option<ReturnCode>>,
}

/// The state of an exploration.
#[derive(Clone)]
pub struct World<E> {
    scenario: &'static Scenario,
    now: Time,
    ends: [E; 2],
    regions: [[RegionId; 2]; 2],
    /// The packets to each endpoint, oldest first.
    net: [VecDeque<Flight>; 2],
    left: Budget,
    /// The number of steps of each application that are done.
    steps: [usize; 2],
    posted: Vec<Posted>,
    /// The operations whose data arrived in a receive, in this order.
    received: Vec<usize>,
    receives: [u8; 2],
    /// The last context that the peer opened at each endpoint.
    opened: [Option<PdcHandle>; 2],
    referee: Referee,
    trace: Option<Trace>,
}

impl<E: Hash> Hash for World<E> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let World { scenario: _, now: _, regions: _, trace: _, left: _, ends, net, steps, posted, .. } = self;
        (ends, net, steps, posted).hash(state);
        let World { received, receives, opened, referee, .. } = self;
        (received, receives, opened, referee).hash(state);
    }
}

impl<E: Endpoint> World<E> {
    /// Creates the first state of a scenario: both applications have taken their first steps, and their packets are in
    /// the network.
    pub fn new(scenario: &'static Scenario, mut ends: [E; 2], traced: bool) -> Result<Self, String> {
        let region = |data: Vec<u8>, key| Region { key, base: 0, access: Access::ALL, data };
        let mut regions = [[RegionId(0); 2]; 2];
        for (side, end) in ends.iter_mut().enumerate() {
            let both = [region(vec![0; LENGTH], TARGET), region(PATTERN.to_vec(), SOURCE)];
            for (place, region) in both.into_iter().enumerate() {
                regions[side][place] = end.expose(INDEX, region).ok_or("no region")?;
            }
        }
        let mut world = World {
            scenario,
            // Time zero means "never".
            now: Time(1_000_000),
            ends,
            regions,
            net: Default::default(),
            left: Budget::default(),
            steps: [0; 2],
            posted: Vec::new(),
            received: Vec::new(),
            receives: [0; 2],
            opened: [None; 2],
            referee: Referee::default(),
            trace: traced.then(|| Trace::new(NAMES, ADDRESSES)),
        };
        for side in 0..2 {
            scenario.first[side].iter().for_each(|action| world.act(side, *action));
        }
        world.settle()?;
        Ok(world)
    }

    /// Gives the network its budget.
    pub fn with_budget(mut self, left: Budget) -> Self {
        self.left = left;
        self
    }

    /// Returns the present.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns what the network may still do.
    pub fn left(&self) -> Budget {
        self.left
    }

    /// Returns the recording, if there is one.
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    /// Lists the choices in this state.
    pub fn choices(&self, into: &mut Vec<Choice>) {
        into.clear();
        for side in 0..2 {
            if self.steps[side] < self.scenario.later[side].len() {
                into.push(Choice::Act(side as u8));
            }
        }
        for (to, queue) in self.net.iter().enumerate() {
            for (place, flight) in queue.iter().enumerate() {
                let twin = queue.iter().take(place).any(|other| other.packet == flight.packet);
                if twin || place > 0 && self.left.reorder == 0 {
                    continue;
                }
                let packet = |fate| Choice::Packet(to as u8, place as u8, fate);
                let data = !flight.packet.payload.is_empty();
                into.push(packet(Fate::Arrive));
                let fates = [
                    (Fate::Drop, self.left.drop > 0 && place == 0),
                    (Fate::Copy, self.left.copy > 0 && place == 0),
                    (Fate::Mark, self.left.mark > 0 && data),
                    (
                        Fate::Trim,
                        self.left.trim > 0 && data && flight.packet.wire_len() > usize::from(TRIMMED),
                    ),
                ];
                into.extend(fates.iter().filter(|(_, may)| *may).map(|(fate, _)| packet(*fate)));
            }
        }
        let quiet = self.net.iter().all(VecDeque::is_empty);
        if let Some(at) = self.next_timer() {
            let in_time = self.net.iter().flatten().all(|flight| at <= flight.until);
            if quiet || self.left.early > 0 && in_time {
                into.push(Choice::Timer);
            }
        }
    }

    /// Returns the next choice of a network without loss; `None` if both endpoints rest.
    pub fn calm_choice(&self) -> Option<Choice> {
        let acts = (0..2).find(|side| self.steps[*side] < self.scenario.later[*side].len());
        let acts = acts.map(|side| Choice::Act(side as u8));
        let arrives = (0..2).find(|to| !self.net[*to].is_empty());
        let arrives = arrives.map(|to| Choice::Packet(to as u8, 0, Fate::Arrive));
        acts.or(arrives).or_else(|| self.next_timer().map(|_| Choice::Timer))
    }

    /// Follows a network without loss until both endpoints rest, and checks the state of rest.
    pub fn run_to_rest(&mut self) -> Result<(), String> {
        for _ in 0..PATIENCE {
            let Some(choice) = self.calm_choice() else { return self.check_rest() };
            self.apply(choice)?;
        }
        Err(RESTLESS.into())
    }

    fn next_timer(&self) -> Option<Time> {
        self.ends.iter().filter_map(E::poll_timeout).min()
    }

    /// Makes a choice. The error says which property the new state breaks.
    pub fn apply(&mut self, choice: Choice) -> Result<(), String> {
        match choice {
            Choice::Act(side) => {
                let side = usize::from(side);
                if let Some(action) = self.scenario.later[side].get(self.steps[side]).copied() {
                    self.steps[side] += 1;
                    self.act(side, action);
                }
            }
            Choice::Packet(to, place, fate) => self.meet(usize::from(to), usize::from(place), fate),
            Choice::Timer => {
                let in_flight = self.net.iter().any(|queue| !queue.is_empty());
                self.left.early = self.left.early.saturating_sub(u8::from(in_flight));
                self.now = self.next_timer().map_or(self.now, |at| at.max(self.now));
                for end in &mut self.ends {
                    if end.poll_timeout().is_some_and(|at| at <= self.now) {
                        end.handle_timeout(self.now);
                    }
                }
            }
        }
        self.settle()
    }

    fn meet(&mut self, to: usize, place: usize, fate: Fate) {
        let Some(flight) = self.net[to].remove(place) else { return };
        let left = &mut self.left;
        left.reorder = left.reorder.saturating_sub(u8::from(place > 0));
        let spent = match fate {
            Fate::Arrive => &mut 0,
            Fate::Drop => &mut left.drop,
            Fate::Copy => &mut left.copy,
            Fate::Mark => &mut left.mark,
            Fate::Trim => &mut left.trim,
        };
        *spent = spent.saturating_sub(1);
        let mut packet = flight.packet.clone();
        match fate {
            Fate::Copy => self.net[to].push_back(flight),
            Fate::Mark => packet.marked = true,
            Fate::Trim => uet_kernel::trim(&mut packet, TRIMMED, TrimPoint::Fabric),
            Fate::Arrive | Fate::Drop => {}
        }
        if let Some(trace) = &mut self.trace {
            trace.meets(self.now, &packet, fate == Fate::Drop);
        }
        if fate != Fate::Drop {
            self.referee.arrives(to, &packet);
            self.ends[to].handle_input(self.now, packet);
        }
    }

    fn act(&mut self, side: usize, action: Action) {
        if let Some(trace) = &mut self.trace {
            trace.note(self.now, ADDRESSES[side], action);
        }
        let place = self.posted.len().min(PLACES - 1);
        let offset = (place * SPAN) as u64;
        let data = |length: u16| Bytes::from_static(&PATTERN[place * SPAN..][..usize::from(length)]);
        let work = match action {
            Action::Write(length) => Work::Write { key: TARGET, offset, data: data(length) },
            Action::Add => Work::Atomic {
                on: AtomicOn::Memory { key: TARGET, offset: NUMBER as u64 },
                opcode: AtomicOpcode::SUM,
                datatype: AtomicDatatype::UINT64,
                operand: Operand::Elements(Bytes::copy_from_slice(&1u64.to_le_bytes())),
                fetch: true,
            },
            Action::Read(length) => Work::Read { key: SOURCE, offset, length: length.into() },
            Action::Send(length) => Work::Send { tag: None, data: data(length) },
            Action::Rendezvous(length, eager) => Work::Rendezvous {
                tag: None,
                source: self.regions[side][1],
                offset,
                length: length.into(),
                eager: eager.into(),
            },
            Action::Deferrable(length) => Work::Deferrable { tag: None, data: data(length) },
            Action::Receive => {
                self.receives[side] += 1;
                return self.ends[side].receive(INDEX, Receive::new(SPAN as u32));
            }
            Action::Close => return self.close(side),
            Action::Abort => {
                if let Some(first) = self.posted.iter().find(|posted| posted.side == side) {
                    self.ends[side].abort(first.id);
                }
                return;
            }
        };
        let peer = Peer { index: INDEX.index, ..Peer::relative(ADDRESSES[1 - side], 101, 2) };
        let operation = Operation::new(peer.by(self.scenario.mode), work);
        if let Some(id) = self.ends[side].post(operation) {
            self.posted.push(Posted { action, side, id, result: None });
        }
    }

    fn close(&mut self, side: usize) {
        let owns = self.posted.iter().any(|posted| posted.side == side);
        match self.opened[side] {
            Some(context) if !owns => self.ends[side].close_context(self.now, context),
            _ => {
                let peer = Peer { index: INDEX.index, ..Peer::relative(ADDRESSES[1 - side], 101, 2) };
                let route = peer.by(self.scenario.mode).route;
                self.ends[side].close_route(self.now, &route);
            }
        }
    }

    /// Takes the packets and completions of both endpoints, and checks the new state.
    fn settle(&mut self) -> Result<(), String> {
        for side in 0..2 {
            while let Some(packet) = self.ends[side].poll_transmit(self.now) {
                if let Some(trace) = &mut self.trace {
                    trace.sent(&packet);
                }
                self.referee.sent(side, &packet).map_err(|why| format!("{} sent {why}", NAMES[side]))?;
                if packet.dst == ADDRESSES[1 - side] {
                    self.net[1 - side].push_back(Flight { packet, until: self.now + LIFETIME });
                }
            }
            while let Some(event) = self.ends[side].poll_event() {
                if let Some(trace) = &mut self.trace {
                    trace.note(self.now, ADDRESSES[side], &event);
                }
                if let Event::Pds(event) = event
                    && let EventKind::Opened(Role::Target, ..) = event.kind
                {
                    self.opened[side] = event.pdc;
                }
            }
        }
        self.check_memory()?;
        for side in [1, 0] {
            while let Some(completion) = self.ends[side].poll_completion() {
                self.completed(side, completion)?;
            }
        }
        self.check_in_flight()
    }

    fn completed(&mut self, side: usize, completion: Completion) -> Result<(), String> {
        let name = NAMES[side];
        match completion {
            Completion::Operation { id, result } => {
                let number = self.posted.iter().position(|posted| (posted.side, posted.id) == (side, id));
                let Some(number) = number else {
                    return Err(format!("{name} completed an operation that is not its own"));
                };
                if let Some(trace) = &mut self.trace {
                    let end = match &result {
                        Ok(_) => "completed".to_owned(),
                        Err(error) => error.to_string(),
                    };
                    trace.note(self.now, ADDRESSES[side], format_args!("operation {number}: {end}"));
                }
                let known = self.posted[number].result;
                if known.is_some() {
                    return Err(format!("operation {number} of {name} completed twice"));
                }
                self.posted[number].result = Some(result.as_ref().err().map(|error| error.code));
                match result {
                    Ok(done) => self.check_done(number, &done.data),
                    Err(_) if self.scenario.may_fail => Ok(()),
                    Err(error) => Err(format!("operation {number} of {name} failed: {error}")),
                }
            }
            Completion::Received(received) => {
                if let Some(trace) = &mut self.trace {
                    trace.note(self.now, ADDRESSES[side], "a receive completed");
                }
                if received.code != ReturnCode::OK {
                    return match self.scenario.may_fail {
                        true => Ok(()),
                        false => Err(format!("a receive of {name} completed with {}", received.code)),
                    };
                }
                let is_it = |(number, posted): (usize, &Posted)| {
                    let (Action::Send(length) | Action::Rendezvous(length, _) | Action::Deferrable(length)) =
                        posted.action
                    else {
                        return None;
                    };
                    let sent = &PATTERN[number.min(PLACES - 1) * SPAN..][..usize::from(length)];
                    (posted.side != side && received.data == sent).then_some(number)
                };
                let Some(number) = self.posted.iter().enumerate().find_map(is_it) else {
                    return Err(format!("{name} received data that nobody sent"));
                };
                if self.received.contains(&number) {
                    return Err(format!("{name} received the message of operation {number} twice"));
                }
                let overtaken = self.received.iter().any(|other| *other > number);
                if overtaken && self.scenario.mode == uet_model::Mode::Rod {
                    return Err(format!("{name} received the message of operation {number} out of order"));
                }
                self.received.push(number);
                Ok(())
            }
            Completion::Written(_) => Ok(()),
        }
    }

    /// Checks that the effect of a successful operation is visible.
    fn check_done(&self, number: usize, data: &[u8]) -> Result<(), String> {
        let Posted { action, side, .. } = self.posted[number];
        let target = self.memory(1 - side);
        let place = number.min(PLACES - 1) * SPAN;
        let holds = match action {
            Action::Write(length) => {
                let end = place + usize::from(length);
                target[place..end] == PATTERN[place..end]
            }
            Action::Read(length) => *data == PATTERN[place..place + usize::from(length)],
            // The receive of a rendezvous completes with the last ACK of the read.
            Action::Send(_) | Action::Deferrable(_) => self.is_received(number),
            Action::Add => {
                let before = data.try_into().map(u64::from_le_bytes).unwrap_or(u64::MAX);
                before < self.number(1 - side)
            }
            Action::Rendezvous(..) | Action::Receive | Action::Close | Action::Abort => true,
        };
        match holds {
            true => Ok(()),
            false => Err(format!("operation {number} of {} completed early: {action}", NAMES[side])),
        }
    }

    /// Returns whether a message has been received, or has no receive.
    fn is_received(&self, number: usize) -> bool {
        let Posted { side, .. } = self.posted[number];
        let message = |posted: &&Posted| posted.side == side && is_message(posted.action);
        let messages = self.posted.iter().filter(message).count();
        usize::from(self.receives[1 - side]) < messages || self.received.contains(&number)
    }

    fn memory(&self, side: usize) -> &[u8] {
        self.ends[side].memory(self.regions[side][0]).unwrap_or(&ZEROS)
    }

    fn number(&self, side: usize) -> u64 {
        self.memory(side)[NUMBER..NUMBER + 8].try_into().map(u64::from_le_bytes).unwrap_or(u64::MAX)
    }

    /// Checks that memory holds only bytes of operations, and that each addition happened at most once.
    fn check_memory(&self) -> Result<(), String> {
        for (side, name) in NAMES.iter().enumerate() {
            let memory = self.memory(side);
            let adds = self
                .posted
                .iter()
                .filter(|posted| posted.side != side && posted.action == Action::Add)
                .count();
            if self.number(side) > adds as u64 {
                return Err(format!("{name} added {} times for {adds} operations", self.number(side)));
            }
            for place in 0..PLACES {
                let writes = |posted: &Posted| match posted.action {
                    Action::Write(length) if posted.side != side => usize::from(length),
                    _ => 0,
                };
                let length = self.posted.get(place).map_or(0, writes);
                let (from, to) = (place * SPAN, (place + 1) * SPAN);
                let (written, rest) = memory[from..to].split_at(length);
                let right = &PATTERN[from..from + length];
                let is_right =
                    written == right || written.iter().zip(right).all(|(is, may)| *is == 0 || is == may);
                if !is_right || *rest != ZEROS[length..SPAN] {
                    return Err(format!("the memory of {name} is wrong for operation {place}"));
                }
            }
        }
        Ok(())
    }

    /// Checks that congestion control counts no more bytes than there can be.
    fn check_in_flight(&self) -> Result<(), String> {
        for side in 0..2 {
            let Some(bytes) = self.ends[side].in_flight(ADDRESSES[1 - side]) else { continue };
            if !(-ROUNDING..=IN_FLIGHT).contains(&bytes) {
                return Err(format!("{} counts {bytes} bytes in flight", NAMES[side]));
            }
        }
        Ok(())
    }

    /// Checks a state in which nothing is left to do.
    pub fn check_rest(&self) -> Result<(), String> {
        for (number, posted) in self.posted.iter().enumerate() {
            if posted.result.is_none() {
                let name = NAMES[posted.side];
                return Err(format!("operation {number} of {name} never completed: {}", posted.action));
            }
            if posted.result == Some(None) && is_message(posted.action) && !self.is_received(number) {
                return Err(format!("the message of operation {number} was never received"));
            }
        }
        for (side, end) in self.ends.iter().enumerate() {
            let good = |posted: &&Posted| posted.side != side && posted.result == Some(None);
            let adds = self.posted.iter().filter(good).filter(|posted| posted.action == Action::Add).count();
            if self.number(side) < adds as u64 {
                return Err(format!(
                    "{} added {} times for {adds} operations",
                    NAMES[side],
                    self.number(side)
                ));
            }
            let (contexts, held) = (end.contexts(), end.held());
            if (contexts, held) != (0, 0) && !self.scenario.may_vanish {
                return Err(format!("{} rests with {contexts} contexts and {held} resources", NAMES[side]));
            }
            if let Some(bytes) = end.in_flight(ADDRESSES[1 - side])
                && bytes.abs() > ROUNDING
            {
                return Err(format!("{} rests with {bytes} bytes in flight", NAMES[side]));
            }
        }
        Ok(())
    }
}

fn is_message(action: Action) -> bool {
    matches!(action, Action::Send(_) | Action::Rendezvous(..) | Action::Deferrable(_))
}

/// `rcvd_bytes` counts in units of 256 bytes, rounded up, for each context.
const ROUNDING: i64 = 4 * 255;
/// More than all packets of any scenario.
const IN_FLIGHT: i64 = 64 * 1024;

/// Bytes that identify their position, and are never 0.
static PATTERN: [u8; LENGTH] = {
    let mut bytes = [0; LENGTH];
    let mut at = 0;
    while at < LENGTH {
        bytes[at] = (at % 251) as u8 | 1;
        at += 1;
    }
    bytes
};
static ZEROS: [u8; LENGTH] = [0; LENGTH];
