//! Errors in scenarios.

use core::fmt;
use uet_model::cc::CcError;

/// An error in a scenario that cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The wrong part of the scenario: the name of a field, or of a setting of a job.
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
        let (what, reason) = match error.parameter {
            // The scenario has its own name for this parameter.
            "values" => ("path_values", error.reason.into()),
            // The base round trip and the rate determine windows and credit.
            "max_wnd" | "initial_cwnd" | "initial_credit" => {
                ("base_rtt", format!("at this rate, the window of 1.5 BDP {}", error.reason))
            }
            what => (what, error.reason.into()),
        };
        ScenarioError { what, reason }
    }
}

/// An error in the text of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// The line number, counted from 1; 0 for an error of the whole file.
    pub line: usize,
    /// The reason.
    pub reason: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.reason),
            line => write!(f, "line {line}: {}", self.reason),
        }
    }
}

impl core::error::Error for TextError {}

pub(crate) fn refuse<T>(what: &'static str, reason: impl Into<String>) -> Result<T, ScenarioError> {
    Err(ScenarioError { what, reason: reason.into() })
}
