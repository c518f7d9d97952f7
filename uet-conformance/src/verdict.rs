use crate::{Instance, Ladder, Observation, PacketFinding, Rule, Waiver};
use serde::{Deserialize, Serialize};
use uet_control::Welcome;

/// How a case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everything that was checked held.
    Pass,
    /// Something did not hold.
    Fail,
    /// Repeated, it passed at times and failed at times.
    Flaky,
    /// The device did not get to where something could be checked.
    Inconclusive,
    /// It needs what the device or the link does not have.
    Skipped,
}

impl Verdict {
    /// All, the good one first.
    pub const ALL: [Verdict; 5] =
        [Verdict::Pass, Verdict::Fail, Verdict::Flaky, Verdict::Inconclusive, Verdict::Skipped];

    /// `pass`, `fail`, `flaky`, `inconclusive`, `skipped`.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::Flaky => "flaky",
            Verdict::Inconclusive => "inconclusive",
            Verdict::Skipped => "skipped",
        }
    }

    /// Whether the device was seen to do wrong.
    pub const fn is_failure(self) -> bool {
        matches!(self, Verdict::Fail | Verdict::Flaky)
    }
}

/// The result of an instance of a rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstanceResult {
    /// The id of the instance: `window/beyond[mode=rod]`.
    pub instance: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The requirements of the rule; for a failure, only the broken ones.
    pub requirements: Vec<String>,
    /// The reason, unless it passed.
    pub reason: String,
    /// The requirements that the script compared something with, each once, in order.
    #[serde(skip)]
    pub recorded: Vec<String>,
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
    /// The duration by the link's clock.
    pub duration_ns: u64,
    /// The trace. In JSON it is text, for people.
    pub ladder: Ladder,
}

impl InstanceResult {
    /// The result of an instance that has not run.
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
            observations: Vec::new(),
            at_packet: None,
            capture: None,
            trace: None,
            rerun,
            duration_ns: 0,
            ladder: Ladder::default(),
        }
    }
}

/// The number of instances by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Passed.
    pub pass: usize,
    /// Failed, or failed at times.
    pub fail: usize,
    /// Reached no point where something could be checked.
    pub inconclusive: usize,
    /// Need what the device or the link lacks.
    pub skipped: usize,
}

impl Tally {
    fn count(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Pass => &mut self.pass,
            Verdict::Fail | Verdict::Flaky => &mut self.fail,
            Verdict::Inconclusive => &mut self.inconclusive,
            Verdict::Skipped => &mut self.skipped,
        } += 1;
    }

    /// The instances in all.
    pub fn total(&self) -> usize {
        self.pass + self.fail + self.inconclusive + self.skipped
    }
}

/// The result of a rule: of all its instances together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuleResult {
    /// The id of the rule.
    pub id: String,
    /// The group, the first part of `id`.
    pub group: String,
    /// The verdict of the worst instance. A rule is skipped only if each instance is.
    pub verdict: Verdict,
    /// The requirements of the rule; for a failure, only the broken ones.
    pub requirements: Vec<String>,
    /// The reason of the worst instance, after the values that fail.
    pub reason: String,
    /// The number of instances by verdict.
    pub instances: Tally,
    /// The instances that failed or were inconclusive.
    pub failing: Vec<InstanceResult>,
    /// The duration of all instances by the link's clock.
    pub duration_ns: u64,
    /// The reason why it is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waived: Option<String>,
    /// The baseline has it, no better than here.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub known: bool,
}

impl RuleResult {
    /// The result of a rule of which no instance has run.
    pub(crate) fn blank(rule: &Rule) -> Self {
        RuleResult {
            id: rule.id.into(),
            group: rule.group().into(),
            verdict: Verdict::Skipped,
            requirements: rule.requirements.iter().map(|requirement| requirement.id.into()).collect(),
            reason: String::new(),
            instances: Tally::default(),
            failing: Vec::new(),
            duration_ns: 0,
            waived: None,
            known: false,
        }
    }

