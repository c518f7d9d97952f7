//! The aims of congestion control, in scenarios that are small enough for each test run. `tools/congestion` measures
//! the large ones.

use std::time::Duration;
use uet_model::cc::PathMode;
use uet_simulate::{
    Congestion, Control, Fault, Matrix, Outcome, Part, Scenario, Simulation, Steady, Switching, Topology,
    Traffic,
};

fn run(scenario: &Scenario) -> Outcome {
    Simulation::new(scenario).unwrap().run()
}

/// Returns an incast across a fat tree, in which no source can finish in time.
fn incast(senders: u32, control: Control, until: u64) -> Scenario {
    Scenario {
        topology: Topology::FatTree { hosts: 128, radix: 8 },
        traffic: Traffic::Incast { senders, size: 100_000_000 },
        congestion: Congestion { control, ..Congestion::default() },
        until: Duration::from_micros(until),
        ..Scenario::default()
    }
}

fn steady(scenario: &Scenario) -> Steady {
    run(scenario).steady.expect("it lasts beyond the warm-up")
}

#[test]
fn a_flow_that_is_alone_takes_3_percent_more_than_the_ideal_at_most() {
    for control in [Control::None, Control::Nscc, Control::Rccc, Control::Both] {
        let scenario = Scenario {
            topology: Topology::fat_tree(128),
            congestion: Congestion { control: control.clone(), ..Congestion::default() },
            ..Scenario::default()
        };
        let outcome = run(&scenario);
        let flow = outcome.flows[0];
        let slower = flow.completed.unwrap().as_secs_f64() / flow.ideal.as_secs_f64();
        assert!((1.0..1.03).contains(&slower), "{control:?}: {slower}");
        assert_eq!((outcome.counted.new, outcome.counted.again), (489, 0));
        assert_eq!(flow.delivered, 2_000_000);
    }
}

/// Switches trim some packets hundreds of times. No source gives up.
#[test]
fn all_flows_of_a_large_incast_end() {
    let outcome = run(&Scenario {
        topology: Topology::Single { hosts: 401 },
        traffic: Traffic::Incast { senders: 400, size: 100_000 },
        ..Scenario::default()
    });
    assert_eq!(outcome.flows.iter().filter(|flow| flow.completed.is_none()).count(), 0);
}

/// A PROBE takes a small part of the round trip of a full packet on these links.
#[test]
fn short_links_do_not_keep_the_window_below_the_pipe() {
    for (latency, rate) in [(100, 100_000_000_000), (200, 100_000_000_000), (500, 25_000_000_000)] {
        let scenario = Scenario {
            topology: Topology::LeafSpine { hosts: 16, leaves: 4, spines: 4 },
            latency: Duration::from_nanos(latency),
            rate,
            ..Scenario::default()
        };
        let flow = run(&scenario).flows[0];
        let slower = flow.completed.unwrap().as_secs_f64() / flow.ideal.as_secs_f64();
        assert!((1.0..1.1).contains(&slower), "{latency} ns, {rate} b/s: {slower}");
    }
}

