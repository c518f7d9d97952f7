//! The implementation conformance statement (PICS) of a vendor, compared with `hello` and with the results of
//! a run.

use crate::{Registry, Verdict, coverage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uet_wire::catalogue::{self, Requirement};

/// An answer in the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stated {
    /// Supported.
    #[serde(rename = "yes")]
    Yes,
    /// Not supported.
    #[serde(rename = "no")]
    No,
    /// It does not apply to this device.
    #[serde(rename = "n/a")]
    NotApplicable,
    /// Not answered yet.
    #[serde(rename = "?")]
    Open,
}

/// A form that a vendor has filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PicsForm {
    /// Vendor, product, version and others.
    #[serde(default)]
    pub implementation: BTreeMap<String, String>,
    /// Answers by capability.
    #[serde(default)]
    pub capabilities: BTreeMap<String, Stated>,
    /// Answers by requirement.
    #[serde(default)]
    pub requirements: BTreeMap<String, Stated>,
}

/// The evidence of a run about a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// A check held, and none failed.
    Held,
    /// A check failed.
    Failed,
    /// No check ran.
    NotTested,
}

impl Shown {
    /// Returns the evidence about a requirement. `verdicts` are the rules that ran, with the requirements
    /// that they broke. `findings` are the requirements that single packets broke, and `packets` is true for
    /// requirements of which the run had such a packet.
    pub(crate) fn of<'a>(
        requirement: &Requirement,
        rules: Registry,
        verdicts: impl Iterator<Item = (&'a str, Verdict, &'a [String])>,
        mut findings: impl Iterator<Item = &'a str>,
        packets: impl Fn(&Requirement) -> bool,
    ) -> Self {
        let checks = coverage::of(rules, requirement);
        let mut held = checks.every_packet && packets(requirement);
        if findings.any(|id| id == requirement.id) {
            return Shown::Failed;
        }
        for (rule, verdict, broken) in verdicts {
            if verdict.is_failure() && broken.iter().any(|id| id == requirement.id) {
                return Shown::Failed;
            }
            held |= verdict == Verdict::Pass && checks.rules.contains(&rule);
        }
        if held { Shown::Held } else { Shown::NotTested }
    }
}

/// A requirement in the form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PicsAnswer {
    /// The requirement.
    pub id: String,
    /// The answer of the vendor.
    pub stated: Stated,
    /// The result of the run.
    pub shown: Shown,
}

/// A form beside the device and the result of its run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pics {
    /// Vendor, product, version and others.
    pub implementation: BTreeMap<String, String>,
    /// Contradictions between the form and `hello`.
    pub conflicts: Vec<String>,
    /// All requirements of the catalogue. The form does not answer those that it lacks.
    pub requirements: Vec<PicsAnswer>,
}

impl Pics {
    /// Compares a form with the capabilities of `hello` and the evidence of a run.
    pub fn new(form: &PicsForm, claimed: &[String], shown: impl Fn(&Requirement) -> Shown) -> Self {
        let conflict = |(name, stated): (&String, &Stated)| match (stated, claimed.contains(name)) {
            (Stated::Yes, false) => Some(format!("the form states '{name}', but hello does not claim it")),
            (Stated::No, true) => Some(format!("hello claims '{name}', but the form answers \"no\"")),
            (Stated::NotApplicable, true) => {
                Some(format!("hello claims '{name}', but the form answers \"n/a\""))
            }
            _ => None,
        };
        let answer = |requirement: &&Requirement| PicsAnswer {
            id: requirement.id.into(),
            stated: form.requirements.get(requirement.id).copied().unwrap_or(Stated::Open),
            shown: shown(requirement),
        };
        Pics {
            implementation: form.implementation.clone(),
            conflicts: form.capabilities.iter().filter_map(conflict).collect(),
            requirements: catalogue::ALL.iter().map(answer).collect(),
        }
    }

    /// Returns the requirements with this answer and result.
    pub fn of(&self, stated: Stated, shown: Option<Shown>) -> impl Iterator<Item = &str> {
        let wanted =
            move |it: &&PicsAnswer| it.stated == stated && shown.is_none_or(|shown| it.shown == shown);
        self.requirements.iter().filter(wanted).map(|it| it.id.as_str())
    }
}
