//! Traffic patterns.

use crate::demand::{Demand, Trigger};
use crate::error::{ScenarioError, refuse};
use crate::graph::Graph;
use crate::matrix::Matrix;
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

impl Traffic {
    /// Returns the flows between `hosts` hosts.
    pub fn demands(&self, hosts: u32, seed: u64) -> Result<Vec<Demand>, ScenarioError> {
        let demands = match self {
            Traffic::One { size } => vec![Demand::new(0, hosts - 1, *size)],
            Traffic::Incast { senders, .. } if !(1..hosts).contains(senders) => {
                return refuse(
                    "senders",
                    format!(
                        "must be at least 1 and at most {}: one of the {hosts} hosts receives",
                        hosts - 1
                    ),
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
            Some(_) => refuse("size", "must be at least 1 byte, and less than 4 GiB"),
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
