//! Conversations for the packet delivery rules, packet by packet.
//!
//! Unless a description says otherwise, PSN 332 is the last of the forward direction, acknowledged and cleared, and 47
//! that of the return direction. `at` is the time of sending. Lost packets are included, and their description says so.
//! Reordered packets are listed in the order of arrival.

mod delivery;
mod ends;
mod loss;
mod reads;

use super::parts::{Ladder, data, ok, write};
use crate::case::Family;
use uet_wire::FrameBuilder;
use uet_wire::pds::{PdsBuf, RequestMut};

/// First timeout of a packet, and back-off after a NACK.
const RTO: u64 = 100_000;
const NACK_WAIT: u64 = 10_000;

pub(super) fn family() -> Family {
    let mut family = Family::new("sequences", "behaviour: sequences");
    delivery::sequences(&mut family);
    reads::sequences(&mut family);
    loss::sequences(&mut family);
    ends::sequences(&mut family);
    family
}

fn add(family: &mut Family, name: &str, what: &str, ladder: Ladder) {
    let number = name[..2].trim_start_matches('0');
    let source = format!("behaviour: sequence {number}");
    family.sequence(name, what, &source, ladder.steps());
}

/// Builds a write of 16 bytes, the whole message.
fn write_in(request: RequestMut, message: u16) -> FrameBuilder<'static> {
    FrameBuilder::new(super::parts::built(request.done())).ses(write(message, 16)).payload(data(0, 16))
}

/// Puts a plain success into this ACK.
fn ok_in(ack: impl Into<PdsBuf>, message: u16) -> FrameBuilder<'static> {
    FrameBuilder::new(ack).ses(ok(message))
}
