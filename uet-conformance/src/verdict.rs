//! The verdict, and the result of an instance.

use crate::random::Sequence;
use crate::{Correction, Corrections, Instance, Ladder, Observation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Verdict of a rule or of one of its instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All checks passed.
    Pass,
    /// A check failed.
    Fail,
    /// Some repetitions passed and some failed.
    Flaky,
    /// The device did not reach a state to check.
    Inconclusive,
    /// The device or the link lacks something that the rule needs.
    Skipped,
}

impl Verdict {
    /// All verdicts, `Pass` first.
    pub const ALL: [Verdict; 5] =
        [Verdict::Pass, Verdict::Fail, Verdict::Flaky, Verdict::Inconclusive, Verdict::Skipped];

    /// Returns `pass`, `fail`, `flaky`, `inconclusive` or `skipped`.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::Flaky => "flaky",
            Verdict::Inconclusive => "inconclusive",
            Verdict::Skipped => "skipped",
        }
    }

    /// Returns whether the device was seen to fail.
    pub const fn is_failure(self) -> bool {
        matches!(self, Verdict::Fail | Verdict::Flaky)
    }
}

/// The state of the device at the end of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Liveness {
    /// It went on.
    #[default]
    Alive,
    /// It had answered plain writes, and answered none any more at the end of the instance.
    Silent,
    /// It ended, or answered nothing on its control channel any more.
    Ended,
    /// It had ended or hung already after this earlier instance.
    EndedAfter(String),
}

/// The result of an instance of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct InstanceResult {
    /// Id of the instance: `window/above[mode=rod]`.
    pub instance: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Requirements of the rule; for a failure, only the broken ones.
    pub requirements: Vec<String>,
    /// The reason, unless it passed.
    pub reason: String,
    /// Requirements that the script compared something with, each once, in order.
    pub recorded: Vec<String>,
    /// True if the device refused a feature that only a profile requires.
    pub declined: bool,
    /// Parameters of the device that the script read.
    pub read: BTreeSet<String>,
    /// Parameters of the device that the script set.
    pub set: BTreeSet<String>,
    /// The broken observations.
    pub observations: Vec<Observation>,
    /// The packet of the first broken observation.
    pub at_packet: Option<usize>,
    /// The file with the packets.
    pub capture: Option<String>,
    /// The file with the trace.
    pub trace: Option<String>,
    /// The command that runs the instance again.
    pub rerun: String,
    /// The state of the device at its end. No network excuses a device that did not go on.
    pub liveness: Liveness,
    /// Number of times that it was played.
    pub attempts: u32,
    /// True if it did not pass on a busy host, and was played again for that.
    pub replayed: bool,
    /// The duration of all attempts by the link's clock.
    pub duration_ns: u64,
    /// The steps of a random conversation.
    pub sequence: Option<Sequence>,
    /// Corrections of the broken requirements.
    pub corrections: Corrections,
    /// The trace.
    pub ladder: Ladder,
}

impl InstanceResult {
    /// Creates the result of an instance that has not run.
    pub(crate) fn blank(instance: &Instance, rerun: String) -> Self {
        InstanceResult {
            instance: instance.to_string(),
            verdict: Verdict::Skipped,
            requirements: instance
                .rule
                .requirements
                .iter()
                .map(|requirement| requirement.id.into())
                .collect(),
            reason: String::new(),
            recorded: Vec::new(),
            declined: false,
            read: BTreeSet::new(),
            set: BTreeSet::new(),
            observations: Vec::new(),
            at_packet: None,
            capture: None,
            trace: None,
            rerun,
            liveness: Liveness::Alive,
            attempts: 0,
            replayed: false,
            duration_ns: 0,
            sequence: None,
            corrections: Corrections::default(),
            ladder: Ladder::default(),
        }
    }

    /// Removes excused observations from a failure. Without any other, the instance is skipped.
    pub(crate) fn correct(&mut self, corrections: &Corrections) {
        if corrections.is_empty() || !self.verdict.is_failure() {
            return;
        }
        let excuse = |seen: &Observation| corrections.find(&seen.requirement).filter(|it| it.excuses());
        let first_excuse = self.observations.iter().find_map(excuse).map(ToString::to_string);
        self.observations.retain(|seen| excuse(seen).is_none());
        match (self.observations.first(), first_excuse) {
            (_, None) => {}
            (None, Some(why)) => {
                self.verdict = Verdict::Skipped;
                self.reason = format!("the catalogue is corrected: {why}");
                self.at_packet = None;
            }
            (Some(first), Some(_)) => {
                let (id, expected, seen) = (&first.requirement, first.expectation(), &first.seen);
                self.reason = format!("{id}: expected {expected}, seen {seen}");
                self.at_packet = Some(first.packet);
                self.requirements = self.observations.iter().map(|seen| seen.requirement.clone()).collect();
                self.requirements.dedup();
            }
        }
        let broken = |it: &&Correction| self.requirements.iter().any(|id| id == it.requirement.id);
        self.corrections = Corrections(corrections.0.iter().filter(broken).cloned().collect());
    }
}
