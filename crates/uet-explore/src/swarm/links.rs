//! The links between endpoints, and all that can befall a packet there.

use super::plan::micros;
use core::net::IpAddr;
use core::time::Duration;
use fastrand::Rng;
use std::collections::HashMap;
use uet_conformance::draw::Source;
use uet_model::network::Treatment;
use uet_model::{Packet, Time, TrimPoint};

/// The longest time that a packet or a duplicate of it spends in the network.
pub(crate) const LIFETIME: Duration = Duration::from_millis(2);

/// One direction between two endpoints. Probabilities are per packet.
#[derive(Clone, Copy, Default)]
struct Link {
    delay: Duration,
    jitter: Duration,
    loss: f64,
    copy: f64,
    reorder: f64,
    mark: f64,
    trim: f64,
    corrupt: f64,
}

/// A time in which no packet crosses between two sides.
#[derive(Clone, Copy)]
struct Partition {
    from: Time,
    to: Time,
    /// A bit for each endpoint of one side.
    side: u32,
}

/// All links of a run.
pub(crate) struct Links {
    numbers: HashMap<IpAddr, usize>,
    links: Vec<Link>,
    partitions: Vec<Partition>,
    /// The time from which the network only delays.
    until: Time,
    rng: Rng,
}

impl Links {
    /// Draws the links: endpoints hang on switches, some links are worse than others, and partitions come and go.
    pub(crate) fn draw(mut rng: Rng, addresses: &[IpAddr], start: Time, until: Time) -> Self {
        let count = addresses.len();
        let switches: Vec<u32> = (0..count).map(|_| rng.u32(..4)).collect();
        // Rates of the whole network: none, some, or many.
        let mut rate = |most: f64| match rng.u32(..3) {
            0 => 0.0,
            1 => most * 0.05,
            _ => most * rng.f64(),
        };
        let (loss, copy, reorder) = (rate(0.05), rate(0.03), rate(0.03));
        let (mark, trim, corrupt) = (rate(0.3), rate(0.05), rate(0.02));
        let jitter = micros(&mut rng, 0..=8);
        let hop = Duration::from_nanos(rng.u64(100..2_000));
        let mut links = Vec::new();
        for from in 0..count {
            for to in 0..count {
                let hops = 1 + u32::from(switches[from] != switches[to]) * 2;
                let worse = rng.pick(&[0.5, 1.0, 1.0, 1.0, 3.0]);
                links.push(Link {
                    delay: hop * hops,
                    jitter: if rng.one_in(3) { jitter } else { Duration::ZERO },
                    loss: loss * worse,
                    copy: copy * worse,
                    reorder: reorder * worse,
                    mark: mark * worse,
                    trim: trim * worse,
                    corrupt: corrupt * worse,
                });
            }
        }
        let numbers = addresses.iter().enumerate().map(|(number, address)| (*address, number)).collect();
        let mut links = Links { numbers, links, partitions: Vec::new(), until, rng };
        if links.rng.one_in(3) {
            for _ in 0..links.rng.usize(1..=3) {
                let from = Time(links.rng.u64(start.0..until.0));
                let span = micros(&mut links.rng, 50..=3_000);
                let side = links.rng.u32(..);
                links.partition(from, from + span, side);
            }
        }
        links
    }

    /// Cuts the endpoints of a side off from the others for a while.
    pub(crate) fn partition(&mut self, from: Time, to: Time, side: u32) {
        self.partitions.push(Partition { from, to: to.min(self.until), side });
    }

    /// Decides the fate of a packet.
    pub(crate) fn treat(&mut self, now: Time, packet: &Packet, treatment: &mut Treatment) {
        let (Some(from), Some(to)) = (self.numbers.get(&packet.src), self.numbers.get(&packet.dst)) else {
            return;
        };
        let Link { delay, jitter, loss, copy, reorder, mark, trim, corrupt } =
            self.links[from * self.numbers.len() + to];
        treatment.delay = delay;
        if now >= self.until {
            return;
        }
        let parted = |one: &Partition| {
            (one.from..one.to).contains(&now) && (one.side >> from) & 1 != (one.side >> to) & 1
        };
        let rng = &mut self.rng;
        let mut chance = |probability: f64| probability > 0.0 && rng.f64() < probability;
        treatment.lost = chance(loss) || self.partitions.iter().any(parted);
        let (copied, held, trimmed, damaged) = (chance(copy), chance(reorder), chance(trim), chance(corrupt));
        treatment.marked = chance(mark);
        treatment.delay += Duration::from_nanos(rng.u64(..=jitter.as_nanos() as u64));
        if copied {
            treatment.copies.push(treatment.delay + micros(rng, 0..=300));
        }
        if held {
            treatment.behind = rng.u16(1..=8);
        }
        let size = rng.pick(&[64u16, 96, 256]);
        if trimmed && packet.wire_len() + 8 > usize::from(size) {
            treatment.trim = Some((size, rng.pick(&[TrimPoint::Fabric, TrimPoint::LastHop])));
        }
        if damaged {
            treatment.corrupt = Some(rng.usize(..packet.wire_len().max(1) * 8));
        }
    }
}
