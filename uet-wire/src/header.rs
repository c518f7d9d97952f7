//! The one macro that turns the figure of a header into its view, its value, its writer and its table.
//!
//! ```text
//! header! {
//!     /// What the header is for.
//!     Name[12] NameMut, Pds "name" "The name in words" {
//!         "prologue"        0.. 16  prologue: Prologue as PrologueMut, "a part, shared by several headers";
//!         "-"               9.. 11;
//!         "pds.psn"        32.. 64  psn: Psn, "a field";
//!         "pds.dpdcid"     80.. 96  dpdcid: PdcId [when "pds.flags.syn" is(0)], "a field that exists at times";
//!     }
//! }
//! ```
//!
//! A row says: canonical name, bits from the start of the header, accessor and type, condition, meaning.
//! `-` is reserved. Rows may share bits when their conditions exclude each other. What comes out:
//!
//! - `Name<B>` over `B` = `[u8; 12]` (the owned value), `&[u8; 12]` (the view) or `&mut [u8; 12]`, with an
//!   accessor for each row; a row with a condition gives an `Option`, a part gives a view of it;
//! - `NameMut<B>`, the writer: a checked setter for each row; `done` reports the first error. `B` is `[u8; 12]` (an
//!   owned value), [`InPlace`](crate::InPlace) (an edit in the caller's buffer, all or nothing) or `&mut [u8; 12]` (a
//!   new header in the caller's buffer, or a part of another header);
//! - `Name::LAYOUT`, the table of the rows;
//! - what the features give a header, each by a macro of its own: see the modules `nom`, `bytes`, `serde`,
//!   `arbitrary` and `proptest`; and in tests, each accessor and setter as a plain function: see `probe`.
//!
//! What else a new header takes is in `CONTRIBUTING.md`. The tests of all headers walk the tables, so they cover it.

