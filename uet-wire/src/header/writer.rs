//! Makes the writer of a header.

/// Makes `NameMut<B>`, with a setter for each row.
macro_rules! writer {
    ($Name:ident[$bytes:literal] $Writer:ident, $layer:ident [$($row:tt)*]) => {
        impl $Name {
            /// Zeroes the header at the start of `buffer`. Returns a writer that builds the header there, and the rest
            /// of `buffer`. A failed build keeps the fields that were already set.
            #[inline]
            pub fn zeroed_in(
                buffer: &mut [u8],
            ) -> Result<($Writer<&mut [u8; $bytes]>, &mut [u8]), $crate::WriteError> {
                let present = buffer.len();
                match buffer.split_first_chunk_mut() {
                    Some((header, rest)) => {
                        *header = [0; $bytes];
                        Ok(($Writer { bytes: header, set: 0, late: false, error: None }, rest))
                    }
                    None => Err($crate::WriteError::short($crate::layout::Layer::$layer, 0, $bytes, present)),
                }
            }
        }

        #[doc = concat!("Writes a [`", stringify!($Name), "`], field by field. `done` returns the header.")]
        ///
        /// Set a deciding field before the fields that depend on it: another order is an error. The order on the wire
        /// always works.
        #[derive(Debug)]
        #[must_use = "ends with done()"]
        pub struct $Writer<B = [u8; $bytes]> {
            pub(crate) bytes: B,
            /// The conditional rows that were set: bit i for row i of the layout.
            pub(crate) set: u32,
            /// True if a row was set before the one that decides on it. In the usual order the compiler drops both.
            pub(crate) late: bool,
            // By reference: the errors of a header are constants, and a pointer stays in a register.
            pub(crate) error: Option<&'static $crate::WriteError>,
        }

        impl $Name {
            /// Returns the error of the first of these conditional rows that is absent.
            #[cold]
            // Many headers have no conditional row.
            #[allow(unused_variables)]
            fn absent(rows: u32, bytes: &[u8; $bytes]) -> Option<&'static $crate::WriteError> {
                let absent = [$($crate::header::absent!($Name rows bytes $row)),*];
                absent.into_iter().flatten().next()
            }
        }

        impl $Writer {
            /// Returns the header.
            ///
            /// # Errors
            ///
            /// Fails if a value is too wide or its field is absent when it is set. Reports the first such field.
            #[inline]
            pub fn done(self) -> Result<$Name, $crate::WriteError> {
                match self.first_error() {
                    None => Ok($Name(self.bytes)),
                    Some(error) => Err(error.in_header($Name::LAYOUT, &self.bytes)),
                }
            }
        }

        impl<'b> $Writer<&'b mut [u8; $bytes]> {
            /// Returns the header in the caller's buffer.
            ///
            /// # Errors
            ///
            /// Fails if a value is too wide or its field is absent when it is set. Reports the first such field.
            #[inline]
            pub fn done(self) -> Result<$Name<&'b mut [u8; $bytes]>, $crate::WriteError> {
                match self.first_error() {
                    None => Ok($Name(self.bytes)),
                    Some(error) => Err(error.in_header($Name::LAYOUT, self.bytes)),
                }
            }
        }

        impl<'b> $Writer<$crate::InPlace<'b, $bytes>> {
            /// Writes the fields into the caller's buffer and returns the header there. Without this call, the buffer
            /// stays unchanged.
            ///
            /// # Errors
            ///
            /// Fails if a value is too wide or its field is absent. Reports the first such field and leaves every byte
            /// of the buffer unchanged.
            #[inline]
            pub fn done(self) -> Result<$Name<&'b mut [u8; $bytes]>, $crate::WriteError> {
                match self.first_error() {
                    None => Ok($Name(self.bytes.commit())),
                    Some(error) => Err(error.in_header($Name::LAYOUT, core::borrow::Borrow::borrow(&self.bytes))),
                }
            }
        }

        impl<B: core::borrow::BorrowMut<[u8; $bytes]>> $Writer<B> {
            /// Copies all bits of `header`, including reserved bits.
            #[inline]
            pub fn copy_from(mut self, header: &$Name<impl core::borrow::Borrow<[u8; $bytes]>>) -> Self {
                *self.bytes.borrow_mut() = *header.bytes();
                self.set = 0;
                self
            }

            /// Returns the first error: of a call, or else of a row that a later call has made absent.
            #[inline(always)]
            pub(crate) fn first_error(&self) -> Option<&'static $crate::WriteError> {
                match self.late {
                    false => self.error,
                    true => self.error.or_else(|| $Name::absent(self.set, self.bytes.borrow())),
                }
            }

            /// Returns the current header. Unlike `done`, this ignores errors: a value that is too wide loses its high
            /// bits, and an absent field changes nothing.
            #[inline]
            pub fn current_unchecked(&self) -> $Name<&[u8; $bytes]> {
                $Name(self.bytes.borrow())
            }

            $($crate::header::setter! { $Name[$bytes] $row })*
        }
    };
}
pub(crate) use writer;

