//! Packets trimmed by a switch. The unchanged UDP length or the traffic class reveals them. Some switches leave the IP
//! length and the IPv4 checksum as they were.

use super::parts::{self, INITIATOR, TARGET, built, data, write};
use crate::case::{Bytes, Case, Family};
use uet_wire::outer::{Ipv4, Ipv6};
use uet_wire::pds::RequestCc;
use uet_wire::{FrameBuilder, Options, PacketMut, Psn, Start, TrailerKind};

/// Shortest length that a switch may leave behind the IP header: UDP 8 and a request with congestion state 16.
const SHORTEST: usize = 24;
const DSCP: u8 = 5;
const LAST_HOP: u8 = 6;

/// UDP 8, PDS 16, SES 44, payload 1024.
fn request() -> FrameBuilder<'static> {
    let pds = RequestCc::rud()
        .request(|r| r.ar(true).clear_psn_offset(-1).psn(Psn(333)).spdcid(INITIATOR).dpdcid(TARGET));
    FrameBuilder::new(built(pds.ccc_id(0xa1).done())).ses(write(1, 1024)).payload(data(0, 1024))
}

/// Trims the IPv4 packet to `kept` bytes behind the IP header, as a switch does.
fn trim4(frame: &FrameBuilder<'_>, kept: usize) -> Vec<u8> {
    let mut packet = frame.bytes();
    packet.truncate(Ipv4::LAYOUT.bytes + kept);
    let length = packet.len() as u16;
    if let Ok((header, _)) = Ipv4::parse(&packet) {
        let header = built(header.copied().edit().total_length(length).done());
        let header = built(header.edit().checksum(header.computed_checksum(&[])).done());
        packet[..Ipv4::LAYOUT.bytes].copy_from_slice(header.bytes());
    }
    packet
}

fn trim6(frame: &FrameBuilder<'_>, kept: usize) -> Vec<u8> {
    let mut packet = frame.bytes();
    packet.truncate(Ipv6::LAYOUT.bytes + kept);
    if let Ok((header, _)) = Ipv6::parse(&packet) {
        let header = built(header.copied().edit().payload_length(kept as u16).done());
        packet[..Ipv6::LAYOUT.bytes].copy_from_slice(header.bytes());
    }
    packet
}

