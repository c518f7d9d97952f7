//! Addresses of requests, and the answers to a request that reaches nobody (section 3.4.1).

use crate::prelude::*;
use uet_control::{Permission, PostReceive, SetIndices};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

const DENIED: &[ReturnCode] = &[ReturnCode::PERM_VIOLATION, ReturnCode::AT_PERM];

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[WRITE]).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("addressing/unknown-job", "A request to an unknown job gets BAD_JOB_ID and changes nothing")
        .checks(&[SES_ADDR_004, SES_ADDR_007, SES_GTD_001])
        .run(|t| misses(t, SES_ADDR_004, ReturnCode::BAD_JOB_ID, |write| Message { job: 0xabcdef, ..write })),
    rule("addressing/unknown-process", "A request to an unknown process gets BAD_PID and changes nothing")
        .checks(&[SES_ADDR_005, SES_ADDR_007, SES_GTD_001])
        .run(|t| misses(t, SES_ADDR_005, ReturnCode::BAD_PID, |write| Message { process: 0xabc, ..write })),
    rule("addressing/unknown-index", "A request to an unknown index gets BAD_INDEX and changes nothing")
        .checks(&[SES_ADDR_006, SES_ADDR_007, SES_GTD_001])
        .run(|t| misses(t, SES_ADDR_006, ReturnCode::BAD_INDEX, |write| Message { index: 0xabc, ..write })),
    rule("addressing/unknown-key", "A request with an unknown key gets BAD_MKEY and changes nothing")
        .checks(&[SES_MEM_005, SES_ADDR_007, SES_GTD_001])
        .run(|t| {
            for bit in [0, 47] {
                misses(t, SES_MEM_005, ReturnCode::BAD_MKEY, |write| {
                    let selector = write.selector ^ 1 << bit;
                    write.selector(selector)
                })?;
            }
            Ok(())
        }),
    rule("addressing/send-unknown-index", "A send to an unknown index gets BAD_INDEX and fills no receive")
        .checks(&[SES_ADDR_007, SES_ADDR_006])
        .needs(&[SEND, RECEIVE])
        .over(&[&MODE, &CARRIER, &START])
        .run(send_to_nobody),
    rule("addressing/absolute", "An absolute address selects its process whatever the job of the request")
        .checks(&[SES_ADDR_001])
        .run(|t| {
            let (region, _) = t.exposed(64, |region| ExposeRegion { job: None, ..region })?;
            let message =
                Message { relative: false, job: 0x123456, ..Message::write(&region, 8, &bytes(16)) };
            reaches(t, SES_ADDR_001, &message, &region, &[])
        }),
    rule("addressing/relative", "With relative addressing, one process number in two jobs is two processes")
        .checks(&[SES_ADDR_001])
        .run(|t| {
            let key = Hex64(0x5eed);
            let (one, _) = t.exposed(64, |region| ExposeRegion { job: Some(0x00_0065), key, ..region })?;
            let (two, _) = t.exposed(64, |region| ExposeRegion { job: Some(0xab_0065), key, ..region })?;
            reaches(t, SES_ADDR_001, &Message::write(&two, 8, &bytes(16)), &two, &[&one])
        }),
    rule("addressing/absolute-only", "An absolute request does not reach a relatively addressed region")
        .checks(&[SES_ADDR_001])
        .run(|t| {
            let key = Hex64(0x5eed);
            let (relative, _) = t.exposed(64, |region| ExposeRegion { key, ..region })?;
            let (absolute, _) = t.exposed(64, |region| ExposeRegion { job: None, key, ..region })?;
            let message = Message { relative: false, job: 101, ..Message::write(&absolute, 8, &bytes(16)) };
            reaches(t, SES_ADDR_001, &message, &absolute, &[&relative])
        }),
    rule("addressing/process", "One key at two processes names two regions")
        .checks(&[SES_ADDR_001, SES_MEM_001])
        .run(|t| {
            let key = Hex64(0x5eed);
            let (one, _) = t.exposed(64, |region| ExposeRegion { process: 2, key, ..region })?;
            let (two, _) = t.exposed(64, |region| ExposeRegion { process: 3, key, ..region })?;
            reaches(t, SES_MEM_001, &Message::write(&two, 8, &bytes(16)), &two, &[&one])?;
            let (after, mut session) = (t.memory(&two, 0, 64)?, t.session());
            let psn = session.ask(t, &Message::write(&one, 30, &[7]).named(2).whole()?)?;
            session.accepted(t, SES_ADDR_001, psn)?;
            t.still_holds(SES_ADDR_001, &two, &after)
        }),
    rule("addressing/index", "One key at two indices names two regions")
        .checks(&[SES_ADDR_002, SES_MEM_001])
        .run(|t| {
            let key = Hex64(0x5eed);
            let (one, _) = t.exposed(64, |region| ExposeRegion { index: 10, key, ..region })?;
            let (two, _) = t.exposed(64, |region| ExposeRegion { index: 11, key, ..region })?;
            reaches(t, SES_ADDR_002, &Message::write(&one, 8, &bytes(16)), &one, &[&two])?;
            let (after, mut session) = (t.memory(&one, 0, 64)?, t.session());
            let psn = session.ask(t, &Message::write(&two, 30, &[7]).named(2).whole()?)?;
            session.accepted(t, SES_MEM_001, psn)?;
            t.still_holds(SES_MEM_001, &one, &after)
        }),
    rule("addressing/key-of-another-index", "A key of one index is not valid at another index")
        .checks(&[SES_MEM_001, SES_MEM_005])
        .run(key_of_another_index),
    rule("addressing/reserved-key-bits", "A target ignores the reserved bits of a memory key")
        .checks(&[SES_MEM_002])
        .run(|t| {
            let (region, _) = t.patterned(64)?;
            let message = Message::write(&region, 8, &bytes(16)).selector(region.key | 0x3f << 56);
            reaches(t, SES_MEM_002, &message, &region, &[])
        }),
    rule("addressing/optimized-key", "The lowest twelve bits of an optimized key select the region")
        .checks(&[SES_MEM_002])
        .run(|t| {
            const OPTIMIZED: u64 = 1 << 62;
            let (one, _) = t.exposed(64, |region| ExposeRegion { key: Hex64(OPTIMIZED | 0x5), ..region })?;
            let (two, _) =
                t.exposed(64, |region| ExposeRegion { key: Hex64(OPTIMIZED | 0x805), ..region })?;
            let message = Message::write(&two, 8, &bytes(16)).selector(OPTIMIZED | 0xabcd_0000_5000 | 0x805);
            reaches(t, SES_MEM_002, &message, &two, &[&one])
        }),
    rule("addressing/stale-generation", "The refusal of a send with an old generation names the current one")
        .checks(&[SES_GEN_001, SES_GEN_002])
        .needs(&[SEND, RECEIVE])
        .over(&[&MODE, &CARRIER, &START])
        .run(stale_generation),
    rule("addressing/no-generation", "An index without a generation accepts generation 0 and refuses 1")
        .checks(&[SES_GEN_003, SES_GEN_001])
        .needs(&[SEND, RECEIVE])
        .over(&[&MODE, &CARRIER, &START])
        .run(no_generation),
    rule("addressing/index-range", "Sends reach the first and the last index of a range and none outside it")
        .checks(&[SES_ADDR_003, SES_ADDR_006])
        .needs(&[SEND, RECEIVE, INDICES])
        .run(range),
    rule("addressing/disabled", "A disabled index refuses sends despite a posted receive until enabled")
        .checks(&[SES_IDX_001, SES_GTD_001])
        .needs(&[SEND, RECEIVE, INDICES])
        .run(disabled),
    rule("addressing/disabled-no-receive", "A disabled index without a receive refuses a send as disabled")
        .checks(&[SES_IDX_001])
        .needs(&[SEND, RECEIVE, INDICES])
        .run(disabled_without_buffer),
    rule(
        "addressing/no-buffers",
        "An ordered index out of buffers is DISABLED_GEN until its next generation",
    )
    .checks(&[SES_IDX_002])
    .needs(&[SEND, RECEIVE, INDICES, PARAMETERS])
    .run(out_of_buffers),
    rule("addressing/beyond-the-end", "A write that ends outside its region is refused and changes nothing")
        .checks(&[SES_MEM_004, SES_GTD_001])
        .run(|t| outside(t, 60, 5)),
    rule("addressing/far-outside", "A write far outside its region is refused and changes nothing")
        .checks(&[SES_MEM_004, SES_GTD_001])
        .run(|t| {
            for offset in [3 * 64 + 8, (1 << 16) + 8, (1 << 32) + 8, (1 << 63) + 8] {
                outside(t, offset, 16)?;
            }
            Ok(())
        }),
    rule("addressing/wraps-at-2-64", "A write whose end wraps around at 2^64 is refused and changes nothing")
        .checks(&[SES_MEM_004, SES_GTD_001])
        .run(|t| outside(t, u64::MAX - 3, 16)),
    rule("addressing/last-packet", "A last packet that exceeds its region is refused and changes nothing")
        .checks(&[SES_MEM_004])
        .run(last_packet_beyond),
    rule("addressing/read-beyond-the-end", "A read that exceeds its region is refused and returns no data")
        .checks(&[SES_MEM_004])
        .needs(&[READ])
        .run(|t| {
            let (region, _) = t.patterned(64)?;
            brings_nothing(t, SES_MEM_004, &Message::read(&region, 60, 5), &[])?;
            brings_nothing(t, SES_MEM_004, &Message::read(&region, 0, 65), &[])
        }),
    rule("addressing/not-writable", "A region without write permission refuses writes and stays unchanged")
        .checks(&[SES_MEM_003, SES_MEM_005])
        .run(not_writable),
    rule("addressing/not-readable", "A region without read permission refuses reads and returns no data")
        .checks(&[SES_MEM_003, SES_MEM_005])
        .needs(&[READ])
        .run(|t| {
            let (region, _) = only(t, &[Permission::Write, Permission::Atomic])?;
            brings_nothing(t, SES_MEM_003, &Message::read(&region, 8, 16), DENIED)
        }),
    rule("addressing/no-atomics", "A region without atomic permission refuses atomics and stays unchanged")
        .checks(&[SES_MEM_003, SES_MEM_005])
        .needs(&[ATOMIC])
        .run(no_atomics),
];

