use crate::network::agenda::Agenda;
use crate::network::impairment::{Active, Impairment, Treatment};
use crate::network::stream;
use crate::{Packet, Time};
use core::fmt;
use core::net::IpAddr;
use core::time::Duration;
use std::collections::VecDeque;

/// A network between addresses, in virtual time. Packets arrive after [`latency`](Self::latency) and in sending order,
/// unless a rule changes that.
///
/// Runs are deterministic: equal seeds and equal packets give equal results.
///
/// ```
/// use uet_model::network::Fabric;
/// use uet_model::{Packet, Time};
///
/// let mut fabric = Fabric::new(7);
/// fabric.impair("drop ack 1".parse()?);
///
/// let ack = &[0x38, 0, 0, 0, 0, 0, 0, 7, 0x80, 1, 0x40, 1];
/// let packet = Packet::from_wire([10, 0, 0, 1], [10, 0, 0, 2], ack[..].into())?;
/// fabric.send(Time(0), packet.clone());
/// assert_eq!(fabric.next_at(), None, "the first was lost");
///
/// fabric.send(Time(500), packet.clone());
/// let at = fabric.next_at().unwrap();
/// assert_eq!(fabric.receive(at).unwrap().packet, packet);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Fabric {
    /// The latency of the network.
    pub latency: Duration,
    /// The maximum number of packets in flight. Further packets are lost.
    pub capacity: usize,
    seed: u64,
    rules: Vec<Rule>,
    agenda: Agenda<Arrival>,
    held: VecDeque<Held>,
    counters: PacketCounts,
}

type Decide = dyn FnMut(Time, &Packet, &mut Treatment) + Send;

struct Rule(Box<Decide>);

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rule")
    }
}

/// A packet at its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The packet as it arrived.
    pub packet: Packet,
    /// True if a bit has flipped. The CRC is then wrong, and the destination drops the packet.
    pub corrupt: bool,
}

/// A packet that waits for later packets to overtake it.
#[derive(Debug)]
struct Held {
    arrival: Arrival,
    /// The number of packets that still overtake it.
    behind: u16,
    until: Time,
}

/// The longest time that a reordered packet waits, 1 ms.
pub const HELD: Duration = Duration::from_millis(1);

/// The counters of the network, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Sent packets.
    pub sent: u64,
    /// Arrived packets, including damaged packets and duplicates.
    pub arrived: u64,
    /// Packets dropped by a rule.
    pub lost: u64,
    /// Packets dropped because the network was full.
    pub full: u64,
    /// Duplicates made by a rule.
    pub duplicated: u64,
    /// Delayed packets.
    pub delayed: u64,
    /// Reordered packets.
    pub reordered: u64,
    /// Marked packets.
    pub marked: u64,
    /// Trimmed packets.
    pub trimmed: u64,
    /// Damaged packets.
    pub corrupt: u64,
}

impl Fabric {
    /// Creates a network with a latency of one microsecond and no rules. `seed` seeds the random streams of the rules.
    pub fn new(seed: u64) -> Self {
        Fabric {
            latency: Duration::from_micros(1),
            capacity: 1 << 16,
            seed,
            rules: Vec::new(),
            agenda: Agenda::default(),
            held: VecDeque::new(),
            counters: PacketCounts::default(),
        }
    }

    /// Adds an impairment with its own random stream. Every impairment sees and counts every packet.
    pub fn impair(&mut self, impairment: Impairment) {
        let mut active = Active::new(impairment, stream(self.seed, self.rules.len() as u64));
        self.rule(move |now, packet, treatment| active.apply(now, packet, treatment));
    }

    /// Adds a rule that [`Impairment`] cannot express. Rules apply in insertion order.
    pub fn rule(&mut self, rule: impl FnMut(Time, &Packet, &mut Treatment) + Send + 'static) {
        self.rules.push(Rule(Box::new(rule)));
    }

    /// Removes all rules.
    pub fn repair(&mut self) {
        self.rules.clear();
    }

    /// Returns the counters.
    pub fn counters(&self) -> PacketCounts {
        self.counters
    }

    /// Returns the time of the next arrival.
    pub fn next_at(&mut self) -> Option<Time> {
        let held = self.held.front().map(|held| held.until);
        [self.agenda.next_at().map(Time), held].into_iter().flatten().min()
    }

    /// Returns the next packet that has arrived by the time `now`.
    pub fn receive(&mut self, now: Time) -> Option<Arrival> {
        while self.held.front().is_some_and(|held| held.until <= now) {
            let Some(held) = self.held.pop_front() else { break };
            self.agenda.add(held.until.0, held.arrival);
        }
        let (_, arrival) = self.agenda.pop(now.0)?;
        self.counters.arrived += 1;
        Some(arrival)
    }

    /// Sends a packet with the treatment that the rules choose. Combines [`treat`](Self::treat) and
    /// [`carry`](Self::carry).
    pub fn send(&mut self, now: Time, packet: Packet) {
        let treatment = self.treat(now, &packet);
        self.carry(now, packet, treatment);
    }

    /// Returns the treatment of a packet by all rules. The rules count each call as a packet.
    pub fn treat(&mut self, now: Time, packet: &Packet) -> Treatment {
        let mut treatment = Treatment::default();
        for Rule(rule) in &mut self.rules {
            rule(now, packet, &mut treatment);
        }
        treatment
    }

    /// Sends a packet with the given treatment, without applying the rules.
    pub fn carry(&mut self, now: Time, packet: Packet, treatment: Treatment) {
        self.count(&treatment);
        if treatment.lost {
            return;
        }
        let pair = (packet.src, packet.dst);
        let Some(packet) = treatment.apply(packet) else { return };
        let arrival = Arrival { packet, corrupt: treatment.corrupt.is_some() };
        let at = now + self.latency;
        for delay in treatment.copies {
            self.enqueue(at + delay, arrival.clone());
        }
        let at = at + treatment.delay;
        match treatment.behind {
            0 => {
                self.enqueue(at, arrival);
                self.overtake(pair, at);
            }
            behind if self.held.len() < self.capacity => {
                self.held.push_back(Held { arrival, behind, until: now + HELD });
            }
            _ => self.counters.full += 1,
        }
    }

    fn count(&mut self, treatment: &Treatment) {
        let counters = &mut self.counters;
        counters.sent += 1;
        counters.lost += u64::from(treatment.lost);
        counters.duplicated += treatment.copies.len() as u64;
        counters.delayed += u64::from(!treatment.delay.is_zero());
        counters.reordered += u64::from(treatment.behind > 0);
        counters.marked += u64::from(treatment.marked);
        counters.trimmed += u64::from(treatment.trim.is_some());
        counters.corrupt += u64::from(treatment.corrupt.is_some());
    }

    fn enqueue(&mut self, at: Time, arrival: Arrival) {
        if self.agenda.len() < self.capacity {
            self.agenda.add(at.0, arrival);
        } else {
            self.counters.full += 1;
        }
    }

    /// Counts a packet that overtakes the packets held between the same addresses.
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
