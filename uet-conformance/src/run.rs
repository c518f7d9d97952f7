use crate::statement::Stated;
use crate::test::SOON;
use crate::{
    DeviceStatement, Dut, DutExt, Expand, Instance, InstanceResult, Observation, Outcome, Packets, Relation,
    Rule, RuleResult, RunResult, Shard, Statement, Stop, Test, Verdict, axis,
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

/// The maximum number of instances on a device in real time, unless [`Options::max_instances`] says otherwise.
pub const EXTERNAL_INSTANCES: usize = 1000;

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
    /// How many combinations of axis values run.
    pub expand: Expand,
    /// The maximum number of instances, one of each rule at least; `None` for all in virtual time, and for
    /// [`EXTERNAL_INSTANCES`] otherwise.
    pub max_instances: Option<usize>,
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
            expand: Expand::default(),
            max_instances: None,
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

/// Runs the suite and calls `each` after every rule.
///
/// A device that has ended is started anew if that is possible. The run stops when the device is gone for good.
pub fn run(dut: &mut dyn Dut, options: &Options, mut each: impl FnMut(&mut RuleResult)) -> RunResult {
    let statement = &options.statement;
    let welcome = statement.apply(dut.welcome());
    let mut result = begun(&welcome, options);
    let claimed = &dut.welcome().capabilities;
    result
        .statement
        .beyond
        .extend(welcome.capabilities.iter().filter(|claim| !claimed.contains(claim)).cloned());
    let mut dut = Stated::new(dut, welcome);
    let plan = plan(&dut, options);
    let mut broken = 0;
    for (rule, instances) in &plan {
        let mut found = RuleResult::blank(rule);
        let mut fared: Vec<(Instance, bool)> = Vec::new();
        let mut there = Ok(());
        for instance in instances {
            let (mut one, still) = repeated(&mut dut, instance, options);
            there = still.and_then(|()| match (dut.broken.take(), one.verdict) {
                (Some(why), Verdict::Inconclusive) => {
                    broken += 1;
                    one.ladder.cut(KEPT);
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
            result.packets.judge(&one, options.spec);
            if one.verdict != Verdict::Skipped {
                fared.push((instance.clone(), one.verdict.is_failure()));
            }
            found.add(one);
            if there.is_err() {
                break;
            }
        }
        if options.stopped() {
            break;
        }
        let pattern = axis::pattern(&fared);
        if !pattern.is_empty() {
            found.reason = format!("{pattern}: {}", found.reason);
        }
        if !matches!(found.verdict, Verdict::Pass | Verdict::Skipped) {
            found.waived = waiver(statement, &found);
        }
        each(&mut found);
        let failed = found.verdict.is_failure() && found.counts();
        result.cases.push(found);
        result.stopped = there.err();
        if result.stopped.is_some() || failed && options.fail_fast {
            break;
        }
    }
    result.not_run = plan.len() - result.cases.len();
    for finding in &mut result.packets.findings {
        let waiver = finding.requirement.as_deref().and_then(|id| statement.waiver(id));
        finding.waived = waiver.map(Into::into);
    }
    result
}

/// The rules and their instances, in the order in which they run.
fn plan(dut: &dyn Dut, options: &Options) -> Vec<(&'static Rule, Vec<Instance>)> {
    let usable =
        |needs: &[crate::Need]| needs.iter().all(|need| need.lacking(dut.welcome(), dut.facts()).is_none());
    let mut plan: Vec<(&'static Rule, Vec<Instance>)> = Vec::new();
    for rule in options.selected() {
        let mut instances = options.instances(rule, usable);
        // Those that cannot run say why, once for each value.
        instances.extend(
            Instance::unusable(rule, usable).filter(|_| !options.ids.iter().any(|id| id.contains('['))),
        );
        plan.push((rule, instances));
    }
    let limit = options.max_instances.or((!dut.facts().virtual_time).then_some(EXTERNAL_INSTANCES));
    let total: usize = plan.iter().map(|(_, instances)| instances.len()).sum();
    if let Some(limit) = limit.filter(|limit| total > *limit) {
        let mut rng = fastrand::Rng::with_seed(options.seed);
        let further = |(_, instances): &(&Rule, Vec<Instance>)| instances.len().saturating_sub(1);
        let mut places: Vec<(usize, usize)> = plan
            .iter()
            .enumerate()
            .flat_map(|(rule, entry)| (1..=further(entry)).map(move |instance| (rule, instance)))
            .collect();
        rng.shuffle(&mut places);
        let kept: std::collections::HashSet<_> =
            places.into_iter().take(limit.saturating_sub(plan.len())).collect();
        for (rule, (_, instances)) in plan.iter_mut().enumerate() {
            let mut place = 0;
            instances.retain(|_| {
                place += 1;
                place == 1 || kept.contains(&(rule, place - 1))
            });
        }
    }
    plan
}

/// The reason why a failure is accepted: its rule is waived, or each broken requirement.
fn waiver(statement: &Statement, found: &RuleResult) -> Option<String> {
    let by_requirement = || found.requirements.iter().map(|id| statement.waiver(id)).collect();
    let of_rule = statement.waiver(&found.id).map(|reason| vec![reason]);
    // Everything that is broken must be accepted, not only a part of it.
    let reasons: Option<Vec<&str>> = of_rule.or_else(by_requirement);
    reasons.and_then(|reasons| reasons.first().map(|reason| (*reason).to_owned()))
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

/// Runs an instance as often as asked for. Passes and failures mixed are a flaky device. The result is that of the first
/// failure, or else of the first round without a pass. The error says why nothing else can run.
fn repeated(
    dut: &mut Stated<'_>,
    instance: &Instance,
    options: &Options,
) -> (InstanceResult, Result<(), String>) {
    let mut once = |round: u32| {
        let seed = options.seed.wrapping_add(round.into());
        let result = run_instance(dut, instance, options.spec, seed, options.timeout_scale);
        let rerun = format!("{} --id {} --seed {seed}", options.command, quoted(instance));
        (InstanceResult { rerun, ..result }, revive(dut))
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

/// The id, so that a shell takes it as one word.
fn quoted(instance: &Instance) -> String {
    if instance.rule.axes.is_empty() { instance.to_string() } else { format!("'{instance}'") }
}

/// Runs one instance, once.
pub fn run_instance(
    dut: &mut dyn Dut,
    instance: &Instance,
    spec: &'static Spec,
    seed: u64,
    timeout_scale: f64,
) -> InstanceResult {
    let blank = InstanceResult::blank(instance, format!("uet run --id {} --seed {seed}", quoted(instance)));
    let lacking = instance.needs().find_map(|need| need.lacking(dut.welcome(), dut.facts()));
    if let Some(reason) = lacking {
        return InstanceResult { reason, ..blank };
    }
    let begun = dut.now();
    if let Err(error) = dut.call(Reset {}) {
        let ended = dut.ended().map(|how| format!("the device had ended before: {how}"));
        let reason = ended.unwrap_or_else(|| error.to_string());
        return InstanceResult { verdict: Verdict::Inconclusive, reason, ..blank };
    }
    let (outcome, mut observations, ladder) = {
        let id = instance.to_string();
        let mut test = Test::new(dut, spec, seed ^ hash(&id), timeout_scale).at(instance);
        let outcome = (instance.rule.run)(&mut test);
        (outcome, core::mem::take(&mut test.observations), core::mem::take(&mut test.ladder))
    };
    let ended = dut.ended();
    if let Some(how) = &ended {
        // A device that has gone breaks everything else too.
        observations = vec![Observation {
            requirement: ROB_LIFE_001.id.into(),
            what: "the device goes on".into(),
            relation: Relation::True,
            expected: String::new(),
            seen: format!("it ended: {how}"),
            tolerance: None,
            from: None,
            packet: ladder.packets().count(),
            held: false,
        }];
    }
    let checked = !observations.is_empty();
    let mut recorded: Vec<String> = Vec::new();
    for seen in &observations {
        if !recorded.contains(&seen.requirement) {
            recorded.push(seen.requirement.clone());
        }
    }
    let broken: Vec<_> = observations.into_iter().filter(|seen| !seen.held).collect();
    let first = broken.first();
    let why = first.map(|it| format!("{}: expected {}, seen {}", it.requirement, it.expectation(), it.seen));
    let why = why.unwrap_or_default();
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
        requirements = broken.iter().map(|seen| seen.requirement.clone()).collect();
        requirements.dedup();
    }
    InstanceResult {
        verdict,
        requirements,
        reason,
        at_packet: failed.map(|seen| seen.packet),
        duration_ns: (dut.now() - begun).as_nanos() as u64,
        recorded,
        observations: broken,
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
