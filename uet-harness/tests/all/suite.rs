//! The NIC that is built in passes the suite, every case of it: it can do all that there is, so nothing is skipped.
//! `tools/mutants suite` breaks the model, and sees this notice.

use uet_conformance::{Options, Verdict, run};
use uet_emulator::Config;
use uet_emulator::config::Congestion;
use uet_harness::dut::Embedded;
use uet_wire::Version;

fn passes(config: Config) {
    let options = Options { fail_fast: true, ..Options::default() };
    let result = run(&mut Embedded::new(config).expect("a NIC"), &options, |_| ());
    let wrong = result.cases.iter().filter(|case| case.verdict != Verdict::Pass);
    let wrong: Vec<_> =
        wrong.map(|case| format!("{} {}: {}", case.id, case.verdict.name(), case.reason)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(result.count(Verdict::Pass) > 600, "{} cases pass", result.count(Verdict::Pass));
}

#[test]
fn the_nic_that_is_built_in_passes_the_suite() {
    passes(Config::default());
}

#[test]
fn so_it_does_on_receiver_credit() {
    passes(Config { congestion: Congestion::Both, ..Config::default() });
}

#[test]
fn older_version_differs_only_in_negotiation() {
    for (version, skipped) in [(Version::V1_0_1, &["establish/by-negotiation"][..]), (Version::V1_0_2, &[])] {
        let mut config = Config::default();
        config.speak(version);
        let options = Options { spec: version.spec(), ..Options::default() };
        let result = run(&mut Embedded::new(config).unwrap(), &options, |_| ());
        assert_eq!((result.specification.as_str(), result.exit_code()), (version.name(), 0));
        assert_eq!(result.packets.findings, []);
        let others = result.cases.iter().filter(|case| case.verdict != Verdict::Pass);
        let others: Vec<_> = others.map(|case| (case.verdict, case.id.as_str())).collect();
        assert_eq!(others, skipped.iter().map(|id| (Verdict::Skipped, *id)).collect::<Vec<_>>());
    }
}
