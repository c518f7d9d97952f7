//! Axes and numbers that the rules on atomics share.

use crate::prelude::*;
use uet_wire::registry::{AtomicDatatype as Type, AtomicOpcode as Op};

/// Every operation without a compare value. Only the first changes nothing.
pub(super) const OPERATIONS: &[(&str, Op)] = &[
    ("read", Op::READ),
    ("sum", Op::SUM),
    ("min", Op::MIN),
    ("max", Op::MAX),
    ("diff", Op::DIFF),
    ("prod", Op::PROD),
    ("lor", Op::LOR),
    ("land", Op::LAND),
    ("lxor", Op::LXOR),
    ("bor", Op::BOR),
    ("band", Op::BAND),
    ("bxor", Op::BXOR),
    ("write", Op::WRITE),
];

pub(super) const OPERATION: Axis<Op> = axis("operation").values(OPERATIONS.split_at(1).1);

pub(super) const INTEGER: Axis<Type> = axis("datatype").values(&[
    ("uint64", Type::UINT64),
    ("int64", Type::INT64),
    ("uint32", Type::UINT32),
    ("int32", Type::INT32),
    ("uint16", Type::UINT16),
    ("int16", Type::INT16),
    ("uint8", Type::UINT8),
    ("int8", Type::INT8),
    ("uint128", Type::UINT128),
    ("int128", Type::INT128),
]);

/// True for a fetching atomic.
pub(super) const FORM: Axis<bool> =
    axis("form").needing(&[("plain", false, &[]), ("fetching", true, &[FETCH_ATOMIC])]);

/// Returns every pair of these values, as two lists.
pub(super) fn pairs<T: Copy>(values: &[T]) -> (Vec<T>, Vec<T>) {
    values.iter().flat_map(|old| values.iter().map(move |with| (*old, *with))).unzip()
}

/// Returns the elements in these bytes of memory.
pub(super) fn elements_of(t: &Test<'_>, size: usize, bytes: &[u8]) -> Vec<u128> {
    let big = t.word("byte_order") == Some("big");
    let number = |element: &[u8]| {
        let digits = |value: u128, byte: &u8| value << 8 | u128::from(*byte);
        if big { element.iter().fold(0, digits) } else { element.iter().rev().fold(0, digits) }
    };
    bytes.chunks(size).map(number).collect()
}
