//! Writes the result as JUnit XML for CI systems.

use super::text;
use crate::paint::Paint;
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};
use std::io;
use std::time::Duration;
use uet_conformance::pics::{Pics, Shown, Stated};
use uet_conformance::{PacketFinding, ProfileResult, RowVerdict, RuleResult, RunResult, Verdict};
use uet_wire::Spec;

/// Returns the XML. A group is a test suite. Waived rules and those that are not worse than in the baseline count as
/// skipped, with the reason.
pub fn xml(result: &RunResult) -> io::Result<String> {
    let mut report = Report::new(format!("uet run, {}", result.device));
    let mut suites: Vec<TestSuite> = Vec::new();
    for rule in &result.rules {
        let known = suites.iter().position(|suite| suite.name.as_str() == rule.group);
        let place = known.unwrap_or_else(|| {
            suites.push(group(&rule.group, result));
            suites.len() - 1
        });
        suites[place].add_test_case(test_rule(rule, text::spec_of(result))?);
    }
    if result.packets.judged > 0 {
        suites.push(packets(result));
    }
    suites.extend(catalogue(result));
    suites.extend(result.circumstances.pics.as_ref().map(|pics| statement(pics, result)));
    suites.extend(result.profile.as_ref().map(|profile| features(profile, result)));
    if result.stopped.is_some() || result.circumstances.ended_by.is_some() {
        suites.push(not_whole(result));
    }
    report.add_test_suites(suites);
    let text = report.to_string().map_err(io::Error::other)?;
    // The library removes control characters. These two are no XML either.
    Ok(text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}"))
}

fn group(name: &str, result: &RunResult) -> TestSuite {
    let mut suite = TestSuite::new(name);
    for (name, value) in [
        ("suite", result.suite.clone()),
        ("specification", result.specification.clone()),
        ("catalogue", result.catalogue.clone()),
        ("seed", result.seed.to_string()),
        ("device", result.device.clone()),
    ] {
        suite.add_property(Property::new(name, value));
    }
    suite
}

/// Returns a test for each feature of the profile.
fn features(profile: &ProfileResult, result: &RunResult) -> TestSuite {
    let mut suite = group(&profile.name, result);
    for row in &profile.rows {
        let status = match row.verdict {
            RowVerdict::Pass => TestCaseStatus::success(),
            RowVerdict::NotTested => skipped("no rule ran".into()),
            verdict => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(verdict.name());
                status
            }
        };
        let mut test = TestCase::new(format!("{} {}", row.id, row.feature).trim(), status);
        test.set_classname(profile.name.as_str());
        test.add_property(Property::new("rules", row.rules.join(" ")));
        suite.add_test_case(test);
    }
    suite
}

fn test_rule(rule: &RuleResult, spec: &'static Spec) -> io::Result<TestCase> {
    let status = match (rule.verdict, super::accepted(rule)) {
        (Verdict::Pass, _) => TestCaseStatus::success(),
        (Verdict::Skipped, _) => skipped(rule.reason.clone()),
        (_, Some(accepted)) => skipped(format!("{accepted}; {}", rule.reason)),
        (verdict, None) => {
            let kind = if verdict.is_failure() { NonSuccessKind::Failure } else { NonSuccessKind::Error };
            let mut details = Vec::new();
            text::failure(&mut details, rule, spec, Paint::default())?;
            let mut status = TestCaseStatus::non_success(kind);
            status.set_message(rule.reason.clone());
            status.set_type(rule.requirements.first().map_or(verdict.name(), |id| id));
            status.set_description(String::from_utf8_lossy(&details));
            status
        }
    };
    let mut test = TestCase::new(rule.id.as_str(), status);
    test.set_classname(rule.group.as_str());
    test.set_time(Duration::from_nanos(rule.duration_ns));
    test.add_property(Property::new("requirements", rule.requirements.join(" ")));
    let captures = rule.failing.iter().filter_map(|found| found.capture.as_deref());
    captures.for_each(|file| _ = test.add_property(Property::new("capture", file)));
    Ok(test)
}

fn skipped(message: String) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(message);
    status
}

