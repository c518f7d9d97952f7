//! Serializes headers as maps of canonical field names, and whole packets (feature `serde`).
//!
//! ```
//! use uet_wire::pds::{Ack, PdsBuf};
//!
//! let (ack, _) = Ack::parse(&[0x38, 0x08, 0x00, 0x07, 0, 0, 0, 1, 0x80, 0x01, 0x40, 0x01])?;
//! let text = serde_json::to_string(&ack)?;
//! assert_eq!(
//!     text,
//!     r#"{"pds.type":7,"pds.next_hdr":0,"pds.flags":8,"pds.flags.m":0,"pds.flags.retx":0,"pds.flags.p":1,"#.to_owned()
//!         + r#""pds.flags.req":0,"pds.probe_opaque":7,"pds.cack_psn":1,"pds.spdcid":32769,"pds.dpdcid":16385}"#
//! );
//! assert_eq!(serde_json::from_str::<Ack>(&text)?, ack.copied());
//!
//! // Written by hand: absent fields are 0, a code point may be a name, any number may be hexadecimal.
//! let same = r#"{"pds.type":"ACK","pds.flags.p":true,"pds.probe_opaque":7,"pds.cack_psn":1,
//!                "pds.spdcid":"0x8001","pds.dpdcid":"0x4001"}"#;
//! assert_eq!(serde_json::from_str::<Ack>(same)?, ack.copied());
//!
//! let wrong = serde_json::from_str::<Ack>(r#"{"pds.flags.p":1,"pds.ack_psn_offset":-1}"#).unwrap_err();
//! assert!(wrong.to_string().starts_with("pds.ack_psn_offset: does not exist when pds.flags.p = 1"));
//!
//! // The key of a header in a layer is the short name of its layout.
//! assert!(serde_json::to_string(&PdsBuf::from(ack.copied()))?.starts_with(r#"{"ack":{"pds.type":7,"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - A number of up to 32 bits is a number, a boolean is 0 or 1, a signed offset may be negative. In human-readable
//!   formats, a wider number is `"0x"` with all its digits, and an address is text. In other formats both are numbers.
//! - A code point is its number, in a header and on its own. Human-readable formats also accept its name.
//! - Reserved bits that are not 0 have the key `HEADER@BIT:WIDTH`, as in `"ack@9:1":1`, so values round-trip.
//! - Errors name the field. Deserializing fails on unknown fields, fields absent from this form of the header, and
//!   values that are too wide. It also fails on contradicting fields that share bits (`pds.flags` and its parts).
//!
//! # Packets
//!
//! [`Packet`](crate::Packet), [`Uet`](crate::Uet) and `UetBuf` serialize as the JSON of `uet decode`, without the
//! number and the time of a record. The keys are `src`, `dst`, `stack`, `fields`, `names`, `derived`, `reserved`,
//! `payload` and so on. A `UetBuf` adds `payload_hex`, and deserializes from this JSON. `PacketFields` builds the
//! headers, here and in `uet_packet_io::json::encode`, which reads whole frames.
//!
//! ```
//! use uet_wire::Uet;
//!
//! let uet = Uet::parse(&[0x38, 0x08, 0x00, 0x07, 0, 0, 0, 1, 0x80, 0x01, 0x40, 0x01, 0xee])?;
//! let json = serde_json::to_value(uet)?;
//! assert_eq!(json["stack"], serde_json::json!(["pds", "payload"]));
//! assert_eq!((&json["names"]["pds.type"], &json["fields"]["pds.cack_psn"]), (&"ACK".into(), &1.into()));
//! assert_eq!(json["payload"], serde_json::json!({"offset": 12, "length": 1}));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`PacketView`] adds facts from a capture: bytes before the packet, the trailer's kind, selected findings.

use crate::bits::mask;
use crate::layout::{Kind, Layout, Place};
use ::serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Unexpected, Visitor};
use ::serde::ser::{Serialize, SerializeMap, Serializer};
use core::fmt::{self, Display, Formatter};
use core::net::{Ipv4Addr, Ipv6Addr};

#[cfg(feature = "alloc")]
mod fields;
mod packet;

#[cfg(feature = "alloc")]
pub use fields::{FieldError, Given, KEYS, OwnedHeader, PacketFields};
pub use packet::{INNER_VLAN, OUTER, PacketView, inner_name};

