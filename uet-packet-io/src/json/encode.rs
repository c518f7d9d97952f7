//! A packet from JSON: the inverse of decoding.
//!
//! Headers are filled field by field through their tables. What is given is kept, wrong or not; what is not
//! given and can be computed is: next header, lengths, checksum, CRC. With `raw` the frame comes out as it was.

use crate::hex;
use serde_json::{Map, Value};
use std::fmt;
use std::net::IpAddr;
use std::sync::LazyLock;
use uet_wire::layout::{Kind, Layout};
use uet_wire::outer::{Entropy, Ethernet, Udp, Vlan};
use uet_wire::pds::{Pds, Prologue};
use uet_wire::registry::{AtomicOpcode, NextHdr, Opcode, PdsType};
use uet_wire::serde::{INNER_VLAN, OUTER};
use uet_wire::ses::{Atomic, CompareSwap, Rendezvous, Ses};
use uet_wire::tss::{TssLong, TssShort};
use uet_wire::{FrameBuilder, Options, Spec, Start, TrailerKind};

/// What the packets are to start with, and what no packet says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// The first header.
    pub start: Start,
    /// Ports, protocol number, trailer and version of the specification.
    pub options: Options,
}

/// Why a packet could not be made, and which part of the JSON says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodeError {
    /// The key, `fields.pds.psn`.
    pub at: String,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.why)
    }
}

impl std::error::Error for EncodeError {}

fn error<T>(at: impl Into<String>, why: impl fmt::Display) -> Result<T, EncodeError> {
    Err(EncodeError { at: at.into(), why: why.to_string() })
}

/// The frame that a JSON object describes.
pub fn encode(packet: &Value, settings: &Settings) -> Result<Vec<u8>, EncodeError> {
    let source = Source::new(packet, settings.options.spec)?;
    match source.object("raw")? {
        Some(raw) => source.frame_from_raw(raw),
        None => source.frame(settings),
    }
}

/// The keys of a packet, those that decoding adds included.
const KEYS: &[&str] = &[
    "number",
    "time",
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
    "raw",
];

/// The JSON under way.
struct Source<'a> {
    packet: &'a Map<String, Value>,
    fields: &'a Map<String, Value>,
    spec: &'static Spec,
    stack: Vec<&'a str>,
}

