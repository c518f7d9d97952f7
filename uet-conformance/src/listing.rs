//! Failing instances in JSON: small enough that a device that breaks every rule leaves a result below 1 MB.

use crate::result::worst_of;
use crate::{InstanceResult, Observation, Verdict};
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;

/// Maximum number of failing instances of a rule with details.
const DETAILED: usize = 3;

/// Maximum number of observations of an instance.
const OBSERVATIONS: usize = 4;

/// A failing instance. One without details broke the same requirements as an instance of its rule with
/// details, or has too many others beside it.
#[derive(Serialize)]
struct Listed<'a> {
    instance: &'a str,
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observations: Option<Vec<&'a Observation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_packet: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capture: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rerun: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<&'a crate::random::Sequence>,
}

pub(crate) fn failing<S: Serializer>(failing: &[InstanceResult], serializer: S) -> Result<S::Ok, S::Error> {
    let first = worst_of(failing, Verdict::Fail).or(failing.first()).map(|found| &found.instance);
    let (mut told, mut detailed) = (BTreeSet::new(), 0);
    let listed = |found| {
        let what = distinct(found);
        let is_new = told.insert(what.iter().map(|(kind, _)| kind.clone()).collect::<Vec<_>>());
        let is_detailed =
            Some(&found.instance) == first || found.sequence.is_some() || is_new && detailed + 1 < DETAILED;
        detailed += usize::from(is_detailed && Some(&found.instance) != first);
        Listed {
            instance: &found.instance,
            verdict: found.verdict,
            reason: Some(&*found.reason).filter(|_| is_detailed && found.observations.is_empty()),
            observations: is_detailed.then(|| what.into_iter().map(|(_, broken)| broken).collect()),
            at_packet: found.at_packet.filter(|_| is_detailed),
            capture: found.capture.as_deref(),
            trace: found.trace.as_deref(),
            rerun: is_detailed.then_some(&found.rerun),
            sequence: found.sequence.as_ref(),
        }
    };
    serializer.collect_seq(failing.iter().map(listed))
}

/// Returns the broken observations without repetitions, each with what it has in common with its repetitions.
fn distinct(found: &InstanceResult) -> Vec<((&str, String), &Observation)> {
    let mut distinct: Vec<((&str, String), &Observation)> = Vec::new();
    for broken in &found.observations {
        // Numbers such as PSNs differ from instance to instance.
        let what = broken.what.replace(|letter: char| letter.is_ascii_digit(), "");
        let kind = (broken.requirement.as_str(), what);
        if distinct.len() < OBSERVATIONS && !distinct.iter().any(|(known, _)| *known == kind) {
            distinct.push((kind, broken));
        }
    }
    distinct
}
