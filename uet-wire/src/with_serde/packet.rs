//! Serializes whole packets, with the keys that `docs/json.md` lists from `src` to `findings`.

use super::{Form, Hex, Label};
use crate::derived::{Derived, derived};
use crate::layout::{ALL, Kind, Layer, Layout, Place};
use crate::outer::Vlan;
use crate::registry::Entry;
use crate::validate::Finding;
use crate::{Content, Packet, ParseError, ParseErrorKind, Spec, TrailerKind, Uet};
use ::serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// The fields of the second VLAN tag with their names in a packet. `vlan.id` belongs to the outer tag.
pub const INNER_VLAN: &[(&str, &str)] = &[
    ("vlan.pcp", "vlan.inner.pcp"),
    ("vlan.dei", "vlan.inner.dei"),
    ("vlan.id", "vlan.inner.id"),
    ("vlan.type", "vlan.inner.type"),
];

/// Returns the name of a field of the second VLAN tag.
pub fn inner_name(name: &'static str) -> &'static str {
    INNER_VLAN.iter().find(|(outer, _)| *outer == name).map_or(name, |(_, inner)| inner)
}

/// The fields around UET that the JSON of a packet contains. The others are computed.
pub const OUTER: &[&str] = &[
    "ip.dscp",
    "ip.ecn",
    "ip.ttl",
    "udp.src_port",
    "udp.dst_port",
    "udp.length",
    "vlan.id",
    "vlan.inner.id",
];

/// Returns true if the JSON of a packet contains all fields of the layer. Layers around UET contribute only some.
fn is_uet(layer: Layer) -> bool {
    layer.is_uet() && layer != Layer::Trailer
}

/// A packet with facts from its capture, ready to be serialized.
///
/// `Packet` and `Uet` implement `Serialize` for packets without such facts.
#[derive(Clone, Copy, Debug)]
pub struct PacketView<'p, 'a, F> {
    /// The packet.
    pub packet: &'p Packet<'a>,
    /// The bytes captured before the parsed bytes. Offsets include them.
    pub base: usize,
    /// The kind of the trailer, if the packet has one.
    pub trailer: TrailerKind,
    /// The version of the specification that names fields and code points.
    pub spec: &'static Spec,
    /// The violations to report.
    pub findings: F,
}

impl<'a, F> PacketView<'_, 'a, F> {
    /// Returns the headers. If a header is cut off, it comes last, with its bytes that are present.
    pub fn headers(&self) -> impl Iterator<Item = (&'static Layout, &'a [u8])> + Clone + use<'a, F> {
        let packet = self.packet;
        // The bytes of a cut trailer follow. They are not fields of the header.
        let cut = packet.cut.map(|cut| {
            let there = match cut.kind() {
                ParseErrorKind::Truncated => cut.present().min(packet.rest.len()),
                _ => packet.rest.len(),
            };
            (cut.header(), packet.rest.get(..there).unwrap_or_default())
        });
        let spec = self.spec;
        packet.headers().chain(cut).map(move |(layout, bytes)| (spec.layout(layout), bytes))
    }

    /// Returns the entry of a code point, if it has a name.
    pub fn entry(&self, place: &Place, value: u128) -> Option<&'static Entry> {
        entry(self.spec, place, value)
    }

    /// Returns the address of the second tag.
    fn inner_vlan(&self) -> Option<*const u8> {
        let mut tags = self.headers().filter(|(layout, _)| *layout == Vlan::LAYOUT);
        tags.nth(1).map(|(_, tag)| tag.as_ptr())
    }

    /// Returns true for the second tag, whose fields have their own names.
    pub fn is_inner_vlan(&self, header: &[u8]) -> bool {
        self.inner_vlan() == Some(header.as_ptr())
    }

    /// Returns the fields that are present: name, place and value.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, Place, u128)> + Clone + use<'a, F> {
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

    /// Returns the names of named code points with their fields. Reads no other fields.
    fn names(&self) -> impl Iterator<Item = (&'static str, &'static str)> + Clone + use<'a, F> {
        let spec = self.spec;
        self.headers().filter(|(layout, _)| is_uet(layout.layer)).flat_map(move |(layout, header)| {
            let codes = layout.places().filter(|place| matches!(place.row.kind, Kind::Code(_)));
            let present = codes.filter(|place| place.exists(header));
            present.filter_map(move |place| {
                Some((place.row.name, entry(spec, &place, place.read(header)?)?.name))
            })
        })
    }

    /// Returns the reserved bits of the UET headers that are not 0: header, place and value.
    pub fn reserved(&self) -> impl Iterator<Item = (&'static Layout, Place, u128)> + Clone + use<'a, F> {
        self.headers().filter(|(layout, _)| is_uet(layout.layer)).flat_map(|(layout, header)| {
            let reserved = layout
                .present(header)
                .filter(|(place, value)| *value != 0 && matches!(place.row.kind, Kind::Reserved));
            reserved.map(move |(place, value)| (layout, place, value))
        })
    }

    /// Returns the layers in wire order.
    pub fn stack(&self) -> impl Iterator<Item = &'static str> + Clone + use<'a, F> {
        let packet = self.packet;
        let word = |bytes: &[u8], word: &'static str| (!bytes.is_empty()).then_some(word);
        packet.headers().map(|(layout, _)| layout.layer.name()).chain(
            [
                word(packet.uet.payload, Layer::Payload.name()),
                word(packet.trailer, self.trailer_name()),
                word(packet.padding, "padding"),
            ]
            .into_iter()
            .flatten(),
        )
    }

    /// Returns the offset of the payload from the first byte captured.
    pub fn payload_offset(&self) -> usize {
        self.base + self.packet.offsets().payload
    }

    /// Returns the offset of the padding from the first byte captured.
    pub fn padding_offset(&self) -> usize {
        self.base + self.packet.offsets().padding
    }

    /// Returns the trailer's name in the stack.
    pub fn trailer_name(&self) -> &'static str {
        match self.trailer {
            TrailerKind::Icv => "icv",
            _ => "crc",
        }
    }

    /// Returns the stated and the expected CRC of a packet that ends with one.
    #[cfg(feature = "crc")]
    pub fn crc_check(&self) -> Option<crate::crc::Check> {
        self.packet.crc_check().filter(|_| self.trailer == TrailerKind::Crc)
    }

    /// Returns the error of a malformed packet, with its offset from the first byte captured.
    pub fn error(&self) -> Option<ParseError> {
        Some(self.packet.error()?.moved(self.base))
    }
}