impl<'a> Source<'a> {
    fn new(packet: &'a Value, spec: &'static Spec) -> Result<Self, EncodeError> {
        let Value::Object(packet) = packet else { return error("packet", "is not an object") };
        if let Some(key) = packet.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return error(
                "packet",
                format_args!("has the unknown key {key:?}; the keys are {}", KEYS.join(", ")),
            );
        }
        static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        let mut source = Source { packet, fields: &EMPTY, spec, stack: Vec::new() };
        source.fields = source.object("fields")?.unwrap_or(&EMPTY);
        match packet.get("stack") {
            None | Some(Value::Null) => {}
            Some(Value::Array(layers)) => {
                for layer in layers {
                    let Some(layer) = layer.as_str() else { return error("stack", "is not a list of words") };
                    source.stack.push(layer);
                }
            }
            Some(_) => return error("stack", "is not a list of words"),
        }
        Ok(source)
    }

    fn object(&self, key: &str) -> Result<Option<&'a Map<String, Value>>, EncodeError> {
        match self.packet.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(_) => error(key, "is not an object"),
        }
    }

    /// A number inside an object of the packet: `trimmed.missing`.
    fn number(&self, object: &str, key: &str) -> Result<Option<usize>, EncodeError> {
        match self.object(object)?.and_then(|object| object.get(key)) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64().and_then(|number| usize::try_from(number).ok()) {
                Some(number) => Ok(Some(number)),
                None => error(format!("{object}.{key}"), format_args!("{value} is not a length")),
            },
        }
    }

    fn has_layer(&self, name: &str) -> bool {
        self.stack.contains(&name)
    }

    /// A field of the packet.
    fn field(&self, name: &str, width: usize) -> Result<Option<u128>, EncodeError> {
        self.field_of(name, width, false)
    }

    /// A field of the packet; one that is signed may be negative, and becomes two's complement of its width.
    fn field_of(&self, name: &str, width: usize, signed: bool) -> Result<Option<u128>, EncodeError> {
        match self.fields.get(name) {
            None => Ok(None),
            Some(value) => number(&format!("fields.{name}"), value, width, signed).map(Some),
        }
    }

    /// Concatenates what a raw object kept; only the UET headers are made from their fields.
    fn frame_from_raw(&self, raw: &Map<String, Value>) -> Result<Vec<u8>, EncodeError> {
        let kept = |key: &str| match raw.get(key) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::String(text)) => hex::decode(text).or_else(|why| error(format!("raw.{key}"), why)),
            Some(_) => error(format!("raw.{key}"), "is not a text of hexadecimal digits"),
        };
        let whole = ["tss", "pds", "ses", "ext"].map(|layer| self.has_layer(layer));
        let headers = self.headers()?;
        let mut frame = kept("outer")?;
        for header in headers.iter().filter(|header| whole[header.rank()]) {
            frame.extend_from_slice(&header.bytes);
        }
        for key in ["payload", "rest", "trailer", "padding"] {
            frame.extend(kept(key)?);
        }
        Ok(frame)
    }

    fn frame(&self, settings: &Settings) -> Result<Vec<u8>, EncodeError> {
        let headers = self.headers()?;
        self.refuse_strangers(&headers)?;
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

    /// The UET headers, each with the fields that are given.
    fn headers(&self) -> Result<Vec<Header>, EncodeError> {
        let mut headers = Vec::new();
        if self.has_layer("tss") || self.fields.contains_key("tss.type") {
            let layout = if self.field("tss.sp", 1)? == Some(1) { TssLong::LAYOUT } else { TssShort::LAYOUT };
            headers.push(self.fill(layout)?);
            return Ok(headers);
        }
        let Some(kind) = self.field("pds.type", 5)? else { return Ok(headers) };
        let kind = PdsType::new(kind as u8).unwrap_or_default();
        let layout =
            Pds::TABLE.iter().find(|(codes, _)| codes.contains(&kind)).map_or(Prologue::LAYOUT, |row| row.1);
        let mut pds = self.fill(layout)?;
        let next = match layout.field("pds.next_hdr") {
            None => NextHdr::UET_HDR_NONE,
            Some(place) => match self.field("pds.next_hdr", 4)? {
                Some(given) => NextHdr::new(given as u8).unwrap_or_default(),
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
        let ses = self.fill(layout)?;
        headers.push(ses);
        let is_request = layout.field("ses.som").is_some();
        let opcode =
            self.field("ses.opcode", 6)?.and_then(|opcode| Opcode::new(opcode as u8)).unwrap_or_default();
        if is_request && opcode.is_rendezvous() {
            headers.push(self.fill(Rendezvous::LAYOUT)?);
        } else if is_request && opcode.is_atomic() {
            let atomic = self.field("ses.atomic_opcode", 8)?.and_then(|code| AtomicOpcode::new(code as u8));
            let long = atomic.is_some_and(|atomic| atomic.is_compare_and_swap());
            headers.push(self.fill(if long { CompareSwap::LAYOUT } else { Atomic::LAYOUT })?);
        }
        Ok(headers)
    }

    /// The SES header whose fields are given.
    fn guess_next_hdr(&self) -> NextHdr {
        let has = |names: &[&str]| names.iter().any(|name| self.fields.contains_key(*name));
        if !self.fields.keys().any(|name| name.starts_with("ses.")) {
            NextHdr::UET_HDR_NONE
        } else if has(&["ses.response_message_id", "ses.read_request_message_id"]) {
            NextHdr::UET_HDR_RESPONSE_DATA
        } else if has(&["ses.original_request_psn"]) {
            NextHdr::UET_HDR_RESPONSE_DATA_SMALL
        } else if has(&["ses.return_code"]) {
            NextHdr::UET_HDR_RESPONSE
        } else if has(&["ses.message_id", "ses.message_offset", "ses.initiator_restart_token"]) {
            NextHdr::UET_HDR_REQUEST_STD
        } else if has(&["ses.initiator", "ses.memory_key", "ses.match_bits"]) {
            NextHdr::UET_HDR_REQUEST_MEDIUM
        } else {
            NextHdr::UET_HDR_REQUEST_SMALL
        }
    }

    /// A header with the fields and the reserved bits that are given.
    fn fill(&self, layout: &'static Layout) -> Result<Header, EncodeError> {
        let layout = self.spec.layout(layout);
        let mut bytes = vec![0; layout.bytes];
        for place in layout.fields() {
            let exists = place.row.when.is_none_or(|when| {
                let deciding = layout.field(when.name).and_then(|deciding| deciding.read(&bytes));
                deciding.is_some_and(|value| when.values.contains(value))
            });
            if !exists {
                continue;
            }
            if let Some(value) =
                self.field_of(place.row.name, place.row.width(), place.row.kind == Kind::Int)?
            {
                place.write(&mut bytes, value);
            }
        }
        for (key, value) in self.object("reserved")?.into_iter().flatten() {
            let at = || format!("reserved.{key}");
            match key.split_once('@') {
                None => return error(at(), "is not of the form HEADER@BIT:WIDTH"),
                Some((header, _)) if header != layout.name => continue,
                Some(_) => {}
            }
            match layout.place(key) {
                Some(place) => place.write(&mut bytes, number(&at(), value, place.row.width(), false)?),
                None => return error(at(), "there are no such reserved bits"),
            };
        }
        Ok(Header { layout, bytes })
    }

    /// Refuses fields that no header of the packet has: a misspelt name must not be lost.
    fn refuse_strangers(&self, headers: &[Header]) -> Result<(), EncodeError> {
        for name in self.fields.keys() {
            let in_headers = headers.iter().any(|header| {
                let layout = header.layout;
                layout.present(&header.bytes).any(|(place, _)| place.row.name == name)
            });
            let around = OUTER.contains(&name.as_str()) || Entropy::LAYOUT.field(name).is_some();
            if !in_headers && !around {
                let exists =
                    uet_wire::layout::ALL.iter().any(|layout| self.spec.layout(layout).field(name).is_some());
                let why =
                    if exists { "this packet has no such field" } else { "there is no field of this name" };
                return error(format!("fields.{name}"), why);
            }
        }
        Ok(())
    }

    fn payload(&self) -> Result<Vec<u8>, EncodeError> {
        let length = self.number("payload", "length")?;
        match self.packet.get("payload_hex") {
            None | Some(Value::Null) => match length {
                Some(length) if length > 65_535 => error("payload.length", "is more than an IP packet holds"),
                length => Ok(vec![0; length.unwrap_or(0)]),
            },
            Some(Value::String(text)) => hex::decode(text).or_else(|why| error("payload_hex", why)),
            Some(_) => error("payload_hex", "is not a text of hexadecimal digits"),
        }
    }

    /// Cuts the packet where its error or its trimming says.
    fn cut(&self, headers: &[Header], uet: &mut Vec<u8>) -> Result<(), EncodeError> {
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
                error("trailer.value", format_args!("{value} is not a text of hexadecimal digits"))
            }
            None if settings.options.trailer == TrailerKind::Crc || self.has_layer("crc") => {
                Ok(Trailer::Computed)
            }
            None => Ok(Trailer::None),
        }
    }

    /// Puts the layers around the UET packet.
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
                (Some(IpAddr::V6(src)), Some(IpAddr::V6(dst))) => frame.ipv6(src, dst),
                (Some(IpAddr::V4(src)), Some(IpAddr::V4(dst))) => frame.ipv4(src, dst),
                (None, None) if self.has_layer("ipv6") => frame.ipv6([0; 16], [0; 16]),
                (None, None) => frame.ipv4([0; 4], [0; 4]),
                _ => return error("src", "is not an address of the same kind as dst"),
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
            Some(length) if length > 65_535 => return error("padding.length", "is more than a frame holds"),
            Some(length) => buffer.resize(buffer.len() + length, 0),
            None => {}
        }
        if let Some(captured) = self.number("sliced", "captured")? {
            buffer.truncate(captured);
        }
        Ok(buffer)
    }

    /// A UDP length that is given is kept: that of a trimmed packet is the length before.
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

