//! The CRC trailer.

use crate::Input;
use uet_wire::outer::Ip;
use uet_wire::{Packet, TrailerKind, crc};

pub(super) fn run(data: &[u8]) {
    let Some(input) = Input::split(data) else { return };
    assert_eq!(crc::crc32c(input.bytes), by_division(input.bytes));

    let version = input.bytes.first().map(|byte| byte >> 4);
    let begins = matches!((version, input.bytes.len()), (Some(4), 12..) | (Some(6), 8..));
    assert_eq!(crc::over_ip_packet(input.bytes).is_some(), begins);
    let roomy = &mut [input.bytes, &[0; 4]].concat();
    assert_eq!(crc::append(roomy, 0, input.bytes.len()).is_ok(), begins);

    let input = Input { options: input.options.trailer(TrailerKind::Crc), ..input };
    let packet = input.packet();
    let Some(check) = packet.crc_check() else { return };
    let covered = &packet.ip_packet[..packet.ip_packet.len() - packet.trailer.len()];
    // A UDP checksum may count as 0.
    assert!(check.ok() || crc::over_ip_packet(covered) == Some(check.expected));

    // A recomputed CRC is correct. It then detects a flip of any covered bit, and of no bit that a switch may change.
    let offsets = packet.offsets();
    let (src, ttl, class) = match packet.ip {
        Some(Ip::V4 { .. }) => (12, 8, 1),
        Some(Ip::V6 { .. }) => (8, 7, 1),
        None => panic!("a CRC is checked only over an IP packet"),
    };
    let ip = offsets.ip.expect("it has an IP header");
    let mut bytes = input.bytes.to_vec();
    assert_eq!(crc::append(&mut bytes, ip, offsets.trailer), Ok(offsets.padding));
    assert!(is_right(&bytes, &input));
    for place in [ttl, class] {
        let mut changed = bytes.clone();
        changed[ip + place] ^= 0x03;
        assert!(is_right(&changed, &input));
    }
    let covered = ip + src..offsets.transport.unwrap_or(0).max(ip + src);
    let chosen = usize::from(data[1]) * 31 % covered.len().max(1);
    bytes[covered.start + chosen] ^= 1 << (data[0] & 7);
    assert!(!is_right(&bytes, &input));
}

fn is_right(bytes: &[u8], input: &Input<'_>) -> bool {
    // Ignore traffic classes: a trimmed packet might have no trailer.
    let options = input.options.trimmed_dscp(None).trimmed_lasthop_dscp(None);
    let packet = Packet::parse_sliced(input.start, bytes, input.wire, &options).0;
    packet.crc_check().is_some_and(|check| check.ok())
}

/// Computes CRC-32C by definition: polynomial division, bit by bit.
fn by_division(bytes: &[u8]) -> u32 {
    let divided = bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 })
    });
    !divided
}

