//! `uet run`

mod conversations;
mod devices;
mod pause;

use super::device::{Device, DeviceArgs, Named};
use super::filter::Filter;
use super::output::{CaptureFile, Unwritten, WhileRead, can_be_written, can_have_files};
use super::signal::RunSignals;
use super::statement::StatementArgs;
use super::{Outcome, about, complain, known};
use crate::paint::Paint;
use crate::progress::Rules;
use crate::report;
use clap::{Args, ValueEnum};
pub(super) use conversations::duration;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use uet_conformance::passive::Origin;
use uet_conformance::pics::Pics;
use uet_conformance::{
    Baseline, Changes, Instance, InstanceResult, Options, RULES, RuleResult, RunResult, Shard, Verdict, run,
    spec_mismatch,
};
use uet_control::{PROTOCOL, escape_json};
use uet_emulator::capture::Capture;
use uet_emulator::frame::Outer;
use uet_harness::capture;
use uet_packet_io::file;

/// Run the conformance suite
///
/// Each rule acts as a peer of the device and checks its behavior against the requirements of the catalogue. Without
/// --dut and --control, the device is the built-in NIC, in virtual time.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  uet run                              all rules
  uet run --group ack                  the rules of a group
  uet run --id ack/requested           one rule; --id PDS-ACK-004: all that check it
  uet run --level must --shard 2/8     the second of eight parts of the must rules
  uet run --impair 'drop request 2'    on a network with losses
  uet run --family 6                   over IPv6 alone
  uet run --fault forgets-ecn-echo     with a deliberate fault, which the suite should detect
  uet run --dut exec:'python3 nic.py'  starts a device (docs/adapter.md)
  uet run --control 127.0.0.1:9000     a running device, by its control channel
  uet run --capture failures/ --html report.html --junit report.xml
  uet run --random 60s --seed 7        random conversations for a minute (docs/random.md)
  uet run --baseline before.json       fail only on results that are worse than before
  uet run --brief --fault ignores-ar   what failed, grouped by probable cause
  uet run --failed before.json         only what did not pass before
  uet run --device a=embedded --device b='exec:python3 nic.py'
  uet run --format json | jq '.rules[].verdict'

SIGINT and SIGTERM end the run after the current instance. A second signal skips the rest of this instance, and a third
ends the program at once. The reports list what ran.