macro_rules! header {
    (
        $(#[$meta:meta])*
        $Name:ident[$bytes:literal] $Writer:ident, $layer:ident $short:literal $title:literal {
            $(
                $field:literal $lo:literal .. $hi:literal
                $($get:ident: $ty:tt $(as $PartMut:ident)?)? $([when $sel:literal $set:expr])? $(, $doc:literal)?;
            )*
        }
    ) => {
        $(#[$meta])*
        ///
        // Only the documentation needs the drawing: a test draws that of a new header.
        #[cfg_attr(doc, doc = concat!("```text\n", include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/figures/", $short, ".snap.txt")), "```"))]
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $Name<B = [u8; $bytes]>(pub(crate) B);

        impl $Name {
            const ROWS: &'static [$crate::layout::Row] = &[$($crate::layout::Row {
                name: $field,
                lo: $lo,
                hi: $hi,
                kind: $crate::header::header!(@kind $($ty)?),
                when: $crate::header::header!(@when $($sel, $set)?),
                doc: concat!("" $(, $doc)?),
            }),*];

            /// The rows of the figure above, for programs.
            pub const LAYOUT: &'static $crate::layout::Layout = &$crate::layout::Layout {
                name: $short,
                title: $title,
                layer: $crate::layout::Layer::$layer,
                bytes: $bytes,
                rows: Self::ROWS,
                places: &$crate::layout::places::<{ $crate::layout::count($Name::ROWS) }>(Self::ROWS),
            };

            /// The header with all bits 0.
            #[inline]
            pub const fn zeroed() -> Self {
                $Name([0; $bytes])
            }

            /// The header that these bytes are.
            #[inline]
            pub const fn from_bytes(bytes: [u8; $bytes]) -> Self {
                $Name(bytes)
            }

            /// A view of the header at the start of `bytes`, and what follows it.
            #[inline]
            pub fn parse(bytes: &[u8]) -> Result<($Name<&[u8; $bytes]>, &[u8]), $crate::ParseError> {
                Self::split(bytes).map_err(|header| $crate::ParseError::short(header, bytes))
            }

            /// The same; who reads several headers in a row makes the error itself.
            #[inline(always)]
            pub(crate) fn split(bytes: &[u8]) -> $crate::error::Split<'_, $Name<&[u8; $bytes]>> {
                match bytes.split_first_chunk() {
                    Some((header, rest)) => Ok(($Name(header), rest)),
                    None => Err(Self::LAYOUT),
                }
            }

            /// A writer that edits the header at the start of `bytes` in place, and what follows the header.
            #[inline]
            pub fn parse_mut(
                bytes: &mut [u8],
            ) -> Result<($Writer<$crate::InPlace<'_, $bytes>>, &mut [u8]), $crate::ParseError> {
                if bytes.len() < $bytes {
                    return Err($crate::ParseError::short(Self::LAYOUT, bytes));
                }
                match bytes.split_first_chunk_mut() {
                    Some((header, rest)) => Ok(($Writer { bytes: $crate::InPlace::new(header), error: None }, rest)),
                    None => Err($crate::ParseError::short(Self::LAYOUT, &[])),
                }
            }
        }

        impl $Name {
            /// Zeroes the header at the start of `buffer`, and returns a writer that builds it there, and the rest of
            /// `buffer`. A build that fails leaves the fields that were set.
            #[inline]
            pub fn zeroed_in(
                buffer: &mut [u8],
            ) -> Result<($Writer<&mut [u8; $bytes]>, &mut [u8]), $crate::WriteError> {
                let present = buffer.len();
                match buffer.split_first_chunk_mut() {
                    Some((header, rest)) => {
                        *header = [0; $bytes];
                        Ok(($Writer { bytes: header, error: None }, rest))
                    }
                    None => Err($crate::WriteError::short($crate::layout::Layer::$layer, 0, $bytes, present)),
                }
            }
        }

        impl<B: core::borrow::Borrow<[u8; $bytes]>> $Name<B> {
            /// The bytes, as on the wire.
            #[inline]
            pub fn bytes(&self) -> &[u8; $bytes] {
                self.0.borrow()
            }

            /// The owned value.
            #[inline]
            pub fn copied(&self) -> $Name {
                $Name(*self.0.borrow())
            }

            /// A view of it.
            #[inline]
            pub fn view(&self) -> $Name<&[u8; $bytes]> {
                $Name(self.0.borrow())
            }

            /// A writer that starts from a copy of this header.
            #[inline]
            pub fn edit(&self) -> $Writer {
                $Writer { bytes: *self.0.borrow(), error: None }
            }

            /// Writes the header to the start of `buffer`, and gives what is left of it.
            #[inline]
            pub fn emit<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b mut [u8], $crate::WriteError> {
                let present = buffer.len();
                match buffer.split_first_chunk_mut() {
                    Some((place, rest)) => {
                        *place = *self.0.borrow();
                        Ok(rest)
                    }
                    None => Err($crate::WriteError::short($crate::layout::Layer::$layer, 0, $bytes, present)),
                }
            }

            $($crate::header::header! {
                @getter $Name $bytes $lo $hi [$($get $ty $(as $PartMut)?)?] [$($sel, $set)?] concat!("`", $field, "`" $(, ": ", $doc, ".")?)
            })*
        }

        #[doc = concat!("Writes a [`", stringify!($Name), "`], field by field. `done` returns the header.")]
        ///
        /// Set the field that decides before a field that exists only under a condition. The order of the wire always
        /// works.
        #[derive(Debug)]
        #[must_use = "ends with done()"]
        pub struct $Writer<B = [u8; $bytes]> {
            pub(crate) bytes: B,
            // By reference: the errors of a header are constants, and a pointer stays in a register.
            pub(crate) error: Option<&'static $crate::WriteError>,
        }

        impl $Writer {
            /// Returns the header.
            ///
            /// # Errors
            ///
            /// Fails if a value is too wide or its field is absent. Reports the first such field.
            #[inline]
            pub fn done(self) -> Result<$Name, $crate::WriteError> {
                match self.error {
                    None => Ok($Name(self.bytes)),
                    Some(error) => Err(error.in_header($Name::LAYOUT, &self.bytes)),
                }
            }
        }

        impl<'b> $Writer<&'b mut [u8; $bytes]> {
            /// Returns the header, which lies in the caller's buffer.
            ///
            /// # Errors
            ///
            /// Fails if a value is too wide or its field is absent. Reports the first such field.
            #[inline]
            pub fn done(self) -> Result<$Name<&'b mut [u8; $bytes]>, $crate::WriteError> {
                match self.error {
                    None => Ok($Name(self.bytes)),
                    Some(error) => Err(error.in_header($Name::LAYOUT, self.bytes)),
                }
            }
        }

        impl<'b> $Writer<$crate::InPlace<'b, $bytes>> {
            /// Writes the fields into the caller's buffer and returns the header there. Without this call nothing is
            /// written.
            ///
            /// # Errors
            ///
            /// Fails if a value is too wide or its field is absent. Reports the first such field, and leaves every byte
            /// of the buffer as it was.
            #[inline]
            pub fn done(self) -> Result<$Name<&'b mut [u8; $bytes]>, $crate::WriteError> {
                match self.error {
                    None => Ok($Name(self.bytes.commit())),
                    Some(error) => Err(error.in_header($Name::LAYOUT, core::borrow::Borrow::borrow(&self.bytes))),
                }
            }
        }

        impl<B: core::borrow::BorrowMut<[u8; $bytes]>> $Writer<B> {
            /// Sets all bits to those of `header`, reserved ones included.
            #[inline]
            pub fn copy_from(mut self, header: &$Name<impl core::borrow::Borrow<[u8; $bytes]>>) -> Self {
                *self.bytes.borrow_mut() = *header.bytes();
                self
            }

            /// The header with the fields set until now. Unlike `done`, this ignores errors: a field that failed keeps its
            /// old value.
            #[inline]
            pub fn current_unchecked(&self) -> $Name<&[u8; $bytes]> {
                $Name(self.bytes.borrow())
            }

            $($crate::header::header! {
                @setter $Name $bytes $field $lo $hi [$($get $ty $(as $PartMut)?)?] [$($sel, $set)?]
                concat!("Sets `", $field, "`" $(, ": ", $doc)?, ".")
            })*
        }

        impl $crate::validate::Judged for $Name<&[u8; $bytes]> {
            const LAYOUT: &'static $crate::layout::Layout = $Name::LAYOUT;

            #[inline]
            fn bytes(&self) -> &[u8] {
                self.0
            }

            /// Whether reserved bits are 0 and code points ones that `version` assigns or leaves to vendors: most
            /// headers are, and a few instructions tell. Which bits are not, validation finds in the table.
            #[inline]
            fn is_clean(&self, version: $crate::Version) -> bool {
                let bytes = self.0;
                true $(& $crate::header::header! {
                    @clean $Name bytes version $lo $hi [$($get $ty $(as $PartMut)?)?] [$($sel, $set)?]
                })*
            }
        }

        impl $crate::value::Value for $Name {
            const KIND: $crate::layout::Kind = $crate::layout::Kind::Part(Self::LAYOUT);

            #[inline(always)]
            fn read<const N: usize>(bytes: &[u8; N], lo: usize, _: usize) -> Self {
                $Name(*$crate::bits::part(bytes, lo))
            }

            #[inline(always)]
            fn write<const N: usize>(self, bytes: &mut [u8; N], lo: usize, _: usize) -> bool {
                $crate::bits::put_part(bytes, lo, self.0);
                true
            }
        }

        impl<B: core::borrow::Borrow<[u8; $bytes]>> core::fmt::Debug for $Name<B> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                $crate::draw::debug(f, stringify!($Name), $Name::LAYOUT, self.bytes())
            }
        }

        #[cfg(feature = "nom")]
        $crate::nom::header! { $Name[$bytes] }
        #[cfg(feature = "bytes")]
        $crate::bytes::header! { $Name[$bytes] $layer }
        #[cfg(feature = "serde")]
        $crate::serde::header! { $Name[$bytes] }
        #[cfg(feature = "arbitrary")]
        $crate::arbitrary::header! { $Name[$bytes] }
        #[cfg(feature = "proptest")]
        $crate::proptest::header! { $Name[$bytes] }
        #[cfg(test)]
        impl $Name {
            /// The rows' accessors and setters, for the test that holds them against the table.
            pub(crate) fn probes() -> std::vec::Vec<$crate::probe::Probe> {
                let mut probes = std::vec::Vec::new();
                $($crate::probe::probe! {
                    probes $Name $field $lo $hi [$($get $ty $(as $PartMut)?)?] [$($sel)?]
                })*
                probes
            }
        }
    };

    (@kind) => { $crate::layout::Kind::Reserved };
    (@kind $ty:ty) => { <$ty as $crate::value::Value>::KIND };
    (@when) => { None };
    (@when $sel:literal, $set:expr) => { Some($crate::layout::When { name: $sel, values: $set }) };

    // Whether the deciding field has one of the values.
    (@exists $Name:ident $bytes:expr, $sel:literal, $set:expr) => {{
        const SELECTOR: (usize, usize) = $Name::LAYOUT.locate($sel);
        const SET: $crate::layout::Values = $set;
        SET.contains($crate::bits::get($bytes, SELECTOR.0, SELECTOR.1))
    }};

    (@clean $Name:ident $bytes:ident $version:ident $lo:literal $hi:literal [] []) => {
        ($crate::bits::get($bytes, $lo, $hi) == 0)
    };
    (@clean $Name:ident $bytes:ident $version:ident $lo:literal $hi:literal [$get:ident $Part:ident as $PartMut:ident] []) => {
        $crate::validate::Judged::is_clean(&$Part::<&[u8; ($hi - $lo) / 8]>($crate::bits::part($bytes, $lo)), $version)
    };
    (@clean $Name:ident $bytes:ident $version:ident $lo:literal $hi:literal [$get:ident $ty:ty] []) => {
        <$ty as $crate::value::Value>::is_clean($crate::value::Value::read($bytes, $lo, $hi), $version)
    };
    (@clean $Name:ident $bytes:ident $version:ident $lo:literal $hi:literal [$($get:tt)*] [$($when:tt)*]) => {
        (!$crate::header::header!(@exists $Name $bytes, $($when)*)
            | $crate::header::header!(@clean $Name $bytes $version $lo $hi [$($get)*] []))
    };

    (@getter $Name:ident $bytes:literal $lo:literal $hi:literal [] [$($when:tt)*] $doc:expr) => {};
    (@getter $Name:ident $bytes:literal $lo:literal $hi:literal [$get:ident $Part:ident as $PartMut:ident] [] $doc:expr) => {
        #[doc = $doc]
        #[inline(always)]
        pub fn $get(&self) -> $Part<&[u8; ($hi - $lo) / 8]> {
            $Part($crate::bits::part(self.0.borrow(), $lo))
        }
    };
    (@getter $Name:ident $bytes:literal $lo:literal $hi:literal [$get:ident $ty:ty] [] $doc:expr) => {
        #[doc = $doc]
        #[inline(always)]
        pub fn $get(&self) -> $ty {
            $crate::value::Value::read(self.0.borrow(), $lo, $hi)
        }
    };
    (@getter $Name:ident $bytes:literal $lo:literal $hi:literal [$get:ident $ty:ty] [$sel:literal, $set:expr] $doc:expr) => {
        #[doc = $doc]
        #[doc = concat!("\n\nOnly there when `", $sel, "` says so.")]
        #[inline(always)]
        pub fn $get(&self) -> Option<$ty> {
            let bytes: &[u8; $bytes] = self.0.borrow();
            if $crate::header::header!(@exists $Name bytes, $sel, $set) {
                Some($crate::value::Value::read(bytes, $lo, $hi))
            } else {
                None
            }
        }
    };

    (@setter $Name:ident $bytes:literal $field:literal $lo:literal $hi:literal [] [$($when:tt)*] $doc:expr) => {};
    (@setter $Name:ident $bytes:literal $field:literal $lo:literal $hi:literal [$get:ident $ty:ty as $PartMut:ident] [] $doc:expr) => {
        #[doc = $doc]
        #[inline(always)]
        pub fn $get(
            mut self,
            edit: impl for<'p> FnOnce($PartMut<&'p mut [u8; ($hi - $lo) / 8]>) -> $PartMut<&'p mut [u8; ($hi - $lo) / 8]>,
        ) -> Self {
            if let Some(bytes) = $crate::bits::part_mut(self.bytes.borrow_mut(), $lo) {
                self.error = edit($PartMut { bytes, error: self.error }).error;
            }
            self
        }
    };
    (@setter $Name:ident $bytes:literal $field:literal $lo:literal $hi:literal [$get:ident $ty:ty] [] $doc:expr) => {
        #[doc = $doc]
        #[inline(always)]
        pub fn $get(mut self, value: $ty) -> Self {
            if !$crate::value::Value::write(value, self.bytes.borrow_mut(), $lo, $hi) {
                self.error = $crate::error::first(self.error, const { &$crate::WriteError::too_wide($field, $hi - $lo) });
            }
            self
        }
    };
    (@setter $Name:ident $bytes:literal $field:literal $lo:literal $hi:literal [$get:ident $ty:ty] [$sel:literal, $set:expr] $doc:expr) => {
        #[doc = $doc]
        #[doc = concat!("\n\nOnly after `", $sel, "` has been set to what this field needs.")]
        #[inline(always)]
        pub fn $get(mut self, value: $ty) -> Self {
            let bytes: &mut [u8; $bytes] = self.bytes.borrow_mut();
            if !$crate::header::header!(@exists $Name bytes, $sel, $set) {
                self.error = $crate::error::first(self.error, const { &$crate::WriteError::absent($field, $Name::LAYOUT.deciding($sel), $set) });
            } else if !$crate::value::Value::write(value, bytes, $lo, $hi) {
                self.error = $crate::error::first(self.error, const { &$crate::WriteError::too_wide($field, $hi - $lo) });
            }
            self
        }
    };
}
pub(crate) use header;

