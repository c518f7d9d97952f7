//! Groups the rules that did not pass by what they expected and saw, so that one cause is read once. The groups compare
//! texts, so they are for readers alone: no verdict depends on them.

use std::collections::BTreeMap;
use uet_conformance::{RuleResult, RunResult, Verdict};

/// The number of its rules that a report names for each cause.
pub const NAMED: usize = 4;

/// Rules that did not pass and have probably one cause.
#[derive(Debug)]
pub struct Cause<'r> {
    /// The expected and the seen, or the reason of an inconclusive verdict.
    pub what: String,
    /// The requirements that they compare.
    pub requirements: Vec<&'r str>,
    /// The rules.
    pub rules: Vec<&'r RuleResult>,
}

/// Returns the causes of a run, those of most rules first. Waived rules have none.
pub fn of(result: &RunResult) -> Vec<Cause<'_>> {
    let bad = |rule: &&RuleResult| {
        !matches!(rule.verdict, Verdict::Pass | Verdict::Skipped) && rule.waived.is_none()
    };
    let mut causes: BTreeMap<String, Cause<'_>> = BTreeMap::new();
    for rule in result.rules.iter().filter(bad) {
        let broken = rule.worst().and_then(|worst| worst.observations.first());
        let what = match broken {
            Some(broken) => format!("expected {}, seen {}", broken.expectation(), kind(&broken.seen)),
            None => rule.reason.split(" (").next().unwrap_or_default().to_owned(),
        };
        let what = without_numbers(&what);
        let cause = causes.entry(what.clone()).or_insert_with(|| Cause {
            what,
            requirements: Vec::new(),
            rules: Vec::new(),
        });
        cause.rules.push(rule);
        for requirement in broken.iter().map(|broken| broken.requirement.as_str()) {
            if !cause.requirements.contains(&requirement) {
                cause.requirements.push(requirement);
            }
        }
    }
    let mut causes: Vec<Cause<'_>> = causes.into_values().collect();
    causes.sort_by_key(|cause| core::cmp::Reverse(cause.rules.len()));
    causes
}

/// Returns the name of a packet instead of its summary, and no bytes of memory; other values as they are.
fn kind(seen: &str) -> &str {
    match seen.split_once(" PSN ") {
        Some((kind, _)) if !kind.contains(' ') => kind,
        _ if seen.starts_with("0x") && seen.contains(" instead of ") => "other bytes",
        _ => seen,
    }
}

/// Replaces numbers of at least three digits, which differ from run to run.
fn without_numbers(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(at);
        // Part of a name, such as `ACK_CC2` or `0x4001`, ends with the name.
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = number.find(|c: char| !is_part(c)).unwrap_or(number.len());
        let in_name = before.ends_with(is_part);
        plain.push_str(before);
        plain.push_str(if length < 3 || in_name { &number[..length] } else { "N" });
        rest = &number[length..];
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_run_are_left_out() {
        assert_eq!(without_numbers("NACK NO_BITMAP for 4043746305"), "NACK NO_BITMAP for N");
        assert_eq!(without_numbers("0 bytes, 0x4001 and WIRE_1234"), "0 bytes, N and WIRE_1234");
        assert_eq!(without_numbers(""), "");
    }

    #[test]
    fn packet_is_named_by_its_kind() {
        assert_eq!(kind("ACK_CC PSN 7 CACK 7"), "ACK_CC");
        assert_eq!(kind("0x12 instead of 0x34 at byte 8"), "other bytes");
        assert_eq!(kind("UET_DEFAULT_RESPONSE OK"), "UET_DEFAULT_RESPONSE OK");
    }
}
