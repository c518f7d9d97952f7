//! `uet corpus`

use super::Ending;
use crate::corpus::dictionary;
use clap::{Args, Subcommand};
use std::io::{self, Write};

/// Give fuzzers what they start from
#[derive(Debug, Args)]
pub(super) struct Corpus {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print the words of UET, as AFL++ and libFuzzer read them
    Dictionary {
        /// Those of packets as JSON
        #[arg(long)]
        json: bool,
    },
}

impl Corpus {
    pub(super) fn run(&self) -> io::Result<Ending> {
        match &self.what {
            What::Dictionary { json } => {
                let words = if *json { dictionary::json() } else { dictionary::packets() };
                io::stdout().lock().write_all(words.as_bytes())?;
            }
        }
        Ok(Ending::Well)
    }
}
