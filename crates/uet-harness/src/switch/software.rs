//! A small switch in software. It routes, queues, marks and trims as a [`Statement`] says, or wrongly on purpose. It
//! has no clock: its driver supplies time. [`EmbeddedSwitch`] drives it in virtual time, `emulate` between interfaces.

use super::fault::SwitchFault;
use super::network::{Arrived, Network};
use super::probe::{ETHERNET, Headers, set_ttl};
use super::statement::{Statement, TrimLength};
use core::net::IpAddr;
use core::time::Duration;
use fastrand::Rng;
use std::collections::VecDeque;
use std::io;
use uet_emulator::frame::Mac;
use uet_model::Time;
use uet_wire::{FrameBuilder, Options, PacketMut, Start};

/// The queues of a port, in the order in which they are served.
const CONTROL: usize = 0;
const TRIMMED: usize = 1;
const DATA: usize = 2;

/// The rate of a port without a stated one, in bytes per nanosecond: 100 Gbit/s.
const RATE: f64 = 12.5;

/// A queue holds this many times the bytes at which data is trimmed, or this many without trimming.
const ROOM: u64 = 16;
const ROOM_WITHOUT_TRIM: u64 = 4 << 20;

/// A port on the way out.
#[derive(Debug, Default)]
struct Out {
    queues: [VecDeque<Vec<u8>>; 3],
    waiting: [u64; 3],
    /// The frame on the link, and when its last byte leaves.
    leaving: Option<(Time, Vec<u8>)>,
}

/// A switch in software.
#[derive(Debug)]
pub struct SoftwareSwitch {
    statement: Statement,
    fault: Option<SwitchFault>,
    ports: Vec<Out>,
    count: u64,
    rng: Rng,
}

impl SoftwareSwitch {
    /// Creates a switch with the ports of a statement.
    pub fn new(statement: Statement, fault: Option<SwitchFault>, seed: u64) -> Self {
        let ports = statement.ports.iter().map(|_| Out::default()).collect();
        SoftwareSwitch { statement, fault, ports, count: 0, rng: Rng::with_seed(seed) }
    }

    fn has(&self, fault: SwitchFault) -> bool {
        self.fault == Some(fault)
    }

    /// Takes a frame from a port. Frames that are not UET go to all other ports.
    pub fn input(&mut self, now: Time, from: usize, mut frame: Vec<u8>) {
        let Some(headers) = Headers::read(&frame) else {
            for port in (0..self.ports.len()).filter(|port| *port != from) {
                self.enqueue(now, port, CONTROL, frame.clone());
            }
            return;
        };
        let (to, dscp, ecn) = (headers.ip.dst(), headers.ip.dscp(), headers.ip.ecn());
        let (ttl, request, headers_end) = (headers.ttl(), headers.request.is_some(), headers.ip_header());
        let Some(port) = self.route(to, &frame) else { return };
        self.count += 1;
        let tenth = self.count % 10 == 0;
        if !self.has(SwitchFault::KeepsTtl) {
            set_ttl(&mut frame, ttl.saturating_sub(self.statement.hops.unwrap_or(0)));
        }
        if self.has(SwitchFault::ClearsMarks) && ecn == 3 {
            self.edit(&mut frame, |packet| packet.set_ecn(2));
        }
        if self.has(SwitchFault::MarksNotEct) && ecn == 0 && request {
            self.edit(&mut frame, |packet| packet.set_ecn(3));
        }
        if self.has(SwitchFault::RemarksData) && dscp == self.statement.dscp.data {
            self.edit(&mut frame, |packet| packet.set_dscp(63));
        }
        if self.has(SwitchFault::RewritesPayload) && tenth {
            frame.last_mut().into_iter().for_each(|byte| *byte ^= 0x55);
        }
        if self.has(SwitchFault::LosesPackets) && tenth {
            return;
        }
        if self.has(SwitchFault::Floods) {
            let other = usize::from(port == 0);
            self.enqueue(now, other, DATA, frame.clone());
        }
        if self.has(SwitchFault::Duplicates) && tenth {
            self.admit(now, port, dscp, headers_end, frame.clone());
        }
        self.admit(now, port, dscp, headers_end, frame);
    }

