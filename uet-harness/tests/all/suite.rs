//! The NIC that is built in passes the suite, every case of it: it can do all that there is, so nothing is skipped.
//! `tools/mutants suite` breaks the model, and sees this notice.

use uet_conformance::{Options, Verdict, run};
use uet_emulator::Config;
use uet_emulator::config::Congestion;
use uet_harness::dut::{Embedded, Family};

fn passes(config: Config) {
    passes_over(Family::V4, config, 1);
}

fn passes_over(family: Family, config: Config, seed: u64) {
    let options = Options { fail_fast: true, seed, ..Options::default() };
    let result = run(&mut Embedded::over(family, config, &[]).expect("a NIC"), &options, |_| ());
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
fn so_it_does_over_ipv6() {
    passes_over(Family::V6, Config::default(), 1);
    passes_over(Family::V6, Config { congestion: Congestion::Both, ..Config::default() }, 1);
}

/// Two seeds in a row take each case over both versions.
#[test]
fn so_it_does_over_both_ip_versions() {
    passes_over(Family::Both, Config::default(), 1);
    passes_over(Family::Both, Config::default(), 2);
}

#[test]
fn both_ip_versions_take_turns() {
    let sources = |seed| {
        let options = Options { ids: vec!["ack/asked-for".into()], seed, ..Options::default() };
        let mut nic = Embedded::over(Family::Both, Config::default(), &[]).expect("a NIC");
        let result = run(&mut nic, &options, |_| ());
        let ladder = &result.cases[0].ladder;
        ladder.packets().map(|(_, wire)| wire.src.is_ipv6()).collect::<Vec<_>>()
    };
    let (first, second) = (sources(1), sources(2));
    assert!(!first.is_empty() && first.iter().all(|ipv6| *ipv6 == first[0]), "{first:?}");
    assert!(second.iter().all(|ipv6| *ipv6 != first[0]), "{second:?}");
}
