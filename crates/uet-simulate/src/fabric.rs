//! The switches: ports, and the packets on their links.
//!
//! No packet reaches the end of a link earlier than `window` after it left a host or a queue. Within such a
//! span, no host and no port can affect another. So each runs through a whole span by itself, while its state is in the
//! cache, and needs no events for a free link.

use crate::outcome::Counted;
use crate::packet::{Contents, Flying, Packets, sizes};
use crate::port::{Discipline, Port};
use crate::scenario::Scenario;
use crate::time::{Picos, picos, serialization};
use crate::topology::Wiring;
use crate::wake::Wakes;
use std::iter;
use std::sync::Arc;
use uet_model::network::stream;
use uet_model::{Priority, TrimPoint};

/// The ports of all hosts and switches. A unit is a host, with its port, or a port of a switch. The hosts come first.
///
/// A fabric of a section keeps only what happens at the units of that section.
pub(crate) struct Fabric {
    pub(crate) wiring: Arc<Wiring>,
    /// The section of each unit, and its own.
    sections: Arc<[u8]>,
    own: u8,
    discipline: Discipline,
    pub(crate) ports: Vec<Port>,
    pub(crate) packets: Packets,
    /// For each unit, the packets on their way to it.
    coming: Vec<Vec<Flying>>,
    /// The packets from each section that are not in `coming` yet, and those for each section.
    pub(crate) incoming: Vec<Batch>,
    pub(crate) outgoing: Vec<Batch>,
    pub(crate) wakes: Wakes,
    /// The packets that arrive at a unit in the current span.
    due: Vec<Flying>,
    /// The time that a link takes for each size.
    serialization: Vec<Picos>,
    latency: Picos,
    /// The shortest time that a packet takes for a link.
    pub(crate) window: Picos,
    trim_size: u16,
    /// True after the first fault. Only then the rates of links differ, and ports may be down.
    pub(crate) failed: bool,
    /// The counters. `delivered` is always current.
    pub(crate) counted: Counted,
    /// The bytes that ports have sent, before the last hops and on them.
    pub(crate) carried: [u64; 2],
    /// The time of the last packet lost to a fault.
    pub(crate) last_lost: Option<Picos>,
    pub(crate) events: u64,
}

/// Packets on their way from one section to another.
#[derive(Default)]
pub(crate) struct Batch {
    packets: Vec<(u32, Flying, Contents)>,
    /// The time when the first one arrives.
    earliest: Option<Picos>,
}

impl Fabric {
    /// Creates the fabric of the section `own`.
    pub(crate) fn new(scenario: &Scenario, wiring: Arc<Wiring>, sections: Arc<[u8]>, own: u8) -> Self {
        let latency = picos(scenario.latency);
        let count = sections.iter().max().map_or(1, |last| usize::from(*last) + 1);
        let units = wiring.links.len();
        // The streams of the hosts come first.
        let streams = (scenario.topology.hosts()..).map(|number| stream(scenario.seed, number.into()));
        let (smallest, largest) = sizes(scenario.mtu);
        let serialization = |size: usize| serialization(size as u32, scenario.rate);
        Fabric {
            discipline: Discipline::new(scenario),
            ports: streams.take(units).map(Port::new).collect(),
            packets: Packets::default(),
            coming: vec![Vec::new(); units],
            incoming: iter::repeat_with(Batch::default).take(count).collect(),
            outgoing: iter::repeat_with(Batch::default).take(count).collect(),
            sections,
            own,
            wakes: Wakes::new(units),
            due: Vec::new(),
            window: (latency + serialization(smallest)).max(1),
            serialization: (0..=largest).map(serialization).collect(),
            latency,
            trim_size: scenario.switching.trim_size,
            failed: false,
            counted: Counted::default(),
            carried: [0; 2],
            last_lost: None,
            events: 0,
            wiring,
        }
    }

