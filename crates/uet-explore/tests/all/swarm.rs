//! Some runs of the swarm break no property, and the swarm notices faults.

use uet_conformance::parallel;
use uet_explore::swarm::{Options, run};

/// A short run.
const SHORT: Options = Options { operations: 40, fault: None, prints: false };

#[test]
fn short_runs_break_nothing() {
    let seeds: Vec<u64> = (1..=if cfg!(debug_assertions) { 6 } else { 64 }).collect();
    let mut packets = 0;
    parallel(
        &seeds,
        |seed| run(*seed, &SHORT),
        |outcome| {
            packets += outcome.packets;
            assert_eq!(outcome.failure, None, "seed {}", outcome.seed);
            assert!(outcome.operations > 0, "seed {}", outcome.seed);
        },
    );
    println!("{packets} packets");
}

#[test]
fn equal_seeds_give_equal_runs() {
    let all = |seed| format!("{:?}", run(seed, &SHORT));
    assert_eq!(all(7), all(7));
    assert_ne!(all(7), all(8));
}
