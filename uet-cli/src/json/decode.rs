//! A packet as JSON, written straight from the views.

use super::{INNER_VLAN, OUTER, Value, derived};
use crate::hex::Hex;
use jiff::Timestamp;
use jiff::fmt::StdFmtWrite;
use jiff::fmt::temporal::DateTimePrinter;
use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};
use uet_wire::layout::{Kind, Layer, Layout, Place};
use uet_wire::outer::{Ip, Vlan};
use uet_wire::validate::Finding;
use uet_wire::{Content, Options, Packet, ParseError, Start, TrailerKind, Version};

/// Where a packet comes from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record<'a> {
    /// Its place in the input, from 1.
    pub number: u64,
    /// When it was captured.
    pub time: Option<Timestamp>,
    /// The header of the capture's link type, where that is not Ethernet.
    pub link: &'a [u8],
    /// What the bytes behind it start with.
    pub start: Start,
    /// The bytes captured behind it.
    pub bytes: &'a [u8],
    /// How many of those there were on the wire.
    pub wire: usize,
}

/// A packet that has been read, ready to be written as JSON.
#[derive(Clone, Copy, Debug)]
pub struct Decoded<'a> {
    /// Where it comes from.
    pub record: Record<'a>,
    /// What it is.
    pub packet: Packet<'a>,
    /// The specification that it is judged by.
    pub version: Version,
    trailer: TrailerKind,
    raw: bool,
}

impl<'a> Decoded<'a> {
    /// Reads a packet. `raw` adds the bytes from which [`encode`](super::encode) gives back the same frame.
    pub fn new(record: Record<'a>, options: &Options, version: Version, raw: bool) -> Self {
        let packet = Packet::parse_lax(record.start, record.bytes, record.wire, options);
        Decoded { record, packet, version, trailer: options.trailer, raw }
    }

    /// What is forbidden in it.
    pub fn findings(&self) -> impl Iterator<Item = Finding> + Clone {
        self.packet.validate(self.version)
    }

    /// What is wrong with it, counted from the first byte captured.
    pub fn error(&self) -> Option<ParseError> {
        let error = self.packet.error()?;
        Some(ParseError { start: error.start + self.record.link.len(), ..error })
    }

    /// Whether the packet is malformed or breaks a requirement of level `must`.
    pub fn is_bad(&self) -> bool {
        self.packet.error().is_some()
            || self.findings().any(|finding| finding.severity() == uet_wire::validate::Severity::Error)
    }

    /// The packet's headers, and as the last the one that is cut, with as much of it as there is.
    pub fn headers(&self) -> impl Iterator<Item = (&'static Layout, &'a [u8])> + Clone + use<'a> {
        let cut = self.packet.cut.map(|cut| (cut.header, self.packet.rest));
        self.packet.headers().chain(cut)
    }

    /// The fields that are there, with their names in the JSON.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, Place, u128)> + Clone + use<'a> {
        let outer = self.packet.vlans[0].map(|tag| tag.bytes().as_ptr());
        self.headers().flat_map(move |(layout, header)| {
            // Whole or cut: what is not the outer tag is the inner one.
            let is_inner = layout == Vlan::LAYOUT && outer.is_some_and(|outer| outer != header.as_ptr());
            layout.present(header).filter(|(place, _)| place.row.kind != Kind::Reserved).filter_map(
                move |(place, value)| {
                    let renamed = INNER_VLAN.iter().find(|(name, _)| is_inner && *name == place.row.name);
                    let name = renamed.map_or(place.row.name, |(_, name)| *name);
                    (is_uet(layout.layer) || OUTER.contains(&name)).then_some((name, place, value))
                },
            )
        })
    }

    /// The reserved bits of the UET headers that are not 0: header, place and value.
    pub fn reserved(&self) -> impl Iterator<Item = (&'static Layout, Place, u128)> + Clone + use<'a> {
        self.headers().filter(|(layout, _)| is_uet(layout.layer)).flat_map(|(layout, header)| {
            let reserved = layout
                .present(header)
                .filter(|(place, value)| place.row.kind == Kind::Reserved && *value != 0);
            reserved.map(move |(place, value)| (layout, place, value))
        })
    }

    /// The layers, in wire order.
    pub fn stack(&self) -> impl Iterator<Item = &'static str> + Clone {
        let packet = &self.packet;
        let word = |there: bool, word: &'static str| there.then_some(word);
        let trailer = match self.trailer {
            TrailerKind::Icv => "icv",
            _ => "crc",
        };
        packet.headers().map(|(layout, _)| layout.layer.name()).chain(
            [
                word(!packet.uet.payload.is_empty(), Layer::Payload.name()),
                word(self.trailer().is_some(), trailer),
                word(!packet.padding.is_empty(), "padding"),
            ]
            .into_iter()
            .flatten(),
        )
    }

    /// The trailer, when all of it is there.
    fn trailer(&self) -> Option<&'a [u8]> {
        let trailer = self.packet.trailer;
        (!trailer.is_empty() && trailer.len() == self.trailer.len()).then_some(trailer)
    }

    /// Where the payload starts, from the first byte captured.
    pub fn payload_offset(&self) -> usize {
        let packet = &self.packet;
        let behind = packet.rest.len() + packet.trailer.len() + packet.padding.len();
        self.record.link.len() + self.record.bytes.len() - behind - packet.uet.payload.len()
    }

    /// The bytes before the UET headers, from the first one captured.
    fn outer(&self) -> [&'a [u8]; 2] {
        let uet: usize = self
            .packet
            .headers()
            .filter(|(layout, _)| is_uet(layout.layer))
            .map(|(_, header)| header.len())
            .sum();
        let entropy = self.packet.entropy.map_or(0, |header| header.bytes().len());
        let length = self.payload_offset() - self.record.link.len() - uet + entropy;
        [self.record.link, &self.record.bytes[..length]]
    }
}

