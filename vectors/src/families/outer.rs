//! The layers around UET: every encapsulation, and packets that are not UET.

use super::parts::{built, data, eth, request, v4, v6, write};
use crate::case::{Bytes, Case, Family};
use uet_wire::outer::Ipv4;
use uet_wire::pds::Ack;
use uet_wire::{FrameBuilder, Options, PdcId, Psn, Start};

/// PDS 12, SES 44, payload 16.
fn message() -> FrameBuilder<'static> {
    FrameBuilder::new(built(request(333, 332).done())).ses(write(1, 16)).payload(data(0, 16))
}

/// An ACK alone, 12 bytes.
fn ack() -> FrameBuilder<'static> {
    FrameBuilder::new(built(
        Ack::build().cack_psn(Psn(333)).spdcid(PdcId(0x8001)).dpdcid(PdcId(0x4001)).done(),
    ))
}

/// Writes the correct checksum into the IPv4 header at the start of the packet.
fn checksum(packet: &mut [u8]) {
    let length = usize::from(packet[0] & 15) * 4;
    let options = packet.get(20..length).unwrap_or(&[]).to_vec();
    if let Ok((header, _)) = Ipv4::parse(packet) {
        let sum = header.computed_checksum(&options);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Changes bytes of the IPv4 packet and corrects its checksum.
fn changed(frame: &FrameBuilder<'_>, changes: &[(usize, u8)]) -> Vec<u8> {
    let mut packet = frame.bytes();
    for (place, value) in changes {
        packet[*place] = *value;
    }
    checksum(&mut packet);
    packet
}

/// Builds the IPv6 packet with extension headers before UDP: type and bytes of each; sets the first byte of each.
fn extended(frame: &FrameBuilder<'_>, chain: &[(u8, &[u8])]) -> Vec<u8> {
    let mut packet = frame.bytes();
    let last = packet[6];
    let mut extensions = Vec::new();
    for (index, (_, bytes)) in chain.iter().enumerate() {
        extensions.push(chain.get(index + 1).map_or(last, |(next, _)| *next));
        extensions.extend_from_slice(&bytes[1..]);
    }
    packet[6] = chain[0].0;
    let length = (packet.len() - 40 + extensions.len()) as u16;
    packet[4..6].copy_from_slice(&length.to_be_bytes());
    packet.splice(40..40, extensions);
    packet
}

pub(super) fn family() -> Family {
    let mut family = Family::new("outer", "wire-format: around UET; json: errors");
    ways_in(&mut family);
    values(&mut family);
    ipv6(&mut family);
    not_uet(&mut family);
    lengths(&mut family);
    family
}

fn ways_in(family: &mut Family) {
    for (ip, inside) in [("ipv4", v4 as fn(FrameBuilder<'static>) -> FrameBuilder<'static>), ("ipv6", v6)] {
        for (word, frame) in [("udp", message().udp(0xbeef)), ("native", message().native(0xbeef))] {
            for (tags, vlans) in [("", &[][..]), ("-vlan", &[100]), ("-vlan-vlan", &[100, 200])] {
                let what = format!("Ethernet, {} tags, {ip}, {word}", vlans.len());
                let bytes = eth(inside(frame.clone())).vlans(vlans).bytes();
                family.add(Case::eth(format!("eth{tags}-{ip}-{word}"), what, bytes));
            }
            let what = format!("from {ip} on, {word}");
            family.add(Case::uet(format!("{ip}-{word}"), what, inside(frame.clone())).from(Start::Ip));
        }
    }
    let what = "from UDP on";
    family.add(Case::uet("udp", what, message().udp(0xbeef)).from(Start::Udp));
    let mut service = eth(v4(message().udp(7))).vlans(&[100, 200]).bytes();
    service[12..14].copy_from_slice(&[0x88, 0xa8]);
    family.add(Case::eth("eth-service-tag", "an 802.1ad tag, then an 802.1Q one", service));
    let what = "a short frame is padded; the IP length says where the packet ends";
    family.add(Case::eth("eth-padding", what, eth(v4(ack().udp(7))).pad_to(60).bytes()));
    let mut surplus = eth(v4(ack().udp(7))).bytes();
    surplus.extend([0xff; 9]);
    family.add(Case::eth("eth-padding-not-zero", "padding need not be 0", surplus));
    let port = Options::DEFAULT.udp_port(49_150);
    let frame = v4(message().udp_to(7, 49_150));
    let what = "another port is configured, that of older builds of the reference provider";
    family.add(Case::uet("udp-port-configured", what, frame).from(Start::Ip).options(port));
    let proto = Options::DEFAULT.ip_proto(254);
    let frame = v6(message().native_as(7, 254));
    family.add(
        Case::uet("ip-proto-configured", "another protocol number is configured", frame)
            .from(Start::Ip)
            .options(proto),
    );
    for (name, length) in [("shortest", 4), ("longest", 40)] {
        let options = [1; 40];
        let what = format!("{length} bytes of IPv4 options");
        let frame = v4(message().udp(7)).ipv4_options(&options[..length]);
        family.add(Case::uet(format!("ipv4-options-{name}"), what, frame.bytes()).from(Start::Ip));
    }
}

/// Outer fields in the JSON, at the ends of their ranges.
fn values(family: &mut Family) {
    for (word, dscp) in [("zero", 0), ("one", 1), ("highest", 63), ("top-bit", 32)] {
        let name = format!("ip.dscp-{word}");
        let frame = v4(ack().udp(7)).dscp(dscp);
        family.add(Case::uet(name, format!("traffic class {dscp}"), frame).from(Start::Ip));
        let name = format!("ipv6-ip.dscp-{word}");
        let frame = v6(ack().udp(7)).dscp(dscp);
        family.add(Case::uet(name, format!("traffic class {dscp}, IPv6"), frame).from(Start::Ip));
    }
    for ecn in 0..4 {
        let frame = v4(ack().udp(7)).ecn(ecn);
        family.add(
            Case::uet(format!("ip.ecn-{ecn}"), format!("congestion notification {ecn}"), frame)
                .from(Start::Ip),
        );
        let frame = v6(ack().udp(7)).ecn(ecn);
        family.add(
            Case::uet(format!("ipv6-ip.ecn-{ecn}"), format!("congestion notification {ecn}, IPv6"), frame)
                .from(Start::Ip),
        );
    }
    for (word, ttl) in [("zero", 0), ("one", 1), ("highest", 255), ("top-bit", 128)] {
        let frame = v4(ack().udp(7)).ttl(ttl);
        family.add(Case::uet(format!("ip.ttl-{word}"), format!("time to live {ttl}"), frame).from(Start::Ip));
        let frame = v6(ack().udp(7)).ttl(ttl);
        family
            .add(Case::uet(format!("ipv6-ip.ttl-{word}"), format!("hop limit {ttl}"), frame).from(Start::Ip));
    }
    for (word, entropy) in [("zero", 0), ("one", 1), ("highest", 0xffff), ("top-bit", 0x8000)] {
        let what = format!("entropy {entropy:#x}");
        family.add(Case::uet(format!("udp.src_port-{word}"), &what, ack().udp(entropy)).from(Start::Udp));
    }
    for (word, id) in [("zero", 0), ("one", 1), ("highest", 0xfff), ("top-bit", 0x800)] {
        let frame = eth(v4(ack().udp(7))).vlans(&[id, 0xfff - id]).bytes();
        family.add(Case::eth(
            format!("vlan.id-{word}"),
            format!("VLAN {id}, in it VLAN {}", 0xfff - id),
            frame,
        ));
    }
    let frame = v4(ack().udp(7));
    let mut ip =
        |name: &str, what: &str, bytes: Vec<u8>| family.add(Case::uet(name, what, bytes).from(Start::Ip));
    ip("ipv4-without-df", "DF is not set", changed(&frame, &[(6, 0)]));
    let mut wrong = frame.bytes();
    wrong[10] ^= 0x80;
    ip("ipv4-bad-checksum", "the header's checksum is wrong", wrong);
    let mut set = frame.bytes();
    set[26] = 0x12;
    ip("udp-checksum", "the UDP checksum is not 0", set);
}

fn ipv6(family: &mut Family) {
    let frame = v6(message().udp(7));
    let native = v6(message().native(7));
    let mut add = |name: &str, what: &str, bytes: Vec<u8>| {
        family.add(Case::uet(name, what, bytes).from(Start::Ip));
    };
    let options: &[u8] = &[0, 0, 1, 4, 0, 0, 0, 0];
    let routing: &[u8] = &[0, 2, 4, 0, 0, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
    let authentication: &[u8] = &[
        0, 4, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa,
        0xaa,
    ];
    add("ipv6-hop-by-hop", "a hop-by-hop header is skipped", extended(&frame, &[(0, options)]));
    add("ipv6-routing", "a routing header is skipped", extended(&frame, &[(43, routing)]));
    add("ipv6-destination", "a destination header is skipped", extended(&frame, &[(60, options)]));
    add(
        "ipv6-authentication",
        "its length counts words of 4 bytes",
        extended(&frame, &[(51, authentication)]),
    );
    add(
        "ipv6-three-extensions",
        "all are skipped",
        extended(&frame, &[(0, options), (43, routing), (60, options)]),
    );
    add(
        "ipv6-extension-native",
        "native encapsulation behind an extension",
        extended(&native, &[(60, options)]),
    );
    let fragment = |offset: u16, more: u16| {
        let [high, low] = (offset << 3 | more).to_be_bytes();
        [0, 0, high, low, 0, 0, 0, 7]
    };
    add("ipv6-fragment-first", "a fragment is not read", extended(&frame, &[(44, &fragment(0, 1))]));
    add("ipv6-fragment-middle", "a fragment is not read", extended(&frame, &[(44, &fragment(10, 1))]));
    add("ipv6-fragment-last", "a fragment is not read", extended(&frame, &[(44, &fragment(20, 0))]));
    add(
        "ipv6-fragment-only",
        "a fragment header on a whole packet is skipped",
        extended(&frame, &[(44, &fragment(0, 0))]),
    );
    let long: &[u8] = &[0, 200, 1, 4, 0, 0, 0, 0];
    add(
        "ipv6-extension-too-long",
        "an extension promises more than there is",
        extended(&frame, &[(60, long)]),
    );
    let mut cut = extended(&v6(ack().udp(7)), &[(60, options)]);
    cut.truncate(41);
    cut[5] = 1;
    add("ipv6-extension-cut", "an extension of one byte", cut);
    let mut jumbo = extended(&frame, &[(0, options)]);
    jumbo[4..6].fill(0);
    add("ipv6-jumbogram", "the length is left to an option: not read", jumbo);
    let mut esp = frame.bytes();
    esp[6] = 50;
    add("ipv6-esp", "what is encrypted is not UET", esp);
    esp = frame.bytes();
    esp[6] = 59;
    add("ipv6-no-next-header", "nothing follows", esp);
}

fn not_uet(family: &mut Family) {
    let frame = v4(message().udp(7));
    let mut ip =
        |name: &str, what: &str, bytes: Vec<u8>| family.add(Case::uet(name, what, bytes).from(Start::Ip));
    ip("ipv4-fragment-first", "a fragment is not read", changed(&frame, &[(6, 0x20)]));
    ip("ipv4-fragment-middle", "a fragment is not read", changed(&frame, &[(6, 0x20), (7, 10)]));
    ip("ipv4-fragment-last", "a fragment is not read", changed(&frame, &[(6, 0), (7, 20)]));
    ip("ipv4-tcp", "another protocol", changed(&frame, &[(9, 6)]));
    ip("udp-other-port", "UDP to a port that is not configured", v4(message().udp_to(7, 4792)).bytes());
    ip("udp-from-port", "only the destination port counts", v4(message().udp_to(4793, 53)).bytes());
    let mut arp = eth(v4(ack().udp(7))).bytes();
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    family.add(Case::eth("eth-other-type", "another EtherType", arp));
    let mut third = eth(v4(ack().udp(7))).vlans(&[1, 2]).bytes();
    third.splice(22..22, [0, 3, 8, 0]);
    third[20..22].copy_from_slice(&[0x81, 0x00]);
    family.add(Case::eth("eth-three-tags", "a third tag is one too many", third));
}

/// Lengths that contradict each other.
fn lengths(family: &mut Family) {
    let frame = v4(ack().udp(7));
    let mut ip =
        |name: &str, what: &str, bytes: Vec<u8>| family.add(Case::uet(name, what, bytes).from(Start::Ip));
    ip("ipv4-ihl-4", "a header of 16 bytes", changed(&frame, &[(0, 0x44)]));
    ip("ipv4-ihl-15", "a header longer than the packet", changed(&frame, &[(0, 0x4f)]));
    ip("ipv4-total-length-19", "a length below that of the header", changed(&frame, &[(3, 19)]));
    ip("ipv4-total-length-20", "nothing behind the header", changed(&frame, &[(3, 20)]));
    ip("ipv4-total-length-beyond", "promises more than there is", changed(&frame, &[(3, 200)]));
    ip("ipv4-total-length-short", "the packet ends before the frame", changed(&frame, &[(3, 36)]));
    ip("ip-version-5", "neither 4 nor 6", changed(&frame, &[(0, 0x55)]));
    let udp = |length: u8| changed(&frame, &[(25, length)]);
    ip("udp-length-0", "below that of its header", udp(0));
    ip("udp-length-7", "below that of its header", udp(7));
    ip("udp-length-8", "an empty datagram: what follows is padding", udp(8));
    ip("udp-length-short", "what follows the datagram is padding", udp(8 + 10));
    ip("udp-length-beyond", "beyond the IP length: a switch trimmed it", udp(8 + 12 + 100));
    let mut v6 = v6(ack().udp(7)).bytes();
    v6[5] = 200;
    ip("ipv6-payload-length-beyond", "promises more than there is", v6.clone());
    v6[5] = 14;
    ip("ipv6-payload-length-short", "the packet ends before the frame", v6);
    let mut wrong = eth(frame.clone()).bytes();
    wrong[12..14].copy_from_slice(&[0x86, 0xdd]);
    family.add(Case::eth("eth-type-of-other-version", "the EtherType of IPv6, and IPv4 behind it", wrong));
}
