//! The cases, a file for each group.

mod access;
mod ack;
mod ack_taken;
mod addressing;
mod after_failure;
mod again;
mod answers;
mod arithmetic;
mod ask;
mod atomic;
mod atomic_length;
mod beside;
mod clear;
mod clear_asked;
mod compare_swap;
mod completions;
mod control;
mod crc;
mod credit_strangers;
mod datagram;
mod deferrable;
mod deferrable_again;
mod each_cause;
mod encoding;
mod errors;
mod establish;
mod failure;
mod far;
mod flood_of_own;
mod initiate;
mod ip;
mod lengths;
mod matching;
mod message_ends;
mod nack;
mod nscc;
mod nscc_destination;
mod nscc_over_time;
mod nscc_state;
mod operations;
mod path;
mod pools;
mod rccc;
mod rccc_destination;
mod rccc_next_context;
mod reaction;
mod reaction_fatal;
mod reaction_ignored;
mod read;
mod refused;
mod rendezvous;
mod reserved;
mod response;
mod retransmit;
mod return_sent;
mod return_taken;
mod reuse;
mod robust;
mod rod;
mod room;
mod rudi;
mod sack;
mod send;
mod send_window;
mod ses_encoding;
mod short_parts;
mod source_arrived;
mod source_clear;
mod source_close;
mod source_encoding;
mod source_rod;
mod source_rudi;
mod source_strangers;
mod source_uud;
mod strangers;
mod tagged;
mod taken_later;
mod target_close;
mod timer;
mod trim;
mod tss;
mod tss_bind;
mod tss_clear;
mod tss_datagram;
mod tss_header;
mod tss_key;
mod tss_receive;
mod tss_renumber;
mod tss_rotate;
mod tss_send;
mod tss_start;
mod values;
mod window;
mod window_state;
mod write;

use crate::Rule;

#[rustfmt::skip] // a line each
const GROUPS: &[&[Rule]] = &[
    access::CASES,
    ack::CASES,
    ack_taken::CASES,
    addressing::CASES,
    after_failure::CASES,
    again::CASES,
    answers::CASES,
    arithmetic::CASES,
    ask::CASES,
    atomic::CASES,
    atomic_length::CASES,
    beside::CASES,
    clear::CASES,
    clear_asked::CASES,
    compare_swap::CASES,
    completions::CASES,
    control::CASES,
    crc::CASES,
    credit_strangers::CASES,
    datagram::CASES,
    deferrable::CASES,
    deferrable_again::CASES,
    each_cause::CASES,
    encoding::CASES,
    errors::CASES,
    establish::CASES,
    failure::CASES,
    far::CASES,
    flood_of_own::CASES,
    initiate::CASES,
    ip::CASES,
    lengths::CASES,
    matching::CASES,
    message_ends::CASES,
    nack::CASES,
    nscc_destination::CASES,
    nscc::CASES,
    nscc_over_time::CASES,
    nscc_state::CASES,
    operations::CASES,
    path::CASES,
    pools::CASES,
    rccc::CASES,
    rccc_destination::CASES,
    rccc_next_context::CASES,
    reaction::CASES,
    reaction_fatal::CASES,
    reaction_ignored::CASES,
    read::CASES,
    refused::CASES,
    rendezvous::CASES,
    reserved::CASES,
    response::CASES,
    retransmit::CASES,
    return_sent::CASES,
    return_taken::CASES,
    reuse::CASES,
    robust::CASES,
    rod::CASES,
    room::CASES,
    rudi::CASES,
    sack::CASES,
    send::CASES,
    send_window::CASES,
    ses_encoding::CASES,
    short_parts::CASES,
    source_arrived::CASES,
    source_clear::CASES,
    source_close::CASES,
    source_encoding::CASES,
    source_rod::CASES,
    source_rudi::CASES,
    source_strangers::CASES,
    source_uud::CASES,
    strangers::CASES,
    tagged::CASES,
    taken_later::CASES,
    target_close::CASES,
    timer::CASES,
    trim::CASES,
    tss_bind::CASES,
    tss_clear::CASES,
    tss_datagram::CASES,
    tss_header::CASES,
    tss_key::CASES,
    tss_receive::CASES,
    tss_renumber::CASES,
    tss_rotate::CASES,
    tss_send::CASES,
    tss_start::CASES,
    values::CASES,
    window::CASES,
    window_state::CASES,
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
