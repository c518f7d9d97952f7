//! Workloads: flows that wait for each other.

use std::sync::Arc;
use std::time::Duration;
use uet_simulate::{
    Congestion, Control, Demand, FlowOutcome, FlowSizes, Graph, Job, Outcome, Pattern, Scenario, Simulation,
    Start, Topology, Traffic,
};

fn scenario(graph: Graph) -> Scenario {
    let topology = Topology::Single { hosts: graph.hosts() };
    Scenario { topology, traffic: Traffic::Graph(Arc::new(graph)), ..Scenario::default() }
}

fn run(graph: Graph) -> Outcome {
    Simulation::new(&scenario(graph)).unwrap().run()
}

fn expand(hosts: u32, jobs: &[Job], seed: u64) -> Graph {
    let mut graph = Graph::new(hosts);
    for job in jobs {
        job.add_to(&mut graph, Scenario::default().payload_rate(), seed).unwrap();
    }
    graph
}

fn end(flow: &FlowOutcome) -> Duration {
    flow.started.unwrap() + flow.completed.unwrap()
}

#[test]
fn collectives_complete_near_the_ideal() {
    let size = 8_000_000;
    for (pattern, flows, most) in [
        (Pattern::RingAllReduce { size }, 8 * 14, 1.05),
        (Pattern::AllGather { size }, 8 * 7, 1.05),
        (Pattern::ReduceScatter { size }, 8 * 7, 1.05),
        (Pattern::TreeAllReduce { size, chunks: 1 }, 14, 1.6),
        (Pattern::AllToAll { size: size / 8, open: 2 }, 56, 1.5),
    ] {
        let outcome = run(expand(8, &[Job::new("job", pattern.clone())], 1));
        let [job] = &outcome.jobs[..] else { panic!("{:?}", outcome.jobs) };
        assert_eq!(job.flows, flows);
        let slowdown = job.slowdown().unwrap();
        assert!((1.0..most).contains(&slowdown), "{pattern:?}: {slowdown}");
        assert_eq!(job.delivered, outcome.counted.delivered);
    }
}

/// Each step begins without credit, and so with a round trip. Steps do not share a link, although some hosts are nearer
/// than others.
#[test]
fn credit_costs_a_ring_one_round_trip_per_step() {
    let job = Job::new("ring", Pattern::RingAllReduce { size: 4_000_000 });
    for control in [Control::Rccc, Control::Both] {
        let scenario = Scenario {
            topology: Topology::LeafSpine { hosts: 16, leaves: 4, spines: 4 },
            congestion: Congestion { control: control.clone(), ..Congestion::default() },
            ..scenario(expand(16, std::slice::from_ref(&job), 1))
        };
        let outcome = Simulation::new(&scenario).unwrap().run();
        let job = &outcome.jobs[0];
        let lost = (job.slowdown().unwrap() - 1.0) * job.ideal.as_secs_f64() / 30.0;
        assert!(lost < scenario.base_rtt().as_secs_f64(), "{control:?}: {lost} s per step");
        assert_eq!(outcome.counted.again, 0);
    }
}

#[test]
fn the_ideal_of_small_flows_is_a_lower_bound() {
    let outcome = run(expand(8, &[Job::new("job", Pattern::AllToAll { size: 1000, open: 2 })], 1));
    let slowdown = outcome.jobs[0].slowdown().unwrap();
    assert!((1.0..1.2).contains(&slowdown), "{slowdown}");
}

#[test]
fn a_ring_step_starts_when_its_part_has_arrived() {
    let outcome = run(expand(4, &[Job::new("ring", Pattern::AllGather { size: 400_000 })], 1));
    let flow = |step: usize, rank: usize| &outcome.flows[step * 4 + rank];
    for step in 1..3 {
        for rank in 0..4 {
            let earlier = flow(step - 1, (rank + 3) % 4);
            let arrived = earlier.started.unwrap() + earlier.received.unwrap();
            // Sums of rounded times differ by a nanosecond.
            let wait = flow(step, rank).started.unwrap() - arrived;
            assert!(wait <= Duration::from_nanos(2), "step {step}, rank {rank}: {wait:?}");
        }
    }
}

