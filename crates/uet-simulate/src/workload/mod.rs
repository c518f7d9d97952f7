//! Jobs, which expand to flows that wait for each other.

mod collective;
mod mix;

use crate::demand::{Demand, Start};
use crate::error::{ScenarioError, refuse};
use crate::graph::{After, Graph, Step};
use crate::sizes::FlowSizes;
use core::time::Duration;
use fastrand::Rng;
use uet_model::network::stream_seed;

/// A job on some of the hosts.
///
/// ```
/// use uet_simulate::{Graph, Job, Pattern};
///
/// let mut graph = Graph::new(4);
/// Job::new("train", Pattern::RingAllReduce { size: 4_000_000 }).add_to(&mut graph, 1e11, 1)?;
/// assert_eq!(graph.demands().len(), 4 * 2 * 3, "each host sends a quarter in 6 steps");
/// assert!(graph.demands().iter().all(|flow| flow.size == 1_000_000));
/// # Ok::<(), uet_simulate::ScenarioError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The name.
    pub name: String,
    /// The pattern.
    pub pattern: Pattern,
    /// The hosts that take part, in the order of their ranks; empty for all.
    pub hosts: Vec<u32>,
    /// The traffic class.
    pub class: u8,
    /// The start time.
    pub start: Duration,
    /// The number of rounds of a collective operation.
    pub rounds: u32,
    /// The time that each host computes before each round, or before each operation on storage.
    pub gap: Duration,
    /// The maximum of the random time by which each host computes longer.
    pub jitter: Duration,
    /// A host that computes longer before each round, and the additional time.
    pub straggler: Option<(u32, Duration)>,
}

/// The pattern of a job. Sizes are bytes of payload.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// Reduces a vector on all hosts: a reduce-scatter and an all-gather on a ring.
    RingAllReduce {
        /// The size of the vector.
        size: u64,
    },
    /// Reduces a vector on all hosts: up a binary tree and down again.
    TreeAllReduce {
        /// The size of the vector.
        size: u64,
        /// The number of parts of the vector that follow each other.
        chunks: u32,
    },
    /// Gathers a vector on all hosts, each of which has an equal part: n - 1 steps on a ring.
    AllGather {
        /// The size of the whole vector.
        size: u64,
    },
    /// Reduces a vector and leaves an equal part on each host: n - 1 steps on a ring.
    ReduceScatter {
        /// The size of the whole vector.
        size: u64,
    },
    /// Sends from each host to each other.
    AllToAll {
        /// The size of each flow.
        size: u64,
        /// The maximum number of flows that a host sends at the same time.
        open: u32,
    },
    /// Sends flows between random hosts at random times (a Poisson process).
    Random {
        /// The sizes of the flows.
        sizes: FlowSizes,
        /// The load of the hosts' links, as a share of the maximum payload rate.
        load: f64,
        /// The time from the start of the job to its last flow.
        span: Duration,
    },
    /// Reads and writes blocks on servers. A read is a short request and a block. A write is a block that each server
    /// passes on until there are enough copies, and a short reply of the last one.
    Storage {
        /// The servers. The other hosts of the job are their clients.
        servers: Vec<u32>,
        /// The sizes of the blocks.
        sizes: FlowSizes,
        /// The share of reads.
        reads: f64,
        /// The number of copies of a written block.
        copies: u32,
        /// The number of operations of each client.
        operations: u32,
        /// The number of operations that a client has open at the same time.
        open: u32,
    },
}

impl Job {
    /// The maximum number of rounds, parts, open flows and operations.
    pub const MAX_COUNT: u32 = 1_000_000;

    /// Creates a job of one round on all hosts, which starts at once in class 0.
    pub fn new(name: impl Into<String>, pattern: Pattern) -> Self {
        Job {
            name: name.into(),
            pattern,
            hosts: Vec::new(),
            class: 0,
            start: Duration::ZERO,
            rounds: 1,
            gap: Duration::ZERO,
            jitter: Duration::ZERO,
            straggler: None,
        }
    }

