//! Makes the type of a header and its table.

/// Makes `Name<B>` and `Name::LAYOUT`.
macro_rules! table {
    (
        [$(#[$meta:meta])*] $Name:ident[$bytes:literal], $layer:ident $short:literal $title:literal
        [$(($field:literal $lo:literal $hi:literal [$($get:ident: $ty:ty $(as $PartMut:ident)?)?] $when:tt [$($doc:literal)?]))*]
    ) => {
        $(#[$meta])*
        ///
        // Only the documentation includes the drawing. A test creates the drawing of a new header.
        #[cfg_attr(doc, doc = concat!("```text\n", include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/figures/", $short, ".txt")), "```"))]
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $Name<B = [u8; $bytes]>(pub(crate) B);

        impl $Name {
            const ROWS: &'static [$crate::layout::Row] = &[$($crate::layout::Row {
                name: $field,
                lo: $lo,
                hi: $hi,
                kind: $crate::header::kind!($($ty)?),
                when: $crate::header::when!($when),
                doc: concat!("" $(, $doc)?),
            }),*];

            /// The layout of this header: the rows of the figure above as data.
            pub const LAYOUT: &'static $crate::layout::Layout = &$crate::layout::Layout {
                name: $short,
                title: $title,
                layer: $crate::layout::Layer::$layer,
                bytes: $bytes,
                rows: Self::ROWS,
                places: &$crate::layout::places::<{ $crate::layout::count($Name::ROWS) }>(Self::ROWS),
            };
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
    };
}
pub(crate) use table;

/// The kind of a row, from the type of its accessor.
macro_rules! kind {
    () => {
        $crate::layout::Kind::Reserved
    };
    ($ty:ty) => {
        <$ty as $crate::value::Value>::KIND
    };
}
pub(crate) use kind;

/// The condition of a row.
macro_rules! when {
    ([]) => {
        None
    };
    ([$deciding:literal $values:expr]) => {
        Some($crate::layout::When { name: $deciding, values: $values })
    };
}
pub(crate) use when;
