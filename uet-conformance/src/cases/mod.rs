//! The cases, a file for each group.

mod ack;
mod ask;
mod clear;
mod establish;
mod refused;
mod sack;
mod window;

use crate::Case;

/// All cases, by group.
pub fn all() -> impl Iterator<Item = &'static Case> {
    [establish::CASES, refused::CASES, window::CASES, ack::CASES, sack::CASES, ask::CASES, clear::CASES]
        .into_iter()
        .flatten()
}

/// The case of this id.
pub fn find(id: &str) -> Option<&'static Case> {
    all().find(|case| case.id == id)
}
