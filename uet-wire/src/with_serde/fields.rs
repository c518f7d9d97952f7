//! Builds the UET headers of a packet from the names and values of their fields.

use super::{Form, OUTER};
use crate::layout::{ALL, Kind, Layout};
use crate::outer::Entropy;
use crate::pds::{Pds, Prologue};
use crate::registry::{AtomicOpcode, NextHdr, Opcode, PdsType, Registry};
use crate::ses::{Atomic, CompareSwap, Rendezvous, Ses};
use crate::tss::{TssLong, TssShort};
use crate::{Spec, Uet, UetBuf, Version};
use ::serde::de::{self, Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Display, Formatter};

/// The keys of a packet, in the order of their values.
pub const KEYS: &[&str] = &[
    "src",
    "dst",
    "stack",
    "fields",
    "names",
    "derived",
    "reserved",
    "payload",
    "payload_hex",
    "padding",
    "trailer",
    "trimmed",
    "sliced",
    "fragment",
    "error",
    "findings",
];

/// A field's value from the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given<'a> {
    /// A number. A boolean is 0 or 1.
    Number(u128),
    /// A negative number, for a signed field.
    Negative(i64),
    /// `"0x"` and digits, or the name of a code point.
    Text(Cow<'a, str>),
    /// A value that no field can have, such as a list.
    Other,
}

impl Display for Given<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Given::Number(number) => number.fmt(f),
            Given::Negative(number) => number.fmt(f),
            Given::Text(text) => write!(f, "{text:?}"),
            Given::Other => f.write_str("this"),
        }
    }
}

/// The fields of a packet by name. [`headers`](Self::headers) builds its UET headers.
///
/// ```
/// use uet_wire::with_serde::{Given, PacketFields};
///
/// let mut packet = PacketFields::default();
/// packet.fields.insert("pds.type".into(), Given::Text("ACK".into()));
/// packet.fields.insert("pds.cack_psn".into(), Given::Number(7));
/// let headers = packet.headers()?;
/// assert_eq!((headers[0].layout.name, headers[0].bytes.len()), ("ack", 12));
///
/// packet.fields.insert("pds.psnn".into(), Given::Number(7));
/// assert_eq!(packet.check_names(&headers).unwrap_err().at(), "fields.pds.psnn");
/// # Ok::<(), uet_wire::with_serde::FieldError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketFields<'a> {
    /// The values of `fields`.
    pub fields: BTreeMap<Cow<'a, str>, Given<'a>>,
    /// The values of `reserved`, with keys such as `ack@9:1`.
    pub reserved: BTreeMap<Cow<'a, str>, Given<'a>>,
    /// The layers of the packet. Required only for headers without fields.
    pub stack: Vec<Cow<'a, str>>,
    /// The version of the specification that names the fields.
    pub spec: &'static Spec,
}

/// A header built from its fields.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedHeader {
    /// The layout.
    pub layout: &'static Layout,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// The error for a field that prevents building a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    at: String,
    why: String,
}

impl FieldError {
    /// Returns the key: `fields.pds.psn`.
    pub fn at(&self) -> &str {
        &self.at
    }

    /// Returns the reason for the error.
    pub fn why(&self) -> &str {
        &self.why
    }
}

impl Display for FieldError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.why)
    }
}

impl core::error::Error for FieldError {}

fn error<T>(at: impl Into<String>, why: impl Display) -> Result<T, FieldError> {
    Err(FieldError { at: at.into(), why: why.to_string() })
}

impl<'a> PacketFields<'a> {
    /// Returns true if the stack has this layer.
    pub fn has_layer(&self, name: &str) -> bool {
        self.stack.iter().any(|layer| layer == name)
    }

    /// Returns the value of an unsigned field of `width` bits.
    pub fn field(&self, name: &str, width: usize) -> Result<Option<u128>, FieldError> {
        self.value(name, width, Kind::Uint)
    }

    fn value(&self, name: &str, width: usize, kind: Kind) -> Result<Option<u128>, FieldError> {
        match self.fields.get(name) {
            None => Ok(None),
            Some(given) => number(|| format!("fields.{name}"), given, width, kind).map(Some),
        }
    }

    fn code(&self, name: &str, registry: &'static Registry) -> Result<Option<u8>, FieldError> {
        let value = self.value(name, registry.width, Kind::Code(registry))?;
        Ok(value.map(|code| code as u8))
    }