Exit codes (waived failures and those of the --baseline file do not count):
  0  at least one rule passed, and none failed, was flaky or inconclusive
  1  a rule failed or was flaky, or a packet of the device breaks a must (section \"every packet\" of the report)
  2  usage, the device cannot be reached, or a report or capture cannot be written
  3  nothing passed, a rule is inconclusive, or the run was stopped")]
pub(super) struct Run {
    #[command(flatten)]
    filter: Filter,
    /// Run a part of the selected rules: 2/8 is the second of eight
    #[arg(long, value_name = "N/COUNT", default_value_t, help_heading = "Which rules")]
    shard: Shard,
    /// Only the instances that did not pass in an earlier run (--json)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["id", "random"], help_heading = "Which rules")]
    failed: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArgs,
    /// One of several devices, each with its own run: NAME=HOST:PORT of its control channel, NAME=exec:COMMAND or
    /// NAME=embedded. --json, --html and the output get a table of all verdicts
    #[arg(long = "device", value_name = "NAME=DEVICE", help_heading = "Which device")]
    #[arg(conflicts_with_all = ["baseline", "junit", "random", "again"])]
    devices: Vec<Named>,
    #[command(flatten)]
    statement: StatementArgs,
    /// The filled-in form of `uet pics`, which is compared with the results and reported
    #[arg(long, value_name = "FILE", help_heading = "Which device", conflicts_with_all = ["random", "again"])]
    pics: Option<PathBuf>,
    /// Changes of the catalogue: requirements with a changed level or text, or withdrawn (TOML, docs/testing.md)
    #[arg(long, value_name = "FILE", help_heading = "How the rules run")]
    catalogue: Option<PathBuf>,
    /// Seed of all random numbers, and of the choice of instances
    #[arg(long, default_value_t = 1, help_heading = "How the rules run")]
    seed: u64,
    /// Run each instance this many times
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), help_heading = "How the rules run")]
    repeat: u32,
    /// Maximum number of attempts of an instance that does not pass while the host or --impair loses packets. While the
    /// host is only busy, four suffice
    #[arg(long, value_name = "COUNT", default_value_t = 10, help_heading = "How the rules run")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    attempts: u32,
    /// Maximum number of instances, at least one per rule [default: all on the built-in NIC, 1000 on other
    /// devices]
    #[arg(long, value_name = "COUNT", value_parser = at_least_one, help_heading = "How the rules run")]
    max_instances: Option<usize>,
    /// Stop at the first failing instance; with waivers, after its rule
    #[arg(long, help_heading = "How the rules run")]
    fail_fast: bool,
    /// Wait for Enter before this rule or instance, for example to attach a debugger; needs a terminal
    #[arg(long, value_name = "ID", conflicts_with_all = ["random", "again"], help_heading = "How the rules run")]
    pause: Vec<String>,
    /// Play random conversations for this long instead of the rules: 10s, 5m (docs/random.md)
    #[arg(long, value_name = "DURATION", value_parser = duration, help_heading = "Random conversations")]
    #[arg(conflicts_with_all = ["id", "group", "level", "capability", "shard"])]
    random: Option<Duration>,
    /// Play this saved conversation once instead of the rules
    #[arg(long, value_name = "FILE", conflicts_with = "random", help_heading = "Random conversations")]
    again: Option<PathBuf>,
    /// Directory for conversations that fail
    #[arg(long, value_name = "DIRECTORY", default_value = "findings", help_heading = "Random conversations")]
    keep: PathBuf,
    /// Multiply all time limits by this factor
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor, help_heading = "How the rules run")]
    timeout_scale: f64,
    /// Output format
    #[arg(long, value_enum, default_value = "text", help_heading = "Results")]
    format: RunFormat,
    /// Print only skipped rules by reason, groups, causes of failures and counts, as text
    #[arg(long, help_heading = "Results")]
    brief: bool,
    /// Fail only on results that are worse than in this earlier run (--json)
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    baseline: Option<PathBuf>,
    /// Write packets as pcapng. A directory gets a file for each instance that does not pass; a file *.pcapng gets all
    /// packets
    #[arg(long, value_name = "PATH", help_heading = "Results")]
    capture: Option<PathBuf>,
    /// Write the trace of each failing instance as text into a directory
    #[arg(long, value_name = "DIRECTORY", help_heading = "Results")]
    traces: Option<PathBuf>,
    /// Write the result as JSON
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    json: Option<PathBuf>,
    /// Write the result as JUnit XML, for CI
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    junit: Option<PathBuf>,
    /// Write the result as one web page
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    html: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RunFormat {
    /// One line per rule, and the packets of failures
    Text,
    /// One JSON object
    Json,
}

pub(super) fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor| (0.001..=1e6).contains(factor));
    factor.ok_or_else(|| "expected a number from 0.001 to 1000000".to_owned())
}

fn at_least_one(text: &str) -> Result<usize, String> {
    let count = text.parse::<usize>().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "expected a whole number from 1".to_owned())
}

