//! `uet fuzz`

use super::device::quoted;
use super::{Outcome, about, complain};
use crate::progress::Count;
use crate::text::counted;
use clap::{Args, ValueEnum};
use core::time::Duration;
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use uet_conformance::passive::Origin;
use uet_control::{escape, escape_json};
use uet_emulator::Config;
use uet_harness::fuzz::{self, Finding, Inside, Minimizing, Options, PassedPacket, Target, recorded};
use uet_packet_io::file;
use uet_wire::{Packet, Start};

#[cfg(target_os = "linux")]
use {
    super::device::{Place, patiently},
    uet_harness::fuzz::{Outside, Way},
};

/// Fuzz an endpoint: play invalid conversations and check the device after each
///
/// The fuzzer detects a device that has crashed, no longer answers, keeps closed contexts, or has corrupted memory. The
/// last two need a control channel. Each finding is saved as a capture and as a script that --again plays. Then it is
/// minimized, saved again and reported. An interrupt ends the run, and the report says what is not minimized.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet fuzz                                          the built-in NIC, in virtual time
  uet fuzz udp://127.0.0.1:4793 --seconds 600       a device on UDP
  uet fuzz udp://127.0.0.1:4793 --control 127.0.0.1:9000
  uet fuzz exec:'python3 nic.py'                    starts a device
  uet fuzz udp://10.0.0.1:4793 --local 10.0.0.2 --restart 'ssh nic reboot' --i-own-this-target
  uet fuzz exec:'python3 nic.py' --again findings/crash-1-63.json

Exit codes: 0 no finding, 1 a finding, 2 usage, or the device cannot be reached.")]
pub(super) struct Fuzz {
    /// Device: `udp://HOST:PORT`, `raw:INTERFACE` (the local interface to a device on Ethernet; needs --control),
    /// `exec:COMMAND` (control channel on its standard input and output), or `embedded`
    #[cfg(target_os = "linux")]
    #[arg(default_value = "embedded", value_name = "DEVICE")]
    target: Place,
    /// The control channel of the device: tcp://HOST:PORT, or HOST:PORT
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "ADDRESS")]
    control: Option<String>,
    /// Address of the fuzzer [default: 127.0.0.2 if the device is on loopback]
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "ADDRESS")]
    local: Option<IpAddr>,
    /// Shell command that restarts a crashed device
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "COMMAND")]
    restart: Option<String>,
    /// Permits packets that may crash the target. Without this option, only targets on loopback or in a private network
    /// namespace are accepted
    #[arg(long)]
    i_own_this_target: bool,
    /// Seed of all random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop after this many cases [default: 10000, or no limit with --seconds]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    cases: Option<u64>,
    /// Stop after this many seconds. Minimizing the last finding may take a minute more
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Stop after this many different findings
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    findings: usize,
    /// Use the conversations of this capture as well
    #[arg(long, value_name = "CAPTURE")]
    from: Option<PathBuf>,
    /// Directory for findings
    #[arg(long, value_name = "DIRECTORY", default_value = "findings")]
    keep: PathBuf,
    /// Play a saved finding once and report the result
    #[arg(long, value_name = "FILE")]
    again: Option<PathBuf>,
    /// Multiply all time limits by this factor
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = super::run::factor)]
    timeout_scale: f64,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: FuzzFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FuzzFormat {
    /// For people
    Text,
    /// One JSON object
    Json,
}

/// Default number of cases.
const CASES: u64 = 10_000;

