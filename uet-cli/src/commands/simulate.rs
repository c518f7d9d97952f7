//! `uet simulate`

use super::{Listing, Outcome, about};
use crate::paint::Paint;
use crate::simulate::settings::Settings;
use crate::simulate::{csv, json, plot, table};
use clap::Args;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use uet_packet_io::file::{self, Replacement};
use uet_simulate::Simulation;

/// Simulate endpoints on a switched fabric, and show what congestion control does
///
/// Every end is the reference model's packet delivery, which writes real headers and reads them. Between them are links and
/// switches with queues that mark, trim and drop. The same scenario gives the same outcome, always; docs/congestion.md says what
/// the algorithms do.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet simulate                                                  one flow over a switch
  uet simulate --pattern incast --senders 32 --congestion rccc
  uet simulate --pattern permutation --hosts 64 --leaves 8 --paths bitmap --plots plots
  uet simulate --topology fat-tree --matrix incast_128.cm --until 20ms --format json
  uet simulate --hosts 8 --leaves 2 --spines 2 --pattern permutation --fail 'spine 0 at 200us'
  uet simulate scenario.toml --seed 2

A file has the same names:
  pattern = \"incast\"
  senders = 32
  size = \"2MB\"
  congestion = \"both\"
  fail = [\"spine 0 at 100us until 1ms\"]

Exit codes: 0 all flows completed, 3 some did not in the time given, 2 the scenario cannot be.")]
pub(super) struct Simulate {
    /// A scenario, as TOML; flags count more
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    /// How the outcome is printed
    #[arg(long, value_enum, default_value = "text", help_heading = "Output")]
    format: Listing,
    /// Write the time series, as CSV
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    csv: Option<PathBuf>,
    /// Draw window, bytes in flight, queues, rates, retransmissions and completion, as SVG
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    plots: Option<PathBuf>,
}

impl Simulate {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        let mut settings = self.settings.clone();
        if let Some(path) = &self.file {
            settings = settings.over(Settings::read(path).map_err(|error| about(path, error))?);
        }
        let scenario = settings.scenario()?;
        let outcome = Simulation::new(&scenario).map_err(io::Error::other)?.run();
        if let Some(path) = &self.csv {
            let write = || {
                let mut out = BufWriter::new(Replacement::new(path)?);
                csv::write(&mut out, &outcome)?;
                out.into_inner()?.commit()
            };
            write().map_err(|error: io::Error| about(path, error))?;
        }
        if let Some(folder) = &self.plots {
            fs::create_dir_all(folder).map_err(|error| about(folder, error))?;
            for (name, svg) in plot::all(&scenario, &outcome)? {
                let path = folder.join(name).with_extension("svg");
                file::replace(&path, svg).map_err(|error| about(&path, error))?;
            }
        }
        let mut out = io::stdout().lock();
        match self.format {
            Listing::Text => table::write(&mut out, &scenario, &outcome, Paint::stdout())?,
            Listing::Json => writeln!(out, "{}", json::of(&scenario, &outcome))?,
        }
        let all = outcome.flows.iter().all(|flow| flow.completed.is_some());
        Ok(if all { Outcome::Ok } else { Outcome::Inconclusive })
    }
}
