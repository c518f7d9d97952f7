//! Compare and swap: the comparisons, their operands, and duplicates (section 3.4.2).

use crate::elements::{GUARD, Kind, fetch, kind, supported};
use crate::prelude::*;
use uet_wire::registry::{AtomicDatatype as Type, AtomicOpcode as Op};

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[ATOMIC]).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("compare-swap/equal", "CSWAP stores if and only if memory equals the compare value")
        .checks(&[SES_AMO_008])
        .run(|t| {
            let kind = kind(Op::CSWAP, Type::UINT64);
            expect_swap(t, SES_AMO_008, kind, (7, 99), (7, 99))?;
            expect_swap(t, SES_AMO_008, kind, (8, 8), (7, 99))
        }),
    rule("compare-swap/not-equal", "CSWAP_NE stores if and only if memory differs from the compare value")
        .checks(&[SES_AMO_008])
        .run(|t| {
            let kind = kind(Op::CSWAP_NE, Type::UINT64);
            expect_swap(t, SES_AMO_008, kind, (8, 99), (7, 99))?;
            expect_swap(t, SES_AMO_008, kind, (7, 7), (7, 99))
        }),
    rule("compare-swap/fetch", "A fetching compare and swap returns the old value whether or not it stores")
        .checks(&[SES_AMO_007, SES_AMO_008])
        .needs(&[FETCH_ATOMIC])
        .run(|t| {
            let kind = kind(Op::CSWAP, Type::UINT32);
            for (old, new) in [(7, 99), (8, 8)] {
                let (region, _) = t.elements_in_memory(4, &[old])?;
                let mut session = t.session();
                let message = Message::swap(&region, GUARD as u64, (kind.opcode, kind.datatype, 4), (7, 99))?;
                let fetched = fetch(t, &mut session, &message.opcode(Opcode::UET_FETCHING_ATOMIC), kind)?;
                let carried = t.operands(4, &[old]);
                t.check(SES_AMO_007, "the old value:", Some(carried), fetched);
                let expected = t.guarded(4, &[new]);
                t.expect_memory(SES_AMO_008, &region, 0, &expected)?;
            }
            Ok(())
        }),
    rule("compare-swap/equal-values", "For equal values, LE and GE store, and LT and GT do not")
        .checks(&[SES_AMO_008])
        .run(|t| {
            for (opcode, new) in
                [(Op::CSWAP_LE, 99), (Op::CSWAP_GE, 99), (Op::CSWAP_LT, 7), (Op::CSWAP_GT, 7)]
            {
                expect_swap(t, SES_AMO_008, kind(opcode, Type::UINT64), (7, new), (7, 99))?;
            }
            Ok(())
        }),
    rule("compare-swap/order", "LT and LE store for one order of two values, GT and GE for the other")
        .checks(&[SES_AMO_008])
        .run(|t| check_order(t, Type::UINT64, 7, 8)),
    rule("compare-swap/signed", "Ordered comparisons distinguish signed from unsigned numbers")
        .checks(&[SES_AMO_008])
        .run(|t| {
            // The bits are a low signed number but a high unsigned one, so the two orders are opposite.
            let minus_one = 0xffff_ffff;
            check_order(t, Type::INT32, minus_one, 1)?;
            let signed = storing_comparisons(t, Type::INT32, minus_one, 1)?;
            let unsigned = storing_comparisons(t, Type::UINT32, minus_one, 1)?;
            let what = "comparisons of 1 with 0xffffffff in memory that store, unsigned";
            t.check(SES_AMO_008, what, opposite(&signed), &unsigned);
            Ok(())
        }),
    rule("compare-swap/floats", "Ordered comparisons of floating-point numbers compare values, not bits")
        .checks(&[SES_AMO_008])
        .run(|t| {
            // The bit patterns of negative numbers are in reverse order.
            let bits = |value: f64| u128::from(value.to_bits());
            check_order(t, Type::DOUBLE, bits(-8.0), bits(-2.0))?;
            let below = storing_comparisons(t, Type::DOUBLE, bits(-8.0), bits(-2.0))?;
            let as_integers = storing_comparisons(t, Type::UINT64, 7, 8)?;
            t.check(SES_AMO_008, "comparisons of -2.0 with -8.0 in memory that store", as_integers, below);
            Ok(())
        }),
    rule("compare-swap/narrow", "Operands of 8, 16 and 32 bits are right-aligned in their 128-bit fields")
        .checks(&[SES_AMO_009, SES_AMO_008])
        .run(|t| {
            for (datatype, old, new) in [
                (Type::UINT8, 0x12, 0x34),
                (Type::UINT16, 0x1234, 0x5678),
                (Type::UINT32, 0x1234_5678, 0x9abc_def0),
            ] {
                expect_swap(t, SES_AMO_009, kind(Op::CSWAP, datatype), (old, new), (old, new))?;
            }
            Ok(())
        }),
    rule("compare-swap/wide", "A 128-bit compare and swap compares and stores both halves")
        .checks(&[SES_AMO_009, SES_AMO_008])
        .run(|t| {
            let kind = kind(Op::CSWAP, Type::UINT128);
            let (old, new) =
                (0x1111_2222_3333_4444_5555_6666_7777_8888, 0xaaaa_bbbb_cccc_dddd_eeee_ffff_0000_1111);
            expect_swap(t, SES_AMO_009, kind, (old, new), (old, new))?;
            expect_swap(t, SES_AMO_008, kind, (old ^ 1 << 127, old ^ 1 << 127), (old, new))
        }),
    rule("compare-swap/duplicate", "A duplicate of a compare and swap does not swap again")
        .checks(&[SES_AMO_010, PDS_DUP_002, SES_AMO_008])
        .run(duplicate),
    rule("compare-swap/unaligned", "A compare and swap at an unaligned address is refused as AMO_UNALIGNED")
        .checks(&[SES_AMO_005])
        .run(unaligned),
];

