//! Random conversations: right devices pass, wrong ones are found, and what is found can be played again.

use serde_json::{Value, json};
use std::sync::Arc;
use uet_conformance::random::{self, Coverage, Length, Sequence};
use uet_conformance::{EarlyEnd, InstanceResult, Options, RunResult, Verdict};
use uet_emulator::{Config, fault};
use uet_harness::dut::{Embedded, Family};

/// Plays this many conversations with a NIC that has these parameters.
fn play(family: Family, parameters: &Value, faults: &[&str], seed: u64, count: u64) -> RunResult {
    let mut config = Config::default();
    for (name, value) in parameters.as_object().unwrap() {
        config.set(name, value).unwrap_or_else(|error| panic!("{error}"));
    }
    let faults: Vec<_> = faults.iter().map(|name| fault::find(name).unwrap()).collect();
    let mut nic = Embedded::over(family, config, &faults).unwrap();
    let options = Options { seed, fail_fast: true, ..Options::default() };
    random::run(&mut nic, &options, Length::Conversations(count), |_| ())
}

fn is_clean(family: Family, parameters: &Value) {
    for seed in 1..=2 {
        let result = play(family, parameters, &[], seed, if cfg!(debug_assertions) { 15 } else { 60 });
        let rule = &result.rules[0];
        let steps = rule.failing.first().map(|it| serde_json::to_string(&it.sequence).unwrap());
        assert_eq!(rule.verdict, Verdict::Pass, "{parameters}, seed {seed}: {} {steps:?}", rule.reason);
        assert!(rule.instances.pass > rule.instances.inconclusive);
        assert_eq!(result.exit_code(), 0);
    }
}

#[test]
fn right_nic_passes_over_both_ip_versions() {
    is_clean(Family::V4, &json!({}));
    is_clean(Family::V6, &json!({}));
}

#[test]
fn nics_that_answer_open_questions_otherwise_pass() {
    for parameters in [
        json!({"enb_ack_per_pkt": true}),
        json!({"max_ack_data_size": 0}),
        json!({"max_ack_data_size": 4096}),
        json!({"congestion": "rccc"}),
        json!({"congestion": "both"}),
        json!({"payload_mtu": 1024}),
        json!({"form": "shortest", "small_index": "index", "explicit_completion": true}),
        json!({"out_of_range": "UNSUPPORTED_SIZE", "denied": "AT_PERM", "too_long": "refuse", "negotiation": false}),
        json!({"nack_ses_processing": false, "nack_trimmed_syn": false, "rod_opens_early": false}),
    ] {
        is_clean(Family::V4, &parameters);
    }
}

#[test]
fn a_run_says_that_a_signal_ended_it() {
    let mut nic = Embedded::over(Family::V4, Config::default(), &[]).unwrap();
    for (conversations, stopped) in [(1, false), (0, true), (1, true)] {
        let options = Options { stop: Arc::new(stopped.into()), ..Options::default() };
        let result = random::run(&mut nic, &options, Length::Conversations(conversations), |_| ());
        let early = (conversations > 0 && stopped).then_some(EarlyEnd::Signal);
        assert_eq!(result.circumstances.ended_by, early, "{conversations} {stopped}");
    }
}

/// The failure of a NIC with this fault.
fn found(fault: &str) -> InstanceResult {
    let mut result = play(Family::V4, &json!({}), &[fault], 1, 2000);
    assert_eq!(result.rules[0].verdict, Verdict::Fail, "{fault} is not found");
    assert_eq!(result.exit_code(), 1);
    result.rules[0].failing.remove(0)
}

#[test]
fn planned_faults_are_found_and_shrink_to_a_few_steps() {
    for fault in [
        "fetches-new-value",
        "tells-errors-once",
        "forgets-retx-echo",
        "repeats-fetching-atomics",
        "believes-no-error",
    ] {
        let steps = found(fault).sequence.unwrap().steps.len();
        assert!(steps <= 8, "{fault}: {steps} steps");
    }
}

#[test]
fn packets_that_no_peer_sends_find_a_fault_and_shrink() {
    let steps = found("takes-unknown-types").sequence.unwrap().steps;
    let steps = serde_json::to_value(&steps).unwrap();
    let hostile: Vec<&Value> =
        steps.as_array().unwrap().iter().filter(|step| step["step"] == "hostile").collect();
    assert_eq!(hostile.len(), 1, "{steps}");
    assert!(hostile[0]["edits"].as_array().unwrap().len() <= 1, "{steps}");
}

#[test]
fn saved_conversation_fails_again() {
    let fault = "fetches-new-value";
    let first = found(fault);
    let text = serde_json::to_string(&first.sequence).unwrap();
    let sequence: Sequence = serde_json::from_str(&text).unwrap();
    let mut wrong = Embedded::with_faults(Config::default(), &[fault::find(fault).unwrap()]).unwrap();
    let mut right = Embedded::new(Config::default()).unwrap();
    let options = Options::default();

    let again = random::play(&mut wrong, &sequence, &options, &mut Coverage::default());
    assert_eq!((again.verdict, again.requirements), (Verdict::Fail, first.requirements));
    let passes = random::play(&mut right, &sequence, &options, &mut Coverage::default());
    assert_eq!((passes.verdict, passes.reason), (Verdict::Pass, String::new()));
}

#[test]
fn same_seed_plays_the_same_conversations() {
    // More than are drawn at once, on several processors.
    let [one, other] = [1, 1].map(|seed| play(Family::V4, &json!({}), &[], seed, 150).random.unwrap());
    assert_eq!((one.operations, one.coverage), (other.operations, other.coverage));
}
