//! Ethernet addresses of peers: configured, learned from packets, or asked for with ARP (IPv4) and neighbor discovery
//! (IPv6).

use crate::frame::{Mac, mac_from, mac_text};
use core::fmt;
use core::net::{IpAddr, Ipv6Addr};
use core::str::FromStr;
use core::time::Duration;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr,
    Icmpv6Packet, Icmpv6Repr, IpProtocol, Ipv6Packet, Ipv6Repr, NdiscNeighborFlags, NdiscRepr,
    RawHardwareAddress,
};
use std::collections::HashMap;
use std::time::Instant;

/// Maximum number of remembered peers. When a peer exceeds it, all learned ones are forgotten.
const MOST: usize = 4096;

/// Minimum time between two questions for the same peer.
const PAUSE: Duration = Duration::from_millis(100);

/// Hop limit of neighbor discovery, which proves that no router forwarded the packet.
const HOP_LIMIT: u8 = 255;

const TO_ALL: Mac = [0xff; 6];

/// The configured Ethernet address of a peer. Its text is `ADDRESS=MAC`.
///
/// ```
/// use uet_emulator::link::neighbor::PeerMac;
///
/// let peer: PeerMac = "10.0.0.2=02:00:00:00:00:07".parse().unwrap();
/// assert_eq!(peer.to_string(), "10.0.0.2=02:00:00:00:00:07");
/// assert!("10.0.0.2".parse::<PeerMac>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerMac {
    /// IP address.
    pub address: IpAddr,
    /// Ethernet address.
    pub mac: Mac,
}

impl FromStr for PeerMac {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text
            .split_once('=')
            .and_then(|(address, mac)| Some(PeerMac { address: address.parse().ok()?, mac: mac_from(mac)? }));
        parts.ok_or("expected ADDRESS=MAC, such as 10.0.0.2=02:00:00:00:00:07")
    }
}

impl fmt::Display for PeerMac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.address, mac_text(self.mac))
    }
}

/// The known Ethernet addresses.
#[derive(Debug, Default)]
pub(super) struct Neighbors {
    configured: HashMap<IpAddr, Mac>,
    learned: HashMap<IpAddr, Mac>,
    asked: HashMap<IpAddr, Instant>,
}

impl Neighbors {
    /// Sets the address of a peer. Packets do not change it.
    pub(super) fn configure(&mut self, PeerMac { address, mac }: PeerMac) {
        self.configured.insert(address, mac);
    }

    pub(super) fn learn(&mut self, peer: IpAddr, mac: Mac) {
        if self.learned.len() >= MOST && !self.learned.contains_key(&peer) {
            self.learned.clear();
        }
        self.learned.insert(peer, mac);
    }

    pub(super) fn get(&self, peer: IpAddr) -> Option<Mac> {
        self.configured.get(&peer).or_else(|| self.learned.get(&peer)).copied()
    }

    /// Returns whether a question for an unknown peer is due, and records it as asked.
    pub(super) fn is_question_due(&mut self, peer: IpAddr, now: Instant) -> bool {
        let recent = |at: &Instant| now.saturating_duration_since(*at) < PAUSE;
        if self.get(peer).is_some() || self.asked.get(&peer).is_some_and(recent) {
            return false;
        }
        if self.asked.len() >= MOST {
            self.asked.clear();
        }
        self.asked.insert(peer, now);
        true
    }
}

/// A message of ARP or neighbor discovery: a peer states its own address, and may ask for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) peer: PeerMac,
    pub(super) asks_for: Option<IpAddr>,
}

/// Returns the frame that asks for the Ethernet address of `wanted`. `None` if the IP versions differ.
pub(super) fn question(own: PeerMac, wanted: IpAddr) -> Option<Vec<u8>> {
    match (own.address, wanted) {
        (IpAddr::V4(_), IpAddr::V4(_)) => {
            let to = PeerMac { address: wanted, mac: [0; 6] };
            arp(ArpOperation::Request, own, to, TO_ALL)
        }
        (IpAddr::V6(from), IpAddr::V6(target_addr)) => {
            let [.., a, b, c] = target_addr.octets();
            let group =
                Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), u16::from_be_bytes([b, c]));
            let lladdr = Some(RawHardwareAddress::from_bytes(&own.mac));
            let solicit = NdiscRepr::NeighborSolicit { target_addr, lladdr };
            Some(discovery(solicit, (own.mac, [0x33, 0x33, 0xff, a, b, c]), (from, group)))
        }
        _ => None,
    }
}

