//! `uet interop`

use super::device::{Named, not_yet, quoted};
use super::run::{duration, factor};
use super::{Outcome, about, complain, signal};
use crate::near;
use crate::report::interop as report;
use crate::text::counted;
use crate::toml_error;
use clap::{Args, ValueEnum};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use uet_harness::interop::{
    Implementation, Interop as Played, InteropOptions, PairVerdict, Progress, Reach, is_scenario, operations,
    own_address, run,
};
use uet_packet_io::file;

/// Play implementations against each other on a bad network, and judge both ends
///
/// Each ordered pair plays scenarios: the first is the initiator, the second the target. This program stands between
/// them: it loses, repeats, reorders and marks packets. A scenario fails if an end breaks a requirement in its packets,
/// holds wrong bytes or dies; the result names that end. If neither is to blame and they do not agree, the result shows
/// what each end reports. docs/interop.md has the steps for a lab.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet interop --device a=embedded --device b=embedded
  uet interop --device a=embedded --device b=embedded --pair a:b --id write
  uet interop lab.toml --listen 10.0.0.9 --html grid.html --captures captures

Exit codes: 0 all scenarios pass; 1 one fails or the ends disagree; 2 usage, or an implementation cannot be reached.
3 means that nothing passed, a scenario is inconclusive, or a signal ended the run.")]
pub(super) struct Interop {
    /// Implementations, as TOML: a table `devices` of NAME = "DEVICE"
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// An implementation: NAME=HOST:PORT of its control channel, NAME=exec:COMMAND or NAME=embedded, a NIC of its own
    #[arg(long = "device", value_name = "NAME=DEVICE")]
    devices: Vec<Named>,
    /// Play only this initiator and target; may be given several times
    #[arg(long = "pair", value_name = "INITIATOR:TARGET", value_parser = pair)]
    pairs: Vec<(String, String)>,
    /// Play only scenarios whose ids begin so; may be given several times
    #[arg(long = "id", value_name = "ID")]
    ids: Vec<String>,
    /// Play all combinations of values, instead of all pairs of values
    #[arg(long)]
    full: bool,
    /// Address of this machine that both ends use as their peer; on loopback there is a default
    #[arg(long, value_name = "ADDRESS", value_parser = place)]
    listen: Option<SocketAddr>,
    /// Seed of the network
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Factor of the time that a scenario may take
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    timeout_scale: f64,
    /// Then play them again and again for this long with other seeds: 60s, 1h
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    soak: Option<Duration>,
    /// Write the packets of scenarios that do not pass into this folder
    #[arg(long, value_name = "DIRECTORY")]
    captures: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: InteropFormat,
    /// Write the result as JSON, for example as a baseline
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a web page with the grid of pairs
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// An earlier result as JSON: only scenarios that passed in it and do not pass now change the exit code
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum InteropFormat {
    /// Readable text
    Text,
    /// One JSON object
    Json,
    /// A table for a pull request
    Markdown,
}

/// Maximum number of implementations, each of which has the last byte of an address.
const MOST: usize = 90;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lab {
    devices: BTreeMap<String, String>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (initiator, target) = text.split_once(':').ok_or("expected INITIATOR:TARGET")?;
    Ok((initiator.into(), target.into()))
}

fn place(text: &str) -> Result<SocketAddr, String> {
    let alone = || text.parse::<IpAddr>().map(|address| SocketAddr::new(address, 0));
    text.parse().or_else(|_| alone()).map_err(|_| "expected an IP address with an optional port".into())
}

/// Writes a report, if it is wanted.
fn keep(path: &Option<PathBuf>, report: impl FnOnce(&Path) -> io::Result<String>) -> io::Result<()> {
    let Some(path) = path else { return Ok(()) };
    report(path).and_then(|text| file::replace(path, text)).map_err(|error| about(path, error))
}

impl Interop {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        if let Some(id) = self.ids.iter().find(|id| !is_scenario(id)) {
            return Err(io::Error::other(near::unknown("scenario", id, operations())));
        }
        let named = self.named()?;
        let implementations = implementations(&named)?;
        let baseline: Option<Played> = self.baseline.as_deref().map(read).transpose()?;
        if let Some(folder) = &self.captures {
            std::fs::create_dir_all(folder).map_err(|error| about(folder, error))?;
        }
        let options = InteropOptions {
            seed: self.seed,
            full: self.full,
            only: self.ids.clone(),
            pairs: self.pairs.clone(),
            listen: self.listen,
            scale: self.timeout_scale,
            soak: self.soak,
            captures: self.captures.clone(),
            command: self.command(&named),
            interrupt: signal::stopped()?,
        };
        let text = self.format == InteropFormat::Text;
        let mut out = io::stdout().lock();
        let mut failed = None;
        let result = run(&implementations, &options, |progress| {
            failed = failed.take().or_else(|| tell(&mut out, text, &progress).err());
        })?;
        failed.map_or(Ok(()), Err)?;
        if result.stopped {
            complain(stopped(&result));
        }
        match self.format {
            InteropFormat::Text => writeln!(out, "{}", report::counts(|verdict| result.count(verdict)))?,
            InteropFormat::Json => writeln!(out, "{}", serde_json::to_string_pretty(&result)?)?,
            InteropFormat::Markdown => write!(out, "{}", report::markdown(&result))?,
        }
        // Each is written even if another cannot be.
        let kept = keep(&self.json, |_| Ok(serde_json::to_string_pretty(&result)? + "\n"));
        let kept = kept.and(keep(&self.html, |path| Ok(report::page(&result, path))));
        kept.and(keep(&self.junit, |_| report::junit(&result)))?;
        Ok(match &baseline {
            None => Outcome::of(exit_code(|verdict| result.count(verdict), result.stopped)),
            Some(earlier) => compared(earlier, &result),
        })
    }

