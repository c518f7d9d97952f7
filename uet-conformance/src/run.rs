use crate::plan::{Planned, limit, plan, share};
use crate::silence;
use crate::statement::StatedDevice;
use crate::test::Record;
use crate::{
    Circumstances, DeviceStatement, Dut, DutExt, EarlyEnd, Instance, InstanceResult, Liveness, Options,
    Outcome, Packets, Pdc, ProfileResult, RuleResult, RunResult, SCHEMA, Show, Statement, Stop, Test,
    Verdict, instance,
};
use core::time::Duration;
use uet_control::{Parameter, Reset, Welcome};
use uet_wire::Spec;
use uet_wire::catalogue;

/// The run stops after this many consecutive instances ended by a silent control channel or a packet flood.
const BROKEN: u32 = 3;

/// If the device can play no instance of a rule that the plan chose, so many others are tried.
const INSTEAD: usize = 20;

/// Number of steps that are kept of a rule ended by a packet flood.
const KEPT: usize = 1000;

/// Maximum number of bytes of packets in the traces of a run. Later traces have no steps, so that a device that
/// floods every rule cannot fill the memory. The line `again:` plays such an instance alone.
const TRACES: usize = 64 << 20;

/// Number of plain writes that measure the round-trip time.
const KNOCKS: u32 = 3;

/// Longest measured round-trip time.
const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(3);

/// Shortest measured round-trip time that changes how long the suite waits.
const NOTABLE: Duration = Duration::from_millis(5);

/// Shortest measured round-trip time that excuses a device whose timers are shorter.
const FAR: Duration = Duration::from_millis(20);

