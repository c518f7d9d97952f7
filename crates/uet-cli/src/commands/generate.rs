//! `uet generate`

use super::Outcome;
use super::output::write_text;
use crate::generate::Language;
use clap::Args;
use std::io;
use std::path::PathBuf;
use uet_wire::{Spec, Version};

/// Write the headers and code points of UET for another language
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet generate --language c -o uet.h                    then, in C: #include \"uet.h\"
  uet generate --language kaitai -o uet.ksy             for the compiler of Kaitai Struct
  uet generate --language systemverilog -o uet_pkg.sv   then: import uet_pkg::*;
  uet generate --language p4 -o uet.p4                  then, in P4: #include \"uet.p4\"

docs/languages.md shows how to use the files.")]
pub(super) struct Generate {
    /// Language of the file
    #[arg(long, value_enum)]
    language: Language,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Version of the specification
    #[arg(long, value_name = "VERSION", value_parser = super::spec, default_value_t = Version::default().spec())]
    spec: &'static Spec,
}

impl Generate {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        write_text(self.output.as_deref(), &self.language.file(self.spec))?;
        Ok(Outcome::Ok)
    }
}
