//! Reports of the suite's results for people and programs.

pub mod causes;
pub mod html;
#[cfg(target_os = "linux")]
pub mod interop;
pub mod json;
pub mod junit;
pub mod matrix;
pub mod switch;
pub mod text;

use uet_conformance::{RULES, RuleResult, RunResult};

/// Describes the claims of the device that no rule supports.
fn unsupported(result: &RunResult) -> impl Iterator<Item = String> {
    let claims = result.unsupported_claims(RULES).into_iter();
    claims.map(|(claim, ran)| format!("claimed, but none of the {ran} rules that need it passes: {claim}"))
}

/// Returns why a rule that did not pass does not count: a waiver, or the baseline.
fn accepted(rule: &RuleResult) -> Option<String> {
    let elsewhere = || rule.not_in_baseline.then(|| "not in the baseline".into());
    waived_or_known(rule.waived.as_deref(), rule.known).or_else(elsewhere)
}

fn waived_or_known(waived: Option<&str>, known: bool) -> Option<String> {
    let waived = waived.map(|reason| format!("waived: {reason}"));
    waived.or_else(|| known.then(|| "known to the baseline".into()))
}

/// Returns `3 pass` and `1 fail`, one for each word that counts something.
fn counted<const N: usize>(counts: [(usize, &'static str); N]) -> Vec<String> {
    let some = counts.into_iter().filter(|(count, _)| *count > 0);
    some.map(|(count, word)| format!("{count} {word}")).collect()
}
