//! Sequences 5 to 8: reads. The payload MTU is 1,024 bytes here, Max_ACK_Data_Size 16.

use super::super::parts::{
    JOB, Ladder, ack, ack_back, address, built, control, data, guaranteed, request, response, returned, std,
    whole,
};
use super::{add, ok_in, write_in};
use crate::case::Family;
use uet_wire::pds::{AckMut, Request};
use uet_wire::registry::{CtlType, Opcode, ResponseOpcode, ReturnCode};
use uet_wire::ses::{Medium, ResponseData, ResponseDataSmall, SesBuf, Small, Std};
use uet_wire::{FrameBuilder, Psn};

const MTU: usize = 1024;
/// The target's own message, in which it sends data.
const DATA_MESSAGE: u16 = 9;

/// A read of one packet, with a standard header.
fn read(message: u16, length: u32) -> Std {
    built(std(Opcode::UET_READ, message).head(whole).memory_key(0xacce5).request_length(length).done())
}

/// The data in a request of the return direction.
fn in_request(
    psn: u32,
    clear: u32,
    message: u16,
    total: usize,
    offset: usize,
    length: usize,
) -> FrameBuilder<'static> {
    let header =
        ResponseData::build().response_message_id(DATA_MESSAGE).job_id(JOB).read_request_message_id(message);
    let header =
        header.payload_length(length as u16).modified_length(total as u32).message_offset(offset as u32);
    let pds: Request = built(returned(psn, clear).done());
    FrameBuilder::new(pds).ses(built(header.done())).payload(data(offset, length))
}

fn done(ack: AckMut, message: u16) -> FrameBuilder<'static> {
    let answer = response(ResponseOpcode::UET_RESPONSE, ReturnCode::OK, message);
    FrameBuilder::new(built(ack.done())).ses(built(answer.done()))
}

pub(super) fn sequences(family: &mut Family) {
    let large = Ladder::new()
        .initiator(
            "reads 64 bytes, message 1",
            FrameBuilder::new(built(request(333, 332).done())).ses(read(1, 64)),
        )
        .target("the request is acknowledged", done(ack(333, 333), 1))
        .target("the data, the first packet of the return direction", in_request(48, 47, 1, 64, 0, 64))
        .initiator("acknowledged, without a request", ok_in(ack_back(48, 48), DATA_MESSAGE));
    add(family, "05-read", "a read larger than Max_ACK_Data_Size, standard header", large);

    let medium = Medium::build(Opcode::UET_READ).head(|h| h.rel(true)).request_length(64).address(address);
    let small = Small::build(Opcode::UET_READ).head(|h| h.rel(true)).request_length(64).address(address);
    let (medium, small): (SesBuf, SesBuf) =
        (built(medium.memory_key(0xacce5).done()).into(), built(small.done()).into());
    for (word, ses) in [("medium", medium), ("small", small)] {
        let answer = ResponseDataSmall::build().payload_length(64).job_id(JOB).original_request_psn(Psn(333));
        let answer =
            FrameBuilder::new(built(returned(48, 47).done())).ses(built(answer.done())).payload(data(0, 64));
        let ladder = Ladder::new()
            .initiator("reads 64 bytes", FrameBuilder::new(built(request(333, 332).done())).ses(ses))
            .target("the request is acknowledged; its header has no message id", done(ack(333, 333), 0))
            .target("the data names the request by its PSN", answer)
            .initiator("acknowledged", ok_in(ack_back(48, 48), 0));
        add(family, &format!("06-read-{word}"), &format!("the same with a {word} header"), ladder);
    }

    let header =
        ResponseData::build().response_message_id(DATA_MESSAGE).job_id(JOB).read_request_message_id(1);
    let header = built(header.payload_length(16).modified_length(16).done());
    let in_ack = Ladder::new()
        .initiator("reads 16 bytes", FrameBuilder::new(built(request(333, 332).done())).ses(read(1, 16)))
        .target("the data rides in the ACK, and is wanted cleared", {
            FrameBuilder::new(built(guaranteed(332, 333).done())).ses(header).payload(data(0, 16))
        })
        .wait(5_000)
        .initiator("cleared", FrameBuilder::new(built(control(CtlType::CLEAR_COMMAND).payload(333).done())));
    add(family, "07-read-in-ack", "a read of at most Max_ACK_Data_Size", in_ack);
    interleaved(family);
}

fn interleaved(family: &mut Family) {
    const READ: u16 = 88;
    const WRITE: u16 = 879;
    const TOTAL: usize = 2 * MTU + 16;
    let asks = |psn: u32, header: uet_wire::ses::StdMut| {
        FrameBuilder::new(built(request(psn, 332).done()))
            .ses(built(header.request_length(TOTAL as u32).done()))
    };
    let part = |eom| std(Opcode::UET_READ, READ).head(|h| h.eom(eom)).memory_key(0xacce5);
    let first = std(Opcode::UET_READ, READ).head(|h| h.som(true)).memory_key(0xacce5);
    let ladder = Ladder::new()
        .initiator("asks for the first 1,024 bytes", asks(333, first))
        .initiator(
            "asks for the next 1,024",
            asks(334, part(false).payload_length(1024).message_offset(1024)),
        )
        .initiator("asks for the last 16", asks(335, part(true).payload_length(16).message_offset(2048)))
        .target(
            "333 and 334 are acknowledged, by the default response",
            ok_in(built(ack(334, 334).done()), READ),
        )
        .target("335 is acknowledged", done(ack(335, 335), READ))
        .initiator("a write, which clears all before it", write_in(request(336, 335), WRITE))
        .target("the first data; CLEAR 47", in_request(48, 47, READ, TOTAL, 0, MTU))
        .target("more data; CLEAR 47", in_request(49, 47, READ, TOTAL, MTU, MTU))
        .target("the write is acknowledged", ok_in(built(ack(336, 336).done()), WRITE))
        .target(
            "the last data; the ACK of 49 is on its way, so CLEAR is still 47",
            in_request(50, 47, READ, TOTAL, 2 * MTU, 16),
        )
        .initiator("48 and 49 are acknowledged", ok_in(ack_back(49, 49), DATA_MESSAGE))
        .initiator("50 is acknowledged", ok_in(ack_back(50, 50), DATA_MESSAGE));
    add(family, "08-read-and-write", "a read of three packets, and a write before its data has come", ladder);
}