/// Reports that the run was stopped, so that readers do not take its results for all.
fn not_whole(result: &RunResult) -> TestSuite {
    let why = match (&result.stopped, result.circumstances.ended_by) {
        (Some(why), _) => format!(": {why}"),
        (None, Some(end)) => format!(" {end}"),
        (None, None) => String::new(),
    };
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    let left = match result.not_run {
        0 => String::new(),
        count => format!("; {count} rules did not run"),
    };
    status.set_message(format!("the run was stopped{why}{left}"));
    status.set_description(result.circumstances.not_run_rules.join("\n"));
    let mut suite = TestSuite::new("run");
    suite.add_test_case(TestCase::new("run/whole", status));
    suite
}

/// Returns the corrections of the catalogue: a test for each, which passes. `None` if there are none.
fn catalogue(result: &RunResult) -> Option<TestSuite> {
    let corrections = &result.circumstances.corrections.0;
    let mut suite = TestSuite::new("catalogue");
    for correction in corrections {
        let mut test =
            TestCase::new(format!("catalogue/{}", correction.requirement.id), TestCaseStatus::success());
        test.set_classname("catalogue").add_property(Property::new("corrected", correction.to_string()));
        suite.add_test_case(test);
    }
    (!corrections.is_empty()).then_some(suite)
}

/// Returns the conformance statement: a test for each requirement that the form answers. It passes if the vendor states
/// the requirement and a check held, and fails if a check failed that is neither waived nor known to the baseline. The
/// others are skipped with both.
fn statement(pics: &Pics, result: &RunResult) -> TestSuite {
    let mut suite = TestSuite::new("conformance statement");
    let about = pics.implementation.iter().map(|(name, value)| (name.as_str(), value));
    let conflicts = pics.conflicts.iter().map(|conflict| ("conflict", conflict));
    for (name, value) in about.chain(conflicts) {
        suite.add_property(Property::new(name, value.as_str()));
    }
    for answer in pics.requirements.iter().filter(|answer| answer.stated != Stated::Open) {
        let stated = match answer.stated {
            Stated::Yes => "supported",
            Stated::No => "not supported",
            Stated::NotApplicable => "not applicable",
            Stated::Open => "not answered",
        };
        let shown = match answer.shown {
            Shown::Held => "held",
            Shown::Failed => "failed",
            Shown::NotTested => "not tested",
        };
        let status = match (answer.stated, answer.shown) {
            (Stated::Yes, Shown::Held) => TestCaseStatus::success(),
            (Stated::Yes, Shown::Failed) if fails(result, &answer.id) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(format!("stated: {stated}; shown: {shown}"));
                status
            }
            _ => skipped(format!("stated: {stated}; shown: {shown}")),
        };
        let mut test = TestCase::new(format!("conformance statement/{}", answer.id), status);
        test.set_classname("conformance statement");
        suite.add_test_case(test);
    }
    suite
}

/// Returns whether a failed check of a requirement counts: it is neither waived nor known to the baseline.
fn fails(result: &RunResult, id: &str) -> bool {
    let rule = |rule: &RuleResult| {
        rule.verdict.is_failure() && rule.counts() && rule.requirements.iter().any(|named| named == id)
    };
    let packet = |finding: &PacketFinding| finding.counts() && finding.requirement.as_deref() == Some(id);
    result.rules.iter().any(rule) || result.packets.findings.iter().any(packet)
}

/// Returns findings of single packets: a test for each violated requirement, or one that reports none.
fn packets(result: &RunResult) -> TestSuite {
    let mut suite = TestSuite::new("packets");
    let of = |finding: &PacketFinding| {
        let status = match &finding.waived {
            Some(reason) => skipped(format!("waived: {reason}")),
            None if !finding.counts() => skipped(finding.message.clone()),
            None => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(finding.message.clone());
                status.set_description(format!("first in {}; again: {}", finding.rule, finding.rerun));
                status
            }
        };
        let name = finding.requirement.as_deref().unwrap_or("unreadable");
        TestCase::new(format!("packets/{name}"), status)
    };
    match &result.packets.findings[..] {
        [] => _ = suite.add_test_case(TestCase::new("packets/well-formed", TestCaseStatus::success())),
        findings => _ = suite.add_test_cases(findings.iter().map(of)),
    }
    suite.test_cases.iter_mut().for_each(|test| _ = test.set_classname("packets"));
    suite
}
