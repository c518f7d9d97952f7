//! An estimate of retransmissions, with one packet of each source in flight.

use crate::demand::Start;
use crate::scenario::Scenario;

/// The bytes that a NACK takes on a link, and a request without payload.
const SHORT: f64 = 40.0 + 8.0 + 16.0;

impl Scenario {
    /// Returns the approximate number of retransmissions per arrived packet in an incast in which each source keeps one
    /// full packet in flight. No window is smaller (`CC-WINDOW-003`), so NSCC alone cannot do much better. Returns
    /// `None` if all these packets fit in the queue, there is no single receiver, or it grants credit: sources then
    /// wait with nothing in flight. The number is infinite if trimmed packets alone fill the link.
    ///
    /// A packet that arrives takes its round trip and waits in the full queue. A trimmed packet returns without
    /// waiting, and its source retransmits it at once. Let t be the round trip of a source, and p the share of trimmed
    /// packets. The source then sends a packet every t + (1 - p) * wait. Whole packets and the rest of trimmed ones
    /// together fill the link. This condition determines p, and the result is p / (1 - p). An equal p for all sources
    /// is a simplification. Sources in step with the queue do slightly better, others worse.
    ///
    /// ```
    /// use uet_simulate::{Scenario, Topology, Traffic};
    ///
    /// let incast = |senders| Scenario {
    ///     topology: Topology::fat_tree(senders + 1),
    ///     traffic: Traffic::Incast { senders, size: 2_000_000 },
    ///     ..Scenario::default()
    /// };
    /// assert_eq!(incast(32).retransmission_estimate(), None, "they fit");
    /// assert!(incast(128).retransmission_estimate().unwrap() > 1.0);
    /// ```
    pub fn retransmission_estimate(&self) -> Option<f64> {
        let demands = self.traffic.demands(self.topology.hosts(), self.seed).ok()?;
        let to = demands.first()?.to;
        let mut senders: Vec<u32> = demands.iter().map(|demand| demand.from).collect();
        senders.dedup();
        let at_once = demands.iter().all(|demand| demand.to == to && matches!(demand.start, Start::At(_)));
        let credit = self.congestion.control.grants_credit();
        if !at_once || senders.len() != demands.len() || !self.switching.trimming || credit {
            return None;
        }
        let (packet, byte) = (f64::from(self.full_packet()), 8.0 / self.rate as f64);
        // The queue accepts a packet as long as it fits behind the packets already accepted.
        let waiting = ((self.switching.trim_at * self.plane_bdp() / packet).floor() - 1.0).max(0.0) * packet;
        let trip = |from: u32| {
            let links = f64::from(self.topology.distance(from, to));
            let wires = 2.0 * links * self.latency.as_secs_f64();
            wires + byte * ((links - 1.0) * packet + SHORT + links * SHORT)
        };
        let trips: Vec<f64> = senders.iter().map(|from| trip(*from)).collect();
        // The link load if a share p of all packets is trimmed.
        let load = |p: f64| -> f64 {
            let packets: f64 = trips.iter().map(|trip| 1.0 / (trip + (1.0 - p) * waiting * byte)).sum();
            packets
                * ((1.0 - p) * packet + p * (SHORT.max(f64::from(self.switching.trim_size) + 40.0)))
                * byte
        };
        if load(0.0) <= 1.0 {
            return None;
        }
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if load(middle) > 1.0 { low = middle } else { high = middle }
        }
        Some(low / (1.0 - low))
    }
}
