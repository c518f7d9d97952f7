//! Writes and reads of a target's memory (sections 3.4.1 and 3.4.4.2). `access` tests permissions, bounds and
//! sizes of each operation. `addressing` tests how a request selects its region, and `bounds` tests accesses
//! outside it. `read` and `write` test the transfer of data, and `limits` tests long offsets and full
//! packets.

mod access;
mod addressing;
mod bounds;
mod limits;
mod read;
mod write;

use crate::Rule;

pub(in crate::rules) const RULES: &[&[Rule]] =
    &[access::RULES, addressing::RULES, bounds::RULES, read::RULES, write::RULES, limits::RULES];
