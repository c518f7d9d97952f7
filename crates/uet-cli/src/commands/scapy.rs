//! `uet scapy`

use super::Outcome;
use super::output::write_text;
use clap::Args;
use std::io;
use std::path::PathBuf;
use uet_wire::{Spec, Version};

/// Write the Scapy layer, a Python module
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet scapy -o uet.py       then, in Python: from uet import *

Needs Scapy 2.6 or later. docs/scapy.md shows how to build and dissect packets.")]
pub(super) struct Scapy {
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Version of the specification
    #[arg(long, value_name = "VERSION", value_parser = super::spec, default_value_t = Version::default().spec())]
    spec: &'static Spec,
}

impl Scapy {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        write_text(self.output.as_deref(), &uet_scapy::layer(self.spec))?;
        Ok(Outcome::Ok)
    }
}
