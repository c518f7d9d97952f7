//! The state of a device after a message or an operation failed (sections 3.4.1 and 3.4.2).

use crate::Part;
use crate::prelude::*;
use crate::target::FAILED;
use uet_control::{Fill, Hex};
use uet_wire::ses::SesBuf;

/// The way in which a message of the suite fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageFailure {
    Key,
    Process,
    Beyond,
    IeFirst,
    IeSecond,
    SendIndex,
    SendIe,
    MessageError,
    ReadKey,
}

const MESSAGE_FAILURE: Axis<MessageFailure> = axis("failure").needing(&[
    ("bad-key", MessageFailure::Key, &[]),
    ("bad-process", MessageFailure::Process, &[]),
    ("beyond-the-region", MessageFailure::Beyond, &[]),
    ("ie-first", MessageFailure::IeFirst, &[]),
    ("ie-second", MessageFailure::IeSecond, &[]),
    ("send-bad-index", MessageFailure::SendIndex, &[SEND, RECEIVE]),
    ("send-ie", MessageFailure::SendIe, &[SEND, RECEIVE]),
    ("message-error", MessageFailure::MessageError, &[SEND, RECEIVE]),
    ("read-bad-key", MessageFailure::ReadKey, &[READ]),
]);

const OPERATION: Axis<PostKind> = axis("operation").needing(&[
    ("write", PostKind::Write, &[WRITE]),
    ("read", PostKind::Read, &[READ]),
    ("send", PostKind::Send, &[SEND]),
    ("tagged", PostKind::Tsend, &[TSEND]),
    ("atomic", PostKind::Atomic, &[ATOMIC]),
    ("fetch", PostKind::FetchAtomic, &[FETCH_ATOMIC]),
    ("deferrable", PostKind::DeferrableSend, &[DEFERRABLE_SEND]),
    ("rendezvous", PostKind::RendezvousSend, &[RENDEZVOUS_SEND]),
]);

/// The way in which an operation of the device fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OperationFailure {
    Refused,
    Fatal,
    Unanswered,
}

const OPERATION_FAILURE: Axis<OperationFailure> = axis("failure").values(&[
    ("refused", OperationFailure::Refused),
    ("fatal-nack", OperationFailure::Fatal),
    ("unanswered", OperationFailure::Unanswered),
]);

/// An operation that returns data to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fetched {
    Read,
    ReadMedium,
    Atomic,
}

const FETCHED: Axis<Fetched> = axis("operation").needing(&[
    ("read", Fetched::Read, &[READ]),
    ("read-medium", Fetched::ReadMedium, &[READ]),
    ("fetch", Fetched::Atomic, &[FETCH_ATOMIC]),
]);

/// True if the data arrives in an ACK, false if on the return direction.
const IN_ACK: Axis<bool> = axis("via").values(&[("return", false), ("ack", true)]);

const CODE: Axis<ReturnCode> = axis("code").values(&[
    ("uncor", ReturnCode::UNCOR),
    ("host-poisoned", ReturnCode::HOST_POISONED),
    ("bad-mkey", ReturnCode::BAD_MKEY),
]);

const FATAL: Axis<NackCode> = axis("code").values(&[
    ("inv-dpdcid", NackCode::INV_DPDCID),
    ("pdc-hdr-mismatch", NackCode::PDC_HDR_MISMATCH),
    ("unexp-event", NackCode::UNEXP_EVENT),
]);

/// The parts of the read that arrived before its context ended, by index.
const RECEIVED: Axis<&[usize]> = axis("received").values(&[
    ("none", &[]),
    ("first", &[0]),
    ("second", &[1]),
    ("last", &[2]),
    ("first-two", &[0, 1]),
    ("first-and-last", &[0, 2]),
]);

