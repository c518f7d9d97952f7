//! Writes the result as one self-contained web page.

use super::text;
use crate::paint::Paint;
use crate::site::html::Escaped;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use uet_conformance::{Coverage, InstanceResult, RuleResult, RunResult, Verdict, cases, coverage};
use uet_wire::Spec;
use uet_wire::catalogue::{self, Level, Requirement};

/// Result of a requirement in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fared {
    Failed,
    Held,
    Open,
    Skipped,
    NotRun,
    Unseen,
    NoCase,
}

impl Fared {
    const ALL: [Fared; 7] = [
        Fared::Held,
        Fared::Failed,
        Fared::Open,
        Fared::Skipped,
        Fared::NotRun,
        Fared::Unseen,
        Fared::NoCase,
    ];

    fn word(self) -> &'static str {
        match self {
            Fared::Failed => "failed",
            Fared::Held => "held",
            Fared::Open => "inconclusive",
            Fared::Skipped => "skipped",
            Fared::NotRun => "not run",
            Fared::Unseen => "not visible",
            Fared::NoCase => "no case",
        }
    }

    /// Returns the worst result of a requirement, or the reason why there is none.
    fn of(requirement: &Requirement, coverage: &Coverage, result: &RunResult) -> Self {
        let id = requirement.id;
        if result.packets.findings.iter().any(|finding| finding.requirement.as_deref() == Some(id)) {
            return Fared::Failed;
        }
        let mut fared = match coverage {
            Coverage { every_packet: true, .. } if result.packets.judged > 0 => Fared::Held,
            Coverage { cases, .. } if !cases.is_empty() => Fared::NotRun,
            Coverage { every_packet: true, .. } => Fared::NotRun,
            Coverage { unseen: Some(_), .. } => Fared::Unseen,
            _ => Fared::NoCase,
        };
        for case in &result.cases {
            let broken = case.requirements.iter().any(|broken| broken == id);
            let checks = broken || coverage.cases.iter().any(|known| *known == case.id);
            fared = match (case.verdict, fared) {
                _ if !checks => fared,
                (Verdict::Fail | Verdict::Flaky, _) if broken => Fared::Failed,
                (_, Fared::Failed) => fared,
                (Verdict::Pass, _) => Fared::Held,
                (_, Fared::Held) => fared,
                (Verdict::Skipped, Fared::NotRun) => Fared::Skipped,
                (Verdict::Skipped, _) => fared,
                _ => Fared::Open,
            };
        }
        fared
    }
}

/// Returns the page. Links to captures are relative to `place`, the path of the page.
pub fn page(result: &RunResult, place: &Path) -> String {
    let title = format!("Conformance of {}", result.device);
    let mut body = String::new();
    summary(&mut body, result);
    let fared: Vec<(&Requirement, Coverage, Fared)> = catalogue::ALL
        .iter()
        .map(|requirement| {
            let coverage = coverage::of(requirement);
            let fared = Fared::of(requirement, &coverage, result);
            (*requirement, coverage, fared)
        })
        .collect();
    levels(&mut body, &fared);
    failures(&mut body, result, place);
    requirements(&mut body, &fared);
    all_cases(&mut body, result);
    statement(&mut body, result);
    format!(
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<meta name=viewport content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>\n{}{}</style>\n<main>\n<h1>{title}</h1>\n{body}</main>\n\
         <script>\n{}</script>\n</html>\n",
        include_str!("../site/page.css"),
        include_str!("report.css"),
        include_str!("report.js"),
        title = Escaped(&title),
    )
}

fn summary(body: &mut String, result: &RunResult) {
    let RunResult { suite, specification, catalogue, seed, packets, .. } = result;
    let counts = Escaped(text::counts(result)).to_string();
    let (word, class) = match result.exit_code() {
        0 => ("passed", "pass"),
        1 => ("failed", "fail"),
        2 => ("stopped", "fail"),
        _ => ("inconclusive", "inconclusive"),
    };
    *body += &format!(
        "<p class=verdict><b class={class}>{word}</b> {counts}; {} packets of the device judged one by one, {} findings</p>\n\
         <p>By public evidence: we have had no access to the specification. Each requirement comes from public sources. \
         Suite {suite}, specification {specification}, catalogue {catalogue}, seed {seed}.</p>\n",
        packets.judged,
        packets.findings.len()
    );
}

