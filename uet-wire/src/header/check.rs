//! Reports compile errors at rows that contradict other rows.
//!
//! An error inside a macro points at the macro. An error in a token from a row points at the row. Each row's name
//! therefore becomes a constant, whose type is `&str` only if the row is correct:
//!
//! ```text
//! error[E0308]: mismatched types
//!   --> uet-wire/src/pds/ack.rs:30:9
//!    |
//! 30 |         "pds.flags.retx"       10.. 12  retx: bool, "the packet answered was a retransmission";
//!    |         ^^^^^^^^^^^^^^^^ expected `SharesBitsWithAnotherRow`, found `&str`
//! ```
//!
//! `tests/all/rows.rs` breaks rows and compares the errors. `tests/all/layouts.rs` finds gaps and rows out of order,
//! which no single row shows.

use crate::layout::{Kind, Layout, When, find, same};

/// Checks each row of a header against the table.
macro_rules! check {
    ($Name:ident [$(($field:literal $lo:literal $hi:literal $get:tt [$($deciding:literal $values:expr)?] $doc:tt))*]) => {
        $(
            const _: $crate::header::Checked<{ $crate::header::row_fault($Name::LAYOUT, $field, $lo, $hi) }> = $field;
            $(
                const _: $crate::header::Checked<{
                    $crate::header::condition_fault($Name::LAYOUT, $deciding, $lo)
                }> = $deciding;
            )?
        )*
    };
}
pub(crate) use check;

/// Evaluates to `&str` for a correct row, or to a type that names the fault.
pub(crate) type Checked<const FAULT: usize> = <Fault<FAULT> as Outcome>::Type;

pub(crate) struct Fault<const FAULT: usize>;

pub(crate) trait Outcome {
    type Type;
}

macro_rules! faults {
    ($($NUMBER:ident = $number:literal, $Type:ident;)*) => {$(
        const $NUMBER: usize = $number;

        #[allow(dead_code)] // used only in compile errors
        pub(crate) struct $Type;

        impl Outcome for Fault<$number> {
            type Type = $Type;
        }
    )*};
}

const NONE: usize = 0;

impl Outcome for Fault<NONE> {
    type Type = &'static str;
}

faults! {
    BITS = 1, BitsAreNotInTheHeader;
    SHARED = 2, SharesBitsWithAnotherRow;
    LENGTH = 3, PartHasAnotherLength;
    UNKNOWN = 4, HeaderHasNoSuchField;
    LATE = 5, DecidingFieldStandsLater;
}

/// Returns the fault of the row with this name and these bits.
pub(crate) const fn row_fault(layout: &Layout, name: &str, lo: usize, hi: usize) -> usize {
    if lo >= hi || hi > layout.bytes * 8 {
        return BITS;
    }
    let mut i = 0;
    while i < layout.rows.len() {
        let row = &layout.rows[i];
        if row.lo == lo && row.hi == hi && same(row.name, name) {
            return match row.kind {
                Kind::Part(part) if part.bytes * 8 != hi - lo => LENGTH,
                // The rows of the part are checked one by one.
                Kind::Part(_) => NONE,
                _ if shares_bits(layout, name, lo, hi, row.when) => SHARED,
                _ => NONE,
            };
        }
        i += 1;
    }
    NONE
}

/// The only field with named parts.
const FLAGS: &str = "pds.flags";

/// Returns true if another row shares bits with this row and may exist at the same time.
const fn shares_bits(layout: &Layout, name: &str, lo: usize, hi: usize, when: Option<When>) -> bool {
    let (mut rows, mut i) = (0, 0);
    while i < layout.places.len() {
        let place = &layout.places[i];
        if place.lo() < hi
            && lo < place.hi()
            && together(when, place.row.when)
            && !same(place.row.name, FLAGS)
        {
            rows += 1;
        }
        i += 1;
    }
    rows > 1 && !same(name, FLAGS)
}

/// Returns true if both conditions may hold at the same time.
const fn together(one: Option<When>, other: Option<When>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => !same(one.name, other.name) || one.values.0 & other.values.0 != 0,
        _ => true,
    }
}

/// Returns the fault in the condition of a row that starts at `lo`.
pub(crate) const fn condition_fault(layout: &Layout, deciding: &str, lo: usize) -> usize {
    match find(layout.places, deciding) {
        None => UNKNOWN,
        Some(place) if place.hi() > lo => LATE,
        Some(_) => NONE,
    }
}