    /// Returns the port for a packet. Equal paths are chosen by its entropy value.
    fn route(&self, to: IpAddr, frame: &[u8]) -> Option<usize> {
        let ports = self.statement.leads(to);
        let packet = uet_wire::Packet::parse_lax(Start::Eth, frame, &Options::default()).0;
        let hash = u32::from(packet.entropy_value()?).wrapping_mul(0x9e37_79b1) >> 16;
        if self.has(SwitchFault::PrefersOnePath) && hash % 4 != 0 {
            return ports.first().copied();
        }
        ports.get(hash as usize % ports.len().max(1)).copied()
    }

    fn edit(
        &self,
        frame: &mut [u8],
        edit: impl FnOnce(&mut PacketMut<'_>) -> Result<(), uet_wire::EditError>,
    ) {
        if let Ok(mut packet) = PacketMut::new(Start::Eth, frame, &Options::default()) {
            let _ = edit(&mut packet);
        }
    }

    /// Puts a packet into the queue of its class, trims it or drops it.
    fn admit(&mut self, now: Time, port: usize, dscp: u8, ip_header: usize, mut frame: Vec<u8>) {
        let of = self.statement.dscp;
        let waiting = self.ports.get(port).map_or(0, |out| out.waiting.iter().sum());
        let data = self.ports.get(port).map_or(0, |out| out.waiting[DATA]);
        let mut trimmable = dscp == of.data;
        match self.fault {
            Some(SwitchFault::TrimsUntrimmable) => trimmable |= Some(dscp) == of.untrimmable,
            Some(SwitchFault::TrimsAcks) => trimmable |= dscp == of.control,
            _ => {}
        }
        let full = |above: u64| data + frame.len() as u64 > above;
        if let Some(trim) = self.statement.trim.filter(|trim| trimmable && full(trim.above)) {
            let last = self.statement.ports.get(port).and_then(|port| port.last_hop) == Some(true);
            let dscp = match self.fault {
                Some(SwitchFault::WrongDscp) => dscp,
                _ if last => of.trimmed_last_hop,
                _ => of.trimmed,
            };
            let less = usize::from(self.has(SwitchFault::CutsOneByteMore));
            let keep = usize::from(trim.size).saturating_sub(ETHERNET + ip_header + less);
            let stale = (trim.length == TrimLength::Stale) != self.has(SwitchFault::RecomputesNothing);
            let Ok(packet) = PacketMut::new(Start::Eth, &mut frame, &Options::default()) else { return };
            let Ok(length) = (if stale { packet.trim_stale(keep, dscp) } else { packet.trim(keep, dscp) })
            else {
                return;
            };
            frame.truncate(length);
            if self.has(SwitchFault::DamagesTrims) {
                frame.last_mut().into_iter().for_each(|byte| *byte ^= 0x55);
            }
            if self.has(SwitchFault::LosesTrims) && self.count % 2 == 0 {
                return;
            }
            frame.resize(frame.len().max(FrameBuilder::SHORTEST), 0);
            let queue = if self.has(SwitchFault::QueuesTrims) { DATA } else { TRIMMED };
            return self.enqueue(now, port, queue, frame);
        }
        let room = self.statement.trim.map_or(ROOM_WITHOUT_TRIM, |trim| trim.above.saturating_mul(ROOM));
        if waiting + frame.len() as u64 > room && waiting > 0 {
            return;
        }
        let control = dscp == of.control && !self.has(SwitchFault::QueuesAcks);
        self.enqueue(now, port, if control { CONTROL } else { DATA }, frame);
    }

    fn enqueue(&mut self, now: Time, port: usize, queue: usize, frame: Vec<u8>) {
        let Some(out) = self.ports.get_mut(port) else { return };
        out.waiting[queue] += frame.len() as u64;
        if self.fault == Some(SwitchFault::ReordersFlow) && self.count % 10 == 0 {
            out.queues[queue].push_front(frame);
        } else {
            out.queues[queue].push_back(frame);
        }
        if out.leaving.is_none() {
            self.start(now, port);
        }
    }

    /// Puts the next frame of a port on its link, and marks it if many bytes wait behind it.
    fn start(&mut self, now: Time, port: usize) {
        let rate = self.statement.rate(port).unwrap_or(RATE);
        let Some(out) = self.ports.get_mut(port) else { return };
        let Some(queue) = out.queues.iter().position(|queue| !queue.is_empty()) else { return };
        let Some(mut frame) = out.queues[queue].pop_front() else { return };
        out.waiting[queue] -= frame.len() as u64;
        let behind = out.waiting[DATA];
        if let (DATA, Some(mark)) = (queue, self.statement.mark) {
            let late = if self.has(SwitchFault::MarksLate) { mark.to * 3 / 2 - mark.from } else { 0 };
            let (from, to) = (mark.from + late, mark.to + late);
            let chance = behind.saturating_sub(from) as f64 / (to - from).max(1) as f64;
            if behind > from && self.rng.f64() < chance {
                // It fails for packets that are not ECN-capable.
                self.edit(&mut frame, |packet| packet.mark_ce());
            }
        }
        let span = Duration::from_nanos((frame.len() as f64 / rate).ceil() as u64);
        if let Some(out) = self.ports.get_mut(port) {
            out.leaving = Some((now + span, frame));
        }
    }

    /// Returns when the next frame leaves.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.ports.iter().filter_map(|out| out.leaving.as_ref()).map(|(at, _)| *at).min()
    }