#[test]
fn chunks_shorten_a_tree() {
    let completed = |chunks| {
        let job = Job::new("tree", Pattern::TreeAllReduce { size: 4_000_000, chunks });
        run(expand(8, &[job], 1)).jobs[0].completed.unwrap()
    };
    assert!(completed(8) < completed(1).mul_f64(0.8), "{:?} {:?}", completed(8), completed(1));
}

#[test]
fn staged_all_to_all_keeps_its_limit_of_open_flows() {
    let job = Job { rounds: 2, ..Job::new("moe", Pattern::AllToAll { size: 50_000, open: 3 }) };
    let outcome = run(expand(8, &[job], 1));
    assert_eq!(outcome.flows.len(), 2 * 8 * 7);
    let mut most = 0;
    for flow in &outcome.flows {
        let open = outcome.flows.iter().filter(|other| {
            other.from == flow.from
                && other.started <= flow.started
                && end(other) > flow.started.unwrap() + Duration::from_nanos(2)
        });
        most = most.max(open.count());
    }
    assert_eq!(most, 3);
    // A rank starts the second round when it has sent and received everything of the first.
    let arrived = |flow: &FlowOutcome| flow.started.unwrap() + flow.received.unwrap();
    let (first, second) = outcome.flows.split_at(56);
    for host in 0..8 {
        let last = first.iter().filter(|flow| flow.to == host).map(arrived);
        let last = last.chain(first.iter().filter(|flow| flow.from == host).map(end)).max().unwrap();
        let start =
            second.iter().filter(|flow| flow.from == host).filter_map(|flow| flow.started).min().unwrap();
        assert!(start - last <= Duration::from_nanos(2), "host {host}: {last:?} {start:?}");
    }
}

#[test]
fn computation_delays_a_round() {
    let gap = Duration::from_micros(30);
    let straggler = Some((2, Duration::from_micros(200)));
    let pattern = Pattern::ReduceScatter { size: 40_000 };
    let job = Job { gap, straggler, start: gap, ..Job::new("late", pattern) };
    let flows = run(expand(4, &[job], 1)).flows;
    assert_eq!(flows[0].started, Some(gap * 2));
    assert_eq!(flows[2].started, Some(gap * 2 + Duration::from_micros(200)), "the straggler");
}

#[test]
fn random_flows_load_the_links_as_stated() {
    let sizes: FlowSizes = "1000 0\n100000 1\n".parse().unwrap();
    let span = Duration::from_millis(2);
    let job = |seed| {
        expand(16, &[Job::new("mix", Pattern::Random { sizes: sizes.clone(), load: 0.4, span })], seed)
    };
    let graph = job(1);
    let bytes: u64 = graph.demands().iter().map(|demand| demand.size).sum();
    let stated = 0.4 * 16.0 * Scenario::default().payload_rate() / 8.0 * span.as_secs_f64();
    assert!((0.9..1.1).contains(&(bytes as f64 / stated)), "{bytes} {stated}");
    assert_eq!(graph, job(1));
    assert_ne!(graph, job(2));
    let outcome = run(graph);
    assert!(outcome.flows.iter().all(|flow| flow.completed.is_some()));
}

#[test]
fn storage_reads_blocks_and_copies_written_ones() {
    let pattern = |reads| Pattern::Storage {
        servers: vec![0, 1, 2],
        sizes: FlowSizes::constant(65_536),
        reads,
        copies: 3,
        operations: 10,
        open: 2,
    };
    let reads = run(expand(5, &[Job::new("reads", pattern(1.0))], 1));
    assert_eq!(reads.flows.len(), 2 * 10 * 2, "a request and a block");
    assert_eq!(reads.counted.delivered, 20 * (256 + 65_536));
    let writes = run(expand(5, &[Job::new("writes", pattern(0.0))], 1));
    assert_eq!(writes.flows.len(), 2 * 10 * 4, "three copies and a reply");
    assert!(writes.flows.iter().all(|flow| flow.completed.is_some()));
}

