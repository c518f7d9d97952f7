//! The page of the rules of the suite, each with its timeline on the built-in NIC.

use super::html::Escaped;
use crate::explain::specification::{Specification, axes, needs};
use crate::timeline::{Row, fold, milliseconds};
use std::fmt::Write as _;
use std::io;
use uet_conformance::{Instance, PacketDirection, RULES, TimelineEvent};

/// Maximum number of rows of a timeline on the page.
const ROWS: usize = 13;

/// Maximum number of characters of a row.
const WIDTH: usize = 80;

/// Returns the page. Runs the first instance of each rule.
pub(super) fn rules() -> io::Result<String> {
    let mut nic = Specification::nic()?;
    let mut text = String::from(
        "<p>Each rule with its first instance on the built-in NIC, as <code>uet run</code> runs it; times in ms. \
         <code>uet explain ID</code> prints the whole timeline of any instance.</p>\n\
         <p><input id=filter placeholder=\"filter: window, PDS-ACK, NACK ...\"> <span id=count></span></p>\n\
         <div id=rules>\n",
    );
    for rule in RULES.iter() {
        one(&mut text, &Specification::of(&Instance::first(rule), &mut nic));
    }
    Ok(text + "</div>\n")
}

fn one(text: &mut String, of: &Specification) {
    let (id, title) = (of.rule.id, Escaped(of.rule.title));
    *text += &format!("<section id=\"{id}\"><h3><a href=\"#{id}\">{id}</a></h3><p>{title}<p>");
    for requirement in of.rule.requirements {
        let (id, level) = (requirement.id, requirement.level.name());
        *text += &format!(
            "<a href=requirements.html#{id}>{id}</a> {level}: {}<br>\n",
            Escaped(requirement.sentence)
        );
    }
    let needs = needs(of.rule);
    if !needs.is_empty() {
        *text += &format!("<small>needs {}</small><br>\n", Escaped(needs.join(", ")));
    }
    for (name, values) in axes(of.rule) {
        *text += &format!("<small>{name}: {}</small><br>\n", Escaped(values.join(", ")));
    }
    // Paragraphs end where others and the details begin.
    *text += "<details><summary>timeline</summary><pre>";
    if let Some(caution) = of.caution() {
        let _ = writeln!(text, "{}", Escaped(caution));
    }
    let mut before = None;
    for row in fold(&of.timeline, ROWS) {
        match row {
            Row::Folded(count) => *text += &format!("… {count} steps\n"),
            Row::Step(moment) => {
                if before != Some(moment.phase) {
                    *text += &format!("<b>{}</b>\n", moment.phase.name());
                    before = Some(moment.phase);
                }
                let line: String = event(&moment.event).chars().take(WIDTH).collect();
                *text += &format!("{} {}\n", milliseconds(moment.time_ns), Escaped(line));
            }
        }
    }
    *text += "</pre></details></section>\n";
}

/// Returns a step in few characters.
fn event(event: &TimelineEvent) -> String {
    match event {
        TimelineEvent::Packet { direction: PacketDirection::ToDevice, text, .. } => format!("→ {text}"),
        TimelineEvent::Packet { direction: PacketDirection::FromDevice, text, .. } => format!("← {text}"),
        TimelineEvent::Control { operation, arguments } => format!("{operation} {arguments}"),
        TimelineEvent::Check(check) => format!("⊢ {}: {}", check.requirement, check.obligation()),
        TimelineEvent::Note { text } => text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_every_rule_and_stays_small() {
        let page = rules().unwrap();
        for rule in RULES.iter() {
            assert!(page.contains(&format!("<section id=\"{}\">", rule.id)), "{}", rule.id);
        }
        assert_eq!(page.matches("<details>").count(), RULES.iter().count());
        let whole = page.matches("<b>obligation</b>").count();
        assert!(whole >= RULES.iter().count() * 9 / 10, "{whole} obligations");
        assert!(page.len() < 2_000_000, "{} bytes", page.len());
    }
}
