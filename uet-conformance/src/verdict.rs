use serde::{Deserialize, Serialize};

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    #[serde(default)]
    pub reason: String,
    /// How many packets had passed when it failed.
    #[serde(default)]
    pub at_packet: Option<usize>,
    /// What was expected.
    #[serde(default)]
    pub expected: Option<String>,
    /// What was seen.
    #[serde(default)]
    pub seen: Option<String>,
    /// The file with its packets.
    #[serde(default)]
    pub capture: Option<String>,
    /// The command that runs it again.
    #[serde(default)]
    pub rerun: String,
    /// How long it took, by the link's clock.
    pub duration_ns: u64,
    /// What passed, for people.
    #[serde(default)]
    pub ladder: String,
}

/// What a run found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunResult {
    /// The suite's version.
    pub suite: String,
    /// The device, by its own words.
    pub device: String,
    /// What chance was made from.
    pub seed: u64,
    /// The cases.
    pub cases: Vec<CaseResult>,
}

impl RunResult {
    /// How many cases ended so.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.cases.iter().filter(|case| case.verdict == verdict).count()
    }

    /// The exit code: 0 when something passed and nothing failed, was flaky or stayed open; 1 after a failure or a flaky
    /// case; 3 when nothing passed, or something stayed open.
    pub fn exit_code(&self) -> u8 {
        match (self.count(Verdict::Fail) + self.count(Verdict::Flaky), self.count(Verdict::Pass)) {
            (0, 0) => 3,
            (0, _) if self.count(Verdict::Inconclusive) > 0 => 3,
            (0, _) => 0,
            _ => 1,
        }
    }
}