impl<F: Iterator<Item = Finding> + Clone> PacketView<'_, '_, F> {
    /// Adds the keys to a map, which may have other keys before and after them.
    pub fn serialize_into<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let packet = self.packet;
        map.serialize_entry("src", &packet.ip.map(|ip| Text(ip.src())))?;
        map.serialize_entry("dst", &packet.ip.map(|ip| Text(ip.dst())))?;
        map.serialize_entry("stack", &List(|| self.stack()))?;
        let fields = || self.fields().map(|(name, place, value)| (name, FieldValue(place, value)));
        map.serialize_entry("fields", &Map(fields))?;
        map.serialize_entry("names", &Map(|| self.names()))?;
        map.serialize_entry("derived", &Map(|| derived(&packet.uet)))?;
        let reserved = || {
            self.reserved().map(|(layout, place, value)| (Label { layout, place }, FieldValue(place, value)))
        };
        map.serialize_entry("reserved", &Map(reserved))?;
        let run =
            |offset: usize, bytes: &[u8]| (!bytes.is_empty()).then_some(Run { offset, length: bytes.len() });
        let offsets = packet.offsets();
        map.serialize_entry("payload", &run(self.base + offsets.payload, packet.uet.payload))?;
        map.serialize_entry("padding", &run(self.base + offsets.padding, packet.padding))?;
        map.serialize_entry("trailer", &(!packet.trailer.is_empty()).then_some(Trailer(self)))?;
        map.serialize_entry("trimmed", &packet.trimmed)?;
        map.serialize_entry("sliced", &packet.sliced)?;
        map.serialize_entry("fragment", &(packet.content == Content::Fragment))?;
        map.serialize_entry("error", &self.error())?;
        map.serialize_entry(
            "findings",
            &List(|| self.findings.clone().map(|finding| FindingOf { finding, spec: self.spec })),
        )
    }
}

impl<F: Iterator<Item = Finding> + Clone> Serialize for PacketView<'_, '_, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.serialize_into(&mut map)?;
        map.end()
    }
}

/// Uses the findings of the default version.
#[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
impl Serialize for Packet<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let trailer =
            if self.trailer.len() == TrailerKind::Icv.len() { TrailerKind::Icv } else { TrailerKind::Crc };
        let spec = crate::Version::default().spec();
        let findings = self.validate(spec);
        PacketView { packet: self, base: 0, trailer, spec, findings }.serialize(serializer)
    }
}

/// Uses the findings of the default version.
#[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
impl Serialize for Uet<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        serialize_uet(*self, &mut map)?;
        map.end()
    }
}

/// Adds the keys of a packet without capture facts.
fn serialize_uet<M: SerializeMap>(uet: Uet<'_>, map: &mut M) -> Result<(), M::Error> {
    let mut packet = Packet::default();
    (packet.uet, packet.content) = (uet, Content::Uet);
    let spec = crate::Version::default().spec();
    let findings = uet.validate(spec);
    PacketView { packet: &packet, base: 0, trailer: TrailerKind::None, spec, findings }.serialize_into(map)
}