/// Implements both directions for a header.
macro_rules! header {
    ($Name:ident[$bytes:literal]) => {
        #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
        impl<B: core::borrow::Borrow<[u8; $bytes]>> ::serde::Serialize for $Name<B> {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::with_serde::serialize($Name::LAYOUT, self.bytes(), serializer)
            }
        }

        #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
        impl<'de> ::serde::Deserialize<'de> for $Name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let mut header = $Name::zeroed();
                $crate::with_serde::deserialize($Name::LAYOUT, &mut header.0, deserializer)?;
                Ok(header)
            }
        }
    };
}
pub(crate) use header;

/// Implements both directions for the enum of a layer.
macro_rules! family {
    ($Name:ident, $Buf:ident { $($Header:ident)* }) => {
        #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
        impl ::serde::Serialize for $Name<'_> {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let name = self.layout().name;
                let index = $Buf::NAMES.iter().position(|known| *known == name).unwrap_or_default();
                match self {
                    $($Name::$Header(header) => {
                        serializer.serialize_newtype_variant(stringify!($Name), index as u32, name, header)
                    })*
                }
            }
        }

        #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
        impl ::serde::Serialize for $Buf {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.view().serialize(serializer)
            }
        }

        impl $Buf {
            const NAMES: &'static [&'static str] = &[$($Header::LAYOUT.name),*];
        }

        #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
        impl<'de> ::serde::Deserialize<'de> for $Buf {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Any;

                impl<'de> ::serde::de::Visitor<'de> for Any {
                    type Value = $Buf;

                    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                        f.write_str("a header under its name")
                    }

                    fn visit_enum<A: ::serde::de::EnumAccess<'de>>(self, data: A) -> Result<$Buf, A::Error> {
                        use ::serde::de::VariantAccess;
                        let (name, header) = data.variant_seed($crate::with_serde::Name($Buf::NAMES))?;
                        $(if name == $Header::LAYOUT.name {
                            return header.newtype_variant().map($Buf::$Header);
                        })*
                        Err(::serde::de::Error::unknown_variant(name, $Buf::NAMES))
                    }
                }

                deserializer.deserialize_enum(stringify!($Name), Self::NAMES, Any)
            }
        }
    };
}
pub(crate) use family;

/// Implements both directions for a number type.
macro_rules! number {
    ($($Name:ident: $what:expr, $width:expr, $kind:expr, $raw:expr, $new:expr;)*) => {$(
        #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
        impl ::serde::Serialize for $Name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let form = $crate::with_serde::Form { label: $what, width: $width, kind: $kind };
                form.serialize($raw(*self) as u128, serializer)
            }
        }

        #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
        impl<'de> ::serde::Deserialize<'de> for $Name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let form = $crate::with_serde::Form { label: $what, width: $width, kind: $kind };
                ::serde::de::DeserializeSeed::deserialize(form, deserializer).map($new)
            }
        }
    )*};
}
pub(crate) use number;

/// Serializes the present fields of a header and its reserved bits that are not 0.
pub(crate) fn serialize<S: Serializer>(
    layout: &'static Layout,
    header: &[u8],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let told =
        layout.present(header).filter(|(place, value)| place.row.kind != Kind::Reserved || *value != 0);
    let mut map = serializer.serialize_map(Some(told.clone().count()))?;
    for (place, value) in told {
        map.serialize_entry(&Label { layout, place }, &Field(Form::of(layout, place), value))?;
    }
    map.end()
}

/// Fills a header whose bits are all 0.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    layout: &'static Layout,
    header: &mut [u8],
    deserializer: D,
) -> Result<(), D::Error> {
    deserializer.deserialize_map(Header { layout, header })
}

/// An upper bound of the rows in a header.
const ROWS: usize = 48;

/// Reads a map of fields.
struct Header<'h> {
    layout: &'static Layout,
    header: &'h mut [u8],
}

impl<'de> Visitor<'de> for Header<'_> {
    type Value = ();

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "a map of the fields of the {}", self.layout.title)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Header { layout, header } = self;
        // A map has no order, and some fields decide about others. Read all entries first, then process them in wire
        // order.
        let mut given = [None; ROWS];
        while let Some((index, place)) = map.next_key_seed(LayoutKey(layout))? {
            let value = map.next_value_seed(Form::of(layout, place))?;
            let slot: &mut Option<u128> = given.get_mut(index).ok_or_else(|| {
                de::Error::custom(format_args!("{}: a header with too many fields", Label { layout, place }))
            })?;
            if slot.replace(value).is_some() {
                return Err(de::Error::custom(format_args!("{}: given twice", Label { layout, place })));
            }
        }
        let value_of = |place: Place| {
            let index = layout.places().position(|first| same_key(&first, &place))?;
            *given.get(index)?
        };
        for place in layout.places() {
            if let (Some(value), true) = (value_of(place), place.exists(header)) {
                place.write(header, value);
            }
        }
        for place in layout.places() {
            let Some(value) = value_of(place) else { continue };
            let mut forms = layout.places().filter(|form| same_key(form, &place));
            let Some(form) = forms.find(|form| form.exists(header)) else {
                return Err(absent(layout, place, header));
            };
            if form.read(header) != Some(value) {
                let label = Label { layout, place };
                return Err(de::Error::custom(format_args!(
                    "{label}: differs from a field that shares its bits"
                )));
            }
        }
        Ok(())
    }
}

