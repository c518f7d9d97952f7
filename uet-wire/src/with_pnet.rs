//! Converts to and from the headers of [`pnet_packet`].
//!
//! Our header values convert into the structs of pnet (with empty `payload` and `options`) and back. The structs of
//! pnet can hold values that do not fit the wire, so some conversions can fail. [`TryFrom`] also reads the packet views
//! of pnet.
//!
//! ```
//! use pnet_packet::udp::{MutableUdpPacket, UdpPacket};
//! use uet_wire::outer::Udp;
//! use uet_wire::with_pnet::pnet_packet;
//!
//! let udp = Udp::zeroed().edit().src_port(0xbeef).dst_port(4793).length(8).done()?;
//! let mut bytes = [0; 8];
//! MutableUdpPacket::new(&mut bytes).unwrap().populate(&udp.into());
//! assert_eq!(&bytes, udp.bytes());
//! assert_eq!(Udp::try_from(&UdpPacket::new(&bytes).unwrap())?, udp);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use pnet_packet;

use crate::outer::{Ethernet, Ipv4, Ipv6, Udp, Vlan};
use crate::{ParseError, WriteError};
use alloc::vec::Vec;
use core::borrow::Borrow;
use pnet_packet::ethernet::{self, EtherType};
use pnet_packet::ip::IpNextHeaderProtocol;
use pnet_packet::vlan::ClassOfService;
use pnet_packet::{Packet, ipv4, ipv6, udp, vlan};

macro_rules! from_packet {
    ($($Packet:path => $Header:ident;)*) => {$(
        impl TryFrom<&$Packet> for $Header {
            type Error = ParseError;

            /// Reads the header at the start of the packet.
            fn try_from(packet: &$Packet) -> Result<Self, ParseError> {
                $Header::parse(packet.packet()).map(|(header, _)| header.copied())
            }
        }
    )*};
}

from_packet! {
    ethernet::EthernetPacket<'_> => Ethernet;
    vlan::VlanPacket<'_> => Vlan;
    ipv4::Ipv4Packet<'_> => Ipv4;
    ipv6::Ipv6Packet<'_> => Ipv6;
    udp::UdpPacket<'_> => Udp;
}

impl<B: Borrow<[u8; 14]>> From<Ethernet<B>> for ethernet::Ethernet {
    fn from(header: Ethernet<B>) -> Self {
        ethernet::Ethernet {
            destination: header.dst().into(),
            source: header.src().into(),
            ethertype: EtherType(header.ethertype()),
            payload: Vec::new(),
        }
    }
}

impl TryFrom<&ethernet::Ethernet> for Ethernet {
    type Error = WriteError;

    fn try_from(theirs: &ethernet::Ethernet) -> Result<Self, WriteError> {
        Ethernet::zeroed()
            .edit()
            .dst(theirs.destination.octets())
            .src(theirs.source.octets())
            .ethertype(theirs.ethertype.0)
            .done()
    }
}

impl<B: Borrow<[u8; 4]>> From<Vlan<B>> for vlan::Vlan {
    fn from(header: Vlan<B>) -> Self {
        vlan::Vlan {
            priority_code_point: ClassOfService(header.pcp()),
            drop_eligible_indicator: header.dei().into(),
            vlan_identifier: header.id(),
            ethertype: EtherType(header.ethertype()),
            payload: Vec::new(),
        }
    }
}

impl TryFrom<&vlan::Vlan> for Vlan {
    type Error = WriteError;

    fn try_from(theirs: &vlan::Vlan) -> Result<Self, WriteError> {
        Vlan::zeroed()
            .edit()
            .pcp(theirs.priority_code_point.0)
            .dei(bit("vlan.dei", theirs.drop_eligible_indicator)?)
            .id(theirs.vlan_identifier)
            .ethertype(theirs.ethertype.0)
            .done()
    }
}