    /// Returns all implementations, by name and place.
    fn named(&self) -> io::Result<Vec<Named>> {
        let mut named = Vec::new();
        if let Some(path) = &self.file {
            let text = file::read_text(path, file::MAX_SETTINGS).map_err(|error| about(path, error))?;
            let lab: Lab = toml::from_str(&text).map_err(|error| about(path, toml_error::shown(&error)))?;
            for (name, place) in lab.devices {
                let device = format!("{name}={place}").parse::<Named>();
                named.push(device.map_err(|why| about(path, io::Error::other(format!("{name}: {why}"))))?);
            }
        }
        named.extend(self.devices.iter().cloned());
        let twice = named
            .iter()
            .enumerate()
            .find(|(at, one)| named[..*at].iter().any(|other| other.name == one.name));
        if let Some((_, one)) = twice {
            return Err(io::Error::other(format!("two implementations have the name {}", one.name)));
        }
        if named.len() < 2 {
            return Err(io::Error::other(
                "two implementations are needed: --device a=embedded --device b=exec:COMMAND",
            ));
        }
        if named.len() > MOST {
            return Err(io::Error::other(format!(
                "{} implementations; at most {MOST} can take part",
                named.len()
            )));
        }
        if let Some((one, other)) = self.pairs.iter().find(|(one, other)| {
            one == other || [one, other].iter().any(|name| !named.iter().any(|known| known.name == **name))
        }) {
            return Err(io::Error::other(format!("there is no pair {one}:{other}")));
        }
        Ok(named)
    }

    /// Returns the command that plays scenarios of these implementations again.
    fn command(&self, named: &[Named]) -> String {
        let mut command = "uet interop".to_owned();
        for one in named {
            command += &format!(" --device {}", quoted(&one.to_string()));
        }
        if let Some(listen) = self.listen {
            command += &format!(" --listen {listen}");
        }
        if self.timeout_scale != 1.0 {
            command += &format!(" --timeout-scale {}", self.timeout_scale);
        }
        command
    }
}

/// Returns how to reach each implementation. An embedded NIC runs in a process of its own, at an address of its own.
fn implementations(named: &[Named]) -> io::Result<Vec<Implementation>> {
    let program = std::env::current_exe()?;
    let mut all = Vec::new();
    for (place, one) in named.iter().enumerate() {
        let reach = match (one.command(), one.control()) {
            (Some(command), _) => Reach::Start(command.to_owned()),
            (None, Some(control)) => Reach::Connect(control.to_owned()),
            (None, None) => {
                let program = quoted(&program.display().to_string());
                let at = own_address(place as u8 + 1);
                Reach::Start(format!("exec {program} emulate --listen {at}:0 --control stdio"))
            }
        };
        all.push(Implementation { name: one.name.clone(), reach });
    }
    Ok(all)
}

fn tell(out: &mut impl Write, text: bool, progress: &Progress<'_>) -> io::Result<()> {
    match progress {
        Progress::Waiting(control) => {
            complain(not_yet(control));
            Ok(())
        }
        Progress::Pair(initiator, target, count) => {
            let line = format!("{initiator} to {target}, {}", counted(*count as u64, "scenario"));
            if text {
                writeln!(out, "{line}")?;
                out.flush()
            } else {
                complain(line);
                Ok(())
            }
        }
        Progress::Scenario(result) if text && result.verdict != PairVerdict::Pass => {
            write!(out, "{}", report::lines(result))?;
            out.flush()
        }
        Progress::Scenario(result) => {
            if text && io::stdout().is_terminal() {
                writeln!(out, "pass {}", result.id)?;
            }
            Ok(())
        }
    }
}

/// Returns a sentence about a run that a signal ended.
fn stopped(result: &Played) -> String {
    match result.ended_by_signal() {
        0 => "a signal ended the run before its last pair".to_owned(),
        1 => "a signal ended the run: 1 scenario of this pair was not played".to_owned(),
        count => format!("a signal ended the run: {count} scenarios of this pair were not played"),
    }
}

/// Returns the exit code for these numbers of verdicts. `stopped` is true if a signal ended the run.
fn exit_code(count: impl Fn(PairVerdict) -> usize, stopped: bool) -> u8 {
    match () {
        () if count(PairVerdict::Fail) + count(PairVerdict::Disagree) > 0 => 1,
        () if stopped || count(PairVerdict::Pass) == 0 || count(PairVerdict::Inconclusive) > 0 => 3,
        () => 0,
    }
}

fn read(path: &Path) -> io::Result<Played> {
    let text = file::read_text(path, file::MAX_BASELINE).map_err(|error| about(path, error))?;
    serde_json::from_str(&text).map_err(|error| about(path, error))
}

/// Names what is worse than before. The outcome is a violation if anything is.
fn compared(earlier: &Played, now: &Played) -> Outcome {
    let mut worse = 0;
    for pair in &now.pairs {
        let before =
            earlier.pairs.iter().find(|it| it.initiator == pair.initiator && it.target == pair.target);
        for one in &pair.scenarios {
            let was = before.and_then(|pair| pair.scenarios.iter().find(|it| it.id == one.id));
            let passed = was.is_some_and(|was| was.verdict == PairVerdict::Pass);
            if passed && one.verdict != PairVerdict::Pass && !one.stopped {
                worse += 1;
                complain(format_args!("worse than before: {} to {} {}", pair.initiator, pair.target, one.id));
            }
        }
    }
    match worse {
        0 if now.stopped => Outcome::of(3),
        0 => Outcome::Ok,
        _ => Outcome::Violation,
    }
}
