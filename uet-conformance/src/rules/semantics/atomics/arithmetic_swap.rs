//! Every comparison of compare and swap with every integer type (section 3.4.2).

use super::steps::{INTEGER, elements_of, pairs};
use crate::arithmetic::{holds, mask};
use crate::elements::{GUARD, fetch, kind, supported};
use crate::prelude::*;
use uet_wire::registry::{AtomicDatatype as Type, AtomicOpcode as Op};

const COMPARISON: Axis<Op> = axis("operation").values(&[
    ("cswap", Op::CSWAP),
    ("cswap-ne", Op::CSWAP_NE),
    ("cswap-le", Op::CSWAP_LE),
    ("cswap-lt", Op::CSWAP_LT),
    ("cswap-ge", Op::CSWAP_GE),
    ("cswap-gt", Op::CSWAP_GT),
]);

const EQUALITY: Axis<Op> = axis("operation").values(&[("cswap", Op::CSWAP), ("cswap-ne", Op::CSWAP_NE)]);

/// Begins a rule with the usual needs of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[ATOMIC])
}

pub(super) const RULES: &[Rule] = &[
    rule("arithmetic/compare-swap", "A compare and swap stores exactly if its comparison holds")
        .checks(&[SES_AMO_008])
        .over(&[&COMPARISON, &INTEGER, &MODE])
        .run(|t| {
            let kind = kind(t.value(&COMPARISON), t.value(&INTEGER));
            let (all, store) = (mask(kind.size), 0x77);
            let (memory, compare) = pairs(&[0, 1, all, all >> 1, (all >> 1) + 1]);
            let known_order = match kind.opcode {
                Op::CSWAP | Op::CSWAP_NE => Some(true),
                _ => memory_first(t)?,
            };
            let (region, _) = t.elements_in_memory(kind.size, &memory)?;
            let mut session = t.session();
            let mut psns = Vec::new();
            for (n, compare) in compare.iter().enumerate() {
                let offset = (GUARD + n * kind.size) as u64;
                let selected = (kind.opcode, kind.datatype, kind.size as u32);
                let message =
                    Message::swap(&region, offset, selected, (*compare, store))?.named(n as u16 + 1);
                let psn = session.ask(t, &Message { complete: true, ..message }.whole()?)?;
                supported(&session.answer(t, psn)?, kind)?;
                psns.push(psn);
            }
            session.all_accepted(t, SES_AMO_008, &psns)?;
            t.pause(t.soon())?;
            let held = t.memory(&region, 0, region.length)?;
            let seen = elements_of(t, kind.size, &held[GUARD..held.len() - GUARD]);
            let expected = |memory_first: bool| -> Vec<u128> {
                let numbers = memory.iter().zip(&compare);
                numbers
                    .map(
                        |(old, compare)| if holds(kind, memory_first, *old, *compare) { store } else { *old },
                    )
                    .collect()
            };
            // Open: which operand of an ordered comparison comes first. It is the same for all comparisons.
            let first = known_order.unwrap_or(seen == expected(true));
            let digits = 2 + 2 * kind.size;
            for (n, new) in expected(first).into_iter().enumerate().filter(|(n, new)| seen[*n] != *new) {
                let what = format!(
                    "{} of {}: {:#0digits$x} in memory, compare_value {:#0digits$x}, \
             swap_value {store:#0digits$x}",
                    kind.opcode, kind.datatype, memory[n], compare[n]
                );
                t.check(SES_AMO_008, &what, format!("{new:#0digits$x}"), format!("{:#0digits$x}", seen[n]));
            }
            let guards = [&held[..GUARD], &held[held.len() - GUARD..]].concat();
            let what = format!("{} of {}: the bytes around the elements", kind.opcode, kind.datatype);
            t.check(SES_AMO_008, &what, vec![0x5a; 2 * GUARD], guards);
            Ok(())
        }),
    rule("arithmetic/compare-swap-fetch", "A fetching compare and swap returns the old value for any type")
        .checks(&[SES_AMO_007, SES_AMO_008])
        .needs(&[FETCH_ATOMIC])
        .over(&[&EQUALITY, &INTEGER, &MODE])
        .run(|t| {
            let kind = kind(t.value(&EQUALITY), t.value(&INTEGER));
            let all = mask(kind.size);
            for (old, compare) in [(all - 1, all - 1), (all - 1, all), (1, all - 1)] {
                let (region, _) = t.elements_in_memory(kind.size, &[old])?;
                let mut session = t.session();
                let selected = (kind.opcode, kind.datatype, kind.size as u32);
                let message = Message::swap(&region, GUARD as u64, selected, (compare, 0x77))?;
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
];

/// Finds whether memory is the first operand of an ordered comparison, which is open. Returns `None` if the
/// device does not compare 64-bit numbers.
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
