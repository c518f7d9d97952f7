//! The cases, a file for each group.

mod ack;
mod ask;
mod clear;
mod datagram;
mod encoding;
mod establish;
mod initiate;
mod nack;
mod read;
mod refused;
mod retransmit;
mod robust;
mod rod;
mod rudi;
mod sack;
mod send;
mod send_window;
mod tagged;
mod target_close;
mod trim;
mod window;
mod write;

use crate::Case;

#[rustfmt::skip] // a line each
const GROUPS: &[&[Case]] = &[
    ack::CASES,
    ask::CASES,
    clear::CASES,
    datagram::CASES,
    encoding::CASES,
    establish::CASES,
    refused::CASES,
    initiate::CASES,
    nack::CASES,
    read::CASES,
    retransmit::CASES,
    robust::CASES,
    rod::CASES,
    rudi::CASES,
    sack::CASES,
    send::CASES,
    send_window::CASES,
    tagged::CASES,
    target_close::CASES,
    trim::CASES,
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
