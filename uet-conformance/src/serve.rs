//! The suite as the target of the device's operations: it reads the requests and answers them.

use crate::target::{RxRequest, Target};
use crate::{AckBuilder, Outcome, Stop, Test};
use uet_control::{Form, Operated, Status};
use uet_wire::UetBuf;
use uet_wire::catalogue::Requirement;
use uet_wire::registry::{AckRequest, Opcode, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Address, ExtBuf, RequestHead, Response, ResponseData, ResponseDataSmall, Ses, SesBuf};

/// The SES fields of a request. Fields that its header lacks are `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // named as the header's fields are
pub struct SesFields {
    pub form: Form,
    pub head: RequestHead,
    pub address: Address,
    pub message_id: Option<u16>,
    pub request_length: u32,
    pub buffer_offset: Option<u64>,
    pub initiator: Option<u32>,
    pub memory_key: Option<u64>,
    pub match_bits: Option<u64>,
    pub header_data: Option<u64>,
    pub payload_length: Option<u16>,
    pub message_offset: Option<u32>,
    /// The initiator's restart token and the target's.
    pub tokens: Option<(u32, u32)>,
    pub ext: Option<ExtBuf>,
}

impl SesFields {
    /// Offset of the packet in its message.
    pub fn start(&self) -> usize {
        self.message_offset.unwrap_or(0) as usize
    }

    /// The opcode of the request.
    pub fn opcode(&self) -> Opcode {
        self.head.opcode()
    }
}

impl RxRequest {
    /// Returns the SES fields of the request. Inconclusive if it has none.
    pub fn said(&self) -> Result<SesFields, Stop> {
        said(&self.seen.uet())
            .ok_or_else(|| Stop::Inconclusive(format!("no request of SES: {}", self.seen.uet())))
    }

    /// Returns a response to the request with this code, with its message and job.
    pub fn response(&self, code: ReturnCode, length: u32) -> Result<Response, Stop> {
        let said = self.said()?;
        let response = Response::build(ResponseOpcode::UET_RESPONSE, code);
        let response = response.message_id(said.message_id.unwrap_or(0)).job_id(said.address.job_id());
        Ok(response.modified_length(length).done()?)
    }

    /// Returns the payload.
    pub fn payload(&self) -> Vec<u8> {
        self.seen.payload().to_vec()
    }
}

/// Returns the SES fields of a request, or `None` if the packet is not a SES request.
pub fn said(uet: &uet_wire::Uet<'_>) -> Option<SesFields> {
    let ses = uet.ses?;
    let none = SesFields {
        form: Form::Small,
        head: ses.request_head()?,
        address: ses.address()?,
        message_id: None,
        request_length: 0,
        buffer_offset: None,
        initiator: None,
        memory_key: None,
        match_bits: None,
        header_data: None,
        payload_length: None,
        message_offset: None,
        tokens: None,
        ext: uet.ext.map(|ext| ext.copied()),
    };
    Some(match ses {
        Ses::Std(std) => SesFields {
            form: Form::Std,
            message_id: Some(std.message_id()),
            request_length: std.request_length(),
            buffer_offset: std.buffer_offset(),
            initiator: Some(std.initiator()),
            memory_key: std.memory_key(),
            match_bits: std.match_bits(),
            header_data: std.header_data(),
            payload_length: std.payload_length(),
            message_offset: std.message_offset(),
            tokens: std.initiator_restart_token().zip(std.target_restart_token()),
            ..none
        },
        Ses::Medium(medium) => SesFields {
            form: Form::Medium,
            request_length: medium.request_length().into(),
            buffer_offset: medium.buffer_offset(),
            initiator: Some(medium.initiator()),
            memory_key: medium.memory_key(),
            match_bits: medium.match_bits(),
            header_data: medium.header_data(),
            ..none
        },
        Ses::Small(small) => SesFields {
            request_length: small.request_length().into(),
            buffer_offset: Some(small.buffer_offset()),
            ..none
        },
        _ => return None,
    })
}

impl Target {
    /// Returns the SES fields of the `n`-th request.
    pub fn said(&self, n: u32) -> Result<SesFields, Stop> {
        self.packet(n)?.said()
    }

    /// A response to the `n`-th request.
    pub fn response(&self, n: u32, code: ReturnCode, length: u32) -> Result<Response, Stop> {
        self.packet(n)?.response(code, length)
    }

    /// Answers the `n`-th request with this response, and acknowledges what came before it.
    pub fn respond(&self, t: &mut Test<'_>, n: u32, response: Response) -> Outcome {
        self.answer(t, AckBuilder { response: Some(response), ..self.acking(n) })
    }

