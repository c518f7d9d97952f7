//! A switch with queues, and a capture at one of the NICs.

use core::net::IpAddr;
use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use uet_kernel::{Fabric, Treatment};
use uet_model::{Packet, Priority, Time, TrimPoint};

/// A captured packet.
#[derive(Clone, Debug)]
pub struct Captured {
    /// Time of its last bit at the NIC of the capture.
    pub at: Time,
    /// The packet as its sender sent it.
    pub packet: Packet,
    /// True if the switch marked it.
    pub marked: bool,
    /// Its size behind the IP header if it was trimmed, and the place.
    pub trim: Option<(u16, TrimPoint)>,
}

/// A switch between all NICs. Each link carries 100 Gb/s. Low-priority packets wait in the queue of their destination;
/// others pass them. The switch marks, and at last trims, packets that meet a long queue.
#[derive(Debug)]
pub struct Switch {
    /// The address of the NIC of the capture.
    tap: IpAddr,
    /// The time when the link from each NIC is free.
    up: HashMap<IpAddr, u64>,
    /// The time when the link to each NIC is free.
    down: HashMap<IpAddr, u64>,
    captured: Arc<Mutex<Vec<Captured>>>,
}

/// Nanoseconds from NIC to NIC on an idle switch: cables, switch and processing.
const LATENCY: u64 = 2_000;

/// Bytes of a frame beside UET: Ethernet with preamble, checksum and gap, IPv4, UDP.
const AROUND: usize = 38 + 20 + 8;

/// The length of a queue, in nanoseconds, from which the switch marks packets: 50 KB.
const MARK: u64 = 4_000;

/// The length of a queue from which the switch trims packets: 125 KB.
const TRIM: u64 = 10_000;

/// Bytes behind the IP header that trimming leaves.
const TRIMMED: u16 = 80;

/// Returns the time of a packet on a link, in nanoseconds.
fn on_wire(uet: usize) -> u64 {
    ((uet + AROUND) * 8 / 100) as u64
}

impl Switch {
    /// Connects the NICs of a network, and captures at the one with this address. Add impairments before.
    pub fn connect(fabric: &mut Fabric, tap: impl Into<IpAddr>) -> Arc<Mutex<Vec<Captured>>> {
        let captured = Arc::default();
        let mut switch = Switch {
            tap: tap.into(),
            up: HashMap::new(),
            down: HashMap::new(),
            captured: Arc::clone(&captured),
        };
        fabric.latency = Duration::from_nanos(LATENCY);
        fabric.rule(move |now, packet, treatment| switch.pass(now, packet, treatment));
        captured
    }

    fn pass(&mut self, now: Time, packet: &Packet, treatment: &mut Treatment) {
        let up = self.up.entry(packet.src).or_default();
        let sent = now.0.max(*up) + on_wire(packet.wire_len());
        *up = sent;
        if packet.src == self.tap {
            self.capture(sent, packet, &Treatment::default());
        }
        if treatment.lost {
            return;
        }
        let down = self.down.entry(packet.dst).or_default();
        let queue = down.saturating_sub(sent);
        let waits = packet.priority == Priority::Low;
        treatment.marked |= waits && queue > MARK;
        if waits && queue > TRIM {
            treatment.trim = Some((TRIMMED, TrimPoint::LastHop));
        }
        let left = match treatment.trim {
            Some((size, _)) => sent + on_wire(usize::from(size) - 8),
            None if waits => {
                *down = sent.max(*down) + on_wire(packet.wire_len());
                *down
            }
            None => sent + on_wire(packet.wire_len()),
        };
        treatment.delay += Duration::from_nanos(left - now.0);
        if packet.dst == self.tap {
            self.capture(left + LATENCY, packet, treatment);
        }
    }

    fn capture(&self, at: u64, packet: &Packet, treatment: &Treatment) {
        let Treatment { marked, trim, .. } = *treatment;
        let captured = Captured { at: Time(at), packet: packet.clone(), marked, trim };
        self.captured.lock().unwrap_or_else(PoisonError::into_inner).push(captured);
    }
}
