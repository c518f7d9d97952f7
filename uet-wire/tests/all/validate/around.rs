//! The layers around UET, and truncated packets.

use super::*;

/// Changes an IPv4 packet with a CRC and returns the findings.
#[cfg(feature = "crc")]
fn found_after(change: impl FnOnce(&mut [u8])) -> Vec<&'static str> {
    let mut buffer = [0; 128];
    let length = FrameBuilder::new(ack(NextHdr::UET_HDR_NONE))
        .udp(7)
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2])
        .crc()
        .emit(&mut buffer)
        .unwrap();
    change(&mut buffer);
    let options = Options::default().trailer(uet_wire::TrailerKind::Crc);
    let packet = Packet::parse_lax(Start::Ip, &buffer[..length], &options).0;
    packet.validate(Version::V1_0_3).map(|finding| finding.requirement.id).collect()
}

#[cfg(feature = "crc")]
#[test]
fn the_layers_around_uet_are_judged_too() {
    assert!(found_after(|_| ()).is_empty());
    // DF changes, and the checksum with it, so only DF is wrong.
    assert_eq!(
        found_after(|ip| {
            ip[6] = 0;
            ip[10] = ip[10].wrapping_add(0x40);
        }),
        ["WIRE-IP-001"]
    );
    assert_eq!(found_after(|ip| ip[8] -= 1), ["WIRE-IP-002"]);
    assert_eq!(found_after(|ip| ip[43] ^= 1), ["WIRE-CRC-001"]);
    // The CRC may count the checksum as 0.
    assert_eq!(found_after(|ip| ip[27] = 1), ["WIRE-UDP-001"]);
}

#[test]
fn what_was_cut_is_not_held_against_a_packet() {
    let mut buffer = [0; 256];
    let write = std(Opcode::UET_WRITE, true, true).edit().request_length(64).done().unwrap();
    let frame = FrameBuilder::new(request(NextHdr::UET_HDR_REQUEST_STD)).ses(write).payload(&[1; 64]);
    let length = frame.udp(7).ipv4([10, 0, 0, 1], [10, 0, 0, 2]).emit(&mut buffer).unwrap();
    let sliced = Packet::parse_sliced(Start::Ip, &buffer[..length - 10], length, &Options::default()).0;
    assert!(sliced.sliced.is_some());
    assert_eq!(sliced.validate(Version::V1_0_3).count(), 0);
    // As a complete UET packet, these bytes break a rule.
    assert_eq!(sliced.uet.validate(Version::V1_0_3).count(), 1);
}

#[test]
fn another_protocol_is_not_judged() {
    let mut buffer = [0; 128];
    let frame =
        FrameBuilder::new(ack(NextHdr::UET_HDR_NONE)).udp_to(7, 53).ipv4([10, 0, 0, 1], [10, 0, 0, 2]);
    let length = frame.emit(&mut buffer).unwrap();
    buffer[8] = 1; // now the checksum is wrong
    let packet = Packet::parse(Start::Ip, &buffer[..length], &Options::default()).unwrap();
    assert_eq!(packet.validate(Version::V1_0_3).count(), 0);
}

#[test]
fn reserved_bits_of_the_entropy_header_are_flagged() {
    let mut buffer = [0; 128];
    let frame = FrameBuilder::new(ack(NextHdr::UET_HDR_NONE)).native(7).ipv4([10, 0, 0, 1], [10, 0, 0, 2]);
    let length = frame.emit(&mut buffer).unwrap();
    let count = |packet: &[u8]| {
        let packet = Packet::parse(Start::Ip, packet, &Options::default()).unwrap();
        packet.validate(Version::default()).filter(|finding| finding.field == "entropy").count()
    };
    assert_eq!(count(&buffer[..length]), 0);
    buffer[23] = 1;
    assert_eq!(count(&buffer[..length]), 1);
}
