//! Frames can be read back after any impairment of a network.

use core::net::IpAddr;
use uet_emulator::frame::{Framed, Outer, Record, frame, ipv6_start, mac_from, mac_text, read};
use uet_model::{Packet, Priority, Time, TrimPoint};
use uet_wire::pds::Request;
use uet_wire::registry::Opcode;
use uet_wire::ses::Std;
use uet_wire::{Psn, UetBuf};

/// A write of 100 bytes.
fn packet(version: u8) -> Packet {
    let ends: [IpAddr; 2] = match version {
        4 => [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()],
        _ => ["fd00::1".parse().unwrap(), "fd00::2".parse().unwrap()],
    };
    let std = Std::build(Opcode::UET_WRITE).head(|head| head.som(true).eom(true)).request_length(100);
    let next = uet_wire::registry::NextHdr::UET_HDR_REQUEST_STD;
    let request = Request::rud().prologue(|prologue| prologue.next_hdr(next)).psn(Psn(7)).done().unwrap();
    let mut bytes = UetBuf::new(request);
    (bytes.ses, bytes.payload) = (Some(std.done().unwrap().into()), vec![9; 100]);
    let packet = Packet::from_wire(ends[0], ends[1], bytes.to_bytes().into()).unwrap();
    Packet { entropy: 0xbeef, class: 2, ..packet }
}

/// Returns every encapsulation of packets.
fn outers() -> impl Iterator<Item = (u8, Outer)> {
    let outer = |native, crc| Outer { native, crc, ..Outer::default() };
    let ways = [(None, false), (None, true), (Some(253), false), (Some(100), true)];
    [4, 6].into_iter().flat_map(move |version| ways.map(|(native, crc)| (version, outer(native, crc))))
}

fn sent(record: &Record<'_>, outer: &Outer) -> Framed {
    read(&frame(record, outer).unwrap(), outer).unwrap()
}

#[test]
fn frames_can_be_read_back() {
    for (version, outer) in outers() {
        for (priority, marked) in [(Priority::Low, false), (Priority::Low, true), (Priority::High, false)] {
            let packet = Packet { priority, marked, ..packet(version) };
            let framed = sent(&Record::new(Time(0), &packet), &outer);
            assert_eq!((framed.packet, framed.damage), (packet, None), "{outer:?}");
            assert_eq!(framed.findings, []);
        }
    }
}

#[test]
fn trimmed_frames_are_recognized() {
    for (version, outer) in outers() {
        for place in [TrimPoint::Fabric, TrimPoint::LastHop] {
            let packet = packet(version);
            let framed = sent(&Record { trim: Some((40, place)), ..Record::new(Time(0), &packet) }, &outer);
            assert_eq!((framed.packet.trimmed, framed.packet.class), (Some(place), 2), "{outer:?}");
            let left = 40 - outer.between();
            assert_eq!(framed.packet.to_wire(), packet.to_wire()[..left], "{outer:?}");
            assert_eq!((framed.damage, framed.findings), (None, vec![]), "it has no trailer");
        }
    }
}

#[test]
fn every_bit_that_a_trailer_covers_counts() {
    for (version, outer) in outers().filter(|(_, outer)| outer.crc) {
        let packet = packet(version);
        for bit in 0..(packet.to_wire().len() + 4) * 8 {
            let framed = sent(&Record { corrupt: Some(bit), ..Record::new(Time(0), &packet) }, &outer);
            assert_eq!(framed.damage, Some("bad CRC"), "bit {bit}, {outer:?}");
        }
    }
}

#[test]
fn a_trailer_that_is_missing_is_wrong() {
    for (version, outer) in outers().filter(|(_, outer)| outer.crc) {
        let bare = frame(&Record::new(Time(0), &packet(version)), &Outer { crc: false, ..outer.clone() });
        assert_eq!(read(&bare.unwrap(), &outer).unwrap().damage, Some("bad CRC"));
    }
}

