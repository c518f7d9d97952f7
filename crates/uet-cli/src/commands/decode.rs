//! `uet decode`

use super::ethernet_capture::{EthernetCapture, check_distinct};
use super::foreign::Foreign;
use super::live::{Live, Watch};
use super::output::TablesTo;
use super::{Deployment, From, Outcome, about, add_secrets, complain, readable, records};
use crate::expression::Expression;
use crate::paint::Paint;
use crate::select::{Numbers, Pdc, Selection, Type, Wrong};
use crate::tables::Tables;
use crate::text;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use uet_conformance::passive::Origin;
use uet_packet_io::input::{InputError, Taker};
use uet_packet_io::json::{Decoded, Record, Time};
use uet_packet_io::{Decoder, hex};
use uet_wire::validate::Severity;

/// Show packets and their fields
///
/// INPUT is a capture (pcap or pcapng, plain or gzip), a text with one packet in hexadecimal per line, `-` for standard
/// input, or the hexadecimal digits of a packet.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uet decode capture.pcapng
  uet decode --format summary --type ACK_CC,NACK capture.pcapng
  uet decode --pdc 0x4001 --packets 1-100 capture.pcapng
  uet decode --finding error capture.pcapng
  uet decode --filter 'pds.psn > 5 && pds.flags.retx' capture.pcapng
  uet decode --filter ses.opcode --format pcapng -o some.pcapng capture.pcapng
  uet decode --trailer crc --format json capture.pcap.gz | jq .fields
  uet decode --format parquet -o tables capture.pcapng
  uet decode --from uet 380000000001200380014001
  tcpdump -U -w - udp port 4793 | uet decode -
  uet decode --interface eth0 --format summary

Exit codes:
  0  all is well
  1  a packet shown is malformed or has a finding of severity error
  2  usage, or unreadable input")]
pub(super) struct Decode {
    /// Captures, texts, or hexadecimal digits
    #[arg(required_unless_present = "interface", conflicts_with = "interface", value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: DecodeFormat,
    /// File of `--format pcapng` [default: standard output], or directory for the tables of `--format parquet`
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// First layer of packets given in hexadecimal
    #[arg(long, value_enum, default_value = "eth")]
    from: From,
    /// Include the bytes, so that `uet encode` reproduces the frame (with --format json)
    #[arg(long)]
    bytes: bool,
    #[command(flatten)]
    live: Live,
    #[command(flatten)]
    deployment: Deployment,
    #[command(flatten)]
    filters: Filters,
}

