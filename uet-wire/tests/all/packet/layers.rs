//! The layers of packets: tags, options, extension headers, both encapsulations, fragments.

use super::{NONE, assert_whole, bytes, eth, frame, lax, set16, v4, v6, with_extensions};
use uet_wire::{Content, Start};

#[test]
fn every_start_finds_the_same_packet() {
    for ip in [v4, v6] {
        let whole = bytes(&eth(ip(frame())));
        let offsets = lax(Start::Eth, &whole, &NONE).offsets();
        assert_eq!(offsets.payload + 5, whole.len());
        let starts = [
            (Start::Eth, 0),
            (Start::Ip, offsets.ip.unwrap()),
            (Start::Udp, offsets.transport.unwrap()),
            (Start::Uet, offsets.uet.unwrap()),
        ];
        for (start, at) in starts {
            let packet = lax(start, &whole[at..], &NONE);
            assert_whole(&packet);
            assert_eq!(packet.offsets().payload, offsets.payload - at);
            assert_eq!(packet.eth.is_some(), start == Start::Eth);
            assert_eq!(packet.entropy_value(), if start == Start::Uet { None } else { Some(0xbeef) });
        }
    }
}

#[test]
fn the_native_encapsulation_under_the_configured_number() {
    for ip in [v4, v6] {
        let packet = bytes(&ip(frame().native(0xbeef)));
        assert_whole(&lax(Start::Ip, &packet, &NONE));
        assert_eq!(lax(Start::Ip, &packet, &NONE).entropy_value(), Some(0xbeef));
        assert_eq!(lax(Start::Ip, &packet, &NONE.ip_proto(254)).content, Content::Other);
        let packet = bytes(&ip(frame().native_as(1, 254)));
        assert_whole(&lax(Start::Ip, &packet, &NONE.ip_proto(254)));
    }
}

#[test]
fn a_configured_number_is_uet_even_where_ipv6_has_an_extension_header() {
    let packet = bytes(&v6(frame().native_as(1, 60)));
    assert_whole(&lax(Start::Ip, &packet, &NONE.ip_proto(60)));
}

#[test]
fn udp_to_another_port_is_not_uet_whatever_its_length() {
    let mut packet = bytes(&v4(frame().udp_to(1, 4791)));
    set16(&mut packet, 24, 3);
    let other = lax(Start::Ip, &packet, &NONE);
    assert_eq!((other.content, other.error(), other.uet.payload.len()), (Content::Other, None, 65));
    let packet = bytes(&v4(frame().udp_to(1, 49150)));
    assert_whole(&lax(Start::Ip, &packet, &NONE.udp_port(49150)));
}

#[test]
fn tags_none_one_two_and_one_too_many() {
    for ids in [&[][..], &[5], &[5, 4094]] {
        let packet = bytes(&eth(v6(frame())).vlans(ids));
        let packet = lax(Start::Eth, &packet, &NONE);
        assert_whole(&packet);
        let seen: Vec<u16> = packet.vlans.iter().flatten().map(|tag| tag.id()).collect();
        assert_eq!(seen, ids);
    }
    let mut service = bytes(&eth(v4(frame())).vlans(&[5, 6]));
    for protocol in [[0x88, 0xa8], [0x91, 0]] {
        service[12..14].copy_from_slice(&protocol);
        let packet = lax(Start::Eth, &service, &NONE);
        assert_whole(&packet);
        assert!(!packet.has_unread_tag());
    }

    let mut three = bytes(&eth(v4(frame())).vlans(&[5, 6]));
    three.splice(18..18, [0, 7, 0x81, 0]);
    let other = lax(Start::Eth, &three, &NONE);
    assert_eq!((other.content, other.ip, other.error()), (Content::Other, None, None));
    assert!(other.has_unread_tag());
    assert_eq!(other.uet.payload, &three[22..], "from the third tag on");
}

