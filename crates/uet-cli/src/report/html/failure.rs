//! A rule that did not pass: observations, limits, ladder, fields, and how to run it again.

use super::{gauge, ladder};
use crate::paint::Paint;
use crate::report::text;
use crate::site::html::Escaped;
use crate::timeline::{Row, around};
use std::path::{Path, PathBuf};
use uet_conformance::{InstanceResult, Observation, RULES, RuleResult, TimelineEvent};
use uet_wire::Spec;
use uet_wire::catalogue;

/// Number of failures with the fields of all packets. Later ones have those of the packet in question.
const COMPLETE: usize = 40;

/// Number of rows of a ladder.
const ROWS: usize = 40;

/// Maximum number of observations drawn against their limits.
const GAUGES: usize = 6;

/// Appends the section of the rule. `index` counts the failures on the page.
pub(super) fn failure(body: &mut String, rule: &RuleResult, index: usize, spec: &'static Spec, place: &Path) {
    let (id, verdict) = (Escaped(&rule.id).to_string(), rule.verdict.name());
    let class = if rule.verdict.is_failure() { "fail" } else { "inconclusive" };
    let title = RULES.find(&rule.id).map_or("", |rule| rule.title);
    *body += &format!(
        "<section class=\"failure {class}\" id=\"{id}\" data-verdict={verdict}><h3><b class={class}>{verdict}</b> \
         <a href=\"#{id}\">{id}</a></h3>\n<p>{}</p>{}\n",
        Escaped(title),
        super::accepted(crate::report::accepted(rule))
    );
    if let Some(worst) = rule.worst() {
        instance(body, worst, index, spec, place);
    }
    let others = text::others(rule);
    if !others.is_empty() {
        *body += &format!("<p>also: {}</p>\n", Escaped(others));
    }
    *body += "</section>\n";
}

fn instance(body: &mut String, found: &InstanceResult, index: usize, spec: &'static Spec, place: &Path) {
    if found.instance.contains('[') {
        *body += &format!("<p><code>{}</code></p>\n", Escaped(&found.instance));
    }
    if found.observations.is_empty() {
        *body += &format!("<p>{}</p>\n", Escaped(&found.reason));
    } else {
        observations(body, found);
    }
    trace(body, found, index, spec);
    for (what, file) in [("capture", &found.capture), ("trace", &found.trace)] {
        if let Some(file) = file {
            let link = reached(place, Path::new(file));
            *body +=
                &format!("<p>{what}: <a href=\"{}\">{}</a></p>\n", Escaped(link.display()), Escaped(file));
        }
    }
    *body += &format!("<p>again: <code>{}</code></p>\n", Escaped(&found.rerun));
}

fn observations(body: &mut String, found: &InstanceResult) {
    *body += "<div class=scroll><table class=observations><tr><th>requirement<th>expected<th>seen</tr>\n";
    // A comparison that fails again adds nothing; the ladder shows it.
    let mut told: Vec<&Observation> = Vec::new();
    for broken in &found.observations {
        if told.iter().any(|it| (&it.requirement, &it.what) == (&broken.requirement, &broken.what)) {
            continue;
        }
        told.push(broken);
        let known = catalogue::find(&broken.requirement);
        let (level, sentence, reason) =
            known.map_or(("", "", ""), |known| (known.level.name(), known.sentence, known.rationale()));
        *body += &format!(
            "<tr><td><a href=\"#{id}\">{id}</a> {level}<br><small>{}<br><i>{}</i></small><td>{}<td class=fail>{}</tr>\n",
            Escaped(sentence),
            Escaped(reason),
            Escaped(broken.expectation()),
            Escaped(&broken.seen),
            id = Escaped(&broken.requirement)
        );
    }
    *body += "</table></div>\n";
    told.into_iter().filter_map(gauge::svg).take(GAUGES).for_each(|drawing| *body += &drawing);
}

/// Appends the ladder, the fields of its packets, and the trace as text.
fn trace(body: &mut String, found: &InstanceResult, index: usize, spec: &'static Spec) {
    let timeline = found.ladder.timeline();
    if timeline.is_empty() {
        return;
    }
    let broken = |event: &TimelineEvent| matches!(event, TimelineEvent::Check(check) if !check.held);
    let focus = timeline.iter().position(|moment| broken(&moment.event)).unwrap_or(timeline.len() - 1);
    let rows = around(&timeline, focus, ROWS);
    let seen = text::seen_packet(found).map(|(number, _)| number);
    let number = |row: &Row<'_>| match row {
        Row::Step(moment) => match moment.event {
            TimelineEvent::Packet { number, .. } => number,
            _ => None,
        },
        Row::Folded(_) => None,
    };
    let shown: Vec<usize> = rows.iter().filter_map(number).collect();
    let explained = |number: usize| {
        let wanted = index < COMPLETE && shown.contains(&number) || seen == Some(number);
        wanted.then(|| format!("f{index}-{number}"))
    };
    *body += "<div class=trace><div>\n";
    ladder::svg(body, &rows, seen, explained);
    *body += "</div><div class=all-fields><p class=hint>Select a packet to see its fields.</p>\n";
    for (number, (_, wire)) in (1..).zip(found.ladder.packets()) {
        let Some(id) = explained(number) else { continue };
        let mut fields = Vec::new();
        // A write into memory cannot fail.
        let _ = text::fields(&mut fields, number, &wire.bytes, spec, Paint::default());
        let open = if seen == Some(number) { " open" } else { "" };
        *body += &format!(
            "<details class=fields id={id}{open}><summary>packet {number}, all fields</summary><pre>{}</pre></details>\n",
            Escaped(String::from_utf8_lossy(&fields))
        );
    }
    *body += "</div></div>\n<details><summary>trace as text</summary><pre class=lines>";
    for line in found.ladder.excerpt().lines() {
        let marked = seen.is_some_and(|number| text::is_of(line, number));
        let line = Escaped(line).to_string();
        *body += &if marked { format!("<mark>{line}</mark>\n") } else { format!("{line}\n") };
    }
    *body += "</pre></details>\n";
}

/// Returns the path of a file relative to a page.
fn reached(page: &Path, file: &Path) -> PathBuf {
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (page, file) = (whole(page), whole(file));
    let beside = page.parent().and_then(|folder| file.strip_prefix(folder).ok().map(Path::to_owned));
    beside.unwrap_or(file)
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
