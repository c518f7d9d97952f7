//! Sequences 9 to 15: losses, duplicates and reordering in the network.

use super::super::parts::{
    INITIATOR, Ladder, TARGET, ack, built, control, data, guaranteed, nack, ok, opening, request, response,
    tagged, with_credit, with_state, write,
};
use super::{NACK_WAIT, RTO, add, ok_in, write_in};
use crate::case::Family;
use uet_wire::pds::{AckMut, Control, PdsBuf};
use uet_wire::registry::{CcType, CtlType, List, NackCode, PdsType, ResponseOpcode, ReturnCode};
use uet_wire::{FrameBuilder, Units24};

/// Builds an ACK with a SACK bitmap beyond the cumulative PSN.
fn sack(ack: AckMut, from: i16, bitmap: u64) -> PdsBuf {
    let header = with_state(ack);
    built(header.sack(|s| s.mpr(8).sack_psn_offset(from).sack_bitmap(bitmap)).done()).into()
}

pub(super) fn sequences(family: &mut Family) {
    const NUMBER: u16 = 14;
    let refused = Ladder::new()
        .initiator("message 14", write_in(request(333, 332), NUMBER))
        .target("no buffer: dropped", FrameBuilder::new(nack(NackCode::NO_PKT_BUFFER, 333)))
        .wait(NACK_WAIT)
        .initiator("sent again after the wait", write_in(request(333, 332).retx(true), NUMBER))
        .target("delivered, once; retx is copied", ok_in(built(ack(333, 333).retx(true).done()), NUMBER));
    add(family, "09-nack", "a packet refused for want of a buffer", refused);

    let lost = Ladder::new()
        .initiator("lost", write_in(request(333, 332), 1))
        .wait(RTO)
        .initiator("sent again after the timeout", write_in(request(333, 332).retx(true), 1))
        .target("acknowledged", ok_in(built(ack(333, 333).retx(true).done()), 1));
    add(family, "10-request-lost", "a request is lost", lost);
    let lost = Ladder::new()
        .initiator("delivered", write_in(request(333, 332), 1))
        .target("lost", ok_in(built(ack(333, 333).done()), 1))
        .wait(RTO)
        .initiator(
            "sent again after the timeout: a duplicate, not delivered",
            write_in(request(333, 332).retx(true), 1),
        )
        .target(
            "acknowledged again with the default response",
            ok_in(built(ack(333, 333).retx(true).done()), 1),
        );
    add(family, "10-ack-lost", "an ACK is lost, its response was plain", lost);
    let send = |again| {
        FrameBuilder::new(built(request(333, 332).retx(again).done())).ses(tagged(1, 16)).payload(data(0, 16))
    };
    let stored = |again| {
        let answer = response(ResponseOpcode::UET_RESPONSE, ReturnCode::OK, 1).modified_length(16);
        let answer = built(answer.head(|h| h.list(List::UET_OVERFLOW)).done());
        FrameBuilder::new(built(guaranteed(332, 333).retx(again).done())).ses(answer)
    };
    let lost = Ladder::new()
        .initiator("delivered", send(false))
        .target("lost", stored(false))
        .wait(RTO)
        .initiator("sent again after the timeout: a duplicate, not delivered", send(true))
        .target("acknowledged again with the response that was kept", stored(true))
        .wait(5_000)
        .initiator("cleared", FrameBuilder::new(built(control(CtlType::CLEAR_COMMAND).payload(333).done())));
    add(family, "10-ack-lost-stored", "an ACK is lost, its response was kept", lost);

    let lost = Ladder::new()
        .initiator("dropped for want of a buffer", write_in(request(333, 332), 1))
        .target("lost", FrameBuilder::new(nack(NackCode::NO_PKT_BUFFER, 333)))
        .wait(RTO)
        .initiator("the timeout recovers", write_in(request(333, 332).retx(true), 1))
        .target("acknowledged", ok_in(built(ack(333, 333).retx(true).done()), 1));
    add(family, "11-nack-lost", "a NACK is lost", lost);
    openings(family);
    disorder(family);
    wraps(family);
}

