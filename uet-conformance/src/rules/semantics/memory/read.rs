//! Reads of the memory of a target: the data, its headers and its path (sections 3.4.4.2 and 3.5.12.1).

use crate::prelude::*;
use crate::rules::steps::HEADER;
use crate::{Answer, Data, Part, RequestSession, assemble};

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[READ]).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("read/few-bytes", "A read of a few bytes returns those bytes, in its ACK or after it")
        .checks(&[SES_READ_001, SES_RESP_001])
        .run(few_bytes),
    rule("read/message-id", "Data of a read with a standard header states the message_id of its request")
        .checks(&[SES_READ_005, SES_READ_001])
        .run(message_id),
    rule("read/medium-psn", "Data of a read with a medium header states the PSN of its request")
        .checks(&[SES_READ_006, SES_READ_001])
        .run(medium_psn),
    rule("read/small-psn", "Data of a read with a small header states the PSN of its request")
        .checks(&[SES_READ_006, SES_READ_001])
        .run(small_psn),
    rule("read/return-direction", "Read data larger than Max_ACK_Data_Size uses the return direction")
        .checks(&[SES_READ_003, SES_READ_001])
        .run(return_direction),
    rule("read/several-packets", "Each packet of a read returns its part and states the length of the whole")
        .checks(&[SES_READ_001, SES_READ_007])
        .run(several_packets),
    rule("read/long", "A read longer than 64 KiB returns the data of each of its packets")
        .checks(&[SES_READ_001])
        .run(long),
    rule("read/ack-or-return", "All data of one read travels either in ACKs or on the return direction")
        .checks(&[SES_READ_004])
        .run(ack_or_return),
    rule("read/out-of-order", "Read requests that arrive out of order each return their own part")
        .checks(&[SES_READ_001])
        .needs(&[RUD, READ])
        .over(&[&START])
        .run(out_of_order),
    rule("read/lost-request", "A read request of which only a retransmission arrives returns its own part")
        .checks(&[SES_READ_001])
        .run(lost_request),
    rule("read/zero-length", "A read of zero bytes is acknowledged as OK")
        .checks(&[SES_CUT_004])
        .run(zero_length),
    rule("read/concurrent", "Data of two concurrent reads states the message_id or PSN of its own read")
        .checks(&[SES_READ_005, SES_READ_006])
        .over(&[&HEADER, &MODE, &START])
        .run(concurrent),
    rule("read/last-byte", "A read may include the last byte of its region")
        .checks(&[SES_READ_001])
        .run(last_byte),
    rule("read/after-write", "A read after a completed write returns the written bytes")
        .checks(&[SES_RESP_005, SES_READ_001, SES_RESP_001])
        .needs(&[READ, WRITE])
        .run(after_write),
    rule("read/retransmission", "A retransmitted read repeats data that its ACK carried, and no other")
        .checks(&[PDS_DUP_002, SES_READ_001, SES_READ_006])
        .over(&[&HEADER, &MODE, &START])
        .run(retransmission),
    rule("read/request-clear", "An ACK with read data requests a clear and holds back the cumulative PSN")
        .checks(&[SES_GTD_004, PDS_GTD_002, SES_READ_001])
        .over(&[&HEADER, &MODE, &START])
        .run(request_clear),
    rule("read/response", "A read whose data uses the return direction still gets an OK response")
        .checks(&[SES_READ_003, SES_RESP_003, SES_READ_001])
        .run(response),
];

/// Sends all requests of a read and returns its data.
fn read(
    t: &mut Test<'_>,
    session: &mut RequestSession,
    message: &Message,
    requirement: &Requirement,
) -> Result<Vec<Data>, Stop> {
    let mtu = t.mtu();
    session.ask_all(t, &message.parts(mtu)?)?;
    session.data(t, requirement, message.length as usize)
}

/// Returns the only packet of a read with the header of this instance.
fn in_header(t: &Test<'_>, message: &Message) -> Result<Part, Stop> {
    Ok(if t.value(&HEADER) { message.medium()? } else { message.whole()? })
}

/// Checks that these pieces are the bytes of the region from `offset` on.
fn check_data(
    t: &mut Test<'_>,
    requirement: &Requirement,
    pieces: &[Data],
    memory: &[u8],
    offset: usize,
    length: usize,
) {
    let whole = assemble(pieces, length);
    let expected = memory.get(offset..offset + length).unwrap_or_default();
    t.same_bytes(
        requirement,
        "the data compared with memory",
        expected,
        whole.as_deref().unwrap_or_default(),
    );
}

fn few_bytes(t: &mut Test<'_>) -> Outcome {
    let (region, memory) = t.patterned(64)?;
    let mut session = t.session();

    let message = Message::read(&region, 21, 8);
    let psn = session.ask(t, &message.whole()?)?;
    session.accepted(t, SES_RESP_001, psn)?;
    let pieces = session.data(t, SES_READ_001, 8)?;
    check_data(t, SES_READ_001, &pieces, &memory, 21, 8);
    Ok(())
}

