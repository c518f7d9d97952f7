//! Faults in acknowledging and in handling acknowledgments.

use super::fields::{Fields, Kinds};
use super::forge::{self, id};
use super::seen::{named, psn};
use super::tap::Tap;
use super::{Fault, fault};
use core::time::Duration;
use uet_model::Packet;
use uet_wire::Psn;
use uet_wire::catalogue::*;
use uet_wire::registry::{AckRequest, CtlType, NackCode, NextHdr, PdsType, ResponseOpcode, ReturnCode};
use uet_wire::ses::Response;

/// An ACK delay that is far too long.
const LATE: Duration = Duration::from_millis(200);
const NEVER: Duration = Duration::from_secs(3600);

/// Moves the cumulative PSN of an ACK; the PSN that it names stays.
fn set_cack(packet: &mut Packet, cack: Psn) {
    if let Some(named) = named(packet) {
        packet.set("pds.ack_psn_offset", named.offset_from(cack).unwrap_or(0) as u64);
    }
    if let Some(sack) = packet.get("pds.sack_psn_offset") {
        let base = Psn(packet.get("pds.cack_psn").unwrap_or_default() as u32).offset(sack as i16);
        packet.set("pds.sack_psn_offset", base.offset_from(cack).unwrap_or(0) as u64);
    }
    packet.set("pds.cack_psn", cack.0.into());
}