/// Returns true if two rows have the same key. A field may have several places, of which only one exists at a time.
fn same_key(one: &Place, other: &Place) -> bool {
    match one.row.kind {
        Kind::Reserved => {
            other.row.kind == Kind::Reserved && (one.lo(), one.hi()) == (other.lo(), other.hi())
        }
        _ => one.row.name == other.row.name,
    }
}

fn absent<E: de::Error>(layout: &'static Layout, place: Place, header: &[u8]) -> E {
    let label = Label { layout, place };
    let deciding = place.row.when.and_then(|when| layout.field(when.name));
    match deciding.and_then(|deciding| Some((deciding, deciding.read(header)?))) {
        Some((deciding, value)) => E::custom(format_args!(
            "{label}: does not exist when {} = {}",
            deciding.row.name,
            deciding.display(value)
        )),
        None => E::custom(format_args!("{label}: does not exist in this form of the header")),
    }
}

/// Reads a key. Returns the first row with this key, and its index.
struct LayoutKey(&'static Layout);

impl<'de> DeserializeSeed<'de> for LayoutKey {
    type Value = (usize, Place);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        // Avoids `deserialize_identifier`: formats that number the fields of a struct have no names.
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for LayoutKey {
    type Value = (usize, Place);

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "the name of a field of the {}", self.0.title)
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Self::Value, E> {
        let named = self.0.place(key).and_then(|place| {
            let index = self.0.places().position(|first| same_key(&first, &place))?;
            Some((index, place))
        });
        named.ok_or_else(|| E::custom(format_args!("{key}: the {} has no such field", self.0.title)))
    }
}

/// Reads the name of a variant.
pub(crate) struct Name(pub(crate) &'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = &'static str;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a header")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
        let known = self.0.iter().find(|known| **known == name);
        known.copied().ok_or_else(|| E::unknown_variant(name, self.0))
    }

    fn visit_u64<E: de::Error>(self, index: u64) -> Result<Self::Value, E> {
        let known = usize::try_from(index).ok().and_then(|index| self.0.get(index));
        known.copied().ok_or_else(|| E::invalid_value(Unexpected::Unsigned(index), &self))
    }
}

/// Displays the key of a row, for maps and errors.
struct Label {
    layout: &'static Layout,
    place: Place,
}

impl Display for Label {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.layout.key(&self.place).fmt(f)
    }
}

impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.place.row.kind {
            Kind::Reserved => serializer.collect_str(self),
            _ => serializer.serialize_str(self.place.row.name),
        }
    }
}

/// The representation of a number.
pub(crate) struct Form<L> {
    pub(crate) label: L,
    pub(crate) width: usize,
    pub(crate) kind: Kind,
}

impl Form<Label> {
    fn of(layout: &'static Layout, place: Place) -> Self {
        Form { label: Label { layout, place }, width: place.row.width(), kind: place.row.kind }
    }
}

/// Displays `0x` and the low `digits` hexadecimal digits of a number.
pub(crate) struct Hex {
    pub(crate) value: u128,
    pub(crate) digits: usize,
}

impl Hex {
    /// The digits of up to 16 bytes.
    pub(crate) fn bytes(bytes: &[u8]) -> Self {
        let value = bytes.iter().fold(0, |value, byte| value << 8 | u128::from(*byte));
        Hex { value, digits: 2 * bytes.len() }
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = *b"0x00000000000000000000000000000000";
        for (place, digit) in text.iter_mut().skip(2).zip((0..self.digits).rev()) {
            *place = DIGITS[(self.value >> (4 * digit) & 0xf) as usize];
        }
        let text = text.get(..2 + self.digits).and_then(|text| core::str::from_utf8(text).ok());
        serializer.serialize_str(text.unwrap_or_default())
    }
}

struct Field(Form<Label>, u128);

