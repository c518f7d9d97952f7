//! Semantic headers: requests, their extensions, responses (section 3.4.2).

mod extension;
mod request;
mod response;

pub use extension::*;
pub use request::*;
pub use response::*;

use crate::header::family;
use crate::registry::{NextHdr, Opcode, ReturnCode};

family! {
    /// Any SES header. [`Uet::parse`](crate::Uet::parse) parses it, with the headers around it.
    Ses, SesBuf by NextHdr {
        /// A small request.
        Small[20]: UET_HDR_REQUEST_SMALL;
        /// A medium request.
        Medium[32]: UET_HDR_REQUEST_MEDIUM;
        /// A standard request.
        Std[44]: UET_HDR_REQUEST_STD;
        /// A response.
        Response[12]: UET_HDR_RESPONSE;
        /// A response with data.
        ResponseData[20]: UET_HDR_RESPONSE_DATA;
        /// A small response with data.
        ResponseDataSmall[12]: UET_HDR_RESPONSE_DATA_SMALL;
    }
}

impl Ses<'_> {
    /// Returns the code point that announces this header.
    pub const fn next_hdr(&self) -> NextHdr {
        match self {
            Ses::Small(_) => NextHdr::UET_HDR_REQUEST_SMALL,
            Ses::Medium(_) => NextHdr::UET_HDR_REQUEST_MEDIUM,
            Ses::Std(_) => NextHdr::UET_HDR_REQUEST_STD,
            Ses::Response(_) => NextHdr::UET_HDR_RESPONSE,
            Ses::ResponseData(_) => NextHdr::UET_HDR_RESPONSE_DATA,
            Ses::ResponseDataSmall(_) => NextHdr::UET_HDR_RESPONSE_DATA_SMALL,
        }
    }

    /// Returns the first two bytes of a request, or `None` for a response.
    #[inline]
    pub fn request_head(&self) -> Option<RequestHead> {
        match self {
            Ses::Small(header) => Some(header.head().copied()),
            Ses::Medium(header) => Some(header.head().copied()),
            Ses::Std(header) => Some(header.head().copied()),
            _ => None,
        }
    }

    /// Returns the first two bytes of a response, with its opcode and return code. Returns `None` for a request.
    #[inline]
    pub fn response_head(&self) -> Option<ResponseHead> {
        match self {
            Ses::Response(header) => Some(header.head().copied()),
            Ses::ResponseData(header) => Some(header.head().copied()),
            Ses::ResponseDataSmall(header) => Some(header.head().copied()),
            _ => None,
        }
    }

    /// Returns the opcode of a request. Returns `None` for a response, which has an opcode of another registry: see
    /// [`response_head`](Self::response_head).
    #[inline]
    pub fn opcode(&self) -> Option<Opcode> {
        match self {
            Ses::Small(header) => Some(header.head().opcode()),
            Ses::Medium(header) => Some(header.head().opcode()),
            Ses::Std(header) => Some(header.head().opcode()),
            _ => None,
        }
    }

    /// Returns the return code of a response, or `None` for a request.
    #[inline]
    pub fn return_code(&self) -> Option<ReturnCode> {
        match self {
            Ses::Response(header) => Some(header.head().return_code()),
            Ses::ResponseData(header) => Some(header.head().return_code()),
            Ses::ResponseDataSmall(header) => Some(header.head().return_code()),
            _ => None,
        }
    }

    /// Returns the address of a request, or `None` for a response.
    #[inline]
    pub fn address(&self) -> Option<Address> {
        match self {
            Ses::Small(header) => Some(header.address().copied()),
            Ses::Medium(header) => Some(header.address().copied()),
            Ses::Std(header) => Some(header.address().copied()),
            _ => None,
        }
    }

    /// Returns the payload length in bytes that the header states. Returns `None` if the header has no such field. A
    /// standard request that starts a message states only the length of the message.
    pub fn payload_length(&self) -> Option<u16> {
        match self {
            Ses::Std(header) => header.payload_length(),
            Ses::ResponseData(header) => Some(header.payload_length()),
            Ses::ResponseDataSmall(header) => Some(header.payload_length()),
            _ => None,
        }
    }
}
