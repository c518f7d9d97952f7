//! `uet decode`

use super::{Deployment, Ending, From, about, complain, version};
use crate::hex;
use crate::input::{self, InputError};
use crate::json::{Decoded, Record};
use crate::progress::Progress;
use clap::{Args, ValueEnum};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use uet_wire::{Options, Version};

/// Show what packets say
///
/// INPUT is a capture (pcap or pcapng, plain or gzip), a text with a packet in hexadecimal on each line, `-` for
/// standard input, or the hexadecimal digits of a packet themselves.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet decode capture.pcapng
  uet decode --trailer crc --format json capture.pcap.gz | jq .fields
  uet decode --from uet 3a0000000001200380014001
  tcpdump -w - udp port 4793 | uet decode -")]
pub(super) struct Decode {
    /// Captures, texts, or hexadecimal digits
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// What is printed
    #[arg(long, value_enum, default_value = "json")]
    format: Format,
    /// What packets given in hexadecimal start with
    #[arg(long, value_enum, default_value = "eth")]
    from: From,
    /// Version of the specification that packets are judged by
    #[arg(long, value_name = "VERSION", value_parser = version, default_value_t)]
    spec: Version,
    /// Add the bytes, so that `uet encode` gives back the same frame (with --format json)
    #[arg(long)]
    bytes: bool,
    #[command(flatten)]
    deployment: Deployment,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// One JSON object per line
    Json,
}

impl Decode {
    pub(super) fn run(&self) -> io::Result<Ending> {
        let mut printer = Printer {
            format: self.format,
            options: self.deployment.options(),
            version: self.spec,
            bytes: self.bytes,
            out: BufWriter::with_capacity(1 << 16, io::stdout().lock()),
            number: 0,
            bad: false,
        };
        let mut damaged = None;
        for input in &self.inputs {
            match self.read(input, &mut printer) {
                Ok(()) => {}
                Err(InputError::Sink(error)) => return Err(error),
                Err(error) => {
                    // What could be read comes out before the complaint.
                    printer.out.flush()?;
                    complain(about(input, error));
                    damaged = Some(());
                }
            }
        }
        printer.out.flush()?;
        match (damaged, printer.bad) {
            (Some(()), _) => Err(io::Error::other("not all input could be read")),
            (None, true) => Ok(Ending::Bad),
            (None, false) => Ok(Ending::Well),
        }
    }

    fn read(&self, input: &Path, printer: &mut Printer<impl Write>) -> Result<(), InputError> {
        let start = self.from.start();
        if input == Path::new("-") {
            return input::read(io::stdin(), start, &mut |record, _| printer.print(record));
        }
        match File::open(input) {
            Ok(file) => {
                let total = file.metadata().map_err(InputError::Io)?.len();
                let progress = Progress::new(total);
                input::read(progress.watch(file), start, &mut |record, _| printer.print(record))
            }
            Err(missing) => match input.to_str().map(|text| (text, hex::decode(text))) {
                // What is no file and looks like digits is meant as such.
                Some((text, Ok(bytes))) if !text.is_empty() => {
                    let record = Record { start, bytes: &bytes, wire: bytes.len(), ..Record::default() };
                    printer.print(record).map_err(InputError::Sink)
                }
                _ => Err(InputError::Io(missing)),
            },
        }
    }
}

struct Printer<W> {
    format: Format,
    options: Options,
    version: Version,
    bytes: bool,
    out: W,
    /// Packets so far, over all inputs.
    number: u64,
    bad: bool,
}

impl<W: Write> Printer<W> {
    fn print(&mut self, record: Record<'_>) -> io::Result<()> {
        self.number += 1;
        let record = Record { number: self.number, ..record };
        let decoded = Decoded::new(record, &self.options, self.version, self.bytes);
        self.bad |= decoded.is_bad();
        match self.format {
            Format::Json => {
                serde_json::to_writer(&mut self.out, &decoded)?;
                self.out.write_all(b"\n")
            }
        }
    }
}
