//! The course of a simulation: spans of time, and what happens between them.

use crate::crew::Crew;
use crate::demand::{Demand, Start};
use crate::error::{ScenarioError, refuse};
use crate::fabric::Fabric;
use crate::flow::Flow;
use crate::graph::Graph;
use crate::host::address;
use crate::outcome::{Counted, Depth, FlowOutcome, JobOutcome, LinkUse, Outcome, Recovery, Steady, jain};
use crate::port::Port;
use crate::scenario::Scenario;
use crate::section::Section;
use crate::series::{FlowSample, Sample, Series};
use crate::time::{Picos, picos};
use crate::topology::{Link, Part, Topology, Wiring};
use crate::waiting::Waiting;
use core::time::Duration;
use std::collections::HashSet;
use std::sync::Arc;
use std::{mem, thread};
use uet_model::network::Agenda;

/// The maximum number of threads.
const MOST_THREADS: usize = 64;

/// A simulation of a scenario.
///
/// Time advances in spans in which no host and no port can affect another. In each span, every unit of the fabric runs
/// through its own events in order. So the network may be divided into sections, each with a thread of its own. Between
/// two spans they exchange the packets that cross their borders. The outcome is the same with any number of threads.
pub struct Simulation {
    scenario: Arc<Scenario>,
    sections: Vec<Section>,
    /// The greatest length of a span.
    pub(crate) window: Picos,
    /// The events between spans.
    agenda: Agenda<Event, 14>,
    now: Picos,
    warm: Option<(Picos, Counted)>,
    steady: Option<Steady>,
    recovery: Option<Recovery>,
    series: Series,
    most_packets: usize,
}

/// An event between spans.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The time for a sample has come.
    Sample,
    /// The warm-up ends.
    Warm,
    /// A fault begins or ends.
    Fault(u32),
    Repair(u32),
}

