//! Rendezvous sends to the device: the request carries the first bytes, and the device reads the rest
//! (section 3.4.2).

use super::steps::require_kept;
use crate::prelude::*;
use crate::serve::SesFields;
use crate::{Answer, RequestSession};
use uet_wire::registry::List;
use uet_wire::ses::{ExtBuf, SesBuf};

/// The time at which the receive for an unexpected send is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReceivePostedAt {
    BeforeRead,
    /// After the device has read the rest, if it reads it at once.
    AfterRead,
}

const POSTED: Axis<ReceivePostedAt> = axis("receive")
    .values(&[("before-read", ReceivePostedAt::BeforeRead), ("after-read", ReceivePostedAt::AfterRead)]);

/// True for a tagged send.
const TAGGED: Axis<bool> =
    axis("send").needing(&[("untagged", false, &[]), ("tagged", true, &[RENDEZVOUS_TSEND])]);

/// The number of messages whose rest the device reads later.
const WAITING: Axis<u32> = axis("waiting").values(&[("1", 1), ("3", 3)]);

const LENGTH: Axis<usize> = axis("length").values(&[("300", 300), ("0", 0)]);

/// The offset of the rest in the memory that the suite offers.
const REST_OFFSET: u64 = 0x4000;

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[RENDEZVOUS_SEND, RECEIVE]).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("rendezvous/reads-rest", "The target reads the rest from the place that the extension header names")
        .checks(&[SES_RNDV_002, SES_RNDV_003, SES_CUT_005])
        .run(|t| {
            let whole = bytes(300);
            let posted = t.posted(room(400))?;
            let message = Message { header_data: Some(0xfeed_0000_0000_0bee), ..untagged() };
            send_offer(t, message, &whole, 32)?;
            let target = expect_read(t, SES_RNDV_002, 1)?;
            check_place(t, &target.said(0)?, 32, 300);
            target.ack(t, 0)?;
            target.give_all(t, 1, 0, &whole[32..])?;
            let completion = t.expect_received(SES_RNDV_003, &posted, &whole)?;
            t.check(SES_CUT_005, "header data", Some(Hex64(0xfeed_0000_0000_0bee)), completion.header_data);
            Ok(())
        }),
    rule("rendezvous/completion", "The receive does not complete before the target has read the rest")
        .checks(&[SES_RNDV_003, SES_RNDV_002])
        .run(|t| {
            let whole = bytes(300);
            let posted = t.posted(room(400))?;
            send_offer(t, untagged(), &whole, 200)?;
            let target = expect_read(t, SES_RNDV_002, 1)?;
            target.ack(t, 0)?;
            t.expect_waiting(SES_RNDV_003, &posted)?;
            target.give_all(t, 1, 0, &whole[200..])?;
            t.expect_received(SES_RNDV_003, &posted, &whole)?;
            Ok(())
        }),
    rule("rendezvous/no-eager-data", "The target reads a rendezvous send without eager data completely")
        .checks(&[SES_RNDV_001, SES_RNDV_002])
        .run(|t| {
            let whole = bytes(300);
            let posted = t.posted(room(300))?;
            send_offer(t, untagged(), &whole, 0)?;
            let target = expect_read(t, SES_RNDV_002, 1)?;
            check_place(t, &target.said(0)?, 0, 300);
            target.ack(t, 0)?;
            target.give_all(t, 1, 0, &whole)?;
            t.expect_received(SES_RNDV_001, &posted, &whole)?;
            Ok(())
        }),
    rule("rendezvous/all-eager", "A rendezvous send with only eager data completes without a read")
        .checks(&[SES_RNDV_001, SES_RNDV_003])
        .over(&[&LENGTH, &MODE, &START])
        .run(|t| {
            let whole = bytes(t.value(&LENGTH));
            let posted = t.posted(room(300))?;
            send_offer(t, untagged(), &whole, whole.len())?;
            t.expect_received(SES_RNDV_003, &posted, &whole)?;
            t.expect_none(SES_RNDV_001, "no read", t.soon(), |seen| {
                crate::serve::said(&seen.uet()).filter(|fields| fields.opcode() == Opcode::UET_READ)
            })
        }),
    rule("rendezvous/long-rest", "The target reads a rest of several packets completely")
        .checks(&[SES_RNDV_002, SES_RNDV_003])
        .run(|t| {
            let mtu = t.mtu();
            let whole = bytes(3 * mtu + 10);
            let posted = t.posted(room(4 * mtu as u64))?;
            send_offer(t, untagged(), &whole, mtu)?;
            let target = expect_read(t, SES_RNDV_002, 3)?;
            check_place(t, &target.said(0)?, mtu, 3 * mtu + 10);
            target.ack(t, 2)?;
            target.give_all(t, 3, 0, &whole[mtu..])?;
            t.expect_received(SES_RNDV_003, &posted, &whole)?;
            Ok(())
        }),
    rule("rendezvous/unexpected", "An unexpected rendezvous send fills a receive that is posted later")
        .checks(&[SES_MATCH_006, SES_RNDV_002, SES_MATCH_003, SES_GTD_002])
        .over(&[&POSTED, &TAGGED, &MODE, &START])
        .run(|t| {
            // The device may read the rest when the send arrives, or when a receive is posted.
            t.open_index()?;
            let whole = bytes(300);
            let (message, receive) = match t.value(&TAGGED) {
                true => (Message::new(Opcode::UET_RENDEZVOUS_TSEND).selector(0x70), tagged_room(400, 0x70)),
                false => (untagged(), room(400)),
            };
            // The device may also answer when it has read the rest.
            if let Some(answer) = send_offer(t, message, &whole, 32)? {
                let list = answer.response.map(|response| response.head().list());
                t.check(SES_MATCH_003, "the list", Some(List::UET_OVERFLOW), list);
                t.check(SES_GTD_002, "req of the ACK", AckRequest::REQ_CLEAR, answer.request);
            }
            let reads_early = t.value(&POSTED) == ReceivePostedAt::AfterRead
                && t.hear(t.patience(t.soon()), |seen| read_request(seen).is_some())?;
            let before = if reads_early { None } else { Some(t.posted(receive.clone())?) };
            let target = expect_read(t, SES_RNDV_002, 1)?;
            target.ack(t, 0)?;
            target.give_all(t, 1, 0, &whole[32..])?;
            let posted = match before {
                Some(posted) => posted,
                None => {
                    t.settle()?;
                    t.posted(receive)?
                }
            };
            t.expect_received(SES_MATCH_006, &posted, &whole)?;
            Ok(())
        }),
    rule("rendezvous/tagged", "A tagged rendezvous send fills the receive with its match bits")
        .checks(&[SES_MATCH_001, SES_RNDV_002])
        .needs(&[RENDEZVOUS_TSEND, RECEIVE])
        .run(|t| {
            let whole = bytes(300);
            let other = t.posted(tagged_room(400, 0x71))?;
            let posted = t.posted(tagged_room(400, 0x70))?;
            send_offer(t, Message::new(Opcode::UET_RENDEZVOUS_TSEND).selector(0x70), &whole, 32)?;
            let target = expect_read(t, SES_RNDV_002, 1)?;
            target.ack(t, 0)?;
            target.give_all(t, 1, 0, &whole[32..])?;
            t.expect_received(SES_MATCH_001, &posted, &whole)?;
            t.expect_waiting(SES_MATCH_001, &other)
        }),
    rule("rendezvous/delayed-read", "The target reads the rest later if it cannot start a read at once")
        .checks(&[SES_RNDV_002, SES_RNDV_003])
        .over(&[&WAITING, &MODE, &CARRIER, &START])
        .run(|t| {
            t.configure("max_operations", 1)?;
            let (waiting, whole) = (t.value(&WAITING), bytes(300));
            let mut posted = Vec::new();
            for _ in 0..waiting {
                posted.push(t.posted(room(400))?);
            }
            let other = t.peer_of_job(102)?;
            t.post(post(PostKind::Write, other, 64))?;
            let busy = Target::accept(t)?;
            for _ in 0..waiting {
                send_eager(t, untagged(), &whole, 32)?;
            }
            t.settle()?;
            busy.ack(t, 0)?;
            let mut target = expect_read(t, SES_RNDV_002, 1)?;
            for k in 0..waiting {
                target.collect(t, k + 1)?;
                target.ack(t, k)?;
                let rest = &whole[32..];
                target.give_due(t, k, target.data_header(k, rest.len(), rest.len(), 0)?, rest)?;
            }
            for posted in &posted {
                t.expect_received(SES_RNDV_003, posted, &whole)?;
            }
            Ok(())
        }),
    rule("rendezvous/read-refused", "A receive does not succeed if the read of the rest is refused")
        .checks(&[SES_RNDV_003, SES_RNDV_002])
        .run(|t| {
            let whole = bytes(300);
            let posted = t.posted(room(400))?;
            send_offer(t, untagged(), &whole, 32)?;
            let target = expect_read(t, SES_RNDV_002, 1)?;
            target.respond_error(t, 0, ReturnCode::BAD_MKEY)?;
            t.expect_not_well(SES_RNDV_003, &posted)
        }),
    rule("rendezvous/excess-eager-length", "A receive does not succeed if eager_length exceeds the message")
        .checks(&[WIRE_SES_014, ROB_LIFE_001])
        .run(|t| {
            let posted = t.posted(room(400))?;
            let mut session = t.session();
            let message = untagged().data(&bytes(100)).rendezvous(100, &offered_memory(), REST_OFFSET)?;
            let Some(ExtBuf::Rendezvous(ext)) = message.ext else { return Err(Stop::Failed) };
            let ext = Some(ext.edit().eager_length(200).done()?.into());
            session.ask(t, &Message { ext, ..message }.whole()?)?;
            t.expect_not_well(WIRE_SES_014, &posted)?;
            t.expect_life(ROB_LIFE_001)
        }),
    rule("rendezvous/spoofed-data", "Data from another address is not accepted as the rest of the message")
        .checks(&[SES_RNDV_003, SES_RNDV_002])
        .needs(&[RENDEZVOUS_SEND, RECEIVE, WRITE, TWO_ADDRESSES])
        .over(&[&MODE])
        .run(|t| {
            let whole = bytes(300);
            let posted = t.posted(room(400))?;
            let other = t.peer(1)?;
            let spoofer = Target::established(t, other, t.value(&MODE))?;
            send_offer(t, untagged(), &whole, 32)?;
            let target = expect_read(t, SES_RNDV_002, 1)?;
            target.ack(t, 0)?;
            spoofer.give(t, 0, target.data_header(0, 268, 268, 0)?, &[0x11; 268])?;
            t.expect_waiting(SES_RNDV_003, &posted)?;
            target.give_all(t, 1, 0, &whole[32..])?;
            t.expect_received(SES_RNDV_003, &posted, &whole).map(drop)
        }),
    rule("rendezvous/rest-with-error", "A receive does not succeed if its rest carries an error code")
        .checks(&[SES_RNDV_003, SES_RNDV_002])
        .over(&[&MODE])
        .run(|t| {
            let whole = bytes(300);
            let posted = t.posted(room(400))?;
            send_offer(t, untagged(), &whole, 32)?;
            let target = expect_read(t, SES_RNDV_002, 1)?;
            target.ack(t, 0)?;
            let header: SesBuf = match target.data_header(0, 268, 268, 0)? {
                SesBuf::ResponseData(data) => {
                    data.edit().head(|head| head.return_code(ReturnCode::UNCOR)).done()?.into()
                }
                SesBuf::ResponseDataSmall(data) => {
                    data.edit().head(|head| head.return_code(ReturnCode::UNCOR)).done()?.into()
                }
                other => other,
            };
            target.give(t, 0, header, &whole[32..])?;
            t.pause(t.soon())?;
            let ended = t.completion(posted.operation, Duration::ZERO)?.map(|it| it.status);
            let allowed = [None, Some(Status::Refused), Some(Status::Failed), Some(Status::Cancelled)];
            t.one_of(SES_RNDV_003, "the completion of the receive", &allowed, ended);
            Ok(())
        }),
];

