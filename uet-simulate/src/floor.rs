//! What no window can avoid: with one packet of each source under way, there may still be more of them than fit.

use crate::scenario::Scenario;
use crate::traffic::Start;

/// What a NACK, and what a request of UET and no more, takes of a link.
const SHORT: f64 = 40.0 + 8.0 + 16.0;

impl Scenario {
    /// About how many retransmissions there are per packet that arrives when many send to one and each always has exactly one full
    /// packet under way. No window is smaller (`CC-WINDOW-003`), so NSCC alone cannot do with much fewer. `None` where all these
    /// packets fit, or there is no single receiver.
    ///
    /// A packet that arrives takes its round trip and waits in the full queue; one that is trimmed comes back without waiting and
    /// is sent again at once. So of a source that is t from the receiver, with a share p of all packets trimmed, one leaves every
    /// t + (1 - p) * wait. All of them together fill the link: whole packets, and what is left of trimmed ones. There is one p
    /// for which this is so, and p / (1 - p) is the number. That chance is the same for all is a simplification: sources that keep
    /// step with the queue do a little better, and those that do not, worse.
    ///
    /// ```
    /// use uet_simulate::{Scenario, Topology, Traffic};
    ///
    /// let incast = |senders| Scenario {
    ///     topology: Topology::fat_tree(senders + 1),
    ///     traffic: Traffic::Incast { senders, size: 2_000_000 },
    ///     ..Scenario::default()
    /// };
    /// assert_eq!(incast(32).retransmission_floor(), None, "they fit");
    /// assert!(incast(128).retransmission_floor().unwrap() > 1.0);
    /// ```
    pub fn retransmission_floor(&self) -> Option<f64> {
        let demands = self.traffic.demands(self.topology.hosts(), self.seed).ok()?;
        let to = demands.first()?.to;
        let mut senders: Vec<u32> = demands.iter().map(|demand| demand.from).collect();
        senders.dedup();
        let at_once = demands.iter().all(|demand| demand.to == to && matches!(demand.start, Start::At(_)));
        if !at_once || senders.len() != demands.len() || !self.switching.trimming {
            return None;
        }
        let (packet, byte) = (f64::from(self.full_packet()), 8.0 / self.rate as f64);
        // A packet is taken as long as it fits; before it lie those that were.
        let waiting = ((self.switching.trim_at * self.plane_bdp() / packet).floor() - 1.0).max(0.0) * packet;
        let trip = |from: u32| {
            let links = f64::from(self.topology.distance(from, to));
            let wires = 2.0 * links * self.latency.as_secs_f64();
            wires + byte * ((links - 1.0) * packet + SHORT + links * SHORT)
        };
        let trips: Vec<f64> = senders.iter().map(|from| trip(*from)).collect();
        // How much of the link it takes that a share p of all packets is trimmed.
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
