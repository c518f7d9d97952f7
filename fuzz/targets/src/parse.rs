//! Parsing, from each start.
//!
//! What is fast: one parse, and no code that prints packets, which would slow down every run. That the strict
//! parser agrees is for `parse_emit` to show.

use crate::Input;

pub(super) fn run(data: &[u8]) {
    let Some(input) = Input::split(data) else { return };
    let packet = input.packet();
    let mut left = input.bytes;
    for part in packet.parts() {
        let (here, behind) = left.split_at(part.len());
        assert!(part.is_empty() || part.as_ptr() == here.as_ptr(), "a part lies elsewhere");
        left = behind;
    }
    assert!(left.is_empty(), "bytes are in no part");
    assert!(packet.cut.is_none_or(|cut| cut.header_offset() <= input.bytes.len()), "it is cut behind its end");
}
