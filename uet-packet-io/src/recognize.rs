//! Recognizes the trailers of packets, which no field announces.

use core::net::IpAddr;
use std::collections::HashMap;
use uet_wire::{Packet, TrailerKind};

/// Number of right CRCs after which a sender is known to append one.
const ENOUGH: u8 = 2;

/// Maximum number of senders. Further ones are judged packet by packet.
const SENDERS: usize = 1 << 16;

/// Recognizes CRC trailers. Four last bytes that are a right CRC are a trailer. After two such packets of a sender, all
/// its packets have one, so that a wrong CRC is an error.
#[derive(Debug, Default)]
pub(crate) struct Recognizer {
    /// The number of right CRCs of each sender, by source address and UDP destination port.
    right: HashMap<(IpAddr, u16), u8>,
}

impl Recognizer {
    /// Returns the trailer of a packet that was parsed without one. `parse` parses it with another.
    pub(crate) fn trailer<'a>(
        &mut self,
        packet: &Packet<'a>,
        parse: impl FnOnce(TrailerKind) -> Packet<'a>,
    ) -> TrailerKind {
        if packet.uet.tss.is_some() {
            return TrailerKind::Icv;
        }
        let Some(ip) = packet.ip.filter(|_| packet.uet.pds.is_some()) else { return TrailerKind::None };
        let sender = (ip.src(), packet.udp.map_or(0, |udp| udp.dst_port()));
        let known = self.right.get(&sender).copied().unwrap_or(0);
        if known >= ENOUGH {
            return TrailerKind::Crc;
        }
        // The capture or a switch took the trailer away.
        if packet.sliced.is_some() || packet.trimmed.is_some() {
            return TrailerKind::None;
        }
        if !parse(TrailerKind::Crc).crc_check().is_some_and(|check| check.ok()) {
            return TrailerKind::None;
        }
        if self.right.len() < SENDERS || known > 0 {
            self.right.insert(sender, known + 1);
        }
        TrailerKind::Crc
    }
}
