//! The transport security header (section 3.7), and with the feature `tss` the protection itself.
//!
//! The bytes after the header are encrypted. A parser takes them as payload. [`Domain::open`] decrypts them in place,
//! and [`Domain::seal`] encrypts them.
#![cfg_attr(not(feature = "tss"), allow(rustdoc::broken_intra_doc_links))]

#[cfg(feature = "tss")]
mod domain;
#[cfg(feature = "tss")]
mod error;
#[cfg(feature = "tss")]
mod key;
#[cfg(feature = "tss")]
mod outer;

#[cfg(feature = "tss")]
pub use self::{
    domain::{Direction, Domain, ICV, Ipv6SsiContext, MAX_CONFIDENTIALITY_OFFSET, Mode},
    error::{DomainError, TssError},
    key::{DomainKey, KeyCache, KeyFingerprint, KeyId, KeyIv, PacketKey},
    outer::{Outer, OuterLayer},
};

use crate::ParseError;
use crate::error::Split;
use crate::header::{family, header};
use crate::registry::PdsType;

header! {
    /// The start of the security header: type, flags, association number (`an`) and secure domain (`sdi`).
    ///
    /// ```
    /// let (head, _) = uet_wire::tss::TssHead::parse(&[0x0d, 0x00, 0x01, 0x02])?;
    /// assert_eq!((head.sp(), head.an(), head.sdi()), (true, true, 0x0102));
    /// # Ok::<(), uet_wire::ParseError>(())
    /// ```
    TssHead[4] TssHeadMut TssHeadRepr, Tss "tss_head" "start of the security header" {
        "tss.type"              0..  5  kind: PdsType, "always TSS";
        "tss.sp"                5..  6  sp: bool, "a source identifier is present";
        "-"                     6..  7;
        "tss.an"                7..  8  an: bool, "association number: which of two keys";
        "tss.sdi"               8.. 32  sdi: u32, "secure domain";
    }
}

header! {
    /// The packet counter, which makes the nonce of each packet unique.
    ///
    /// ```
    /// let (tsc, _) = uet_wire::tss::Tsc::parse(&[0, 2, 0, 0, 0, 0, 1, 0])?;
    /// assert_eq!((tsc.epoch(), tsc.counter()), (2, 256));
    /// # Ok::<(), uet_wire::ParseError>(())
    /// ```
    Tsc[8] TscMut TscRepr, Tss "tsc" "packet counter" {
        "tss.epoch"             0.. 16  epoch: u16, "the key's epoch";
        "tss.counter"          16.. 64  counter: u64, "counts the packets of the epoch";
    }
}

header! {
    /// The security header without a source identifier.
    ///
    /// ```
    /// use uet_wire::tss::{Tss, TssShort};
    ///
    /// let bytes = [0x09, 0x00, 0x00, 0x07, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0xee];
    /// let (tss, opaque) = Tss::parse(&bytes)?;
    /// assert_eq!((tss.head().sdi(), tss.head().an(), tss.ssi()), (7, true, None));
    /// assert_eq!((tss.tsc().epoch(), tss.tsc().counter()), (2, 256));
    /// assert_eq!(opaque, [0xee]);
    /// # Ok::<(), uet_wire::ParseError>(())
    /// ```
    TssShort[12] TssShortMut TssShortRepr, Tss "tss" "security header" {
        "head"                  0.. 32  head: TssHead as TssHeadMut TssHeadRepr, "association";
        "tsc"                  32.. 96  tsc: Tsc as TscMut TscRepr, "packet counter";
    }
}

header! {
    /// The security header with a source identifier.
    ///
    /// ```
    /// use uet_wire::tss::TssLong;
    ///
    /// let tss = TssLong::build().head(|h| h.sdi(7)).ssi(0x0a00_0001).tsc(|t| t.epoch(2).counter(256)).done()?;
    /// assert_eq!(tss.bytes(), &[0x0c, 0, 0, 7, 10, 0, 0, 1, 0, 2, 0, 0, 0, 0, 1, 0]);
    /// # Ok::<(), uet_wire::WriteError>(())
    /// ```
    TssLong[16] TssLongMut TssLongRepr, Tss "tss_ssi" "security header with source identifier" {
        "head"                  0.. 32  head: TssHead as TssHeadMut TssHeadRepr, "association";
        "tss.ssi"              32.. 64  ssi: u32, "secure source identifier";
        "tsc"                  64..128  tsc: Tsc as TscMut TscRepr, "packet counter";
    }
}

impl TssShort {
    /// Starts building a header without a source identifier.
    pub fn build() -> TssShortMut {
        TssShort::zeroed().edit().head(|head| head.kind(PdsType::TSS))
    }
}

impl TssLong {
    /// Starts building a header with a source identifier.
    pub fn build() -> TssLongMut {
        TssLong::zeroed().edit().head(|head| head.kind(PdsType::TSS).sp(true))
    }
}

family! {
    /// Either form of the security header.
    Tss, TssBuf {
        /// Without a source identifier.
        TssShort[12];
        /// With a source identifier.
        TssLong[16];
    }
}

impl<'a> Tss<'a> {
    /// Parses the header at the start of `bytes`, and returns it with the bytes after it.
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), ParseError> {
        Self::split(bytes).map_err(|header| ParseError::short(header, bytes))
    }

    #[inline]
    pub(crate) fn split(bytes: &'a [u8]) -> Split<'a, Self> {
        // The first byte decides, even if it is the only one.
        let head = TssHead::from_bytes([bytes.first().copied().unwrap_or(0), 0, 0, 0]);
        if head.sp() {
            TssLong::split(bytes).map(|(header, rest)| (Tss::TssLong(header), rest))
        } else {
            TssShort::split(bytes).map(|(header, rest)| (Tss::TssShort(header), rest))
        }
    }

    /// Returns the start of the header, with the association number and the secure domain.
    #[inline]
    pub fn head(&self) -> TssHead {
        match self {
            Tss::TssShort(header) => header.head().copied(),
            Tss::TssLong(header) => header.head().copied(),
        }
    }

    /// Returns the source identifier, if present.
    #[inline]
    pub fn ssi(&self) -> Option<u32> {
        match self {
            Tss::TssShort(_) => None,
            Tss::TssLong(header) => Some(header.ssi()),
        }
    }

    /// Returns the packet counter.
    #[inline]
    pub fn tsc(&self) -> Tsc {
        match self {
            Tss::TssShort(header) => header.tsc().copied(),
            Tss::TssLong(header) => header.tsc().copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_long_form_has_a_source_identifier() {
        let long = TssLong::build().head(|h| h.sdi(7)).ssi(9).tsc(|t| t.epoch(2).counter(3)).done().unwrap();
        let short = TssShort::build().head(|h| h.sdi(8)).tsc(|t| t.epoch(4).counter(5)).done().unwrap();
        let read = |bytes| {
            let (tss, rest) = Tss::parse(bytes).unwrap();
            assert!(rest.is_empty());
            (tss.head().sdi(), tss.ssi(), tss.tsc().epoch(), tss.tsc().counter())
        };
        assert_eq!(read(long.bytes()), (7, Some(9), 2, 3));
        assert_eq!(read(short.bytes()), (8, None, 4, 5));
    }
}
