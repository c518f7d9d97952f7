//! Random conversations with a device: drawn from its capabilities, judged without a model, shrunk to a few
//! steps.
//!
//! A conversation is a [`Sequence`]: data that refers to contexts, regions and messages by number. The player
//! acts as a right peer on a network that loses, copies, delays, marks and trims packets. A shadow of the
//! device's memory, the observers of packets, and the completions judge the device.
//!
//! | to | see |
//! | --- | --- |
//! | describe a conversation | `step`, `data` |
//! | draw, play and shrink one | `abilities`, `setting`, `generate`, `play`, `shrink` |
//! | protect its packets | `secure` |
//! | send requests as a source, and serve those of the device | `source`, `message`, `serve` |
//! | send what follows from the device, or what no peer sends | `other`, `hostile` |
//! | judge the device | `shadow`, `judge` |
//! | count what conversations reached | `coverage` |

mod abilities;
mod coverage;
mod data;
mod generate;
mod hostile;
mod judge;
mod message;
mod other;
mod play;
mod secure;
mod serve;
mod setting;
mod shadow;
mod shrink;
mod source;
pub mod step;

pub use abilities::Abilities;
pub use coverage::{Coverage, Figures};
pub use shrink::shrink;
pub use step::{Fate, Sequence};

use crate::rule;
use crate::run::{begun_of, hash, run_script, stated};
use crate::{
    Dut, EarlyEnd, Instance, InstanceResult, Options, Rule, RuleResult, RunResult, Stop, Test, Twins,
    Verdict, parallel,
};
use core::time::Duration;
use fastrand::Rng;
use std::time::Instant;
use uet_wire::catalogue::*;

/// The rule that stands for all conversations.
pub const RULE: &Rule = &rule("random/conversation", "A device keeps to the rules in any conversation")
    .checks(&[ROB_LIFE_001])
    .run(|_| Err(Stop::Skipped("a conversation has steps".into())));

/// Maximum number of plays while a failure shrinks.
const BUDGET: usize = 600;

/// The longest time in which a failure shrinks.
const SHRINKING: Duration = Duration::from_secs(30);

/// Number of conversations that are drawn before the first of them is played, if they are played at once.
const BATCH: u64 = 128;

/// Number of conversations that one of several devices plays.
const CHUNK: usize = 8;

/// Number of different failures after which a run ends.
const FAILURES: usize = 5;

/// The length of a run of random conversations.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    /// This much time.
    Time(Duration),
    /// This many conversations.
    Conversations(u64),
}

/// Plays a conversation once.
pub fn play(
    dut: &mut dyn Dut,
    sequence: &Sequence,
    options: &Options,
    coverage: &mut Coverage,
) -> InstanceResult {
    // The seed decides the IP version.
    let seed = options.seed ^ hash(RULE.id) ^ u64::from(sequence.other_ip);
    let blank = InstanceResult::blank(&Instance::first(RULE), String::new());
    let mut result = run_script(
        dut,
        blank,
        options.spec,
        seed,
        options.timeout_scale,
        Vec::new(),
        |test: &mut Test<'_>| play::Player::play(test, sequence, coverage),
    );
    if result.verdict.is_failure() {
        result.sequence = Some(sequence.clone());
    }
    result
}

/// Returns conversation `number` of a seed for a device.
pub fn sequence(can: &Abilities, seed: u64, number: u64, coverage: &Coverage) -> Sequence {
    let mut rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number);
    Sequence::draw(&mut rng, can, coverage)
}

/// Runs random conversations, and shrinks those that fail. `each` gets every failure.
pub fn run(
    dut: &mut dyn Dut,
    options: &Options,
    length: Length,
    mut each: impl FnMut(&mut RuleResult),
) -> RunResult {
    let mut dut = stated(dut, options);
    let mut result = begun_of(&dut, options);
    if result.stopped.is_some() {
        return result;
    }
    let can = Abilities::of(&dut);
    let begun = Instant::now();
    let mut figures = Figures::default();
    let mut found = RuleResult::blank(RULE);
    let mut broken: Vec<String> = Vec::new();
    if let Some(reason) = not_followed(&dut) {
        (found.verdict, found.reason) = (Verdict::Skipped, reason);
        result.rules.push(found);
        result.random = Some(figures);
        return result;
    }
    let twins = dut.twins();
    // The number of conversations drawn at once must not hang on the number of processors.
    let batch = if twins.is_some() { BATCH } else { 1 };
    'run: loop {
        let left = match length {
            Length::Time(time) => u64::from(begun.elapsed() < time) * batch,
            Length::Conversations(count) => count.saturating_sub(figures.conversations).min(batch),
        };
        if left == 0 || broken.len() >= FAILURES {
            break;
        }
        if options.stopped() {
            result.circumstances.ended_by = Some(EarlyEnd::Signal);
            break;
        }
        let draw =
            |number: u64| sequence(&can, options.seed, figures.conversations + number, &figures.coverage);
        let sequences: Vec<Sequence> = (0..left).map(draw).collect();
        let plays = twins.as_ref().and_then(|twins| play_at_once(twins, &sequences, options));
        let plays = plays.unwrap_or_else(|| {
            sequences.into_iter().map(|sequence| play_one(&mut dut, sequence, options)).collect()
        });
        for Play { result: mut one, sequence, coverage } in plays {
            figures.conversations += 1;
            figures.coverage.merge(coverage);
            result.packets.judge(&one, options.spec);
            if one.verdict.is_failure() {
                let first = one.requirements.first().cloned().unwrap_or_default();
                if broken.contains(&first) || broken.len() >= FAILURES {
                    continue;
                }
                broken.push(first);
                one = shrunk(&mut dut, one, &sequence, options);
                one.instance = format!("{}/{}", RULE.id, figures.conversations);
                let mut shown = RuleResult::blank(RULE);
                shown.add(one.clone());
                each(&mut shown);
                if let (Some(last), Some(kept)) = (shown.failing.pop(), Some(&mut one)) {
                    *kept = last;
                }
                found.add(one);
                if options.fail_fast {
                    result.circumstances.ended_by = Some(EarlyEnd::FailFast);
                    break 'run;
                }
                continue;
            }
            if one.verdict != Verdict::Pass {
                one.ladder.cut(0);
                *figures.open.entry(one.reason.clone()).or_default() += 1;
                if found.failing.len() < 8 {
                    found.add(one);
                }
                continue;
            }
            found.add(one);
        }
    }
    figures.seconds = begun.elapsed().as_secs_f64();
    figures.operations = figures.coverage.operations;
    if found.verdict != Verdict::Fail && found.instances.pass > 0 {
        // A conversation that led nowhere says nothing about the device.
        found.failing.retain(|it| it.verdict.is_failure());
        (found.verdict, found.reason) = (Verdict::Pass, String::new());
    }
    result.rules.push(found);
    result.random = Some(figures);
    result
}

