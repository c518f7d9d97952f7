//! Parsing, from each start.
//!
//! The target is fast: it parses once and prints nothing. `parse_emit` compares the strict parser.

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
