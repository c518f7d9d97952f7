//! The cases, a file for each group.

mod ack;
mod initiate;
mod datagram;
mod read;
mod send;
mod tagged;
mod write;
mod establish;
mod refused;
mod retransmit;
mod send_window;

use crate::Case;

#[rustfmt::skip] // a line each
const GROUPS: &[&[Case]] = &[
    ack::CASES,
    initiate::CASES,
    read::CASES,
    write::CASES,
];

/// All cases, by group.
pub fn all() -> impl Iterator<Item = &'static Case> {
    GROUPS.iter().copied().flatten()
    [establish::CASES, refused::CASES, ack::CASES].into_iter().flatten()
    [ack::CASES, initiate::CASES, retransmit::CASES, send_window::CASES].into_iter().flatten()
    [ack::CASES, datagram::CASES, read::CASES, send::CASES, tagged::CASES, write::CASES].into_iter().flatten()
}

/// The case of this id.
pub fn find(id: &str) -> Option<&'static Case> {
    all().find(|case| case.id == id)
}