    /// Adds the job to a graph, and returns its index. `payload_rate` is the maximum payload rate of a link in bits per
    /// second. The seed determines random sizes, times and hosts.
    pub fn add_to(&self, graph: &mut Graph, payload_rate: f64, seed: u64) -> Result<u16, ScenarioError> {
        let hosts = self.checked_hosts(graph)?;
        let job = graph.add_job(&self.name)?;
        let rng = Rng::with_seed(stream_seed(seed, u64::from(job)));
        let mut build = Build { graph, spec: self, job, rng, ready: vec![Vec::new(); hosts.len()], hosts };
        match &self.pattern {
            Pattern::Random { sizes, load, span } => build.random(sizes, payload_rate * load, *span)?,
            Pattern::Storage { .. } => build.storage()?,
            _ => {
                build.graph.keep_order(job);
                build.rounds()?;
            }
        }
        Ok(job)
    }

    fn checked_hosts(&self, graph: &Graph) -> Result<Vec<u32>, ScenarioError> {
        let hosts: Vec<u32> = match self.hosts.is_empty() {
            true => (0..graph.hosts()).collect(),
            false => self.hosts.clone(),
        };
        let mut sorted = hosts.clone();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return refuse("hosts", "a job names each host once");
        }
        if let Some(last) = sorted.last().filter(|last| **last >= graph.hosts()) {
            let reason = format!("there is no host {last}: the network has {} hosts", graph.hosts());
            return refuse("hosts", reason);
        }
        if sorted.len() < 2 {
            return refuse("hosts", format!("a job needs at least 2 of the {} hosts", graph.hosts()));
        }
        let known = |host: &u32| sorted.binary_search(host).is_ok();
        if self.straggler.is_some_and(|(host, _)| !known(&host)) {
            return refuse("straggler", "must be a host of the job");
        }
        let counts = match &self.pattern {
            Pattern::TreeAllReduce { chunks, .. } => vec![("chunks", *chunks)],
            Pattern::AllToAll { open, .. } => vec![("open", *open)],
            Pattern::Random { load, .. } if !(*load > 0.0 && *load <= 1.0) => {
                return refuse("load", "must be above 0, and at most 1");
            }
            Pattern::Random { span, .. } if span.is_zero() => return refuse("span", "must be above 0"),
            Pattern::Storage { servers, reads, copies, operations, open, .. } => {
                if !(0.0..=1.0).contains(reads) {
                    return refuse("reads", "must be from 0 to 1");
                }
                if !servers.iter().all(known) || servers.is_empty() || servers.len() >= hosts.len() {
                    return refuse("servers", "must be some of the job's hosts, and leave a client");
                }
                if self.straggler.is_some_and(|(host, _)| servers.contains(&host)) {
                    return refuse("straggler", "must be a client: servers do not compute");
                }
                if *copies as usize > servers.len() {
                    return refuse("copies", "must be at most the number of servers");
                }
                vec![("copies", *copies), ("operations", *operations), ("open", *open)]
            }
            _ => Vec::new(),
        };
        let mut counts = counts.into_iter().chain([("rounds", self.rounds)]);
        match counts.find(|(_, count)| !(1..=Self::MAX_COUNT).contains(count)) {
            None => Ok(hosts),
            Some((what, _)) => refuse(what, "must be from 1 to 1,000,000"),
        }
    }
}

/// A job while it expands.
struct Build<'a> {
    graph: &'a mut Graph,
    spec: &'a Job,
    job: u16,
    rng: Rng,
    hosts: Vec<u32>,
    /// The events after which each rank begins its next step.
    ready: Vec<Vec<After>>,
}

impl Build<'_> {
    /// Adds a flow from one host to another.
    fn flow(
        &mut self,
        (from, to): (u32, u32),
        size: u64,
        gap: Duration,
        after: &[After],
    ) -> Result<u32, ScenarioError> {
        let (job, class, start) = (self.job, self.spec.class, Start::After(gap));
        let flow = self.graph.add_flow(Demand { job, class, start, ..Demand::new(from, to, size) })?;
        for after in after {
            self.graph.wait(Step::Flow(flow), *after)?;
        }
        Ok(flow)
    }

    /// Adds a delay of a host.
    fn delay(&mut self, host: u32, delay: Duration, after: &[After]) -> Result<After, ScenarioError> {
        let delay = self.graph.add_delay(host, delay)?;
        for after in after {
            self.graph.wait(Step::Delay(delay), *after)?;
        }
        Ok(After::Delay(delay))
    }

    /// Returns how long a host computes before its next round.
    fn computation(&mut self, host: u32) -> Duration {
        let extra =
            self.spec.straggler.filter(|(slow, _)| *slow == host).map_or(Duration::ZERO, |(_, by)| by);
        self.spec.gap + self.spec.jitter.mul_f64(self.rng.f64()) + extra
    }
}
