//! A section of the network: hosts and ports that one thread runs through a span.

use crate::demand::{Demand, Start, Trigger};
use crate::error::ScenarioError;
use crate::fabric::Fabric;
use crate::flow::Flow;
use crate::graph::{After, Graph, Step};
use crate::host::{Host, News, host_of};
use crate::packet::Flying;
use crate::scenario::Scenario;
use crate::time::{Picos, model_time, picos};
use crate::waiting::Waiting;
use core::cmp::Reverse;
use core::ops::{Index, IndexMut};
use std::collections::HashSet;
use std::sync::Arc;
use uet_model::network::{PacketKind, stream_seed};
use uet_model::pds::{EventKind, RetransmitCause};
use uet_model::{Packet, Priority};

/// The sections of a network share nothing that changes, so the outcome does not depend on their number.
pub(crate) struct Section {
    scenario: Arc<Scenario>,
    pub(crate) fabric: Fabric,
    pub(crate) hosts: Hosts,
    /// All flows. The section of the source keeps what the source knows, and that of the destination the rest.
    pub(crate) flows: Vec<Flow>,
    triggers: Vec<Pulled>,
    waiting: Waiting,
    /// The time at the current unit.
    now: Picos,
    /// With credit: pairs in which the source has had an answer from the destination, and so sends on granted credit.
    answered: HashSet<(u32, u32)>,
    /// The number of flows that have completed, and the time when the last one did.
    pub(crate) done: usize,
    pub(crate) completed: Option<Picos>,
    /// True after a failure, and the first time since then at which a source declared a packet lost.
    pub(crate) failed: bool,
    pub(crate) noticed: Option<Picos>,
    news: Vec<News>,
    /// The steps of the graph that an event has made ready.
    ready: Vec<(Picos, Step)>,
}

/// The hosts of a section, by their numbers in the network.
pub(crate) struct Hosts {
    first: u32,
    hosts: Vec<Host>,
}

/// A trigger and its state.
#[derive(Debug)]
struct Pulled {
    kind: Trigger,
    flows: Vec<u32>,
    pulls: u32,
}

impl Section {
    /// Creates a section. `flows` counts those that each host of the network takes part in.
    pub(crate) fn new(
        scenario: Arc<Scenario>,
        fabric: Fabric,
        demands: &[Demand],
        flows: &[usize],
        waiting: Waiting,
    ) -> Result<Self, ScenarioError> {
        let numbers = (0..flows.len() as u32).filter(|host| fabric.is_mine(*host));
        let first = numbers.clone().next().unwrap_or(0);
        let endpoint = |number: u32| {
            let seed = stream_seed(scenario.seed, number.into());
            Ok(Host::new(number, scenario.endpoint(flows[number as usize])?, seed)?)
        };
        let hosts: Result<Vec<Host>, ScenarioError> = numbers.map(endpoint).collect();
        let mut triggers: Vec<Pulled> = scenario.traffic.triggers().iter().map(Pulled::new).collect();
        let mut starts = Vec::new();
        for (demand, flow) in demands.iter().zip(0..) {
            match demand.start {
                Start::At(at) => starts.push((demand.from, picos(at), Step::Flow(flow))),
                Start::Trigger(trigger) => triggers[trigger as usize].flows.push(flow),
                // `waiting` starts these.
                Start::After(_) => {}
            }
        }
        let graph = scenario.traffic.graph();
        starts
            .extend(waiting.ready().map(|(at, step)| (graph.map_or(0, |graph| graph.host(step)), at, step)));
        let contexts = graph.map_or_else(|| (0..demands.len() as u32).collect(), Graph::contexts);
        let mut section = Section {
            hosts: Hosts { first, hosts: hosts? },
            flows: demands
                .iter()
                .zip(contexts)
                .map(|(demand, context)| Flow::new(*demand, context, scenario.mtu))
                .collect(),
            triggers,
            waiting,
            now: 0,
            answered: HashSet::new(),
            done: 0,
            completed: None,
            failed: false,
            noticed: None,
            news: Vec::new(),
            ready: Vec::new(),
            fabric,
            scenario,
        };
        for (host, at, step) in starts {
            if section.fabric.is_mine(host) {
                section.hosts[host].starts.push(Reverse((at, step)));
                section.fabric.wakes.wake(host, at);
            }
        }
        Ok(section)
    }

    /// Lets every unit run through a span.
    pub(crate) fn run(&mut self, start: Picos, end: Picos) {
        self.fabric.take_in();
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
    }

    // ---- Hosts.

    /// Lets a host run through the span up to `end`. At one time, packets arrive first.
    fn run_host(&mut self, number: u32, end: Picos) {
        let arrivals = self.fabric.arrivals(number, end);
        let mut coming = arrivals.iter().copied().peekable();
        loop {
            let host = &self.hosts[number];
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
                    self.hosts[number].pds.handle_timeout(model_time(next));
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
        self.hosts[host].pds.handle_input(model_time(self.now), packet);
        self.attend(host);
    }

    /// Starts the next flow of a host, or ends its next delay.
    fn start(&mut self, from: u32) {
        let host = &mut self.hosts[from];
        match host.starts.pop() {
            Some(Reverse((_, Step::Flow(number)))) => {
                let flow = &mut self.flows[number as usize];
                flow.started = Some(self.now);
                let context = flow.context;
                host.queues.entry(context).or_default().push_back(number);
                host.feed(model_time(self.now), self.scenario.mtu, &mut self.flows, context);
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
        let host = &mut self.hosts[number];
        self.fabric.counted.delivered +=
            host.listen(model_time(self.now), self.now, self.scenario.mtu, &mut self.flows, &mut self.news);
        if !self.news.is_empty() {
            self.tell(number);
        }
        if self.failed {
            self.notice(number);
        }
    }

    /// Sends a host's next packet, if its link is free.
    fn transmit(&mut self, number: u32) {
        let host = &mut self.hosts[number];
        host.waits_for_link =
            self.fabric.ports[number as usize].busy_until > self.now && !host.pds.is_quiet();
        if self.fabric.ports[number as usize].busy_until > self.now {
            return;
        }
        if let Some(packet) = host.pds.poll_transmit(model_time(self.now)) {
            self.send(number, packet);
            self.listen(number);
            let host = &mut self.hosts[number];
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

    /// Records the first time at which a source declares a packet lost.
    fn notice(&mut self, host: u32) {
        while let Some(event) = self.hosts[host].pds.poll_event() {
            if let EventKind::Retransmitted(_, RetransmitCause::Timeout(_) | RetransmitCause::Gap) =
                event.kind
            {
                self.noticed = Some(self.noticed.map_or(self.now, |first| first.min(self.now)));
            }
        }
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
                    self.done += 1;
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
        self.hosts[host].starts.push(Reverse((at, step)));
        if host != by {
            self.fabric.wakes.wake(host, at);
        }
    }
}

impl Index<u32> for Hosts {
    type Output = Host;

    fn index(&self, number: u32) -> &Host {
        &self.hosts[(number - self.first) as usize]
    }
}

impl IndexMut<u32> for Hosts {
    fn index_mut(&mut self, number: u32) -> &mut Host {
        &mut self.hosts[(number - self.first) as usize]
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
