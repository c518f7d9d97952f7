//! Traffic patterns.

use crate::error::{ScenarioError, refuse};
use crate::graph::Graph;
use crate::matrix::Matrix;
use core::time::Duration;
use fastrand::Rng;
use std::sync::Arc;

/// The traffic between hosts. Sizes are bytes of payload.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// The first host sends to the last one.
    One {
        /// The size of the flow.
        size: u64,
    },
    /// The last hosts send to the first one, which is as far away as the topology permits.
    Incast {
        /// The number of senders.
        senders: u32,
        /// The size of each flow.
        size: u64,
    },
    /// Each host sends to one other and receives from one other, chosen at random.
    Permutation {
        /// The size of each flow.
        size: u64,
    },
    /// Each host sends to every other one.
    AllToAll {
        /// The size of each flow.
        size: u64,
    },
    /// The flows of a connection matrix.
    Matrix(Matrix),
    /// The flows of a graph, which wait for each other.
    Graph(Arc<Graph>),
}

/// A flow of the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The sending host.
    pub from: u32,
    /// The receiving host.
    pub to: u32,
    /// The size in bytes of payload.
    pub size: u64,
    /// The start condition.
    pub start: Start,
    /// The triggers that it pulls: when the sender completes, and when the receiver does.
    pub done: [Option<u32>; 2],
    /// The job that it belongs to, by its index.
    pub job: u16,
    /// The traffic class. Each class has congestion control contexts of its own; classes share the queues.
    pub class: u8,
}

/// The start condition of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Starts at a time.
    At(Duration),
    /// Starts on a trigger, by its index.
    Trigger(u32),
    /// Starts this long after everything that it waits for in its [`Graph`].
    After(Duration),
}

/// A trigger: starts flows when others complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Starts all its flows on the first pull.
    Once,
    /// Starts the next of its flows on each pull.
    Each,
    /// Starts all its flows after this many pulls.
    Barrier(u32),
}

impl Demand {
    /// Returns a flow that starts at once.
    pub fn new(from: u32, to: u32, size: u64) -> Self {
        Demand { from, to, size, start: Start::At(Duration::ZERO), done: [None; 2], job: 0, class: 0 }
    }
}

impl Traffic {
    /// Returns the flows between `hosts` hosts.
    pub fn demands(&self, hosts: u32, seed: u64) -> Result<Vec<Demand>, ScenarioError> {
        let demands = match self {
            Traffic::One { size } => vec![Demand::new(0, hosts - 1, *size)],
            Traffic::Incast { senders, .. } if !(1..hosts).contains(senders) => {
                return refuse(
                    "senders",
                    format!("1 to {}, since one of the {hosts} hosts receives", hosts - 1),
                );
            }
            Traffic::Incast { senders, size } => {
                (hosts - senders..hosts).map(|from| Demand::new(from, 0, *size)).collect()
            }
            Traffic::Permutation { size } => derangement(hosts, seed)
                .into_iter()
                .zip(0..)
                .map(|(to, from)| Demand::new(from, to, *size))
                .collect(),
            Traffic::AllToAll { .. } if hosts > 1024 => {
                return refuse("pattern", "all-to-all is for at most 1,024 hosts");
            }
            // The targets are shifted, so that the hosts do not all start with the same one.
            Traffic::AllToAll { size } => (1..hosts)
                .flat_map(|shift| (0..hosts).map(move |from| (from, (from + shift) % hosts)))
                .map(|(from, to)| Demand::new(from, to, *size))
                .collect(),
            Traffic::Matrix(matrix) => {
                if matrix.hosts > hosts {
                    let reason =
                        format!("the connection matrix has {} nodes, the topology {hosts}", matrix.hosts);
                    return refuse("hosts", reason);
                }
                matrix.demands.clone()
            }
            Traffic::Graph(graph) => {
                if graph.hosts() > hosts {
                    let reason = format!("the workload has {} hosts, the topology {hosts}", graph.hosts());
                    return refuse("hosts", reason);
                }
                graph.demands().to_vec()
            }
        };
        match demands.iter().find(|demand| !(1..=u32::MAX.into()).contains(&demand.size)) {
            Some(_) => refuse("size", "1 byte to 4 GiB"),
            None => Ok(demands),
        }
    }

    /// Returns the triggers of its flows.
    pub(crate) fn triggers(&self) -> &[Trigger] {
        match self {
            Traffic::Matrix(matrix) => &matrix.triggers,
            _ => &[],
        }
    }

    /// Returns the graph of its flows, if there is one.
    pub(crate) fn graph(&self) -> Option<&Graph> {
        match self {
            Traffic::Graph(graph) => Some(graph),
            _ => None,
        }
    }
}

/// Returns a permutation without fixed points.
fn derangement(count: u32, seed: u64) -> Vec<u32> {
    let mut rng = Rng::with_seed(seed);
    let mut order: Vec<u32> = (0..count).collect();
    // Sattolo's algorithm gives one cycle through all.
    for last in (1..order.len()).rev() {
        order.swap(last, rng.usize(..last));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_permutation_each_sends_to_one_other() {
        for seed in 0..20 {
            let demands = Traffic::Permutation { size: 1 }.demands(16, seed).unwrap();
            let mut to: Vec<u32> = demands.iter().map(|demand| demand.to).collect();
            assert!(demands.iter().zip(0..).all(|(demand, host)| demand.from == host && demand.to != host));
            to.sort_unstable();
            assert!(to.iter().copied().eq(0..16));
        }
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        assert_eq!(Traffic::Incast { senders: 16, size: 1 }.demands(16, 1).unwrap_err().what, "senders");
        assert_eq!(Traffic::One { size: 0 }.demands(16, 1).unwrap_err().what, "size");
        assert_eq!(Traffic::AllToAll { size: 5 }.demands(4, 1).unwrap().len(), 12);
    }
}
