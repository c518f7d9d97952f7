//! `uet corpus`

use super::{Outcome, about};
use clap::{Args, Subcommand};
use std::io::{self, Write};
use std::path::PathBuf;
use uet_packet_io::corpus::{dictionary, export};

/// Write seed inputs for fuzzers
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet corpus export seeds
  afl-fuzz -i seeds/uet -x seeds/uet.dict -o found -- ./your-parser @@")]
pub(super) struct Corpus {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Write packets that cover much of a parser as files and captures, and a dictionary of UET words
    ///
    /// DIR/eth, DIR/ip, DIR/udp and DIR/uet hold one file per packet that starts with that layer. The captures
    /// eth.pcap, ip.pcap and uet.pcap hold packets that start with Ethernet, IPv4, and UET in Ethernet, IPv4 and UDP.
    /// uet.dict and json.dict are the dictionaries.
    Export {
        /// Output directory, created if it is missing
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Print the words of UET as a dictionary for AFL++ and libFuzzer
    Dictionary {
        /// Print the words of packets as JSON
        #[arg(long)]
        json: bool,
    },
}

impl Corpus {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        match &self.what {
            What::Export { directory } => {
                let count = export(directory).map_err(|error| about(directory, error))?;
                writeln!(io::stderr(), "{count} packets")?;
            }
            What::Dictionary { json } => {
                let words = if *json { dictionary::json() } else { dictionary::packets() };
                io::stdout().lock().write_all(words.as_bytes())?;
            }
        }
        Ok(Outcome::Ok)
    }
}
