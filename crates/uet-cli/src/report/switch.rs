//! Writes the result of `uet switch`: text, Markdown, JUnit, and the measurements as CSV.

use super::counted;
use super::text::colored;
use crate::paint::{Paint, Plain};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;
use uet_conformance::Verdict;
use uet_harness::switch::{RuleResult, SwitchResult, Violation};

/// Writes a line for a rule, and one for each requirement that the network broke.
pub fn line(out: &mut impl Write, rule: &RuleResult, paint: Paint) -> io::Result<()> {
    write!(out, "{:<24} {}", rule.id, colored(rule.verdict, paint))?;
    if !rule.reason.is_empty() {
        write!(out, "  {}", Plain(&rule.reason))?;
    }
    writeln!(out)?;
    for violation in &rule.violations {
        writeln!(out, "  {}", Plain(&sentence(violation)))?;
    }
    Ok(())
}

fn sentence(Violation { requirement, first, count }: &Violation) -> String {
    let more = if *count > 1 { format!(" (first of {count})") } else { String::new() };
    format!("{requirement}: {first}{more}")
}

fn counts(result: &SwitchResult) -> String {
    counted(Verdict::ALL.map(|verdict| (result.count(verdict), verdict.name()))).join(", ")
}

/// Returns a table of the measurements and the line that counts the verdicts.
pub fn summary(result: &SwitchResult) -> String {
    let mut text = String::new();
    for one in &result.measurements {
        let _ = writeln!(text, "{:<20} {:<44} {} {}", one.group, one.name, one.value, one.unit);
    }
    text + &counts(result) + "\n"
}

/// Returns the measurements, one per line.
pub fn csv(result: &SwitchResult) -> String {
    let mut text = String::from("group,name,value,unit\n");
    for one in &result.measurements {
        let _ = writeln!(text, "{},{},{},{}", one.group, one.name, one.value, one.unit);
    }
    text
}

/// Returns tables of rules and measurements.
pub fn markdown(result: &SwitchResult) -> String {
    let mut text = String::from("| rule | verdict | |\n| --- | --- | --- |\n");
    for rule in &result.rules {
        let broken: Vec<_> = rule.violations.iter().map(sentence).collect();
        let why = if broken.is_empty() { rule.reason.clone() } else { broken.join("<br>") };
        let _ = writeln!(text, "| {} | {} | {} |", rule.id, rule.verdict.name(), why.replace('|', "\\|"));
    }
    if !result.measurements.is_empty() {
        text += "\n| measurement | | value | |\n| --- | --- | ---: | --- |\n";
    }
    for one in &result.measurements {
        let _ = writeln!(text, "| {} | {} | {} | {} |", one.group, one.name, one.value, one.unit);
    }
    text
}

/// Returns the XML for CI systems.
pub fn junit(result: &SwitchResult) -> io::Result<String> {
    let mut suite = TestSuite::new("uet switch");
    for rule in &result.rules {
        let failed = |kind, message: String| {
            let mut status = TestCaseStatus::non_success(kind);
            status.set_message(message);
            status
        };
        let status = match rule.verdict {
            Verdict::Pass => TestCaseStatus::success(),
            Verdict::Fail | Verdict::Flaky => {
                let broken: Vec<_> = rule.violations.iter().map(sentence).collect();
                failed(NonSuccessKind::Failure, broken.join("\n"))
            }
            Verdict::Inconclusive => failed(NonSuccessKind::Error, rule.reason.clone()),
            Verdict::Skipped => {
                let mut skipped = TestCaseStatus::skipped();
                skipped.set_message(&*rule.reason);
                skipped
            }
        };
        let mut test = TestCase::new(&*rule.id, status);
        test.set_time(Duration::from_nanos(rule.duration_ns));
        suite.add_test_case(test);
    }
    let mut report = Report::new("uet switch");
    report.add_test_suite(suite);
    report.to_string().map_err(io::Error::other)
}