impl Serialize for Field {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() && self.0.kind == Kind::Address {
            return serializer.collect_str(&self.0.label.place.display(self.1));
        }
        self.0.serialize(self.1, serializer)
    }
}

impl<L: Display> Form<L> {
    pub(crate) fn serialize<S: Serializer>(&self, value: u128, serializer: S) -> Result<S::Ok, S::Error> {
        let human = serializer.is_human_readable();
        match self.width {
            // Sign-extended: offsets have 16 bits.
            width if self.kind == Kind::Int => {
                serializer.serialize_i32(((value << (128 - width)) as i128 >> (128 - width)) as i32)
            }
            0..=32 => serializer.serialize_u32(value as u32),
            width if human => Hex { value, digits: width.div_ceil(4) }.serialize(serializer),
            33..=64 => serializer.serialize_u64(value as u64),
            _ => serializer.serialize_u128(value),
        }
    }

    /// Returns the bits of a number that is not negative.
    fn unsigned<E: de::Error>(&self, value: u128) -> Result<u128, E> {
        // The sign takes one bit.
        let width = self.width - usize::from(self.kind == Kind::Int);
        if value <= mask(width) { Ok(value) } else { Err(self.too_wide(value)) }
    }

    /// Returns the bits of a number.
    fn signed<E: de::Error>(&self, value: i128) -> Result<u128, E> {
        match u128::try_from(value) {
            Ok(value) => self.unsigned(value),
            Err(_) if self.kind == Kind::Int && value >= -(1 << (self.width - 1)) => {
                Ok(value as u128 & mask(self.width))
            }
            Err(_) => Err(self.too_wide(value)),
        }
    }

    fn too_wide<E: de::Error>(&self, value: impl Display) -> E {
        let signed = if self.kind == Kind::Int { "signed " } else { "" };
        E::custom(format_args!("{}: {value} does not fit into {} {signed}bits", self.label, self.width))
    }

    /// Parses the bits from text.
    fn text(&self, text: &str) -> Option<u128> {
        if let Some(digits) = text.strip_prefix("0x") {
            let hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            return if hexadecimal { u128::from_str_radix(digits, 16).ok() } else { None };
        }
        match (self.kind, self.width) {
            (Kind::Code(registry), _) => {
                registry.entries.iter().find(|entry| entry.name == text).map(|entry| entry.code.into())
            }
            (Kind::Address, 32) => text.parse().ok().map(|address: Ipv4Addr| address.to_bits().into()),
            (Kind::Address, 128) => text.parse().ok().map(|address: Ipv6Addr| address.to_bits()),
            (Kind::Address, _) => {
                let mut octets = text.split(':').map(|octet| u8::from_str_radix(octet, 16));
                let mac = octets.try_fold((0, 0), |(mac, count), octet| {
                    octet.map(|octet| (mac << 8 | u128::from(octet), count + 1))
                });
                mac.ok().filter(|(_, count)| count * 8 == self.width).map(|(mac, _)| mac)
            }
            _ => None,
        }
    }
}

impl<'de, L: Display> DeserializeSeed<'de> for Form<L> {
    type Value = u128;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u128, D::Error> {
        if deserializer.is_human_readable() {
            return deserializer.deserialize_any(self);
        }
        match self.width {
            _ if self.kind == Kind::Int => deserializer.deserialize_i32(self),
            0..=32 => deserializer.deserialize_u32(self),
            33..=64 => deserializer.deserialize_u64(self),
            _ => deserializer.deserialize_u128(self),
        }
    }
}

impl<'de, L: Display> Visitor<'de> for Form<L> {
    type Value = u128;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Form { label, width, kind } = self;
        match kind {
            Kind::Code(_) => write!(f, "{label}: a number of {width} bits or the name of a code point"),
            Kind::Address => write!(f, "{label}: an address of {width} bits"),
            Kind::Int => write!(f, "{label}: a signed number of {width} bits"),
            _ => write!(f, "{label}: a number of {width} bits"),
        }
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<u128, E> {
        match self.kind {
            Kind::Bool => Ok(value.into()),
            _ => Err(E::invalid_type(Unexpected::Bool(value), &self)),
        }
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<u128, E> {
        self.unsigned(value.into())
    }

    fn visit_u128<E: de::Error>(self, value: u128) -> Result<u128, E> {
        self.unsigned(value)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<u128, E> {
        self.signed(value.into())
    }

    fn visit_i128<E: de::Error>(self, value: i128) -> Result<u128, E> {
        self.signed(value)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<u128, E> {
        match self.text(text) {
            Some(value) => self.unsigned(value),
            None => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
}
