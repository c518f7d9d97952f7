//! Packets that a switch trimmed.

use super::{BY_DSCP, CRC, NONE, assert_error, bytes, frame, lax, set16, trimmed, v4, v6};
use uet_wire::layout::Layer;
use uet_wire::pds::AckCc;
use uet_wire::registry::Opcode;
use uet_wire::ses::Std;
use uet_wire::{FrameBuilder, Packet, PacketMut, Psn, Start, TrailerKind, Trimmed, Version};

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
            assert_eq!(seen.cut.map(|cut| cut.header_offset()), (kept < 68).then_some(header + 24));
            assert_eq!(seen.rest.len(), if kept < 68 { kept - 24 } else { 0 });
            // Without IP, the given bytes are the whole packet.
            assert_eq!(lax(Start::Udp, &packet[header..], &NONE).trimmed, seen.trimmed);
        }
    }
}

#[test]
fn trimmed_within_the_pds_header() {
    let ack = AckCc::build().done().unwrap();
    let mut packet = bytes(&v4(FrameBuilder::new(ack).udp(1)));
    packet.truncate(20 + 24);
    set16(&mut packet, 2, 20 + 24);
    let seen = lax(Start::Ip, &packet, &NONE);
    assert_eq!((seen.trimmed, seen.error()), (trimmed(Layer::Pds, 16), None));
    assert_eq!(seen.cut.unwrap().field(), "pds.sack_bitmap");
    assert_eq!((seen.cut.unwrap().header_offset(), seen.rest.len()), (28, 16));
}

#[test]
fn trimmed_by_traffic_class() {
    for (dscp, last_hop) in [(5, false), (6, true)] {
        for (ip, header, at) in [(v4 as fn(_) -> _, 20, 2), (v6, 40, 4)] {
            // The lengths are unchanged, so the number of missing bytes is unknown.
            let unknown = Some(Trimmed { layer: Layer::Payload, missing: None, last_hop });
            let whole: Vec<u8> = bytes(&ip(frame().dscp(dscp)));
            assert_eq!(lax(Start::Ip, &whole, &BY_DSCP).trimmed, unknown);
            let mut native = bytes(&ip(frame().dscp(dscp).native(1)));
            assert_eq!(lax(Start::Ip, &native, &BY_DSCP).trimmed, unknown);
            // The native encapsulation has no other sign of trimming.
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
        // Part of a trailer does not count as a trailer.
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
    // If only the traffic class shows the trimming, the position of the trailer is unknown.
    let packet = cut(0, 5);
    let seen = lax(Start::Ip, &packet, &BY_DSCP.trailer(TrailerKind::Crc));
    assert_eq!((seen.uet.payload.len(), seen.trailer.len()), (9, 0));
}

#[test]
fn a_trimmed_packet_can_still_be_wrong() {
    // The UDP length leaves no room for a PDS header of 16 bytes.
    let mut packet = bytes(&v4(frame()));
    packet.truncate(20 + 8 + 6);
    set16(&mut packet, 2, 20 + 8 + 6);
    set16(&mut packet, 24, 8 + 15);
    assert_error(&lax(Start::Ip, &packet, &NONE), Layer::Pds, "pds.psn", 32, 8, 6);
    set16(&mut packet, 24, 8 + 16);
    assert_eq!(lax(Start::Ip, &packet, &NONE).error(), None);
}

/// Many switches recompute neither the IP length nor the checksum after they change the traffic class.
#[test]
fn trimmed_with_a_stale_ip_length() {
    let data = [7; 400];
    for (dscp, last_hop) in [(5, false), (6, true)] {
        for kept in [24, 64, 128, 256] {
            for native in [false, true] {
                for version in [4, 6] {
                    let write = Std::build(Opcode::UET_WRITE).head(|h| h.som(true).eom(true));
                    let write = write.request_length(400).done().unwrap();
                    let inner = frame().ses(write).payload(&data);
                    let inner = if native { inner.native(1) } else { inner };
                    let mut packet = bytes(&if version == 4 { v4(inner) } else { v6(inner) });
                    let whole = packet.len();
                    let switch = PacketMut::new(Start::Ip, &mut packet, &NONE).unwrap();
                    let left = switch.trim_stale(kept, dscp).unwrap();
                    packet.truncate(left);
                    assert_eq!(left, if version == 4 { 20 } else { 40 } + kept);

                    let seen = lax(Start::Ip, &packet, &BY_DSCP);
                    let trim = seen.trimmed.unwrap();
                    assert_eq!((trim.missing, trim.last_hop), (Some(whole - left), last_hop));
                    assert_eq!(seen.error(), None);
                    assert_eq!(seen.uet.pds.unwrap().request().unwrap().psn(), Psn(7));
                    // The switch wrote what is wrong.
                    let blames = |packet: Packet<'_>| {
                        packet.validate(Version::V1_0_3).any(|found| found.requirement.id == "WIRE-IP-002")
                    };
                    assert!(!blames(seen));

                    // Without the traffic class, the length is wrong, and the checksum may be the switch's.
                    let seen = lax(Start::Ip, &packet, &NONE);
                    assert!(seen.error().is_some());
                    assert!(!blames(seen));
                }
            }
        }
    }
}