/// Whether all fields of the layer are in the JSON. Of the layers around UET only some are.
fn is_uet(layer: Layer) -> bool {
    matches!(layer, Layer::Entropy | Layer::Tss | Layer::Pds | Layer::Ses | Layer::Ext)
}

impl Serialize for Decoded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let packet = &self.packet;
        let mut out = serializer.serialize_struct("packet", 18)?;
        out.serialize_field("number", &self.record.number)?;
        out.serialize_field("time", &self.record.time.map(Time))?;
        out.serialize_field("src", &packet.ip.map(|ip: Ip<'_>| ip.src()))?;
        out.serialize_field("dst", &packet.ip.map(|ip: Ip<'_>| ip.dst()))?;
        out.serialize_field("stack", &Seq(|| self.stack()))?;
        out.serialize_field(
            "fields",
            &Map(|| self.fields().map(|(name, place, raw)| (name, Value { place, raw }))),
        )?;
        out.serialize_field("names", &Map(|| self.fields().filter_map(named)))?;
        out.serialize_field("derived", &Map(|| derived(&packet.uet)))?;
        out.serialize_field("reserved", &Map(|| self.reserved().map(reserved)))?;
        out.serialize_field("payload", &(!packet.uet.payload.is_empty()).then_some(Payload(self)))?;
        out.serialize_field("padding", &(!packet.padding.is_empty()).then_some(Padding(self)))?;
        out.serialize_field("trailer", &self.trailer().map(|_| Trailer(self)))?;
        out.serialize_field("trimmed", &packet.trimmed.map(Trimmed))?;
        out.serialize_field("sliced", &packet.sliced.map(Sliced))?;
        out.serialize_field("fragment", &(packet.content == Content::Fragment))?;
        out.serialize_field("error", &self.error().map(Error))?;
        out.serialize_field("findings", &Seq(|| self.findings().map(Found)))?;
        if self.raw {
            out.serialize_field("raw", &Raw(self))?;
        }
        out.end()
    }
}

fn named((name, place, value): (&'static str, Place, u128)) -> Option<(&'static str, &'static str)> {
    match place.row.kind {
        Kind::Code(registry) => Some((name, registry.entry(value as u8)?.name)),
        _ => None,
    }
}

fn reserved((layout, place, raw): (&'static Layout, Place, u128)) -> (impl Serialize, Value) {
    (Key(layout.name, place), Value { place, raw })
}

/// `HEADER@BIT:WIDTH`
struct Key(&'static str, Place);

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}@{}:{}", self.0, self.1.lo(), self.1.row.width()))
    }
}

/// What an iterator gives, as a list.
struct Seq<F>(F);

impl<I: Iterator<Item: Serialize>, F: Fn() -> I> Serialize for Seq<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0())
    }
}

