//! The cases, a file for each group.

mod ack;
mod establish;
mod refused;

use crate::Case;

/// All cases, by group.
pub fn all() -> impl Iterator<Item = &'static Case> {
    [establish::CASES, refused::CASES, ack::CASES].into_iter().flatten()
}

/// The case of this id.
pub fn find(id: &str) -> Option<&'static Case> {
    all().find(|case| case.id == id)
}
