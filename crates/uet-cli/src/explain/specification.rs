//! A rule as a specification: statement, requirements, needs, axes, and the timeline of an instance.

use crate::paint::{Paint, Plain};
use crate::timeline::{Row, fold, milliseconds};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, Write};
use uet_conformance::{Instance, Moment, Rule, TimelineEvent, Verdict, run_instance};
use uet_emulator::Config;
use uet_harness::dut::{Embedded, Family};
use uet_wire::Version;
use uet_wire::catalogue::Requirement;

/// Maximum number of rows of a timeline as text.
const SHOWN: usize = 80;

/// A rule, and the timeline of one of its instances on the built-in NIC.
#[derive(Debug)]
pub struct Specification {
    /// The rule.
    pub rule: &'static Rule,
    /// The id of the instance.
    pub instance: String,
    /// The steps of the instance.
    pub timeline: Vec<Moment>,
    /// The verdict, and the reason unless the instance passed.
    pub verdict: (Verdict, String),
}

impl Specification {
    /// Runs this instance on a built-in NIC.
    pub fn of(instance: &Instance, nic: &mut Embedded) -> Self {
        let result = run_instance(nic, instance, Version::default().spec(), 1, 1.0);
        Specification {
            rule: instance.rule,
            instance: instance.to_string(),
            timeline: result.ladder.timeline(),
            verdict: (result.verdict, result.reason),
        }
    }

    /// Creates a built-in NIC on which most instances run.
    pub fn nic() -> io::Result<Embedded> {
        Embedded::over(Family::Both, Config::default(), &[]).map_err(io::Error::other)
    }

    /// Returns the reason why the timeline is not that of a pass.
    pub fn caution(&self) -> Option<String> {
        let (verdict, reason) = &self.verdict;
        (*verdict != Verdict::Pass).then(|| format!("{}: {reason}", verdict.name()))
    }

    /// Writes the whole as text.
    pub fn text(&self, out: &mut impl Write, paint: Paint) -> io::Result<()> {
        let rule = self.rule;
        writeln!(out, "{}, rule", paint.strong(rule.id))?;
        writeln!(out, "  {}", rule.title)?;
        for requirement in rule.requirements {
            let Requirement { id, level, section, sentence, .. } = requirement;
            writeln!(out, "\n  {} ({}, section {section})", paint.name(id), level.name())?;
            writeln!(out, "    {sentence}")?;
            writeln!(out, "    {} {}", paint.faint("why:"), requirement.rationale())?;
        }
        writeln!(out)?;
        let needs = needs(rule);
        writeln!(
            out,
            "  {:<9} {}",
            paint.faint("needs"),
            if needs.is_empty() { "nothing".into() } else { needs.join(", ") }
        )?;
        for (name, values) in axes(rule) {
            writeln!(out, "  {:<9} {name}: {}", paint.faint("axis"), values.join(", "))?;
        }
        writeln!(out, "  {:<9} uet run --id {}", paint.faint("run"), rule.id)?;
        writeln!(out, "\n  {} on the built-in NIC, in ms:", paint.strong(&self.instance))?;
        if let Some(caution) = self.caution() {
            writeln!(out, "  {}", paint.warning(Plain(&caution)))?;
        }
        let mut before = None;
        for row in fold(&self.timeline, SHOWN) {
            match row {
                Row::Folded(count) => {
                    writeln!(out, "  {:<10} {:>10}  {}", "", "", paint.faint(format!("… {count} steps")))?;
                }
                Row::Step(moment) => {
                    let phase = if before == Some(moment.phase) { "" } else { moment.phase.name() };
                    before = Some(moment.phase);
                    let event = moment.event.to_string();
                    let time = milliseconds(moment.time_ns);
                    write!(out, "  {:<10} {:>10}  ", paint.name(phase), paint.faint(time))?;
                    match &moment.event {
                        TimelineEvent::Check(check) if !check.held => {
                            writeln!(out, "{}", paint.error(Plain(&event)))?;
                        }
                        TimelineEvent::Check(_) => writeln!(out, "{}", paint.strong(Plain(&event)))?,
                        _ => writeln!(out, "{}", Plain(&event))?,
                    }
                }
            }
        }
        Ok(())
    }
}

impl Serialize for Specification {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rule = self.rule;
        let requirements = rule.requirements.iter().map(|requirement| {
            let Requirement { id, level, section, sentence, .. } = requirement;
            let (level, rationale) = (level.name(), requirement.rationale());
            json!({"id": id, "level": level, "section": section, "sentence": sentence, "rationale": rationale})
        });
        let axes = axes(rule).map(|(name, values)| json!({"name": name, "values": values}));
        let (verdict, reason) = &self.verdict;
        json!({
            "kind": "rule",
            "id": rule.id,
            "name": rule.id,
            "meaning": rule.title,
            "requirements": requirements.collect::<Vec<Value>>(),
            "needs": needs(rule),
            "axes": axes.collect::<Vec<Value>>(),
            "run": format!("uet run --id {}", rule.id),
            "instance": self.instance,
            "verdict": verdict,
            "reason": reason,
            "timeline": self.timeline,
        })
        .serialize(serializer)
    }
}

/// Returns the needs of a rule in words.
pub fn needs(rule: &Rule) -> Vec<String> {
    rule.needs.iter().map(ToString::to_string).collect()
}

/// Returns the axes of a rule, each with its values.
pub fn axes(rule: &Rule) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    rule.axes.iter().map(|axis| (axis.name(), (0..axis.count()).map(|index| axis.point(index)).collect()))
}
