//! Writes to the memory of a target: each byte lands at its offset, and no other byte changes (section
//! 3.4.1).

use crate::prelude::*;
use crate::rules::steps::bytes;

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[WRITE]).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("write/one-packet", "A write of one packet changes exactly the bytes that it covers")
        .checks(&[SES_PLACE_001, SES_RESP_001, SES_RESP_004])
        .run(one_packet),
    rule("write/several-packets", "The packets of a write are placed in sequence, even a short last one")
        .checks(&[SES_PLACE_001, SES_RESP_001])
        .run(several_packets),
    rule("write/long", "A write longer than 64 KiB places every byte at its offset")
        .checks(&[SES_PLACE_001, SES_RESP_001])
        .run(long),
    rule("write/out-of-order", "Write packets that arrive out of order produce the same memory")
        .checks(&[SES_PLACE_003, SES_RESP_001])
        .needs(&[RUD, WRITE])
        .over(&[&START])
        .run(out_of_order),
    rule("write/last-packet-first", "The last packet of a write is placed before the earlier packets arrive")
        .checks(&[SES_PLACE_002, SES_PLACE_003])
        .needs(&[RUD, WRITE])
        .over(&[&START])
        .run(last_packet_first),
    rule("write/zero-length", "A write of zero bytes is acknowledged and changes nothing")
        .checks(&[SES_CUT_004, SES_PLACE_001])
        .run(zero_length),
    rule("write/odd-offset", "A write of several packets may start at any byte of its region")
        .checks(&[SES_PLACE_001])
        .run(odd_offset),
    rule("write/last-byte", "A write may include the last byte of its region")
        .checks(&[SES_PLACE_001])
        .run(last_byte),
    rule("write/medium", "A write with a medium header is placed at its buffer_offset")
        .checks(&[SES_PLACE_001])
        .run(medium),
    rule("write/medium-header-data", "A medium header with header data writes at the base of the region")
        .checks(&[SES_PLACE_001])
        .run(medium_header_data),
    rule("write/small", "A write with a small header changes exactly one region")
        .checks(&[SES_PLACE_001])
        .over(&[&MODE, &CARRIER, &START])
        .run(small),
    rule("write/delivery-complete", "With dc, the last packet gets OK only when the message is complete")
        .checks(&[SES_RESP_005, SES_RESP_001])
        .needs(&[RUD, WRITE])
        .over(&[&START])
        .run(delivery_complete),
    rule("write/interleaved", "Packets of two interleaved writes are placed by their own message")
        .checks(&[SES_PLACE_003, SES_RESP_001])
        .needs(&[RUD, WRITE])
        .over(&[&START])
        .run(interleaved),
    rule("write/message-id-reuse", "A new message may reuse the message_id of a completed one")
        .checks(&[SES_PLACE_001, SES_RESP_001])
        .run(message_id_reuse),
    rule("write/message-id-per-context", "One message_id on two contexts names two messages")
        .checks(&[SES_PLACE_003])
        .run(message_id_per_context),
    rule("write/ordered", "On an ordered context, the later of two overlapping writes remains")
        .checks(&[SES_PLACE_001, SES_RESP_001])
        .needs(&[ROD, WRITE])
        .over(&[&START])
        .run(ordered),
    rule("write/late-duplicate", "A late duplicate of a write does not overwrite a newer write")
        .checks(&[SES_RESP_001, PDS_DUP_001])
        .run(late_duplicate),
];

/// Exposes a region with `room` spare bytes, and returns its expected contents after this write.
fn region_for_write(
    t: &mut Test<'_>,
    offset: usize,
    data: &[u8],
    room: usize,
) -> Result<(Region, Vec<u8>), Stop> {
    let (region, mut memory) = t.patterned((offset + data.len() + room) as u64)?;
    memory[offset..offset + data.len()].copy_from_slice(data);
    Ok((region, memory))
}

fn one_packet(t: &mut Test<'_>) -> Outcome {
    let data = bytes(100);
    let (region, memory) = region_for_write(t, 64, &data, 64)?;
    let mut session = t.session();

    let psn = session.ask(t, &Message::write(&region, 64, &data).whole()?)?;
    let answer = session.accepted(t, SES_RESP_001, psn)?;
    t.expect_memory(SES_PLACE_001, &region, 0, &memory)?;
    // The memory shows that the target accepted all bytes, so an explicit length can only be this one.
    let length = data.len() as u32;
    t.check(SES_RESP_004, "modified_length of the response", length, answer.accepted_length(length));
    Ok(())
}

fn several_packets(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let data = bytes(3 * mtu + 5);
    let (region, memory) = region_for_write(t, 0, &data, 64)?;
    let mut session = t.session();

    let psns = session.ask_all(t, &Message::write(&region, 0, &data).parts(mtu)?)?;
    session.all_accepted(t, SES_RESP_001, &psns)?;
    t.expect_memory(SES_PLACE_001, &region, 0, &memory)
}

