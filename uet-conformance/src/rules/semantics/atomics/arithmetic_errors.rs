//! Duplicates and refusals of atomics, for every operation and header (section 3.4.2).

use super::steps::{FORM, OPERATION};
use crate::arithmetic::mask;
use crate::elements::{GUARD, Kind, kind, supported};
use crate::prelude::*;
use crate::rules::steps::HEADER;
use crate::{Part, RequestSession};
use uet_wire::registry::{AtomicDatatype as Type, AtomicOpcode as Op};

/// A datatype of several bytes.
const WIDE: Axis<Type> = axis("datatype").values(&[
    ("uint64", Type::UINT64),
    ("int64", Type::INT64),
    ("uint32", Type::UINT32),
    ("int32", Type::INT32),
    ("uint16", Type::UINT16),
    ("int16", Type::INT16),
    ("uint128", Type::UINT128),
    ("int128", Type::INT128),
    ("float", Type::FLOAT),
    ("double", Type::DOUBLE),
]);

/// True if the duplicate is a retransmission, false if the network copied the packet.
const DUPLICATE: Axis<bool> = axis("duplicate").values(&[("retransmission", true), ("copy", false)]);

/// The reason to refuse an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RefusalReason {
    Operation,
    Datatype,
    PartialElement,
    /// The packet is the first of several.
    SeveralPackets,
    /// The packet is neither the first nor the last one.
    MiddlePacket,
    /// The packet is the last of several.
    LastPacket,
    InitiatorError,
    BeyondRegion,
    WrapsAround,
}

const REASON: Axis<RefusalReason> = axis("reason").values(&[
    ("operation", RefusalReason::Operation),
    ("datatype", RefusalReason::Datatype),
    ("partial-element", RefusalReason::PartialElement),
    ("several-packets", RefusalReason::SeveralPackets),
    ("middle-packet", RefusalReason::MiddlePacket),
    ("last-packet", RefusalReason::LastPacket),
    ("ie", RefusalReason::InitiatorError),
    ("beyond-the-region", RefusalReason::BeyondRegion),
    ("wraps-at-2-64", RefusalReason::WrapsAround),
]);

/// The form of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Plain,
    Fetching,
    Swap,
}

const UNALIGNED: Axis<Shape> = axis("form").needing(&[
    ("plain", Shape::Plain, &[]),
    ("fetching", Shape::Fetching, &[FETCH_ATOMIC]),
    ("compare-swap", Shape::Swap, &[]),
]);

/// Begins a rule with the usual needs of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[ATOMIC])
}

pub(super) const RULES: &[Rule] = &[
    rule("arithmetic/duplicate", "A duplicate of an atomic neither acts again nor returns a newer value")
        .checks(&[SES_AMO_010, SES_AMO_007, SES_GTD_003])
        .over(&[&OPERATION, &FORM, &DUPLICATE, &MODE])
        .run(duplicate),
    rule("arithmetic/refused", "A refused atomic changes and returns nothing, and the next one succeeds")
        .checks(&[
            SES_GTD_001,
            SES_ERR_001,
            SES_AMO_001,
            SES_AMO_002,
            SES_AMO_003,
            SES_AMO_004,
            SES_AMO_006,
            SES_ERR_006,
            SES_MEM_004,
        ])
        .over(&[&REASON, &FORM, &HEADER, &MODE])
        .run(refused),
    rule("arithmetic/unaligned", "An atomic at an unaligned address gets AMO_UNALIGNED for every datatype")
        .checks(&[SES_AMO_005])
        .over(&[&WIDE, &UNALIGNED, &MODE])
        .run(|t| {
            let shape = t.value(&UNALIGNED);
            let opcode = if shape == Shape::Swap { Op::CSWAP } else { Op::SUM };
            let kind = kind(opcode, t.value(&WIDE));
            let value = 0x5a5a_5a5a_5a5a_5a5a_5a5a_5a5a_5a5a_5a5a & mask(kind.size);
            let (region, held) = t.elements_in_memory(kind.size, &[value, value])?;
            let operand = t.operands(kind.size, &[1]);
            let mut session = t.session();
            for (id, offset) in (1..).zip([1, kind.size / 2, kind.size - 1]) {
                let offset = (GUARD + offset) as u64;
                let selected = (kind.opcode, kind.datatype);
                let message = match shape {
                    Shape::Swap => Message::swap(
                        &region,
                        offset,
                        (selected.0, selected.1, kind.size as u32),
                        (value, 0),
                    )?,
                    _ => Message::atomic(&region, offset, selected, &operand)?,
                };
                let message = match shape {
                    Shape::Fetching => message.opcode(Opcode::UET_FETCHING_ATOMIC),
                    _ => message,
                };
                let psn = session.ask(t, &message.named(id).whole()?)?;
                supported(&session.answer(t, psn)?, kind)?;
                session.refused_as(t, SES_AMO_005, psn, &[ReturnCode::AMO_UNALIGNED])?;
            }
            t.still_holds(SES_AMO_005, &region, &held)
        }),
];