pub(super) const RULES: &[Rule] = &[
    rule("failure/target", "After failed messages, a target still accepts and places the next one")
        .checks(&[ROB_LIFE_001, SES_RESP_001, SES_DONE_002, SES_ERR_004])
        .needs(&[WRITE])
        .over(&[&MESSAGE_FAILURE, &MODE])
        .run(|t| {
            // Six messages fail one after the other on a target with room for two. Then another one succeeds.
            let (mtu, failure) = (t.mtu(), t.value(&MESSAGE_FAILURE));
            t.try_configure("max_messages", 2)?;
            let data = bytes(2 * mtu);
            let (region, mut memory) = t.patterned(data.len() as u64)?;
            let sends = matches!(
                failure,
                MessageFailure::SendIndex | MessageFailure::SendIe | MessageFailure::MessageError
            );
            let mut session = t.session();
            for id in 1..=6 {
                // Open: whether an aborted send consumes its receive.
                let posted = if sends { Some(t.posted(room(data.len() as u64))?) } else { None };
                let parts = failing_packets(failure, &region, &data, mtu, id)?;
                for part in &parts {
                    let psn = session.ask(t, part)?;
                    session.answer(t, psn)?;
                }
                if let Some(posted) = posted {
                    let ended = t.completion(posted.operation, Duration::ZERO)?.map(|it| it.status);
                    t.one_of(
                        SES_DONE_002,
                        "completion of the receive",
                        &[None, Some(Status::Refused), Some(Status::Failed), Some(Status::Cancelled)],
                        ended,
                    );
                }
            }
            t.pause(t.soon())?;
            // The packet before one with `ie` is placed. Open: the first packet of a write beyond its region.
            let unchanged = if failure == MessageFailure::IeSecond { mtu } else { 0 };
            if failure != MessageFailure::Beyond {
                t.check_memory(SES_ERR_004, &region, unchanged as u64, &memory[unchanged..])?;
            }
            // A new message_id, because the responses to the others are not cleared.
            let psns = session.ask_all(t, &Message::write(&region, 0, &data).named(7).parts(mtu)?)?;
            session.all_accepted(t, ROB_LIFE_001, &psns)?;
            memory.copy_from_slice(&data);
            t.expect_memory(SES_RESP_001, &region, 0, &memory)
        }),
    rule("failure/source", "After failed operations, an initiator still completes the next one")
        .checks(&[SES_DONE_001])
        .over(&[&OPERATION, &OPERATION_FAILURE, &MODE])
        .run(|t| {
            // Three operations fail one after the other on an initiator with room for two.
            let (kind, failure, mode) = (t.value(&OPERATION), t.value(&OPERATION_FAILURE), t.value(&MODE));
            if failure == OperationFailure::Unanswered && t.parameter("max_rto_retx_cnt") > 7 {
                return skip("the device retransmits for too long");
            }
            let small = t.try_configure("max_operations", 2)?;
            t.try_configure("max_reads", 2)?;
            let times = if small { 3 } else { 1 };
            let peer = t.peer(0)?;
            let mut open: Option<Target> = None;
            let mut next = 0;
            for _ in 0..times {
                let posted = t.post(operation(kind, peer, mode))?;
                let target = context_of_packet(t, &mut open, next)?;
                let within = match failure {
                    OperationFailure::Refused => {
                        target.respond_error(t, next, ReturnCode::BAD_INDEX)?;
                        t.soon()
                    }
                    OperationFailure::Fatal => {
                        target.refuse(t, NackCode::CLOSING_IN_ERR, next)?;
                        t.soon()
                    }
                    OperationFailure::Unanswered => t.until_given_up(),
                };
                let ended = t.completion(posted, within)?.map(|it| it.status);
                t.one_of(SES_DONE_001, "the completion of an operation that failed", FAILED, ended);
                match failure {
                    OperationFailure::Refused => next += 1,
                    _ => open = None,
                }
                t.settle()?;
                t.forget();
            }
            let posted = t.post(operation(kind, peer, mode))?;
            let target = context_of_packet(t, &mut open, next)?;
            complete(t, &target, kind, next)?;
            t.ends_with(SES_DONE_001, posted, (Status::Ok, 8)).map(drop)
        }),
    rule("failure/data-with-error", "Data with an error code does not complete an operation successfully")
        .checks(&[SES_ERR_003])
        .over(&[&FETCHED, &IN_ACK, &CODE, &MODE])
        .run(|t| {
            let (fetched, in_ack, code) = (t.value(&FETCHED), t.value(&IN_ACK), t.value(&CODE));
            let peer = t.peer(0)?;
            let kind = if fetched == Fetched::Atomic { PostKind::FetchAtomic } else { PostKind::Read };
            let form = (fetched == Fetched::ReadMedium).then_some(Form::Medium);
            let posted = t.post(Post { form, ..operation(kind, peer, t.value(&MODE)) })?;
            let mut target = Target::accept(t)?;
            target.collect(t, 1)?;
            let header: SesBuf = match target.data_header(0, 8, 8, 0)? {
                SesBuf::ResponseData(data) => data.edit().head(|head| head.return_code(code)).done()?.into(),
                SesBuf::ResponseDataSmall(data) => {
                    data.edit().head(|head| head.return_code(code)).done()?.into()
                }
                other => other,
            };
            if in_ack {
                let request = AckRequest::REQ_CLEAR;
                let mut packet = AckBuilder { request, ..target.naming(0, 0) }.build()?;
                (packet.ses, packet.payload) = (Some(header), vec![7; 8]);
                t.send(&target.pdc, &packet.consistent())?;
            } else {
                target.ack(t, 0)?;
                target.give(t, 0, header, &[7; 8])?;
            }
            let within = t.soon();
            let ended = t.completion(posted, within)?.map(|it| it.status);
            let what = format!("the completion after data with {code}");
            t.one_of(SES_ERR_003, &what, FAILED, ended);
            Ok(())
        }),
    rule("failure/read-resumed", "A read that resumes on a new context completes with all its data or fails")
        .checks(&[SES_DONE_001])
        .needs(&[READ])
        .over(&[&FATAL, &RECEIVED, &MODE])
        .run(|t| {
            // The device may fail the read, or resume all or the rest of it on a new context.
            let (mtu, code, received) = (t.mtu(), t.value(&FATAL), t.value(&RECEIVED));
            let whole = bytes(3 * mtu);
            let peer = t.peer(0)?;
            let read =
                Post { want_data: true, mode: t.value(&MODE), ..post(PostKind::Read, peer, whole.len()) };
            let posted = t.post(read)?;
            let mut target = Target::accept(t)?;
            target.collect(t, 3)?;
            let origin = target.said(0)?.buffer_offset.unwrap_or(0);
            for (place, k) in (0..).zip(received) {
                let piece = &whole[k * mtu..(k + 1) * mtu];
                target.give(t, place, target.data_header(*k as u32, mtu, whole.len(), k * mtu)?, piece)?;
            }
            t.settle()?;
            match code {
                NackCode::UNEXP_EVENT => target.refuse_without_context(t, code, 1)?,
                NackCode::INV_DPDCID | NackCode::PDC_HDR_MISMATCH => {
                    target.refuse_without_context(t, code, 0)?
                }
                code => target.refuse(t, code, 0)?,
            }
            serve_resumed_read(t, &target, posted, (&whole, origin))
        }),
];