/// Runs a compare and swap on memory that holds `old`, and returns the memory with its guards.
fn swapped(t: &mut Test<'_>, kind: Kind, old: u128, operands: (u128, u128)) -> Result<Vec<u8>, Stop> {
    let (region, _) = t.elements_in_memory(kind.size, &[old])?;
    let mut session = t.session();
    let selected = (kind.opcode, kind.datatype, kind.size as u32);
    let message = Message { complete: true, ..Message::swap(&region, GUARD as u64, selected, operands)? };
    let psn = session.ask(t, &message.whole()?)?;
    supported(&session.answer(t, psn)?, kind)?;
    session.accepted(t, SES_AMO_008, psn)?;
    t.pause(t.soon())?;
    t.memory(&region, 0, region.length)
}

/// Expects that a compare and swap changes `old` to `new`.
fn expect_swap(
    t: &mut Test<'_>,
    requirement: &Requirement,
    kind: Kind,
    (old, new): (u128, u128),
    operands: (u128, u128),
) -> Outcome {
    let seen = swapped(t, kind, old, operands)?;
    let expected = t.guarded(kind.size, &[new]);
    t.check(requirement, "memory", expected, seen);
    Ok(())
}

/// The comparisons that store if the first operand is less than the second.
const LESS: &str = "CSWAP_LT and CSWAP_LE";

/// The comparisons that store if the first operand is greater than the second.
const GREATER: &str = "CSWAP_GT and CSWAP_GE";

/// Returns the other two comparisons.
fn opposite(stored: &str) -> &'static str {
    if stored == LESS { GREATER } else { LESS }
}

/// Returns the ordered comparisons that store.
fn storing_comparisons(t: &mut Test<'_>, datatype: Type, old: u128, compare: u128) -> Result<String, Stop> {
    let mut stored = Vec::new();
    for opcode in [Op::CSWAP_LT, Op::CSWAP_LE, Op::CSWAP_GT, Op::CSWAP_GE] {
        let kind = kind(opcode, datatype);
        let seen = swapped(t, kind, old, (compare, 99))?;
        if seen == t.guarded(kind.size, &[99]) {
            stored.push(opcode.to_string());
        }
        let allowed = [t.guarded(kind.size, &[99]), t.guarded(kind.size, &[old])];
        t.one_of(SES_AMO_008, "memory after the compare and swap", &allowed, seen);
    }
    Ok(stored.join(" and "))
}

/// Checks that all ordered comparisons have the same first operand. Open: which one it is.
fn check_order(t: &mut Test<'_>, datatype: Type, low: u128, high: u128) -> Outcome {
    let below = storing_comparisons(t, datatype, low, high)?;
    let above = storing_comparisons(t, datatype, high, low)?;
    let what = format!("comparisons of {datatype} that store, with the low value in memory");
    t.one_of(SES_AMO_008, &what, &[LESS, GREATER], &below);
    let what = format!("comparisons of {datatype} that store, with the high value in memory");
    t.check(SES_AMO_008, &what, opposite(&below), &above);
    Ok(())
}

fn duplicate(t: &mut Test<'_>) -> Outcome {
    let kind = kind(Op::CSWAP, Type::UINT64);
    let (region, _) = t.elements_in_memory(8, &[7])?;
    let mut session = t.session();
    let selected = (kind.opcode, kind.datatype, 8);
    let forward = Message::swap(&region, GUARD as u64, selected, (7, 99))?.whole()?;
    let back = Message::swap(&region, GUARD as u64, selected, (99, 7))?.named(2).whole()?;
    let first = session.ask(t, &forward)?;
    supported(&session.answer(t, first)?, kind)?;
    let second = session.ask(t, &back)?;
    session.all_accepted(t, SES_AMO_008, &[first, second])?;
    session.again(t, first, &forward)?;
    session.accepted(t, PDS_DUP_002, first)?;
    let expected = t.guarded(8, &[7]);
    t.still_holds(SES_AMO_010, &region, &expected)
}

fn unaligned(t: &mut Test<'_>) -> Outcome {
    let (region, held) = t.elements_in_memory(8, &[0x5a5a_5a5a_5a5a_5a5a])?;
    let mut session = t.session();
    let selected = (Op::CSWAP, Type::UINT64, 8);
    let message = Message::swap(&region, GUARD as u64 + 4, selected, (0x5a5a_5a5a_5a5a_5a5a, 0))?;
    let psn = session.ask(t, &message.whole()?)?;
    supported(&session.answer(t, psn)?, kind(Op::CSWAP, Type::UINT64))?;
    session.refused_as(t, SES_AMO_005, psn, &[ReturnCode::AMO_UNALIGNED])?;
    t.still_holds(SES_AMO_005, &region, &held)
}
