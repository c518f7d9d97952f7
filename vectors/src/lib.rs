//! Golden vectors: packets as bytes with their decoded fields, for implementations in any language.
//!
//! The cases are declared in [`families`], one file each, and built with the writers of `uet-wire`; nobody edits the
//! data by hand. The decoded fields come from `uet decode`, so that bytes and fields cannot disagree. Independent
//! readers check that both are correct.
//!
//! | command | does |
//! | --- | --- |
//! | `cargo run -p uet-vectors` | writes all files, and deletes those that no case generates |
//! | `cargo run -p uet-vectors -- --check` | lists the files that differ from the generated ones |
//! | `cargo run -p uet-vectors -- --coverage` | prints the covered items and their numbers of packets |

mod capture;
mod case;
pub mod coverage;
pub mod families;
pub mod files;
mod render;
mod usual;

pub use case::{Case, Direction, Family, Step, Vector};
pub use render::json;
