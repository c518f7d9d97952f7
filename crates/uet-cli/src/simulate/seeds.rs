//! Medians over several seeds, with confidence intervals.

use super::quantity::{Bytes, Time};
use super::{compare, table};
use crate::paint::Paint;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::str::FromStr;
use std::time::Duration;
use uet_simulate::{Outcome, Scenario, median_interval, slowdowns, spread};

/// Seeds from the first to the last one, at most 1,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    first: u64,
    count: u64,
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let range = text.split_once("..").and_then(|(first, last)| {
            let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
            Some(Seeds { first, count: last.checked_sub(first)?.checked_add(1)? })
        });
        range
            .filter(|seeds| seeds.count <= 1000)
            .ok_or("expected a rising range of at most 1,000 seeds, such as 1..30".into())
    }
}

impl Seeds {
    /// Returns the seeds.
    pub fn all(self) -> impl Iterator<Item = u64> {
        (0..self.count).map(move |offset| self.first + offset)
    }
}

/// The unit of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Nanoseconds,
    Bytes,
    Packets,
    Share,
    One,
}

impl Unit {
    /// Returns a value with this unit. The median of an even number of counts may lie between two of them.
    fn text(self, value: f64) -> String {
        match self {
            Unit::Nanoseconds => Time(Duration::from_nanos(value as u64)).to_string(),
            Unit::Bytes => Bytes(value).to_string(),
            Unit::Packets if value.fract() == 0.0 => format!("{value:.0}"),
            Unit::Packets => format!("{value:.1}"),
            Unit::Share => format!("{:.1} %", value * 100.0),
            Unit::One => format!("{value:.4}"),
        }
    }
}

/// Returns the name of a measure in a table. JSON has older names of some.
fn label(measure: &str) -> String {
    match measure {
        "slowdown_p99" => "times ideal p99".into(),
        "steady_share" => "utilization".into(),
        "steady_jain" => "Jain's index".into(),
        "again_per_arrival" => "retransmit ratio".into(),
        _ => measure.replace(['_', ':'], " "),
    }
}

/// The measures of several runs.
#[derive(Debug)]
pub struct Runs {
    seeds: Seeds,
    /// The name, the unit and the values of each measure.
    measures: Vec<(String, Unit, Vec<f64>)>,
    /// The number of runs in which some flows did not complete.
    incomplete: usize,
}

impl Runs {
    /// Creates an empty collection of runs with these seeds.
    pub fn new(seeds: Seeds) -> Self {
        Runs { seeds, measures: Vec::new(), incomplete: 0 }
    }

    /// Adds a run.
    pub fn add(&mut self, outcome: &Outcome) {
        self.incomplete += usize::from(outcome.flows.iter().any(|flow| flow.completed.is_none()));
        let nanos = |span: Duration| span.as_nanos() as f64;
        let mut done: Vec<Duration> = outcome.flows.iter().filter_map(|flow| flow.completed).collect();
        if let Some([_, median, p99, max]) = spread(&mut done) {
            self.measure("completion_median", Unit::Nanoseconds, nanos(median));
            self.measure("completion_p99", Unit::Nanoseconds, nanos(p99));
            self.measure("completion_max", Unit::Nanoseconds, nanos(max));
        }
        if let Some([_, _, p99, _]) = slowdowns(&outcome.flows) {
            self.measure("slowdown_p99", Unit::One, p99);
        }
        if let Some(steady) = &outcome.steady {
            self.measure("steady_share", Unit::Share, steady.share);
            self.measure("steady_jain", Unit::One, steady.jain);
        }
        self.measure("again_per_arrival", Unit::One, outcome.counted.again_per_arrival());
        self.measure("trimmed", Unit::Packets, outcome.counted.trimmed as f64);
        self.measure("dropped", Unit::Packets, outcome.counted.dropped as f64);
        self.measure("last_hop_queue_mean", Unit::Bytes, outcome.last_hop.mean());
        self.measure("fabric_queue_mean", Unit::Bytes, outcome.fabric.mean());
        for job in &outcome.jobs {
            if let Some(completed) = job.completed {
                self.measure(&format!("job_completion:{}", job.name), Unit::Nanoseconds, nanos(completed));
            }
        }
    }

    fn measure(&mut self, name: &str, unit: Unit, value: f64) {
        match self.measures.iter_mut().find(|(known, ..)| known == name) {
            Some((_, _, values)) => values.push(value),
            None => self.measures.push((name.into(), unit, vec![value])),
        }
    }

    /// Returns whether all flows of all runs completed.
    pub fn all_completed(&self) -> bool {
        self.incomplete == 0
    }

    /// Returns the medians for programs. Times are in nanoseconds, sizes in bytes.
    pub fn json(&self, scenario: &Scenario) -> Value {
        let measures = self.measures.iter().filter_map(|(name, _, values)| {
            let (median, interval) = median_interval(values)?;
            let [low, high] = interval.map_or([None; 2], |interval| interval.map(Some));
            Some((name.clone(), json!({"runs": values.len(), "median": median, "low": low, "high": high})))
        });
        json!({
            "scenario": table::title_of_any_seed(scenario),
            "congestion": compare::name(scenario),
            "seeds": {"first": self.seeds.first, "count": self.seeds.count},
            "confidence": 0.95,
            "incomplete": self.incomplete,
            "measures": measures.collect::<Map<String, Value>>(),
        })
    }

    /// Writes the medians as a table.
    pub fn write(&self, out: &mut dyn Write, scenario: &Scenario, paint: Paint) -> io::Result<()> {
        let last = self.seeds.all().last().unwrap_or(self.seeds.first);
        writeln!(out, "{}", paint.strong(table::title_of_any_seed(scenario)))?;
        writeln!(
            out,
            "seeds {} to {last}; the median lies between low and high with 95 % confidence\n",
            self.seeds.first
        )?;
        table::heading(out, paint, ["median", "low", "high", "runs"])?;
        for (name, unit, values) in &self.measures {
            let Some((median, interval)) = median_interval(values) else { continue };
            let text = |value: f64| unit.text(value);
            let [low, high] = interval.map_or(["-".into(), "-".into()], |interval| interval.map(text));
            table::row(out, paint, &label(name), [text(median), low, high, values.len().to_string()], "")?;
        }
        match self.incomplete {
            0 => Ok(()),
            runs => writeln!(out, "\n{runs} runs have flows that did not complete in time"),
        }
    }
}
