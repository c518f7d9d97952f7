//! The cases, a file for each group.

mod access;
mod ack;
mod ack_taken;
mod addressing;
mod arithmetic;
mod ask;
mod atomic;
mod clear;
mod compare_swap;
mod completions;
mod control;
mod crc;
mod datagram;
mod deferrable;
mod encoding;
mod errors;
mod establish;
mod failure;
mod initiate;
mod ip;
mod nack;
mod nscc;
mod path;
mod rccc;
mod reaction;
mod reaction_fatal;
mod reaction_ignored;
mod read;
mod refused;
mod rendezvous;
mod response;
mod retransmit;
mod return_sent;
mod return_taken;
mod robust;
mod rod;
mod rudi;
mod sack;
mod send;
mod send_window;
mod ses_encoding;
mod source_clear;
mod source_close;
mod source_encoding;
mod source_rod;
mod source_rudi;
mod source_uud;
mod tagged;
mod target_close;
mod trim;
mod window;
mod write;

use crate::Rule;

#[rustfmt::skip] // a line each
const GROUPS: &[&[Rule]] = &[
    access::CASES,
    ack::CASES,
    ack_taken::CASES,
    addressing::CASES,
    arithmetic::CASES,
    ask::CASES,
    atomic::CASES,
    clear::CASES,
    compare_swap::CASES,
    completions::CASES,
    control::CASES,
    crc::CASES,
    datagram::CASES,
    deferrable::CASES,
    encoding::CASES,
    errors::CASES,
    establish::CASES,
    failure::CASES,
    initiate::CASES,
    ip::CASES,
    nack::CASES,
    nscc::CASES,
    path::CASES,
    rccc::CASES,
    reaction::CASES,
    reaction_fatal::CASES,
    reaction_ignored::CASES,
    read::CASES,
    refused::CASES,
    rendezvous::CASES,
    response::CASES,
    retransmit::CASES,
    return_sent::CASES,
    return_taken::CASES,
    robust::CASES,
    rod::CASES,
    rudi::CASES,
    sack::CASES,
    send::CASES,
    send_window::CASES,
    ses_encoding::CASES,
    source_clear::CASES,
    source_close::CASES,
    source_encoding::CASES,
    source_rod::CASES,
    source_rudi::CASES,
    source_uud::CASES,
    tagged::CASES,
    target_close::CASES,
    trim::CASES,
    window::CASES,
    write::CASES,
];

/// All cases, by group.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    GROUPS.iter().copied().flatten()
}

/// The case of this id.
pub fn find(id: &str) -> Option<&'static Rule> {
    all().find(|case| case.id == id)
}
