//! Builds packets that faults inject.

use super::fields::Fields;
use super::seen::psn;
use uet_model::{Head, Packet, Priority};
use uet_wire::registry::{CtlType, NackCode, NextHdr, ResponseOpcode, ReturnCode};
use uet_wire::ses::Response;
use uet_wire::{PdcId, Psn, UetBuf, pds};

/// Returns a PDCID of a packet.
pub(super) fn id(packet: &Packet, name: &str) -> PdcId {
    PdcId(packet.get(name).unwrap_or_default() as u16)
}

/// Builds a packet with these headers and the addresses of another packet.
fn like(packet: &Packet, uet: UetBuf) -> Packet {
    let uet = uet.consistent();
    let payload = uet.payload.clone().into();
    let headers = UetBuf { payload: Vec::new(), ..uet }.to_bytes();
    let head: Head = headers.iter().copied().take(Head::new().capacity()).collect();
    Packet { priority: Priority::High, marked: false, trimmed: None, head, payload, ..packet.clone() }
}

/// Builds a packet in the opposite direction.
fn back(packet: &Packet, uet: UetBuf) -> Packet {
    Packet { src: packet.dst, dst: packet.src, ..like(packet, uet) }
}

/// Builds an ACK for an arrived packet, from a local context, with the default response.
pub(super) fn ack(of: &Packet, own: PdcId, cack: Psn, named: Psn) -> Packet {
    back(of, ack_headers(own, id(of, "pds.spdcid"), cack, named))
}

/// Builds an ACK as if the peer had sent it with this packet.
pub(super) fn ack_beside(packet: &Packet, cack: Psn, named: Psn) -> Packet {
    like(packet, ack_headers(id(packet, "pds.spdcid"), id(packet, "pds.dpdcid"), cack, named))
}

fn ack_headers(spdcid: PdcId, dpdcid: PdcId, cack: Psn, named: Psn) -> UetBuf {
    let ack = pds::Ack::build().cack_psn(cack).ack_psn_offset(named.offset_from(cack).unwrap_or(0));
    let mut uet = UetBuf::new(ack.spdcid(spdcid).dpdcid(dpdcid).current_unchecked().copied());
    let response = Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK);
    uet.ses = Some(response.current_unchecked().copied().into());
    uet
}

/// Builds a NACK for an arrived packet.
pub(super) fn nack(of: &Packet, code: NackCode, own: PdcId) -> Packet {
    let nack = pds::Nack::build(code).nack_psn(psn(of)).spdcid(own).dpdcid(id(of, "pds.spdcid"));
    back(of, UetBuf::new(nack.current_unchecked().copied()))
}

/// Builds a control packet between the contexts of an outgoing ACK or control packet, in the same direction.
pub(super) fn control(beside: &Packet, kind: CtlType, psn: Psn, payload: u32) -> Packet {
    let control = pds::Control::build(kind).psn(psn).payload(payload);
    let control = control.spdcid(id(beside, "pds.spdcid")).dpdcid(id(beside, "pds.dpdcid"));
    like(beside, UetBuf::new(control.current_unchecked().copied()))
}

/// Builds a control packet in the opposite direction.
pub(super) fn control_back(of: &Packet, kind: CtlType, psn: Psn, payload: u32) -> Packet {
    let control = pds::Control::build(kind).psn(psn).payload(payload);
    let control = control.spdcid(id(of, "pds.dpdcid")).dpdcid(id(of, "pds.spdcid"));
    back(of, UetBuf::new(control.current_unchecked().copied()))
}

/// Replaces the SES header after the PDS header with another one or with none.
pub(super) fn replace_ses(packet: &mut Packet, next: NextHdr, header: &[u8]) {
    let Some((layout, _)) = packet.tables().first().copied() else { return };
    packet.head.truncate(layout.bytes);
    packet.set("pds.next_hdr", next.code().into());
    packet.head.extend(header.iter().copied().take(packet.head.remaining_capacity()));
}

/// Returns the bytes of the SES header.
pub(super) fn ses(packet: &Packet) -> Head {
    let start = packet.tables().first().map_or(0, |(layout, _)| layout.bytes);
    packet.head.iter().copied().skip(start).collect()
}
