//! What the `uet` program is made of: reading captures, and packets as JSON and as trees, devices to
//! test.

pub mod commands;
pub mod explain;
pub mod near;
pub mod paint;
pub mod progress;
pub mod report;
pub mod select;
pub mod simulate;
pub mod site;
pub mod text;
