//! Explores scenarios: `uet-explore [--large] [--states N] [NAME...]`, or walks through all of them with each fault of the
//! emulator: `uet-explore --faults [--walks N] [FAULT...]`.

use std::process::ExitCode;
use uet_emulator::fault;
use uet_explore::{explore, scenarios, walk};

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
    if faults {
        return try_faults(&names, walks);
    }
    println!(
        "{:<26} {:>9} {:>10} {:>5} {:>6} {:>8}",
        "scenario", "states", "choices", "depth", "rests", "seconds"
    );
    let mut failed = false;
    for scenario in scenarios::ALL {
        if !names.is_empty() && !names.iter().any(|name| name == scenario.name) {
            continue;
        }
        let budget = if large { scenario.large } else { scenario.small };
        let report = explore(scenario, || scenarios::endpoints(scenario), budget, limit);
        println!("{report}");
        failed |= report.violation.is_some();
    }
    ExitCode::from(u8::from(failed))
}

/// Prints for each fault the first scenario that finds it, at the initiator or at the target.
fn try_faults(names: &[String], walks: u64) -> ExitCode {
    // A walk without any fault breaks nothing.
    let mut sound = Vec::new();
    for scenario in scenarios::ALL.iter().filter(|scenario| !scenario.may_fail) {
        match walk(scenario, || scenarios::nics(scenario, [&[], &[]]), scenario.large, walks) {
            None => sound.push(scenario),
            Some((seed, violation)) => println!("without a fault, {} {seed}: {violation}", scenario.name),
        }
    }
    let (mut found, mut all) = (0, 0);
    for fault in fault::all().filter(|fault| names.is_empty() || names.iter().any(|name| name == fault.name))
    {
        let faulty = [fault];
        let mut tries = sound.iter().flat_map(|scenario| [(*scenario, 0), (*scenario, 1)]);
        let first = tries.find_map(|(scenario, side)| {
            let at = if side == 0 { [&faulty[..], &[]] } else { [&[][..], &faulty[..]] };
            let found = walk(scenario, || scenarios::nics(scenario, at), scenario.large, walks)?;
            Some((scenario.name, side, found))
        });
        all += 1;
        match first {
            Some((scenario, side, (seed, violation))) => {
                found += 1;
                println!(
                    "{:<36} {} {scenario:<22} {seed:>4}  {}",
                    fault.name,
                    ["A", "B"][side],
                    violation.what
                );
            }
            None => println!("{:<36} - not found", fault.name),
        }
    }
    println!("{found} of {all} faults found");
    ExitCode::SUCCESS
}
