//! Converts packets to JSON and back.

mod decode;
mod encode;
mod write;

pub use decode::{CaptureInterface, Decoded, Protection, Record, Time};
pub use encode::{EncodeError, Settings, encode, encode_sealed};