#[test]
fn violations_around_uet_are_named() {
    let outer = Outer::default();
    let whole = frame(&Record::new(Time(0), &packet(4)), &outer).unwrap();
    // IPv4 header: "don't fragment" with the matching checksum, then a wrong checksum. UDP: a checksum that is not 0.
    for (changes, id, damage) in [
        (&[(14 + 6, 0x40), (14 + 10, 0x40)][..], "WIRE-IP-001", None),
        (&[(14 + 11, 1)][..], "WIRE-IP-002", Some("bad IP checksum")),
        (&[(14 + 20 + 7, 1)][..], "WIRE-UDP-001", None),
    ] {
        let mut frame = whole.clone();
        changes.iter().for_each(|(at, bits)| frame[*at] ^= bits);
        let framed = read(&frame, &outer).unwrap();
        let ids: Vec<&str> = framed.findings.iter().map(|finding| finding.requirement.id).collect();
        assert!(ids.contains(&id), "{ids:?}");
        if id != "WIRE-IP-001" {
            assert_eq!((framed.damage, ids.len()), (damage, 1), "{id}");
        }
    }
}

/// Many switches that trim leave the IP length and the IPv4 checksum as they were.
#[test]
fn stale_length_of_a_trimmed_packet_is_no_damage() {
    for (version, outer) in outers() {
        let payload = [packet(version).payload.as_ref(), &[7; 400][..]].concat();
        let packet = Packet { payload: payload.into(), ..packet(version) };
        for (keep, place) in [(24, TrimPoint::Fabric), (64, TrimPoint::LastHop), (128, TrimPoint::Fabric)] {
            let trim = Some((keep, place));
            let whole = Record { trim, ..Record::new(Time(0), &packet) };
            let [fixed, stale] = [false, true].map(|stale_length| {
                read(&frame(&Record { stale_length, ..whole }, &outer).unwrap(), &outer).unwrap()
            });
            assert_eq!((stale.packet.trimmed, stale.damage), (Some(place), None), "{outer:?}");
            assert!(stale.findings.is_empty(), "{:?}", stale.findings);
            // With a stale length, the padding of a short frame looks like part of the packet.
            if keep > 24 {
                assert_eq!(stale, fixed);
            }
        }
        // Without a traffic class that tells, the length is wrong.
        let mut short = frame(&Record::new(Time(0), &packet), &outer).unwrap();
        short.truncate(short.len() - 100);
        assert!(read(&short, &outer).unwrap().damage.is_some());
    }
}

#[test]
fn foreign_frames_are_ignored() {
    let (udp, native) = (Outer::default(), Outer { native: Some(253), ..Outer::default() });
    let in_udp = frame(&Record::new(Time(0), &packet(4)), &udp).unwrap();
    let in_ip = frame(&Record::new(Time(0), &packet(4)), &native).unwrap();
    assert!(read(&in_udp, &native).is_none() && read(&in_ip, &udp).is_none());
    assert!(read(&in_udp, &Outer { port: 9, ..udp.clone() }).is_none());
    let mut rng = fastrand::Rng::with_seed(3);
    for length in 0..in_udp.len() {
        // Any truncated or corrupted frame.
        let mut part = in_udp[..length].to_vec();
        read(&part, &udp);
        if let Some(byte) = part.get_mut(length / 2) {
            *byte = rng.u8(..);
        }
        read(&part, &Outer { crc: true, ..udp.clone() });
    }
}

#[test]
fn ethernet_addresses_in_words() {
    let mac = [2, 0, 0xa, 0xff, 0, 1];
    assert_eq!(mac_text(mac), "02:00:0a:ff:00:01");
    assert_eq!(mac_from(&mac_text(mac)), Some(mac));
    for wrong in ["", "02:00:0a:ff:00", "02:00:0a:ff:00:01:02", "02:00:0a:ff:00:x1", "02000aff0001"] {
        assert_eq!(mac_from(wrong), None, "{wrong}");
    }
}

#[test]
fn the_start_of_an_ipv6_header_can_be_given() {
    let outer = Outer { crc: true, ..Outer::default() };
    let start = ipv6_start(outer.classes.tos(&packet(6)) | 3, 0xf_ffff);
    let framed = sent(&Record { ipv6_start: Some(start), ..Record::new(Time(0), &packet(6)) }, &outer);
    assert_eq!((framed.ipv6_start, framed.damage), (Some(start), None));
    assert!(framed.packet.marked, "the class is read beside a full flow label");
    let framed = sent(&Record { ipv6_start: Some(start), ..Record::new(Time(0), &packet(4)) }, &outer);
    assert_eq!((framed.ipv6_start, framed.packet.marked), (None, false));
}
