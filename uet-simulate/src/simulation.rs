//! The course of a simulation: hosts, flows, and spans of time.

use crate::error::{ScenarioError, refuse};
use crate::fabric::Fabric;
use crate::flow::Flow;
use crate::graph::{After, Graph, Step};
use crate::host::{Host, News, address, host_of};
use crate::outcome::{Counted, Depth, FlowOutcome, LinkUse, Outcome, Recovery, Steady, jain};
use crate::packet::Flying;
use crate::scenario::Scenario;
use crate::series::{FlowSample, Sample, Series};
use crate::summary::JobOutcome;
use crate::time::{Picos, model_time, picos};
use crate::traffic::{Demand, Start, Trigger};
use crate::waiting::Waiting;
use core::cmp::Reverse;
use core::time::Duration;
use std::collections::HashSet;
use uet_kernel::{Agenda, PacketKind, stream_seed};
use uet_model::pds::{EventKind, RetransmitCause};
use uet_model::{Packet, Priority};

/// A simulation of a scenario.
///
/// Time advances in spans in which no host and no port can affect another. In each span, every unit of the fabric runs
/// through its own events in order.
pub struct Simulation {
    scenario: Scenario,
    fabric: Fabric,
    /// The greatest length of a span.
    pub(crate) window: Picos,
    hosts: Vec<Host>,
    flows: Vec<Flow>,
    triggers: Vec<Pulled>,
    waiting: Waiting,
    /// The events between spans.
    agenda: Agenda<Event, 14>,
    /// The time at the current unit.
    now: Picos,
    /// With credit: pairs in which the source has had an answer from the destination, and so sends on granted credit.
    answered: HashSet<(u32, u32)>,
    /// The number of flows that have neither completed nor failed.
    open: usize,
    /// The time when a flow completed last.
    completed: Option<Picos>,
    warm: Option<(Picos, Counted)>,
    steady: Option<Steady>,
    recovery: Option<Recovery>,
    series: Series,
    news: Vec<News>,
    /// The steps of the graph that an event has made ready.
    ready: Vec<(Picos, Step)>,
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

/// A trigger and its state.
#[derive(Debug)]
struct Pulled {
    kind: Trigger,
    flows: Vec<u32>,
    pulls: u32,
}

impl Simulation {
    /// Creates a simulation. Returns an error if the scenario cannot be simulated.
    pub fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        scenario.check()?;
        let hosts = scenario.topology.hosts();
        let demands = scenario.traffic.demands(hosts, scenario.seed)?;
        let mut fabric = Fabric::new(scenario);
        let mut taking_part = vec![0; hosts as usize];
        for demand in &demands {
            taking_part[demand.from as usize] += 1;
            taking_part[demand.to as usize] += 1;
        }
        if taking_part.iter().any(|flows| *flows >= 65_000) {
            return refuse("flows", "a host takes part in at most 65,000");
        }
        let endpoint = |(number, flows): (usize, &usize)| {
            let seed = stream_seed(scenario.seed, number as u64);
            Ok(Host::new(number as u32, scenario.endpoint(*flows)?, seed)?)
        };
        let simulated: Result<Vec<Host>, ScenarioError> =
            taking_part.iter().enumerate().map(endpoint).collect();
        let mut simulated = simulated?;
        let mut triggers: Vec<Pulled> = scenario.traffic.triggers().iter().map(Pulled::new).collect();
        for (demand, flow) in demands.iter().zip(0..) {
            match demand.start {
                Start::At(at) => {
                    simulated[demand.from as usize].starts.push(Reverse((picos(at), Step::Flow(flow))));
                    fabric.wakes.wake(demand.from, picos(at));
                }
                Start::Trigger(trigger) => triggers[trigger as usize].flows.push(flow),
                // `waiting` starts these.
                Start::After(_) => {}
            }
        }
        let graph = scenario.traffic.graph();
        if let Some(step) = graph.and_then(Graph::stuck) {
            return refuse("workload", format!("{step:?} waits for itself"));
        }
        let waiting = Waiting::new(graph);
        for (at, step) in waiting.ready() {
            let host = graph.map_or(0, |graph| graph.host(step));
            simulated[host as usize].starts.push(Reverse((at, step)));
            fabric.wakes.wake(host, at);
        }
        let mut agenda = Agenda::default();
        for (fault, number) in scenario.faults.iter().zip(0..) {
            if fabric.wiring.ports(fault.part).is_none() {
                return refuse("fail", format!("there is no {}", fault.part));
            }
            if fault.percent > 100 {
                return refuse("fail", "a part keeps at most 100 % of its rate");
            }
            agenda.add(picos(fault.at), Event::Fault(number));
            if let Some(until) = fault.until {
                agenda.add(picos(until), Event::Repair(number));
            }
        }
        agenda.add(0, Event::Sample);
        agenda.add(picos(scenario.warm_up()), Event::Warm);
        Ok(Simulation {
            // The end of a flow acts at once. If it acts on another host, a span is a single point in time.
            window: match acts_far(&demands, triggers.len()) || graph.is_some_and(Graph::acts_far) {
                true => 1,
                false => fabric.window,
            },
            fabric,
            hosts: simulated,
            open: demands.len(),
            flows: demands.into_iter().map(|demand| Flow::new(demand, scenario.mtu)).collect(),
            triggers,
            waiting,
            agenda,
            now: 0,
            answered: HashSet::new(),
            completed: None,
            warm: None,
            steady: None,
            recovery: None,
            series: Series::every(scenario.base_rtt() / 4),
            news: Vec::new(),
            ready: Vec::new(),
            most_packets: 0,
            scenario: scenario.clone(),
        })
    }

