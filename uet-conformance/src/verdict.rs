use crate::{Case, Ladder, PacketFinding, Waiver};
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

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The requirement that says so.
    pub requirement: String,
    /// Whether it held.
    pub held: bool,
    /// What was expected.
    pub expected: String,
    /// What was seen.
    pub seen: String,
    /// How many packets had passed.
    pub at_packet: usize,
}

/// What a case found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaseResult {
    /// The case.
    pub id: String,
    /// Its group, the first part of `id`.
    pub group: String,
    /// How it ended.
    pub verdict: Verdict,
    /// The requirements that it checks. Of a failure, only those that did not hold.
    pub requirements: Vec<String>,
    /// Why, where it is not a pass.
    pub reason: String,
    /// How many packets had passed when it failed.
    pub at_packet: Option<usize>,
    /// What was expected.
    pub expected: Option<String>,
    /// What was seen.
    pub seen: Option<String>,
    /// The file with its packets.
    pub capture: Option<String>,
    /// The command that runs it again.
    pub rerun: String,
    /// How long it took, by the link's clock.
    pub duration_ns: u64,
    /// Everything that did not hold; the first is told above.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<Check>,
    /// Why it is accepted that it is not a pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waived: Option<String>,
    /// The baseline has it, no better than here.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub known: bool,
    /// What passed. In JSON it is text, for people.
    pub ladder: Ladder,
}

impl CaseResult {
    /// A case that has not been run.
    pub(crate) fn blank(case: &Case, rerun: String) -> Self {
        CaseResult {
            id: case.id.into(),
            group: case.group().into(),
            verdict: Verdict::Skipped,
            requirements: case.requirements.iter().map(|requirement| requirement.id.into()).collect(),
            reason: String::new(),
            at_packet: None,
            expected: None,
            seen: None,
            capture: None,
            rerun,
            duration_ns: 0,
            broken: Vec::new(),
            waived: None,
            known: false,
            ladder: Ladder::default(),
        }
    }

    /// Whether it counts: it is neither waived nor known already.
    pub fn counts(&self) -> bool {
        self.waived.is_none() && !self.known
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
    /// The cases.
    pub cases: Vec<CaseResult>,
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
    /// How many cases ended so.
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
