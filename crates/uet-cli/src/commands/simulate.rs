//! `uet simulate`

use super::{Listing, Outcome, about, complain};
use crate::paint::Paint;
use crate::simulate::seeds::{Runs, Seeds};
use crate::simulate::settings::{Settings, refused};
use crate::simulate::sweep::{self, Shard, Sweep};
use crate::simulate::{compare, csv, json, plot, table};
use clap::{Args, value_parser};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;
use uet_packet_io::file::{self, Replacement};
use uet_simulate::{Scenario, Simulation};

/// Simulate endpoints on a switched fabric, and show the effects of congestion control
///
/// Every endpoint runs the reference model's packet delivery, which writes and reads real headers. Links and switches
/// with queues connect them; the queues mark, trim and drop. A scenario always gives the same outcome.
/// docs/congestion.md describes the algorithms.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet simulate                                                  one flow over a switch
  uet simulate --pattern incast --senders 32 --congestion rccc
  uet simulate --pattern incast --senders 8 --congestion nscc,rccc,both --plots plots
  uet simulate --pattern permutation --hosts 64 --leaves 8 --paths bitmap --plots plots
  uet simulate --topology fat-tree --matrix incast_128.cm --until 20ms --format json
  uet simulate --hosts 8 --leaves 2 --spines 2 --pattern permutation --fail 'spine 0 at 50us'
  uet simulate scenario.toml --seed 2
  uet simulate --workload training.toml --topology fat-tree --seeds 1..30
  uet simulate --pattern ring-all-reduce --hosts 16 --size 4MB
  uet simulate --sweep sweep.toml --shard 3/64 --output runs-3.jsonl

