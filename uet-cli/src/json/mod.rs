//! A packet as JSON, and back.

mod decode;
mod derived;
mod encode;

pub use decode::{Decoded, Record, Time};
pub use derived::{DERIVED, Derived, derived};
pub use encode::{EncodeError, Settings, encode};

use uet_wire::layout::{Kind, Place};

/// The names under which a field of the second VLAN tag goes: `vlan.id` is the outer tag's.
const INNER_VLAN: &[(&str, &str)] = &[
    ("vlan.pcp", "vlan.inner.pcp"),
    ("vlan.dei", "vlan.inner.dei"),
    ("vlan.id", "vlan.inner.id"),
    ("vlan.type", "vlan.inner.type"),
];

/// The fields around UET that the JSON of a packet gives; the others are computed.
const OUTER: &[&str] = &[
    "ip.dscp",
    "ip.ecn",
    "ip.ttl",
    "udp.src_port",
    "udp.dst_port",
    "udp.length",
    "vlan.id",
    "vlan.inner.id",
];

/// A field's value as JSON has it: up to 32 bits a number, wider ones all digits in hexadecimal, signed ones
/// with their sign.
#[derive(Clone, Copy, Debug)]
struct Value {
    place: Place,
    raw: u128,
}

impl serde::Serialize for Value {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let width = self.place.row.width();
        match self.place.row.kind {
            Kind::Int => {
                serializer.serialize_i64(((self.raw << (128 - width)) as i128 >> (128 - width)) as i64)
            }
            _ if width <= 32 => serializer.serialize_u64(self.raw as u64),
            _ => serializer.collect_str(&format_args!(
                "{:#0digits$x}",
                self.raw,
                digits = 2 + width.div_ceil(4)
            )),
        }
    }
}
