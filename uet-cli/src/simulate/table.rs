//! Prints an outcome as a table.

use super::quantity::{Bytes, PerSecond, Time};
use crate::paint::Paint;
use std::io::{self, Write};
use std::time::Duration;
use uet_model::cc::PathMode;
use uet_simulate::{Control, Counted, Depth, Outcome, Scenario, Topology, Traffic};

/// Describes the scenario in one line.
pub fn title(scenario: &Scenario) -> String {
    let traffic = match &scenario.traffic {
        Traffic::One { size } => format!("one flow of {}", Bytes(*size as f64)),
        Traffic::Incast { senders, size } => format!("{senders} to 1, {} each", Bytes(*size as f64)),
        Traffic::Permutation { size } => format!("permutation, {} each", Bytes(*size as f64)),
        Traffic::AllToAll { size } => format!("all to all, {} each", Bytes(*size as f64)),
        Traffic::Matrix(matrix) => format!("{} flows of a connection matrix", matrix.demands.len()),
    };
    let fabric = match scenario.topology {
        Topology::Single { hosts } => format!("{hosts} hosts on a switch"),
        Topology::LeafSpine { hosts, leaves, spines } => {
            format!("{hosts} hosts, {leaves} leaves, {spines} spines")
        }
        Topology::FatTree { hosts, radix } => format!("{hosts} hosts, fat tree of radix {radix}"),
    };
    let control = match scenario.congestion.control {
        Control::None => "no congestion control",
        Control::Nscc => "NSCC",
        Control::Rccc => "RCCC",
        Control::Both => "NSCC and RCCC",
    };
    let paths = match scenario.congestion.paths {
        PathMode::Single => "single path",
        PathMode::Oblivious => "oblivious paths",
        PathMode::Recycling => "recycled paths",
        PathMode::Bitmap => "paths by bitmap",
    };
    let (rate, base_rtt) = (PerSecond(scenario.rate as f64), Time(scenario.base_rtt()));
    format!("{traffic}; {fabric}; {rate}, {base_rtt}; {control}, {paths}; seed {}", scenario.seed)
}

/// Returns the minimum, the median, the 99th percentile and the maximum. Percentiles use the nearest rank.
pub fn spread<T: Copy + Ord>(values: &mut [T]) -> Option<[T; 4]> {
    values.sort_unstable();
    let rank = |percent: usize| values.get((values.len() * percent).div_ceil(100).saturating_sub(1)).copied();
    Some([rank(0)?, rank(50)?, rank(99)?, rank(100)?])
}

/// Writes the table.
pub fn write(out: &mut dyn Write, scenario: &Scenario, outcome: &Outcome, paint: Paint) -> io::Result<()> {
    writeln!(out, "{}\n", paint.strong(title(scenario)))?;
    completion(out, outcome, paint)?;
    queues(out, scenario, outcome, paint)?;
    counted(out, scenario, outcome, paint)?;
    recovery(out, scenario, outcome)
}

fn completion(out: &mut dyn Write, outcome: &Outcome, paint: Paint) -> io::Result<()> {
    let mut done: Vec<Duration> = outcome.flows.iter().filter_map(|flow| flow.completed).collect();
    let of = format!("{} of {} flows", done.len(), outcome.flows.len());
    heading(out, paint, ["min", "median", "p99", "max"])?;
    let Some(times) = spread(&mut done) else {
        return writeln!(out, "{} {of}\n", paint.name(format_args!("{:<18}", "completion")));
    };
    row(out, paint, "completion", times.map(|time| Time(time).to_string()), &of)?;
    // Unit: thousandths of the ideal.
    let mut slower: Vec<u128> = outcome
        .flows
        .iter()
        .filter_map(|flow| Some(flow.completed?.as_nanos() * 1000 / flow.ideal.as_nanos().max(1)))
        .collect();
    if let Some(times) = spread(&mut slower) {
        row(out, paint, "times ideal", times.map(|time| format!("{:.3}", time as f64 / 1000.0)), "")?;
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
        row(
            out,
            paint,
            name,
            [Bytes(mean).to_string(), Bytes(most).to_string(), relative(mean), relative(most)],
            "",
        )?;
    }
    writeln!(out)
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
    two(out, "of the links", "-".into(), steady.map(|steady| format!("{:.1} %", steady.share * 100.0)))?;
    two(out, "Jain's index", "-".into(), steady.map(|steady| format!("{:.4}", steady.jain)))?;
    let count = |of: fn(&Counted) -> u64| {
        (of(&outcome.counted).to_string(), steady.map(|steady| of(&steady.counted).to_string()))
    };
    type Count = fn(&Counted) -> u64;
    let rows: [(&str, Count); 11] = [
        ("new", |c| c.new),
        ("again", |c| c.again),
        ("arrived", |c| c.arrived),
        ("trimmed", |c| c.trimmed),
        (" on granted credit", |c| c.trimmed_granted),
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
        two(out, name, all, steady)?;
    }
    let again = |counted: &Counted| format!("{:.3}", counted.again_per_arrival());
    two(out, "again per arrival", again(&outcome.counted), steady.map(|steady| again(&steady.counted)))?;
    if let Some(floor) = scenario.retransmission_floor() {
        two(out, " one packet each", "-".into(), Some(format!("{floor:.3}")))?;
    }
    Ok(())
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

fn heading(out: &mut dyn Write, paint: Paint, columns: [&str; 4]) -> io::Result<()> {
    let line = columns.map(|column| format!("{column:>12}")).concat();
    writeln!(out, "{:<18}{}", "", paint.faint(line.trim_end()))
}

fn row(out: &mut dyn Write, paint: Paint, name: &str, columns: [String; 4], more: &str) -> io::Result<()> {
    let line = columns.map(|column| format!("{column:>12}")).concat();
    let line = format!("{}   {more}", line.trim_end());
    writeln!(out, "{}{}", paint.name(format_args!("{name:<18}")), line.trim_end())
}
