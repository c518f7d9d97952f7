//! Flows and delays that wait for each other.

use crate::demand::{Demand, Start};
use crate::error::{ScenarioError, refuse};
use core::time::Duration;
use std::collections::HashMap;

/// Flows and delays that wait for each other, in one job or several.
///
/// ```
/// use std::sync::Arc;
/// use uet_simulate::{After, Demand, Graph, Scenario, Simulation, Step, Traffic};
///
/// let mut graph = Graph::new(2);
/// graph.add_job("ping")?;
/// let ping = graph.add_flow(Demand::new(0, 1, 4096))?;
/// let pong = graph.add_flow(Demand::new(1, 0, 4096))?;
/// graph.wait(Step::Flow(pong), After::Received(ping))?;
/// let scenario = Scenario { traffic: Traffic::Graph(Arc::new(graph)), ..Scenario::default() };
/// let flows = Simulation::new(&scenario)?.run().flows;
/// assert_eq!(flows[1].started, flows[0].received);
/// # Ok::<(), uet_simulate::ScenarioError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    hosts: u32,
    demands: Vec<Demand>,
    /// The host of each delay, and its length.
    delays: Vec<(u32, Duration)>,
    waits: Vec<(After, Step)>,
    jobs: Vec<String>,
    /// The jobs whose flows between two hosts share a context, in increasing order.
    in_order: Vec<u16>,
}

/// A step of a graph, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A flow.
    Flow(u32),
    /// A delay of a host, such as a computation.
    Delay(u32),
}

/// An event that a step can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The arrival of the last byte of a flow.
    Received(u32),
    /// The last acknowledgment of a flow.
    Sent(u32),
    /// The end of a delay.
    Delay(u32),
}

impl Graph {
    /// The maximum number of flows, and of delays.
    pub const MAX_STEPS: usize = 5_000_000;
    /// The maximum number of waits.
    pub const MAX_WAITS: usize = 16_000_000;
    /// The maximum number of jobs.
    pub const MAX_JOBS: usize = 1_000;

    /// Creates a graph without flows, for this many hosts.
    pub fn new(hosts: u32) -> Self {
        Graph { hosts, ..Graph::default() }
    }

    /// Adds a job, and returns its index.
    pub fn add_job(&mut self, name: impl Into<String>) -> Result<u16, ScenarioError> {
        if self.jobs.len() == Self::MAX_JOBS {
            return refuse("jobs", "at most 1,000");
        }
        self.jobs.push(name.into());
        Ok(self.jobs.len() as u16 - 1)
    }

    /// Lets the flows of a job between two hosts share a context. They then leave one after the other.
    pub(crate) fn keep_order(&mut self, job: u16) {
        self.in_order.push(job);
    }

    /// Returns the context of each flow: the number of the first flow that uses it.
    pub(crate) fn contexts(&self) -> Vec<u32> {
        let mut first = HashMap::new();
        let flows = self.demands.iter().zip(0..);
        flows
            .map(|(demand, number)| match self.in_order.binary_search(&demand.job) {
                Ok(_) => *first.entry((demand.job, demand.from, demand.to)).or_insert(number),
                Err(_) => number,
            })
            .collect()
    }

    /// Adds a flow, and returns its index. Its start time counts from the end of the last event that it waits for.
    pub fn add_flow(&mut self, demand: Demand) -> Result<u32, ScenarioError> {
        let Demand { from, to, start, .. } = demand;
        if from == to {
            return refuse("flow", format!("host {from} sends to itself"));
        }
        if let Some(host) = [from, to].into_iter().find(|host| *host >= self.hosts) {
            return refuse("flow", format!("there is no host {host} among {}", self.hosts));
        }
        let gap = match start {
            Start::At(gap) | Start::After(gap) => gap,
            Start::Trigger(_) => return refuse("flow", "graphs have no triggers"),
        };
        check_gap(gap)?;
        let number = next_index("flows", self.demands.len())?;
        self.demands.push(Demand { start: Start::After(gap), ..demand });
        Ok(number)
    }

    /// Adds a delay of a host, and returns its index.
    pub fn add_delay(&mut self, host: u32, delay: Duration) -> Result<u32, ScenarioError> {
        if host >= self.hosts {
            return refuse("delay", format!("there is no host {host} among {}", self.hosts));
        }
        check_gap(delay)?;
        let number = next_index("delays", self.delays.len())?;
        self.delays.push((host, delay));
        Ok(number)
    }