impl Fuzz {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        let recorded = match &self.from {
            Some(path) => {
                let file = File::open(path).map_err(|error| about(path, error))?;
                let options = uet_wire::Options::DEFAULT;
                let recorded = recorded::conversations(file, &options).map_err(|error| about(path, error))?;
                if recorded.is_empty() {
                    let why = "the file contains no UET conversation with its first request, in the clear and \
                               on UDP port 4793; `uet decrypt` writes a capture in the clear";
                    return Err(about(path, why));
                }
                recorded
            }
            None => Vec::new(),
        };
        if self.again.is_none() {
            // A finding after an hour must not be lost because the directory cannot be written.
            try_out(&self.keep).map_err(|error| about(&self.keep, error))?;
        }
        #[cfg(target_os = "linux")]
        let mut target = reach(
            &self.target,
            self.control.as_ref(),
            self.local,
            self.restart.as_ref(),
            self.seed,
            self.i_own_this_target,
        )?;
        #[cfg(not(target_os = "linux"))]
        let mut target = reach(self.seed)?;
        let options = Options {
            seed: self.seed,
            cases: self.cases.unwrap_or(if self.seconds.is_some() { u64::MAX } else { CASES }),
            time: self.seconds.map(Duration::from_secs),
            timeout_scale: self.timeout_scale,
            findings: self.findings,
            recorded,
            stop: if self.again.is_none() { super::signal::stopped()? } else { Arc::default() },
        };
        match &self.again {
            Some(path) => self.again(&mut *target, path, &options),
            None => self.search(&mut *target, &options),
        }
    }

    fn search(&self, target: &mut dyn Target, options: &Options) -> io::Result<Outcome> {
        let begun = Instant::now();
        let bar = Count::new(options.cases, "cases");
        let (mut kept, mut printed, mut early) = (Vec::new(), Ok(()), None);
        let outcome = fuzz::run(target, options, |so_far| {
            for finding in so_far.findings.iter().skip(kept.len()) {
                early = None;
                let place = keep(&self.keep, finding);
                if self.format == FuzzFormat::Text {
                    let told = bar.aside(|| self.tell(finding, &place));
                    printed = core::mem::replace(&mut printed, Ok(())).and(told);
                }
                kept.push(place.map_err(complain).ok());
            }
            let doing = match &so_far.minimizing {
                Some(Minimizing { finding, trials: 0 }) => {
                    early = bar.aside(|| self.announce(finding));
                    String::new()
                }
                Some(Minimizing { trials, .. }) => format!(", minimizing (trial {trials})"),
                None => {
                    early.take().iter().for_each(|path: &PathBuf| bar.aside(|| discard(path)));
                    String::new()
                }
            };
            bar.at(so_far.cases, so_far.findings.len(), &doing);
        });
        bar.end();
        let outcome = outcome.map_err(io::Error::other)?;
        if let Some(why) = &outcome.stopped {
            complain(why);
        }
        match printed.and_then(|()| self.summary(&outcome, &kept, begun.elapsed())) {
            // The reader of the output has left; the findings stay.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
            _ => {}
        }
        Ok(if outcome.findings.is_empty() { Outcome::Ok } else { Outcome::Violation })
    }

    fn summary(&self, outcome: &fuzz::Outcome, kept: &[Option<PathBuf>], took: Duration) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let fuzz::Outcome { cases, packets: [sent, received], findings, .. } = outcome;
        if self.format == FuzzFormat::Json {
            let findings: Vec<_> = findings
                .iter()
                .zip(kept)
                .map(|(finding, path)| {
                    json!({"trouble": finding.trouble, "what": finding.what, "case": finding.case,
                    "reproduced": finding.reproduced, "not_minimized": finding.not_minimized,
                    "script": finding.script, "kept": path,
                    "again": path.as_deref().map(|path| self.command(finding, path)), "changed": changed(finding)})
                })
                .collect();
            let run = json!({"seed": self.seed, "cases": cases, "sent": sent, "received": received, "findings": findings});
            return writeln!(out, "{}", escape_json(&run.to_string()));
        }
        let found = match findings.len() {
            0 => "nothing found".to_owned(),
            count => counted(count as u64, "finding"),
        };
        let rate = *cases as f64 / took.as_secs_f64().max(1e-9);
        writeln!(
            out,
            "{found} in {cases} cases: {sent} packets sent, {received} received (seed {}, {rate:.0} cases/s)",
            self.seed
        )
    }

    /// Returns the command that plays a finding again.
    fn command(&self, finding: &Finding, saved: &Path) -> String {
        let mut words = "uet fuzz".to_owned();
        let mut add = |word: &str| words.extend([" ", &quoted(word)]);
        #[cfg(target_os = "linux")]
        {
            add(&self.target.to_string());
            self.control.iter().for_each(|control| add(&format!("--control={control}")));
            self.local.iter().for_each(|local| add(&format!("--local={local}")));
        }
        if self.i_own_this_target {
            add("--i-own-this-target");
        }
        if self.timeout_scale != 1.0 {
            add(&format!("--timeout-scale={}", self.timeout_scale));
        }
        add(&format!("--seed={}", finding.seed));
        add("--again");
        add(&saved.display().to_string());
        escape(&words).into_owned()
    }

    /// Saves a finding before it is minimized, and reports it on standard error.
    fn announce(&self, finding: &Finding) -> Option<PathBuf> {
        let kept = keep(&self.keep, finding);
        let place = match &kept {
            Ok(path) => format!("saved for now: {}", path.display()),
            Err(error) => format!("not saved: {error}"),
        };
        complain(format_args!("{}; minimizing; {place}", headline(finding)));
        kept.ok()
    }

    /// Reports a finding. Prints it in full if it could not be saved.
    fn tell(&self, finding: &Finding, kept: &io::Result<PathBuf>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{}", headline(finding))?;
        let changed = changed(finding);
        // Without a changed packet, the operations themselves cause it.
        let steps = if changed.is_empty() { steps(finding) } else { Vec::new() };
        for line in changed.iter().chain(&steps) {
            writeln!(out, "    {line}")?;
        }
        if let Some(why) = &finding.not_minimized {
            writeln!(out, "    not minimized: {why}")?;
        }
        match kept {
            Ok(path) => {
                writeln!(out, "    again: {}", self.command(finding, path))?;
                let capture = path.with_extension("pcapng");
                writeln!(out, "    saved: {}", escape(&path.display().to_string()))?;
                writeln!(out, "    capture: {}", escape(&capture.display().to_string()))?;
            }
            Err(_) => writeln!(out, "    not saved: {}", serde_json::to_string(finding)?)?,
        }
        out.flush()
    }

    fn again(&self, target: &mut dyn Target, path: &Path, options: &Options) -> io::Result<Outcome> {
        let no_finding = |error: &dyn Display| {
            let beside = path.with_extension("json");
            let why = if beside != path && beside.is_file() {
                format!("use the file beside it, {}", beside.display())
            } else {
                format!("{error}; expected a file such as findings/crash-1-63.json, as `uet fuzz` saves it")
            };
            about(path, format_args!("this is no saved finding (JSON): {why}"))
        };
        let text = file::read_text(path, file::MAX_SCRIPT).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => no_finding(&error),
            _ => about(path, error),
        })?;
        let finding: Finding = serde_json::from_str(&text).map_err(|error| no_finding(&error))?;
        // The seed also decides about the contents of memory.
        let options = Options { seed: finding.seed, ..options.clone() };
        let came = fuzz::again(target, &finding.script, &options).map_err(io::Error::other)?;
        match came {
            Some((trouble, what)) => {
                println!("{trouble}: {what}");
                Ok(Outcome::Violation)
            }
            None => {
                println!("the finding was not reproduced");
                Ok(Outcome::Ok)
            }
        }
    }
}

