//! The CRC trailer: the bytes that it covers and the changes that it detects.

use crate::frames::{bytes, v4, v6};
use uet_wire::pds::Request;
use uet_wire::{FrameBuilder, Options, Packet, Psn, Start, TrailerKind, WriteErrorKind, crc};

const CRC: Options = Options::DEFAULT.trailer(TrailerKind::Crc);

fn frame() -> FrameBuilder<'static> {
    FrameBuilder::new(Request::rud().psn(Psn(7)).done().unwrap()).payload(b"hello").crc()
}

/// Returns packets with the offset of their source address, where the coverage starts.
fn samples() -> Vec<(Vec<u8>, usize)> {
    vec![
        (bytes(&v4(frame().udp(1))), 12),
        (bytes(&v4(frame().native(1)).ipv4_options(&[1, 1, 1, 0])), 12),
        (bytes(&v6(frame().udp(1))), 8),
        (bytes(&v6(frame().native(1))), 8),
    ]
}

#[test]
fn it_covers_all_from_the_source_address_on() {
    for (packet, source) in samples() {
        let (covered, trailer) = packet.split_at(packet.len() - 4);
        assert_eq!(trailer, crc::crc32c(&covered[source..]).to_be_bytes());
        assert_eq!(crc::over_ip_packet(covered), Some(crc::crc32c(&covered[source..])));
        let check = Packet::parse(Start::Ip, &packet, &CRC).unwrap().crc_check().unwrap();
        assert!(check.ok());
        assert_eq!(check.value.to_be_bytes(), trailer);
    }
}

#[test]
fn the_check_value_is_sent_in_network_byte_order() {
    // An IPv6 packet whose covered bytes are all 0: 32 bytes of addresses.
    let mut packet = [0; 44];
    packet[..8].copy_from_slice(&[0x60, 0, 0, 0, 0, 4, 253, 64]);
    assert_eq!(crc::append(&mut packet, 0, 40), Ok(44));
    assert_eq!(packet[40..], [0x8a, 0x91, 0x36, 0xaa]);
}

#[test]
fn every_bit_in_the_span_counts_and_no_other() {
    for (packet, source) in samples() {
        for bit in 0..packet.len() * 8 {
            let mut changed = packet.clone();
            changed[bit / 8] ^= 0x80 >> (bit % 8);
            // A changed length or version would make another packet. This test is about the CRC.
            let (covered, trailer) = changed.split_at(packet.len() - 4);
            let ok = crc::over_ip_packet(covered).map(u32::to_be_bytes).as_ref().map(|crc| &crc[..])
                == Some(trailer);
            if bit >= 4 {
                assert_eq!(ok, bit / 8 < source, "bit {bit}");
            } else {
                assert!(!ok, "another version of IP, or none");
            }
        }
    }
}

#[test]
fn what_routers_change_is_not_covered() {
    for (packet, source) in samples() {
        let places: &[(usize, u8)] = if source == 12 {
            &[(1, 0xff), (8, 0xff), (10, 0xff), (11, 0xff)]
        } else {
            &[(0, 0x0f), (1, 0xf0), (7, 0xff)]
        };
        for (at, mask) in places {
            let mut changed = packet.clone();
            changed[*at] ^= mask;
            assert!(Packet::parse(Start::Ip, &changed, &CRC).unwrap().crc_check().unwrap().ok());
        }
        for at in [packet.len() - 1, packet.len() - 5] {
            let mut changed = packet.clone();
            changed[at] ^= 1;
            assert!(!Packet::parse(Start::Ip, &changed, &CRC).unwrap().crc_check().unwrap().ok());
        }
    }
}

/// Sources leave open whether a UDP checksum counts as it is or as 0.
#[test]
fn udp_checksum_counts_as_it_is_or_as_zero() {
    for (packet, source) in samples() {
        let checksum = if source == 12 { 26 } else { 46 };
        let check = |packet: &[u8]| Packet::parse(Start::Ip, packet, &CRC).unwrap().crc_check().unwrap();
        if Packet::parse(Start::Ip, &packet, &CRC).unwrap().udp.is_none() {
            continue;
        }
        // The CRC of a packet whose checksum is 0, and which counts as 0 afterward.
        let mut changed = packet.clone();
        changed[checksum..checksum + 2].copy_from_slice(&[0x12, 0x34]);
        assert!(check(&changed).ok());
        let end = changed.len() - 4;
        uet_wire::crc::append(&mut changed, 0, end).unwrap();
        assert!(check(&changed).ok());
        assert_ne!(changed[end..], packet[end..]);
        for at in [checksum - 1, end - 1] {
            changed[at] ^= 1;
            assert!(!check(&changed).ok());
            changed[at] ^= 1;
        }
    }
}

#[test]
fn without_the_addresses_there_is_nothing_to_check() {
    let packet = bytes(&v4(frame().udp(1)));
    let part = Packet::parse(Start::Udp, &packet[20..], &CRC).unwrap();
    assert_eq!((part.trailer.len(), part.crc_check()), (4, None));
    assert_eq!(Packet::parse(Start::Ip, &packet, &Options::DEFAULT).unwrap().crc_check(), None);
}

#[test]
fn append_says_what_is_missing() {
    let mut packet = bytes(&v4(frame().udp(1)));
    let end = packet.len() - 4;
    for room in 0..4 {
        let seen = crc::append(&mut packet[..end + room], 0, end);
        let error = seen.unwrap_err();
        assert_eq!((error.needed(), error.present(), error.offset()), (Some(4), Some(room), Some(end)));
    }
    for (ip, end) in [(0, 11), (1, end), (0, 500), (9, 3)] {
        let error = crc::append(&mut packet, ip, end).unwrap_err();
        assert_eq!((error.kind(), error.field()), (WriteErrorKind::Mismatch, Some("crc")));
    }
}
