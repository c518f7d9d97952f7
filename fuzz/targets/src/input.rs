//! A packet with the settings needed to read it.

use uet_wire::outer::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_VLAN};
use uet_wire::{Options, Packet, Start, TrailerKind};

/// A packet with settings that no packet contains. As bytes, two setting bytes precede the packet:
///
/// | byte | bits from the lowest | means |
/// | --- | --- | --- |
/// | 0 | 0 to 2 | first layer of the packet: Ethernet, IP, UDP, UET, EtherType of IPv4, of IPv6, of a tag, other |
/// | 0 | 3 to 4 | trailer: none, CRC, ICV, none |
/// | 0 | 5 | the traffic classes 5 and 6 are those of trimmed packets |
/// | 0 | 6 | UET has port 4791 and protocol 254, instead of the default ones |
/// | 1 | all | number of bytes that the capture left out |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input<'a> {
    /// First layer of the packet.
    pub start: Start,
    /// Deployment settings.
    pub options: Options,
    /// Length on the wire.
    pub wire: usize,
    /// The packet.
    pub bytes: &'a [u8],
}

const STARTS: [Start; 8] = [
    Start::Eth,
    Start::Ip,
    Start::Udp,
    Start::Uet,
    Start::EtherType(ETHERTYPE_IPV4),
    Start::EtherType(ETHERTYPE_IPV6),
    Start::EtherType(ETHERTYPE_VLAN),
    Start::Other,
];
const TRAILERS: [TrailerKind; 4] = [TrailerKind::None, TrailerKind::Crc, TrailerKind::Icv, TrailerKind::None];
const TRIMMED: (Option<u8>, Option<u8>) = (Some(5), Some(6));
const OTHER_PLACE: (u16, u8) = (4791, 254);

impl<'a> Input<'a> {
    /// Number of bytes before the packet.
    pub const LEAD: usize = 2;

    /// Reads an input from bytes.
    #[inline]
    pub fn split(data: &'a [u8]) -> Option<Self> {
        let ([how, sliced], bytes) = data.split_first_chunk()?;
        let mut options = Options::DEFAULT;
        options.trailer = TRAILERS[usize::from(how >> 3 & 3)];
        if how & 0x20 != 0 {
            (options.trimmed_dscp, options.trimmed_lasthop_dscp) = TRIMMED;
        }
        if how & 0x40 != 0 {
            (options.udp_port, options.ip_proto) = OTHER_PLACE;
        }
        let wire = bytes.len() + usize::from(*sliced);
        Some(Input { start: STARTS[usize::from(how & 7)], options, wire, bytes })
    }

    /// Writes this input as bytes. The result is approximate: ports and traffic classes have only two choices.
    pub fn join(&self) -> Vec<u8> {
        let start = STARTS.iter().position(|start| *start == self.start).unwrap_or(STARTS.len() - 1);
        let trailer = TRAILERS.iter().position(|trailer| *trailer == self.options.trailer).unwrap_or(0);
        let trimmed = self.options.trimmed_dscp.is_some() || self.options.trimmed_lasthop_dscp.is_some();
        let other = self.options.udp_port != Options::DEFAULT.udp_port;
        let how = start as u8 | (trailer as u8) << 3 | u8::from(trimmed) << 5 | u8::from(other) << 6;
        let sliced = self.wire.saturating_sub(self.bytes.len()).min(255);
        [&[how, sliced as u8], self.bytes].concat()
    }

    /// Parses the packet as far as possible.
    #[inline]
    pub fn packet(&self) -> Packet<'a> {
        Packet::parse_sliced(self.start, self.bytes, self.wire, &self.options).0
    }
}
