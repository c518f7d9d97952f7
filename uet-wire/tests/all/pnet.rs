//! pnet_packet and this crate agree on the outer headers.

use pnet_packet::ethernet::{EtherType, EtherTypes, EthernetPacket, MutableEthernetPacket};
use pnet_packet::ip::{IpNextHeaderProtocol, IpNextHeaderProtocols};
use pnet_packet::ipv4::{Ipv4Packet, MutableIpv4Packet};
use pnet_packet::ipv6::{ExtensionPacket, FragmentPacket, Ipv6Packet, MutableIpv6Packet};
use pnet_packet::udp::{MutableUdpPacket, UdpPacket};
use pnet_packet::vlan::{ClassOfService, MutableVlanPacket, VlanPacket};
use pnet_packet::{FromPacket, Packet as _, PacketSize, ipv4};
use proptest::prelude::*;
use uet_wire::outer::{Ethernet, Ip, Ipv4, Ipv6, Ipv6Extension, Ipv6Fragment, Udp, Vlan};
use uet_wire::pds::Request;
use uet_wire::registry::Opcode;
use uet_wire::ses::Std;
use uet_wire::with_pnet::pnet_packet;
use uet_wire::{FrameBuilder, Options, Packet, Psn, Start, WriteError, WriteErrorKind};

const NONE: Options = Options::DEFAULT;

fn any_bytes<const N: usize>() -> impl Strategy<Value = [u8; N]> {
    prop::collection::vec(any::<u8>(), N).prop_map(|bytes| bytes.try_into().unwrap())
}

/// The structs of pnet implement `Debug` but not `PartialEq`.
fn shown(value: impl core::fmt::Debug) -> String {
    format!("{value:?}")
}

#[track_caller]
fn same_ethernet(ours: &Ethernet, theirs: &EthernetPacket<'_>) {
    assert_eq!(ours.dst(), theirs.get_destination().octets());
    assert_eq!(ours.src(), theirs.get_source().octets());
    assert_eq!(ours.ethertype(), theirs.get_ethertype().0);
}

#[track_caller]
fn same_vlan(ours: &Vlan, theirs: &VlanPacket<'_>) {
    assert_eq!(ours.pcp(), theirs.get_priority_code_point().0);
    assert_eq!(u8::from(ours.dei()), theirs.get_drop_eligible_indicator());
    assert_eq!(ours.id(), theirs.get_vlan_identifier());
    assert_eq!(ours.ethertype(), theirs.get_ethertype().0);
}

#[track_caller]
fn same_ipv4(ours: &Ipv4, options: &[u8], theirs: &Ipv4Packet<'_>) {
    assert_eq!(ours.version(), theirs.get_version());
    assert_eq!(ours.ihl(), theirs.get_header_length());
    assert_eq!(ours.dscp(), theirs.get_dscp());
    assert_eq!(ours.ecn(), theirs.get_ecn());
    assert_eq!(ours.total_length(), theirs.get_total_length());
    assert_eq!(ours.id(), theirs.get_identification());
    assert_eq!(ours.df(), theirs.get_flags() & ipv4::Ipv4Flags::DontFragment != 0);
    assert_eq!(ours.mf(), theirs.get_flags() & ipv4::Ipv4Flags::MoreFragments != 0);
    assert_eq!(ours.frag_offset(), theirs.get_fragment_offset());
    assert_eq!(ours.ttl(), theirs.get_ttl());
    assert_eq!(ours.proto(), theirs.get_next_level_protocol().0);
    assert_eq!(ours.checksum(), theirs.get_checksum());
    assert_eq!(ours.src(), theirs.get_source());
    assert_eq!(ours.dst(), theirs.get_destination());
    assert_eq!(options, theirs.get_options_raw());
    // pnet reads a header length below 5 as 5, and truncates one beyond the packet. These options do the same.
    assert_eq!(ours.computed_checksum(options), ipv4::checksum(theirs));
}

#[track_caller]
fn same_ipv6(ours: &Ipv6, theirs: &Ipv6Packet<'_>) {
    assert_eq!(ours.version(), theirs.get_version());
    assert_eq!(ours.dscp() << 2 | ours.ecn(), theirs.get_traffic_class());
    assert_eq!(ours.flow_label(), theirs.get_flow_label());
    assert_eq!(ours.payload_length(), theirs.get_payload_length());
    assert_eq!(ours.next_header(), theirs.get_next_header().0);
    assert_eq!(ours.hop_limit(), theirs.get_hop_limit());
    assert_eq!(ours.src(), theirs.get_source());
    assert_eq!(ours.dst(), theirs.get_destination());
}

