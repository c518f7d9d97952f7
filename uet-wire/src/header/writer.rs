//! Writing a header.

/// Makes `NameMut<B>`, with a setter for each row.
macro_rules! writer {
    ($Name:ident[$bytes:literal] $Writer:ident [$($row:tt)*]) => {
        #[doc = concat!("Writes a [`", stringify!($Name), "`], field by field; see [`done`](Self::done).")]
        ///
        /// Set a conditional field after the field that decides it. Setting fields in wire order always works.
        #[derive(Debug)]
        #[must_use = "ends with done()"]
        pub struct $Writer<B = [u8; $bytes]> {
            pub(crate) bytes: B,
            // By reference: the errors of a header are constants, and a pointer stays in a register.
            pub(crate) error: Option<&'static $crate::WriteError>,
        }

        impl<B: core::borrow::BorrowMut<[u8; $bytes]>> $Writer<B> {
            /// Returns the header, or the first error.
            #[inline]
            pub fn done(self) -> Result<$Name<B>, $crate::WriteError> {
                match self.error {
                    None => Ok($Name(self.bytes)),
                    Some(error) => Err(*error),
                }
            }

            /// Sets all bits to those of `header`, reserved ones included.
            #[inline]
            pub fn copy_from(mut self, header: &$Name<impl core::borrow::Borrow<[u8; $bytes]>>) -> Self {
                *self.bytes.borrow_mut() = *header.bytes();
                self
            }

            /// Returns a view of the header as it is now, and ignores errors.
            #[inline]
            pub fn so_far(&self) -> $Name<&[u8; $bytes]> {
                $Name(self.bytes.borrow())
            }

            $($crate::header::setter! { $Name[$bytes] $row })*
        }
    };
}
pub(crate) use writer;

/// The setter of a row.
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
                self.error = edit($PartMut { bytes, error: self.error }).error;
            }
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
            if !$crate::value::Value::write(value, self.bytes.borrow_mut(), $lo, $hi) {
                self.error = $crate::error::first(self.error, const { &$crate::WriteError::TooWide { field: $field, width: $hi - $lo } });
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
            let bytes: &mut [u8; $bytes] = self.bytes.borrow_mut();
            if !$crate::header::exists!($Name bytes, $deciding $values) {
                self.error = $crate::error::first(self.error, const { &$crate::WriteError::Absent { field: $field, decided_by: $deciding } });
            } else if !$crate::value::Value::write(value, bytes, $lo, $hi) {
                self.error = $crate::error::first(self.error, const { &$crate::WriteError::TooWide { field: $field, width: $hi - $lo } });
            }
            self
        }
    };
}
pub(crate) use setter;
