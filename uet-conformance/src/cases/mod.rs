//! The cases, a file for each group.

mod ack;
mod addressing;
mod ask;
mod atomic;
mod clear;
mod compare_swap;
mod completions;
mod datagram;
mod deferrable;
mod errors;
mod establish;
mod initiate;
mod reaction;
mod read;
mod refused;
mod rendezvous;
mod response;
mod retransmit;
mod sack;
mod send;
mod send_window;
mod ses_encoding;
mod tagged;
mod window;
mod write;

use crate::Case;

#[rustfmt::skip] // a line each
const GROUPS: &[&[Case]] = &[
    ack::CASES,
    addressing::CASES,
    ask::CASES,
    atomic::CASES,
    clear::CASES,
    compare_swap::CASES,
    completions::CASES,
    datagram::CASES,
    deferrable::CASES,
    errors::CASES,
    establish::CASES,
    initiate::CASES,
    reaction::CASES,
    read::CASES,
    refused::CASES,
    rendezvous::CASES,
    response::CASES,
    retransmit::CASES,
    sack::CASES,
    send::CASES,
    send_window::CASES,
    ses_encoding::CASES,
    tagged::CASES,
    window::CASES,
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
