//! Every atomic operation with every datatype: results at the ends of the range, and the number of elements
//! (section 3.4.2).

use super::steps::{FORM, INTEGER, OPERATION, elements_of, mask, pairs, rank};
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
            let (old, with) = pairs(&boundary_values(kind.size));
            let new: Vec<u128> = old.iter().zip(&with).map(|(old, with)| result(kind, *old, *with)).collect();
            check_plain_and_fetching(t, kind, &old, &with, &new)
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
            let to_bits = |values: &[f64]| -> Vec<u128> {
                values.iter().map(|it| float_bits(kind.size, *it)).collect()
            };
            let new: Vec<f64> = new.collect();
            // The rule ignores the sign of zero results.
            let judged: Vec<usize> = (0..new.len()).filter(|at| new[*at] != 0.0).collect();
            let select = |values: &[f64]| -> Vec<f64> { judged.iter().map(|at| values[*at]).collect() };
            check_plain_and_fetching(
                t,
                kind,
                &to_bits(&select(&old)),
                &to_bits(&select(&with)),
                &to_bits(&select(&new)),
            )
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
            // The rule ignores the sign of zero results.
            let judged: Vec<usize> =
                (0..new.len()).filter(|at| new[*at].0 != 0.0 && new[*at].1 != 0.0).collect();
            let to_bits = |values: &[(f64, f64)]| -> Vec<u128> {
                let parts = judged.iter().flat_map(|at| [values[*at].0, values[*at].1]);
                parts.map(|value| float_bits(part, value)).collect()
            };
            check_plain_and_fetching(
                t,
                Kind { size: part, ..kind },
                &to_bits(&old),
                &to_bits(&with),
                &to_bits(&new),
            )
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
            check_atomic(t, kind, form, (&old, &with), &new)
        }),
];

/// Returns the result of an operation on integers, computed in 128 bits.
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

/// Runs a plain atomic, and a fetching one if the device supports it. Expects that both change `old` to
/// `new`.
fn check_plain_and_fetching(
    t: &mut Test<'_>,
    kind: Kind,
    old: &[u128],
    with: &[u128],
    new: &[u128],
) -> Outcome {
    check_atomic(t, kind, (false, false), (old, with), new)?;
    if t.claims("fetch_atomic") { check_atomic(t, kind, (true, false), (old, with), new) } else { Ok(()) }
}

/// Runs an atomic on `old` and checks its result.
fn check_atomic(
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
        let fetched = crate::assemble(&pieces, message.length as usize);
        let before = t.operands(kind.size, old);
        let wrong = fetched.iter().flatten().zip(&before).position(|(seen, expected)| seen != expected);
        let what = format!("the old values, {} bytes; the first wrong byte", before.len());
        let wrong = if fetched.is_none() { Some(0) } else { wrong };
        t.check(SES_AMO_007, &what, None, wrong);
    }
    expect_elements(t, kind, &region, (old, with), new)
}

/// Returns the result of an operation on floating-point numbers. All results are exact.
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

/// Returns the bits of a number of a floating-point type of `size` bytes.
fn float_bits(size: usize, value: f64) -> u128 {
    match size {
        4 => (value as f32).to_bits().into(),
        _ => value.to_bits().into(),
    }
}
