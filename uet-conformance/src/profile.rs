//! Profiles: which features an endpoint must have, and what a run shows about each.

use crate::{Need, Registry, Rule, RuleResult, Verdict};
use serde::{Deserialize, Serialize};

/// A feature in a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileRow {
    /// Its id in the consortium's matrix: `SES-9`. Empty if that is not public.
    #[serde(default)]
    pub id: String,
    /// Its name.
    pub feature: String,
    /// The obligation of an endpoint to have it.
    #[serde(default)]
    pub obligation: Obligation,
    /// The capabilities of a device that has it.
    #[serde(default)]
    pub claims: Vec<String>,
    /// Requirements whose rules show it, beside the rules that need its capabilities.
    #[serde(default)]
    pub requirements: Vec<String>,
    /// More rules that show it, by id. A device that declines one of them lacks the feature.
    #[serde(default)]
    pub rules: Vec<String>,
}

impl ProfileRow {
    /// Returns whether a rule shows the feature: it needs a capability of it, checks a requirement of it, or
    /// is named.
    pub fn is_shown_by(&self, rule: &Rule) -> bool {
        let needs =
            |need: &Need| need.capability().is_some_and(|need| self.claims.iter().any(|claim| claim == need));
        rule.needs.iter().any(needs)
            || rule.requirements.iter().any(|of| self.requirements.iter().any(|id| id == of.id))
            || self.rules.iter().any(|id| id == rule.id)
    }
}

/// The obligation of an endpoint of a profile to have a feature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Obligation {
    /// It must.
    #[default]
    Mandatory,
    /// It may. Then the feature follows the specification.
    Optional,
    /// It must not.
    Excluded,
}

impl Obligation {
    /// Returns the obligation in words.
    pub fn name(self) -> &'static str {
        match self {
            Obligation::Mandatory => "mandatory",
            Obligation::Optional => "optional",
            Obligation::Excluded => "excluded",
        }
    }
}

/// The evidence of a run about a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowVerdict {
    /// It is mandatory, and the device does not claim or refuses it.
    Missing,
    /// It is excluded, and the device claims it.
    Excluded,
    /// A rule fails.
    Fail,
    /// A rule is inconclusive, and none fails.
    Inconclusive,
    /// A rule passes, and all others pass or are skipped.
    Pass,
    /// No rule ran.
    NotTested,
}

impl RowVerdict {
    /// Returns the verdict in words.
    pub fn name(self) -> &'static str {
        match self {
            RowVerdict::Missing => "missing",
            RowVerdict::Excluded => "excluded",
            RowVerdict::Fail => "fail",
            RowVerdict::Inconclusive => "inconclusive",
            RowVerdict::Pass => "pass",
            RowVerdict::NotTested => "not tested",
        }
    }
}

/// A feature of the profile with its verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JudgedRow {
    /// Its id in the consortium's matrix.
    pub id: String,
    /// Its name.
    pub feature: String,
    /// The obligation of an endpoint to have it.
    pub obligation: Obligation,
    /// The verdict.
    pub verdict: RowVerdict,
    /// True if the device claims all capabilities of it.
    #[serde(skip)]
    pub claimed: bool,
    /// The rules that ran for it.
    pub rules: Vec<String>,
}

/// The verdicts of a run about a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProfileResult {
    /// The name of the profile.
    pub name: String,
    /// Its features.
    pub rows: Vec<JudgedRow>,
}

impl ProfileResult {
    /// Judges the features of a profile by the claims of a device and the results of rules.
    pub(crate) fn new(
        name: &str,
        rows: &[ProfileRow],
        claims: &[String],
        registry: Registry,
        results: &[RuleResult],
    ) -> Self {
        let judge = |row: &ProfileRow| {
            let shows =
                |result: &&RuleResult| registry.find(&result.id).is_some_and(|rule| row.is_shown_by(rule));
            let ran: Vec<&RuleResult> =
                results.iter().filter(|result| result.verdict != Verdict::Skipped).filter(shows).collect();
            let any =
                |verdict: fn(Verdict) -> bool| ran.iter().any(|rule| rule.counts() && verdict(rule.verdict));
            let claimed = row.claims.iter().all(|claim| claims.contains(claim));
            let has_claims = !row.claims.is_empty();
            let declined = results.iter().any(|result| result.declined && row.rules.contains(&result.id));
            let verdict = match row.obligation {
                Obligation::Mandatory if !claimed || declined => RowVerdict::Missing,
                Obligation::Excluded if claimed && has_claims => RowVerdict::Excluded,
                _ if any(Verdict::is_failure) => RowVerdict::Fail,
                _ if any(|verdict| verdict == Verdict::Inconclusive) => RowVerdict::Inconclusive,
                _ if ran.is_empty() => RowVerdict::NotTested,
                _ => RowVerdict::Pass,
            };
            JudgedRow {
                id: row.id.clone(),
                feature: row.feature.clone(),
                obligation: row.obligation,
                verdict,
                claimed,
                rules: ran.iter().map(|rule| rule.id.clone()).collect(),
            }
        };
        ProfileResult { name: name.into(), rows: rows.iter().map(judge).collect() }
    }