/// Runs the suite and calls `each` after every rule.
///
/// Restarts a device that has ended, if possible. Stops if the device is gone for good.
pub fn run(dut: &mut dyn Dut, options: &Options, mut each: impl FnMut(&mut RuleResult)) -> RunResult {
    let statement = &options.statement;
    let welcome = statement.apply(dut.welcome());
    let mut result = begun(&welcome, options);
    result.circumstances.packets_only = !dut.facts().control;
    let claimed = &dut.welcome().capabilities;
    result
        .statement
        .beyond
        .extend(welcome.capabilities.iter().filter(|claim| !claimed.contains(claim)).cloned());
    let mut dut = StatedDevice::new(dut, welcome);
    if result.stopped.is_some() {
        left(&mut result, &plan(&dut, options));
        return result;
    }
    if !dut.facts().control {
        dut.refused_regions = refused_regions(&mut dut, options);
    }
    let plan = plan(&dut, options);
    let round_trip = measured_round_trip(&mut dut, options);
    dut.round_trip = round_trip.filter(|shortest| *shortest >= NOTABLE).unwrap_or_default();
    dut.serves_writes = round_trip.is_some()
        || silence::answers_a_write(&mut dut, options.spec, options.timeout_scale) == Some(true);
    // Each rule judges a device that has not failed before.
    let _ = silence::revive(&mut dut, None);
    (dut.unanswered, dut.broken) = (0, None);
    let limit = limit(&dut, options);
    let (mut broken, mut kept, mut played, mut is_cut) = (0, 0, 0, false);
    for (place, Planned { rule, instances, instead, .. }) in plan.iter().enumerate() {
        let mut found = RuleResult::blank(rule);
        let mut fared: Vec<(Instance, bool)> = Vec::new();
        let mut there = Ok(());
        let withdrawn = options.corrections.withdrawn(rule.requirements);
        let mut instances: Vec<&Instance> =
            if withdrawn.is_some() { Vec::new() } else { instances.iter().collect() };
        let mut instead = instead.iter();
        let (mut tried, mut is_shared) = (0, false);
        instances.reverse();
        found.reason = withdrawn.unwrap_or_default();
        while let Some(instance) = instances.pop() {
            options.before.call(instance);
            let (mut one, still) = repeated(&mut dut, instance, options);
            let still = still.and_then(|()| silence::count_mute(&mut dut, &one));
            there = still.and_then(|()| match (dut.broken.take(), one.verdict) {
                (Some(why), Verdict::Inconclusive) => {
                    broken += 1;
                    one.ladder.cut(KEPT);
                    if broken < BROKEN {
                        Ok(())
                    } else {
                        Err(format!("{why}; so it was {BROKEN} instances in a row"))
                    }
                }
                (_, Verdict::Skipped) => Ok(()),
                _ => {
                    broken = 0;
                    Ok(())
                }
            });
            is_cut = options.stopped();
            if is_cut {
                break;
            }
            one.correct(&options.corrections);
            result.packets.judge(&one, options.spec);
            if one.verdict != Verdict::Skipped {
                fared.push((instance.clone(), one.verdict.is_failure()));
            }
            let more = match (instances.is_empty(), fared.len()) {
                (true, 0) => usize::from(tried < INSTEAD),
                (true, fared) if !is_shared => {
                    is_shared = true;
                    share(&plan[place..], limit, played + fared)
                }
                _ => 0,
            };
            tried += more;
            instances.extend(instead.by_ref().take(more));
            if kept + found.trace_bytes() + one.ladder.bytes() > TRACES {
                one.ladder.cut(0);
            }
            let failed = one.verdict.is_failure();
            found.add(one);
            // Only all instances of a rule tell if a waiver covers it.
            if there.is_err() || failed && options.fail_fast && statement.waivers.is_empty() {
                break;
            }
        }
        // A part of a rule cannot pass, but it can fail.
        if is_cut && !found.verdict.is_failure() {
            break;
        }
        played += fared.len();
        let pattern = instance::pattern(&fared);
        if !pattern.is_empty() {
            found.reason = format!("{pattern}: {}", found.reason);
        }
        if !matches!(found.verdict, Verdict::Pass | Verdict::Skipped) {
            found.waived = waiver(statement, &found);
        }
        each(&mut found);
        found.drop_traces();
        kept += found.trace_bytes();
        let failed = found.verdict.is_failure() && found.counts();
        result.rules.push(found);
        result.stopped = there.and_then(|()| silence::ends_each_time(&result.rules)).err();
        if result.stopped.is_some() || failed && options.fail_fast || is_cut {
            break;
        }
    }
    if result.stopped.is_none() && !options.stopped() {
        result.stopped = silence::ended_at_last(&mut dut);
    }
    let rest = plan.get(result.rules.len()..).unwrap_or_default();
    left(&mut result, rest);
    if result.stopped.is_none() && (result.not_run > 0 || is_cut) {
        let end = if options.stopped() { EarlyEnd::Signal } else { EarlyEnd::FailFast };
        result.circumstances.ended_by = Some(end);
    }
    result.packets.correct(&options.corrections);
    if !statement.rows.is_empty() {
        let claims = &result.statement.device.capabilities;
        result.profile =
            Some(ProfileResult::new(&statement.name, &statement.rows, claims, options.rules, &result.rules));
    }
    for finding in &mut result.packets.findings {
        let waiver = finding.requirement.as_deref().and_then(|id| statement.waiver(id));
        finding.waived = waiver.map(Into::into);
    }
    result
}

/// Records the rules that did not run.
fn left(result: &mut RunResult, rules: &[Planned]) {
    result.not_run = rules.len();
    result.circumstances.not_run_rules = rules.iter().map(|left| left.rule.id.into()).collect();
}

/// Returns the lengths of the standing regions that take no write.
fn refused_regions(dut: &mut StatedDevice<'_>, options: &Options) -> Vec<u64> {
    let lengths = options.statement.regions.iter().map(|region| region.length);
    let refuses = |length: &u64| {
        let seed = options.seed ^ dut.nonce() ^ length;
        let mut test = Test::new(dut, options.spec, seed, options.timeout_scale);
        let mut knock = || -> Result<bool, Stop> {
            test.call(Reset {})?;
            let region = test.region(*length)?;
            let pdc = test.initiate();
            test.request(&pdc, pdc.request(0).write(&region, length.saturating_sub(8), &[0; 8])?)?;
            let soon = test.soon();
            let (_, is_error) = test.need("an answer to a plain write", soon, |seen| {
                seen.is_for(&pdc).then(|| seen.is_error() || seen.nack().is_some())
            })?;
            Ok(is_error)
        };
        knock().unwrap_or(true)
    };
    lengths.filter(refuses).collect()
}

