//! The layers around UET, and what has to be computed there.

use super::rule::{Around, Subject, judged};
use super::{Finding, Version};
use crate::Packet;
use crate::catalogue::{self as c, Requirement};
use crate::outer::{Entropy, Ip, Ipv4, Udp};

pub(super) fn findings(packet: &Packet<'_>, version: Version) -> impl Iterator<Item = Finding> + Clone {
    let ipv4 = match packet.ip {
        Some(Ip::V4 { header, .. }) => Some(header),
        _ => None,
    };
    let ipv4 =
        ipv4.map(|header| Subject { layout: Ipv4::LAYOUT, bytes: header.0, judged: judged!(Ipv4::LAYOUT) });
    let udp = packet.udp.map(|header| Subject {
        layout: Udp::LAYOUT,
        bytes: header.0,
        judged: judged!(Udp::LAYOUT),
    });
    let entropy = packet.entropy.map(|header| Subject {
        layout: Entropy::LAYOUT,
        bytes: header.0,
        judged: judged!(Entropy::LAYOUT),
    });
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