pub(super) fn family() -> Family {
    let mut family = Family::new("trimmed", "wire-format: trimming");
    let by_dscp = Options::DEFAULT.trimmed_dscp(Some(DSCP)).trimmed_lasthop_dscp(Some(LAST_HOP));
    let v4 = parts::v4(request().udp(0xbeef));
    let v6 = parts::v6(request().udp(0xbeef));
    let native = parts::v4(request().native(0xbeef));
    let ip = |name: String, what: &str, bytes: Vec<u8>| Case::uet(name, what, bytes).from(Start::Ip);

    for (word, kept, what) in [
        ("at-24-bytes", SHORTEST, "to the shortest that is allowed: the PDS header is the last thing left"),
        ("in-ses", SHORTEST + 20, "inside the SES header"),
        ("behind-ses", SHORTEST + 44, "behind the SES header"),
        ("in-payload", SHORTEST + 44 + 100, "inside the payload"),
        ("in-pds", SHORTEST - 8, "inside the PDS header, which no switch may do"),
    ] {
        family.add(ip(
            format!("by-length-{word}"),
            &format!("cut {what}; the UDP length tells"),
            trim4(&v4, kept),
        ));
        family.add(ip(format!("by-length-ipv6-{word}"), &format!("cut {what}; IPv6"), trim6(&v6, kept)));
        for (hop, dscp) in [("by-dscp", DSCP), ("by-lasthop-dscp", LAST_HOP)] {
            let what = format!("cut {what}; the traffic class and the UDP length tell");
            let packet = trim4(&v4.clone().dscp(dscp), kept);
            family.add(ip(format!("{hop}-{word}"), &what, packet).options(by_dscp));
        }
        // The entropy header is 4 bytes shorter than UDP and has no length.
        let what = format!(
            "cut {what}; native encapsulation: only the traffic class tells, not how much is missing"
        );
        let packet = trim4(&native.clone().dscp(DSCP), kept - 4);
        family.add(ip(format!("native-{word}"), &what, packet).options(by_dscp));
        let crc = by_dscp.trailer(TrailerKind::Crc);
        let what = format!("cut before its CRC; {word}");
        family.add(ip(format!("crc-{word}"), &what, trim4(&v4.clone().dscp(DSCP).crc(), kept)).options(crc));
    }
    stale(&mut family, &v4, &v6, &native);
    let crc = Options::DEFAULT.trailer(TrailerKind::Crc);
    let with_crc = v4.clone().crc();
    let inside = with_crc.len() - 20 - 2;
    family.add(ip("in-trailer".into(), "cut inside the CRC", trim4(&with_crc, inside)).options(crc));
    let whole = v4.clone().dscp(DSCP).bytes();
    let what = "the traffic class says trimmed, though nothing is missing by the lengths";
    family.add(ip("by-dscp-whole".into(), what, whole).options(by_dscp));
    let other = v4.clone().dscp(DSCP + 2).bytes();
    family.add(ip("other-dscp".into(), "another traffic class: nothing is trimmed", other).options(by_dscp));
    let what = "without IP the UDP length beyond the bytes given tells";
    let datagram = trim4(&v4, SHORTEST)[Ipv4::LAYOUT.bytes..].to_vec();
    family.add(Case::uet("udp-at-24-bytes", what, datagram).from(Start::Udp));
    let mut eth = parts::eth(v4.clone()).bytes();
    eth.truncate(14);
    eth.extend(trim4(&v4, SHORTEST));
    eth.resize(60, 0);
    let what = "a trimmed packet in a frame that Ethernet padded: padding is not what is missing";
    family.add(Case::eth("padded-at-24-bytes", what, eth));
    family
}

/// Packets as switches leave them that recompute neither the IP length nor the IPv4 checksum, at the sizes of such
/// switches.
fn stale(family: &mut Family, v4: &FrameBuilder<'_>, v6: &FrameBuilder<'_>, native: &FrameBuilder<'_>) {
    let by_dscp = Options::DEFAULT.trimmed_dscp(Some(DSCP)).trimmed_lasthop_dscp(Some(LAST_HOP));
    for (word, frame, what) in [
        ("", v4.clone(), "the UDP and IP lengths tell"),
        ("-ipv6", v6.clone(), "IPv6; the UDP and IP lengths tell"),
        ("-native", native.clone(), "native encapsulation: the IP length tells"),
        ("-crc", v4.clone().crc(), "the CRC is gone; the lengths tell"),
    ] {
        for kept in [24, 64, 128, 256] {
            for (hop, dscp) in [("", DSCP), ("-lasthop", LAST_HOP)] {
                let options = match word {
                    "-crc" => by_dscp.trailer(TrailerKind::Crc),
                    _ => by_dscp,
                };
                let mut packet = frame.bytes();
                let length = PacketMut::new(Start::Ip, &mut packet, &options)
                    .map_err(Into::into)
                    .and_then(|whole| whole.trim_stale(kept, dscp));
                packet.truncate(length.unwrap_or_default());
                let what =
                    format!("cut to {kept} bytes, with the IP length and checksum as they were; {what}");
                let name = format!("stale{word}{hop}-at-{kept}-bytes");
                family.add(Case::uet(name, &what, packet).from(Start::Ip).options(options));
            }
        }
    }
    let mut packet = v4.bytes();
    packet.truncate(Ipv4::LAYOUT.bytes + 128);
    packet[10] ^= 1;
    let what =
        "cut to 128 bytes, with a stale length and checksum, but no traffic class that tells: an error";
    family.add(Case::uet("stale-unknown-dscp", what, packet).from(Start::Ip));
}
