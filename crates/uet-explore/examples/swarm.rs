//! Plays the runs of a swarm: `cargo run --release -p uet-explore --example swarm -- --seeds 1..1000`.
//!
//! `--operations N` sets the operations of each endpoint, `--prints` prints packets and decisions. `--faults` plays the
//! seeds with each fault of the emulator in one endpoint, and counts the faults that a run notices.

use std::process::ExitCode;
use std::time::Instant;
use uet_conformance::parallel;
use uet_emulator::fault;
use uet_explore::swarm::{Options, run};

fn main() -> ExitCode {
    let (mut first, mut last, mut options) = (1, 100, Options::default());
    let (mut faults, mut names) = (false, Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seeds" => {
                let seeds = args.next().unwrap_or_default();
                let (from, to) = seeds.split_once("..").unwrap_or((&seeds, &seeds));
                let (Ok(from), Ok(to)) = (from.parse(), to.parse()) else {
                    eprintln!("--seeds: expected a seed or a range such as 1..1000, not {seeds:?}");
                    return ExitCode::from(2);
                };
                (first, last) = (from, to);
            }
            "--operations" => {
                options.operations = args.next().and_then(|count| count.parse().ok()).unwrap_or(1);
            }
            "--prints" => options.prints = true,
            "--faults" => faults = true,
            _ => names.push(arg),
        }
    }
    if faults {
        return try_faults(&names, first..=last, options);
    }
    let began = Instant::now();
    let (mut runs, mut packets, mut operations, mut failed, mut restarts) = (0, 0, 0, 0, 0);
    let mut failures = 0;
    let seeds: Vec<u64> = (first..=last).collect();
    parallel(
        &seeds,
        |seed| run(*seed, &options),
        |outcome| {
            runs += 1;
            packets += outcome.packets;
            operations += outcome.operations;
            failed += outcome.failed;
            restarts += outcome.restarts;
            if let Some(failure) = outcome.failure {
                failures += 1;
                println!("seed {}: {failure}", outcome.seed);
            }
        },
    );
    println!(
        "{runs} seeds, {packets} packets, {operations} operations ({failed} failed with permission), {restarts} restarts, \
         {failures} failures, {:.0} s",
        began.elapsed().as_secs_f64()
    );
    ExitCode::from(u8::from(failures > 0))
}

/// Prints for each fault the first seed that notices it.
fn try_faults(names: &[String], seeds: std::ops::RangeInclusive<u64>, options: Options) -> ExitCode {
    let faults: Vec<_> = fault::all()
        .filter(|fault| names.is_empty() || names.iter().any(|name| name == fault.name))
        .collect();
    let mut found = 0;
    let first = |fault: &&'static fault::Fault| {
        let options = Options { fault: Some(fault), ..options };
        let seed = seeds.clone().find_map(|seed| Some((seed, run(seed, &options).failure?)));
        (*fault, seed)
    };
    parallel(&faults, first, |(fault, seed)| match seed {
        Some((seed, failure)) => {
            found += 1;
            println!("{:<36} {:<10} {seed:>4}  {failure}", fault.name, fault.area().name());
        }
        None => println!("{:<36} {:<10}    -", fault.name, fault.area().name()),
    });
    println!("{found} of {} faults noticed", faults.len());
    ExitCode::SUCCESS
}
