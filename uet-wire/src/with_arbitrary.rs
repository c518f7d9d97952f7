//! Makes headers, numbers, code points and packets from the bytes of a fuzzer (feature `arbitrary`).
//!
//! A header consists of arbitrary bytes, so reserved bits and unknown values occur. [`PdsBuf`](crate::pds::PdsBuf) and
//! the other enums have matching type fields. A [`UetBuf`] is [consistent](UetBuf::consistent): it parses to an equal
//! value after it was emitted.
//!
//! ```
//! use arbitrary::{Arbitrary, Unstructured};
//! use uet_wire::{Uet, UetBuf};
//!
//! let packet = UetBuf::arbitrary(&mut Unstructured::new(&[0x5a; 200]))?;
//! assert_eq!(Uet::parse(&packet.to_bytes()).unwrap().to_buf(), packet);
//! # Ok::<(), arbitrary::Error>(())
//! ```

use crate::UetBuf;
use ::arbitrary::{Arbitrary, Result, Unstructured};

macro_rules! header {
    ($Name:ident[$bytes:literal]) => {
        #[cfg_attr(docsrs, doc(cfg(feature = "arbitrary")))]
        impl<'a> ::arbitrary::Arbitrary<'a> for $Name {
            fn arbitrary(u: &mut ::arbitrary::Unstructured<'a>) -> ::arbitrary::Result<Self> {
                u.arbitrary().map($Name)
            }

            fn size_hint(_: usize) -> (usize, Option<usize>) {
                ($bytes, Some($bytes))
            }
        }
    };
}
pub(crate) use header;

macro_rules! family {
    ($Buf:ident { $($Header:ident)* }) => {
        #[cfg_attr(docsrs, doc(cfg(feature = "arbitrary")))]
        impl<'a> ::arbitrary::Arbitrary<'a> for $Buf {
            fn arbitrary(u: &mut ::arbitrary::Unstructured<'a>) -> ::arbitrary::Result<Self> {
                let one_of: &[fn(&mut ::arbitrary::Unstructured<'a>) -> ::arbitrary::Result<Self>] =
                    &[$(|u| u.arbitrary().map($Buf::$Header)),*];
                let header: Self = u.choose(one_of)?(u)?;
                Ok(header.consistent())
            }
        }
    };
}
pub(crate) use family;

macro_rules! number {
    ($($Name:ident: $width:expr, $new:expr;)*) => {$(
        #[cfg_attr(docsrs, doc(cfg(feature = "arbitrary")))]
        impl<'a> ::arbitrary::Arbitrary<'a> for $Name {
            fn arbitrary(u: &mut ::arbitrary::Unstructured<'a>) -> ::arbitrary::Result<Self> {
                u.int_in_range(0..=$crate::bits::mask($width) as u32).map($new)
            }
        }
    )*};
}
pub(crate) use number;

#[cfg_attr(docsrs, doc(cfg(feature = "arbitrary")))]
impl<'a> Arbitrary<'a> for UetBuf {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let tss = if u.ratio(1, 8)? { Some(u.arbitrary()?) } else { None };
        let (pds, ses, ext, choice) = u.arbitrary()?;
        Ok(UetBuf::of_parts(tss, pds, ses, ext, choice, u.arbitrary()?))
    }
}
