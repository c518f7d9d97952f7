//! The layers around UET, and what has to be computed there.

use super::rule::{Around, Subject, judged};
use super::{Finding, Version, subject};
use crate::Packet;
use crate::catalogue::{self as c, Requirement};
use crate::outer::{Entropy, Ip, Ipv4, Udp};

pub(super) fn findings(packet: &Packet<'_>, version: Version) -> impl Iterator<Item = Finding> + Clone {
    let ipv4 = match packet.ip {
        Some(Ip::V4 { header, .. }) => Some(header),
        _ => None,
    };
    let ipv4 = ipv4.map(|ip| subject(Ipv4::LAYOUT, ip.0, judged!(Ipv4::LAYOUT), ip.is_clean(version)));
    let udp = packet.udp.map(|udp| subject(Udp::LAYOUT, udp.0, judged!(Udp::LAYOUT), udp.is_clean(version)));
    let entropy = packet.entropy;
    let entropy =
        entropy.map(|it| subject(Entropy::LAYOUT, it.0, judged!(Entropy::LAYOUT), it.is_clean(version)));
    let found = broken(ipv4).chain(lazily(packet, header_checksum)).chain(broken(udp));
    let found = found.chain(entropy.into_iter().flat_map(move |header| header.alone(version)));
    #[cfg(feature = "crc")]
    let found = found.chain(lazily(packet, crc_is_right));
    found
}

/// IP and UDP have reserved bits and code points too, but those are not for this specification to judge.
fn broken<'a>(header: Option<Subject<'a>>) -> impl Iterator<Item = Finding> + Clone + 'a {
    let around = Around { headers: [None; 4], payload: 0, whole: true };
    header.into_iter().flat_map(move |header| header.broken(around))
}

/// What a function finds, when it is asked.
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
