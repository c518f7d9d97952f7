use crate::test::SOON;
use crate::{Case, CaseResult, Dut, DutExt, Outcome, RunResult, Stop, Test, Verdict, cases};
use core::time::Duration;
use uet_control::Reset;

/// What to run, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only cases of these groups; all when empty.
    pub groups: Vec<String>,
    /// Only cases whose id, or one of whose requirements, is among these; all when empty.
    pub ids: Vec<String>,
    /// What chance is made from.
    pub seed: u64,
    /// Stretches all expectations of time.
    pub timeout_scale: f64,
    /// How often each case runs.
    pub repeat: u32,
    /// Stop at the first failure.
    pub fail_fast: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            groups: Vec::new(),
            ids: Vec::new(),
            seed: 1,
            timeout_scale: 1.0,
            repeat: 1,
            fail_fast: false,
        }
    }
}

impl Options {
    /// Whether a case is among those that are wanted.
    pub fn selects(&self, case: &Case) -> bool {
        let group = self.groups.is_empty() || self.groups.iter().any(|group| group == case.group());
        let named = |id: &String| {
            id == case.id
                || case.requirements.iter().any(|requirement| requirement.id.eq_ignore_ascii_case(id))
        };
        group && (self.ids.is_empty() || self.ids.iter().any(named))
    }
}

/// Runs the suite; `each` is told of every case as it ends.
pub fn run(dut: &mut dyn Dut, options: &Options, mut each: impl FnMut(&CaseResult)) -> RunResult {
    let mut results = Vec::new();
    for case in cases::all().filter(|case| options.selects(case)) {
        let result = repeated(dut, case, options);
        each(&result);
        let failed = matches!(result.verdict, Verdict::Fail | Verdict::Flaky);
        results.push(result);
        if failed && options.fail_fast {
            break;
        }
    }
    let welcome = dut.welcome();
    RunResult {
        suite: env!("CARGO_PKG_VERSION").into(),
        device: format!("{} {}", welcome.name, welcome.version).trim().into(),
        seed: options.seed,
        cases: results,
    }
}

/// Runs a case as often as asked for. Passes and failures mixed are a flaky device; the first failure is what is told.
fn repeated(dut: &mut dyn Dut, case: &Case, options: &Options) -> CaseResult {
    let mut kept = run_case(dut, case, options.seed, options.timeout_scale);
    let (mut passes, mut failures) = (0, 0);
    for round in 1..=u64::from(options.repeat.max(1)) {
        match kept.verdict {
            Verdict::Pass => passes += 1,
            Verdict::Fail => failures += 1,
            _ => {}
        }
        if round == u64::from(options.repeat.max(1)) {
            break;
        }
        let next = run_case(dut, case, options.seed.wrapping_add(round), options.timeout_scale);
        let worse = |verdict| matches!(verdict, Verdict::Fail);
        if worse(next.verdict) || !worse(kept.verdict) {
            kept = next;
        }
    }
    if passes > 0 && failures > 0 {
        kept.verdict = Verdict::Flaky;
        kept.reason = format!("failed {failures} of {} times: {}", options.repeat, kept.reason);
    }
    kept
}

/// Runs one case, once.
pub fn run_case(dut: &mut dyn Dut, case: &Case, seed: u64, timeout_scale: f64) -> CaseResult {
    let blank = CaseResult {
        id: case.id.into(),
        group: case.group().into(),
        verdict: Verdict::Skipped,
        requirements: case.requirements.iter().map(|requirement| requirement.id.into()).collect(),
        reason: String::new(),
        at_packet: None,
        expected: None,
        seen: None,
        capture: None,
        rerun: format!("uet run --id {} --seed {seed}", case.id),
        duration_ns: 0,
        ladder: String::new(),
    };
    let lacking = case.needs.iter().find_map(|need| need.lacking(dut.welcome(), dut.facts()));
    if let Some(reason) = lacking {
        return CaseResult { reason, ..blank };
    }
    let begun = dut.now();
    if let Err(error) = dut.call(Reset {}) {
        return CaseResult { verdict: Verdict::Inconclusive, reason: error.to_string(), ..blank };
    }
    let (outcome, checks, ladder) = {
        let mut test = Test::new(dut, seed ^ hash(case.id), timeout_scale);
        let outcome = (case.run)(&mut test);
        (outcome, core::mem::take(&mut test.checks), core::mem::take(&mut test.ladder))
    };
    let broken: Vec<_> = checks.iter().filter(|check| !check.held).collect();
    let first = broken.first();
    let told = |what: Option<String>| what.unwrap_or_default();
    let why = told(
        first.map(|check| format!("{}: expected {}, seen {}", check.requirement, check.expected, check.seen)),
    );
    let (verdict, reason) = match outcome {
        Err(Stop::Silent) if !alive(dut, timeout_scale) => {
            (Verdict::Inconclusive, "the device answers nothing at all".into())
        }
        Err(Stop::Gone(reason)) if broken.is_empty() => (Verdict::Inconclusive, reason),
        _ if first.is_some() => (Verdict::Fail, why),
        Err(Stop::Skipped(reason)) => (Verdict::Skipped, reason),
        Err(Stop::Inconclusive(reason)) => (Verdict::Inconclusive, reason),
        Err(Stop::Failed | Stop::Silent | Stop::Gone(_)) => {
            (Verdict::Inconclusive, "stopped without a reason".into())
        }
        Ok(()) if checks.is_empty() => (Verdict::Inconclusive, "nothing was checked".into()),
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
        ladder: ladder.to_string(),
        ..blank
    }
}

/// Whether the device answers a plain first write: silence means something only from a device that does.
fn alive(dut: &mut dyn Dut, timeout_scale: f64) -> bool {
    let mut test = Test::new(dut, 0, timeout_scale);
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

/// Gives each case its own numbers, whatever else is run.
fn hash(id: &str) -> u64 {
    // FNV-1a: short, and the same for ever.
    id.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
