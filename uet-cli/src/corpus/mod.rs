//! What fuzzers start from.

pub mod dictionary;