fn message_id(t: &mut Test<'_>) -> Outcome {
    let (region, memory) = t.patterned(64)?;
    let mut session = t.session();

    let pieces = read(t, &mut session, &Message::read(&region, 0, 16).named(0x1234), SES_READ_001)?;
    check_data(t, SES_READ_001, &pieces, &memory, 0, 16);
    let named = pieces.first().and_then(Data::long).map(|header| header.read_request_message_id());
    t.check(SES_READ_005, "read_request_message_id", Some(0x1234), named);
    Ok(())
}

fn medium_psn(t: &mut Test<'_>) -> Outcome {
    let (region, memory) = t.patterned(4096)?;
    let mut session = t.session();

    for length in [8, t.beyond_ack()?.max(100)] {
        let psn = session.ask(t, &Message::read(&region, 96, length).medium()?)?;
        session.some_answer(t, psn)?;
        let pieces = session.data(t, SES_READ_001, length as usize)?;
        check_data(t, SES_READ_001, &pieces, &memory, 96, length as usize);
        let named = pieces.first().and_then(Data::short).map(|header| header.original_request_psn());
        t.check(SES_READ_006, "original_request_psn", Some(psn), named);
    }
    Ok(())
}

/// Open: the region that `resource_index` selects in a small header. Both candidates hold the same bytes.
fn small_psn(t: &mut Test<'_>) -> Outcome {
    const OPTIMIZED: u64 = 1 << 62;
    t.exposed(256, |region| ExposeRegion { key: Hex64(OPTIMIZED), ..region })?;
    let (region, memory) = t.exposed(256, |region| ExposeRegion { key: Hex64(OPTIMIZED | 10), ..region })?;
    let mut session = t.session();

    let psn = session.ask(t, &Message::read(&region, 96, 60).small()?)?;
    session.some_answer(t, psn)?;
    let pieces = session.data(t, SES_READ_001, 60)?;
    check_data(t, SES_READ_001, &pieces, &memory, 96, 60);
    let named = pieces.first().and_then(Data::short).map(|header| header.original_request_psn());
    t.check(SES_READ_006, "original_request_psn", Some(psn), named);
    Ok(())
}

fn return_direction(t: &mut Test<'_>) -> Outcome {
    let length = t.beyond_ack()?.max(100);
    let (region, memory) = t.patterned(length.into())?;
    let mut session = t.session();

    let pieces = read(t, &mut session, &Message::read(&region, 0, length), SES_READ_001)?;
    check_data(t, SES_READ_001, &pieces, &memory, 0, length as usize);
    let in_acks = pieces.iter().filter(|piece| piece.in_ack).count();
    t.check(SES_READ_003, "packets of read data in ACKs", 0, in_acks);
    Ok(())
}

fn several_packets(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let length = 2 * mtu + mtu / 2;
    let (region, memory) = t.patterned(length as u64 + 40)?;
    let mut session = t.session();

    let pieces = read(t, &mut session, &Message::read(&region, 40, length as u32), SES_READ_001)?;
    check_data(t, SES_READ_001, &pieces, &memory, 40, length);
    let stated = |piece: &Data| piece.long().map(|header| header.modified_length());
    for piece in &pieces {
        t.at_most(SES_READ_001, "bytes of read data in a packet", mtu, piece.bytes.len());
        t.check(SES_READ_007, "modified_length", Some(length as u32), stated(piece));
    }
    Ok(())
}

fn long(t: &mut Test<'_>) -> Outcome {
    let length = 0x1_0000 + 2 * t.mtu() + 9;
    let (region, memory) = t.patterned(length as u64 + 40)?;
    let mut session = t.session();

    let pieces = read(t, &mut session, &Message::read(&region, 40, length as u32), SES_READ_001)?;
    check_data(t, SES_READ_001, &pieces, &memory, 40, length);
    Ok(())
}

fn ack_or_return(t: &mut Test<'_>) -> Outcome {
    let length = t.mtu() + 8;
    let (region, _) = t.patterned(length as u64)?;
    let mut session = t.session();

    let pieces = read(t, &mut session, &Message::read(&region, 0, length as u32), SES_READ_004)?;
    let in_acks = pieces.iter().filter(|piece| piece.in_ack).count();
    t.one_of(SES_READ_004, "packets of read data in ACKs", &[0, pieces.len()], in_acks);
    Ok(())
}

fn out_of_order(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let length = 3 * mtu + 20;
    let (region, memory) = t.patterned(length as u64)?;
    let mut session = t.session();

    let parts = Message::read(&region, 0, length as u32).parts(mtu)?;
    session.ask_in_order(t, &parts, &[2, 3, 0, 1])?;
    let pieces = session.data(t, SES_READ_001, length)?;
    check_data(t, SES_READ_001, &pieces, &memory, 0, length);
    Ok(())
}

fn lost_request(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let length = 3 * mtu + 20;
    let (region, memory) = t.patterned(length as u64)?;
    let mut session = t.session();

    let parts = Message::read(&region, 0, length as u32).parts(mtu)?;
    let psns = session.ask_in_order(t, &parts, &[0])?;
    for n in [1, 2, 3] {
        session.again(t, psns[n], &parts[n])?;
    }
    let pieces = session.data(t, SES_READ_001, length)?;
    check_data(t, SES_READ_001, &pieces, &memory, 0, length);
    Ok(())
}

