//! Explores scenarios: `uet-explore [--large] [--states N] [NAME...]`, or walks through all of them with each fault of the
//! emulator: `uet-explore --faults [--walks N] [FAULT...]`.

use std::process::ExitCode;
use uet_conformance::parallel;
use uet_emulator::fault::{self, Fault};
use uet_explore::{Scenario, explore, scenarios, walk};

fn main() -> ExitCode {
    let (mut large, mut limit, mut names) = (false, 5_000_000, Vec::new());
    let (mut faults, mut walks) = (false, 200);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--large" => large = true,
            "--faults" => faults = true,
            "--walks" => walks = args.next().and_then(|count| count.parse().ok()).unwrap_or(walks),
            "--states" => limit = args.next().and_then(|count| count.parse().ok()).unwrap_or(limit),
            _ => names.push(arg),
        }
    }
    let known = |name: &String| match faults {
        true => fault::all().any(|fault| fault.name == name),
        false => scenarios::find(name).is_some(),
    };
    if let Some(name) = names.iter().find(|name| !known(name)) {
        let what = if faults { "fault" } else { "scenario" };
        eprintln!("uet-explore: there is no {what} '{name}'; docs/exploration.md lists the options");
        return ExitCode::from(2);
    }
    if faults {
        return try_faults(&names, walks);
    }
    println!(
        "{:<26} {:>9} {:>10} {:>5} {:>6} {:>8}",
        "scenario", "states", "choices", "depth", "rests", "seconds"
    );
    let named = |scenario: &&Scenario| names.is_empty() || names.iter().any(|name| name == scenario.name);
    let chosen: Vec<&Scenario> = scenarios::all().into_iter().filter(named).collect();
    let search = |scenario: &&'static Scenario| {
        let budget = if large { scenario.large } else { scenario.small };
        explore(scenario, budget, limit)
    };
    let mut failed = false;
    parallel(&chosen, search, |report| {
        println!("{report}");
        failed |= report.violation.is_some();
    });
    ExitCode::from(u8::from(failed))
}

/// Prints for each fault the first scenario that finds it, at the initiator or at the target.
fn try_faults(names: &[String], walks: u64) -> ExitCode {
    // A walk without any fault breaks nothing.
    let mut sound = Vec::new();
    for scenario in scenarios::all() {
        match walk(scenario, [&[], &[]], scenario.large, walks) {
            None => sound.push(scenario),
            Some((seed, violation)) => println!("without a fault, {} {seed}: {violation}", scenario.name),
        }
    }
    let named = |fault: &&Fault| names.is_empty() || names.iter().any(|name| name == fault.name);
    let faults: Vec<&'static Fault> = fault::all().filter(named).collect();
    let try_one = |fault: &&'static Fault| {
        let faulty = [*fault];
        let mut tries = sound.iter().flat_map(|scenario| [(*scenario, 0), (*scenario, 1)]);
        let first = tries.find_map(|(scenario, side)| {
            let at = if side == 0 { [&faulty[..], &[]] } else { [&[][..], &faulty[..]] };
            let found = walk(scenario, at, scenario.large, walks)?;
            Some((scenario.name, side, found))
        });
        (fault.name, first)
    };
    let mut found = 0;
    parallel(&faults, try_one, |(name, first)| match first {
        Some((scenario, side, (seed, violation))) => {
            found += 1;
            println!("{name:<36} {} {scenario:<22} {seed:>4}  {}", ["A", "B"][side], violation.what);
        }
        None => println!("{name:<36} - not found"),
    });
    println!("{found} of {} faults found", faults.len());
    ExitCode::SUCCESS
}