/// Sends a duplicate, either as a retransmission or as a copy that the network made.
fn send_duplicate(
    t: &mut Test<'_>,
    session: &mut RequestSession,
    psn: uet_wire::Psn,
    part: &Part,
    retransmission: bool,
) -> Outcome {
    if retransmission {
        session.again(t, psn, part)?;
        return session.accepted(t, SES_AMO_010, psn).map(drop);
    }
    session.ask_late(t, psn, part)
}

/// Another atomic separates an atomic from its duplicate, so that a second execution is visible for every
/// operation.
fn duplicate(t: &mut Test<'_>) -> Outcome {
    let (fetching, retransmission) = (t.value(&FORM), t.value(&DUPLICATE));
    let kind = kind(t.value(&OPERATION), Type::UINT32);
    let (region, _) = t.elements_in_memory(4, &[12])?;
    let operand = t.operands(4, &[6]);
    let other = t.operands(4, &[9]);
    let message = Message::atomic(&region, GUARD as u64, (kind.opcode, kind.datatype), &operand)?;
    let opcode = if fetching { Opcode::UET_FETCHING_ATOMIC } else { Opcode::UET_ATOMIC };
    let part = message.opcode(opcode).whole()?;
    let between = Message::atomic(&region, GUARD as u64, (Op::WRITE, Type::UINT32), &other)?.named(2);
    let mut session = t.session();

    let first = session.ask(t, &part)?;
    supported(&session.answer(t, first)?, kind)?;
    session.accepted(t, SES_AMO_010, first)?;
    let fetched = if fetching { session.data(t, SES_AMO_007, 4)? } else { Vec::new() };
    let second = session.ask(t, &between.whole()?)?;
    supported(&session.answer(t, second)?, Kind { opcode: Op::WRITE, ..kind })?;
    session.accepted(t, SES_AMO_010, second)?;
    for _ in 0..2 {
        send_duplicate(t, &mut session, first, &part, retransmission)?;
        // Data on the return direction arrived already.
        if retransmission && fetched.iter().any(|piece| piece.in_ack) {
            let repeated = session.data(t, SES_GTD_003, 4)?;
            let before = t.operands(4, &[12]);
            t.check(SES_GTD_003, "the old value again", Some(before), crate::assemble(&repeated, 4));
        }
    }
    let expected = t.guarded(4, &[9]);
    t.still_holds(SES_AMO_010, &region, &expected)
}

