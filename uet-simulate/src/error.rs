//! Errors in scenarios.

use core::fmt;
use uet_model::cc::CcError;

/// An error in a scenario that cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The wrong part of the scenario.
    pub what: &'static str,
    /// The condition that it violates.
    pub reason: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.reason)
    }
}

impl core::error::Error for ScenarioError {}

impl From<CcError> for ScenarioError {
    fn from(error: CcError) -> Self {
        ScenarioError { what: error.parameter, reason: error.reason.into() }
    }
}

pub(crate) fn refuse<T>(what: &'static str, reason: impl Into<String>) -> Result<T, ScenarioError> {
    Err(ScenarioError { what, reason: reason.into() })
}
