//! Edits in place: the bytes that they change, the bytes that they keep, and their errors.

use crate::frames::{self, bytes};
use proptest::prelude::*;
use uet_wire::layout::Layer;
use uet_wire::outer::Ip;
use uet_wire::pds::{Ack, Request, RequestCc};
use uet_wire::registry::Opcode;
use uet_wire::ses::Std;
use uet_wire::tss::TssShort;
use uet_wire::{
    EditError, FrameBuilder, Options, Packet, PacketMut, Psn, Start, TrailerKind, WriteErrorKind,
};

const CRC: Options =
    Options::DEFAULT.trailer(TrailerKind::Crc).trimmed_dscp(Some(5)).trimmed_lasthop_dscp(Some(6));

fn frame(rod: bool) -> FrameBuilder<'static> {
    let write =
        Std::build(Opcode::UET_WRITE).head(|h| h.som(true).eom(true)).request_length(5).done().unwrap();
    let frame = if rod {
        FrameBuilder::new(Request::rod().psn(Psn(7)).done().unwrap())
    } else {
        FrameBuilder::new(RequestCc::rud().request(|r| r.psn(Psn(7))).done().unwrap())
    };
    frame.ses(write).payload(b"hello").ecn(2).dscp(1)
}

fn v4(frame: FrameBuilder<'_>) -> FrameBuilder<'_> {
    frames::v4(frame).ipv4_options(&[1, 1, 1, 0]).crc()
}

fn v6(frame: FrameBuilder<'_>) -> FrameBuilder<'_> {
    frames::v6(frame).crc()
}

/// Returns packets of both IP versions and both encapsulations, with tags and padding.
fn samples() -> Vec<Vec<u8>> {
    let eth = |frame| bytes(&frames::eth(frame).vlans(&[7]).pad_to(150));
    vec![
        eth(v4(frame(false).udp(1))),
        eth(v6(frame(true).udp(1))),
        eth(v4(frame(true).native(1))),
        eth(v6(frame(false).native(1))),
    ]
}

fn edit(bytes: &mut [u8]) -> PacketMut<'_> {
    PacketMut::new(Start::Eth, bytes, &CRC).unwrap()
}

/// Parses the packet and checks its checksums.
#[track_caller]
fn read(bytes: &[u8]) -> Packet<'_> {
    let packet = Packet::parse(Start::Eth, bytes, &CRC).unwrap();
    if let Some(Ip::V4 { header, options }) = packet.ip {
        assert_eq!(header.checksum(), header.computed_checksum(options));
    }
    assert!(packet.trimmed.is_some() || packet.crc_check().unwrap().ok());
    packet
}

#[track_caller]
fn unfit<T: core::fmt::Debug>(result: Result<T, EditError>, field: &str) {
    match result {
        Err(EditError::Unfit { field: seen, .. }) => assert_eq!(seen, field),
        other => panic!("{other:?}"),
    }
}

/// Returns the number of bytes that differ.
fn changed(a: &[u8], b: &[u8]) -> usize {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).filter(|(a, b)| a != b).count()
}

#[test]
fn a_switch_marks_congestion() {
    for before in samples() {
        let mut after = before.clone();
        edit(&mut after).mark_ce().unwrap();
        let packet = read(&after);
        assert_eq!((packet.ip.unwrap().ecn(), packet.ip.unwrap().dscp()), (3, 1));
        assert!(changed(&before, &after) <= 3, "one byte and the checksum");
        // A second mark changes nothing.
        let once = after.clone();
        edit(&mut after).mark_ce().unwrap();
        assert_eq!(after, once);
        // `mark_ce` rejects a packet that is not ECN-capable. `set_ecn` accepts any packet.
        edit(&mut after).set_ecn(0).unwrap();
        unfit(edit(&mut after).mark_ce(), "ip.ecn");
        assert_eq!(read(&after).ip.unwrap().ecn(), 0);
    }
}

#[test]
fn a_traffic_class_is_set() {
    for mut bytes in samples() {
        edit(&mut bytes).set_dscp(63).unwrap();
        assert_eq!((read(&bytes).ip.unwrap().dscp(), read(&bytes).ip.unwrap().ecn()), (63, 2));
    }
}