fn bytes(length: usize) -> Vec<u8> {
    pattern(16).take(length).collect()
}

/// Returns the packets of a message that fails in this way.
fn failing_packets(
    failure: MessageFailure,
    region: &Region,
    data: &[u8],
    mtu: usize,
    id: u16,
) -> Result<Vec<Part>, Stop> {
    let write = Message::write(region, 0, data).named(id);
    let send = Message::send(data).named(id);
    let mut parts = match failure {
        MessageFailure::Key => write.selector(region.key ^ 1).parts(mtu)?,
        MessageFailure::Process => Message { process: 0xabc, ..write }.parts(mtu)?,
        MessageFailure::Beyond => Message { offset: 1, ..write }.parts(mtu)?,
        MessageFailure::IeFirst | MessageFailure::IeSecond => write.parts(mtu)?,
        MessageFailure::SendIndex => Message { index: 0xabc, ..send }.parts(mtu)?,
        MessageFailure::SendIe => send.parts(mtu)?,
        MessageFailure::MessageError => {
            let mut parts = send.parts(mtu)?;
            let error = Message { data: Vec::new(), ..send }.opcode(Opcode::UET_MSG_ERROR).whole()?;
            parts.truncate(1);
            parts.push(error.edit(|std| {
                let std = std.head(|head| head.som(false).eom(true));
                std.payload_length(0).message_offset(mtu as u32)
            })?);
            parts
        }
        MessageFailure::ReadKey => {
            let read = Message::read(region, 0, data.len() as u32).named(id);
            read.selector(region.key ^ 1).parts(mtu)?
        }
    };
    let ie = match failure {
        MessageFailure::IeFirst => Some(0),
        MessageFailure::IeSecond | MessageFailure::SendIe => Some(1),
        _ => None,
    };
    if let Some(part) = ie.and_then(|k| parts.get_mut(k)) {
        *part = part.clone().edit(|std| std.head(|head| head.ie(true)))?;
    }
    Ok(parts)
}

