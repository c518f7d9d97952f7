use crate::fabric::{Arrival, Fabric, Treatment};
use core::net::IpAddr;
use core::ops::{Index, IndexMut};
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use uet_model::pds::Pds;
use uet_model::{Fep, Packet, Time};

/// An endpoint on a [`Network`]. The methods are those of [`Fep`] and [`Pds`].
pub trait Node {
    /// Returns the next packet to send.
    fn poll_transmit(&mut self, now: Time) -> Option<Packet>;
    /// Takes a packet that arrived.
    fn handle_input(&mut self, now: Time, packet: Packet);
    /// Takes a packet that arrived with a bit error. By default it is dropped, as a CRC check does.
    fn handle_damaged(&mut self, _now: Time, _packet: Packet) {}
    /// Returns the time of the next [`handle_timeout`](Self::handle_timeout).
    fn poll_timeout(&self) -> Option<Time>;
    /// Does everything that is due.
    fn handle_timeout(&mut self, now: Time);
}

/// Watches a [`Network`]: a capture, a ladder, the record of a test.
pub trait Observer<N> {
    /// Called before and after each packet of a node, so that the observer can take the events of the node in order.
    fn node(&mut self, _node: &mut N) {}
    /// Called for each packet as it was sent, with what the fabric does to it.
    fn sent(&mut self, _now: Time, _packet: &Packet, _treatment: &Treatment) {}
}

impl<N> Observer<N> for () {}

/// Nodes on a [`Fabric`], with a virtual clock. Nothing happens outside [`run`](Self::run) and its siblings, and they take only
/// the time of the work to do.
#[derive(Debug)]
pub struct Network<N, O = ()> {
    /// Watches the network.
    pub observer: O,
    fabric: Fabric,
    nodes: Vec<N>,
    /// The number of the node at an address, or `None` for an address without a node.
    by_address: BTreeMap<IpAddr, Option<usize>>,
    /// Packets that arrived at addresses without a node.
    arrived: VecDeque<(Time, Packet)>,
    now: Time,
}

/// How many packets wait for [`Network::poll_arrival`]. Further packets are lost.
const ARRIVED: usize = 1 << 16;

impl<N: Node, O: Observer<N> + Default> Network<N, O> {
    /// Creates a network without nodes, at time 0. The seed is that of its [fabric](Fabric).
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

    /// Adds another address of a node.
    pub fn add_address(&mut self, number: usize, address: impl Into<IpAddr>) {
        self.by_address.insert(address.into(), Some(number));
    }

    /// Adds an address without a node. [`poll_arrival`](Self::poll_arrival) returns the packets that arrive there.
    pub fn attach(&mut self, address: impl Into<IpAddr>) {
        self.by_address.insert(address.into(), None);
    }

    /// Returns the fabric between the nodes: rules, latency, counters.
    pub fn fabric(&mut self) -> &mut Fabric {
        &mut self.fabric
    }

    /// Returns the nodes, by their numbers.
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

    /// Sends a packet and flips one bit of it on the way, counted from the first bit of UET, whatever the rules do.
    pub fn send_flipped(&mut self, packet: Packet, bit: Option<usize>) {
        let mut treatment = self.fabric.treat(self.now, &packet);
        treatment.corrupt = bit.or(treatment.corrupt);
        self.observer.sent(self.now, &packet, &treatment);
        self.fabric.carry(self.now, packet, treatment);
    }

    /// Returns the next packet that arrived at an address without a node, and its time.
    pub fn poll_arrival(&mut self) -> Option<(Time, Packet)> {
        self.arrived.pop_front()
    }

    /// Runs for a span of time.
    pub fn run(&mut self, span: Duration) {
        self.run_until(self.now + span, |_| None::<()>);
    }

    /// Runs until `wanted` returns something, at most until the time `until`. `wanted` is called after each event and at the
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

    /// Sets the clock forward. It never goes back.
    pub fn advance(&mut self, to: Time) {
        self.now = self.now.max(to);
    }

    /// Sends everything that the nodes have to send, and returns whether there was anything.
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

    /// Delivers the next packet that is due, and returns whether there was one.
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

    /// Runs the timeouts that are due.
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

/// The model's layers have methods of the same names.
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