/// Returns an atomic that must be refused, the requirement, and the codes. The list is empty if the code is
/// open.
fn invalid_atomic(
    t: &Test<'_>,
    region: &crate::Region,
    reason: RefusalReason,
) -> Result<(Message, &'static Requirement, &'static [ReturnCode]), Stop> {
    let atomic = |opcode, datatype, offset: u64, length: usize| {
        Message::atomic(region, offset, (opcode, datatype), &vec![1; length])
    };
    let (at, size) = (GUARD as u64, region.length);
    Ok(match reason {
        RefusalReason::Operation => {
            let unassigned = Op::unassigned(t.spec()).next().unwrap_or(Op::INVAL);
            (atomic(unassigned, Type::UINT64, at, 8)?, SES_AMO_002, &[ReturnCode::AMO_UNSUPPORTED_OP])
        }
        RefusalReason::Datatype => {
            let unassigned = Type::unassigned(t.spec()).next().unwrap_or(Type::FP16);
            (atomic(Op::SUM, unassigned, at, 8)?, SES_AMO_003, &[ReturnCode::AMO_UNSUPPORTED_DT])
        }
        RefusalReason::PartialElement => {
            (atomic(Op::SUM, Type::UINT64, at, 12)?, SES_AMO_004, &[ReturnCode::AMO_UNSUPPORTED_SIZE])
        }
        RefusalReason::SeveralPackets | RefusalReason::MiddlePacket | RefusalReason::LastPacket => {
            (atomic(Op::SUM, Type::UINT64, at, 8)?, SES_AMO_006, &[ReturnCode::OP_VIOLATION])
        }
        RefusalReason::InitiatorError => {
            (atomic(Op::SUM, Type::UINT64, at, 8)?, SES_ERR_006, &[ReturnCode::INITIATOR_ERR])
        }
        RefusalReason::BeyondRegion => (atomic(Op::SUM, Type::UINT64, size - 8, 16)?, SES_MEM_004, &[]),
        RefusalReason::WrapsAround => (atomic(Op::SUM, Type::UINT64, u64::MAX - 7, 16)?, SES_MEM_004, &[]),
    })
}

fn refused(t: &mut Test<'_>) -> Outcome {
    let (reason, fetching) = (t.value(&REASON), t.value(&FORM));
    let (region, held) = t.elements_in_memory(8, &[40, 41])?;
    let (message, requirement, codes) = invalid_atomic(t, &region, reason)?;
    let opcode = if fetching { Opcode::UET_FETCHING_ATOMIC } else { Opcode::UET_ATOMIC };
    let message = message.opcode(opcode);
    // Only a standard header has these flags.
    let ends = match reason {
        RefusalReason::SeveralPackets => Some((true, false)),
        RefusalReason::MiddlePacket => Some((false, false)),
        RefusalReason::LastPacket => Some((false, true)),
        _ => None,
    };
    let only_std = ends.is_some() || reason == RefusalReason::InitiatorError;
    let part = if t.value(&HEADER) && !only_std { message.medium()? } else { message.whole()? };
    let part = match (ends, reason) {
        (Some((som, eom)), _) => part.edit(|std| {
            let std = std.head(|head| head.som(som).eom(eom));
            if som { std } else { std.payload_length(8).message_offset(0) }
        })?,
        (None, RefusalReason::InitiatorError) => part.edit(|std| std.head(|head| head.ie(true)))?,
        _ => part,
    };
    let mut session = t.session();
    let psn = session.ask(t, &part)?;
    let answer = match codes {
        [] => session.refused(t, requirement, psn)?,
        codes => session.refused_as(t, requirement, psn, codes)?,
    };
    t.check(SES_GTD_001, "req of the ACK", AckRequest::REQ_CLEAR, answer.request);
    t.check(SES_ERR_001, "modified_length", 0, answer.length(0));
    let pdc = session.pdc.clone();
    t.expect_none(requirement, "no old value", t.soon(), |seen| {
        (seen.is_for(&pdc) && !seen.payload().is_empty()).then_some(())
    })?;
    t.check_memory(requirement, &region, 0, &held)?;
    let operands = t.operands(8, &[2, 3]);
    let good = Message::atomic(&region, GUARD as u64, (Op::SUM, Type::UINT64), &operands)?.named(2);
    let psn = session.ask(t, &good.whole()?)?;
    supported(&session.answer(t, psn)?, kind(Op::SUM, Type::UINT64))?;
    session.accepted(t, SES_AMO_001, psn)?;
    let expected = t.guarded(8, &[42, 44]);
    t.expect_memory(SES_AMO_001, &region, 0, &expected)
}
