//! Faults in the CRC.

use super::tap::Tap;
use super::{Fault, fault};
use uet_model::Packet;
use uet_wire::catalogue::*;

fn length(packet: &Packet) -> usize {
    packet.head.len() + packet.payload.len()
}

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "believes-any-crc",
        "A packet is taken in whether its CRC is right or not",
        ROB_CRC_001,
        &[Tap::Damaged(|_| true)],
    ),
    fault(
        "believes-crc-of-short-packets",
        "The CRC is looked at only where there is a payload",
        ROB_CRC_001,
        &[Tap::Damaged(|packet| packet.payload.is_empty())],
    ),
    fault(
        "crc-of-whole-words",
        "The CRC is right only where the length of the packet is a multiple of four",
        WIRE_CRC_001,
        &[Tap::Sealed(|packet| (length(packet) % 4 != 0).then_some(length(packet) * 8))],
    ),
];
