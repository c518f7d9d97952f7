//! What the `uet` program is made of: reading captures, and packets as JSON and as trees.

pub mod commands;
pub mod corpus;
pub mod explain;
pub mod hex;
pub mod input;
pub mod json;
pub mod near;
pub mod paint;
pub mod progress;
pub mod select;
pub mod text;