#[track_caller]
fn same_udp(ours: &Udp, theirs: &UdpPacket<'_>) {
    assert_eq!(ours.src_port(), theirs.get_source());
    assert_eq!(ours.dst_port(), theirs.get_destination());
    assert_eq!(ours.length(), theirs.get_length());
    assert_eq!(ours.checksum(), theirs.get_checksum());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8 * ProptestConfig::default().cases))]

    #[test]
    fn every_field_of_any_ethernet_header(bytes in any_bytes::<14>()) {
        let (ours, theirs) = (Ethernet::from_bytes(bytes), EthernetPacket::new(&bytes).unwrap());
        same_ethernet(&ours, &theirs);
        prop_assert_eq!(shown(theirs.from_packet()), shown(pnet_packet::ethernet::Ethernet::from(ours)));
        prop_assert_eq!(Ethernet::try_from(&theirs), Ok(ours));
        prop_assert_eq!(Ethernet::try_from(&theirs.from_packet()), Ok(ours));
        let mut written = [0; 14];
        MutableEthernetPacket::new(&mut written).unwrap().populate(&ours.into());
        prop_assert_eq!(written, bytes);
    }

    #[test]
    fn every_field_of_any_vlan_tag(bytes in any_bytes::<4>()) {
        let (ours, theirs) = (Vlan::from_bytes(bytes), VlanPacket::new(&bytes).unwrap());
        same_vlan(&ours, &theirs);
        prop_assert_eq!(shown(theirs.from_packet()), shown(pnet_packet::vlan::Vlan::from(ours)));
        prop_assert_eq!(Vlan::try_from(&theirs), Ok(ours));
        prop_assert_eq!(Vlan::try_from(&theirs.from_packet()), Ok(ours));
        let mut written = [0; 4];
        MutableVlanPacket::new(&mut written).unwrap().populate(&ours.into());
        prop_assert_eq!(written, bytes);
    }

    #[test]
    fn every_field_of_any_ipv4_header(bytes in prop::collection::vec(any::<u8>(), 20..70)) {
        let (ours, behind) = Ipv4::parse(&bytes).unwrap();
        let ours = ours.copied();
        let length = (usize::from(ours.ihl()) * 4).saturating_sub(20).min(behind.len());
        let theirs = Ipv4Packet::new(&bytes).unwrap();
        same_ipv4(&ours, &behind[..length], &theirs);
        prop_assert_eq!(Ipv4::try_from(&theirs), Ok(ours));
    }

    /// Uses a buffer of 60 bytes, since pnet panics if `ihl` exceeds the buffer. Uses no options, since pnet counts
    /// each option as one byte in the size of a packet (libpnet issues 109 and 726).
    #[test]
    fn values_of_ipv4_there_and_back(bytes in any_bytes::<20>()) {
        let ours = Ipv4::from_bytes(bytes);
        let value = ipv4::Ipv4::from(ours);
        prop_assert_eq!(Ipv4::try_from(&value), Ok(ours));
        let mut written = [0; 60];
        MutableIpv4Packet::new(&mut written).unwrap().populate(&value);
        prop_assert_eq!(&written[..20], bytes);
        let mut theirs = Ipv4Packet::new(&written).unwrap().from_packet();
        theirs.options.clear();
        theirs.payload.clear();
        prop_assert_eq!(shown(theirs), shown(value));
    }

    #[test]
    fn every_field_of_any_ipv6_header(bytes in any_bytes::<40>()) {
        let (ours, theirs) = (Ipv6::from_bytes(bytes), Ipv6Packet::new(&bytes).unwrap());
        same_ipv6(&ours, &theirs);
        prop_assert_eq!(shown(theirs.from_packet()), shown(pnet_packet::ipv6::Ipv6::from(ours)));
        prop_assert_eq!(Ipv6::try_from(&theirs), Ok(ours));
        prop_assert_eq!(Ipv6::try_from(&theirs.from_packet()), Ok(ours));
        let mut written = [0; 40];
        MutableIpv6Packet::new(&mut written).unwrap().populate(&ours.into());
        prop_assert_eq!(written, bytes);
    }

    #[test]
    fn every_field_of_any_udp_header(bytes in any_bytes::<8>()) {
        let (ours, theirs) = (Udp::from_bytes(bytes), UdpPacket::new(&bytes).unwrap());
        same_udp(&ours, &theirs);
        prop_assert_eq!(shown(theirs.from_packet()), shown(pnet_packet::udp::Udp::from(ours)));
        prop_assert_eq!(Udp::try_from(&theirs), Ok(ours));
        prop_assert_eq!(Udp::try_from(&theirs.from_packet()), Ok(ours));
        let mut written = [0; 8];
        MutableUdpPacket::new(&mut written).unwrap().populate(&ours.into());
        prop_assert_eq!(written, bytes);
    }

    #[test]
    fn extension_headers(bytes in any_bytes::<8>()) {
        let (ours, theirs) = (Ipv6Extension::parse(&bytes).unwrap().0, ExtensionPacket::new(&bytes).unwrap());
        prop_assert_eq!(ours.next_header(), theirs.get_next_header().0);
        prop_assert_eq!(ours.length(), theirs.get_hdr_ext_len());
        // pnet states the size without options.
        prop_assert_eq!(usize::from(ours.length()) * 8 + 8, theirs.packet_size());
        let (ours, theirs) = (Ipv6Fragment::from_bytes(bytes), FragmentPacket::new(&bytes).unwrap());
        prop_assert_eq!(ours.next_header(), theirs.get_next_header().0);
        prop_assert_eq!(ours.mf(), !theirs.is_last_fragment());
        // pnet returns bytes, and includes one of the two reserved bits.
        prop_assert_eq!(ours.frag_offset() << 3, theirs.get_fragment_offset() & 0xfff8);
        prop_assert_eq!(ours.id(), theirs.get_id());
    }

    /// We parse a frame that pnet wrote, layer by layer, and write equal bytes.
    #[test]
    fn frames_built_by_pnet(
        macs in any_bytes::<12>(),
        tags in prop::collection::vec(0u16..4096, 0..3),
        v6 in any::<bool>(),
        addresses in any_bytes::<32>(),
        dscp in 0u8..64,
        ecn in 0u8..4,
        ttl in any::<u8>(),
        entropy in any::<u16>(),
        psn in any::<u32>(),
        payload in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let [src, dst] = [0, 6].map(|at| <[u8; 6]>::try_from(&macs[at..at + 6]).unwrap());
        let request = Request::rud().psn(Psn(psn)).done().unwrap();
        let write = Std::build(Opcode::UET_WRITE).head(|h| h.som(true)).request_length(9999).done().unwrap();
        let uet = FrameBuilder::new(request).ses(write).payload(&payload);
        let mut inner = vec![0; uet.len()];
        uet.emit(&mut inner).unwrap();

        let udp_length = 8 + inner.len();
        let ip_header = if v6 { 40 } else { 20 };
        let eth_length = 14 + 4 * tags.len();
        let mut theirs = vec![0; eth_length + ip_header + udp_length];
        let types: Vec<EtherType> = tags.iter().map(|_| EtherTypes::Vlan)
            .chain([if v6 { EtherTypes::Ipv6 } else { EtherTypes::Ipv4 }]).collect();
        {
            let mut eth = MutableEthernetPacket::new(&mut theirs).unwrap();
            eth.set_source(src.into());
            eth.set_destination(dst.into());
            eth.set_ethertype(types[0]);
        }
        for (index, id) in tags.iter().enumerate() {
            let mut tag = MutableVlanPacket::new(&mut theirs[14 + 4 * index..]).unwrap();
            tag.set_priority_code_point(ClassOfService(0));
            tag.set_vlan_identifier(*id);
            tag.set_ethertype(types[index + 1]);
        }
        let [s4, d4] = [0, 4].map(|at| <[u8; 4]>::try_from(&addresses[at..at + 4]).unwrap());
        let [s6, d6] = [0, 16].map(|at| <[u8; 16]>::try_from(&addresses[at..at + 16]).unwrap());
        if v6 {
            let mut ip = MutableIpv6Packet::new(&mut theirs[eth_length..]).unwrap();
            ip.set_version(6);
            ip.set_traffic_class(dscp << 2 | ecn);
            ip.set_payload_length(udp_length as u16);
            ip.set_next_header(IpNextHeaderProtocols::Udp);
            ip.set_hop_limit(ttl);
            ip.set_source(s6.into());
            ip.set_destination(d6.into());
        } else {
            let mut ip = MutableIpv4Packet::new(&mut theirs[eth_length..]).unwrap();
            ip.set_version(4);
            ip.set_header_length(5);
            ip.set_dscp(dscp);
            ip.set_ecn(ecn);
            ip.set_total_length((20 + udp_length) as u16);
            ip.set_flags(ipv4::Ipv4Flags::DontFragment);
            ip.set_ttl(ttl);
            ip.set_next_level_protocol(IpNextHeaderProtocol(17));
            ip.set_source(s4.into());
            ip.set_destination(d4.into());
            let checksum = ipv4::checksum(&ip.to_immutable());
            ip.set_checksum(checksum);
        }
        {
            let mut udp = MutableUdpPacket::new(&mut theirs[eth_length + ip_header..]).unwrap();
            udp.set_source(entropy);
            udp.set_destination(4793);
            udp.set_length(udp_length as u16);
            udp.set_payload(&inner);
        }

        let packet = Packet::parse(Start::Eth, &theirs, &NONE).unwrap();
        prop_assert_eq!(packet.uet.pds.unwrap().request().unwrap().psn(), Psn(psn));
        prop_assert_eq!(packet.uet.payload, &payload[..]);

        let ours = uet.clone().udp(entropy).ethernet(src, dst).vlans(&tags).dscp(dscp).ecn(ecn).ttl(ttl);
        let ours = if v6 { ours.ipv6(s6, d6) } else { ours.ipv4(s4, d4) };
        let mut written = vec![0; ours.len()];
        ours.emit(&mut written).unwrap();
        prop_assert_eq!(written, theirs);
    }

    /// pnet parses a frame that we wrote, layer by layer, and finds payloads at our offsets.
    #[test]
    fn frames_built_by_us(
        tags in prop::collection::vec(0u16..4096, 0..3),
        v6 in any::<bool>(),
        options in 0usize..=10,
        entropy in any::<u16>(),
        payload in prop::collection::vec(any::<u8>(), 0..100),
        pad_to in 0usize..300,
    ) {
        let request = Request::rud().psn(Psn(7)).done().unwrap();
        // The no-operation option, repeated to fill the space.
        let options = [1; 40][..if v6 { 0 } else { options * 4 }].to_vec();
        let frame = FrameBuilder::new(request).payload(&payload).udp(entropy)
            .ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]).vlans(&tags).pad_to(pad_to).ipv4_options(&options);
        let frame = if v6 { frame.ipv6([1; 16], [2; 16]) } else { frame.ipv4([1; 4], [2; 4]) };
        let mut bytes = vec![0; frame.len()];
        frame.emit(&mut bytes).unwrap();
        let ours = Packet::parse(Start::Eth, &bytes, &NONE).unwrap();

        let eth = EthernetPacket::new(&bytes).unwrap();
        same_ethernet(&ours.eth.unwrap().copied(), &eth);
        let (mut ethertype, mut rest) = (eth.get_ethertype(), eth.payload());
        for tag in ours.vlans.iter().flatten() {
            prop_assert_eq!(ethertype, EtherTypes::Vlan);
            let theirs = VlanPacket::new(rest).unwrap();
            same_vlan(&tag.copied(), &theirs);
            (ethertype, rest) = (theirs.get_ethertype(), &rest[4..]);
        }
        let ip_payload = match ours.ip.unwrap() {
            Ip::V4 { header, options } => {
                prop_assert_eq!(ethertype, EtherTypes::Ipv4);
                let theirs = Ipv4Packet::new(rest).unwrap();
                same_ipv4(&header.copied(), options, &theirs);
                prop_assert_eq!(theirs.get_checksum(), ipv4::checksum(&theirs));
                theirs.payload().to_vec()
            }
            Ip::V6 { header, .. } => {
                prop_assert_eq!(ethertype, EtherTypes::Ipv6);
                let theirs = Ipv6Packet::new(rest).unwrap();
                same_ipv6(&header.copied(), &theirs);
                theirs.payload().to_vec()
            }
        };
        // The IP length separates padding from payload. pnet and this crate agree on the boundary.
        let udp = UdpPacket::new(&ip_payload).unwrap();
        same_udp(&ours.udp.unwrap().copied(), &udp);
        prop_assert_eq!(udp.payload().len(), 12 + payload.len());
        prop_assert_eq!(&udp.payload()[12..], ours.uet.payload);
    }
}

