//! Finds out whether a device still answers, and brings back one that does not.

use crate::statement::StatedDevice;
use crate::{
    Dut, DutExt, InstanceResult, Ladder, Liveness, Observation, Outcome, Pdc, Relation, RuleResult, Stop,
    Test, Verdict,
};
use uet_control::{CallError, Reset};
use uet_wire::Spec;
use uet_wire::catalogue::ROB_LIFE_001;

/// Number of plain writes without an answer that show a silent device. The suite waits twice as long for each
/// as for the one before: a busy machine delays a packet by a second at times.
const KNOCKS: u32 = 4;

/// Maximum number of such series, if the network affects packets of each.
const ROUNDS: u32 = 3;

/// The device counts as gone after this many unanswered `reset`s in a row.
const UNANSWERED: u32 = 2;

/// The run stops after this many instances in a row without a packet of a device that has been started again,
/// or that has never answered.
const MUTE: u32 = 5;

/// The run stops after this many rules in a row in which the device ended each time.
const ENDED_RULES: usize = 10;

/// Returns whether the device answers a plain first write. Returns `None` if nothing can be written to it.
pub(crate) fn answers_a_write(dut: &mut dyn Dut, spec: &'static Spec, scale: f64) -> Option<bool> {
    let rod = !dut.welcome().capabilities.iter().any(|claim| claim == "rud");
    let (seed, serves_writes) = (dut.nonce(), dut.serves_writes());
    let mut test = Test::new(dut, spec, seed, scale);
    let has_control = test.facts().control;
    // A device that has never answered is not blamed for silence, so there is less to be sure of.
    let knocks = if serves_writes { KNOCKS } else { 1 };
    let mut knock = || -> Result<bool, Stop> {
        if has_control {
            test.call(Reset {})?;
        }
        let region = if has_control { test.region(64)? } else { test.no_region(64) };
        let mut within = test.patience(test.soon());
        for _ in 0..knocks {
            let pdc = Pdc { rod, ..test.initiate() };
            test.request(&pdc, pdc.request(0).write(&region, 0, &[1; 64])?)?;
            // A device that answers at a wrong place is not silent.
            if test.wait(within, |seen| seen.is_for(&pdc).then_some(()))?.is_some() || test.heard() {
                return Ok(true);
            }
            within *= 2;
        }
        Ok(false)
    };
    knock().ok()
}

/// Returns whether the device has become silent in an instance that ended like this, with this trace.
///
/// Only a device that has answered a plain write earlier in the run can be judged by one.
pub(crate) fn is_silent(
    dut: &mut dyn Dut,
    outcome: &Outcome,
    ladder: &Ladder,
    spec: &'static Spec,
    scale: f64,
) -> bool {
    let unanswered = match outcome {
        Err(Stop::Skipped(_) | Stop::Gone(_)) => false,
        Err(Stop::Silent) => true,
        _ if !dut.serves_writes() => false,
        // Without a control channel nothing closes the context of a plain write again.
        _ if !dut.facts().control => ladder.of_the_device().next().is_none(),
        _ => ladder.first_unanswered().is_some(),
    };
    let mut knock = || {
        let before = dut.network_effects();
        let answers = answers_a_write(dut, spec, scale);
        // Silence that the network made shows nothing. A device that reads nothing makes it itself: once its queue is
        // full, the host drops all later packets.
        let is_clear = dut.network_effects().since(before).is_none() || dut.reads_nothing();
        (answers == Some(false), is_clear)
    };
    unanswered && (0..ROUNDS).map(|_| knock()).find(|(silent, clear)| !silent || *clear) == Some((true, true))
}

/// Returns what shows that the device has become silent. It is about the first packet after its last one.
pub(crate) fn observation(ladder: &Ladder) -> Observation {
    let (first, last) = (ladder.first_unanswered().unwrap_or_default(), ladder.packets().count());
    let which = if first == last { format!("packet {first}") } else { format!("packets {first} to {last}") };
    let seen = format!("no answer to {which}, and none to {KNOCKS} plain writes after a reset");
    Observation { packet: first, request: Some(first), ..life("that the device goes on to answer", seen) }
}

/// Returns an observation about a device that does not go on.
fn life(expected: &str, seen: String) -> Observation {
    Observation::new(ROB_LIFE_001, false, Relation::True, expected, seen)
}

/// Returns how the device has ended in an instance with this outcome. A device whose control channel answers
/// nothing, not even `reset`, has ended too.
///
/// If the instance did not pass, a `reset` comes at once. Only an answer shows that a device on another host
/// still runs. Its end explains more than the packet that never came.
pub(crate) fn end(dut: &mut dyn Dut, outcome: &Outcome, passed: bool) -> Option<String> {
    let hangs = match outcome {
        _ if dut.ended().is_some() => None,
        Err(Stop::Skipped(_)) => None,
        Ok(()) if passed => None,
        Err(Stop::Gone(why)) => unanswered(dut).map(|_| format!("{why}, nor to a `reset` after it")),
        _ => unanswered(dut).map(|error| format!("no answer to a `reset` after it: {error}")),
    };
    dut.ended().map(|how| format!("it ended: {how}")).or(hangs)
}

