//! Packets without a context.

use uet_wire::pds::{Rudi, Uud};
use uet_wire::ses::SesBuf;
use uet_wire::{UetBuf, WriteError};

/// Builds an idempotent request with the contents of a context's request, without its delivery header.
pub fn rudi(pkt_id: u32, request: &crate::Request) -> Result<UetBuf, WriteError> {
    let next = request.ses.as_ref().map(SesBuf::view).map(|ses| ses.next_hdr()).unwrap_or_default();
    let header = Rudi::request(pkt_id).prologue(|prologue| prologue.next_hdr(next)).retx(request.retx);
    Ok(UetBuf { pds: Some(header.done()?.into()), ..parts(request) })
}

/// Builds a datagram in the same way.
pub fn uud(request: &crate::Request) -> Result<UetBuf, WriteError> {
    let next = request.ses.as_ref().map(SesBuf::view).map(|ses| ses.next_hdr()).unwrap_or_default();
    let header = Uud::new().edit().prologue(|prologue| prologue.next_hdr(next));
    Ok(UetBuf { pds: Some(header.done()?.into()), ..parts(request) })
}

fn parts(request: &crate::Request) -> UetBuf {
    UetBuf { tss: None, pds: None, ses: request.ses, ext: request.ext, payload: request.payload.clone() }
}
