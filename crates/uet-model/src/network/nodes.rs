use crate::network::fabric::{Arrival, Fabric};
use crate::network::impairment::Treatment;
use crate::pds::Pds;
use crate::{Fep, Packet, Time};
use core::net::IpAddr;
use core::ops::{Index, IndexMut};
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

/// An endpoint on a [`Network`]. The methods match those of [`Fep`] and [`Pds`].
pub trait Node {
    /// Returns the next packet to send.
    fn poll_transmit(&mut self, now: Time) -> Option<Packet>;
    /// Handles a packet that arrived.
    fn handle_input(&mut self, now: Time, packet: Packet);
    /// Handles a packet that arrived with a bit error. The default drops it, as a CRC check does.
    fn handle_damaged(&mut self, _now: Time, _packet: Packet) {}
    /// Returns the time of the next [`handle_timeout`](Self::handle_timeout).
    fn poll_timeout(&self) -> Option<Time>;
    /// Runs all timers that are due.
    fn handle_timeout(&mut self, now: Time);
}

/// An observer of a [`Network`]: a capture, a ladder diagram or a test record.
pub trait Observer<N> {
    /// Runs before and after each packet of a node, so that the observer can take the node's events in order.
    fn node(&mut self, _node: &mut N) {}
    /// Runs for each sent packet, with its treatment by the fabric.
    fn sent(&mut self, _now: Time, _packet: &Packet, _treatment: &Treatment) {}
}

impl<N> Observer<N> for () {}

/// Nodes on a [`Fabric`] with a virtual clock. The clock advances only in [`run`](Self::run) and its siblings. Idle
/// spans cost no CPU time.
#[derive(Debug)]
pub struct Network<N, O = ()> {
    /// The observer of the network.
    pub observer: O,
    fabric: Fabric,
    nodes: Vec<N>,
    /// The node number at each address; `None` for an address without a node.
    by_address: BTreeMap<IpAddr, Option<usize>>,
    /// Packets that arrived at addresses without a node.
    arrived: VecDeque<(Time, Packet)>,
    now: Time,
}

/// The maximum number of packets that wait for [`Network::poll_arrival`]. Further packets are lost.
const ARRIVED: usize = 1 << 16;

impl<N: Node, O: Observer<N> + Default> Network<N, O> {
    /// Creates a network without nodes, at time 0, and seeds its [fabric](Fabric).
    pub fn new(seed: u64) -> Self {
        let (nodes, by_address, arrived) = (Vec::new(), BTreeMap::new(), VecDeque::new());
        let fabric = Fabric::new(seed);
        Network { observer: O::default(), fabric, nodes, by_address, arrived, now: Time::ZERO }
    }
}

