//! Packets that the capture cut off.

use super::{
    CRC, ICV, NONE, assert_error, assert_whole, bytes, eth, frame, lax, set16, sliced, trimmed, v4, v6,
};
use uet_wire::layout::Layer;
use uet_wire::tss::TssShort;
use uet_wire::{FrameBuilder, Options, Packet, Start};

#[test]
fn sliced_at_every_byte_is_no_error_and_loses_nothing() {
    let frames: [(FrameBuilder<'_>, &Options); 4] = [
        (eth(v4(frame()).ipv4_options(&[1; 8])).vlans(&[1, 2]).pad_to(150), &NONE),
        (eth(v6(frame().crc())), &CRC),
        (eth(v4(frame().native(1))), &NONE),
        (eth(v6(FrameBuilder::secured(TssShort::build().done().unwrap(), b"cipher", [7; 16]).udp(1))), &ICV),
    ];
    for (frame, options) in frames {
        let whole = bytes(&frame);
        let read = lax(Start::Eth, &whole, options);
        for kept in 0..whole.len() {
            let seen = sliced(Start::Eth, &whole[..kept], whole.len(), options);
            assert_eq!((seen.error(), seen.trimmed), (None, None), "{kept}");
            // The parts are the parts of the whole packet, truncated.
            assert!(read.uet.payload.starts_with(seen.uet.payload));
            assert!(read.trailer.starts_with(seen.trailer));
            assert!(read.padding.starts_with(seen.padding));
            let headers: Vec<_> = read.headers().map(|(layout, _)| layout.name).collect();
            let found: Vec<_> = seen.headers().map(|(layout, _)| layout.name).collect();
            assert!(headers.starts_with(&found));
            let in_trailer = seen.cut.is_some_and(|cut| cut.layer() == Layer::Trailer);
            assert_eq!(seen.cut.is_some(), found.len() < headers.len() || in_trailer);
            assert_eq!(seen.cut.map_or(kept, |cut| cut.header_offset()), kept - seen.rest.len());
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
    // Without an IP header, the UDP length bounds the packet.
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
        assert_eq!(seen.cut.unwrap().header().name, "std");
    }
}

#[test]
fn a_short_udp_length_excuses_no_header() {
    // The UDP datagram is complete. The capture removed only bytes after it.
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
    // Trimmed below the shortest frame, padded, and cut off within the padding.
    packet.extend_from_slice(&[0; 20]);
    let seen = sliced(Start::Eth, &packet[..100], 114, &NONE);
    assert_eq!((seen.trimmed, seen.padding.len()), (trimmed(Layer::Ses, 13), 6));
}

#[test]
fn wire_lengths_of_every_size_are_taken() {
    let packet = bytes(&v4(frame()));
    for wire in [0, 1, packet.len()] {
        let seen = Packet::parse_sliced(Start::Ip, &packet, wire, &NONE).0;
        assert_whole(&seen);
        assert_eq!(seen.sliced, None, "no shorter than what is there");
    }
    let seen = Packet::parse_sliced(Start::Ip, &packet[..20], usize::MAX, &NONE).0;
    assert_eq!(seen.error(), None);
}
