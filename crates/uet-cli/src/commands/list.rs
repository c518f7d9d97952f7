//! `uet list`

use super::device::DeviceArgs;
use super::filter::Filter;
use super::statement::StatementArgs;
use super::{Listing, Outcome, pics, statement};
use crate::paint::{Paint, Plain};
use clap::Args;
use serde_json::json;
use std::collections::HashMap;
use std::io::{self, BufWriter, IsTerminal, Write};
use uet_conformance::RULES;
use uet_conformance::{AnyAxis, Expand, Need, Options, ProfileRow, Rule, coverage};
use uet_wire::catalogue::{self, Requirement};

/// List the rules of the suite, or the requirements that they check
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet list                             all rules
  uet list --group ack --level must    some of them
  uet list --instances --group atomic  each rule at each combination of its axis values
  uet list --dut embedded              which of them a device can run, and why not the others
  uet list --profile writes            which of them a profile leaves
  uet list --requirements              the catalogue, and how each requirement is checked
  uet list --requirements | grep -v ' rule'
  uet list --format json | jq -r 'select(.needs | index(\"read\")).id'")]
pub(super) struct List {
    /// List the instances of the rules, one for each combination of axis values that runs
    #[arg(long, conflicts_with_all = ["requirements", "profiles"])]
    instances: bool,
    /// List the requirements of the catalogue instead of the rules
    #[arg(long, conflicts_with = "profiles")]
    requirements: bool,
    /// List the profiles that `uet run --profile` knows
    #[arg(long)]
    profiles: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Listing,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    statement: StatementArgs,
}

