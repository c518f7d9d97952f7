//! Builds and reads whole Ethernet frames with the headers around UET.

use crate::classes::Classes;
use crate::link;
use bytes::Bytes;
use core::net::IpAddr;
use uet_model::secure::Ports;
use uet_model::{Packet, Priority, Time, TrimPoint};
use uet_wire::catalogue::{Requirement, WIRE_CRC_001, WIRE_IP_001, WIRE_IP_002, WIRE_UDP_001};
use uet_wire::outer::{Entropy, Ethernet, IP_PROTO, Ip, Ipv4, Ipv6, UDP_PORT, Udp};
use uet_wire::registry::PdsType;
use uet_wire::validate::Finding;
use uet_wire::{Content, FrameBuilder, Options, PacketMut, Start, TrailerKind, Uet, WriteError};

/// An Ethernet address.
pub type Mac = [u8; 6];

/// Formats an Ethernet address: `02:00:00:00:00:01`.
pub fn mac_text(mac: Mac) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Parses the text of [`mac_text`].
pub fn mac_from(text: &str) -> Option<Mac> {
    let bytes: Option<Vec<u8>> = text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    bytes?.try_into().ok()
}

/// The encapsulation of packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outer {
    /// DSCPs of the traffic classes.
    pub classes: Classes,
    /// True if packets end with a CRC.
    pub crc: bool,
    /// Destination UDP port.
    pub port: u16,
    /// IP protocol number of the native encapsulation without UDP, if it is used.
    pub native: Option<u8>,
}

impl Default for Outer {
    /// Returns the default classes, no CRC, UDP to the registered port.
    fn default() -> Self {
        Outer { classes: Classes::default(), crc: false, port: UDP_PORT, native: None }
    }
}

impl Outer {
    /// Returns the number of bytes between the IP header and UET.
    pub fn between(&self) -> usize {
        match self.native {
            Some(_) => Entropy::LAYOUT.bytes,
            None => Udp::LAYOUT.bytes,
        }
    }

    fn options(&self) -> Options {
        let trailer = if self.crc { TrailerKind::Crc } else { TrailerKind::None };
        let ip_proto = self.native.unwrap_or(IP_PROTO);
        Options::default().udp_port(self.port).ip_proto(ip_proto).trailer(trailer)
    }
}

/// A packet to write, with the impairments that meet it on the network.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Time of sending.
    pub at: Time,
    /// The packet as it was sent.
    pub packet: &'a Packet,
    /// True if a switch marks it.
    pub marked: bool,
    /// Number of bytes behind the IP header that a trimming switch leaves, and the trim point.
    pub trim: Option<(u16, TrimPoint)>,
    /// True if that switch leaves the IP length and the IPv4 checksum as they were.
    pub stale_length: bool,
    /// The bit that the network corrupts, counted from the first of UET. Bits behind the last one are the trailer's.
    pub corrupt: Option<usize>,
    /// The first four bytes of its IPv6 header, if they are deliberately wrong.
    pub ipv6_start: Option<u32>,
    /// The UDP ports of a secured packet, which authenticates them. `None` for the entropy value and the usual port.
    pub ports: Option<Ports>,
    /// Comment of the packet.
    pub comment: &'a str,
}

impl<'a> Record<'a> {
    /// Creates a record of a packet without impairments.
    pub fn new(at: Time, packet: &'a Packet) -> Self {
        Record {
            at,
            packet,
            marked: false,
            trim: None,
            stale_length: false,
            corrupt: None,
            ipv6_start: None,
            ports: None,
            comment: "",
        }
    }
}

/// Builds the Ethernet frame of a packet as the network leaves it. Derives the Ethernet addresses from the IP
/// addresses.
pub fn frame(record: &Record<'_>, outer: &Outer) -> Result<Vec<u8>, WriteError> {
    frame_between([mac(record.packet.src), mac(record.packet.dst)], outer.port, record, outer)
}

