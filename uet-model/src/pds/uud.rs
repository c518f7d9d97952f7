//! UUD: datagrams. Nothing is promised, and nothing comes back.

use super::event::Dropped;
use super::shared::Shared;
use crate::{Head, Indication, Mode, Packet, Priority, Route, RxRequest, Ticket, TxRequest};
use uet_wire::pds::{Prologue, Uud};
use uet_wire::registry::{NextHdr, PdsType};

/// Sends a datagram.
pub(super) fn send(sh: &mut Shared, route: &Route, request: TxRequest) {
    let entropy = sh.rng.u16(..);
    let mut packet = sh.packet(route.destination, route.class, Priority::Low, entropy);
    let prologue = Prologue::of(PdsType::UUD_REQ).edit().next_hdr(request.next_hdr);
    let header = Uud::new().edit().prologue(|p| p.copy_from(&prologue.current_unchecked()));
    let _ = packet.head.try_extend_from_slice(header.current_unchecked().bytes());
    let _ = packet.head.try_extend_from_slice(&request.head);
    packet.payload = request.payload;
    sh.answer(packet);
}

/// `PDS-UUD-001`: a datagram is delivered and never answered, whole or trimmed.
pub(super) fn receive(sh: &mut Shared, packet: Packet, next_hdr: NextHdr, head: Head) {
    if packet.trimmed.is_some() {
        return sh.drop_packet(Dropped::Trimmed);
    }
    // The upper layer answers none, so that nothing else bounds what waits for it.
    if sh.indications.len() >= sh.params.rx_packets as usize {
        return sh.drop_packet(Dropped::NoRoom);
    }
    sh.indications.push_back(Indication::Request(RxRequest {
        ticket: Ticket::Uud,
        from: packet.src,
        class: packet.class,
        mode: Mode::Uud,
        next_hdr,
        head,
        payload: packet.payload,
    }));
}
