//! Rendezvous sends: the first bytes come with the request, and the target reads the rest (section 3.4.2).

use crate::RequestSession;
use crate::prelude::*;
use crate::serve::SesFields;
use uet_control::{Fill, Hex};
use uet_wire::ses::{ExtBuf, Rendezvous, SesBuf};

/// A read of a device's offer that is not the read of its rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Otherwise {
    /// Another address reads the rest.
    Stranger,
    /// Another address reads from the rest on, beyond the end of the memory.
    StrangerBeyond,
    /// The target reads the bytes that it has got.
    Front,
    /// The target reads the bytes that it has got, which are more than the rest.
    LongFront,
    /// The target reads as many bytes as the rest has, from some bytes before it on.
    Across,
    /// The target reads the first half of the rest twice.
    HalfTwice,
    /// The target reads from the place of the rest by another key.
    OtherKey,
    /// The target reads by the key of the rest from far beyond it.
    FarBeyond,
}

const OTHERWISE: Axis<Otherwise> = axis("read").values(&[
    ("stranger", Otherwise::Stranger),
    ("stranger-beyond", Otherwise::StrangerBeyond),
    ("front", Otherwise::Front),
    ("long-front", Otherwise::LongFront),
    ("across", Otherwise::Across),
    ("half-twice", Otherwise::HalfTwice),
    ("other-key", Otherwise::OtherKey),
    ("far-beyond", Otherwise::FarBeyond),
]);

/// When the receive for an unexpected send is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReceivePosted {
    BeforeRest,
    /// After the rest has been read, by a device that reads it at once.
    AfterRest,
}