    /// Puts a packet on the link of a port, and so on its way to the next unit.
    pub(crate) fn launch(&mut self, now: Picos, out: u32, flying: Flying) {
        let link = &self.wiring.links[out as usize];
        let port = &mut self.ports[out as usize];
        let mut takes = self.serialization[usize::from(flying.size)];
        // Packets on a failed link still take time.
        if self.failed && port.percent != 0 {
            takes = takes * 100 / Picos::from(port.percent);
        }
        let busy_until = now + takes;
        port.busy_until = busy_until;
        let node = link.to;
        if !self.wiring.is_host(out) {
            self.carried[usize::from(link.last_hop)] += u64::from(flying.size);
        }
        let unit = match self.wiring.is_host(node) {
            true => node,
            false => self.wiring.route(node, flying.from, flying.to, flying.entropy),
        };
        let at = busy_until + self.latency;
        let flying = Flying { at, via: out, ..flying };
        if self.is_mine(unit) {
            return self.expect(unit, flying);
        }
        let contents = self.packets.lift(&flying);
        let batch = &mut self.outgoing[usize::from(self.sections[unit as usize])];
        batch.packets.push((unit, flying, contents));
        batch.earliest = Some(batch.earliest.map_or(at, |first| first.min(at)));
    }

    fn expect(&mut self, unit: u32, flying: Flying) {
        self.coming[unit as usize].push(flying);
        self.wakes.wake(unit, flying.at);
    }

    /// Returns true if a unit belongs to this section.
    pub(crate) fn is_mine(&self, unit: u32) -> bool {
        self.sections[unit as usize] == self.own
    }

    /// Takes in the packets from other sections.
    pub(crate) fn take_in(&mut self) {
        for from in 0..self.incoming.len() {
            let mut batch = core::mem::take(&mut self.incoming[from]);
            for (unit, flying, contents) in batch.packets.drain(..) {
                let key = self.packets.put(contents);
                self.expect(unit, Flying { key, ..flying });
            }
            batch.earliest = None;
            // For its memory.
            self.incoming[from] = batch;
        }
    }

    /// Returns the time of the next event.
    pub(crate) fn next(&self) -> Picos {
        let incoming = self.incoming.iter().filter_map(|batch| batch.earliest).min();
        self.wakes.next().min(incoming.unwrap_or(Picos::MAX))
    }

    /// Returns in how many places units have to run before `end`. Packets from other sections count once.
    pub(crate) fn busy(&self, end: Picos) -> usize {
        let incoming = self.incoming.iter().filter(|batch| batch.earliest.is_some_and(|at| at < end)).count();
        self.wakes.busy(end) + incoming
    }

    /// Returns the number of packets in flight, without those for other sections.
    pub(crate) fn in_flight(&self) -> usize {
        self.packets.len() + self.incoming.iter().map(|batch| batch.packets.len()).sum::<usize>()
    }

    /// Takes the packets that arrive at a unit before `end`, in the order of their arrival.
    pub(crate) fn arrivals(&mut self, unit: u32, end: Picos) -> Vec<Flying> {
        let mut due = core::mem::take(&mut self.due);
        let mut later = Picos::MAX;
        self.coming[unit as usize].retain(|flying| {
            let stays = flying.at >= end;
            match stays {
                true => later = later.min(flying.at),
                false => due.push(*flying),
            }
            stays
        });
        self.wakes.wake(unit, later);
        self.events += due.len() as u64;
        // No link ends two packets at once, so the order is total. It prefers no link over time.
        let rank = |flying: &Flying| (flying.via ^ flying.at as u32).wrapping_mul(0x9e37_79b1);
        due.sort_unstable_by(|a, b| a.at.cmp(&b.at).then_with(|| rank(a).cmp(&rank(b))));
        due
    }

    /// Takes back the list of [`arrivals`](Self::arrivals), for its memory.
    pub(crate) fn reuse(&mut self, mut due: Vec<Flying>) {
        due.clear();
        self.due = due;
    }

    /// Lets a port of a switch run through the span up to `end`.
    pub(crate) fn run(&mut self, out: u32, end: Picos) {
        let due = self.arrivals(out, end);
        for flying in &due {
            self.drain(out, flying.at);
            self.enqueue(out, *flying);
        }
        self.drain(out, end);
        self.reuse(due);
        let port = &self.ports[out as usize];
        if !port.is_empty() {
            self.wakes.wake(out, port.busy_until);
        }
    }

