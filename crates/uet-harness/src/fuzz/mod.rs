//! A black-box fuzzer of endpoints. It plays valid conversations with invalid changes, and checks the device after
//! each.
//!
//! The checks need no reference. They detect a dead device (crash), a plain request without an answer (hang), contexts
//! that stay after all are closed (leak), and wrong memory contents (corruption).

mod change;
mod draw;
pub mod guard;
mod inside;
mod judge;
mod minimize;
mod outline;
#[cfg(target_os = "linux")]
mod outside;
mod packets;
mod play;
pub mod recorded;
mod words;

pub use inside::Inside;
#[cfg(target_os = "linux")]
pub use outside::{Outside, Way};
pub use words::in_words;

use core::fmt;
use core::net::IpAddr;
use core::time::Duration;
use draw::Inputs;
use fastrand::Rng;
use judge::Bench;
use minimize::Trials;
use outline::{joined, outline};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use uet_conformance::random::Sequence;
use uet_conformance::{Dut, Wire};

/// A device that can be brought back.
pub trait Target {
    /// Returns the device.
    fn dut(&mut self) -> &mut dyn Dut;

    /// Restarts the device. Returns `false` if it cannot be restarted from here.
    fn restart(&mut self) -> io::Result<bool>;

    /// Returns whether the clock of the device is that of the system.
    fn is_real_time(&self) -> bool {
        false
    }

    /// Sets how long the control channel of a restarted device may be silent, if the device has one.
    fn set_silence(&mut self, _silence: Duration) {}

    /// Returns how its process has ended, if that is known.
    fn ended(&mut self) -> Option<String> {
        None
    }
}

/// Settings of a run of the fuzzer.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Maximum number of cases.
    pub cases: u64,
    /// Maximum duration in wall-clock time. Minimizing a finding may take [`MINIMIZING`] more.
    pub time: Option<Duration>,
    /// Factor for all timeouts.
    pub timeout_scale: f64,
    /// Number of different findings after which the run stops.
    pub findings: usize,
    /// Recorded conversations, used beside generated ones.
    pub recorded: Vec<Sequence>,
    /// Setting this flag ends the run, also while it minimizes a finding.
    pub stop: Arc<AtomicBool>,
}

impl Options {
    /// Returns whether the run was asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Default for Options {
    /// Returns a thousand cases of seed 1 and one finding.
    fn default() -> Self {
        Options {
            seed: 1,
            cases: 1000,
            time: None,
            timeout_scale: 1.0,
            findings: 1,
            recorded: Vec::new(),
            stop: Arc::default(),
        }
    }
}

/// Kind of trouble with a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// The device is gone.
    Crash,
    /// The device no longer answers.
    Hang,
    /// Contexts stay after all are closed or after a reset.
    Leak,
    /// Memory contents are wrong, or a plain request fails.
    Corruption,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Trouble::Crash => "crash",
            Trouble::Hang => "hang",
            Trouble::Leak => "leak",
            Trouble::Corruption => "corruption",
        })
    }
}

/// A finding.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Kind of trouble.
    pub trouble: Trouble,
    /// Symptom.
    pub what: String,
    /// The seed of the run.
    pub seed: u64,
    /// The case after which it showed; 0 before the first one.
    pub case: u64,
    /// True if it showed again when the script was played to a reset or restarted device.
    pub reproduced: bool,
    /// The reason why the script may contain more than the finding needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_minimized: Option<String>,
    /// The script that reproduces it.
    pub script: Sequence,
    /// The packets of the conversation.
    #[serde(skip)]
    pub passed: Vec<PassedPacket>,
}

/// A packet between fuzzer and device.
#[derive(Clone, Debug)]
pub struct PassedPacket {
    /// Its time: since 1970, or since the start of a device in virtual time.
    pub at: Duration,
    /// The packet.
    pub wire: Wire,
    /// The changes of the fuzzer in it: `ses.message_offset 0 to 7`. Empty for a valid packet.
    pub change: String,
    /// The step of the script that sent it, counted from 0. `None` for a packet of the device, and for one that only
    /// checks the device.
    pub step: Option<usize>,
    /// True if the device sent it.
    pub from_device: bool,
}

impl PassedPacket {
    /// Returns the address of the device.
    pub fn device(&self) -> IpAddr {
        if self.from_device { self.wire.src } else { self.wire.dst }
    }
}