impl<N: Node, O: Observer<N>> Network<N, O> {
    /// Adds a node at an address and returns its number, counted from 0.
    pub fn add(&mut self, address: impl Into<IpAddr>, node: N) -> usize {
        self.by_address.insert(address.into(), Some(self.nodes.len()));
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Adds another address to a node.
    pub fn add_address(&mut self, number: usize, address: impl Into<IpAddr>) {
        self.by_address.insert(address.into(), Some(number));
    }

    /// Adds an address without a node. Packets to it are available from [`poll_arrival`](Self::poll_arrival).
    pub fn attach(&mut self, address: impl Into<IpAddr>) {
        self.by_address.insert(address.into(), None);
    }

    /// Returns the fabric between the nodes, for access to rules, latency and counters.
    pub fn fabric(&mut self) -> &mut Fabric {
        &mut self.fabric
    }

    /// Returns the nodes, ordered by number.
    pub fn nodes(&self) -> &[N] {
        &self.nodes
    }

    /// Returns the virtual time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Sends a packet from an address without a node.
    pub fn send(&mut self, packet: Packet) {
        self.send_flipped(packet, None);
    }

    /// Sends a packet and flips one bit of it in flight, in addition to the rules. Bits count from the first bit of
    /// UET.
    pub fn send_flipped(&mut self, packet: Packet, bit: Option<usize>) {
        let mut treatment = self.fabric.treat(self.now, &packet);
        treatment.corrupt = bit.or(treatment.corrupt);
        self.observer.sent(self.now, &packet, &treatment);
        self.fabric.carry(self.now, packet, treatment);
    }

    /// Returns the next packet that arrived at an address without a node, and its arrival time.
    pub fn poll_arrival(&mut self) -> Option<(Time, Packet)> {
        self.arrived.pop_front()
    }

    /// Runs the network for `span` of virtual time.
    pub fn run(&mut self, span: Duration) {
        self.run_until(self.now + span, |_| None::<()>);
    }

    /// Runs until `wanted` returns `Some`, at most until the time `until`. Calls `wanted` after each event and at the
    /// end.
    pub fn run_until<T>(&mut self, until: Time, mut wanted: impl FnMut(&mut Self) -> Option<T>) -> Option<T> {
        loop {
            self.transmit();
            if let Some(found) = wanted(self) {
                return Some(found);
            }
            match self.next_at().filter(|next| *next <= until) {
                Some(next) => self.advance(next),
                None => {
                    self.advance(until);
                    return wanted(self);
                }
            }
            while self.deliver() {}
            self.expire();
        }
    }

    /// Returns the time of the next arrival or timeout.
    pub fn next_at(&mut self) -> Option<Time> {
        let timeouts = self.nodes.iter().filter_map(N::poll_timeout).min();
        [self.fabric.next_at(), timeouts].into_iter().flatten().min()
    }

    /// Advances the clock to `to`. The clock never goes back.
    pub fn advance(&mut self, to: Time) {
        self.now = self.now.max(to);
    }

    /// Sends all packets that the nodes have ready. Returns true if there were any.
    pub fn transmit(&mut self) -> bool {
        let Network { observer, fabric, nodes, now, .. } = self;
        let mut any = false;
        for node in nodes {
            while let Some(packet) = node.poll_transmit(*now) {
                any = true;
                observer.node(node);
                let treatment = fabric.treat(*now, &packet);
                observer.sent(*now, &packet, &treatment);
                fabric.carry(*now, packet, treatment);
            }
            observer.node(node);
        }
        any
    }

    /// Delivers the next packet that is due. Returns false if there is none.
    pub fn deliver(&mut self) -> bool {
        let now = self.now;
        let Some(Arrival { packet, corrupt }) = self.fabric.receive(now) else { return false };
        match self.by_address.get(&packet.dst) {
            Some(Some(number)) if corrupt => self.nodes[*number].handle_damaged(now, packet),
            Some(Some(number)) => self.nodes[*number].handle_input(now, packet),
            Some(None) if !corrupt && self.arrived.len() < ARRIVED => self.arrived.push_back((now, packet)),
            _ => {}
        }
        true
    }

    /// Runs all timeouts that are due.
    pub fn expire(&mut self) {
        for node in &mut self.nodes {
            if node.poll_timeout().is_some_and(|at| at <= self.now) {
                node.handle_timeout(self.now);
            }
        }
    }
}

impl<N, O> Index<usize> for Network<N, O> {
    type Output = N;

    fn index(&self, number: usize) -> &N {
        &self.nodes[number]
    }
}

impl<N, O> IndexMut<usize> for Network<N, O> {
    fn index_mut(&mut self, number: usize) -> &mut N {
        &mut self.nodes[number]
    }
}

/// Implements `Node` for the layers of the model, whose methods have the same names.
macro_rules! node {
    ($($Layer:ty),*) => {$(
        impl Node for $Layer {
            fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
                self.poll_transmit(now)
            }
            fn handle_input(&mut self, now: Time, packet: Packet) {
                self.handle_input(now, packet);
            }
            fn poll_timeout(&self) -> Option<Time> {
                self.poll_timeout()
            }
            fn handle_timeout(&mut self, now: Time) {
                self.handle_timeout(now);
            }
        }
    )*};
}

node!(Pds, Fep);
