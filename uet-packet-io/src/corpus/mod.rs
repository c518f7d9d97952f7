//! What fuzzers start from: packets that reach as much of a parser as few packets can, and the words of UET.

pub mod dictionary;
mod export;
pub mod values;

pub use export::export;

/// The packets: what each starts with, and its bytes. From the corpus of the project's own fuzzers.
pub fn packets() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    let lines = include_str!("packets.txt").lines();
    lines.filter_map(|line| {
        let (start, digits) = line.split_once(' ')?;
        Some((start, crate::hex::decode(digits).ok()?))
    })
}
