//! Coverage of each requirement of the catalogue by checks, or the reason why an external test cannot see it.

use crate::Registry;
use serde::Serialize;
use uet_wire::catalogue::*;

/// The checks of a requirement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequirementCoverage {
    /// Rules that check it.
    pub rules: Vec<&'static str>,
    /// True if every packet of the device is checked, in any case; for requirements on the outer layers, if
    /// the link shows them.
    pub every_packet: bool,
    /// The reason why no external test can see it.
    pub unseen: Option<&'static str>,
}

impl RequirementCoverage {
    /// Returns whether it has neither a check nor a reason for having none.
    pub fn is_open(&self) -> bool {
        self.rules.is_empty() && !self.every_packet && self.unseen.is_none()
    }

    /// Returns `2 rules`, `every packet`, `unseen` or `open`.
    pub fn word(&self) -> String {
        match self.rules.len() {
            0 if self.every_packet => "every packet".into(),
            0 if self.unseen.is_some() => "unseen".into(),
            0 => "open".into(),
            1 => "1 rule".into(),
            count => format!("{count} rules"),
        }
    }
}

/// Returns the checks of this requirement.
pub fn of(rules: Registry, requirement: &Requirement) -> RequirementCoverage {
    let checks = rules.iter().filter(|rule| rule.requirements.contains(&requirement));
    let rules: Vec<&str> = checks.map(|rule| rule.id).collect();
    let reason = UNSEEN.iter().find(|(those, _)| those.contains(&requirement)).map(|(_, reason)| *reason);
    let every_packet = requirement.id.starts_with("WIRE-") && reason.is_none();
    let is_unchecked = rules.is_empty() && !every_packet;
    let option = (requirement.level == Level::May && is_unchecked).then_some(OPTION);
    let unseen = reason.or(option);
    RequirementCoverage { rules, every_packet, unseen }
}

const OPTION: &str = "it permits something: a device that does it is right, and so is one that does not";

/// Requirements that a link and a control channel cannot show, and the reasons.
const UNSEEN: &[(&[&Requirement], &str)] =
    &[(&[PDS_SEC_001, PDS_SEC_002, PDS_SEC_003], "the suite has no keys: no packet of it is secured")];
