//! The cases, a file for each group.

mod ack;
mod ask;
mod clear;
mod atomic;
mod compare_swap;
mod datagram;
mod establish;
mod initiate;
mod reaction;
mod read;
mod refused;
mod sack;
mod window;
mod retransmit;
mod send;
mod send_window;
mod tagged;
mod write;

use crate::Case;

#[rustfmt::skip] // a line each
const GROUPS: &[&[Case]] = &[
    ack::CASES,
    datagram::CASES,
    establish::CASES,
    initiate::CASES,
    reaction::CASES,
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
    [establish::CASES, refused::CASES, window::CASES, ack::CASES, sack::CASES, ask::CASES, clear::CASES]
        .into_iter()
        .flatten()
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
    GROUPS.iter().copied().flatten()
}

/// The case of this id.
pub fn find(id: &str) -> Option<&'static Case> {
    all().find(|case| case.id == id)
}
