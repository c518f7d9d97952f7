//! `uet switch`

use super::{Listing, Outcome, about, complain, output, signal};
use crate::near;
use crate::paint::Paint;
use crate::report::switch as report;
use crate::toml_error;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use uet_conformance::Verdict;
use uet_harness::switch::{
    EmbeddedSwitch, Network, RULES, Statement, SwitchFault, SwitchOptions, SwitchResult, learn, run,
};
use uet_packet_io::file;

/// Test the network between endpoints: a switch, or many
///
/// The suite owns ports of the network. It sends UET packets at some, congests others, and judges what leaves: bytes,
/// TTL, ECN marks, trimmed packets, order and paths. A file states the configuration of the network. Without one, it
/// tests the built-in switch. docs/switch.md shows a test of a real switch step by step.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet switch
  uet switch --fault cuts-one-byte-more --id trim
  uet switch --csv measurements.csv --junit switch.xml
  uet switch --network raw ports.toml --learn > statement.toml
  uet switch --network raw statement.toml

Exit codes: 0 a rule passes and none fails; 1 a rule fails; 2 usage, or a port cannot be used; 3 nothing
passed, or a rule is inconclusive.")]
pub(super) struct Switch {
    /// The configuration of the network, in TOML [default: that of the built-in switch]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The network under test [default: raw with a file, else embedded]
    #[arg(long, value_enum)]
    network: Option<NetworkKind>,
    /// Measure what can be measured, and print a draft of the file
    #[arg(long, conflicts_with_all = ["ids", "csv", "junit"])]
    learn: bool,
    /// Run the built-in switch between these interfaces, one for each port of the file, until a signal ends it
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "INTERFACE", num_args = 2.., requires = "file", conflicts_with = "learn")]
    emulate: Vec<String>,
    /// A deliberate fault of the built-in switch (see --list-faults)
    #[arg(long, value_name = "NAME", value_parser = fault)]
    fault: Option<SwitchFault>,
    /// List the deliberate faults and exit
    #[arg(long, conflicts_with = "list")]
    list_faults: bool,
    /// List the rules and exit
    #[arg(long)]
    list: bool,
    /// Run only rules whose ids begin so; may be given several times
    #[arg(long = "id", value_name = "ID")]
    ids: Vec<String>,
    /// Seed of entropy values
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Factor of the silence after which a real network is thought to be empty
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    timeout_scale: f64,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: SwitchFormat,
    /// Write the measurements as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NetworkKind {
    /// The built-in switch, in virtual time
    Embedded,
    /// The interfaces that the file names
    Raw,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SwitchFormat {
    /// Readable text
    Text,
    /// One JSON object; a list as one object per line
    Json,
    /// A table for a pull request
    Markdown,
}

fn fault(name: &str) -> Result<SwitchFault, String> {
    let names = || SwitchFault::ALL.iter().map(|fault| fault.name());
    SwitchFault::find(name).ok_or_else(|| near::unknown("fault", name, names()))
}

fn read(path: &Path) -> io::Result<Statement> {
    let text = file::read_text(path, file::MAX_SETTINGS).map_err(|error| about(path, error))?;
    let statement: Statement =
        toml::from_str(&text).map_err(|error| about(path, toml_error::shown(&error)))?;
    statement.check().map_err(|error| about(path, error))?;
    Ok(statement)
}

