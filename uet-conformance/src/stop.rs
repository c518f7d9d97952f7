//! The end of a script, and the reasons to end it early.

use crate::DutError;
use uet_wire::WriteError;

/// The end of a script: success, or a stop.
pub type Outcome = Result<(), Stop>;

/// The reason why a script stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A check failed and the following steps depend on it. The check is recorded.
    Failed,
    /// Neither the expected packet nor another one arrived. The suite must find out if the device is alive.
    Silent,
    /// The device did not reach the state that the rule checks.
    Inconclusive(String),
    /// The device lacks something.
    Skipped(String),
    /// The device or its link has failed.
    Gone(String),
}

/// Ends a script, because the device or the link lacks something.
pub fn skip<T>(reason: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Skipped(reason.into()))
}

/// Skips the rule unless the device or the link fulfills its precondition.
pub fn require(fulfilled: bool, otherwise: impl Into<String>) -> Outcome {
    if fulfilled { Ok(()) } else { skip(otherwise) }
}

impl From<DutError> for Stop {
    fn from(error: DutError) -> Self {
        Stop::Gone(error.to_string())
    }
}

impl From<WriteError> for Stop {
    /// Handles a rule that builds an impossible packet: the rule itself is wrong.
    fn from(error: WriteError) -> Self {
        Stop::Inconclusive(format!("the rule builds a packet that cannot be: {error}"))
    }
}
