//! `uet run`

use super::{Ending, about, faults};
use crate::dut::Embedded;
#[cfg(target_os = "linux")]
use crate::dut::Remote;
use crate::near;
use crate::paint::Paint;
use clap::{Args, ValueEnum};
use std::fs::File;
use std::io::{self, BufWriter, Write};
#[cfg(target_os = "linux")]
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use uet_conformance::{CaseResult, Dut, Options, RunResult, Verdict, cases, run};
use uet_emulator::Config;
use uet_emulator::capture::{Capture, Outer};
use uet_emulator::fabric::{Impairment, SyntaxError};
use uet_emulator::fault::Fault;

/// Run the conformance suite
///
/// Each case plays a peer of the device, and holds what the device does against the requirements of the catalogue. Without
/// --control the device is the NIC that is built in, in virtual time.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet run                              all cases
  uet run --group ack                  those of a group
  uet run --id ack/asked-for           one case; or all that check a requirement: --id PDS-ACK-004
  uet run --impair 'drop request 2'    on a network that loses
  uet run --fault forgets-ecn-echo     a NIC that is wrong: does the suite notice?
  uet run --control 127.0.0.1:9000     a device on UDP, by its control channel (docs/control-channel.md)
  uet run --format json | jq '.cases[].verdict'

Exit codes: 0 something passed and nothing failed, was flaky or stayed open; 1 a case failed or was flaky; 2 usage, or
the device cannot be reached; 3 nothing passed, or a case stayed open.")]
pub(super) struct Run {
    /// Only this case, or those that check this requirement
    #[arg(long, value_name = "ID")]
    id: Vec<String>,
    /// Only the cases of this group
    #[arg(long, value_name = "GROUP")]
    group: Vec<String>,
    /// What chance is made from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How often each case runs
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    repeat: u32,
    /// Stop at the first failure
    #[arg(long)]
    fail_fast: bool,
    /// Stretch all expectations of time
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    timeout_scale: f64,
    /// What is printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Write the packets of all cases, as pcapng
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Address and port of the control channel of the device
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "ADDRESS")]
    control: Option<SocketAddr>,
    /// The suite's own addresses: some cases need two
    #[cfg(target_os = "linux")]
    #[arg(
        long,
        value_name = "ADDRESS,...",
        value_delimiter = ',',
        requires = "control",
        default_value = "127.0.0.2,127.0.0.3"
    )]
    local: Vec<IpAddr>,
    /// What the network of the NIC that is built in does: 'drop 5%', 'drop request 3', 'delay 20us', 'mark ack every 4' ...
    #[arg(long, value_name = "EFFECT", value_parser = impairment)]
    impair: Vec<Impairment>,
    /// Make the NIC that is built in wrong in this way (`uet emulate --list-faults`); may be given several times
    #[arg(long, value_name = "NAME", value_parser = faults::named)]
    #[cfg_attr(target_os = "linux", arg(conflicts_with = "control"))]
    fault: Vec<&'static Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line per case, and what passed in those that failed
    Text,
    /// One JSON object
    Json,
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor| (0.001..=1e6).contains(factor));
    factor.ok_or_else(|| "a number from 0.001 to 1000000".to_owned())
}

fn impairment(text: &str) -> Result<Impairment, SyntaxError> {
    text.parse()
}

impl Run {
    pub(super) fn run(&self) -> io::Result<Ending> {
        let options = Options {
            groups: self.group.clone(),
            ids: self.id.clone(),
            seed: self.seed,
            timeout_scale: self.timeout_scale,
            repeat: self.repeat,
            fail_fast: self.fail_fast,
        };
        self.know()?;
        let capture = self.capture.as_deref().map(create).transpose()?;
        let mut device = self.device(capture)?;
        let mut failed = Ok(());
        let mut out = io::stdout().lock();
        let result = run(device.dut(), &options, |case| {
            if self.format == Format::Text && failed.is_ok() {
                failed = print(&mut out, case);
            }
        });
        failed?;
        match self.format {
            Format::Text => writeln!(out, "{}", Summary(&result))?,
            Format::Json => writeln!(out, "{}", serde_json::to_string(&result)?)?,
        }
        if let (Some(path), Some(capture)) = (&self.capture, device.end_capture()) {
            capture.finish().map_err(|error| about(path, error))?;
        }
        Ok(match result.exit_code() {
            0 => Ending::Well,
            1 => Ending::Bad,
            _ => Ending::Open,
        })
    }