#[test]
fn no_flow_beats_the_ideal() {
    for size in [1, 100, 4096, 4097, 10_000, 300_000] {
        for topology in [Topology::Single { hosts: 2 }, Topology::fat_tree(128)] {
            let flow =
                run(&Scenario { topology, traffic: Traffic::One { size }, ..Scenario::default() }).flows[0];
            let slower = flow.completed.unwrap().as_secs_f64() / flow.ideal.as_secs_f64();
            assert!((1.0..1.1).contains(&slower), "{size} bytes, {topology:?}: {slower}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_outcome() {
    let scenario = |seed| Scenario {
        seed,
        topology: Topology::LeafSpine { hosts: 8, leaves: 2, spines: 2 },
        traffic: Traffic::Permutation { size: 200_000 },
        ..Scenario::default()
    };
    assert_eq!(run(&scenario(5)), run(&scenario(5)));
    assert_ne!(run(&scenario(5)), run(&scenario(6)));
}

#[test]
fn nscc_fills_the_link_and_shares_it() {
    let steady = steady(&incast(16, Control::Nscc, 3_000));
    assert!(steady.share > 0.98, "{}", steady.share);
    assert!(steady.jain > 0.9, "{}", steady.jain);
    assert!(steady.counted.again_per_arrival() < 0.05, "{}", steady.counted.again_per_arrival());
}

#[test]
fn a_short_period_is_no_steady_state() {
    // The warm-up ends at 50 round trips of 14.06 us.
    assert_eq!(run(&incast(16, Control::Nscc, 770)).steady, None);
    assert!(run(&incast(16, Control::Nscc, 780)).steady.is_some());
}

#[test]
fn nscc_retransmits_no_more_than_windows_of_a_packet_make_it() {
    let scenario = Scenario {
        topology: Topology::FatTree { hosts: 54, radix: 6 },
        latency: Duration::from_nanos(300),
        warm_up: Some(Duration::from_micros(800)),
        ..incast(53, Control::Nscc, 1_300)
    };
    let estimate = scenario.retransmission_estimate().expect("53 packets do not fit");
    let measured = steady(&scenario).counted.again_per_arrival();
    assert!((0.8 * estimate..1.1 * estimate).contains(&measured), "{measured}, about {estimate}");
    assert_eq!(incast(127, Control::Both, 1).retransmission_estimate(), None, "sources wait for credit");
}

#[test]
fn credit_fills_the_link_shares_it_and_has_nothing_trimmed() {
    for control in [Control::Rccc, Control::Both] {
        for senders in [4, 100] {
            let steady = steady(&incast(senders, control.clone(), 2_000));
            assert!(steady.share > 0.95, "{control:?} {senders}: {}", steady.share);
            assert!(steady.jain > 0.95, "{control:?} {senders}: {}", steady.jain);
            assert_eq!(steady.counted.trimmed, 0, "{control:?} {senders}");
        }
    }
}

#[test]
fn a_permutation_across_a_fat_tree_fills_it() {
    for paths in [PathMode::Recycling, PathMode::Bitmap] {
        let scenario = Scenario {
            topology: Topology::FatTree { hosts: 54, radix: 6 },
            traffic: Traffic::Permutation { size: 100_000_000 },
            congestion: Congestion { paths, ..Congestion::default() },
            warm_up: Some(Duration::from_micros(100)),
            until: Duration::from_micros(300),
            ..Scenario::default()
        };
        let steady = steady(&scenario);
        assert!(steady.share > 0.9, "{paths:?}: {}", steady.share);
    }
}

#[test]
fn a_failed_spine_is_got_over() {
    let failed = Duration::from_micros(100);
    let scenario = Scenario {
        topology: Topology::LeafSpine { hosts: 24, leaves: 4, spines: 8 },
        traffic: Traffic::Permutation { size: 3_000_000 },
        congestion: Congestion {
            paths: PathMode::Bitmap,
            path_values: Some(32),
            timeout_rest: Some(250),
            ..Congestion::default()
        },
        fast_loss: 16,
        faults: vec![Fault { part: Part::Spine(1), at: failed, until: None, percent: 0 }],
        ..Scenario::default()
    };
    let outcome = run(&scenario);
    assert!(outcome.counted.lost > 0, "it was used");
    assert!(outcome.flows.iter().all(|flow| flow.completed.is_some()));
    let recovery = outcome.recovery.unwrap();
    let back = recovery.back.expect("it gets over it") - recovery.noticed.expect("losses were noticed");
    assert!(back < scenario.base_rtt() * 5, "{back:?}");
}

#[test]
fn what_is_dropped_without_trimming_comes_again() {
    let scenario = Scenario {
        topology: Topology::Single { hosts: 5 },
        traffic: Traffic::Incast { senders: 4, size: 400_000 },
        switching: Switching { trimming: false, drop_at: 1.0, ..Switching::default() },
        ..Scenario::default()
    };
    let Outcome { counted, flows, .. } = run(&scenario);
    assert!(counted.dropped > 0 && counted.trimmed == 0);
    assert_eq!(counted.delivered, 1_600_000, "each byte once");
    assert!(flows.iter().all(|flow| flow.completed.is_some()));
}

#[test]
fn triggers_start_flows_when_others_are_done() {
    let text = "Nodes 4\nConnections 4\nTriggers 2\n0->1 start 0 size 40000 send_done_trigger 1\n\
                1->2 trigger 1 size 40000 recv_done_trigger 2\n2->3 start 0 size 40000 recv_done_trigger 2\n\
                3->0 trigger 2 size 40000\ntrigger id 1 oneshot\ntrigger id 2 barrier count 2\n";
    let matrix: Matrix = text.parse().unwrap();
    let scenario = Scenario {
        topology: Topology::Single { hosts: 4 },
        traffic: Traffic::Matrix(matrix),
        ..Scenario::default()
    };
    let flows = run(&scenario).flows;
    let end = |flow: usize| flows[flow].started.unwrap() + flows[flow].completed.unwrap();
    assert_eq!(flows[1].started, Some(end(0)), "oneshot");
    assert!(
        flows[3].started.unwrap() > end(0) && flows[3].started.unwrap() < end(1),
        "the second to receive pulls"
    );
}

#[test]
fn memory_grows_with_flows_and_not_with_packets() {
    let most = |size| {
        let scenario = Scenario { traffic: Traffic::One { size }, ..Scenario::default() };
        let outcome = run(&scenario);
        (outcome.most_packets, outcome.series.samples.len() <= 4096)
    };
    let (short, _) = most(1_000_000);
    let (long, bounded) = most(10_000_000);
    assert!(long <= short + 2 && bounded, "{short} {long}");
}

#[test]
fn a_scenario_that_cannot_be_is_refused() {
    let refused = |scenario: Scenario| match Simulation::new(&scenario) {
        Err(error) => error.to_string(),
        Ok(_) => "taken".into(),
    };
    let default = Scenario::default;
    let leaves = Topology::LeafSpine { hosts: 10, leaves: 4, spines: 2 };
    assert_eq!(
        refused(Scenario { topology: leaves, ..default() }),
        "leaves: 10 hosts do not divide evenly among 4 leaves"
    );
    assert_eq!(refused(Scenario { mtu: 1500, ..default() }), "mtu: must be 1024, 2048, 4096 or 8192");
    assert_eq!(
        refused(Scenario { base_rtt: Some(Duration::ZERO), ..default() }),
        "base_rtt: must be from 1 ns to 10 s"
    );
    assert_eq!(
        refused(Scenario { base_rtt: Some(Duration::from_nanos(100)), ..default() }),
        "base_rtt: at this rate, the window of 1.5 BDP must be from a full packet to 2^40 bytes"
    );
    assert_eq!(
        refused(Scenario { until: Duration::ZERO, ..default() }),
        "until: must be above 0, and at most 1 h"
    );
    let rto = |rto| refused(Scenario { rto: Some(rto), ..default() });
    let shortest = default().base_rtt();
    assert_eq!(rto(shortest), "taken");
    assert_eq!(
        rto(shortest - Duration::from_nanos(1)),
        format!("rto: must be at least {} ns, a round trip without queues", shortest.as_nanos())
    );
    let second = Duration::from_secs(1);
    assert_eq!(refused(Scenario { warm_up: Some(second), ..default() }), "warm_up: must be less than until");
    let fault = Fault { part: Part::Spine(3), at: Duration::ZERO, until: None, percent: 0 };
    assert_eq!(
        refused(Scenario { faults: vec![fault], ..default() }),
        "fail: there is no spine 3: the fabric is a single switch"
    );
    let matrix = "Nodes 8\n0->7 start 0 size 1\n".parse().unwrap();
    assert_eq!(
        refused(Scenario { traffic: Traffic::Matrix(matrix), ..default() }),
        "hosts: the connection matrix has 8 nodes, the topology 2"
    );
}

#[test]
fn a_slowed_link_carries_its_share_until_the_repair() {
    let slow = |at: Duration, until: Option<Duration>| Fault { part: Part::Host(1), at, until, percent: 25 };
    let goodput = |faults: &[Fault]| {
        let scenario = Scenario {
            traffic: Traffic::One { size: 4_000_000 },
            faults: faults.to_vec(),
            ..Scenario::default()
        };
        let outcome = run(&scenario);
        assert_eq!(outcome.counted.lost, 0, "slow is not failed");
        4_000_000.0 * 8.0 / outcome.flows[0].completed.unwrap().as_secs_f64() / scenario.payload_rate()
    };
    let (start, middle) = (Duration::ZERO, Duration::from_micros(50));
    let always = goodput(&[slow(start, None)]);
    assert!((0.23..0.26).contains(&always), "{always}");
    let repaired = goodput(&[slow(start, Some(middle))]);
    assert!((0.7..1.0).contains(&repaired), "{repaired}");
    // The second fault begins where the first one ends.
    assert_eq!(goodput(&[slow(middle, None), slow(start, Some(middle))]), always);
}
