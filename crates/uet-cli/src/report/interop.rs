//! Writes the result of `uet interop`: text, Markdown, JUnit, and one web page with a grid of pairs.

use super::counted;
use crate::site::html::{Escaped, policy};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::time::Duration;
use uet_harness::interop::{Interop, Pair, PairVerdict, ScenarioResult};

/// Returns `3 pass, 1 disagree, 2 skipped`: the verdicts that there are.
pub fn counts(count: impl Fn(PairVerdict) -> usize) -> String {
    counted(PairVerdict::ALL.map(|verdict| (count(verdict), verdict.name()))).join(", ")
}

/// Returns `a: SES-PLACE-003: reason`, as far as it is known.
fn sentence(result: &ScenarioResult) -> String {
    let parts = [result.blame.as_deref(), result.requirement.as_deref(), Some(result.reason.as_str())];
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
}

/// Returns the lines about a scenario that did not pass.
pub fn lines(result: &ScenarioResult) -> String {
    let mut text = format!("{} {}\n    {}\n", result.verdict.name(), result.id, sentence(result));
    for reading in &result.readings {
        let _ = writeln!(text, "    {reading}");
    }
    if let Some(capture) = &result.capture {
        let _ = writeln!(text, "    capture: {capture}");
    }
    if result.verdict != PairVerdict::Skipped {
        let _ = writeln!(text, "    again: {}", result.rerun);
    }
    text
}

/// Returns the worst verdict of a pair; skipped scenarios do not count.
fn worst(pair: &Pair) -> PairVerdict {
    let order = [PairVerdict::Fail, PairVerdict::Disagree, PairVerdict::Inconclusive, PairVerdict::Pass];
    order.into_iter().find(|verdict| pair.count(*verdict) > 0).unwrap_or(PairVerdict::Skipped)
}

fn pair_of<'a>(result: &'a Interop, initiator: &str, target: &str) -> Option<&'a Pair> {
    result.pairs.iter().find(|pair| pair.initiator == initiator && pair.target == target)
}

/// Returns a table for a pull request: initiators in rows, targets in columns, then what did not pass.
pub fn markdown(result: &Interop) -> String {
    let names: Vec<&str> = result.devices.iter().map(|device| device.name.as_str()).collect();
    let mut text =
        format!("| initiator \\ target | {} |\n| --- |{}\n", names.join(" | "), " --- |".repeat(names.len()));
    for initiator in &names {
        let cell = |target: &&str| {
            pair_of(result, initiator, target).map_or("".into(), |pair| counts(|v| pair.count(v)))
        };
        let cells: Vec<String> = names.iter().map(cell).collect();
        let _ = writeln!(text, "| **{initiator}** | {} |", cells.join(" | "));
    }
    for pair in &result.pairs {
        for one in pair.scenarios.iter().filter(|one| one.verdict.is_problem()) {
            let (initiator, target) = (&pair.initiator, &pair.target);
            let _ = writeln!(
                text,
                "\n- **{}** {initiator} to {target} `{}`: {}",
                one.verdict.name(),
                one.id,
                sentence(one).replace('|', "\\|")
            );
            for reading in &one.readings {
                let _ = writeln!(text, "  - {reading}");
            }
        }
    }
    text
}

/// Returns the XML for CI systems. A pair is a test suite.
pub fn junit(result: &Interop) -> io::Result<String> {
    let mut report = Report::new("uet interop");
    for pair in &result.pairs {
        let mut suite = TestSuite::new(format!("{} to {}", pair.initiator, pair.target));
        for one in &pair.scenarios {
            let status = match one.verdict {
                PairVerdict::Pass => TestCaseStatus::success(),
                PairVerdict::Skipped => {
                    let mut skipped = TestCaseStatus::skipped();
                    skipped.set_message(&*one.reason);
                    skipped
                }
                verdict => {
                    let kind = match verdict {
                        PairVerdict::Inconclusive => NonSuccessKind::Error,
                        _ => NonSuccessKind::Failure,
                    };
                    let mut failed = TestCaseStatus::non_success(kind);
                    failed.set_message(sentence(one)).set_description(lines(one));
                    failed
                }
            };
            let mut test = TestCase::new(&*one.id, status);
            test.set_time(Duration::from_nanos(one.duration_ns));
            suite.add_test_case(test);
        }
        report.add_test_suite(suite);
    }
    report.to_string().map_err(io::Error::other)
}