fn bytes(length: usize) -> Vec<u8> {
    pattern(3).take(length).collect()
}

/// A write of 16 bytes to what is `changed` from a region that is there: it is refused so, and the region
/// stays as it is.
fn misses(
    t: &mut Test<'_>,
    requirement: &Requirement,
    code: ReturnCode,
    changed: impl FnOnce(Message) -> Message,
) -> Outcome {
    let (region, memory) = t.patterned(64)?;
    let mut session = t.session();

    let psn = session.ask(t, &changed(Message::write(&region, 8, &bytes(16))).whole()?)?;
    let answer = session.expect(t, requirement, "a response", psn, |_| true)?;
    t.check(requirement, "the return code", code, answer.code());
    t.check(SES_GTD_001, "req of the ACK", AckRequest::REQ_CLEAR, answer.request);
    t.still_holds(SES_ADDR_007, &region, &memory)
}

fn send_to_nobody(t: &mut Test<'_>) -> Outcome {
    let posted = t.posted(room(64))?;
    let mut session = t.session();

    let message = Message { index: 0xabc, ..Message::send(&bytes(20)) };
    let psn = session.ask(t, &message.whole()?)?;
    session.refused_as(t, SES_ADDR_006, psn, &[ReturnCode::BAD_INDEX])?;
    t.expect_waiting(SES_ADDR_007, &posted)
}

