//! `uet corpus`

use super::{Outcome, about};
use clap::{Args, Subcommand};
use std::io::{self, Write};
use std::path::PathBuf;
use uet_packet_io::corpus::{dictionary, export};

/// Give fuzzers what they start from
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
    /// Write packets that reach much of a parser, as files and as captures, and the words of UET
    ///
    /// DIR/eth, DIR/ip, DIR/udp and DIR/uet hold a file for each packet that starts so; eth.pcap, ip.pcap and uet.pcap
    /// the same as captures, those that start with UET in Ethernet, IPv4 and UDP; uet.dict and json.dict the words.
    Export {
        /// The directory, made when there is none
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Print the words of UET, as AFL++ and libFuzzer read them
    Dictionary {
        /// Those of packets as JSON
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
