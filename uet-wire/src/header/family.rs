//! The macro that makes one enum for the headers of a layer.

/// Makes the enums of a layer, with a variant for each header: the view `Name<'a>` and the owned value `NameBuf`. With
/// `by`, a code point selects the header.
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
            /// The layouts of all headers of this layer.
            pub const LAYOUTS: &'static [&'static $crate::layout::Layout] = &[$($Header::LAYOUT),*];

            /// Returns the layout of the header.
            pub const fn layout(&self) -> &'static $crate::layout::Layout {
                match self { $($Name::$Header(_) => $Header::LAYOUT,)* }
            }

            /// Returns the bytes of the header.
            #[inline]
            pub const fn bytes(&self) -> &'a [u8] {
                match self { $($Name::$Header(header) => header.0,)* }
            }

            /// Returns the owned value. For a whole packet, `Uet::to_buf` does that (feature `alloc`).
            pub fn copied(&self) -> $Buf {
                match self { $($Name::$Header(header) => $Buf::$Header(header.copied()),)* }
            }

            /// Returns the faults of the header, one bit each.
            #[inline]
            pub(crate) fn faults(&self, around: &$crate::validate::Around<'_>) -> $crate::validate::Faults {
                match self { $($Name::$Header(header) => $crate::validate::Judged::faults(header, around),)* }
            }

            /// Returns the value with which the header breaks a rule.
            pub(crate) fn at_fault(&self, rule: usize, around: &$crate::validate::Around<'_>) -> Option<i64> {
                match self { $($Name::$Header(header) => $crate::validate::at_fault(header, rule, around),)* }
            }
        }

        impl $Buf {
            /// Returns a view of the header.
            pub fn view(&self) -> $Name<'_> {
                match self { $($Buf::$Header(header) => $Name::$Header(header.view()),)* }
            }

            /// Returns the bytes of the header, mutable.
            pub fn bytes_mut(&mut self) -> &mut [u8] {
                match self { $($Buf::$Header(header) => &mut header.0,)* }
            }
        }

        $crate::header::family! { @by $Name [$($Code)?] $($Header: $($($code)*)?;)* }
        #[cfg(feature = "nom")]
        $($crate::with_nom::family! { $Name by $Code })?
        #[cfg(feature = "bytes")]
        $crate::with_bytes::family! { $Name }
        #[cfg(feature = "serde")]
        $crate::with_serde::family! { $Name, $Buf { $($Header)* } }
        #[cfg(feature = "arbitrary")]
        $crate::with_arbitrary::family! { $Buf { $($Header)* } }
        #[cfg(feature = "proptest")]
        $crate::with_proptest::family! { $Buf { $($Header)* } }

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
            /// The code points that select each header.
            pub const TABLE: &'static [(&'static [$Code], &'static $crate::layout::Layout)] =
                &[$((&[$($Code::$code),*], $Header::LAYOUT)),*];

            /// Parses the header that `code` selects at the start of `bytes`. Returns it with the bytes after it, or
            /// `None` if this crate knows no header for `code`.
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