/// Returns the reason why a failure is accepted: a waiver of its rule or of each broken requirement.
fn waiver(statement: &Statement, found: &RuleResult) -> Option<String> {
    let by_requirement = || found.requirements.iter().map(|id| statement.waiver(id)).collect();
    let of_rule = statement.waiver(&found.id).map(|reason| vec![reason]);
    // A waiver of some broken requirements is not enough.
    let reasons: Option<Vec<&str>> = of_rule.or_else(by_requirement);
    reasons.and_then(|reasons| reasons.first().map(|reason| (*reason).to_owned()))
}

/// Returns a device as its statement describes it.
pub(crate) fn stated<'d>(dut: &'d mut dyn Dut, options: &Options) -> StatedDevice<'d> {
    let welcome = options.statement.apply(dut.welcome());
    StatedDevice::new(dut, welcome)
}

/// Returns the result of a run that has just begun.
pub(crate) fn begun_of(dut: &dyn Dut, options: &Options) -> RunResult {
    begun(dut.welcome(), options)
}

/// Returns an empty result. It is that of a stopped run if the device reports a parameter out of its range.
fn begun(welcome: &Welcome, options: &Options) -> RunResult {
    let Statement { name, provisional, disclaims, waivers, .. } = options.statement.clone();
    RunResult {
        schema: SCHEMA,
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
        profile: None,
        circumstances: Circumstances { corrections: options.corrections.clone(), ..Circumstances::default() },
        packets: Packets::default(),
        rules: Vec::new(),
        not_run: 0,
        stopped: Parameter::out_of_range(&welcome.parameters)
            .next()
            .map(|excessive| format!("the device's parameter {excessive}")),
        random: None,
    }
}

/// Returns an empty result, for tests.
#[cfg(test)]
pub(crate) fn blank_run() -> RunResult {
    let welcome =
        r#"{"protocol":1,"name":"nic","capabilities":[],"link":{"kind":"inside","addr":"10.0.0.1"}}"#;
    begun(&serde_json::from_str(welcome).unwrap(), &Options::of(crate::Registry::new(&[])))
}

/// Measures the round-trip time by plain writes, and returns the shortest. Returns `None` for a device that
/// answers none.
fn measured_round_trip(dut: &mut StatedDevice<'_>, options: &Options) -> Option<Duration> {
    let rod = !dut.welcome().capabilities.iter().any(|claim| claim == "rud");
    let mut test = Test::new(dut, options.spec, options.seed, options.timeout_scale);
    let mut knock = || -> Result<Duration, Stop> {
        test.call(Reset {})?;
        let region = test.region(64)?;
        let mut pdc = Pdc { rod, ..test.initiate() };
        let mut shortest = Duration::MAX;
        // The first opens a context, which may take longer.
        for n in 0..KNOCKS {
            let sent = test.now();
            test.request(&pdc, pdc.request(n).write(&region, 0, &[1; 64])?)?;
            let within = test.scaled(LONGEST_ROUND_TRIP);
            let (_, ack) =
                test.need("an ACK of a plain write", within, |seen| seen.answers(&pdc, pdc.psn(n)))?;
            pdc.remote = Some(ack.spdcid());
            shortest = shortest.min(test.now() - sent);
        }
        Ok(shortest)
    };
    knock().ok()
}

/// Runs an instance as often as requested. A mix of passes and failures is flaky. Returns the first failure,
/// or else the first round without a pass. The error says why nothing else can run.
fn repeated(
    dut: &mut StatedDevice<'_>,
    instance: &Instance,
    options: &Options,
) -> (InstanceResult, Result<(), String>) {
    let mut once = |round: u32| {
        let seed = options.seed.wrapping_add(round.into());
        excused(dut, instance, options, seed)
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
        let (attempts, duration) = (kept.attempts + next.attempts, kept.duration_ns + next.duration_ns);
        let worse = match kept.verdict {
            Verdict::Fail => false,
            Verdict::Pass => next.verdict != Verdict::Pass,
            _ => next.verdict == Verdict::Fail,
        };
        if worse {
            kept = next;
        }
        (kept.attempts, kept.duration_ns) = (attempts, duration);
    }
    if passes > 0 && failures > 0 {
        kept.verdict = Verdict::Flaky;
        kept.reason = format!("failed {failures} of {} times: {}", options.repeat, kept.reason);
    }
    (kept, there)
}

