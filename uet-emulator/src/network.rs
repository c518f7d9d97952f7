//! NICs on one fabric, in virtual time.

use crate::fabric::{Arrival, Fabric};
use crate::nic::Nic;
use core::net::IpAddr;
use core::ops::{Index, IndexMut};
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use uet_model::ladder::{Fate, Ladder};
use uet_model::ses::{Done, OperationError, OperationId, ReceiveId, Received};
use uet_model::{Packet, Time};

/// NICs on one fabric, in virtual time. Nothing happens but in [`run`](Self::run) and its like, and those take no longer
/// than the work that there is.
///
/// ```
/// use bytes::Bytes;
/// use uet_emulator::{Config, Network, Nic};
/// use uet_model::ses::{Access, Key, Operation, Peer, Process, Region, ResourceIndex, Work};
///
/// let mut net = Network::new(7);
/// let a = net.add(Nic::new([10, 0, 0, 1], Config::default())?);
/// let b = net.add(Nic::new([10, 0, 0, 2], Config::default())?);
///
/// let index = ResourceIndex { process: Process::Relative { job: 101, pid: 2 }, index: 0 };
/// let region = Region { key: Key(7), base: 0, access: Access::ALL, data: vec![0; 8] };
/// let region = net[b].expose(index, region)?;
/// let (peer, data) = (Peer::relative([10, 0, 0, 2], 101, 2), Bytes::from_static(b"hello"));
/// let write = net[a].post(Operation::new(peer, Work::Write { key: Key(7), offset: 1, data }))?;
///
/// assert!(net.operation(a, write).is_some_and(|result| result.is_ok()));
/// assert_eq!(net[b].memory(region), Some(&b"\0hello\0\0"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Network {
    fabric: Fabric,
    nics: Vec<Nic>,
    by_address: BTreeMap<IpAddr, Destination>,
    /// What has arrived at addresses without a NIC.
    arrived: VecDeque<(Time, Packet)>,
    now: Time,
    ladder: Option<Ladder>,
}

/// Names a NIC of a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NicId(usize);

#[derive(Clone, Copy, Debug)]
enum Destination {
    Nic(usize),
    Outside,
}

/// How long [`Network::operation`] and [`Network::received`] wait, in virtual time.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// How many packets wait for [`Network::poll_arrival`]; one more is lost.
const ARRIVED: usize = 1 << 16;

impl Network {
    /// A network without NICs. The seed is that of its [fabric](Fabric).
    pub fn new(seed: u64) -> Self {
        let fabric = Fabric::new(seed);
        let (nics, by_address, arrived) = (Vec::new(), BTreeMap::new(), VecDeque::new());
        Network { fabric, nics, by_address, arrived, now: Time::ZERO, ladder: None }
    }

    /// Adds a NIC, under its address.
    pub fn add(&mut self, nic: Nic) -> NicId {
        let number = self.nics.len();
        self.by_address.insert(nic.address(), Destination::Nic(number));
        self.nics.push(nic);
        NicId(number)
    }

    /// Adds an address without a NIC: what arrives there is for [`poll_arrival`](Self::poll_arrival).
    pub fn attach(&mut self, address: impl Into<IpAddr>) {
        self.by_address.insert(address.into(), Destination::Outside);
    }

    /// What lies between: impairments, a capture, counters.
    pub fn fabric(&mut self) -> &mut Fabric {
        &mut self.fabric
    }

    /// Draws what passes and what the NICs decide; the latter where their parameter `event_capacity` has room for it.
    pub fn draw(&mut self, ladder: Ladder) {
        self.ladder = Some(ladder);
    }

