//! Data of messages, and data in words.

use serde::Serialize;
use uet_control::Fill;

/// Returns a piece of the pattern of a message; `None` beyond its end.
pub(super) fn piece(seed: u32, whole: usize, offset: usize, length: usize) -> Option<Vec<u8>> {
    let inside = offset.checked_add(length).is_some_and(|end| end <= whole);
    inside.then(|| Fill::Seed(seed).part(offset, length))
}

/// Where bytes differ, in words.
pub(super) fn difference(expected: &[u8], seen: &[u8]) -> String {
    match expected.iter().zip(seen).position(|(one, other)| one != other) {
        Some(at) => format!("the first wrong byte is at {at}"),
        None => "the bytes that came are right".into(),
    }
}

/// Shows data of a conversation as its file has it.
pub(super) fn shown(data: &impl Serialize) -> String {
    serde_json::to_string(data).unwrap_or_default()
}
