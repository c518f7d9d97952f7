use crate::{RunResult, Verdict};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The result of an earlier run, compared with a new one: only worse results count.
///
/// It is deserialized from the output of `uet run --json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Baseline {
    rules: Vec<EarlierRule>,
    #[serde(default)]
    packets: Findings,
}

#[derive(Clone, Debug, Deserialize)]
struct EarlierRule {
    id: String,
    verdict: Verdict,
    /// Results of older versions lack this field.
    #[serde(default)]
    failing: Option<Vec<FailingBefore>>,
}

#[derive(Clone, Debug, Deserialize)]
struct FailingBefore {
    instance: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Findings {
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
    /// Rules that do not pass, and passed before or did not exist.
    pub new: Vec<String>,
    /// Rules that still do not pass.
    pub known: Vec<String>,
    /// Rules that pass now and did not before.
    pub mended: Vec<String>,
    /// Rules that are skipped now and were not before.
    pub lost: Vec<String>,
}

impl Baseline {
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
            let before = before.get(rule.id.as_str());
            let was = before.map(|before| before.verdict);
            // An instance that did not fail before is worse, although its rule failed.
            let worse = before.and_then(|before| before.failing.as_ref()).is_some_and(|known| {
                rule.failing.iter().any(|now| !known.iter().any(|before| before.instance == now.instance))
            });
            let list = match (was, rule.verdict) {
                (Some(Verdict::Fail | Verdict::Flaky | Verdict::Inconclusive), Verdict::Pass) => {
                    &mut changes.mended
                }
                (_, Verdict::Pass) | (None | Some(Verdict::Skipped), Verdict::Skipped) => continue,
                (_, Verdict::Skipped) => &mut changes.lost,
                _ if worse => &mut changes.new,
                (Some(Verdict::Fail | Verdict::Flaky), _)
                | (Some(Verdict::Inconclusive), Verdict::Inconclusive) => {
                    rule.known = true;
                    &mut changes.known
                }
                _ => &mut changes.new,
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

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Fail, Flaky, Inconclusive, Pass, Skipped};

    /// Returns the name of a change from `was` to `now`, and the exit code beside another rule that passes.
    fn change(was: Option<Verdict>, now: Verdict) -> (&'static str, u8) {
        let mut result = crate::run::blank_run();
        let rule = crate::RULES.iter().next().unwrap();
        let mut told = crate::RuleResult::blank(rule);
        told.verdict = Pass;
        let other = crate::RuleResult { id: "x/y".into(), verdict: now, ..told.clone() };
        result.rules = vec![told, other];
        let rules =
            was.map(|verdict| EarlierRule { id: "x/y".into(), verdict, failing: None }).into_iter().collect();
        let changes = Baseline { rules, packets: Findings::default() }.compare(&mut result);
        let Changes { new, known, mended, lost } = &changes;
        let lists = [("new", new), ("known", known), ("mended", mended), ("lost", lost)];
        let of = lists.iter().find(|(_, list)| !list.is_empty()).map_or("same", |(name, _)| name);
        (of, result.exit_code())
    }

    #[test]
    fn only_regressions_count() {
        for (was, now, expected) in [
            (None, Pass, ("same", 0)),
            (None, Fail, ("new", 1)),
            (None, Skipped, ("same", 0)),
            (None, Inconclusive, ("new", 3)),
            (Some(Pass), Fail, ("new", 1)),
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
            assert_eq!(change(was, now), expected, "{was:?} {now:?}");
        }
    }

    #[test]
    fn baseline_reads_run_json() {
        let result = crate::run::blank_run();
        let text = serde_json::to_string(&result).unwrap();
        assert!(serde_json::from_str::<Baseline>(&text).is_ok());
        assert!(serde_json::from_str::<Baseline>("{}").is_err());
    }
}
