//! The state of an exploration: both endpoints, the packets between them, and what has been delivered.

mod act;
mod judge;

use crate::endpoint::Endpoint;
use crate::referee::{NOMINAL, Referee};
use crate::scenario::{Action, Budget, LIFETIME, Scenario};
use crate::trace::Trace;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::net::{IpAddr, Ipv4Addr};
use std::collections::{BTreeMap, VecDeque};
use uet_model::pds::{EventKind, Role};
use uet_model::ses::{OperationId, RegionId};
use uet_model::{Event, Packet, PdcHandle, Time, TrimPoint};
use uet_wire::Uet;
use uet_wire::pds::Pds;
use uet_wire::registry::ReturnCode;

/// The addresses of both endpoints.
pub(crate) const ADDRESSES: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2))];
/// The address of a third endpoint, which copies packets and passes the replies on.
const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));
/// The names of both endpoints.
pub(crate) const NAMES: [&str; 2] = ["A", "B"];

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
    /// It stays in the network, and a copy arrives from a third endpoint.
    Stray,
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
    /// True for a copy that the network made.
    copied: bool,
}

/// An operation that an application posted.
#[derive(Clone, Copy, Debug, Hash)]
struct Posted {
    action: Action,
    side: usize,
    id: OperationId,
    /// True after its application has aborted it, or withdrawn its memory.
    may_fail: bool,
    result: Option<Option<ReturnCode>>,
}

/// The state of an exploration.
#[derive(Clone)]
pub struct World<E> {
    scenario: &'static Scenario,
    now: Time,
    ends: [E; 2],
    regions: [[RegionId; 3]; 2],
    /// The packets to each endpoint, oldest first.
    net: [VecDeque<Flight>; 2],
    left: Budget,
    /// The budget of the whole run.
    budget: Budget,
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
        let World {
            scenario: _,
            now: _,
            regions: _,
            trace: _,
            left: _,
            budget: _,
            ends,
            net,
            steps,
            posted,
            ..
        } = self;
        (ends, net, steps, posted).hash(state);
        let World { received, receives, opened, referee, .. } = self;
        (received, receives, opened, referee).hash(state);
    }
}

impl<E: Endpoint> World<E> {
    /// Creates the first state of a scenario: both applications have taken their first steps, and their packets are in
    /// the network.
    pub fn new(scenario: &'static Scenario, mut ends: [E; 2], traced: bool) -> Result<Self, String> {
        let mut regions = [[RegionId(0); 3]; 2];
        for (side, end) in ends.iter_mut().enumerate() {
            regions[side] = act::expose(end, scenario.mode).ok_or("no region")?;
        }
        let mut world = World {
            scenario,
            // Time zero means "never".
            now: Time(1_000_000),
            ends,
            regions,
            net: Default::default(),
            left: Budget::default(),
            budget: Budget::default(),
            steps: [0; 2],
            posted: Vec::new(),
            received: Vec::new(),
            receives: [0; 2],
            opened: [None; 2],
            referee: Referee::new(scenario),
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
        (self.left, self.budget) = (left, left);
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
                let same = |other: &Flight| (&other.packet, other.copied) == (&flight.packet, flight.copied);
                let twin = queue.iter().take(place).any(same);
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
                    (Fate::Stray, self.left.stray > 0 && !opens(&flight.packet)),
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
        left.reorder = left.reorder.saturating_sub(u8::from(place > 0 && fate != Fate::Stray));
        let spent = match fate {
            Fate::Arrive => &mut 0,
            Fate::Drop => &mut left.drop,
            Fate::Copy => &mut left.copy,
            Fate::Mark => &mut left.mark,
            Fate::Trim => &mut left.trim,
            Fate::Stray => &mut left.stray,
        };
        *spent = spent.saturating_sub(1);
        let mut packet = flight.packet.clone();
        match fate {
            Fate::Copy => self.net[to].push_back(Flight { copied: true, ..flight }),
            Fate::Stray => {
                packet.src = STRANGER;
                self.net[to].insert(place, flight);
            }
            Fate::Mark => packet.marked = true,
            Fate::Trim => uet_model::network::trim(&mut packet, TRIMMED, TrimPoint::Fabric),
            Fate::Arrive | Fate::Drop => {}
        }
        if let Some(trace) = &mut self.trace {
            trace.meets(self.now, &packet, fate == Fate::Drop);
        }
        if !matches!(fate, Fate::Drop | Fate::Stray) && packet.src != STRANGER {
            self.referee.arrives(to, &packet);
        }
        if fate != Fate::Drop {
            self.ends[to].handle_input(self.now, packet);
        }
    }

    /// Returns the nominal bytes of all different requests in the network to an endpoint.
    fn bytes_to(&self, to: usize) -> usize {
        let requests = self.net[to].iter().filter(|flight| !flight.copied).filter_map(|flight| {
            let size = flight.packet.wire_len() + NOMINAL as usize;
            numbers(&flight.packet).map(|numbers| (numbers, size))
        });
        requests.collect::<BTreeMap<_, _>>().values().sum()
    }

    /// Takes the packets and completions of both endpoints, and checks the new state.
    fn settle(&mut self) -> Result<(), String> {
        for side in 0..2 {
            while let Some(packet) = self.ends[side].poll_transmit(self.now) {
                if packet.dst == STRANGER {
                    Referee::sent_to_stranger(&packet)
                        .map_err(|why| format!("{} sent {why}", NAMES[side]))?;
                    // The third endpoint passes it on.
                    let packet = Packet { src: STRANGER, dst: ADDRESSES[1 - side], ..packet };
                    self.net[1 - side].push_back(Flight { packet, until: self.now + LIFETIME, copied: true });
                    continue;
                }
                if let Some(trace) = &mut self.trace {
                    trace.sent(&packet);
                }
                self.referee.sent(side, &packet).map_err(|why| format!("{} sent {why}", NAMES[side]))?;
                self.net[1 - side].push_back(Flight { packet, until: self.now + LIFETIME, copied: false });
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
}

/// Returns the PDCID and the PSN of a request.
fn numbers(packet: &Packet) -> Option<(u16, u32)> {
    let bytes = packet.to_wire();
    let request = Uet::parse_lax(&bytes).0.pds?.request()?;
    Some((request.spdcid().0, request.psn().0))
}

/// Returns whether a packet could open a context.
fn opens(packet: &Packet) -> bool {
    let bytes = packet.to_wire();
    match Uet::parse_lax(&bytes).0.pds {
        Some(Pds::Control(control)) => control.syn(),
        Some(pds) => pds.request().is_some_and(|request| request.syn()),
        None => true,
    }
}
