//! Judges a scenario: what both ends report, beside the packets between them.

use super::unrepeated::{Unanswered, Unrepeated};
use core::net::IpAddr;
use core::ops::ControlFlow;
use std::io;
use uet_conformance::passive::{CaptureChecker, CaptureFinding, CapturedPacket};
use uet_packet_io::keys::KeyRing;
use uet_packet_io::{Decoder, input};
use uet_wire::registry::{Opcode, ReturnCode};
use uet_wire::ses::Ses;
use uet_wire::validate::Severity;
use uet_wire::{Options, Start, Uet};

/// The evidence of the packets of a scenario.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// Errors of an end, over one packet or several.
    pub(super) errors: Vec<CaptureFinding>,
    /// The sender of payload that no message has there, and the packet.
    pub(super) stray: Option<(IpAddr, u64)>,
    /// A packet that its sender sent once, although nothing answered it.
    pub(super) unrepeated: Option<Unanswered>,
    /// The last refusal: its sender and a sentence.
    pub(super) refusal: Option<(IpAddr, String)>,
}

/// Reads a capture of a scenario. `data` are the messages, as their senders posted them. `keys` open protected packets.
pub(super) fn read(capture: &[u8], data: &[Vec<u8>], keys: Option<KeyRing>) -> io::Result<Evidence> {
    let (mut evidence, mut checker) = (Evidence::default(), CaptureChecker::default());
    let mut decoder = Decoder::new(Options::default(), false).recognizing_trailers();
    if let Some(keys) = keys {
        decoder = decoder.with_keys(keys);
    }
    let (mut number, mut unrepeated) = (0, Unrepeated::default());
    let taken = input::read(capture, Start::Eth, &mut |record| {
        number += 1;
        let decoded = decoder.decode(record);
        let (uet, src) = (decoded.packet.uet, decoded.packet.ip.map(|ip| ip.src()));
        if let (Some(ip), Some(pds), Some(time)) = (decoded.packet.ip, uet.pds, decoded.since_1970()) {
            unrepeated.packet((ip.src(), ip.dst()), &pds, number, time);
        }
        let seen = CapturedPacket {
            number,
            time: decoded.since_1970(),
            packet: &decoded.packet,
            findings: &decoded.findings,
            error: None,
            authenticated: decoded.protection.as_ref().and_then(|protection| protection.authenticated),
            key: decoded.protection.as_ref().and_then(|protection| protection.key),
        };
        let found = checker.packet(seen);
        evidence.errors.extend(found.into_iter().filter(|finding| finding.severity == Severity::Error));
        if let Some(src) = src {
            if evidence.stray.is_none() && is_stray(&uet, data) {
                evidence.stray = Some((src, number));
            }
            if let Some(what) = refusal(&uet) {
                evidence.refusal = Some((src, format!("{what} (packet {number})")));
            }
        }
        Ok(ControlFlow::Continue(()))
    });
    taken.map_err(io::Error::other)?;
    evidence.unrepeated = unrepeated.first();
    Ok(evidence)
}

/// Returns whether a packet carries data of a message that no message has at this place.
fn is_stray(uet: &Uet<'_>, data: &[Vec<u8>]) -> bool {
    const PLAIN: [Opcode; 5] = [
        Opcode::UET_WRITE,
        Opcode::UET_SEND,
        Opcode::UET_TAGGED_SEND,
        Opcode::UET_DATAGRAM_SEND,
        Opcode::UET_DEFERRABLE_SEND,
    ];
    let offset = match uet.ses {
        Some(Ses::Std(header)) if PLAIN.contains(&header.head().opcode()) => header.message_offset(),
        Some(Ses::Medium(header)) if PLAIN.contains(&header.head().opcode()) => None,
        Some(Ses::Small(header)) if PLAIN.contains(&header.head().opcode()) => None,
        _ => return false,
    };
    let offset = offset.unwrap_or_default() as usize;
    let piece = offset..offset + uet.payload.len();
    !data.iter().any(|data| data.get(piece.clone()) == Some(uet.payload))
}

/// Returns the refusal that a packet carries.
fn refusal(uet: &Uet<'_>) -> Option<String> {
    if let Some(nack) = uet.pds.and_then(|pds| pds.nack()) {
        return Some(format!("NACK {}", nack.nack_code()));
    }
    let code = uet.ses?.return_code()?;
    (![ReturnCode::OK, ReturnCode::NULL].contains(&code)).then(|| format!("return code {code}"))
}
