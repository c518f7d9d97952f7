//! Atomics on every datatype, with the numbers at the ends of its range (section 3.4.2).

use crate::elements::{GUARD, Kind, fetch, kind, supported};
use crate::prelude::*;
use crate::rules::steps::HEADER;
use crate::{Part, RequestSession};
use uet_wire::registry::{AtomicDatatype as Type, AtomicOpcode as Op};

const OPERATION: Axis<Op> = axis("operation").values(&[
    ("sum", Op::SUM),
    ("min", Op::MIN),
    ("max", Op::MAX),
    ("diff", Op::DIFF),
    ("prod", Op::PROD),
    ("lor", Op::LOR),
    ("land", Op::LAND),
    ("lxor", Op::LXOR),
    ("bor", Op::BOR),
    ("band", Op::BAND),
    ("bxor", Op::BXOR),
    ("write", Op::WRITE),
]);

const FLOAT_OPERATION: Axis<Op> = axis("operation").values(&[
    ("sum", Op::SUM),
    ("min", Op::MIN),
    ("max", Op::MAX),
    ("diff", Op::DIFF),
    ("prod", Op::PROD),
    ("write", Op::WRITE),
]);

const COMPLEX_OPERATION: Axis<Op> = axis("operation").values(&[
    ("sum", Op::SUM),
    ("diff", Op::DIFF),
    ("prod", Op::PROD),
    ("write", Op::WRITE),
]);

const COMPARISON: Axis<Op> = axis("operation").values(&[
    ("cswap", Op::CSWAP),
    ("cswap-ne", Op::CSWAP_NE),
    ("cswap-le", Op::CSWAP_LE),
    ("cswap-lt", Op::CSWAP_LT),
    ("cswap-ge", Op::CSWAP_GE),
    ("cswap-gt", Op::CSWAP_GT),
]);

const EQUALITY: Axis<Op> = axis("operation").values(&[("cswap", Op::CSWAP), ("cswap-ne", Op::CSWAP_NE)]);

const INTEGER: Axis<Type> = axis("datatype").values(&[
    ("uint64", Type::UINT64),
    ("int64", Type::INT64),
    ("uint32", Type::UINT32),
    ("int32", Type::INT32),
    ("uint16", Type::UINT16),
    ("int16", Type::INT16),
    ("uint8", Type::UINT8),
    ("int8", Type::INT8),
    ("uint128", Type::UINT128),
    ("int128", Type::INT128),
]);

const FLOAT: Axis<Type> = axis("datatype").values(&[("float", Type::FLOAT), ("double", Type::DOUBLE)]);

const COMPLEX: Axis<Type> = axis("datatype")
    .values(&[("float-complex", Type::FLOAT_COMPLEX), ("double-complex", Type::DOUBLE_COMPLEX)]);

/// One datatype of each width.
const WIDTH: Axis<Type> = axis("datatype").values(&[
    ("uint64", Type::UINT64),
    ("uint32", Type::UINT32),
    ("uint16", Type::UINT16),
    ("uint8", Type::UINT8),
    ("uint128", Type::UINT128),
]);

/// Datatypes of several bytes.
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

const COUNT: Axis<Option<usize>> = axis("count").values(&[
    ("1", Some(1)),
    ("2", Some(2)),
    ("255", Some(255)),
    ("256", Some(256)),
    ("257", Some(257)),
    ("mtu", None),
]);

/// True if the atomic fetches.
pub(super) const FORM: Axis<bool> =
    axis("form").needing(&[("plain", false, &[]), ("fetching", true, &[FETCH_ATOMIC])]);

