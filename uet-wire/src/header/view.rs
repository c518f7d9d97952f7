//! Makes the parser and the accessors of a header.

/// Makes the parser of a header and an accessor for each row.
macro_rules! view {
    ($Name:ident[$bytes:literal] $Writer:ident, $layer:ident [$($row:tt)*]) => {
        impl $Name {
            /// Returns the header with all bits 0.
            #[inline]
            pub const fn zeroed() -> Self {
                $Name([0; $bytes])
            }

            /// Creates a header from its bytes.
            #[inline]
            pub const fn from_bytes(bytes: [u8; $bytes]) -> Self {
                $Name(bytes)
            }

            /// Returns a view of the header at the start of `bytes`, and the bytes after it.
            #[inline]
            pub fn parse(bytes: &[u8]) -> Result<($Name<&[u8; $bytes]>, &[u8]), $crate::ParseError> {
                Self::split(bytes).map_err(|header| $crate::ParseError::short(header, bytes))
            }

            /// Parses like [`parse`](Self::parse), but leaves the error to the caller, who parses several headers in a
            /// row.
            #[inline(always)]
            pub(crate) fn split(bytes: &[u8]) -> $crate::error::Split<'_, $Name<&[u8; $bytes]>> {
                match bytes.split_first_chunk() {
                    Some((header, rest)) => Ok(($Name(header), rest)),
                    None => Err(Self::LAYOUT),
                }
            }

            /// Returns a writer that edits the header at the start of `bytes` in place, and the bytes after the header.
            ///
            /// Checks the length alone, not the type. Checksums and the CRC of the packet do not follow: see
            /// [`PacketMut`](crate::PacketMut).
            #[inline]
            pub fn parse_mut(
                bytes: &mut [u8],
            ) -> Result<($Writer<$crate::InPlace<'_, $bytes>>, &mut [u8]), $crate::ParseError> {
                if bytes.len() < $bytes {
                    return Err($crate::ParseError::short(Self::LAYOUT, bytes));
                }
                match bytes.split_first_chunk_mut() {
                    Some((header, rest)) => Ok(($Writer { bytes: $crate::InPlace::new(header), set: 0, late: false, error: None }, rest)),
                    None => Err($crate::ParseError::short(Self::LAYOUT, &[])),
                }
            }
        }

        impl<B: core::borrow::Borrow<[u8; $bytes]>> $Name<B> {
            /// Returns the bytes, as on the wire.
            #[inline]
            pub fn bytes(&self) -> &[u8; $bytes] {
                self.0.borrow()
            }

            /// Returns the owned value.
            #[inline]
            pub fn copied(&self) -> $Name {
                $Name(*self.0.borrow())
            }

            /// Returns a view of the header.
            #[inline]
            pub fn view(&self) -> $Name<&[u8; $bytes]> {
                $Name(self.0.borrow())
            }

            /// Returns a writer that starts from a copy of this header.
            #[inline]
            pub fn edit(&self) -> $Writer {
                $Writer { bytes: *self.0.borrow(), set: 0, late: false, error: None }
            }

            /// Writes the header to the start of `buffer`, and returns the rest of it.
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

            $($crate::header::getter! { $Name[$bytes] $row })*
        }
    };
}
pub(crate) use view;

/// Makes the accessor of a row.
macro_rules! getter {
    ($Name:ident[$bytes:literal] ($field:literal $lo:literal $hi:literal [] $when:tt $doc:tt)) => {};
    (
        $Name:ident[$bytes:literal]
        ($field:literal $lo:literal $hi:literal [$get:ident: $Part:ident as $PartMut:ident] [] [$($doc:literal)?])
    ) => {
        #[doc = concat!("`", $field, "`" $(, ": ", $doc, ".")?)]
        #[inline(always)]
        pub fn $get(&self) -> $Part<&[u8; ($hi - $lo) / 8]> {
            $Part($crate::bits::part(self.0.borrow(), $lo))
        }
    };
    (
        $Name:ident[$bytes:literal]
        ($field:literal $lo:literal $hi:literal [$get:ident: $ty:ty] [] [$($doc:literal)?])
    ) => {
        #[doc = concat!("`", $field, "`" $(, ": ", $doc, ".")?)]
        #[inline(always)]
        pub fn $get(&self) -> $ty {
            $crate::value::Value::read(self.0.borrow(), $lo, $hi)
        }
    };
    (
        $Name:ident[$bytes:literal]
        ($field:literal $lo:literal $hi:literal [$get:ident: $ty:ty] [$deciding:literal $values:expr] [$($doc:literal)?])
    ) => {
        #[doc = concat!("`", $field, "`" $(, ": ", $doc, ".")?)]
        #[doc = concat!("\n\n`None` unless the value of `", $deciding, "` selects this field.")]
        #[inline(always)]
        pub fn $get(&self) -> Option<$ty> {
            let bytes: &[u8; $bytes] = self.0.borrow();
            if $crate::header::exists!($Name bytes, $deciding $values) {
                Some($crate::value::Value::read(bytes, $lo, $hi))
            } else {
                None
            }
        }
    };
}
pub(crate) use getter;

/// Evaluates to true if the deciding field has one of the values.
macro_rules! exists {
    ($Name:ident $bytes:expr, $deciding:literal $values:expr) => {{
        const DECIDING: (usize, usize) = $Name::LAYOUT.locate($deciding);
        const VALUES: $crate::layout::Values = $values;
        VALUES.contains($crate::bits::get($bytes, DECIDING.0, DECIDING.1))
    }};
}
pub(crate) use exists;
