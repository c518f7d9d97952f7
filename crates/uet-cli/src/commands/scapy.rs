//! `uet scapy`

use super::{Outcome, about};
use clap::Args;
use std::io::{self, Write};
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
        let module = uet_scapy::layer(self.spec);
        match &self.output {
            Some(file) => uet_packet_io::file::replace(file, &module).map_err(|error| about(file, error))?,
            None => io::stdout().lock().write_all(module.as_bytes())?,
        }
        Ok(Outcome::Ok)
    }
}