/// A conversation that was played.
struct Play {
    result: InstanceResult,
    sequence: Sequence,
    coverage: Coverage,
}

fn play_one(dut: &mut dyn Dut, sequence: Sequence, options: &Options) -> Play {
    let mut coverage = Coverage::default();
    let result = play(dut, &sequence, options, &mut coverage);
    Play { result, sequence, coverage }
}

/// Plays conversations on all processors, with a device for each few of them.
fn play_at_once(twins: &Twins, sequences: &[Sequence], options: &Options) -> Option<Vec<Play>> {
    let few: Vec<&[Sequence]> = sequences.chunks(CHUNK).collect();
    let mut plays = Vec::with_capacity(few.len());
    let work = |few: &&[Sequence]| {
        let mut device = twins()?;
        let mut device = stated(&mut *device, options);
        Some(few.iter().map(|one| play_one(&mut device, one.clone(), options)).collect::<Vec<_>>())
    };
    parallel(&few, work, |played| plays.push(played));
    Some(plays.into_iter().collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Returns why the judge cannot follow this device, if it cannot: a right device must not fail.
fn not_followed(dut: &dyn Dut) -> Option<String> {
    let number = |name: &str| dut.welcome().parameters.get(name).and_then(|value| value.as_u64());
    let reports = number("infer_loss_packets").is_some_and(|packets| packets > 0);
    let closes = number("idle_time").is_some_and(|time| time > 0);
    let few = |name: &str| number(name).is_some_and(|count| count < 3);
    let why = match () {
        () if reports => "reports inferred losses (infer_loss_packets)",
        () if closes => "closes idle contexts (idle_time)",
        () if few("max_rto_retx_cnt") || few("max_nack_retx_cnt") => {
            "gives up after fewer than 3 retransmissions (max_rto_retx_cnt, max_nack_retx_cnt)"
        }
        () => return None,
    };
    Some(format!("random conversations cannot follow a device that {why} yet"))
}

/// Plays a saved conversation.
pub fn again(
    dut: &mut dyn Dut,
    sequence: &Sequence,
    options: &Options,
    mut each: impl FnMut(&mut RuleResult),
) -> RunResult {
    let mut dut = stated(dut, options);
    let mut result = begun_of(&dut, options);
    if result.stopped.is_some() {
        return result;
    }
    let mut figures = Figures { conversations: 1, ..Figures::default() };
    let one = play(&mut dut, sequence, options, &mut figures.coverage);
    result.packets.judge(&one, options.spec);
    let mut found = RuleResult::blank(RULE);
    found.add(one);
    if found.verdict != Verdict::Pass {
        each(&mut found);
    }
    figures.operations = figures.coverage.operations;
    result.rules.push(found);
    result.random = Some(figures);
    result
}

/// Shrinks a failure. Outside this process, a failure that does not repeat each time is flaky and stays as it
/// is.
fn shrunk(
    dut: &mut dyn Dut,
    found: InstanceResult,
    sequence: &Sequence,
    options: &Options,
) -> InstanceResult {
    let wanted = found.requirements.first().cloned();
    let mut coverage = Coverage::default();
    let mut fails = |dut: &mut dyn Dut, sequence: &Sequence| {
        let result = play(dut, sequence, options, &mut coverage);
        (result.verdict == Verdict::Fail && result.requirements.first() == wanted.as_ref()).then_some(result)
    };
    // A device that dies in each attempt may take a second for each.
    let until = Instant::now() + SHRINKING;
    let repeats = if dut.facts().virtual_time { 1 } else { 3 };
    let again = (0..repeats).filter(|_| !options.stopped() && fails(dut, sequence).is_some()).count();
    if options.stopped() {
        return found;
    }
    if again < repeats {
        let reason = format!("failed again {again} of {repeats} times: {}", found.reason);
        return InstanceResult { verdict: Verdict::Flaky, reason, ..found };
    }
    let budget = if dut.facts().virtual_time { BUDGET } else { BUDGET / 10 };
    let over = || options.stopped() || Instant::now() >= until;
    let small = shrink(sequence.clone(), budget, |less| !over() && fails(dut, less).is_some());
    fails(dut, &small).unwrap_or(found)
}
