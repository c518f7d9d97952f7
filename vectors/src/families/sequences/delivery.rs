//! Sequences 1 to 4: requests, ACKs and clears.

use super::super::parts::{Ladder, ack, built, control, data, guaranteed, request, response, tagged};
use super::{add, ok_in, write_in};
use crate::case::Family;
use uet_wire::FrameBuilder;
use uet_wire::pds::{AckMut, RequestMut};
use uet_wire::registry::{CtlType, List, ResponseOpcode, ReturnCode};

/// A tagged send that will match on the overflow list, so that its response must be kept.
fn send_in(request: RequestMut, message: u16) -> FrameBuilder<'static> {
    FrameBuilder::new(built(request.done())).ses(tagged(message, 16)).payload(data(0, 16))
}

fn unexpected_in(ack: AckMut, message: u16) -> FrameBuilder<'static> {
    let answer = response(ResponseOpcode::UET_RESPONSE, ReturnCode::OK, message).modified_length(16);
    FrameBuilder::new(built(ack.done())).ses(built(answer.head(|h| h.list(List::UET_OVERFLOW)).done()))
}

pub(super) fn sequences(family: &mut Family) {
    let plain = Ladder::new()
        .initiator("message 1", write_in(request(333, 332), 1))
        .target("acknowledged; nothing is stored", ok_in(built(ack(333, 333).done()), 1));
    add(family, "01-plain", "one packet, plain response", plain);

    let kept = || {
        Ladder::new().initiator("message 1, a tagged send", send_in(request(333, 332), 1)).target(
            "matched on the overflow list: kept until cleared, so cack stays 332",
            unexpected_in(guaranteed(332, 333), 1),
        )
    };
    let clear = built(control(CtlType::CLEAR_COMMAND).payload(333).done());
    let command = kept().wait(5_000).initiator(
        "no request waits that could carry it: the clear goes by itself and is never acknowledged; cack becomes 333",
        FrameBuilder::new(clear),
    );
    add(
        family,
        "02-guaranteed-clear-command",
        "one packet, response kept, cleared by a CLEAR_COMMAND",
        command,
    );
    let carried = kept()
        .initiator("message 2 carries CLEAR 333", write_in(request(334, 333), 2))
        .target("333 is cleared, 334 is plain: cack 334", ok_in(built(ack(334, 334).done()), 2));
    add(
        family,
        "02-guaranteed-clear-in-request",
        "one packet, response kept, cleared by the next request",
        carried,
    );

    let mut four = Ladder::new();
    for (message, psn) in (1..).zip(333..337) {
        four = four.initiator("no ACK asked for", write_in(request(psn, 332).ar(false), message));
        if psn % 2 == 0 {
            four = four.target("every second is acknowledged", ok_in(built(ack(psn, psn).done()), message));
        }
    }
    add(family, "03-every-second", "four plain packets, an ACK for every second", four);

    let mut mixed = Ladder::new();
    for (message, psn) in (1..).zip(333..337) {
        mixed = mixed.initiator("its response must be kept", send_in(request(psn, 332), message));
    }
    let mixed = mixed
        .target("333 is kept", unexpected_in(guaranteed(332, 333), 1))
        .target("334 is kept", unexpected_in(guaranteed(332, 334), 2))
        .target("336 is kept; the ACK of 335 is late", unexpected_in(guaranteed(332, 336), 4))
        .initiator(
            "plain; 335 is not acknowledged yet, so CLEAR is 334, and cack becomes 334",
            write_in(request(337, 334).ar(false), 5),
        )
        .target("the late ACK of 335", unexpected_in(guaranteed(332, 335), 3))
        .initiator("plain; carries CLEAR 336", write_in(request(338, 336), 6))
        .target(
            "all are cleared or plain: cack 338, the next value sent",
            ok_in(built(ack(338, 338).done()), 6),
        );
    add(family, "04-guaranteed-and-plain", "four packets with kept responses, then two plain ones", mixed);
}
