//! What the `uet` program is made of: reading captures, and packets as JSON and text.

pub mod commands;
pub mod hex;
pub mod input;
pub mod json;
pub mod progress;