    /// Builds the UET headers in wire order. Absent fields are 0. An absent next header follows from the fields.
    pub fn headers(&self) -> Result<Vec<OwnedHeader>, FieldError> {
        let mut headers = Vec::new();
        if self.has_layer("tss") || self.fields.contains_key("tss.type") {
            let layout = if self.field("tss.sp", 1)? == Some(1) { TssLong::LAYOUT } else { TssShort::LAYOUT };
            // Further headers follow only in a packet that was decrypted.
            headers.push(self.fill(layout)?);
        }
        let Some(kind) = self.code("pds.type", PdsType::REGISTRY)? else { return Ok(headers) };
        let kind = PdsType::new(kind).unwrap_or_default();
        let layout =
            Pds::TABLE.iter().find(|(codes, _)| codes.contains(&kind)).map_or(Prologue::LAYOUT, |row| row.1);
        let mut pds = self.fill(layout)?;
        let next = match layout.field("pds.next_hdr") {
            None => NextHdr::UET_HDR_NONE,
            Some(place) => match self.code("pds.next_hdr", NextHdr::REGISTRY)? {
                Some(given) => NextHdr::new(given).unwrap_or_default(),
                None => {
                    let guess = self.guess_next_hdr();
                    place.write(&mut pds.bytes, guess.code().into());
                    guess
                }
            },
        };
        headers.push(pds);
        let mentions_ses = self.fields.keys().any(|name| name.starts_with("ses.")) || self.has_layer("ses");
        let Some((_, layout)) = Ses::TABLE.iter().find(|(codes, _)| mentions_ses && codes.contains(&next))
        else {
            return Ok(headers);
        };
        headers.push(self.fill(layout)?);
        if layout.field("ses.som").is_none() {
            return Ok(headers);
        }
        let opcode = self.code("ses.opcode", Opcode::REGISTRY)?.and_then(Opcode::new).unwrap_or_default();
        if opcode.is_rendezvous() {
            headers.push(self.fill(Rendezvous::LAYOUT)?);
        } else if opcode.is_atomic() {
            let atomic = self.code("ses.atomic_opcode", AtomicOpcode::REGISTRY)?.and_then(AtomicOpcode::new);
            let long = atomic.is_some_and(|atomic| atomic.is_compare_and_swap());
            headers.push(self.fill(if long { CompareSwap::LAYOUT } else { Atomic::LAYOUT })?);
        }
        Ok(headers)
    }

    /// Returns the next header whose SES header has most of the given fields, in case of doubt the first of the table.
    fn guess_next_hdr(&self) -> NextHdr {
        let mut best = (0, NextHdr::UET_HDR_NONE);
        if self.fields.keys().any(|name| name.starts_with("ses.")) {
            best.1 = NextHdr::UET_HDR_REQUEST_SMALL;
        }
        for (codes, layout) in Ses::TABLE {
            let known =
                self.fields.keys().filter(|name| name.starts_with("ses.") && layout.field(name).is_some());
            let known = known.count();
            if known > best.0 {
                best = (known, codes[0]);
            }
        }
        best.1
    }

    /// Builds a header with the given fields and reserved bits.
    fn fill(&self, layout: &'static Layout) -> Result<OwnedHeader, FieldError> {
        let layout = self.spec.layout(layout);
        let mut bytes = alloc::vec![0; layout.bytes];
        for place in layout.fields() {
            if !place.exists(&bytes) {
                continue;
            }
            if let Some(value) = self.value(place.row.name, place.row.width(), place.row.kind)? {
                place.write(&mut bytes, value);
            }
        }
        for (key, given) in &self.reserved {
            let at = || format!("reserved.{key}");
            match key.split_once('@') {
                None => return error(at(), "is not of the form HEADER@BIT:WIDTH"),
                Some((header, _)) if header != layout.name => continue,
                Some(_) => {}
            }
            match layout.place(key) {
                Some(place) => place.write(&mut bytes, number(at, given, place.row.width(), Kind::Uint)?),
                None => return error(at(), "there are no such reserved bits"),
            };
        }
        Ok(OwnedHeader { layout, bytes })
    }

    /// Fails if a field belongs to none of the headers, including those around UET. This catches misspelled names.
    pub fn check_names(&self, headers: &[OwnedHeader]) -> Result<(), FieldError> {
        for name in self.fields.keys() {
            let in_headers = headers
                .iter()
                .any(|header| header.layout.present(&header.bytes).any(|(place, _)| place.row.name == *name));
            if !in_headers && !OUTER.contains(&name.as_ref()) && Entropy::LAYOUT.field(name).is_none() {
                let exists = ALL.iter().any(|layout| self.spec.layout(layout).field(name).is_some());
                let why =
                    if exists { "this packet has no such field" } else { "there is no field of this name" };
                return error(format!("fields.{name}"), why);
            }
        }
        Ok(())
    }
}