/// Uses the findings of the default version, and adds `payload_hex` if there is a payload.
#[cfg(feature = "alloc")]
#[cfg_attr(docsrs, doc(cfg(all(feature = "alloc", feature = "serde"))))]
impl Serialize for crate::UetBuf {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        serialize_uet(self.view(), &mut map)?;
        if !self.payload.is_empty() {
            map.serialize_entry("payload_hex", &Text(Digits(&self.payload)))?;
        }
        map.end()
    }
}

/// Displays two hexadecimal digits per byte.
#[cfg(feature = "alloc")]
struct Digits<'a>(&'a [u8]);

#[cfg(feature = "alloc")]
impl core::fmt::Display for Digits<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

fn entry(spec: &Spec, place: &Place, value: u128) -> Option<&'static Entry> {
    match place.row.kind {
        Kind::Code(registry) => spec.entry(registry, value as u8),
        _ => None,
    }
}

/// Serializes the pairs of an iterator, which the function creates, as a map.
struct Map<F>(F);

impl<K: Serialize, V: Serialize, I: Iterator<Item = (K, V)>, F: Fn() -> I> Serialize for Map<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        (self.0)().try_for_each(|(key, value)| map.serialize_entry(&key, &value))?;
        map.end()
    }
}

/// Serializes the items of an iterator, which the function creates, as a list.
struct List<F>(F);

impl<I: Iterator<Item: Serialize>, F: Fn() -> I> Serialize for List<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        (self.0)().try_for_each(|item| list.serialize_element(&item))?;
        list.end()
    }
}

/// A value of a field.
struct FieldValue(Place, u128);

impl Serialize for FieldValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = self.0.row;
        Form { label: row.name, width: row.width(), kind: row.kind }.serialize(self.1, serializer)
    }
}

/// A value as text.
struct Text<T>(T);

impl<T: core::fmt::Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// A range of bytes.
struct Run {
    offset: usize,
    length: usize,
}

/// A finding with the version of the specification.
struct FindingOf {
    finding: Finding,
    spec: &'static Spec,
}

/// The trailer of a packet.
struct Trailer<'v, 'p, 'a, F>(&'v PacketView<'p, 'a, F>);

impl<F> Trailer<'_, '_, '_, F> {
    /// The expected CRC, and whether the packet has it.
    fn check(&self) -> Option<(u32, bool)> {
        #[cfg(feature = "crc")]
        return self.0.crc_check().map(|check| (check.expected, check.ok()));
        #[cfg(not(feature = "crc"))]
        None
    }
}

/// Serializes a struct as a map, key by key.
macro_rules! object {
    ($Type:ty $(, [$generic:ident])?: |$this:ident| { $($key:literal: $value:expr,)* }) => {
        impl $(<$generic>)? Serialize for $Type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $this = self;
                let mut map = serializer.serialize_map(Some([$($key),*].len()))?;
                $(map.serialize_entry($key, &$value)?;)*
                map.end()
            }
        }
    };
}

object! { Run: |run| {
    "offset": run.offset,
    "length": run.length,
}}

object! { Trailer<'_, '_, '_, F>, [F]: |trailer| {
    "kind": trailer.0.trailer_name(),
    "value": Hex::bytes(trailer.0.packet.trailer),
    "expected": trailer.check().map(|(expected, _)| Hex { value: expected.into(), digits: 8 }),
    "ok": trailer.check().map(|(_, ok)| ok),
}}

object! { crate::Trimmed: |trimmed| {
    "layer": trimmed.layer.name(),
    "missing": trimmed.missing,
    "last_hop": trimmed.last_hop,
}}

object! { crate::Sliced: |sliced| {
    "captured": sliced.captured,
    "wire": sliced.wire,
}}

object! { ParseError: |error| {
    "layer": error.layer().name(),
    "field": error.field(),
    "offset": error.offset(),
    "needed": error.needed(),
    "present": error.present(),
    "message": Text(error),
}}

object! { FindingOf: |judged| {
    "id": judged.finding.requirement.id,
    "severity": judged.finding.severity().name(),
    "field": judged.finding.field,
    "value": JudgedValue(judged),
    "message": Text(judged.finding),
}}

/// Serializes a number of up to 32 bits as a number, and a wider one as hexadecimal digits.
struct JudgedValue<'j>(&'j FindingOf);

impl Serialize for JudgedValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let FindingOf { finding: Finding { value, field, .. }, spec } = *self.0;
        if let Ok(value) = u32::try_from(value) {
            return serializer.serialize_u32(value);
        }
        let place = ALL.iter().find_map(|layout| spec.layout(layout).field(field));
        let width = place.map_or(0, |place| place.row.width());
        let needed = (u128::BITS - value.leading_zeros()) as usize;
        Hex { value, digits: width.max(needed).div_ceil(4) }.serialize(serializer)
    }
}

impl Serialize for Derived {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Derived::Number(number) => serializer.serialize_u64(*number),
            Derived::Ranges(sacked) => {
                serializer.collect_seq(sacked.clone().ranges().map(|(first, last)| [first.0, last.0]))
            }
        }
    }
}
