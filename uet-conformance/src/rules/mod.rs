//! The rules, a file for each group.

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

use crate::Registry;

/// All rules of the suite.
pub const RULES: Registry = Registry::new(&[
    access::RULES,
    ack::RULES,
    ack_taken::RULES,
    addressing::RULES,
    after_failure::RULES,
    again::RULES,
    answers::RULES,
    arithmetic::RULES,
    ask::RULES,
    atomic::RULES,
    atomic_length::RULES,
    beside::RULES,
    clear::RULES,
    clear_asked::RULES,
    compare_swap::RULES,
    completions::RULES,
    control::RULES,
    crc::RULES,
    credit_strangers::RULES,
    datagram::RULES,
    deferrable::RULES,
    deferrable_again::RULES,
    each_cause::RULES,
    encoding::RULES,
    errors::RULES,
    establish::RULES,
    failure::RULES,
    far::RULES,
    flood_of_own::RULES,
    initiate::RULES,
    ip::RULES,
    lengths::RULES,
    matching::RULES,
    message_ends::RULES,
    nack::RULES,
    nscc_destination::RULES,
    nscc::RULES,
    nscc_over_time::RULES,
    nscc_state::RULES,
    operations::RULES,
    path::RULES,
    pools::RULES,
    rccc::RULES,
    rccc_destination::RULES,
    rccc_next_context::RULES,
    reaction::RULES,
    reaction_fatal::RULES,
    reaction_ignored::RULES,
    read::RULES,
    refused::RULES,
    rendezvous::RULES,
    reserved::RULES,
    response::RULES,
    retransmit::RULES,
    return_sent::RULES,
    return_taken::RULES,
    reuse::RULES,
    robust::RULES,
    rod::RULES,
    room::RULES,
    rudi::RULES,
    sack::RULES,
    send::RULES,
    send_window::RULES,
    ses_encoding::RULES,
    short_parts::RULES,
    source_arrived::RULES,
    source_clear::RULES,
    source_close::RULES,
    source_encoding::RULES,
    source_rod::RULES,
    source_rudi::RULES,
    source_strangers::RULES,
    source_uud::RULES,
    strangers::RULES,
    tagged::RULES,
    taken_later::RULES,
    target_close::RULES,
    timer::RULES,
    trim::RULES,
    tss_bind::RULES,
    tss_clear::RULES,
    tss_datagram::RULES,
    tss_header::RULES,
    tss_key::RULES,
    tss_receive::RULES,
    tss_renumber::RULES,
    tss_rotate::RULES,
    tss_send::RULES,
    tss_start::RULES,
    values::RULES,
    window::RULES,
    window_state::RULES,
    write::RULES,
]);
