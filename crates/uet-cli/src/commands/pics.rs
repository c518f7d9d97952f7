//! `uet pics`, and the form that it prints.

use super::filter::capabilities;
use super::run::read_result;
use super::statement::escaped;
use super::{Outcome, about};
use crate::near;
use crate::toml_error;
use clap::Args;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use uet_conformance::pics::{PicsForm, Shown};
use uet_conformance::{Baseline, EarlierDevice, ProfileRow, RULES, coverage};
use uet_packet_io::file;
use uet_wire::catalogue;
use uet_wire::{Version, catalogue::Requirement};

/// Print the form of an implementation conformance statement (PICS)
///
/// A vendor fills in the form. `uet run --pics FORM` compares it with the device and prints it in the reports.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet pics > pics.toml                       an empty form
  uet pics --from result.json > pics.toml    with what a run of the suite has shown")]
pub(super) struct Pics {
    /// A result of `uet run --json`, which answers the form as far as it can
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

impl Pics {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        let result = self.from.as_deref().map(read_result).transpose()?;
        let mut out = BufWriter::new(io::stdout().lock());
        form(&mut out, result.as_ref())?;
        out.flush()?;
        Ok(Outcome::Ok)
    }
}

/// Writes the form. A result answers for the requirements that held; those that failed or were not tested stay open.
fn form(out: &mut impl Write, result: Option<&Baseline>) -> io::Result<()> {
    let device = result.and_then(Baseline::device);
    let told = |of: fn(&EarlierDevice) -> &String| device.map(of).cloned().unwrap_or_default();
    let specification = told(|device| &device.specification);
    let specification = match specification.is_empty() {
        true => Version::default().spec().name().to_owned(),
        false => specification,
    };
    writeln!(
        out,
        "# Implementation conformance statement (PICS). By public evidence: the catalogue is not the specification.\n\
         # Replace each \"?\" by \"yes\" (supported), \"no\" (not supported) or \"n/a\" (does not apply).\n\
         # SES-n, PDS-n and CMS-n are rows of the consortium's Transport Matrix, rev 0.8, that a line belongs to.\n\n\
         [implementation]\nvendor = \"\"\nproduct = {}\nversion = {}\nspecification = {}\n\
         contact = \"\"\ndate = \"\"\n\n[capabilities]",
        toml::Value::from(told(|device| &device.name)),
        toml::Value::from(told(|device| &device.version)),
        toml::Value::from(specification)
    )?;
    let rows = matrix()?;
    for name in capabilities() {
        let of = named(&rows, |row| row.claims.iter().any(|claim| claim == name));
        let comment = if of.is_empty() { String::new() } else { format!("  # {of}") };
        let claims = device.map(|device| device.capabilities.iter().any(|claim| claim == name));
        let answer = claims.map_or("?", |claims| if claims { "yes" } else { "no" });
        writeln!(out, "{name} = \"{answer}\"{comment}")?;
    }
    writeln!(out, "\n[requirements]")?;
    for requirement in catalogue::ALL {
        let Requirement { id, level, section, sentence, .. } = requirement;
        let checks = |rule: &String| {
            RULES.find(rule).is_some_and(|rule| rule.requirements.iter().any(|checked| checked.id == *id))
        };
        let of = named(&rows, |row| {
            row.requirements.iter().any(|shown| shown == id) || row.rules.iter().any(checks)
        });
        let of = if of.is_empty() { of } else { format!(", {of}") };
        let answer = match result.map(|result| result.shown(RULES, requirement)) {
            Some(Shown::Held) => "\"yes\"",
            Some(Shown::Failed) => "\"?\"  # failed in the run",
            Some(Shown::NotTested) | None => "\"?\"",
        };
        writeln!(out, "# {}, section {section}{of}: {sentence}\n{id} = {answer}", level.name())?;
    }
    let unseen =
        catalogue::ALL.iter().filter(|requirement| coverage::of(RULES, requirement).unseen.is_some());
    writeln!(out, "\n# No test from outside can see {} of these requirements.", unseen.count())
}

/// Returns the rows of the consortium's matrix that the profiles have.
pub(super) fn matrix() -> io::Result<Vec<ProfileRow>> {
    let mut rows = super::statement::profile("hpc")?.rows;
    rows.retain(|row| !row.id.is_empty());
    Ok(rows)
}

/// Returns the ids of the rows that `are` true of, such as `SES-6, SES-7`.
fn named(rows: &[ProfileRow], are: impl Fn(&ProfileRow) -> bool) -> String {
    let ids: Vec<&str> = rows.iter().filter(|row| are(row)).map(|row| row.id.as_str()).collect();
    ids.join(", ")
}

/// Reads a form from a file. Refuses unknown names, so that no answer is lost.
pub(super) fn read(path: &Path) -> io::Result<PicsForm> {
    parse(path, &file::read_text(path, file::MAX_SETTINGS).map_err(|error| about(path, error))?)
}

/// Parses the text of a form. An error names the path.
pub fn parse(path: &Path, text: &str) -> io::Result<PicsForm> {
    // The first parse names the place of an error; the second escapes its strings.
    let form: PicsForm = toml::from_str(text).map_err(|error| about(path, toml_error::shown(&error)))?;
    let known = capabilities();
    if let Some(name) = form.capabilities.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(about(path, near::unneeded(name, known.iter().copied())));
    }
    if let Some(id) = form.requirements.keys().find(|id| catalogue::find(id).is_none()) {
        let known = catalogue::ALL.iter().map(|requirement| requirement.id);
        return Err(about(path, near::unknown("requirement", id, known)));
    }
    escaped(path, text)
}