impl Run {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        // Report unreadable files before anything runs.
        let baseline = self.baseline.as_deref().map(read_baseline).transpose()?;
        // Report unwritable files before a long run.
        for path in [&self.json, &self.junit, &self.html].into_iter().flatten() {
            can_be_written(path)?;
        }
        let failures = self.capture.as_ref().filter(|path| !is_file(path));
        for directory in [failures, self.traces.as_ref()].into_iter().flatten() {
            can_have_files(directory)?;
        }
        if self.brief && self.format == RunFormat::Json {
            complain("warning: --brief shortens text and does nothing with --format json");
        }
        let Some(options) = self.options()? else { return Ok(Outcome::Ok) };
        if !self.devices.is_empty() {
            return self.on_each_device();
        }
        let mut out = WhileRead::new(io::stdout().lock());
        let mut unwritten = Unwritten::default();
        let result = self.on_device(options, baseline.as_ref(), None, &mut out, &mut unwritten)?;
        out.end()?;
        Ok(unwritten.or(Outcome::of(result.exit_code())))
    }

    /// Runs on the selected device, prints the result and writes the reports. `signals` are those of a run that has
    /// begun before.
    fn on_device(
        &self,
        mut options: Options,
        baseline: Option<&Baseline>,
        signals: Option<RunSignals>,
        out: &mut impl Write,
        unwritten: &mut Unwritten,
    ) -> io::Result<RunResult> {
        let form = self.pics.as_deref().map(super::pics::read).transpose()?;
        let mut device = self.device.open(self.seed)?;
        if let Some(warning) = spec_mismatch(device.dut().welcome(), options.spec) {
            complain(warning);
        }
        let protocol = device.dut().welcome().protocol;
        if protocol != PROTOCOL {
            complain(format!(
                "the device speaks protocol {protocol} of the control channel, the suite {PROTOCOL}"
            ));
        }
        known::parameters(&options.statement.apply(device.dut().welcome()).parameters)?;
        if let Some(path) = self.capture.as_deref().filter(|path| is_file(path)) {
            let facts = device.dut().facts();
            let addresses = [Some(facts.device), facts.second_device];
            let origin = Origin { instance: None, device: addresses.into_iter().flatten().collect() };
            device.capture(whole_capture(path, device.outer(), &origin)?);
        }
        // Set only now: there are no results of a device that cannot be reached.
        let signals = signals.map_or_else(RunSignals::listen, Ok)?;
        options.stop = signals.stop;
        device.set_interrupt(signals.skip);
        let mut result = match self.again.is_some() || self.random.is_some() {
            true => self.conversations(&mut device, &options, out, unwritten)?,
            false => self.rules(&mut device, &options, out, unwritten)?,
        };
        let claimed = &device.dut().welcome().capabilities;
        let shown = |requirement: &_| result.shown(options.rules, requirement);
        result.circumstances.pics = form.map(|form| Pics::new(&form, claimed, shown));
        let changes = baseline.map(|baseline| baseline.compare(&mut result));
        self.print(out, &result, changes.as_ref())?;
        if let (Some(path), Some(capture)) = (&self.capture, device.end_capture()) {
            unwritten.note(path, capture.finish());
        }
        self.report(&result, unwritten);
        Ok(result)
    }

    /// Returns the options of the suite; `None` if --failed names a result without failures.
    fn options(&self) -> io::Result<Option<Options>> {
        let mut command = format!("uet run{}", self.device.words());
        if self.timeout_scale != 1.0 {
            command += &format!(" --timeout-scale {}", self.timeout_scale);
        }
        command += &self.statement.words();
        if let Some(path) = &self.catalogue {
            command += &format!(" --catalogue {}", super::device::quoted(&path.display().to_string()));
        }
        let mut options = Options {
            shard: self.shard,
            statement: self.statement.read()?,
            corrections: self
                .catalogue
                .as_deref()
                .map(super::corrections::read)
                .transpose()?
                .unwrap_or_default(),
            spec: self.device.spec,
            seed: self.seed,
            timeout_scale: self.timeout_scale,
            repeat: self.repeat,
            attempts: self.attempts,
            max_instances: self.max_instances,
            fail_fast: self.fail_fast,
            command,
            ..self.filter.options()?
        };
        if let Some(path) = &self.failed {
            options.ids = failed_before(path, self.seed)?;
            if options.ids.is_empty() {
                complain(format_args!(
                    "{}: nothing failed, so there is nothing to run again",
                    path.display()
                ));
                return Ok(None);
            }
        }
        match options.selected()[..] {
            [] => Err(io::Error::other("no rule matches the filters; `uet list` shows all rules")),
            _ => Ok(Some(options)),
        }
    }

    /// Runs the rules. Text output gets a line for each rule as it ends, and details of those that do not pass: of
    /// several with probably one cause, the first has them all.
    fn rules(
        &self,
        device: &mut Device,
        options: &Options,
        out: &mut impl Write,
        unwritten: &mut Unwritten,
    ) -> io::Result<RunResult> {
        let paint = Paint::stdout();
        let mut failed = Ok(());
        let mut first_of: BTreeMap<report::causes::Name, String> = BTreeMap::new();
        let mut progress = Rules::new(options.selected().iter().map(|rule| rule.id).collect());
        let options = &Options { before: pause::before(&self.pause, &progress)?, ..options.clone() };
        let result = run(device.dut(), options, |rule| {
            self.keep(rule, unwritten);
            if self.format == RunFormat::Text && !self.brief && failed.is_ok() {
                failed = progress.aside(|| {
                    let mut text = Vec::new();
                    report::text::line(&mut text, rule, paint)?;
                    if !matches!(rule.verdict, Verdict::Pass | Verdict::Skipped) {
                        let cause = report::causes::Name::of_rule(rule);
                        match cause.as_ref().and_then(|cause| first_of.get(cause)) {
                            Some(first) => report::text::repeated_failure(&mut text, rule, first)?,
                            None => report::text::failure(&mut text, rule, options.spec, paint)?,
                        }
                        cause.map(|cause| first_of.entry(cause).or_insert_with(|| rule.id.clone()));
                        writeln!(text)?;
                    }
                    out.write_all(&text)?;
                    out.flush()
                });
            }
            progress.ended(rule);
        });
        progress.end();
        failed?;
        Ok(result)
    }

    /// Writes captures and traces of the failing instances, if requested.
    fn keep(&self, rule: &mut RuleResult, unwritten: &mut Unwritten) {
        type Write = fn(&Path, &InstanceResult) -> io::Result<PathBuf>;
        let mut write = |directory: &Path, found: &InstanceResult, write: Write| {
            let path = unwritten.note(directory, write(directory, found));
            path.map(|path| path.display().to_string())
        };
        for found in &mut rule.failing {
            if let Some(directory) = self.capture.as_deref().filter(|path| !is_file(path)) {
                found.capture = write(directory, found, capture::write_instance);
            }
            if let Some(directory) = &self.traces {
                found.trace = write(directory, found, capture::write_trace);
            }
        }
    }

    fn print(&self, out: &mut impl Write, result: &RunResult, changes: Option<&Changes>) -> io::Result<()> {
        match self.format {
            RunFormat::Text => report::text::summary(out, result, changes, Paint::stdout()),
            RunFormat::Json => writeln!(out, "{}", escape_json(&serde_json::to_string(result)?)),
        }
    }

    /// Writes each report, whether or not the others can be written.
    fn report(&self, result: &RunResult, unwritten: &mut Unwritten) {
        let mut write = |path: &Option<PathBuf>, text: &dyn Fn(&Path) -> io::Result<String>| {
            if let Some(path) = path {
                unwritten.note(path, text(path).and_then(|text| file::replace(path, text)));
            }
        };
        write(&self.json, &|_| report::json::lines(result));
        write(&self.junit, &|_| report::junit::xml(result));
        write(&self.html, &|place| Ok(report::html::page(result, place)));
    }
}

