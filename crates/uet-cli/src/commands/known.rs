//! Names that the suite knows. An unknown name is usually a typo, and its subject is then not tested.

use super::filter::{capabilities, distinct};
use crate::near;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use uet_conformance::{RULES, Waiver};
use uet_control::{PARAMETERS, Parameter};
use uet_wire::catalogue;

/// Capabilities in docs/control-channel.md that no rule needs.
const OTHERS: &[&str] =
    &["no_op", "reserved_pool", "dscp", "entropy", "ecn", "crc", "trim", "time", "request_close"];

/// Returns unknown capabilities. (A later version may define them.)
pub(super) fn strange_capabilities<'a>(
    claims: impl IntoIterator<Item = &'a String>,
) -> impl Iterator<Item = String> {
    let known = known_capabilities();
    claims.into_iter().filter_map(move |claim| match known.contains(&claim.as_str()) {
        true => None,
        false => Some(near::unknown("capability", claim, known.iter().copied())),
    })
}

/// Returns all capabilities.
pub(super) fn known_capabilities() -> Vec<&'static str> {
    distinct(capabilities().into_iter().chain(OTHERS.iter().copied()))
}

/// Returns unknown parameters, and those with values of the wrong type: the suite ignores both.
pub(super) fn strange_parameters(told: &BTreeMap<String, Value>) -> impl Iterator<Item = String> {
    told.iter().filter_map(|(name, value)| match Parameter::find(name) {
        None => Some(near::unknown("parameter", name, PARAMETERS.iter().map(|parameter| parameter.name))),
        Some(parameter) => {
            let wrong = parameter.check(value).err();
            wrong.map(|needed| format!("{name} is {value}, but must be {needed}"))
        }
    })
}

/// Refuses excessive parameters.
pub(super) fn parameters(told: &BTreeMap<String, Value>) -> io::Result<()> {
    match Parameter::out_of_range(told).next() {
        Some(excessive) => Err(io::Error::other(format!(
            "the device's parameter {excessive}; correct its answer to `hello`, or state another value with --statement"
        ))),
        None => Ok(()),
    }
}

/// Refuses waivers of unknown requirements and rules.
pub(super) fn waivers(waivers: &[Waiver]) -> io::Result<()> {
    let known = RULES.iter().map(|rule| rule.id).chain(catalogue::ALL.iter().map(|known| known.id));
    let known: Vec<&str> = known.collect();
    let strange = |waiver: &&Waiver| !known.iter().any(|known| known.eq_ignore_ascii_case(&waiver.id));
    match waivers.iter().find(strange) {
        Some(Waiver { id, .. }) => Err(io::Error::other(format!(
            "bad waiver: {}",
            near::unknown("rule or requirement", id, known.iter().copied())
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uet_conformance::Dut;
    use uet_emulator::Config;
    use uet_harness::dut::Embedded;

    #[test]
    fn embedded_nic_reports_only_known_words() {
        let nic = Embedded::new(Config::default()).unwrap();
        let welcome = nic.welcome();
        assert_eq!(strange_capabilities(&welcome.capabilities).collect::<Vec<_>>(), [""; 0]);
        assert_eq!(strange_parameters(&welcome.parameters).collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn profiles_claim_known_capabilities() {
        for (name, _) in super::super::statement::PROFILES {
            let profile = super::super::statement::profile(name).unwrap();
            let claims = profile.claims.iter().chain(&profile.disclaims);
            assert_eq!(strange_capabilities(claims).collect::<Vec<_>>(), [""; 0], "{name}");
            assert_eq!(strange_parameters(&profile.defaults).collect::<Vec<_>>(), [""; 0], "{name}");
        }
    }
}