/// Returns the page. Links to captures are relative to `place`, the path of the page.
pub fn page(result: &Interop, place: &Path) -> String {
    let title = "Interoperability";
    let mut body = format!("<p>{}</p>\n", counts(|verdict| result.count(verdict)));
    grid(&mut body, result);
    body += "<p>An initiator in each row, a target in each column. A cell counts scenarios that pass, and leads to \
             all.</p>\n";
    for pair in &result.pairs {
        scenarios(&mut body, pair, place);
    }
    format!(
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n{policy}<title>{title}</title>\n\
         <style>\n{}{}{STYLE}</style>\n<main>\n<h1>{title}</h1>\n{body}</main>\n</html>\n",
        include_str!("../site/page.css"),
        include_str!("html/report.css"),
        policy = policy("", "", ""),
    )
}

const STYLE: &str =
    ".grid td { text-align: center; padding: .4em .8em; } .grid { display: block; overflow-x: auto; }\n";

fn grid(body: &mut String, result: &Interop) {
    *body += "<table class=grid>\n<tr><th>";
    for device in &result.devices {
        let _ = write!(body, "<th>{}", Escaped(&device.name));
    }
    *body += "</tr>\n";
    for initiator in &result.devices {
        let version = format!("{} {}", initiator.product, initiator.version);
        let _ =
            write!(body, "<tr><th title=\"{}\">{}", Escaped(version.trim_end()), Escaped(&initiator.name));
        for target in &result.devices {
            let Some(pair) = pair_of(result, &initiator.name, &target.name) else {
                *body += "<td>";
                continue;
            };
            let (verdict, passed) = (worst(pair), pair.count(PairVerdict::Pass));
            let played = pair.scenarios.len() - pair.count(PairVerdict::Skipped);
            let class = badge(verdict);
            let _ = write!(
                body,
                "<td><a href=\"#{}\"><b class=\"badge {class}\">{passed} of {played}</b></a>",
                anchor(pair)
            );
        }
        *body += "</tr>\n";
    }
    *body += "</table>\n";
}

/// Returns the class of a badge. A disagreement has the color of an inconclusive scenario.
fn badge(verdict: PairVerdict) -> &'static str {
    if verdict == PairVerdict::Disagree { "inconclusive" } else { verdict.name() }
}

fn anchor(pair: &Pair) -> String {
    format!("{}--{}", pair.initiator, pair.target)
}

fn scenarios(body: &mut String, pair: &Pair, place: &Path) {
    let (initiator, target) = (Escaped(&pair.initiator), Escaped(&pair.target));
    let counted = counts(|verdict| pair.count(verdict));
    let _ = writeln!(body, "<h2 id=\"{}\">{initiator} to {target}</h2>\n<p>{counted}</p>", anchor(pair));
    for one in pair.scenarios.iter().filter(|one| one.verdict.is_problem()) {
        let class = badge(one.verdict);
        let _ = writeln!(
            body,
            "<h3><b class=\"badge {class}\">{}</b> <code>{}</code></h3>\n<p>{}</p>",
            one.verdict.name(),
            Escaped(&one.id),
            Escaped(sentence(one))
        );
        if !one.readings.is_empty() {
            let items = one.readings.iter().map(|reading| format!("<li>{}", Escaped(reading)));
            let _ = writeln!(body, "<ul>{}</ul>", items.collect::<String>());
        }
        if let Some(capture) = &one.capture {
            let folder = place.parent().unwrap_or(Path::new(""));
            let link =
                Path::new(capture).strip_prefix(folder).unwrap_or(Path::new(capture)).display().to_string();
            let _ = writeln!(body, "<p><a href=\"{0}\">{0}</a></p>", Escaped(&link));
        }
        let _ = writeln!(body, "<pre>{}</pre>", Escaped(&one.rerun));
    }
    *body += "<details><summary>all scenarios</summary>\n<table>\n";
    for one in &pair.scenarios {
        let (verdict, id) = (one.verdict.name(), Escaped(&one.id));
        let _ = writeln!(
            body,
            "<tr><td><b class={verdict}>{verdict}</b><td><code>{id}</code><td>{}",
            Escaped(&one.reason)
        );
    }
    *body += "</table>\n</details>\n";
}