fn openings(family: &mut Family) {
    let rud = |psn, offset, retx| opening(PdsType::RUD_REQ, psn, offset).retx(retx);
    let first_lost = Ladder::new()
        .initiator("the first packet, lost", write_in(rud(333, 0, false), 1))
        .initiator("opens the context: Start_PSN is 333", write_in(rud(334, 1, false), 2))
        .initiator("finds it", write_in(rud(335, 2, false), 3))
        .target("the gap shows", FrameBuilder::new(sack(ack(332, 334), 1, 0b10)).ses(ok(2)))
        .target("both are there", FrameBuilder::new(sack(ack(332, 335), 1, 0b110)).ses(ok(3)))
        .wait(RTO)
        .initiator("sent again, after the first ACK: without syn", write_in(request(333, 332).retx(true), 1))
        .target("all have come", ok_in(built(ack(335, 333).retx(true).done()), 1));
    add(family, "12-first-lost-rud", "the first packet of a RUD context is lost", first_lost);

    let rod = |psn, offset, retx| opening(PdsType::ROD_REQ, psn, offset).retx(retx);
    let ordered = Ladder::new()
        .initiator("the first packet, lost", write_in(rod(333, 0, false), 1))
        .initiator("out of order: dropped", write_in(rod(334, 1, false), 2))
        .initiator("out of order: dropped", write_in(rod(335, 2, false), 3))
        .target(
            "once for the gap; here the early packet has opened the context",
            FrameBuilder::new(nack(NackCode::ROD_OOO, 334)),
        )
        .wait(NACK_WAIT)
        .initiator("back to the first; no ACK has come, so with syn", write_in(rod(333, 0, true), 1))
        .initiator("and all after it", write_in(rod(334, 1, true), 2))
        .initiator("and all after it", write_in(rod(335, 2, true), 3))
        .target("in order", ok_in(built(ack(333, 333).retx(true).done()), 1))
        .target("in order", ok_in(built(ack(334, 334).retx(true).done()), 2))
        .target("in order", ok_in(built(ack(335, 335).retx(true).done()), 3));
    add(
        family,
        "12-first-lost-rod",
        "the first packet of a ROD context is lost: nothing is delivered early",
        ordered,
    );

    let second = Ladder::new()
        .initiator("opens the context", write_in(rud(333, 0, false), 1))
        .target("the first ACK, lost", ok_in(built(ack(333, 333).done()), 1))
        .initiator(
            "syn again: finds the same context, by address and spdcid",
            write_in(rud(334, 1, false), 2),
        )
        .target("from the same context", ok_in(built(ack(334, 334).done()), 2))
        .initiator("from now on without syn", write_in(request(335, 334), 3))
        .target("acknowledged", ok_in(built(ack(335, 335).done()), 3));
    add(family, "13-first-ack-lost", "the first ACK is lost", second);
}

/// In miniature: four packets stand for the window.
fn disorder(family: &mut Family) {
    let mut ladder = Ladder::new();
    for psn in (333..337u32).rev() {
        let message = (psn - 332) as u16;
        ladder =
            ladder.initiator("the last sent comes first", write_in(request(psn, 332), message)).initiator(
                "a copy that the network made: no retx, dropped",
                write_in(request(psn, 332), message),
            );
    }
    // Sent in this order, 336, 335 and 334 lie beyond a gap. They arrive in reverse.
    let ladder = ladder
        .target("the last ACK comes first: all have come", ok_in(built(ack(336, 333).done()), 1))
        .target(
            "older: its cack changes nothing",
            FrameBuilder::new(sack(ack(332, 334), 1, 0b1110)).ses(ok(2)),
        )
        .target("older", FrameBuilder::new(sack(ack(332, 335), 1, 0b1100)).ses(ok(3)))
        .target("the oldest", FrameBuilder::new(sack(ack(332, 336), 1, 0b1000)).ses(ok(4)));
    add(family, "14-disorder", "requests reversed, each twice, ACKs reversed: each delivered once", ladder);
}

fn wraps(family: &mut Family) {
    let mut ladder = Ladder::new();
    let psns = (0..4u32).map(|index| 0xffff_fffeu32.wrapping_add(index));
    for (message, psn) in (1..).zip(psns) {
        ladder = ladder.initiator(
            "the PSN goes on behind 0xffffffff with 0",
            write_in(request(psn, 0xffff_fffd), message),
        );
    }
    let ladder = ladder
        .target("answers 0xffffffff, cumulative 1", ok_in(built(ack(1, 0xffff_ffff).done()), 2))
        .target("a bitmap across the wrap", FrameBuilder::new(sack(ack(1, 1), -4, 0b1_1111)).ses(ok(4)));
    add(family, "15-psn-wraps", "PSNs across the wrap at 2^32", ladder);

    let received = |psn: u32, units: u32, message: u16| {
        let header = with_state(ack(psn, psn)).cc_type(CcType::NSCC);
        let header = header.rcvd_bytes(Units24::new(units).unwrap_or_default());
        FrameBuilder::new(built(header.done())).ses(ok(message))
    };
    let ladder = Ladder::new()
        .initiator("a write", write_in(request(333, 332), 1))
        .target("rcvd_bytes before the wrap", received(333, 0xff_ffff, 1))
        .initiator("a write", write_in(request(334, 333), 2))
        .target("3 units later: 768 bytes are new", received(334, 2, 2));
    add(family, "15-rcvd-bytes-wrap", "rcvd_bytes across the wrap at 2^24", ladder);

    let wants = |psn: u32, clear: u32, units: u32| {
        let header = with_credit(request(psn, clear)).ccc_id(0xa1);
        let header = built(header.credit_target(Units24::new(units).unwrap_or_default()).done());
        FrameBuilder::new(header).ses(write(1, 16)).payload(data(0, 16))
    };
    let credit = |units| {
        let packet = Control::build(CtlType::CREDIT).spdcid(TARGET).dpdcid(INITIATOR).payload(units);
        FrameBuilder::new(built(packet.done()))
    };
    let ladder = Ladder::new()
        .initiator("wants credit up to 5 units behind the wrap", wants(333, 332, 5))
        .target("granted up to the end of the counter", credit(0xff_ffff))
        .initiator("goes on", wants(334, 333, 5))
        .target("2 units more: the counter has wrapped", credit(1));
    add(family, "15-credit-wraps", "credit and credit_target across the wrap at 2^24", ladder);
}
