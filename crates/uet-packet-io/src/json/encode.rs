//! Converts JSON to a packet: the inverse of decoding.
//!
//! [`PacketFields`] fills the headers field by field through their layouts. Given values stay unchanged, even invalid
//! ones. Missing values are computed if possible: next header, lengths, checksum, CRC. With `raw`, the frame equals the
//! original.

use crate::hex;
use crate::keys::KeyRing;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use uet_wire::layout::Layer;
use uet_wire::outer::{Ethernet, Udp, Vlan};
use uet_wire::tss::{ICV, Outer};
use uet_wire::with_serde::{FieldError, Given, INNER_VLAN, KEYS, OwnedHeader, PacketFields};
use uet_wire::{FrameBuilder, Options, Packet, Spec, Start, TrailerKind};

/// The first layer of the packets, and the settings of the deployment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// The first header.
    pub start: Start,
    /// Ports, protocol number, trailer and version of the specification.
    pub options: Options,
}

/// The reason why no packet could be built, and the part of the JSON at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodeError {
    /// The key, such as `fields.pds.psn`.
    pub at: String,
    /// The reason.
    pub why: String,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.why)
    }
}

impl std::error::Error for EncodeError {}

impl From<FieldError> for EncodeError {
    fn from(error: FieldError) -> Self {
        EncodeError { at: error.at().into(), why: error.why().into() }
    }
}

fn error<T>(at: impl Into<String>, why: impl fmt::Display) -> Result<T, EncodeError> {
    Err(EncodeError { at: at.into(), why: why.to_string() })
}

/// Builds the frame that a JSON object describes. A packet that was decrypted needs [`encode_sealed`].
pub fn encode(packet: &Value, settings: &Settings) -> Result<Vec<u8>, EncodeError> {
    let source = Source::new(packet, settings.options.spec)?;
    if source.was_opened()? {
        return error("protection", "the packet was decrypted, so its keys are needed (--keys)");
    }
    source.build(settings)
}

/// Builds the frame that a JSON object describes. Encrypts a packet that was decrypted, and any packet with a security
/// header and headers after it.
pub fn encode_sealed(packet: &Value, settings: &Settings, keys: &KeyRing) -> Result<Vec<u8>, EncodeError> {
    let source = Source::new(packet, settings.options.spec)?;
    let secured = source.has_layer("tss") && source.has_layer("pds");
    if !secured && !source.was_opened()? {
        return source.build(settings);
    }
    let mut frame = source.build(settings)?;
    let options = settings.options.trailer(TrailerKind::Icv);
    let (packet, fault) = Packet::parse_lax(settings.start, &frame, &options);
    if let Some(fault) = fault {
        return error("protection", format_args!("the packet cannot be encrypted: {fault}"));
    }
    let offsets = packet.offsets();
    let (Some(outer), Some(start)) = (Outer::of(&packet), offsets.uet) else {
        return error("protection", "the addresses, which are authenticated, are missing");
    };
    match keys.seal(&outer, frame.get_mut(start..offsets.padding).unwrap_or(&mut [])) {
        Ok(()) => Ok(frame),
        Err(opened) => error("protection", opened.reason().unwrap_or_default()),
    }
}

/// Returns the keys of a record: the keys of a packet, and those that decoding adds.
fn keys() -> impl Iterator<Item = &'static str> {
    ["number", "time", "interface"].into_iter().chain(KEYS.iter().copied()).chain(["protection", "raw"])
}

/// The JSON to convert.
struct Source<'a> {
    packet: &'a Map<String, Value>,
    given: PacketFields<'a>,
}

impl<'a> Source<'a> {
    fn build(&self, settings: &Settings) -> Result<Vec<u8>, EncodeError> {
        match self.object("raw")? {
            Some(raw) => self.frame_from_raw(raw),
            None => self.frame(settings),
        }
    }

    /// Returns whether the fields and the payload are those of a packet that was decrypted.
    fn was_opened(&self) -> Result<bool, EncodeError> {
        let protection = self.object("protection")?;
        Ok(protection.and_then(|protection| protection.get("authenticated")) == Some(&Value::Bool(true)))
    }

    fn new(packet: &'a Value, spec: &'static Spec) -> Result<Self, EncodeError> {
        let Value::Object(packet) = packet else { return error("packet", "is not an object") };
        if let Some(key) = packet.keys().find(|key| !keys().any(|known| known == *key)) {
            let known = keys().collect::<Vec<_>>().join(", ");
            return error(
                "packet",
                format_args!(
                    "has the unknown key {key:?} (`uet decode --format json` shows an example); the keys are {known}"
                ),
            );
        }
        let mut source = Source { packet, given: PacketFields { spec, ..PacketFields::default() } };
        source.given.fields = source.values("fields")?;
        source.given.reserved = source.values("reserved")?;
        match packet.get("stack") {
            None | Some(Value::Null) => {}
            Some(Value::Array(layers)) => {
                for layer in layers {
                    let Some(layer) = layer.as_str() else {
                        return error("stack", "is not a list of strings");
                    };
                    source.given.stack.push(layer.into());
                }
            }
            Some(_) => return error("stack", "is not a list of strings"),
        }
        Ok(source)
    }

