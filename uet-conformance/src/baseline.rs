use crate::pics::Shown;
use crate::result::SCHEMA;
use crate::wellformed;
use crate::{InstanceResult, Played, Registry, RuleResult, RunResult, Verdict};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::collections::{BTreeMap, BTreeSet};
use uet_control::escape;
use uet_wire::catalogue::Requirement;

/// The result of an earlier run, compared with a new one: only worse results count.
///
/// It is deserialized from the output of `uet run --json`, which may be hostile: unknown keys take no memory,
/// and names are escaped.
#[derive(Clone, Debug, Deserialize)]
pub struct Baseline {
    #[serde(default, rename = "schema", deserialize_with = "known_schema")]
    _schema: (),
    rules: Vec<EarlierRule>,
    #[serde(default)]
    packets: Findings,
    /// Older results lack it.
    #[serde(default, rename = "statement")]
    device: Option<EarlierDevice>,
    #[serde(default)]
    seed: Option<u64>,
    #[serde(default)]
    not_run: usize,
}

/// The device of an earlier run, as it described itself.
#[derive(Clone, Debug, Deserialize)]
pub struct EarlierDevice {
    /// The name of the device.
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// The version of the device.
    #[serde(default, deserialize_with = "name")]
    pub version: String,
    /// The version of the specification that the device implements.
    #[serde(default, deserialize_with = "name")]
    pub specification: String,
    /// The capabilities.
    pub capabilities: Vec<String>,
}

/// Fails if a newer suite wrote the result.
fn known_schema<'de, D: Deserializer<'de>>(of: D) -> Result<(), D::Error> {
    match u64::deserialize(of)? {
        schema if schema > u64::from(SCHEMA) => {
            Err(D::Error::custom(format!("schema {schema} is newer than {SCHEMA}, which this suite reads")))
        }
        _ => Ok(()),
    }
}

/// Escapes a name that may reach a terminal, and refuses one that would fill it.
fn name<'de, D: Deserializer<'de>>(of: D) -> Result<String, D::Error> {
    const LONGEST: usize = 1 << 10;
    let name = String::deserialize(of)?;
    match name.len() > LONGEST {
        true => Err(D::Error::custom(format!("a name has more than {LONGEST} bytes"))),
        false => Ok(escape(&name).into_owned()),
    }
}

#[derive(Clone, Debug, Deserialize)]
struct EarlierRule {
    #[serde(deserialize_with = "name")]
    id: String,
    verdict: Verdict,
    /// The broken requirements of a failure.
    #[serde(default)]
    requirements: Vec<String>,
    /// Results of older versions lack this field.
    #[serde(default)]
    failing: Option<Vec<FailingBefore>>,
    #[serde(default)]
    played: Option<Played>,
}

impl EarlierRule {
    /// Returns whether an instance is worse than before: it was played, and breaks a requirement that its
    /// rule did not.
    fn is_worse(&self, now: &InstanceResult) -> bool {
        let was_played = self.played.as_ref().is_none_or(|played| played.has(&now.instance));
        was_played && self.is_other(now)
    }