/// Writes the results of the requirements of each level.
fn levels(body: &mut String, fared: &[(&Requirement, Coverage, Fared)]) {
    *body += "<h2>Requirements by level</h2>\n<table id=levels><tr><th>level";
    Fared::ALL.iter().for_each(|how| *body += &format!("<th>{}", how.word()));
    *body += "<th>all</tr>\n";
    for level in [Level::Must, Level::Should, Level::May] {
        let of_level = || fared.iter().filter(|(requirement, ..)| requirement.level == level);
        *body += &format!("<tr><td>{}", level.name());
        for how in Fared::ALL {
            let count = of_level().filter(|(.., fared)| *fared == how).count();
            let class = if how == Fared::Failed && count > 0 { " class=fail" } else { "" };
            *body += &format!("<td{class}>{count}");
        }
        *body += &format!("<td>{}</tr>\n", of_level().count());
    }
    *body += "</table>\n";
}

fn failures(body: &mut String, result: &RunResult, place: &Path) {
    let bad = |case: &&RuleResult| !matches!(case.verdict, Verdict::Pass | Verdict::Skipped);
    if result.cases.iter().any(|case| bad(&case)) || !result.packets.findings.is_empty() {
        *body += "<h2>What did not hold</h2>\n";
    }
    for finding in &result.packets.findings {
        let class = if finding.counts() { "fail" } else { "inconclusive" };
        let _ = writeln!(
            body,
            "<section class=failure><h3><b class={class}>packets</b> {}</h3><p>{}</p><p>{} packets, the first in {}, \
             packet {}</p>{}<pre>{}</pre></section>",
            Escaped(finding.requirement.as_deref().unwrap_or("unreadable")),
            Escaped(&finding.message),
            finding.count,
            Escaped(&finding.case),
            finding.at_packet,
            accepted(finding.waived.as_deref(), finding.known),
            Escaped(&finding.rerun)
        );
    }
    result.cases.iter().filter(bad).for_each(|case| failure(body, case, text::spec_of(result), place));
}

fn accepted(waived: Option<&str>, known: bool) -> String {
    match (waived, known) {
        (Some(reason), _) => format!("<p>waived: {}</p>", Escaped(reason)),
        (None, true) => "<p>known to the baseline</p>".into(),
        (None, false) => String::new(),
    }
}

fn failure(body: &mut String, case: &RuleResult, spec: &'static Spec, place: &Path) {
    let (id, verdict) = (Escaped(&case.id).to_string(), case.verdict.name());
    let class = if case.verdict.is_failure() { "fail" } else { "inconclusive" };
    let title = cases::find(&case.id).map_or("", |case| case.title);
    *body += &format!(
        "<section class=failure id=\"{id}\"><h3><b class={class}>{verdict}</b> {id}</h3>\n<p>{}</p>{}\n",
        Escaped(title),
        accepted(case.waived.as_deref(), case.known)
    );
    if let Some(worst) = case.worst() {
        instance(body, worst, spec, place);
    }
    let others = text::others(case);
    if !others.is_empty() {
        *body += &format!("<p>also: {}</p>\n", Escaped(others));
    }
    *body += "</section>\n";
}

fn instance(body: &mut String, found: &InstanceResult, spec: &'static Spec, place: &Path) {
    if found.instance.contains('[') {
        *body += &format!("<p><code>{}</code></p>\n", Escaped(&found.instance));
    }
    if found.observations.is_empty() {
        *body += &format!("<p>{}</p>\n", Escaped(&found.reason));
    } else {
        *body += "<table><tr><th>requirement<th>expected<th>seen</tr>\n";
        for broken in &found.observations {
            let sentence = catalogue::find(&broken.requirement).map_or("", |known| known.sentence);
            *body += &format!(
                "<tr><td><a href=\"#{id}\">{id}</a><br><small>{}</small><td>{}<td>{}</tr>\n",
                Escaped(sentence),
                Escaped(broken.expectation()),
                Escaped(&broken.seen),
                id = Escaped(&broken.requirement)
            );
        }
        *body += "</table>\n";
    }
    let seen = text::seen_packet(found);
    *body += "<pre class=ladder>";
    for line in found.ladder.excerpt().lines() {
        let marked = seen.is_some_and(|(number, _)| text::is_of(line, number));
        let line = Escaped(line).to_string();
        *body += &if marked { format!("<mark>{line}</mark>\n") } else { format!("{line}\n") };
    }
    *body += "</pre>\n";
    if let Some((number, bytes)) = seen {
        let mut fields = Vec::new();
        // A write into memory cannot fail.
        let _ = text::fields(&mut fields, number, bytes, spec, Paint::default());
        let fields = Escaped(String::from_utf8_lossy(&fields)).to_string();
        *body += &format!(
            "<details><summary>packet {number}, all fields</summary><pre>{fields}</pre></details>\n"
        );
    }
    for (what, file) in [("capture", &found.capture), ("trace", &found.trace)] {
        if let Some(file) = file {
            let link = reached(place, Path::new(file));
            *body +=
                &format!("<p>{what}: <a href=\"{}\">{}</a></p>\n", Escaped(link.display()), Escaped(file));
        }
    }
    *body += &format!("<p>again: <code>{}</code></p>\n", Escaped(&found.rerun));
}

