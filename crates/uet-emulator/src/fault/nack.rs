//! Faults in sending and handling NACKs.

use super::fields::{Fields, Kinds};
use super::forge::{self, id};
use super::seen::{named, psn};
use super::tap::{Tap, Wire};
use super::{Fault, fault};
use core::time::Duration;
use uet_model::Packet;
use uet_wire::catalogue::*;
use uet_wire::registry::{NackClass, NackCode, PdsType};
use uet_wire::{PdcId, Psn};

fn code(packet: &Packet) -> Option<NackCode> {
    packet.get("pds.nack_code").and_then(|code| NackCode::new(code as u8))
}

fn class(packet: &Packet) -> Option<NackClass> {
    code(packet)?.class()
}

/// Confuses a NACK of one code with one of another.
fn mistake(packet: &mut Packet, codes: &[NackCode], other: NackCode) {
    if code(packet).is_some_and(|code| codes.contains(&code)) {
        packet.set("pds.nack_code", other.code().into());
    }
}

/// Returns the PDCID of a local context, from packets sent to its peer.
fn own(wire: &Wire<'_>, packet: &Packet) -> Option<PdcId> {
    let peer = packet.get("pds.spdcid")?;
    wire.seen.answers(packet.src, peer).map(|sent| id(sent, "pds.spdcid")).find(|id| id.is_valid())
}

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "answers-nacks",
        "The NIC answers a NACK with a NACK of the same code",
        PDS_NACK_010,
        &[Tap::In(|wire, packet| {
            if let (true, Some(code)) = (packet.is_nack(), code(&packet)) {
                let mut answer = forge::nack(&packet, code, id(&packet, "pds.dpdcid"));
                answer.set("pds.nack_psn", packet.get("pds.nack_psn").unwrap_or_default());
                wire.send(answer);
            }
            wire.pass(packet);
        })],
    ),
    fault(
        "forgets-retx-in-nack",
        "A NACK has retx = 0, even if it answers a retransmission",
        PDS_NACK_001,
        &[Tap::EditOut(|_, packet| {
            if packet.is_nack() {
                packet.set("pds.flags.retx", 0);
            }
        })],
    ),
    fault(
        "forgets-mark-in-nack",
        "A NACK has m = 0, even if the request arrived marked",
        PDS_NACK_001,
        &[Tap::EditOut(|_, packet| {
            if packet.is_nack() {
                packet.set("pds.flags.m", 0);
            }
        })],
    ),
    fault(
        "acts-on-any-nack",
        "A NACK of a PSN that is not outstanding makes the source retransmit the first outstanding packet",
        PDS_NACK_002,
        &[Tap::EditIn(|wire, packet| {
            let own = packet.get("pds.dpdcid").unwrap_or_default();
            let refused = named(packet).filter(|_| packet.is_nack());
            if let (Some(refused), Some(highest)) = (refused, wire.seen.highest_sent(packet.src, own)) {
                let acked = wire.seen.acked(packet.src, own).unwrap_or(highest - 1);
                if refused.is_after(highest) || !refused.is_after(acked) {
                    packet.set("pds.nack_psn", (acked + 1).0.into());
                }
            }
        })],
    ),
    fault(
        "ignores-nacks",
        "A source ignores NACKs of the normal class and waits for the timeout",
        PDS_NACK_004,
        &[Tap::In(|wire, packet| {
            if class(&packet) != Some(NackClass::Normal) {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "retransmits-at-once",
        "A source retransmits a packet at once after a NACK, without waiting for NACK_Retx_Time",
        PDS_NACK_006,
        &[Tap::Config(|config| config.pds.nack_retx_time = Duration::ZERO)],
    ),
    fault(
        "gives-up-at-first-nack",
        "A source gives up a packet after its first NACK instead of retransmitting it",
        PDS_NACK_004,
        &[Tap::Config(|config| config.pds.max_nack_retx_cnt = 0)],
    ),
    fault(
        "retransmits-all-after-nack",
        "A NACK on an unordered context makes the source retransmit all outstanding packets, as on an ordered one",
        PDS_NACK_004,
        &[Tap::In(|wire, packet| {
            let own = packet.get("pds.dpdcid").unwrap_or_default();
            let refused = named(&packet).filter(|_| class(&packet) == Some(NackClass::Normal));
            if let (Some(refused), Some(highest)) = (refused, wire.seen.highest_sent(packet.src, own)) {
                let acked = wire.seen.acked(packet.src, own).unwrap_or(refused - 1);
                let outstanding = (1..=highest - acked).take(1024).map(|n| acked + n);
                for psn in outstanding.filter(|psn| *psn != refused) {
                    let mut other = packet.clone();
                    other.set("pds.nack_psn", psn.0.into());
                    wire.hand(other);
                }
            }
            wire.pass(packet);
        })],
    ),
    fault(
        "retries-on-same-context",
        "After a NACK that is fatal to the context, the source retransmits its packets on the same context",
        PDS_NACK_003,
        &[Tap::EditIn(|_, packet| {
            let fatal = [
                NackCode::INV_DPDCID,
                NackCode::PDC_HDR_MISMATCH,
                NackCode::CLOSING,
                NackCode::INVALID_SYN,
                NackCode::PDC_MODE_MISMATCH,
                NackCode::UNEXP_EVENT,
            ];
            mistake(packet, &fatal, NackCode::NO_RESOURCE);
        })],
    ),
    fault(
        "retries-after-closing-in-error",
        "After CLOSING_IN_ERR, the source retries the operation on the same context",
        PDS_NACK_013,
        &[Tap::EditIn(|_, packet| mistake(packet, &[NackCode::CLOSING_IN_ERR], NackCode::NO_RESOURCE))],
    ),
    fault(
        "retries-lost-response",
        "After GTD_RESP_UNAVAIL, the source retransmits the request",
        PDS_NACK_014,
        &[Tap::EditIn(|_, packet| mistake(packet, &[NackCode::GTD_RESP_UNAVAIL], NackCode::PKT_NOT_RCVD))],
    ),
    fault(
        "waits-after-trim",
        "A source waits for NACK_Retx_Time before it retransmits a trimmed packet",
        PDS_NACK_007,
        &[Tap::EditIn(|_, packet| {
            mistake(packet, &[NackCode::TRIMMED, NackCode::TRIMMED_LASTHOP], NackCode::NO_PKT_BUFFER);
        })],
    ),
    fault(
        "takes-processing-for-answer",
        "After RCVD_SES_PROCG, the source treats the request as answered",
        PDS_NACK_012,
        &[Tap::In(|wire, packet| match (code(&packet), named(&packet)) {
            (Some(NackCode::RCVD_SES_PROCG), Some(psn)) => {
                let own = packet.get("pds.dpdcid").unwrap_or_default();
                let acked = wire.seen.acked(packet.src, own).unwrap_or(psn - 1);
                wire.pass(forge::ack_beside(&packet, acked, psn));
            }
            _ => wire.pass(packet),
        })],
    ),
    fault(
        "counts-refused-as-received",
        "The retransmission of a packet refused for lack of a resource counts as a duplicate",
        PDS_NACK_011,
        &[Tap::In(|wire, packet| {
            let peer = packet.get("pds.spdcid").unwrap_or_default();
            let refusals = wire.seen.answers(packet.src, peer).filter(|sent| sent.is_nack());
            let resource = [
                NackCode::NO_PKT_BUFFER,
                NackCode::NO_GTD_DEL_AVAIL,
                NackCode::NO_SES_MSG_AVAIL,
                NackCode::NO_RESOURCE,
            ];
            let mut refusals =
                refusals.filter(|nack| code(nack).is_some_and(|code| resource.contains(&code)));
            let refused = refusals.any(|nack| named(nack) == Some(psn(&packet)));
            match own(wire, &packet).filter(|_| refused && packet.is_request()) {
                Some(own) => wire.send(forge::ack(&packet, own, psn(&packet), psn(&packet))),
                None => wire.pass(packet),
            }
        })],
    ),
    fault(
        "delivers-trimmed",
        "The NIC takes a trimmed request for a whole one",
        PDS_TRIM_002,
        &[Tap::EditIn(|_, packet| {
            if packet.is_request() {
                packet.trimmed = None;
            }
        })],
    ),
    fault(
        "drops-trimmed",
        "The NIC drops a trimmed request without a NACK",
        PDS_TRIM_001,
        &[Tap::In(|wire, packet| {
            if packet.trimmed.is_none() {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "forgets-last-hop",
        "The NACK of a packet trimmed at the last hop has the code TRIMMED",
        PDS_TRIM_001,
        &[Tap::EditOut(|_, packet| mistake(packet, &[NackCode::TRIMMED_LASTHOP], NackCode::TRIMMED))],
    ),
    fault(
        "believes-trimmed-answers",
        "The NIC takes a trimmed ACK, NACK or control packet for a whole one",
        PDS_TRIM_005,
        &[Tap::EditIn(|_, packet| {
            if !packet.is_request() {
                packet.trimmed = None;
            }
        })],
    ),
    fault(
        "reports-gap-each-time",
        "The NIC answers ROD_OOO to every packet above a gap of an ordered context",
        PDS_ROD_002,
        &[Tap::In(|wire, packet| {
            let spdcid = packet.get("pds.spdcid").unwrap_or_default();
            let first = wire.seen.start(packet.src, spdcid).filter(|_| packet.is_rod());
            let (Some(first), Some(own)) = (first, own(wire, &packet)) else { return wire.pass(packet) };
            let expected = Psn(wire.memo.get(packet.src, spdcid).unwrap_or((first + 1).0.into()) as u32);
            if psn(&packet) == expected {
                wire.memo.set(packet.src, spdcid, (expected + 1).0.into());
            }
            match psn(&packet).is_after(expected) {
                true => wire.send(forge::nack(&packet, NackCode::ROD_OOO, own)),
                false => wire.pass(packet),
            }
        })],
    ),
    fault(
        "names-missing-psn",
        "ROD_OOO names the missing PSN instead of the PSN that arrived",
        PDS_ROD_002,
        &[Tap::EditOut(|_, packet| {
            if code(packet) == Some(NackCode::ROD_OOO) {
                let missing = packet.get("pds.payload").unwrap_or_default();
                packet.set("pds.nack_psn", missing);
            }
        })],
    ),
    fault(
        "takes-out-of-order",
        "An ordered context accepts packets out of order",
        PDS_ROD_001,
        &[Tap::EditIn(|_, packet| match packet.kind() {
            PdsType::ROD_REQ => packet.set("pds.type", PdsType::RUD_REQ.code().into()),
            PdsType::ROD_CC_REQ => packet.set("pds.type", PdsType::RUD_CC_REQ.code().into()),
            _ => {}
        })],
    ),
    fault(
        "retransmits-only-the-missing",
        "After a gap, the source of an ordered context retransmits only the missing packet",
        PDS_ROD_004,
        &[Tap::Out(|wire, packet| {
            let own = packet.get("pds.spdcid").unwrap_or_default();
            let acked = wire.seen.acked(packet.dst, own);
            let other = acked.is_some_and(|acked| psn(&packet) != acked + 1);
            if !(packet.is_rod() && packet.is("pds.flags.retx", 1) && other) {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "refuses-rudi-as-rud",
        "The NACK of a RUDI request has nt = 0",
        PDS_NACK_008,
        &[Tap::EditOut(|_, packet| {
            if packet.is_nack() {
                packet.set("pds.flags.nt", 0);
            }
        })],
    ),
    fault(
        "refuses-strange-responses",
        "The NIC answers an unexpected RUDI_RESP with a NACK",
        PDS_NACK_010,
        &[Tap::In(|wire, packet| {
            if packet.kind() == PdsType::RUDI_RESP {
                wire.send(forge::nack(&packet, NackCode::INV_DPDCID, PdcId::NONE));
            }
            wire.pass(packet);
        })],
    ),
    fault(
        "takes-nacks-of-others",
        "A NACK counts for the context of its dpdcid, whoever sent it",
        PDS_PDC_003,
        &[Tap::EditIn(|wire, packet| {
            if packet.is_nack() {
                super::ack::from_peer(wire.seen, packet);
            }
        })],
    ),
    fault(
        "ignores-spdcid-of-nacks",
        "spdcid of a NACK is not compared with that of the context's target",
        PDS_PDC_003,
        &[Tap::EditIn(|wire, packet| {
            let own = packet.get("pds.dpdcid").unwrap_or_default();
            let ours = wire.seen.is_ours(packet.src, own);
            if packet.is_nack() && ours && packet.isnt("pds.spdcid", 0) {
                super::ack::from_peer(wire.seen, packet);
            }
        })],
    ),
    fault(
        "drops-extended-nacks",
        "A NACK_CCX is dropped",
        PDS_NACK_004,
        &[Tap::In(|wire, packet| {
            if packet.kind() != PdsType::NACK_CCX {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "ignores-nacks-after-sack",
        "PKT_NOT_RCVD and ACK_WITH_DATA in answer to ACK_REQUEST have nothing sent again",
        PDS_NACK_015,
        &[Tap::In(|wire, packet| {
            let ignored = [NackCode::PKT_NOT_RCVD, NackCode::ACK_WITH_DATA];
            if !code(&packet).is_some_and(|code| ignored.contains(&code)) {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "reports-one-gap",
        "While the gap of one ordered context is open, the NIC does not report that of another",
        PDS_ROD_002,
        &[Tap::Out(|wire, packet| {
            let context = packet.get("pds.spdcid").unwrap_or_default();
            let open = wire.memo.get(None, 0).unwrap_or_default();
            if packet.is("pds.nack_code", NackCode::ROD_OOO.code().into()) {
                if open != 0 && open != context {
                    return;
                }
                wire.memo.set(None, 0, context);
            } else if packet.get("pds.cack_psn").is_some() && open == context {
                wire.memo.set(None, 0, 0);
            }
            wire.pass(packet);
        })],
    ),
];
