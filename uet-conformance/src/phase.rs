//! The phases of a rule.

use serde::Serialize;

/// The part of a rule that a step of its trace belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Brings the device into the state in which the requirement applies.
    Arrange,
    /// Packets and operations that the device must react to.
    #[default]
    Stimulus,
    /// The required reaction: packets of the device, reads of its state, and comparisons.
    Obligation,
}

impl Phase {
    /// Returns `arrange`, `stimulus` or `obligation`.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Arrange => "arrange",
            Phase::Stimulus => "stimulus",
            Phase::Obligation => "obligation",
        }
    }
}