/// What an iterator of pairs gives, as a map.
struct Map<F>(F);

impl<K: Serialize, V: Serialize, I: Iterator<Item = (K, V)>, F: Fn() -> I> Serialize for Map<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0())
    }
}

struct Payload<'a>(&'a Decoded<'a>);

impl Serialize for Payload<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("payload", 2)?;
        out.serialize_field("offset", &self.0.payload_offset())?;
        out.serialize_field("length", &self.0.packet.uet.payload.len())?;
        out.end()
    }
}

struct Padding<'a>(&'a Decoded<'a>);

impl Serialize for Padding<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (record, padding) = (&self.0.record, self.0.packet.padding);
        let mut out = serializer.serialize_struct("padding", 2)?;
        out.serialize_field("offset", &(record.link.len() + record.bytes.len() - padding.len()))?;
        out.serialize_field("length", &padding.len())?;
        out.end()
    }
}

struct Trailer<'a>(&'a Decoded<'a>);

impl Serialize for Trailer<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("trailer", 4)?;
        let crc = self.0.trailer == TrailerKind::Crc;
        let check = self.0.packet.crc_check().filter(|_| crc);
        out.serialize_field("kind", if crc { "crc" } else { "icv" })?;
        out.serialize_field("value", &format_args!("0x{}", Hex(self.0.packet.trailer)))?;
        out.serialize_field("expected", &check.map(|check| format!("{:#010x}", check.expected)))?;
        out.serialize_field("ok", &check.map(|check| check.ok()))?;
        out.end()
    }
}

struct Trimmed(uet_wire::Trimmed);

impl Serialize for Trimmed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("trimmed", 3)?;
        // A trailer that is not all there counts as gone.
        let layer = if self.0.layer == Layer::Trailer { Layer::Payload } else { self.0.layer };
        out.serialize_field("layer", layer.name())?;
        out.serialize_field("missing", &self.0.missing)?;
        out.serialize_field("last_hop", &self.0.last_hop)?;
        out.end()
    }
}

struct Sliced(uet_wire::Sliced);

impl Serialize for Sliced {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("sliced", 2)?;
        out.serialize_field("captured", &self.0.captured)?;
        out.serialize_field("wire", &self.0.wire)?;
        out.end()
    }
}

struct Error(ParseError);

impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Error(error) = self;
        let mut out = serializer.serialize_struct("error", 6)?;
        out.serialize_field("layer", error.layer().name())?;
        out.serialize_field("field", error.field())?;
        out.serialize_field("offset", &error.offset())?;
        out.serialize_field("needed", &error.needed())?;
        out.serialize_field("present", &error.present())?;
        out.serialize_field("message", &format_args!("{error}"))?;
        out.end()
    }
}

struct Found(Finding);

impl Serialize for Found {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("finding", 5)?;
        out.serialize_field("id", self.0.requirement.id)?;
        out.serialize_field("severity", self.0.severity().name())?;
        out.serialize_field("field", self.0.field)?;
        match u32::try_from(self.0.value) {
            Ok(value) => out.serialize_field("value", &value)?,
            Err(_) => out.serialize_field("value", &format_args!("{:#x}", self.0.value))?,
        }
        out.serialize_field("message", &format_args!("{}", self.0))?;
        out.end()
    }
}

struct Raw<'a>(&'a Decoded<'a>);

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let packet = &self.0.packet;
        let mut out = serializer.serialize_map(Some(5))?;
        let [link, outer] = self.0.outer();
        out.serialize_entry("outer", &format_args!("{}{}", Hex(link), Hex(outer)))?;
        out.serialize_entry("payload", &Hex(packet.uet.payload))?;
        out.serialize_entry("trailer", &Hex(packet.trailer))?;
        out.serialize_entry("padding", &Hex(packet.padding))?;
        out.serialize_entry("rest", &Hex(packet.rest))?;
        out.end()
    }
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