    /// Answers the `n`-th request with an error, which has to be cleared.
    pub fn respond_error(&self, t: &mut Test<'_>, n: u32, code: ReturnCode) -> Outcome {
        let response = self.response(n, code, 0)?;
        self.answer(t, self.naming(n, n).guaranteed(response))
    }

    /// The header of read data for the `n`-th request, which is `total` bytes long and starts at `offset`.
    pub fn data_header(&self, n: u32, length: usize, total: usize, offset: usize) -> Result<SesBuf, Stop> {
        data_header(&self.said(n)?, self.psn(n), length, total, offset)
    }

    /// Gives the `n`-th request all its data in the ACK, and acknowledges what came before it.
    pub fn give_in_ack(&self, t: &mut Test<'_>, n: u32, data: &[u8]) -> Outcome {
        self.give_in_ack_above(t, n, n, data)
    }

    /// Gives the `n`-th request all its data in an ACK whose cumulative PSN is the one before the `below`-th.
    pub fn give_in_ack_above(&self, t: &mut Test<'_>, n: u32, below: u32, data: &[u8]) -> Outcome {
        t.send(&self.pdc, &self.ack_with_data(n, below, data)?)
    }

    /// Returns an ACK with all the data of the `n`-th request, and with this cumulative PSN.
    pub fn ack_with_data(&self, n: u32, below: u32, data: &[u8]) -> Result<UetBuf, Stop> {
        let ses = self.data_header(n, data.len(), data.len(), 0)?;
        let ack = AckBuilder { request: AckRequest::REQ_CLEAR, ..self.naming(n, below) };
        let mut packet = ack.build()?;
        (packet.ses, packet.payload) = (Some(ses), data.to_vec());
        Ok(packet.consistent())
    }

    /// Sends this as the `k`-th packet of the return direction.
    pub fn give(&self, t: &mut Test<'_>, k: u32, ses: SesBuf, data: &[u8]) -> Outcome {
        t.send(&self.pdc, &self.pdc.request(k).ses(ses, data).build()?)
    }

    /// Sends data of a read as the `k`-th packet of the return direction. A device that refuses it fails
    /// `SES-READ-005` or `SES-READ-006`, whatever the rule checks.
    pub fn give_due(&self, t: &mut Test<'_>, k: u32, ses: SesBuf, data: &[u8]) -> Outcome {
        t.must_take_data(&self.pdc, self.psn(k));
        self.give(t, k, ses, data)
    }

    /// Gives a read of `whole`, whose requests are the first `count`, all that it asks for on the return
    /// direction, from the `first` packet of that on.
    pub fn give_all(&self, t: &mut Test<'_>, count: u32, first: u32, whole: &[u8]) -> Outcome {
        let mtu = t.mtu();
        for k in 0..count {
            let start = self.said(k)?.start();
            let piece = whole.get(start..(start + mtu).min(whole.len())).unwrap_or_default();
            let ses = self.data_header(k, piece.len(), whole.len(), start)?;
            self.give_due(t, first + k, ses, piece)?;
        }
        Ok(())
    }
}

impl Test<'_> {
    /// Expects that an operation ends so, with this length.
    pub fn ends_with(
        &mut self,
        requirement: &Requirement,
        operation: Operated,
        expected: (Status, u64),
    ) -> Result<Option<uet_control::Completion>, Stop> {
        let within = self.soon();
        let ended = self.completion(operation, within)?;
        let seen = ended.as_ref().map(|completion| (completion.status, completion.length));
        self.check(requirement, "the completion", Some(expected), seen);
        Ok(ended)
    }

    /// Expects that an operation is refused, and that its completion names this code.
    pub fn ends_refused(
        &mut self,
        requirement: &Requirement,
        operation: Operated,
        code: ReturnCode,
    ) -> Outcome {
        let within = self.soon();
        let ended = self.completion(operation, within)?;
        let seen = ended.map(|completion| (completion.status, completion.return_code));
        let expected = Some((Status::Refused, Some(code.to_string())));
        self.check(requirement, "the completion", expected, seen);
        Ok(())
    }
}

/// The header of read data for this request, which is `total` bytes long and starts at `offset`.
pub(crate) fn data_header(
    said: &SesFields,
    psn: uet_wire::Psn,
    length: usize,
    total: usize,
    offset: usize,
) -> Result<SesBuf, Stop> {
    let job = said.address.job_id();
    Ok(match said.message_id {
        Some(id) => ResponseData::build()
            .response_message_id(0x4444)
            .job_id(job)
            .read_request_message_id(id)
            .payload_length(length as u16)
            .modified_length(total as u32)
            .message_offset(offset as u32)
            .done()?
            .into(),
        None => ResponseDataSmall::build()
            .payload_length(length as u16)
            .job_id(job)
            .original_request_psn(psn)
            .done()?
            .into(),
    })
}