/// Returns why a `reset` got no answer.
fn unanswered(dut: &mut dyn Dut) -> Option<CallError> {
    dut.call(Reset {}).err().filter(|error| matches!(error, CallError::Channel { .. }))
}

/// Returns what shows that the device has ended. It is about the first packet after its last one.
pub(crate) fn ended(ladder: &Ladder, seen: &str) -> Observation {
    let (last, request) = (ladder.packets().count(), ladder.first_unanswered());
    let ended = life("that the device goes on", seen.to_owned());
    Observation { packet: request.unwrap_or(last), request, ..ended }
}

/// Returns what shows that the device has ended, or hangs, since this instance: it does not answer `reset`.
pub(crate) fn late(last: &str, how: Option<&str>, error: &CallError) -> Observation {
    life("that the device goes on", late_end(last, how, error))
}

fn late_end(last: &str, how: Option<&str>, error: &CallError) -> String {
    match how {
        Some(how) => format!("it ended after {last}: {how}"),
        None => format!("no answer after {last}: {error}"),
    }
}

/// Returns how the device has ended, or hangs, after the last instance of a run.
pub(crate) fn ended_at_last(dut: &mut StatedDevice<'_>) -> Option<String> {
    let last = dut.last_instance()?.to_owned();
    let error = dut.call(Reset {}).err()?;
    Some(format!("the device does not go on: {}", late_end(&last, dut.ended().as_deref(), &error)))
}

/// Counts an instance without a packet of the device. The error says why the run cannot go on.
pub(crate) fn count_mute(dut: &mut StatedDevice<'_>, result: &InstanceResult) -> Result<(), String> {
    let is_mute = result.ladder.of_the_device().next().is_none();
    // A skipped instance sent nothing that the device could answer.
    if is_mute && result.verdict == Verdict::Skipped {
        return Ok(());
    }
    let is_silent = result.liveness == Liveness::Silent;
    let waits = is_silent || result.verdict == Verdict::Inconclusive && !dut.serves_writes;
    if is_silent {
        dut.silent_since.get_or_insert_with(|| result.instance.clone());
    } else if !is_mute {
        dut.silent_since = None;
    }
    dut.mute = if is_mute && waits { dut.mute + 1 } else { 0 };
    if dut.mute < MUTE {
        return Ok(());
    }
    Err(match dut.silent_since.as_deref() {
        Some(since) => format!("the device has been silent since {since}, in {MUTE} instances in a row"),
        None => format!(
            "the device sent no packet in {MUTE} instances in a row: `uet doctor` checks its control \
             channel and link"
        ),
    })
}

/// Fails if the device has ended in every instance of the last rules. A device that ends at each start would be
/// started again and again, and no rule would say more about it.
pub(crate) fn ends_each_time(rules: &[RuleResult]) -> Result<(), String> {
    let ends = |rule: &&RuleResult| {
        let ended =
            |found: &InstanceResult| matches!(found.liveness, Liveness::Ended | Liveness::EndedAfter(_));
        rule.instances.pass == 0 && rule.failing.iter().all(ended)
    };
    let ran = rules.iter().rev().filter(|rule| rule.verdict != Verdict::Skipped);
    match ran.take(ENDED_RULES).take_while(ends).count() {
        ENDED_RULES => Err(format!("the device ended in each instance of {ENDED_RULES} rules in a row")),
        _ => Ok(()),
    }
}

/// Brings back a device that has ended, does not answer to `reset`, or has become silent in this instance.
/// The error says why that failed.
pub(crate) fn revive(dut: &mut StatedDevice<'_>, silent_in: Option<&str>) -> Result<(), String> {
    let ended = dut.ended();
    let why = match (&ended, silent_in) {
        (Some(how), _) => format!("the device has ended: {how}"),
        (None, Some(instance)) => format!("the device has been silent since {instance}"),
        (None, None) => format!("the device did not answer to reset, {UNANSWERED} times in a row"),
    };
    match dut.unanswered {
        0 if ended.is_none() && silent_in.is_none() => return Ok(()),
        UNANSWERED.. => return Err(why),
        _ => {}
    }
    match dut.restart() {
        Ok(true) => Ok(()),
        // A running device may answer again.
        Ok(false) if ended.is_none() && silent_in.is_none() => Ok(()),
        Ok(false) => Err(why),
        Err(error) => Err(format!("{why}; it cannot be started again: {error}")),
    }
}
