//! Packet delivery (section 3.5): contexts, sequence numbers, acknowledgments and retransmissions. `target`
//! tests the device as a target, with the suite as its initiator. `source` tests it as an initiator.

pub(super) mod source;
pub(super) mod target;

use crate::prelude::{CARRIER, MODE, RuleDraft, START};

/// Begins a rule with the usual axes of packet delivery.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).over(&[&MODE, &CARRIER, &START])
}