fn bytes(length: usize) -> Vec<u8> {
    pattern(12).take(length).collect()
}

/// Returns the memory that the suite names in its extension header.
fn offered_memory() -> Region {
    Region {
        number: 0,
        job: 101,
        process: 0x345,
        index: 0x78,
        generation: 5,
        key: 0x1234_5678,
        message_id: 1,
        length: 1 << 20,
    }
}

/// Sends the message with `eager` bytes of payload. Returns when the device replies or reads the rest: their
/// order is open. Returns the reply, if it comes first.
fn send_offer(
    t: &mut Test<'_>,
    message: Message,
    whole: &[u8],
    eager: usize,
) -> Result<Option<Answer>, Stop> {
    let (mut session, psn) = send_eager(t, message, whole, eager)?;
    let pdc = session.pdc.clone();
    let answers = |seen: &RxPacket| seen.answers(&pdc, psn).is_some();
    let reads = |seen: &RxPacket| read_request(seen).is_some();
    t.hear(t.patience(t.soon()), |seen| answers(seen) || reads(seen))?;
    if t.hear(Duration::ZERO, reads)? && !t.hear(Duration::ZERO, answers)? {
        return Ok(None);
    }
    let answer = session.answer(t, psn)?;
    require_kept(&answer)?;
    Ok(Some(answer))
}