/// Makes the setter of a row.
macro_rules! setter {
    ($Name:ident[$bytes:literal] ($field:literal $lo:literal $hi:literal [] $when:tt $doc:tt)) => {};
    (
        $Name:ident[$bytes:literal]
        ($field:literal $lo:literal $hi:literal [$get:ident: $Part:ident as $PartMut:ident] [] [$($doc:literal)?])
    ) => {
        #[doc = concat!("Sets `", $field, "`" $(, ": ", $doc)?, ".")]
        #[inline(always)]
        pub fn $get(
            mut self,
            edit: impl for<'p> FnOnce($PartMut<&'p mut [u8; ($hi - $lo) / 8]>) -> $PartMut<&'p mut [u8; ($hi - $lo) / 8]>,
        ) -> Self {
            if let Some(bytes) = $crate::bits::part_mut(self.bytes.borrow_mut(), $lo) {
                self.error = edit($PartMut { bytes, set: 0, late: false, error: self.error }).first_error();
            }
            self.late |= self.set & const { $Name::LAYOUT.dependent_rows($lo, $hi) } != 0;
            self
        }
    };
    (
        $Name:ident[$bytes:literal]
        ($field:literal $lo:literal $hi:literal [$get:ident: $ty:ty] [] [$($doc:literal)?])
    ) => {
        #[doc = concat!("Sets `", $field, "`" $(, ": ", $doc)?, ".")]
        #[inline(always)]
        pub fn $get(mut self, value: $ty) -> Self {
            self.late |= self.set & const { $Name::LAYOUT.dependent_rows($lo, $hi) } != 0;
            if !$crate::value::Value::write(value, self.bytes.borrow_mut(), $lo, $hi) {
                self.error = $crate::error::first(self.error, const { &$crate::WriteError::too_wide($field, $hi - $lo) });
            }
            self
        }
    };
    (
        $Name:ident[$bytes:literal]
        ($field:literal $lo:literal $hi:literal [$get:ident: $ty:ty] [$deciding:literal $values:expr] [$($doc:literal)?])
    ) => {
        #[doc = concat!("Sets `", $field, "`" $(, ": ", $doc)?, ".")]
        #[doc = concat!("\n\nAn error unless `", $deciding, "` selects this field.")]
        #[inline(always)]
        pub fn $get(mut self, value: $ty) -> Self {
            self.set |= const { 1 << $Name::LAYOUT.number($field, $lo) };
            let bytes: &mut [u8; $bytes] = self.bytes.borrow_mut();
            if !$crate::header::exists!($Name bytes, $deciding $values) {
                self.error = $crate::error::first(self.error, const { &$crate::WriteError::absent($field, $Name::LAYOUT.deciding($deciding), $values) });
            } else if !$crate::value::Value::write(value, bytes, $lo, $hi) {
                self.error = $crate::error::first(self.error, const { &$crate::WriteError::too_wide($field, $hi - $lo) });
            }
            self
        }
    };
}
pub(crate) use setter;

/// The error of a conditional row that is among `rows` and absent.
macro_rules! absent {
    ($Name:ident $rows:ident $bytes:ident ($field:literal $lo:literal $hi:literal [] $when:tt $doc:tt)) => { None };
    ($Name:ident $rows:ident $bytes:ident ($field:literal $lo:literal $hi:literal [$($get:tt)*] [] $doc:tt)) => { None };
    (
        $Name:ident $rows:ident $bytes:ident
        ($field:literal $lo:literal $hi:literal [$($get:tt)*] [$deciding:literal $values:expr] $doc:tt)
    ) => {{
        let is_set = $rows & const { 1 << $Name::LAYOUT.number($field, $lo) } != 0;
        (is_set && !$crate::header::exists!($Name $bytes, $deciding $values))
            .then_some(const { &$crate::WriteError::absent($field, $Name::LAYOUT.deciding($deciding), $values) })
    }};
}
pub(crate) use absent;
