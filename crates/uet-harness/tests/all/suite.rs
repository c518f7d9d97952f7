//! The embedded NIC passes every rule of the suite. It supports everything, so no rule is skipped. `tools/mutants
//! suite` breaks the model and expects failures here.

use crate::around::{Changes, Device};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use uet_conformance::{
    Before, Dut, EXTERNAL_INSTANCES, Expand, Instance, Options, RULES, Verdict, run, run_instance,
};
use uet_control::{CallError, ErrorCode, Link, Op, PostKind, Refusal};
use uet_emulator::Config;
use uet_emulator::config::Congestion;
use uet_harness::dut::{Embedded, Family};
use uet_wire::Version;

fn passes(config: Config) {
    passes_over(Family::V4, config, 1);
}

fn passes_over(family: Family, config: Config, seed: u64) {
    passes_with(family, config, Options { seed, ..Options::default() });
}

fn passes_with(family: Family, config: Config, options: Options) {
    // All instances take a minute in a debug build.
    let max_instances = cfg!(debug_assertions).then_some(1);
    let options = Options { fail_fast: true, max_instances, ..options };
    let result = run(&mut Embedded::over(family, config, &[]).expect("a NIC"), &options, |_| ());
    let wrong = result.rules.iter().filter(|rule| rule.verdict != Verdict::Pass);
    let wrong: Vec<_> =
        wrong.map(|rule| format!("{} {}: {}", rule.id, rule.verdict.name(), rule.reason)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(result.count(Verdict::Pass) > 600, "{} rules pass", result.count(Verdict::Pass));
}

#[test]
fn the_nic_that_is_built_in_passes_the_suite() {
    passes(Config::default());
}

/// As `uet run --expand full`.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without --release")]
fn it_passes_every_combination_of_values() {
    let options = Options { expand: Expand::Full, ..Options::default() };
    passes_with(Family::Both, Config::default(), options);
}

#[test]
fn so_it_does_on_receiver_credit() {
    passes(Config { congestion: Congestion::Both, ..Config::default() });
}

#[test]
fn older_versions_have_the_same_rules() {
    for version in [Version::V1_0_1, Version::V1_0_2] {
        let config = Config { version, ..Config::default() };
        let options = Options { spec: version.spec(), max_instances: Some(1), ..Options::default() };
        let result = run(&mut Embedded::new(config).unwrap(), &options, |_| ());
        assert_eq!((result.specification.as_str(), result.exit_code()), (version.name(), 0));
        assert_eq!(result.packets.findings, []);
        let others = result.rules.iter().filter(|rule| rule.verdict != Verdict::Pass);
        let others: Vec<_> = others.map(|rule| (rule.verdict, rule.id.as_str())).collect();
        assert_eq!(others, []);
    }
}

#[test]
fn it_passes_over_ipv6() {
    passes_over(Family::V6, Config::default(), 1);
    passes_over(Family::V6, Config { congestion: Congestion::Both, ..Config::default() }, 1);
}

/// Two consecutive seeds run each rule over both versions.
#[test]
fn it_passes_over_both_ip_versions() {
    passes_over(Family::Both, Config::default(), 1);
    passes_over(Family::Both, Config::default(), 2);
}

#[test]
fn both_ip_versions_take_turns() {
    let sources = |seed| {
        let mut nic = Embedded::over(Family::Both, Config::default(), &[]).expect("a NIC");
        let instance = Instance::parse(RULES, "ack/requested").unwrap();
        let result = run_instance(&mut nic, &instance, Version::default().spec(), seed, 1.0);
        result.ladder.packets().map(|(_, wire)| wire.src.is_ipv6()).collect::<Vec<_>>()
    };
    let (first, second) = (sources(1), sources(2));
    assert!(!first.is_empty() && first.iter().all(|ipv6| *ipv6 == first[0]), "{first:?}");
    assert!(second.iter().all(|ipv6| *ipv6 != first[0]), "{second:?}");
}

/// The NIC as if it were outside of this process.
struct External;

impl Changes for External {}

/// Runs the suite on an external device, and returns its instances in order.
fn instances_of_external_device(seed: u64) -> Vec<String> {
    let mut device = Device::new(External);
    let Link::Inside { addr } = device.welcome.link else { panic!("{:?}", device.welcome.link) };
    device.welcome.link = Link::Udp { addr, port: 4793 };
    let instances = Arc::new(Mutex::new(Vec::new()));
    let before = Arc::clone(&instances);
    let before = Before::new(move |instance| before.lock().unwrap().push(instance.to_string()));
    let result = run(&mut device, &Options { seed, before, ..Options::default() }, |_| ());
    assert!(result.rules.iter().all(|rule| !rule.verdict.is_failure()));
    let instances = instances.lock().unwrap();
    instances.clone()
}

#[test]
fn seed_chooses_instances_of_external_device() {
    let (first, second) = (instances_of_external_device(1), instances_of_external_device(2));
    for instances in [&first, &second] {
        let rules: BTreeSet<&str> = instances.iter().filter_map(|id| id.split('[').next()).collect();
        assert_eq!(rules.len(), RULES.iter().count());
        // Some run instead of instances that the NIC cannot play.
        assert!(instances.len() >= rules.len().max(EXTERNAL_INSTANCES));
        for value in ["mode=rud", "mode=rod", "carrier=write", "carrier=send", "start=wrap"] {
            let with = instances.iter().filter(|id| id.contains(value)).count();
            assert!(with >= 50, "{with} instances with {value}");
        }
    }
    assert_ne!(first, second);
    assert_eq!(first, instances_of_external_device(1));
}

/// Sends, but does not write.
struct OnlySends;

impl Changes for OnlySends {
    fn ask(&mut self, nic: &mut Embedded, op: Op) -> Result<Map<String, Value>, CallError> {
        match op {
            Op::Post(post) if post.kind == PostKind::Write => {
                let refusal = Refusal { code: ErrorCode::Unsupported, message: "no writes".into() };
                Err(CallError::Refused { op: "post", refusal })
            }
            op => nic.ask(op),
        }
    }
}

/// The first instance of most rules is a write.
#[test]
fn other_instance_runs_instead_of_impossible_one() {
    let mut device = Device::new(OnlySends);
    let options = Options { groups: vec!["retransmit".into()], max_instances: Some(1), ..Options::default() };
    let result = run(&mut device, &options, |_| ());
    let passes = |id: &str| result.rules.iter().any(|rule| rule.id == id && rule.verdict == Verdict::Pass);
    assert!(passes("retransmit/timeout") && passes("retransmit/high-sack-base"), "{:?}", result.rules);
    let skipped = result.rules.iter().filter(|rule| rule.verdict == Verdict::Skipped).count();
    assert_eq!(skipped, 0);
}