impl<B: Borrow<[u8; 20]>> From<Ipv4<B>> for ipv4::Ipv4 {
    fn from(header: Ipv4<B>) -> Self {
        ipv4::Ipv4 {
            version: header.version(),
            header_length: header.ihl(),
            dscp: header.dscp(),
            ecn: header.ecn(),
            total_length: header.total_length(),
            identification: header.id(),
            // Includes the reserved bit, which has no accessor.
            flags: header.bytes()[FLAGS] >> 5,
            fragment_offset: header.frag_offset(),
            ttl: header.ttl(),
            next_level_protocol: IpNextHeaderProtocol(header.proto()),
            checksum: header.checksum(),
            source: header.src(),
            destination: header.dst(),
            options: Vec::new(),
            payload: Vec::new(),
        }
    }
}

/// The byte of the IPv4 header whose upper three bits are flags.
const FLAGS: usize = 6;

impl TryFrom<&ipv4::Ipv4> for Ipv4 {
    type Error = WriteError;

    /// Reads the fixed part of the header.
    fn try_from(theirs: &ipv4::Ipv4) -> Result<Self, WriteError> {
        if theirs.flags > 7 {
            return Err(WriteError::too_wide("ip.flags", 3));
        }
        let mut bytes = [0; 20];
        bytes[FLAGS] = theirs.flags << 5;
        Ipv4::from_bytes(bytes)
            .edit()
            .version(theirs.version)
            .ihl(theirs.header_length)
            .dscp(theirs.dscp)
            .ecn(theirs.ecn)
            .total_length(theirs.total_length)
            .id(theirs.identification)
            .frag_offset(theirs.fragment_offset)
            .ttl(theirs.ttl)
            .proto(theirs.next_level_protocol.0)
            .checksum(theirs.checksum)
            .src(theirs.source)
            .dst(theirs.destination)
            .done()
    }
}

impl<B: Borrow<[u8; 40]>> From<Ipv6<B>> for ipv6::Ipv6 {
    fn from(header: Ipv6<B>) -> Self {
        ipv6::Ipv6 {
            version: header.version(),
            traffic_class: header.dscp() << 2 | header.ecn(),
            flow_label: header.flow_label(),
            payload_length: header.payload_length(),
            next_header: IpNextHeaderProtocol(header.next_header()),
            hop_limit: header.hop_limit(),
            source: header.src(),
            destination: header.dst(),
            payload: Vec::new(),
        }
    }
}

impl TryFrom<&ipv6::Ipv6> for Ipv6 {
    type Error = WriteError;

    fn try_from(theirs: &ipv6::Ipv6) -> Result<Self, WriteError> {
        Ipv6::zeroed()
            .edit()
            .version(theirs.version)
            .dscp(theirs.traffic_class >> 2)
            .ecn(theirs.traffic_class & 3)
            .flow_label(theirs.flow_label)
            .payload_length(theirs.payload_length)
            .next_header(theirs.next_header.0)
            .hop_limit(theirs.hop_limit)
            .src(theirs.source)
            .dst(theirs.destination)
            .done()
    }
}

impl<B: Borrow<[u8; 8]>> From<Udp<B>> for udp::Udp {
    fn from(header: Udp<B>) -> Self {
        udp::Udp {
            source: header.src_port(),
            destination: header.dst_port(),
            length: header.length(),
            checksum: header.checksum(),
            payload: Vec::new(),
        }
    }
}

impl TryFrom<&udp::Udp> for Udp {
    type Error = WriteError;

    fn try_from(theirs: &udp::Udp) -> Result<Self, WriteError> {
        Udp::zeroed()
            .edit()
            .src_port(theirs.source)
            .dst_port(theirs.destination)
            .length(theirs.length)
            .checksum(theirs.checksum)
            .done()
    }
}

fn bit(field: &'static str, value: u8) -> Result<bool, WriteError> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(WriteError::too_wide(field, 1)),
    }
}
