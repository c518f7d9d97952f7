//! `uet explain`

use super::{Listing, Outcome};
use crate::explain::specification::Specification;
use crate::explain::{self, Item, Kind};
use crate::paint::Paint;
use clap::Args;
use std::io::{self, IsTerminal, Write};
use uet_conformance::{Expand, Instance, RULES, run_instance};
use uet_wire::Version;

/// Explain a field, a code point, a requirement, a rule of the suite, a parameter or an abbreviation
///
/// Without NAME, lists all names. A code point takes a registry or field, and its number or name.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet explain pds.clear_psn_offset   a field
  uet explain nack 0x0f              a code point, with what the sender does about it
  uet explain WIRE-SES-003           a requirement that a finding names
  uet explain window/above          a rule of the suite, with its timeline
  uet explain rto_init_time          a parameter of a device, with the rules that use it
  uet explain CACK_PSN               an abbreviation or term
  uet explain | grep -i psn          all names with their meaning")]
pub(super) struct Explain {
    /// Name to explain, or a registry and a code point
    #[arg(value_name = "NAME")]
    words: Vec<String>,
    /// Output format; an explanation as text takes several lines, the list takes one line per item
    #[arg(long, value_enum, default_value = "text")]
    format: Listing,
}

impl Explain {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        let stdout = io::stdout().lock();
        let terminal = stdout.is_terminal();
        let mut out = io::BufWriter::new(stdout);
        let found;
        let items = match self.words[..] {
            [] => explain::all(),
            _ => {
                found = self.found()?;
                &found[..]
            }
        };
        let all = self.words.is_empty();
        match self.format {
            Listing::Json => {
                for item in items {
                    match item.kind {
                        Kind::Rule if !all => serde_json::to_writer(&mut out, &self.specification(item)?)?,
                        _ => serde_json::to_writer(&mut out, item)?,
                    }
                    writeln!(out)?;
                }
            }
            Listing::Text if all => list(&mut out, items, terminal)?,
            Listing::Text => {
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        writeln!(out)?;
                    }
                    match item.kind {
                        Kind::Rule => self.specification(item)?.text(&mut out, Paint::stdout())?,
                        _ => show(&mut out, item, Paint::stdout())?,
                    }
                }
            }
        }
        out.flush()?;
        Ok(Outcome::Ok)
    }
}

impl Explain {
    /// Runs the instance that the words name, or the first one of this rule.
    fn specification(&self, item: &Item) -> io::Result<Specification> {
        let id = self.words.first().filter(|word| word.contains('[')).unwrap_or(&item.id);
        let instance = Instance::parse(RULES, id).map_err(io::Error::other)?;
        Ok(Specification::of(&instance, &mut Specification::nic()?))
    }

    /// Finds the items that the words name. A parameter gets the rules that use it, by a run against the built-in NIC.
    fn found(&self) -> io::Result<Vec<Item>> {
        let mut found = explain::explain(&self.words).map_err(io::Error::other)?;
        for item in found.iter_mut().filter(|item| item.kind == Kind::Parameter) {
            for (what, rules) in uses(&item.id)? {
                match self.format {
                    Listing::Text => item.details.push((what, first_of(&rules))),
                    Listing::Json => {
                        item.details.extend(rules.into_iter().map(|rule| (what, rule.to_owned())));
                    }
                }
            }
        }
        Ok(found)
    }
}

/// Returns the rules that read and that set this parameter. Runs all instances, because some values of an axis set what
/// others leave alone.
fn uses(parameter: &str) -> io::Result<[(&'static str, Vec<&'static str>); 2]> {
    let mut nic = Specification::nic()?;
    let (mut read, mut set) = (Vec::new(), Vec::new());
    for rule in RULES.iter() {
        let (mut reads, mut sets) = (false, false);
        for instance in rule.instances(Expand::Pairwise, |_| true) {
            let result = run_instance(&mut nic, &instance, Version::default().spec(), 1, 1.0);
            reads |= result.read.contains(parameter);
            sets |= result.set.contains(parameter);
        }
        read.extend(reads.then_some(rule.id));
        set.extend(sets.then_some(rule.id));
    }
    Ok([("read by", read), ("set by", set)])
}

/// Names these rules, or the first of many.
fn first_of(rules: &[&str]) -> String {
    const SHOWN: usize = 5;
    let names = rules[..rules.len().min(SHOWN)].join(", ");
    match rules.len() {
        0 => "no rule".into(),
        1..=SHOWN => names,
        all => format!("{all} rules: {names} and others (--format json names all)"),
    }
}

/// Writes the items in groups on a terminal, otherwise one per line.
fn list(out: &mut impl Write, items: &[Item], terminal: bool) -> io::Result<()> {
    let paint = Paint::stdout();
    let mut kind = None;
    for item in items {
        if terminal && kind != Some(item.kind) {
            kind = Some(item.kind);
            writeln!(out, "\n{}", paint.strong(item.kind.name()))?;
        }
        writeln!(out, "{:<34} {}", paint.name(&item.id), item.meaning)?;
    }
    Ok(())
}

fn show(out: &mut impl Write, item: &Item, paint: Paint) -> io::Result<()> {
    writeln!(out, "{}, {}", paint.strong(&item.id), item.kind.name())?;
    writeln!(out, "  {}", item.meaning)?;
    for (what, text) in &item.details {
        writeln!(out, "  {:<9} {text}", paint.faint(what))?;
    }
    Ok(())
}