/// Connects to a device, if it may be fuzzed.
#[cfg(target_os = "linux")]
pub(super) fn reach(
    place: &Place,
    control: Option<&String>,
    local: Option<IpAddr>,
    restart: Option<&String>,
    seed: u64,
    owned: bool,
) -> io::Result<Box<dyn Target>> {
    let way = match place {
        Place::Embedded => None,
        Place::Exec(command) => Some(Way::Program(command.clone())),
        Place::At(at) => {
            Some(Way::Running { at: at.clone(), control: control.cloned(), restart: restart.cloned() })
        }
    };
    let is_running = matches!(way, Some(Way::Running { .. }));
    if !is_running && (control.is_some() || restart.is_some()) {
        let message = "the argument DEVICE is missing: --control and --restart need the address of a running device, such as udp://HOST:PORT";
        return Err(io::Error::other(message));
    }
    let Some(way) = way else { return inside(seed) };
    let outside = || Outside::reach(way.clone(), local.into_iter().collect(), owned);
    Ok(Box::new(match control {
        Some(control) => patiently(control, outside)?,
        None => outside()?,
    }))
}

/// Only the embedded NIC is available.
#[cfg(not(target_os = "linux"))]
pub(super) fn reach(seed: u64) -> io::Result<Box<dyn Target>> {
    inside(seed)
}

fn inside(seed: u64) -> io::Result<Box<dyn Target>> {
    let config = Config { seed, ..Config::default() };
    Ok(Box::new(Inside::new(config).map_err(io::Error::other)?))
}

/// Returns the first line about a finding.
fn headline(finding: &Finding) -> String {
    let Finding { trouble, what, case, .. } = finding;
    match case {
        0 => format!("{trouble} before the first case: {what}"),
        _ => format!("{trouble} after case {case}: {what}"),
    }
}

/// Maximum number of packets or steps of a finding to print.
const SHOWN: usize = 8;

