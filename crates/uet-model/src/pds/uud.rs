//! UUD: unreliable datagrams.

use super::event::Dropped;
use super::protect::SecureContext;
use super::shared::Shared;
use crate::packet::Unbuildable;
use crate::{Head, Indication, Mode, Packet, Priority, Route, RxRequest, Ticket, TxRequest};
use uet_wire::pds::Uud;
use uet_wire::registry::NextHdr;

/// Sends a datagram.
pub(super) fn send(shared: &mut Shared, route: &Route, security: Option<SecureContext>, request: TxRequest) {
    let entropy = shared.rng.u16(..);
    let packet = shared.packet((route.destination, security), route.class, Priority::Low, entropy);
    shared.answer(build(packet, request));
}

fn build(mut packet: Packet, request: TxRequest) -> Result<Packet, Unbuildable> {
    let header = Uud::new().edit().prologue(|p| p.next_hdr(request.next_hdr)).done()?;
    packet.head.try_extend_from_slice(header.bytes())?;
    packet.head.try_extend_from_slice(&request.head)?;
    packet.payload = request.payload;
    Ok(packet)
}

/// `PDS-UUD-001`: delivers a datagram, and never replies to it, trimmed or not.
pub(super) fn receive(shared: &mut Shared, packet: Packet, next_hdr: NextHdr, head: Head) {
    if packet.trimmed.is_some() {
        return shared.drop_packet(Dropped::Trimmed);
    }
    // SES sends no replies to datagrams, so nothing else bounds this queue.
    if shared.indications.len() >= shared.params.rx_packets as usize {
        return shared.drop_packet(Dropped::NoRoom);
    }
    shared.indications.push_back(Indication::Request(RxRequest {
        ticket: Ticket::Uud,
        from: packet.src,
        class: packet.class,
        mode: Mode::Uud,
        confirmed: false,
        next_hdr,
        head,
        payload: packet.payload,
    }));
}
