//! Credit.

use super::fields::{Fields, Kinds};
use super::tap::Tap;
use super::{Area, Fault};
use uet_model::Packet;
use uet_wire::registry::CtlType;

const fn fault(name: &'static str, sentence: &'static str, taps: &'static [Tap]) -> Fault {
    Fault { name, sentence, area: Area::Rccc, taps }
}

/// The field that grants credit in this packet.
fn granting(packet: &Packet) -> Option<&'static str> {
    match packet.get("pds.credit") {
        Some(_) => Some("pds.credit"),
        None => packet.is_control(CtlType::CREDIT).then_some("pds.payload"),
    }
}

pub(super) const FAULTS: &[Fault] = &[fault(
    "grants-the-difference",
    "A grant tells the credit since the last one, not all of it",
    &[Tap::Out(|wire, mut packet| {
        if let Some(field) = granting(&packet) {
            let peer = packet.get("pds.dpdcid").unwrap_or_default();
            let credit = packet.get(field).unwrap_or_default();
            let before = wire.memo.set(packet.dst, peer, credit).unwrap_or_default();
            packet.set(field, credit.wrapping_sub(before) & 0xff_ffff);
        }
        wire.pass(packet);
    })],
)];
