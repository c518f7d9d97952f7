//! Conformance suite for Ultra Ethernet Transport (UET).
//!
//! A [`Rule`] is a statement about devices and a short script that checks it. The script sends packets, waits
//! for answers, and names the requirement of the [catalogue](uet_wire::catalogue) that each expectation
//! follows from. Expected values are literals or arithmetic in the script: nothing here knows `uet-model`. A
//! rule varies along the [axes](axis) that it lists; the suite runs an [`Instance`] for each combination of
//! their values that it chooses.
//!
//! The suite reaches a device through a [`Dut`]: packets over a link, and the [control channel](uet_control).
#![forbid(unsafe_code)]
// The unit tests play no rule. Without the rules they are built in a fifth of the time.
#![cfg_attr(test, allow(dead_code))]

mod arithmetic;
pub mod axis;
mod baseline;
pub mod coverage;
pub mod draw;
mod dut;
mod edit;
pub mod elements;
pub mod flow;
mod history;
mod instance;
mod ladder;
mod listing;
mod memory;
mod need;
mod observation;
mod optional;
mod options;
mod packets;
mod parallel;
mod pdc;
mod phase;
pub mod pics;
mod plan;
pub mod prelude;
mod profile;
pub mod random;
pub mod receives;
mod region;
mod request_session;
mod reserved;
mod result;
mod rule;
#[cfg(not(test))]
mod rules;
mod run;
mod rx_packet;
mod select;
pub mod serve;
mod ses;
mod shard;
mod shield;
mod shrink;
mod silence;
mod skips;
mod statement;
mod steps;
mod stop;
pub mod target;
mod test;
mod timeline;
mod verdict;
mod wellformed;

pub use axis::{AnyAxis, Axis};
pub use baseline::{Baseline, Changes, EarlierDevice};
pub use coverage::RequirementCoverage;
pub use dut::{Dut, DutError, DutExt, Facts, NetworkEffects, Trimmed, Twins, Wire};
pub use edit::Edit;
pub use history::Mark;
pub use instance::{Expand, Instance};
pub use ladder::{Entry, Ladder, LadderStep};
pub use need::{Need, needs};
pub use observation::{Bound, Observation, Relation, Show};
pub use options::{Before, Options};
pub use packets::{rudi, uud};
pub use parallel::parallel;
pub use pdc::{AckBuilder, Pdc, Request};
pub use phase::Phase;
pub use plan::EXTERNAL_INSTANCES;
pub use profile::{JudgedRow, Obligation, ProfileResult, ProfileRow, RowVerdict};
pub use region::Region;
pub use request_session::{Answer, Data, RequestSession, assemble};
pub use result::{Circumstances, DeviceStatement, EarlyEnd, Played, RuleResult, RunResult, SCHEMA, Tally};
pub use rule::{Registry, Rule, RuleDraft, Script, rule};
#[cfg(not(test))]
pub use rules::RULES;
pub use run::{catalogue_hash, run, run_instance, spec_mismatch};
pub use rx_packet::RxPacket;
pub use ses::{Message, Part};
pub use shard::Shard;
pub use shield::{DomainKind, FEW_SECURED, SECURED, Shield, Sighting};
pub use shrink::fewer_steps;
pub use skips::predicted_skips;
pub use statement::{StandingRegion, Statement, Waiver, with_statement};
pub use stop::{Outcome, Stop, require, skip};
pub use test::Test;
pub use timeline::{Moment, PacketDirection, TimelineEvent};
pub use uet_observe::{Correction, Corrections, passive};
pub use verdict::{InstanceResult, Liveness, Verdict};
pub use wellformed::{PacketFinding, Packets};

/// The examples of docs/writing-a-rule.md.
#[cfg(doctest)]
#[doc = include_str!("../../docs/writing-a-rule.md")]
struct WritingARule;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
