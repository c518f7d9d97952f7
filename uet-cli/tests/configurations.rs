//! Correct devices that differ pass the suite: a case that fails one of them asks for more than the rules say.

#[path = "common/configurations.rs"]
mod configurations;

use configurations::{CONFIGURATIONS, Configuration, config};
use uet_cli::dut::Embedded;
use uet_conformance::{Options, Verdict, run};

#[test]
fn every_configuration_passes_the_whole_suite() {
    let failed: Vec<String> = std::thread::scope(|scope| {
        // Two at a time: the machines that this runs on have few processors.
        let halves = CONFIGURATIONS.chunks(CONFIGURATIONS.len().div_ceil(2));
        let running: Vec<_> =
            halves.map(|half| scope.spawn(|| half.iter().flat_map(failures).collect())).collect();
        running
            .into_iter()
            .flat_map(|run| run.join().unwrap_or_else(|_| vec!["a panic".to_owned()]))
            .collect()
    });
    assert!(failed.is_empty(), "{} fail:\n{}", failed.len(), failed.join("\n"));
}

/// What does not pass with this configuration.
fn failures((name, parameters): &Configuration) -> Vec<String> {
    let mut device = Embedded::new(config(parameters)).expect("a NIC");
    let result = run(&mut device, &Options::default(), |_| ());
    let passed = result.count(Verdict::Pass);
    assert!(passed > 400, "{name}: {passed} cases pass");
    let wrong = result.cases.iter().filter(|case| !matches!(case.verdict, Verdict::Pass | Verdict::Skipped));
    wrong.map(|case| format!("{name}: {} {:?}: {}", case.id, case.verdict, case.reason)).collect()
}
