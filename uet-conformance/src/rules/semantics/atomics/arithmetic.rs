//! Every atomic operation with every datatype: results at the ends of the range, and the number of elements
//! (section 3.4.2).

use super::steps::{FORM, INTEGER, OPERATION, elements_of, pairs};
use crate::arithmetic::{Result, apply, mask};
use crate::elements::{GUARD, Kind, kind, supported};
use crate::prelude::*;
use crate::rules::steps::HEADER;
use uet_wire::registry::{AtomicDatatype as Type, AtomicOpcode as Op};

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

const COUNT: Axis<Option<usize>> = axis("count").values(&[
    ("1", Some(1)),
    ("2", Some(2)),
    ("255", Some(255)),
    ("256", Some(256)),
    ("257", Some(257)),
    ("mtu", None),
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
            check_plain_and_fetching(t, kind, results(kind, pairs(&boundary_values(kind.size)), |_| true))
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
            let values: Vec<u128> = values.iter().map(|value| float_bits(kind.size, *value)).collect();
            // The rule ignores the sign of zero results.
            check_plain_and_fetching(t, kind, results(kind, pairs(&values), |new| new != 0))
        }),
    rule("arithmetic/complex", "An atomic on complex numbers uses complex arithmetic")
        .checks(&[SES_AMO_001, SES_AMO_007])
        .over(&[&COMPLEX_OPERATION, &COMPLEX, &MODE])
        .run(|t| {
            let kind = kind(t.value(&COMPLEX_OPERATION), t.value(&COMPLEX));
            let part = kind.size / 2;
            let halves = |number: u128| [number & mask(part), number >> (8 * part)];
            let numbers = [(1.0, 2.0), (3.0, -4.0), (-0.5, 8.0), (-1.5, -0.25)];
            let numbers = numbers
                .map(|(real, imaginary)| float_bits(part, real) | float_bits(part, imaginary) << (8 * part));
            // The rule ignores the sign of zero results.
            let results = results(kind, pairs(&numbers), |new| halves(new).iter().all(|half| *half != 0));
            let results = results.map(|numbers| numbers.into_iter().flat_map(halves).collect());
            check_plain_and_fetching(t, Kind { size: part, ..kind }, results)
        }),
    rule("arithmetic/element-count", "An atomic acts on every element of its packet, however many")
        .checks(&[SES_AMO_001, SES_AMO_007, SES_READ_006])
        .over(&[&COUNT, &WIDTH, &FORM, &HEADER, &MODE])
        .run(|t| {
            let kind = kind(Op::SUM, t.value(&WIDTH));
            let most = t.mtu() / kind.size;
            let count = t.value(&COUNT).unwrap_or(most);
            require(count <= most, format!("{count} elements exceed a packet"))?;
            let all = mask(kind.size);
            let pairs = (0..count as u128).map(|n| ((3 * n + 1) & all, (7 * n + 5) & all)).unzip();
            check_atomic(t, kind, (t.value(&FORM), t.value(&HEADER)), &results(kind, pairs, |_| true))
        }),
];

/// Returns the old values, the operands and the results of an operation. Leaves out pairs whose result is
/// open, or not `judged`.
fn results(kind: Kind, (old, with): (Vec<u128>, Vec<u128>), judged: impl Fn(u128) -> bool) -> [Vec<u128>; 3] {
    let mut lists = [Vec::new(), Vec::new(), Vec::new()];
    for (old, with) in old.into_iter().zip(with) {
        let Result::Is(new) = apply(kind.opcode, kind.datatype, old, with, 0) else { continue };
        if judged(new) {
            lists.iter_mut().zip([old, with, new]).for_each(|(list, bits)| list.push(bits));
        }
    }
    lists
}

/// Returns bit patterns at the ends and in the middle of the range of signed and unsigned types.
fn boundary_values(size: usize) -> [u128; 8] {
    let all = mask(size);
    let highest = all >> 1;
    [0, 1, 2, all, all - 1, highest, highest + 1, 0x5a5a_5a5a_5a5a_5a5a_5a5a_5a5a_5a5a_5a5a & all]
}

/// Expects that memory with `old` elements holds `new` ones. Reports the first element that differs.
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
    let elements = elements_of(t, kind.size, &held[GUARD..held.len() - GUARD]);
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
    let guards = [&held[..GUARD], &held[held.len() - GUARD..]].concat();
    let what = format!("{} of {}: the bytes around the {} elements", kind.opcode, kind.datatype, new.len());
    t.check(SES_AMO_001, &what, vec![0x5a; 2 * GUARD], guards);
    Ok(())
}

/// Runs a plain atomic, and a fetching one if the device supports it. Expects these results of both.
fn check_plain_and_fetching(t: &mut Test<'_>, kind: Kind, results: [Vec<u128>; 3]) -> Outcome {
    check_atomic(t, kind, (false, false), &results)?;
    if t.claims("fetch_atomic") { check_atomic(t, kind, (true, false), &results) } else { Ok(()) }
}

/// Runs an atomic on `old` and checks its result.
fn check_atomic(
    t: &mut Test<'_>,
    kind: Kind,
    (fetching, medium): (bool, bool),
    [old, with, new]: &[Vec<u128>; 3],
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
        for header in pieces.iter().filter_map(crate::Data::short) {
            t.check(SES_READ_006, "original_request_psn", psn, header.original_request_psn());
        }
        let fetched = crate::assemble(&pieces, message.length as usize);
        let before = t.operands(kind.size, old);
        let wrong = fetched.iter().flatten().zip(&before).position(|(seen, expected)| seen != expected);
        let what = format!("the old values, {} bytes; the first wrong byte", before.len());
        let wrong = if fetched.is_none() { Some(0) } else { wrong };
        t.check(SES_AMO_007, &what, None, wrong);
    }
    expect_elements(t, kind, &region, (old, with), new)
}

/// Returns the bits of a number of a floating-point type of `size` bytes.
fn float_bits(size: usize, value: f64) -> u128 {
    match size {
        4 => (value as f32).to_bits().into(),
        _ => value.to_bits().into(),
    }
}
