//! Faults in credit.

use super::fields::{Fields, Kinds};
use super::tap::{Tap, Wire};
use super::{Fault, fault};
use crate::config::Congestion;
use uet_model::Packet;
use uet_wire::catalogue::*;
use uet_wire::registry::{CtlType, PdsType};

const UNITS: u64 = 0xff_ffff;

/// Changes the credit that a packet grants, if any; `change` gets the value that this fault last stored for the peer.
fn change(wire: &mut Wire<'_>, packet: &mut Packet, change: impl FnOnce(u64, u64) -> (u64, u64)) {
    let field = match packet.get("pds.credit") {
        Some(_) => "pds.credit",
        None if packet.is_control(CtlType::CREDIT) => "pds.payload",
        None => return,
    };
    let (peer, key) = (packet.dst, packet.get("pds.dpdcid").unwrap_or_default());
    let credit = packet.get(field).unwrap_or_default() & UNITS;
    let (credit, noted) = change(credit, wire.memo.get(peer, key).unwrap_or_default());
    wire.memo.set(peer, key, noted);
    packet.set(field, credit & UNITS);
}

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "runs-one-of-both",
        "If both NSCC and receiver credit are configured, only NSCC runs",
        RCCC_TYPE_001,
        &[Tap::Config(|config| {
            if config.congestion == Congestion::Both {
                config.congestion = Congestion::Nscc;
            }
        })],
    ),
    fault(
        "grants-the-difference",
        "A grant carries the credit since the last grant, not the cumulative credit",
        RCCC_COUNT_001,
        &[Tap::EditOut(|wire, packet| {
            change(wire, packet, |credit, before| (credit.wrapping_sub(before), credit));
        })],
    ),
    fault(
        "grants-in-bytes",
        "credit counts bytes, not units of 256",
        RCCC_COUNT_001,
        &[Tap::EditOut(|wire, packet| {
            change(wire, packet, |credit, _| (credit << 8, 0));
        })],
    ),
    fault(
        "wraps-credit-early",
        "credit wraps at 2^10 units, not at 2^24",
        RCCC_COUNT_001,
        &[Tap::EditOut(|wire, packet| {
            change(wire, packet, |credit, _| (credit & 0x3ff, 0));
        })],
    ),
    fault(
        "ignores-credit-request",
        "The NIC drops CREDIT_REQUEST",
        RCCC_GRANT_001,
        &[Tap::In(|wire, packet| {
            if !packet.is_control(CtlType::CREDIT_REQUEST) {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "ignores-carried-demand",
        "A destination ignores credit_target in requests",
        RCCC_GRANT_001,
        &[Tap::EditIn(|_, packet| packet.set("pds.credit_target", 0))],
    ),
    fault(
        "ignores-trimmed-demand",
        "A destination ignores credit_target in trimmed requests",
        RCCC_TRIM_001,
        &[Tap::EditIn(|_, packet| {
            if packet.trimmed.is_some() {
                packet.set("pds.credit_target", 0);
            }
        })],
    ),
    fault(
        "takes-old-demand",
        "A destination takes an outdated credit_target for a wrapped one",
        RCCC_COUNT_002,
        &[Tap::EditIn(|wire, packet| {
            if let (Some(target), Some(peer)) = (packet.get("pds.credit_target"), packet.get("pds.spdcid")) {
                let before = wire.memo.get(packet.src, peer).unwrap_or_default();
                wire.memo.set(packet.src, peer, target.max(before));
                packet.set("pds.credit_target", if target < before { before + 0x7f_ffff } else { target });
            }
        })],
    ),
    fault(
        "sends-without-credit",
        "A source sends without credit",
        RCCC_CREDIT_001,
        &[
            Tap::Config(|config| config.network.sender_rate = config.network.sender_rate.saturating_mul(100)),
            Tap::EditIn(|wire, packet| {
                change(wire, packet, |credit, _| (credit + (1 << 20), 0));
            }),
        ],
    ),
    fault(
        "adds-grants-up",
        "A source adds the full value of each grant instead of the increase since the last one",
        RCCC_COUNT_001,
        &[Tap::EditIn(|wire, packet| {
            change(wire, packet, |credit, sum| (credit + sum, credit + sum));
        })],
    ),
    fault(
        "takes-old-credit",
        "A source takes an outdated grant for a wrapped one",
        RCCC_COUNT_002,
        &[Tap::EditIn(|wire, packet| {
            change(wire, packet, |credit, highest| {
                let believed = if credit < highest { highest + 0x7f_ffff } else { credit };
                (believed, credit.max(highest))
            });
        })],
    ),
    fault(
        "demands-the-difference",
        "credit_target carries only the demand beyond the available credit, not the cumulative demand",
        RCCC_COUNT_001,
        &[
            Tap::EditIn(|wire, packet| {
                change(wire, packet, |credit, _| (credit, credit));
            }),
            Tap::EditOut(|wire, packet| {
                // Granted credit is stored under the local address and PDCID.
                let granted = packet.get("pds.spdcid").and_then(|own| wire.memo.get(packet.src, own));
                packet.change("pds.credit_target", |target| target.wrapping_sub(granted.unwrap_or_default()));
            }),
        ],
    ),
    fault(
        "carries-no-demand",
        "Requests have the types without congestion state",
        RCCC_TYPE_001,
        &[Tap::EditOut(|_, packet| {
            let plain = match packet.kind() {
                PdsType::RUD_CC_REQ => Some(PdsType::RUD_REQ),
                PdsType::ROD_CC_REQ => Some(PdsType::ROD_REQ),
                _ => None,
            };
            if let Some(kind) = plain {
                packet.set("pds.type", kind.code().into());
                packet.head =
                    packet.head.iter().take(12).chain(packet.head.iter().skip(16)).copied().collect();
            }
        })],
    ),
    fault(
        "grants-beyond-demand",
        "A destination grants a source 256 MiB more than its demand",
        RCCC_COUNT_001,
        &[Tap::EditIn(|_, packet| {
            packet.change("pds.credit_target", |target| (target + (1 << 20)) & 0xff_ffff)
        })],
    ),
];
