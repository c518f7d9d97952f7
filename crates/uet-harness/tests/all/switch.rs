//! The tester of networks against the software switch: right, and wrong in each way.

use std::collections::BTreeSet;
use uet_conformance::Verdict;
use uet_harness::switch::{
    EmbeddedSwitch, Statement, SwitchFault, SwitchOptions, SwitchResult, TrimLength, learn, run,
};

fn tested(statement: &Statement, fault: Option<SwitchFault>, of: &Statement) -> SwitchResult {
    let mut network = EmbeddedSwitch::new(of.clone(), fault, 7);
    run(&mut network, statement, &SwitchOptions { seed: 7, ..SwitchOptions::default() }, |_| ()).unwrap()
}

fn broken(result: &SwitchResult) -> BTreeSet<&str> {
    let violations = result.rules.iter().flat_map(|rule| &rule.violations);
    violations.map(|violation| violation.requirement.as_str()).collect()
}

#[test]
fn correct_switches_pass() {
    let embedded = Statement::embedded();
    let mut stale = embedded.clone();
    if let Some(trim) = &mut stale.trim {
        (trim.length, trim.size) = (TrimLength::Stale, 256);
    }
    let mut ipv6 = embedded.clone();
    for (number, port) in (1..).zip(&mut ipv6.ports) {
        port.address = [0xfd00, 0, 0, 0, 0, 0, 0, number].into();
    }
    ipv6.routes[0].to = [0xfd00, 0, 0, 0, 0, 0, 0, 99].into();
    let mut jumbo = embedded.clone();
    (jumbo.mtu, jumbo.hops) = (4300, Some(3));
    for statement in [embedded, stale, ipv6, jumbo] {
        let result = tested(&statement, None, &statement);
        assert_eq!(result.count(Verdict::Pass), result.rules.len(), "{:#?}", result.rules);
        let value = |name: &str| result.measurements.iter().find(|one| one.name == name).unwrap().value;
        assert!(value("median time from trim to retransmission") > 0.0);
        assert_eq!(value("most senders without an unannounced loss"), 3.0);
        let onset = value("lowest queue with a mark");
        assert!((10_000.0..80_000.0).contains(&onset), "{onset}");
    }
}

#[test]
fn each_fault_breaks_its_requirement() {
    let statement = Statement::embedded();
    let mut wrong = Vec::new();
    for fault in SwitchFault::ALL {
        let result = tested(&statement, Some(*fault), &statement);
        let mut broken = broken(&result);
        if *fault == SwitchFault::LosesPackets {
            // Also under congestion.
            broken.retain(|id| !["NET-LOSS-002", "NET-PRIO-001"].contains(id));
        }
        if broken != [fault.requirement().id].into() {
            wrong.push(format!("{}: {broken:?}", fault.name()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_statement_is_learned_from_frames() {
    let mut wanted = Statement::embedded();
    wanted.ports.truncate(3);
    wanted.routes.clear();
    wanted.ports[2].last_hop = Some(true);
    wanted.trim.as_mut().unwrap().length = TrimLength::Stale;
    let mut known = wanted.clone();
    (known.hops, known.trim, known.mark) = (None, None, None);
    known.ports.iter_mut().for_each(|port| port.rate_mbps = None);
    known.dscp.trimmed_last_hop = 33;

    let mut network = EmbeddedSwitch::new(wanted.clone(), None, 7);
    let (learned, unknown) = learn(&mut network, &known, &SwitchOptions::default()).unwrap();
    assert_eq!(unknown, Vec::<String>::new());
    assert_eq!((learned.hops, learned.dscp), (wanted.hops, wanted.dscp));
    let (trim, expected) = (learned.trim.unwrap(), wanted.trim.unwrap());
    assert_eq!((trim.size, trim.length), (expected.size, expected.length));
    assert!(trim.above.abs_diff(expected.above) < 10_000, "{trim:?}");
    let rate = learned.ports[1].rate_mbps.unwrap();
    assert!((90_000..=110_000).contains(&rate), "{rate}");
    let mark = learned.mark.unwrap();
    assert!(mark.from < 60_000 && mark.to > 20_000, "{mark:?}");
}

#[test]
fn a_load_that_congests_nothing_is_inconclusive() {
    // One sender at the rate of its receiver.
    let mut statement = Statement::embedded();
    statement.ports.truncate(2);
    statement.routes.clear();
    let result = tested(&statement, None, &statement);
    let of = |id: &str| result.rules.iter().find(|rule| rule.id == id).unwrap();
    assert_eq!(of("forward/bytes").verdict, Verdict::Pass);
    let trims = of("trim/data");
    assert_eq!(trims.verdict, Verdict::Inconclusive);
    assert!(trims.reason.contains("Mbit/s to a port of 100000 Mbit/s"), "{}", trims.reason);
    assert_eq!(of("ecn/onset").verdict, Verdict::Inconclusive);
    assert_eq!(of("spread/paths").verdict, Verdict::Skipped);
}

#[test]
fn a_switch_that_is_configured_otherwise_fails() {
    let statement = Statement::embedded();
    let mut other = statement.clone();
    other.mark.as_mut().unwrap().from = 1_000;
    other.mark.as_mut().unwrap().to = 2_000;
    assert_eq!(broken(&tested(&statement, None, &other)), ["NET-ECN-003"].into());
    // It queues what the statement says it trims.
    let mut queues = statement.clone();
    queues.trim = None;
    let result = tested(&statement, None, &queues);
    assert_eq!(result.count(Verdict::Fail) + result.count(Verdict::Inconclusive), 6, "{result:#?}");
}