/// Builds the frame between these Ethernet addresses and to this port.
///
/// ```
/// use uet_emulator::frame::{Outer, Record, frame_between, read};
/// use uet_model::{Packet, Time};
///
/// let ack = bytes::Bytes::from_static(&[0x38, 0, 0, 0, 0, 0, 0, 7, 0x80, 1, 0x40, 1]);
/// let packet = Packet::from_wire([10, 0, 0, 1], [10, 0, 0, 2], ack)?;
/// let outer = Outer { crc: true, native: Some(253), ..Outer::default() };
/// let (src, dst) = ([2, 0, 0, 0, 0, 1], [0xff; 6]);
/// let mut frame = frame_between([src, dst], outer.port, &Record::new(Time(0), &packet), &outer)?;
///
/// let framed = read(&frame, &outer).unwrap();
/// assert_eq!((framed.mac, framed.packet.to_wire(), framed.damage), (src, packet.to_wire(), None));
/// frame[45] ^= 1;
/// assert_eq!(read(&frame, &outer).unwrap().damage, Some("bad CRC"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn frame_between(
    [src, dst]: [Mac; 2],
    port: u16,
    record: &Record<'_>,
    outer: &Outer,
) -> Result<Vec<u8>, WriteError> {
    let Record { packet, .. } = record;
    let uet = packet.to_wire();
    let frame = FrameBuilder::opaque(&uet);
    let frame = match outer.native {
        Some(proto) => frame.native_as(packet.entropy, proto),
        None => match record.ports {
            Some(Ports { src, dst }) => frame.udp_to(src, dst),
            None => frame.udp_to(packet.entropy, port),
        },
    };
    let ip = if packet.dst.is_ipv4() { Ipv4::LAYOUT } else { Ipv6::LAYOUT };
    let frame = frame.ip(packet.src, packet.dst).ethernet(src, dst);
    let frame = frame.dscp(outer.classes.dscp(packet)).ecn(Classes::ecn(packet)).ttl(packet.ttl);
    // A switch removes the trailer when it trims a packet, and a secured packet ends with its ICV.
    let crc = outer.crc && packet.trimmed.is_none() && !is_secured(packet);
    let frame = if crc { frame.crc() } else { frame };
    let mut bytes = vec![0; frame.len()];
    frame.emit(&mut bytes)?;
    if let (Some(start), IpAddr::V6(_)) = (record.ipv6_start, packet.dst) {
        let place = Ethernet::LAYOUT.bytes..Ethernet::LAYOUT.bytes + 4;
        bytes.get_mut(place).into_iter().for_each(|bytes| bytes.copy_from_slice(&start.to_be_bytes()));
    }

    let between = Ethernet::LAYOUT.bytes + ip.bytes;
    if outer.native.is_none() && packet.udp_checksum != 0 {
        // The last field of the UDP header.
        let end = between + outer.between();
        let place = bytes.get_mut(end - 2..end).into_iter();
        place.for_each(|bytes| bytes.copy_from_slice(&packet.udp_checksum.to_be_bytes()));
    }
    if let Some(bit) = record.corrupt {
        let start = between + outer.between();
        if let Some(byte) = bytes.get_mut(start + bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
    }
    let trailer = if crc { TrailerKind::Crc } else { TrailerKind::None };
    let options = outer.options().udp_port(port).trailer(trailer);
    if let Some((size, place)) = record.trim {
        let cut = Packet { trimmed: Some(place), head: Default::default(), ..(*packet).clone() };
        let dscp = outer.classes.dscp(&cut);
        let packet = PacketMut::new(Start::Eth, &mut bytes, &options).map_err(Into::into);
        let length = packet.and_then(|packet| match record.stale_length {
            true => packet.trim_stale(size.into(), dscp),
            false => packet.trim(size.into(), dscp),
        });
        if let Ok(length) = length {
            bytes.truncate(length);
        }
    }
    if record.marked {
        // A trimmed packet has no trailer.
        let options = options.trailer(TrailerKind::None);
        if let Ok(mut packet) = PacketMut::new(Start::Eth, &mut bytes, &options) {
            let _ = packet.set_ecn(3);
        }
    }
    bytes.resize(bytes.len().max(FrameBuilder::SHORTEST), 0);
    Ok(bytes)
}

/// Returns what [`read`] finds in the [`frame`] of a packet, with this bit corrupted and these first bytes of the IPv6
/// header. Builds the frame only if it can show anything that the packet does not. Returns a packet that does not fit a
/// frame.
#[allow(clippy::result_large_err)]
pub fn carried(
    packet: Packet,
    corrupt: Option<usize>,
    ipv6_start: Option<u32>,
    outer: &Outer,
) -> Result<Framed, Packet> {
    if corrupt.is_none() && is_plain(&packet, outer) {
        return Ok(Framed { mac: mac(packet.src), ..Framed::inside(packet) });
    }
    let frame = frame(&Record { corrupt, ipv6_start, ..Record::new(Time::ZERO, &packet) }, outer);
    frame.ok().and_then(|frame| read(&frame, outer)).ok_or(packet)
}

/// The shortest packet with a context, and a length that surely fits a frame.
const PLAIN: core::ops::RangeInclusive<usize> = 12..=16_384;

/// Returns whether no header of its frame can change a packet.
fn is_plain(packet: &Packet, outer: &Outer) -> bool {
    let v4 = packet.src.is_ipv4() && packet.dst.is_ipv4();
    let class = usize::from(packet.class) < outer.classes.0.len() && packet.priority != Priority::Medium;
    let whole = packet.trimmed.is_none() && PLAIN.contains(&packet.wire_len());
    let readable = || Uet::parse_lax(&packet.head).0.pds.is_some();
    v4 && class && whole && packet.security.is_none() && !is_secured(packet) && readable()
}

/// Returns the first four bytes of an IPv6 header with this traffic class and flow label.
pub fn ipv6_start(class: u8, flow_label: u32) -> u32 {
    6 << 28 | u32::from(class) << 20 | flow_label & 0xf_ffff
}

/// Returns a locally administered address that encodes the IP address.
fn mac(address: IpAddr) -> Mac {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            [2, 0, a, b, c, d]
        }
        IpAddr::V6(address) => {
            let [.., a, b, c, d, e] = address.octets();
            [2, a, b, c, d, e]
        }
    }
}

