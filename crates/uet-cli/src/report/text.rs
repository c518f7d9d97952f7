//! Reports the suite's results as text.

use super::{causes, counted, unsupported};
use crate::paint::{Paint, Painted, Plain};
use crate::text;
use std::collections::BTreeMap;
use std::io::{self, Write};
use uet_conformance::pics::{Pics, Shown, Stated};
use uet_conformance::random::{Coverage, Figures};
use uet_conformance::{
    Changes, InstanceResult, Obligation, Observation, PacketFinding, ProfileResult, RULES, RowVerdict,
    RuleResult, RunResult, Tally, Verdict,
};
use uet_packet_io::json::{Decoded, Record};
use uet_wire::pds::Pds;
use uet_wire::{Options, Spec, Start, Uet, catalogue};

/// Writes a line for a rule: its id, verdict, number of instances and reason.
pub fn line(out: &mut impl Write, rule: &RuleResult, paint: Paint) -> io::Result<()> {
    write!(out, "{:<40} {}", rule.id, colored(rule.verdict, paint))?;
    let ran = rule.instances.total() - rule.instances.skipped;
    if rule.verdict == Verdict::Pass && ran > 1 {
        write!(out, "{}", paint.faint(format!("  {ran} instances")))?;
    }
    if let Some(reason) = &rule.waived {
        write!(out, " (waived: {})", Plain(reason))?;
    }
    match rule.verdict {
        Verdict::Pass => writeln!(out),
        Verdict::Skipped => writeln!(out, "  {}", paint.faint(Plain(&rule.reason))),
        _ => writeln!(out, "  {}", Plain(&rule.reason)),
    }
}

pub(super) fn colored(verdict: Verdict, paint: Paint) -> Painted<&'static str> {
    match verdict {
        Verdict::Pass => paint.name(verdict.name()),
        Verdict::Skipped => paint.faint(verdict.name()),
        Verdict::Inconclusive => paint.warning(verdict.name()),
        Verdict::Fail | Verdict::Flaky => paint.error(verdict.name()),
    }
}

/// Maximum number of failing instances that a report names beside the one that it shows, and of rules that did not run.
const NAMED: usize = 5;

/// Writes the details of a rule that did not pass: requirement, expectation, observation, trace, and how to go on.
/// The device's packet is judged by `spec`.
pub fn failure(out: &mut Vec<u8>, rule: &RuleResult, spec: &'static Spec, paint: Paint) -> io::Result<()> {
    if let Some(known) = RULES.find(&rule.id) {
        writeln!(out, "  {}", known.title)?;
    }
    if let Some(worst) = rule.worst() {
        instance(out, worst, spec, paint)?;
    }
    let others = others(rule);
    if !others.is_empty() {
        writeln!(out, "  also: {}", Plain(&others))?;
    }
    Ok(())
}

/// Writes how to go on with a rule that has probably the same cause as an earlier one, whose details stand above.
pub fn repeated_failure(out: &mut Vec<u8>, rule: &RuleResult, first: &str) -> io::Result<()> {
    writeln!(out, "  probably the same cause as {first}")?;
    rule.worst().map_or(Ok(()), |worst| how_to_go_on(out, worst))
}

/// Lists the failing instances beside the one that is shown: `a, b and 3 more`.
pub(super) fn others(rule: &RuleResult) -> String {
    let shown = rule.worst().map(|worst| &worst.instance);
    let others: Vec<&str> =
        rule.failing.iter().filter(|it| Some(&it.instance) != shown).map(|it| it.instance.as_str()).collect();
    some_of(&others)
}

