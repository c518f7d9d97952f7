//! Virtual time, and a network between addresses that loses, delays, marks and cuts packets as it is told.
//!
//! ```
//! use uet_emulator::fabric::Fabric;
//! use uet_model::{Packet, Time};
//!
//! let mut fabric = Fabric::new(7);
//! fabric.impair("drop ack 1".parse()?);
//!
//! let ack = bytes::Bytes::from_static(&[0x38, 0, 0, 0, 0, 0, 0, 7, 0x80, 1, 0x40, 1]);
//! let packet = Packet::from_wire([10, 0, 0, 1], [10, 0, 0, 2], ack)?;
//! fabric.send(Time(0), packet.clone());
//! assert_eq!(fabric.next(), None, "the first was lost");
//!
//! fabric.send(Time(500), packet.clone());
//! let at = fabric.next().unwrap();
//! assert_eq!(fabric.receive(at).unwrap().packet, packet);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod impairment;
mod queue;
mod syntax;

pub use impairment::{Effect, HELD, Impairment, Kind};
pub use queue::Queue;
pub use syntax::SyntaxError;

use crate::capture::Capture;
use crate::frame::Record;
use core::net::IpAddr;
use core::time::Duration;
use impairment::Active;
use std::collections::VecDeque;
use uet_model::{Packet, Priority, Time, TrimPoint};

/// A network between addresses, in virtual time: what is sent arrives after [`latency`](Self::latency), in the order in
/// which it was sent, but for its [impairments](Impairment).
///
/// The same seed and the same packets give the same, always.
#[derive(Debug)]
pub struct Fabric {
    /// How long a packet takes.
    pub latency: Duration,
    /// How many packets may be under way; one more is lost.
    pub capacity: usize,
    seed: u64,
    impairments: Vec<Active>,
    queue: Queue<Arrival>,
    held: VecDeque<Held>,
    capture: Option<Capture>,
    counters: Counters,
}

/// A packet at its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The packet.
    pub packet: Packet,
    /// Whether a bit of it has changed: its CRC is wrong, and the destination drops it.
    pub corrupt: bool,
}

/// A packet that waits for others to overtake it.
#[derive(Debug)]
struct Held {
    arrival: Arrival,
    /// How many more.
    behind: u16,
    until: Time,
}

/// What the network did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that were sent.
    pub sent: u64,
    /// Packets that arrived, damaged ones and copies included.
    pub arrived: u64,
    /// Packets that were lost by an impairment.
    pub lost: u64,
    /// Packets for which there was no room.
    pub full: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets delayed.
    pub delayed: u64,
    /// Packets held back.
    pub reordered: u64,
    /// Packets marked.
    pub marked: u64,
    /// Packets cut.
    pub trimmed: u64,
    /// Packets damaged.
    pub corrupt: u64,
}

/// What happens to one packet.
#[derive(Default)]
struct Fate {
    lost: bool,
    copies: u8,
    delay: Duration,
    behind: u16,
    marked: bool,
    trim: Option<(u16, TrimPoint)>,
    /// The bit that changes, counted from the first of UET.
    corrupt: Option<usize>,
    comment: String,
}

impl Fabric {
    /// A network with a latency of a microsecond and without impairments; their chance is made from the seed.
    pub fn new(seed: u64) -> Self {
        Fabric {
            latency: Duration::from_micros(1),
            capacity: 1 << 16,
            seed,
            impairments: Vec::new(),
            queue: Queue::default(),
            held: VecDeque::new(),
            capture: None,
            counters: Counters::default(),
        }
    }

    /// Adds an impairment. All of them see, and count, every packet; what several do to one packet adds up.
    pub fn impair(&mut self, impairment: Impairment) {
        // Its own seed, by its place. Neighbouring seeds give unrelated numbers.
        let seed = self.seed.wrapping_add(self.impairments.len() as u64);
        self.impairments.push(Active::new(impairment, seed));
    }

    /// Takes all impairments away.
    pub fn repair(&mut self) {
        self.impairments.clear();
    }

    /// Writes what is sent from now on. Each packet is written once, when it is sent and as the network changed it, with
    /// a comment that says what is done to it.
    pub fn capture(&mut self, capture: Capture) {
        self.capture = Some(capture);
    }

    /// Ends writing. Gives back the capture, which knows whether all could be written.
    pub fn end_capture(&mut self) -> Option<Capture> {
        self.capture.take()
    }

    /// What has happened so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// When something arrives next.
    pub fn next(&self) -> Option<Time> {
        let held = self.held.front().map(|held| held.until);
        [self.queue.next(), held].into_iter().flatten().min()
    }

