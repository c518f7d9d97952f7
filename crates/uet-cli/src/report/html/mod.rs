//! Writes the result as one self-contained web page.

mod failure;
mod gauge;
mod ladder;

use super::{causes, text, unsupported};
use crate::site::html::{Escaped, policy};
use std::fmt::Write as _;
use std::path::Path;
use std::time::SystemTime;
use uet_conformance::{ProfileResult, RULES, RequirementCoverage, RuleResult, RunResult, Verdict, coverage};
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
            Fared::NoCase => "no rule",
        }
    }

    /// Returns the worst result of a requirement, or the reason why there is none.
    fn of(requirement: &Requirement, coverage: &RequirementCoverage, result: &RunResult) -> Self {
        let id = requirement.id;
        if result.packets.findings.iter().any(|finding| finding.requirement.as_deref() == Some(id)) {
            return Fared::Failed;
        }
        let mut fared = match coverage {
            RequirementCoverage { every_packet: true, .. } if result.packets.judged > 0 => Fared::Held,
            RequirementCoverage { rules, .. } if !rules.is_empty() => Fared::NotRun,
            RequirementCoverage { every_packet: true, .. } => Fared::NotRun,
            RequirementCoverage { unseen: Some(_), .. } => Fared::Unseen,
            _ => Fared::NoCase,
        };
        for rule in &result.rules {
            let broken = rule.requirements.iter().any(|broken| broken == id);
            let checks = broken || coverage.rules.iter().any(|known| *known == rule.id);
            fared = match (rule.verdict, fared) {
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
    page_at(result, place, SystemTime::now())
}

/// Returns the page of a run that ended at this time.
pub fn page_at(result: &RunResult, place: &Path, end: SystemTime) -> String {
    let title = format!("Conformance of {}", result.device);
    let mut body = String::new();
    summary(&mut body, result, end);
    let fared: Vec<(&Requirement, RequirementCoverage, Fared)> = catalogue::ALL
        .iter()
        .map(|requirement| {
            let coverage = coverage::of(RULES, requirement);
            let fared = Fared::of(requirement, &coverage, result);
            (*requirement, coverage, fared)
        })
        .collect();
    causes(&mut body, result);
    levels(&mut body, &fared);
    groups(&mut body, result);
    body += SEARCH;
    failures(&mut body, result, place);
    requirements(&mut body, &fared);
    all_rules(&mut body, result);
    if let Some(profile) = &result.profile {
        features(&mut body, profile);
    }
    statement(&mut body, result);
    format!(
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
         {policy}<title>{title}</title>\n<style>\n{}{}</style>\n<main>\n<h1>{title}</h1>\n{body}</main>\n\
         <script>{SCRIPT}</script>\n</html>\n",
        include_str!("../../site/page.css"),
        include_str!("report.css"),
        policy = policy(SCRIPT, "", ""),
        title = Escaped(&title),
    )
}

const SCRIPT: &str = concat!("\n", include_str!("report.js"));

/// The input that narrows failures, rules and requirements.
const SEARCH: &str = "<nav class=search><input id=filter type=search placeholder=\"search: window/ failed, PDS-ACK, must ...\">\n\
     <span class=chips><button data-verdict=\"\" class=on>all</button> <button data-verdict=fail>fail</button> \
     <button data-verdict=flaky>flaky</button> <button data-verdict=inconclusive>inconclusive</button> \
     <button data-verdict=skipped>skipped</button> <button data-verdict=pass>pass</button></span></nav>\n";

/// The colors of the ladders.
const KEY: &str = "<p class=key><span class=to>suite to device</span> <span class=from>device to suite</span> \
     <span class=congestion>congestion mark</span> <span class=retransmission>retransmission or duplicate</span> \
     <span class=trimmed>payload dropped or damaged</span> <span class=refusal>refusal</span></p>\n";

fn summary(body: &mut String, result: &RunResult, end: SystemTime) {
    let RunResult { suite, specification, catalogue, seed, packets, .. } = result;
    let counts = Escaped(text::counts(result)).to_string();
    let (word, class) = match result.exit_code() {
        0 => ("passed", "pass"),
        1 => ("failed", "fail"),
        2 => ("stopped", "fail"),
        _ => ("inconclusive", "inconclusive"),
    };
    let stated = &result.statement.device;
    *body += &format!(
        "<p class=verdict><b class=\"badge {class}\">{word}</b> {counts}; {} packets of the device judged one by one, {} \
         findings</p>\n",
        packets.judged,
        packets.findings.len()
    );
    let left = &result.circumstances.not_run_rules;
    if !left.is_empty() {
        *body += &format!(
            "<details><summary>rules that did not run: {}</summary><p>{}</details>\n",
            left.len(),
            Escaped(&left.join(", "))
        );
    }
    *body += "<dl class=facts>";
    for (what, value) in [
        ("date", date(end)),
        ("device", result.device.clone()),
        ("device's version", stated.version.clone()),
        ("device's specification", stated.specification.clone()),
        ("judged by specification", specification.clone()),
        ("suite", suite.clone()),
        ("catalogue", catalogue.clone()),
        ("seed", seed.to_string()),
    ] {
        *body += &format!("<div><dt>{what}<dd>{}</div>\n", Escaped(value));
    }
    *body += "</dl>\n<p class=evidence>By public evidence: we have had no access to the specification. Each requirement \
              comes from public sources.</p>\n";
}

/// Writes what the rules that did not pass have in common. Most reports are read no further.
fn causes(body: &mut String, result: &RunResult) {
    unsupported(result).for_each(|claim| *body += &format!("<p>{}</p>\n", Escaped(&claim)));
    let causes = causes::of(result);
    if causes.is_empty() {
        return;
    }
    *body += "<h2>Causes</h2>\n<table id=causes><tr><th>rules<th>what they expected and saw<th>requirements\
              <th>rules by name</tr>\n";
    for causes::Cause { what, requirements, rules, .. } in &causes {
        let link =
            |rule: &&RuleResult| format!("<a href=\"#{id}\"><code>{id}</code></a>", id = Escaped(&rule.id));
        let named = rules.iter().take(causes::NAMED).map(link).collect::<Vec<_>>().join(", ");
        let more = if rules.len() > causes::NAMED { ", …" } else { "" };
        let _ = writeln!(
            body,
            "<tr><td>{}<td>{}<td>{}<td>{named}{more}</tr>",
            rules.len(),
            Escaped(what),
            Escaped(requirements.join(", "))
        );
    }
    *body += "</table>\n";
}

/// Formats a time in UTC.
fn date(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |span| span.as_secs());
    let stamp = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    stamp.unwrap_or_default().strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// Appends a bar with a part for each count.
fn bar(body: &mut String, parts: &[(&str, usize)]) {
    *body += "<span class=bar>";
    for (class, count) in parts.iter().filter(|(_, count)| *count > 0) {
        let _ = write!(body, "<i class={class} style=\"flex:{count}\" title=\"{count} {class}\"></i>");
    }
    *body += "</span>";
}

/// Writes the results of the requirements of each level.
fn levels(body: &mut String, fared: &[(&Requirement, RequirementCoverage, Fared)]) {
    *body += "<h2>Requirements by level</h2>\n<div class=scroll><table id=levels><tr><th>level";
    Fared::ALL.iter().for_each(|how| *body += &format!("<th>{}", how.word()));
    *body += "<th>all<th class=wide></tr>\n";
    for level in [Level::Must, Level::Should, Level::May] {
        let of_level = || fared.iter().filter(|(requirement, ..)| requirement.level == level);
        let count = |how: Fared| of_level().filter(|(.., fared)| *fared == how).count();
        *body += &format!("<tr><td>{}", level.name());
        for how in Fared::ALL {
            let class = if how == Fared::Failed && count(how) > 0 { " class=fail" } else { "" };
            *body += &format!("<td{class}>{}", count(how));
        }
        *body += &format!("<td>{}<td class=wide>", of_level().count());
        let untested = [Fared::Skipped, Fared::NotRun, Fared::Unseen, Fared::NoCase].map(count).iter().sum();
        let parts = [
            ("pass", count(Fared::Held)),
            ("fail", count(Fared::Failed)),
            ("inconclusive", count(Fared::Open)),
            ("skipped", untested),
        ];
        bar(body, &parts);
        *body += "</tr>\n";
    }
    *body += "</table></div>\n";
}

/// Writes the verdicts of the rules of each group. Groups with failures come first.
fn groups(body: &mut String, result: &RunResult) {
    let mut groups: Vec<(&str, [usize; 5])> = Vec::new();
    for rule in &result.rules {
        let known = groups.iter().position(|(name, _)| *name == rule.group);
        let place = known.unwrap_or_else(|| {
            groups.push((&rule.group, [0; 5]));
            groups.len() - 1
        });
        let verdict = Verdict::ALL.iter().position(|verdict| *verdict == rule.verdict);
        verdict.into_iter().for_each(|verdict| groups[place].1[verdict] += 1);
    }
    let of = |counts: &[usize; 5], wanted: fn(Verdict) -> bool| -> usize {
        Verdict::ALL.iter().zip(counts).filter(|(verdict, _)| wanted(**verdict)).map(|(_, count)| count).sum()
    };
    let bad =
        |counts: &[usize; 5]| of(counts, |verdict| !matches!(verdict, Verdict::Pass | Verdict::Skipped));
    groups.sort_by_key(|(name, counts)| (core::cmp::Reverse(bad(counts)), *name));
    *body += "<h2>Rules by group</h2>\n<div id=groups>\n";
    for (name, counts) in &groups {
        let name = Escaped(name);
        let passed = of(counts, |verdict| verdict == Verdict::Pass);
        let class = if bad(counts) == 0 { "passes" } else { "fails" };
        *body += &format!("<a class={class} href=\"#filter\" data-search=\"{name}/\"><b>{name}</b> ");
        match bad(counts) {
            0 => *body += &format!("<small>{passed} pass</small>"),
            bad => *body += &format!("<small>{passed} pass, </small><b class=fail>{bad} not</b>"),
        }
        let parts: Vec<_> = Verdict::ALL.iter().map(|verdict| verdict.name()).zip(*counts).collect();
        bar(body, &parts);
        *body += "</a>\n";
    }
    *body += "</div>\n";
}

fn failures(body: &mut String, result: &RunResult, place: &Path) {
    let bad = |rule: &&RuleResult| !matches!(rule.verdict, Verdict::Pass | Verdict::Skipped);
    let any = result.rules.iter().any(|rule| bad(&rule)) || !result.packets.findings.is_empty();
    if any {
        *body += "<h2>Failures <small id=failure-count></small></h2>\n";
        *body += KEY;
        *body += "<div id=failures>\n";
    }
    for finding in &result.packets.findings {
        let class = if finding.counts() { "fail" } else { "inconclusive" };
        let _ = writeln!(
            body,
            "<section class=\"failure {class}\" data-verdict=fail><h3><b class={class}>packets</b> {}</h3><p>{}</p><p>{} packets, the first in {}, \
             packet {}</p>{}<pre>{}</pre></section>",
            Escaped(finding.requirement.as_deref().unwrap_or("unreadable")),
            Escaped(&finding.message),
            finding.count,
            Escaped(&finding.rule),
            finding.at_packet,
            accepted(super::waived_or_known(finding.waived.as_deref(), finding.known)),
            Escaped(&finding.rerun)
        );
    }
    for (index, rule) in result.rules.iter().filter(bad).enumerate() {
        failure::failure(body, rule, index, text::spec_of(result), place);
    }
    if any {
        *body += "</div>\n";
    }
}

fn accepted(why: Option<String>) -> String {
    why.map_or(String::new(), |why| format!("<p>{}</p>", Escaped(why)))
}

fn requirements(body: &mut String, fared: &[(&Requirement, RequirementCoverage, Fared)]) {
    *body += "<h2>Requirements <small id=count></small></h2>\n<table id=rows><tr><th>id<th>level<th>in this run<th>section<th>requirement\
              <th>checked by</tr>\n";
    for (requirement, coverage, fared) in fared {
        let Requirement { id, level, section, sentence, .. } = requirement;
        let mut by: Vec<String> = coverage.rules.iter().map(ToString::to_string).collect();
        if coverage.every_packet {
            by.push("every packet".into());
        }
        by.extend(coverage.unseen.map(ToString::to_string));
        let class = if *fared == Fared::Failed { " class=fail" } else { "" };
        *body += &format!(
            "<tr id={id}><td><code>{id}</code><td>{}<td{class}>{}<td>{section}<td>{}<td class=rules>{}</tr>\n",
            level.name(),
            fared.word(),
            Escaped(sentence),
            Escaped(by.join(", "))
        );
    }
    *body += "</table>\n";
}

fn all_rules(body: &mut String, result: &RunResult) {
    *body += "<h2>Rules <small id=rule-count></small></h2>\n<table id=rules><tr><th>rule<th>verdict<th>instances\
              <th>milliseconds<th>reason</tr>\n";
    for rule in &result.rules {
        let (id, verdict) = (Escaped(&rule.id), rule.verdict.name());
        let class = if rule.verdict.is_failure() { " class=fail" } else { "" };
        let name = match rule.verdict {
            Verdict::Pass | Verdict::Skipped => format!("<code>{id}</code>"),
            _ => format!("<a href=\"#{id}\"><code>{id}</code></a>"),
        };
        let title = RULES.find(&rule.id).map_or("", |rule| rule.title);
        *body += &format!(
            "<tr data-verdict={verdict}><td>{name}<br><small>{}</small><td{class}>{verdict}<td>{}<td>{:.1}<td>{}</tr>\n",
            Escaped(title),
            rule.instances.total() - rule.instances.skipped,
            rule.duration_ns as f64 / 1e6,
            Escaped(&rule.reason)
        );
    }
    *body += "</table>\n";
}

/// Appends the features of the profile with their verdicts.
fn features(body: &mut String, profile: &ProfileResult) {
    let (passed, mandatory) = profile.passed();
    let name = Escaped(&profile.name);
    *body +=
        &format!("<h2>{name}: {passed} of {mandatory} mandatory features pass</h2>\n<table id=profile>\n");
    *body += "<tr><th>id<th>feature<th>obligation<th>verdict<th>rules</tr>\n";
    for row in &profile.rows {
        let (id, feature, verdict) = (Escaped(&row.id), Escaped(&row.feature), row.verdict.name());
        let obligation = row.obligation.name();
        *body +=
            &format!("<tr><td>{id}<td>{feature}<td>{obligation}<td>{verdict}<td>{}</tr>\n", row.rules.len());
    }
    *body += "</table>\n";
}

fn statement(body: &mut String, result: &RunResult) {
    let stated = &result.statement;
    *body += "<h2>Device statement</h2>\n<table id=statement>\n";
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
    let corrections = &result.circumstances.corrections.0;
    corrections.iter().for_each(|correction| row("corrected", correction.to_string()));
    if let Some(pics) = &result.circumstances.pics {
        use uet_conformance::pics::{Shown, Stated};
        pics.conflicts.iter().for_each(|conflict| row("conformance statement", conflict.clone()));
        let of = |shown| pics.of(Stated::Yes, Some(shown)).count();
        let (held, failed, open) = (of(Shown::Held), of(Shown::Failed), of(Shown::NotTested));
        let not = pics.of(Stated::No, None).count();
        row(
            "conformance statement",
            format!("supported: {held} held, {failed} failed, {open} not tested; not supported: {not}"),
        );
    }
    stated.waivers.iter().for_each(|waiver| row("waived", format!("{}: {}", waiver.id, waiver.reason)));
    stated.device.parameters.iter().for_each(|(name, value)| row(name, value.to_string()));
    *body += "</table>\n";
}
