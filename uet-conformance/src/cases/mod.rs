//! The cases, a file for each group.

mod ack;
mod addressing;
mod atomic;
mod compare_swap;
mod datagram;
mod errors;
mod establish;
mod initiate;
mod read;
mod refused;
mod retransmit;
mod send;
mod send_window;
mod tagged;
mod write;

use crate::Case;

#[rustfmt::skip] // a line each
const GROUPS: &[&[Case]] = &[
    ack::CASES,
    addressing::CASES,
    atomic::CASES,
    compare_swap::CASES,
    datagram::CASES,
    errors::CASES,
    establish::CASES,
    initiate::CASES,
    read::CASES,
    refused::CASES,
    retransmit::CASES,
    send::CASES,
    send_window::CASES,
    tagged::CASES,
    write::CASES,
];

/// All cases, by group.
pub fn all() -> impl Iterator<Item = &'static Case> {
    GROUPS.iter().copied().flatten()
}

/// The case of this id.
pub fn find(id: &str) -> Option<&'static Case> {
    all().find(|case| case.id == id)
}
