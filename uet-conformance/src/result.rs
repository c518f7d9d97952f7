//! The results of rules and of a run.

use crate::pics::{Pics, Shown};
use crate::random::Figures;
use crate::wellformed;
use crate::{
    Corrections, InstanceResult, Ladder, Liveness, PacketFinding, Packets, ProfileResult, Registry, Rule,
    Verdict, Waiver,
};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uet_control::Welcome;
use uet_wire::catalogue::Requirement;

/// The number of instances by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Passed.
    pub pass: usize,
    /// Failed or flaky.
    pub fail: usize,
    /// Inconclusive.
    pub inconclusive: usize,
    /// Skipped.
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

    /// Returns the number of all instances.
    pub fn total(&self) -> usize {
        self.pass + self.fail + self.inconclusive + self.skipped
    }
}

/// The instances of a rule that a run has played, as a short digest of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Played(Vec<u32>);

impl Played {
    /// FNV-1a: a digest has to stay the same in later versions.
    fn digest(instance: &str) -> u32 {
        instance
            .bytes()
            .fold(0x811c_9dc5, |digest, byte| (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }

    fn add(&mut self, instance: &str) {
        self.0.push(Self::digest(instance));
    }

    /// Returns whether an instance was played.
    pub fn has(&self, instance: &str) -> bool {
        self.0.contains(&Self::digest(instance))
    }
}

impl Serialize for Played {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.iter().map(|digest| format!("{digest:08x}")).collect::<String>())
    }
}

impl<'de> Deserialize<'de> for Played {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.as_bytes().chunks(8).map(|digits| core::str::from_utf8(digits).unwrap_or_default());
        let digests = digits.map(|digits| u32::from_str_radix(digits, 16));
        digests
            .collect::<Result<_, _>>()
            .map(Played)
            .map_err(|error| D::Error::custom(format!("played: {error}")))
    }
}

/// The combined result of all instances of a rule.
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
    /// True if the device refused a feature that only a profile requires.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub declined: bool,
    /// The instances that were played, for a later comparison.
    pub played: Played,
    /// The instances that failed or were inconclusive.
    #[serde(serialize_with = "crate::listing::failing")]
    pub failing: Vec<InstanceResult>,
    /// Number of times that instances were played: more than there are, if some were repeated.
    pub attempts: u32,
    /// The instances that passed only when they were played again, on a busy host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passed_later: Vec<String>,
    /// The duration of all attempts by the link's clock.
    pub duration_ns: u64,
    /// Reason why the failure is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waived: Option<String>,
    /// True if the baseline has this verdict or a worse one.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub known: bool,
    /// True if only instances that the baseline did not play make it worse.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub not_in_baseline: bool,
}

impl RuleResult {
    /// Creates the result of a rule without instances.
    pub(crate) fn blank(rule: &Rule) -> Self {
        RuleResult {
            id: rule.id.into(),
            group: rule.group().into(),
            verdict: Verdict::Skipped,
            requirements: rule.requirements.iter().map(|requirement| requirement.id.into()).collect(),
            reason: String::new(),
            instances: Tally::default(),
            declined: false,
            played: Played::default(),
            failing: Vec::new(),
            attempts: 0,
            passed_later: Vec::new(),
            duration_ns: 0,
            waived: None,
            known: false,
            not_in_baseline: false,
        }
    }

    /// Adds the result of an instance.
    pub(crate) fn add(&mut self, found: InstanceResult) {
        let first = self.instances.total() == 0;
        self.instances.count(found.verdict);
        self.played.add(&found.instance);
        self.declined |= found.declined;
        self.attempts += found.attempts;
        if found.replayed && found.verdict == Verdict::Pass {
            self.passed_later.push(found.instance.clone());
        }
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
        if let Some(reason) = self.worst().map(|worst| worst.reason.clone()) {
            self.reason = reason;
        }
    }

    /// Returns whether it counts: it is not waived, and is worse than in the baseline.
    pub fn counts(&self) -> bool {
        self.waived.is_none() && !self.known && !self.not_in_baseline
    }

    /// Returns the number of bytes of the packets in its traces.
    pub(crate) fn trace_bytes(&self) -> usize {
        self.failing.iter().map(|found| found.ladder.bytes()).sum()
    }

    /// Keeps the trace of the worst instance only: a device that breaks every rule would fill the memory.
    pub(crate) fn drop_traces(&mut self) {
        let shown = self.worst().map(|worst| worst.instance.clone());
        for found in self.failing.iter_mut().filter(|found| Some(&found.instance) != shown.as_ref()) {
            found.ladder = Ladder::default();
        }
    }

    /// Returns the instance that decided the verdict.
    pub fn worst(&self) -> Option<&InstanceResult> {
        worst_of(&self.failing, self.verdict)
    }
}

/// Returns the instance that decided this verdict: the first in which the device ended or fell silent, if
/// there is one, because that affects all others.
pub(crate) fn worst_of(failing: &[InstanceResult], verdict: Verdict) -> Option<&InstanceResult> {
    let deciding = || failing.iter().filter(|found| found.verdict == verdict);
    deciding().find(|found| found.liveness != Liveness::Alive).or_else(|| deciding().next())
}

