//! Corrections of the catalogue for one run: other levels and sentences, and requirements that are withdrawn.

use crate::{InstanceResult, Observation, Packets, Rule, Verdict};
use core::fmt;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use uet_wire::catalogue::{Level, Requirement};

/// A correction of one requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The requirement as the catalogue has it.
    pub requirement: &'static Requirement,
    /// Its level instead.
    pub level: Option<Level>,
    /// Its sentence instead.
    pub sentence: Option<String>,
    /// True if it is no requirement.
    pub withdrawn: bool,
    /// The reason, such as a section of the specification.
    pub reason: String,
}

impl Correction {
    /// Returns whether breaking the requirement is no failure: it is withdrawn, or an option.
    fn excuses(&self) -> bool {
        self.withdrawn || self.level == Some(Level::May)
    }
}

/// Displays the change and its reason: `PDS-ACK-004: should instead of must (section 3.5.12.2)`.
impl fmt::Display for Correction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.requirement.id)?;
        let level =
            self.level.map(|level| format!("{} instead of {}", level.name(), self.requirement.level.name()));
        let sentence = self.sentence.as_ref().map(|sentence| format!("reads '{sentence}'"));
        let withdrawn = self.withdrawn.then(|| "withdrawn".to_owned());
        let changes: Vec<String> = [withdrawn, level, sentence].into_iter().flatten().collect();
        write!(f, "{} ({})", changes.join(", "), self.reason)
    }
}

impl Serialize for Correction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Correction", 5)?;
        fields.serialize_field("id", self.requirement.id)?;
        fields.serialize_field("level", &self.level.map(Level::name))?;
        fields.serialize_field("sentence", &self.sentence)?;
        fields.serialize_field("withdrawn", &self.withdrawn)?;
        fields.serialize_field("reason", &self.reason)?;
        fields.end()
    }
}

/// The corrections of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Corrections(pub Vec<Correction>);

impl Corrections {
    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the correction of this requirement.
    pub fn find(&self, id: &str) -> Option<&Correction> {
        self.0.iter().find(|correction| correction.requirement.id == id)
    }

    /// Returns the level of a requirement; `None` if it is withdrawn.
    pub fn level(&self, requirement: &Requirement) -> Option<Level> {
        match self.find(requirement.id) {
            Some(correction) if correction.withdrawn => None,
            Some(correction) => Some(correction.level.unwrap_or(requirement.level)),
            None => Some(requirement.level),
        }
    }

    /// Returns a text about a requirement, with the corrected sentence.
    pub fn corrected(&self, requirement: &Requirement, text: &str) -> String {
        let sentence = self.find(requirement.id).and_then(|correction| correction.sentence.as_deref());
        sentence.map_or_else(|| text.to_owned(), |sentence| text.replace(requirement.sentence, sentence))
    }

    /// Returns the gravest level of a rule's requirements.
    pub(crate) fn level_of(&self, rule: &Rule) -> Option<Level> {
        rule.requirements.iter().filter_map(|requirement| self.level(requirement)).max()
    }

    /// Returns the reason if all requirements of a rule are withdrawn.
    pub(crate) fn withdrawn(&self, rule: &Rule) -> Option<String> {
        let of_rule = rule.requirements.iter().map(|it| self.find(it.id).filter(|it| it.withdrawn));
        let of_rule: Option<Vec<&Correction>> = of_rule.collect();
        let first = of_rule?.first().map(ToString::to_string)?;
        Some(format!("the catalogue is corrected: {first}"))
    }

    /// Removes excused observations from a failure. Without any other, the instance is skipped.
    pub(crate) fn apply(&self, found: &mut InstanceResult) {
        if self.is_empty() || !found.verdict.is_failure() {
            return;
        }
        let excuse = |seen: &Observation| self.find(&seen.requirement).filter(|it| it.excuses());
        let first_excuse = found.observations.iter().find_map(excuse).map(ToString::to_string);
        found.observations.retain(|seen| excuse(seen).is_none());
        match (found.observations.first(), first_excuse) {
            (_, None) => {}
            (None, Some(why)) => {
                found.verdict = Verdict::Skipped;
                found.reason = format!("the catalogue is corrected: {why}");
                found.at_packet = None;
            }
            (Some(first), Some(_)) => {
                let (id, expected, seen) = (&first.requirement, first.expectation(), &first.seen);
                found.reason = format!("{id}: expected {expected}, seen {seen}");
                found.at_packet = Some(first.packet);
                found.requirements = found.observations.iter().map(|seen| seen.requirement.clone()).collect();
                found.requirements.dedup();
            }
        }
        let broken = |it: &&Correction| found.requirements.iter().any(|id| id == it.requirement.id);
        found.corrections = Corrections(self.0.iter().filter(broken).cloned().collect());
    }

    /// Removes findings of withdrawn requirements, and corrects the levels of the others.
    pub(crate) fn apply_to(&self, packets: &mut Packets) {
        packets.findings.retain_mut(|finding| {
            let correction = finding.requirement.as_deref().and_then(|id| self.find(id));
            finding.level = correction.and_then(|correction| correction.level);
            if let Some(correction) = correction {
                finding.message = self.corrected(correction.requirement, &finding.message);
            }
            !correction.is_some_and(|correction| correction.withdrawn)
        });
    }
}
