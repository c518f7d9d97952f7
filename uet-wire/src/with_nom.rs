//! Provides nom 8 parsers for every header and for whole packets (feature `nom`).
//!
//! `Ack::nom`, `Uet::nom` and similar functions take an input and return nom's result, so they work wherever nom takes
//! a parser. `Pds::nom(code)` and `Ses::nom(code)` return a parser for the header that the code point selects. The
//! caller chooses the error type.
//!
//! ```
//! use nom::{IResult, Parser, bytes::complete::tag, combinator::rest, number::complete::be_u32};
//! use uet_wire::pds::{Ack, Prologue};
//! use uet_wire::ses::Ses;
//!
//! // A record of one's own: a magic, a timestamp, an ACK, what the ACK announces, and the rest.
//! fn record(input: &[u8]) -> IResult<&[u8], (u32, Ack<&[u8; 12]>, Ses<'_>, &[u8])> {
//!     let (input, (_, time, ack)) = (tag("UET!"), be_u32, Ack::nom).parse(input)?;
//!     let (input, (ses, data)) = (Ses::nom(ack.prologue().next_hdr()), rest).parse(input)?;
//!     Ok((input, (time, ack, ses, data)))
//! }
//!
//! let bytes = [
//!     b'U', b'E', b'T', b'!', 0, 0, 0, 9, //
//!     0x3a, 0x00, 0x00, 0x00, 0x00, 0x01, 0x20, 0x03, 0x80, 0x01, 0x40, 0x01, // ACK
//!     0x01, 0x01, 0x00, 0x01, 0x00, 0x00, 0x00, 0x65, 0x00, 0x00, 0x40, 0x00, // RESPONSE
//! ];
//! let (_, (time, ack, ses, data)) = record(&bytes).unwrap();
//! assert_eq!((time, ack.cack_psn()), (9, uet_wire::Psn(0x12003)));
//! assert!(matches!(ses, Ses::Response(_)) && data.is_empty());
//!
//! // Cut inside the RESPONSE: the error points at the header that is not all there.
//! let cut = record(&bytes[..30]).unwrap_err();
//! assert_eq!(cut, nom::Err::Error(nom::error::Error::new(&bytes[20..30], nom::error::ErrorKind::Eof)));
//! ```
//!
//! # Errors
//!
//! The parsers are of nom's *complete* kind: a packet arrives as a whole. A truncated header is a recoverable
//! `Err::Error`, never `Err::Incomplete`, so `alt` and `opt` try the next alternative. Streaming is not supported: to
//! parse a stream, extract the packet first.
//!
//! The input of the error starts with the header that failed, even inside a whole packet. Its kind is
//! [`ErrorKind::Eof`] for a truncated header and [`ErrorKind::Switch`] for a code point without a header. nom's error
//! cannot name the field. To find it, pass that input to `parse` of the same header.
//!
//! The error borrows the input. Make it an owned one before it leaves the function that holds the bytes:
//!
//! ```
//! use nom::error::Error;
//! use uet_wire::{Psn, pds::Ack};
//!
//! fn acknowledged(path: &str) -> Result<Psn, Box<dyn std::error::Error>> {
//!     let bytes = std::fs::read(path)?;
//!     let owned = |error: nom::Err<Error<&[u8]>>| error.map(|error| error.code).to_string();
//!     let (_, ack) = Ack::nom(&bytes).map_err(owned)?;
//!     Ok(ack.cack_psn())
//! }
//!
//! assert!(acknowledged("nowhere").is_err());
//! ```

use crate::{ParseError, ParseErrorKind, Uet, ses, tss};
use ::nom::error::{ErrorKind, ParseError as NomError};
use ::nom::{Err, IResult};

/// Makes the parser of a header.
macro_rules! header {
    ($Name:ident[$bytes:literal]) => {
        #[cfg_attr(docsrs, doc(cfg(feature = "nom")))]
        impl $Name {
            /// Parses the header with nom; see [`uet_wire::with_nom`](crate::with_nom).
            #[inline]
            pub fn nom<'a, E: ::nom::error::ParseError<&'a [u8]>>(
                input: &'a [u8],
            ) -> ::nom::IResult<&'a [u8], $Name<&'a [u8; $bytes]>, E> {
                $crate::with_nom::complete(input, Self::parse(input))
            }
        }
    };
}
pub(crate) use header;

/// Makes the parser of the header that a code point selects.
macro_rules! family {
    ($Name:ident by $Code:ident) => {
        #[cfg_attr(docsrs, doc(cfg(feature = "nom")))]
        impl<'a> $Name<'a> {
            /// Returns a nom parser for the header that `code` selects; see [`uet_wire::with_nom`](crate::with_nom).
            #[inline]
            pub fn nom<E: ::nom::error::ParseError<&'a [u8]>>(
                code: $Code,
            ) -> impl Fn(&'a [u8]) -> ::nom::IResult<&'a [u8], Self, E> {
                move |input| $crate::with_nom::announced(input, Self::parse_as(code, input))
            }
        }
    };
}
pub(crate) use family;

