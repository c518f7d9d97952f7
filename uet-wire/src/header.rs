//! Describes headers with one macro, which calls other macros to generate the code.
//!
//! ```text
//! header! {
//!     /// A doc comment for the header.
//!     Name[12] NameMut NameRepr, Pds "name" "The name in words" {
//!         "prologue"        0.. 16  prologue: Prologue as PrologueMut PrologueRepr, "a part, shared by several headers";
//!         "-"               9.. 11;
//!         "pds.psn"        32.. 64  psn: Psn, "a field";
//!         "pds.dpdcid"     80.. 96  dpdcid: PdcId [when "pds.flags.syn" is(0)], "a field that exists only sometimes";
//!     }
//! }
//! ```
//!
//! A row states the canonical name, the bits from the start of the header, accessor and type, condition, meaning. `-`
//! marks reserved bits. Rows may share bits if their conditions exclude each other. An accessor in parentheses, such as
//! `(flags: u8)`, repeats bits that other rows name.
//!
//! [`header!`] parses the rows once, normalizes them and passes them to one macro per concern:
//!
//! | macro | makes |
//! | --- | --- |
//! | `table!` | `Name<B>` itself, and `Name::LAYOUT`, the rows as data |
//! | `check!` | a compile error at a row that contradicts the others |
//! | `view!` | parsing, and an accessor for each row; a conditional row gives an `Option`, a part gives a view of it |
//! | `writer!` | `NameMut<B>`: a checked setter for each row; `done` returns the first error |
//! | `judge!` | the fast test for reserved bits and unknown code points |
//! | `repr_struct!` | `NameRepr`, a plain struct with a public field for each row |
//!
//! Features add their own macros for headers: see the modules `nom`, `bytes`, `serde`, `arbitrary` and `proptest`. In
//! tests, `probe` wraps each accessor and setter in a plain function.
//!
//! In `Name<B>`, `B` is `[u8; 12]` (the owned value) or `&[u8; 12]` (the view). In `NameMut<B>`, `B` is one of three
//! types. `[u8; 12]` is an owned value. [`InPlace`](crate::InPlace) is an edit in the caller's buffer, all or nothing.
//! `&mut [u8; 12]` is a new header in the caller's buffer, or a part of another header.
//!
//! A normalized row is one group of tokens, which the macros pass on unchanged: `("pds.psn" 32 64 [psn: Psn] [] ["a
//! field"])`, in the order of the row above.
//!
//! `CONTRIBUTING.md` lists the other steps for a new header. The tests walk all tables, so they cover a new header.

mod check;
mod family;
mod judge;
mod repr;
mod table;
mod view;
mod writer;

pub(crate) use check::*;
pub(crate) use family::family;
pub(crate) use judge::{is_clean, judge};
pub(crate) use repr::{field_doc, repr_field, repr_struct, repr_type, set_field};
pub(crate) use table::{kind, table, when};
pub(crate) use view::{exists, getter, view};
pub(crate) use writer::{absent, setter, writer};

/// Parses the rows of a header and passes them to the macro of each concern.
macro_rules! header {
    (
        $(#[$meta:meta])*
        $Name:ident[$bytes:literal] $Writer:ident $Repr:ident, $layer:ident $short:literal $title:literal {
            $(
                $field:literal $lo:literal .. $hi:literal
                $($get:ident: $ty:tt $(as $PartMut:ident $PartRepr:ident)?)? $(($all:ident: $all_ty:tt))?
                $([when $deciding:literal $values:expr])? $(, $doc:literal)?;
            )*
        }
    ) => {
        $crate::header::header! { @make
            [$(#[$meta])*] $Name[$bytes] $Writer $Repr, $layer $short $title
            [$((
                $field $lo $hi [$($get: $ty $(as $PartMut)?)? $($all: $all_ty)?] [$($deciding $values)?] [$($doc)?]
            ))*]
        }
        $crate::header::repr_struct! { $Name[$bytes] $Repr
            [$(($field [$($get: $ty $($PartRepr)?)?] [$($deciding)?] [$($doc)?]))*]
        }
    };

    (
        @make [$(#[$meta:meta])*] $Name:ident[$bytes:literal] $Writer:ident $Repr:ident,
        $layer:ident $short:literal $title:literal $rows:tt
    ) => {
        $crate::header::table! { [$(#[$meta])*] $Name[$bytes], $layer $short $title $rows }
        $crate::header::check! { $Name $rows }
        $crate::header::view! { $Name[$bytes] $Writer, $layer $rows }
        $crate::header::writer! { $Name[$bytes] $Writer, $layer $rows }
        $crate::header::judge! { $Name[$bytes] $rows }

        #[cfg(feature = "nom")]
        $crate::with_nom::header! { $Name[$bytes] }
        #[cfg(feature = "bytes")]
        $crate::with_bytes::header! { $Name[$bytes] $layer }
        #[cfg(feature = "serde")]
        $crate::with_serde::header! { $Name[$bytes] }
        #[cfg(feature = "arbitrary")]
        $crate::with_arbitrary::header! { $Name[$bytes] }
        #[cfg(feature = "proptest")]
        $crate::with_proptest::header! { $Name[$bytes] }
        #[cfg(test)]
        $crate::probe::header! { $Name $rows }
    };
}
pub(crate) use header;
