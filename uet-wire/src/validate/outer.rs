//! Validates the layers around UET, and the checksums.

use super::rule::Around;
use super::{Faults, Finding, Remaining, UNCLEAN, broken_by, judged};
use crate::catalogue::{self as c, Requirement};
use crate::layout::Layout;
use crate::outer::{Entropy, Ip, Ipv4, Udp};
use crate::{Packet, Spec, Uet};
use core::iter::from_fn;

/// Returns the findings in the layers around UET. Other specifications govern the reserved bits and code points of IP
/// and UDP.
pub(super) fn findings<'a>(
    packet: &Packet<'a>,
    spec: &'static Spec,
) -> impl Iterator<Item = Finding> + Clone {
    let around = Around { packet: Uet::default(), whole: true, spec };
    let ipv4 = match packet.ip {
        Some(Ip::V4 { header, .. }) => Some((header.0.as_slice(), broken_by(&header, &around))),
        _ => None,
    };
    let udp = packet.udp.map(|header| (header.0.as_slice(), broken_by(&header, &around)));
    let found = by_rules(Ipv4::LAYOUT, ipv4, around).chain(lazily(packet, header_checksum));
    let found = found.chain(by_rules(Udp::LAYOUT, udp, around));
    let (entropy, mut fields) = (spec.layout(Entropy::LAYOUT), Remaining::of(UNCLEAN));
    let header = packet.entropy.map(|header| header.0);
    let found = found.chain(from_fn(move || fields.next_field(entropy, header?, spec)));
    #[cfg(feature = "crc")]
    let found = found.chain(lazily(packet, crc_is_right));
    found
}

/// Returns the rules that a header breaks. The compiled checks have found its faults.
fn by_rules<'a>(
    layout: &'static Layout,
    header: Option<(&'a [u8], Faults)>,
    around: Around<'a>,
) -> impl Iterator<Item = Finding> + Clone {
    let faults = header.map_or(0, |(bytes, compiled)| judged(layout, bytes, compiled, &around));
    let (layout, mut rules) = (around.spec.layout(layout), Remaining::of(faults));
    from_fn(move || rules.next_rule(layout, header?.0, &around))
}

/// Calls a check on demand.
fn lazily(
    packet: &Packet<'_>,
    rule: fn(&Packet<'_>) -> Option<Finding>,
) -> impl Iterator<Item = Finding> + Clone {
    core::iter::once_with(move || rule(packet)).flatten()
}

fn computed(requirement: &'static Requirement, field: &'static str, value: u128) -> Finding {
    Finding { requirement, field, value, bits: None }
}

/// A switch that trims changes the traffic class, and may leave the checksum and the length as they were. If the length
/// exceeds the packet, such a switch may have trimmed it.
fn header_checksum(packet: &Packet<'_>) -> Option<Finding> {
    let Ip::V4 { header, options } = packet.ip? else { return None };
    let uncaptured = packet.sliced.map_or(0, |sliced| sliced.wire.saturating_sub(sliced.captured));
    let sent = packet.ip_packet.len().saturating_add(packet.padding.len()).saturating_add(uncaptured);
    if packet.trimmed.is_some() || usize::from(header.total_length()) > sent {
        return None;
    }
    (header.checksum() != header.computed_checksum(options))
        .then(|| computed(c::WIRE_IP_002, "ip.checksum", header.checksum().into()))
}

#[cfg(feature = "crc")]
fn crc_is_right(packet: &Packet<'_>) -> Option<Finding> {
    let check = packet.crc_check()?;
    (!check.ok()).then(|| computed(c::WIRE_CRC_001, "crc", check.value.into()))
}