/// Result of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Number of cases played.
    pub cases: u64,
    /// Packets to the device and from it.
    pub packets: [u64; 2],
    /// Findings, each once.
    pub findings: Vec<Finding>,
    /// The finding that is being minimized.
    pub minimizing: Option<Minimizing>,
    /// Reason for an early end.
    pub stopped: Option<String>,
}

impl Outcome {
    /// Adds a finding unless it does the same as an earlier one.
    fn add(&mut self, finding: Finding) {
        let named = outline(&finding.script);
        let same = |known: &Finding| known.trouble == finding.trouble && outline(&known.script) == named;
        if !self.findings.iter().any(same) {
            self.findings.push(finding);
        }
    }
}

/// A finding that is being minimized.
#[derive(Debug)]
pub struct Minimizing {
    /// The finding before that.
    pub finding: Finding,
    /// Number of scripts tried so far.
    pub trials: usize,
}

/// Number of cases between two resets.
const EPOCH: usize = 8;

/// Number of cases remembered if the device cannot be reset.
const REMEMBERED: usize = 32;

/// Maximum time for minimizing a finding at the end of a run.
pub const MINIMIZING: Duration = Duration::from_secs(60);

/// Reason for findings that a signal has left as they were.
const ENDED: &str = "the run was ended";

/// Fuzzes a device. Calls `progress` after each case, before and after a finding is minimized, and after each trial of
/// that. Fails if it cannot begin.
pub fn run(
    target: &mut dyn Target,
    options: &Options,
    mut progress: impl FnMut(&Outcome),
) -> Result<Outcome, String> {
    let mut bench = Bench::begun(target, options.seed, options.timeout_scale)?;
    let end = options.time.and_then(|time| Instant::now().checked_add(time));
    let mut outcome = Outcome::default();
    let mut history: Vec<Sequence> = Vec::new();
    for case in 0..=options.cases {
        if end.is_some_and(|end| Instant::now() >= end) || options.is_stopped() {
            break;
        }
        let script = script(&bench, options, case);
        outcome.cases = case;
        history.push(script.clone());
        let is_last = case == 0 || history.len() % EPOCH == 0;
        let found = bench.case(&script, is_last);
        outcome.packets = bench.packets;
        if let Some((trouble, what)) = found {
            if options.is_stopped() {
                // A signal from the terminal has also ended a device started from it.
                break;
            }
            let script = joined(&history);
            let finding = Finding {
                trouble,
                what,
                seed: options.seed,
                case: outcome.cases,
                reproduced: false,
                // The run has ended if this one is read.
                not_minimized: Some(ENDED.into()),
                passed: bench.take_passed(script.steps.len()),
                script,
            };
            let trials = Trials {
                bench: &mut bench,
                options,
                until: end.map(|end| end.max(Instant::now() + MINIMIZING)),
                trouble,
                outcome: &mut outcome,
                progress: &mut progress,
                count: 0,
                passed: Vec::new(),
                what: None,
            };
            trials.minimize(finding, &history);
            history.clear();
            if outcome.findings.len() >= options.findings || options.is_stopped() {
                break;
            }
            if let Err((trouble, what)) = bench.revive() {
                outcome.stopped = Some(format!("the device is not itself again: {trouble}: {what}"));
                break;
            }
        } else if bench.is_fresh() {
            history.clear();
        } else if history.len() > REMEMBERED {
            history.remove(0);
        }
        progress(&outcome);
    }
    Ok(outcome)
}

/// Returns the conversation of a case. Case 0 has none: what it shows is due to the plain write that follows each case.
fn script(bench: &Bench<'_>, options: &Options, case: u64) -> Sequence {
    let Some(number) = case.checked_sub(1) else { return Sequence::default() };
    let mut rng = Rng::with_seed(options.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let inputs = Inputs { memory: bench.memory(), can: &bench.abilities(), recorded: &options.recorded };
    inputs.script(number, &mut rng)
}

/// Plays a script once to a reset device and returns the result.
pub fn again(
    target: &mut dyn Target,
    script: &Sequence,
    options: &Options,
) -> Result<Option<(Trouble, String)>, String> {
    let mut bench = Bench::begun(target, options.seed, options.timeout_scale)?;
    Ok(bench.case(script, true))
}
