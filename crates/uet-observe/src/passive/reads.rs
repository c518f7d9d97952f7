//! Rules of a read request that need no other packet.

use super::judgments::Judgments;
use crate::Observed;
use uet_wire::catalogue::*;
use uet_wire::registry::Opcode;
use uet_wire::ses::Ses;

/// The smallest payload MTU. A shorter read is one packet.
pub(super) const SMALLEST_MTU: u32 = 1024;

/// The largest payload MTU. A longer read is several packets.
pub(super) const LARGEST_MTU: u32 = 8192;

/// Judges `som` and `eom` of a read by the bytes that it asks for.
pub(super) fn judge(judge: &mut Judgments, packet: &Observed<'_>) {
    let Some(Ses::Std(header)) = packet.uet.ses else { return };
    let head = header.head();
    if head.opcode() != Opcode::UET_READ || head.ie() {
        return;
    }
    let whole = header.request_length();
    let part = header.message_offset().zip(header.payload_length());
    let (last, what) = match part {
        None if whole <= SMALLEST_MTU => (Some(true), format!("a read of {whole} bytes in one packet")),
        None if whole > LARGEST_MTU => (Some(false), format!("the first packet of a read of {whole} bytes")),
        None => (None, String::new()),
        Some((offset, length)) => {
            let end = offset.saturating_add(length.into());
            (Some(end >= whole), format!("bytes {offset} to {end} of a read of {whole}"))
        }
    };
    let Some(last) = last else { return };
    judge.hold(packet.src, SES_CUT_002, packet.number, None, head.eom() == last, || {
        format!("{what}, with eom = {}", u8::from(head.eom()))
    });
}
