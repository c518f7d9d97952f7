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
fn confuse(wire: &mut Wire<'_>, mut packet: Packet, mask: u128) {
    packet.src = wire.seen.first_source(&packet, same(mask)).unwrap_or(packet.src);
    wire.pass(packet);
}

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "reads-ipv6-class-from-next-bits",
        "The traffic class of IPv6 is read four bits too late: half of it is flow label",
        PDS_ACK_002,
        &[Tap::ReadClass(|start| class(start << 4))],
    ),
    fault(
        "reads-ipv6-ecn-from-flow-label",
        "ECN of IPv6 is read from the first bits of the flow label; the DSCP is read right",
        PDS_ACK_002,
        &[Tap::ReadClass(|start| class(start) & !3 | class(start << 4) & 3)],
    ),
    fault(
        "loses-ipv6-ecn",
        "Congestion marks are lost where a packet arrives over IPv6",
        PDS_ACK_002,
        &[Tap::ReadClass(|start| class(start) & !3)],
    ),
    fault(
        "reads-half-of-ipv6-dscp",
        "Of the DSCP of IPv6 only the four bits in the first byte are read: a last-hop trim looks like another",
        PDS_TRIM_001,
        &[Tap::ReadClass(|start| class(start) & 0xf3)],
    ),
    fault(
        "writes-ipv6-class-into-flow-label",
        "The traffic class of IPv6 is written four bits too late: half of it is flow label",
        PDS_PRB_004,
        &[Tap::WriteClass(|class| ipv6_start(0, 0) | u32::from(class) << 16)],
    ),
    fault(
        "compares-first-64-bits",
        "Of the IPv6 address of a peer only the first 64 bits are compared",
        PDS_SYN_005,
        &[Tap::In(|wire, packet| confuse(wire, packet, FIRST_64))],
    ),
    fault(
        "compares-last-32-bits",
        "Of the IPv6 address of a peer only the last 32 bits are compared",
        PDS_OPEN_003,
        &[Tap::In(|wire, packet| confuse(wire, packet, LAST_32))],
    ),
    fault(
        "answers-first-of-network",
        "Each packet to an IPv6 address goes to the first peer with the same 64 bits at the start",
        PDS_ACK_001,
        &[Tap::Out(|wire, mut packet| {
            packet.dst = wire.seen.first_like(packet.dst, same(FIRST_64)).unwrap_or(packet.dst);
            wire.pass(packet);
        })],
    ),
];
