//! Building responses (sections 3.4.2, 3.4.3.3).

use super::Refusal;
use super::request::{Form, SesRequest};
use crate::{Delivery, Head, TxResponse};
use bytes::Bytes;
use uet_wire::Psn;
use uet_wire::registry::{List, NextHdr, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Response, ResponseData, ResponseDataSmall};

/// `SES-RESP-003`: the fields that a response copies from its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) struct Reply {
    pub(super) message: u16,
    pub(super) job: u32,
}

impl Reply {
    pub(super) fn to(request: &SesRequest) -> Self {
        Reply { message: request.message, job: request.address.job_id() }
    }

    /// `SES-RESP-002`: plain success is the default response and needs no guarantee. `length` is the message length in the
    /// packet that completes it, else 0.
    pub(super) fn plain(self, length: u32) -> TxResponse {
        self.response(ResponseOpcode::UET_DEFAULT_RESPONSE, length, Delivery::Default)
    }

    /// Returns an explicit success, sent immediately.
    pub(super) fn explicit(self, length: u32) -> TxResponse {
        self.response(ResponseOpcode::UET_RESPONSE, length, Delivery::Once)
    }

    /// `SES-RESP-004`: returns a success with a length that the initiator does not expect. It must arrive.
    pub(super) fn kept(self, length: u32) -> TxResponse {
        self.response(ResponseOpcode::UET_RESPONSE, length, Delivery::Guaranteed)
    }

    /// `SES-MATCH-003`, `SES-GTD-002`: reports a send in the overflow list, with guaranteed delivery.
    pub(super) fn overflow(self, length: u32) -> TxResponse {
        self.build(
            List::UET_OVERFLOW,
            ResponseOpcode::UET_RESPONSE,
            ReturnCode::OK,
            0,
            length,
            Delivery::Guaranteed,
        )
    }

    /// `SES-GTD-001`: an error has a return code and guaranteed delivery. `SES-ERR-001`: its length is that of the bytes
    /// placed.
    pub(super) fn error(self, refusal: &Refusal, placed: u32) -> TxResponse {
        let Refusal { code, generation, .. } = *refusal;
        self.build(
            List::UET_EXPECTED,
            ResponseOpcode::UET_RESPONSE,
            code,
            generation,
            placed,
            Delivery::Guaranteed,
        )
    }

    fn response(self, opcode: ResponseOpcode, length: u32, delivery: Delivery) -> TxResponse {
        self.build(List::UET_EXPECTED, opcode, ReturnCode::OK, 0, length, delivery)
    }

    fn build(
        self,
        list: List,
        opcode: ResponseOpcode,
        code: ReturnCode,
        generation: u8,
        length: u32,
        delivery: Delivery,
    ) -> TxResponse {
        let header = Response::build(opcode, code)
            .head(|head| head.list(list))
            .message_id(self.message)
            .ri_generation(generation)
            .job_id(self.job)
            .modified_length(length);
        // Each value came from a field of the same width.
        let head =
            header.done().map_or_else(|_| Head::new(), |header| header.bytes().iter().copied().collect());
        TxResponse { delivery, next_hdr: NextHdr::UET_HDR_RESPONSE, head, payload: Bytes::new() }
    }
}

/// The header of read data.
pub(super) struct DataHead {
    pub(super) reply: Reply,
    pub(super) form: Form,
    /// The target's own message id.
    pub(super) own: u16,
    /// The PSN of the request, for headers without a message id.
    pub(super) psn: Psn,
    pub(super) length: u16,
    pub(super) total: u32,
    pub(super) offset: u32,
}

impl DataHead {
    /// `SES-READ-005`: data of a read with a standard header names it by message ID. `SES-READ-006`: with a short
    /// header, by PSN. `SES-READ-007`, `SES-READ-010`: it carries the length of the whole read, and its own message ID.
    pub(super) fn head(&self) -> (NextHdr, Head) {
        match self.form {
            Form::Std => {
                let header = ResponseData::build()
                    .response_message_id(self.own)
                    .job_id(self.reply.job)
                    .read_request_message_id(self.reply.message)
                    .payload_length(self.length)
                    .modified_length(self.total)
                    .message_offset(self.offset);
                let head =
                    header.done().map_or_else(|_| Head::new(), |h| h.bytes().iter().copied().collect());
                (NextHdr::UET_HDR_RESPONSE_DATA, head)
            }
            Form::Medium | Form::Small => {
                let header = ResponseDataSmall::build()
                    .payload_length(self.length)
                    .job_id(self.reply.job)
                    .original_request_psn(self.psn);
                let head =
                    header.done().map_or_else(|_| Head::new(), |h| h.bytes().iter().copied().collect());
                (NextHdr::UET_HDR_RESPONSE_DATA_SMALL, head)
            }
        }
    }
}
