//! Simulates congestion control: endpoints of the reference model on a switched fabric, in virtual time.
//!
//! A [`Scenario`] describes the hosts, the fabric and the traffic. [`Simulation::run`] returns the [`Outcome`]. Every
//! endpoint is the packet delivery of `uet-model`, which writes and parses real headers. The queues between them mark,
//! trim and drop packets (section 3.6.17). Runs of one scenario are identical.
#![forbid(unsafe_code)]

mod crew;
mod demand;
mod error;
mod estimate;
mod fabric;
mod flow;
mod goal;
mod graph;
mod host;
mod ideal;
mod matrix;
mod outcome;
mod packet;
mod port;
mod scenario;
mod section;
mod series;
mod simulation;
mod sizes;
mod summary;
mod time;
mod topology;
mod traffic;
mod waiting;
mod wake;
mod workload;

pub use demand::{Demand, Start, Trigger};
pub use error::{ScenarioError, TextError};
pub use graph::{After, Graph, Step};
pub use matrix::Matrix;
pub use outcome::{Counted, Depth, FlowOutcome, JobOutcome, LinkUse, Outcome, Recovery, Steady, jain};
pub use scenario::{Congestion, Control, Ecn, Fault, Scenario, Switching};
pub use series::{FlowSample, Sample, Series};
pub use simulation::Simulation;
pub use sizes::FlowSizes;
pub use summary::{SizeClass, median_interval, size_classes, slowdowns, spread};
pub use topology::{Part, Topology};
pub use traffic::Traffic;
pub use workload::{Job, Pattern};

/// Runs the examples of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