    /// Returns the features that the device lacks, or has and should not.
    pub fn breaches(&self) -> impl Iterator<Item = &JudgedRow> {
        self.rows.iter().filter(|row| matches!(row.verdict, RowVerdict::Missing | RowVerdict::Excluded))
    }

    /// Returns the number of mandatory features that pass, and of all mandatory ones.
    pub fn passed(&self) -> (usize, usize) {
        let mandatory = || self.rows.iter().filter(|row| row.obligation == Obligation::Mandatory);
        (mandatory().filter(|row| row.verdict == RowVerdict::Pass).count(), mandatory().count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::needs::{READ, ROD};
    use crate::rule;
    use uet_wire::catalogue::PDS_ACK_002;

    const RULES: Registry = Registry::new(&[&[&[
        rule("rod/gap", "").needs(&[ROD]).run(|_| Ok(())),
        rule("read/response", "").needs(&[READ]).run(|_| Ok(())),
        rule("ack/mark", "").checks(&[PDS_ACK_002]).run(|_| Ok(())),
        rule("errors/no-op", "").run(|_| Ok(())),
    ]]]);

    fn judged(claims: &[&str], results: &[(&str, Verdict)]) -> Vec<RowVerdict> {
        let row = |claims: &[&str], obligation, requirements: &[&str]| ProfileRow {
            feature: "a feature".into(),
            obligation,
            claims: claims.iter().map(ToString::to_string).collect(),
            requirements: requirements.iter().map(ToString::to_string).collect(),
            ..ProfileRow::default()
        };
        let rows = [
            row(&["rod"], Obligation::Mandatory, &[]),
            row(&["rudi"], Obligation::Excluded, &[]),
            row(&["read"], Obligation::Optional, &[]),
            row(&[], Obligation::Mandatory, &["PDS-ACK-002"]),
        ];
        let results: Vec<RuleResult> = results
            .iter()
            .map(|(id, verdict)| RuleResult {
                verdict: *verdict,
                ..RuleResult::blank(RULES.find(id).expect("a rule"))
            })
            .collect();
        let claims: Vec<String> = claims.iter().map(ToString::to_string).collect();
        let result = ProfileResult::new("p", &rows, &claims, RULES, &results);
        assert_eq!(result.passed().1, 2);
        result.rows.into_iter().map(|row| row.verdict).collect()
    }

    #[test]
    fn a_mandatory_feature_that_the_device_refuses_is_missing() {
        let rows = [ProfileRow { rules: vec!["errors/no-op".into()], ..ProfileRow::default() }];
        for (declined, verdict) in [(false, RowVerdict::Pass), (true, RowVerdict::Missing)] {
            let rule = RULES.find("errors/no-op").expect("a rule");
            let result = RuleResult { verdict: Verdict::Pass, declined, ..RuleResult::blank(rule) };
            let judged = ProfileResult::new("p", &rows, &[], RULES, &[result]);
            assert_eq!(judged.rows[0].verdict, verdict);
        }
    }

    #[test]
    fn a_row_is_judged_by_claims_and_by_its_rules() {
        use RowVerdict::{Excluded, Fail, Inconclusive, Missing, NotTested, Pass};
        let ran = [
            ("rod/gap", Verdict::Pass),
            ("ack/mark", Verdict::Fail),
            ("read/response", Verdict::Inconclusive),
        ];
        assert_eq!(judged(&["rod", "rudi", "read"], &ran), [Pass, Excluded, Inconclusive, Fail]);
        assert_eq!(judged(&[], &[("rod/gap", Verdict::Skipped)]), [Missing, NotTested, NotTested, NotTested]);
    }
}