/// Lists the first ids, and counts the others.
fn some_of(ids: &[&str]) -> String {
    let named = ids.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    match ids.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn instance(out: &mut Vec<u8>, found: &InstanceResult, spec: &'static Spec, paint: Paint) -> io::Result<()> {
    if found.instance.contains('[') {
        writeln!(out, "  {}", paint.strong(Plain(&found.instance)))?;
    }
    if found.observations.is_empty() {
        writeln!(out, "  {}", Plain(&found.reason))?;
    }
    let mut told: Vec<(&str, &str)> = Vec::new();
    for broken in &found.observations {
        // A comparison that fails again adds nothing; the trace shows it.
        if !told.contains(&(&broken.requirement, &broken.what)) {
            told.push((&broken.requirement, &broken.what));
            observation(out, broken, found, paint)?;
        }
    }

    let of_interest = seen_packet(found);
    if !found.ladder.entries.is_empty() {
        writeln!(out, "  {}", paint.faint("packet, microseconds; --> from the suite, <-- from the device"))?;
    }
    for line in found.ladder.excerpt().lines() {
        let marked = of_interest.is_some_and(|(number, _)| is_of(line, number));
        match marked {
            true => writeln!(out, "> {}", paint.strong(Plain(line)))?,
            false => writeln!(out, "  {}", Plain(line))?,
        }
    }
    let stimulus = of_interest.and_then(|(number, _)| stimulus(found, number));
    for (number, bytes) in stimulus.into_iter().chain(of_interest) {
        fields(out, number, bytes, spec, paint)?;
    }
    how_to_go_on(out, found)
}

/// Writes the files of an instance, and the command that runs it again.
fn how_to_go_on(out: &mut Vec<u8>, found: &InstanceResult) -> io::Result<()> {
    if let Some(capture) = &found.capture {
        writeln!(out, "  capture: {}", Plain(capture))?;
    }
    if let Some(trace) = &found.trace {
        writeln!(out, "  trace: {}", Plain(trace))?;
    }
    writeln!(out, "  again: {}", Plain(&found.rerun))
}

/// Writes a failed observation and the sentence of its requirement.
fn observation(
    out: &mut Vec<u8>,
    broken: &Observation,
    found: &InstanceResult,
    paint: Paint,
) -> io::Result<()> {
    write!(out, "  {}", paint.name(&broken.requirement))?;
    if let Some(known) = catalogue::find(&broken.requirement) {
        let level = found.corrections.level(known).unwrap_or(known.level).name();
        let sentence = found.corrections.corrected(known, known.sentence);
        let corrected = if found.corrections.find(known.id).is_some() { ", corrected" } else { "" };
        write!(out, " ({level}, section {}{corrected}): {}", known.section, Plain(&sentence))?;
    }
    writeln!(out, "\n    {} {}", paint.faint("expected"), Plain(&broken.expectation().to_string()))?;
    writeln!(out, "    {}     {}", paint.faint("seen"), Plain(&broken.seen))
}

/// Returns the packet that a failure is about: the suite's that caused it, or the device's last one up to it. Returns
/// `None` if none was seen.
pub(super) fn seen_packet(found: &InstanceResult) -> Option<(usize, &[u8])> {
    if let Some(request) = found.observations.first().and_then(|broken| broken.request) {
        let (_, wire) = found.ladder.packets().nth(request.checked_sub(1)?)?;
        return Some((request, &wire.bytes));
    }
    let nothing = found.observations.first().is_some_and(|broken| broken.seen == "nothing");
    let last = found.at_packet.filter(|_| !nothing)?;
    let packets = found.ladder.of_the_device().take_while(|(number, _)| *number <= last);
    packets.last().map(|(number, wire)| (number, &wire.bytes[..]))
}

/// Returns the suite's last packet before an answer of the device: fields that no line of a trace shows, such as its
/// key, may have caused the answer. Returns `None` for another packet.
fn stimulus(found: &InstanceResult, number: usize) -> Option<(usize, &[u8])> {
    let device: Vec<usize> = found.ladder.of_the_device().map(|(number, _)| number).collect();
    let before = (1..).zip(found.ladder.packets()).take(number);
    let packets: Vec<(usize, &[u8])> = before.map(|(number, (_, wire))| (number, &wire.bytes[..])).collect();
    let (_, answer) = packets.last().filter(|_| device.contains(&number))?;
    let is_answer = matches!(Uet::parse_lax(answer).0.pds, Some(Pds::Ack(_) | Pds::Nack(_)));
    packets.into_iter().rev().find(|(number, _)| is_answer && !device.contains(number))
}

/// Returns whether a line of a trace shows this packet.
pub(super) fn is_of(line: &str, number: usize) -> bool {
    // A note has no number and more indentation.
    !line.starts_with("    ") && line.split_whitespace().next() == Some(&number.to_string())
}

/// Returns the version of the specification of a run; the default one if it is not a released version.
pub(super) fn spec_of(result: &RunResult) -> &'static Spec {
    Spec::ALL.iter().copied().find(|spec| spec.name() == result.specification).unwrap_or_default()
}

