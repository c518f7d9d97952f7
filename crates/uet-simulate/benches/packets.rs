//! Measures simulated packets per CPU second: `cargo bench -p uet-simulate`. Each transmission of a request counts as
//! one packet, together with its replies. The benchmark uses the thread's CPU time on Linux, and wall-clock time
//! elsewhere. Then it runs a larger scenario with one thread and with more in turn, and compares wall-clock times.

use std::hint::black_box;
use std::time::{Duration, Instant};
use uet_simulate::{Congestion, Control, Outcome, Scenario, Simulation, Topology, Traffic};

fn main() {
    let until = Duration::from_millis(5);
    let fat_tree = |hosts| Topology::FatTree { hosts, radix: 8 };
    let incast = |senders| Traffic::Incast { senders, size: 100_000_000 };
    let credit = Congestion { control: Control::Rccc, ..Congestion::default() };
    let scenarios = [
        (
            "one flow, one switch",
            Scenario {
                topology: Topology::Single { hosts: 2 },
                traffic: Traffic::One { size: 100_000_000 },
                until,
                ..Scenario::default()
            },
        ),
        (
            "32 to 1, one switch, 14 us",
            Scenario {
                topology: Topology::Single { hosts: 33 },
                traffic: incast(32),
                latency: Duration::from_micros(3),
                until,
                ..Scenario::default()
            },
        ),
        (
            "127 to 1, fat tree",
            Scenario { topology: fat_tree(128), traffic: incast(127), until, ..Scenario::default() },
        ),
        (
            "127 to 1, fat tree, RCCC",
            Scenario {
                topology: fat_tree(128),
                traffic: incast(127),
                congestion: credit,
                until,
                ..Scenario::default()
            },
        ),
        (
            "permutation of 128, fat tree",
            Scenario {
                topology: fat_tree(128),
                traffic: Traffic::Permutation { size: 2_000_000 },
                until,
                ..Scenario::default()
            },
        ),
    ];
    println!("| | packets | events | million packets per processor second | ns per event |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    for (name, scenario) in scenarios {
        let (seconds, outcome) = (0..3).map(|_| run(&scenario)).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        let packets = outcome.counted.new + outcome.counted.again;
        let rate = packets as f64 / seconds / 1e6;
        let event = seconds * 1e9 / outcome.events as f64;
        println!("| {name} | {packets} | {} | {rate:.2} | {event:.0} |", outcome.events);
    }
    println!("\n| | threads | speedup |");
    println!("| --- | ---: | ---: |");
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    for hosts in [128, 1024, 2048] {
        let scenario = Scenario {
            topology: Topology::fat_tree(hosts),
            traffic: Traffic::Permutation { size: 1_000_000 },
            ..Scenario::default()
        };
        for threads in (1..).map(|power| 1 << power).take_while(|threads| *threads <= cores) {
            let pair = |_| wall_clock(&scenario, 1) / wall_clock(&scenario, threads);
            let mut speedups: Vec<f64> = (0..5).map(pair).collect();
            speedups.sort_by(f64::total_cmp);
            println!("| permutation of {hosts}, fat tree | {threads} | {:.2} |", speedups[2]);
        }
    }
}

fn wall_clock(scenario: &Scenario, threads: usize) -> f64 {
    let simulation = Simulation::with_threads(black_box(scenario), threads).expect("it can be simulated");
    let started = Instant::now();
    black_box(simulation.run());
    started.elapsed().as_secs_f64()
}

fn run(scenario: &Scenario) -> (f64, Outcome) {
    let simulation = Simulation::new(black_box(scenario)).expect("it can be simulated");
    let (started, used) = (Instant::now(), processor_time());
    let outcome = simulation.run();
    let seconds = match (used, processor_time()) {
        (Some(before), Some(after)) => (after - before) as f64 * 1e-9,
        _ => started.elapsed().as_secs_f64(),
    };
    (seconds, outcome)
}

/// Returns the CPU time of this thread, in nanoseconds.
fn processor_time() -> Option<u64> {
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split_whitespace().next()?.parse().ok()
}