#[test]
fn what_does_not_fit_changes_nothing() {
    for mut bytes in samples() {
        let before = bytes.clone();
        fn too_wide<T: core::fmt::Debug>(result: Result<T, EditError>, field: &str) {
            let EditError::Write(error) = result.unwrap_err() else { panic!() };
            assert_eq!((error.kind(), error.field()), (WriteErrorKind::ValueTooWide, Some(field)));
        }
        too_wide(edit(&mut bytes).set_dscp(64), "ip.dscp");
        too_wide(edit(&mut bytes).set_ecn(4), "ip.ecn");
        too_wide(edit(&mut bytes).retransmit(Psn(7 + 0x8000)), "pds.clear_psn_offset");
        too_wide(edit(&mut bytes).trim(24, 64), "ip.dscp");
        assert_eq!(bytes, before);
    }
}

#[test]
fn a_switch_trims() {
    for before in samples() {
        let whole = read(&before);
        let (offsets, pds) = (whole.offsets(), whole.uet.pds.unwrap().copied());
        for keep in 0..=whole.ip_packet.len() + 5 {
            for (dscp, last_hop) in [(5, false), (6, true)] {
                let mut bytes = before.clone();
                let length = edit(&mut bytes).trim(keep, dscp).unwrap();
                let end = (offsets.transport.unwrap() + keep.max(24)).min(offsets.trailer);
                assert_eq!(length, end);
                // The wire may pad the packet again. The IP length finds the end.
                let packet = read(&bytes[..(length + keep % 3).min(bytes.len())]);
                let trimmed = packet.trimmed.unwrap();
                assert_eq!(trimmed.last_hop, last_hop);
                assert_eq!(packet.ip_packet.len(), end - offsets.ip.unwrap());
                assert_eq!(packet.uet.pds.unwrap().copied(), pds);
                assert_eq!(packet.ip.unwrap().dscp(), dscp);
                assert_eq!(packet.ip.unwrap().ecn(), 2);
                let missing = offsets.padding - end;
                assert_eq!(trimmed.missing, packet.udp.map(|_| missing));
                if packet.udp.is_some() {
                    let layer = match missing {
                        4..=8 => Layer::Payload,
                        _ if end < offsets.payload => Layer::Ses,
                        _ => Layer::Payload,
                    };
                    assert_eq!(trimmed.layer, layer);
                }
            }
        }
    }
}

#[test]
fn a_packet_can_be_trimmed_again() {
    let mut bytes = samples().remove(0);
    let length = edit(&mut bytes).trim(60, 5).unwrap();
    let length = edit(&mut bytes[..length]).trim(24, 6).unwrap();
    let packet = read(&bytes[..length]);
    assert_eq!(packet.trimmed.unwrap().missing, Some(16 + 44 + 5 + 4 - 16));
    assert!(packet.trimmed.unwrap().last_hop);
    // The packet has no CRC to recompute.
    edit(&mut bytes[..length]).set_entropy(9).unwrap();
    assert_eq!(read(&bytes[..length]).entropy_value(), Some(9));
    unfit(edit(&mut bytes[..length]).refresh_crc(), "crc");
}

#[test]
fn a_retransmission() {
    for before in samples() {
        let mut after = before.clone();
        edit(&mut after).retransmit(Psn(3)).unwrap();
        let request = read(&after).uet.pds.unwrap().request().unwrap();
        assert!(request.retx());
        assert_eq!((request.psn(), request.clear_psn()), (Psn(7), Psn(3)));
        assert!(changed(&before, &after) <= 1 + 2 + 4, "the flag, the offset, the CRC");
    }
}

#[test]
fn another_path() {
    for mut bytes in samples() {
        edit(&mut bytes).set_entropy(0xfeed).unwrap();
        let packet = read(&bytes);
        assert_eq!(packet.entropy_value(), Some(0xfeed));
        assert_eq!(packet.uet.pds.unwrap().request().unwrap().psn(), Psn(7));
    }
}

#[test]
fn a_checksum_of_udp_does_not_outlive_a_change() {
    let mut bytes = samples().remove(0);
    let checksum = read(&bytes).offsets().transport.unwrap() + 6;
    bytes[checksum] = 0x12;
    edit(&mut bytes).refresh_crc().unwrap();
    edit(&mut bytes).mark_ce().unwrap();
    assert_eq!(read(&bytes).udp.unwrap().checksum(), 0x1200, "it does not cover the traffic class");
    edit(&mut bytes).set_entropy(1).unwrap();
    assert_eq!(read(&bytes).udp.unwrap().checksum(), 0);
}

#[test]
fn a_crc_after_a_change_by_hand() {
    for mut bytes in samples() {
        let payload = read(&bytes).offsets().payload;
        bytes[payload] ^= 1;
        assert!(!Packet::parse(Start::Eth, &bytes, &CRC).unwrap().crc_check().unwrap().ok());
        edit(&mut bytes).refresh_crc().unwrap();
        assert_eq!(read(&bytes).uet.payload, b"iello");
    }
}