#[test]
fn each_class_has_a_congestion_context_of_its_own() {
    let differ = |class| {
        let mut graph = Graph::new(3);
        // A second sender makes the windows of the first one move.
        for (from, class, start) in [(0, 0, 0), (0, class, 20), (1, 0, 0)] {
            let start = Start::At(Duration::from_micros(start));
            graph.add_flow(Demand { class, start, ..Demand::new(from, 2, 1_000_000) }).unwrap();
        }
        let samples = run(graph).series.samples;
        samples.iter().any(|sample| {
            let [a, b, ..] = &sample.flows[..] else { panic!() };
            a.window.is_some() && b.window.is_some() && a.window != b.window
        })
    };
    assert!(!differ(0));
    assert!(differ(1));
}

#[test]
fn goal_schedules_run() {
    let text = "num_ranks 2\nrank 0 {\na: calc 5000\nb: send 100000b to 1 tag 7\nb requires a\nc: recv 1b from 1\n}\n\
                rank 1 {\na: recv 100000b from 0 tag 7\nb: calc 2000\nb requires a\nc: send 1b to 0\nc requires b\n}\n";
    let outcome = run(Graph::from_goal(text).unwrap());
    let [first, second] = &outcome.flows[..] else { panic!() };
    assert_eq!(first.started, Some(Duration::from_nanos(5000)));
    let arrived = first.started.unwrap() + first.received.unwrap();
    let wait = second.started.unwrap() - arrived;
    assert!((2000..=2002).contains(&wait.as_nanos()), "{wait:?}");
}

#[test]
fn link_use_counts_each_byte_on_the_wire() {
    let mut graph = Graph::new(4);
    graph.add_flow(Demand::new(0, 3, 4096 * 100)).unwrap();
    let topology = Topology::LeafSpine { hosts: 4, leaves: 2, spines: 1 };
    let outcome = Simulation::new(&Scenario { topology, ..scenario(graph) }).unwrap().run();
    assert_eq!((outcome.last_hop_links.links, outcome.fabric_links.links), (4, 4));
    // Requests cross two links between switches and one to a host; ACKs come back the same way.
    assert_eq!(outcome.fabric_links.bytes, 2 * outcome.last_hop_links.bytes);
    assert!(outcome.last_hop_links.bytes > 100 * 4096);
    let last = outcome.series.samples.last().unwrap();
    assert!(last.last_hop_carried <= outcome.last_hop_links.bytes && last.fabric_carried > 0);
}

#[test]
fn impossible_jobs_are_refused() {
    let refused = |job: Job| job.add_to(&mut Graph::new(4), 1e11, 1).unwrap_err().to_string();
    let ring = Pattern::RingAllReduce { size: 1 };
    assert_eq!(
        refused(Job { hosts: vec![0, 0], ..Job::new("a", ring.clone()) }),
        "hosts: a job names each host once"
    );
    assert_eq!(
        refused(Job { hosts: vec![0, 4], ..Job::new("a", ring.clone()) }),
        "hosts: there is no host 4: the network has 4 hosts"
    );
    assert_eq!(refused(Job { rounds: 0, ..Job::new("a", ring) }), "rounds: must be from 1 to 1,000,000");
    let tree = Pattern::TreeAllReduce { size: 1, chunks: 0 };
    assert_eq!(refused(Job::new("a", tree)), "chunks: must be from 1 to 1,000,000");
    let random = |load, span| {
        let sizes = FlowSizes::constant(100);
        refused(Job::new("a", Pattern::Random { sizes, load, span: Duration::from_secs(span) }))
    };
    assert_eq!(random(0.9, 3000), "load: this load and this time make more than 5,000,000 flows");
    assert_eq!(random(0.0, 1), "load: must be above 0, and at most 1");
    assert_eq!(random(f64::NAN, 1), "load: must be above 0, and at most 1");
    assert_eq!(random(0.9, 0), "span: must be above 0");
    let hosts = scenario(Graph::new(70_000));
    assert!(Simulation::new(&hosts).is_err());
}