const RECEIVE_STATE: Axis<ReceivePosted> = axis("receive")
    .values(&[("before-the-rest", ReceivePosted::BeforeRest), ("after-the-rest", ReceivePosted::AfterRest)]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[RENDEZVOUS_SEND, RECEIVE]).over(&[&MODE, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("rendezvous/reads-rest", "The target reads the rest from the place that the extension header names")
        .checks(&[SES_RNDV_002, SES_RNDV_003])
        .run(|t| {
            let whole = bytes(300);
            let posted = t.posted(room(400))?;
            offered(t, plain(), &whole, 32)?;
            let target = reading(t, SES_RNDV_002, 1)?;
            let said = target.said(0)?;
            right_place(t, &said, 32, 300);
            target.ack(t, 0)?;
            target.give_all(t, 1, 0, &whole[32..])?;
            t.expect_received(SES_RNDV_003, &posted, &whole)?;
            Ok(())
        }),
    rule("rendezvous/completion", "The receive does not complete before the target has read the rest")
        .checks(&[SES_RNDV_003, SES_RNDV_002])
        .run(|t| {
            let whole = bytes(300);
            let posted = t.posted(room(400))?;
            offered(t, plain(), &whole, 200)?;
            let target = reading(t, SES_RNDV_002, 1)?;
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
            offered(t, plain(), &whole, 0)?;
            let target = reading(t, SES_RNDV_002, 1)?;
            right_place(t, &target.said(0)?, 0, 300);
            target.ack(t, 0)?;
            target.give_all(t, 1, 0, &whole)?;
            t.expect_received(SES_RNDV_001, &posted, &whole)?;
            Ok(())
        }),
    rule("rendezvous/all-eager", "A rendezvous send with only eager data completes without a read")
        .checks(&[SES_RNDV_001, SES_RNDV_003])
        .run(|t| {
            let whole = bytes(300);
            let posted = t.posted(room(300))?;
            offered(t, plain(), &whole, 300)?;
            t.expect_received(SES_RNDV_003, &posted, &whole)?;
            t.expect_none(SES_RNDV_001, "no read", t.soon(), |seen| {
                crate::serve::said(&seen.uet()).filter(|said| said.opcode() == Opcode::UET_READ)
            })
        }),
    rule("rendezvous/long-rest", "The target reads a rest of several packets completely")
        .checks(&[SES_RNDV_002, SES_RNDV_003])
        .run(|t| {
            let mtu = t.mtu();
            let whole = bytes(3 * mtu + 10);
            let posted = t.posted(room(4 * mtu as u64))?;
            offered(t, plain(), &whole, mtu)?;
            let target = reading(t, SES_RNDV_002, 3)?;
            right_place(t, &target.said(0)?, mtu, 3 * mtu + 10);
            target.ack(t, 2)?;
            target.give_all(t, 3, 0, &whole[mtu..])?;
            t.expect_received(SES_RNDV_003, &posted, &whole)?;
            Ok(())
        }),
    rule("rendezvous/unexpected", "An unexpected rendezvous send fills a receive that is posted later")
        .checks(&[SES_MATCH_006, SES_RNDV_002])
        .over(&[&RECEIVE_STATE, &MODE, &START])
        .run(|t| {
            // The rest may be read when the send comes, or when there is a receive for it.
            t.open_index()?;
            let whole = bytes(300);
            offered(t, plain(), &whole, 32)?;
            let reads_early = t.value(&RECEIVE_STATE) == ReceivePosted::AfterRest
                && t.hear(t.patience(t.soon()), |seen| read_request(seen).is_some())?;
            let early = if reads_early { None } else { Some(t.posted(room(400))?) };
            let target = reading(t, SES_RNDV_002, 1)?;
            target.ack(t, 0)?;
            target.give_all(t, 1, 0, &whole[32..])?;
            let posted = match early {
                Some(posted) => posted,
                None => {
                    t.settle()?;
                    t.posted(room(400))?
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
            offered(t, Message::new(Opcode::UET_RENDEZVOUS_TSEND).selector(0x70), &whole, 32)?;
            let target = reading(t, SES_RNDV_002, 1)?;
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
                sent(t, plain(), &whole, 32)?;
            }
            t.settle()?;
            busy.ack(t, 0)?;
            let mut target = reading(t, SES_RNDV_002, 1)?;
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
            offered(t, plain(), &whole, 32)?;
            let target = reading(t, SES_RNDV_002, 1)?;
            target.respond_error(t, 0, ReturnCode::BAD_MKEY)?;
            t.expect_not_well(SES_RNDV_003, &posted)
        }),
    rule(
        "rendezvous/eager-length-too-long",
        "A receive does not succeed if eager_length exceeds the message",
    )
    .checks(&[WIRE_SES_014, ROB_LIFE_001])
    .run(|t| {
        let posted = t.posted(room(400))?;
        let mut session = t.session();
        let message = plain().data(&bytes(100)).rendezvous(100, &source(), PLACE)?;
        let Some(ExtBuf::Rendezvous(ext)) = message.ext else { return Err(Stop::Failed) };
        let ext = Some(ext.edit().eager_length(200).done()?.into());
        session.ask(t, &Message { ext, ..message }.whole()?)?;
        t.expect_not_well(WIRE_SES_014, &posted)?;
        t.expect_life(ROB_LIFE_001)
    }),
    rule("rendezvous/source-request", "The device's rendezvous send carries eager_length bytes of payload")
        .checks(&[SES_RNDV_001])
        .needs(&[RENDEZVOUS_SEND])
        .run(|t| {
            let (_, target, ext) = offer_of_device(t)?;
            let (said, payload) = (target.said(0)?, target.packet(0)?.payload());
            t.check(SES_RNDV_001, "opcode", Opcode::UET_RENDEZVOUS_SEND, said.opcode());
            t.check(SES_RNDV_001, "request_length", 300, said.request_length);
            let eager = ext.eager_length() as usize;
            t.check(SES_RNDV_001, "bytes that come at once", eager, payload.len());
            t.same_bytes(
                SES_RNDV_001,
                "the first bytes of the message",
                &bytes(300)[..eager.min(300)],
                &payload,
            );
            Ok(())
        }),
    rule("rendezvous/source-rest", "The extension header of the device names the memory that holds the rest")
        .checks(&[SES_RNDV_002])
        .needs(&[RENDEZVOUS_SEND])
        .run(|t| {
            let (_, target, ext) = offer_of_device(t)?;
            target.ack(t, 0)?;
            let (mut session, rest) = read_rest(t, &target, &ext)?;
            let pieces = session.data(t, SES_RNDV_002, rest.length as usize)?;
            let read = crate::assemble(&pieces, rest.length as usize);
            let expected = &bytes(300)[ext.eager_length() as usize..];
            t.same_bytes(SES_RNDV_002, "the rest of the message", expected, &read.unwrap_or_default());
            Ok(())
        }),
    rule("rendezvous/source-completion", "A rendezvous send of the device completes after its rest is read")
        .checks(&[SES_RNDV_003, SES_RNDV_002])
        .needs(&[RENDEZVOUS_SEND])
        .run(|t| {
            let (posted, target, ext) = offer_of_device(t)?;
            target.ack(t, 0)?;
            t.settle()?;
            t.is_open(SES_RNDV_003, posted)?;
            let (mut session, rest) = read_rest(t, &target, &ext)?;
            session.data(t, SES_RNDV_002, rest.length as usize)?;
            t.ends_with(SES_RNDV_003, posted, (Status::Ok, 300))?;
            Ok(())
        }),
    rule("rendezvous/source-short-rest", "A rest that fits into an ACK completes the device's send")
        .checks(&[SES_RNDV_003, SES_RNDV_002])
        .needs(&[RENDEZVOUS_SEND])
        .run(|t| {
            // The device may wait until it knows that data in an ACK has arrived.
            let (posted, target, ext) = offer_of(t, 58, 50)?;
            target.ack(t, 0)?;
            let (mut session, rest) = read_rest(t, &target, &ext)?;
            let pieces = session.data(t, SES_RNDV_002, rest.length as usize)?;
            for piece in pieces.iter().filter(|piece| piece.in_ack) {
                t.send(&session.pdc, &session.pdc.control(CtlType::CLEAR_COMMAND, Psn(0), piece.psn.0)?)?;
            }
            t.ends_with(SES_RNDV_003, posted, (Status::Ok, 58))?;
            Ok(())
        }),
    rule("rendezvous/source-long-rest", "The device's send completes when all packets of its rest are read")
        .checks(&[SES_RNDV_002, SES_RNDV_003])
        .needs(&[RENDEZVOUS_SEND])
        .over(&[&ORDER, &MODE, &START])
        .run(|t| {
            let (length, order) = (4 * t.mtu(), t.value(&ORDER));
            let (posted, target, ext) = offer_of(t, length, 50)?;
            target.ack(t, 0)?;
            let rest = rest_of(&target, &ext)?;
            let mut session = t.session();
            // An ordered context takes nothing above a gap.
            session.pdc.rod &= order.is_sorted();
            session.ask_in_order(t, &rest.parts(t.mtu())?, &order)?;
            let pieces = session.data(t, SES_RNDV_002, rest.length as usize)?;
            let read = crate::assemble(&pieces, rest.length as usize);
            let expected = &bytes(length)[ext.eager_length() as usize..];
            t.same_bytes(SES_RNDV_002, "the rest of the message", expected, &read.unwrap_or_default());
            t.ends_with(SES_RNDV_003, posted, (Status::Ok, length as u64))?;
            Ok(())
        }),
    rule("rendezvous/source-wrong-read", "Reads of other bytes or peers do not complete the device's send")
        .checks(&[SES_RNDV_002, SES_RNDV_003])
        .needs(&[RENDEZVOUS_SEND, TWO_ADDRESSES])
        .over(&[&OTHERWISE, &MODE])
        .run(|t| {
            let otherwise = t.value(&OTHERWISE);
            let eager = if otherwise == Otherwise::LongFront { 200 } else { 50 };
            let (posted, target, ext) = offer_of(t, 300, eager)?;
            target.ack(t, 0)?;
            let rest = rest_of(&target, &ext)?;
            let half = Message { length: rest.length / 2, ..rest.clone() };
            let (address, reads, last) = match otherwise {
                Otherwise::Stranger => (1, vec![rest.clone()], rest),
                Otherwise::StrangerBeyond => {
                    (1, vec![Message { length: t.mtu() as u32, ..rest.clone() }], rest)
                }
                Otherwise::Front | Otherwise::LongFront | Otherwise::Across => {
                    let (back, length) = match otherwise {
                        Otherwise::Across => (10, rest.length),
                        _ => (ext.eager_length(), ext.eager_length()),
                    };
                    let Some(offset) = rest.offset.checked_sub(back.into()) else {
                        return skip("the bytes sent at once are elsewhere");
                    };
                    (0, vec![Message { offset, length, ..rest.clone() }], rest)
                }
                Otherwise::OtherKey => {
                    (0, vec![Message { selector: rest.selector ^ 0x5a5a, ..rest.clone() }], rest)
                }
                Otherwise::FarBeyond => {
                    (0, vec![Message { offset: rest.offset ^ 1 << 40, ..rest.clone() }], rest)
                }
                Otherwise::HalfTwice => {
                    let offset = rest.offset + u64::from(half.length);
                    let last = Message { offset, length: rest.length - half.length, ..rest };
                    (0, vec![half.clone().named(2), half.named(3)], last)
                }
            };
            let mut other = RequestSession::new(t.initiate_from(address)?);
            for read in reads {
                let psn = other.ask(t, &read.whole()?)?;
                // The device may refuse it.
                if other.answer(t, psn)?.is_ok() {
                    other.data(t, SES_RNDV_002, read.length as usize)?;
                }
            }
            t.settle()?;
            t.is_open(SES_RNDV_003, posted)?;
            let mut session = t.session();
            session.ask(t, &last.whole()?)?;
            session.data(t, SES_RNDV_002, last.length as usize)?;
            t.ends_with(SES_RNDV_003, posted, (Status::Ok, 300))?;
            Ok(())
        }),
    rule("rendezvous/spoofed-data", "Data from another address is not accepted as the rest of the message")
        .checks(&[SES_RNDV_003, SES_RNDV_002])
        .needs(&[RENDEZVOUS_SEND, RECEIVE, WRITE, TWO_ADDRESSES])
        .over(&[&MODE])
        .run(|t| {
            let whole = bytes(300);
            let posted = t.posted(room(400))?;
            let other = t.peer(1)?;
            let stranger = Target::established(t, other, t.value(&MODE))?;
            offered(t, plain(), &whole, 32)?;
            let target = reading(t, SES_RNDV_002, 1)?;
            target.ack(t, 0)?;
            stranger.give(t, 0, target.data_header(0, 268, 268, 0)?, &[0x11; 268])?;
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
            offered(t, plain(), &whole, 32)?;
            let target = reading(t, SES_RNDV_002, 1)?;
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

/// Where the suite says that the rest is.
fn source() -> Region {
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

/// Where in it.
const PLACE: u64 = 0x4000;

/// Offers a message of which `eager` bytes come at once. Returns when the device answers, or reads the rest
/// first: the sources leave the order open.
fn offered(t: &mut Test<'_>, message: Message, whole: &[u8], eager: usize) -> Result<RequestSession, Stop> {
    let (mut session, psn) = sent(t, message, whole, eager)?;
    let pdc = session.pdc.clone();
    let answers = |seen: &RxPacket| seen.answers(&pdc, psn).is_some();
    t.hear(t.patience(t.soon()), |seen| answers(seen) || read_request(seen).is_some())?;
    let first = |seen: &RxPacket| read_request(seen).is_some();
    if t.hear(Duration::ZERO, first)? && !t.hear(Duration::ZERO, answers)? {
        return Ok(session);
    }
    match session.answer(t, psn)?.code() {
        ReturnCode::NO_MATCH => skip("the device keeps no unexpected sends"),
        _ => Ok(session),
    }
}

/// Sends the offer without waiting for an answer.
fn sent(
    t: &mut Test<'_>,
    message: Message,
    whole: &[u8],
    eager: usize,
) -> Result<(RequestSession, Psn), Stop> {
    let mut session = t.session();
    let message = message.data(&whole[..eager]).rendezvous(whole.len() as u32, &source(), PLACE)?;
    let psn = session.ask(t, &message.whole()?)?;
    Ok((session, psn))
}

/// Returns the first request of a read.
fn read_request(seen: &RxPacket) -> Option<uet_wire::pds::Request> {
    let request = seen.request().filter(|request| request.syn())?;
    let said = crate::serve::said(&seen.uet())?;
    (said.opcode() == Opcode::UET_READ).then_some(request)
}

fn plain() -> Message {
    Message::new(Opcode::UET_RENDEZVOUS_SEND)
}

/// The device's read of the rest, of `count` packets.
fn reading(t: &mut Test<'_>, requirement: &Requirement, count: u32) -> Result<Target, Stop> {
    let later = t.later();
    let (first, _) = t.expect(requirement, "a read of the rest", later, read_request)?;
    let mut target = Target::opened_by(t, first)?;
    target.collect(t, count)?;
    Ok(target)
}

/// Expects that a read packet asks for the right place.
fn right_place(t: &mut Test<'_>, said: &SesFields, eager: usize, total: usize) {
    let source = source();
    let address = (said.address.pid_on_fep(), said.address.resource_index(), said.address.ri_generation());
    let expected = (source.process, source.index, source.generation);
    t.check(SES_RNDV_002, "pid_on_fep, resource_index, ri_generation", expected, address);
    if said.form != uet_control::Form::Small {
        t.check(SES_RNDV_002, "memory_key", Some(source.key), said.memory_key);
    }
    t.check(SES_RNDV_002, "buffer_offset", Some(PLACE), said.buffer_offset);
    t.check(SES_RNDV_002, "bytes that it asks for", (total - eager) as u32, said.request_length);
}

/// The number of messages whose rest waits.
const WAITING: Axis<u32> = axis("waiting").values(&[("1", 1), ("3", 3)]);

/// The device offers 300 bytes, 50 of them at once.
fn offer_of_device(t: &mut Test<'_>) -> Result<(Operated, Target, Rendezvous), Stop> {
    offer_of(t, 300, 50)
}

/// As above, with so many bytes and so many of them at once.
fn offer_of(t: &mut Test<'_>, length: usize, eager: u64) -> Result<(Operated, Target, Rendezvous), Stop> {
    let peer = t.peer(0)?;
    let fill = Some(Fill::Hex(Hex(bytes(length))));
    let posted = t.post(Post { eager: Some(eager), fill, ..post(PostKind::RendezvousSend, peer, length) })?;
    let target = Target::accept(t)?;
    let Some(ExtBuf::Rendezvous(ext)) = target.said(0)?.ext else {
        let seen = target.packet(0)?.seen.uet().to_string();
        t.holds(SES_RNDV_001, "a rendezvous send has its extension header", false, seen);
        return Err(Stop::Failed);
    };
    require((ext.eager_length() as usize) < length, "the device sends all at once")?;
    Ok((posted, target, ext))
}

/// The read of the rest of the device's offer.
fn rest_of(target: &Target, ext: &Rendezvous) -> Result<Message, Stop> {
    let said = target.said(0)?;
    Ok(Message {
        relative: said.head.rel(),
        job: said.address.job_id(),
        process: ext.read_pid_on_fep(),
        index: ext.read_resource_index(),
        generation: ext.read_ri_generation(),
        selector: ext.read_memory_key(),
        offset: ext.read_offset(),
        length: said.request_length - ext.eager_length(),
        ..Message::new(Opcode::UET_READ)
    })
}

/// Reads the rest of the device's offer.
fn read_rest(t: &mut Test<'_>, target: &Target, ext: &Rendezvous) -> Result<(RequestSession, Message), Stop> {
    let rest = rest_of(target, ext)?;
    let mut session = t.session();
    session.ask_all(t, &rest.parts(t.mtu())?)?;
    Ok((session, rest))
}

/// The order in which the read requests of the rest arrive.
const ORDER: Axis<[usize; 4]> = axis("order").needing(&[
    ("sent", [0, 1, 2, 3], &[]),
    ("reversed", [3, 2, 1, 0], &[RUD]),
    ("second-late", [0, 2, 1, 3], &[RUD]),
    ("second-last", [0, 2, 3, 1], &[RUD]),
    ("alternating", [3, 1, 2, 0], &[RUD]),
]);