A file has the same names:
  pattern = \"incast\"
  senders = 32
  hosts = 36
  leaves = 4
  size = \"2MB\"
  congestion = \"both\"
  fail = [\"spine 0 at 100us until 1ms\"]

Exit codes: 0 all flows completed, 2 usage or an impossible scenario, 3 some flows did not complete in time, or a run of
a sweep is impossible. The line of such a run has the error.")]
pub(super) struct Simulate {
    /// Scenario as TOML; flags override it
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    /// Run with each of these seeds, and show medians with confidence intervals of 95 %
    #[arg(long, value_name = "FROM..TO", conflicts_with_all = ["seed", "csv", "plots"])]
    seeds: Option<Seeds>,
    /// Number of threads; the outcome does not depend on it [default: one per core from 1,024 hosts on, else 1]
    #[arg(long, value_name = "NUMBER", value_parser = value_parser!(u16).range(1..), conflicts_with = "sweep")]
    threads: Option<u16>,
    /// Run all combinations of the values in a TOML file, and write one JSON line per run (docs/workloads.md)
    #[arg(long, value_name = "FILE", help_heading = "Sweep", conflicts_with_all = ["file", "Settings", "seeds", "csv", "plots", "format"])]
    sweep: Option<PathBuf>,
    /// Run only this part of the sweep, such as 3/64
    #[arg(long, value_name = "NUMBER/SHARDS", help_heading = "Sweep", requires = "sweep")]
    shard: Option<Shard>,
    /// Append the lines to a file, and skip the runs that it has already [default: standard output]
    #[arg(long, short, value_name = "FILE", help_heading = "Sweep", requires = "sweep")]
    output: Option<PathBuf>,
    /// Output format of the outcome
    #[arg(long, value_enum, default_value = "text", help_heading = "Output")]
    format: Listing,
    /// Write the time series of one run, as CSV; `-` is standard output, instead of the table
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    csv: Option<PathBuf>,
    /// Draw window, bytes in flight, queues, utilization, rates, retransmissions and completion, as SVG
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    plots: Option<PathBuf>,
}

impl Simulate {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        if let Some(path) = &self.sweep {
            return self.sweep(path);
        }
        let mut settings = self.settings.clone();
        if let Some(path) = &self.file {
            settings = settings.over(Settings::read(path).map_err(|error| about(path, error))?);
        }
        settings.check_effects()?;
        let to_stdout = self.csv.as_deref() == Some(Path::new("-"));
        if to_stdout && self.format == Listing::Json {
            return Err(io::Error::other(
                "--format json, --csv -: both are standard output, so give only one of them",
            ));
        }
        let runs = settings.with_each_algorithm();
        if let Some(seeds) = self.seeds {
            return self.seeds(&runs, seeds);
        }
        if runs.len() > 1 && self.csv.is_none() {
            return self.compare(&runs);
        }
        let scenario = settings.scenario()?;
        let outcome = self.simulate(&scenario)?;
        warn(table::late_faults(&scenario, &outcome));
        if let Some(path) = self.csv.as_ref().filter(|_| !to_stdout) {
            let write = || {
                let mut out = BufWriter::new(Replacement::new(path)?);
                csv::write(&mut out, &outcome)?;
                out.into_inner()?.commit()
            };
            write().map_err(|error: io::Error| about(path, error))?;
        }
        self.plot(|| plot::all(&scenario, &outcome))?;
        let mut out = io::stdout().lock();
        match self.format {
            _ if to_stdout => csv::write(&mut out, &outcome)?,
            Listing::Text => table::write(&mut out, &scenario, &outcome, Paint::stdout())?,
            Listing::Json => writeln!(out, "{}", json::of(&scenario, &outcome))?,
        }
        Ok(completed(outcome.flows.iter().all(|flow| flow.completed.is_some())))
    }

    /// Runs each of these settings, and shows the outcomes side by side.
    fn compare(&self, settings: &[Settings]) -> io::Result<Outcome> {
        let mut runs = Vec::new();
        for settings in settings {
            let scenario = settings.scenario()?;
            let outcome = self.simulate(&scenario)?;
            runs.push((scenario, outcome));
        }
        warn(runs.iter().flat_map(|(scenario, outcome)| table::late_faults(scenario, outcome)));
        self.plot(|| plot::comparison(&runs))?;
        let mut out = io::stdout().lock();
        match self.format {
            Listing::Text => compare::write(&mut out, &runs, Paint::stdout())?,
            Listing::Json => {
                for (scenario, outcome) in &runs {
                    writeln!(out, "{}", json::of(scenario, outcome))?;
                }
            }
        }
        let all = runs.iter().all(|(_, outcome)| outcome.flows.iter().all(|flow| flow.completed.is_some()));
        Ok(completed(all))
    }

    /// Writes plots, if they are wanted.
    fn plot(&self, plots: impl FnOnce() -> io::Result<Vec<(&'static str, String)>>) -> io::Result<()> {
        let Some(folder) = &self.plots else { return Ok(()) };
        fs::create_dir_all(folder).map_err(|error| about(folder, error))?;
        plots()?.into_iter().try_for_each(|(name, svg)| {
            let path = folder.join(name).with_extension("svg");
            file::replace(&path, svg).map_err(|error| about(&path, error))
        })
    }

    fn simulate(&self, scenario: &Scenario) -> io::Result<uet_simulate::Outcome> {
        let threads = match self.threads {
            Some(threads) => threads.into(),
            None if scenario.topology.hosts() < 1024 => 1,
            None => thread::available_parallelism().map_or(1, NonZero::get),
        };
        Ok(Simulation::with_threads(scenario, threads).map_err(refused)?.run())
    }

    fn sweep(&self, path: &Path) -> io::Result<Outcome> {
        let sweep = Sweep::read(path)?;
        let shard = self.shard.unwrap_or_default();
        let tally = match &self.output {
            Some(path) => sweep.run(shard, sweep::Output::open(path)?)?,
            None => sweep.run(shard, sweep::Output::Stream(&mut io::stdout().lock()))?,
        };
        complain(tally);
        Ok(completed(tally.all_completed()))
    }

    /// Runs each of these settings with all seeds, and shows the medians of each.
    fn seeds(&self, settings: &[Settings], seeds: Seeds) -> io::Result<Outcome> {
        let mut all = true;
        for (number, settings) in settings.iter().enumerate() {
            let (scenario, runs) = self.runs(settings, seeds)?;
            all &= runs.all_completed();
            let mut out = io::stdout().lock();
            match self.format {
                Listing::Text => {
                    if number > 0 {
                        writeln!(out)?;
                    }
                    runs.write(&mut out, &scenario, Paint::stdout())?;
                }
                Listing::Json => writeln!(out, "{}", runs.json(&scenario))?,
            }
        }
        Ok(completed(all))
    }

    /// Runs settings with all seeds. Returns also the scenario with the last one.
    fn runs(&self, settings: &Settings, seeds: Seeds) -> io::Result<(Scenario, Runs)> {
        let mut runs = Runs::new(seeds);
        let mut late = BTreeSet::new();
        let mut scenario = Scenario::default();
        for seed in seeds.all() {
            scenario = settings.clone().with_seed(seed).scenario()?;
            let outcome = self.simulate(&scenario)?;
            late.extend(table::late_faults(&scenario, &outcome));
            runs.add(&outcome);
        }
        warn(late);
        Ok((scenario, runs))
    }
}

/// Prints each of these sentences once.
fn warn(sentences: impl IntoIterator<Item = String>) {
    sentences.into_iter().collect::<BTreeSet<_>>().iter().for_each(complain);
}

fn completed(all: bool) -> Outcome {
    if all { Outcome::Ok } else { Outcome::Inconclusive }
}
