//! What the `uet` program is made of: reading captures, and packets as JSON and text.

pub mod hex;
pub mod json;
