//! Aborted, unknown and inconsistent messages at a target (section 3.4.2).

use super::steps::{UNKNOWN_FORM, UNKNOWN_OPCODE, unknown_request};
use crate::prelude::*;
use crate::rules::steps::bytes;
use crate::{Answer, Part};
use uet_wire::pds;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

/// Begins a rule with the usual axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("errors/no-op", "A UET_NO_OP request gets OK or UNSUPPORTED_OP")
        .checks(&[SES_RESP_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(no_op),
    rule("errors/unknown-opcode", "An unassigned opcode gets UNSUPPORTED_OP")
        .checks(&[SES_ERR_002, SES_GTD_001, SES_ERR_001])
        .over(&[&UNKNOWN_OPCODE, &UNKNOWN_FORM, &MODE, &START])
        .run(unknown_opcode),
    rule("errors/ie-one-packet", "A write with ie gets INITIATOR_ERR and changes no memory")
        .checks(&[SES_ERR_005, SES_ERR_006])
        .needs(&[WRITE])
        .run(ie_one_packet),
    rule("errors/ie-second-packet", "After a packet with ie, the target discards the rest of the message")
        .checks(&[SES_ERR_005, SES_ERR_006, SES_ERR_004, SES_RESP_001])
        .needs(&[WRITE])
        .run(ie_second_packet),
    rule("errors/ie-send", "A send that ends with ie does not complete its receive successfully")
        .checks(&[SES_ERR_005, SES_DONE_002, SES_RESP_001])
        .needs(&[SEND, RECEIVE])
        .over(&[&MODE, &CARRIER, &START])
        .run(ie_send),
    rule("errors/message-error", "UET_MSG_ERROR ends a message and frees its message_id")
        .checks(&[SES_ERR_007, SES_DONE_002])
        .needs(&[SEND, RECEIVE])
        .over(&[&MODE, &CARRIER, &START])
        .run(message_error),
    rule("errors/same-code", "All packets of a refused message get the same return code")
        .checks(&[SES_ERR_004])
        .needs(&[WRITE])
        .run(same_code),
    rule("errors/rest-discarded", "After an error, the target discards valid packets of the same message")
        .checks(&[SES_ERR_004])
        .needs(&[WRITE])
        .run(rest_discarded),
    rule("errors/other-message", "An error of one message does not affect another on the same context")
        .checks(&[SES_ERR_004, SES_PLACE_003])
        .needs(&[RUD, WRITE])
        .over(&[&START])
        .run(other_message),
    rule("errors/excess-payload", "Payload beyond request_length changes no memory beyond it")
        .checks(&[WIRE_SES_007, ROB_LIFE_001])
        .needs(&[WRITE])
        .run(|t| {
            let (region, memory) = t.patterned(200)?;
            let message = Message { length: 10, ..Message::write(&region, 0, &bytes(100)) };
            let part = message.whole()?;
            expect_confined(t, WIRE_SES_007, (&region, &memory), &[part], 10)
        }),
    rule("errors/missing-payload", "A receive does not report more bytes than its short send carried")
        .checks(&[SES_DONE_002, ROB_LIFE_001])
        .needs(&[SEND, RECEIVE])
        .over(&[&MODE, &CARRIER, &START])
        .run(missing_payload),
    rule("errors/payload-length", "A packet with a wrong payload_length changes nothing beyond its payload")
        .checks(&[WIRE_SES_006, ROB_LIFE_001])
        .needs(&[WRITE])
        .run(|t| {
            let mtu = t.mtu();
            let (region, memory) = t.patterned(2 * mtu as u64)?;
            let message = Message::write(&region, 0, &bytes(mtu + 100));
            let mut part = message.part(mtu, 1)?;
            part.payload.truncate(50);
            expect_confined(t, WIRE_SES_006, (&region, &memory), &[part], mtu + 50)
        }),
    rule("errors/beyond-message", "A packet beyond the end of its message changes nothing there")
        .checks(&[WIRE_SES_008, ROB_LIFE_001])
        .needs(&[WRITE])
        .run(|t| {
            let mtu = t.mtu();
            let (region, memory) = t.patterned(4 * mtu as u64)?;
            let message = Message { length: mtu as u32 + 100, ..Message::write(&region, 0, &bytes(3 * mtu)) };
            let first = message.part(mtu, 0)?;
            let last = message.part(mtu, 2)?;
            expect_confined(t, WIRE_SES_008, (&region, &memory), &[first, last], mtu + 100)
        }),
    rule("errors/two-lengths", "A message with two different request_lengths does not stop the device")
        .checks(&[ROB_LIFE_001])
        .needs(&[SEND, RECEIVE])
        .over(&[&MODE, &CARRIER, &START])
        .run(two_lengths),
    rule("errors/two-opcodes", "A packet with a different opcode does not complete the message")
        .checks(&[SES_CUT_003, ROB_LIFE_001])
        .needs(&[SEND, RECEIVE, WRITE])
        .run(two_opcodes),
    rule("errors/huge-write", "A write of 4 GiB to a small region is refused")
        .checks(&[SES_MEM_004, ROB_LIFE_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(huge_write),
    rule("errors/huge-send", "Unexpected sends of 4 GiB do not stop the device")
        .checks(&[ROB_LIFE_001])
        .needs(&[SEND, RECEIVE])
        .over(&[&MODE, &CARRIER, &START])
        .run(huge_send),
    rule("errors/truncated-header", "A request with a truncated SES header changes nothing")
        .checks(&[ROB_STATE_001, ROB_LIFE_001])
        .needs(&[WRITE])
        .run(truncated_header),
    rule("errors/truncated-extension", "An atomic with a truncated extension header changes nothing")
        .checks(&[ROB_STATE_001, ROB_LIFE_001])
        .needs(&[ATOMIC, WRITE])
        .run(truncated_extension),
    rule("errors/medium-without-eom", "A medium header without eom does not complete a receive")
        .checks(&[SES_DONE_002, ROB_LIFE_001])
        .needs(&[SEND, RECEIVE])
        .over(&[&MODE, &CARRIER, &START])
        .run(medium_without_eom),
];

fn no_op(t: &mut Test<'_>) -> Outcome {
    t.open_index()?;
    let mut session = t.session();

    let psn = session.ask(t, &Message::new(Opcode::UET_NO_OP).whole()?)?;
    // Open: which of the two codes.
    let allowed = |answer: &Answer| answer.is_ok() || answer.code() == ReturnCode::UNSUPPORTED_OP;
    let answer = session.expect(t, SES_RESP_001, "OK or UNSUPPORTED_OP", psn, allowed)?;
    if !answer.is_ok() {
        t.notes_declined();
    }
    Ok(())
}

fn unknown_opcode(t: &mut Test<'_>) -> Outcome {
    t.open_index()?;
    let part = unknown_request(t, &bytes(20))?;
    let mut session = t.session();
    let psn = session.ask(t, &part)?;
    let answer = session.refused_as(t, SES_ERR_002, psn, &[ReturnCode::UNSUPPORTED_OP])?;
    t.check(SES_GTD_001, "req of the ACK", AckRequest::REQ_CLEAR, answer.request);
    t.check(SES_ERR_001, "modified_length", 0, answer.length(0));
    Ok(())
}

/// Sets `ie` in a packet: its initiator aborts the message.
fn with_ie(part: Part) -> Result<Part, Stop> {
    part.edit(|std| std.head(|head| head.ie(true)))
}

fn ie_one_packet(t: &mut Test<'_>) -> Outcome {
    let (region, memory) = t.patterned(64)?;
    let mut session = t.session();

    let psn = session.ask(t, &with_ie(Message::write(&region, 8, &bytes(16)).whole()?)?)?;
    session.refused_as(t, SES_ERR_006, psn, &[ReturnCode::INITIATOR_ERR])?;
    t.still_holds(SES_ERR_005, &region, &memory)
}

fn ie_second_packet(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let data = bytes(4 * mtu);
    let (region, memory) = t.patterned(4 * mtu as u64)?;
    let mut session = t.session();
    let parts = Message::write(&region, 0, &data).parts(mtu)?;
    let first = session.ask(t, &parts[0])?;
    session.accepted(t, SES_RESP_001, first)?;
    let second = session.ask(t, &with_ie(parts[1].clone())?)?;
    session.refused_as(t, SES_ERR_006, second, &[ReturnCode::INITIATOR_ERR])?;
    let third = session.ask(t, &parts[2])?;
    session.refused_as(t, SES_ERR_004, third, &[ReturnCode::INITIATOR_ERR])?;
    t.pause(t.soon())?;
    t.check_memory(SES_ERR_005, &region, mtu as u64, &memory[mtu..])
}

fn ie_send(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let posted = t.posted(room(2 * mtu as u64))?;
    let mut session = t.session();
    let parts = Message::send(&bytes(2 * mtu)).parts(mtu)?;
    let first = session.ask(t, &parts[0])?;
    session.accepted(t, SES_RESP_001, first)?;
    let second = session.ask(t, &with_ie(parts[1].clone())?)?;
    session.refused(t, SES_ERR_005, second)?;
    t.expect_not_well(SES_DONE_002, &posted)
}

fn message_error(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let posted = t.posted(room(4 * mtu as u64))?;
    let mut session = t.session();
    let message = Message::send(&bytes(4 * mtu));
    let parts = message.parts(mtu)?;
    session.ask_all(t, &parts[..2])?;
    let error = Message { data: Vec::new(), ..message.clone() }.opcode(Opcode::UET_MSG_ERROR).whole()?;
    let error = error.edit(|std| {
        let std = std.head(|head| head.som(false).eom(true));
        std.payload_length(0).message_offset(2 * mtu as u32)
    })?;
    let psn = session.ask(t, &error)?;
    session.answer(t, psn)?;
    t.expect_not_well(SES_DONE_002, &posted)?;
    let other = t.posted(room(4 * mtu as u64))?;
    let third = t.posted(room(4 * mtu as u64))?;
    let psns = session.ask_all(t, &parts)?;
    session.all_accepted(t, SES_ERR_007, &psns)?;
    t.pause(t.soon())?;
    let mut ended = 0;
    for posted in [&posted, &other, &third] {
        let completion = t.completion(posted.operation, Duration::ZERO)?;
        ended +=
            usize::from(completion.is_some_and(|it| it.status == Status::Ok && it.length == 4 * mtu as u64));
    }
    t.check(SES_ERR_007, "receives that the second message completed:", 1, ended);
    Ok(())
}

fn same_code(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let (region, memory) = t.patterned(3 * mtu as u64)?;
    let mut session = t.session();

    // Every packet has the wrong key.
    let message = Message::write(&region, 0, &bytes(3 * mtu)).selector(region.key ^ 1);
    let psns = session.ask_all(t, &message.parts(mtu)?)?;
    let first = session.refused(t, SES_ERR_004, psns[0])?;
    for psn in &psns[1..] {
        session.refused_as(t, SES_ERR_004, *psn, &[first.code()])?;
    }
    t.still_holds(SES_ERR_004, &region, &memory)
}

fn rest_discarded(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let (region, memory) = t.patterned(3 * mtu as u64)?;
    let mut session = t.session();
    let mut parts = Message::write(&region, 0, &bytes(3 * mtu)).parts(mtu)?;
    parts[0] = parts[0].clone().edit(|std| std.memory_key(region.key ^ 1))?;
    let first = session.ask(t, &parts[0])?;
    let first = session.refused(t, SES_ERR_004, first)?;
    for psn in session.ask_all(t, &parts[1..])? {
        session.refused_as(t, SES_ERR_004, psn, &[first.code()])?;
    }
    t.still_holds(SES_ERR_004, &region, &memory)
}

fn other_message(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let data = bytes(2 * mtu);
    let (region, mut memory) = t.patterned(2 * mtu as u64 + 8)?;
    memory[..2 * mtu].copy_from_slice(&data);
    let mut session = t.session();
    let mut parts = Message::write(&region, 0, &data).parts(mtu)?;
    parts.extend(Message::write(&region, 0, &data).named(2).selector(region.key ^ 1).parts(mtu)?);
    let psns = session.ask_in_order(t, &parts, &[0, 2, 3, 1])?;
    for psn in &psns[2..] {
        session.refused(t, SES_ERR_004, *psn)?;
    }
    session.all_accepted(t, SES_PLACE_003, &psns[..2])?;
    t.expect_memory(SES_PLACE_003, &region, 0, &memory)
}

/// Sends packets with inconsistent lengths. A device may refuse them, drop them or execute a part, but it
/// changes nothing beyond `end`.
fn expect_confined(
    t: &mut Test<'_>,
    requirement: &Requirement,
    (region, memory): (&Region, &[u8]),
    parts: &[Part],
    end: usize,
) -> Outcome {
    let mut session = t.session();
    session.ask_all(t, parts)?;
    t.pause(t.soon())?;
    t.check_memory(requirement, region, end as u64, &memory[end..])?;
    t.expect_life(ROB_LIFE_001)
}

fn missing_payload(t: &mut Test<'_>) -> Outcome {
    let posted = t.posted(room(200))?;
    let mut session = t.session();

    session.ask(t, &Message { length: 100, ..Message::send(&bytes(10)) }.whole()?)?;
    t.pause(t.soon())?;
    let ended = t.completion(posted.operation, Duration::ZERO)?;
    let received = ended.filter(|it| it.status == Status::Ok).map_or(0, |it| it.length);
    t.at_most(SES_DONE_002, "bytes of a receive that completed successfully", 10, received);
    t.expect_life(ROB_LIFE_001)
}

fn two_lengths(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    t.posted(room(4 * mtu as u64))?;
    let mut session = t.session();
    let mut parts = Message::send(&bytes(3 * mtu)).parts(mtu)?;
    parts[1] = parts[1].clone().edit(|std| std.request_length(2 * mtu as u32))?;
    session.ask_all(t, &parts)?;
    // The sources bind the sender alone. A receiver may use the length of the first packet.
    t.pause(t.soon())?;
    t.expect_life(ROB_LIFE_001)
}

fn two_opcodes(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let posted = t.posted(room(2 * mtu as u64))?;
    let mut session = t.session();
    let mut parts = Message::send(&bytes(2 * mtu)).parts(mtu)?;
    parts[1] = parts[1].clone().edit(|std| std.head(|head| head.opcode(Opcode::UET_WRITE)))?;
    session.ask_all(t, &parts)?;
    t.expect_not_well(SES_CUT_003, &posted)?;
    t.expect_life(ROB_LIFE_001)
}

fn huge_write(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let (region, memory) = t.patterned(64)?;
    let mut session = t.session();

    let message = Message { length: u32::MAX, ..Message::write(&region, 0, &bytes(mtu)) };
    let part = message.whole()?.edit(|std| std.head(|head| head.eom(false)))?;
    let psn = session.ask(t, &part)?;
    session.refused(t, SES_MEM_004, psn)?;
    t.still_holds(SES_MEM_004, &region, &memory)?;
    t.expect_life(ROB_LIFE_001)
}

fn huge_send(t: &mut Test<'_>) -> Outcome {
    t.open_index()?;
    let mtu = t.mtu();
    let mut session = t.session();

    for id in 1..=8 {
        let message = Message { length: u32::MAX, ..Message::send(&bytes(mtu)).named(id) };
        let part = message.whole()?.edit(|std| std.head(|head| head.eom(false)))?;
        session.ask(t, &part)?;
    }
    t.expect_life(ROB_LIFE_001)
}

/// Sends an opening packet whose SES header and payload are these bytes, with this next header.
fn send_raw(t: &mut Test<'_>, next: NextHdr, bytes: &[u8]) -> Outcome {
    let pdc = t.initiate();
    let request = pds::Request::rud().prologue(|prologue| prologue.next_hdr(next)).ar(true).syn(true);
    let request = request.psn(pdc.start).clear_psn(pdc.start - 1).spdcid(pdc.local).done()?;
    let mut packet = UetBuf::new(request);
    packet.payload = bytes.to_vec();
    t.send(&pdc, &packet)
}

fn truncated_header(t: &mut Test<'_>) -> Outcome {
    let (region, memory) = t.patterned(64)?;
    let message = Message::write(&region, 0, &[]);
    for (next, part) in [
        (NextHdr::UET_HDR_REQUEST_STD, message.whole()?),
        (NextHdr::UET_HDR_REQUEST_MEDIUM, message.medium()?),
        (NextHdr::UET_HDR_REQUEST_SMALL, message.small()?),
    ] {
        let view = part.ses.view();
        let header = view.bytes();
        for length in (0..header.len()).step_by(3) {
            send_raw(t, next, &header[..length])?;
        }
    }
    t.still_holds(ROB_STATE_001, &region, &memory)?;
    t.expect_life(ROB_LIFE_001)
}

fn truncated_extension(t: &mut Test<'_>) -> Outcome {
    let (region, memory) = t.patterned(64)?;
    let sum = Message::atomic(&region, 0, (AtomicOpcode::SUM, AtomicDatatype::UINT64), &[])?;
    let kind = (AtomicOpcode::CSWAP_NE, AtomicDatatype::UINT64, 8);
    let swap = Message::swap(&region, 0, kind, (0, 99))?;
    for message in [sum, swap] {
        let part = message.whole()?;
        let ext = part.ext.map(|ext| ext.view().bytes().to_vec()).unwrap_or_default();
        for length in 0..ext.len() {
            let bytes = [part.ses.view().bytes(), &ext[..length]].concat();
            send_raw(t, NextHdr::UET_HDR_REQUEST_STD, &bytes)?;
        }
    }
    t.still_holds(ROB_STATE_001, &region, &memory)?;
    t.expect_life(ROB_LIFE_001)
}

fn medium_without_eom(t: &mut Test<'_>) -> Outcome {
    let posted = t.posted(room(200))?;
    let mut session = t.session();
    let mut part = Message { length: 100, ..Message::send(&bytes(40)) }.medium()?;
    // The lowest two bits of byte 1 are eom and som.
    part.ses.bytes_mut()[1] &= !2;
    session.ask(t, &part)?;
    t.expect_not_well(SES_DONE_002, &posted)?;
    t.expect_life(ROB_LIFE_001)
}