    /// Returns a frame that has left by now, with its time and port.
    pub fn poll_output(&mut self, now: Time) -> Option<Arrived> {
        let due = |out: &Out| out.leaving.as_ref().map(|(at, _)| *at).filter(|at| *at <= now);
        let ports = self.ports.iter().enumerate();
        let (at, port) = ports.filter_map(|(port, out)| Some((due(out)?, port))).min()?;
        let (_, frame) = self.ports.get_mut(port)?.leaving.take()?;
        self.start(at, port);
        Some(Arrived { at, port, frame })
    }
}

/// The time that a frame takes on a link, besides its length.
const FLIGHT: Duration = Duration::from_nanos(500);

/// The software switch with its links, in virtual time.
#[derive(Debug)]
pub struct EmbeddedSwitch {
    switch: SoftwareSwitch,
    now: Time,
    /// Frames on their way to the switch, by port: the time when each reaches it.
    links: Vec<VecDeque<(Time, Vec<u8>)>>,
    /// When the last frame of each port has left.
    free: Vec<Time>,
}

impl EmbeddedSwitch {
    /// Creates the network that a statement describes.
    pub fn new(statement: Statement, fault: Option<SwitchFault>, seed: u64) -> Self {
        let ports = statement.ports.len();
        let switch = SoftwareSwitch::new(statement, fault, seed);
        EmbeddedSwitch {
            switch,
            now: Time(0),
            links: vec![VecDeque::new(); ports],
            free: vec![Time(0); ports],
        }
    }
}

impl Network for EmbeddedSwitch {
    fn now(&self) -> Time {
        self.now
    }

    fn macs(&self, port: usize, _: IpAddr) -> [Mac; 2] {
        [[2, 0, 0, 0, 0, port as u8], [2, 0, 0, 0, 1, 0]]
    }

    fn send(&mut self, port: usize, frames: &[&[u8]]) -> io::Result<Vec<Time>> {
        let rate = self.switch.statement.rate(port).unwrap_or(RATE);
        let (Some(free), Some(link)) = (self.free.get_mut(port), self.links.get_mut(port)) else {
            return Err(io::Error::other(format!("there is no port {port}")));
        };
        let leaves = |frame: &&[u8]| {
            let span = Duration::from_nanos((frame.len() as f64 / rate).ceil() as u64);
            *free = (*free).max(self.now) + span;
            link.push_back((*free + FLIGHT, frame.to_vec()));
            *free
        };
        Ok(frames.iter().map(leaves).collect())
    }

    fn receive(&mut self, until: Time) -> io::Result<Option<Arrived>> {
        loop {
            if let Some(arrived) = self.switch.poll_output(self.now) {
                return Ok(Some(arrived));
            }
            let fronts = self.links.iter().enumerate();
            let enters = fronts.filter_map(|(port, link)| Some((link.front()?.0, port))).min();
            let leaves = self.switch.poll_timeout();
            let next = [enters.map(|(at, _)| at), leaves].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= until) else {
                self.now = self.now.max(until);
                return Ok(None);
            };
            self.now = self.now.max(next);
            // Frames leave before others enter at the same time.
            let Some((_, port)) = enters.filter(|(at, _)| leaves.is_none_or(|leaves| *at < leaves)) else {
                continue;
            };
            let frame = self.links.get_mut(port).and_then(VecDeque::pop_front);
            if let Some((at, frame)) = frame {
                self.switch.input(at, port, frame);
            }
        }
    }

    fn silence(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn is_real(&self) -> bool {
        false
    }
}
