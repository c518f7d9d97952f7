//! Ideal completion times, without queues and competing traffic.

use crate::demand::Demand;
use crate::graph::{After, Graph, Step};
use crate::scenario::Scenario;
use crate::time::{Picos, picos};
use crate::waiting::Waiting;
use core::time::Duration;
use std::collections::HashMap;

impl Scenario {
    /// Returns the bytes that a flow takes on a link.
    fn wire_bytes(&self, demand: &Demand) -> u64 {
        demand.size + demand.size.div_ceil(self.mtu.into()) * self.headers()
    }

    /// Returns the bytes of a packet's headers.
    fn headers(&self) -> u64 {
        u64::from(self.full_packet() - u32::from(self.mtu))
    }

    /// Returns the ideal time to the last acknowledgment: from the arrival of the last byte, an ACK takes the way back.
    pub(crate) fn ideal(&self, demand: &Demand) -> Duration {
        let links = self.topology.distance(demand.from, demand.to);
        self.ideal_arrival(demand) + self.way_back(links)
    }

    /// Returns the shortest possible time to the arrival of the last byte. The last packet may take another path, and
    /// so overtake the full ones before it.
    fn ideal_arrival(&self, demand: &Demand) -> Duration {
        let links = self.topology.distance(demand.from, demand.to);
        let further = u64::from(links.saturating_sub(1));
        let (all, mtu) = (self.wire_bytes(demand), u64::from(self.mtu));
        let last = demand.size.saturating_sub(1) % mtu + 1 + self.headers();
        let before = if demand.size > mtu { all - last + (mtu + self.headers()) * further } else { 0 };
        self.wire_time(before.max(all + last * further)) + self.latency * links
    }

    /// Returns the ideal duration of each job of a graph: the longest chain of its steps. If its busiest host needs
    /// longer to send or receive all its bytes, it is that time.
    pub(crate) fn ideal_jobs(&self, graph: &Graph) -> Vec<Duration> {
        // The first start and the last arrival of each job.
        let mut spans = vec![(Picos::MAX, 0); graph.jobs().len()];
        let mut starts: Vec<Picos> = vec![0; graph.demands().len() + graph.delays().len()];
        Waiting::new(Some(graph)).visit(|waiting, step, gap| {
            let start = starts[waiting.number(step)].saturating_add(gap);
            let mut reach = |after: After, at: Picos| {
                for later in waiting.steps_after(after) {
                    let later = &mut starts[*later as usize];
                    *later = at.max(*later);
                }
            };
            match step {
                Step::Flow(flow) => {
                    let demand = &graph.demands()[flow as usize];
                    let arrival = start.saturating_add(picos(self.ideal_arrival(demand)));
                    reach(After::Received(flow), arrival);
                    let links = self.topology.distance(demand.from, demand.to);
                    reach(After::Sent(flow), arrival.saturating_add(picos(self.latency * links)));
                    if let Some((first, last)) = spans.get_mut(usize::from(demand.job)) {
                        (*first, *last) = (start.min(*first), arrival.max(*last));
                    }
                }
                Step::Delay(delay) => reach(After::Delay(delay), start),
            }
        });
        let chains =
            spans.into_iter().map(|(first, last)| Duration::from_nanos(last.saturating_sub(first) / 1000));
        chains.zip(self.busiest(graph)).map(|(chain, busiest)| chain.max(busiest)).collect()
    }

    /// Returns the time in which the busiest host of each job sends or receives its bytes.
    fn busiest(&self, graph: &Graph) -> Vec<Duration> {
        let mut bytes: HashMap<(u16, u32, bool), u64> = HashMap::new();
        for demand in graph.demands() {
            let wire = self.wire_bytes(demand);
            *bytes.entry((demand.job, demand.from, true)).or_default() += wire;
            *bytes.entry((demand.job, demand.to, false)).or_default() += wire;
        }
        let mut most = vec![0; graph.jobs().len()];
        for ((job, _, _), bytes) in bytes {
            if let Some(most) = most.get_mut(usize::from(job)) {
                *most = bytes.max(*most);
            }
        }
        most.into_iter().map(|bytes| self.wire_time(bytes)).collect()
    }
}
