//! Prints an outcome as a table.

use super::quantity::{Bytes, PerSecond, Time};
use crate::paint::Paint;
use std::io::{self, Write};
use std::time::Duration;
use uet_model::cc::PathMode;
use uet_simulate::{
    Control, Counted, Depth, Fault, Graph, Outcome, Scenario, Topology, Traffic, size_classes, slowdowns,
    spread,
};

/// The maximum number of jobs, and of faults, that the title names.
const MOST_NAMES: usize = 4;

/// Describes the scenario in one line.
pub fn title(scenario: &Scenario) -> String {
    format!("{}; seed {}", title_with(scenario, control(scenario)), scenario.seed)
}

/// Describes the scenario in one line, without the seed and the number of flows of a graph, which may depend on it.
pub fn title_of_any_seed(scenario: &Scenario) -> String {
    match &scenario.traffic {
        Traffic::Graph(graph) => title_of(scenario, &jobs_of(graph), control(scenario)),
        _ => title_with(scenario, control(scenario)),
    }
}

fn control(scenario: &Scenario) -> &'static str {
    match scenario.congestion.control {
        Control::None => "no congestion control",
        Control::Nscc => "NSCC",
        Control::Rccc => "RCCC",
        Control::Both => "NSCC and RCCC",
        Control::Custom(_) => "a custom algorithm",
    }
}

/// Describes the scenario in one line, without the seed and with this description of the algorithms.
pub fn title_with(scenario: &Scenario, control: &str) -> String {
    let traffic = match &scenario.traffic {
        Traffic::One { size } => format!("one flow of {}", Bytes(*size as f64)),
        Traffic::Incast { senders, size } => format!("{senders} to 1, {} each", Bytes(*size as f64)),
        Traffic::Permutation { size } => format!("permutation, {} each", Bytes(*size as f64)),
        Traffic::AllToAll { size } => format!("all to all, {} each", Bytes(*size as f64)),
        Traffic::Matrix(matrix) => format!("{} of a connection matrix", flows(matrix.demands.len())),
        Traffic::Graph(graph) => format!("{}: {}", jobs_of(graph), flows(graph.demands().len())),
    };
    title_of(scenario, &traffic, control)
}

