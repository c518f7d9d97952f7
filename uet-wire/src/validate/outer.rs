//! Rules about the layers around UET.

use super::{Finding, reserved};
use crate::Packet;
use crate::catalogue as c;
use crate::outer::{Entropy, Ip};

pub(super) const RULES: &[fn(&Packet<'_>) -> Option<Finding>] = &[
    never_fragmented,
    header_checksum,
    udp_checksum,
    entropy_reserved,
    #[cfg(feature = "crc")]
    crc_is_right,
];

fn never_fragmented(packet: &Packet<'_>) -> Option<Finding> {
    match packet.ip? {
        Ip::V4 { header, .. } if !header.df() => Some(Finding::new(c::WIRE_IP_001, "ip.df", 0)),
        _ => None,
    }
}

fn header_checksum(packet: &Packet<'_>) -> Option<Finding> {
    let Ip::V4 { header, options } = packet.ip? else { return None };
    (header.checksum() != header.computed_checksum(options))
        .then(|| Finding::new(c::WIRE_IP_002, "ip.checksum", header.checksum().into()))
}

fn udp_checksum(packet: &Packet<'_>) -> Option<Finding> {
    let checksum = packet.udp?.checksum();
    (checksum != 0).then(|| Finding::new(c::WIRE_UDP_001, "udp.checksum", checksum.into()))
}

fn entropy_reserved(packet: &Packet<'_>) -> Option<Finding> {
    let header = packet.entropy?;
    Entropy::LAYOUT.present(header.bytes()).find_map(|(place, value)| reserved(Entropy::LAYOUT, place, value))
}

#[cfg(feature = "crc")]
fn crc_is_right(packet: &Packet<'_>) -> Option<Finding> {
    let check = packet.crc_check()?;
    (!check.ok()).then(|| Finding::new(c::WIRE_CRC_001, "crc", check.value.into()))
}