/// Writes all fields of a packet and its findings by `spec`.
pub(super) fn fields(
    out: &mut Vec<u8>,
    number: usize,
    bytes: &[u8],
    spec: &'static Spec,
    paint: Paint,
) -> io::Result<()> {
    let record =
        Record { number: number as u64, start: Start::Uet, bytes, wire: bytes.len(), ..Record::default() };
    let decoded = Decoded::new(record, &Options::DEFAULT.spec(spec), false);
    let mut tree = Vec::new();
    text::tree(&mut tree, &decoded, paint)?;
    for line in tree.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        out.extend_from_slice(b"  ");
        out.extend_from_slice(line);
        out.push(b'\n');
    }
    Ok(())
}

/// Writes the results of the run: findings of single packets, skipped rules, groups, then causes, differences from the
/// baseline and counts, which so end up on the last screen.
pub fn summary(
    out: &mut impl Write,
    result: &RunResult,
    changes: Option<&Changes>,
    paint: Paint,
) -> io::Result<()> {
    result.packets.findings.iter().try_for_each(|finding| packet(out, finding, paint))?;
    skipped(out, result, paint)?;
    groups(out, result, paint)?;
    for correction in &result.circumstances.corrections.0 {
        writeln!(out, "corrected in the catalogue: {}", Plain(&correction.to_string()))?;
    }
    if let Some(stated) = &result.circumstances.pics {
        pics(out, stated)?;
    }
    if let Some(profile) = &result.profile {
        self::profile(out, profile, paint)?;
    }
    if result.circumstances.packets_only {
        let left_out = result.count(Verdict::Skipped);
        let ran = result.rules.len() - left_out;
        writeln!(out, "without a control channel: {ran} rules ran, and {left_out} were left out")?;
    }
    let stated = &result.statement;
    if !stated.beyond.is_empty() {
        let provisional = if stated.provisional { ", provisional" } else { "" };
        let of = if stated.of.is_empty() { "its statement" } else { &stated.of };
        let beyond = stated.beyond.join(", ");
        writeln!(out, "claimed for the device by {}{provisional}: {}", Plain(of), Plain(&beyond))?;
    }
    let unused = |waiver: &&uet_conformance::Waiver| {
        let told = |rule: &RuleResult| rule.waived.as_ref() == Some(&waiver.reason);
        let told_of_packet = |found: &PacketFinding| found.waived.as_ref() == Some(&waiver.reason);
        !result.rules.iter().any(told) && !result.packets.findings.iter().any(told_of_packet)
    };
    for waiver in result.statement.waivers.iter().filter(unused) {
        writeln!(out, "the waiver of {} is no longer needed, or its rule did not run", Plain(&waiver.id))?;
    }
    let later: Vec<&str> =
        result.rules.iter().flat_map(|rule| &rule.passed_later).map(String::as_str).collect();
    if !later.is_empty() {
        let (count, some) = (later.len(), some_of(&later));
        writeln!(
            out,
            "{count} did not pass at first, while the host was busy: {some}; --repeat 10 counts failures"
        )?;
    }
    unsupported(result).try_for_each(|claim| writeln!(out, "{}", Plain(&claim)))?;
    causes(out, result, paint)?;
    changes.map_or(Ok(()), |changes| self::changes(out, changes, result))?;
    let left: Vec<&str> = result.circumstances.not_run_rules.iter().map(String::as_str).collect();
    if !left.is_empty() {
        writeln!(out, "not run: {}", Plain(&some_of(&left)))?;
    }
    let RunResult { device, specification, seed, .. } = result;
    let (counts, specification) = (counts(result), Plain(specification));
    writeln!(out, "{} ({}, specification {specification}, seed {seed})", Plain(&counts), Plain(device))
}