/// Number of times that an instance is played again while the host is busy.
const REPLAYS: u32 = 3;

/// Runs an instance with this seed. If the network affected packets of a run that did not pass, runs it again
/// with other seeds. If each run was affected, the result is inconclusive. On a busy host, timers of a device
/// may expire before it reads an answer of the suite, so the same is played again. A wrong device fails each
/// time.
fn excused(
    dut: &mut StatedDevice<'_>,
    instance: &Instance,
    options: &Options,
    seed: u64,
) -> (InstanceResult, Result<(), String>) {
    let once = |dut: &mut StatedDevice<'_>, seed: u64| {
        let before = dut.network_effects();
        let result = run_instance(dut, instance, options.spec, seed, options.timeout_scale);
        let InstanceResult { instance, liveness, .. } = &result;
        let earlier = match liveness {
            Liveness::EndedAfter(earlier) => Some(earlier),
            _ => None,
        };
        let ids = earlier.into_iter().chain([instance]);
        let ids: String = ids.map(|id| format!(" --id {}", quoted(id))).collect();
        let rerun = format!("{}{ids} --seed {seed}", options.command);
        if matches!(liveness, Liveness::Ended | Liveness::EndedAfter(_)) {
            dut.last_instance = None;
        }
        let effects = dut.network_effects().since(before);
        let there = silence::revive(dut, (*liveness == Liveness::Silent).then_some(instance.as_str()));
        (InstanceResult { rerun, ..result }, there, effects)
    };
    let (mut found, mut there, mut effects) = once(dut, seed);
    let mut replays = 0;
    for attempt in 1..u64::from(options.attempts) {
        let is_open = matches!(found.verdict, Verdict::Fail | Verdict::Inconclusive);
        if !is_open || found.liveness != Liveness::Alive || there.is_err() || options.stopped() {
            break;
        }
        let is_affected = !effects.is_none() && !effects.is_constant();
        if !is_affected {
            // Repetitions ask how often an instance fails, so none is replaced.
            if replays == REPLAYS || options.repeat > 1 || !dut.is_host_busy() {
                break;
            }
            replays += 1;
        }
        let before = (found.attempts, found.duration_ns);
        // Seeds of other rounds start at the seed of the run.
        (found, there, effects) = once(dut, if is_affected { seed ^ attempt << 32 } else { seed });
        found.attempts += before.0;
        found.replayed = replays > 0;
        found.duration_ns += before.1;
    }
    let why = match found.verdict {
        // Its end, or several plain writes, show it, whatever the network did before.
        _ if found.liveness != Liveness::Alive => None,
        Verdict::Fail if !effects.is_none() => Some(effects.to_string()),
        Verdict::Fail => too_far(dut),
        _ => None,
    };
    if found.verdict == Verdict::Inconclusive && !effects.is_none() {
        found.reason = format!("{effects}; {}", found.reason);
    }
    if let Some(why) = why {
        found.verdict = Verdict::Inconclusive;
        found.reason = format!("{why}; without that it might pass: {}", found.reason);
    }
    (found, there)
}

/// Returns a reason if a round trip takes longer than the device waits for an ACK: then its timers expire in
/// every rule.
fn too_far(dut: &StatedDevice<'_>) -> Option<String> {
    let round_trip = dut.round_trip;
    let told = dut.welcome.parameters.get("rto_init_time").and_then(|value| value.as_u64());
    let default = || Parameter::find("rto_init_time").and_then(Parameter::number);
    let timeout = Duration::from_nanos(told.or_else(default).unwrap_or_default());
    let whose = if told.is_some() { "rto_init_time of the device" } else { "the default of rto_init_time" };
    (round_trip >= FAR && round_trip >= timeout).then(|| {
        format!("a round trip takes {}, and {whose} is {}: raise it", round_trip.show(), timeout.show())
    })
}

/// Quotes the id as one word for a shell.
fn quoted(instance: &str) -> String {
    if instance.contains('[') { format!("'{instance}'") } else { instance.into() }
}