    /// Sends the waiting packets that leave a port before `end`.
    fn drain(&mut self, out: u32, end: Picos) {
        loop {
            let port = &self.ports[out as usize];
            if port.busy_until >= end || port.is_empty() {
                return;
            }
            self.events += 1;
            self.forward(port.busy_until, out);
        }
    }

    fn enqueue(&mut self, out: u32, mut flying: Flying) {
        if self.is_lost(&flying, out) {
            return self.lose(&flying);
        }
        let port = &mut self.ports[out as usize];
        if port.busy_until <= flying.at && port.is_empty() {
            port.pass(&flying);
            return self.launch(flying.at, out, flying);
        }
        if port.admit(&self.discipline, &flying) {
            return;
        }
        // Only requests are trimmed, and only once.
        if self.discipline.trimming && flying.priority == Priority::Low {
            let last_hop = self.wiring.links[out as usize].last_hop;
            let place = if last_hop { TrimPoint::LastHop } else { TrimPoint::Fabric };
            self.packets.trim(&mut flying, self.trim_size, place);
            self.counted.trimmed += 1;
            self.counted.trimmed_granted += u64::from(flying.granted);
            if port.admit(&self.discipline, &flying) {
                return;
            }
        }
        self.packets.remove(&flying);
        self.counted.dropped += 1;
    }

    /// Sends the next packet of a port on its link.
    fn forward(&mut self, now: Picos, out: u32) {
        let last_hop = self.wiring.links[out as usize].last_hop;
        let port = &mut self.ports[out as usize];
        let Some((mut flying, marked)) = port.leave(&self.discipline, last_hop) else { return };
        if marked && !core::mem::replace(&mut flying.marked, true) {
            self.counted.marked += 1;
        }
        self.launch(now, out, flying);
    }

    /// Returns true if the link of an arriving packet is down, or the next one.
    pub(crate) fn is_lost(&self, flying: &Flying, unit: u32) -> bool {
        let down = |port: u32| self.ports[port as usize].percent == 0;
        self.failed && (down(flying.via) || !self.wiring.is_host(unit) && down(unit))
    }

    /// Removes a packet that is lost to a fault.
    pub(crate) fn lose(&mut self, flying: &Flying) {
        self.packets.remove(flying);
        self.counted.lost += 1;
        self.last_lost = self.last_lost.max(Some(flying.at));
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        After, Congestion, Control, Demand, Fault, Graph, Job, Part, Pattern, Scenario, Simulation, Step,
        Switching, Topology, Traffic,
    };
    use core::time::Duration;
    use std::sync::Arc;

    /// Spans and threads are optimizations: units that run through a span by themselves get the outcome of single
    /// points in time, and so do sections.
    #[test]
    fn spans_and_threads_change_no_outcome() {
        let until = Duration::from_micros(120);
        let incast = |control, switching| Scenario {
            topology: Topology::FatTree { hosts: 16, radix: 4 },
            traffic: Traffic::Incast { senders: 15, size: 10_000_000 },
            congestion: Congestion { control, ..Congestion::default() },
            switching,
            warm_up: Some(Duration::from_micros(40)),
            until,
            ..Scenario::default()
        };
        let weighted = Switching { weighted: true, ..Switching::default() };
        let dropping = Switching { trimming: false, drop_at: 1.0, ..Switching::default() };
        let failing = Scenario {
            topology: Topology::LeafSpine { hosts: 16, leaves: 4, spines: 4 },
            traffic: Traffic::Permutation { size: 10_000_000 },
            latency: Duration::from_nanos(300),
            warm_up: Some(Duration::from_micros(40)),
            faults: vec![Fault {
                part: Part::Spine(1),
                at: Duration::from_micros(20),
                until: Some(Duration::from_micros(50)),
                percent: 0,
            }],
            until,
            ..Scenario::default()
        };
        let sudden = Scenario { latency: Duration::ZERO, ..incast(Control::Both, Switching::default()) };
        for scenario in [incast(Control::Rccc, weighted), incast(Control::Nscc, dropping), failing, sudden] {
            let whole = Simulation::new(&scenario).unwrap();
            let mut single = Simulation::new(&scenario).unwrap();
            assert!(whole.window > 1000);
            single.window = 1;
            let (whole, mut single) = (whole.run(), single.run());
            assert!(whole.steady.is_some() && whole.counted.arrived > 100);
            // It is counted between spans.
            single.most_packets = whole.most_packets;
            assert_eq!(whole, single);
            for threads in [2, 3, 64] {
                assert_eq!(whole, Simulation::with_threads(&scenario, threads).unwrap().run());
            }
        }
    }