/// Writes the differences from the baseline.
fn changes(out: &mut impl Write, changes: &Changes, result: &RunResult) -> io::Result<()> {
    let Changes { new, known, unplayed, mended, lost } = changes;
    let lists = [
        ("new", new),
        ("known", known),
        ("not in the baseline", unplayed),
        ("mended", mended),
        ("no longer tested", lost),
    ];
    for (what, ids) in lists.into_iter().filter(|(_, ids)| !ids.is_empty()) {
        writeln!(out, "{what}: {}", ids.join(", "))?;
    }
    let in_packets: Vec<&str> = broken(result).map(requirement).collect();
    if !in_packets.is_empty() {
        writeln!(out, "new in packets: {}", in_packets.join(", "))?;
    }
    if new.is_empty() && lost.is_empty() && in_packets.is_empty() {
        writeln!(
            out,
            "{}",
            match unplayed.is_empty() {
                true => "nothing is worse than in the baseline",
                false => "nothing that the baseline played is worse",
            }
        )?;
    }
    Ok(())
}

/// Writes how many features of a profile pass, and the others.
fn profile(out: &mut impl Write, profile: &ProfileResult, paint: Paint) -> io::Result<()> {
    let (passed, mandatory) = profile.passed();
    writeln!(out, "\n{}: {passed} of {mandatory} mandatory features pass", Plain(&profile.name))?;
    for row in profile.rows.iter().filter(|row| row.verdict != RowVerdict::Pass) {
        let what = match row.verdict {
            RowVerdict::Missing if row.claimed => {
                paint.error("mandatory, and the device refuses it").to_string()
            }
            RowVerdict::Missing => paint.error("mandatory, not claimed").to_string(),
            RowVerdict::Excluded => paint.error("excluded, and claimed").to_string(),
            RowVerdict::NotTested if row.obligation == Obligation::Optional => continue,
            verdict => verdict.name().into(),
        };
        writeln!(out, "  {:<8}{}: {what}", row.id, row.feature)?;
    }
    writeln!(out)
}

/// Writes the counts of a conformance statement, and what contradicts it.
fn pics(out: &mut impl Write, stated: &Pics) -> io::Result<()> {
    let named: Vec<&str> = ["vendor", "product", "version"]
        .iter()
        .filter_map(|key| stated.implementation.get(*key))
        .map(String::as_str)
        .filter(|value| !value.is_empty())
        .collect();
    writeln!(out, "\nconformance statement of {}", Plain(&named.join(" ")))?;
    stated.conflicts.iter().try_for_each(|conflict| writeln!(out, "  conflict: {}", Plain(conflict)))?;
    let supported = |shown| stated.of(Stated::Yes, Some(shown));
    for (what, count) in [
        ("supported, held", supported(Shown::Held).count()),
        ("supported, failed", supported(Shown::Failed).count()),
        ("supported, not tested", supported(Shown::NotTested).count()),
        ("not supported", stated.of(Stated::No, None).count()),
        ("not applicable", stated.of(Stated::NotApplicable, None).count()),
        ("not answered", stated.of(Stated::Open, None).count()),
    ] {
        writeln!(out, "  {what:<22}{count:>5}")?;
    }
    let failed: Vec<&str> = supported(Shown::Failed).collect();
    match failed.is_empty() {
        true => writeln!(out),
        false => writeln!(out, "  supported, but failed: {}\n", failed.join(" ")),
    }
}