/// Returns the bits of a value, or fails if it does not fit into `width` bits.
fn number(
    at: impl FnOnce() -> String,
    given: &Given<'_>,
    width: usize,
    kind: Kind,
) -> Result<u128, FieldError> {
    let mask = crate::bits::mask(width);
    let form = Form { label: "", width, kind };
    let number = match given {
        Given::Number(number) => Some(*number),
        Given::Negative(number) => {
            (kind == Kind::Int && *number >= -(1 << (width.min(63) - 1))).then_some(*number as u128 & mask)
        }
        Given::Text(text) => form.text(text),
        Given::Other => None,
    };
    match number {
        Some(number) if number <= mask => Ok(number),
        Some(_) => error(at(), format_args!("{given} does not fit into {width} bits")),
        None => {
            let name = if matches!(kind, Kind::Code(_)) { ", nor a name of its values" } else { "" };
            error(
                at(),
                format_args!("{given} is neither a number of {width} bits nor \"0x\" and digits{name}"),
            )
        }
    }
}

impl<'de> Deserialize<'de> for Given<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GivenVisitor)
    }
}

struct GivenVisitor;

impl Visitor<'_> for GivenVisitor {
    type Value = Given<'static>;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or a text of \"0x\" and digits")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Given::Number(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Given::Number(value.into()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(u128::try_from(value).map_or(Given::Negative(value), Given::Number))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Given::Text(Cow::Owned(value.into())))
    }
}

/// Deserializes the JSON of a `UetBuf`, or the output of `uet decode` for a whole packet. Ignores values derived from
/// the fields. Without `payload_hex`, the payload is zeros.
#[cfg_attr(docsrs, doc(cfg(all(feature = "alloc", feature = "serde"))))]
impl<'de> Deserialize<'de> for UetBuf {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PacketVisitor)
    }
}

/// An upper bound of the bytes in an IP packet.
const MAX_PAYLOAD: u64 = 0xffff;

struct PacketVisitor;

impl<'de> Visitor<'de> for PacketVisitor {
    type Value = UetBuf;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a map with the fields of a packet")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<UetBuf, A::Error> {
        let mut packet = PacketFields { spec: Version::default().spec(), ..PacketFields::default() };
        let (mut length, mut payload) = (0, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "fields" => packet.fields = map.next_value::<Option<_>>()?.unwrap_or_default(),
                "reserved" => packet.reserved = map.next_value::<Option<_>>()?.unwrap_or_default(),
                "stack" => packet.stack = map.next_value::<Option<_>>()?.unwrap_or_default(),
                "payload" => {
                    let run: Option<BTreeMap<String, u64>> = map.next_value()?;
                    length = run.and_then(|run| run.get("length").copied()).unwrap_or(0);
                }
                "payload_hex" => payload = map.next_value::<Option<HexText>>()?.map(|text| text.0),
                "error" | "trimmed" | "sliced" => {
                    if map.next_value::<Option<IgnoredAny>>()?.is_some() {
                        return Err(A::Error::custom(format_args!("{key}: the packet is not whole")));
                    }
                }
                known if KEYS.contains(&known) => _ = map.next_value::<IgnoredAny>()?,
                unknown => return Err(A::Error::unknown_field(unknown, KEYS)),
            }
        }
        let payload = match payload {
            Some(payload) => payload,
            None if length > MAX_PAYLOAD => {
                return Err(A::Error::custom("payload.length: is above 65,535, the limit of an IP packet"));
            }
            None => alloc::vec![0; length as usize],
        };
        let headers = packet.headers().map_err(A::Error::custom)?;
        packet.check_names(&headers).map_err(A::Error::custom)?;
        let mut bytes: Vec<u8> = headers.into_iter().flat_map(|header| header.bytes).collect();
        if bytes.is_empty() {
            return Ok(UetBuf { payload, ..UetBuf::default() });
        }
        bytes.extend(payload);
        Uet::parse(&bytes).map(|uet| uet.to_buf()).map_err(A::Error::custom)
    }
}

/// Bytes, deserialized from hexadecimal digits.
pub(super) struct HexText(pub(super) Vec<u8>);

impl<'de> Deserialize<'de> for HexText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits: Option<Vec<u8>> =
            text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
        match digits {
            Some(digits) if digits.len() % 2 == 0 => {
                Ok(HexText(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()))
            }
            _ => Err(D::Error::custom("payload_hex: is not pairs of hexadecimal digits")),
        }
    }
}
