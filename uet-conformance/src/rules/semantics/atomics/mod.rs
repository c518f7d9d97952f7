//! Atomic operations: datatypes, arithmetic, compare and swap (section 3.4.2).

mod arithmetic;
mod atomic;
mod compare_swap;
mod length;

use crate::Rule;

pub(in crate::rules) const RULES: &[&[Rule]] =
    &[arithmetic::RULES, atomic::RULES, length::RULES, compare_swap::RULES];
