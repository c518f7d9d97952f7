//! Faults in guaranteed delivery and CLEAR.

use super::fields::{Fields, Kinds};
use super::forge::{self, id};
use super::seen::{named, psn};
use super::tap::Tap;
use super::{Fault, fault};
use uet_model::{Delivery, Packet};
use uet_wire::Psn;
use uet_wire::catalogue::*;
use uet_wire::registry::{AckRequest, CtlType, NextHdr, ResponseOpcode, ReturnCode};
use uet_wire::ses::Response;

fn asks_clear(packet: &Packet) -> bool {
    packet.is_ack() && packet.is("pds.flags.req", AckRequest::REQ_CLEAR.code().into())
}

fn set_clear(packet: &mut Packet, clear: Psn) {
    let offset = clear.offset_from(psn(packet)).unwrap_or(i16::MIN);
    packet.set("pds.clear_psn_offset", offset as u64);
}

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "clears-before-clear",
        "A target releases a guaranteed response when its ACK leaves, without waiting for the clear",
        PDS_GTD_001,
        &[Tap::Out(|wire, packet| {
            if let (true, Some(psn)) = (asks_clear(&packet), named(&packet)) {
                wire.hand(forge::control_back(&packet, CtlType::CLEAR_COMMAND, Psn(0), psn.0));
            }
            wire.pass(packet);
        })],
    ),
    fault(
        "guarantees-nothing",
        "A target keeps no response: it sends even a guaranteed one only once",
        PDS_GTD_001,
        &[Tap::EditResponse(|response| {
            if response.delivery == Delivery::Guaranteed {
                response.delivery = Delivery::Once;
            }
        })],
    ),
    fault(
        "forgets-stored-response",
        "A retransmission gets the default response, even if another one is stored",
        PDS_DUP_002,
        &[Tap::EditOut(|_, packet| {
            let plain = packet.is("pds.next_hdr", NextHdr::UET_HDR_RESPONSE.code().into());
            if asks_clear(packet) && packet.is("pds.flags.retx", 1) && plain {
                let response = Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK);
                forge::replace_ses(packet, NextHdr::UET_HDR_RESPONSE, response.current_unchecked().bytes());
            }
        })],
    ),
    fault(
        "forgets-req-clear",
        "The ACK of a response that must be cleared carries NO_REQUEST",
        PDS_GTD_002,
        &[Tap::EditOut(|_, packet| {
            if asks_clear(packet) {
                packet.set("pds.flags.req", 0);
            }
        })],
    ),
    fault(
        "ignores-clear-command",
        "The NIC drops CLEAR_COMMAND",
        PDS_CLR_004,
        &[Tap::In(|wire, packet| {
            if !packet.is_control(CtlType::CLEAR_COMMAND) {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "ignores-carried-clear",
        "A target ignores clear_psn_offset in requests",
        PDS_CLR_005,
        &[Tap::EditIn(|wire, packet| {
            let spdcid = packet.get("pds.spdcid").unwrap_or_default();
            if let (true, Some(first)) = (packet.is_request(), wire.seen.start(packet.src, spdcid)) {
                set_clear(packet, first - 1);
            }
        })],
    ),
    fault(
        "acknowledges-clear-command",
        "A target answers CLEAR_COMMAND with an ACK",
        PDS_CLR_011,
        &[Tap::In(|wire, packet| {
            if packet.is_control(CtlType::CLEAR_COMMAND) {
                let clear = Psn(packet.get("pds.payload").unwrap_or_default() as u32);
                wire.send(forge::ack(&packet, id(&packet, "pds.dpdcid"), clear, clear));
            }
            wire.pass(packet);
        })],
    ),
    fault(
        "carries-no-clear",
        "Requests carry the initial CLEAR_PSN; only CLEAR_COMMAND carries the current one",
        PDS_CLR_003,
        &[Tap::EditOut(|wire, packet| {
            let spdcid = packet.get("pds.spdcid").unwrap_or_default();
            let first = wire.seen.own_start(packet.dst, spdcid);
            if let (true, Some(first)) = (packet.is_request(), first) {
                set_clear(packet, first - 1);
            }
        })],
    ),
    fault(
        "sends-no-clear-command",
        "Only requests carry CLEAR_PSN: a source sends no CLEAR_COMMAND",
        PDS_CLR_008,
        &[Tap::Out(|wire, packet| {
            if !packet.is_control(CtlType::CLEAR_COMMAND) {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "commands-clear-only-if-asked",
        "A source sends CLEAR_COMMAND only if the latest ACK has REQ_CLEAR, and not when an ACK closes a gap below",
        PDS_CLR_006,
        &[Tap::Out(|wire, packet| {
            let own = packet.get("pds.spdcid").unwrap_or_default();
            let asked = wire.seen.acks(packet.dst, own).last().is_some_and(asks_clear);
            if asked || !packet.is_control(CtlType::CLEAR_COMMAND) {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "ignores-clear-request",
        "The NIC drops CLEAR_REQUEST",
        PDS_CLR_007,
        &[Tap::In(|wire, packet| {
            if !packet.is_control(CtlType::CLEAR_REQUEST) {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "clears-over-gap",
        "CLEAR_PSN is the highest PSN that any ACK has named, despite gaps below it",
        PDS_CLR_001,
        &[Tap::EditOut(|wire, packet| {
            let own = packet.get("pds.spdcid").unwrap_or_default();
            let psns = wire.seen.acks(packet.dst, own).filter_map(named);
            let highest = psns.reduce(|highest, psn| if psn.is_after(highest) { psn } else { highest });
            match highest {
                Some(highest) if packet.is_request() => set_clear(packet, highest),
                Some(highest) if packet.is_control(CtlType::CLEAR_COMMAND) => {
                    packet.set("pds.payload", highest.0.into());
                }
                _ => {}
            }
        })],
    ),
    fault(
        "retransmits-old-clear",
        "A retransmission carries the CLEAR_PSN of the first transmission",
        PDS_CLR_003,
        &[Tap::EditOut(|wire, packet| {
            if packet.is_request() && packet.is("pds.flags.retx", 1) {
                let first = wire.seen.first_sent(packet);
                if let Some(offset) = first.and_then(|first| first.get("pds.clear_psn_offset")) {
                    packet.set("pds.clear_psn_offset", offset);
                }
            }
        })],
    ),
    fault(
        "commands-clear-always",
        "A source sends CLEAR_COMMAND with every request, although the request carries CLEAR_PSN",
        PDS_CLR_009,
        &[Tap::Out(|wire, packet| {
            if let (true, Some(offset), Some(_)) =
                (packet.is_request(), packet.get("pds.clear_psn_offset"), packet.get("pds.dpdcid"))
            {
                let clear = psn(&packet).offset(offset as i16);
                wire.send(forge::control(&packet, CtlType::CLEAR_COMMAND, Psn(0), clear.0));
            }
            wire.pass(packet);
        })],
    ),
    fault(
        "ignores-clear-of-duplicates",
        "clear_psn_offset of a packet that has arrived before is not looked at",
        PDS_CLR_005,
        &[Tap::EditIn(|wire, packet| {
            let spdcid = packet.get("pds.spdcid").unwrap_or_default();
            let again = packet.is_request() && wire.seen.times(packet) > 1;
            if let (true, Some(first)) = (again, wire.seen.start(packet.src, spdcid)) {
                set_clear(packet, first - 1);
            }
        })],
    ),
];
