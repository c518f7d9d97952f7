//! `uet check --annotate`: findings as comments on the packets of a capture.

use super::complain;
use core::time::Duration;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use uet_packet_io::capture::{CaptureWriter, CapturedFrame, LinkType};
use uet_packet_io::file::Replacement;
use uet_packet_io::json::Record;
use uet_wire::Start;

/// A capture of Ethernet frames with comments. Packets that begin with an IP header get an Ethernet header of zeros.
pub(super) struct Annotated {
    file: Replacement,
    writer: CaptureWriter<BufWriter<std::fs::File>>,
    /// Number of packets without an IP header.
    left_out: u64,
}

impl Annotated {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = Replacement::new(path)?;
        let out = BufWriter::new(file.handle()?);
        let comment = "annotated by uet check; by public evidence";
        let writer = CaptureWriter::commented(out, LinkType::Ethernet, "uet", comment)?;
        Ok(Annotated { file, writer, left_out: 0 })
    }

    /// Writes a packet with its findings, one per line.
    pub(super) fn write(&mut self, record: &Record<'_>, findings: &[String]) -> io::Result<()> {
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
        let nanoseconds = record.time.map_or(0, |time| time.as_nanosecond());
        let time = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0));
        let comment = findings.join("\n");
        self.writer.write(&CapturedFrame { wire, comment: &comment, ..CapturedFrame::new(time, &frame) })
    }

    /// Ends the file.
    pub(super) fn finish(self) -> io::Result<()> {
        if self.left_out > 0 {
            complain(format_args!(
                "warning: {} packets are not in the annotated capture: they begin behind the IP header",
                self.left_out
            ));
        }
        self.writer.finish()?.flush()?;
        self.file.commit()
    }
}