/// Returns an operation of 8 bytes for the device to post.
fn operation(kind: PostKind, peer: u64, mode: Mode) -> Post {
    let atomic = matches!(kind, PostKind::Atomic | PostKind::FetchAtomic);
    Post {
        mode,
        atomic_opcode: atomic.then(|| "SUM".into()),
        atomic_datatype: atomic.then(|| "UINT64".into()),
        eager: (kind == PostKind::RendezvousSend).then_some(8),
        want_data: true,
        fill: Some(Fill::Hex(Hex(vec![1; 8]))),
        ..post(kind, peer, 8)
    }
}

/// Answers packet `n` so that its operation succeeds.
fn complete(t: &mut Test<'_>, target: &Target, kind: PostKind, n: u32) -> Outcome {
    match kind {
        PostKind::Read | PostKind::FetchAtomic => target.give_in_ack(t, n, &[7; 8]),
        _ => target.ack(t, n),
    }
}

/// Returns the context of packet `n`: the open one, or one that the device opens.
fn context_of_packet(t: &mut Test<'_>, open: &mut Option<Target>, n: u32) -> Result<Target, Stop> {
    let mut target = match open.take() {
        Some(target) => target,
        None => Target::accept(t)?,
    };
    target.collect(t, n + 1)?;
    *open = Some(target.clone());
    Ok(target)
}

/// Serves the read on the new contexts of the device until it completes.
fn serve_resumed_read(
    t: &mut Test<'_>,
    old: &Target,
    posted: Operated,
    (whole, origin): (&[u8], u64),
) -> Outcome {
    let mtu = t.mtu();
    let old_pdcid = old.pdc.remote;
    let mut contexts: Vec<(Target, u32)> = Vec::new();
    let resumed = |seen: &RxPacket| {
        let request = seen.request()?;
        let said = crate::serve::said(&seen.uet()).filter(|said| said.opcode() == Opcode::UET_READ)?;
        (Some(request.spdcid()) != old_pdcid).then_some((request, said))
    };
    let until = t.now() + t.until_given_up();
    let ended = loop {
        if let Some(ended) = t.completion(posted, Duration::ZERO)? {
            break Some(ended);
        }
        if t.now() >= until {
            break None;
        }
        let within = t.later();
        let Some((seen, (request, said))) = t.wait(within, resumed)? else { continue };
        let context = contexts.iter().position(|(it, _)| it.pdc.remote == Some(request.spdcid()));
        let context = match context {
            Some(context) => context,
            None if request.syn() => {
                contexts.push((Target::opened_by(t, seen.clone())?, 0));
                contexts.len() - 1
            }
            None => continue,
        };
        let (target, given) = &mut contexts[context];
        let wanted = said.payload_length.map_or(said.request_length.min(mtu as u32), u32::from) as usize;
        let start = (said.buffer_offset.unwrap_or(origin) - origin) as usize + said.start();
        let piece = whole.get(start..start + wanted).unwrap_or_default();
        let n = target.index(&request);
        if target.times(n) == 0 {
            target.got.push(crate::target::RxRequest { seen, request });
        }
        target.ack(t, n)?;
        let header = target.data_header(n, piece.len(), said.request_length as usize, said.start())?;
        target.give(t, *given, header, piece)?;
        *given += 1;
    };
    let status = ended.as_ref().map(|it| it.status);
    t.one_of(
        SES_DONE_001,
        "the completion of the read",
        &[Some(Status::Ok), Some(Status::Refused), Some(Status::Failed), Some(Status::Cancelled)],
        status,
    );
    if let (Some(Status::Ok), Some(data)) = (status, ended.and_then(|it| it.data)) {
        t.check(SES_DONE_001, "bytes of the read", whole.len(), data.0.len());
        let wrong = data.0.iter().zip(whole).position(|(seen, expected)| seen != expected);
        t.check(SES_DONE_001, "the first byte that differs from the target's", None, wrong);
    }
    Ok(())
}