    /// The next packet that has arrived by this time.
    pub fn receive(&mut self, now: Time) -> Option<Arrival> {
        while self.held.front().is_some_and(|held| held.until <= now) {
            let Some(held) = self.held.pop_front() else { break };
            self.queue.push(held.until, held.arrival);
        }
        let (_, arrival) = self.queue.pop(now)?;
        self.counters.arrived += 1;
        Some(arrival)
    }

    /// Sends a packet.
    pub fn send(&mut self, now: Time, packet: Packet) {
        self.send_flipped(now, packet, None);
    }

    /// Sends a packet of which this bit changes on its way, counted from the first of UET, whatever the impairments do.
    pub fn send_flipped(&mut self, now: Time, mut packet: Packet, bit: Option<usize>) {
        self.counters.sent += 1;
        let mut fate = self.fate(now, &packet);
        fate.corrupt = bit.or(fate.corrupt);
        if let Some(capture) = &mut self.capture {
            let comment = &fate.comment;
            let (marked, trim, corrupt) = (fate.marked, fate.trim, fate.corrupt);
            capture.write(&Record { at: now, packet: &packet, marked, trim, corrupt, comment });
        }
        if fate.lost {
            self.counters.lost += 1;
            return;
        }
        packet.marked |= fate.marked;
        if let Some((size, place)) = fate.trim {
            packet = match trimmed(&packet, size, place) {
                Some(packet) => packet,
                None => return,
            };
        }
        let at = now + self.latency + fate.delay;
        let pair = (packet.src, packet.dst);
        let arrival = Arrival { packet, corrupt: fate.corrupt.is_some() };
        for _ in 0..fate.copies {
            self.enqueue(at, arrival.clone());
        }
        match fate.behind {
            0 => {
                self.enqueue(at, arrival);
                self.overtake(pair, at);
            }
            behind if self.held.len() < self.capacity => {
                let until = now + HELD;
                self.held.push_back(Held { arrival, behind, until });
            }
            _ => self.counters.full += 1,
        }
    }

    /// What the impairments do to a packet. All are asked: what one counts does not depend on the others.
    fn fate(&mut self, now: Time, packet: &Packet) -> Fate {
        let mut fate = Fate::default();
        let counters = &mut self.counters;
        for active in &mut self.impairments {
            if !active.meets(now, packet) {
                continue;
            }
            match active.impairment.effect {
                Effect::Drop | Effect::Blackout(_) => fate.lost = true,
                Effect::Duplicate => {
                    fate.copies = fate.copies.saturating_add(1);
                    counters.duplicated += 1;
                }
                Effect::Delay(span) => {
                    fate.delay += span;
                    counters.delayed += 1;
                }
                Effect::Jitter(span) => {
                    let most = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
                    fate.delay += Duration::from_nanos(active.rng.u64(..=most));
                    counters.delayed += 1;
                }
                Effect::Reorder(behind) => {
                    fate.behind = fate.behind.max(behind);
                    counters.reordered += 1;
                }
                Effect::Mark => {
                    fate.marked = true;
                    counters.marked += 1;
                }
                Effect::Trim(size, place) => {
                    fate.trim = Some((size, place));
                    counters.trimmed += 1;
                }
                Effect::Corrupt => {
                    let bits = (packet.head.len() + packet.payload.len()).max(1) * 8;
                    fate.corrupt = Some(active.rng.usize(..bits));
                    counters.corrupt += 1;
                }
            }
            if self.capture.is_some() {
                let separator = if fate.comment.is_empty() { "" } else { "; " };
                fate.comment += &format!("{separator}{}", active.impairment);
            }
        }
        fate
    }

    fn enqueue(&mut self, at: Time, arrival: Arrival) {
        if self.queue.len() < self.capacity {
            self.queue.push(at, arrival);
        } else {
            self.counters.full += 1;
        }
    }

    /// A packet has passed those of its way that are held back.
    fn overtake(&mut self, pair: (IpAddr, IpAddr), at: Time) {
        let mut index = 0;
        while let Some(held) = self.held.get_mut(index) {
            if (held.arrival.packet.src, held.arrival.packet.dst) == pair {
                held.behind -= 1;
                if held.behind == 0 {
                    if let Some(held) = self.held.remove(index) {
                        self.enqueue(at, held.arrival);
                    }
                    continue;
                }
            }
            index += 1;
        }
    }
}

/// What a switch leaves of a packet: this many bytes behind the IP header, of which UDP has 8. `None` when its PDS header
/// is cut: nothing can be done with that, and no switch makes it.
fn trimmed(packet: &Packet, size: u16, place: TrimPoint) -> Option<Packet> {
    let mut bytes = packet.to_wire();
    bytes.truncate(usize::from(size).saturating_sub(8));
    let cut = Packet::from_wire_trimmed(packet.src, packet.dst, place, bytes).ok()?;
    let Packet { class, marked, entropy, .. } = *packet;
    Some(Packet { class, priority: Priority::Medium, marked, entropy, ..cut })
}