    /// Ends drawing.
    pub fn end_drawing(&mut self) -> Option<Ladder> {
        self.ladder.take()
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Sends a packet from an address without a NIC.
    pub fn send(&mut self, packet: Packet) {
        self.send_flipped(packet, None);
    }

    /// The same of a packet of which this bit changes on its way, counted from the first of UET.
    pub fn send_flipped(&mut self, packet: Packet, bit: Option<usize>) {
        self.fabric.send_flipped(self.now, packet, bit);
    }

    /// The next packet that has arrived at an address without a NIC.
    pub fn poll_arrival(&mut self) -> Option<(Time, Packet)> {
        self.arrived.pop_front()
    }

    /// Lets this much time pass.
    pub fn run(&mut self, span: Duration) {
        let until = self.now + span;
        self.run_until(until, |_| None::<()>);
    }

    /// Lets time pass until there is what `wanted` looks for, but not beyond `until`. Whatever happens is followed by a
    /// look, and so is the end.
    pub fn run_until<T>(&mut self, until: Time, mut wanted: impl FnMut(&mut Self) -> Option<T>) -> Option<T> {
        loop {
            self.transmit();
            if let Some(found) = wanted(self) {
                return Some(found);
            }
            match self.next().filter(|next| *next <= until) {
                Some(next) => self.now = self.now.max(next),
                None => {
                    self.now = self.now.max(until);
                    return wanted(self);
                }
            }
            self.step();
        }
    }

    /// Waits for the end of an operation. `None` when it has not ended after [`PATIENCE`].
    pub fn operation(&mut self, nic: NicId, operation: OperationId) -> Option<Result<Done, OperationError>> {
        self.run_until(self.now + PATIENCE, |net| net[nic].operation(operation))
    }

    /// Waits for a receive to be met by a send. `None` when it has not been after [`PATIENCE`].
    pub fn received(&mut self, nic: NicId, receive: ReceiveId) -> Option<Received> {
        self.run_until(self.now + PATIENCE, |net| net[nic].received(receive))
    }

    /// When something happens next.
    fn next(&mut self) -> Option<Time> {
        let timeouts = self.nics.iter().filter_map(Nic::poll_timeout).min();
        [self.fabric.next(), timeouts].into_iter().flatten().min()
    }

    fn transmit(&mut self) {
        let Network { fabric, nics, ladder, now, .. } = self;
        for nic in nics {
            while let Some(packet) = nic.poll_transmit(*now) {
                let Some(ladder) = ladder else {
                    fabric.send(*now, packet);
                    continue;
                };
                note(ladder, nic);
                let (sent, lost) = (packet.clone(), fabric.counters().lost);
                fabric.send(*now, packet);
                let fate = if fabric.counters().lost > lost { Fate::Lost } else { Fate::Arrives };
                ladder.packet(*now, &sent, fate);
            }
            ladder.iter_mut().for_each(|ladder| note(ladder, nic));
        }
    }

    /// What happens now.
    fn step(&mut self) {
        let now = self.now;
        while let Some(Arrival { packet, corrupt }) = self.fabric.receive(now) {
            match self.by_address.get(&packet.dst) {
                Some(Destination::Nic(number)) => match self.nics.get_mut(*number) {
                    Some(nic) if corrupt => nic.handle_damaged(now, packet, "bad CRC"),
                    Some(nic) => nic.handle_input(now, packet),
                    None => {}
                },
                Some(Destination::Outside) if !corrupt && self.arrived.len() < ARRIVED => {
                    self.arrived.push_back((now, packet));
                }
                _ => {}
            }
        }
        for nic in &mut self.nics {
            if nic.poll_timeout().is_some_and(|at| at <= now) {
                nic.handle_timeout(now);
            }
        }
    }
}

/// What a NIC has decided goes into the ladder, on its side.
fn note(ladder: &mut Ladder, nic: &mut Nic) {
    let address = nic.address();
    while let Some(event) = nic.poll_event() {
        ladder.note(event.at(), address, event);
    }
}

impl Index<NicId> for Network {
    type Output = Nic;

    fn index(&self, NicId(number): NicId) -> &Nic {
        &self.nics[number]
    }
}

impl IndexMut<NicId> for Network {
    fn index_mut(&mut self, NicId(number): NicId) -> &mut Nic {
        &mut self.nics[number]
    }
}