/// The headers of a layer, one variant each: the view `Name<'a>` and the owned value `NameBuf`. With `by`, a
/// code point chooses among them.
macro_rules! family {
    (
        $(#[$meta:meta])*
        $Name:ident, $Buf:ident $(by $Code:ident)? {
            $($(#[$vmeta:meta])* $Header:ident[$bytes:literal] $(: $($code:ident),*)?;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $Name<'a> {
            $($(#[$vmeta])* $Header($Header<&'a [u8; $bytes]>),)*
        }

        #[doc = concat!("The owned form of [`", stringify!($Name), "`].")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $Buf {
            $($(#[$vmeta])* $Header($Header),)*
        }

        impl<'a> $Name<'a> {
            /// The tables of all of them.
            pub const LAYOUTS: &'static [&'static $crate::layout::Layout] = &[$($Header::LAYOUT),*];

            /// The header's table.
            pub const fn layout(&self) -> &'static $crate::layout::Layout {
                match self { $($Name::$Header(_) => $Header::LAYOUT,)* }
            }

            /// The header's bytes.
            #[inline]
            pub const fn bytes(&self) -> &'a [u8] {
                match self { $($Name::$Header(header) => header.0,)* }
            }

            /// The owned value.
            pub fn copied(&self) -> $Buf {
                match self { $($Name::$Header(header) => $Buf::$Header(header.copied()),)* }
            }

            /// Whether validation finds nothing in the header.
            #[inline]
            pub(crate) fn is_sound(&self, version: $crate::Version, around: &$crate::validate::Around<'_>) -> bool {
                match self { $($Name::$Header(header) => $crate::validate::Judged::is_sound(header, version, around),)* }
            }

            /// The rules that the header breaks.
            pub(crate) fn broken(&self, around: &$crate::validate::Around<'_>) -> u64 {
                match self { $($Name::$Header(header) => $crate::validate::broken_by(header, around),)* }
            }
        }

        impl $Buf {
            /// A view of it.
            pub fn view(&self) -> $Name<'_> {
                match self { $($Buf::$Header(header) => $Name::$Header(header.view()),)* }
            }

            /// The header's bytes, to change in place.
            pub fn bytes_mut(&mut self) -> &mut [u8] {
                match self { $($Buf::$Header(header) => &mut header.0,)* }
            }
        }

        $crate::header::family! { @by $Name [$($Code)?] $($Header: $($($code)*)?;)* }
        #[cfg(feature = "nom")]
        $($crate::nom::family! { $Name by $Code })?
        #[cfg(feature = "bytes")]
        $crate::bytes::family! { $Name }
        #[cfg(feature = "serde")]
        $crate::serde::family! { $Name, $Buf { $($Header)* } }
        #[cfg(feature = "arbitrary")]
        $crate::arbitrary::family! { $Buf { $($Header)* } }
        #[cfg(feature = "proptest")]
        $crate::proptest::family! { $Buf { $($Header)* } }

        $(impl<'a> From<$Header<&'a [u8; $bytes]>> for $Name<'a> {
            fn from(header: $Header<&'a [u8; $bytes]>) -> Self {
                $Name::$Header(header)
            }
        }

        impl<'a> From<&'a $Header> for $Name<'a> {
            fn from(header: &'a $Header) -> Self {
                $Name::$Header(header.view())
            }
        }

        impl From<$Header> for $Buf {
            fn from(header: $Header) -> Self {
                $Buf::$Header(header)
            }
        })*
    };

    (@by $Name:ident [] $($rest:tt)*) => {};
    (@by $Name:ident [$Code:ident] $($Header:ident: $($code:ident)*;)*) => {
        impl<'a> $Name<'a> {
            /// Which code points choose which header.
            pub const TABLE: &'static [(&'static [$Code], &'static $crate::layout::Layout)] =
                &[$((&[$($Code::$code),*], $Header::LAYOUT)),*];

            /// The header that `code` announces, at the start of `bytes`, and what follows it; `None`
            /// when `code` announces no header that this crate knows.
            pub fn parse_as(code: $Code, bytes: &'a [u8]) -> Option<Result<(Self, &'a [u8]), $crate::ParseError>> {
                Some(Self::split_as(code, bytes)?.map_err(|header| $crate::ParseError::short(header, bytes)))
            }

            #[inline(always)]
            pub(crate) fn split_as(code: $Code, bytes: &'a [u8]) -> Option<$crate::error::Split<'a, Self>> {
                Some(match code {
                    $($($Code::$code)|* => $Header::split(bytes).map(|(header, rest)| ($Name::$Header(header), rest)),)*
                    _ => return None,
                })
            }
        }
    };
}
pub(crate) use family;