/// Returns the frame that answers a question of `to` for `own`.
pub(super) fn answer(own: PeerMac, to: PeerMac) -> Option<Vec<u8>> {
    match (own.address, to.address) {
        (IpAddr::V4(_), IpAddr::V4(_)) => arp(ArpOperation::Reply, own, to, to.mac),
        (IpAddr::V6(from), IpAddr::V6(asked_by)) => {
            let advert = NdiscRepr::NeighborAdvert {
                flags: NdiscNeighborFlags::SOLICITED | NdiscNeighborFlags::OVERRIDE,
                target_addr: from,
                lladdr: Some(RawHardwareAddress::from_bytes(&own.mac)),
            };
            Some(discovery(advert, (own.mac, to.mac), (from, asked_by)))
        }
        _ => None,
    }
}

fn arp(operation: ArpOperation, own: PeerMac, to: PeerMac, frame_to: Mac) -> Option<Vec<u8>> {
    let (IpAddr::V4(source_protocol_addr), IpAddr::V4(target_protocol_addr)) = (own.address, to.address)
    else {
        return None;
    };
    let repr = ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr: EthernetAddress(own.mac),
        source_protocol_addr,
        target_hardware_addr: EthernetAddress(to.mac),
        target_protocol_addr,
    };
    Some(frame((own.mac, frame_to), EthernetProtocol::Arp, repr.buffer_len(), |bytes| {
        repr.emit(&mut ArpPacket::new_unchecked(bytes));
    }))
}

fn discovery(message: NdiscRepr<'_>, macs: (Mac, Mac), (src, dst): (Ipv6Addr, Ipv6Addr)) -> Vec<u8> {
    let message = Icmpv6Repr::Ndisc(message);
    let ip = Ipv6Repr {
        src_addr: src,
        dst_addr: dst,
        next_header: IpProtocol::Icmpv6,
        payload_len: message.buffer_len(),
        hop_limit: HOP_LIMIT,
    };
    frame(macs, EthernetProtocol::Ipv6, ip.buffer_len() + message.buffer_len(), |bytes| {
        let mut packet = Ipv6Packet::new_unchecked(bytes);
        ip.emit(&mut packet);
        let mut icmp = Icmpv6Packet::new_unchecked(packet.payload_mut());
        message.emit(&src, &dst, &mut icmp, &ChecksumCapabilities::default());
    })
}

fn frame(
    (from, to): (Mac, Mac),
    ethertype: EthernetProtocol,
    length: usize,
    fill: impl FnOnce(&mut [u8]),
) -> Vec<u8> {
    let repr = EthernetRepr { src_addr: EthernetAddress(from), dst_addr: EthernetAddress(to), ethertype };
    let mut bytes = vec![0; repr.buffer_len() + length];
    let mut frame = EthernetFrame::new_unchecked(&mut bytes);
    repr.emit(&mut frame);
    fill(frame.payload_mut());
    bytes
}

