//! Clears that are asked for while packets below are unanswered (sections 3.5.11, 3.5.16.3).

use super::clear::{ask, guaranteed, told};
use crate::prelude::*;
use crate::rules::steps::message_in_flight;

/// Packets of the message.
const COUNT: u32 = 3;

/// The order of the answers.
const ORDER: Axis<[u32; COUNT as usize]> = axis("order").values(&[
    ("3-1-2", [3, 1, 2]),
    ("1-2-3", [1, 2, 3]),
    ("1-3-2", [1, 3, 2]),
    ("2-1-3", [2, 1, 3]),
    ("2-3-1", [2, 3, 1]),
    ("3-2-1", [3, 2, 1]),
]);

/// The packets whose responses have to be cleared.
const KEPT: Axis<&[u32]> = axis("kept").values(&[
    ("1-and-3", &[1, 3]),
    ("1", &[1]),
    ("2", &[2]),
    ("3", &[3]),
    ("1-and-2", &[1, 2]),
    ("2-and-3", &[2, 3]),
    ("all", &[1, 2, 3]),
]);

/// The packet that a CLEAR_REQUEST after each answer names, if any.
const ASKED: Axis<Option<u32>> =
    axis("clear-request").values(&[("none", None), ("first", Some(1)), ("last", Some(COUNT))]);

pub(super) const RULES: &[Rule] = &[rule(
    "source-clear/requested-in-every-order",
    "CLEAR_PSN covers guaranteed responses for any order of ACKs",
)
.checks(&[PDS_CLR_001, PDS_CLR_006])
.over(&[&ORDER, &KEPT, &ASKED, &MODE, &CARRIER, &START])
.run(|t| {
    let (target, written) = message_in_flight(t, COUNT)?;
    let kept = t.value(&KEPT);
    let mut answered = Vec::new();
    let mut cleared = 0;
    for n in t.value(&ORDER) {
        let ack = match kept.contains(&n) {
            true => guaranteed(&target, target.packet(n)?, ReturnCode::OK)?,
            false => target.naming(n, n),
        };
        target.answer(t, ack.cack(target.psn(0)))?;
        answered.push(n);
        let last = (1..=COUNT).take_while(|n| answered.contains(n)).last().unwrap_or(0);
        if let Some(asked) = t.value(&ASKED) {
            ask(t, &target, asked)?;
        }
        // The response may be cleared as soon as all below are answered.
        if let Some(due) = (cleared + 1..=last).rev().find(|n| kept.contains(n)) {
            expect_cleared(t, &target, due, last)?;
            cleared = due;
        }
    }
    t.ends(PDS_CLR_006, written, Status::Ok)
})];

/// Expects that CLEAR_PSN reaches that of packet `due`, and does not pass that of packet `last`.
fn expect_cleared(t: &mut Test<'_>, target: &Target, due: u32, last: u32) -> Outcome {
    let (psn, most, within) = (target.psn(due), target.psn(last), t.later());
    let expected = format!("CLEAR_PSN {psn} or a later one");
    let (_, clear) = t.expect(PDS_CLR_006, &expected, within, |seen| {
        told(target, seen).filter(|clear| !psn.is_after(*clear))
    })?;
    t.holds(PDS_CLR_001, "CLEAR_PSN covers only what is answered", !clear.is_after(most), clear);
    Ok(())
}
