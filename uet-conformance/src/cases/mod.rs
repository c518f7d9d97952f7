//! The cases, a file for each group.

mod ack;
mod initiate;
mod reaction;
mod retransmit;
mod send_window;

use crate::Case;

/// All cases, by group.
pub fn all() -> impl Iterator<Item = &'static Case> {
    [ack::CASES, initiate::CASES, reaction::CASES, retransmit::CASES, send_window::CASES]
        .into_iter()
        .flatten()
}

/// The case of this id.
pub fn find(id: &str) -> Option<&'static Case> {
    all().find(|case| case.id == id)
}