/// Writes 16 bytes at 8 by `message`, and expects them in `reached`, and the others as they were.
fn reaches(
    t: &mut Test<'_>,
    requirement: &Requirement,
    message: &Message,
    reached: &Region,
    others: &[&Region],
) -> Outcome {
    let before = t.memory(reached, 0, reached.length)?;
    let mut after = before.clone();
    after[8..24].copy_from_slice(&message.data);
    let mut session = t.session();

    let psn = session.ask(t, &message.whole()?)?;
    session.accepted(t, requirement, psn)?;
    t.expect_memory(requirement, reached, 0, &after)?;
    others.iter().try_for_each(|other| t.check_memory(requirement, other, 0, &before))
}

fn key_of_another_index(t: &mut Test<'_>) -> Outcome {
    let (region, memory) = t.exposed(64, |region| ExposeRegion { index: 11, ..region })?;
    t.exposed(64, |region| region)?;
    let mut session = t.session();

    let message = Message { index: 10, ..Message::write(&region, 8, &bytes(16)) };
    let psn = session.ask(t, &message.whole()?)?;
    session.refused_as(t, SES_MEM_005, psn, &[ReturnCode::BAD_MKEY])?;
    t.still_holds(SES_MEM_001, &region, &memory)
}

fn stale_generation(t: &mut Test<'_>) -> Outcome {
    t.exposed(8, |region| ExposeRegion { generation: 3, ..region })?;
    let posted = t.posted(room(64))?;
    let mut session = t.session();

    let old = Message { generation: 2, ..Message::send(&[1; 8]) };
    let psn = session.ask(t, &old.whole()?)?;
    let answer = session.refused_as(t, SES_GEN_002, psn, &[ReturnCode::BAD_GENERATION])?;
    let told = answer.response.map(|response| response.ri_generation());
    t.check(SES_GEN_002, "ri_generation", Some(3), told);
    t.expect_waiting(SES_GEN_001, &posted)?;
    let current = Message { generation: 3, ..Message::send(&bytes(20)).named(2) };
    let psn = session.ask(t, &current.whole()?)?;
    session.accepted(t, SES_GEN_001, psn)?;
    t.expect_received(SES_GEN_001, &posted, &bytes(20))?;
    Ok(())
}

