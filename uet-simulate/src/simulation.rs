//! The event loop of the simulation.

use crate::error::{ScenarioError, refuse};
use crate::flow::Flow;
use crate::graph::{After, Graph, Step};
use crate::host::{Host, News, address, host_of};
use crate::outcome::{Counted, Depth, FlowOutcome, LinkUse, Outcome, Recovery, Steady, jain};
use crate::packet::{Flying, Key, size};
use crate::port::{Admission, Discipline, Port};
use crate::scenario::Scenario;
use crate::series::{FlowSample, Sample, Series};
use crate::summary::JobOutcome;
use crate::time::{Picos, model_time, picos, serialization};
use crate::topology::Wiring;
use crate::traffic::{Start, Trigger};
use crate::waiting::Waiting;
use core::time::Duration;
use slab::Slab;
use std::collections::HashSet;
use uet_kernel::{Agenda, PacketKind, stream, stream_seed};
use uet_model::pds::{EventKind, RetransmitCause};
use uet_model::{Packet, Priority, Time, TrimPoint};

/// A simulation of a scenario.
pub struct Simulation {
    scenario: Scenario,
    wiring: Wiring,
    discipline: Discipline,
    ports: Vec<Port>,
    hosts: Vec<Host>,
    flows: Vec<Flow>,
    triggers: Vec<Pulled>,
    waiting: Waiting,
    /// The agenda, with slots of 16 ns.
    agenda: Agenda<Event, 14>,
    packets: Slab<Flying>,
    now: Picos,
    /// With credit: pairs in which the source has had an answer from the destination, and so sends on granted credit.
    answered: HashSet<(u32, u32)>,
    /// The counters. `delivered` is always current.
    counted: Counted,
    /// The bytes that ports have sent, before the last hops and on them.
    carried: [u64; 2],
    /// The number of flows that have neither completed nor failed.
    open: usize,
    warm: Option<(Picos, Counted)>,
    steady: Option<Steady>,
    recovery: Option<Recovery>,
    series: Series,
    news: Vec<News>,
    events: u64,
    most_packets: usize,
}

