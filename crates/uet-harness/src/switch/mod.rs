//! Tests the network between endpoints: one switch or many.
//!
//! The suite owns two ports of the network or more. It sends UET packets at some and judges what leaves at the others.
//! A [`Statement`] tells how the network is configured. The network needs no control channel.
//!
//! | file | contents |
//! | --- | --- |
//! | `statement.rs` | the configuration that the operator states |
//! | `network.rs` | a network, seen from its ports |
//! | `software.rs`, `fault.rs` | a small switch in software, with deliberate faults |
//! | `wires.rs` | ports on interfaces, and the software switch between them |
//! | `probe.rs` | the frames that the suite sends |
//! | `judge.rs` | what a trace of frames says about the network |
//! | `testbed.rs`, `rules.rs` | loads, and the rules that use them |
//! | `reaction.rs` | two endpoints of the model across the network |
//! | `learn.rs` | measures a statement |
//!
//! ```
//! use uet_harness::switch::{self, EmbeddedSwitch, Statement, SwitchOptions};
//!
//! let statement = Statement::embedded();
//! let mut network = EmbeddedSwitch::new(statement.clone(), None, 1);
//! let options = SwitchOptions { only: vec!["forward".into()], ..SwitchOptions::default() };
//! let result = switch::run(&mut network, &statement, &options, |_| ())?;
//! assert_eq!(result.rules[0].verdict, uet_conformance::Verdict::Pass);
//! # Ok::<(), std::io::Error>(())
//! ```

mod fault;
mod judge;
mod learn;
mod network;
mod probe;
mod reaction;
mod rules;
mod software;
mod statement;
mod testbed;
#[cfg(target_os = "linux")]
mod wires;

pub use fault::SwitchFault;
pub use learn::learn;
pub use network::{Arrived, Network};
pub use rules::{RULES, SwitchRule};
use serde::{Deserialize, Serialize};
pub use software::{EmbeddedSwitch, SoftwareSwitch};
pub use statement::{Dscp, Mark, Port, Route, Statement, Trim, TrimLength};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
pub use testbed::Measurement;
use testbed::{Stop, Testbed};
use uet_conformance::Verdict;
#[cfg(target_os = "linux")]
pub use wires::{Wires, emulate};

/// The settings of a run.
#[derive(Clone, Debug, Default)]
pub struct SwitchOptions {
    /// The seed of entropy values.
    pub seed: u64,
    /// Only rules whose ids begin so, unless empty.
    pub only: Vec<String>,
    /// True ends the run.
    pub interrupt: Arc<AtomicBool>,
}

/// A requirement that a network broke.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// Its id.
    pub requirement: String,
    /// The first packet that broke it.
    pub first: String,
    /// How many packets did.
    pub count: u64,
}

/// The result of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleResult {
    /// Its id.
    pub id: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The broken requirements.
    pub violations: Vec<Violation>,
    /// The reason, if it is inconclusive or skipped.
    pub reason: String,
    /// How long it took.
    pub duration_ns: u64,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SwitchResult {
    /// The names of the ports.
    pub ports: Vec<String>,
    /// The seed.
    pub seed: u64,
    /// The results of the rules.
    pub rules: Vec<RuleResult>,
    /// The measured values.
    pub measurements: Vec<Measurement>,
}

impl SwitchResult {
    /// Returns the number of rules with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rules.iter().filter(|rule| rule.verdict == verdict).count()
    }
}

/// Runs the rules on a network.
///
/// # Errors
///
/// Fails if a port cannot send or receive.
pub fn run(
    network: &mut dyn Network,
    statement: &Statement,
    options: &SwitchOptions,
    mut progress: impl FnMut(&RuleResult),
) -> io::Result<SwitchResult> {
    let mut bench = Testbed::new(network, statement, options.seed, &options.interrupt);
    let mut rules = Vec::new();
    let selected = |id: &str| options.only.is_empty() || options.only.iter().any(|only| id.starts_with(only));
    for rule in RULES.iter().filter(|rule| selected(rule.id)) {
        let begun = Instant::now();
        let ended = match options.interrupt.load(Ordering::Relaxed) {
            true => Err(Stop::Inconclusive("the run was ended".into())),
            false => (rule.run)(&mut bench),
        };
        let findings = core::mem::take(&mut bench.findings);
        let violations = findings.broken().iter().map(|broken| Violation {
            requirement: broken.requirement.id.into(),
            first: broken.text.clone(),
            count: broken.count,
        });
        let violations: Vec<_> = violations.collect();
        let (verdict, reason) = match ended {
            Err(Stop::Failed(error)) => return Err(error),
            _ if !violations.is_empty() => (Verdict::Fail, String::new()),
            Ok(()) => (Verdict::Pass, String::new()),
            Err(Stop::Skipped(reason)) => (Verdict::Skipped, reason),
            Err(Stop::Inconclusive(reason)) => (Verdict::Inconclusive, reason),
        };
        let duration_ns = begun.elapsed().as_nanos() as u64;
        let result = RuleResult { id: rule.id.into(), verdict, violations, reason, duration_ns };
        progress(&result);
        rules.push(result);
    }
    let ports = statement.ports.iter().map(|port| port.name.clone()).collect();
    Ok(SwitchResult { ports, seed: options.seed, rules, measurements: bench.measurements })
}
