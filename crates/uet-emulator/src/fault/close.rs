//! Faults in closing a context.

use super::fields::{Fields, Kinds};
use super::forge::{self, id};
use super::seen::{named, psn};
use super::tap::Tap;
use super::{Fault, fault};
use core::time::Duration;
use uet_wire::catalogue::*;
use uet_wire::registry::{AckRequest, CtlType, NackCode};

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "ignores-close",
        "The NIC drops CLOSE_COMMAND",
        PDS_CLOSE_004,
        &[Tap::In(|wire, packet| {
            if !packet.is_control(CtlType::CLOSE_COMMAND) {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "acknowledges-close-once",
        "The NIC drops a repeated CLOSE_COMMAND",
        PDS_CLOSE_010,
        &[Tap::In(|wire, packet| {
            let close = packet.is_control(CtlType::CLOSE_COMMAND);
            if !close || wire.memo.count(packet.src, psn(&packet).0.into()) == 0 {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "stays-open",
        "A target acknowledges CLOSE_COMMAND, but keeps the context unchanged",
        PDS_CLOSE_004,
        &[Tap::EditIn(|_, packet| {
            if packet.is_control(CtlType::CLOSE_COMMAND) {
                packet.set("pds.ctl_type", CtlType::NOOP.code().into());
            }
        })],
    ),
    fault(
        "closes-without-psn",
        "CLOSE_COMMAND has the PSN of the previous packet instead of one of its own",
        PDS_CLOSE_002,
        &[Tap::EditOut(|_, packet| {
            if packet.is_control(CtlType::CLOSE_COMMAND) {
                packet.change("pds.psn", |psn| psn.wrapping_sub(1));
            }
        })],
    ),
    fault(
        "closes-without-asking",
        "CLOSE_COMMAND has ar = 0",
        PDS_CLOSE_002,
        &[Tap::EditOut(|_, packet| {
            if packet.is_control(CtlType::CLOSE_COMMAND) {
                packet.set("pds.flags.ar", 0);
            }
        })],
    ),
    fault(
        "only-acknowledges-close-request",
        "An initiator acknowledges CLOSE_REQUEST, but keeps the context open",
        PDS_CLOSE_013,
        &[Tap::EditIn(|_, packet| {
            if packet.is_control(CtlType::CLOSE_REQUEST) {
                packet.set("pds.ctl_type", CtlType::NOOP.code().into());
            }
        })],
    ),
    fault(
        "overlooks-req-close",
        "An initiator ignores REQ_CLOSE in an ACK",
        PDS_CLOSE_013,
        &[Tap::EditIn(|_, packet| {
            if packet.is_ack() && packet.is("pds.flags.req", AckRequest::REQ_CLOSE.code().into()) {
                packet.set("pds.flags.req", 0);
            }
        })],
    ),
    fault(
        "closes-over-read-data",
        "A target acknowledges CLOSE_COMMAND before all read data of the context is acknowledged",
        PDS_CLOSE_005,
        &[Tap::Out(|wire, packet| {
            let refused = packet.is("pds.nack_code", NackCode::CLOSING_IN_ERR.code().into());
            let close = wire.seen.control(packet.dst, CtlType::CLOSE_COMMAND);
            match close.filter(|_| refused) {
                Some(close) => {
                    let ack = forge::ack(close, id(close, "pds.dpdcid"), psn(close), psn(close));
                    wire.pass(ack);
                }
                None => wire.pass(packet),
            }
        })],
    ),
    fault(
        "refuses-close-after-asking",
        "A target refuses CLOSE_COMMAND while its own CLOSE_REQUEST is unacknowledged",
        PDS_CLOSE_007,
        &[Tap::In(|wire, packet| {
            let peer = packet.get("pds.spdcid").unwrap_or_default();
            let asked =
                wire.seen.answers(packet.src, peer).any(|sent| sent.is_control(CtlType::CLOSE_REQUEST));
            match asked && packet.is_control(CtlType::CLOSE_COMMAND) {
                true => wire.send(forge::nack(&packet, NackCode::CLOSING_IN_ERR, id(&packet, "pds.dpdcid"))),
                false => wire.pass(packet),
            }
        })],
    ),
    fault(
        "remembers-closed-peers",
        "A peer cannot reuse the PDCID of a closed context, whatever its Start_PSN is",
        PDS_CLOSE_011,
        &[Tap::In(|wire, packet| {
            let peer = packet.get("pds.spdcid").unwrap_or_default();
            let close = wire.seen.control(packet.src, CtlType::CLOSE_COMMAND);
            let closed = close.is_some_and(|close| close.is("pds.spdcid", peer));
            if !(closed && packet.is_request() && packet.is("pds.flags.syn", 1)) {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "acknowledges-close-request-from-nowhere",
        "The ACK of a CLOSE_REQUEST names PSN 0, which the peer never sent",
        PDS_PSN_002,
        &[Tap::EditOut(|wire, packet| {
            let asked = wire.seen.control(packet.dst, CtlType::CLOSE_REQUEST);
            if packet.is_ack() && asked.is_some_and(|asked| named(packet) == Some(psn(asked))) {
                packet.set("pds.cack_psn", 0);
                packet.set("pds.ack_psn_offset", 0);
            }
        })],
    ),
    fault(
        "leaves-close-out-of-cack",
        "The ACK of CLOSE_COMMAND has a CACK_PSN one below its PSN",
        PDS_PSN_002,
        &[Tap::EditOut(|wire, packet| {
            let close = wire.seen.control(packet.dst, CtlType::CLOSE_COMMAND);
            if packet.is_ack() && close.is_some_and(|close| named(packet) == Some(psn(close))) {
                packet.change("pds.cack_psn", |psn| psn.wrapping_sub(1));
                packet.change("pds.ack_psn_offset", |offset| offset + 1);
            }
        })],
    ),
    fault(
        "forgets-closed-contexts",
        "A target keeps nothing of a closed context, so late packets with syn open it again",
        PDS_CLOSE_009,
        &[Tap::Config(|config| config.pds.syn_retx_safety_time = Duration::ZERO)],
    ),
    fault(
        "uses-up-psns",
        "A context stays open after it has used its range of PSNs",
        PDS_CLOSE_012,
        &[Tap::Config(|config| config.pds.limit_psn_range = false)],
    ),
];
