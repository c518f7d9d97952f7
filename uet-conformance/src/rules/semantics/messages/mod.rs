//! Sends of every kind: matching, unexpected messages, rendezvous, deferrable sends and datagrams (section
//! 3.4).

mod datagram;
mod deferrable;
mod deferrable_retry;
mod ends;
mod field_values;
mod lengths;
mod matching;
mod rendezvous;
mod send;
mod single_packet;
mod tagged;

use crate::Rule;

pub(in crate::rules) const RULES: &[&[Rule]] = &[
    send::RULES,
    tagged::RULES,
    matching::RULES,
    rendezvous::RULES,
    deferrable::RULES,
    deferrable_retry::RULES,
    datagram::RULES,
    ends::RULES,
    single_packet::RULES,
    lengths::RULES,
    field_values::RULES,
];
