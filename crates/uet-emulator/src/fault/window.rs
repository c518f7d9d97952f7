//! Faults in the windows of packet delivery.

use super::fields::{Fields, Kinds};
use super::forge::{self, id};
use super::seen::{psn, start};
use super::tap::Tap;
use super::{Fault, fault};
use uet_wire::Psn;
use uet_wire::catalogue::*;
use uet_wire::registry::NackCode;

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "compares-psns-plainly",
        "The NIC compares PSNs as plain numbers, and drops one that has wrapped as old",
        PDS_PSN_006,
        &[Tap::In(|wire, packet| {
            let spdcid = packet.get("pds.spdcid").unwrap_or_default();
            let first = wire.seen.start(packet.src, spdcid).or(start(&packet));
            let wrapped = first.is_some_and(|first| psn(&packet).0 < first.0);
            if !(packet.is_request() && wrapped) {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "closes-window-one-early",
        "The NIC refuses the last PSN of the receive window: it ends at CACK_PSN + MP_RANGE - 1",
        PDS_WIN_001,
        &[Tap::In(|wire, packet| {
            let spdcid = packet.get("pds.spdcid").unwrap_or_default();
            let edge =
                wire.seen.answers(packet.src, spdcid).find(|ack| ack.isnt("pds.mpr", 0)).and_then(|ack| {
                    let cack = Psn(ack.get("pds.cack_psn")? as u32);
                    Some((cack + 128 * ack.get("pds.mpr")? as u32, id(ack, "pds.spdcid")))
                });
            match edge {
                Some((edge, own)) if packet.is_request() && psn(&packet) == edge => {
                    wire.send(forge::nack(&packet, NackCode::PSN_OOR_WINDOW, own));
                }
                _ => wire.pass(packet),
            }
        })],
    ),
    fault(
        "counts-mpr-from-one",
        "A source reads mpr as one more, and sends 128 PSNs beyond the permitted range",
        PDS_WIN_004,
        &[
            Tap::Config(|config| config.pds.default_mpr = config.pds.default_mpr.saturating_add(1)),
            Tap::EditIn(|_, packet| {
                packet.change("pds.mpr", |mpr| if mpr == 0 { 0 } else { (mpr + 1).min(255) })
            }),
        ],
    ),
    fault(
        "ignores-smaller-mpr",
        "An mpr below the default does not shrink the window",
        PDS_WIN_004,
        &[Tap::EditIn(|_, packet| packet.change("pds.mpr", |mpr| if mpr == 0 { 0 } else { mpr.max(8) }))],
    ),
    fault(
        "takes-old-mpr",
        "A source uses the mpr of an outdated ACK",
        PDS_WIN_002,
        &[Tap::EditIn(|wire, packet| {
            let own = packet.get("pds.dpdcid").unwrap_or_default();
            let highest = wire.seen.acked(packet.src, own);
            if let (Some(_), Some(highest), Some(cack)) =
                (packet.get("pds.mpr"), highest, packet.get("pds.cack_psn"))
            {
                if highest.is_after(Psn(cack as u32)) {
                    packet.set("pds.cack_psn", highest.0.into());
                    packet.set("pds.ack_psn_offset", 0);
                    packet.set("pds.sack_bitmap", 0);
                }
            }
        })],
    ),
    fault(
        "takes-no-limit-for-nothing",
        "A source takes mpr = 0 for an empty window and stops",
        PDS_WIN_005,
        &[
            Tap::In(|wire, packet| {
                if let (Some(mpr), Some(own)) = (packet.get("pds.mpr"), packet.get("pds.dpdcid")) {
                    wire.memo.set(packet.src, own, mpr);
                }
                wire.pass(packet);
            }),
            Tap::Out(|wire, packet| {
                let mpr = packet.get("pds.spdcid").and_then(|own| wire.memo.get(packet.dst, own));
                if !(packet.is_request() && mpr == Some(0)) {
                    wire.pass(packet);
                }
            }),
        ],
    ),
    fault(
        "refuses-lowest-duplicate",
        "A PSN that lies MP_RANGE below CACK_PSN is refused as outside the window",
        PDS_DUP_004,
        &[Tap::In(|wire, packet| {
            let spdcid = packet.get("pds.spdcid").unwrap_or_default();
            let ack = wire.seen.answers(packet.src, spdcid).find(|ack| ack.get("pds.cack_psn").is_some());
            let lowest = ack.and_then(|ack| ack.get("pds.cack_psn")).map(|cack| Psn(cack as u32) - 1024);
            match ack.filter(|_| packet.is_request() && lowest == Some(psn(&packet))) {
                Some(ack) => wire.send(forge::nack(&packet, NackCode::PSN_OOR_WINDOW, id(ack, "pds.spdcid"))),
                None => wire.pass(packet),
            }
        })],
    ),
];