    /// Enough hosts are busy that sections run in threads of their own.
    #[test]
    fn threads_change_no_outcome() {
        let scenario = Scenario {
            topology: Topology::fat_tree(432),
            traffic: Traffic::Permutation { size: 100_000 },
            congestion: Congestion { control: Control::Both, ..Congestion::default() },
            watched: 300,
            ..Scenario::default()
        };
        let alone = Simulation::new(&scenario).unwrap().run();
        assert_eq!(alone, Simulation::with_threads(&scenario, 3).unwrap().run());
    }

    /// A trigger acts at once, so spans must not outlast what it does to another host.
    #[test]
    fn only_triggers_across_hosts_shorten_spans() {
        let triggered = |from: u32| {
            let text = format!(
                "Nodes 4\nConnections 2\nTriggers 1\n1->2 start 0 size 40000 send_done_trigger 1\n\
                 {from}->3 trigger 1 size 40000\ntrigger id 1 oneshot\n"
            );
            let topology = Topology::Single { hosts: 4 };
            let traffic = Traffic::Matrix(text.parse().unwrap());
            Simulation::new(&Scenario { topology, traffic, ..Scenario::default() }).unwrap()
        };
        assert_eq!(triggered(0).window, 1);
        let (whole, mut single) = (triggered(1), triggered(1));
        assert!(whole.window > 1000);
        single.window = 1;
        let (whole, single) = (whole.run(), single.run());
        assert_eq!(whole.flows, single.flows);
        assert!(whole.flows[1].completed.is_some());
    }

    /// The steps of a collective operation belong to the hosts at which their events happen.
    #[test]
    fn collective_operations_keep_whole_spans() {
        let mut graph = Graph::new(8);
        let pattern = Pattern::TreeAllReduce { size: 300_000, chunks: 3 };
        let job = Job { rounds: 2, gap: Duration::from_micros(3), ..Job::new("job", pattern) };
        job.add_to(&mut graph, 1e11, 1).unwrap();
        let scenario = |graph: Graph| Scenario {
            topology: Topology::LeafSpine { hosts: 8, leaves: 2, spines: 2 },
            traffic: Traffic::Graph(Arc::new(graph)),
            ..Scenario::default()
        };
        let simulation = || Simulation::new(&scenario(graph.clone())).unwrap();
        let (whole, mut single) = (simulation(), simulation());
        assert!(whole.window > 1000);
        single.window = 1;
        let (whole, single) = (whole.run(), single.run());
        assert_eq!(whole.flows, single.flows);
        assert_eq!(whole.jobs, single.jobs);
        assert!(whole.flows.iter().all(|flow| flow.completed.is_some()));
        assert_eq!(whole, Simulation::with_threads(&scenario(graph.clone()), 3).unwrap().run());

        // One of these flows starts another on a third host.
        let mut far = Graph::new(8);
        far.add_job("far").unwrap();
        let first = far.add_flow(Demand::new(0, 1, 1000)).unwrap();
        let second = far.add_flow(Demand::new(2, 3, 1000)).unwrap();
        far.wait(Step::Flow(second), After::Sent(first)).unwrap();
        assert_eq!(Simulation::new(&scenario(far)).unwrap().window, 1);
    }
}
