//! A packet as JSON, written straight from the views.

use super::write::Writer;
use super::{Derived, OUTER, derived, inner_name};
use jiff::Timestamp;
use jiff::fmt::StdFmtWrite;
use jiff::fmt::temporal::DateTimePrinter;
use serde::ser::{Serialize, Serializer};
use uet_wire::crc::Check;
use uet_wire::layout::{Kind, Layer, Layout, Place};
use uet_wire::outer::Vlan;
use uet_wire::registry::Entry;
use uet_wire::validate::{Finding, Severity};
use uet_wire::{Content, Options, Packet, ParseError, ParseErrorKind, Spec, Start, TrailerKind};

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

    /// What is wrong with it, counted from the first byte captured.
    pub fn error(&self) -> Option<ParseError> {
        let error = self.packet.error()?;
        Some(error.moved(self.record.link.len()))
    }

    /// Whether the packet is malformed or breaks a requirement of level `must`.
    pub fn is_bad(&self) -> bool {
        self.packet.error().is_some()
            || self.findings.iter().any(|finding| finding.severity() == Severity::Error)
    }

    /// The packet's headers, and as the last the one that is cut, with as much of it as there is.
    pub fn headers(&self) -> impl Iterator<Item = (&'static Layout, &'a [u8])> + Clone + use<'a> {
        // What is left of a trailer that is cut too lies behind, and is none of its fields.
        let cut = self.packet.cut.map(|cut| {
            let there = match cut.kind() {
                ParseErrorKind::Truncated => cut.present().min(self.packet.rest.len()),
                _ => self.packet.rest.len(),
            };
            (cut.header(), &self.packet.rest[..there])
        });
        let spec = self.spec;
        self.packet.headers().chain(cut).map(|(layout, bytes)| (spec.layout(layout), bytes))
    }

    /// Where the second tag lies.
    fn inner_vlan(&self) -> Option<*const u8> {
        let mut tags = self.headers().filter(|(layout, _)| *layout == Vlan::LAYOUT);
        tags.nth(1).map(|(_, tag)| tag.as_ptr())
    }

    /// Whether a header of the packet is the second tag: its fields have names of their own.
    pub fn is_inner_vlan(&self, header: &[u8]) -> bool {
        self.inner_vlan() == Some(header.as_ptr())
    }

    /// The fields that are there, with their names in the JSON.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, Place, u128)> + Clone + use<'a> {
        let inner = self.inner_vlan();
        self.headers().flat_map(move |(layout, header)| {
            let is_inner = inner == Some(header.as_ptr());
            layout.present(header).filter(|(place, _)| !matches!(place.row.kind, Kind::Reserved)).filter_map(
                move |(place, value)| {
                    let name = if is_inner { inner_name(place.row.name) } else { place.row.name };
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
                .filter(|(place, value)| *value != 0 && matches!(place.row.kind, Kind::Reserved));
            reserved.map(move |(place, value)| (layout, place, value))
        })
    }

    /// The layers, in wire order.
    pub fn stack(&self) -> impl Iterator<Item = &'static str> + Clone {
        let packet = &self.packet;
        let word = |there: bool, word: &'static str| there.then_some(word);
        packet.headers().map(|(layout, _)| layout.layer.name()).chain(
            [
                word(!packet.uet.payload.is_empty(), Layer::Payload.name()),
                word(!packet.trailer.is_empty(), self.trailer_word()),
                word(!packet.padding.is_empty(), "padding"),
            ]
            .into_iter()
            .flatten(),
        )
    }

    /// The entry of a code point, if it has a name.
    pub fn entry(&self, place: &Place, value: u128) -> Option<&'static Entry> {
        match place.row.kind {
            Kind::Code(registry) => self.spec.entry(registry, value as u8),
            _ => None,
        }
    }

    /// Where the payload starts, from the first byte captured.
    pub fn payload_offset(&self) -> usize {
        let packet = &self.packet;
        let behind = packet.rest.len() + packet.trailer.len() + packet.padding.len();
        self.record.link.len() + self.record.bytes.len() - behind - packet.uet.payload.len()
    }

    /// Where the padding starts, from the first byte captured.
    pub fn padding_offset(&self) -> usize {
        self.record.link.len() + self.record.bytes.len() - self.packet.padding.len()
    }

    /// The trailer's word in the stack.
    pub fn trailer_word(&self) -> &'static str {
        match self.trailer {
            TrailerKind::Icv => "icv",
            _ => "crc",
        }
    }

    /// What the CRC is and should be, in a packet that ends with one.
    pub fn crc_check(&self) -> Option<Check> {
        self.packet.crc_check().filter(|_| self.trailer == TrailerKind::Crc)
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

impl Decoded<'_> {
    /// Appends the packet as one JSON object.
    pub fn write(&self, out: &mut Vec<u8>) {
        Writer(out).object(|json| self.write_keys(json));
    }

    fn write_keys(&self, json: &mut Writer<'_>) {
        let packet = &self.packet;
        // Walked once, asked twice; `for_each` because walking nested iterators step by step costs twice that.
        let mut fields = Vec::with_capacity(64);
        self.fields().for_each(|field| fields.push(field));
        json.key("number").number(self.record.number);
        json.key("time").option(self.record.time, |json, time| json.display(Time(time)));
        json.key("src").option(packet.ip, |json, ip| json.display(ip.src()));
        json.key("dst").option(packet.ip, |json, ip| json.display(ip.dst()));
        json.key("stack").list(|json| self.stack().for_each(|layer| json.text(layer)));
        json.key("fields").object(|json| {
            fields.iter().for_each(|(name, place, raw)| write_value(json.key(name), place, *raw));
        });
        json.key("names").object(|json| {
            for (name, place, raw) in &fields {
                if let Some(entry) = self.entry(place, *raw) {
                    json.key(name).text(entry.name);
                }
            }
        });
        json.key("derived").object(|json| {
            for (name, value) in derived(&packet.uet) {
                match value {
                    Derived::Number(number) => json.key(name).number(number),
                    Derived::Ranges(sacked) => json.key(name).list(|json| {
                        for (first, last) in sacked.ranges() {
                            json.list(|json| [first, last].iter().for_each(|psn| json.number(psn.0)));
                        }
                    }),
                }
            }
        });
        json.key("reserved").object(|json| {
            self.reserved().for_each(|(layout, place, raw)| {
                json.display(layout.key(&place));
                json.0.push(b':');
                write_value(json, &place, raw);
            });
        });
        let place = |json: &mut Writer<'_>, offset: usize, bytes: &[u8]| {
            json.option((!bytes.is_empty()).then_some(bytes.len()), |json, length| {
                json.object(|json| {
                    json.key("offset").number(offset);
                    json.key("length").number(length);
                });
            });
        };
        place(json.key("payload"), self.payload_offset(), packet.uet.payload);
        place(json.key("padding"), self.padding_offset(), packet.padding);
        json.key("trailer").option((!packet.trailer.is_empty()).then_some(()), |json, ()| self.trailer(json));
        json.key("trimmed").option(packet.trimmed, |json, trimmed| {
            json.object(|json| {
                json.key("layer").text(trimmed.layer.name());
                json.key("missing").option(trimmed.missing, Writer::number);
                json.key("last_hop").bool(trimmed.last_hop);
            });
        });
        json.key("sliced").option(packet.sliced, |json, sliced| {
            json.object(|json| {
                json.key("captured").number(sliced.captured);
                json.key("wire").number(sliced.wire);
            });
        });
        json.key("fragment").bool(packet.content == Content::Fragment);
        json.key("error").option(self.error(), |json, error| json.object(|json| write_error(json, &error)));
        json.key("findings").list(|json| {
            self.findings
                .iter()
                .for_each(|finding| json.object(|json| write_finding(json, finding, self.spec)));
        });
        if self.raw {
            json.key("raw").object(|json| {
                json.key("outer").hex("", &self.outer());
                json.key("payload").hex("", &[packet.uet.payload]);
                json.key("trailer").hex("", &[packet.trailer]);
                json.key("padding").hex("", &[packet.padding]);
                json.key("rest").hex("", &[packet.rest]);
            });
        }
    }

    fn trailer(&self, json: &mut Writer<'_>) {
        let check = self.crc_check();
        json.object(|json| {
            json.key("kind").text(self.trailer_word());
            json.key("value").hex("0x", &[self.packet.trailer]);
            json.key("expected").option(check, |json, check| json.wide(check.expected.into(), 8));
            json.key("ok").option(check, |json, check| json.bool(check.ok()));
        });
    }
}

