//! Captures to learn from. docs/walkthroughs.md explains each of them.
//!
//! Each [`Story`] plays an exchange between NICs of `uet-emulator`, in virtual time, on links of
//! 100 Gb/s at one switch. `cargo run -p uet-captures` writes the files, and a test compares them.

mod notes;
mod stories;
mod switch;

pub use stories::stories;

use core::time::Duration;
use std::error::Error;
use std::path::PathBuf;
use switch::Captured;
use uet_emulator::frame::{Outer, Record, frame};
use uet_model::network::Treatment;
use uet_packet_io::capture::{CaptureWriter, CapturedFrame, LinkType};
use uet_wire::{Options, Packet, Start};

/// The time of the first packets: 2026-01-15 10:00:00 UTC.
const START: Duration = Duration::from_secs(1_768_471_200);

/// Returns the folder of the captures.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("learn")
}

/// A text in the summary of a packet, and the comment on this packet.
type Notes = &'static [(&'static str, &'static str)];

/// An exchange, with explanations.
pub struct Story {
    /// Name of the file.
    pub name: &'static str,
    /// Comment on the capture.
    about: &'static str,
    /// Comments on packets, in the order of the capture. Each belongs to the next packet whose summary contains the text.
    notes: Notes,
    /// Number of bytes captured of each frame.
    snap: usize,
    /// The key file in the capture.
    keys: Option<&'static str>,
    play: fn() -> Result<Vec<Captured>, Box<dyn Error>>,
}

impl Story {
    /// Plays the exchange and returns its capture.
    ///
    /// # Errors
    ///
    /// Fails if an operation fails, or if no packet fits a note.
    pub fn capture(&self) -> Result<Vec<u8>, Box<dyn Error>> {
        let mut writer = CaptureWriter::commented(Vec::new(), LinkType::Ethernet, "uet", self.about)?;
        if let Some(keys) = self.keys {
            writer.write_secrets(keys.as_bytes())?;
        }
        let mut notes = self.notes.iter().peekable();
        for Captured { at, packet, treatment } in (self.play)()? {
            let Treatment { marked, trim, .. } = treatment;
            let record = Record { marked, trim, ..Record::new(at, &packet) };
            let bytes = frame(&record, &Outer::default())?;
            let summary = Packet::parse_lax(Start::Eth, &bytes, &Options::default()).0.to_string();
            let note = notes.next_if(|(text, _)| summary.contains(text));
            let frame = CapturedFrame {
                time: START + Duration::from_nanos(at.0),
                bytes: &bytes[..bytes.len().min(self.snap)],
                wire: bytes.len(),
                comment: note.map_or("", |(_, comment)| comment),
            };
            writer.write(&frame)?;
        }
        match notes.next() {
            Some((text, _)) => Err(format!("no packet contains {text:?}").into()),
            None => Ok(writer.finish()?),
        }
    }
}