/// Sends the message with `eager` bytes of payload, and does not wait for a reply.
fn send_eager(
    t: &mut Test<'_>,
    message: Message,
    whole: &[u8],
    eager: usize,
) -> Result<(RequestSession, Psn), Stop> {
    let mut session = t.session();
    let message =
        message.data(&whole[..eager]).rendezvous(whole.len() as u32, &offered_memory(), REST_OFFSET)?;
    let psn = session.ask(t, &message.whole()?)?;
    Ok((session, psn))
}

/// Returns the first request of a read.
fn read_request(seen: &RxPacket) -> Option<uet_wire::pds::Request> {
    let request = seen.request().filter(|request| request.syn())?;
    let fields = crate::serve::said(&seen.uet())?;
    (fields.opcode() == Opcode::UET_READ).then_some(request)
}

/// Returns an untagged rendezvous send.
fn untagged() -> Message {
    Message::new(Opcode::UET_RENDEZVOUS_SEND)
}

/// Expects a read of the rest in `count` packets.
fn expect_read(t: &mut Test<'_>, requirement: &Requirement, count: u32) -> Result<Target, Stop> {
    let later = t.later();
    let (first, _) = t.expect(requirement, "a read of the rest", later, read_request)?;
    let mut target = Target::opened_by(t, first)?;
    // A target may send one read until an ACK shows that the address of its peer is not forged.
    target.serve(t, count, |target, packet| {
        (count > 1).then(|| target.acking(target.index(&packet.request)))
    })?;
    Ok(target)
}

/// Checks the address and the length of a read of the rest.
fn check_place(t: &mut Test<'_>, fields: &SesFields, eager: usize, total: usize) {
    let memory = offered_memory();
    let address =
        (fields.address.pid_on_fep(), fields.address.resource_index(), fields.address.ri_generation());
    let expected = (memory.process, memory.index, memory.generation);
    t.check(SES_RNDV_002, "pid_on_fep, resource_index, ri_generation", expected, address);
    // The extension header names no job, so the process is one of the job of the send.
    if fields.head.rel() {
        t.check(SES_RNDV_002, "job_id", memory.job, fields.address.job_id());
    }
    if fields.form != uet_control::Form::Small {
        t.check(SES_RNDV_002, "memory_key", Some(memory.key), fields.memory_key);
    }
    t.check(SES_RNDV_002, "buffer_offset", Some(REST_OFFSET), fields.buffer_offset);
    t.check(SES_RNDV_002, "bytes to read", (total - eager) as u32, fields.request_length);
}
