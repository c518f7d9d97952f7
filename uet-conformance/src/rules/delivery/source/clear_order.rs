//! CLEAR_PSN while ACKs with guaranteed responses arrive in any order (sections 3.5.11, 3.5.16.3).

use super::steps::{clear_psn, guaranteed, request_clear};
use crate::prelude::*;
use crate::rules::steps::message_in_flight;

/// The number of packets of the message.
const COUNT: u32 = 3;

/// The order of the ACKs.
const ORDER: Axis<[u32; COUNT as usize]> = axis("order").values(&[
    ("3-1-2", [3, 1, 2]),
    ("1-2-3", [1, 2, 3]),
    ("1-3-2", [1, 3, 2]),
    ("2-1-3", [2, 1, 3]),
    ("2-3-1", [2, 3, 1]),
    ("3-2-1", [3, 2, 1]),
]);

/// The packets with guaranteed responses.
const GUARANTEED: Axis<&[u32]> = axis("guaranteed").values(&[
    ("1-and-3", &[1, 3]),
    ("1", &[1]),
    ("2", &[2]),
    ("3", &[3]),
    ("1-and-2", &[1, 2]),
    ("2-and-3", &[2, 3]),
    ("all", &[1, 2, 3]),
]);

/// The packet that a CLEAR_REQUEST after each ACK names, if any.
const CLEAR_REQUEST: Axis<Option<u32>> =
    axis("clear-request").values(&[("none", None), ("first", Some(1)), ("last", Some(COUNT))]);

pub(super) const RULES: &[Rule] = &[rule(
    "source-clear/requested-in-every-order",
    "CLEAR_PSN covers guaranteed responses for any order of ACKs",
)
.checks(&[PDS_CLR_001, PDS_CLR_006])
.over(&[&ORDER, &GUARANTEED, &CLEAR_REQUEST, &MODE, &CARRIER, &START])
.run(|t| {
    let (target, written) = message_in_flight(t, COUNT)?;
    let guaranteed_packets = t.value(&GUARANTEED);
    let mut acknowledged = Vec::new();
    let mut cleared = 0;
    for n in t.value(&ORDER) {
        let ack = if guaranteed_packets.contains(&n) {
            guaranteed(&target, target.packet(n)?, ReturnCode::OK)?
        } else {
            target.naming(n, n)
        };
        target.answer(t, ack.cack(target.psn(0)))?;
        acknowledged.push(n);
        let last = (1..=COUNT).take_while(|n| acknowledged.contains(n)).last().unwrap_or(0);
        if let Some(requested) = t.value(&CLEAR_REQUEST) {
            request_clear(t, &target, requested)?;
        }
        // A response may be cleared once all packets below are acknowledged.
        if let Some(due) = (cleared + 1..=last).rev().find(|n| guaranteed_packets.contains(n)) {
            expect_cleared(t, &target, due, last)?;
            cleared = due;
        }
    }
    t.ends(PDS_CLR_006, written, Status::Ok)
})];

/// Expects that CLEAR_PSN reaches packet `due` and does not exceed packet `last`.
fn expect_cleared(t: &mut Test<'_>, target: &Target, due: u32, last: u32) -> Outcome {
    let (psn, highest, within) = (target.psn(due), target.psn(last), t.later());
    let expected = format!("CLEAR_PSN {psn} or a later one");
    let (_, clear) = t.expect(PDS_CLR_006, &expected, within, |seen| {
        clear_psn(target, seen).filter(|clear| !psn.is_after(*clear))
    })?;
    t.holds(PDS_CLR_001, "CLEAR_PSN covers only acknowledged packets", !clear.is_after(highest), clear);
    Ok(())
}