/// The current [`schema`](RunResult::schema) of a result.
pub const SCHEMA: u32 = 2;

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// Version of the form of this object. It rises when a key changes its name or meaning.
    pub schema: u32,
    /// Version of the suite.
    pub suite: String,
    /// Hash of the catalogue of requirements: results with equal hashes refer to the same requirements.
    pub catalogue: String,
    /// Version of the specification that judged the device: `1.0.3`.
    pub specification: String,
    /// Name of the device as it reports it.
    pub device: String,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Claims of the device, its statement and the profile.
    pub statement: DeviceStatement,
    /// The features of the profile with their verdicts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileResult>,
    /// Circumstances that limit the results.
    #[serde(flatten)]
    pub circumstances: Circumstances,
    /// Single-packet findings of the device's packets in all rules.
    pub packets: Packets,
    /// The rules.
    pub rules: Vec<RuleResult>,
    /// Number of rules left when the run was stopped.
    #[serde(skip_serializing_if = "is_none")]
    pub not_run: usize,
    /// Reason for an early end, if the device failed. [`Circumstances::ended_by`] has other reasons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// Figures of random conversations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random: Option<Figures>,
}

/// Circumstances of a run that limit its results. JSON leaves out those that do not apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Circumstances {
    /// True if the device has no control channel: only rules that packets alone can check have run.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub packets_only: bool,
    /// Corrections of the catalogue.
    #[serde(skip_serializing_if = "Corrections::is_empty")]
    pub corrections: Corrections,
    /// The implementation conformance statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pics: Option<Pics>,
    /// The reason why the run ended early, other than the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<EarlyEnd>,
    /// The ids of the rules left when the run was stopped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_run_rules: Vec<String>,
}

/// The wish of a user that ends a run early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlyEnd {
    /// [`Options::stop`](crate::Options::stop), which a signal sets.
    Signal,
    /// A failure, with [`Options::fail_fast`](crate::Options::fail_fast).
    FailFast,
}

impl core::fmt::Display for EarlyEnd {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            EarlyEnd::Signal => "by a signal",
            EarlyEnd::FailFast => "by --fail-fast, at the first failure",
        })
    }
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// Claims of a device, merged with its statement and the profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceStatement {
    /// Identity, capabilities and parameters.
    #[serde(flatten)]
    pub device: Welcome,
    /// Names of the statement and the profile.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub of: String,
    /// True if one of them is based on something other than the specification's text.
    pub provisional: bool,
    /// Capabilities that they claim and the device does not.
    pub beyond: Vec<String>,
    /// Capabilities that the device claims and the suite does not test.
    pub disclaims: Vec<String>,
    /// Accepted failures.
    pub waivers: Vec<Waiver>,
}

impl RunResult {
    /// Returns the number of rules with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rules.iter().filter(|rule| rule.verdict == verdict).count()
    }

    /// Returns the exit code. Ignores waived results and those known to the baseline.
    ///
    /// - 0: at least one pass, and no failure, flaky or inconclusive rule.
    /// - 1: a failure, a flaky rule, or a packet of the device that breaks a `must`.
    /// - 2: the device could no longer be reached.
    /// - 3: nothing passed, a rule is inconclusive, or the run was stopped.
    pub fn exit_code(&self) -> u8 {
        let counts = |verdict: fn(Verdict) -> bool| {
            self.rules.iter().any(|rule| rule.counts() && verdict(rule.verdict))
        };
        let accepted = self.rules.iter().any(|rule| !rule.counts());
        if self.stopped.is_some() {
            2
        } else if counts(Verdict::is_failure)
            || self.packets.findings.iter().any(PacketFinding::counts)
            || self.profile.iter().any(|profile| profile.breaches().next().is_some())
        {
            1
        } else if self.not_run > 0
            || self.circumstances.ended_by.is_some()
            || counts(|verdict| verdict == Verdict::Inconclusive)
        {
            3
        } else if counts(|verdict| verdict == Verdict::Pass) || accepted {
            0
        } else {
            3
        }
    }

    /// Returns the claims of the device that nothing supports: several rules that need one ran, and none
    /// passed. Each comes with their number. A claim is the likeliest mistake in the set-up of a device.
    pub fn unsupported_claims(&self, rules: Registry) -> Vec<(&str, usize)> {
        const SEVERAL: usize = 3;
        let ran = |claim: &str| {
            let needs = |rule: &Rule| rule.needs.iter().any(|need| need.capability() == Some(claim));
            let of = self.rules.iter().filter(|found| rules.find(&found.id).is_some_and(needs));
            of.map(|found| found.verdict).filter(|verdict| *verdict != Verdict::Skipped).collect::<Vec<_>>()
        };
        let claims = self.statement.device.capabilities.iter().map(|claim| (claim.as_str(), ran(claim)));
        let unsupported = claims.filter(|(_, ran)| ran.len() >= SEVERAL && !ran.contains(&Verdict::Pass));
        // If nothing at all passes, no claim is special.
        let something = self.count(Verdict::Pass) > 0;
        unsupported.filter(|_| something).map(|(claim, ran)| (claim, ran.len())).collect()
    }

    /// Returns the evidence about a requirement, which these rules check.
    pub fn shown(&self, rules: Registry, requirement: &Requirement) -> Shown {
        let verdicts =
            self.rules.iter().map(|rule| (rule.id.as_str(), rule.verdict, rule.requirements.as_slice()));
        let findings = self.packets.findings.iter().filter_map(|finding| finding.requirement.as_deref());
        let Packets { judged, headers, .. } = &self.packets;
        let packets = |of: &Requirement| wellformed::concern(of, *judged, |name| headers.contains(name));
        Shown::of(requirement, rules, verdicts, findings, packets)
    }
}