/// An event.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A packet reaches the end of the link behind this port.
    Arrive(u32, Key),
    /// The link of this port is free.
    Free(u32),
    /// The timer of a host is due.
    Timer(u32),
    /// A flow starts.
    Start(u32),
    /// A delay of the graph is over.
    DelayOver(u32),
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
        let wiring = Wiring::new(&scenario.topology, scenario.rate, picos(scenario.latency));
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
        let mut triggers: Vec<Pulled> = scenario.traffic.triggers().iter().map(Pulled::new).collect();
        let mut agenda = Agenda::default();
        for (demand, flow) in demands.iter().zip(0..) {
            match demand.start {
                Start::At(at) => agenda.add(picos(at), Event::Start(flow)),
                Start::Trigger(trigger) => triggers[trigger as usize].flows.push(flow),
                // `waiting` starts these.
                Start::After(_) => {}
            }
        }
        if let Some(step) = scenario.traffic.graph().and_then(Graph::stuck) {
            return refuse("workload", format!("{step:?} waits for itself"));
        }
        let waiting = Waiting::new(scenario.traffic.graph());
        for (after, step) in waiting.ready() {
            agenda.add(after, step.into());
        }
        for (fault, number) in scenario.faults.iter().zip(0..) {
            if wiring.ports(fault.part).is_none() {
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
            discipline: Discipline::new(scenario),
            // The streams of the hosts come first.
            ports: (hosts..)
                .zip(&wiring.links)
                .map(|(number, _)| Port::new(stream(scenario.seed, number.into())))
                .collect(),
            wiring,
            hosts: simulated?,
            open: demands.len(),
            flows: demands.into_iter().map(|demand| Flow::new(demand, scenario.mtu)).collect(),
            triggers,
            waiting,
            agenda,
            packets: Slab::new(),
            now: 0,
            answered: HashSet::new(),
            counted: Counted::default(),
            carried: [0; 2],
            warm: None,
            steady: None,
            recovery: None,
            series: Series::every(scenario.base_rtt() / 4),
            news: Vec::new(),
            events: 0,
            most_packets: 0,
            scenario: scenario.clone(),
        })
    }

    /// Runs the simulation until all flows have completed or its time is over.
    pub fn run(mut self) -> Outcome {
        let until = picos(self.scenario.until);
        while let Some((at, event)) = self.agenda.pop(until).filter(|_| self.open > 0) {
            self.now = at;
            self.events += 1;
            self.happen(event);
        }
        if self.open > 0 {
            self.now = until;
        }
        self.end()
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(port, key) => self.arrive(port, key),
            Event::Free(port) if (port as usize) < self.hosts.len() => {
                self.hosts[port as usize].waits_for_link = false;
                self.transmit(port);
            }
            Event::Free(port) => self.forward(port),
            Event::Timer(host) => self.timer(host),
            Event::Start(flow) => self.start(flow),
            Event::DelayOver(delay) => self.proceed(After::Delay(delay)),
            Event::Sample => self.sample(),
            Event::Warm => self.warm(),
            Event::Fault(number) => self.fail(number, true),
            Event::Repair(number) => self.fail(number, false),
        }
    }

    // ---- Switches.

    fn arrive(&mut self, port: u32, key: Key) {
        let link = self.wiring.links[port as usize];
        if self.ports[port as usize].down {
            return self.lose(key);
        }
        if self.wiring.is_host(link.to) {
            let flying = self.packets.remove(key as usize);
            return self.deliver(link.to, flying);
        }
        let flying = &self.packets[key as usize];
        let out = self.wiring.route(link.to, flying.from, flying.to, flying.packet.entropy);
        self.enqueue(out, key);
    }

    fn enqueue(&mut self, out: u32, key: Key) {
        let port = &mut self.ports[out as usize];
        if port.down {
            return self.lose(key);
        }
        let idle = port.is_empty() && port.busy_until <= self.now;
        let flying = &mut self.packets[key as usize];
        if port.admit(&self.discipline, key, flying) == Admission::NoRoom {
            // Only requests are trimmed, and only once.
            if !self.discipline.trimming || flying.packet.priority != Priority::Low {
                return self.drop_packet(key);
            }
            let last_hop = self.wiring.links[out as usize].last_hop;
            flying.trim(
                self.scenario.switching.trim_size,
                if last_hop { TrimPoint::LastHop } else { TrimPoint::Fabric },
            );
            self.counted.trimmed += 1;
            self.counted.trimmed_granted += u64::from(flying.granted);
            if port.admit(&self.discipline, key, flying) == Admission::NoRoom {
                return self.drop_packet(key);
            }
        }
        if idle {
            self.forward(out);
        } else if !port.awaited {
            port.awaited = true;
            self.agenda.add(port.busy_until, Event::Free(out));
        }
    }

    /// Sends the next packet of a port on its link.
    fn forward(&mut self, out: u32) {
        let link = self.wiring.links[out as usize];
        let port = &mut self.ports[out as usize];
        port.awaited = false;
        let packets = &self.packets;
        let size = |key: Key| packets[key as usize].size;
        let Some((key, marked)) = port.leave(&self.discipline, link.last_hop, size) else {
            return;
        };
        let flying = &mut self.packets[key as usize];
        if marked && !flying.packet.marked {
            flying.packet.marked = true;
            self.counted.marked += 1;
        }
        self.carried[usize::from(link.last_hop)] += u64::from(flying.size);
        port.busy_until = self.now + serialization(flying.size, link.rate);
        self.agenda.add(port.busy_until + link.latency, Event::Arrive(out, key));
        if !port.is_empty() {
            port.awaited = true;
            self.agenda.add(port.busy_until, Event::Free(out));
        }
    }

    fn drop_packet(&mut self, key: Key) {
        self.packets.remove(key as usize);
        self.counted.dropped += 1;
    }

    fn lose(&mut self, key: Key) {
        self.packets.remove(key as usize);
        self.counted.lost += 1;
        if let Some(recovery) = &mut self.recovery {
            recovery.last_lost = Some(span(self.now));
        }
    }

    // ---- Hosts.

    fn deliver(&mut self, host: u32, flying: Flying) {
        let Flying { packet, from, again: _, .. } = flying;
        match packet.priority {
            Priority::Low => {
                self.counted.arrived += 1;
            }
            Priority::High if self.scenario.congestion.control.grants_credit() => {
                self.answered.insert((host, from));
            }
            _ => {}
        }
        let now = model_time(self.now);
        self.hosts[host as usize].pds.handle_input(now, packet);
        self.attend(host);
    }

    fn timer(&mut self, number: u32) {
        let now = model_time(self.now);
        let host = &mut self.hosts[number as usize];
        if host.timer != Some(now) {
            // A later timer replaced this one.
            return;
        }
        host.timer = None;
        if host.pds.poll_timeout().is_some_and(|at| at <= now) {
            host.pds.handle_timeout(now);
            self.attend(number);
        } else {
            self.arm(number);
        }
    }

    fn start(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        flow.started = Some(self.now);
        let from = flow.demand.from;
        self.hosts[from as usize].feed(model_time(self.now), self.scenario.mtu, flow, number);
        self.attend(from);
    }

    /// Handles the consequences of an event at a host.
    fn attend(&mut self, number: u32) {
        self.listen(number);
        self.transmit(number);
    }

    fn listen(&mut self, number: u32) {
        let host = &mut self.hosts[number as usize];
        self.counted.delivered +=
            host.listen(model_time(self.now), self.now, self.scenario.mtu, &mut self.flows, &mut self.news);
        if !self.news.is_empty() {
            self.tell();
        }
        if self.recovery.is_some() {
            self.notice(number);
        }
    }

    /// Sends a host's next packet, if its link is free.
    fn transmit(&mut self, number: u32) {
        let port = &mut self.ports[number as usize];
        let host = &mut self.hosts[number as usize];
        if port.busy_until > self.now {
            if !host.waits_for_link {
                host.waits_for_link = true;
                self.agenda.add(port.busy_until, Event::Free(number));
            }
            return self.arm(number);
        }
        if let Some(packet) = host.pds.poll_transmit(model_time(self.now)) {
            let flying = self.flying(number, packet);
            let link = self.wiring.links[number as usize];
            let busy_until = self.now + serialization(flying.size, link.rate);
            self.ports[number as usize].busy_until = busy_until;
            let key = self.packets.insert(flying) as Key;
            self.most_packets = self.most_packets.max(self.packets.len());
            self.agenda.add(busy_until + link.latency, Event::Arrive(number, key));
            self.listen(number);
            let host = &mut self.hosts[number as usize];
            if !host.pds.is_quiet() && !host.waits_for_link {
                host.waits_for_link = true;
                self.agenda.add(busy_until, Event::Free(number));
            }
        }
        self.arm(number);
    }

    /// Counts a packet that leaves, and adds its simulation state.
    fn flying(&mut self, from: u32, packet: Packet) -> Flying {
        let to = host_of(packet.dst);
        let kind = PacketKind::of(&packet);
        *match kind {
            PacketKind::First => &mut self.counted.new,
            PacketKind::Retransmission => &mut self.counted.again,
            PacketKind::Ack => &mut self.counted.acks,
            PacketKind::Nack => &mut self.counted.nacks,
            _ => &mut self.counted.control,
        } += 1;
        let again = kind == PacketKind::Retransmission;
        let granted = !again && !self.answered.is_empty() && self.answered.contains(&(from, to));
        Flying { size: size(&packet), packet, from, to, again, granted }
    }

    /// Schedules the next timer of a host.
    fn arm(&mut self, number: u32) {
        let host = &mut self.hosts[number as usize];
        let Some(wanted) = host.pds.poll_timeout() else { return };
        // A timer in the past is due now.
        let wanted = wanted.max(Time(self.now.div_ceil(1000)));
        if host.timer.is_none_or(|at| wanted < at) {
            host.timer = Some(wanted);
            self.agenda.add(wanted.0.saturating_mul(1000), Event::Timer(number));
        }
    }

    // ---- Flows.

    fn tell(&mut self) {
        for index in 0..self.news.len() {
            match self.news[index] {
                News::Received(number) => {
                    self.proceed(After::Received(number));
                    self.pull(self.flows[number as usize].demand.done[1]);
                }
                News::Done(number) => {
                    self.end_steady_state();
                    self.open -= 1;
                    self.proceed(After::Sent(number));
                    self.pull(self.flows[number as usize].demand.done[0]);
                }
            }
        }
        self.news.clear();
    }

    fn pull(&mut self, trigger: Option<u32>) {
        let Some(pulled) = trigger.and_then(|place| self.triggers.get_mut(place as usize)) else { return };
        for flow in pulled.pull() {
            self.agenda.add(self.now, Event::Start(flow));
        }
    }

    /// Starts the steps of the graph that waited for this alone.
    fn proceed(&mut self, over: After) {
        let (waiting, agenda, now) = (&mut self.waiting, &mut self.agenda, self.now);
        waiting.over(over, |after, step| agenda.add(now + after, step.into()));
    }

    fn warm(&mut self) {
        if self.steady.is_some() {
            return;
        }
        for flow in &mut self.flows {
            flow.delivered_before = flow.delivered;
        }
        self.warm = Some((self.now, self.counted));
    }

    /// Ends the steady state, at the first completed flow or at the end.
    fn end_steady_state(&mut self) {
        let Some((from, before)) = self.warm.filter(|_| self.steady.is_none()) else { return };
        let seconds = (self.now - from) as f64 * 1e-12;
        if seconds <= 0.0 {
            return;
        }
        let counted = self.counted.since(&before);
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
            let ports = self.wiring.links.iter().zip(&self.ports).skip(self.hosts.len());
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
            delivered: self.counted.delivered,
            new: self.counted.new,
            again: self.counted.again,
            last_hop: deepest(true),
            fabric: deepest(false),
            fabric_carried: self.carried[0],
            last_hop_carried: self.carried[1],
            flows: watched.collect(),
        };
        self.series.add(sample);
        self.agenda.add(self.now + picos(self.series.interval), Event::Sample);
    }

    /// Begins or ends a fault.
    fn fail(&mut self, number: u32, begins: bool) {
        let fault = self.scenario.faults[number as usize];
        let Some(ports) = self.wiring.ports(fault.part) else { return };
        let percent = if begins { fault.percent } else { 100 };
        for port in ports {
            self.ports[port as usize].down = percent == 0;
            // Packets on a failed link still take time.
            let percent = if percent == 0 { 100 } else { percent };
            self.wiring.links[port as usize].rate = self.scenario.rate / 100 * u64::from(percent);
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
                recovery.noticed.get_or_insert(span(self.now));
            }
        }
    }

    fn end(mut self) -> Outcome {
        self.end_steady_state();
        let (mut last_hop, mut fabric) = (Depth::default(), Depth::default());
        let mut uses = self.carried.map(|bytes| LinkUse { links: 0, bytes });
        for (link, port) in self.wiring.links.iter().zip(&self.ports).skip(self.hosts.len()) {
            uses[usize::from(link.last_hop)].links += 1;
            if link.last_hop { &mut last_hop } else { &mut fabric }.add(&port.depth);
        }
        let flows: Vec<FlowOutcome> = self.flows.iter().map(|flow| self.flow_outcome(flow)).collect();
        let jobs = self.scenario.traffic.graph().map(|graph| JobOutcome::all(&self.scenario, graph, &flows));
        if let Some(recovery) = &mut self.recovery {
            recovery.measure(&self.series, self.scenario.base_rtt());
        }
        Outcome {
            ended: span(self.now),
            counted: self.counted,
            steady: self.steady,
            flows,
            jobs: jobs.unwrap_or_default(),
            last_hop,
            fabric,
            fabric_links: uses[0],
            last_hop_links: uses[1],
            recovery: self.recovery,
            series: self.series,
            events: self.events,
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

impl From<Step> for Event {
    fn from(step: Step) -> Self {
        match step {
            Step::Flow(flow) => Event::Start(flow),
            Step::Delay(delay) => Event::DelayOver(delay),
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

fn span(picos: Picos) -> Duration {
    Duration::from_nanos(picos / 1000)
}
