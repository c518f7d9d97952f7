//! Runs of one scenario under several congestion control algorithms, side by side.

use super::quantity::{Bytes, PerSecond, Time};
use super::table::{heading, never_marks, row, title_with};
use crate::paint::Paint;
use std::io::{self, Write};
use uet_simulate::{Control, Outcome, Scenario, Steady, slowdowns, spread};

/// Returns the name of the algorithms of a run, for columns and legends.
pub fn name(scenario: &Scenario) -> &'static str {
    match scenario.congestion.control {
        Control::None => "none",
        Control::Nscc => "NSCC",
        Control::Rccc => "RCCC",
        Control::Both => "both",
        Control::Custom(_) => "custom",
    }
}

/// Describes the scenario of all runs in one line.
pub fn title(runs: &[(Scenario, Outcome)]) -> String {
    let names: Vec<&str> = runs.iter().map(|(scenario, _)| name(scenario)).collect();
    let title = |(scenario, _): &(Scenario, Outcome)| {
        let names = names.join(", ").replace("both", "both together");
        format!("{}; seed {}", title_with(scenario, &names), scenario.seed)
    };
    runs.first().map(title).unwrap_or_default()
}

/// Writes a table with a column for each run, at most four.
pub fn write(out: &mut dyn Write, runs: &[(Scenario, Outcome)], paint: Paint) -> io::Result<()> {
    writeln!(out, "{}\n", paint.strong(title(runs)))?;
    let columns = |of: &dyn Fn(&Scenario, &Outcome) -> Option<String>| -> [String; 4] {
        core::array::from_fn(|at| match runs.get(at) {
            Some((scenario, outcome)) => of(scenario, outcome).unwrap_or("-".into()),
            None => String::new(),
        })
    };
    let names: [&str; 4] = core::array::from_fn(|at| runs.get(at).map_or("", |(scenario, _)| name(scenario)));
    heading(out, paint, names)?;
    let mut line = |name: &str, of: &dyn Fn(&Scenario, &Outcome) -> Option<String>| {
        row(out, paint, name, columns(of), "")
    };
    // The runs have the same jobs. An operation takes longer than each of its flows.
    const MOST_JOBS: usize = 20;
    for (at, job) in
        runs.first().map_or(&[][..], |(_, outcome)| &outcome.jobs).iter().take(MOST_JOBS).enumerate()
    {
        line(&job.name, &|_, outcome| Some(Time(outcome.jobs.get(at)?.completed?).to_string()))?;
        line(" times ideal", &|_, outcome| Some(format!("{:.3}", outcome.jobs.get(at)?.slowdown()?)))?;
    }
    let done = |outcome: &Outcome| outcome.flows.iter().filter_map(|flow| flow.completed).collect::<Vec<_>>();
    line("completed flows", &|_, outcome| Some(done(outcome).len().to_string()))?;
    for (name, at) in [("completion, median", 1), (" p99", 2), (" max", 3)] {
        line(name, &|_, outcome| Some(Time(spread(&mut done(outcome))?[at]).to_string()))?;
    }
    line(" times ideal, p99", &|_, outcome| Some(format!("{:.3}", slowdowns(&outcome.flows)?[2])))?;
    let mut steady =
        |name: &str, of: fn(&Steady) -> String| line(name, &|_, outcome| outcome.steady.as_ref().map(of));
    steady("steady from", |steady| Time(steady.from).to_string())?;
    steady(" until a flow ends", |steady| Time(steady.to).to_string())?;
    steady(" goodput", |steady| PerSecond(steady.goodput).to_string())?;
    steady(" utilization", |steady| format!("{:.1} %", steady.share * 100.0))?;
    steady(" Jain's index", |steady| format!("{:.4}", steady.jain))?;
    line("last hop queue", &|_, outcome| Some(Bytes(outcome.last_hop.mean()).to_string()))?;
    line(" max", &|_, outcome| Some(Bytes(outcome.last_hop.most as f64).to_string()))?;
    line("fabric queue", &|_, outcome| Some(Bytes(outcome.fabric.mean()).to_string()))?;
    line(" max", &|_, outcome| Some(Bytes(outcome.fabric.most as f64).to_string()))?;
    line("retransmitted", &|_, outcome| Some(outcome.counted.again.to_string()))?;
    line("retransmit ratio", &|_, outcome| Some(format!("{:.3}", outcome.counted.again_per_arrival())))?;
    line("trimmed", &|_, outcome| Some(outcome.counted.trimmed.to_string()))?;
    line("marked", &|scenario, outcome| {
        (!never_marks(scenario)).then(|| outcome.counted.marked.to_string())
    })?;
    line("dropped", &|_, outcome| Some(outcome.counted.dropped.to_string()))
}