/// What ends a packet.
enum Trailer {
    None,
    Given(Vec<u8>),
    Computed,
}

/// A header that has been filled.
struct Header {
    layout: &'static Layout,
    bytes: Vec<u8>,
}

impl Header {
    /// The layer's place among tss, pds, ses, ext.
    fn rank(&self) -> usize {
        use uet_wire::layout::Layer;
        match self.layout.layer {
            Layer::Tss => 0,
            Layer::Pds => 1,
            Layer::Ses => 2,
            _ => 3,
        }
    }
}

/// A number, or a text of hexadecimal digits, that fits into `width` bits.
fn number(at: &str, value: &Value, width: usize, signed: bool) -> Result<u128, EncodeError> {
    let mask = u128::MAX >> (128 - width);
    let number = match value {
        Value::Number(number) => number.as_u64().map(u128::from).or_else(|| {
            let negative = number.as_i64()?;
            (signed && negative >= -(1 << (width.min(63) - 1))).then_some(negative as u128 & mask)
        }),
        Value::Bool(on) => Some(u128::from(*on)),
        Value::String(text) => {
            text.strip_prefix("0x").and_then(|digits| u128::from_str_radix(digits, 16).ok())
        }
        _ => None,
    };
    match number {
        Some(number) if number <= mask => Ok(number),
        Some(_) => error(at, format_args!("{value} does not fit into {width} bits")),
        None => error(at, format_args!("{value} is neither a number of {width} bits nor \"0x\" and digits")),
    }
}