    /// Returns whether an instance does not pass in another way than its rule did before.
    fn is_other(&self, now: &InstanceResult) -> bool {
        match self.verdict {
            Verdict::Pass | Verdict::Skipped => true,
            Verdict::Inconclusive => now.verdict.is_failure(),
            Verdict::Fail | Verdict::Flaky => {
                let was_broken = |requirement| self.requirements.contains(requirement);
                now.verdict.is_failure() && !now.requirements.iter().all(was_broken)
            }
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
struct FailingBefore {
    #[serde(deserialize_with = "name")]
    instance: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Findings {
    #[serde(default)]
    judged: u64,
    /// Older results lack it.
    #[serde(default)]
    headers: BTreeSet<String>,
    #[serde(default)]
    findings: Vec<EarlierFinding>,
}

#[derive(Clone, Debug, Deserialize)]
struct EarlierFinding {
    requirement: Option<String>,
}

/// Differences of a run from its baseline, by rule id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Rules that are worse: an instance that the earlier run played too does not pass now, or breaks another
    /// requirement.
    pub new: Vec<String>,
    /// Rules that do not pass as before.
    pub known: Vec<String>,
    /// Rules that do not pass only in instances that the earlier run did not play.
    pub unplayed: Vec<String>,
    /// Rules that pass now and did not before.
    pub mended: Vec<String>,
    /// Rules that are skipped now and were not before.
    pub lost: Vec<String>,
}

impl Baseline {
    /// Returns what the device said of itself.
    pub fn device(&self) -> Option<&EarlierDevice> {
        self.device.as_ref()
    }

    /// Returns the seed of the run, or `None` if the result does not name it.
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// Returns the number of rules that the run did not play because it was stopped.
    pub fn not_run(&self) -> usize {
        self.not_run
    }

    /// Returns the evidence about a requirement, which these rules check.
    pub fn shown(&self, rules: Registry, requirement: &Requirement) -> Shown {
        let verdicts =
            self.rules.iter().map(|rule| (rule.id.as_str(), rule.verdict, rule.requirements.as_slice()));
        let findings = self.packets.findings.iter().filter_map(|finding| finding.requirement.as_deref());
        let Findings { judged, headers, .. } = &self.packets;
        let packets = |of: &Requirement| wellformed::concern(of, *judged, |name| headers.contains(name));
        Shown::of(requirement, rules, verdicts, findings, packets)
    }

    /// Returns the ids of the instances that did not pass, or of their rules if the result does not list
    /// them.
    pub fn failed(&self) -> Vec<String> {
        let bad = |rule: &&EarlierRule| !matches!(rule.verdict, Verdict::Pass | Verdict::Skipped);
        let ids = |rule: &EarlierRule| match rule.failing.as_deref() {
            None | Some([]) => vec![rule.id.clone()],
            Some(failing) => failing.iter().map(|found| found.instance.clone()).collect(),
        };
        self.rules.iter().filter(bad).flat_map(ids).collect()
    }

    /// Marks known failures in a result and returns the differences.
    pub fn compare(&self, result: &mut RunResult) -> Changes {
        let before: BTreeMap<&str, &EarlierRule> =
            self.rules.iter().map(|rule| (rule.id.as_str(), rule)).collect();
        let mut changes = Changes::default();
        for rule in result.rules.iter_mut().filter(|rule| rule.waived.is_none()) {
            let before = before.get(rule.id.as_str()).copied();
            let was = before.map(|before| before.verdict);
            let list = match (was, rule.verdict) {
                (Some(Verdict::Fail | Verdict::Flaky | Verdict::Inconclusive), Verdict::Pass) => {
                    &mut changes.mended
                }
                (_, Verdict::Pass) | (None | Some(Verdict::Skipped), Verdict::Skipped) => continue,
                (_, Verdict::Skipped) => &mut changes.lost,
                _ => list_of(&mut changes, before, rule),
            };
            list.push(rule.id.clone());
        }
        for finding in &mut result.packets.findings {
            finding.known =
                self.packets.findings.iter().any(|before| before.requirement == finding.requirement);
        }
        changes
    }
}

/// Marks a rule that does not pass and returns its list.
fn list_of<'c>(
    changes: &'c mut Changes,
    before: Option<&EarlierRule>,
    rule: &mut RuleResult,
) -> &'c mut Vec<String> {
    let is_worse = |before: &EarlierRule| rule.failing.iter().any(|now| before.is_worse(now));
    let is_other = |before: &EarlierRule| rule.failing.iter().any(|now| before.is_other(now));
    if before.is_some_and(is_worse) {
        return &mut changes.new;
    }
    rule.not_in_baseline = before.is_none_or(is_other);
    rule.known = !rule.not_in_baseline;
    if rule.known { &mut changes.known } else { &mut changes.unplayed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Instance, Rule};
    use Verdict::{Fail, Flaky, Inconclusive, Pass, Skipped};

    /// Returns the result of a rule with one instance, which breaks these requirements if it fails.
    fn rule(instance: &str, verdict: Verdict, broken: &[&str]) -> RuleResult {
        static RULE: Rule = crate::rule("x/y", "").run(|_| Ok(()));
        let found = Instance::first(&RULE);
        let mut result = RuleResult::blank(&RULE);
        result.add(InstanceResult {
            instance: instance.into(),
            verdict,
            requirements: broken.iter().map(|id| (*id).to_owned()).collect(),
            ..InstanceResult::blank(&found, String::new())
        });
        result
    }

    /// Returns the list that names a rule, and the exit code beside another rule that passes.
    fn compared(before: Option<RuleResult>, now: RuleResult) -> (&'static str, u8) {
        let mut result = crate::run::blank_run();
        result.rules = before.into_iter().collect();
        let baseline: Baseline = serde_json::from_str(&serde_json::to_string(&result).unwrap()).unwrap();
        result.rules = vec![RuleResult { id: "x/other".into(), ..rule("x/other", Pass, &[]) }, now];
        let changes = baseline.compare(&mut result);
        let Changes { new, known, unplayed, mended, lost } = &changes;
        let lists =
            [("new", new), ("known", known), ("unplayed", unplayed), ("mended", mended), ("lost", lost)];
        let of = lists.iter().find(|(_, list)| !list.is_empty()).map_or("same", |(name, _)| name);
        (of, result.exit_code())
    }

    #[test]
    fn only_regressions_count() {
        for (was, now, expected) in [
            (None, Pass, ("same", 0)),
            (None, Fail, ("unplayed", 0)),
            (None, Skipped, ("same", 0)),
            (None, Inconclusive, ("unplayed", 0)),
            (Some(Pass), Fail, ("new", 1)),
            (Some(Pass), Inconclusive, ("new", 3)),
            (Some(Pass), Skipped, ("lost", 0)),
            (Some(Fail), Fail, ("known", 0)),
            (Some(Fail), Flaky, ("known", 0)),
            (Some(Fail), Inconclusive, ("known", 0)),
            (Some(Fail), Pass, ("mended", 0)),
            (Some(Inconclusive), Inconclusive, ("known", 0)),
            (Some(Inconclusive), Fail, ("new", 1)),
            (Some(Inconclusive), Pass, ("mended", 0)),
            (Some(Skipped), Fail, ("new", 1)),
        ] {
            let was_rule = was.map(|verdict| rule("x/y[a=1]", verdict, &["PDS-ACK-004"]));
            let found = compared(was_rule, rule("x/y[a=1]", now, &["PDS-ACK-004"]));
            assert_eq!(found, expected, "{was:?} {now:?}");
        }
    }

    #[test]
    fn other_instances_are_new_only_if_they_were_played() {
        let passed = || Some(rule("x/y[a=1]", Pass, &[]));
        assert_eq!(compared(passed(), rule("x/y[a=2]", Fail, &["PDS-ACK-004"])), ("unplayed", 0));
        assert_eq!(compared(passed(), rule("x/y[a=1]", Fail, &["PDS-ACK-004"])), ("new", 1));
    }

    #[test]
    fn failures_compare_by_requirement() {
        let failed = || Some(rule("x/y[a=1]", Fail, &["PDS-ACK-004"]));
        assert_eq!(compared(failed(), rule("x/y[a=2]", Fail, &["PDS-ACK-004"])), ("known", 0));
        assert_eq!(compared(failed(), rule("x/y[a=2]", Fail, &["PDS-ACK-005"])), ("unplayed", 0));
        assert_eq!(compared(failed(), rule("x/y[a=1]", Fail, &["PDS-ACK-005"])), ("new", 1));
    }

    #[test]
    fn baseline_reads_run_json() {
        let result = crate::run::blank_run();
        let text = serde_json::to_string(&result).unwrap();
        assert!(serde_json::from_str::<Baseline>(&text).is_ok());
        assert!(serde_json::from_str::<Baseline>("{}").is_err());
        let read = |schema: &str, id: &str| {
            let rule = format!(r#"{{"id":"{id}","verdict":"fail"}}"#);
            let text = format!(r#"{{"schema":{schema},"rules":[{rule}],"x":[{{"a":0}}]}}"#);
            serde_json::from_str::<Baseline>(&text).map(|baseline| baseline.failed())
        };
        assert_eq!(read("1", "x\u{202e}").unwrap(), [r"x\u{202e}"]);
        assert!(read("18446744073709551615", "x").unwrap_err().to_string().contains("schema"));
        assert!(read("1", &"x".repeat(2_000)).is_err());
    }
}
