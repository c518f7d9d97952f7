//! A packet as JSON, and back.

mod decode;
mod derived;
mod encode;
mod write;

pub use decode::{Decoded, Record, Time};
pub use derived::{DERIVED, Derived, derived};
pub use encode::{EncodeError, Settings, encode};

/// The names under which a field of the second VLAN tag goes: `vlan.id` is the outer tag's.
const INNER_VLAN: &[(&str, &str)] = &[
    ("vlan.pcp", "vlan.inner.pcp"),
    ("vlan.dei", "vlan.inner.dei"),
    ("vlan.id", "vlan.inner.id"),
    ("vlan.type", "vlan.inner.type"),
];

/// The name that a field of the second VLAN tag goes by.
pub fn inner_name(name: &'static str) -> &'static str {
    INNER_VLAN.iter().find(|(outer, _)| *outer == name).map_or(name, |(_, inner)| inner)
}

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
