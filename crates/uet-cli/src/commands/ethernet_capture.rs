//! Writes packets of a capture into another one, with other comments or without some of the packets.

use super::{about, complain};
use crate::text::counted;
use core::time::Duration;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use uet_packet_io::capture::{CaptureWriter, CapturedFrame, LinkType};
use uet_packet_io::file::Replacement;
use uet_packet_io::json::Record;
use uet_wire::Start;

/// A capture of Ethernet frames. Packets that begin with an IP header get an Ethernet header of zeros.
pub(super) struct EthernetCapture {
    /// The file; `None` for standard output.
    file: Option<Replacement>,
    writer: CaptureWriter<Sink>,
    /// Number of packets without an IP header.
    left_out: u64,
    times: WrittenTimes,
}

/// Times of packets as a capture with a resolution of nanoseconds has them. It ends in 2554.
#[derive(Debug, Default)]
pub(super) struct WrittenTimes {
    /// Number of packets whose time does not fit.
    lost: u64,
}

impl WrittenTimes {
    /// Returns the time since 1970, or 0 if the packet has none or it does not fit.
    pub(super) fn of(&mut self, record: &Record<'_>) -> Duration {
        let Some(time) = record.time else { return Duration::ZERO };
        let nanoseconds = u64::try_from(time.as_nanosecond());
        self.lost += u64::from(nanoseconds.is_err());
        Duration::from_nanos(nanoseconds.unwrap_or(0))
    }

    pub(super) fn complain(&self) {
        if self.lost > 0 {
            let packets = counted(self.lost, "packet");
            complain(format_args!(
                "warning: {packets} had times outside 1970 to 2554, which the new capture cannot hold"
            ));
        }
    }
}

impl EthernetCapture {
    /// Starts a capture in this file, or on standard output, with a comment on all of it.
    pub(super) fn create(path: Option<&Path>, comment: &str) -> io::Result<Self> {
        let (file, out) = open(path)?;
        let writer = CaptureWriter::commented(out, LinkType::Ethernet, "uet", comment)?;
        Ok(EthernetCapture { file, writer, left_out: 0, times: WrittenTimes::default() })
    }

    /// Writes a packet with a comment, which may be empty.
    pub(super) fn write(&mut self, record: &Record<'_>, comment: &str) -> io::Result<()> {
        let ethertype = match record.start {
            Start::Eth => None,
            Start::Ip if record.bytes.first().is_some_and(|first| first >> 4 == 6) => Some(0x86dd),
            Start::Ip => Some(0x0800),
            Start::EtherType(number) => Some(number),
            _ => {
                self.left_out += 1;
                return Ok(());
            }
        };
        let mut frame = Vec::with_capacity(record.bytes.len() + 14);
        if let Some(number) = ethertype {
            frame.extend([0; 12]);
            frame.extend(u16::to_be_bytes(number));
        }
        let wire = frame.len() + record.wire;
        frame.extend(record.bytes);
        let time = self.times.of(record);
        self.writer.write(&CapturedFrame { wire, comment, ..CapturedFrame::new(time, &frame) })
    }

    /// Writes the packets so far to the file.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Ends the capture.
    pub(super) fn finish(self) -> io::Result<()> {
        if self.left_out > 0 {
            complain(format_args!(
                "warning: left out {} without an IP header",
                counted(self.left_out, "packet")
            ));
        }
        self.times.complain();
        self.writer.finish()?;
        self.file.map_or(Ok(()), Replacement::commit)
    }
}

/// Returns the file that OUT names, or `None` for `-`, which is standard output. Fails if that is a terminal.
pub(super) fn destination(out: &Path) -> io::Result<Option<&Path>> {
    let file = (out != Path::new("-")).then_some(out);
    match file.is_none() && io::stdout().is_terminal() {
        true => Err(io::Error::other("a terminal cannot show a capture: name a file, or use a pipe")),
        false => Ok(file),
    }
}

/// Adds the name of the file to an error, if it is not about standard output.
pub(super) fn about_output(path: Option<&Path>, error: io::Error) -> io::Error {
    match path {
        Some(path) => about(path, error),
        None => error,
    }
}

/// A file or standard output.
pub(super) type Sink = BufWriter<Box<dyn Write>>;

/// Opens a new file, which is to be committed, or standard output. Returns the file and its writer.
pub(super) fn open(path: Option<&Path>) -> io::Result<(Option<Replacement>, Sink)> {
    let file = path.map(Replacement::new).transpose()?;
    let out: Box<dyn Write> = match &file {
        Some(file) => Box::new(file.handle()?),
        None => Box::new(io::stdout()),
    };
    Ok((file, BufWriter::new(out)))
}

/// Fails if an output would replace one of the inputs, or another output that is listed with them.
pub(super) fn check_distinct(option: &str, output: &Path, inputs: &[PathBuf]) -> io::Result<()> {
    // A file that is not there yet has a folder.
    let place = |path: &Path| {
        let file = || Some(path.parent()?.join(".").canonicalize().ok()?.join(path.file_name()?));
        path.canonicalize().ok().or_else(file)
    };
    let same = |input: &PathBuf| place(output).is_some_and(|output| place(input) == Some(output));
    match output != Path::new("-") && inputs.iter().any(same) {
        true => Err(io::Error::other(format!(
            "{}: {option} would replace its input or another output",
            output.display()
        ))),
        false => Ok(()),
    }
}