/// True if a duplicate says that it is a retransmission.
const REPEAT: Axis<bool> = axis("duplicate").values(&[("retransmission", true), ("copy", false)]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RefusalReason {
    Operation,
    Datatype,
    HalfAnElement,
    SeveralPackets,
    GivenUp,
    Beyond,
    Around,
}

const REASON: Axis<RefusalReason> = axis("reason").values(&[
    ("operation", RefusalReason::Operation),
    ("datatype", RefusalReason::Datatype),
    ("half-an-element", RefusalReason::HalfAnElement),
    ("several-packets", RefusalReason::SeveralPackets),
    ("given-up", RefusalReason::GivenUp),
    ("beyond-the-region", RefusalReason::Beyond),
    ("around-the-end", RefusalReason::Around),
]);

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
    rule("arithmetic/integers", "An atomic computes in its integer type, including the ends of its range")
        .checks(&[SES_AMO_001, SES_AMO_007])
        .over(&[&OPERATION, &INTEGER, &MODE])
        .run(|t| {
            let kind = kind(t.value(&OPERATION), t.value(&INTEGER));
            let (old, with) = pairs(&ends(kind.size));
            let new: Vec<u128> = old.iter().zip(&with).map(|(old, with)| result(kind, *old, *with)).collect();
            computes(t, kind, &old, &with, &new)
        }),
    rule("arithmetic/floats", "An atomic on floating-point numbers uses floating-point arithmetic")
        .checks(&[SES_AMO_001, SES_AMO_007])
        .over(&[&FLOAT_OPERATION, &FLOAT, &MODE])
        .run(|t| {
            let kind = kind(t.value(&FLOAT_OPERATION), t.value(&FLOAT));
            let mut values = vec![1.5, -2.25, 0.5, -8.0, 3.0, 1024.0, -0.125];
            if matches!(kind.opcode, Op::MIN | Op::MAX | Op::WRITE) {
                values.extend([f32::MAX, f32::MIN, f32::MIN_POSITIVE].map(f64::from));
            }
            let (old, with) = pairs(&values);
            let new = old.iter().zip(&with).map(|(old, with)| float_result(kind.opcode, *old, *with));
            let of = |values: &[f64]| -> Vec<u128> {
                values.iter().map(|it| float_bits(kind.size, *it)).collect()
            };
            let new: Vec<f64> = new.collect();
            // The sign of a zero is not judged.
            let judged: Vec<usize> = (0..new.len()).filter(|at| new[*at] != 0.0).collect();
            let only = |values: &[f64]| -> Vec<f64> { judged.iter().map(|at| values[*at]).collect() };
            computes(t, kind, &of(&only(&old)), &of(&only(&with)), &of(&only(&new)))
        }),
    rule("arithmetic/complex", "An atomic on complex numbers uses complex arithmetic")
        .checks(&[SES_AMO_001, SES_AMO_007])
        .over(&[&COMPLEX_OPERATION, &COMPLEX, &MODE])
        .run(|t| {
            let kind = kind(t.value(&COMPLEX_OPERATION), t.value(&COMPLEX));
            let part = kind.size / 2;
            let numbers = [(1.0, 2.0), (3.0, -4.0), (-0.5, 8.0), (-1.5, -0.25)];
            let (old, with) = pairs(&numbers);
            let new = old.iter().zip(&with).map(|((a, b), (c, d))| match kind.opcode {
                Op::SUM => (a + c, b + d),
                Op::DIFF => (a - c, b - d),
                Op::PROD => (a * c - b * d, a * d + b * c),
                _ => (*c, *d),
            });
            let new: Vec<(f64, f64)> = new.collect();
            // The sign of a zero is not judged.
            let judged: Vec<usize> =
                (0..new.len()).filter(|at| new[*at].0 != 0.0 && new[*at].1 != 0.0).collect();
            let of = |values: &[(f64, f64)]| -> Vec<u128> {
                let parts = judged.iter().flat_map(|at| [values[*at].0, values[*at].1]);
                parts.map(|value| float_bits(part, value)).collect()
            };
            computes(t, Kind { size: part, ..kind }, &of(&old), &of(&with), &of(&new))
        }),
    rule("arithmetic/element-count", "An atomic acts on every element of its packet, however many")
        .checks(&[SES_AMO_001, SES_AMO_007])
        .over(&[&COUNT, &WIDTH, &FORM, &HEADER, &MODE])
        .run(|t| {
            let kind = kind(Op::SUM, t.value(&WIDTH));
            let most = t.mtu() / kind.size;
            let count = t.value(&COUNT).unwrap_or(most);
            require(count <= most, format!("{count} elements exceed a packet"))?;
            let all = mask(kind.size);
            let old: Vec<u128> = (0..count as u128).map(|n| (3 * n + 1) & all).collect();
            let with: Vec<u128> = (0..count as u128).map(|n| (7 * n + 5) & all).collect();
            let new: Vec<u128> = old.iter().zip(&with).map(|(old, with)| result(kind, *old, *with)).collect();
            let form = (t.value(&FORM), t.value(&HEADER));
            acts(t, kind, form, (&old, &with), &new)
        }),
    rule("arithmetic/compare-swap", "A compare and swap stores exactly if its comparison holds")
        .checks(&[SES_AMO_008])
        .over(&[&COMPARISON, &INTEGER, &MODE])
        .run(|t| {
            let kind = kind(t.value(&COMPARISON), t.value(&INTEGER));
            let (all, store) = (mask(kind.size), 0x77);
            let (memory, compare) = pairs(&[0, 1, all, all >> 1, (all >> 1) + 1]);
            let known = match kind.opcode {
                Op::CSWAP | Op::CSWAP_NE => Some(true),
                _ => memory_first(t)?,
            };
            let (region, _) = t.elements_in_memory(kind.size, &memory)?;
            let mut session = t.session();
            let mut psns = Vec::new();
            for (n, compare) in compare.iter().enumerate() {
                let offset = (GUARD + n * kind.size) as u64;
                let of = (kind.opcode, kind.datatype, kind.size as u32);
                let message = Message::swap(&region, offset, of, (*compare, store))?.named(n as u16 + 1);
                let psn = session.ask(t, &Message { complete: true, ..message }.whole()?)?;
                supported(&session.answer(t, psn)?, kind)?;
                psns.push(psn);
            }
            session.all_accepted(t, SES_AMO_008, &psns)?;
            t.pause(t.soon())?;
            let held = t.memory(&region, 0, region.length)?;
            let seen = bits(t, kind.size, &held[GUARD..held.len() - GUARD]);
            let expected = |memory_first: bool| -> Vec<u128> {
                let numbers = memory.iter().zip(&compare);
                numbers
                    .map(
                        |(old, compare)| if holds(kind, memory_first, *old, *compare) { store } else { *old },
                    )
                    .collect()
            };
            // Open: which operand of an ordered comparison comes first. It is the same one for all.
            let first = known.unwrap_or(seen == expected(true));
            let digits = 2 + 2 * kind.size;
            for (n, new) in expected(first).into_iter().enumerate().filter(|(n, new)| seen[*n] != *new) {
                let what = format!(
                    "{} of {}: {:#0digits$x} in memory, compare_value {:#0digits$x}, \
             swap_value {store:#0digits$x}",
                    kind.opcode, kind.datatype, memory[n], compare[n]
                );
                t.check(SES_AMO_008, &what, format!("{new:#0digits$x}"), format!("{:#0digits$x}", seen[n]));
            }
            let beside = [&held[..GUARD], &held[held.len() - GUARD..]].concat();
            let what = format!("{} of {}: the bytes beside the elements", kind.opcode, kind.datatype);
            t.check(SES_AMO_008, &what, vec![0x5a; 2 * GUARD], beside);
            Ok(())
        }),
    rule(
        "arithmetic/compare-swap-fetch",
        "A fetching compare and swap returns the old value in any datatype",
    )
    .checks(&[SES_AMO_007, SES_AMO_008])
    .needs(&[FETCH_ATOMIC])
    .over(&[&EQUALITY, &INTEGER, &MODE])
    .run(|t| {
        let kind = kind(t.value(&EQUALITY), t.value(&INTEGER));
        let all = mask(kind.size);
        for (old, compare) in [(all - 1, all - 1), (all - 1, all), (1, all - 1)] {
            let (region, _) = t.elements_in_memory(kind.size, &[old])?;
            let mut session = t.session();
            let of = (kind.opcode, kind.datatype, kind.size as u32);
            let message = Message::swap(&region, GUARD as u64, of, (compare, 0x77))?;
            let message = message.opcode(Opcode::UET_FETCHING_ATOMIC);
            let fetched = fetch(t, &mut session, &message, kind)?;
            let before = t.operands(kind.size, &[old]);
            t.check(SES_AMO_007, "the old value", Some(before), fetched);
            let new = if holds(kind, true, old, compare) { 0x77 } else { old };
            let expected = t.guarded(kind.size, &[new]);
            t.expect_memory(SES_AMO_008, &region, 0, &expected)?;
        }
        Ok(())
    }),
    rule("arithmetic/duplicate", "A duplicate of an atomic neither acts again nor returns a newer value")
        .checks(&[SES_AMO_010, SES_AMO_007, SES_GTD_003])
        .over(&[&OPERATION, &FORM, &REPEAT, &MODE])
        .run(repeated),
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
                let of = (kind.opcode, kind.datatype);
                let message = match shape {
                    Shape::Swap => {
                        Message::swap(&region, offset, (of.0, of.1, kind.size as u32), (value, 0))?
                    }
                    _ => Message::atomic(&region, offset, of, &operand)?,
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

fn is_signed(datatype: Type) -> bool {
    matches!(datatype, Type::INT8 | Type::INT16 | Type::INT32 | Type::INT64 | Type::INT128)
}

/// The bits of an element of so many bytes.
fn mask(size: usize) -> u128 {
    u128::MAX >> (128 - 8 * size)
}

/// A number by which values of the datatype are ordered.
fn rank(Kind { datatype, size, .. }: Kind, bits: u128) -> (i128, u128) {
    let unused = 128 - 8 * size as u32;
    match is_signed(datatype) {
        true => (((bits << unused) as i128) >> unused, 0),
        false => (0, bits),
    }
}

/// The result of an operation on integers, computed in 128 bits.
fn result(kind: Kind, old: u128, with: u128) -> u128 {
    let truth = |holds: bool| u128::from(holds);
    let new = match kind.opcode {
        Op::MIN => {
            if rank(kind, old) <= rank(kind, with) {
                old
            } else {
                with
            }
        }
        Op::MAX => {
            if rank(kind, old) >= rank(kind, with) {
                old
            } else {
                with
            }
        }
        Op::SUM => old.wrapping_add(with),
        Op::DIFF => old.wrapping_sub(with),
        Op::PROD => old.wrapping_mul(with),
        Op::LOR => truth(old != 0 || with != 0),
        Op::LAND => truth(old != 0 && with != 0),
        Op::LXOR => truth((old != 0) != (with != 0)),
        Op::BOR => old | with,
        Op::BAND => old & with,
        Op::BXOR => old ^ with,
        _ => with,
    };
    new & mask(kind.size)
}

/// Bit patterns at the ends of the range of a type, signed or not, and in the middle.
fn ends(size: usize) -> [u128; 8] {
    let all = mask(size);
    let highest = all >> 1;
    [0, 1, 2, all, all - 1, highest, highest + 1, 0x5a5a_5a5a_5a5a_5a5a_5a5a_5a5a_5a5a_5a5a & all]
}

/// Every pair of these.
fn pairs<T: Copy>(values: &[T]) -> (Vec<T>, Vec<T>) {
    values.iter().flat_map(|old| values.iter().map(move |with| (*old, *with))).unzip()
}

/// The elements of memory or of a payload, as bits.
fn bits(t: &Test<'_>, size: usize, bytes: &[u8]) -> Vec<u128> {
    let big = t.word("byte_order") == Some("big");
    let number = |element: &[u8]| {
        let digits = |value: u128, byte: &u8| value << 8 | u128::from(*byte);
        if big { element.iter().fold(0, digits) } else { element.iter().rev().fold(0, digits) }
    };
    bytes.chunks(size).map(number).collect()
}

/// Expects memory that held `old` to hold `new`, and names the first element that does not.
fn expect_elements(
    t: &mut Test<'_>,
    kind: Kind,
    region: &crate::Region,
    (old, with): (&[u128], &[u128]),
    new: &[u128],
) -> Outcome {
    let expected = t.guarded(kind.size, new);
    let until = t.now() + t.patience(t.soon());
    let mut held = t.memory(region, 0, region.length)?;
    while held != expected && t.now() < until {
        t.pause(t.soon() / 20)?;
        held = t.memory(region, 0, region.length)?;
    }
    let elements = bits(t, kind.size, &held[GUARD..held.len() - GUARD]);
    let digits = 2 + 2 * kind.size;
    if let Some(at) = elements.iter().zip(new).position(|(seen, new)| seen != new) {
        let what = format!(
            "{} of {}, element {at}: {:#0digits$x} in memory, operand {:#0digits$x}",
            kind.opcode, kind.datatype, old[at], with[at]
        );
        t.check(
            SES_AMO_001,
            &what,
            format!("{:#0digits$x}", new[at]),
            format!("{:#0digits$x}", elements[at]),
        );
        return Err(Stop::Failed);
    }
    let beside = [&held[..GUARD], &held[held.len() - GUARD..]].concat();
    let what = format!("{} of {}: the bytes beside the {} elements", kind.opcode, kind.datatype, new.len());
    t.check(SES_AMO_001, &what, vec![0x5a; 2 * GUARD], beside);
    Ok(())
}

/// Does an atomic on `old`, plain and fetching where the device can, and expects `new`.
fn computes(t: &mut Test<'_>, kind: Kind, old: &[u128], with: &[u128], new: &[u128]) -> Outcome {
    acts(t, kind, (false, false), (old, with), new)?;
    match t.claims("fetch_atomic") {
        true => acts(t, kind, (true, false), (old, with), new),
        false => Ok(()),
    }
}

fn acts(
    t: &mut Test<'_>,
    kind: Kind,
    (fetching, medium): (bool, bool),
    (old, with): (&[u128], &[u128]),
    new: &[u128],
) -> Outcome {
    let (region, _) = t.elements_in_memory(kind.size, old)?;
    let operands = t.operands(kind.size, with);
    let message = Message::atomic(&region, GUARD as u64, (kind.opcode, kind.datatype), &operands)?;
    let mut session = t.session();
    let message = if fetching { message.opcode(Opcode::UET_FETCHING_ATOMIC) } else { message };
    let part = if medium { message.medium()? } else { message.whole()? };
    let psn = session.ask(t, &part)?;
    let answer = session.answer(t, psn)?;
    if answer.code() == ReturnCode::AMO_UNSUPPORTED_SIZE {
        return skip(format!("the device lacks atomics of {} elements", old.len()));
    }
    supported(&answer, kind)?;
    session.accepted(t, SES_AMO_001, psn)?;
    if fetching {
        let pieces = session.data(t, SES_AMO_007, message.length as usize)?;
        let brought = crate::assemble(&pieces, message.length as usize);
        let before = t.operands(kind.size, old);
        let wrong = brought.iter().flatten().zip(&before).position(|(seen, expected)| seen != expected);
        let what = format!("the old values, {} bytes; the first wrong byte", before.len());
        let wrong = if brought.is_none() { Some(0) } else { wrong };
        t.check(SES_AMO_007, &what, None, wrong);
    }
    expect_elements(t, kind, &region, (old, with), new)
}

/// The result of an operation on floating point. All results are exact.
fn float_result(opcode: Op, old: f64, with: f64) -> f64 {
    match opcode {
        Op::MIN => old.min(with),
        Op::MAX => old.max(with),
        Op::SUM => old + with,
        Op::DIFF => old - with,
        Op::PROD => old * with,
        _ => with,
    }
}

/// The bits of a number of a floating-point type of so many bytes.
fn float_bits(size: usize, value: f64) -> u128 {
    match size {
        4 => (value as f32).to_bits().into(),
        _ => value.to_bits().into(),
    }
}

/// The sign of what an ordered comparison compares: with memory first or with the operand first. Open: which.
/// `None` if the device does not compare 64-bit numbers.
fn memory_first(t: &mut Test<'_>) -> Result<Option<bool>, Stop> {
    let (region, _) = t.elements_in_memory(8, &[7])?;
    let mut session = t.session();
    let message = Message::swap(&region, GUARD as u64, (Op::CSWAP_LT, Type::UINT64, 8), (8, 99))?;
    let psn = session.ask(t, &Message { complete: true, ..message }.whole()?)?;
    if !session.answer(t, psn)?.is_ok() {
        return Ok(None);
    }
    t.pause(t.soon())?;
    let stored = t.guarded(8, &[99]);
    Ok(Some(t.memory(&region, 0, region.length)? == stored))
}

/// True if a comparison holds, where memory or the operand comes first.
fn holds(kind: Kind, memory_first: bool, memory: u128, compare: u128) -> bool {
    let (left, right) = if memory_first { (memory, compare) } else { (compare, memory) };
    let (left, right) = (rank(kind, left), rank(kind, right));
    match kind.opcode {
        Op::CSWAP => left == right,
        Op::CSWAP_NE => left != right,
        Op::CSWAP_LE => left <= right,
        Op::CSWAP_LT => left < right,
        Op::CSWAP_GE => left >= right,
        _ => left > right,
    }
}

/// Sends a packet again, as a retransmission or as the network copies it.
fn duplicate(
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

/// Another atomic comes between an atomic and its duplicate, so that acting again shows for every operation.
fn repeated(t: &mut Test<'_>) -> Outcome {
    let (fetching, retransmission) = (t.value(&FORM), t.value(&REPEAT));
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
        duplicate(t, &mut session, first, &part, retransmission)?;
        // Data that went on the return direction has arrived there.
        if retransmission && fetched.iter().any(|piece| piece.in_ack) {
            let again = session.data(t, SES_GTD_003, 4)?;
            let before = t.operands(4, &[12]);
            t.check(SES_GTD_003, "the old value again", Some(before), crate::assemble(&again, 4));
        }
    }
    let expected = t.guarded(4, &[9]);
    t.still_holds(SES_AMO_010, &region, &expected)
}

/// The atomic that is refused, the requirement, and the codes; none where the code is open.
fn bad(
    t: &Test<'_>,
    region: &crate::Region,
    reason: RefusalReason,
) -> Result<(Message, &'static Requirement, &'static [ReturnCode]), Stop> {
    let of = |opcode, datatype, offset: u64, length: usize| {
        Message::atomic(region, offset, (opcode, datatype), &vec![1; length])
    };
    let (at, size) = (GUARD as u64, region.length);
    Ok(match reason {
        RefusalReason::Operation => {
            let unassigned = Op::unassigned(t.spec()).next().unwrap_or(Op::INVAL);
            (of(unassigned, Type::UINT64, at, 8)?, SES_AMO_002, &[ReturnCode::AMO_UNSUPPORTED_OP])
        }
        RefusalReason::Datatype => {
            let unassigned = Type::unassigned(t.spec()).next().unwrap_or(Type::FP16);
            (of(Op::SUM, unassigned, at, 8)?, SES_AMO_003, &[ReturnCode::AMO_UNSUPPORTED_DT])
        }
        RefusalReason::HalfAnElement => {
            (of(Op::SUM, Type::UINT64, at, 12)?, SES_AMO_004, &[ReturnCode::AMO_UNSUPPORTED_SIZE])
        }
        RefusalReason::SeveralPackets => {
            (of(Op::SUM, Type::UINT64, at, 8)?, SES_AMO_006, &[ReturnCode::OP_VIOLATION])
        }
        RefusalReason::GivenUp => {
            (of(Op::SUM, Type::UINT64, at, 8)?, SES_ERR_006, &[ReturnCode::INITIATOR_ERR])
        }
        RefusalReason::Beyond => (of(Op::SUM, Type::UINT64, size - 8, 16)?, SES_MEM_004, &[]),
        RefusalReason::Around => (of(Op::SUM, Type::UINT64, u64::MAX - 7, 16)?, SES_MEM_004, &[]),
    })
}

fn refused(t: &mut Test<'_>) -> Outcome {
    let (reason, fetching) = (t.value(&REASON), t.value(&FORM));
    let (region, held) = t.elements_in_memory(8, &[40, 41])?;
    let (message, requirement, codes) = bad(t, &region, reason)?;
    let opcode = if fetching { Opcode::UET_FETCHING_ATOMIC } else { Opcode::UET_ATOMIC };
    let message = message.opcode(opcode);
    // Only a standard header has these flags.
    let only_std = matches!(reason, RefusalReason::SeveralPackets | RefusalReason::GivenUp);
    let part = if t.value(&HEADER) && !only_std { message.medium()? } else { message.whole()? };
    let part = match reason {
        RefusalReason::SeveralPackets => part.edit(|std| std.head(|head| head.eom(false)))?,
        RefusalReason::GivenUp => part.edit(|std| std.head(|head| head.ie(true)))?,
        _ => part,
    };
    let mut session = t.session();
    let psn = session.ask(t, &part)?;
    let answer = match codes {
        [] => session.refused(t, requirement, psn)?,
        codes => session.refused_as(t, requirement, psn, codes)?,
    };
    t.check(SES_GTD_001, "req of the ACK", uet_wire::registry::AckRequest::REQ_CLEAR, answer.request);
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
