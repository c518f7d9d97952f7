//! A fuzzer of endpoints, from outside: conversations as endpoints have them, with something in them that is not as it
//! should be, and a look at the device after each.
//!
//! What it looks for needs no reference: a device that has gone (a crash), one that answers a plain request no more (a
//! hang), contexts that stay when all are closed (a leak), memory that is not what it has to be (corrupted state).

pub mod draw;
pub mod guard;
mod inside;
mod judge;
pub mod minimise;
#[cfg(target_os = "linux")]
mod outside;
pub mod packets;
pub mod play;
pub mod recorded;
pub mod script;

pub use inside::Inside;
#[cfg(target_os = "linux")]
pub use outside::{Outside, Way};

use core::fmt;
use core::time::Duration;
use draw::Source;
use fastrand::Rng;
use judge::Bench;
use minimise::minimise;
use script::Script;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use uet_conformance::{Dut, Wire};

/// A device that can be brought back.
pub trait Target {
    /// The way to it.
    fn dut(&mut self) -> &mut dyn Dut;

    /// Starts it anew. `false` when nobody here can.
    fn restart(&mut self) -> io::Result<bool>;

    /// How its process has ended, where that can be known and has happened.
    fn ended(&mut self) -> Option<String> {
        None
    }
}

/// What the fuzzer does and for how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// What chance is made from.
    pub seed: u64,
    /// How many cases.
    pub cases: u64,
    /// How long, by the clock on the wall.
    pub time: Option<Duration>,
    /// Stretches all waiting.
    pub timeout_scale: f64,
    /// After how many different findings it stops.
    pub findings: usize,
    /// Conversations that were recorded, to be used beside drawn ones.
    pub recorded: Vec<Script>,
    /// Set from elsewhere, it ends as when its time is up.
    pub stop: Arc<AtomicBool>,
}

impl Options {
    /// Whether somebody wants it to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Default for Options {
    /// A thousand cases of seed 1, one finding.
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

/// What is wrong with a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// It has gone.
    Crash,
    /// It answers no more.
    Hang,
    /// Contexts stay when all are closed, or when it is reset.
    Leak,
    /// Memory is not what it has to be, or a plain request fails.
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

/// Something that was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// What it is.
    pub trouble: Trouble,
    /// How it shows.
    pub what: String,
    /// The seed of the run.
    pub seed: u64,
    /// The case of the run after which it showed.
    pub case: u64,
    /// Whether it came again when the script was played to a device that was reset or started anew.
    pub reproduced: bool,
    /// What to do to see it.
    pub script: Script,
    /// What passed.
    #[serde(skip)]
    pub passed: Vec<(Duration, Wire)>,
}

/// What a run came to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Cases that were played.
    pub cases: u64,
    /// Packets to the device, and from it.
    pub packets: [u64; 2],
    /// What was found, each once.
    pub findings: Vec<Finding>,
    /// Why it ended early.
    pub stopped: Option<String>,
}

/// How many cases come between two resets.
const EPOCH: usize = 8;

/// How many cases are remembered where the device cannot be reset.
const REMEMBERED: usize = 32;

/// How often a script is tried while it is cut down.
const TRIES: usize = 300;

/// Fuzzes a device; `progress` is told after each case, and of each finding as soon as it is cut down. The error says why
/// it cannot even begin.
pub fn run(
    target: &mut dyn Target,
    options: &Options,
    mut progress: impl FnMut(&Outcome),
) -> Result<Outcome, String> {
    let mut bench = Bench::new(target, options.seed, options.timeout_scale);
    bench
        .begin()
        .map_err(|(trouble, what)| format!("the device is in no state to be tested: {trouble}: {what}"))?;
    let begun = Instant::now();
    let mut outcome = Outcome::default();
    let mut history: Vec<Script> = Vec::new();
    while outcome.cases < options.cases
        && options.time.is_none_or(|time| begun.elapsed() < time)
        && !options.is_stopped()
    {
        let mut rng = Rng::with_seed(options.seed ^ outcome.cases.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let source = Source { memory: bench.memory(), posts: bench.posts(), recorded: &options.recorded };
        let script = source.script(&mut rng);
        outcome.cases += 1;
        history.push(script.clone());
        let is_last = history.len() % EPOCH == 0;
        let found = bench.case(&script, is_last);
        outcome.packets = bench.packets;
        if let Some((trouble, what)) = found {
            if options.is_stopped() {
                // A signal from the terminal has ended a device that was started from it, too.
                break;
            }
            let found = Found { trouble, what, seed: options.seed, case: outcome.cases };
            let finding = reproduce(&mut bench, found, &history, options);
            let outline = finding.script.outline();
            let known = outcome
                .findings
                .iter()
                .any(|known| known.trouble == trouble && known.script.outline() == outline);
            if !known {
                outcome.findings.push(finding);
            }
            progress(&outcome);
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

/// Plays a script once to a device that is reset: what comes of it.
pub fn again(
    target: &mut dyn Target,
    script: &Script,
    options: &Options,
) -> Result<Option<(Trouble, String)>, String> {
    let mut bench = Bench::new(target, options.seed, options.timeout_scale);
    bench
        .begin()
        .map_err(|(trouble, what)| format!("the device is in no state to be tested: {trouble}: {what}"))?;
    Ok(bench.case(script, true))
}

struct Found {
    trouble: Trouble,
    what: String,
    seed: u64,
    case: u64,
}

/// Finds out what it takes: the last case, or as many before it as it needs, and of those as little as possible.
fn reproduce(bench: &mut Bench<'_>, found: Found, history: &[Script], options: &Options) -> Finding {
    let Found { trouble, what, seed, case } = found;
    let mut passed = bench.take_passed();
    // What is seen while it is to end may come of that.
    let shows = |bench: &mut Bench<'_>, script: &Script| {
        !options.is_stopped() && bench.tries(script) == Some(trouble) && !options.is_stopped()
    };
    let mut length = 1;
    let mut script = None;
    while script.is_none() && length < history.len() * 2 {
        let joined = Script::joined(history.iter().skip(history.len().saturating_sub(length)));
        if shows(bench, &joined) {
            script = Some(joined);
        }
        length *= 2;
    }
    let reproduced = script.is_some();
    let script = match script {
        Some(script) => {
            let small = minimise(script, TRIES, |script| shows(bench, script));
            // Once more, for the packets.
            if shows(bench, &small) {
                passed = bench.take_passed();
            }
            small
        }
        None => Script::joined(history),
    };
    Finding { trouble, what, seed, case, reproduced, script, passed }
}
