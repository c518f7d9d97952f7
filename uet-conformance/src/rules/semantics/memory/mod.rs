//! Writes and reads of memory: addresses, permissions, offsets and lengths (sections 3.4.1 and 3.4.2).

mod access;
mod addressing;
mod limits;
mod read;
mod write;

use crate::Rule;

pub(in crate::rules) const RULES: &[&[Rule]] =
    &[access::RULES, addressing::RULES, read::RULES, write::RULES, limits::RULES];
