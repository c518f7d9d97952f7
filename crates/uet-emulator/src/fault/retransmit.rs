//! Faults in retransmission, and in datagrams, which have none.

use super::fields::{Fields, Kinds};
use super::seen::psn;
use super::tap::Tap;
use super::{Fault, fault};
use bytes::Bytes;
use core::time::Duration;
use uet_model::{Time, ses::Completion};
use uet_wire::catalogue::*;
use uet_wire::registry::{PdsType, ReturnCode};
use uet_wire::{UetBuf, pds};

const NEVER: Duration = Duration::from_secs(3600);

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "retransmits-unmarked",
        "A retransmission has retx = 0",
        PDS_RTO_005,
        &[Tap::EditOut(|_, packet| {
            if packet.is_request() {
                packet.set("pds.flags.retx", 0);
            }
        })],
    ),
    fault(
        "never-retransmits",
        "A source retransmits no packet after a timeout",
        PDS_RTO_001,
        &[Tap::Config(|config| config.pds.rto_init_time = NEVER)],
    ),
    fault(
        "retransmits-too-early",
        "A source retransmits long before RTO_Init_Time has passed",
        PDS_RTO_002,
        &[Tap::Config(|config| config.pds.rto_init_time /= 20)],
    ),
    fault(
        "retransmits-at-even-pace",
        "The timeout stays the same with each retransmission",
        PDS_RTO_002,
        &[Tap::Out(|wire, packet| {
            if packet.is_request() {
                let (key, now) = (psn(&packet).0.into(), (wire.now - Time::ZERO).as_nanos() as u64);
                let before = wire.memo.set(packet.dst, key, now);
                if let (Some(before), Some(1)) = (before, packet.get("pds.flags.retx")) {
                    wire.send_in(Duration::from_nanos(now - before), packet.clone());
                }
            }
            wire.pass(packet);
        })],
    ),
    fault(
        "gives-up-after-one",
        "A source retransmits a packet only once, whatever Max_RTO_Retx_Cnt allows",
        PDS_RTO_001,
        &[Tap::Config(|config| config.pds.max_rto_retx_cnt = 1)],
    ),
    fault(
        "never-gives-up",
        "A source retransmits a packet without limit, whatever Max_RTO_Retx_Cnt says",
        PDS_RTO_003,
        &[Tap::Config(|config| config.pds.max_rto_retx_cnt = 31)],
    ),
    fault(
        "hides-failure",
        "An operation whose packets were given up never ends",
        PDS_RTO_004,
        &[Tap::Completion(|completion| match &completion {
            Completion::Operation { result: Err(fault), .. } if fault.code == ReturnCode::UNDELIVERABLE => {
                None
            }
            _ => Some(completion),
        })],
    ),
    fault(
        "renumbers-retransmissions",
        "A retransmission takes the next PSN instead of its own",
        PDS_RTO_005,
        &[Tap::EditOut(|wire, packet| {
            if packet.is_request() && packet.is("pds.flags.retx", 1) {
                let spdcid = packet.get("pds.spdcid").unwrap_or_default();
                if let Some(highest) = wire.seen.highest_sent(packet.dst, spdcid) {
                    packet.set("pds.psn", (highest + 1).0.into());
                }
            }
        })],
    ),
    fault(
        "retransmits-headers-alone",
        "A retransmission has no payload",
        PDS_RTO_005,
        &[Tap::EditOut(|_, packet| {
            if packet.is_request() && packet.is("pds.flags.retx", 1) {
                packet.payload = Bytes::new();
            }
        })],
    ),
    fault(
        "overlooks-bitmaps",
        "A source ignores the bitmap of an ACK and retransmits the packets it names",
        PDS_SACK_004,
        &[Tap::EditIn(|_, packet| packet.set("pds.sack_bitmap", 0))],
    ),
    fault(
        "answers-datagrams",
        "A target answers a UUD request with a RUDI_RESP",
        PDS_UUD_001,
        &[Tap::In(|wire, packet| {
            if packet.kind() == PdsType::UUD_REQ {
                let mut answer = packet.clone();
                (answer.src, answer.dst, answer.payload) = (packet.dst, packet.src, Bytes::new());
                let response = UetBuf::new(pds::Rudi::response(0).current_unchecked().copied()).to_bytes();
                answer.head = response.into_iter().collect();
                wire.send(answer);
            }
            wire.pass(packet);
        })],
    ),
    fault(
        "answers-rudi-once",
        "A target drops a repeated RUDI request",
        PDS_RUDI_003,
        &[Tap::In(|wire, packet| {
            let rudi = packet.kind() == PdsType::RUDI_REQ;
            if !rudi || wire.memo.count(packet.src, packet.get("pds.pkt_id").unwrap_or_default()) == 0 {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "forgets-pkt-id",
        "A RUDI_RESP has pkt_id 0",
        PDS_RUDI_002,
        &[Tap::EditOut(|_, packet| {
            if packet.kind() == PdsType::RUDI_RESP {
                packet.set("pds.pkt_id", 0);
            }
        })],
    ),
    fault(
        "repeats-pkt-ids",
        "All RUDI requests have the same pkt_id",
        PDS_RUDI_001,
        &[Tap::EditOut(|_, packet| {
            if packet.kind() == PdsType::RUDI_REQ {
                packet.set("pds.pkt_id", 1);
            }
        })],
    ),
    fault(
        "retransmits-rudi-unmarked",
        "A retransmitted RUDI request has retx = 0",
        PDS_RTO_005,
        &[Tap::EditOut(|_, packet| {
            if packet.kind() == PdsType::RUDI_REQ {
                packet.set("pds.flags.retx", 0);
            }
        })],
    ),
];
