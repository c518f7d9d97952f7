//! Faults in IPv6 traffic classes and addresses. They do not show over IPv4.

use super::tap::{Tap, Wire};
use super::{Fault, fault};
use crate::frame::ipv6_start;
use core::net::IpAddr;
use uet_model::Packet;
use uet_wire::catalogue::*;

/// Extracts the traffic class: the eight bits after the four version bits.
const fn class(start: u32) -> u8 {
    (start >> 20) as u8
}

/// Returns a test for equality of these bits of two IPv6 addresses.
fn same(mask: u128) -> impl Fn(IpAddr, IpAddr) -> bool {
    move |a, b| match (a, b) {
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()) & mask == 0,
        _ => false,
    }
}

const FIRST_64: u128 = !0 << 64;
const LAST_32: u128 = 0xffff_ffff;

/// Attributes a packet to another address, if both name the same context and these address bits are equal.
fn confuse(wire: &Wire<'_>, packet: &mut Packet, mask: u128) {
    packet.src = wire.seen.first_source(packet, same(mask)).unwrap_or(packet.src);
}

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "reads-ipv6-class-from-next-bits",
        "The NIC reads the IPv6 traffic class four bits too late: half of it is flow label",
        PDS_ACK_002,
        &[Tap::ReadClass(|start| class(start << 4))],
    ),
    fault(
        "reads-ipv6-ecn-from-flow-label",
        "The NIC reads the ECN of IPv6 from the first bits of the flow label, but the DSCP correctly",
        PDS_ACK_002,
        &[Tap::ReadClass(|start| class(start) & !3 | class(start << 4) & 3)],
    ),
    fault(
        "loses-ipv6-ecn",
        "The NIC loses the congestion marks of packets over IPv6",
        PDS_ACK_002,
        &[Tap::ReadClass(|start| class(start) & !3)],
    ),
    fault(
        "reads-half-of-ipv6-dscp",
        "The NIC reads only the four bits of the IPv6 DSCP in the first byte, and so misses a last-hop trim",
        PDS_TRIM_001,
        &[Tap::ReadClass(|start| class(start) & 0xf3)],
    ),
    fault(
        "writes-ipv6-class-into-flow-label",
        "The NIC writes the IPv6 traffic class four bits too late: half of it is flow label",
        PDS_PRB_004,
        &[Tap::WriteClass(|class| ipv6_start(0, 0) | u32::from(class) << 16)],
    ),
    fault(
        "compares-first-64-bits",
        "The NIC compares only the first 64 bits of a peer's IPv6 address",
        PDS_SYN_005,
        &[Tap::EditIn(|wire, packet| confuse(wire, packet, FIRST_64))],
    ),
    fault(
        "compares-last-32-bits",
        "The NIC compares only the last 32 bits of a peer's IPv6 address",
        PDS_OPEN_003,
        &[Tap::EditIn(|wire, packet| confuse(wire, packet, LAST_32))],
    ),
    fault(
        "answers-first-of-network",
        "The NIC sends packets for an IPv6 address to the first peer with the same first 64 bits",
        PDS_ACK_001,
        &[Tap::EditOut(|wire, packet| {
            packet.dst = wire.seen.first_like(packet.dst, same(FIRST_64)).unwrap_or(packet.dst);
        })],
    ),
];
