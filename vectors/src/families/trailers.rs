//! Ends of packets: correct and wrong CRC, and ICV.

use super::parts::{built, data, eth, ok, request, v4, v6, write};
use crate::case::{Bytes, Case, Family};
use uet_wire::pds::Ack;
use uet_wire::registry::PdsType;
use uet_wire::tss::{TssLong, TssShort};
use uet_wire::{FrameBuilder, PdcId, Psn, Start, TrailerKind};

pub(super) fn family() -> Family {
    let mut family = Family::new("trailers", "wire-format: trailers");
    let payload = data(0, 32);
    let write =
        || FrameBuilder::new(built(request(333, 332).done())).ses(write(1, 32)).payload(payload).udp(0xbeef);
    let ordered = built(request(333, 332).prologue(|p| p.kind(PdsType::ROD_REQ)).done());
    let ordered = || FrameBuilder::new(ordered).ses(super::parts::write(1, 32)).payload(payload).udp(0xbeef);
    let ack = built(Ack::build().cack_psn(Psn(333)).spdcid(PdcId(0x8001)).dpdcid(PdcId(0x4001)).done());
    let ack = || FrameBuilder::new(ack).ses(ok(1)).udp(7);
    let mut crc = |name: &str, what: &str, start, bytes: Vec<u8>| {
        family.add(Case::uet(name, what, bytes).from(start).trailer(TrailerKind::Crc));
    };
    crc("crc-ipv4", "covers all from the source address on", Start::Ip, v4(write()).crc().bytes());
    crc("crc-ipv6", "IPv6: from byte 8 on", Start::Ip, v6(write()).crc().bytes());
    crc("crc-native", "native encapsulation", Start::Ip, v4(write()).native(7).crc().bytes());
    crc(
        "crc-options",
        "options of IPv4 are covered",
        Start::Ip,
        v4(write()).ipv4_options(&[1; 8]).crc().bytes(),
    );
    crc("crc-vlan", "tags are not covered", Start::Eth, eth(v4(write())).vlans(&[7]).crc().bytes());
    crc("crc-rod", "an ordered request has one too", Start::Ip, v4(ordered()).crc().bytes());
    crc("crc-ack", "an ACK has one too", Start::Ip, v4(ack()).crc().bytes());
    crc("crc-padding", "padding lies behind the CRC", Start::Eth, eth(v4(ack())).crc().pad_to(96).bytes());
    // Bytes that a switch changes in transit lie before the source address.
    let mut hop = v4(write()).crc().bytes();
    (hop[1], hop[8]) = (0xbb, 63);
    let sum =
        uet_wire::outer::Ipv4::parse(&hop).map(|(header, _)| header.computed_checksum(&[])).unwrap_or(0);
    hop[10..12].copy_from_slice(&sum.to_be_bytes());
    crc("crc-after-a-hop", "another traffic class, time to live and checksum leave it right", Start::Ip, hop);
    for (name, what, place) in [
        ("crc-bad-payload", "a bit of the payload changed", 90),
        ("crc-bad-address", "a bit of the source address changed", 15),
        ("crc-bad-psn", "a bit of the PSN changed", 35),
    ] {
        let mut bytes = v4(write()).crc().bytes();
        bytes[place] ^= 1;
        if place < 20 {
            let sum = uet_wire::outer::Ipv4::parse(&bytes).map(|(header, _)| header.computed_checksum(&[]));
            bytes[10..12].copy_from_slice(&sum.unwrap_or(0).to_be_bytes());
        }
        crc(name, what, Start::Ip, bytes);
    }
    let mut swapped = v4(write()).crc().bytes();
    let length = swapped.len();
    swapped[length - 4..].reverse();
    crc("crc-bad-byte-order", "the CRC's bytes in the wrong order", Start::Ip, swapped);
    let uet = FrameBuilder::new(built(request(333, 332).done())).bytes();
    crc(
        "crc-without-ip",
        "without IP the CRC is told from the payload, and cannot be checked",
        Start::Uet,
        [&uet[..], &[0x12, 0x34, 0x56, 0x78]].concat(),
    );
    crc("crc-of-three-bytes", "too short for a CRC", Start::Uet, vec![0x10, 0, 0]);
    crc("crc-alone", "nothing but a CRC: the packet is cut", Start::Uet, vec![1, 2, 3, 4]);
    let mut udp = write().bytes();
    udp.extend([0xde, 0xad, 0xbe, 0xef]);
    udp[4..6].copy_from_slice(&u16::to_be_bytes(8 + 12 + 44 + 32 + 4));
    crc("crc-from-udp", "from UDP on, the CRC cannot be checked", Start::Udp, udp);

    let secret = data(0, 40);
    let icv = *b"integrity check!";
    let short = built(TssShort::build().head(|h| h.an(true).sdi(7)).tsc(|t| t.epoch(2).counter(256)).done());
    let long =
        built(TssLong::build().head(|h| h.sdi(7)).ssi(0x0a00_0001).tsc(|t| t.epoch(2).counter(256)).done());
    let mut add = |name: &str, what: &str, start, bytes: Vec<u8>| {
        family.add(Case::uet(name, what, bytes).from(start).trailer(TrailerKind::Icv));
    };
    let what = "secured: all behind the security header is payload here, but for the ICV";
    add("icv-tss", what, Start::Uet, FrameBuilder::secured(short, secret, icv).bytes());
    add("icv-tss-ssi", what, Start::Uet, FrameBuilder::secured(long, secret, icv).bytes());
    add("icv-ipv4", what, Start::Ip, v4(FrameBuilder::secured(short, secret, icv).udp(7)).bytes());
    add("icv-ipv6", what, Start::Ip, v6(FrameBuilder::secured(long, secret, icv).native(7)).bytes());
    add("icv-padding", "padding lies behind the ICV", Start::Eth, {
        eth(v4(FrameBuilder::secured(short, &secret[..2], icv).udp(7))).pad_to(90).bytes()
    });
    add("icv-of-fifteen-bytes", "too short for an ICV", Start::Uet, vec![8; 15]);
    add("icv-behind-nothing", "an ICV behind half a security header", Start::Uet, {
        [&short.bytes()[..6], &icv].concat()
    });
    let without = FrameBuilder::secured(short, secret, icv).bytes();
    let what = "the same packet where no trailer is configured: the ICV is payload";
    family.add(Case::uet("icv-not-configured", what, without));
    let what = "a CRC where none is configured is payload, which the length of the message gives away";
    family.add(Case::uet("crc-not-configured", what, v4(write()).crc().bytes()).from(Start::Ip));
    family
}