/// Returns the path of a file relative to a page.
fn reached(page: &Path, file: &Path) -> PathBuf {
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (page, file) = (whole(page), whole(file));
    let beside = page.parent().and_then(|folder| file.strip_prefix(folder).ok().map(Path::to_owned));
    beside.unwrap_or(file)
}

fn requirements(body: &mut String, fared: &[(&Requirement, Coverage, Fared)]) {
    *body += "<h2>Requirements</h2>\n<p><input id=filter placeholder=\"filter: must failed, PDS-ACK, not visible ...\"> \
              <span id=count></span></p>\n<table id=rows><tr><th>id<th>level<th>in this run<th>section<th>requirement\
              <th>checked by</tr>\n";
    for (requirement, coverage, fared) in fared {
        let Requirement { id, level, section, sentence, .. } = requirement;
        let mut by: Vec<String> = coverage.cases.iter().map(ToString::to_string).collect();
        if coverage.every_packet {
            by.push("every packet".into());
        }
        by.extend(coverage.unseen.map(ToString::to_string));
        let class = if *fared == Fared::Failed { " class=fail" } else { "" };
        *body += &format!(
            "<tr id={id}><td><code>{id}</code><td>{}<td{class}>{}<td>{section}<td>{}<td class=cases>{}</tr>\n",
            level.name(),
            fared.word(),
            Escaped(sentence),
            Escaped(by.join(", "))
        );
    }
    *body += "</table>\n";
}

fn all_cases(body: &mut String, result: &RunResult) {
    *body += "<h2>Cases</h2>\n<table id=cases><tr><th>case<th>verdict<th>milliseconds<th>reason</tr>\n";
    for case in &result.cases {
        let class = if case.verdict.is_failure() { " class=fail" } else { "" };
        *body += &format!(
            "<tr><td><code>{}</code><td{class}>{}<td>{:.1}<td>{}</tr>\n",
            Escaped(&case.id),
            case.verdict.name(),
            case.duration_ns as f64 / 1e6,
            Escaped(&case.reason)
        );
    }
    *body += "</table>\n";
}

fn statement(body: &mut String, result: &RunResult) {
    let stated = &result.statement;
    *body += "<h2>Device statement</h2>\n<table>\n";
    let mut row = |what: &str, text: String| {
        *body += &format!("<tr><th>{}<td>{}</tr>\n", Escaped(what), Escaped(text));
    };
    row("device", result.device.clone());
    row("specification", stated.device.specification.clone());
    row("capabilities", stated.device.capabilities.join(" "));
    if !stated.of.is_empty() {
        row("statement", format!("{}{}", stated.of, if stated.provisional { " (provisional)" } else { "" }));
    }
    if !stated.beyond.is_empty() {
        row("claimed for it", stated.beyond.join(" "));
    }
    if !stated.disclaims.is_empty() {
        row("left out", stated.disclaims.join(" "));
    }
    stated.waivers.iter().for_each(|waiver| row("waived", format!("{}: {}", waiver.id, waiver.reason)));
    stated.device.parameters.iter().for_each(|(name, value)| row(name, value.to_string()));
    *body += "</table>\n";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capture_links_are_relative_to_the_page() {
        let file = |page: &str, file: &str| reached(Path::new(page), Path::new(file)).display().to_string();
        assert_eq!(file("out/report.html", "out/failures/a.pcapng"), "failures/a.pcapng");
        assert_eq!(file("report.html", "failures/a.pcapng"), "failures/a.pcapng");
        assert_eq!(file("/x/report.html", "/y/a.pcapng"), "/y/a.pcapng");
    }
}