    /// Returns the values of an object of fields.
    fn values(&self, key: &str) -> Result<BTreeMap<Cow<'a, str>, Given<'a>>, EncodeError> {
        let object = self.object(key)?.into_iter().flatten();
        Ok(object.map(|(name, value)| (Cow::Borrowed(name.as_str()), given(value))).collect())
    }

    fn object(&self, key: &str) -> Result<Option<&'a Map<String, Value>>, EncodeError> {
        match self.packet.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(_) => error(key, "is not an object"),
        }
    }

    /// Returns a number inside an object of the packet, such as `trimmed.missing`.
    fn number(&self, object: &str, key: &str) -> Result<Option<usize>, EncodeError> {
        match self.object(object)?.and_then(|object| object.get(key)) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64().and_then(|number| usize::try_from(number).ok()) {
                Some(number) => Ok(Some(number)),
                None => error(format!("{object}.{key}"), format_args!("{value} is not a number of bytes")),
            },
        }
    }

    fn has_layer(&self, name: &str) -> bool {
        self.given.has_layer(name)
    }

    /// Returns a field of the packet.
    fn field(&self, name: &str, width: usize) -> Result<Option<u128>, EncodeError> {
        Ok(self.given.field(name, width)?)
    }

    /// Concatenates the bytes from the raw object. Builds only the UET headers from their fields.
    fn frame_from_raw(&self, raw: &Map<String, Value>) -> Result<Vec<u8>, EncodeError> {
        let kept = |key: &str| match raw.get(key) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::String(text)) => hex::decode(text).or_else(|why| error(format!("raw.{key}"), why)),
            Some(_) => error(format!("raw.{key}"), "is not a string of hexadecimal digits"),
        };
        let whole = ["tss", "pds", "ses", "ext"].map(|layer| self.has_layer(layer));
        let headers = self.given.headers()?;
        let mut frame = kept("outer")?;
        for header in headers.iter().filter(|header| whole[rank(header)]) {
            frame.extend_from_slice(&header.bytes);
        }
        for key in ["payload", "rest", "trailer", "padding"] {
            frame.extend(kept(key)?);
        }
        Ok(frame)
    }

    fn frame(&self, settings: &Settings) -> Result<Vec<u8>, EncodeError> {
        let headers = self.given.headers()?;
        self.given.check_names(&headers)?;
        let addresses = (self.address("src")?, self.address("dst")?);
        let mut uet: Vec<u8> = Vec::new();
        for header in &headers {
            uet.extend_from_slice(&header.bytes);
        }
        uet.extend(self.payload()?);
        self.cut(&headers, &mut uet)?;
        let trailer = self.trailer(settings)?;
        if settings.start == Start::Uet {
            if let Trailer::Given(bytes) = trailer {
                uet.extend(bytes);
            }
            return Ok(uet);
        }
        self.wrap(settings, uet, trailer, addresses)
    }

    fn payload(&self) -> Result<Vec<u8>, EncodeError> {
        let length = self.number("payload", "length")?;
        match self.packet.get("payload_hex") {
            None | Some(Value::Null) => match length {
                Some(length) if length > 65_535 => {
                    error("payload.length", "is above 65,535, the limit of an IP packet")
                }
                length => Ok(vec![0; length.unwrap_or(0)]),
            },
            Some(Value::String(text)) => hex::decode(text).or_else(|why| error("payload_hex", why)),
            Some(_) => error("payload_hex", "is not a string of hexadecimal digits"),
        }
    }

    /// Truncates the packet to the length that its error or its trimming states.
    fn cut(&self, headers: &[OwnedHeader], uet: &mut Vec<u8>) -> Result<(), EncodeError> {
        if let Some(present) = self.number("error", "present")? {
            let layer = self.object("error")?.and_then(|error| error.get("layer")).and_then(Value::as_str);
            let mut start = 0;
            for header in headers {
                if Some(header.layout.layer.name()) == layer {
                    uet.truncate(start + present);
                    break;
                }
                start += header.bytes.len();
            }
        }
        if let (Some(missing), Some(stated)) =
            (self.number("trimmed", "missing")?, self.field("udp.length", 16)?)
        {
            uet.truncate((stated as usize).saturating_sub(Udp::LAYOUT.bytes + missing));
        }
        Ok(())
    }

    fn trailer(&self, settings: &Settings) -> Result<Trailer, EncodeError> {
        if self.object("trimmed")?.is_some() {
            return Ok(Trailer::None);
        }
        match self.object("trailer")?.and_then(|trailer| trailer.get("value")) {
            Some(Value::String(text)) => {
                hex::decode(text).map(Trailer::Given).or_else(|why| error("trailer.value", why))
            }
            Some(value) => {
                error("trailer.value", format_args!("{value} is not a string of hexadecimal digits"))
            }
            None if settings.options.trailer == TrailerKind::Crc || self.has_layer("crc") => {
                Ok(Trailer::Computed)
            }
            None if self.has_layer("tss") && self.has_layer("pds") => Ok(Trailer::Given(vec![0; ICV])),
            None => Ok(Trailer::None),
        }
    }

    /// Adds the outer layers to the UET packet.
    fn wrap(
        &self,
        settings: &Settings,
        mut uet: Vec<u8>,
        trailer: Trailer,
        addresses: (Option<IpAddr>, Option<IpAddr>),
    ) -> Result<Vec<u8>, EncodeError> {
        let small = |name: &str, width: usize| {
            Ok::<_, EncodeError>(self.field(name, width)?.map(|value| value as u16))
        };
        if let Trailer::Given(bytes) = &trailer {
            uet.extend_from_slice(bytes);
        }
        let mut frame = FrameBuilder::opaque(&uet);
        frame = match small("pds.entropy", 16)? {
            Some(entropy) => frame.native_as(entropy, settings.options.ip_proto),
            None => {
                let entropy = small("udp.src_port", 16)?.unwrap_or(0);
                frame.udp_to(entropy, small("udp.dst_port", 16)?.unwrap_or(settings.options.udp_port))
            }
        };
        if let Some(dscp) = small("ip.dscp", 6)? {
            frame = frame.dscp(dscp as u8);
        }
        if let Some(ecn) = small("ip.ecn", 2)? {
            frame = frame.ecn(ecn as u8);
        }
        if let Some(ttl) = small("ip.ttl", 8)? {
            frame = frame.ttl(ttl as u8);
        }
        if settings.start != Start::Udp {
            frame = match addresses {
                (Some(src), Some(dst)) if src.is_ipv4() == dst.is_ipv4() => frame.ip(src, dst),
                (None, None) if self.has_layer("ipv6") => frame.ipv6([0; 16], [0; 16]),
                (None, None) => frame.ipv4([0; 4], [0; 4]),
                _ => return error("src", "and dst are not both IPv4 or both IPv6 addresses"),
            };
        }
        let mut vlans = Vec::new();
        for name in ["vlan.id", INNER_VLAN[2].1] {
            vlans.extend(small(name, 12)?);
        }
        if settings.start == Start::Eth {
            frame = frame.ethernet([0; 6], [0; 6]).vlans(&vlans);
        }
        if matches!(trailer, Trailer::Computed) {
            frame = frame.crc();
        }
        let mut buffer = vec![0; uet.len() + 256];
        let length = frame.emit(&mut buffer).or_else(|why| error("packet", why))?;
        buffer.truncate(length);
        self.keep_udp_length(settings, &mut buffer, vlans.len())?;
        match self.number("padding", "length")? {
            Some(length) if length > 65_535 => {
                return error("padding.length", "is above the limit of 65,535");
            }
            Some(length) => buffer.resize(buffer.len() + length, 0),
            None => {}
        }
        if let Some(captured) = self.number("sliced", "captured")? {
            buffer.truncate(captured);
        }
        Ok(buffer)
    }

    /// Keeps a given UDP length. In a trimmed packet it is the length before trimming.
    fn keep_udp_length(
        &self,
        settings: &Settings,
        frame: &mut [u8],
        vlans: usize,
    ) -> Result<(), EncodeError> {
        let Some(stated) = self.field("udp.length", 16)? else { return Ok(()) };
        let mut start = match settings.start {
            Start::Eth => Ethernet::LAYOUT.bytes + vlans * Vlan::LAYOUT.bytes,
            _ => 0,
        };
        if settings.start != Start::Udp {
            start += match frame.get(start).map(|byte| byte >> 4) {
                Some(6) => uet_wire::outer::Ipv6::LAYOUT.bytes,
                _ => uet_wire::outer::Ipv4::LAYOUT.bytes,
            };
        }
        let header = frame.get_mut(start..).unwrap_or(&mut []);
        if let Ok((udp, _)) = Udp::parse_mut(header) {
            udp.length(stated as u16).done().or_else(|why| error("fields.udp.length", why))?;
        }
        Ok(())
    }

    fn address(&self, key: &str) -> Result<Option<IpAddr>, EncodeError> {
        match self.packet.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_str().and_then(|text| text.parse().ok()) {
                Some(address) => Ok(Some(address)),
                None => error(key, format_args!("{value} is not an IP address")),
            },
        }
    }
}

/// The trailer of a packet.
enum Trailer {
    None,
    Given(Vec<u8>),
    Computed,
}

/// Converts a JSON value to a field value.
fn given(value: &Value) -> Given<'_> {
    match value {
        Value::Bool(on) => Given::Number((*on).into()),
        Value::String(text) => Given::Text(text.as_str().into()),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => Given::Number(number.into()),
            (None, Some(negative)) => Given::Negative(negative),
            (None, None) => Given::Other,
        },
        _ => Given::Other,
    }
}

/// Returns the index of the layer among tss, pds, ses, ext.
fn rank(header: &OwnedHeader) -> usize {
    match header.layout.layer {
        Layer::Tss => 0,
        Layer::Pds => 1,
        Layer::Ses => 2,
        _ => 3,
    }
}
