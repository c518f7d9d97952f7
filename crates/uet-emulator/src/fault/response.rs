//! Faults in responses and completions.

use super::fields::{Fields, Kinds};
use super::tap::{Middle, Tap};
use super::{Fault, fault};
use uet_model::{Command, Delivery, Indication, PdcHandle, TxRequest, Via};
use uet_wire::catalogue::*;
use uet_wire::registry::{Opcode, ResponseOpcode, ReturnCode};

fn is_error(response: &impl Fields) -> bool {
    response.get("ses.return_code").is_some_and(|code| code > ReturnCode::OK.code().into())
}

/// The largest `payload_length` of read data, which has 14 bits.
const MAX_PAYLOAD: u64 = 0x3fff;

/// Sends two packets of read data as one. The first waits for the second, unless the second has left already or both
/// are too long for one header.
fn join_read_data(middle: &mut Middle<'_, Command>, pdc: PdcHandle, mut data: TxRequest) {
    let via = Via::Return(pdc);
    let (Some(read), Some(offset), Some(total)) = (
        data.get("ses.read_request_message_id"),
        data.get("ses.message_offset"),
        data.get("ses.modified_length"),
    ) else {
        return middle.pass(Command::Send(via, data));
    };
    let length = data.payload.len() as u64;
    let end = offset + length;
    let place = |offset: u64| (u64::from(pdc.pdcid) << 48) | (read << 32) | offset;
    if let Some(first) = middle.memo.requests.remove(&place(offset)) {
        let second = core::mem::replace(&mut data, first);
        let both = [&data.payload[..], &second.payload[..]].concat();
        data.set("ses.payload_length", both.len() as u64);
        data.payload = both.into();
        // The semantics wait for an answer to each packet.
        middle.tell(Indication::Response { message: second.message, pdc: None, response: None });
    } else if end < total && 2 * length <= MAX_PAYLOAD && (offset / length.max(1)) % 2 == 0 {
        if middle.memo.get(None, place(end)).is_none() {
            middle.memo.requests.insert(place(end), data);
            return;
        }
    } else {
        middle.memo.set(None, place(offset), 1);
    }
    middle.pass(Command::Send(via, data));
}

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "tells-no-errors",
        "A target answers OK to requests that it refuses",
        SES_MEM_005,
        &[Tap::EditResponse(|response| response.set("ses.return_code", ReturnCode::OK.code().into()))],
    ),
    fault(
        "tells-errors-once",
        "A target does not keep an error until it is cleared",
        SES_GTD_001,
        &[Tap::EditResponse(|response| {
            if is_error(response) {
                response.delivery = Delivery::Once;
            }
        })],
    ),
    fault(
        "has-one-error",
        "Every error has the code OP_VIOLATION",
        SES_MEM_005,
        &[Tap::EditResponse(|response| {
            if is_error(response) {
                response.set("ses.return_code", ReturnCode::OP_VIOLATION.code().into());
            }
        })],
    ),
    fault(
        "says-length-in-errors",
        "An error response has a nonzero modified_length although nothing was placed",
        SES_ERR_001,
        &[Tap::EditResponse(|response| {
            if is_error(response) {
                response.set("ses.modified_length", 4096);
            }
        })],
    ),
    fault(
        "hides-generation",
        "BAD_GENERATION does not carry the current generation",
        SES_GEN_002,
        &[Tap::EditResponse(|response| {
            if response.is("ses.return_code", ReturnCode::BAD_GENERATION.code().into()) {
                response.set("ses.ri_generation", 0);
            }
        })],
    ),
    fault(
        "forgets-message-id",
        "The message_id of a response is 0",
        SES_RESP_003,
        &[Tap::EditResponse(|response| response.set("ses.message_id", 0))],
    ),
    fault(
        "forgets-job-id",
        "The job_id of a response is 0",
        SES_RESP_003,
        &[Tap::EditResponse(|response| response.set("ses.job_id", 0))],
    ),
    fault(
        "answers-dc-at-once",
        "With dc = 1, a target answers the last packet of a message before all others have arrived",
        SES_RESP_005,
        &[Tap::EditIn(|_, packet| packet.set("ses.dc", 0))],
    ),
    fault(
        "ignores-initiator-error",
        "A target treats a packet with ie = 1 like any other",
        SES_ERR_006,
        &[Tap::EditIn(|_, packet| packet.set("ses.ie", 0))],
    ),
    fault(
        "knows-all-opcodes",
        "A target answers OK to an unknown opcode",
        SES_ERR_002,
        &[Tap::EditRequest(|_, request| {
            let request_opcode = request.get("ses.request_length").and(request.get("ses.opcode"));
            if request_opcode.is_some_and(|opcode| opcode > Opcode::UET_MSG_ERROR.code().into()) {
                request.set("ses.opcode", Opcode::UET_NO_OP.code().into());
            }
        })],
    ),
    fault(
        "ends-early-without-a-word",
        "An abandoned write ends with an empty packet that looks like its last one",
        SES_ERR_007,
        &[Tap::EditOut(|_, packet| {
            if packet.is_request() && packet.is("ses.opcode", Opcode::UET_MSG_ERROR.code().into()) {
                packet.set("ses.opcode", Opcode::UET_WRITE.code().into());
            }
        })],
    ),
    fault(
        "believes-no-error",
        "An operation that the target refused completes successfully",
        SES_ERR_003,
        &[Tap::Up(|middle, mut said| {
            if let Indication::Response { response: Some(response), .. } = &mut said {
                response.set("ses.return_code", ReturnCode::OK.code().into());
            }
            middle.pass(said);
        })],
    ),
    fault(
        "completes-when-sent",
        "An operation completes when its packets have left, before they are answered",
        SES_DONE_001,
        &[Tap::Down(|middle, said| {
            if let Command::Send(_, request) = &said {
                middle.tell(Indication::Response { message: request.message, pdc: None, response: None });
            }
            middle.pass(said);
        })],
    ),
    fault(
        "overlooks-modified-length",
        "An operation completes with its full length, whatever modified_length says",
        SES_RESP_004,
        &[Tap::Up(|middle, mut said| {
            if let Indication::Response { response: Some(response), .. } = &mut said {
                if !is_error(response) {
                    response.set("ses.opcode", ResponseOpcode::UET_DEFAULT_RESPONSE.code().into());
                    response.set("ses.modified_length", 0);
                }
            }
            middle.pass(said);
        })],
    ),
    fault(
        "names-read-by-own-id",
        "Read data names the read by the target's message_id",
        SES_READ_005,
        &[Tap::EditOut(|_, packet| {
            if let Some(own) = packet.get("ses.response_message_id") {
                packet.set("ses.read_request_message_id", own ^ 0x8000);
            }
        })],
    ),
    fault(
        "says-length-of-part",
        "modified_length of read data is the length of the part, not of the whole read",
        SES_READ_007,
        &[Tap::EditOut(|_, packet| {
            if let (Some(_), Some(length)) =
                (packet.get("ses.read_request_message_id"), packet.get("ses.payload_length"))
            {
                packet.set("ses.modified_length", length);
            }
        })],
    ),
    fault(
        "forgets-original-psn",
        "original_request_psn of read data is 0",
        SES_READ_006,
        &[Tap::EditOut(|_, packet| packet.set("ses.original_request_psn", 0))],
    ),
    fault(
        "puts-all-data-at-start",
        "Every packet of read data has message_offset 0",
        SES_READ_001,
        &[Tap::EditOut(|_, packet| {
            if packet.get("ses.read_request_message_id").is_some() {
                packet.set("ses.message_offset", 0);
            }
        })],
    ),
    fault(
        "reads-too-much-in-acks",
        "An ACK carries read data even beyond Max_ACK_Data_Size",
        SES_READ_003,
        &[Tap::Config(|config| {
            config.pds.max_ack_data_size = config.pds.max_ack_data_size.saturating_mul(16)
        })],
    ),
    fault(
        "returns-data-beyond-mtu",
        "Read data on the return direction travels in packets of twice the MTU",
        SES_READ_001,
        &[Tap::Down(|middle, said| match said {
            Command::Send(Via::Return(pdc), data) => join_read_data(middle, pdc, data),
            said => middle.pass(said),
        })],
    ),
    fault(
        "answers-reads-without-data",
        "A target acknowledges a read, but never sends its data on the return direction",
        SES_READ_001,
        &[Tap::Out(|wire, packet| {
            let data = packet.get("ses.read_request_message_id").or(packet.get("ses.original_request_psn"));
            if !(packet.is_request() && data.is_some()) {
                wire.pass(packet);
            }
        })],
    ),
    fault(
        "calls-the-unknown-undeliverable",
        "An unknown process or index is answered UNDELIVERABLE",
        SES_ADDR_005,
        &[Tap::EditResponse(|response| {
            let codes = [ReturnCode::BAD_PID, ReturnCode::BAD_INDEX];
            if codes.iter().any(|code| response.is("ses.return_code", code.code().into())) {
                response.set("ses.return_code", ReturnCode::UNDELIVERABLE.code().into());
            }
        })],
    ),
];
