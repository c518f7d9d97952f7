//! Who sends what to whom.

use crate::error::{ScenarioError, refuse};
use crate::matrix::Matrix;
use core::time::Duration;
use fastrand::Rng;

/// Who sends what to whom. Sizes are bytes of payload.
#[derive(Clone, Debug, PartialEq)]
pub enum Traffic {
    /// The first host sends to the last.
    One {
        /// How much.
        size: u64,
    },
    /// The last hosts send to the first one: as far away as the topology has them.
    Incast {
        /// How many.
        senders: u32,
        /// How much each sends.
        size: u64,
    },
    /// Each host sends to another one, and each receives from one. Chance decides from which.
    Permutation {
        /// How much each sends.
        size: u64,
    },
    /// Each host sends to every other.
    AllToAll {
        /// How much it sends to each.
        size: u64,
    },
    /// As a connection matrix says.
    Matrix(Matrix),
}

/// A flow to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The host that sends.
    pub from: u32,
    /// The host that receives.
    pub to: u32,
    /// Bytes of payload.
    pub size: u64,
    /// What it starts at.
    pub start: Start,
    /// Which trigger is pulled when the sender is done, and which when the receiver is.
    pub done: [Option<u32>; 2],
}

/// What a flow starts at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A time.
    At(Duration),
    /// A trigger, by its number.
    Trigger(u32),
}

/// Starts flows when others are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// All its flows, the first time.
    Once,
    /// The next of its flows, each time.
    Each,
    /// All its flows, when it was pulled so often.
    Barrier(u32),
}

impl Demand {
    fn now(from: u32, to: u32, size: u64) -> Self {
        Demand { from, to, size, start: Start::At(Duration::ZERO), done: [None; 2] }
    }
}

impl Traffic {
    /// The flows between so many hosts.
    pub fn demands(&self, hosts: u32, seed: u64) -> Result<Vec<Demand>, ScenarioError> {
        let demands = match self {
            Traffic::One { size } => vec![Demand::now(0, hosts - 1, *size)],
            Traffic::Incast { senders, .. } if !(1..hosts).contains(senders) => {
                return refuse(
                    "senders",
                    format!("1 to {}, since one of the {hosts} hosts receives", hosts - 1),
                );
            }
            Traffic::Incast { senders, size } => {
                (hosts - senders..hosts).map(|from| Demand::now(from, 0, *size)).collect()
            }
            Traffic::Permutation { size } => derangement(hosts, seed)
                .into_iter()
                .zip(0..)
                .map(|(to, from)| Demand::now(from, to, *size))
                .collect(),
            Traffic::AllToAll { .. } if hosts > 1024 => {
                return refuse("pattern", "all-to-all is for at most 1,024 hosts");
            }
            // Shifted, so that not all start with the same host.
            Traffic::AllToAll { size } => (1..hosts)
                .flat_map(|shift| (0..hosts).map(move |from| (from, (from + shift) % hosts)))
                .map(|(from, to)| Demand::now(from, to, *size))
                .collect(),
            Traffic::Matrix(matrix) => {
                if matrix.hosts > hosts {
                    let reason =
                        format!("the connection matrix has {} nodes, the topology {hosts}", matrix.hosts);
                    return refuse("hosts", reason);
                }
                matrix.demands.clone()
            }
        };
        match demands.iter().find(|demand| !(1..=u32::MAX.into()).contains(&demand.size)) {
            Some(_) => refuse("size", "1 byte to 4 GiB"),
            None => Ok(demands),
        }
    }

    /// The triggers that its flows refer to.
    pub(crate) fn triggers(&self) -> &[Trigger] {
        match self {
            Traffic::Matrix(matrix) => &matrix.triggers,
            _ => &[],
        }
    }
}

/// A permutation in which nothing stays in its place.
fn derangement(count: u32, seed: u64) -> Vec<u32> {
    let mut rng = Rng::with_seed(seed);
    let mut order: Vec<u32> = (0..count).collect();
    // Sattolo's algorithm: one cycle through all.
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
