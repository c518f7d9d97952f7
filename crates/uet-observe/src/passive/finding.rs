//! Findings about captures.

use core::net::IpAddr;
use uet_wire::catalogue::Requirement;
use uet_wire::validate::Severity;

/// Something in a capture that breaks a requirement over several packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The broken requirement.
    pub requirement: &'static Requirement,
    /// The packet that shows it, by its number in the capture.
    pub number: u64,
    /// An earlier packet that it contradicts.
    pub with: Option<u64>,
    /// The end that broke it.
    pub culprit: IpAddr,
    /// Description of the violation.
    pub message: String,
}

/// Something in a capture that deserves attention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureFinding {
    /// The packet that shows it.
    pub number: u64,
    /// An earlier packet that it contradicts.
    pub with: Option<u64>,
    /// A requirement, or else a word of its own: `malformed`, `not-authentic`, `old-epoch`, `counter-back`.
    pub id: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The end that sent it.
    pub culprit: Option<IpAddr>,
    /// Description.
    pub message: String,
}
