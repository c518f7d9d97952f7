//! The types of fields, and their conversion from and to bits.

use crate::Spec;
use crate::layout::Kind;
use core::net::{Ipv4Addr, Ipv6Addr};

/// A type of a field.
pub(crate) trait Value: Copy {
    /// The kind of a field of this type in the layout.
    const KIND: Kind;

    /// Reads the value of the bits `lo..hi`.
    fn read<const N: usize>(bytes: &[u8; N], lo: usize, hi: usize) -> Self;

    /// Writes the bits `lo..hi`. Returns false if the value is too wide, and writes its low bits. To leave the old bits
    /// there would take a choice between two values for each field.
    fn write<const N: usize>(self, bytes: &mut [u8; N], lo: usize, hi: usize) -> bool;

    /// Returns true unless the value is a code point that `spec` neither assigns nor leaves to vendors.
    #[inline(always)]
    fn is_clean(self, _: &Spec) -> bool {
        true
    }
}

/// Implements `Value` for a fixed-width number from two conversions. Code points also have `is_clean`.
macro_rules! value {
    ($($ty:ty: $kind:expr, |$raw:ident| $from:expr, |$this:ident| $into:expr $(, $is_clean:path)?;)*) => {$(
        impl $crate::value::Value for $ty {
            const KIND: $crate::layout::Kind = $kind;

            #[inline(always)]
            fn read<const N: usize>(bytes: &[u8; N], lo: usize, hi: usize) -> Self {
                let $raw = $crate::bits::get(bytes, lo, hi);
                $from
            }

            #[inline(always)]
            fn write<const N: usize>(self, bytes: &mut [u8; N], lo: usize, hi: usize) -> bool {
                let $this = self;
                let raw: u128 = $into;
                $crate::bits::put(bytes, lo, hi, raw);
                raw & !$crate::bits::mask(hi - lo) == 0
            }

            $(
                #[inline(always)]
                fn is_clean(self, spec: &$crate::Spec) -> bool {
                    $is_clean(self, spec)
                }
            )?
        }
    )*};
}
pub(crate) use value;

value! {
    bool: Kind::Bool, |raw| raw != 0, |this| this as u128;
    u8: Kind::Uint, |raw| raw as u8, |this| this as u128;
    u16: Kind::Uint, |raw| raw as u16, |this| this as u128;
    u32: Kind::Uint, |raw| raw as u32, |this| this as u128;
    u64: Kind::Uint, |raw| raw as u64, |this| this as u128;
    u128: Kind::Uint, |raw| raw, |this| this;
    i16: Kind::Int, |raw| raw as u16 as i16, |this| this as u16 as u128;
    Ipv4Addr: Kind::Address, |raw| Ipv4Addr::from_bits(raw as u32), |this| this.to_bits() as u128;
    Ipv6Addr: Kind::Address, |raw| Ipv6Addr::from_bits(raw), |this| this.to_bits();
    [u8; 6]: Kind::Address,
        |raw| { let [_, _, mac @ ..] = (raw as u64).to_be_bytes(); mac },
        |this| { let [a, b, c, d, e, f] = this; u64::from_be_bytes([0, 0, a, b, c, d, e, f]) as u128 };
}
