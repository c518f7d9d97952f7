//! Trailers.

use super::{CRC, ICV, NONE, assert_error, assert_whole, bytes, eth, frame, lax, set16, sliced, v4, v6};
use uet_wire::layout::Layer;
use uet_wire::tss::TssShort;
use uet_wire::{FrameBuilder, Start};

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
        let packet = bytes(&ip(FrameBuilder::secured(tss, b"cipher", [9; 16]).udp(1)));
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
    // A CRC that is configured but absent consumes the end of the SES header.
    let mut packet = bytes(&eth(v4(frame())).pad_to(120));
    set16(&mut packet, 16, 20 + 8 + 16 + 44);
    set16(&mut packet, 38, 8 + 16 + 44);
    let bad = lax(Start::Eth, &packet, &CRC);
    assert_error(&bad, Layer::Ses, "ses.request_length", 14 + 20 + 8 + 16 + 40, 44, 40);
    assert_eq!((bad.rest.len(), bad.trailer.len()), (40, 4));
}

#[test]
fn what_is_there_of_a_trailer_behind_a_packet_too_short_is_of_the_rest() {
    let packet = [0x10, 0, 0, 0, 0, 0xc1, 0xc2];
    let seen = sliced(Start::Uet, &packet, 9, &CRC);
    assert_eq!(seen.rest, packet);
}
