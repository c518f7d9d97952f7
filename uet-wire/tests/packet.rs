//! A packet with its outer layers: every ambiguous case by name, and the property that nothing is lost.
#![cfg(feature = "crc")]

use proptest::prelude::*;
use uet_wire::layout::Layer;
use uet_wire::outer::Ip;
use uet_wire::pds::{AckCc, Request, RequestCc};
use uet_wire::registry::Opcode;
use uet_wire::ses::Std;
use uet_wire::tss::TssShort;
use uet_wire::{Content, Frame, Options, Packet, Psn, Sliced, Start, TrailerKind, Trimmed, Uet};

const NONE: Options = Options::DEFAULT;
const CRC: Options = Options { trailer: TrailerKind::Crc, ..NONE };
const ICV: Options = Options { trailer: TrailerKind::Icv, ..NONE };
const BY_DSCP: Options = Options { trimmed_dscp: Some(5), trimmed_lasthop_dscp: Some(6), ..NONE };

/// UDP (8), a request with congestion state (16), a standard request (44), five bytes.
fn frame() -> Frame<'static> {
    let request = RequestCc::rud().request(|r| r.psn(Psn(7))).done().unwrap();
    let write = Std::build(Opcode::UET_WRITE).head(|h| h.som(true).eom(true)).request_length(5);
    Frame::new(request).ses(write.done().unwrap()).payload(b"hello").udp(0xbeef)
}

fn v4(frame: Frame<'_>) -> Frame<'_> {
    frame.ipv4([10, 0, 0, 1], [10, 0, 1, 12])
}

fn v6(frame: Frame<'_>) -> Frame<'_> {
    frame.ipv6([0xfd00, 0, 0, 0, 0, 0, 0, 1], [0xfd00, 0, 0, 0, 0, 0, 0, 2])
}

fn eth(frame: Frame<'_>) -> Frame<'_> {
    frame.ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
}

fn bytes(frame: &Frame<'_>) -> Vec<u8> {
    let mut buffer = vec![0; 4096];
    let length = frame.emit(&mut buffer).unwrap();
    buffer.truncate(length);
    buffer
}

fn set16(bytes: &mut [u8], at: usize, value: usize) {
    bytes[at..at + 2].copy_from_slice(&u16::try_from(value).unwrap().to_be_bytes());
}

/// The packet with extension headers put between IPv6 and UDP: (type, bytes) each.
fn with_extensions(chain: &[(u8, &[u8])]) -> Vec<u8> {
    let mut packet = bytes(&v6(frame()));
    let mut extensions = Vec::new();
    for (index, (_, extension)) in chain.iter().enumerate() {
        let next = chain.get(index + 1).map_or(17, |(proto, _)| *proto);
        extensions.push(next);
        extensions.extend_from_slice(&extension[1..]);
    }
    packet[6] = chain[0].0;
    set16(&mut packet, 4, 8 + 16 + 44 + 5 + extensions.len());
    packet.splice(40..40, extensions);
    packet
}

#[track_caller]
fn lax<'a>(start: Start, bytes: &'a [u8], options: &Options) -> Packet<'a> {
    let packet = Packet::parse_lax(start, bytes, bytes.len(), options);
    assert_eq!(packet.parts().concat(), bytes, "every byte in one part");
    match Packet::parse(start, bytes, options) {
        Ok(strict) => assert_eq!(strict, packet),
        Err(error) => assert_eq!(Some(error), packet.error()),
    }
    packet
}

#[track_caller]
fn sliced<'a>(start: Start, bytes: &'a [u8], wire: usize, options: &Options) -> Packet<'a> {
    let packet = Packet::parse_lax(start, bytes, wire, options);
    assert_eq!(packet.parts().concat(), bytes, "every byte in one part");
    assert_eq!(packet.sliced, Some(Sliced { captured: bytes.len(), wire }));
    packet
}

/// What error there is: layer, field, offset, needed, present.
#[track_caller]
fn assert_error(
    packet: &Packet<'_>,
    layer: Layer,
    field: &str,
    offset: usize,
    needed: usize,
    present: usize,
) {
    let error = packet.error().expect("an error");
    let seen = (error.layer(), error.field(), error.offset(), error.needed(), error.present());
    assert_eq!(seen, (layer, field, offset, needed, present), "{error}");
}