fn no_generation(t: &mut Test<'_>) -> Outcome {
    let posted = t.posted(room(64))?;
    let mut session = t.session();

    let psn = session.ask(t, &Message { generation: 1, ..Message::send(&[1; 8]) }.whole()?)?;
    session.refused(t, SES_GEN_001, psn)?;
    let psn = session.ask(t, &Message::send(&bytes(20)).named(2).whole()?)?;
    session.accepted(t, SES_GEN_003, psn)?;
    t.expect_received(SES_GEN_003, &posted, &bytes(20))?;
    Ok(())
}

/// Indices of process 2 of job 101, from 300 on.
fn indices(count: u16) -> SetIndices {
    SetIndices {
        job: Some(101),
        process: 2,
        index: 300,
        count,
        generation: None,
        disabled: None,
        ordered: None,
    }
}

/// A send to one of them.
fn send_to(index: u16, id: u16) -> Message {
    Message { index, ..Message::send(&bytes(20)).named(id) }
}

fn range(t: &mut Test<'_>) -> Outcome {
    t.call(indices(64))?;
    let mut session = t.session();

    for (id, index) in [(1, 300), (2, 363)] {
        let posted = t.posted(PostReceive { index, ..room(64) })?;
        let psn = session.ask(t, &send_to(index, id).whole()?)?;
        session.accepted(t, SES_ADDR_003, psn)?;
        t.expect_received(SES_ADDR_003, &posted, &bytes(20))?;
    }
    for (id, index) in [(3, 299), (4, 364)] {
        let psn = session.ask(t, &send_to(index, id).whole()?)?;
        session.refused_as(t, SES_ADDR_006, psn, &[ReturnCode::BAD_INDEX])?;
    }
    Ok(())
}

fn disabled(t: &mut Test<'_>) -> Outcome {
    t.call(SetIndices { disabled: Some(true), ..indices(1) })?;
    let posted = t.posted(PostReceive { index: 300, ..room(64) })?;
    let mut session = t.session();

    let psn = session.ask(t, &send_to(300, 1).whole()?)?;
    let answer =
        session.refused_as(t, SES_IDX_001, psn, &[ReturnCode::DISABLED, ReturnCode::DISABLED_GEN])?;
    t.check(SES_GTD_001, "req of the ACK", AckRequest::REQ_CLEAR, answer.request);
    t.expect_waiting(SES_IDX_001, &posted)?;
    t.call(SetIndices { disabled: Some(false), ..indices(1) })?;
    let psn = session.ask(t, &send_to(300, 2).whole()?)?;
    session.accepted(t, SES_IDX_001, psn)?;
    t.expect_received(SES_IDX_001, &posted, &bytes(20))?;
    Ok(())
}

fn disabled_without_buffer(t: &mut Test<'_>) -> Outcome {
    t.call(SetIndices { disabled: Some(true), ..indices(1) })?;
    let mut session = t.session();

    let psn = session.ask(t, &send_to(300, 1).whole()?)?;
    session.refused_as(t, SES_IDX_001, psn, &[ReturnCode::DISABLED, ReturnCode::DISABLED_GEN])?;
    Ok(())
}

