//! Parsing, from each start.

use crate::Input;
use uet_wire::{Packet, Start, Uet};

pub(super) fn run(data: &[u8]) {
    let Some(input) = Input::split(data) else { return };
    let packet = input.packet();

    let mut left = input.bytes;
    for part in packet.parts() {
        let (here, behind) = left.split_at(part.len());
        assert!(part.is_empty() || part.as_ptr() == here.as_ptr(), "a part lies elsewhere");
        left = behind;
    }
    assert!(left.is_empty(), "{} bytes are in no part", left.len());

    if let Some(cut) = packet.cut {
        assert!(cut.start <= input.bytes.len(), "{cut}");
    }
    if input.wire == input.bytes.len() {
        let strict = Packet::parse(input.start, input.bytes, &input.options);
        // Not `assert_eq!`, here and below: code that prints packets would slow down every run.
        let agree = match (strict, packet.error()) {
            (Ok(strict), None) => strict == packet,
            (Err(strict), Some(lax)) => (strict.start, strict.problem) == (lax.start, lax.problem),
            _ => false,
        };
        assert!(agree, "the strict parser sees something else");
    }
    if input.start == Start::Uet && input.options.trailer.is_empty() {
        let (uet, _) = Uet::parse_lax(input.bytes);
        assert!(uet == packet.uet, "it is not the same without the layers around");
    }
}
