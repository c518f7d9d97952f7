//! Faults that send or accept packets in the clear.

use super::{is_secured, open, seal};
use crate::fault::fields::{Fields, Kinds};
use crate::fault::guard::{Opened, Right, Sealed};
use crate::fault::tap::Tap;
use crate::fault::{Fault, fault};
use uet_model::Packet;
use uet_model::pds::{Association, SecureContext};
use uet_wire::catalogue::*;
use uet_wire::registry::PdsType;

/// Takes a packet in the clear for one of the domain.
fn as_secured(right: &Right<'_>, packet: Packet) -> Opened {
    let domain = right.security.domains.first();
    let Some(domain) = domain else { return Ok((packet, None)) };
    let context = SecureContext { sdi: domain.sdi, ssi: None };
    let association = Association { context, an: false, epoch: 0, counter: 0 };
    // Without source identifiers, the binding is the domain alone.
    Ok((packet, Some(association)))
}

/// Protects all packets but these.
fn all_but(right: &mut Right<'_>, packet: Packet, is_clear: fn(&Packet) -> bool) -> Sealed {
    if is_clear(&packet) { Ok((packet, None)) } else { right.seal(packet) }
}

pub(in crate::fault) const FAULTS: &[Fault] = &[
    fault(
        "falls-back-to-the-clear",
        "The NIC sends a packet that it cannot protect in the clear",
        TSS_CLEAR_002,
        &[seal(|right, packet| right.seal(packet.clone()).or(Ok((packet, None))))],
    ),
    fault(
        "sends-datagrams-in-the-clear",
        "The NIC sends datagrams in the clear",
        TSS_CLEAR_002,
        &[seal(|right, packet| all_but(right, packet, |packet| packet.kind() == PdsType::UUD_REQ))],
    ),
    fault(
        "retransmits-in-the-clear",
        "The NIC sends retransmissions in the clear",
        TSS_CLEAR_002,
        &[seal(|right, packet| {
            all_but(right, packet, |packet| packet.is_request() && packet.is("pds.flags.retx", 1))
        })],
    ),
    fault(
        "answers-idempotents-in-the-clear",
        "The NIC sends the responses of idempotent requests in the clear",
        TSS_CLEAR_002,
        &[seal(|right, packet| all_but(right, packet, |packet| packet.kind() == PdsType::RUDI_RESP))],
    ),
    fault(
        "accepts-the-clear",
        "The NIC accepts packets in the clear, though it requires protection",
        TSS_CLEAR_001,
        &[Tap::Config(|config| config.secure.require_protection = false)],
    ),
    fault(
        "contexts-accept-the-clear",
        "Secured contexts accept packets in the clear",
        TSS_CLEAR_002,
        &[open(|right, packet| match is_secured(&packet) {
            true => right.open(packet),
            false => as_secured(right, packet),
        })],
    ),
    fault(
        "believes-clear-nacks",
        "Secured contexts accept NACKs in the clear",
        TSS_CLEAR_002,
        &[open(|right, packet| match !is_secured(&packet) && packet.is_nack() {
            true => as_secured(right, packet),
            false => right.open(packet),
        })],
    ),
    fault(
        "believes-clear-acks",
        "Secured contexts accept ACKs in the clear",
        TSS_CLEAR_002,
        &[open(|right, packet| match !is_secured(&packet) && packet.is_ack() {
            true => as_secured(right, packet),
            false => right.open(packet),
        })],
    ),
];
