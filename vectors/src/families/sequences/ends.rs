//! Sequence 16: closing, and late packets.

use super::super::parts::{INITIATOR, Ladder, ack, built, control, nack, opening, request};
use super::{RTO, add, ok_in, write_in};
use crate::case::Family;
use uet_wire::pds::Nack;
use uet_wire::registry::{CtlType, NackCode, PdsType};
use uet_wire::{FrameBuilder, PdcId, Psn};

/// Distance of 2^16 and more from the last PSN of the old context.
const NEW_START: u32 = 334 + (1 << 16);
/// The target's identifier of the new context.
const NEW_TARGET: PdcId = PdcId(0x8002);

pub(super) fn sequences(family: &mut Family) {
    let gone = Nack::build(NackCode::INV_DPDCID).retx(true).nack_psn(Psn(333)).dpdcid(INITIATOR);
    let closing = nack(NackCode::CLOSING, 333).edit().retx(true);
    for (word, refusal, what) in [
        ("closing", closing, "the target still knows the context: CLOSING"),
        (
            "inv-dpdcid",
            gone,
            "the target has forgotten the context: INV_DPDCID, without an identifier of its own",
        ),
    ] {
        let acked = built(ack(NEW_START, NEW_START).spdcid(NEW_TARGET).done());
        let ladder = Ladder::new()
            .initiator("the last request", write_in(request(333, 332), 1))
            .target("acknowledged: all is quiet", ok_in(built(ack(333, 333).done()), 1))
            .initiator("closes; takes PSN 334", {
                FrameBuilder::new(built(control(CtlType::CLOSE_COMMAND).ar(true).psn(Psn(334)).done()))
            })
            .target(
                "closed; an ACK of a control packet carries no response",
                FrameBuilder::new(built(ack(334, 334).done())),
            )
            .wait(RTO)
            .initiator("an old copy of 333 that the network held", write_in(request(333, 332).retx(true), 1))
            .target(what, FrameBuilder::new(built(refusal.done())))
            .initiator("a new context with the same PDCID, 2^16 PSNs away", {
                write_in(opening(PdsType::RUD_REQ, NEW_START, 0), 2)
            })
            .target("made", ok_in(acked, 2));
        add(
            family,
            &format!("16-close-{word}"),
            "close, a late duplicate, and a new context with the old PDCID",
            ladder,
        );
    }
}