/// Without room for unexpected sends, one that finds no buffer finds the index run out of them.
fn out_of_buffers(t: &mut Test<'_>) -> Outcome {
    t.configure("max_unexpected", 0)?;
    t.call(SetIndices { ordered: Some(true), generation: Some(4), ..indices(1) })?;
    let mut session = t.session();
    let current = |id, generation| Message { generation, ..send_to(300, id) };
    for id in [1, 2] {
        let psn = session.ask(t, &current(id, 4).whole()?)?;
        session.refused_as(t, SES_IDX_002, psn, &[ReturnCode::DISABLED_GEN])?;
        if id == 1 {
            t.posted(PostReceive { index: 300, ..room(64) })?;
        }
    }
    t.call(SetIndices { generation: Some(5), ..indices(1) })?;
    let psn = session.ask(t, &current(3, 5).whole()?)?;
    session.accepted(t, SES_IDX_002, psn)?;
    Ok(())
}

/// Open: the code for an access outside a region. The error itself is no open question.
fn outside(t: &mut Test<'_>, offset: u64, length: usize) -> Outcome {
    let (region, memory) = t.patterned(64)?;
    let mut session = t.session();

    let psn = session.ask(t, &Message::write(&region, offset, &bytes(length)).whole()?)?;
    let answer = session.refused(t, SES_MEM_004, psn)?;
    t.check(SES_GTD_001, "req of the ACK", AckRequest::REQ_CLEAR, answer.request);
    t.still_holds(SES_MEM_004, &region, &memory)
}

fn last_packet_beyond(t: &mut Test<'_>) -> Outcome {
    let mtu = t.mtu();
    let (region, memory) = t.patterned(mtu as u64 + 50)?;
    let mut session = t.session();

    let psns = session.ask_all(t, &Message::write(&region, 0, &bytes(mtu + 51)).parts(mtu)?)?;
    session.refused(t, SES_MEM_004, psns[1])?;
    t.pause(t.soon())?;
    t.check_memory(SES_MEM_004, &region, mtu as u64, &memory[mtu..])
}

/// Expects that a read is refused, and that no data comes.
fn brings_nothing(
    t: &mut Test<'_>,
    requirement: &Requirement,
    message: &Message,
    codes: &[ReturnCode],
) -> Outcome {
    let mut session = t.session();
    let psn = session.ask(t, &message.whole()?)?;
    let pdc = session.pdc.clone();
    t.expect_silence(requirement, "no read data", |seen| {
        let carries = seen.request().is_some() && seen.is_for(&pdc) || seen.ack().is_some();
        (carries && !seen.payload().is_empty()).then_some(())
    })?;
    match codes {
        [] => session.refused(t, requirement, psn),
        codes => session.refused_as(t, SES_MEM_005, psn, codes),
    }
    .map(drop)
}

fn only(t: &mut Test<'_>, permissions: &[Permission]) -> Result<(Region, Vec<u8>), Stop> {
    t.exposed(64, |region| ExposeRegion { permissions: permissions.to_vec(), ..region })
}

fn not_writable(t: &mut Test<'_>) -> Outcome {
    let (region, memory) = only(t, &[Permission::Read, Permission::Atomic])?;
    let mut session = t.session();

    let psn = session.ask(t, &Message::write(&region, 8, &bytes(16)).whole()?)?;
    let refused = session.refused_as(t, SES_MEM_005, psn, DENIED);
    t.still_holds(SES_MEM_003, &region, &memory)?;
    refused.map(drop)
}

fn no_atomics(t: &mut Test<'_>) -> Outcome {
    let (region, memory) = only(t, &[Permission::Read, Permission::Write])?;
    let mut session = t.session();

    let sum = (AtomicOpcode::SUM, AtomicDatatype::UINT64);
    let psn = session.ask(t, &Message::atomic(&region, 8, sum, &[1; 8])?.whole()?)?;
    let refused = session.refused_as(t, SES_MEM_005, psn, DENIED);
    t.still_holds(SES_MEM_003, &region, &memory)?;
    refused.map(drop)
}
