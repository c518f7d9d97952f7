//! Faults in atomics.

use super::fields::Fields;
use super::tap::Tap;
use super::{Fault, fault};
use bytes::Bytes;
use uet_model::{Command, Delivery, Indication, Mode, RxRequest, Ticket};
use uet_wire::catalogue::*;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode, Opcode, ReturnCode};

fn is_atomic(request: &RxRequest) -> bool {
    request.get("ses.atomic_opcode").is_some()
}

/// Confuses one datatype with another.
fn mistake(request: &mut RxRequest, pairs: &[(AtomicDatatype, AtomicDatatype)]) {
    let datatype = request.get("ses.atomic_datatype");
    let found = pairs.iter().find(|(from, _)| Some(u64::from(from.code())) == datatype);
    if let Some((_, to)) = found {
        request.set("ses.atomic_datatype", to.code().into());
    }
}

/// Returns the size of an integer operand.
fn size(request: &RxRequest) -> Option<usize> {
    let code = request.get("ses.atomic_datatype")?;
    (code <= AtomicDatatype::UINT128.code().into()).then(|| 1 << (code / 2))
}

/// Returns the bytes of the operands of compare and swap.
fn operands(request: &mut RxRequest) -> Option<(&mut [u8], &mut [u8])> {
    let (_, start) =
        request.tables().into_iter().find(|(layout, _)| layout.field("ses.swap_value").is_some())?;
    let operands = request.head.get_mut(start + 4..start + 36)?;
    Some(operands.split_at_mut(16))
}

const FETCHED: u64 = 1 << 40;

pub(super) const FAULTS: &[Fault] = &[
    fault(
        "acts-on-idempotent-atomics",
        "A target executes an atomic that arrives by RUDI, each time that it arrives",
        SES_AMO_010,
        &[Tap::EditRequest(|_, request| {
            if is_atomic(request) && request.mode == Mode::Rudi {
                request.mode = Mode::Rud;
            }
        })],
    ),
    fault(
        "repeats-fetching-atomics",
        "The result of a fetching atomic is not kept: a retransmission executes it again",
        SES_AMO_010,
        &[Tap::EditResponse(|response| {
            let fetched =
                response.delivery == Delivery::Guaranteed && response.get("ses.payload_length").is_some();
            if fetched {
                response.delivery = Delivery::GuaranteedByRepetition;
            }
        })],
    ),
    fault(
        "fetches-new-value",
        "A fetching sum returns the new value instead of the old one",
        SES_AMO_007,
        &[
            Tap::Up(|middle, said| {
                if let Indication::Request(request) = &said {
                    let sum = request.is("ses.atomic_opcode", AtomicOpcode::SUM.code().into());
                    if let (true, Ticket::Pdc(_, psn), Ok(operand)) =
                        (sum, request.ticket, <[u8; 8]>::try_from(&request.payload[..]))
                    {
                        middle.memo.set(None, FETCHED | u64::from(psn.0), u64::from_le_bytes(operand));
                    }
                }
                middle.pass(said);
            }),
            Tap::Down(|middle, mut said| {
                if let Command::Respond(Ticket::Pdc(_, psn), response) = &mut said {
                    let operand = middle.memo.get(None, FETCHED | u64::from(psn.0));
                    if let (Some(operand), Ok(old)) = (operand, <[u8; 8]>::try_from(&response.payload[..])) {
                        let new = u64::from_le_bytes(old).wrapping_add(operand);
                        response.payload = Bytes::copy_from_slice(&new.to_le_bytes());
                    }
                }
                middle.pass(said);
            }),
        ],
    ),
    fault(
        "fetches-nothing",
        "A fetching atomic takes effect, but its response lacks the old value",
        SES_AMO_007,
        &[Tap::EditRequest(|_, request| {
            if is_atomic(request) && request.is("ses.opcode", Opcode::UET_FETCHING_ATOMIC.code().into()) {
                request.set("ses.opcode", Opcode::UET_ATOMIC.code().into());
            }
        })],
    ),
    fault(
        "ignores-alignment",
        "A misaligned atomic acts on the element that contains its address",
        SES_AMO_005,
        &[Tap::EditRequest(|_, request| {
            let size = size(request).unwrap_or(1) as u64;
            request.change("ses.buffer_offset", |offset| offset / size * size);
        })],
    ),
    fault(
        "adds-floats-as-integers",
        "Atomics treat floating-point numbers as integers of the same width",
        SES_AMO_001,
        &[Tap::EditRequest(|_, request| {
            let pairs = [
                (AtomicDatatype::FLOAT, AtomicDatatype::UINT32),
                (AtomicDatatype::DOUBLE, AtomicDatatype::UINT64),
            ];
            mistake(request, &pairs);
        })],
    ),
    fault(
        "compares-unsigned",
        "Atomics compare signed integers as unsigned ones",
        SES_AMO_001,
        &[Tap::EditRequest(|_, request| {
            let pairs = [
                (AtomicDatatype::INT8, AtomicDatatype::UINT8),
                (AtomicDatatype::INT16, AtomicDatatype::UINT16),
                (AtomicDatatype::INT32, AtomicDatatype::UINT32),
                (AtomicDatatype::INT64, AtomicDatatype::UINT64),
            ];
            mistake(request, &pairs);
        })],
    ),
    fault(
        "swaps-when-different",
        "CSWAP swaps if memory and compare_value differ",
        SES_AMO_008,
        &[Tap::EditRequest(|_, request| {
            if request.is("ses.atomic_opcode", AtomicOpcode::CSWAP.code().into()) {
                request.set("ses.atomic_opcode", AtomicOpcode::CSWAP_NE.code().into());
            }
        })],
    ),
    fault(
        "reads-operands-left",
        "The NIC reads the operands of compare and swap from the left of their 128 bits",
        SES_AMO_009,
        &[Tap::EditRequest(|_, request| {
            let Some(size) = size(request) else { return };
            if let Some((compare, swap)) = operands(request) {
                for operand in [compare, swap] {
                    operand.rotate_right(16 - size);
                }
            }
        })],
    ),
    fault(
        "exchanges-operands",
        "The NIC exchanges compare_value and swap_value",
        SES_AMO_008,
        &[Tap::EditRequest(|_, request| {
            if let Some((compare, swap)) = operands(request) {
                compare.swap_with_slice(swap);
            }
        })],
    ),
    fault(
        "acts-on-first-element",
        "An atomic on several elements changes only the first one",
        SES_AMO_001,
        &[Tap::EditRequest(|_, request| {
            if let Some(size) = size(request).filter(|size| *size < request.payload.len()) {
                request.payload.truncate(size);
                request.set("ses.request_length", size as u64);
            }
        })],
    ),
    fault(
        "has-no-atomic-codes",
        "OP_VIOLATION answers every error of an atomic",
        SES_AMO_005,
        &[Tap::EditResponse(|response| {
            let codes = [
                ReturnCode::AMO_UNALIGNED,
                ReturnCode::AMO_UNSUPPORTED_OP,
                ReturnCode::AMO_UNSUPPORTED_DT,
                ReturnCode::AMO_UNSUPPORTED_SIZE,
            ];
            if codes.iter().any(|code| response.is("ses.return_code", code.code().into())) {
                response.set("ses.return_code", ReturnCode::OP_VIOLATION.code().into());
            }
        })],
    ),
];
