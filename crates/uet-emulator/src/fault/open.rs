//! Faults in opening and finding a context.

use super::fields::{Fields, Kinds};
use super::forge;
use super::seen::{psn, start};
use super::tap::Tap;
use super::{Fault, fault};
use core::time::Duration;
use uet_model::{Command, Mode, Via};
use uet_wire::catalogue::*;
use uet_wire::registry::{CtlType, NackCode, NextHdr, PdsType};
use uet_wire::{PdcId, Psn};

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "ignores-psn-offset",
        "A target takes the first PSN that arrives as Start_PSN, whatever psn_offset says",
        PDS_SYN_002,
        &[Tap::EditIn(|wire, packet| {
            if let (true, Some(_), Some(spdcid)) =
                (packet.is_request(), packet.get("pds.psn_offset"), packet.get("pds.spdcid"))
            {
                let first = wire.memo.get(packet.src, spdcid).unwrap_or(psn(packet).0.into());
                wire.memo.set(packet.src, spdcid, first);
                packet.set("pds.psn_offset", (psn(packet) - Psn(first as u32)).min(4095).into());
            }
        })],
    ),
    fault(
        "opens-again-with-syn",
        "Each packet with syn opens a context of its own, even if its peer has one already",
        PDS_SYN_005,
        &[
            Tap::EditIn(|wire, packet| {
                let offset = packet.get("pds.psn_offset").filter(|_| packet.is_request()).unwrap_or_default();
                if let (1.., Some(spdcid)) = (offset, packet.get("pds.spdcid")) {
                    let other = spdcid ^ offset << 4;
                    wire.memo.set(packet.src, other, spdcid);
                    packet.set("pds.spdcid", other);
                    packet.set("pds.psn_offset", 0);
                }
            }),
            Tap::EditOut(|wire, packet| {
                let peer = packet.get("pds.dpdcid").and_then(|other| wire.memo.get(packet.dst, other));
                if let Some(spdcid) = peer {
                    packet.set("pds.dpdcid", spdcid);
                }
            }),
        ],
    ),
    fault(
        "opens-without-syn",
        "A request with syn = 0 for a missing context opens one",
        PDS_OPEN_002,
        &[Tap::EditIn(|wire, packet| {
            let known = packet.get("pds.dpdcid").is_none_or(|own| wire.seen.is_ours(packet.src, own));
            if packet.is_request() && !known {
                packet.set("pds.flags.syn", 1);
                packet.set("pds.pdc_info", 0);
                packet.set("pds.psn_offset", 0);
            }
        })],
    ),
    fault(
        "looks-at-dpdcid-alone",
        "The NIC assigns a packet to the context of its dpdcid, whoever sent it",
        PDS_OPEN_003,
        &[Tap::EditIn(|wire, packet| {
            if let Some(sent) = packet.get("pds.dpdcid").and_then(|own| wire.seen.sent_from(own)) {
                packet.src = sent.dst;
                if let (Some(1..), Some(peer)) = (packet.get("pds.spdcid"), sent.get("pds.dpdcid")) {
                    packet.set("pds.spdcid", peer);
                }
            }
        })],
    ),
    fault(
        "swaps-pdcids",
        "An ACK carries the PDCIDs in the order of the request instead of exchanging them",
        PDS_SYN_003,
        &[Tap::EditOut(|_, packet| {
            if let (true, Some(own), Some(peer)) =
                (packet.is_ack(), packet.get("pds.spdcid"), packet.get("pds.dpdcid"))
            {
                packet.set("pds.spdcid", peer);
                packet.set("pds.dpdcid", own);
            }
        })],
    ),
    fault(
        "keeps-syn",
        "Requests keep syn = 1 after the first ACK",
        PDS_SYN_004,
        &[Tap::Out(|wire, mut packet| {
            let first =
                |packet: &uet_model::Packet| wire.seen.own_start(packet.dst, packet.get("pds.spdcid")?);
            if let (true, Some(first)) = (packet.is_request(), first(&packet)) {
                let psn = psn(&packet);
                packet.set("pds.flags.syn", 1);
                packet.set("pds.pdc_info", 0);
                packet.set("pds.psn_offset", (psn - first).into());
            }
            wire.pass(packet);
        })],
    ),
    fault(
        "retransmits-syn",
        "A retransmission after the first ACK keeps the syn = 1 of the first transmission",
        PDS_SYN_004,
        &[Tap::EditOut(|wire, packet| {
            if packet.is_request() && packet.is("pds.flags.retx", 1) {
                let first = wire.seen.first_sent(packet);
                let offset = first.and_then(|first| first.get("pds.psn_offset"));
                if let (Some(offset), Some(0)) = (offset, packet.get("pds.flags.syn")) {
                    packet.set("pds.flags.syn", 1);
                    packet.set("pds.pdc_info", 0);
                    packet.set("pds.psn_offset", offset);
                }
            }
        })],
    ),
    fault(
        "forgets-psn-offset",
        "psn_offset is 0 in every request with syn",
        PDS_SYN_001,
        &[Tap::EditOut(|_, packet| packet.set("pds.psn_offset", 0))],
    ),
    fault(
        "starts-at-one",
        "Start_PSN is 1 for every context",
        PDS_SYN_007,
        &[Tap::Config(|config| {
            config.pds.start_psn = Some(1);
            config.pds.start_psn_distance = 0;
        })],
    ),
    fault(
        "takes-other-mode",
        "A context accepts a request of another delivery mode",
        PDS_OPEN_008,
        &[Tap::EditIn(|wire, packet| {
            let spdcid = packet.get("pds.spdcid").unwrap_or_default();
            let first = wire.seen.requests(packet.src, spdcid).next().map(|first| first.kind());
            if let (true, Some(kind)) = (packet.is_request(), first) {
                packet.set("pds.type", kind.code().into());
            }
        })],
    ),
    fault(
        "ignores-isrod",
        "NOOP or NEGOTIATION always opens a RUD context, whatever isrod says",
        PDS_SYN_009,
        &[Tap::EditIn(|_, packet| packet.set("pds.flags.isrod", 0))],
    ),
    fault(
        "opens-by-any-control",
        "Any control packet with syn = 1 opens a context",
        PDS_SYN_010,
        &[Tap::EditIn(|_, packet| {
            if packet.kind() == PdsType::CP && packet.is("pds.flags.syn", 1) {
                packet.set("pds.ctl_type", CtlType::NOOP.code().into());
            }
        })],
    ),
    fault(
        "names-context-in-refusal",
        "A NACK that reports a missing context has a nonzero spdcid",
        WIRE_NACK_003,
        &[Tap::EditOut(|_, packet| {
            if packet.is_nack() && packet.is("pds.spdcid", 0) {
                packet.set("pds.spdcid", 0x8001);
            }
        })],
    ),
    fault(
        "takes-other-start",
        "A context accepts a packet with syn and a different Start_PSN",
        PDS_OPEN_005,
        &[Tap::EditIn(|wire, packet| {
            let spdcid = packet.get("pds.spdcid").unwrap_or_default();
            if let (true, Some(_), Some(first)) =
                (packet.is_request(), start(packet), wire.seen.start(packet.src, spdcid))
            {
                packet.set("pds.psn_offset", (psn(packet) - first).min(4095).into());
            }
        })],
    ),
    fault(
        "acknowledges-syn-late",
        "The ACK of a packet with syn leaves 50 ms late",
        PDS_ACK_001,
        &[Tap::Out(|wire, packet| {
            let opens = wire.seen.answered(&packet).is_some_and(|request| request.is("pds.flags.syn", 1));
            match packet.is_ack() && opens {
                true => wire.send_in(Duration::from_millis(50), packet),
                false => wire.pass(packet),
            }
        })],
    ),
    fault(
        "silent-without-context",
        "The NIC drops a request for a missing context without a NACK",
        PDS_OPEN_002,
        &[Tap::Out(|wire, packet| {
            if !packet.is("pds.nack_code", NackCode::INV_DPDCID.code().into()) {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "shares-context-between-jobs",
        "Requests of different jobs to the same FEP share one context",
        PDS_PDC_002,
        &[Tap::Down(|middle, mut said| {
            if let Command::Send(Via::Route(route), _) = &mut said {
                route.job = 0;
            }
            middle.pass(said);
        })],
    ),
    fault(
        "sends-ordered-as-unordered",
        "The NIC sends ordered operations on an unordered context",
        PDS_PDC_002,
        &[Tap::Down(|middle, mut said| {
            if let Command::Send(Via::Route(route), _) = &mut said {
                if route.mode == Mode::Rod {
                    route.mode = Mode::Rud;
                }
            }
            middle.pass(said);
        })],
    ),
    fault(
        "returns-data-unordered",
        "Read data of an ordered context leaves as unordered requests",
        PDS_OPEN_008,
        &[Tap::EditOut(|_, packet| {
            let data = [NextHdr::UET_HDR_RESPONSE_DATA, NextHdr::UET_HDR_RESPONSE_DATA_SMALL];
            if packet.is_rod() && data.iter().any(|kind| packet.is("pds.next_hdr", kind.code().into())) {
                let unordered = match packet.kind() {
                    PdsType::ROD_REQ => PdsType::RUD_REQ,
                    _ => PdsType::RUD_CC_REQ,
                };
                packet.set("pds.type", unordered.code().into());
            }
        })],
    ),
    fault(
        "opens-for-no-pdcid",
        "A packet with syn and spdcid 0 opens a context",
        PDS_PDC_001,
        &[
            Tap::EditIn(|wire, packet| {
                if packet.is_request() && packet.is("pds.spdcid", 0) {
                    packet.set("pds.spdcid", 0xffff);
                    wire.memo.set(packet.src, 0xffff, 0);
                }
            }),
            Tap::EditOut(|wire, packet| {
                if packet.is("pds.dpdcid", 0xffff) && wire.memo.get(packet.dst, 0xffff).is_some() {
                    packet.set("pds.dpdcid", 0);
                }
            }),
        ],
    ),
    fault(
        "takes-control-of-others",
        "A control packet counts for the context of its dpdcid, whoever sent it",
        PDS_PDC_003,
        &[Tap::EditIn(|wire, packet| {
            if packet.kind() == PdsType::CP {
                super::ack::from_peer(wire.seen, packet);
            }
        })],
    ),
    fault(
        "cuts-psn-offset",
        "Only the lower 8 bits of psn_offset are read",
        PDS_SYN_002,
        &[Tap::EditIn(|_, packet| packet.change("pds.psn_offset", |offset| offset & 0xff))],
    ),
    fault(
        "opens-by-requests-alone",
        "NOOP and NEGOTIATION with syn = 1 open no context",
        PDS_SYN_009,
        &[Tap::In(|wire, packet| {
            if packet.kind() == PdsType::CP && packet.is("pds.flags.syn", 1) {
                wire.send(forge::nack(&packet, NackCode::INV_DPDCID, PdcId::NONE));
            } else {
                wire.pass(packet);
            }
        })],
    ),
];
