//! `uet encode`

use super::{Deployment, From, Outcome, about, complain, key_text};
use clap::{Args, ValueEnum};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use uet_packet_io::capture::{CaptureWriter, CapturedFrame, LinkType};
use uet_packet_io::file::{Replacement, read_line};
use uet_packet_io::hex::Hex;
use uet_packet_io::json::{Settings, encode, encode_sealed};
use uet_packet_io::keys::KeyRing;

/// Build packets from JSON, the inverse of decode
///
/// Each line of INPUT is a packet as `uet decode --format json` prints it. Missing values are computed where possible:
/// next headers, lengths, checksums, the CRC. Given values are kept, even if they are wrong.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet decode --format json --bytes a.pcapng | uet encode --format pcapng -o b.pcapng
  echo '{\"fields\":{\"pds.type\":7,\"pds.cack_psn\":5}}' | uet encode --from uet")]
pub(super) struct Encode {
    /// Lines of JSON; `-` or nothing for standard input
    #[arg(value_name = "INPUT", default_value = "-")]
    input: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "hex")]
    format: EncodeFormat,
    /// First layer of the packets
    #[arg(long, value_enum, default_value = "eth")]
    from: From,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Put the key file into the capture, which needs --output. The capture then lets others decrypt and forge packets
    #[arg(long, requires_all = ["keys", "output"])]
    embed_keys: bool,
    #[command(flatten)]
    deployment: Deployment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EncodeFormat {
    /// One line of hexadecimal digits per packet
    Hex,
    /// A capture
    Pcapng,
}

impl Encode {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        let settings = Settings { start: self.from.start(), options: self.deployment.options() };
        let keys = self.deployment.key_ring()?;
        let mut input: Box<dyn BufRead> = match self.input.to_str() {
            Some("-") => Box::new(io::stdin().lock()),
            _ => {
                Box::new(BufReader::new(File::open(&self.input).map_err(|error| about(&self.input, error))?))
            }
        };
        let mut replacement = match &self.output {
            None => None,
            Some(path) => Some(Replacement::new(path).map_err(|error| about(path, error))?),
        };
        if let Some(file) = replacement.as_mut().filter(|_| self.embed_keys) {
            file.keep_private();
        }
        let mut stdout = io::stdout().lock();
        let target: &mut dyn Write = match &mut replacement {
            None => &mut stdout,
            Some(file) => file,
        };
        let mut out = Out::new(Box::new(BufWriter::new(target)), self.format, self.from)?;
        if let Some(path) = self.deployment.keys.as_deref().filter(|_| self.embed_keys) {
            out.embed(key_text(path)?.as_bytes())?;
        }
        let mut bad = false;
        for number in 1.. {
            let line = read_line(&mut input, MAX_LINE);
            let line = line.map_err(|error| about(&self.input, format_args!("line {number}: {error}")))?;
            let Some(line) = line else { break };
            if line.trim().is_empty() {
                continue;
            }
            match packet(&line, &settings, keys.as_ref()) {
                Ok(packet) => out.write(packet)?,
                Err(why) => {
                    complain(about(Path::new(&self.input), format_args!("line {number}: {why}")));
                    bad = true;
                }
            }
        }
        out.finish()?;
        if let (Some(file), Some(path)) = (replacement, &self.output) {
            file.commit().map_err(|error| about(path, error))?;
        }
        Ok(if bad { Outcome::Violation } else { Outcome::Ok })
    }
}

/// Maximum length of a line. A packet of 64 KiB takes 128 KiB of digits, and more for its fields.
const MAX_LINE: u64 = 4 << 20;

/// A packet's capture time, its bytes, and its length on the wire.
struct Captured {
    time: Duration,
    frame: Vec<u8>,
    wire: usize,
}

/// Returns the error of a line that is not JSON. Serde counts the lines of its text, which is one line of the input.
fn not_json(error: serde_json::Error) -> String {
    let text = error.to_string();
    let reason = text.rsplit_once(" at line ").map_or(&*text, |(reason, _)| reason);
    format!(
        "the line is not JSON, as `uet decode --format json` prints it: {reason} at character {}",
        error.column()
    )
}

fn packet(line: &str, settings: &Settings, keys: Option<&KeyRing>) -> Result<Captured, String> {
    let json: serde_json::Value = serde_json::from_str(line).map_err(not_json)?;
    let time = match json.get("time").and_then(serde_json::Value::as_str) {
        None => Duration::ZERO,
        Some(text) => {
            let time: jiff::Timestamp = text.parse().map_err(|error| format!("time: {error}"))?;
            Duration::from_nanos(
                u64::try_from(time.as_nanosecond()).map_err(|_| "time: must be 1970 or later")?,
            )
        }
    };
    let frame = match keys {
        Some(keys) => encode_sealed(&json, settings, keys),
        None => encode(&json, settings),
    };
    let frame = frame.map_err(|error| error.to_string())?;
    let wire = json.pointer("/sliced/wire").and_then(serde_json::Value::as_u64).unwrap_or(0);
    let wire = frame.len().max(usize::try_from(wire).unwrap_or(usize::MAX));
    Ok(Captured { time, frame, wire })
}

enum Out<'a> {
    Hex(Box<dyn Write + 'a>),
    Pcapng(Box<CaptureWriter<Box<dyn Write + 'a>>>),
}

impl<'a> Out<'a> {
    fn new(out: Box<dyn Write + 'a>, format: EncodeFormat, from: From) -> io::Result<Self> {
        if format == EncodeFormat::Hex {
            return Ok(Out::Hex(out));
        }
        let link = match from {
            From::Eth => LinkType::Ethernet,
            From::Ip => LinkType::Ip,
            From::Udp | From::Uet => {
                return Err(io::Error::other(
                    "a capture needs packets from Ethernet or IP on: use --from eth or --from ip",
                ));
            }
        };
        Ok(Out::Pcapng(Box::new(CaptureWriter::new(out, link)?)))
    }

    fn embed(&mut self, key_file: &[u8]) -> io::Result<()> {
        match self {
            Out::Hex(_) => Err(io::Error::other("--embed-keys needs a capture: use --format pcapng")),
            Out::Pcapng(out) => out.write_secrets(key_file),
        }
    }

    fn write(&mut self, Captured { time, frame, wire }: Captured) -> io::Result<()> {
        match self {
            Out::Hex(out) => writeln!(out, "{}", Hex(&frame)),
            Out::Pcapng(out) => out.write(&CapturedFrame { wire, ..CapturedFrame::new(time, &frame) }),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Out::Hex(mut out) => out.flush(),
            Out::Pcapng(out) => out.finish().map(|_| ()),
        }
    }
}
