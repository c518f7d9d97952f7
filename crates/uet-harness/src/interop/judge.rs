//! Judges a scenario: what both ends report, beside the packets between them.

use core::net::IpAddr;
use core::ops::ControlFlow;
use std::io;
use uet_conformance::passive::{CaptureChecker, CaptureFinding, CapturedPacket};
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
    /// The last refusal: its sender and a sentence.
    pub(super) refusal: Option<(IpAddr, String)>,
}

/// Reads a capture of a scenario. `data` are the messages, as their senders posted them.
pub(super) fn read(capture: &[u8], data: &[Vec<u8>]) -> io::Result<Evidence> {
    let mut evidence = Evidence::default();
    let (mut decoder, mut checker) = (Decoder::new(Options::default(), false), CaptureChecker::default());
    let mut number = 0;
    let taken = input::read(capture, Start::Eth, &mut |record| {
        number += 1;
        let decoded = decoder.decode(record);
        let (uet, src) = (decoded.packet.uet, decoded.packet.ip.map(|ip| ip.src()));
        let seen = CapturedPacket {
            number,
            time: decoded.since_1970(),
            packet: &decoded.packet,
            findings: &decoded.findings,
            error: None,
            authenticated: None,
            key: None,
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
    let code = match uet.ses? {
        Ses::Response(header) => header.head().return_code(),
        Ses::ResponseData(header) => header.head().return_code(),
        Ses::ResponseDataSmall(header) => header.head().return_code(),
        _ => return None,
    };
    (![ReturnCode::OK, ReturnCode::NULL].contains(&code)).then(|| format!("return code {code}"))
}
