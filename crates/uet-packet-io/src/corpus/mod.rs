//! Seeds for fuzzers: few packets that reach much of a parser, and dictionaries of UET.

pub mod dictionary;
mod export;

pub use export::export;

/// Returns the seed packets: the first layer and the bytes of each. They come from the corpus of the project's own
/// fuzzers.
pub fn packets() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    let lines = include_str!("packets.txt").lines();
    lines.filter_map(|line| {
        let (start, digits) = line.split_once(' ')?;
        Some((start, crate::hex::decode(digits).ok()?))
    })
}