impl List {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        let stdout = io::stdout().lock();
        let terminal = stdout.is_terminal();
        let mut out = BufWriter::new(stdout);
        if self.profiles {
            self.profiles(&mut out)?;
        } else if self.requirements {
            self.requirements(&mut out, terminal)?;
        } else {
            self.rules(&mut out, terminal)?;
        }
        out.flush()?;
        Ok(Outcome::Ok)
    }

    fn rules(&self, out: &mut impl Write, terminal: bool) -> io::Result<()> {
        let paint = Paint::stdout();
        let mut group = "";
        let options =
            Options { statement: self.statement.read()?, spec: self.device.spec, ..self.filter.options()? };
        // Without a selected device, all rules are listed, as a page about the suite.
        let is_selected = self.device.is_selected() || self.statement.is_given();
        let mut device = is_selected.then(|| self.device.open(1)).transpose()?;
        let skips = device.as_mut().map(|device| device.predicted_skips(&options)).transpose()?;
        let skips: HashMap<&str, String> = skips.into_iter().flatten().collect();
        let stated = device.as_mut().map(|device| {
            let dut = device.dut();
            (options.statement.apply(dut.welcome()), dut.facts().clone())
        });
        let lacks = |needs: &[Need]| {
            let lacking = |(welcome, facts)| needs.iter().any(|need| need.lacking(welcome, facts).is_some());
            stated.as_ref().is_some_and(|(welcome, facts)| lacking((welcome, facts)))
        };
        let matrix = pics::matrix()?;
        for rule in options.selected() {
            let skipped = skips.get(rule.id);
            if self.instances {
                if skipped.is_none() {
                    self.of_rule(out, rule, options.expand, |needs| !lacks(needs))?;
                }
                continue;
            }
            if self.format == Listing::Json {
                let mut line = json_of(rule, &matrix);
                if is_selected {
                    line["skipped"] = skipped.cloned().into();
                }
                writeln!(out, "{line}")?;
                continue;
            }
            if terminal && group != rule.group() {
                group = rule.group();
                writeln!(out, "\n{}", paint.strong(group))?;
            }
            let level = rule.level().map_or("-", |level| level.name());
            match skipped {
                None => writeln!(out, "{:<40} {level:<7} {}", paint.name(rule.id), rule.title)?,
                Some(why) => writeln!(out, "{:<40} {level:<7} skipped: {}", paint.name(rule.id), Plain(why))?,
            }
        }
        Ok(())
    }

    fn of_rule(
        &self,
        out: &mut impl Write,
        rule: &'static Rule,
        expand: Expand,
        usable: impl Fn(&[Need]) -> bool + Copy,
    ) -> io::Result<()> {
        for instance in rule.instances(expand, usable) {
            match self.format {
                Listing::Text => writeln!(out, "{instance}")?,
                Listing::Json => {
                    let values: serde_json::Map<_, _> =
                        instance.values().map(|(axis, value)| (axis.to_owned(), value.into())).collect();
                    writeln!(
                        out,
                        "{}",
                        json!({"id": instance.to_string(), "rule": rule.id, "values": values})
                    )?;
                }
            }
        }
        Ok(())
    }

    /// Lists the matching requirements. The group and the capability are those of rules that check them.
    fn requirements(&self, out: &mut impl Write, terminal: bool) -> io::Result<()> {
        let paint = Paint::stdout();
        let options = self.filter.options()?;
        let of_rules =
            !(options.groups.is_empty() && options.ids.is_empty() && options.capabilities.is_empty());
        let rules = options.selected();
        let wanted = |requirement: &&&Requirement| {
            let level = options.levels.is_empty() || options.levels.contains(&requirement.level);
            level && (!of_rules || rules.iter().any(|rule| rule.requirements.contains(requirement)))
        };
        let mut area = "";
        for requirement in catalogue::ALL.iter().filter(wanted) {
            let how = coverage::of(RULES, requirement);
            if self.format == Listing::Json {
                let Requirement { id, level, section, sentence, source, evidence } = requirement;
                let line = json!({
                    "id": id, "level": level.name(), "section": section, "sentence": sentence,
                    "source": source, "evidence": evidence, "coverage": how,
                });
                writeln!(out, "{line}")?;
                continue;
            }
            let of = requirement.id.split('-').next().unwrap_or_default();
            if terminal && area != of {
                area = of;
                writeln!(out, "\n{}", paint.strong(area))?;
            }
            let (id, level) = (paint.name(requirement.id), requirement.level.name());
            writeln!(out, "{id:<14} {level:<7} {:<22} {}", how.word(), requirement.sentence)?;
        }
        Ok(())
    }

    fn profiles(&self, out: &mut impl Write) -> io::Result<()> {
        for (name, _) in statement::PROFILES {
            let profile = statement::profile(name)?;
            match self.format {
                Listing::Json => {
                    let line = json!({
                        "id": name, "summary": profile.summary, "provisional": profile.provisional,
                        "claims": profile.claims, "disclaims": profile.disclaims, "defaults": profile.defaults,
                        "rows": profile.rows,
                    });
                    writeln!(out, "{line}")?;
                }
                Listing::Text => {
                    let provisional = if profile.provisional { "provisional: " } else { "" };
                    let has = match profile.rows.len() {
                        0 => profile.claims.join(" "),
                        count => format!("{count} features"),
                    };
                    writeln!(out, "{name:<18} {provisional}{} ({has})", profile.summary)?;
                }
            }
        }
        Ok(())
    }
}

fn json_of(rule: &Rule, matrix: &[ProfileRow]) -> serde_json::Value {
    let requirements: Vec<&str> = rule.requirements.iter().map(|requirement| requirement.id).collect();
    let needs: Vec<String> = rule.needs.iter().map(ToString::to_string).collect();
    let points = |axis: &&dyn AnyAxis| (0..axis.count()).map(|index| axis.point(index)).collect::<Vec<_>>();
    let axes: serde_json::Map<_, _> =
        rule.axes.iter().map(|axis| (axis.name().to_owned(), points(axis).into())).collect();
    let rows = matrix.iter().filter(|row| row.is_shown_by(rule)).map(|row| row.id.as_str());
    json!({
        "id": rule.id, "group": rule.group(), "title": rule.title, "level": rule.level().map(|level| level.name()),
        "requirements": requirements, "matrix": rows.collect::<Vec<_>>(), "needs": needs, "axes": axes,
    })
}
