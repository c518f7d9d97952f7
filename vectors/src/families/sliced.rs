//! Packets truncated by the capture. The option `wire` is the length on the wire.

use super::parts::{self, built, data, request, write};
use crate::case::{Bytes, Case, Family};
use uet_wire::{FrameBuilder, Start, TrailerKind};

pub(super) fn family() -> Family {
    let mut family = Family::new("sliced", "json: sliced");
    let payload = data(0, 64);
    let uet = FrameBuilder::new(built(request(333, 332).done())).ses(write(1, 64)).payload(payload);
    let ip = parts::v4(uet.clone().udp(0xbeef)).crc();
    let eth = parts::eth(ip.clone()).vlans(&[100]).bytes();
    // Ethernet 14, tag 4, IPv4 20, UDP 8, PDS 12, SES 44, payload 64, CRC 4.
    for (kept, where_) in [
        (0, "before everything"),
        (10, "inside Ethernet"),
        (14, "behind Ethernet"),
        (16, "inside the tag"),
        (18, "behind the tag"),
        (30, "inside IPv4"),
        (38, "behind IPv4"),
        (42, "inside UDP"),
        (46, "behind UDP"),
        (50, "inside the PDS header"),
        (58, "behind the PDS header"),
        (70, "inside the SES header"),
        (102, "behind the SES header"),
        (128, "inside the payload"),
        (166, "behind the payload"),
        (168, "inside the trailer"),
    ] {
        let case = Case::eth(format!("eth-{kept:03}"), format!("cut by the capture {where_}"), eth.clone());
        family.add(case.trailer(TrailerKind::Crc).sliced(kept));
    }
    let v6 = parts::v6(uet.clone().udp(0xbeef)).bytes();
    let native = parts::v4(uet.clone().native(0xbeef)).bytes();
    let udp = uet.clone().udp(0xbeef).bytes();
    let uet = uet.bytes();
    for (name, start, bytes, kept) in [
        ("ip-ipv6-header", Start::Ip, &v6, 39),
        ("ip-ipv6-ses", Start::Ip, &v6, 48 + 12 + 8),
        ("ip-ipv6-payload", Start::Ip, &v6, 48 + 12 + 44 + 1),
        ("ip-native-entropy", Start::Ip, &native, 22),
        ("ip-native-pds", Start::Ip, &native, 24 + 6),
        ("udp-header", Start::Udp, &udp, 5),
        ("udp-pds", Start::Udp, &udp, 8 + 11),
        ("udp-ses", Start::Udp, &udp, 8 + 12 + 20),
        ("uet-nothing", Start::Uet, &uet, 0),
        ("uet-pds", Start::Uet, &uet, 6),
        ("uet-ses", Start::Uet, &uet, 12 + 30),
        ("uet-payload", Start::Uet, &uet, 12 + 44 + 32),
    ] {
        let what = format!("cut by the capture after {kept} of {} bytes", bytes.len());
        family.add(Case::uet(name, what, bytes.clone()).from(start).sliced(kept));
    }
    family
}
