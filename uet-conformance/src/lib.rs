//! Conformance suite for Ultra Ethernet Transport (UET).
//!
//! A [`Case`] is a short script against a device under test: what is sent, what is expected by when, and beside each
//! expectation the requirement of the [catalogue](uet_wire::catalogue) that it follows from. What is expected is written
//! in the case, as a literal or as arithmetic: nothing here knows `uet-model`.
//!
//! A [`Dut`] is how the suite reaches a device: packets over a link, and the [control channel](uet_control).
#![forbid(unsafe_code)]

mod baseline;
mod case;
pub mod cases;
pub mod coverage;
mod dut;
pub mod elements;
pub mod flow;
mod ladder;
mod memory;
mod packets;
pub mod passive;
mod pdc;
pub mod receives;
mod request_session;
mod run;
mod rx_packet;
mod select;
pub mod serve;
mod ses;
mod statement;
mod steps;
pub mod target;
mod test;
mod upkeep;
mod verdict;
mod wellformed;

pub use baseline::{Baseline, Changes};
pub use case::{Case, Need};
pub use coverage::Coverage;
pub use dut::{Dut, DutError, DutExt, Facts, Trimmed, Wire};
pub use ladder::{Entry, Ladder};
pub use packets::{rudi, uud};
pub use pdc::{AckBuilder, Pdc, Request};
pub use request_session::{Answer, Data, RequestSession, assemble};
pub use run::{Options, catalogue_hash, run, run_case, spec_mismatch};
pub use rx_packet::RxPacket;
pub use select::Shard;
pub use ses::{Message, Part};
pub use statement::{Statement, Waiver};
pub use test::{Outcome, Region, Stop, Test};
pub use verdict::{CaseResult, Check, DeviceStatement, Packets, RunResult, Verdict};
pub use wellformed::PacketFinding;

/// The examples of docs/writing-a-case.md.
#[cfg(doctest)]
#[doc = include_str!("../../docs/writing-a-case.md")]
struct WritingACase;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
