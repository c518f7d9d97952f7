//! Converts a record of a capture to JSON.

use super::write::Writer;
use jiff::Timestamp;
use jiff::fmt::StdFmtWrite;
use jiff::fmt::temporal::DateTimePrinter;
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::iter::Copied;
use std::slice::Iter;
use uet_wire::layout::Layer;
use uet_wire::tss::{KeyIv, Tss};
use uet_wire::validate::{Finding, Severity};
use uet_wire::with_serde::PacketView;
use uet_wire::{Options, Packet, ParseError, Spec, Start, TrailerKind};

/// A packet from an input, before parsing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record<'a> {
    /// The packet number in the input, counted from 1.
    pub number: u64,
    /// The time of capture.
    pub time: Option<Timestamp>,
    /// The interface, if the capture has described several before this packet.
    pub interface: Option<CaptureInterface<'a>>,
    /// The header of the link type. Empty for Ethernet.
    pub link: &'a [u8],
    /// The link type, if it is not supported.
    pub unread: Option<i32>,
    /// The first layer of `bytes`.
    pub start: Start,
    /// The captured bytes after the link header.
    pub bytes: &'a [u8],
    /// The length of `bytes` on the wire.
    pub wire: usize,
}

/// The interface of a packet in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureInterface<'a> {
    /// Its number in the section of the capture, counted from 0.
    pub number: u32,
    /// Its name. `None` if the capture has none of up to 255 printable ASCII characters.
    pub name: Option<&'a str>,
}

impl Serialize for CaptureInterface<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("number", &self.number)?;
        map.serialize_entry("name", &self.name.map(Text))?;
        map.end()
    }
}

/// Text that may contain characters to escape.
struct Text<'a>(&'a str);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self.0)
    }
}

/// A parsed packet, ready to be written as JSON.
#[derive(Clone, Debug)]
pub struct Decoded<'a> {
    /// The packet's origin.
    pub record: Record<'a>,
    /// The parsed packet.
    pub packet: Packet<'a>,
    /// The violations of the specification.
    pub findings: Vec<Finding>,
    /// The protection of a secured packet.
    pub protection: Option<Protection>,
    /// The version of the specification for display and validation.
    pub spec: &'static Spec,
    trailer: TrailerKind,
    raw: bool,
}

/// The protection of a secured packet, as far as the keys tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// True if the packet is authentic, false if it has changed or the keys are wrong. `None` if that is unknown.
    pub authenticated: Option<bool>,
    /// The reason why the packet is not decrypted.
    pub reason: Option<String>,
    /// The secret that opened the packet, by its place in the list of its association number, and the packet's key and IV.
    pub key: Option<(usize, KeyIv)>,
}

impl<'a> Decoded<'a> {
    /// Parses a packet. With `raw`, the JSON includes the bytes from which [`encode`](super::encode) restores the
    /// frame.
    pub fn new(record: Record<'a>, options: &Options, raw: bool) -> Self {
        let packet = Packet::parse_sliced(record.start, record.bytes, record.wire, options).0;
        let mut findings = Vec::new();
        packet.validate(options.spec).for_each(|finding| findings.push(finding));
        let protection = packet.uet.tss.map(|_| Protection::default());
        Decoded { record, packet, findings, protection, spec: options.spec, trailer: options.trailer, raw }
    }

    /// Returns the packet with the facts from its capture.
    pub fn view(&self) -> PacketView<'_, 'a, Copied<Iter<'_, Finding>>> {
        PacketView {
            packet: &self.packet,
            base: self.record.link.len(),
            trailer: self.trailer,
            spec: self.spec,
            findings: self.findings.iter().copied(),
        }
    }

    /// Returns the time of capture since 1970.
    pub fn since_1970(&self) -> Option<core::time::Duration> {
        let nanoseconds = u64::try_from(self.record.time?.as_nanosecond()).ok()?;
        Some(core::time::Duration::from_nanos(nanoseconds))
    }

    /// Returns the offset of a header of this packet from the first byte captured.
    pub fn offset_of(&self, header: &[u8]) -> Option<usize> {
        let all = self.record.bytes;
        let distance = header.as_ptr().addr().checked_sub(all.as_ptr().addr())?;
        (distance + header.len() <= all.len()).then_some(self.record.link.len() + distance)
    }

    /// Returns the error of a malformed packet, with its offset from the first byte captured.
    pub fn error(&self) -> Option<ParseError> {
        self.view().error()
    }

    /// Returns true if the packet is malformed, is not authentic, or breaks a requirement of level `must`.
    pub fn is_bad(&self) -> bool {
        self.packet.error().is_some()
            || self.protection.as_ref().is_some_and(|protection| protection.authenticated == Some(false))
            || self.findings.iter().any(|finding| finding.severity() == Severity::Error)
    }

    pub(crate) fn protected_by(self, protection: Protection) -> Self {
        Decoded { protection: Some(protection), ..self }
    }

    fn protected(&self) -> Option<Protected<'_>> {
        let (protection, tss) = (self.protection.as_ref()?, self.packet.uet.tss?);
        Some(Protected { protection, tss })
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

/// Serializes the record's number, time and interface, the keys of the packet, and with `raw` its bytes.
impl Serialize for Decoded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("number", &self.record.number)?;
        map.serialize_entry("time", &self.record.time.map(Time))?;
        if let Some(interface) = &self.record.interface {
            map.serialize_entry("interface", interface)?;
        }
        self.view().serialize_into(&mut map)?;
        map.serialize_entry("protection", &self.protected())?;
        if self.raw {
            map.serialize_entry("raw", &Raw(self))?;
        }
        map.end()
    }
}

impl Decoded<'_> {
    /// Appends the packet as one JSON object.
    pub fn write(&self, out: &mut Vec<u8>) {
        // Writing to memory does not fail.
        let _ = self.serialize(&mut Writer(out));
    }
}

/// The protection with the fields of the security header.
struct Protected<'d> {
    protection: &'d Protection,
    tss: Tss<'d>,
}

impl Serialize for Protected<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (head, tsc) = (self.tss.head(), self.tss.tsc());
        let mut map = serializer.serialize_map(Some(7))?;
        map.serialize_entry("sdi", &head.sdi())?;
        map.serialize_entry("an", &u8::from(head.an()))?;
        map.serialize_entry("ssi", &self.tss.ssi())?;
        map.serialize_entry("epoch", &tsc.epoch())?;
        map.serialize_entry("counter", &format!("{:#014x}", tsc.counter()))?;
        map.serialize_entry("authenticated", &self.protection.authenticated)?;
        map.serialize_entry("reason", &self.protection.reason)?;
        map.end()
    }
}

/// The bytes from which [`encode`](super::encode) restores the frame.
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

/// Returns byte ranges, one after the other, as one text of hexadecimal digits.
fn hex(runs: &[&[u8]]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(2 * runs.iter().map(|run| run.len()).sum::<usize>());
    for byte in runs.iter().copied().flatten() {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 0xf)]));
    }
    text
}

/// Displays a time as `2026-01-02T03:04:05.000000000Z`.
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