/// Parses a frame; `None` if it is neither ARP nor neighbor discovery.
pub(super) fn read(bytes: &[u8]) -> Option<Heard> {
    let frame = EthernetFrame::new_checked(bytes).ok()?;
    match frame.ethertype() {
        EthernetProtocol::Arp => {
            let packet = ArpPacket::new_checked(frame.payload()).ok()?;
            let ArpRepr::EthernetIpv4 {
                operation,
                source_hardware_addr,
                source_protocol_addr,
                target_protocol_addr,
                ..
            } = ArpRepr::parse(&packet).ok()?
            else {
                return None;
            };
            let peer = PeerMac { address: source_protocol_addr.into(), mac: source_hardware_addr.0 };
            let asks_for = (operation == ArpOperation::Request).then_some(target_protocol_addr.into());
            Some(Heard { peer, asks_for })
        }
        EthernetProtocol::Ipv6 => {
            let packet = Ipv6Packet::new_checked(frame.payload()).ok()?;
            if packet.next_header() != IpProtocol::Icmpv6 || packet.hop_limit() != HOP_LIMIT {
                return None;
            }
            let (src, dst) = (packet.src_addr(), packet.dst_addr());
            let icmp = Icmpv6Packet::new_checked(packet.payload()).ok()?;
            let parsed = Icmpv6Repr::parse(&src, &dst, &icmp, &ChecksumCapabilities::default()).ok()?;
            let mac = |address: Option<RawHardwareAddress>| match address {
                Some(address) => address.as_bytes().try_into().unwrap_or(frame.src_addr().0),
                None => frame.src_addr().0,
            };
            match parsed {
                Icmpv6Repr::Ndisc(NdiscRepr::NeighborSolicit { target_addr, lladdr }) => Some(Heard {
                    peer: PeerMac { address: src.into(), mac: mac(lladdr) },
                    asks_for: Some(target_addr.into()),
                }),
                Icmpv6Repr::Ndisc(NdiscRepr::NeighborAdvert { target_addr, lladdr, .. }) => {
                    let peer = PeerMac { address: target_addr.into(), mac: mac(lladdr) };
                    Some(Heard { peer, asks_for: None })
                }
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Mac = [2, 0, 0, 0, 0, 1];
    const OTHER: Mac = [2, 0, 0, 0, 0, 7];

    fn at(address: &str, mac: Mac) -> PeerMac {
        PeerMac { address: address.parse().unwrap(), mac }
    }

    #[test]
    fn questions_and_answers_name_both_ends() {
        for [one, two] in [["10.0.0.1", "10.0.0.2"], ["fd00::1", "fd00::2:3456"]] {
            let (own, peer) = (at(one, OWN), at(two, OTHER));
            let asked = question(own, peer.address).unwrap();
            assert_eq!(read(&asked), Some(Heard { peer: own, asks_for: Some(peer.address) }));
            let answered = answer(peer, own).unwrap();
            assert_eq!(answered[..6], OWN);
            assert_eq!(read(&answered), Some(Heard { peer, asks_for: None }));
        }
        assert_eq!(question(at("10.0.0.1", OWN), "fd00::2".parse().unwrap()), None);
        // RFC 826 and RFC 4861: to all, and to the group of the solicited node.
        let four = question(at("10.0.0.1", OWN), "10.0.0.2".parse().unwrap()).unwrap();
        let six = question(at("fd00::1", OWN), "fd00::2:3456".parse().unwrap()).unwrap();
        assert_eq!((&four[..6], &six[..6]), (&[0xff; 6][..], &[0x33, 0x33, 0xff, 0x02, 0x34, 0x56][..]));
        assert_eq!((four.len(), six.len()), (42, 86));
    }

    #[test]
    fn damaged_and_foreign_frames_are_ignored() {
        let six = question(at("fd00::1", OWN), "fd00::2".parse().unwrap()).unwrap();
        let mut routed = six.clone();
        routed[14 + 7] = 64;
        let mut damaged = six.clone();
        damaged[80] ^= 1;
        assert_eq!([read(&routed), read(&damaged), read(&six[..50]), read(&[])], [None; 4]);
    }

    #[test]
    fn configured_address_outweighs_a_learned_one() {
        let (mut neighbors, peer) = (Neighbors::default(), at("10.0.0.2", OTHER));
        neighbors.learn(peer.address, OWN);
        neighbors.configure(peer);
        neighbors.learn(peer.address, OWN);
        assert_eq!(neighbors.get(peer.address), Some(OTHER));
    }

    #[test]
    fn questions_are_rare_and_only_for_unknown_peers() {
        let (mut neighbors, peer, now) = (Neighbors::default(), at("10.0.0.2", OTHER), Instant::now());
        let due: Vec<bool> = [0, 99, 100, 150, 250]
            .into_iter()
            .map(|ms| neighbors.is_question_due(peer.address, now + Duration::from_millis(ms)))
            .collect();
        assert_eq!(due, [true, false, true, false, true]);
        neighbors.learn(peer.address, peer.mac);
        assert!(!neighbors.is_question_due(peer.address, now + Duration::from_secs(9)));
    }
}
