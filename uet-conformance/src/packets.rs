//! Packets without a context, and the size of a packet for congestion control.

use crate::Test;
use uet_wire::pds::{Rudi, Uud};
use uet_wire::registry::Opcode;
use uet_wire::ses::SesBuf;
use uet_wire::{UetBuf, WriteError};

/// Builds an idempotent request with the contents of a context's request, without its delivery header.
pub fn rudi(pkt_id: u32, request: &crate::Request) -> Result<UetBuf, WriteError> {
    let next = request.ses.as_ref().map(SesBuf::view).map(|ses| ses.next_hdr()).unwrap_or_default();
    let header = Rudi::request(pkt_id).prologue(|prologue| prologue.next_hdr(next)).retx(request.retx);
    Ok(UetBuf { pds: Some(header.done()?.into()), ..parts(request) })
}

/// Builds a packet by UUD in the same way.
pub fn uud(request: &crate::Request) -> Result<UetBuf, WriteError> {
    let next = request.ses.as_ref().map(SesBuf::view).map(|ses| ses.next_hdr()).unwrap_or_default();
    let header = Uud::new().edit().prologue(|prologue| prologue.next_hdr(next));
    Ok(UetBuf { pds: Some(header.done()?.into()), ..parts(request) })
}

impl Test<'_> {
    /// Returns the opcode of datagrams. Open: the parameter `uud_opcode` says it.
    pub fn datagram_opcode(&self) -> Opcode {
        match self.word("uud_opcode") {
            Some("send") => Opcode::UET_SEND,
            _ => Opcode::UET_DATAGRAM_SEND,
        }
    }

    /// Builds a datagram with the opcode of [`datagram_opcode`](Self::datagram_opcode) instead of
    /// UET_DATAGRAM_SEND.
    pub fn datagram(&self, request: &crate::Request) -> Result<UetBuf, WriteError> {
        let opcode = self.datagram_opcode();
        let ses = match request.ses {
            Some(SesBuf::Std(header)) if header.head().opcode() == Opcode::UET_DATAGRAM_SEND => {
                Some(header.edit().head(|head| head.opcode(opcode)).done()?.into())
            }
            other => other,
        };
        uud(&crate::Request { ses, ..request.clone() })
    }
}

fn parts(request: &crate::Request) -> UetBuf {
    UetBuf { tss: None, pds: None, ses: request.ses, ext: request.ext, payload: request.payload.clone() }
}

/// The bytes that congestion control adds to a packet's bytes from PDS on: 8 of UDP, and 40 (section 3.6.12).
const AROUND: u64 = 8 + 40;

/// Returns the nominal size of a packet.
pub(crate) fn nominal(bytes: usize) -> u64 {
    bytes as u64 + AROUND
}