fn packet(out: &mut impl Write, finding: &PacketFinding, paint: Paint) -> io::Result<()> {
    let word = match finding.counts() {
        true => paint.error("every packet"),
        false => paint.warning("every packet"),
    };
    let accepted = match (&finding.waived, finding.known) {
        (Some(reason), _) => format!(" (waived: {})", Plain(reason)),
        (None, true) => " (known)".into(),
        (None, false) => String::new(),
    };
    writeln!(out, "\n{word} {}{accepted}", paint.strong(requirement(finding)))?;
    writeln!(out, "  {}", Plain(&finding.message))?;
    let others = match finding.count {
        1 => String::new(),
        many => format!(", and {} more", many - 1),
    };
    writeln!(out, "  first in {}, packet {}{others}", finding.rule, finding.at_packet)?;
    writeln!(out, "  again: {}", Plain(&finding.rerun))
}

/// Writes a line for each group with the verdicts of its rules. A group whose rules are all skipped has none.
fn groups(out: &mut impl Write, result: &RunResult, paint: Paint) -> io::Result<()> {
    let mut groups: Vec<(&str, [usize; 5])> = Vec::new();
    let skips =
        |group: &str| result.rules.iter().all(|rule| rule.group != group || rule.verdict == Verdict::Skipped);
    for rule in result.rules.iter().filter(|rule| !skips(&rule.group)) {
        let known = groups.iter().position(|(name, _)| *name == rule.group);
        let group = known.unwrap_or_else(|| {
            groups.push((&rule.group, [0; 5]));
            groups.len() - 1
        });
        if let Some(place) = Verdict::ALL.iter().position(|verdict| *verdict == rule.verdict) {
            groups[group].1[place] += 1;
        }
    }
    if groups.is_empty() {
        return Ok(());
    }
    let heads = Verdict::ALL.map(|verdict| format!("{:>14}", verdict.name())).concat();
    writeln!(out, "\n{}", paint.faint(format!("{:<16}{heads}", "group")))?;
    for (name, counts) in &groups {
        write!(out, "{name:<16}")?;
        let last = counts.iter().rposition(|count| *count > 0).unwrap_or(0);
        for (verdict, count) in Verdict::ALL.into_iter().zip(counts).take(last + 1) {
            match (count, verdict) {
                (0, _) => write!(out, "{:>14}", "")?,
                (_, Verdict::Pass | Verdict::Skipped) => write!(out, "{count:>14}")?,
                _ => write!(out, "{:>14}", paint.error(count))?,
            }
        }
        writeln!(out)?;
    }
    writeln!(out)
}

/// Maximum number of causes that a report names.
const CAUSES: usize = 20;

/// Writes what the rules that did not pass have in common.
fn causes(out: &mut impl Write, result: &RunResult, paint: Paint) -> io::Result<()> {
    let causes = causes::of(result);
    let rules = |count: usize| text::counted(count as u64, "rule");
    for cause in causes.iter().take(CAUSES) {
        let named = cause
            .rules
            .iter()
            .take(causes::NAMED)
            .map(|rule| rule.id.as_str())
            .collect::<Vec<_>>()
            .join(", ");
        let more = if cause.rules.len() > causes::NAMED { ", ..." } else { "" };
        writeln!(out, "{}: {}", paint.error(rules(cause.rules.len())), Plain(&cause.what))?;
        let requirements =
            cause.requirements.iter().map(|id| format!("{} ", paint.name(id))).collect::<String>();
        writeln!(out, "  {requirements}{named}{more}")?;
    }
    let others = causes.iter().skip(CAUSES).map(|cause| cause.rules.len()).sum::<usize>();
    if others > 0 {
        writeln!(out, "{} for other reasons", rules(others))?;
    }
    let broken: Vec<&PacketFinding> = broken(result).collect();
    for finding in broken.iter().take(CAUSES) {
        let packets = text::counted(finding.count, "packet");
        writeln!(out, "{}: {}", paint.error(packets), Plain(&finding.message))?;
        writeln!(out, "  first in {}", finding.rule)?;
    }
    if causes.is_empty() && broken.is_empty() { Ok(()) } else { writeln!(out) }
}