/// Returns whether all packets go into this one file instead of one file per failure.
fn is_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "pcapng") && !path.is_dir()
}

fn whole_capture(path: &Path, outer: Outer, origin: &Origin) -> io::Result<Capture> {
    let file = CaptureFile::create(path)?.buffered();
    Capture::commented(file, outer, &origin.comment()).map_err(|error| about(path, error))
}

/// Returns the ids in an earlier result of what did not pass. Warns about those that the suite no longer has.
fn failed_before(path: &Path, seed: u64) -> io::Result<Vec<String>> {
    let earlier = read_result(path)?;
    if let Some(before) = earlier.seed().filter(|before| *before != seed) {
        let path = path.display();
        complain(format_args!(
            "warning: {path} is of seed {before}, this run of {seed}; add --seed {before}"
        ));
    }
    let (known, gone): (Vec<String>, Vec<String>) =
        earlier.failed().into_iter().partition(|id| match id.contains('[') {
            true => Instance::parse(RULES, id).is_ok(),
            false => RULES.find(id).is_some(),
        });
    gone.iter().for_each(|id| complain(format_args!("warning: the suite no longer has {id}")));
    match (known.is_empty(), gone.is_empty()) {
        (true, false) => Err(about(path, "the suite no longer has any of its failed rules")),
        _ => Ok(known),
    }
}

/// Reads the result to compare with. A stopped run accepts every failure of the rules that it did not play.
fn read_baseline(path: &Path) -> io::Result<Baseline> {
    let baseline = read_result(path)?;
    if baseline.not_run() > 0 {
        let (path, rules) = (path.display(), baseline.not_run());
        complain(format_args!(
            "warning: {path}: the run was stopped with {rules} rules not run; their failures do not count"
        ));
    }
    Ok(baseline)
}

/// Reads a result of `uet run --json`.
pub(super) fn read_result(path: &Path) -> io::Result<Baseline> {
    let text = file::read_text(path, file::MAX_BASELINE).map_err(|error| about(path, error))?;
    serde_json::from_str(&text)
        .map_err(|error| about(path, format!("the file is not a result of `uet run --json`: {error}")))
}
