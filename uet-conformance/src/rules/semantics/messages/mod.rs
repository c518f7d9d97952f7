//! Messages that carry data to a receive or a region (section 3.4). `send`, `unexpected`, `tagged` and
//! `matching` test which receive a send fills. `rendezvous` and `deferrable` test sends that complete in
//! several steps, with the device as the target. The files in `_source` and `deferrable_retry` test the
//! device as the source. `datagram` tests sends without a context. `ends`, `aborts` and `single_packet` test
//! how a message ends. `lengths` and `field_values` test every length and every bit of a field. `steps` holds
//! what the rules share.

mod aborts;
mod datagram;
mod deferrable;
mod deferrable_retry;
mod deferrable_source;
mod ends;
mod field_values;
mod field_values_source;
mod lengths;
mod matching;
mod rendezvous;
mod rendezvous_source;
mod send;
mod single_packet;
mod steps;
mod tagged;
mod unexpected;

use crate::Rule;

pub(in crate::rules) const RULES: &[&[Rule]] = &[
    send::RULES,
    unexpected::RULES,
    tagged::RULES,
    matching::RULES,
    rendezvous::RULES,
    rendezvous_source::RULES,
    deferrable::RULES,
    deferrable_source::RULES,
    deferrable_retry::RULES,
    datagram::RULES,
    aborts::RULES,
    ends::RULES,
    single_packet::RULES,
    lengths::RULES,
    field_values::RULES,
    field_values_source::RULES,
];
