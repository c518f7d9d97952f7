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
        "The NIC accepts packets with a wrong CRC",
        ROB_CRC_001,
        &[Tap::Damaged(|_| true)],
    ),
    fault(
        "believes-crc-of-short-packets",
        "The NIC checks the CRC only of packets with a payload",
        ROB_CRC_001,
        &[Tap::Damaged(|packet| packet.payload.is_empty())],
    ),
    fault(
        "crc-of-whole-words",
        "The CRC is right only if the length of the packet is a multiple of four",
        WIRE_CRC_001,
        &[Tap::Sealed(|packet| (length(packet) % 4 != 0).then_some(length(packet) * 8))],
    ),
    fault(
        "counts-crc-as-header",
        "The NIC takes the four bytes of the CRC for a part of the headers, and serves headers that are cut short",
        ROB_STATE_001,
        &[Tap::In(|wire, packet| {
            let mut bytes = packet.to_wire().to_vec();
            let read = |bytes: &[u8]| Packet::from_wire(packet.src, packet.dst, bytes.to_vec().into());
            if read(&bytes).is_ok() {
                return wire.pass(packet);
            }
            bytes.extend([0; 4]);
            match read(&bytes) {
                Ok(whole) => wire.pass(Packet { head: whole.head, payload: whole.payload, ..packet }),
                Err(_) => wire.pass(packet),
            }
        })],
    ),
];