#[test]
fn ipv4_options_are_skipped() {
    let packet = bytes(&v4(frame()).ipv4_options(&[1, 1, 1, 0]));
    let packet = lax(Start::Ip, &packet, &NONE);
    assert_whole(&packet);
    assert_eq!(packet.ip.unwrap().extra(), [1, 1, 1, 0]);
}

#[test]
fn ipv6_extension_headers_are_skipped() {
    let hop: &[u8] = &[0, 0, 1, 4, 0, 0, 0, 0];
    let destination: &[u8] = &[0, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let authentication: &[u8] = &[0, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9];
    let atomic: &[u8] = &[0, 0, 0, 0, 1, 2, 3, 4];
    let chains: &[&[(u8, &[u8])]] = &[
        &[(0, hop)],
        &[(43, hop)],
        &[(60, destination)],
        &[(51, authentication)],
        &[(44, atomic)],
        &[(135, hop), (139, hop), (140, hop)],
        &[(0, hop), (43, hop), (44, atomic), (51, authentication), (60, destination)],
    ];
    for chain in chains {
        let packet = with_extensions(chain);
        let packet = lax(Start::Ip, &packet, &NONE);
        assert_whole(&packet);
        let length: usize = chain.iter().map(|(_, bytes)| bytes.len()).sum();
        assert_eq!(packet.ip.unwrap().extra().len(), length);
    }
}

#[test]
fn what_ends_an_extension_chain_without_uet() {
    for proto in [59, 50, 6, 58] {
        let mut packet = with_extensions(&[(0, &[0; 8])]);
        packet[40] = proto;
        let other = lax(Start::Ip, &packet, &NONE);
        assert_eq!((other.content, other.error(), other.uet.payload.len()), (Content::Other, None, 73));
    }
}

#[test]
fn ipv4_fragments_are_told_apart() {
    for (flags, fragment) in [([0x40, 0], false), ([0, 0], false), ([0x20, 0], true), ([0, 1], true)] {
        let mut packet = bytes(&v4(frame()));
        packet[6..8].copy_from_slice(&flags);
        let packet = lax(Start::Ip, &packet, &NONE);
        assert_eq!(packet.content == Content::Fragment, fragment);
        assert_eq!(packet.udp.is_none(), fragment);
        assert_eq!(packet.uet.payload.len(), if fragment { 73 } else { 5 });
    }
}

#[test]
fn ipv6_fragments_are_told_from_atomic_ones() {
    for (offset, fragment) in [([0, 0], false), ([0, 6], false), ([0, 1], true), ([0, 8], true)] {
        let packet = with_extensions(&[(44, &[0, 0, offset[0], offset[1], 0, 0, 0, 1])]);
        let packet = lax(Start::Ip, &packet, &NONE);
        assert_eq!(packet.content == Content::Fragment, fragment);
        assert_eq!(packet.ip.unwrap().extra().len(), 8, "the fragment header belongs to IP");
        assert_eq!(packet.uet.payload.len(), if fragment { 73 } else { 5 });
    }
}

#[test]
fn a_jumbogram_is_not_read_further() {
    let mut packet = with_extensions(&[(0, &[0, 0, 0xc2, 4, 0, 1, 0, 0])]);
    set16(&mut packet, 4, 0);
    let jumbo = lax(Start::Ip, &packet, &NONE);
    assert_eq!((jumbo.content, jumbo.error()), (Content::Jumbogram, None));
    assert_eq!((jumbo.uet.payload.len(), jumbo.padding.len()), (packet.len() - 40, 0));
}

#[test]
fn an_empty_ipv6_packet_is_no_jumbogram() {
    let mut packet = bytes(&eth(v6(frame())));
    set16(&mut packet, 18, 0);
    packet[20] = 59;
    let empty = lax(Start::Eth, &packet, &NONE);
    assert_eq!((empty.content, empty.error(), empty.uet.payload), (Content::Other, None, &[][..]));
    assert_eq!(empty.padding, &packet[54..]);
}