/// A packet read from a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Framed {
    /// The packet.
    pub packet: Packet,
    /// Source Ethernet address.
    pub mac: Mac,
    /// The reason to discard the packet as damaged, if any.
    pub damage: Option<&'static str>,
    /// Violations in the headers around UET.
    pub findings: Vec<Finding>,
    /// The first four bytes of its IPv6 header: version, traffic class and flow label.
    pub ipv6_start: Option<u32>,
}

impl Framed {
    /// Creates a packet without information about its headers outside UET.
    pub fn inside(packet: Packet) -> Self {
        Framed { packet, mac: Mac::default(), damage: None, findings: Vec::new(), ipv6_start: None }
    }
}

/// Returns whether a packet starts with a security header.
pub(crate) fn is_secured(packet: &Packet) -> bool {
    packet.head.first().is_some_and(|first| first >> 3 == PdsType::TSS.code())
}

/// Requirements about the headers around UET.
const AROUND: [&Requirement; 4] = [WIRE_IP_001, WIRE_IP_002, WIRE_UDP_001, WIRE_CRC_001];

/// The fields with the length of an IP packet.
const IP_LENGTHS: [&str; 2] = ["ip.total_length", "ip.payload_length"];

/// Reads the packet of a frame. Returns `None` if it is not UET or is a fragment. The NIC judges malformed content.
pub fn read(frame: &[u8], outer: &Outer) -> Option<Framed> {
    let options = outer.options();
    let parse = |options| uet_wire::Packet::parse_lax(Start::Eth, frame, &options).0;
    let mut packet = parse(options);
    let (eth, ip) = (packet.eth?, packet.ip?);
    let encapsulated = match outer.native {
        Some(_) => packet.entropy.is_some(),
        None => packet.udp.is_some(),
    };
    if packet.content != Content::Uet || !encapsulated {
        return None;
    }
    let trimmed = outer.classes.trimmed(ip.dscp());
    if trimmed.is_some() {
        // A trimmed packet has no trailer, whatever the lengths say.
        packet = parse(options.trimmed_dscp(Some(ip.dscp())));
    }
    let secured = packet.uet.tss.is_some();
    if secured {
        // The ICV belongs to the packet.
        packet = parse(options.trailer(TrailerKind::None));
    }
    let trimmed = trimmed.or(packet.trimmed.map(|_| TrimPoint::Fabric));
    let around =
        |finding: &Finding| AROUND.contains(&finding.requirement) || finding.field == Entropy::LAYOUT.name;
    let mut findings: Vec<Finding> = packet.validate(options.spec).filter(around).collect();
    if outer.crc && trimmed.is_none() && !secured && packet.crc_check().is_none() {
        findings.push(Finding { requirement: WIRE_CRC_001, field: "crc", value: 0, bits: None });
    }
    let broken = |requirement| findings.iter().any(|finding| finding.requirement == requirement);
    let damage = if broken(WIRE_CRC_001) {
        Some("bad CRC")
    } else if broken(WIRE_IP_002) {
        Some("bad IP checksum")
    } else if packet.error().is_some_and(|error| IP_LENGTHS.contains(&error.field())) {
        // No switch says that it trimmed the packet.
        Some("IP length beyond the frame")
    } else {
        None
    };
    let offsets = packet.offsets();
    let bytes = Bytes::copy_from_slice(
        frame.get(offsets.uet.unwrap_or(offsets.trailer)..offsets.trailer).unwrap_or_default(),
    );
    let mut read = link::packet(ip.src(), ip.dst(), trimmed, bytes);
    outer.classes.read(&mut read, ip.dscp() << 2 | ip.ecn());
    read.trimmed = trimmed;
    read.entropy = packet.entropy_value().unwrap_or_default();
    read.udp_checksum = packet.udp.map_or(0, |udp| udp.checksum());
    let (ttl, ipv6_start) = match ip {
        Ip::V4 { header, .. } => (header.ttl(), None),
        Ip::V6 { header, .. } => (header.hop_limit(), header.bytes().first_chunk().copied()),
    };
    read.ttl = ttl;
    let ipv6_start = ipv6_start.map(u32::from_be_bytes);
    Some(Framed { packet: read, mac: eth.src(), damage, findings, ipv6_start })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_packets_are_those_of_their_frames() {
        let outer = Outer { crc: true, ..Outer::default() };
        let mut rng = uet_model::network::stream(7, 0);
        let mut plains = 0;
        for _ in 0..20_000 {
            let mut bytes = vec![0; rng.usize(..80)];
            rng.fill(&mut bytes);
            if let (Some(first), true) = (bytes.first_mut(), rng.bool()) {
                *first = rng.u8(1..14) << 3 | *first & 7;
            }
            let trimmed = (rng.u8(..8) == 0).then_some(TrimPoint::LastHop);
            let mut packet = link::packet([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), trimmed, bytes.into());
            packet.class = rng.u8(..5);
            packet.priority = [Priority::Low, Priority::Medium, Priority::High][rng.usize(..3)];
            (packet.marked, packet.entropy) = (rng.bool(), rng.u16(..));
            if is_plain(&packet, &outer) {
                plains += 1;
                let frame = frame(&Record::new(Time(0), &packet), &outer).unwrap();
                let plain = carried(packet, None, None, &outer);
                assert_eq!(plain.ok(), read(&frame, &outer));
            }
        }
        assert!(plains > 5_000, "{plains}");
    }
}