/// Returns a line for each changed packet of a finding: its number in the capture, its summary, and what is changed.
fn changed(finding: &Finding) -> Vec<String> {
    let changed = finding.passed.iter().zip(1u64..).filter(|(packet, _)| !packet.change.is_empty());
    let mut lines: Vec<String> = changed
        .clone()
        .take(SHOWN)
        .map(|(packet, number)| {
            let parsed = Packet::parse_lax(Start::Uet, &packet.wire.bytes, &uet_wire::Options::DEFAULT).0;
            format!("packet {number}: {parsed}; changed: {}", packet.change)
        })
        .collect();
    match changed.count().saturating_sub(SHOWN) {
        0 => {}
        more => lines.push(format!("{} changed", counted(more as u64, "more packet"))),
    }
    lines
}

/// Returns the numbers of the packets that a step sent, in the capture. Empty if it sent none.
fn sent(finding: &Finding, step: usize) -> String {
    let numbered = finding.passed.iter().zip(1u64..);
    let mut numbers = numbered.filter(|(packet, _)| packet.step == Some(step)).map(|(_, number)| number);
    match (numbers.next(), numbers.last()) {
        (Some(only), None) => format!(" (packet {only})"),
        (Some(first), Some(last)) => format!(" (packets {first} to {last})"),
        (None, _) => String::new(),
    }
}

/// Returns a line for each step of a finding, with its packets in the capture.
fn steps(finding: &Finding) -> Vec<String> {
    let steps = &finding.script.steps;
    if steps.is_empty() {
        return vec!["no step is needed: the plain write that checks the device shows it".into()];
    }
    let shown = steps.iter().enumerate().take(SHOWN);
    let mut lines: Vec<String> = shown
        .map(|(index, step)| format!("step {}{}: {}", index + 1, sent(finding, index), fuzz::in_words(step)))
        .collect();
    match steps.len().saturating_sub(SHOWN) {
        0 => {}
        more => lines.push(format!("{} in the script", counted(more as u64, "more step"))),
    }
    lines
}

/// Checks that files can be written there. Removes a directory that it had to create.
fn try_out(directory: &Path) -> io::Result<()> {
    let is_new = |directory: &&Path| !directory.as_os_str().is_empty() && !directory.exists();
    let new: Vec<&Path> = directory.ancestors().take_while(is_new).collect();
    let file = directory.join(format!(".{}", std::process::id()));
    let tried = std::fs::create_dir_all(directory)
        .and_then(|()| File::create(&file))
        .and_then(|_| std::fs::remove_file(&file));
    new.iter().for_each(|directory| _ = std::fs::remove_dir(directory));
    tried
}

/// Removes a finding that was saved before it was minimized, and then proved to be one of the others.
fn discard(path: &Path) {
    complain(format_args!("removed, because it is the same as an earlier finding: {}", path.display()));
    for path in [path.to_owned(), path.with_extension("pcapng")] {
        let _ = std::fs::remove_file(path);
    }
}

/// Returns the comment of a packet in the capture: what the fuzzer changed in it. Empty for a valid packet.
fn comment(packet: &PassedPacket) -> String {
    match packet.change.as_str() {
        "" => String::new(),
        change => format!("changed: {change}"),
    }
}

/// Writes the script for `--again` and a capture. The capture names the device, so that `uet check` does not blame the
/// fuzzer for its own packets.
fn keep(directory: &Path, finding: &Finding) -> io::Result<PathBuf> {
    std::fs::create_dir_all(directory).map_err(|error| about(directory, error))?;
    let name = format!("{}-{}-{}", finding.trouble, finding.seed, finding.case);
    let path = directory.join(format!("{name}.json"));
    let text = serde_json::to_string_pretty(finding)? + "\n";
    file::replace(&path, text).map_err(|error| about(&path, error))?;
    let capture = directory.join(format!("{name}.pcapng"));
    let comments: Vec<String> = finding.passed.iter().map(comment).collect();
    let packets = finding.passed.iter().zip(&comments);
    let packets = packets.map(|(packet, comment)| (packet.at, &packet.wire, comment.as_str()));
    let device: BTreeSet<IpAddr> = finding.passed.iter().map(PassedPacket::device).collect();
    let origin = Origin { instance: None, device: device.into_iter().collect() };
    uet_harness::capture::write(&capture, packets, &origin).map_err(|error| about(&capture, error))?;
    Ok(path)
}