/// Names the jobs of a graph.
fn jobs_of(graph: &Graph) -> String {
    let jobs = graph.jobs();
    let named = jobs.iter().take(MOST_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    named + if jobs.len() > MOST_NAMES { ", ..." } else { "" }
}

/// Describes the scenario in one line, with these descriptions of traffic and algorithms.
fn title_of(scenario: &Scenario, traffic: &str, control: &str) -> String {
    let fabric = match scenario.topology {
        Topology::Single { hosts } => format!("{hosts} hosts on a switch"),
        Topology::LeafSpine { hosts, leaves, spines } => {
            format!("{hosts} hosts, {leaves} leaves, {spines} spines")
        }
        Topology::FatTree { hosts, radix } => format!("{hosts} hosts, fat tree of radix {radix}"),
    };
    let paths = match scenario.congestion.paths {
        PathMode::Single => "single path",
        PathMode::Oblivious => "oblivious paths",
        PathMode::Recycling => "recycled paths",
        PathMode::Bitmap => "paths by bitmap",
    };
    let (rate, base_rtt) = (PerSecond(scenario.rate as f64), Time(scenario.base_rtt()));
    format!("{traffic}; {fabric}; {rate}, {base_rtt}; {control}, {paths}{}", faults(&scenario.faults))
}

/// Describes faults, for the end of a title.
fn faults(faults: &[Fault]) -> String {
    let named: String = faults.iter().take(MOST_NAMES).map(|one| format!("; {}", fault(one))).collect();
    named + if faults.len() > MOST_NAMES { "; ..." } else { "" }
}

fn fault(fault: &Fault) -> String {
    let what = match fault.percent {
        0 => "fails".into(),
        percent => format!("slowed to {percent} %"),
    };
    let until = fault.until.map_or(String::new(), |until| format!(" until {}", Time(until)));
    format!("{} {what} at {}{until}", fault.part, Time(fault.at))
}

/// Returns a sentence for each fault that begins after the end of a run.
pub fn late_faults(scenario: &Scenario, outcome: &Outcome) -> impl Iterator<Item = String> {
    let late = scenario.faults.iter().filter(move |fault| fault.at > outcome.ended);
    late.map(|late| format!("{}: no effect, because a run ended earlier", fault(late)))
}

fn flows(count: usize) -> String {
    crate::text::counted(count as u64, "flow")
}

/// Writes the table.
pub fn write(out: &mut dyn Write, scenario: &Scenario, outcome: &Outcome, paint: Paint) -> io::Result<()> {
    writeln!(out, "{}\n", paint.strong(title(scenario)))?;
    completion(out, outcome, paint)?;
    jobs(out, outcome, paint)?;
    sizes(out, outcome, paint)?;
    queues(out, scenario, outcome, paint)?;
    counted(out, scenario, outcome, paint)?;
    recovery(out, scenario, outcome)
}

fn completion(out: &mut dyn Write, outcome: &Outcome, paint: Paint) -> io::Result<()> {
    let mut done: Vec<Duration> = outcome.flows.iter().filter_map(|flow| flow.completed).collect();
    let of = format!("{} of {}", done.len(), flows(outcome.flows.len()));
    heading(out, paint, ["min", "median", "p99", "max"])?;
    let Some(times) = spread(&mut done) else {
        return writeln!(out, "{} {of}\n", paint.name(format_args!("{:<18}", "flow completion")));
    };
    row(out, paint, "flow completion", times.map(|time| Time(time).to_string()), &of)?;
    if let Some(times) = slowdowns(&outcome.flows) {
        row(out, paint, "times ideal", times.map(|times| format!("{times:.3}")), "")?;
    }
    writeln!(out)
}

/// Writes a row for each job, at most 20.
fn jobs(out: &mut dyn Write, outcome: &Outcome, paint: Paint) -> io::Result<()> {
    const MOST: usize = 20;
    if outcome.jobs.is_empty() {
        return Ok(());
    }
    heading(out, paint, ["completion", "ideal", "times ideal", "Jain"])?;
    for job in outcome.jobs.iter().take(MOST) {
        let or_dash = |text: Option<String>| text.unwrap_or("-".into());
        let columns = [
            or_dash(job.completed.map(|time| Time(time).to_string())),
            Time(job.ideal).to_string(),
            or_dash(job.slowdown().map(|times| format!("{times:.3}"))),
            format!("{:.4}", job.jain),
        ];
        row(out, paint, &job.name, columns, &flows(job.flows))?;
    }
    if outcome.jobs.len() > MOST {
        writeln!(out, "and {} more jobs", outcome.jobs.len() - MOST)?;
    }
    writeln!(out)
}

/// Writes a row for each class of sizes, if there are several.
fn sizes(out: &mut dyn Write, outcome: &Outcome, paint: Paint) -> io::Result<()> {
    let classes = size_classes(&outcome.flows);
    if classes.len() < 2 {
        return Ok(());
    }
    heading(out, paint, ["median", "p99", "times ideal", "p99"])?;
    for class in classes {
        let name = match class.below {
            Some(below) => format!("below {}", Bytes(below as f64)),
            None => format!("from {}", Bytes(class.from as f64)),
        };
        let [median, p99] = class.completion.map(|time| Time(time).to_string());
        let [slow_median, slow_p99] = class.slowdown.map(|times| format!("{times:.3}"));
        row(out, paint, &name, [median, p99, slow_median, slow_p99], &flows(class.flows))?;
    }
    writeln!(out)
}

fn queues(out: &mut dyn Write, scenario: &Scenario, outcome: &Outcome, paint: Paint) -> io::Result<()> {
    heading(out, paint, ["mean", "max", "mean, BDP", "max, BDP"])?;
    for (name, Depth { most, .. }, mean) in [
        ("last hop", outcome.last_hop, outcome.last_hop.mean()),
        ("fabric", outcome.fabric, outcome.fabric.mean()),
    ] {
        let most = most as f64;
        let relative = |bytes: f64| format!("{:.3}", bytes / scenario.plane_bdp());
        let columns = [Bytes(mean).to_string(), Bytes(most).to_string(), relative(mean), relative(most)];
        row(out, paint, name, columns, "")?;
    }
    let bdp = Bytes(scenario.plane_bdp());
    writeln!(out, "{} bandwidth-delay product, {bdp}\n", paint.name(format_args!("{:<18}", "BDP")))
}

fn counted(out: &mut dyn Write, scenario: &Scenario, outcome: &Outcome, paint: Paint) -> io::Result<()> {
    let steady = outcome.steady.as_ref();
    let goodput = outcome.counted.delivered as f64 * 8.0 / outcome.ended.as_secs_f64().max(1e-9);
    heading(out, paint, ["all", "steady", "", ""])?;
    let span = format!("{} to {}", Time(Duration::ZERO), Time(outcome.ended));
    let steady_span =
        steady.map_or("-".into(), |steady| format!("{} to {}", Time(steady.from), Time(steady.to)));
    let two = |out: &mut dyn Write, name: &str, all: String, steady: Option<String>| {
        row(out, paint, name, [all, steady.unwrap_or("-".into()), String::new(), String::new()], "")
    };
    writeln!(out, "{} {span}; {steady_span}", paint.name(format_args!("{:<18}", "time")))?;
    two(
        out,
        "goodput",
        PerSecond(goodput).to_string(),
        steady.map(|steady| PerSecond(steady.goodput).to_string()),
    )?;
    two(out, "utilization", "-".into(), steady.map(|steady| format!("{:.1} %", steady.share * 100.0)))?;
    two(out, "Jain's index", "-".into(), steady.map(|steady| format!("{:.4}", steady.jain)))?;
    let count = |of: fn(&Counted) -> u64| {
        (of(&outcome.counted).to_string(), steady.map(|steady| of(&steady.counted).to_string()))
    };
    type Count = fn(&Counted) -> u64;
    let rows: [(&str, Count); 11] = [
        ("new packets", |c| c.new),
        ("retransmitted", |c| c.again),
        ("received", |c| c.arrived),
        ("trimmed", |c| c.trimmed),
        (" although granted", |c| c.trimmed_granted),
        ("marked", |c| c.marked),
        ("dropped", |c| c.dropped),
        ("lost by failures", |c| c.lost),
        ("ACKs", |c| c.acks),
        ("NACKs", |c| c.nacks),
        ("control packets", |c| c.control),
    ];
    for (name, of) in rows {
        if name.starts_with(' ') && !scenario.congestion.control.grants_credit() {
            continue;
        }
        let (all, steady) = count(of);
        let (all, steady) =
            if name == "marked" && never_marks(scenario) { ("-".into(), None) } else { (all, steady) };
        two(out, name, all, steady)?;
    }
    let ratio = |counted: &Counted| format!("{:.3}", counted.again_per_arrival());
    two(out, "retransmit ratio", ratio(&outcome.counted), steady.map(|steady| ratio(&steady.counted)))?;
    if let Some(estimate) = scenario.retransmission_estimate() {
        let shown = if estimate.is_finite() { format!("{estimate:.3}") } else { "none".into() };
        two(out, " estimate", "-".into(), Some(shown))?;
    }
    Ok(())
}

/// Returns true if all queues are last hops and receivers grant credit: they then control the last hop, and it does not
/// mark.
pub(super) fn never_marks(scenario: &Scenario) -> bool {
    scenario.congestion.control.grants_credit() && matches!(scenario.topology, Topology::Single { .. })
}

fn recovery(out: &mut dyn Write, scenario: &Scenario, outcome: &Outcome) -> io::Result<()> {
    let Some(recovery) = &outcome.recovery else { return Ok(()) };
    writeln!(out, "\nfailed at {}", Time(recovery.failed))?;
    if let Some(noticed) = recovery.noticed {
        writeln!(out, "first loss noticed at {}", Time(noticed))?;
        if let Some(back) = recovery.back {
            let trips = (back.saturating_sub(noticed)).as_secs_f64() / scenario.base_rtt().as_secs_f64();
            writeln!(out, "rate back at {}, {trips:.1} round trips later", Time(back))?;
        }
    }
    Ok(())
}

pub(super) fn heading(out: &mut dyn Write, paint: Paint, columns: [&str; 4]) -> io::Result<()> {
    let line = columns.map(|column| format!("{column:>12}")).concat();
    writeln!(out, "{:<18}{}", "", paint.faint(line.trim_end()))
}

pub(super) fn row(
    out: &mut dyn Write,
    paint: Paint,
    name: &str,
    columns: [String; 4],
    more: &str,
) -> io::Result<()> {
    let line = columns.map(|column| format!("{column:>12}")).concat();
    let line = format!("{}   {more}", line.trim_end());
    writeln!(out, "{}{}", paint.name(format_args!("{name:<18}")), line.trim_end())
}