#[test]
fn what_a_packet_must_be() {
    let none = Options::DEFAULT;
    // An ACK cannot be a retransmission.
    let mut ack = bytes(&v4(FrameBuilder::new(Ack::build().done().unwrap()).udp(1)));
    unfit(PacketMut::new(Start::Ip, &mut ack, &CRC).unwrap().retransmit(Psn(0)), "pds.flags.retx");
    // The request in a secured packet is encrypted.
    let mut secured = bytes(&FrameBuilder::secured(TssShort::build().done().unwrap(), b"x", [0; 16]).udp(1));
    let icv = none.trailer(TrailerKind::Icv);
    unfit(PacketMut::new(Start::Udp, &mut secured, &icv).unwrap().retransmit(Psn(0)), "pds.flags.retx");
    PacketMut::new(Start::Udp, &mut secured, &icv).unwrap().set_entropy(9).unwrap();
    assert_eq!(secured[..2], [0, 9]);
    // Without IP.
    let mut udp = bytes(&frame(true).ecn(0).dscp(0).udp(1));
    let mut packet = PacketMut::new(Start::Udp, &mut udp, &none).unwrap();
    unfit(packet.mark_ce(), "ip.ecn");
    unfit(packet.set_ecn(3), "ip.ecn");
    unfit(packet.set_dscp(3), "ip.dscp");
    unfit(packet.refresh_crc(), "crc");
    packet.retransmit(Psn(1)).unwrap();
    unfit(packet.trim(24, 5), "ip.dscp");
    unfit(PacketMut::new(Start::Uet, &mut udp[8..], &none).unwrap().set_entropy(1), "pds.entropy");
    // With a CRC whose covered bytes are not all in the buffer.
    let mut packet = bytes(&v4(frame(true).udp(1)));
    let before = packet.clone();
    let mut part = PacketMut::new(Start::Udp, &mut packet[24..], &CRC).unwrap();
    unfit(part.retransmit(Psn(1)), "crc");
    unfit(part.set_entropy(1), "crc");
    unfit(part.refresh_crc(), "crc");
    assert_eq!(packet, before);
    // A switch marks packets of other protocols, but does not trim them.
    let mut other = bytes(&v4(frame(true).udp_to(1, 53)));
    let mut packet = PacketMut::new(Start::Ip, &mut other, &none).unwrap();
    packet.mark_ce().unwrap();
    unfit(packet.set_entropy(1), "pds.entropy");
    unfit(packet.trim(24, 5), "ip.dscp");
    // Not a packet.
    assert!(PacketMut::new(Start::Ip, &mut [0; 40], &none).is_err());
    let error = EditError::from(PacketMut::new(Start::Ip, &mut [], &none).unwrap_err());
    assert_eq!(
        error.to_string(),
        "ipv4: `ip.version` at byte 0 is cut off: the header needs 1 byte to include it, 0 are present"
    );
}

type Edit = fn(&mut PacketMut<'_>) -> Result<(), EditError>;

proptest! {
    /// Any bytes give an error, or a packet with the requested edit and no other.
    #[test]
    fn edits_of_anything(
        sample in 0usize..4,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        start in prop::sample::select(vec![(Start::Eth, 0), (Start::Ip, 18), (Start::Udp, 42)]),
        keep in 0usize..200,
    ) {
        let mut bytes = samples().remove(sample);
        for (at, value) in changes {
            *at.get_mut(&mut bytes[..]) = value;
        }
        let (start, at) = start;
        let bytes = &mut bytes[at..];
        let Ok(mut packet) = PacketMut::new(start, bytes, &CRC) else { return Ok(()) };
        let edits: [Edit; 6] = [
            |packet| packet.set_ecn(1),
            |packet| packet.set_dscp(64),
            |packet| packet.set_entropy(3),
            |packet| packet.retransmit(Psn(9)),
            |packet| packet.retransmit(Psn(9 + 0x8000)),
            |packet| packet.refresh_crc(),
        ];
        for edit in edits {
            let before = packet.bytes().to_vec();
            if let Err(error) = edit(&mut packet) {
                prop_assert_eq!(packet.bytes(), before, "{}", error);
            }
        }
        let marked = packet.mark_ce();
        let end = packet.bytes().len();
        let trimmed = packet.trim(keep, 5);
        prop_assert!(trimmed.is_err() || marked.is_ok());
        let end = trimmed.unwrap_or(end);
        let packet = Packet::parse(start, &bytes[..end], &CRC);
        prop_assert!(packet.is_ok());
        prop_assert!(trimmed.is_err() || packet.unwrap().trimmed.is_some());
    }
}