/// Runs one instance, once.
pub fn run_instance(
    dut: &mut dyn Dut,
    instance: &Instance,
    spec: &'static Spec,
    seed: u64,
    timeout_scale: f64,
) -> InstanceResult {
    let blank = InstanceResult::blank(
        instance,
        format!("uet run --id {} --seed {seed}", quoted(&instance.to_string())),
    );
    let lacking = instance.needs().find_map(|need| need.lacking(dut.welcome(), dut.facts()));
    if let Some(reason) = lacking {
        return InstanceResult { reason, ..blank };
    }
    let own_seed = seed ^ hash(&instance.to_string()) ^ dut.nonce();
    run_script(dut, blank, spec, own_seed, timeout_scale, instance.indices(), |t| instance.rule.play(t))
}

/// Runs a script once, on a device that is reset, and judges what it observes.
pub(crate) fn run_script(
    dut: &mut dyn Dut,
    blank: InstanceResult,
    spec: &'static Spec,
    seed: u64,
    timeout_scale: f64,
    points: Vec<(&'static str, usize)>,
    script: impl FnOnce(&mut Test<'_>) -> Outcome,
) -> InstanceResult {
    let begun = dut.now();
    let mut ready = dut.call(Reset {});
    let (mut late, mut why) = (None, String::new());
    if let Err(error) = &ready {
        // A device may end late, after the instance that made it end.
        let how = dut.ended();
        why = how.as_ref().map_or(error.to_string(), |how| format!("the device had ended before: {how}"));
        late = dut.last_instance().map(|last| (last.to_owned(), silence::late(last, how.as_deref(), error)));
        if how.is_some() && dut.restart().unwrap_or(false) {
            ready = dut.call(Reset {});
        }
    }
    let could_begin = ready.is_ok();
    let Record { outcome, mut observations, circumstances, ladder, declined, read, set } = match ready {
        Ok(_) => {
            dut.begin(&blank.instance);
            dut.lost();
            Test::new(dut, spec, seed, timeout_scale).at(points).play(script)
        }
        Err(_) => Record::of_nothing(why),
    };
    let passed = observations.iter().all(|seen| seen.held);
    let ended = if could_begin { silence::end(dut, &outcome, passed) } else { None };
    let mute = ended.is_none() && silence::is_silent(dut, &outcome, &ladder, spec, timeout_scale);
    let silent = mute && dut.serves_writes();
    let mut liveness = Liveness::Alive;
    // A failed device affects everything else too.
    if silent {
        (observations, liveness) = (vec![silence::observation(&ladder)], Liveness::Silent);
    } else if let Some(seen) = &ended {
        (observations, liveness) = (vec![silence::ended(&ladder, seen)], Liveness::Ended);
    }
    if let Some((last, seen)) = late {
        observations.insert(0, seen);
        liveness = Liveness::EndedAfter(last);
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
        _ if mute && !silent => (Verdict::Inconclusive, "the device answers nothing at all".into()),
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
    let reason = match verdict {
        Verdict::Fail | Verdict::Inconclusive if !circumstances.is_empty() => {
            format!("{reason} ({circumstances})")
        }
        _ => reason,
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
        liveness,
        attempts: 1,
        replayed: false,
        duration_ns: (dut.now() - begun).as_nanos() as u64,
        recorded,
        declined,
        read,
        set,
        observations: broken,
        ladder,
        ..blank
    }
}

/// Returns a warning if the device says that it implements another version than `spec`.
///
/// The verdicts then judge the device by rules that it does not claim to keep.
pub fn spec_mismatch(welcome: &Welcome, spec: &Spec) -> Option<String> {
    let claimed = &welcome.specification;
    (!claimed.is_empty() && claimed != spec.name()).then(|| {
        format!(
            "the device implements specification {claimed}, but it is judged by {spec}; \
             choose another with --spec"
        )
    })
}

/// Returns a hash of the catalogue of requirements. Any change of a requirement changes it.
pub fn catalogue_hash() -> String {
    let told = catalogue::ALL.iter().fold(hash(""), |before, known| {
        let text = format!("{} {} {} {}", known.id, known.level.name(), known.section, known.sentence);
        before.rotate_left(1) ^ hash(&text)
    });
    format!("{told:016x}")
}

/// Gives each rule its own numbers, independent of the other rules.
pub(crate) fn hash(id: &str) -> u64 {
    // FNV-1a: short and stable.
    id.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
