//! Faults of the emulator break the properties, and a walk without a fault breaks none.

use core::time::Duration;
use uet_conformance::parallel;
use uet_emulator::fault;
use uet_explore::{Action, Budget, Scenario, explore, scenarios, walk};

const WALKS: u64 = 60;

/// The faults, the faulty endpoint (0 is the initiator), and a scenario that finds them.
const FOUND: &[(&str, usize, &str)] = &[
    ("opens-again-with-syn", 1, "rud-write"),
    ("ignores-psn-offset", 1, "rud-write"),
    ("acknowledges-over-gap", 1, "rud-write"),
    ("moves-cack-back", 1, "rud-write"),
    ("ignores-retransmissions", 1, "rud-write"),
    ("sets-missing-sack-bits", 1, "rud-write"),
    ("reverses-sack-bits", 1, "rud-write"),
    ("takes-bit-for-answer", 0, "guaranteed"),
    ("compares-psns-plainly", 1, "psn-wrap"),
    ("clears-before-clear", 1, "guaranteed"),
    ("guarantees-nothing", 1, "guaranteed"),
    ("clears-over-gap", 0, "rud-write"),
    ("counts-refused-as-received", 1, "guaranteed-one-slot"),
    ("delivers-trimmed", 1, "rud-write"),
    ("believes-trimmed-answers", 0, "read-in-ack"),
    ("takes-out-of-order", 1, "rod-send"),
    ("sends-ordered-as-unordered", 0, "rod-send"),
    ("never-retransmits", 0, "rud-write"),
    ("renumbers-retransmissions", 0, "rud-write"),
    ("delivers-duplicates", 1, "rud-write"),
    ("stays-open", 1, "close-by-both"),
    ("forgets-buffer-offset", 1, "one-message"),
    ("reads-from-start", 1, "read-return"),
    ("repeats-fetching-atomics", 1, "guaranteed"),
    ("completes-with-first-packet", 1, "rod-send"),
    ("loses-what-finds-no-receive", 1, "rendezvous-unexpected"),
    ("cuts-job-id", 1, "rud-write"),
    ("cuts-buffer-offset", 1, "trespass-rod"),
    ("shifts-medium-header", 1, "short-forms"),
    ("looks-at-dpdcid-alone", 1, "stranger"),
    ("takes-control-of-others", 0, "stranger"),
    ("forgets-req-clear", 1, "guaranteed"),
    ("ignores-carried-clear", 1, "guaranteed-one-slot"),
    ("remembers-closed-peers", 1, "pdcid-reuse"),
    ("answers-rudi-once", 1, "rudi"),
    ("repeats-pkt-ids", 0, "rudi"),
    ("takes-any-key", 1, "trespass-rod"),
    ("ignores-permissions", 1, "trespass"),
    ("writes-what-fits", 1, "trespass"),
    ("compares-half-the-tag", 1, "tagged"),
    ("swaps-when-different", 1, "claim"),
    ("acts-on-first-element", 1, "guaranteed"),
    ("believes-no-error", 0, "trespass"),
    ("counts-since-last-ack", 1, "rud-write"),
    ("counts-trimmed", 1, "rud-write"),
    ("stops-rcvd-bytes", 1, "nscc-window-2"),
    ("ignores-window", 0, "nscc-window-1"),
    ("answers-questions-of-nobody", 1, "stranger-guaranteed"),
    ("takes-acks-of-others", 0, "stranger-guaranteed"),
    ("takes-nacks-of-others", 0, "stranger"),
    ("retries-on-same-context", 0, "close-unanswered"),
    ("takes-processing-for-answer", 0, "complete-later"),
    ("names-missing-psn", 1, "rod-send"),
    ("closes-over-read-data", 1, "close-after-read"),
    ("forgets-closed-contexts", 1, "close-late-copy"),
    ("uses-up-psns", 0, "psn-range"),
    ("drops-by-low-byte-of-length", 1, "lengths"),
    ("fetches-new-value", 1, "count"),
    ("places-in-order-of-arrival", 1, "three-packets"),
    ("loses-header-data", 1, "rod-send"),
    ("loses-late-header-data", 1, "send-unexpected"),
    ("takes-header-data-without-hd", 1, "rod-send"),
    ("answers-dc-at-once", 1, "delivery-complete"),
    ("ends-early-without-a-word", 0, "abort-one-message"),
    ("forgets-original-psn", 1, "short-reads"),
    ("reads-too-much-in-acks", 1, "short-reads"),
    ("leaves-out-congestion-state", 1, "nscc-window-1"),
    ("counts-stale-bytes", 0, "nscc-copies"),
    ("runs-one-of-both", 0, "both-controls"),
    ("adds-grants-up", 0, "rccc-copies"),
    ("takes-old-credit", 0, "rccc-copies"),
    ("demands-the-difference", 0, "rccc-credit-1"),
    ("carries-no-demand", 0, "rccc-credit-1"),
];

#[test]
fn faults_break_properties() {
    let find = |(name, side, scenario): &(&'static str, usize, &'static str)| {
        let fault = [fault::find(name).unwrap()];
        let scenario = scenarios::find(scenario).unwrap();
        let at = if *side == 0 { [&fault[..], &[]] } else { [&[][..], &fault[..]] };
        let found = walk(scenario, at, scenario.large, WALKS);
        (*name, scenario.name, found.is_some())
    };
    parallel(FOUND, find, |(name, scenario, found)| assert!(found, "{name} in {scenario}"));
}

#[test]
fn walk_without_a_fault_breaks_nothing() {
    let find =
        |scenario: &&'static Scenario| (scenario.name, walk(scenario, [&[], &[]], scenario.large, WALKS));
    parallel(&scenarios::all(), find, |(name, found)| {
        assert!(found.is_none(), "{name}: {}", found.unwrap().1);
    });
}

/// `close-late-copy` with a target that forgets a closed context at once.
static FORGETFUL: Scenario = Scenario {
    name: "forgetful",
    first: [&[Action::Add], &[]],
    later: [&[Action::Close], &[]],
    small: Budget { drop: 0, copy: 1, reorder: 1, mark: 0, trim: 0, stray: 0, early: 1 },
    tune: |pds, _, _| pds.syn_retx_safety_time = Duration::ZERO,
    ..Scenario::BLANK
};

#[test]
fn search_finds_a_late_copy_that_opens_a_closed_context_again() {
    let report = explore(&FORGETFUL, FORGETFUL.small, 200_000);
    let violation = report.violation.expect("a copy of the first packet adds again");
    assert_eq!(violation.what, "B added 2 times for 1 operations", "{violation}");
}