impl Simulation {
    /// Creates a simulation that runs in one thread. Returns an error if the scenario cannot be simulated.
    pub fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        Simulation::with_threads(scenario, 1)
    }

    /// Creates a simulation that runs in up to `threads` threads. They pay from about a thousand hosts on.
    ///
    /// One thread runs a scenario in which the end of a flow starts another one on a third host.
    pub fn with_threads(scenario: &Scenario, threads: usize) -> Result<Self, ScenarioError> {
        scenario.check()?;
        let hosts = scenario.topology.hosts();
        let demands = scenario.traffic.demands(hosts, scenario.seed)?;
        let mut taking_part = vec![0; hosts as usize];
        for demand in &demands {
            taking_part[demand.from as usize] += 1;
            taking_part[demand.to as usize] += 1;
        }
        if taking_part.iter().any(|flows| *flows >= 65_000) {
            return refuse("flows", "a host takes part in at most 65,000");
        }
        let graph = scenario.traffic.graph();
        if let Some(step) = graph.and_then(Graph::stuck) {
            return refuse("workload", format!("{step:?} waits for itself"));
        }
        let waiting = Waiting::new(graph);
        let wiring = Arc::new(Wiring::new(&scenario.topology));
        let mut agenda = Agenda::default();
        for (at, fault) in scenario.faults.iter().enumerate() {
            if wiring.ports(fault.part).is_none() {
                return refuse("fail", absent(fault.part, &scenario.topology));
            }
            if fault.percent > 100 {
                return refuse("fail", "a part keeps at most 100 % of its rate");
            }
            if scenario.faults[..at].iter().any(|earlier| earlier.overlaps(fault)) {
                return refuse("fail", format!("{} has two failures at the same time", fault.part));
            }
            if let Some(until) = fault.until {
                agenda.add(picos(until), Event::Repair(at as u32));
            }
        }
        // A failure may begin at the end of another one, and so after its repair.
        for (fault, number) in scenario.faults.iter().zip(0..) {
            agenda.add(picos(fault.at), Event::Fault(number));
        }
        agenda.add(0, Event::Sample);
        agenda.add(picos(scenario.warm_up()), Event::Warm);
        // The end of a flow acts at once. If it acts on another host, a span is a single point in time.
        let acts_far =
            acts_far(&demands, scenario.traffic.triggers().len()) || graph.is_some_and(Graph::acts_far);
        let count = if acts_far { 1 } else { threads.min(hosts as usize).clamp(1, MOST_THREADS) as u8 };
        let units: Arc<[u8]> = wiring.sections(count).into();
        let scenario = Arc::new(scenario.clone());
        let sections: Result<Vec<_>, ScenarioError> = (0..count)
            .map(|own| {
                let fabric = Fabric::new(&scenario, wiring.clone(), units.clone(), own);
                Section::new(scenario.clone(), fabric, &demands, &taking_part, waiting.clone())
            })
            .collect();
        let sections = sections?;
        Ok(Simulation {
            window: if acts_far { 1 } else { sections[0].fabric.window },
            sections,
            agenda,
            now: 0,
            warm: None,
            steady: None,
            recovery: None,
            series: Series::every(scenario.base_rtt() / 4),
            most_packets: 0,
            scenario,
        })
    }

    /// Runs the simulation until all flows have completed or its time is over.
    pub fn run(mut self) -> Outcome {
        thread::scope(|scope| self.pass(&Crew::new(scope, self.sections.len())));
        self.end()
    }

    fn pass(&mut self, crew: &Crew) {
        let until = picos(self.scenario.until);
        let flows = self.sections[0].flows.len();
        while self.done() < flows {
            let span = self.sections.iter().map(|section| section.fabric.next()).min().unwrap_or(Picos::MAX);
            let event = self.agenda.next_at().unwrap_or(Picos::MAX);
            if span.min(event) > until {
                break;
            }
            match self.agenda.pop(span) {
                Some((at, event)) => {
                    self.now = at;
                    self.happen(event);
                }
                None => {
                    let end = span.saturating_add(self.window).min(event).min(until.saturating_add(1));
                    self.advance(crew, span, end);
                }
            }
        }
        let completed = self.sections.iter().filter_map(|section| section.completed).max();
        self.now = match completed {
            Some(at) if self.done() == flows => at,
            _ => until,
        };
    }

    /// Lets every unit run through a span.
    fn advance(&mut self, crew: &Crew, start: Picos, end: Picos) {
        let done = self.done();
        crew.run(&mut self.sections, start, end);
        self.exchange();
        let in_flight = self.sections.iter().map(|section| section.fabric.in_flight()).sum();
        self.most_packets = self.most_packets.max(in_flight);
        if self.done() > done {
            self.now = end;
            self.end_steady_state();
        }
    }

    /// Passes on the packets from each section to each other.
    fn exchange(&mut self) {
        for from in 0..self.sections.len() {
            for to in (0..self.sections.len()).filter(|to| *to != from) {
                let empty = mem::take(&mut self.sections[to].fabric.incoming[from]);
                self.sections[to].fabric.incoming[from] =
                    mem::replace(&mut self.sections[from].fabric.outgoing[to], empty);
            }
        }
    }

    /// Returns the number of flows that have completed.
    fn done(&self) -> usize {
        self.sections.iter().map(|section| section.done).sum()
    }

    fn counted(&self) -> Counted {
        self.sections.iter().fold(Counted::default(), |sum, section| sum.plus(&section.fabric.counted))
    }

    /// Returns the bytes that ports have sent, before the last hops and on them.
    fn carried(&self) -> [u64; 2] {
        [0, 1].map(|last_hop| self.sections.iter().map(|section| section.fabric.carried[last_hop]).sum())
    }

    /// Returns the ports of all switches, as each section knows them. Only one section uses a port.
    fn ports(&self) -> impl Iterator<Item = (&Link, &Port)> {
        let hosts = self.scenario.topology.hosts() as usize;
        let fabrics = self.sections.iter().map(|section| &section.fabric);
        fabrics.flat_map(move |fabric| fabric.wiring.links.iter().zip(&fabric.ports).skip(hosts))
    }

    /// Returns the section of a host.
    fn section(&self, host: u32) -> Option<&Section> {
        self.sections.iter().find(|section| section.fabric.is_mine(host))
    }

    /// Returns the flows, each with what its source knows and what its destination knows.
    fn flows(&self) -> impl Iterator<Item = Flow> {
        self.sections[0].flows.iter().enumerate().map(|(number, flow)| {
            let at = |host: u32| self.section(host).map_or(flow, |section| &section.flows[number]);
            let (source, destination) = (at(flow.demand.from), at(flow.demand.to));
            Flow {
                delivered: destination.delivered,
                delivered_before: destination.delivered_before,
                received: destination.received,
                ..source.clone()
            }
        })
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Sample => self.sample(),
            Event::Warm => self.warm(),
            Event::Fault(number) => self.fail(number, true),
            Event::Repair(number) => self.fail(number, false),
        }
    }

    fn warm(&mut self) {
        for flow in self.sections.iter_mut().flat_map(|section| &mut section.flows) {
            flow.delivered_before = flow.delivered;
        }
        self.warm = Some((self.now, self.counted()));
    }

    /// Ends the steady state: after the span in which the first flow completed, or at the end. Flows that do not
    /// overlap do not compete, and a few round trips do not show a state, so there is none then.
    fn end_steady_state(&mut self) {
        let Some((from, before)) = self.warm.take() else { return };
        let begun = |flow: Flow| {
            flow.started.is_some_and(|at| at <= from) && flow.delivered_before < flow.demand.size
        };
        let shortest = picos(self.scenario.base_rtt() * Steady::MIN_ROUND_TRIPS);
        if self.now - from < shortest || !self.flows().all(begun) {
            return;
        }
        let counted = self.counted().since(&before);
        let goodput = counted.delivered as f64 * 8.0 / ((self.now - from) as f64 * 1e-12);
        let shares: Vec<f64> =
            self.flows().map(|flow| (flow.delivered - flow.delivered_before) as f64).collect();
        let distinct = |hosts: Vec<u32>| hosts.into_iter().collect::<HashSet<u32>>().len();
        let demands = || self.sections[0].flows.iter().map(|flow| flow.demand);
        let senders = distinct(demands().map(|demand| demand.from).collect());
        let receivers = distinct(demands().map(|demand| demand.to).collect());
        let room = self.scenario.payload_rate() * senders.min(receivers) as f64;
        self.steady = Some(Steady {
            from: span(from),
            to: span(self.now),
            counted,
            goodput,
            share: goodput / room,
            jain: jain(&shares),
        });
    }

    // ---- Observation.

    fn sample(&mut self) {
        let deepest = |last_hop: bool| {
            let ports = self.ports().filter(|(link, _)| link.last_hop == last_hop);
            ports.map(|(_, port)| port.depth()).max().unwrap_or(0)
        };
        let watched = self.flows().take(self.scenario.watched).map(|flow| {
            let Demand { from, to, class, .. } = flow.demand;
            let pds = self.section(from).map(|section| &section.hosts[from].pds);
            FlowSample::of(pds.and_then(|pds| pds.congestion(address(to), class)), flow.delivered)
        });
        let (counted, carried) = (self.counted(), self.carried());
        let sample = Sample {
            at: span(self.now),
            delivered: counted.delivered,
            new: counted.new,
            again: counted.again,
            last_hop: deepest(true),
            fabric: deepest(false),
            fabric_carried: carried[0],
            last_hop_carried: carried[1],
            flows: watched.collect(),
        };
        self.series.add(sample);
        self.agenda.add(self.now + picos(self.series.interval), Event::Sample);
    }

    /// Begins or ends a fault.
    fn fail(&mut self, number: u32, begins: bool) {
        let fault = self.scenario.faults[number as usize];
        let percent = if begins { fault.percent } else { 100 };
        for section in &mut self.sections {
            section.fabric.failed = true;
            for port in section.fabric.wiring.ports(fault.part).unwrap_or_default() {
                section.fabric.ports[port as usize].percent = percent;
            }
            section.failed |= percent == 0;
        }
        if percent == 0 {
            let failed = span(self.now);
            self.recovery.get_or_insert(Recovery { failed, noticed: None, last_lost: None, back: None });
        }
    }

    fn end(mut self) -> Outcome {
        self.end_steady_state();
        let (mut last_hop, mut fabric) = (Depth::default(), Depth::default());
        for (link, port) in self.ports() {
            if link.last_hop { &mut last_hop } else { &mut fabric }.add(&port.depth);
        }
        let mut uses = self.carried().map(|bytes| LinkUse { links: 0, bytes });
        let wiring = &self.sections[0].fabric.wiring;
        for link in &wiring.links[self.scenario.topology.hosts() as usize..] {
            uses[usize::from(link.last_hop)].links += 1;
        }
        let flows: Vec<FlowOutcome> = self.flows().map(|flow| self.flow_outcome(&flow)).collect();
        let jobs = self.scenario.traffic.graph().map(|graph| JobOutcome::all(&self.scenario, graph, &flows));
        if let Some(recovery) = &mut self.recovery {
            let sections = || self.sections.iter();
            recovery.noticed = sections().filter_map(|section| section.noticed).min().map(span);
            recovery.last_lost = sections().filter_map(|section| section.fabric.last_lost).max().map(span);
            recovery.measure(&self.series, self.scenario.base_rtt());
        }
        Outcome {
            ended: span(self.now),
            counted: self.counted(),
            steady: self.steady,
            flows,
            jobs: jobs.unwrap_or_default(),
            last_hop,
            fabric,
            fabric_links: uses[0],
            last_hop_links: uses[1],
            recovery: self.recovery,
            series: self.series,
            events: self.sections.iter().map(|section| section.fabric.events).sum(),
            most_packets: self.most_packets,
        }
    }

    fn flow_outcome(&self, flow: &Flow) -> FlowOutcome {
        let demand = flow.demand;
        FlowOutcome {
            from: demand.from,
            to: demand.to,
            size: demand.size,
            started: flow.started.map(span),
            received: flow.received.zip(flow.started).map(|(end, start)| span(end - start)),
            completed: flow.completed.zip(flow.started).map(|(end, start)| span(end - start)),
            ideal: self.scenario.ideal(&demand),
            delivered: flow.delivered,
            job: demand.job,
            class: demand.class,
        }
    }
}

/// Returns true if a trigger starts flows of another host than those whose flows pull it.
fn acts_far(demands: &[Demand], triggers: usize) -> bool {
    let mut hosts = vec![None; triggers];
    demands.iter().any(|demand| {
        let started = match demand.start {
            Start::At(_) | Start::After(_) => None,
            Start::Trigger(trigger) => Some((trigger, demand.from)),
        };
        let [sent, received] = demand.done;
        let pulls = [
            started,
            sent.map(|trigger| (trigger, demand.from)),
            received.map(|trigger| (trigger, demand.to)),
        ];
        pulls.into_iter().flatten().any(|(trigger, host)| {
            hosts.get_mut(trigger as usize).is_some_and(|known| *known.get_or_insert(host) != host)
        })
    })
}

/// Says that a part does not exist.
fn absent(part: Part, topology: &Topology) -> String {
    let reason = match (part, topology) {
        (Part::Spine(_) | Part::Uplink { .. }, Topology::Single { .. }) => ": the fabric is a single switch",
        _ => "",
    };
    format!("there is no {part}{reason}")
}

fn span(picos: Picos) -> Duration {
    Duration::from_nanos(picos / 1000)
}
