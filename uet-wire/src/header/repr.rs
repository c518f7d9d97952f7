//! Makes the plain struct of a header.

/// Makes `NameRepr`, with a public field for each row that is not reserved.
macro_rules! repr_struct {
    ($Name:ident[$bytes:literal] $Repr:ident [$(($field:literal [$($get:ident: $ty:tt $($PartRepr:ident)?)?] $when:tt $doc:tt))*]) => {
        #[doc = concat!("The fields of [`", stringify!($Name), "`] as a plain struct, to match, change and compare.")]
        ///
        #[doc = concat!("It has no reserved bits. [`", stringify!($Name), "`] keeps every bit.")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $Repr {
            $($(
                #[doc = $crate::header::field_doc!($field $doc)]
                pub $get: $crate::header::repr_type!([$ty $($PartRepr)?] $when),
            )?)*
        }

        impl $Repr {
            /// Reads the fields of a header.
            #[inline]
            pub fn parse(header: &$Name<impl core::borrow::Borrow<[u8; $bytes]>>) -> Self {
                $Repr { $($($get: $crate::header::repr_field!([$ty $($PartRepr)?] header.$get()),)?)* }
            }

            /// Returns the header, with reserved bits 0.
            ///
            /// # Errors
            ///
            /// Fails if a value is too wide. Also fails if a field is `Some` but absent from this form of the header,
            /// or `None` but required.
            #[inline]
            pub fn header(&self) -> Result<$Name, $crate::WriteError> {
                let writer = $Name::zeroed().edit();
                $($(let writer = $crate::header::set_field!($field [$ty $($PartRepr)?] $when writer.$get(self.$get));)?)*
                writer.done()
            }

            /// Writes the header to the start of `buffer`, and returns the rest of it.
            ///
            /// # Errors
            ///
            /// Fails like [`header`](Self::header), and if the buffer is too short.
            #[inline]
            pub fn emit<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b mut [u8], $crate::WriteError> {
                self.header()?.emit(buffer)
            }
        }

        impl<B: core::borrow::Borrow<[u8; $bytes]>> $Name<B> {
            #[doc = concat!("Returns the fields as a plain struct: [`", stringify!($Repr), "::parse`].")]
            #[inline]
            pub fn to_repr(&self) -> $Repr {
                $Repr::parse(self)
            }
        }

        /// The fields of the header with all bits 0.
        impl Default for $Repr {
            #[inline]
            fn default() -> Self {
                Self::parse(&$Name::zeroed())
            }
        }
    };
}
pub(crate) use repr_struct;

/// The documentation of a field.
macro_rules! field_doc {
    ($field:literal [$($doc:literal)?]) => { concat!("`", $field, "`" $(, ": ", $doc, ".")?) };
}
pub(crate) use field_doc;

/// The type of a field.
macro_rules! repr_type {
    ([$ty:ty] []) => { $ty };
    ([$ty:ty] [$deciding:literal]) => { Option<$ty> };
    ([$Part:ident $PartRepr:ident] []) => { $PartRepr };
}
pub(crate) use repr_type;

/// The value of a field, read with its accessor.
macro_rules! repr_field {
    ([$ty:ty] $value:expr) => {
        $value
    };
    ([$Part:ident $PartRepr:ident] $value:expr) => {
        $PartRepr::parse(&$value)
    };
}
pub(crate) use repr_field;

/// Sets a field and returns the writer.
macro_rules! set_field {
    ($field:literal [$ty:ty] [] $writer:ident.$get:ident($value:expr)) => {
        $writer.$get($value)
    };
    ($field:literal [$ty:ty] [$deciding:literal] $writer:ident.$get:ident($value:expr)) => {
        match $value {
            Some(value) => $writer.$get(value),
            None if $writer.current_unchecked().$get().is_none() => $writer,
            None => {
                let mut writer = $writer;
                writer.error = $crate::error::first(
                    writer.error,
                    const {
                        &$crate::WriteError::mismatch($field, concat!("`", $deciding, "`, which requires it"))
                    },
                );
                writer
            }
        }
    };
    ($field:literal [$Part:ident $PartRepr:ident] [] $writer:ident.$get:ident($value:expr)) => {{
        let part = $value.header()?;
        $writer.$get(|writer| writer.copy_from(&part))
    }};
}
pub(crate) use set_field;