/// Returns the requirement that packets break, or `unreadable`.
fn requirement(finding: &PacketFinding) -> &str {
    finding.requirement.as_deref().unwrap_or("unreadable")
}

/// Returns the findings of single packets that make the run fail.
fn broken(result: &RunResult) -> impl Iterator<Item = &PacketFinding> {
    result.packets.findings.iter().filter(|finding| finding.counts())
}

/// Writes the reasons for skipped rules, and the number of rules for each.
fn skipped(out: &mut impl Write, result: &RunResult, paint: Paint) -> io::Result<()> {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for rule in result.rules.iter().filter(|rule| rule.verdict == Verdict::Skipped) {
        *reasons.entry(&rule.reason).or_default() += 1;
    }
    reasons.iter().try_for_each(|(reason, count)| {
        writeln!(out, "{}", paint.faint(format!("{count} skipped: {}", Plain(reason))))
    })
}

/// Returns counts in rules, such as `3 pass, 1 fail`; then the waived and known ones, the instances, and the reason for
/// an early end.
pub fn counts(result: &RunResult) -> String {
    let mut told = counted(Verdict::ALL.map(|verdict| (result.count(verdict), verdict.name())));
    for (word, has) in [
        ("waived", (|rule| rule.waived.is_some()) as fn(&RuleResult) -> bool),
        ("known", |rule| rule.known && rule.waived.is_none()),
        ("not in the baseline", |rule| rule.not_in_baseline && rule.waived.is_none()),
    ] {
        let count = result.rules.iter().filter(|rule| has(rule)).count();
        if count > 0 {
            told.push(format!("of these {count} {word}"));
        }
    }
    let sum =
        |count: fn(&Tally) -> usize| result.rules.iter().map(|rule| count(&rule.instances)).sum::<usize>();
    let ran = sum(Tally::total) - sum(|tally| tally.skipped);
    if ran > result.rules.len() - result.count(Verdict::Skipped) {
        told.push(match sum(|tally| tally.fail + tally.inconclusive) {
            0 => format!("{ran} instances"),
            bad => format!("{ran} instances, {bad} of them bad"),
        });
    }
    if result.not_run > 0 {
        told.push(format!("{} not run", result.not_run));
    }
    let told = if told.is_empty() { "nothing ran".into() } else { told.join(", ") };
    match (&result.stopped, result.circumstances.ended_by) {
        (Some(why), _) => format!("{told}; stopped: {why}"),
        (None, Some(end)) => format!("{told}; stopped {end}"),
        (None, None) => told,
    }
}

/// Writes the figures of random conversations: what happened in which state of a context.
pub fn random(out: &mut impl Write, figures: &Figures) -> io::Result<()> {
    let rate = figures.operations as f64 / figures.seconds.max(1e-9);
    writeln!(
        out,
        "{} conversations, {} operations in {:.1} s: {rate:.0} per second",
        figures.conversations, figures.operations, figures.seconds
    )?;
    write!(out, "\n{:24}", "event")?;
    for state in Coverage::STATES {
        write!(out, "{state:>12}")?;
    }
    writeln!(out)?;
    for (name, counts) in figures.coverage.rows() {
        write!(out, "{name:24}")?;
        for count in counts {
            match count {
                0 => write!(out, "{:>12}", "")?,
                count => write!(out, "{count:>12}")?,
            }
        }
        writeln!(out)?;
    }
    writeln!(out)
}
