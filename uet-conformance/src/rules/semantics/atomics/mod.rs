//! Atomic operations at a target (section 3.4.2). `arithmetic`, `arithmetic_swap` and `arithmetic_errors`
//! test every operation and datatype. `atomic` tests single operations by example, `length` tests oversized
//! atomics, `compare_swap` tests comparisons and their operands, and `tagged` tests duplicates of tagged
//! atomics.

mod arithmetic;
mod arithmetic_errors;
mod arithmetic_swap;
mod atomic;
mod compare_swap;
mod length;
mod steps;
mod tagged;

use crate::Rule;

pub(in crate::rules) const RULES: &[&[Rule]] = &[
    arithmetic::RULES,
    arithmetic_swap::RULES,
    arithmetic_errors::RULES,
    atomic::RULES,
    length::RULES,
    compare_swap::RULES,
    tagged::RULES,
];
