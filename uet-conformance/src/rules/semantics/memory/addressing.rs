//! Addresses of requests: job, process, index, generation and key (section 3.4.1).

use crate::Part;
use crate::prelude::*;
use crate::rules::steps::bytes;
use uet_control::{PostReceive, SetIndices};

/// The opcode and header of a send.
const SENT: Axis<(Opcode, Form)> = axis("opcode").needing(&[
    ("send", (Opcode::UET_SEND, Form::Std), &[]),
    ("send-medium", (Opcode::UET_SEND, Form::Medium), &[]),
    ("send-small", (Opcode::UET_SEND, Form::Small), &[]),
    ("tagged", (Opcode::UET_TAGGED_SEND, Form::Std), &[TSEND]),
    ("tagged-medium", (Opcode::UET_TAGGED_SEND, Form::Medium), &[TSEND]),
]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[WRITE]).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("addressing/unknown-job", "A request to an unknown job gets BAD_JOB_ID and changes nothing")
        .checks(&[SES_ADDR_004, SES_ADDR_007, SES_GTD_001])
        .run(|t| {
            expect_unreachable(t, SES_ADDR_004, ReturnCode::BAD_JOB_ID, |write| Message {
                job: 0xabcdef,
                ..write
            })
        }),
    rule("addressing/unknown-process", "A request to an unknown process gets BAD_PID and changes nothing")
        .checks(&[SES_ADDR_005, SES_ADDR_007, SES_GTD_001])
        .run(|t| {
            expect_unreachable(t, SES_ADDR_005, ReturnCode::BAD_PID, |write| Message {
                process: 0xabc,
                ..write
            })
        }),
    rule("addressing/unknown-index", "A request to an unknown index gets BAD_INDEX and changes nothing")
        .checks(&[SES_ADDR_006, SES_ADDR_007, SES_GTD_001])
        .run(|t| {
            expect_unreachable(t, SES_ADDR_006, ReturnCode::BAD_INDEX, |write| Message {
                index: 0xabc,
                ..write
            })
        }),
    rule("addressing/unknown-key", "A request with an unknown key gets BAD_MKEY and changes nothing")
        .checks(&[SES_MEM_005, SES_ADDR_007, SES_GTD_001])
        .run(|t| {
            for bit in [0, 47] {
                expect_unreachable(t, SES_MEM_005, ReturnCode::BAD_MKEY, |write| {
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
        .run(send_unknown_index),
    rule("addressing/absolute", "An absolute address selects its process whatever the job of the request")
        .checks(&[SES_ADDR_001])
        .run(|t| {
            let (region, _) = t.exposed(64, |region| ExposeRegion { job: None, ..region })?;
            let message =
                Message { relative: false, job: 0x123456, ..Message::write(&region, 8, &bytes(16)) };
            expect_reached(t, SES_ADDR_001, &message, &region, &[])
        }),
    rule("addressing/relative", "With relative addressing, one process number in two jobs is two processes")
        .checks(&[SES_ADDR_001])
        .run(|t| {
            let key = Hex64(0x5eed);
            let (one, _) = t.exposed(64, |region| ExposeRegion { job: Some(0x00_0065), key, ..region })?;
            let (two, _) = t.exposed(64, |region| ExposeRegion { job: Some(0xab_0065), key, ..region })?;
            expect_reached(t, SES_ADDR_001, &Message::write(&two, 8, &bytes(16)), &two, &[&one])
        }),
    rule("addressing/absolute-only", "An absolute request does not reach a relatively addressed region")
        .checks(&[SES_ADDR_001])
        .run(|t| {
            let key = Hex64(0x5eed);
            let (relative, _) = t.exposed(64, |region| ExposeRegion { key, ..region })?;
            let (absolute, _) = t.exposed(64, |region| ExposeRegion { job: None, key, ..region })?;
            let message = Message { relative: false, job: 101, ..Message::write(&absolute, 8, &bytes(16)) };
            expect_reached(t, SES_ADDR_001, &message, &absolute, &[&relative])
        }),
    rule("addressing/process", "One key at two processes names two regions")
        .checks(&[SES_ADDR_001, SES_MEM_001])
        .run(|t| {
            let key = Hex64(0x5eed);
            let (one, _) = t.exposed(64, |region| ExposeRegion { process: 2, key, ..region })?;
            let (two, _) = t.exposed(64, |region| ExposeRegion { process: 3, key, ..region })?;
            expect_reached(t, SES_MEM_001, &Message::write(&two, 8, &bytes(16)), &two, &[&one])?;
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
            expect_reached(t, SES_ADDR_002, &Message::write(&one, 8, &bytes(16)), &one, &[&two])?;
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
            expect_reached(t, SES_MEM_002, &message, &region, &[])
        }),
    rule("addressing/optimized-key", "The lowest twelve bits of an optimized key select the region")
        .checks(&[SES_MEM_002])
        .run(|t| {
            const OPTIMIZED: u64 = 1 << 62;
            let (one, _) = t.exposed(64, |region| ExposeRegion { key: Hex64(OPTIMIZED | 0x5), ..region })?;
            let (two, _) =
                t.exposed(64, |region| ExposeRegion { key: Hex64(OPTIMIZED | 0x805), ..region })?;
            let message = Message::write(&two, 8, &bytes(16)).selector(OPTIMIZED | 0xabcd_0000_5000 | 0x805);
            expect_reached(t, SES_MEM_002, &message, &two, &[&one])
        }),
    rule("addressing/stale-generation", "The refusal of a send with an old generation names the current one")
        .checks(&[SES_GEN_001, SES_GEN_002])
        .needs(&[SEND, RECEIVE])
        .over(&[&MODE, &CARRIER, &START])
        .run(stale_generation),
    rule("addressing/generation-per-index", "Each of two indices compares its own generation")
        .checks(&[SES_GEN_001])
        .needs(&[SEND, RECEIVE])
        .over(&[&MODE, &START])
        .run(generation_per_index),
    rule("addressing/no-generation", "An index without a generation accepts generation 0 and refuses 1")
        .checks(&[SES_GEN_003, SES_GEN_001])
        .needs(&[SEND, RECEIVE])
        .over(&[&MODE, &CARRIER, &START])
        .run(no_generation),
    rule("addressing/index-range", "Sends reach the first and the last index of a range and none outside it")
        .checks(&[SES_ADDR_003, SES_ADDR_006])
        .needs(&[SEND, RECEIVE, INDICES])
        .over(&[&SENT, &MODE, &START])
        .run(index_range),
    rule("addressing/disabled", "A disabled index refuses sends despite a posted receive until enabled")
        .checks(&[SES_IDX_001, SES_GTD_001])
        .needs(&[SEND, RECEIVE, INDICES])
        .over(&[&SENT, &MODE, &START])
        .run(disabled),
    rule("addressing/disabled-no-receive", "A disabled index without a receive refuses a send as disabled")
        .checks(&[SES_IDX_001])
        .needs(&[SEND, RECEIVE, INDICES])
        .over(&[&SENT, &MODE, &START])
        .run(disabled_no_receive),
    rule("addressing/no-buffers", "On ROD, an index out of buffers is DISABLED_GEN until a new generation")
        .checks(&[SES_IDX_002])
        .needs(&[ROD, SEND, RECEIVE, INDICES, PARAMETERS])
        .over(&[&START])
        .run(no_buffers),
];

/// Expects that a write to an existing region is refused with this code once its address is `changed`, and
/// that the region stays unchanged.
fn expect_unreachable(
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

fn send_unknown_index(t: &mut Test<'_>) -> Outcome {
    let posted = t.posted(room(64))?;
    let mut session = t.session();

    let message = Message { index: 0xabc, ..Message::send(&bytes(20)) };
    let psn = session.ask(t, &message.whole()?)?;
    session.refused_as(t, SES_ADDR_006, psn, &[ReturnCode::BAD_INDEX])?;
    t.expect_waiting(SES_ADDR_007, &posted)
}

/// Sends `message`, which writes 16 bytes at offset 8. Expects them in `reached`, and no change in `others`.
fn expect_reached(
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
    let current_generation = answer.response.map(|response| response.ri_generation());
    t.check(SES_GEN_002, "ri_generation", Some(3), current_generation);
    let long = Message { generation: 2, ..Message::send(&bytes(2 * t.mtu() + 1)).named(3) };
    for psn in session.ask_all(t, &long.parts(t.mtu())?)? {
        let answer = session.refused(t, SES_GEN_002, psn)?;
        let current_generation = answer.response.map(|response| response.ri_generation());
        if answer.code() == ReturnCode::BAD_GENERATION {
            t.check(SES_GEN_002, "ri_generation of the answer to any packet", Some(3), current_generation);
        }
    }
    t.expect_waiting(SES_GEN_001, &posted)?;
    let current = Message { generation: 3, ..Message::send(&bytes(20)).named(2) };
    let psn = session.ask(t, &current.whole()?)?;
    session.accepted(t, SES_GEN_001, psn)?;
    t.expect_received(SES_GEN_001, &posted, &bytes(20)).map(drop)
}

fn generation_per_index(t: &mut Test<'_>) -> Outcome {
    let current = [(10, 3), (11, 5)];
    for (index, generation) in current {
        t.exposed(8, |region| ExposeRegion { index, generation, ..region })?;
    }
    let mut session = t.session();
    for (n, (index, generation)) in (0..).zip(current) {
        let posted = t.posted(PostReceive { index, ..room(64) })?;
        let send = |message: u16, generation| Message {
            index,
            generation,
            ..Message::send(&bytes(20)).named(message)
        };
        // The generation of the other index.
        let psn = session.ask(t, &send(10 + n, 8 - generation).whole()?)?;
        session.refused_as(t, SES_GEN_001, psn, &[ReturnCode::BAD_GENERATION])?;
        t.expect_waiting(SES_GEN_001, &posted)?;
        let psn = session.ask(t, &send(20 + n, generation).whole()?)?;
        session.accepted(t, SES_GEN_001, psn)?;
        t.expect_received(SES_GEN_001, &posted, &bytes(20))?;
    }
    Ok(())
}

fn no_generation(t: &mut Test<'_>) -> Outcome {
    let posted = t.posted(room(64))?;
    let mut session = t.session();

    let psn = session.ask(t, &Message { generation: 1, ..Message::send(&[1; 8]) }.whole()?)?;
    session.refused(t, SES_GEN_001, psn)?;
    let psn = session.ask(t, &Message::send(&bytes(20)).named(2).whole()?)?;
    session.accepted(t, SES_GEN_003, psn)?;
    t.expect_received(SES_GEN_003, &posted, &bytes(20)).map(drop)
}

/// Returns a range of indices of process 2 of job 101 that starts at 300.
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

/// Returns a send to one of these indices.
fn send_to(index: u16, id: u16) -> Message {
    Message { index, ..Message::send(&bytes(20)).named(id) }
}

/// Returns a send of this instance to one of these indices.
fn sent_to(t: &Test<'_>, index: u16, id: u16) -> Result<Part, Stop> {
    let (opcode, form) = t.value(&SENT);
    let message = Message { index, ..Message::new(opcode).selector(0x70).data(&bytes(20)).named(id) };
    Ok(message.in_form(form)?)
}

/// Returns a receive for a send of this instance to one of these indices.
fn receive_at(t: &Test<'_>, index: u16) -> PostReceive {
    let (opcode, _) = t.value(&SENT);
    let receive = if opcode == Opcode::UET_TAGGED_SEND { tagged_room(64, 0x70) } else { room(64) };
    PostReceive { index, ..receive }
}

fn index_range(t: &mut Test<'_>) -> Outcome {
    t.call(indices(64))?;
    let mut session = t.session();

    for (id, index) in [(1, 300), (2, 363)] {
        let receive = receive_at(t, index);
        let posted = t.posted(receive)?;
        let part = sent_to(t, index, id)?;
        let psn = session.ask(t, &part)?;
        session.accepted(t, SES_ADDR_003, psn)?;
        t.expect_received(SES_ADDR_003, &posted, &bytes(20))?;
    }
    for (id, index) in [(3, 299), (4, 364)] {
        let part = sent_to(t, index, id)?;
        let psn = session.ask(t, &part)?;
        session.refused_as(t, SES_ADDR_006, psn, &[ReturnCode::BAD_INDEX])?;
    }
    Ok(())
}

fn disabled(t: &mut Test<'_>) -> Outcome {
    t.call(SetIndices { disabled: Some(true), ..indices(1) })?;
    let receive = receive_at(t, 300);
    let posted = t.posted(receive)?;
    let (refused, accepted) = (sent_to(t, 300, 1)?, sent_to(t, 300, 2)?);
    let mut session = t.session();

    let psn = session.ask(t, &refused)?;
    let answer =
        session.refused_as(t, SES_IDX_001, psn, &[ReturnCode::DISABLED, ReturnCode::DISABLED_GEN])?;
    t.check(SES_GTD_001, "req of the ACK", AckRequest::REQ_CLEAR, answer.request);
    t.expect_waiting(SES_IDX_001, &posted)?;
    t.call(SetIndices { disabled: Some(false), ..indices(1) })?;
    let psn = session.ask(t, &accepted)?;
    session.accepted(t, SES_IDX_001, psn)?;
    t.expect_received(SES_IDX_001, &posted, &bytes(20)).map(drop)
}

fn disabled_no_receive(t: &mut Test<'_>) -> Outcome {
    // Without room for an unexpected message, the response would be NO_MATCH if the index were not disabled.
    t.try_configure("max_unexpected", 0)?;
    t.call(SetIndices { disabled: Some(true), ..indices(1) })?;
    let part = sent_to(t, 300, 1)?;
    let mut session = t.session();

    let psn = session.ask(t, &part)?;
    session.refused_as(t, SES_IDX_001, psn, &[ReturnCode::DISABLED, ReturnCode::DISABLED_GEN]).map(drop)
}

/// The device keeps no unexpected sends, so a send without a receive exhausts the index.
fn no_buffers(t: &mut Test<'_>) -> Outcome {
    t.configure("max_unexpected", 0)?;
    t.call(SetIndices { ordered: Some(true), generation: Some(4), ..indices(1) })?;
    let mut session = t.ordered_session();
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
    session.accepted(t, SES_IDX_002, psn).map(drop)
}