fn long(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let data = bytes(0x1_0000 + 2 * mtu + 9);
    let (region, memory) = region_for_write(t, 0, &data, 64)?;
    let mut session = t.session();

    let psns = session.ask_all(t, &Message::write(&region, 0, &data).parts(mtu)?)?;
    let accepted = session.all_accepted(t, SES_RESP_001, &psns);
    t.expect_memory(SES_PLACE_001, &region, 0, &memory)?;
    accepted
}

fn out_of_order(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let data = bytes(6 * mtu - 1);
    let (region, memory) = region_for_write(t, 64, &data, 64)?;
    let mut session = t.session();

    let parts = Message::write(&region, 64, &data).parts(mtu)?;
    let psns = session.ask_in_order(t, &parts, &[3, 0, 5, 1, 4, 2])?;
    let accepted = session.all_accepted(t, SES_RESP_001, &psns);
    t.expect_memory(SES_PLACE_003, &region, 0, &memory)?;
    accepted
}

fn last_packet_first(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let data = bytes(2 * mtu + 10);
    let (region, memory) = region_for_write(t, 0, &data, 64)?;
    let mut session = t.session();
    let message = Message { complete: false, ..Message::write(&region, 0, &data) };
    let parts = message.parts(mtu)?;
    let psns = session.ask_in_order(t, &parts, &[2])?;
    let mut before = t.memory(&region, 0, region.length)?;
    before[2 * mtu..2 * mtu + 10].copy_from_slice(&data[2 * mtu..]);
    t.expect_memory(SES_PLACE_002, &region, 0, &before)?;
    session.ask_late(t, psns[0], &parts[0])?;
    session.ask_late(t, psns[1], &parts[1])?;
    session.all_accepted(t, SES_PLACE_003, &psns)?;
    t.expect_memory(SES_PLACE_003, &region, 0, &memory)
}

fn zero_length(t: &mut Test<'_>) -> Outcome {
    let (region, memory) = t.patterned(64)?;
    let mut session = t.session();

    let psn = session.ask(t, &Message::write(&region, 8, &[]).whole()?)?;
    session.accepted(t, SES_CUT_004, psn)?;
    t.still_holds(SES_PLACE_001, &region, &memory)
}

fn odd_offset(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let data = bytes(2 * mtu + 1);
    let (region, memory) = region_for_write(t, 13, &data, 3)?;
    let mut session = t.session();

    let psns = session.ask_all(t, &Message::write(&region, 13, &data).parts(mtu)?)?;
    session.all_accepted(t, SES_PLACE_001, &psns)?;
    t.expect_memory(SES_PLACE_001, &region, 0, &memory)
}

fn last_byte(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let data = bytes(mtu + 3);
    let (region, memory) = region_for_write(t, 40, &data, 0)?;
    let mut session = t.session();

    let psns = session.ask_all(t, &Message::write(&region, 40, &data).parts(mtu)?)?;
    session.all_accepted(t, SES_PLACE_001, &psns)?;
    t.expect_memory(SES_PLACE_001, &region, 0, &memory)
}

fn medium(t: &mut Test<'_>) -> Outcome {
    let data = bytes(200);
    let (region, memory) = region_for_write(t, 72, &data, 50)?;
    let mut session = t.session();

    let psn = session.ask(t, &Message::write(&region, 72, &data).medium()?)?;
    session.some_answer(t, psn)?;
    session.accepted(t, SES_PLACE_001, psn)?;
    t.expect_memory(SES_PLACE_001, &region, 0, &memory)
}

fn medium_header_data(t: &mut Test<'_>) -> Outcome {
    let data = bytes(32);
    let (region, memory) = region_for_write(t, 0, &data, 200)?;
    let mut session = t.session();

    let message = Message { header_data: Some(0x40), ..Message::write(&region, 0, &data) };
    let psn = session.ask(t, &message.medium()?)?;
    session.some_answer(t, psn)?;
    session.accepted(t, SES_PLACE_001, psn)?;
    t.expect_memory(SES_PLACE_001, &region, 0, &memory)
}

/// Open: the region that `resource_index` selects in a small header. One of the two candidates is written.
fn small(t: &mut Test<'_>) -> Outcome {
    const OPTIMIZED: u64 = 1 << 62;
    let (by_key, before) = t.exposed(128, |region| {
        let key = Hex64(OPTIMIZED | 10);
        ExposeRegion { key, ..region }
    })?;
    let (by_index, _) = t.exposed(128, |region| ExposeRegion { key: Hex64(OPTIMIZED), ..region })?;
    let data = bytes(16);
    let mut after = before.clone();
    after[32..48].copy_from_slice(&data);
    let mut session = t.session();

    let psn = session.ask(t, &Message::write(&by_key, 32, &data).small()?)?;
    session.some_answer(t, psn)?;
    session.accepted(t, SES_PLACE_001, psn)?;
    let touched = t.memory(&by_index, 0, 128)? != before;
    let (written, other) = if touched { (&by_index, &by_key) } else { (&by_key, &by_index) };
    t.expect_memory(SES_PLACE_001, written, 0, &after)?;
    t.check_memory(SES_PLACE_001, other, 0, &before)
}

