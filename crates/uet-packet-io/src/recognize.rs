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

#[cfg(test)]
mod tests {
    use super::*;
    use uet_wire::pds::Request;
    use uet_wire::{FrameBuilder, Options, Psn, Start};

    /// Builds a packet from this host: with a right CRC, with a wrong one, or without any.
    fn frame(host: u8, crc: Option<bool>) -> Vec<u8> {
        let request = Request::rud().psn(Psn(5)).done().unwrap();
        let mut bytes = vec![0; 256];
        let frame = FrameBuilder::new(request).udp(7).ipv4([10, 0, 0, host], [10, 0, 1, 1]);
        let frame = if crc.is_some() { frame.crc() } else { frame };
        let length = frame.emit(&mut bytes).unwrap();
        bytes.truncate(length);
        if crc == Some(false) {
            bytes[length - 1] ^= 1;
        }
        bytes
    }

    /// Returns the trailer of a packet of which this many bytes are captured.
    fn captured(recognizer: &mut Recognizer, bytes: &[u8], captured: usize) -> TrailerKind {
        let parse = |kind| {
            let options = Options::default().trailer(kind);
            Packet::parse_sliced(Start::Ip, &bytes[..captured], bytes.len(), &options).0
        };
        recognizer.trailer(&parse(TrailerKind::None), parse)
    }

    fn trailer(recognizer: &mut Recognizer, bytes: &[u8]) -> TrailerKind {
        captured(recognizer, bytes, bytes.len())
    }

    #[test]
    fn two_right_crcs_make_a_sender_known() {
        let mut recognizer = Recognizer::default();
        let (right, wrong) = (frame(1, Some(true)), frame(1, Some(false)));
        assert_eq!(trailer(&mut recognizer, &wrong), TrailerKind::None);
        assert_eq!(trailer(&mut recognizer, &right), TrailerKind::Crc);
        assert_eq!(trailer(&mut recognizer, &wrong), TrailerKind::None, "one may be chance");
        assert_eq!(trailer(&mut recognizer, &right), TrailerKind::Crc);
        assert_eq!(trailer(&mut recognizer, &wrong), TrailerKind::Crc, "so its CRC is an error");
        assert_eq!(trailer(&mut recognizer, &frame(2, Some(false))), TrailerKind::None, "another sender");
        assert_eq!(trailer(&mut recognizer, &frame(2, None)), TrailerKind::None);
    }

    #[test]
    fn sliced_packet_proves_nothing() {
        let mut recognizer = Recognizer::default();
        let right = frame(1, Some(true));
        for _ in 0..3 {
            assert_eq!(captured(&mut recognizer, &right, right.len() - 4), TrailerKind::None);
        }
        assert!(recognizer.right.is_empty());
    }

    #[test]
    fn memory_is_bounded() {
        let mut recognizer = Recognizer::default();
        for sender in 0..=SENDERS as u32 {
            let address = IpAddr::from([11, (sender >> 16) as u8, (sender >> 8) as u8, sender as u8]);
            if recognizer.right.len() < SENDERS {
                recognizer.right.insert((address, 4793), 1);
            }
        }
        let right = frame(1, Some(true));
        assert_eq!(trailer(&mut recognizer, &right), TrailerKind::Crc);
        assert_eq!(recognizer.right.len(), SENDERS);
    }
}
