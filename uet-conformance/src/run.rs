use crate::statement::Stated;
use crate::test::SOON;
use crate::{
    Case, CaseResult, Check, DeviceStatement, Dut, DutExt, Outcome, Packets, RunResult, Shard, Statement,
    Stop, Test, Verdict,
};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::Arc;
use uet_control::{Reset, Welcome};
use uet_wire::catalogue::{self, Level, ROB_LIFE_001};
use uet_wire::{Spec, Version};

/// After this many `reset`s in a row without an answer, the device counts as gone.
const UNANSWERED: u32 = 2;

/// After this many cases in a row that a silent control channel or a flood of packets broke off, the run stops.
const BROKEN: u32 = 3;

/// How many steps of a case are kept when a flood of packets broke it off.
const KEPT: usize = 1000;

/// What to run, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only cases of these groups; all when empty.
    pub groups: Vec<String>,
    /// Only cases whose id, or one of whose requirements, is among these; all when empty.
    pub ids: Vec<String>,
    /// Only cases whose gravest requirement is of one of these levels; all when empty.
    pub levels: Vec<Level>,
    /// Only cases that need one of these capabilities; all when empty.
    pub capabilities: Vec<String>,
    /// A part of those.
    pub shard: Shard,
    /// What is known of the device, or wanted of it, beside what it says itself.
    pub statement: Statement,
    /// The version of the specification that the device is judged by.
    pub spec: &'static Spec,
    /// What chance is made from.
    pub seed: u64,
    /// Stretches all expectations of time.
    pub timeout_scale: f64,
    /// How often each case runs.
    pub repeat: u32,
    /// Stop at the first failure.
    pub fail_fast: bool,
    /// Once it is true no case begins. The one under way has no verdict: what stops the run may have stopped the device.
    pub stop: Arc<AtomicBool>,
    /// The command that reaches the same device; results say with it how to run a case again.
    pub command: String,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            groups: Vec::new(),
            ids: Vec::new(),
            levels: Vec::new(),
            capabilities: Vec::new(),
            shard: Shard::WHOLE,
            statement: Statement::default(),
            spec: Version::default().spec(),
            seed: 1,
            timeout_scale: 1.0,
            repeat: 1,
            fail_fast: false,
            stop: Arc::default(),
            command: "uet run".into(),
        }
    }
}