/// Filters for packets. A packet is shown if all of them match.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Filters")]
struct Filters {
    /// Packets of these contexts, by the identifier of either end: 0x4001
    #[arg(long, value_name = "PDCID", value_delimiter = ',')]
    pdc: Vec<Pdc>,
    /// Only packets of these types, such as ACK_CC,NACK. Types of control packets work too, such as PROBE
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    types: Vec<Type>,
    /// Packets with these findings of single packets, by identifier or severity: WIRE-SES-003,error. `malformed`
    /// selects malformed packets, and so does `error`
    #[arg(long, value_name = "FINDING", value_delimiter = ',')]
    finding: Vec<Wrong>,
    /// Packets with these numbers: 1-10,20,100-
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    packets: Vec<Numbers>,
    /// Packets for which this condition on their fields holds: `pds.psn > 5 && (pds.flags.retx || pds.type == NACK)`
    ///
    /// Names are those that `uet decode` and `uet layout` print. A field alone holds if the packet has it, a flag alone
    /// if it is set. Operators: `==`, `!=`, `<`, `<=`, `>`, `>=`, `!`, `&&`, `||`. Values: numbers, names of code
    /// points, addresses and their prefixes (`10.4.0.0/24`). A comparison with a field that the packet does not have is
    /// false. `payload` and `padding` are lengths in bytes. `time` is in seconds since the first packet: `time >= 1.5`.
    #[arg(long, value_name = "CONDITION")]
    filter: Option<Expression>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DecodeFormat {
    /// A tree per packet: names, values, meanings, positions in the bytes, findings
    Text,
    /// One line per packet
    Summary,
    /// One JSON object per packet, on a line of its own
    Json,
    /// A capture of the packets as they were captured, without keys. Packets without an Ethernet header get one of zeros
    Pcapng,
    /// A table of packets, DIRECTORY/packets.parquet (docs/analysis.md)
    Parquet,
}

impl Decode {
    pub(super) fn run(&self) -> io::Result<Outcome> {
        let Filters { pdc, types, finding, packets, filter } = self.filters.clone();
        let stdout = io::stdout().lock();
        let is_capture = self.format == DecodeFormat::Pcapng;
        if self.output.is_some() && !is_capture && self.format != DecodeFormat::Parquet {
            return Err(io::Error::other("--output is for --format pcapng and --format parquet"));
        }
        if let Some(path) = self.output.as_deref().filter(|_| is_capture) {
            check_distinct("--output", path, &self.inputs)?;
        } else if is_capture && stdout.is_terminal() {
            return Err(io::Error::other("a terminal cannot show a capture: use --output FILE, or a pipe"));
        }
        if let Some(folder) = self.output.as_deref().filter(|_| !is_capture) {
            check_distinct("--output", &folder.join("packets.parquet"), &self.inputs)?;
        }
        let tables = TablesTo { output: self.output.clone().filter(|_| !is_capture) };
        let mut printer = Printer {
            format: self.format,
            decoder: Some(self.deployment.decoder(self.bytes)?),
            selection: Selection { pdcs: pdc, types, findings: finding, numbers: packets, condition: filter },
            paint: Paint::stdout(),
            live: stdout.is_terminal() || self.live.interface.is_some(),
            tables: tables.open(self.format == DecodeFormat::Parquet, Tables::of_packets)?,
            capture: None,
            output: self.output.clone(),
            section: String::new(),
            comment: String::new(),
            out: BufWriter::with_capacity(1 << 16, stdout),
            buffer: Vec::new(),
            number: 0,
            began: None,
            shown: 0,
            bad: false,
            foreign: Foreign::default(),
        };
        if let Some(interface) = &self.live.interface {
            self.live.watch(interface, &mut printer)?;
            printer.foreign.input_ended(interface.as_ref(), false);
        }
        let mut damaged = false;
        for input in &self.inputs {
            let read = self.read(input, &mut printer);
            let unreadable = !readable(input, read, &mut printer)?;
            damaged |= unreadable;
            printer.foreign.input_ended(input, unreadable);
        }
        printer.out.flush()?;
        printer.tables.take().map_or(Ok(()), Tables::finish)?;
        if is_capture {
            printer.capture()?;
            printer.capture.take().map_or(Ok(()), EthernetCapture::finish)?;
        }
        printer.foreign.complain();
        if printer.shown == 0 && printer.number > 0 && printer.selection.is_some() {
            let by_severity = |finding: &Wrong| matches!(finding, Wrong::Severity(_));
            let hint = match printer.selection.findings.iter().any(by_severity) {
                true => "; findings over several packets need `uet check`",
                false => "",
            };
            complain(format_args!("0 of {} packets match{hint}", printer.number));
        }
        Ok(match (damaged, printer.bad) {
            (true, _) => Outcome::UsageError,
            (false, true) => Outcome::Violation,
            (false, false) => Outcome::Ok,
        })
    }