impl Switch {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        if self.list_faults || self.list {
            return self.print_list();
        }
        let statement = self.file.as_deref().map_or_else(|| Ok(Statement::embedded()), read)?;
        let unknown = self.ids.iter().find(|id| !RULES.iter().any(|rule| rule.id.starts_with(id.as_str())));
        if let Some(id) = unknown {
            return Err(io::Error::other(near::unknown("rule", id, RULES.iter().map(|rule| rule.id))));
        }
        let interrupt = signal::RunSignals::listen()?.stop;
        #[cfg(target_os = "linux")]
        if !self.emulate.is_empty() {
            return self.emulate(&statement, &interrupt);
        }
        let kind = self.network.unwrap_or(if self.file.is_some() {
            NetworkKind::Raw
        } else {
            NetworkKind::Embedded
        });
        if self.fault.is_some() && kind == NetworkKind::Raw {
            return Err(io::Error::other("--fault is for the built-in switch: add --network embedded"));
        }
        let mut network = self.open(kind, &statement)?;
        let options = SwitchOptions { seed: self.seed, only: self.ids.clone(), interrupt };
        if self.learn {
            return self.draft(&mut *network, &statement, &options);
        }
        for path in [&self.csv, &self.junit].into_iter().flatten() {
            output::can_be_written(path)?;
        }
        let mut out = output::WhileRead::new(io::stdout().lock());
        let paint = Paint::stdout();
        let result = run(&mut *network, &statement, &options, |rule| {
            if self.format == SwitchFormat::Text {
                // The run goes on without output; `end` reports a failed write.
                let _ = report::line(&mut out, rule, paint).and_then(|()| out.flush());
            }
        })?;
        match self.format {
            SwitchFormat::Text => write!(out, "{}", report::summary(&result))?,
            SwitchFormat::Json => writeln!(out, "{}", serde_json::to_string_pretty(&result)?)?,
            SwitchFormat::Markdown => write!(out, "{}", report::markdown(&result))?,
        }
        out.end()?;
        let mut unwritten = output::Unwritten::default();
        if let Some(path) = &self.csv {
            unwritten.note(path, file::replace(path, report::csv(&result)));
        }
        if let Some(path) = &self.junit {
            unwritten.note(path, report::junit(&result).and_then(|text| file::replace(path, text)));
        }
        Ok(unwritten.or(Outcome::of(exit_code(&result))))
    }

    fn open(&self, kind: NetworkKind, statement: &Statement) -> io::Result<Box<dyn Network>> {
        if kind == NetworkKind::Embedded {
            return Ok(Box::new(EmbeddedSwitch::new(statement.clone(), self.fault, self.seed)));
        }
        if self.file.is_none() {
            return Err(io::Error::other(
                "--network raw needs a file that names the interfaces; docs/switch.md shows one",
            ));
        }
        #[cfg(target_os = "linux")]
        return Ok(Box::new(uet_harness::switch::Wires::open(statement, self.timeout_scale)?));
        #[cfg(not(target_os = "linux"))]
        Err(io::Error::other("interfaces work on Linux only; other systems have the built-in switch"))
    }

    #[cfg(target_os = "linux")]
    fn emulate(&self, statement: &Statement, stop: &std::sync::atomic::AtomicBool) -> io::Result<Outcome> {
        let (ports, interfaces) = (statement.ports.len(), self.emulate.len());
        if ports != interfaces {
            return Err(io::Error::other(format!(
                "the file has {ports} ports, and --emulate {interfaces} interfaces"
            )));
        }
        let ready = || {
            let mut out = io::stdout();
            writeln!(out, "{}", json!({"ready": self.emulate}))?;
            out.flush()
        };
        uet_harness::switch::emulate(statement, &self.emulate, self.fault, self.seed, stop, ready)?;
        Ok(Outcome::Ok)
    }

    fn draft(
        &self,
        network: &mut dyn Network,
        statement: &Statement,
        options: &SwitchOptions,
    ) -> io::Result<Outcome> {
        let (learned, unknown) = learn(network, statement, options)?;
        for what in &unknown {
            complain(format_args!("not measured: {what}"));
        }
        let mut out = io::stdout().lock();
        writeln!(out, "# A draft by `uet switch --learn`: compare it with the configuration.")?;
        write!(out, "{}", learned.to_toml())?;
        Ok(Outcome::Ok)
    }

    fn print_list(&self) -> io::Result<Outcome> {
        let rows: Vec<(&str, &str, Vec<&str>)> = if self.list_faults {
            SwitchFault::ALL.iter().map(|it| (it.name(), it.what(), vec![it.requirement().id])).collect()
        } else {
            let ids =
                |rule: &uet_harness::switch::SwitchRule| rule.requirements.iter().map(|it| it.id).collect();
            RULES.iter().map(|rule| (rule.id, rule.title, ids(rule))).collect()
        };
        let listing = if self.format == SwitchFormat::Json { Listing::Json } else { Listing::Text };
        let mut out = io::stdout().lock();
        for (name, what, requirements) in rows {
            match listing {
                Listing::Json => {
                    writeln!(
                        out,
                        "{}",
                        json!({"name": name, "sentence": what, "requirements": requirements})
                    )?;
                }
                Listing::Text => writeln!(out, "{name}\t{what}\t{}", requirements.join(" "))?,
            }
        }
        Ok(Outcome::Ok)
    }
}

fn exit_code(result: &SwitchResult) -> u8 {
    match () {
        () if result.count(Verdict::Fail) > 0 => 1,
        () if result.count(Verdict::Pass) == 0 || result.count(Verdict::Inconclusive) > 0 => 3,
        () => 0,
    }
}
