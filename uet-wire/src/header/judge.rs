//! The fast check before validation.

/// Makes `is_clean`, which returns true if reserved bits are 0 and code points are assigned or left to vendors.
macro_rules! judge {
    ($Name:ident[$bytes:literal] [$($row:tt)*]) => {
        impl $crate::validate::Judged for $Name<&[u8; $bytes]> {
            const LAYOUT: &'static $crate::layout::Layout = $Name::LAYOUT;

            #[inline]
            fn bytes(&self) -> &[u8] {
                self.0
            }

            // Most headers are clean, and a few instructions check that. Validation finds the bits at fault with the
            // table.
            #[inline]
            fn is_clean(&self, spec: &$crate::Spec) -> bool {
                let bytes = self.0;
                true $(& $crate::header::is_clean!($Name bytes spec $row))*
            }
        }
    };
}
pub(crate) use judge;

/// The check of one row.
macro_rules! is_clean {
    ($Name:ident $bytes:ident $spec:ident ($field:literal $lo:literal $hi:literal [] [] $doc:tt)) => {
        ($crate::bits::get($bytes, $lo, $hi) == 0)
    };
    (
        $Name:ident $bytes:ident $spec:ident
        ($field:literal $lo:literal $hi:literal [$get:ident: $Part:ident as $PartMut:ident] [] $doc:tt)
    ) => {
        $crate::validate::Judged::is_clean(&$Part::<&[u8; ($hi - $lo) / 8]>($crate::bits::part($bytes, $lo)), $spec)
    };
    ($Name:ident $bytes:ident $spec:ident ($field:literal $lo:literal $hi:literal [$get:ident: $ty:ty] [] $doc:tt)) => {
        <$ty as $crate::value::Value>::is_clean($crate::value::Value::read($bytes, $lo, $hi), $spec)
    };
    (
        $Name:ident $bytes:ident $spec:ident
        ($field:literal $lo:literal $hi:literal $get:tt [$deciding:literal $values:expr] $doc:tt)
    ) => {
        (!$crate::header::exists!($Name $bytes, $deciding $values)
            | $crate::header::is_clean!($Name $bytes $spec ($field $lo $hi $get [] $doc)))
    };
}
pub(crate) use is_clean;
