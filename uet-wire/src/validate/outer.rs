//! Validates the layers around UET, and the checksums.

use super::rule::Around;
use super::{Finding, Judgment, alone, broken, broken_by, of_spec};
use crate::catalogue::{self as c, Requirement};
use crate::outer::{Entropy, Ip, Ipv4, Udp};
use crate::{Packet, Spec, Uet};

/// Returns the findings in the layers around UET. Other specifications govern the reserved bits and code points of IP
/// and UDP.
pub(super) fn findings<'a>(
    packet: &Packet<'a>,
    spec: &'static Spec,
) -> impl Iterator<Item = Finding> + Clone {
    let around = Around { packet: Uet::default(), whole: true, spec };
    let ipv4 = match packet.ip {
        Some(Ip::V4 { header, .. }) => {
            Some(of_spec(Ipv4::LAYOUT, header.0, broken_by(&header, &around), &around))
        }
        _ => None,
    };
    let udp = packet.udp.map(|header| of_spec(Udp::LAYOUT, header.0, broken_by(&header, &around), &around));
    let by_rules = move |header: Option<Judgment<'a>>| {
        header.into_iter().flat_map(move |judgment| broken(judgment, around))
    };
    let entropy = packet.entropy.into_iter();
    let found = by_rules(ipv4).chain(lazily(packet, header_checksum)).chain(by_rules(udp));
    let found =
        found.chain(entropy.flat_map(move |header| alone(spec.layout(Entropy::LAYOUT), header.0, spec)));
    #[cfg(feature = "crc")]
    let found = found.chain(lazily(packet, crc_is_right));
    found
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

fn header_checksum(packet: &Packet<'_>) -> Option<Finding> {
    let Ip::V4 { header, options } = packet.ip? else { return None };
    (header.checksum() != header.computed_checksum(options))
        .then(|| computed(c::WIRE_IP_002, "ip.checksum", header.checksum().into()))
}

#[cfg(feature = "crc")]
fn crc_is_right(packet: &Packet<'_>) -> Option<Finding> {
    let check = packet.crc_check()?;
    (!check.ok()).then(|| computed(c::WIRE_CRC_001, "crc", check.value.into()))
}