    /// Adds the result of an instance.
    pub(crate) fn add(&mut self, found: InstanceResult) {
        let first = self.instances.total() == 0;
        self.instances.count(found.verdict);
        self.duration_ns += found.duration_ns;
        // A pass is worse than a skip here: the rule was tested.
        let rank = |verdict: Verdict| match verdict {
            Verdict::Skipped => 0,
            Verdict::Pass => 1,
            Verdict::Inconclusive => 2,
            Verdict::Flaky => 3,
            Verdict::Fail => 4,
        };
        if first || rank(found.verdict) > rank(self.verdict) {
            (self.verdict, self.reason) = (found.verdict, found.reason.clone());
        }
        if found.verdict.is_failure() {
            if !self.failing.iter().any(|other| other.verdict.is_failure()) {
                self.requirements.clear();
            }
            for requirement in &found.requirements {
                if !self.requirements.contains(requirement) {
                    self.requirements.push(requirement.clone());
                }
            }
        }
        if !matches!(found.verdict, Verdict::Pass | Verdict::Skipped) {
            self.failing.push(found);
        }
    }

    /// Whether it counts: it is neither waived nor known already.
    pub fn counts(&self) -> bool {
        self.waived.is_none() && !self.known
    }

    /// The instance that decided the verdict.
    pub fn worst(&self) -> Option<&InstanceResult> {
        self.failing.iter().find(|found| found.verdict == self.verdict)
    }
}

/// What a run found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// The suite's version.
    pub suite: String,
    /// What the catalogue of requirements hashes to: results of the same hash speak of the same requirements.
    pub catalogue: String,
    /// The version of the specification that the device was judged by: `1.0.3`.
    pub specification: String,
    /// The device, by its own words.
    pub device: String,
    /// What chance was made from.
    pub seed: u64,
    /// What the device says of itself, and what its statement and the profile say.
    pub statement: DeviceStatement,
    /// What the device's packets show one by one, in whatever case.
    pub packets: Packets,
    /// The rules.
    pub cases: Vec<RuleResult>,
    /// How many more were to run, when the run was stopped.
    #[serde(skip_serializing_if = "is_none")]
    pub not_run: usize,
    /// Why it ended before the last of them, where the device had gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// What a device says of itself, merged with what its statement and the profile say.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceStatement {
    /// Who it is, what it can do, by which parameters.
    #[serde(flatten)]
    pub device: Welcome,
    /// What the statement and the profile are called.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub of: String,
    /// One of them does not rest on the specification's own words.
    pub provisional: bool,
    /// Capabilities that they claim for it, and it does not claim itself.
    pub beyond: Vec<String>,
    /// Capabilities that are left out though the device claims them.
    pub disclaims: Vec<String>,
    /// Failures that are accepted.
    pub waivers: Vec<Waiver>,
}

/// What the packets of the device show one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Packets {
    /// How many were judged.
    pub judged: u64,
    /// What they break, each requirement once.
    pub findings: Vec<PacketFinding>,
}

impl RunResult {
    /// The number of rules with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.cases.iter().filter(|case| case.verdict == verdict).count()
    }

    /// The exit code: 0 when something passed and nothing failed, was flaky or stayed open; 1 after a failure, a flaky
    /// case, or a packet of the device that breaks a `must`; 2 when the device had gone; 3 when nothing passed, something
    /// stayed open, or the run was stopped. What is waived or known to the baseline is left out of account.
    pub fn exit_code(&self) -> u8 {
        let counts = |verdict: fn(Verdict) -> bool| {
            self.cases.iter().any(|case| case.counts() && verdict(case.verdict))
        };
        let accepted = self.cases.iter().any(|case| !case.counts());
        if self.stopped.is_some() {
            2
        } else if counts(Verdict::is_failure) || self.packets.findings.iter().any(PacketFinding::counts) {
            1
        } else if self.not_run > 0 || counts(|verdict| verdict == Verdict::Inconclusive) {
            3
        } else if counts(|verdict| verdict == Verdict::Pass) || accepted {
            0
        } else {
            3
        }
    }
}
