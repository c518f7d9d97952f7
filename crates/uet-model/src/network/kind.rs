use crate::Packet;
use uet_wire::pds::{Pds, Prologue};
use uet_wire::registry::PdsType;

/// The kind of a packet, determined from its PDS header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PacketKind {
    /// Any packet.
    #[default]
    Packet,
    /// A request of any mode, including read data.
    Request,
    /// A first transmission of a request.
    First,
    /// A retransmission of a request.
    Retransmission,
    /// An ACK, or the response to an idempotent request (RUDI).
    Ack,
    /// A NACK.
    Nack,
    /// A control packet.
    Control,
}

impl PacketKind {
    /// The kinds and their names in the text syntax.
    pub(crate) const NAMES: [(&'static str, PacketKind); 7] = [
        ("packet", PacketKind::Packet),
        ("request", PacketKind::Request),
        ("first", PacketKind::First),
        ("retransmission", PacketKind::Retransmission),
        ("ack", PacketKind::Ack),
        ("nack", PacketKind::Nack),
        ("control", PacketKind::Control),
    ];

    /// Returns the most specific kind of a packet. A request is [`First`](Self::First) or
    /// [`Retransmission`](Self::Retransmission). An unreadable packet is [`Packet`](Self::Packet).
    #[inline]
    pub fn of(packet: &Packet) -> Self {
        let kind = Prologue::parse(&packet.head).map(|(prologue, _)| prologue.kind()).unwrap_or_default();
        let Some(Ok((pds, _))) = Pds::parse_as(kind, &packet.head) else { return PacketKind::Packet };
        let retransmission = match pds {
            Pds::Request(header) => header.retx(),
            Pds::RequestCc(header) => header.request().retx(),
            Pds::Rudi(header) if kind == PdsType::RUDI_REQ => header.retx(),
            Pds::Uud(_) => false,
            Pds::Ack(_) | Pds::AckCc(_) | Pds::AckCcx(_) | Pds::Rudi(_) => return PacketKind::Ack,
            Pds::Nack(_) | Pds::NackCcx(_) => return PacketKind::Nack,
            Pds::Control(_) => return PacketKind::Control,
            _ => return PacketKind::Packet,
        };
        if retransmission { PacketKind::Retransmission } else { PacketKind::First }
    }

    /// Returns whether a packet is of this kind.
    pub fn is(self, packet: &Packet) -> bool {
        match self {
            PacketKind::Packet => true,
            PacketKind::Request => {
                matches!(PacketKind::of(packet), PacketKind::First | PacketKind::Retransmission)
            }
            kind => kind == PacketKind::of(packet),
        }
    }
}
