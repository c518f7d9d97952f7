//! Strategies for property tests (feature `proptest`, which needs Rust 1.88).
//!
//! `any` generates every header, number and code point, and whole packets. A header consists of arbitrary bytes,
//! including reserved bits and unknown values. [`PdsBuf`] and the other enums have matching type fields. A [`UetBuf`]
//! is [consistent](UetBuf::consistent); its parameter is the length of the payload. [`received`] generates bytes that a
//! receiver must survive.
//!
//! ```
//! use proptest::prelude::*;
//! use uet_wire::{Uet, UetBuf, with_proptest::received};
//!
//! proptest! {
//!     // #[test]
//!     fn a_packet_comes_back(packet in any_with::<UetBuf>((0..=32).into())) {
//!         prop_assert_eq!(Uet::parse(&packet.to_bytes()).unwrap().to_buf(), packet);
//!     }
//!
//!     // #[test]
//!     fn all_that_is_received_is_kept(bytes in received()) {
//!         if let Ok(packet) = Uet::parse(&bytes) {
//!             prop_assert_eq!(packet.to_buf().to_bytes(), bytes);
//!         }
//!     }
//! }
//! # a_packet_comes_back();
//! # all_that_is_received_is_kept();
//! ```

use crate::UetBuf;
use crate::pds::PdsBuf;
use crate::ses::{ExtBuf, SesBuf};
use crate::tss::TssBuf;
use ::proptest::collection::{SizeRange, vec};
use ::proptest::prelude::*;
use ::proptest::{option, sample::Index};
use alloc::vec::Vec;

macro_rules! header {
    ($Name:ident[$bytes:literal]) => {
        #[cfg_attr(docsrs, doc(cfg(feature = "proptest")))]
        impl ::proptest::arbitrary::Arbitrary for $Name {
            type Parameters = ();
            type Strategy = ::proptest::strategy::Map<
                ::proptest::arbitrary::StrategyFor<[u8; $bytes]>,
                fn([u8; $bytes]) -> $Name,
            >;

            fn arbitrary_with(_: ()) -> Self::Strategy {
                ::proptest::strategy::Strategy::prop_map(::proptest::arbitrary::any::<[u8; $bytes]>(), $Name)
            }
        }
    };
}
pub(crate) use header;

macro_rules! family {
    ($Buf:ident { $($Header:ident)* }) => {
        #[cfg_attr(docsrs, doc(cfg(feature = "proptest")))]
        impl ::proptest::arbitrary::Arbitrary for $Buf {
            type Parameters = ();
            type Strategy = ::proptest::strategy::BoxedStrategy<Self>;

            fn arbitrary_with(_: ()) -> Self::Strategy {
                use ::proptest::prelude::{any, Strategy};
                ::proptest::strategy::Union::new([
                    $(any::<$Header>().prop_map(|header| $Buf::$Header(header).consistent()).boxed(),)*
                ])
                .boxed()
            }
        }
    };
}
pub(crate) use family;

macro_rules! number {
    ($($Name:ident: $width:expr, $new:expr;)*) => {$(
        #[cfg_attr(docsrs, doc(cfg(feature = "proptest")))]
        impl ::proptest::arbitrary::Arbitrary for $Name {
            type Parameters = ();
            type Strategy = ::proptest::strategy::Map<core::ops::RangeInclusive<u32>, fn(u32) -> $Name>;

            fn arbitrary_with(_: ()) -> Self::Strategy {
                ::proptest::strategy::Strategy::prop_map(0..=$crate::bits::mask($width) as u32, $new)
            }
        }
    )*};
}
pub(crate) use number;

#[cfg_attr(docsrs, doc(cfg(feature = "proptest")))]
impl Arbitrary for UetBuf {
    /// The length of the payload in bytes.
    type Parameters = SizeRange;
    type Strategy = BoxedStrategy<Self>;

    fn arbitrary_with(payload: SizeRange) -> Self::Strategy {
        let parts = (
            option::weighted(0.1, any::<TssBuf>()),
            any::<PdsBuf>(),
            option::weighted(0.8, any::<SesBuf>()),
            option::of(any::<ExtBuf>()),
            any::<u8>(),
            vec(any::<u8>(), payload),
        );
        parts
            .prop_map(|(tss, pds, ses, ext, choice, payload)| {
                UetBuf::of_parts(tss, pds, ses, ext, choice, payload)
            })
            .boxed()
    }
}

/// Generates bytes that a receiver may get where UET starts: a packet, a truncated packet, a packet with a few changed
/// bytes, or noise.
pub fn received() -> impl Strategy<Value = Vec<u8>> {
    let whole = || any::<UetBuf>().prop_map(|packet| packet.to_bytes());
    let changed = (whole(), vec((any::<Index>(), any::<u8>()), 1..4)).prop_map(|(mut bytes, changes)| {
        for (place, value) in changes {
            // A packet has at least one byte.
            let place = place.index(bytes.len().max(1));
            if let Some(byte) = bytes.get_mut(place) {
                *byte = value;
            }
        }
        bytes
    });
    let cut = (whole(), any::<Index>()).prop_map(|(mut bytes, length)| {
        bytes.truncate(length.index(bytes.len() + 1));
        bytes
    });
    prop_oneof![whole(), changed, cut, vec(any::<u8>(), 0..160)]
}
