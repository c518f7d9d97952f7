//! Packets that faults make up.

use super::fields::Fields;
use super::seen::psn;
use uet_model::{Head, Packet, Priority};
use uet_wire::registry::{CtlType, NackCode, NextHdr, ResponseOpcode, ReturnCode};
use uet_wire::ses::Response;
use uet_wire::{PdcId, Psn, UetBuf, pds};

/// A PDCID of a packet.
pub(super) fn id(packet: &Packet, name: &str) -> PdcId {
    PdcId(packet.get(name).unwrap_or_default() as u16)
}

/// The same way as another packet, with these headers.
fn like(packet: &Packet, uet: UetBuf) -> Packet {
    let uet = uet.consistent();
    let payload = uet.payload.clone().into();
    let headers = UetBuf { payload: Vec::new(), ..uet }.to_bytes();
    let head: Head = headers.iter().copied().take(Head::new().capacity()).collect();
    Packet { priority: Priority::High, marked: false, trimmed: None, head, payload, ..packet.clone() }
}

/// The way back.
fn back(packet: &Packet, uet: UetBuf) -> Packet {
    Packet { src: packet.dst, dst: packet.src, ..like(packet, uet) }
}

/// An ACK for a packet that has come, from a context of ours, with the default response.
pub(super) fn ack(of: &Packet, own: PdcId, cack: Psn, named: Psn) -> Packet {
    back(of, ack_headers(own, id(of, "pds.spdcid"), cack, named))
}

/// An ACK as if the peer had sent it with this packet of his.
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

/// A NACK for a packet that has come.
pub(super) fn nack(of: &Packet, code: NackCode, own: PdcId) -> Packet {
    let nack = pds::Nack::build(code).nack_psn(psn(of)).spdcid(own).dpdcid(id(of, "pds.spdcid"));
    back(of, UetBuf::new(nack.current_unchecked().copied()))
}

/// A control packet, between the same contexts as an ACK or a control packet that is to leave, and in the same direction.
pub(super) fn control(beside: &Packet, kind: CtlType, psn: Psn, payload: u32) -> Packet {
    let control = pds::Control::build(kind).psn(psn).payload(payload);
    let control = control.spdcid(id(beside, "pds.spdcid")).dpdcid(id(beside, "pds.dpdcid"));
    like(beside, UetBuf::new(control.current_unchecked().copied()))
}

/// The same in the other direction.
pub(super) fn control_back(of: &Packet, kind: CtlType, psn: Psn, payload: u32) -> Packet {
    let control = pds::Control::build(kind).psn(psn).payload(payload);
    let control = control.spdcid(id(of, "pds.dpdcid")).dpdcid(id(of, "pds.spdcid"));
    back(of, UetBuf::new(control.current_unchecked().copied()))
}

/// Another SES header, or none, in the place of the one that follows the PDS header.
pub(super) fn replace_ses(packet: &mut Packet, next: NextHdr, header: &[u8]) {
    let Some((layout, _)) = packet.tables().first().copied() else { return };
    packet.head.truncate(layout.bytes);
    packet.set("pds.next_hdr", next.code().into());
    packet.head.extend(header.iter().copied().take(packet.head.remaining_capacity()));
}

/// The bytes of the SES header.
pub(super) fn ses(packet: &Packet) -> Head {
    let start = packet.tables().first().map_or(0, |(layout, _)| layout.bytes);
    packet.head.iter().copied().skip(start).collect()
}
