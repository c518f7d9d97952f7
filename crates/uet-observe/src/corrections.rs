//! Corrections of the catalogue for one run: other levels and sentences, and requirements that are withdrawn.

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
    pub fn excuses(&self) -> bool {
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

    /// Returns the gravest level of these requirements.
    pub fn level_of(&self, requirements: &[&Requirement]) -> Option<Level> {
        requirements.iter().filter_map(|requirement| self.level(requirement)).max()
    }

    /// Returns the reason if all these requirements are withdrawn.
    pub fn withdrawn(&self, requirements: &[&Requirement]) -> Option<String> {
        let of_rule = requirements.iter().map(|it| self.find(it.id).filter(|it| it.withdrawn));
        let of_rule: Option<Vec<&Correction>> = of_rule.collect();
        let first = of_rule?.first().map(ToString::to_string)?;
        Some(format!("the catalogue is corrected: {first}"))
    }
}
