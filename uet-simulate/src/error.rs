//! What is said of a scenario that cannot be.

use core::fmt;
use uet_model::cc::CcError;

/// A scenario that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// What of it.
    pub what: &'static str,
    /// What it has to be.
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