fn zero_length(t: &mut Test<'_>) -> Outcome {
    let (region, _) = t.patterned(64)?;
    let mut session = t.session();

    let psn = session.ask(t, &Message::read(&region, 8, 0).whole()?)?;
    session.accepted(t, SES_CUT_004, psn).map(drop)
}

fn concurrent(t: &mut Test<'_>) -> Outcome {
    let (region, memory) = t.patterned(1024)?;
    let mut session = t.session();
    let (one, two) = (Message::read(&region, 0, 200), Message::read(&region, 512, 200).named(2));
    let medium = t.value(&HEADER);
    let requirement = if medium { SES_READ_006 } else { SES_READ_005 };
    let parts = if medium { [one.medium()?, two.medium()?] } else { [one.whole()?, two.whole()?] };
    let psns = session.ask_all(t, &parts)?;
    let pieces = session.data(t, requirement, 400)?;
    for (id, psn, offset) in [(1, psns[0], 0), (2, psns[1], 512)] {
        let named = |piece: &&Data| match medium {
            true => piece.short().is_some_and(|header| header.original_request_psn() == psn),
            false => piece.long().is_some_and(|header| header.read_request_message_id() == id),
        };
        let own: Vec<Data> = pieces.iter().filter(named).cloned().collect();
        check_data(t, requirement, &own, &memory, offset, 200);
    }
    Ok(())
}

fn last_byte(t: &mut Test<'_>) -> Outcome {
    let length = t.mtu() + 1;
    let (region, memory) = t.patterned(length as u64 + 7)?;
    let mut session = t.session();

    let pieces = read(t, &mut session, &Message::read(&region, 7, length as u32), SES_READ_001)?;
    check_data(t, SES_READ_001, &pieces, &memory, 7, length);
    Ok(())
}

fn after_write(t: &mut Test<'_>) -> Outcome {
    let (region, mut memory) = t.patterned(256)?;
    memory[10..20].copy_from_slice(&[0x5a; 10]);
    let mut session = t.session();

    let psn = session.ask(t, &Message::write(&region, 10, &[0x5a; 10]).whole()?)?;
    session.accepted(t, SES_RESP_001, psn)?;
    let pieces = read(t, &mut session, &Message::read(&region, 0, 256).named(2), SES_READ_001)?;
    check_data(t, SES_RESP_005, &pieces, &memory, 0, 256);
    Ok(())
}

fn retransmission(t: &mut Test<'_>) -> Outcome {
    let (region, memory) = t.patterned(64)?;
    let mut session = t.session();
    let part = in_header(t, &Message::read(&region, 8, 8))?;
    let psn = session.ask(t, &part)?;
    let pieces = session.data(t, SES_READ_001, 8)?;
    session.again(t, psn, &part)?;
    session.accepted(t, PDS_DUP_002, psn)?;
    if pieces.iter().any(|piece| piece.in_ack) {
        let repeated = session.data(t, PDS_DUP_002, 8)?;
        check_data(t, PDS_DUP_002, &repeated, &memory, 8, 8);
        if t.value(&HEADER) {
            let header = repeated.first().and_then(Data::short);
            let named = header.map(|header| header.original_request_psn());
            t.check(SES_READ_006, "original_request_psn", Some(psn), named);
        }
    } else {
        let (pdc, first) = (session.pdc.clone(), pieces[0].psn);
        t.expect_none(SES_RESP_001, "no second packet of data", t.soon(), |seen| {
            seen.request().filter(|request| seen.is_for(&pdc) && request.psn() != first)
        })?;
    }
    Ok(())
}

fn request_clear(t: &mut Test<'_>) -> Outcome {
    let (region, _) = t.patterned(64)?;
    let mut session = t.session();

    let part = in_header(t, &Message::read(&region, 8, 8))?;
    let psn = session.ask(t, &part)?;
    let pieces = session.data(t, SES_READ_001, 8)?;
    require(pieces.iter().any(|piece| piece.in_ack), "the device does not put read data into ACKs")?;
    session.expect(t, SES_GTD_004, "REQ_CLEAR", psn, Answer::is_guaranteed)?;
    session.expect(t, PDS_GTD_002, "a cumulative PSN below it", psn, |answer| answer.covered == 0).map(drop)
}

fn response(t: &mut Test<'_>) -> Outcome {
    let length = t.beyond_ack()?.max(100);
    let (region, _) = t.patterned(length.into())?;
    let mut session = t.session();

    let psn = session.ask(t, &Message::read(&region, 0, length).named(7).whole()?)?;
    let answer = session.accepted(t, SES_READ_003, psn)?;
    session.data(t, SES_READ_001, length as usize)?;
    let named = answer.response.map_or(7, |response| response.message_id());
    t.one_of(SES_RESP_003, "message_id of the response", &[0, 7], named);
    Ok(())
}
