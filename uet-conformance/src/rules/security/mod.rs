//! Transport security (section 3.7): secure domains, keys, counters and protected packets. `steps` holds what
//! the rules share.

mod binding;
mod datagram;
mod header;
mod key;
mod new_start;
mod plaintext;
mod receive;
mod rotation;
mod send;
mod start;
mod steps;

use crate::Rule;

pub(super) const RULES: &[&[Rule]] = &[
    binding::RULES,
    plaintext::RULES,
    datagram::RULES,
    header::RULES,
    key::RULES,
    receive::RULES,
    new_start::RULES,
    rotation::RULES,
    send::RULES,
    start::RULES,
];
