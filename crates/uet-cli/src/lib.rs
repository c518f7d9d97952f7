//! The library of the `uet` program: reads captures, shows packets as JSON and as trees, and connects to devices under
//! test.

pub mod anonymize;
mod checksum;
pub mod commands;
pub mod explain;
pub mod expression;
mod generate;
pub mod near;
pub mod paint;
pub mod progress;
pub mod report;
pub mod select;
pub mod simulate;
pub mod site;
pub mod stats;
#[cfg(feature = "parquet")]
pub mod tables;
#[cfg(not(feature = "parquet"))]
#[path = "no_tables.rs"]
pub mod tables;
pub mod text;
pub mod timeline;
mod toml_error;