    /// Runs the simulation until all flows have completed or its time is over.
    pub fn run(mut self) -> Outcome {
        let until = picos(self.scenario.until);
        while self.open > 0 {
            let (span, event) = (self.fabric.wakes.next(), self.agenda.next_at().unwrap_or(Picos::MAX));
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
                    self.advance(span, end);
                }
            }
        }
        self.now = match self.completed {
            Some(at) if self.open == 0 => at,
            _ => until,
        };
        self.end()
    }

    /// Lets every unit run through a span.
    fn advance(&mut self, start: Picos, end: Picos) {
        let open = self.open;
        let mut next = 0;
        while let Some(unit) = self.fabric.wakes.take(next, end) {
            match self.fabric.wiring.is_host(unit) {
                true => {
                    self.now = start;
                    self.run_host(unit, end);
                }
                false => self.fabric.run(unit, end),
            }
            next = unit + 1;
        }
        self.most_packets = self.most_packets.max(self.fabric.packets.len());
        if self.open < open {
            self.now = end;
            self.end_steady_state();
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Sample => self.sample(),
            Event::Warm => self.warm(),
            Event::Fault(number) => self.fail(number, true),
            Event::Repair(number) => self.fail(number, false),
        }
    }

    // ---- Hosts.

    /// Lets a host run through the span up to `end`. At one time, packets arrive first.
    fn run_host(&mut self, number: u32, end: Picos) {
        let arrivals = self.fabric.arrivals(number, end);
        let mut coming = arrivals.iter().copied().peekable();
        loop {
            let host = &self.hosts[number as usize];
            let free = match host.waits_for_link {
                true => self.fabric.ports[number as usize].busy_until,
                false => Picos::MAX,
            };
            let start = host.starts.peek().map_or(Picos::MAX, |Reverse((at, _))| *at);
            let timer = host.timer(self.now);
            let next = timer.min(free).min(start);
            if let Some(flying) = coming.next_if(|flying| flying.at <= next) {
                self.now = flying.at;
                self.deliver(number, &flying);
            } else if next >= end {
                self.fabric.wakes.wake(number, next);
                break;
            } else {
                self.now = next;
                self.fabric.events += 1;
                if timer == next {
                    self.hosts[number as usize].pds.handle_timeout(model_time(next));
                    self.attend(number);
                } else if start == next {
                    self.start(number);
                } else {
                    self.transmit(number);
                }
            }
        }
        self.fabric.reuse(arrivals);
    }

    fn deliver(&mut self, host: u32, flying: &Flying) {
        if self.fabric.is_lost(flying, host) {
            return self.fabric.lose(flying);
        }
        let packet = self.fabric.packets.take(flying);
        match packet.priority {
            Priority::Low => {
                self.fabric.counted.arrived += 1;
            }
            Priority::High if self.scenario.congestion.control.grants_credit() => {
                self.answered.insert((host, flying.from));
            }
            _ => {}
        }
        self.hosts[host as usize].pds.handle_input(model_time(self.now), packet);
        self.attend(host);
    }

    /// Starts the next flow of a host, or ends its next delay.
    fn start(&mut self, from: u32) {
        let host = &mut self.hosts[from as usize];
        match host.starts.pop() {
            Some(Reverse((_, Step::Flow(number)))) => {
                let flow = &mut self.flows[number as usize];
                flow.started = Some(self.now);
                host.feed(model_time(self.now), self.scenario.mtu, flow, number);
                self.attend(from);
            }
            Some(Reverse((_, Step::Delay(delay)))) => self.proceed(After::Delay(delay), from),
            None => {}
        }
    }

    /// Handles the consequences of an event at a host.
    fn attend(&mut self, number: u32) {
        self.listen(number);
        self.transmit(number);
    }

    fn listen(&mut self, number: u32) {
        let host = &mut self.hosts[number as usize];
        self.fabric.counted.delivered +=
            host.listen(model_time(self.now), self.now, self.scenario.mtu, &mut self.flows, &mut self.news);
        if !self.news.is_empty() {
            self.tell(number);
        }
        if self.recovery.is_some() {
            self.notice(number);
        }
    }

    /// Sends a host's next packet, if its link is free.
    fn transmit(&mut self, number: u32) {
        let host = &mut self.hosts[number as usize];
        host.waits_for_link =
            self.fabric.ports[number as usize].busy_until > self.now && !host.pds.is_quiet();
        if self.fabric.ports[number as usize].busy_until > self.now {
            return;
        }
        if let Some(packet) = host.pds.poll_transmit(model_time(self.now)) {
            self.send(number, packet);
            self.listen(number);
            let host = &mut self.hosts[number as usize];
            host.waits_for_link = !host.pds.is_quiet();
        }
    }

    /// Counts a packet that leaves, and hands it to the fabric.
    fn send(&mut self, from: u32, packet: Packet) {
        let to = host_of(packet.dst);
        let kind = PacketKind::of(&packet);
        let counted = &mut self.fabric.counted;
        *match kind {
            PacketKind::First => &mut counted.new,
            PacketKind::Retransmission => &mut counted.again,
            PacketKind::Ack => &mut counted.acks,
            PacketKind::Nack => &mut counted.nacks,
            _ => &mut counted.control,
        } += 1;
        let again = kind == PacketKind::Retransmission;
        let granted = !again && !self.answered.is_empty() && self.answered.contains(&(from, to));
        let flying = self.fabric.packets.insert(from, to, granted, again, packet);
        self.fabric.launch(self.now, from, flying);
    }

    // ---- Flows.

    fn tell(&mut self, host: u32) {
        for index in 0..self.news.len() {
            match self.news[index] {
                News::Received(number) => {
                    self.proceed(After::Received(number), host);
                    self.pull(self.flows[number as usize].demand.done[1], host);
                }
                News::Done(number) => {
                    self.open -= 1;
                    self.completed = self.completed.max(Some(self.now));
                    self.proceed(After::Sent(number), host);
                    self.pull(self.flows[number as usize].demand.done[0], host);
                }
            }
        }
        self.news.clear();
    }

    fn pull(&mut self, trigger: Option<u32>, by: u32) {
        let Some(pulled) = trigger.and_then(|place| self.triggers.get_mut(place as usize)) else { return };
        for flow in pulled.pull() {
            let from = self.flows[flow as usize].demand.from;
            self.begin(from, self.now, Step::Flow(flow), by);
        }
    }

    /// Plans the steps of the graph that waited for this alone. It happens at the host `by`.
    fn proceed(&mut self, over: After, by: u32) {
        let mut ready = core::mem::take(&mut self.ready);
        self.waiting.over(over, |gap, step| ready.push((gap, step)));
        for (gap, step) in ready.drain(..) {
            let host = self.scenario.traffic.graph().map_or(by, |graph| graph.host(step));
            self.begin(host, self.now + gap, step, by);
        }
        self.ready = ready;
    }

    /// Plans a step of a host, as an effect of the host `by`.
    fn begin(&mut self, host: u32, at: Picos, step: Step, by: u32) {
        self.hosts[host as usize].starts.push(Reverse((at, step)));
        if host != by {
            self.fabric.wakes.wake(host, at);
        }
    }

    fn warm(&mut self) {
        if self.steady.is_some() {
            return;
        }
        for flow in &mut self.flows {
            flow.delivered_before = flow.delivered;
        }
        self.warm = Some((self.now, self.fabric.counted));
    }

    /// Ends the steady state: after the span in which the first flow completed, or at the end.
    fn end_steady_state(&mut self) {
        let Some((from, before)) = self.warm.filter(|_| self.steady.is_none()) else { return };
        let seconds = (self.now - from) as f64 * 1e-12;
        if seconds <= 0.0 {
            return;
        }
        let counted = self.fabric.counted.since(&before);
        let goodput = counted.delivered as f64 * 8.0 / seconds;
        let running = self.flows.iter().filter(|flow| flow.started.is_some_and(|at| at <= from));
        let shares: Vec<f64> = running.map(|flow| (flow.delivered - flow.delivered_before) as f64).collect();
        let distinct = |hosts: Vec<u32>| hosts.into_iter().collect::<HashSet<u32>>().len();
        let senders = distinct(self.flows.iter().map(|flow| flow.demand.from).collect());
        let receivers = distinct(self.flows.iter().map(|flow| flow.demand.to).collect());
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
            let ports = self.fabric.wiring.links.iter().zip(&self.fabric.ports).skip(self.hosts.len());
            ports
                .filter(|(link, _)| link.last_hop == last_hop)
                .map(|(_, port)| port.depth())
                .max()
                .unwrap_or(0)
        };
        let watched = self.flows.iter().take(self.scenario.watched).map(|flow| {
            let host = &self.hosts[flow.demand.from as usize];
            FlowSample::of(host.pds.congestion(address(flow.demand.to), flow.demand.class), flow.delivered)
        });
        let sample = Sample {
            at: span(self.now),
            delivered: self.fabric.counted.delivered,
            new: self.fabric.counted.new,
            again: self.fabric.counted.again,
            last_hop: deepest(true),
            fabric: deepest(false),
            fabric_carried: self.fabric.carried[0],
            last_hop_carried: self.fabric.carried[1],
            flows: watched.collect(),
        };
        self.series.add(sample);
        self.agenda.add(self.now + picos(self.series.interval), Event::Sample);
    }

    /// Begins or ends a fault.
    fn fail(&mut self, number: u32, begins: bool) {
        let fault = self.scenario.faults[number as usize];
        let Some(ports) = self.fabric.wiring.ports(fault.part) else { return };
        let percent = if begins { fault.percent } else { 100 };
        self.fabric.failed = true;
        for port in ports {
            self.fabric.ports[port as usize].percent = percent;
        }
        if percent == 0 {
            let failed = span(self.now);
            self.recovery.get_or_insert(Recovery { failed, noticed: None, last_lost: None, back: None });
        }
    }

    /// Records the first time at which a source declares a packet lost.
    fn notice(&mut self, host: u32) {
        while let Some(event) = self.hosts[host as usize].pds.poll_event() {
            if let (
                EventKind::Retransmitted(_, RetransmitCause::Timeout(_) | RetransmitCause::Gap),
                Some(recovery),
            ) = (event.kind, &mut self.recovery)
            {
                let now = span(self.now);
                recovery.noticed = Some(recovery.noticed.map_or(now, |first| first.min(now)));
            }
        }
    }

    fn end(mut self) -> Outcome {
        self.end_steady_state();
        let (mut last_hop, mut fabric) = (Depth::default(), Depth::default());
        let mut uses = self.fabric.carried.map(|bytes| LinkUse { links: 0, bytes });
        for (link, port) in self.fabric.wiring.links.iter().zip(&self.fabric.ports).skip(self.hosts.len()) {
            uses[usize::from(link.last_hop)].links += 1;
            if link.last_hop { &mut last_hop } else { &mut fabric }.add(&port.depth);
        }
        let flows: Vec<FlowOutcome> = self.flows.iter().map(|flow| self.flow_outcome(flow)).collect();
        let jobs = self.scenario.traffic.graph().map(|graph| JobOutcome::all(&self.scenario, graph, &flows));
        if let Some(recovery) = &mut self.recovery {
            recovery.last_lost = self.fabric.last_lost.map(span);
            recovery.measure(&self.series, self.scenario.base_rtt());
        }
        Outcome {
            ended: span(self.now),
            counted: self.fabric.counted,
            steady: self.steady,
            flows,
            jobs: jobs.unwrap_or_default(),
            last_hop,
            fabric,
            fabric_links: uses[0],
            last_hop_links: uses[1],
            recovery: self.recovery,
            series: self.series,
            events: self.fabric.events,
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

impl Pulled {
    fn new(kind: &Trigger) -> Self {
        Pulled { kind: *kind, flows: Vec::new(), pulls: 0 }
    }

    /// Counts a pull, and returns the flows that start now.
    fn pull(&mut self) -> Vec<u32> {
        self.pulls += 1;
        match self.kind {
            Trigger::Once if self.pulls == 1 => self.flows.clone(),
            Trigger::Barrier(count) if self.pulls == count => self.flows.clone(),
            Trigger::Each => self.flows.get(self.pulls as usize - 1).copied().into_iter().collect(),
            _ => Vec::new(),
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

fn span(picos: Picos) -> Duration {
    Duration::from_nanos(picos / 1000)
}