    /// Makes a step wait for an event. Both refer to steps that exist.
    pub fn wait(&mut self, step: Step, after: After) -> Result<(), ScenarioError> {
        if self.waits.len() == Self::MAX_WAITS {
            return refuse("waits", "at most 16,000,000");
        }
        let known = |flow: Option<u32>, delay: Option<u32>| {
            flow.is_none_or(|flow| (flow as usize) < self.demands.len())
                && delay.is_none_or(|delay| (delay as usize) < self.delays.len())
        };
        let exist = match step {
            Step::Flow(flow) => known(Some(flow), None),
            Step::Delay(delay) => known(None, Some(delay)),
        } && match after {
            After::Received(flow) | After::Sent(flow) => known(Some(flow), None),
            After::Delay(delay) => known(None, Some(delay)),
        };
        if !exist {
            return refuse("waits", format!("there is no {step:?} or no {after:?}"));
        }
        self.waits.push((after, step));
        Ok(())
    }

    /// Returns the number of hosts.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// Returns the flows.
    pub fn demands(&self) -> &[Demand] {
        &self.demands
    }

    /// Returns the delays, each with its host.
    pub fn delays(&self) -> &[(u32, Duration)] {
        &self.delays
    }

    /// Returns the host of a step: the source of a flow, or that of a delay.
    pub(crate) fn host(&self, step: Step) -> u32 {
        match step {
            Step::Flow(flow) => self.demands[flow as usize].from,
            Step::Delay(delay) => self.delays[delay as usize].0,
        }
    }

    /// Returns true if an event at one host starts a step of another.
    pub(crate) fn acts_far(&self) -> bool {
        let place = |after: After| match after {
            After::Received(flow) => self.demands[flow as usize].to,
            After::Sent(flow) => self.demands[flow as usize].from,
            After::Delay(delay) => self.delays[delay as usize].0,
        };
        self.waits.iter().any(|(after, step)| place(*after) != self.host(*step))
    }

    /// Returns the waits.
    pub fn waits(&self) -> &[(After, Step)] {
        &self.waits
    }

    /// Returns the names of the jobs.
    pub fn jobs(&self) -> &[String] {
        &self.jobs
    }
}

fn next_index(what: &'static str, count: usize) -> Result<u32, ScenarioError> {
    match count < Graph::MAX_STEPS {
        true => Ok(count as u32),
        false => refuse(what, "at most 5,000,000"),
    }
}

fn check_gap(gap: Duration) -> Result<(), ScenarioError> {
    match gap <= Duration::from_secs(3600) {
        true => Ok(()),
        false => refuse("gap", "must be at most 1 h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_found() {
        let mut graph = Graph::new(2);
        let (a, b) = (graph.add_flow(Demand::new(0, 1, 1)), graph.add_flow(Demand::new(1, 0, 1)));
        let (a, b) = (a.unwrap(), b.unwrap());
        let delay = graph.add_delay(1, Duration::from_micros(1)).unwrap();
        graph.wait(Step::Delay(delay), After::Received(a)).unwrap();
        graph.wait(Step::Flow(b), After::Delay(delay)).unwrap();
        assert_eq!(graph.stuck(), None);
        graph.wait(Step::Flow(b), After::Sent(b)).unwrap();
        assert_eq!(graph.stuck(), Some(Step::Flow(b)));
    }

    #[test]
    fn impossible_steps_are_refused() {
        let mut graph = Graph::new(2);
        let said = |error: Result<u32, ScenarioError>| error.unwrap_err().to_string();
        assert_eq!(said(graph.add_flow(Demand::new(1, 1, 1))), "flow: host 1 sends to itself");
        assert_eq!(said(graph.add_flow(Demand::new(0, 2, 1))), "flow: there is no host 2 among 2");
        assert_eq!(said(graph.add_delay(0, Duration::MAX)), "gap: must be at most 1 h");
        assert!(graph.wait(Step::Flow(0), After::Delay(0)).is_err());
        assert_eq!(next_index("flows", 4_999_999), Ok(4_999_999));
        assert_eq!(said(next_index("flows", 5_000_000)), "flows: at most 5,000,000");
    }
}