    fn read(&self, input: &Path, printer: &mut Printer<impl Write>) -> Result<(), InputError> {
        let start = self.from.start();
        match records(input, start, printer) {
            Err(InputError::Io(missing)) => match input.to_str().map(|text| (text, hex::decode(text))) {
                // Treat an argument as digits if it is not a file and looks like hexadecimal.
                Some((text, Ok(bytes))) if !text.is_empty() => {
                    let record = Record { start, bytes: &bytes, wire: bytes.len(), ..Record::default() };
                    let printed = printer.packet(record).map(drop).map_err(InputError::Sink);
                    printer.foreign.digits_ended(input);
                    printed
                }
                Some((text, Err(why))) if missing.kind() == io::ErrorKind::NotFound && like_digits(text) => {
                    Err(InputError::Digits(why))
                }
                _ => Err(InputError::Io(missing)),
            },
            read => read,
        }
    }
}

/// Returns whether a text was probably meant as hexadecimal digits: nothing suggests a path.
fn like_digits(text: &str) -> bool {
    !text.contains(['.', '/', '\\'])
}

struct Printer<W: Write> {
    format: DecodeFormat,
    /// Absent while it decodes a packet.
    decoder: Option<Decoder>,
    selection: Selection,
    paint: Paint,
    /// Flush after each packet, because somebody watches.
    live: bool,
    tables: Option<Tables>,
    /// The capture of the packets, from the first one on.
    capture: Option<EthernetCapture>,
    /// The file of the capture; `None` for standard output.
    output: Option<PathBuf>,
    /// The comment of the current section of the input.
    section: String,
    /// The comment of the current packet.
    comment: String,
    out: BufWriter<W>,
    /// Buffer of the current packet, kept for its allocation.
    buffer: Vec<u8>,
    /// Packets so far, over all inputs.
    number: u64,
    /// The time of the first packet that has one.
    began: Option<Timestamp>,
    shown: u64,
    bad: bool,
    foreign: Foreign,
}

impl<W: Write> Taker for Printer<W> {
    fn packet(&mut self, record: Record<'_>) -> io::Result<ControlFlow<()>> {
        self.number += 1;
        self.began = self.began.or(record.time);
        if self.selection.has_number(self.number) {
            let record = Record { number: self.number, ..record };
            let Some(mut decoder) = self.decoder.take() else { return Ok(ControlFlow::Break(())) };
            let decoded = decoder.decode(record);
            self.foreign.packet(&decoded);
            let since =
                record.time.zip(self.began).map(|(time, began)| time.as_nanosecond() - began.as_nanosecond());
            let since = since.and_then(|nanoseconds| i64::try_from(nanoseconds).ok());
            let shown =
                if self.selection.has(&decoded, since) { self.show(&record, &decoded) } else { Ok(()) };
            self.decoder = Some(decoder);
            shown?;
        } else {
            self.foreign.unselected();
        }
        self.comment.clear();
        let past = self.selection.is_past(self.number);
        Ok(if past { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn section(&mut self, comment: &str) {
        comment.clone_into(&mut self.section);
    }

    fn comment(&mut self, comment: &str) {
        comment.clone_into(&mut self.comment);
    }

    fn secrets(&mut self, key_file: &[u8]) {
        add_secrets(self.decoder.as_mut(), key_file);
    }

    fn pause(&mut self) -> io::Result<()> {
        self.capture.as_mut().map_or(Ok(()), EthernetCapture::flush)?;
        self.out.flush()
    }
}

impl<W: Write> Watch for Printer<W> {
    fn packets(&self) -> u64 {
        self.number
    }

    fn is_over(&self) -> bool {
        self.selection.is_past(self.number)
    }
}

impl<W: Write> Printer<W> {
    /// Returns the new capture. It has the comment of the first packet's section, and says if packets are left out.
    fn capture(&mut self) -> io::Result<&mut EthernetCapture> {
        let path = self.output.as_deref();
        let capture = match self.capture.take() {
            Some(capture) => capture,
            None => EthernetCapture::create(path, &self.title())
                .map_err(|error| about(path.unwrap_or(Path::new("-")), error))?,
        };
        Ok(self.capture.insert(capture))
    }

    /// Returns the comment of the new capture.
    fn title(&self) -> String {
        if self.selection.is_some() { Origin::selection(&self.section) } else { self.section.clone() }
    }

    /// Shows a packet, which was captured as `record`.
    fn show(&mut self, record: &Record<'_>, decoded: &Decoded<'_>) -> io::Result<()> {
        self.shown += 1;
        self.bad |= decoded.is_bad();
        self.buffer.clear();
        match self.format {
            DecodeFormat::Text => text::tree(&mut self.buffer, decoded, self.paint)?,
            DecodeFormat::Summary => summary(&mut self.buffer, decoded, self.paint)?,
            DecodeFormat::Json => {
                decoded.write(&mut self.buffer);
                self.buffer.push(b'\n');
            }
            DecodeFormat::Pcapng => {
                let comment = core::mem::take(&mut self.comment);
                let live = self.live;
                let capture = self.capture()?;
                capture.write(record, &comment)?;
                return if live { capture.flush() } else { Ok(()) };
            }
            DecodeFormat::Parquet => {
                return self.tables.as_mut().map_or(Ok(()), |tables| tables.packet(decoded, &[]));
            }
        }
        self.out.write_all(&self.buffer)?;
        if self.live { self.out.flush() } else { Ok(()) }
    }
}

/// Writes number, time, source, destination, contents and findings of a packet.
fn summary(out: &mut impl Write, decoded: &Decoded<'_>, paint: Paint) -> io::Result<()> {
    let Decoded { record, packet, findings, .. } = decoded;
    write!(out, "{:>5} ", record.number)?;
    match record.time {
        Some(time) => write!(out, "{} ", paint.faint(Time(time)))?,
        None => write!(out, "- ")?,
    }
    match packet.ip {
        Some(ip) => write!(out, "{} > {} ", ip.src(), ip.dst())?,
        None => write!(out, "- > - ")?,
    }
    match decoded.error() {
        None => write!(out, "{packet}")?,
        Some(error) => write!(out, "{}: {error}", paint.error(packet))?,
    }
    if decoded.protection.as_ref().is_some_and(|protection| protection.authenticated == Some(false)) {
        write!(out, " {}", paint.error("!not-authentic"))?;
    }
    for finding in findings {
        let id = finding.requirement.id;
        match finding.severity() {
            Severity::Error => write!(out, " {}", paint.error(format_args!("!{id}")))?,
            _ => write!(out, " {}", paint.warning(format_args!("!{id}")))?,
        }
    }
    writeln!(out)
}