    fn device(&self, capture: Option<Capture>) -> io::Result<Device> {
        #[cfg(target_os = "linux")]
        if let Some(control) = self.control {
            let mut remote = Remote::connect(control, &self.local)?;
            capture.into_iter().for_each(|capture| remote.capture(capture));
            return Ok(Device::Remote(Box::new(remote)));
        }
        let config = Config { seed: self.seed, ..Config::default() };
        let mut embedded = Embedded::with_faults(config, &self.fault).map_err(io::Error::other)?;
        let fabric = embedded.network().fabric();
        self.impair.iter().for_each(|impairment| fabric.impair(impairment.clone()));
        capture.into_iter().for_each(|capture| fabric.capture(capture));
        Ok(Device::Embedded(Box::new(embedded)))
    }

    /// Refuses groups and ids that there are not.
    fn know(&self) -> io::Result<()> {
        let mut groups: Vec<&str> = cases::all().map(|case| case.group()).collect();
        groups.dedup();
        let ids = cases::all().map(|case| case.id);
        let requirements = cases::all().flat_map(|case| case.requirements).map(|requirement| requirement.id);
        let ids: Vec<&str> = ids.chain(requirements).collect();
        for (what, given, known) in [("group", &self.group, groups), ("case or requirement", &self.id, ids)] {
            let strange =
                given.iter().find(|word| !known.iter().any(|known| known.eq_ignore_ascii_case(word)));
            if let Some(word) = strange {
                return Err(io::Error::other(near::unknown(what, word, known.iter().copied())));
            }
        }
        Ok(())
    }
}

/// What is tested.
enum Device {
    Embedded(Box<Embedded>),
    #[cfg(target_os = "linux")]
    Remote(Box<Remote>),
}

impl Device {
    fn dut(&mut self) -> &mut dyn Dut {
        match self {
            Device::Embedded(device) => &mut **device,
            #[cfg(target_os = "linux")]
            Device::Remote(device) => &mut **device,
        }
    }

    fn end_capture(&mut self) -> Option<Capture> {
        match self {
            Device::Embedded(device) => device.network().fabric().end_capture(),
            #[cfg(target_os = "linux")]
            Device::Remote(device) => device.end_capture(),
        }
    }
}

fn create(path: &Path) -> io::Result<Capture> {
    let file = File::create(path).map_err(|error| about(path, error))?;
    Capture::new(Box::new(BufWriter::new(file)), Outer::default()).map_err(|error| about(path, error))
}

fn print(out: &mut impl Write, case: &CaseResult) -> io::Result<()> {
    let paint = Paint::stdout();
    let verdict = word(case.verdict);
    match case.verdict {
        Verdict::Pass => writeln!(out, "{:<40} {}", case.id, paint.name(verdict)),
        Verdict::Skipped => writeln!(out, "{:<40} {}  {}", case.id, paint.faint(verdict), case.reason),
        _ => {
            writeln!(out, "{:<40} {}  {}", case.id, paint.error(verdict), case.reason)?;
            case.ladder.lines().try_for_each(|line| writeln!(out, "    {line}"))?;
            writeln!(out, "    again: {}", case.rerun)
        }
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "fail",
        Verdict::Flaky => "flaky",
        Verdict::Inconclusive => "inconclusive",
        Verdict::Skipped => "skipped",
    }
}

/// How many cases ended how.
struct Summary<'a>(&'a RunResult);

impl std::fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verdicts =
            [Verdict::Pass, Verdict::Fail, Verdict::Flaky, Verdict::Inconclusive, Verdict::Skipped];
        let counts = verdicts.map(|verdict| (self.0.count(verdict), word(verdict)));
        let told = counts.iter().filter(|(count, _)| *count > 0);
        let told: Vec<String> = told.map(|(count, word)| format!("{count} {word}")).collect();
        let told = if told.is_empty() { "nothing ran".to_owned() } else { told.join(", ") };
        write!(f, "{told} ({}, seed {})", self.0.device, self.0.seed)
    }
}