#[test]
fn what_does_not_fit_the_wire_is_an_error() {
    fn told<T: core::fmt::Debug>(result: Result<T, WriteError>) -> (WriteErrorKind, &'static str, usize) {
        let error = result.unwrap_err();
        (error.kind(), error.field().unwrap(), error.present().unwrap())
    }
    let too_wide = |field, width| (WriteErrorKind::ValueTooWide, field, width);
    let mut tag = pnet_packet::vlan::Vlan::from(Vlan::zeroed());
    tag.vlan_identifier = 4096;
    assert_eq!(told(Vlan::try_from(&tag)), too_wide("vlan.id", 12));
    tag.drop_eligible_indicator = 2;
    assert_eq!(told(Vlan::try_from(&tag)), too_wide("vlan.dei", 1));
    let mut ip = ipv4::Ipv4::from(Ipv4::zeroed());
    ip.flags = 8;
    assert_eq!(told(Ipv4::try_from(&ip)), too_wide("ip.flags", 3));
    ip.flags = 7;
    ip.dscp = 64;
    assert_eq!(told(Ipv4::try_from(&ip)), too_wide("ip.dscp", 6));
    let mut ip = pnet_packet::ipv6::Ipv6::from(Ipv6::zeroed());
    ip.flow_label = 1 << 20;
    assert_eq!(told(Ipv6::try_from(&ip)), too_wide("ip.flow_label", 20));
}
