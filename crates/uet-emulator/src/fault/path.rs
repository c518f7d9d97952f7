//! Faults in entropy values and traffic classes.

use super::fields::{Fields, Kinds};
use super::tap::Tap;
use super::{Fault, fault};
use uet_model::Priority;
use uet_wire::catalogue::*;
use uet_wire::registry::CtlType;

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "sprays-ordered",
        "Each packet of an ordered context has an entropy value of its own",
        PDS_ROD_005,
        &[Tap::EditOut(|wire, packet| {
            if packet.is_rod() {
                let peer = packet.dst;
                packet.entropy = 0xc000 | wire.memo.count(peer, 0) as u16 & 0xff;
            }
        })],
    ),
    fault(
        "reroutes-ordered-retransmissions",
        "A retransmission of an ordered context takes another path than the later packets",
        PDS_ROD_005,
        &[Tap::EditOut(|wire, packet| {
            if packet.is_rod() && packet.is("pds.flags.retx", 1) {
                packet.entropy =
                    0xc000 | packet.entropy.wrapping_add(wire.memo.count(None, 0) as u16 + 1) & 0xff;
            }
        })],
    ),
    fault(
        "stays-on-one-path",
        "All packets of an unordered context have the same entropy value",
        CC_PATH_002,
        &[Tap::EditOut(|_, packet| {
            if packet.is_request() && !packet.is_rod() {
                packet.entropy = 0xc000;
            }
        })],
    ),
    fault(
        "answers-on-own-path",
        "An ACK does not carry the entropy value of the packet that it answers",
        CC_PATH_001,
        &[Tap::EditOut(|_, packet| {
            if packet.is_ack() {
                packet.entropy = 0xc000;
            }
        })],
    ),
    fault(
        "refuses-on-own-path",
        "A NACK does not carry the entropy value of the packet that it answers",
        CC_PATH_001,
        &[Tap::EditOut(|_, packet| {
            if packet.is_nack() {
                packet.entropy = 0xc000;
            }
        })],
    ),
    fault(
        "probes-as-data",
        "A PROBE has the traffic class of data",
        PDS_PRB_004,
        &[Tap::EditOut(|_, packet| {
            if packet.is_control(CtlType::PROBE) {
                packet.priority = Priority::Low;
            }
        })],
    ),
];
