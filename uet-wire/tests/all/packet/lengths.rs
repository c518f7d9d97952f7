//! Lengths that contradict each other.

use super::{CRC, NONE, assert_error, assert_whole, bytes, eth, frame, lax, set16, v4, v6, with_extensions};
use uet_wire::layout::Layer;
use uet_wire::outer::Ip;
use uet_wire::pds::Request;
use uet_wire::{FrameBuilder, Psn, Start};

#[test]
fn behind_ip_is_padding() {
    for ip in [v4, v6] {
        let packet = bytes(&eth(ip(frame())).pad_to(200));
        let padded = lax(Start::Eth, &packet, &NONE);
        assert_whole(&padded);
        assert_eq!(padded.offsets().padding + padded.padding.len(), 200);
    }
    // The shortest packets always have padding.
    let request = Request::rud().psn(Psn(7)).done().unwrap();
    let packet = bytes(&eth(v4(FrameBuilder::new(request).udp(1))).pad_to(60));
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

        // Offsets include the Ethernet header.
        let mut framed = bytes(&eth(ip(frame())));
        framed.truncate(14 + header + 8 + 16 + 44 + 2);
        let short = lax(Start::Eth, &framed, &NONE);
        assert_error(&short, layer, field, 14 + at, header + 73, header + 70);
        assert_eq!(short.uet.payload, b"he");
        // If a header is cut off, the error names that header, because parsing stopped there.
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
    // Only the header.
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
    // The IP length cuts off the second of two extension headers.
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
