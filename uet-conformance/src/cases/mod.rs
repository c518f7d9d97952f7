//! The cases, a file for each group.

mod ack;
mod atomic;
mod compare_swap;
mod datagram;
mod read;
mod send;
mod tagged;
mod write;

use crate::Case;

/// All cases, by group.
pub fn all() -> impl Iterator<Item = &'static Case> {
    [
        ack::CASES,
        atomic::CASES,
        compare_swap::CASES,
        datagram::CASES,
        read::CASES,
        send::CASES,
        tagged::CASES,
        write::CASES,
    ]
    .into_iter()
    .flatten()
}

/// The case of this id.
pub fn find(id: &str) -> Option<&'static Case> {
    all().find(|case| case.id == id)
}