fn delivery_complete(t: &mut Test<'_>) -> Outcome {
    t.completes()?;
    let mtu = t.mtu();
    let data = bytes(2 * mtu);
    let (region, memory) = region_for_write(t, 0, &data, 8)?;
    let mut session = t.session();
    let opening = Message { complete: false, ..Message::write(&region, 0, &[]) };
    let opening = session.ask(t, &opening.whole()?)?;
    session.accepted(t, SES_RESP_001, opening)?;
    let parts = Message::write(&region, 0, &data).named(2).parts(mtu)?;
    let psns = session.ask_in_order(t, &parts, &[1])?;
    let (last, pdc) = (psns[1], session.pdc.clone());
    t.expect_none(SES_RESP_005, "no OK for the last packet while the first is missing", t.soon(), |seen| {
        let code = seen.response().map(|response| response.head().return_code());
        seen.answers(&pdc, last).filter(|_| code == Some(ReturnCode::OK))
    })?;
    session.ask_late(t, psns[0], &parts[0])?;
    session.supports_completion(t, last)?;
    session.accepted(t, SES_RESP_005, last)?;
    t.check_memory(SES_RESP_005, &region, 0, &memory)
}

fn interleaved(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let (one, two) = (bytes(3 * mtu), bytes(2 * mtu + 7));
    let (region, mut memory) = region_for_write(t, 0, &one, 4 * mtu)?;
    let second = 3 * mtu + 100;
    memory[second..second + two.len()].copy_from_slice(&two);
    let mut session = t.session();

    let mut parts = Message::write(&region, 0, &one).parts(mtu)?;
    parts.extend(Message::write(&region, second as u64, &two).named(2).parts(mtu)?);
    let psns = session.ask_in_order(t, &parts, &[4, 0, 3, 2, 5, 1])?;
    session.all_accepted(t, SES_RESP_001, &psns)?;
    t.expect_memory(SES_PLACE_003, &region, 0, &memory)
}

fn message_id_reuse(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let data = bytes(2 * mtu);
    let other = vec![0x5a; mtu + 4];
    let (region, mut memory) = region_for_write(t, 0, &data, mtu)?;
    memory[5..mtu + 9].copy_from_slice(&other);
    let mut session = t.session();

    let psns = session.ask_all(t, &Message::write(&region, 0, &data).parts(mtu)?)?;
    session.all_accepted(t, SES_RESP_001, &psns)?;
    let psns = session.ask_all(t, &Message::write(&region, 5, &other).parts(mtu)?)?;
    session.all_accepted(t, SES_RESP_001, &psns)?;
    t.expect_memory(SES_PLACE_001, &region, 0, &memory)
}

fn message_id_per_context(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let (one, two) = (bytes(2 * mtu), bytes(mtu + 9));
    let (region, mut memory) = region_for_write(t, 0, &one, 2 * mtu)?;
    memory[2 * mtu..3 * mtu + 9].copy_from_slice(&two);
    let (mut first, mut second) = (t.session(), t.session());
    let parts = Message::write(&region, 0, &one).parts(mtu)?;
    let others = Message::write(&region, 2 * mtu as u64, &two).parts(mtu)?;
    let a = first.ask(t, &parts[0])?;
    let b = second.ask(t, &others[0])?;
    let c = first.ask(t, &parts[1])?;
    let d = second.ask(t, &others[1])?;
    first.all_accepted(t, SES_PLACE_003, &[a, c])?;
    second.all_accepted(t, SES_PLACE_003, &[b, d])?;
    t.expect_memory(SES_PLACE_003, &region, 0, &memory)
}

fn ordered(t: &mut Test<'_>) -> Outcome {
    let (one, two) = (bytes(300), vec![0x5a; 120]);
    let (region, mut memory) = region_for_write(t, 0, &one, 10)?;
    memory[100..220].copy_from_slice(&two);
    let mut session = t.ordered_session();

    let a = session.ask(t, &Message::write(&region, 0, &one).whole()?)?;
    let b = session.ask(t, &Message::write(&region, 100, &two).named(2).whole()?)?;
    session.all_accepted(t, SES_RESP_001, &[a, b])?;
    t.expect_memory(SES_PLACE_001, &region, 0, &memory)
}

fn late_duplicate(t: &mut Test<'_>) -> Outcome {
    let (one, two) = (bytes(40), vec![0x5a; 40]);
    let (region, memory) = region_for_write(t, 8, &two, 8)?;
    let mut session = t.session();
    let first = Message::write(&region, 8, &one).whole()?;
    let a = session.ask(t, &first)?;
    session.accepted(t, SES_RESP_001, a)?;
    let b = session.ask(t, &Message::write(&region, 8, &two).named(2).whole()?)?;
    session.accepted(t, SES_RESP_001, b)?;
    session.again(t, a, &first)?;
    let c = session.ask(t, &Message::write(&region, 0, &[]).named(3).whole()?)?;
    session.accepted(t, SES_RESP_001, c)?;
    t.still_holds(PDS_DUP_001, &region, &memory)
}