impl Options {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Runs the suite; `each` is told of every case as it ends. A device that has ended is started anew, where somebody can; the
/// run is stopped when it is gone for good.
pub fn run(dut: &mut dyn Dut, options: &Options, mut each: impl FnMut(&CaseResult)) -> RunResult {
    let statement = &options.statement;
    let welcome = statement.apply(dut.welcome());
    let mut result = begun(&welcome, options);
    let claimed = &dut.welcome().capabilities;
    result
        .statement
        .beyond
        .extend(welcome.capabilities.iter().filter(|claim| !claimed.contains(claim)).cloned());
    let mut dut = Stated::new(dut, welcome);
    let selected = options.selected();
    let mut broken = 0;
    for case in &selected {
        let (mut found, there) = repeated(&mut dut, case, options);
        let there = there.and_then(|()| match (dut.broken.take(), found.verdict) {
            (Some(why), Verdict::Inconclusive) => {
                broken += 1;
                found.ladder.cut(KEPT);
                if broken < BROKEN {
                    Ok(())
                } else {
                    Err(format!("{why}; so it was {BROKEN} cases in a row"))
                }
            }
            (_, Verdict::Skipped) => Ok(()),
            _ => {
                broken = 0;
                Ok(())
            }
        });
        if options.stopped() {
            break;
        }
        if !matches!(found.verdict, Verdict::Pass | Verdict::Skipped) {
            let by_requirement = || found.requirements.iter().map(|id| statement.waiver(id)).collect();
            let waiver = statement.waiver(case.id).map(|reason| vec![reason]);
            // All that did not hold must be accepted, not only some of it.
            let waiver: Option<Vec<&str>> = waiver.or_else(by_requirement);
            found.waived = waiver.and_then(|reasons| reasons.first().map(|reason| (*reason).to_owned()));
        }
        result.packets.judge(&found, options.spec);
        each(&found);
        let failed = found.verdict.is_failure() && found.counts();
        result.cases.push(found);
        result.stopped = there.err();
        if result.stopped.is_some() || failed && options.fail_fast {
            break;
        }
    }
    result.not_run = selected.len() - result.cases.len();
    for finding in &mut result.packets.findings {
        let waiver = finding.requirement.as_deref().and_then(|id| statement.waiver(id));
        finding.waived = waiver.map(Into::into);
    }
    result
}

fn begun(welcome: &Welcome, options: &Options) -> RunResult {
    let Statement { name, provisional, disclaims, waivers, .. } = options.statement.clone();
    RunResult {
        suite: env!("CARGO_PKG_VERSION").into(),
        catalogue: catalogue_hash(),
        specification: options.spec.name().into(),
        device: format!("{} {}", welcome.name, welcome.version).trim().into(),
        seed: options.seed,
        statement: DeviceStatement {
            device: welcome.clone(),
            of: name,
            provisional,
            beyond: Vec::new(),
            disclaims,
            waivers,
        },
        packets: Packets::default(),
        cases: Vec::new(),
        not_run: 0,
        stopped: None,
    }
}

/// A result of nothing, for tests.
#[cfg(test)]
pub(crate) fn blank_run() -> RunResult {
    let welcome =
        r#"{"protocol":1,"name":"nic","capabilities":[],"link":{"kind":"inside","addr":"10.0.0.1"}}"#;
    begun(&serde_json::from_str(welcome).unwrap(), &Options::default())
}

/// Runs a case as often as asked for. Passes and failures mixed are a flaky device; the first failure is what is told,
/// else the first time that it did not pass. The error says why no other case can be run.
fn repeated(dut: &mut Stated<'_>, case: &Case, options: &Options) -> (CaseResult, Result<(), String>) {
    let mut once = |round: u32| {
        let seed = options.seed.wrapping_add(round.into());
        let result = run_case(dut, case, options.spec, seed, options.timeout_scale);
        let rerun = format!("{} --id {} --seed {seed}", options.command, case.id);
        (CaseResult { rerun, ..result }, revive(dut))
    };
    let (mut kept, mut there) = once(0);
    let (mut passes, mut failures) = (0, 0);
    let mut count = |verdict| match verdict {
        Verdict::Pass => passes += 1,
        Verdict::Fail => failures += 1,
        _ => {}
    };
    count(kept.verdict);
    for round in 1..options.repeat {
        if there.is_err() || options.stopped() {
            break;
        }
        let (next, still) = once(round);
        there = still;
        count(next.verdict);
        let worse = match kept.verdict {
            Verdict::Fail => false,
            Verdict::Pass => next.verdict != Verdict::Pass,
            _ => next.verdict == Verdict::Fail,
        };
        if worse {
            kept = next;
        }
    }
    if passes > 0 && failures > 0 {
        kept.verdict = Verdict::Flaky;
        kept.reason = format!("failed {failures} of {} times: {}", options.repeat, kept.reason);
    }
    (kept, there)
}

/// Brings a device back that has ended, or no longer answers. The error says why there is none any more.
fn revive(dut: &mut Stated<'_>) -> Result<(), String> {
    let ended = dut.ended();
    let why = match &ended {
        Some(how) => format!("the device has ended: {how}"),
        None => format!("the device did not answer to reset, {UNANSWERED} times in a row"),
    };
    match dut.unanswered {
        0 if ended.is_none() => return Ok(()),
        UNANSWERED.. => return Err(why),
        _ => {}
    }
    match dut.restart() {
        Ok(true) => Ok(()),
        // One that runs may answer again.
        Ok(false) if ended.is_none() => Ok(()),
        Ok(false) => Err(why),
        Err(error) => Err(format!("{why}; it cannot be started again: {error}")),
    }
}

/// Runs one case, once.
pub fn run_case(
    dut: &mut dyn Dut,
    case: &Case,
    spec: &'static Spec,
    seed: u64,
    timeout_scale: f64,
) -> CaseResult {
    let blank = CaseResult::blank(case, format!("uet run --id {} --seed {seed}", case.id));
    let lacking = case.needs.iter().find_map(|need| need.lacking(dut.welcome(), dut.facts()));
    if let Some(reason) = lacking {
        return CaseResult { reason, ..blank };
    }
    let begun = dut.now();
    if let Err(error) = dut.call(Reset {}) {
        let ended = dut.ended().map(|how| format!("the device had ended before: {how}"));
        let reason = ended.unwrap_or_else(|| error.to_string());
        return CaseResult { verdict: Verdict::Inconclusive, reason, ..blank };
    }
    let (outcome, mut checks, ladder) = {
        let mut test = Test::new(dut, spec, seed ^ hash(case.id), timeout_scale);
        let outcome = (case.run)(&mut test);
        (outcome, core::mem::take(&mut test.checks), core::mem::take(&mut test.ladder))
    };
    let ended = dut.ended();
    if let Some(how) = &ended {
        // What else did not hold, a device that has gone does not do.
        checks = vec![Check {
            requirement: ROB_LIFE_001.id.into(),
            held: false,
            expected: "that the device goes on".into(),
            seen: format!("that it ended: {how}"),
            at_packet: ladder.packets().count(),
        }];
    }
    let checked = !checks.is_empty();
    let broken: Vec<_> = checks.into_iter().filter(|check| !check.held).collect();
    let first = broken.first();
    let told = |what: Option<String>| what.unwrap_or_default();
    let why = told(
        first.map(|check| format!("{}: expected {}, seen {}", check.requirement, check.expected, check.seen)),
    );
    let (verdict, reason) = match outcome {
        Err(Stop::Silent) if ended.is_none() && !alive(dut, spec, timeout_scale) => {
            (Verdict::Inconclusive, "the device answers nothing at all".into())
        }
        Err(Stop::Gone(reason)) if broken.is_empty() => (Verdict::Inconclusive, reason),
        _ if first.is_some() => (Verdict::Fail, why),
        Err(Stop::Skipped(reason)) => (Verdict::Skipped, reason),
        Err(Stop::Inconclusive(reason)) => (Verdict::Inconclusive, reason),
        Err(Stop::Failed | Stop::Silent | Stop::Gone(_)) => {
            (Verdict::Inconclusive, "stopped without a reason".into())
        }
        Ok(()) if !checked => (Verdict::Inconclusive, "nothing was checked".into()),
        Ok(()) => (Verdict::Pass, String::new()),
    };
    let failed = (verdict == Verdict::Fail).then_some(first).flatten();
    let mut requirements = blank.requirements.clone();
    if verdict == Verdict::Fail {
        requirements = broken.iter().map(|check| check.requirement.clone()).collect();
        requirements.dedup();
    }
    CaseResult {
        verdict,
        requirements,
        reason,
        at_packet: failed.map(|check| check.at_packet),
        expected: failed.map(|check| check.expected.clone()),
        seen: failed.map(|check| check.seen.clone()),
        duration_ns: (dut.now() - begun).as_nanos() as u64,
        broken,
        ladder,
        ..blank
    }
}

/// Whether the device answers a plain first write: silence means something only from a device that does.
fn alive(dut: &mut dyn Dut, spec: &'static Spec, timeout_scale: f64) -> bool {
    let mut test = Test::new(dut, spec, 0, timeout_scale);
    let mut knock = || -> Outcome {
        test.call(Reset {})?;
        let region = test.region(64)?;
        let pdc = test.initiate();
        test.send(&pdc, &pdc.request(0).write(&region, 0, &[1; 64])?.build()?)?;
        let soon: Duration = test.scaled(SOON);
        test.need("an answer to a plain write", soon, |seen| seen.is_for(&pdc).then_some(()))?;
        Ok(())
    };
    knock().is_ok()
}

/// Returns a warning if the device says that it implements another version than `spec`.
///
/// The verdicts then judge the device by rules that it does not claim to keep.
pub fn spec_mismatch(welcome: &Welcome, spec: &Spec) -> Option<String> {
    let claimed = &welcome.specification;
    (!claimed.is_empty() && claimed != spec.name()).then(|| {
        format!(
            "the device implements specification {claimed}, but it is judged by {spec}; choose another with --spec"
        )
    })
}

/// What the catalogue of requirements hashes to: whoever adds, changes or takes away one changes it.
pub fn catalogue_hash() -> String {
    let told = catalogue::ALL.iter().fold(hash(""), |before, known| {
        let text = format!("{} {} {} {}", known.id, known.level.name(), known.section, known.sentence);
        before.rotate_left(1) ^ hash(&text)
    });
    format!("{told:016x}")
}

/// Gives each case its own numbers, whatever else is run.
fn hash(id: &str) -> u64 {
    // FNV-1a: short, and the same for ever.
    id.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
