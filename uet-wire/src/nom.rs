//! Every header, and the whole packet, as a parser for nom 8 (feature `nom`).
//!
//! `Ack::nom`, `Uet::nom` and their like are functions from input to nom's result, so they stand wherever
//! nom takes a parser. What a code point chooses, `Pds::nom(code)` and `Ses::nom(code)`, is a function that
//! makes such a parser. The error type is the caller's.
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
//! The parsers are nom's *complete* kind: a packet arrives as a whole, so a header that ends early is a
//! recoverable `Err::Error` and never `Err::Incomplete`. `alt` and `opt` try on, as they should, and there
//! is no streaming form: to parse from a stream, take the packet from it first.
//!
//! The error's input starts with the header that could not be read, also in a whole packet, and its kind is
//! [`ErrorKind::Eof`] for a header cut short, [`ErrorKind::Switch`] for a code point that announces no header.
//! nom's error has no room for the field; giving that input to `parse` of the same header tells it.

use crate::{ParseError, ParseErrorKind, Uet, ses, tss};
use ::nom::error::{ErrorKind, ParseError as NomError};
use ::nom::{Err, IResult};

/// The parser of one header.
macro_rules! header {
    ($Name:ident[$bytes:literal]) => {
        #[cfg_attr(docsrs, doc(cfg(feature = "nom")))]
        impl $Name {
            /// The header as a parser for nom; see [`uet_wire::nom`](crate::nom).
            #[inline]
            pub fn nom<'a, E: ::nom::error::ParseError<&'a [u8]>>(
                input: &'a [u8],
            ) -> ::nom::IResult<&'a [u8], $Name<&'a [u8; $bytes]>, E> {
                $crate::nom::complete(input, Self::parse(input))
            }
        }
    };
}
pub(crate) use header;

/// The parser of the header that a code point announces.
macro_rules! family {
    ($Name:ident by $Code:ident) => {
        #[cfg_attr(docsrs, doc(cfg(feature = "nom")))]
        impl<'a> $Name<'a> {
            /// A parser for nom of the header that `code` announces; see [`uet_wire::nom`](crate::nom).
            #[inline]
            pub fn nom<E: ::nom::error::ParseError<&'a [u8]>>(
                code: $Code,
            ) -> impl Fn(&'a [u8]) -> ::nom::IResult<&'a [u8], Self, E> {
                move |input| $crate::nom::announced(input, Self::parse_as(code, input))
            }
        }
    };
}
pub(crate) use family;

impl<'a> tss::Tss<'a> {
    /// The security header as a parser for nom; see [`uet_wire::nom`](crate::nom).
    #[inline]
    pub fn nom<E: NomError<&'a [u8]>>(input: &'a [u8]) -> IResult<&'a [u8], Self, E> {
        complete(input, Self::parse(input))
    }
}

impl<'a> ses::Ext<'a> {
    /// A parser for nom of the extension that follows the request `ses`; see [`uet_wire::nom`](crate::nom).
    #[inline]
    pub fn nom<E: NomError<&'a [u8]>>(ses: ses::Ses<'_>) -> impl Fn(&'a [u8]) -> IResult<&'a [u8], Self, E> {
        move |input| announced(input, Self::parse_after(&ses, input))
    }
}

impl<'a> Uet<'a> {
    /// A whole packet as a parser for nom; see [`uet_wire::nom`](crate::nom). All that follows the headers is
    /// payload, so nothing of the input is left: give it one packet, without trailer.
    #[inline]
    pub fn nom<E: NomError<&'a [u8]>>(input: &'a [u8]) -> IResult<&'a [u8], Self, E> {
        complete(input, Self::parse(input).map(|packet| (packet, input.get(input.len()..).unwrap_or(&[]))))
    }
}

/// nom's result of one of this crate's.
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

/// The same, where a code point may announce nothing.
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

        // An atomic whose extension lacks a byte.
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
