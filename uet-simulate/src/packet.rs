//! A packet on its way through the fabric.

use uet_model::{Packet, Priority, TrimPoint};
use uet_wire::pds::{Pds, Prologue};

/// Where a packet is kept.
pub(crate) type Key = u32;

/// A packet on its way.
#[derive(Debug)]
pub(crate) struct Flying {
    pub(crate) packet: Packet,
    /// What it takes of a link: its nominal size, until it is trimmed.
    pub(crate) size: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Whether it is a retransmission.
    pub(crate) again: bool,
    /// Whether it was first sent on credit that was granted.
    pub(crate) granted: bool,
}

/// Bytes before UDP that a packet takes of a link, as the nominal size counts them.
const OUTER: usize = 40;
const UDP: usize = 8;

/// What a packet takes of a link.
pub(crate) fn size(packet: &Packet) -> u32 {
    (OUTER + UDP + packet.head.len() + packet.payload.len()) as u32
}

impl Flying {
    /// What a switch leaves of a packet: so many bytes behind the IP header. Only requests are trimmed, and of these 16 bytes of
    /// PDS header are left at least.
    pub(crate) fn trim(&mut self, bytes: u16, place: TrimPoint) {
        let packet = &mut self.packet;
        packet.head.truncate(usize::from(bytes).saturating_sub(UDP));
        packet.payload.clear();
        packet.priority = Priority::Medium;
        packet.trimmed = Some(place);
        self.size = size(packet);
    }
}

/// What a packet is, as its headers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Request { again: bool },
    Ack,
    Nack,
    Control,
}

impl Kind {
    pub(crate) fn of(packet: &Packet) -> Self {
        let kind = Prologue::parse(&packet.head).map(|(prologue, _)| prologue.kind()).unwrap_or_default();
        match Pds::parse_as(kind, &packet.head) {
            Some(Ok((Pds::Ack(_) | Pds::AckCc(_) | Pds::AckCcx(_), _))) => Kind::Ack,
            Some(Ok((Pds::Nack(_) | Pds::NackCcx(_), _))) => Kind::Nack,
            Some(Ok((Pds::Request(request), _))) => Kind::Request { again: request.retx() },
            Some(Ok((Pds::RequestCc(request), _))) => Kind::Request { again: request.request().retx() },
            _ => Kind::Control,
        }
    }
}