#[track_caller]
fn assert_whole(packet: &Packet<'_>) {
    assert_eq!((packet.error(), packet.cut, packet.trimmed), (None, None, None));
    assert_eq!(packet.content, Content::Uet);
    assert_eq!(packet.uet.pds.unwrap().request().unwrap().psn(), Psn(7));
    assert_eq!(packet.uet.payload, b"hello");
    assert_eq!(packet.rest, b"");
}

fn trimmed(layer: Layer, missing: usize) -> Option<Trimmed> {
    Some(Trimmed { layer, missing: Some(missing), last_hop: false })
}

// Whole packets.

#[test]
fn every_start_finds_the_same_packet() {
    for ip in [v4, v6] {
        let whole = bytes(&eth(ip(frame())));
        let offsets = lax(Start::Eth, &whole, &NONE).offsets();
        assert_eq!(offsets.payload + 5, whole.len());
        let starts = [
            (Start::Eth, 0),
            (Start::Ip, offsets.ip),
            (Start::Udp, offsets.transport),
            (Start::Uet, offsets.uet),
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
        assert_eq!(lax(Start::Ip, &packet, &Options { ip_proto: 254, ..NONE }).content, Content::Other);
        let packet = bytes(&ip(frame().native_as(1, 254)));
        assert_whole(&lax(Start::Ip, &packet, &Options { ip_proto: 254, ..NONE }));
    }
}

#[test]
fn a_configured_number_is_uet_even_where_ipv6_has_an_extension_header() {
    let packet = bytes(&v6(frame().native_as(1, 60)));
    assert_whole(&lax(Start::Ip, &packet, &Options { ip_proto: 60, ..NONE }));
}

#[test]
fn udp_to_another_port_is_not_uet_whatever_its_length() {
    let mut packet = bytes(&v4(frame().udp_to(1, 4791)));
    set16(&mut packet, 24, 3);
    let other = lax(Start::Ip, &packet, &NONE);
    assert_eq!((other.content, other.error(), other.uet.payload.len()), (Content::Other, None, 65));
    let packet = bytes(&v4(frame().udp_to(1, 49150)));
    assert_whole(&lax(Start::Ip, &packet, &Options { udp_port: 49150, ..NONE }));
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
    service[12..14].copy_from_slice(&[0x88, 0xa8]);
    assert_whole(&lax(Start::Eth, &service, &NONE));

    let mut three = bytes(&eth(v4(frame())).vlans(&[5, 6]));
    three.splice(18..18, [0, 7, 0x81, 0]);
    let other = lax(Start::Eth, &three, &NONE);
    assert_eq!((other.content, other.ip, other.error()), (Content::Other, None, None));
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

// Fragments and jumbograms.

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

// Lengths that contradict each other.

#[test]
fn behind_ip_is_padding() {
    for ip in [v4, v6] {
        let packet = bytes(&eth(ip(frame())).pad_to(200));
        let padded = lax(Start::Eth, &packet, &NONE);
        assert_whole(&padded);
        assert_eq!(padded.offsets().padding + padded.padding.len(), 200);
    }
    // The shortest packets always have some.
    let request = Request::rud().psn(Psn(7)).done().unwrap();
    let packet = bytes(&eth(v4(Frame::new(request).udp(1))).pad_to(60));
    let padded = lax(Start::Eth, &packet, &NONE);
    assert_eq!((padded.padding.len(), padded.uet.payload.len()), (6, 0));
}

#[test]
fn udp_length_below_ip_length_is_padding_too() {
    let mut packet = bytes(&eth(v4(frame())).pad_to(120));
    let udp = 14 + 20;
    set16(&mut packet, udp + 4, 8 + 16 + 44 + 2);
    let short = lax(Start::Eth, &packet, &NONE);
    assert_eq!((short.uet.payload, short.error(), short.trimmed), (&b"he"[..], None, None));
    assert_eq!(short.padding, &packet[udp + 70..], "the surplus and the padding of the frame");
    assert_eq!(short.ip_packet.len(), 20 + 70);
    assert_eq!(lax(Start::Udp, &packet[udp..], &NONE).padding, short.padding);
}

#[test]
fn the_trailer_ends_where_udp_ends() {
    let mut packet = bytes(&v4(frame()).crc());
    packet.extend_from_slice(&[1, 2, 3]);
    let length = packet.len();
    set16(&mut packet, 2, length);
    let surplus = lax(Start::Ip, &packet, &CRC);
    assert_whole(&surplus);
    assert_eq!((surplus.trailer.len(), surplus.padding), (4, &[1, 2, 3][..]));
    assert!(surplus.crc_check().unwrap().ok(), "what lies behind the trailer is not covered");
}

#[test]
fn ip_length_beyond_the_frame_is_an_error_and_the_packet_is_read_all_the_same() {
    for (ip, field, at, header) in
        [(v4 as fn(_) -> _, "ip.total_length", 2, 20), (v6, "ip.payload_length", 4, 40)]
    {
        let mut packet: Vec<u8> = bytes(&ip(frame()));
        let promised = packet.len() + 9;
        set16(&mut packet, at, if header == 20 { promised } else { promised - header });
        set16(&mut packet, header + 4, 73 + 9);
        let long = lax(Start::Ip, &packet, &NONE);
        let layer = if header == 20 { Layer::Ipv4 } else { Layer::Ipv6 };
        assert_error(&long, layer, field, at, promised, promised - 9);
        assert_eq!((long.uet.payload, long.cut, long.trimmed), (&b"hello"[..], None, None));

        // Behind Ethernet, the offsets count from there.
        let mut framed = bytes(&eth(ip(frame())));
        framed.truncate(14 + header + 8 + 16 + 44 + 2);
        let short = lax(Start::Eth, &framed, &NONE);
        assert_error(&short, layer, field, 14 + at, header + 73, header + 70);
        assert_eq!(short.uet.payload, b"he");
        // Cut in a header, that header is named: it is where reading stopped.
        framed.truncate(14 + header + 8 + 16 + 5);
        let short = lax(Start::Eth, &framed, &NONE);
        assert_error(&short, Layer::Ses, "ses.job_id", 14 + header + 8 + 16 + 5, 8, 5);
        assert_eq!(short.uet.pds.unwrap().request().unwrap().psn(), Psn(7), "what lies before it stays");
        assert_eq!(short.rest, &framed[framed.len() - 5..]);
    }
}

#[test]
fn ip_lengths_that_cannot_be() {
    let mut packet = bytes(&eth(v4(frame())));
    for ihl in 0..5 {
        packet[14] = 0x40 | ihl;
        let bad = lax(Start::Eth, &packet, &NONE);
        assert_error(&bad, Layer::Ipv4, "ip.ihl", 14, 5, usize::from(ihl));
        assert_eq!((bad.ip, bad.rest), (None, &packet[14..]));
    }
    packet[14] = 0x4f;
    set16(&mut packet, 16, 59);
    assert_error(&lax(Start::Eth, &packet, &NONE), Layer::Ipv4, "ip.total_length", 16, 60, 59);
    packet[14] = 0x45;
    set16(&mut packet, 16, 19);
    assert_error(&lax(Start::Eth, &packet, &NONE), Layer::Ipv4, "ip.total_length", 16, 20, 19);
    // Nothing but the header.
    set16(&mut packet, 16, 20);
    assert_error(&lax(Start::Eth, &packet, &NONE), Layer::Udp, "udp.src_port", 34, 2, 0);
    // The frame ends within the options.
    set16(&mut packet, 16, 87);
    packet[14] = 0x4f;
    packet.truncate(14 + 22);
    assert_error(&lax(Start::Eth, &packet, &NONE), Layer::Ipv4, "ip.ihl", 14, 60, 22);
}

#[test]
fn a_version_that_the_ethertype_did_not_announce() {
    let mut packet = bytes(&eth(v4(frame())));
    packet[14] = 0x65;
    assert_error(&lax(Start::Eth, &packet, &NONE), Layer::Ipv4, "ip.version", 14, 4, 6);
    packet[12..14].copy_from_slice(&[0x86, 0xdd]);
    packet[14] = 0x45;
    assert_error(&lax(Start::Eth, &packet, &NONE), Layer::Ipv6, "ip.version", 14, 6, 4);
    assert_error(&lax(Start::Ip, &[0x55; 60], &NONE), Layer::Ipv4, "ip.version", 0, 4, 5);
    assert_error(&lax(Start::Ip, &[], &NONE), Layer::Ipv4, "ip.version", 0, 1, 0);
}

#[test]
fn extension_headers_that_leave_the_packet() {
    let mut packet = with_extensions(&[(0, &[0; 8])]);
    packet[41] = 30;
    let bad = lax(Start::Ip, &packet, &NONE);
    assert_error(&bad, Layer::Ipv6, "ip.ext.length", 41, 248, 81);
    assert!(matches!(bad.ip, Some(Ip::V6 { extensions: &[], .. })), "the header itself is read");
    assert_eq!(bad.rest, &packet[40..]);
    // The second of two is cut by the IP length.
    let mut packet = with_extensions(&[(0, &[0; 8]), (44, &[0; 8])]);
    set16(&mut packet, 4, 13);
    let bad = lax(Start::Ip, &packet, &NONE);
    assert_error(&bad, Layer::Ipv6, "ip.id", 52, 8, 5);
    assert_eq!((bad.ip.unwrap().extra().len(), bad.rest.len()), (8, 5));
}

#[test]
fn a_udp_length_below_its_header() {
    let mut packet = bytes(&v4(frame()));
    for length in 0..8 {
        set16(&mut packet, 24, length);
        let bad = lax(Start::Ip, &packet, &NONE);
        assert_error(&bad, Layer::Udp, "udp.length", 24, 8, length);
        assert_eq!(bad.rest, &packet[20..]);
    }
    set16(&mut packet, 24, 8);
    assert_error(&lax(Start::Ip, &packet, &NONE), Layer::Pds, "pds.type", 28, 1, 0);
}

// Trailers.

#[test]
fn trailers_by_configuration() {
    for ip in [v4, v6] {
        let packet = bytes(&eth(ip(frame()).crc()).pad_to(200));
        let checked = lax(Start::Eth, &packet, &CRC);
        assert_whole(&checked);
        assert!(checked.crc_check().unwrap().ok());
        let unconfigured = lax(Start::Eth, &packet, &NONE);
        assert_eq!((unconfigured.uet.payload.len(), unconfigured.crc_check()), (9, None));

        let tss = TssShort::build().done().unwrap();
        let packet = bytes(&ip(Frame::secured(tss, b"cipher", [9; 16]).udp(1)));
        let secured = lax(Start::Ip, &packet, &ICV);
        assert_eq!((secured.uet.payload, secured.trailer), (&b"cipher"[..], &[9; 16][..]));
    }
}

#[test]
fn a_packet_shorter_than_its_trailer() {
    for (options, field, needed) in [(&CRC, "crc", 4), (&ICV, "icv", 16)] {
        for length in 0..needed {
            let packet = vec![0; length];
            assert_error(&lax(Start::Uet, &packet, options), Layer::Trailer, field, 0, needed, length);
        }
    }
}

#[test]
fn an_error_before_the_trailer_counts_from_the_first_byte() {
    // A CRC configured for a packet that has none eats the end of its SES header.
    let mut packet = bytes(&eth(v4(frame())).pad_to(120));
    set16(&mut packet, 16, 20 + 8 + 16 + 44);
    set16(&mut packet, 38, 8 + 16 + 44);
    let bad = lax(Start::Eth, &packet, &CRC);
    assert_error(&bad, Layer::Ses, "ses.request_length", 14 + 20 + 8 + 16 + 40, 44, 40);
    assert_eq!((bad.rest.len(), bad.trailer.len()), (40, 4));
}

// Trimmed packets.

#[test]
fn trimmed_at_every_byte_by_length() {
    for (ip, header, at) in [(v4 as fn(_) -> _, 20, 2), (v6, 40, 4)] {
        let whole: Vec<u8> = bytes(&ip(frame()));
        for kept in 24..73 {
            let mut packet = whole[..header + kept].to_vec();
            set16(&mut packet, at, if header == 20 { header + kept } else { kept });
            let seen = lax(Start::Ip, &packet, &NONE);
            let layer = if kept < 68 { Layer::Ses } else { Layer::Payload };
            assert_eq!(seen.trimmed, trimmed(layer, 73 - kept), "{kept}");
            assert_eq!(seen.error(), None);
            assert_eq!(seen.uet.pds.unwrap().request().unwrap().psn(), Psn(7));
            assert_eq!(seen.cut.map(|cut| cut.start), (kept < 68).then_some(header + 24));
            assert_eq!(seen.rest.len(), if kept < 68 { kept - 24 } else { 0 });
            // Without IP, the bytes given are all that there is.
            assert_eq!(lax(Start::Udp, &packet[header..], &NONE).trimmed, seen.trimmed);
        }
    }
}

#[test]
fn trimmed_within_the_pds_header() {
    let ack = AckCc::build().done().unwrap();
    let mut packet = bytes(&v4(Frame::new(ack).udp(1)));
    packet.truncate(20 + 24);
    set16(&mut packet, 2, 20 + 24);
    let seen = lax(Start::Ip, &packet, &NONE);
    assert_eq!((seen.trimmed, seen.error()), (trimmed(Layer::Pds, 16), None));
    assert_eq!(seen.cut.unwrap().field(), "pds.sack_bitmap");
    assert_eq!((seen.cut.unwrap().start, seen.rest.len()), (28, 16));
}

#[test]
fn trimmed_by_traffic_class() {
    for (dscp, last_hop) in [(5, false), (6, true)] {
        for (ip, header, at) in [(v4 as fn(_) -> _, 20, 2), (v6, 40, 4)] {
            // The lengths are whole: how much is missing nobody can say.
            let unknown = Some(Trimmed { layer: Layer::Payload, missing: None, last_hop });
            let whole: Vec<u8> = bytes(&ip(frame().dscp(dscp)));
            assert_eq!(lax(Start::Ip, &whole, &BY_DSCP).trimmed, unknown);
            let mut native = bytes(&ip(frame().dscp(dscp).native(1)));
            assert_eq!(lax(Start::Ip, &native, &BY_DSCP).trimmed, unknown);
            // In the native encapsulation there is no other sign.
            native.truncate(header + 4 + 16 + 9);
            set16(&mut native, at, if header == 20 { header + 29 } else { 29 });
            let cut = lax(Start::Ip, &native, &BY_DSCP);
            assert_eq!(cut.trimmed, Some(Trimmed { layer: Layer::Ses, missing: None, last_hop }));
            assert_eq!((cut.error(), cut.rest.len()), (None, 9));
            assert!(lax(Start::Ip, &native, &NONE).error().is_some(), "not configured: cut short");
        }
    }
    let mut packet = bytes(&v4(frame().dscp(5)));
    packet.truncate(80);
    set16(&mut packet, 2, 80);
    let both = lax(Start::Ip, &packet, &BY_DSCP).trimmed;
    assert_eq!(both, Some(Trimmed { layer: Layer::Ses, missing: Some(13), last_hop: false }));
}

#[test]
fn the_trailer_of_a_trimmed_packet() {
    let whole = bytes(&v4(frame()).crc());
    let cut = |by: usize, dscp: u8| {
        let mut packet = whole[..whole.len() - by].to_vec();
        packet[1] = dscp << 2;
        let length = packet.len();
        set16(&mut packet, 2, length);
        packet
    };
    for by in 1..=4 {
        let packet = cut(by, 0);
        let seen = lax(Start::Ip, &packet, &CRC);
        assert_eq!(seen.trimmed, trimmed(Layer::Payload, by));
        // Part of a trailer is none.
        assert_eq!((seen.uet.payload, seen.rest.len(), seen.trailer), (&b"hello"[..], 4 - by, &[][..]));
        assert_eq!(seen.cut.map(|cut| cut.field()), (by < 4).then_some("crc"));
        assert_eq!((seen.error(), seen.crc_check()), (None, None));
    }
    let packet = cut(5, 0);
    let seen = lax(Start::Ip, &packet, &CRC);
    assert_eq!(
        (seen.trimmed, seen.uet.payload, seen.trailer),
        (trimmed(Layer::Payload, 5), &b"hell"[..], &[][..])
    );
    // By traffic class alone, the place of the trailer is not known.
    let packet = cut(0, 5);
    let seen = lax(Start::Ip, &packet, &Options { trailer: TrailerKind::Crc, ..BY_DSCP });
    assert_eq!((seen.uet.payload.len(), seen.trailer.len()), (9, 0));
}

#[test]
fn a_trimmed_packet_can_still_be_wrong() {
    // The UDP header says that there never was a PDS header of 16 bytes.
    let mut packet = bytes(&v4(frame()));
    packet.truncate(20 + 8 + 6);
    set16(&mut packet, 2, 20 + 8 + 6);
    set16(&mut packet, 24, 8 + 15);
    assert_error(&lax(Start::Ip, &packet, &NONE), Layer::Pds, "pds.psn", 32, 8, 6);
    set16(&mut packet, 24, 8 + 16);
    assert_eq!(lax(Start::Ip, &packet, &NONE).error(), None);
}

// Sliced packets.

#[test]
fn sliced_at_every_byte_is_no_error_and_loses_nothing() {
    let frames: [(Frame<'_>, &Options); 4] = [
        (eth(v4(frame()).ipv4_options(&[1; 8])).vlans(&[1, 2]).pad_to(150), &NONE),
        (eth(v6(frame().crc())), &CRC),
        (eth(v4(frame().native(1))), &NONE),
        (eth(v6(Frame::secured(TssShort::build().done().unwrap(), b"cipher", [7; 16]).udp(1))), &ICV),
    ];
    for (frame, options) in frames {
        let whole = bytes(&frame);
        let read = lax(Start::Eth, &whole, options);
        for kept in 0..whole.len() {
            let seen = sliced(Start::Eth, &whole[..kept], whole.len(), options);
            assert_eq!((seen.error(), seen.trimmed), (None, None), "{kept}");
            // The parts are those of the whole packet, cut.
            assert!(read.uet.payload.starts_with(seen.uet.payload));
            assert!(read.trailer.starts_with(seen.trailer));
            assert!(read.padding.starts_with(seen.padding));
            let headers: Vec<_> = read.headers().map(|(layout, _)| layout.name).collect();
            let found: Vec<_> = seen.headers().map(|(layout, _)| layout.name).collect();
            assert!(headers.starts_with(&found));
            let in_trailer = seen.cut.is_some_and(|cut| cut.layer() == Layer::Trailer);
            assert_eq!(seen.cut.is_some(), found.len() < headers.len() || in_trailer);
            assert_eq!(seen.cut.map_or(kept, |cut| cut.start), kept - seen.rest.len());
        }
    }
}

#[test]
fn where_only_padding_was_left_out_the_packet_must_be_whole() {
    let whole = bytes(&eth(v4(frame())).pad_to(200));
    assert_whole(&sliced(Start::Eth, &whole[..107], 200, &NONE));
    assert_whole(&sliced(Start::Eth, &whole[..110], 200, &NONE));
    let mut bad = whole.clone();
    set16(&mut bad, 16, 20 + 8 + 16 + 5);
    set16(&mut bad, 38, 8 + 16 + 5);
    assert_error(&sliced(Start::Eth, &bad[..107], 200, &NONE), Layer::Ses, "ses.job_id", 63, 8, 5);
    // The UDP length bounds the packet where there is no IP header.
    assert_whole(&sliced(Start::Udp, &whole[34..107], 166, &NONE));
}

#[test]
fn an_ip_length_beyond_the_wire_is_an_error_in_a_sliced_packet_too() {
    let whole = bytes(&v4(frame()));
    let seen = sliced(Start::Ip, &whole[..90], 92, &NONE);
    assert_error(&seen, Layer::Ipv4, "ip.total_length", 2, 93, 92);
    assert_eq!(seen.uet.payload, b"he");
}

#[test]
fn a_header_that_would_not_fit_what_was_left_out() {
    let mut whole = bytes(&v4(frame()));
    whole.truncate(20 + 8 + 16 + 30);
    set16(&mut whole, 2, 20 + 8 + 16 + 30);
    set16(&mut whole, 24, 8 + 16 + 30);
    let seen = sliced(Start::Ip, &whole[..54], 74, &NONE);
    assert_error(&seen, Layer::Ses, "ses.resource_index", 54, 12, 10);
}

#[test]
fn a_header_that_would_overlap_the_trailer() {
    let mut whole = bytes(&v4(frame()));
    for (ses, fits) in [(44, true), (43, false)] {
        set16(&mut whole, 2, 20 + 8 + 16 + ses + 4);
        set16(&mut whole, 24, 8 + 16 + ses + 4);
        let seen = sliced(Start::Ip, &whole[..54], 44 + ses + 4, &CRC);
        assert_eq!(seen.error().is_none(), fits);
        assert_eq!(seen.cut.unwrap().header.name, "std");
    }
}

#[test]
fn a_short_udp_length_excuses_no_header() {
    // All of UDP is there; what the capture left out lay behind it.
    let mut whole = bytes(&v4(frame()));
    set16(&mut whole, 24, 8 + 16 + 10);
    let seen = sliced(Start::Ip, &whole[..56], 93, &NONE);
    assert_error(&seen, Layer::Ses, "ses.resource_index", 54, 12, 10);
    assert_eq!(seen.padding.len(), 2);
}

#[test]
fn sliced_and_trimmed() {
    let mut packet = bytes(&eth(v4(frame())).pad_to(107));
    packet.truncate(14 + 80);
    set16(&mut packet, 16, 80);
    for kept in 14 + 28..14 + 80 {
        let seen = sliced(Start::Eth, &packet[..kept], 94, &NONE);
        let layer = if kept < 14 + 44 { Layer::Pds } else { Layer::Ses };
        assert_eq!((seen.trimmed, seen.error()), (trimmed(layer, 13), None), "{kept}");
    }
    // Trimmed to less than the shortest frame, padded, and the padding sliced.
    packet.extend_from_slice(&[0; 20]);
    let seen = sliced(Start::Eth, &packet[..100], 114, &NONE);
    assert_eq!((seen.trimmed, seen.padding.len()), (trimmed(Layer::Ses, 13), 6));
}

#[test]
fn wire_lengths_of_every_size_are_taken() {
    let packet = bytes(&v4(frame()));
    for wire in [0, 1, packet.len()] {
        let seen = Packet::parse_lax(Start::Ip, &packet, wire, &NONE);
        assert_whole(&seen);
        assert_eq!(seen.sliced, None, "no shorter than what is there");
    }
    let seen = Packet::parse_lax(Start::Ip, &packet[..20], usize::MAX, &NONE);
    assert_eq!(seen.error(), None);
}

// Properties.

fn any_options() -> impl Strategy<Value = Options> {
    let trailer = prop_oneof![Just(TrailerKind::None), Just(TrailerKind::Crc), Just(TrailerKind::Icv)];
    let dscp = || prop_oneof![Just(None), Just(Some(0)), Just(Some(5))];
    let proto = prop_oneof![Just(253), Just(17), any::<u8>()];
    (trailer, dscp(), dscp(), proto).prop_map(|(trailer, trimmed_dscp, trimmed_lasthop_dscp, ip_proto)| {
        Options { trailer, trimmed_dscp, trimmed_lasthop_dscp, ip_proto, ..NONE }
    })
}

/// Random bytes seldom get far: most inputs are frames with a few bytes changed, cut or extended.
fn any_input() -> impl Strategy<Value = Vec<u8>> {
    let frames: Vec<Vec<u8>> = vec![
        bytes(&eth(v4(frame().crc())).pad_to(130)),
        bytes(&eth(v4(frame()).ipv4_options(&[1; 12])).vlans(&[1, 2])),
        bytes(&eth(v6(frame().native(1)))),
        bytes(&v6(frame().crc())),
        with_extensions(&[(0, &[0; 8]), (44, &[0; 8]), (51, &[0; 8])]),
        bytes(&frame()),
        bytes(&v4(Frame::secured(TssShort::build().done().unwrap(), b"cipher", [7; 16]).udp(1))),
    ];
    let changed = (
        prop::sample::select(frames),
        prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        0usize..200,
        prop::collection::vec(any::<u8>(), 0..20),
    )
        .prop_map(|(mut bytes, changes, cut, more)| {
            for (at, value) in changes {
                // Half of the changes hit the first 60 bytes, where the outer headers are.
                let range = if value & 1 == 0 { bytes.len() } else { bytes.len().min(60) };
                bytes[at.index(range)] = value;
            }
            bytes.truncate(cut);
            bytes.extend_from_slice(&more);
            bytes
        });
    prop_oneof![4 => changed, 1 => prop::collection::vec(any::<u8>(), 0..200)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn every_byte_is_in_exactly_one_part(input in any_input(), wire in 0usize..300, options in any_options()) {
        for start in [Start::Eth, Start::Ip, Start::Udp, Start::Uet] {
            let packet = Packet::parse_lax(start, &input, wire, &options);
            prop_assert_eq!(packet.parts().concat(), &input[..]);
            for (layout, header) in packet.headers() {
                prop_assert_eq!(layout.bytes, header.len());
            }
            if let Some(cut) = packet.cut {
                prop_assert_eq!(cut.start, packet.offsets().rest);
                prop_assert!(packet.uet.payload.is_empty() || cut.layer() == Layer::Trailer);
            } else {
                prop_assert!(packet.rest.is_empty());
            }
            if let Some(error) = packet.error() {
                prop_assert!(error.start <= input.len());
                prop_assert!(error.start <= error.offset());
                prop_assert!(!error.to_string().is_empty());
            } else {
                prop_assert!(packet.cut.is_none() || packet.trimmed.is_some() || packet.sliced.is_some());
            }
            if packet.trimmed.is_some() {
                prop_assert_eq!(packet.content, Content::Uet);
            }
            prop_assert_eq!(packet.sliced.is_some(), wire > input.len());
        }
    }

    /// What the capture leaves out never makes a good packet bad, nor changes what is before the cut.
    #[test]
    fn a_slice_of_a_good_packet_is_good(input in any_input(), kept in 0usize..200, options in any_options()) {
        for start in [Start::Eth, Start::Ip, Start::Udp, Start::Uet] {
            let Ok(whole) = Packet::parse(start, &input, &options) else { continue };
            let kept = kept.min(input.len());
            let seen = Packet::parse_lax(start, &input[..kept], input.len(), &options);
            prop_assert_eq!(seen.error(), None);
            for (ours, theirs) in seen.headers().zip(whole.headers()) {
                prop_assert_eq!(ours, theirs);
            }
        }
    }
}

#[test]
fn the_first_byte_tells_what_is_cut() {
    let cut = |bytes: &[u8]| {
        let error = Uet::parse(bytes).unwrap_err();
        (error.header.name, error.field(), error.offset(), error.needed())
    };
    assert_eq!(cut(&[]), ("prologue", "pds.type", 0, 1));
    assert_eq!(cut(&[2 << 3]), ("request", "pds.next_hdr", 0, 2));
    assert_eq!(cut(&[11 << 3]), ("control", "pds.ctl_type", 0, 2));
    assert_eq!(cut(&[1 << 3]), ("tss", "tss.sdi", 1, 4));
    // Nothing but reserved bits is missing: they are named by their header.
    assert_eq!(cut(&[6 << 3, 0, 0]), ("uud", "uud", 2, 4));
}

#[test]
fn a_cut_compare_and_swap_is_no_short_atomic() {
    let request = Request::rud().done().unwrap();
    let write = Std::build(Opcode::UET_ATOMIC).done().unwrap();
    let mut packet = [&request.bytes()[..], write.bytes()].concat();
    packet[1] |= 0x80;
    packet[0] |= 1;
    for (opcode, expected) in [(0x0d, "ses.compare_value"), (2, "atomic")] {
        let bytes = [&packet[..], &[opcode, 7, 0]].concat();
        assert_eq!(Uet::parse(&bytes).unwrap_err().field(), expected);
    }
}

#[test]
fn reserved_bits_of_the_entropy_header_are_flagged() {
    let mut packet = bytes(&v4(frame().native(7)));
    let count = |packet: &[u8]| {
        let packet = lax(Start::Ip, packet, &NONE);
        packet.validate(uet_wire::Version::default()).filter(|finding| finding.field == "entropy").count()
    };
    assert_eq!(count(&packet), 0);
    packet[23] = 1;
    assert_eq!(count(&packet), 1);
}