impl<'a> tss::Tss<'a> {
    /// Parses the security header with nom; see [`uet_wire::with_nom`](crate::with_nom).
    #[inline]
    pub fn nom<E: NomError<&'a [u8]>>(input: &'a [u8]) -> IResult<&'a [u8], Self, E> {
        complete(input, Self::parse(input))
    }
}

impl<'a> ses::Ext<'a> {
    /// Returns a nom parser for the extension of the request `ses`; see [`uet_wire::with_nom`](crate::with_nom).
    #[inline]
    pub fn nom<E: NomError<&'a [u8]>>(ses: ses::Ses<'_>) -> impl Fn(&'a [u8]) -> IResult<&'a [u8], Self, E> {
        move |input| announced(input, Self::parse_after(&ses, input))
    }
}

impl<'a> Uet<'a> {
    /// Parses a whole packet with nom; see [`uet_wire::with_nom`](crate::with_nom). Consumes the whole input: all bytes after the
    /// headers are payload. The input must be one packet without a trailer.
    #[inline]
    pub fn nom<E: NomError<&'a [u8]>>(input: &'a [u8]) -> IResult<&'a [u8], Self, E> {
        complete(input, Self::parse(input).map(|packet| (packet, input.get(input.len()..).unwrap_or(&[]))))
    }
}

/// Converts a result of this crate into nom's result.
#[inline]
pub(crate) fn complete<'a, T, E: NomError<&'a [u8]>>(
    input: &'a [u8],
    result: Result<(T, &'a [u8]), ParseError>,
) -> IResult<&'a [u8], T, E> {
    match result {
        Ok((value, rest)) => Ok((rest, value)),
        Err(error) => {
            let kind = match error.kind() {
                ParseErrorKind::Truncated => ErrorKind::Eof,
                ParseErrorKind::InvalidValue => ErrorKind::Verify,
                ParseErrorKind::LengthExceedsInput => ErrorKind::LengthValue,
            };
            Err(Err::Error(E::from_error_kind(input.get(error.start..).unwrap_or(input), kind)))
        }
    }
}

/// Converts like [`complete`], for a code point that may select no header.
#[inline]
pub(crate) fn announced<'a, T, E: NomError<&'a [u8]>>(
    input: &'a [u8],
    result: Option<Result<(T, &'a [u8]), ParseError>>,
) -> IResult<&'a [u8], T, E> {
    match result {
        Some(result) => complete(input, result),
        None => Err(Err::Error(E::from_error_kind(input, ErrorKind::Switch))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pds::{Ack, Pds, Request};
    use crate::registry::{NextHdr, PdsType};
    use crate::ses::{Ext, Ses};
    use ::nom::error::Error;
    use ::nom::{Parser, branch::alt, combinator::map, multi::many0_count};

    fn error(input: &[u8], kind: ErrorKind) -> Err<Error<&[u8]>> {
        Err::Error(Error::new(input, kind))
    }

    #[test]
    fn headers_compose_in_branches_and_repetitions() {
        let bytes = [0; 30];
        let mut acks = many0_count(Ack::nom::<Error<&[u8]>>);
        let (rest, count) = acks.parse(&bytes[..]).unwrap();
        assert_eq!((rest.len(), count), (6, 2), "the third is cut: an error that many0 takes for the end");

        let mut either = alt((
            map(Pds::nom::<Error<&[u8]>>(PdsType::ACK_CCX), |_| "long"),
            map(Request::nom, |_| "short"),
        ));
        assert_eq!(either.parse(&bytes[..]), Ok((&bytes[12..], "short")));
    }

    #[test]
    fn an_error_starts_at_the_header_and_says_what_kind() {
        let bytes = [0x38; 11];
        assert_eq!(Ack::nom(&bytes), Err(error(&bytes, ErrorKind::Eof)));
        assert_eq!(Ses::nom(NextHdr::UET_HDR_NONE)(&bytes), Err(error(&bytes, ErrorKind::Switch)));

        // An atomic request with an extension that lacks one byte.
        let mut packet = [0; 12 + 20 + 3];
        packet[..2].copy_from_slice(&[0x10, 0x80]);
        packet[12] = 0x03;
        assert_eq!(Uet::nom(&packet), Err(error(&packet[32..], ErrorKind::Eof)));
        let (_, request) = Ses::nom::<Error<&[u8]>>(NextHdr::UET_HDR_REQUEST_SMALL)(&packet[12..]).unwrap();
        assert_eq!(Ext::nom(request)(&packet[32..]), Err(error(&packet[32..], ErrorKind::Eof)));
        packet[12] = 0x01;
        let (rest, whole) = Uet::nom::<Error<&[u8]>>(&packet).unwrap();
        assert_eq!((rest, whole.payload), (&[][..], &packet[32..]));
    }
}
