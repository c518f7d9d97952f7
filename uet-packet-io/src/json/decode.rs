//! A record of a capture as JSON.

use super::write::Writer;
use jiff::Timestamp;
use jiff::fmt::StdFmtWrite;
use jiff::fmt::temporal::DateTimePrinter;
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::iter::Copied;
use std::slice::Iter;
use uet_wire::layout::Layer;
use uet_wire::serde::PacketView;
use uet_wire::validate::{Finding, Severity};
use uet_wire::{Options, Packet, ParseError, Spec, Start, TrailerKind};

/// Where a packet comes from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record<'a> {
    /// Its place in the input, from 1.
    pub number: u64,
    /// When it was captured.
    pub time: Option<Timestamp>,
    /// The header of the capture's link type, where that is not Ethernet.
    pub link: &'a [u8],
    /// The link type, where it is one that is not read.
    pub unread: Option<i32>,
    /// What the bytes behind it start with.
    pub start: Start,
    /// The bytes captured behind it.
    pub bytes: &'a [u8],
    /// How many of those there were on the wire.
    pub wire: usize,
}

/// A packet that has been read, ready to be written as JSON.
#[derive(Clone, Debug)]
pub struct Decoded<'a> {
    /// Where it comes from.
    pub record: Record<'a>,
    /// What it is.
    pub packet: Packet<'a>,
    /// What the specification forbids in it.
    pub findings: Vec<Finding>,
    /// The version of the specification by which it is shown and judged.
    pub spec: &'static Spec,
    trailer: TrailerKind,
    raw: bool,
}

impl<'a> Decoded<'a> {
    /// Reads a packet. `raw` adds the bytes from which [`encode`](super::encode) gives back the same frame.
    pub fn new(record: Record<'a>, options: &Options, raw: bool) -> Self {
        let packet = Packet::parse_sliced(record.start, record.bytes, record.wire, options).0;
        let mut findings = Vec::new();
        packet.validate(options.spec).for_each(|finding| findings.push(finding));
        Decoded { record, packet, findings, spec: options.spec, trailer: options.trailer, raw }
    }

    /// Returns the packet with the facts that its JSON shows beside its own.
    pub fn view(&self) -> PacketView<'_, 'a, Copied<Iter<'_, Finding>>> {
        PacketView {
            packet: &self.packet,
            base: self.record.link.len(),
            trailer: self.trailer,
            spec: self.spec,
            findings: self.findings.iter().copied(),
        }
    }

    /// Returns the error of a malformed packet, with its offset from the first byte captured.
    pub fn error(&self) -> Option<ParseError> {
        self.view().error()
    }

    /// True if the packet is malformed or breaks a requirement of level `must`.
    pub fn is_bad(&self) -> bool {
        self.packet.error().is_some()
            || self.findings.iter().any(|finding| finding.severity() == Severity::Error)
    }

    /// Returns the bytes before the UET headers, from the first one captured.
    fn outer(&self) -> [&'a [u8]; 2] {
        let uet: usize = self
            .packet
            .headers()
            .filter(|(layout, _)| {
                matches!(layout.layer, Layer::Entropy | Layer::Tss | Layer::Pds | Layer::Ses | Layer::Ext)
            })
            .map(|(_, header)| header.len())
            .sum();
        let entropy = self.packet.entropy.map_or(0, |header| header.bytes().len());
        let length = self.view().payload_offset() - self.record.link.len() - uet + entropy;
        [self.record.link, &self.record.bytes[..length]]
    }
}

/// The record's number and time, the keys of the packet, and with `raw` its bytes.
impl Serialize for Decoded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("number", &self.record.number)?;
        map.serialize_entry("time", &self.record.time.map(Time))?;
        self.view().serialize_into(&mut map)?;
        if self.raw {
            map.serialize_entry("raw", &Raw(self))?;
        }
        map.end()
    }
}

impl Decoded<'_> {
    /// Appends the packet as one JSON object.
    pub fn write(&self, out: &mut Vec<u8>) {
        // Writing into memory does not fail.
        let _ = self.serialize(&mut Writer(out));
    }
}

/// The bytes from which [`encode`](super::encode) makes the frame again.
struct Raw<'d, 'a>(&'d Decoded<'a>);

impl Serialize for Raw<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Packet { uet, trailer, padding, rest, .. } = &self.0.packet;
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("outer", &hex(&self.0.outer()))?;
        map.serialize_entry("payload", &hex(&[uet.payload]))?;
        map.serialize_entry("trailer", &hex(&[trailer]))?;
        map.serialize_entry("padding", &hex(&[padding]))?;
        map.serialize_entry("rest", &hex(&[rest]))?;
        map.end()
    }
}

/// Returns runs of bytes, one after the other, as one text of digits.
fn hex(runs: &[&[u8]]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(2 * runs.iter().map(|run| run.len()).sum::<usize>());
    for byte in runs.iter().copied().flatten() {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 0xf)]));
    }
    text
}

/// A time as `2026-01-02T03:04:05.000000000Z`.
#[derive(Clone, Copy, Debug)]
pub struct Time(pub Timestamp);

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const NINE_DIGITS: DateTimePrinter = DateTimePrinter::new().precision(Some(9));
        NINE_DIGITS.print_timestamp(&self.0, StdFmtWrite(f)).map_err(|_| std::fmt::Error)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
