//! The right NIC on networks that the suite itself impairs. No rule blames the device for the network.

use uet_conformance::{Options, RunResult, Verdict, run};
use uet_emulator::{Config, fault};
use uet_harness::dut::Embedded;

/// Runs one instance of each rule, or all of some rules.
fn impaired(effect: &str, mut nic: Embedded, ids: &[&str]) -> RunResult {
    nic.network().fabric().impair(effect.parse().unwrap());
    let ids = ids.iter().map(|id| id.to_string()).collect();
    run(&mut nic, &Options { ids, max_instances: Some(1), ..Options::default() }, |_| ())
}

fn failures(result: &RunResult) -> Vec<String> {
    let failed = result.rules.iter().filter(|rule| rule.verdict.is_failure());
    failed.map(|rule| format!("{}: {}", rule.id, rule.reason)).collect()
}

#[test]
fn no_rule_fails_for_the_network() {
    for (effect, fewest) in
        [("delay 20us", 750), ("drop 1%", 750), ("duplicate 5%", 780), ("delay 300ms", 450)]
    {
        let result = impaired(effect, Embedded::new(Config::default()).unwrap(), &[]);
        assert_eq!(failures(&result), [""; 0], "{effect}");
        assert_eq!(result.packets.findings, [], "{effect}");
        let passed = result.count(Verdict::Pass);
        assert!(passed >= fewest, "{effect}: only {passed} rules passed");
    }
}

/// A loss that spares one attempt hides no fault.
#[test]
fn faults_show_through_losses() {
    let nic = Embedded::with_faults(Config::default(), &[fault::find("forgets-retx-echo").unwrap()]).unwrap();
    let result = impaired("drop 1%", nic, &["ack/retx"]);
    assert_eq!(failures(&result).len(), 1, "{:?}", result.rules[0].reason);
}