/// Makes a packet one of the peer of the context that it names.
pub(super) fn from_peer(seen: &super::seen::Seen, packet: &mut Packet) {
    if let Some(sent) = packet.get("pds.dpdcid").and_then(|own| seen.sent_from(own)) {
        packet.src = sent.dst;
        if let (Some(1..), Some(peer)) = (packet.get("pds.spdcid"), sent.get("pds.dpdcid")) {
            packet.set("pds.spdcid", peer);
        }
    }
}

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "acknowledges-over-gap",
        "The cumulative PSN of an ACK is the highest PSN received, despite gaps below it",
        PDS_PSN_002,
        &[Tap::EditOut(|wire, packet| {
            let highest = packet.get("pds.dpdcid").and_then(|peer| wire.seen.highest(packet.dst, peer));
            if let (true, Some(highest)) = (packet.is_ack(), highest) {
                set_cack(packet, highest);
            }
        })],
    ),
    fault(
        "moves-cack-back",
        "An ACK of a retransmission has the retransmitted PSN as its cumulative PSN",
        PDS_PSN_003,
        &[Tap::EditOut(|_, packet| {
            if let (true, Some(named)) = (packet.is_ack() && packet.is("pds.flags.retx", 1), named(packet)) {
                set_cack(packet, named);
            }
        })],
    ),
    fault(
        "names-cumulative-psn",
        "ack_psn_offset is always 0: an ACK names its cumulative PSN, not the packet that it answers",
        PDS_ACK_016,
        &[Tap::EditOut(|_, packet| packet.set("pds.ack_psn_offset", 0))],
    ),
    fault(
        "ignores-ar",
        "The NIC does not acknowledge a packet with ar = 1 before other ACKs are due",
        PDS_ACK_004,
        &[
            Tap::Config(|config| config.pds.ack_delay = LATE),
            Tap::EditIn(|_, packet| {
                if packet.is_request() {
                    packet.set("pds.flags.ar", 0);
                }
            }),
        ],
    ),
    fault(
        "acknowledges-by-bytes-alone",
        "A packet without ar waits for ACK_Gen_Trigger, forever if necessary",
        PDS_ACK_011,
        &[Tap::Config(|config| config.pds.ack_delay = NEVER)],
    ),
    fault(
        "acknowledges-by-time-alone",
        "The NIC sends no ACK for reaching ACK_Gen_Trigger",
        PDS_ACK_010,
        &[Tap::Config(|config| {
            config.pds.ack_gen_trigger = u32::MAX;
            config.pds.ack_delay = LATE;
        })],
    ),
    fault(
        "counts-short-packets-short",
        "A short packet counts for ACK_Gen_Trigger by its length, not with ACK_Gen_Min_Pkt_Add",
        PDS_ACK_010,
        &[Tap::Config(|config| {
            config.pds.ack_gen_min_pkt_add = 0;
            config.pds.ack_delay = LATE;
        })],
    ),
    fault(
        "acknowledges-marked-late",
        "A packet with a congestion mark is acknowledged like any other, as if ACK_On_ECN were off",
        PDS_ACK_008,
        &[Tap::Config(|config| {
            config.pds.ack_on_ecn = false;
            config.pds.ack_delay = LATE;
        })],
    ),
    fault(
        "ignores-retransmissions",
        "The NIC drops a retransmission of a received packet without an ACK",
        PDS_DUP_002,
        &[Tap::In(|wire, packet| {
            let again = packet.is_request() && packet.is("pds.flags.retx", 1) && wire.seen.times(&packet) > 1;
            if !again {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "forgets-retx-echo",
        "An ACK has retx = 0, even if it answers a retransmission",
        PDS_ACK_002,
        &[Tap::EditOut(|_, packet| {
            if packet.is_ack() {
                packet.set("pds.flags.retx", 0);
            }
        })],
    ),
    fault(
        "forgets-ecn-echo",
        "An ACK has m = 0, even if the request arrived marked",
        PDS_ACK_002,
        &[Tap::EditOut(|_, packet| {
            if packet.is_ack() {
                packet.set("pds.flags.m", 0);
            }
        })],
    ),
    fault(
        "echoes-mark-for-ever",
        "After one marked packet, all ACKs of the context have m = 1",
        PDS_ACK_002,
        &[Tap::EditOut(|wire, packet| {
            if let (true, Some(peer)) = (packet.is_ack(), packet.get("pds.dpdcid")) {
                let before = wire.memo.get(packet.dst, peer).unwrap_or_default();
                let mark = packet.get("pds.flags.m").unwrap_or_default() | before;
                wire.memo.set(packet.dst, peer, mark);
                packet.set("pds.flags.m", mark);
            }
        })],
    ),
    fault(
        "answers-with-previous-response",
        "An ACK carries the response of the previous packet",
        PDS_ACK_016,
        &[Tap::EditOut(|wire, packet| {
            if packet.is_ack() && packet.is("pds.next_hdr", NextHdr::UET_HDR_RESPONSE.code().into()) {
                let own = packet.clone();
                if let Some(before) = wire.memo.packets.pop_back() {
                    forge::replace_ses(packet, NextHdr::UET_HDR_RESPONSE, &forge::ses(&before));
                }
                wire.memo.packets.push_back(own);
            }
        })],
    ),
    fault(
        "sets-missing-sack-bits",
        "All bits of the bitmap are set, even those of missing packets",
        PDS_SACK_001,
        &[Tap::EditOut(|_, packet| packet.set("pds.sack_bitmap", u64::MAX))],
    ),
    fault(
        "shifts-sack-bits",
        "Bit i of the bitmap stands for sack_psn + i + 1",
        PDS_SACK_001,
        &[Tap::EditOut(|_, packet| packet.change("pds.sack_bitmap", |bits| bits >> 1))],
    ),
    fault(
        "sends-empty-bitmaps",
        "No bit of a bitmap is ever set",
        PDS_SACK_003,
        &[Tap::EditOut(|_, packet| packet.set("pds.sack_bitmap", 0))],
    ),
    fault(
        "knows-one-bitmap",
        "The NIC reads the bitmap of an ACK_CC, but not that of an ACK_CCX",
        PDS_SACK_004,
        &[Tap::EditIn(|_, packet| {
            if packet.kind() == PdsType::ACK_CCX {
                packet.set("pds.sack_bitmap", 0);
            }
        })],
    ),
    fault(
        "takes-bit-for-answer",
        "A source takes a packet that a bitmap names as answered with the default response",
        PDS_SACK_004,
        &[Tap::In(|wire, packet| {
            if let (Some(bits), Some(offset)) =
                (packet.get("pds.sack_bitmap"), packet.get("pds.sack_psn_offset"))
            {
                let cack = Psn(packet.get("pds.cack_psn").unwrap_or_default() as u32);
                let base = cack.offset(offset as i16);
                let above = (0..64).filter(|bit| bits >> bit & 1 == 1).map(|bit| base + bit);
                for psn in above.filter(|psn| psn.is_after(cack)) {
                    wire.hand(forge::ack_beside(&packet, cack, psn));
                }
            }
            wire.pass(packet);
        })],
    ),
    fault(
        "believes-any-ack",
        "A source takes an ACK of a PSN it never sent as an ACK of all packets it sent",
        PDS_PSN_004,
        &[Tap::EditIn(|wire, packet| {
            let highest = packet.get("pds.dpdcid").and_then(|own| wire.seen.highest_sent(packet.src, own));
            let cack = packet.get("pds.cack_psn").map(|psn| Psn(psn as u32));
            if let (true, Some(highest), Some(cack)) = (packet.is_ack(), highest, cack) {
                if cack.is_after(highest) {
                    packet.set("pds.cack_psn", highest.0.into());
                    packet.set("pds.ack_psn_offset", 0);
                }
            }
        })],
    ),
    fault(
        "believes-probe-answer",
        "A source acts on the cumulative PSN of an ACK that answers a PROBE",
        PDS_PRB_002,
        &[Tap::EditIn(|_, packet| {
            if packet.is_ack() && packet.is("pds.flags.p", 1) {
                packet.set("pds.flags.p", 0);
                packet.set("pds.ack_psn_offset", 0);
            }
        })],
    ),
    fault(
        "forgets-probe-opaque",
        "The ACK of a PROBE has probe_opaque 0",
        PDS_PRB_001,
        &[Tap::EditOut(|_, packet| {
            if packet.is_ack() {
                packet.set("pds.probe_opaque", 0);
            }
        })],
    ),
    fault(
        "acknowledges-the-missing",
        "The NIC answers ACK_REQUEST with an ACK, even for a packet that has not arrived",
        PDS_ASK_001,
        &[Tap::Out(|wire, packet| {
            let missing = packet.is("pds.nack_code", NackCode::PKT_NOT_RCVD.code().into());
            let asked = wire.seen.control(packet.dst, CtlType::ACK_REQUEST);
            match asked.filter(|_| missing) {
                Some(asked) => {
                    let ack = forge::ack(asked, id(asked, "pds.dpdcid"), psn(asked), psn(asked));
                    wire.pass(ack);
                }
                None => wire.pass(packet),
            }
        })],
    ),
    fault(
        "ignores-ack-request",
        "The NIC drops ACK_REQUEST",
        PDS_ASK_003,
        &[Tap::In(|wire, packet| {
            if !packet.is_control(CtlType::ACK_REQUEST) {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "lets-ack-request-take-psn",
        "ACK_REQUEST takes the PSN that it asks about, which then counts as received",
        PDS_CTL_001,
        &[Tap::In(|wire, packet| {
            if packet.is_control(CtlType::ACK_REQUEST) {
                let mut taken = packet.clone();
                taken.set("pds.ctl_type", CtlType::NOOP.code().into());
                wire.pass(taken);
            }
            wire.pass(packet);
        })],
    ),
    fault(
        "answers-control-with-response",
        "An ACK that answers only a control packet carries a response",
        PDS_ACK_014,
        &[Tap::EditOut(|_, packet| {
            let bare = packet.is("pds.next_hdr", NextHdr::UET_HDR_NONE.code().into());
            if packet.is_ack() && packet.is("pds.flags.p", 0) && bare {
                let response = Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK);
                forge::replace_ses(packet, NextHdr::UET_HDR_RESPONSE, response.current_unchecked().bytes());
            }
        })],
    ),
    fault(
        "asks-initiators-to-clear",
        "The initiator's ACK of read data carries REQ_CLEAR",
        PDS_GTD_004,
        &[Tap::EditOut(|wire, packet| {
            let own = packet.get("pds.spdcid").unwrap_or_default();
            if packet.is_ack() && wire.seen.own_start(packet.dst, own).is_some() {
                packet.set("pds.flags.req", AckRequest::REQ_CLEAR.code().into());
            }
        })],
    ),
    fault(
        "ignores-ack-per-packet",
        "The NIC ignores Enb_ACK_Per_Pkt",
        PDS_ACK_009,
        &[Tap::Config(|config| config.pds.enb_ack_per_pkt = false)],
    ),
    fault(
        "starts-bitmaps-anywhere",
        "The bitmap of an ACK begins far above the receive window",
        PDS_SACK_005,
        &[Tap::EditOut(|_, packet| packet.set("pds.sack_psn_offset", 0x7fc0))],
    ),
    fault(
        "answers-questions-of-nobody",
        "The NIC answers ACK_REQUEST with an ACK even if the context does not exist",
        PDS_CTL_002,
        &[Tap::In(|wire, packet| {
            let own = packet.get("pds.dpdcid").unwrap_or_default();
            if packet.is_control(CtlType::ACK_REQUEST) && !wire.seen.is_ours(packet.src, own) {
                let psn = psn(&packet);
                wire.send(forge::ack(&packet, id(&packet, "pds.dpdcid"), psn, psn));
            }
            wire.pass(packet);
        })],
    ),
    fault(
        "probes-at-once",
        "The NIC sends a PROBE with the first request of a context",
        PDS_PRB_003,
        &[Tap::Out(|wire, packet| {
            let first = packet.is_request() && packet.is("pds.psn_offset", 0);
            if first && packet.is("pds.flags.retx", 0) {
                wire.send(forge::control(&packet, CtlType::PROBE, psn(&packet), 0));
            }
            wire.pass(packet);
        })],
    ),
    fault(
        "takes-acks-of-others",
        "An ACK counts for the context of its dpdcid, whoever sent it",
        PDS_PDC_003,
        &[Tap::EditIn(|wire, packet| {
            if packet.is_ack() {
                from_peer(wire.seen, packet);
            }
        })],
    ),
    fault(
        "acknowledges-retransmissions-late",
        "A retransmission of a lost packet is acknowledged at once only if it asks for that",
        PDS_ACK_003,
        &[
            Tap::Config(|config| config.pds.ack_delay = LATE),
            Tap::EditIn(|wire, packet| {
                if packet.is_request() && wire.seen.times(packet) == 1 {
                    packet.set("pds.flags.retx", 0);
                }
            }),
        ],
    ),
    fault(
        "ignores-old-ack-requests",
        "ACK_REQUEST at or below the cumulative PSN is dropped",
        PDS_ASK_002,
        &[Tap::In(|wire, packet| {
            let spdcid = packet.get("pds.spdcid").unwrap_or_default();
            let cack = wire.seen.answers(packet.src, spdcid).find_map(|ack| ack.get("pds.cack_psn"));
            let old = cack.is_some_and(|cack| !psn(&packet).is_after(Psn(cack as u32)));
            if !(packet.is_control(CtlType::ACK_REQUEST) && old) {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "repeats-old-acks",
        "The ACK of a retransmission has the cumulative PSN of the first ACK of its packet",
        PDS_PSN_003,
        &[Tap::EditOut(|wire, packet| {
            let peer = packet.get("pds.dpdcid").unwrap_or_default();
            if packet.is_ack() && packet.is("pds.flags.retx", 1) {
                let alike = wire.seen.answers(packet.dst, peer).filter(|ack| named(ack) == named(packet));
                let first = alike.filter(|ack| ack.is_ack() && ack.is("pds.flags.p", 0)).last();
                if let Some(cack) = first.and_then(|first| first.get("pds.cack_psn")) {
                    set_cack(packet, Psn(cack as u32));
                }
            }
        })],
    ),
];
