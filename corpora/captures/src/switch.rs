//! NICs on links with a rate, a switch with queues between them, and a capture at one of the NICs.

use core::net::IpAddr;
use core::time::Duration;
use std::collections::HashMap;
use uet_emulator::Nic;
use uet_model::network::{Fabric, Node, Observer, Treatment};
use uet_model::{Packet, Priority, Time, TrimPoint};

/// The rate of all links: 100 Gb/s.
const BYTES_PER_MICROSECOND: u64 = 12_500;

/// Bytes of a frame beside UET: Ethernet with preamble, checksum and gap, IPv4, UDP.
const AROUND: usize = 38 + 20 + 8;

/// Time through cables and switch.
const LATENCY: Duration = Duration::from_nanos(1_500);

/// Time from the arrival of a packet until the NIC has handled it.
const PROCESSING: Duration = Duration::from_nanos(500);

/// Queue length from which the switch marks packets, in bytes.
const MARK: u64 = 40_000;

/// Queue length from which the switch trims packets, in bytes.
const TRIM: u64 = 120_000;

/// Bytes behind the IP header that trimming leaves.
const TRIMMED: u16 = 80;

/// Returns the time that a UET packet of this length takes on a link.
fn on_wire(uet: usize) -> Duration {
    Duration::from_nanos((uet + AROUND) as u64 * 1_000 / BYTES_PER_MICROSECOND)
}

/// A NIC at its link. It sends one packet after the other.
pub(crate) struct Port {
    pub(crate) nic: Nic,
    /// The end of the current packet.
    busy: Option<Time>,
}

impl Port {
    pub(crate) fn new(nic: Nic) -> Self {
        Port { nic, busy: None }
    }
}

impl Node for Port {
    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if self.busy.is_some() {
            return None;
        }
        let packet = self.nic.poll_transmit(now)?;
        self.busy = Some(now + on_wire(packet.wire_len()));
        Some(packet)
    }

    fn handle_input(&mut self, now: Time, packet: Packet) {
        self.nic.handle_input(now, packet);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.busy.into_iter().chain(self.nic.poll_timeout()).min()
    }

    fn handle_timeout(&mut self, now: Time) {
        self.busy = self.busy.filter(|busy| *busy > now);
        if self.nic.poll_timeout().is_some_and(|at| at <= now) {
            self.nic.handle_timeout(now);
        }
    }
}

/// Puts a switch between the ports. Requests wait in the queue of their destination; other packets pass them. The switch
/// marks requests that meet a long queue, and trims them before the queue overflows.
pub(crate) fn connect(fabric: &mut Fabric) {
    let mut free: HashMap<IpAddr, Time> = HashMap::new();
    fabric.latency = LATENCY + PROCESSING;
    fabric.rule(move |now, packet, treatment| {
        let arrives = now + on_wire(packet.wire_len());
        treatment.delay += arrives - now;
        if treatment.lost || packet.priority != Priority::Low {
            return;
        }
        let free = free.entry(packet.dst).or_insert(arrives);
        let wait = (*free).max(arrives) - arrives;
        let queue = wait.as_nanos() as u64 * BYTES_PER_MICROSECOND / 1_000;
        treatment.marked |= queue > MARK;
        if queue > TRIM {
            treatment.trim = Some((TRIMMED, TrimPoint::LastHop));
        }
        if treatment.trim.is_none() {
            treatment.delay += wait + on_wire(packet.wire_len());
            *free = arrives + wait + on_wire(packet.wire_len());
        }
    });
}

/// A captured packet.
pub(crate) struct Captured {
    /// Time of its last bit at the link.
    pub(crate) at: Time,
    /// The packet as its sender sent it.
    pub(crate) packet: Packet,
    /// The changes of the switch.
    pub(crate) treatment: Treatment,
}

/// A capture at the link of a NIC: sent packets before their losses, received packets as they arrive.
#[derive(Default)]
pub(crate) struct Tap {
    pub(crate) address: Option<IpAddr>,
    pub(crate) captured: Vec<Captured>,
}

impl Observer<Port> for Tap {
    fn sent(&mut self, now: Time, packet: &Packet, treatment: &Treatment) {
        let (at, treatment) = if self.address == Some(packet.src) {
            (now + on_wire(packet.wire_len()), Treatment::default())
        } else if self.address == Some(packet.dst) && !treatment.lost {
            (now + treatment.delay + LATENCY, treatment.clone())
        } else {
            return;
        };
        self.captured.push(Captured { at, packet: packet.clone(), treatment });
    }
}