/// Up to 32 bits a number, wider ones all digits in hexadecimal, signed ones with their sign.
fn write_value(json: &mut Writer<'_>, place: &Place, raw: u128) {
    let width = place.row.width();
    match place.row.kind {
        Kind::Int => json.number(((raw << (128 - width)) as i128 >> (128 - width)) as i64),
        _ if width <= 32 => json.number(raw as u32),
        _ => json.wide(raw, width.div_ceil(4)),
    }
}

fn write_error(json: &mut Writer<'_>, error: &ParseError) {
    json.key("layer").text(error.layer().name());
    json.key("field").text(error.field());
    json.key("offset").number(error.offset());
    json.key("needed").number(error.needed());
    json.key("present").number(error.present());
    json.key("message").message(error);
}

fn write_finding(json: &mut Writer<'_>, finding: &Finding, spec: &Spec) {
    json.key("id").text(finding.requirement.id);
    json.key("severity").text(finding.severity().name());
    json.key("field").text(finding.field);
    match u32::try_from(finding.value) {
        Ok(value) => json.key("value").number(value),
        Err(_) => {
            let digits = field_width(finding.field, spec).div_ceil(4);
            json.key("value").display(format_args!("{:#01$x}", finding.value, 2 + digits));
        }
    }
    json.key("message").message(finding);
}

/// The width of a field in bits.
fn field_width(name: &str, spec: &Spec) -> usize {
    let found = uet_wire::layout::ALL.iter().find_map(|layout| spec.layout(layout).field(name));
    found.map_or(0, |place| place.row.width())
}

/// For packets inside of other documents.
impl Serialize for Decoded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = Vec::new();
        self.write(&mut text);
        let value: serde_json::Value = serde_json::from_slice(&text).map_err(serde::ser::Error::custom)?;
        value.serialize(serializer)
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
