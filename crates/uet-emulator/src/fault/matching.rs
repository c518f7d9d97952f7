//! Faults in sends and receives.

use super::fields::Fields;
use super::tap::Tap;
use super::{Fault, fault};
use uet_model::ses::{Completion, TooLong};
use uet_model::{Delivery, TxResponse};
use uet_wire::catalogue::*;
use uet_wire::registry::{List, Opcode, ResponseOpcode, ReturnCode};

fn is_overflow(response: &TxResponse) -> bool {
    response.is("ses.list", List::UET_OVERFLOW.code().into())
}

fn is_send(request: &impl Fields) -> bool {
    [Opcode::UET_SEND, Opcode::UET_TAGGED_SEND]
        .iter()
        .any(|opcode| request.is("ses.opcode", opcode.code().into()))
}

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "compares-ignored-bits",
        "The NIC also compares match bits that the receive's mask ignores",
        SES_MATCH_001,
        &[Tap::Receive(|receive| {
            if let Some(tag) = &mut receive.tag {
                tag.ignore = 0;
            }
        })],
    ),
    fault(
        "compares-half-the-tag",
        "The NIC compares only the lower 32 match bits",
        SES_MATCH_001,
        &[Tap::Receive(|receive| {
            if let Some(tag) = &mut receive.tag {
                tag.ignore |= 0xffff_ffff_0000_0000;
            }
        })],
    ),
    fault(
        "takes-any-initiator",
        "A receive for one initiator takes the sends of all initiators",
        SES_MATCH_002,
        &[Tap::Receive(|receive| (receive.initiator, receive.from) = (None, None))],
    ),
    fault(
        "takes-any-tag",
        "A tagged receive takes any tagged send",
        SES_MATCH_001,
        &[Tap::Receive(|receive| {
            if let Some(tag) = &mut receive.tag {
                tag.ignore = u64::MAX;
            }
        })],
    ),
    fault(
        "hides-overflow",
        "The response to an unmatched send says list EXPECTED",
        SES_MATCH_003,
        &[Tap::EditResponse(|response| response.set("ses.list", 0))],
    ),
    fault(
        "tells-overflow-once",
        "The response to an unmatched send is not kept",
        SES_GTD_002,
        &[Tap::EditResponse(|response| {
            if is_overflow(response) {
                response.delivery = Delivery::Once;
            }
        })],
    ),
    fault(
        "loses-what-finds-no-receive",
        "A target answers OK to an unmatched send for which it has no room",
        SES_MATCH_004,
        &[
            Tap::Config(|config| (config.ses.max_unexpected, config.ses.max_unexpected_bytes) = (0, 0)),
            Tap::EditResponse(|response| {
                if response.is("ses.return_code", ReturnCode::NO_MATCH.code().into()) {
                    response.set("ses.return_code", ReturnCode::OK.code().into());
                    response.set("ses.opcode", ResponseOpcode::UET_DEFAULT_RESPONSE.code().into());
                    response.delivery = Delivery::Default;
                }
            }),
        ],
    ),
    fault(
        "hides-truncation",
        "A target answers a truncated send as if all of it had been placed",
        SES_MATCH_005,
        &[Tap::EditResponse(|response| {
            let ok = response.is("ses.return_code", ReturnCode::OK.code().into());
            let kept = response.delivery == Delivery::Guaranteed && !is_overflow(response);
            if ok && kept && response.isnt("ses.modified_length", 0) {
                response.set("ses.opcode", ResponseOpcode::UET_DEFAULT_RESPONSE.code().into());
                response.set("ses.modified_length", 0);
                response.delivery = Delivery::Default;
            }
        })],
    ),
    fault(
        "completes-with-first-packet",
        "A receive completes with the first packet of its message",
        SES_DONE_002,
        &[Tap::EditRequest(|_, request| {
            let sends =
                [Opcode::UET_SEND, Opcode::UET_TAGGED_SEND].map(|opcode| Some(u64::from(opcode.code())));
            if sends.contains(&request.get("ses.opcode")) && request.get("ses.request_length").is_some() {
                match request.get("ses.som") {
                    Some(1) => {
                        let length = request.payload.len();
                        request.set("ses.eom", 1);
                        request.set("ses.request_length", length as u64);
                    }
                    // Later packets are answered and forgotten.
                    _ => request.set("ses.opcode", Opcode::UET_NO_OP.code().into()),
                }
            }
        })],
    ),
    fault(
        "loses-header-data",
        "The completion of a receive lacks the header data",
        SES_CUT_005,
        &[Tap::Completion(|completion| {
            Some(match completion {
                Completion::Received(mut received) => {
                    received.header_data = None;
                    Completion::Received(received)
                }
                other => other,
            })
        })],
    ),
    fault(
        "refuses-long-sends-by-another-code",
        "A send that is longer than its buffer is refused with UNSUPPORTED_SIZE",
        SES_MATCH_005,
        &[
            Tap::Config(|config| config.ses.too_long = TooLong::Refuse),
            Tap::EditResponse(|response| {
                if response.is("ses.return_code", ReturnCode::TOO_LONG.code().into()) {
                    response.set("ses.return_code", ReturnCode::UNSUPPORTED_SIZE.code().into());
                }
            }),
        ],
    ),
    fault(
        "loses-late-header-data",
        "The completion of a receive lacks the header data if another packet of the message came first",
        SES_CUT_005,
        &[Tap::EditRequest(|middle, request| {
            let id = request.get("ses.message_id").filter(|_| is_send(request));
            if let Some(id) = id {
                let first = request.is("ses.som", 1);
                let known = middle.memo.get(request.from, id) == Some(1);
                if first && known {
                    request.set("ses.hd", 0);
                    request.set("ses.header_data", 0);
                }
                middle.memo.set(request.from, id, u64::from(!first));
            }
        })],
    ),
    fault(
        "takes-header-data-without-hd",
        "The completion of a receive has the field header_data, whatever hd says",
        SES_CUT_005,
        &[Tap::EditRequest(|_, request| {
            if is_send(request) && request.get("ses.message_id").is_some() && request.is("ses.som", 1) {
                request.set("ses.hd", 1);
            }
        })],
    ),
];
