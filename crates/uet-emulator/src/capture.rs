//! Writes packets as whole frames with comments to pcapng.

use crate::frame::{Outer, Record, frame};
use core::time::Duration;
use std::io::{self, Write};
use uet_packet_io::capture::{CaptureWriter, CapturedFrame, LinkType};

/// A pcapng file of Ethernet frames that is being written.
///
/// ```
/// use uet_emulator::capture::Capture;
/// use uet_emulator::frame::{Outer, Record};
/// use uet_model::{Packet, Time};
///
/// let ack = bytes::Bytes::from_static(&[0x38, 0, 0, 0, 0, 0, 0, 7, 0x80, 1, 0x40, 1]);
/// let packet = Packet::from_wire([10, 0, 0, 1], [10, 0, 0, 2], ack)?;
/// let mut capture = Capture::new(Box::new(std::io::sink()), Outer::default())?;
/// capture.write(&Record { comment: "drop 5%", ..Record::new(Time(1_000), &packet) });
/// assert_eq!(capture.finish()?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Capture {
    writer: CaptureWriter<Box<dyn Write + Send>>,
    outer: Outer,
    written: u64,
    failed: Option<io::Error>,
    /// Comment for the next packet.
    next: Option<String>,
}

impl core::fmt::Debug for Capture {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Capture").field("written", &self.written).field("failed", &self.failed).finish()
    }
}

impl Capture {
    /// Starts a file.
    pub fn new(file: Box<dyn Write + Send>, outer: Outer) -> io::Result<Self> {
        Self::commented(file, outer, "")
    }

    /// Starts a file with a comment on all of it.
    pub fn commented(file: Box<dyn Write + Send>, outer: Outer, comment: &str) -> io::Result<Self> {
        let writer = CaptureWriter::commented(file, LinkType::Ethernet, "uet", comment)?;
        Ok(Capture { writer, outer, written: 0, failed: None, next: None })
    }

    /// Adds a comment to the next packet, before its own.
    pub fn comment_next(&mut self, comment: &str) {
        self.next = Some(comment.to_owned());
    }

    /// Writes a packet. After a failure, writes nothing more; [`finish`](Self::finish) returns the error.
    pub fn write(&mut self, record: &Record<'_>) {
        // A packet without a valid IP header, such as one from IPv4 to IPv6, cannot be on a wire.
        let Ok(frame) = frame(record, &self.outer) else { return };
        if self.failed.is_some() {
            return;
        }
        let time = Duration::from_nanos(record.at.0);
        let next = self.next.take().map(|next| match record.comment {
            "" => next,
            own => format!("{next}\n{own}"),
        });
        let comment = next.as_deref().unwrap_or(record.comment);
        match self.writer.write(&CapturedFrame { comment, ..CapturedFrame::new(time, &frame) }) {
            Ok(()) => self.written += 1,
            Err(error) => self.failed = Some(error),
        }
    }

    /// Writes a key file, for the packets after it.
    pub fn write_secrets(&mut self, key_file: &[u8]) -> io::Result<()> {
        self.writer.write_secrets(key_file)
    }

    /// Flushes buffered packets, so that the file can be read while it is being written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Ends the file and returns its number of packets.
    pub fn finish(mut self) -> io::Result<u64> {
        match self.failed {
            Some(error) => Err(error),
            None => self.writer.flush().map(|()| self.written),
        }
    }
}
