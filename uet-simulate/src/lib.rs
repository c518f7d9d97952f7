//! Endpoints of the reference model on a switched fabric, in virtual time: what congestion control does when many send.
//!
//! A [`Scenario`] says what there is and who sends what; [`Simulation::run`] gives the [`Outcome`]. Every end is the packet
//! delivery of `uet-model`, which writes real headers and reads them; between them lie queues that mark, trim and drop, as
//! section 3.6.17 has it. The same scenario gives the same outcome, always.
#![forbid(unsafe_code)]

mod error;
mod floor;
mod flow;
mod host;
mod matrix;
mod outcome;
mod packet;
mod port;
mod scenario;
mod series;
mod simulation;
mod time;
mod topology;
mod traffic;

pub use error::ScenarioError;
pub use matrix::{Matrix, MatrixError};
pub use outcome::{Counted, Depth, FlowOutcome, Outcome, Recovery, Steady, jain};
pub use scenario::{Congestion, Control, Ecn, Fault, Scenario, Switching};
pub use series::{FlowSample, Sample, Series};
pub use simulation::Simulation;
pub use topology::{Part, Topology};
pub use traffic::{Demand, Start, Traffic, Trigger};
