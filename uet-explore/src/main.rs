//! Explores scenarios: `uet-explore [--large] [--states N] [NAME...]`.

use std::process::ExitCode;
use uet_explore::{explore, scenarios};

fn main() -> ExitCode {
    let (mut large, mut limit, mut names) = (false, 5_000_000, Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--large" => large = true,
            "--states" => limit = args.next().and_then(|count| count.parse().ok()).unwrap_or(limit),
            _ => names.push(arg),
        }
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
