//! Items beyond the tables: encapsulations and ends of packets.

use crate::case::Case;
use uet_packet_io::json::Decoded;
use uet_wire::layout::Layer;
use uet_wire::outer::Ip;
use uet_wire::{Content, Options, Packet, Start, TrailerKind};

/// Returns whether a packet shows the item.
type Shows = fn(&Case, &Decoded<'_>) -> bool;

fn vlans(packet: &Packet<'_>) -> usize {
    packet.vlans.iter().flatten().count()
}

fn is_v6(packet: &Packet<'_>) -> bool {
    matches!(packet.ip, Some(Ip::V6 { .. }))
}

fn is_v4(packet: &Packet<'_>) -> bool {
    matches!(packet.ip, Some(Ip::V4 { .. }))
}

fn extra(packet: &Packet<'_>) -> usize {
    packet.ip.map_or(0, |ip| ip.extra().len())
}

fn crc(decoded: &Decoded<'_>) -> Option<bool> {
    Some(decoded.packet.crc_check()?.ok())
}

/// Returns whether a switch trimmed the packet in this layer; by length if the lengths reveal the missing part.
fn trimmed(decoded: &Decoded<'_>, layer: Layer, by_length: bool) -> bool {
    let trimmed = decoded.packet.trimmed.filter(|trimmed| trimmed.layer == layer);
    trimmed.is_some_and(|trimmed| trimmed.missing.is_some() == by_length)
}

fn by_dscp(case: &Case, last_hop: bool, decoded: &Decoded<'_>) -> bool {
    case.options.trimmed_dscp.is_some()
        && decoded.packet.trimmed.is_some_and(|found| found.last_hop == last_hop)
}

fn sliced(decoded: &Decoded<'_>, layer: Layer) -> bool {
    let cut = decoded.packet.cut.map(|cut| cut.layer());
    decoded.packet.sliced.is_some() && cut.unwrap_or(Layer::Payload) == layer
}

/// All items of this kind.
pub(super) const WAYS: &[(&str, Shows)] = &[
    ("from eth", |case, _| case.start == Start::Eth),
    ("from ip", |case, _| case.start == Start::Ip),
    ("from udp", |case, _| case.start == Start::Udp),
    ("from uet", |case, _| case.start == Start::Uet),
    ("UDP over IPv4", |_, d| d.packet.udp.is_some() && is_v4(&d.packet)),
    ("UDP over IPv6", |_, d| d.packet.udp.is_some() && is_v6(&d.packet)),
    ("native over IPv4", |_, d| d.packet.entropy.is_some() && is_v4(&d.packet)),
    ("native over IPv6", |_, d| d.packet.entropy.is_some() && is_v6(&d.packet)),
    ("no tag", |_, d| d.packet.eth.is_some() && vlans(&d.packet) == 0),
    ("one tag", |_, d| vlans(&d.packet) == 1),
    ("two tags", |_, d| vlans(&d.packet) == 2),
    ("IPv4 options", |_, d| is_v4(&d.packet) && extra(&d.packet) > 0),
    ("IPv6 extension headers", |_, d| {
        is_v6(&d.packet) && extra(&d.packet) > 0 && d.packet.content == Content::Uet
    }),
    ("IPv4 fragment", |_, d| is_v4(&d.packet) && d.packet.content == Content::Fragment),
    ("IPv6 fragment", |_, d| is_v6(&d.packet) && d.packet.content == Content::Fragment),
    ("jumbogram", |_, d| d.packet.content == Content::Jumbogram),
    ("not UET", |_, d| d.packet.content == Content::Other && d.packet.error().is_none()),
    ("another port", |case, d| case.options.udp_port != Options::DEFAULT.udp_port && d.packet.udp.is_some()),
    ("another protocol number", |case, d| {
        case.options.ip_proto != Options::DEFAULT.ip_proto && d.packet.entropy.is_some()
    }),
    ("padding", |_, d| !d.packet.padding.is_empty()),
    ("CRC right", |_, d| crc(d) == Some(true)),
    ("CRC wrong", |_, d| crc(d) == Some(false)),
    ("CRC that cannot be checked", |case, d| {
        case.options.trailer == TrailerKind::Crc && d.packet.trailer.len() == 4 && crc(d).is_none()
    }),
    ("ICV", |case, d| case.options.trailer == TrailerKind::Icv && d.packet.trailer.len() == 16),
    ("trailer cut", |_, d| d.packet.cut.is_some_and(|cut| cut.layer() == Layer::Trailer)),
    ("trimmed at 24 bytes", |_, d| {
        let behind_ip = d.packet.ip_packet.len().saturating_sub(20);
        d.packet.trimmed.is_some() && is_v4(&d.packet) && behind_ip == 24
    }),
    ("trimmed in PDS, by length", |_, d| trimmed(d, Layer::Pds, true)),
    ("trimmed in SES, by length", |_, d| trimmed(d, Layer::Ses, true)),
    ("trimmed in the payload, by length", |_, d| trimmed(d, Layer::Payload, true)),
    ("trimmed in the trailer, by length", |_, d| {
        trimmed(d, Layer::Payload, true) && d.packet.cut.is_some_and(|cut| cut.layer() == Layer::Trailer)
    }),
    ("trimmed in SES, by traffic class alone", |_, d| trimmed(d, Layer::Ses, false)),
    ("trimmed in the payload, by traffic class alone", |_, d| trimmed(d, Layer::Payload, false)),
    ("trimmed, by traffic class", |case, d| by_dscp(case, false, d)),
    ("trimmed at the last hop", |case, d| by_dscp(case, true, d)),
    ("sliced in Ethernet", |_, d| sliced(d, Layer::Eth)),
    ("sliced in a tag", |_, d| sliced(d, Layer::Vlan)),
    ("sliced in IPv4", |_, d| sliced(d, Layer::Ipv4)),
    ("sliced in IPv6", |_, d| sliced(d, Layer::Ipv6)),
    ("sliced in UDP", |_, d| sliced(d, Layer::Udp)),
    ("sliced in the entropy header", |_, d| sliced(d, Layer::Entropy)),
    ("sliced in PDS", |_, d| sliced(d, Layer::Pds)),
    ("sliced in SES", |_, d| sliced(d, Layer::Ses)),
    ("sliced in the payload", |_, d| sliced(d, Layer::Payload)),
];
