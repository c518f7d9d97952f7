//! Ends of messages over every kind of message: given up, empty, with delivery complete, and without header
//! data (section 3.4.2).

use crate::prelude::*;
use crate::receives::PostedReceive;
use crate::{Part, RequestSession};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

/// The operation of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndedMessage {
    Write,
    WriteMedium,
    Read,
    Send,
    SendMedium,
    SendSmall,
    Tagged,
    TaggedMedium,
    Atomic,
    Fetch,
}

const WRITE_POINT: (&'static str, EndedMessage, &'static [Need]) = ("write", EndedMessage::Write, &[WRITE]);

const SEND_POINT: (&'static str, EndedMessage, &'static [Need]) =
    ("send", EndedMessage::Send, &[RECEIVE, SEND]);

const TAGGED_POINT: (&'static str, EndedMessage, &'static [Need]) =
    ("tagged", EndedMessage::Tagged, &[RECEIVE, TSEND]);

const MEDIUM_POINTS: [(&'static str, EndedMessage, &'static [Need]); 4] = [
    ("write-medium", EndedMessage::WriteMedium, &[WRITE]),
    ("send-medium", EndedMessage::SendMedium, &[RECEIVE, SEND]),
    ("send-small", EndedMessage::SendSmall, &[RECEIVE, SEND]),
    ("tagged-medium", EndedMessage::TaggedMedium, &[RECEIVE, TSEND]),
];

const KIND: Axis<EndedMessage> = axis("kind").needing(&[
    WRITE_POINT,
    SEND_POINT,
    TAGGED_POINT,
    ("read", EndedMessage::Read, &[READ]),
    ("atomic", EndedMessage::Atomic, &[ATOMIC]),
    ("fetch", EndedMessage::Fetch, &[ATOMIC, FETCH_ATOMIC]),
    MEDIUM_POINTS[0],
    MEDIUM_POINTS[1],
]);

const LONG_KIND: Axis<EndedMessage> = axis("kind").needing(&[WRITE_POINT, SEND_POINT, TAGGED_POINT]);

const SEND_KIND: Axis<EndedMessage> = axis("kind").needing(&[SEND_POINT, TAGGED_POINT]);

const EMPTY_KIND: Axis<EndedMessage> = axis("kind").needing(&[
    WRITE_POINT,
    SEND_POINT,
    TAGGED_POINT,
    MEDIUM_POINTS[0],
    MEDIUM_POINTS[1],
    MEDIUM_POINTS[2],
    MEDIUM_POINTS[3],
    ("read", EndedMessage::Read, &[READ]),
]);

/// Sends of one packet or more.
const SENT_KIND: Axis<EndedMessage> =
    axis("kind").needing(&[SEND_POINT, TAGGED_POINT, MEDIUM_POINTS[1], MEDIUM_POINTS[2], MEDIUM_POINTS[3]]);

/// Packets of the send, and the bytes that its buffer has for it.
const EXCESS: Axis<(usize, usize)> = axis("buffer").values(&[
    ("byte-less", (1, 99)),
    ("half", (1, 50)),
    ("empty", (1, 0)),
    ("packet-of-three", (3, 1)),
]);

/// The field that leads to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nothing {
    Job,
    Process,
    Index,
}

const NOTHING: Axis<Nothing> = axis("unknown").values(&[
    ("job", Nothing::Job),
    ("process", Nothing::Process),
    ("index", Nothing::Index),
]);

/// The packet with `ie`: the only one, or one of three.
const PLACE: Axis<Option<usize>> =
    axis("packet").values(&[("only", None), ("first", Some(0)), ("middle", Some(1)), ("last", Some(2))]);

/// Packets of a message.
const COUNT: Axis<usize> = axis("packets").values(&[("1", 1), ("3", 3)]);

/// The order of three packets.
const ORDER: Axis<[usize; 3]> = axis("order").values(&[
    ("in-order", [0, 1, 2]),
    ("first-last", [2, 1, 0]),
    ("first-second", [1, 0, 2]),
    ("last-first", [2, 0, 1]),
]);

/// The packet that is missing at first.
const FIRST: Axis<usize> = axis("missing").values(&[("first", 0), ("middle", 1)]);

/// The device's end of a message: memory, or a receive.
enum Object {
    Region(Region, Vec<u8>),
    Receive(PostedReceive),
}

pub(super) const RULES: &[Rule] = &[
    rule("message-end/initiator-error", "A packet with ie = 1 gets INITIATOR_ERR and changes no memory")
        .checks(&[SES_ERR_005, SES_ERR_006])
        .over(&[&KIND, &PLACE, &MODE])
        .run(|t| {
            let (kind, place, mtu) = (t.value(&KIND), t.value(&PLACE), t.mtu());
            let long = matches!(kind, EndedMessage::Write | EndedMessage::Send | EndedMessage::Tagged);
            let Some(place) = place.filter(|_| long) else {
                require(place.is_none(), "the message has one packet")?;
                let object = object(t, kind, 40)?;
                let part = only(kind, &message(t, kind, &object, 40)?)?;
                let mut session = t.session();
                let psn = session.ask(t, &with_ie(part)?)?;
                session.refused_as(t, SES_ERR_006, psn, &[ReturnCode::INITIATOR_ERR])?;
                return expect_untouched(t, &object, 0);
            };
            let object = object(t, kind, 3 * mtu)?;
            let parts = message(t, kind, &object, 3 * mtu)?.parts(mtu)?;
            let mut session = t.session();
            for part in &parts[..place] {
                let psn = session.ask(t, part)?;
                session.answer(t, psn)?;
            }
            let psn = session.ask(t, &with_ie(parts[place].clone())?)?;
            session.refused_as(t, SES_ERR_006, psn, &[ReturnCode::INITIATOR_ERR])?;
            expect_untouched(t, &object, place * mtu)
        }),
    rule("message-end/id-reuse", "The id of a message that ended with ie = 1 can name a new message")
        .checks(&[SES_RESP_001, SES_MATCH_006, SES_PLACE_001])
        .over(&[&LONG_KIND, &MODE])
        .run(|t| {
            let (kind, mtu) = (t.value(&LONG_KIND), t.mtu());
            let first = object(t, kind, 3 * mtu)?;
            let parts = message(t, kind, &first, 3 * mtu)?.parts(mtu)?;
            let mut session = t.session();
            let psn = session.ask(t, &parts[0])?;
            session.accepted(t, SES_RESP_001, psn)?;
            // The last packet of the message, so that its id is free.
            for part in [&parts[1], &parts[2]] {
                let psn = session.ask(t, &with_ie(part.clone())?)?;
                session.answer(t, psn)?;
            }
            let next = object(t, kind, 3 * mtu)?;
            expect_delivered(t, kind, &mut session, &next)
        }),
    rule("message-end/msg-error", "UET_MSG_ERROR ends a message and frees its id for another message")
        .checks(&[SES_ERR_007, SES_MATCH_006, SES_PLACE_001])
        .over(&[&LONG_KIND, &MODE])
        .run(|t| {
            let (kind, mtu) = (t.value(&LONG_KIND), t.mtu());
            let first = object(t, kind, 3 * mtu)?;
            let whole = message(t, kind, &first, 3 * mtu)?;
            let mut session = t.session();
            let psn = session.ask(t, &whole.parts(mtu)?[0])?;
            session.answer(t, psn)?;
            let error =
                Message { data: Vec::new(), ..whole.clone() }.opcode(Opcode::UET_MSG_ERROR).whole()?;
            let error = error.edit(|std| {
                let std = std.head(|head| head.som(false).eom(true));
                std.payload_length(0).message_offset(mtu as u32)
            })?;
            let psn = session.ask(t, &error)?;
            session.answer(t, psn)?;
            if let Object::Receive(posted) = &first {
                t.expect_not_well(SES_ERR_007, posted)?;
            }
            // A receive of the ended message may wait for another one.
            let next = object(t, kind, 3 * mtu)?;
            let again = message(t, kind, &next, mtu + 50)?;
            let psns = session.ask_all(t, &again.parts(mtu)?)?;
            session.all_accepted(t, SES_ERR_007, &psns)?;
            match (&first, &next) {
                (_, Object::Region(region, _)) => t.expect_memory(SES_PLACE_001, region, 0, &again.data),
                (Object::Receive(first), Object::Receive(next)) => {
                    let soon = t.soon();
                    let taken = t.completion(first.operation, soon)?;
                    let well = taken.is_some_and(|ended| ended.status == uet_control::Status::Ok);
                    t.expect_received(SES_MATCH_006, if well { first } else { next }, &again.data).map(drop)
                }
                _ => Ok(()),
            }
        }),
    rule(
        "message-end/no-header-data",
        "A completion has no header data if hd is 0, whatever the field holds",
    )
    .checks(&[SES_CUT_005, SES_MATCH_006])
    .over(&[&SEND_KIND, &COUNT, &MODE])
    .run(|t| {
        let (kind, count, mtu) = (t.value(&SEND_KIND), t.value(&COUNT), t.mtu());
        let length = (count - 1) * mtu + 30;
        let object = object(t, kind, length)?;
        let whole = message(t, kind, &object, length)?;
        let mut parts = whole.parts(mtu)?;
        // The field may hold anything.
        parts[0] = parts[0].clone().edit(|std| std.header_data(0xdead_0000_0000_beef))?;
        let mut session = t.session();
        session.ask_all(t, &parts)?;
        let Object::Receive(posted) = object else { return Ok(()) };
        let completion = t.expect_received(SES_MATCH_006, &posted, &whole.data)?;
        t.one_of(SES_CUT_005, "header data", &[None, Some(Hex64(0))], completion.header_data);
        Ok(())
    }),
    rule("message-end/late-header-data", "Header data reaches the completion in any order of arrival")
        .checks(&[SES_CUT_005, SES_MATCH_006])
        .over(&[&SEND_KIND, &ORDER])
        .run(|t| {
            let (kind, mtu) = (t.value(&SEND_KIND), t.mtu());
            let object = object(t, kind, 3 * mtu)?;
            let whole = Message {
                header_data: Some(0xfeed_0000_0000_0bee),
                ..message(t, kind, &object, 2 * mtu + 7)?
            };
            let mut session = t.session();
            session.ask_in_order(t, &whole.parts(mtu)?, &t.value(&ORDER))?;
            let Object::Receive(posted) = object else { return Ok(()) };
            let completion = t.expect_received(SES_MATCH_006, &posted, &whole.data)?;
            t.check(SES_CUT_005, "header data", Some(Hex64(0xfeed_0000_0000_0bee)), completion.header_data);
            Ok(())
        }),
    rule("message-end/delivery-complete", "With dc, the last packet gets OK after all others have arrived")
        .checks(&[SES_RESP_005])
        .needs(&[RUD])
        .over(&[&LONG_KIND, &FIRST])
        .run(|t| {
            let (kind, missing, mtu) = (t.value(&LONG_KIND), t.value(&FIRST), t.mtu());
            let mut session = t.session();
            let other = object(t, kind, 8)?;
            let opening = session.ask(t, &message(t, kind, &other, 0)?.named(77).whole()?)?;
            session.answer(t, opening)?;
            let object = object(t, kind, 3 * mtu)?;
            let whole = Message { complete: true, ..message(t, kind, &object, 2 * mtu + 7)? };
            let parts = whole.parts(mtu)?;
            let order: Vec<usize> = (0..3).filter(|n| *n != missing).collect();
            let psns = session.ask_in_order(t, &parts, &order)?;
            let (last, pdc) = (psns[2], session.pdc.clone());
            t.expect_none(
                SES_RESP_005,
                "no OK for the last packet while one is missing",
                t.soon(),
                |seen| {
                    let code = seen.response().map(|response| response.head().return_code());
                    seen.answers(&pdc, last).filter(|_| code == Some(ReturnCode::OK))
                },
            )?;
            session.ask_late(t, psns[missing], &parts[missing])?;
            session.accepted(t, SES_RESP_005, last)?;
            match object {
                Object::Region(region, _) => t.check_memory(SES_RESP_005, &region, 0, &whole.data),
                Object::Receive(posted) => t.expect_received(SES_RESP_005, &posted, &whole.data).map(drop),
            }
        }),
    rule("message-end/empty", "A message of zero bytes is answered with OK and completes")
        .checks(&[SES_CUT_004])
        .over(&[&EMPTY_KIND, &MODE])
        .run(|t| {
            let kind = t.value(&EMPTY_KIND);
            let object = object(t, kind, 0)?;
            let part = only(kind, &message(t, kind, &object, 0)?)?;
            let mut session = t.session();
            let psn = session.ask(t, &part)?;
            session.accepted(t, SES_CUT_004, psn)?;
            match object {
                Object::Region(region, held) => t.check_memory(SES_CUT_004, &region, 0, &held),
                Object::Receive(posted) => t.expect_received(SES_CUT_004, &posted, &[]).map(drop),
            }
        }),
    rule("message-end/truncated", "A send of any kind longer than its buffer is truncated or gets TOO_LONG")
        .checks(&[SES_MATCH_005])
        .over(&[&SENT_KIND, &EXCESS, &MODE])
        .run(|t| {
            let (kind, (count, buffer)) = (t.value(&SENT_KIND), t.value(&EXCESS));
            let mtu = t.mtu();
            if count > 1 && !matches!(kind, EndedMessage::Send | EndedMessage::Tagged) {
                return skip("the header is for one packet");
            }
            let (length, fits) = if count > 1 { (3 * mtu, mtu + 1) } else { (100, buffer) };
            let receive = match kind {
                EndedMessage::Tagged | EndedMessage::TaggedMedium => tagged_room(fits as u64, 0x7a6),
                _ => room(fits as u64),
            };
            let posted = t.posted(receive)?;
            let object = Object::Receive(posted.clone());
            let whole = message(t, kind, &object, length)?;
            let mut session = t.session();
            let parts = if count > 1 { whole.parts(mtu)? } else { vec![only(kind, &whole)?] };
            let psns = session.ask_all(t, &parts)?;
            let mut told = None;
            for psn in psns {
                told = Some(session.answer(t, psn)?);
            }
            let Some(answer) = told else { return Ok(()) };
            if answer.code() == ReturnCode::TOO_LONG {
                return t.expect_not_well(SES_MATCH_005, &posted);
            }
            t.check(SES_MATCH_005, "the return code", ReturnCode::OK, answer.code());
            let length = answer.response.map(|response| response.modified_length());
            t.check(SES_MATCH_005, "modified_length", Some(fits as u32), length);
            t.expect_filled(SES_MATCH_005, &posted, &whole.data[..fits])
        }),
    rule("message-end/refused", "All packets of a message to an unknown destination get the same error")
        .checks(&[SES_ERR_004, SES_GTD_001, SES_RESP_003])
        .over(&[&LONG_KIND, &NOTHING, &ORDER])
        .run(|t| {
            let (kind, mtu) = (t.value(&LONG_KIND), t.mtu());
            let object = object(t, kind, 3 * mtu)?;
            let whole = message(t, kind, &object, 2 * mtu + 7)?.named(0x7b3d);
            let whole = match t.value(&NOTHING) {
                Nothing::Job => Message { job: 0x77_7777, ..whole },
                Nothing::Process => Message { process: 0x777, ..whole },
                Nothing::Index => Message { index: 0x777, ..whole },
            };
            let job = whole.job;
            let parts = whole.parts(mtu)?;
            let mut session = t.session();
            let psns = session.ask_in_order(t, &parts, &t.value(&ORDER))?;
            let mut codes = Vec::new();
            for psn in psns {
                let answer = session.refused(t, SES_ERR_004, psn)?;
                t.check(SES_GTD_001, "req", uet_wire::registry::AckRequest::REQ_CLEAR, answer.request);
                let ids = answer.response.map(|response| (response.message_id(), response.job_id()));
                t.check(SES_RESP_003, "message_id and job_id", Some((0x7b3d, job)), ids);
                codes.push(answer.code());
            }
            for code in &codes[1..] {
                t.check(SES_ERR_004, "the code of each packet", codes[0], *code);
            }
            match &object {
                Object::Region(region, held) => t.check_memory(SES_ERR_004, region, 0, held),
                Object::Receive(posted) => t.expect_not_well(SES_ERR_004, posted),
            }
        }),
];

fn is_send(kind: EndedMessage) -> bool {
    use EndedMessage::*;
    matches!(kind, Send | SendMedium | SendSmall | Tagged | TaggedMedium)
}

fn bytes(length: usize) -> Vec<u8> {
    pattern(length as u32 + 3).take(length).collect()
}

/// The object of a message of this many bytes.
fn object(t: &mut Test<'_>, kind: EndedMessage, length: usize) -> Result<Object, Stop> {
    let length = length.max(64) as u64;
    Ok(match kind {
        EndedMessage::Tagged | EndedMessage::TaggedMedium => {
            Object::Receive(t.posted(tagged_room(length, 0x7a6))?)
        }
        kind if is_send(kind) => Object::Receive(t.posted(room(length))?),
        _ => {
            let (region, held) = t.patterned(length)?;
            Object::Region(region, held)
        }
    })
}

/// A message of this many bytes for the object.
fn message(t: &Test<'_>, kind: EndedMessage, object: &Object, length: usize) -> Result<Message, Stop> {
    let data = bytes(length);
    Ok(match (kind, object) {
        (EndedMessage::Tagged | EndedMessage::TaggedMedium, _) => Message::tagged(0x7a6, &data),
        (EndedMessage::Write | EndedMessage::WriteMedium, Object::Region(region, _)) => {
            Message { complete: false, ..Message::write(region, 0, &data) }
        }
        (EndedMessage::Read, Object::Region(region, _)) => Message::read(region, 0, length as u32),
        (EndedMessage::Atomic | EndedMessage::Fetch, Object::Region(region, _)) => {
            let sum = (AtomicOpcode::SUM, AtomicDatatype::UINT64);
            let message = Message::atomic(region, 0, sum, &t.operands(8, &[1]))?;
            match kind {
                EndedMessage::Fetch => message.opcode(Opcode::UET_FETCHING_ATOMIC),
                _ => message,
            }
        }
        _ => Message::send(&data),
    })
}

fn only(kind: EndedMessage, message: &Message) -> Result<Part, Stop> {
    Ok(match kind {
        EndedMessage::WriteMedium | EndedMessage::SendMedium | EndedMessage::TaggedMedium => {
            message.medium()?
        }
        EndedMessage::SendSmall => message.small()?,
        _ => message.whole()?,
    })
}

/// The packet with `ie`.
fn with_ie(part: Part) -> Result<Part, Stop> {
    use uet_wire::ses::SesBuf;
    let ses = match part.ses {
        SesBuf::Std(std) => std.edit().head(|head| head.ie(true)).done()?.into(),
        SesBuf::Medium(medium) => medium.edit().head(|head| head.ie(true)).done()?.into(),
        SesBuf::Small(small) => small.edit().head(|head| head.ie(true)).done()?.into(),
        other => other,
    };
    Ok(Part { ses, ..part })
}

/// Expects that the object is as it was from this byte on.
fn expect_untouched(t: &mut Test<'_>, object: &Object, from: usize) -> Outcome {
    match object {
        Object::Region(region, held) => {
            t.pause(t.soon())?;
            t.check_memory(SES_ERR_005, region, from as u64, &held[from..])
        }
        Object::Receive(posted) => t.expect_not_well(SES_ERR_005, posted),
    }
}

/// Sends a message of two packets and expects that it arrives.
fn expect_delivered(
    t: &mut Test<'_>,
    kind: EndedMessage,
    session: &mut RequestSession,
    object: &Object,
) -> Outcome {
    let mtu = t.mtu();
    let whole = message(t, kind, object, mtu + 50)?;
    for part in whole.parts(mtu)? {
        let psn = session.ask(t, &part)?;
        session.some_answer(t, psn)?;
    }
    match object {
        Object::Region(region, _) => t.expect_memory(SES_PLACE_001, region, 0, &whole.data),
        Object::Receive(posted) => t.expect_received(SES_MATCH_006, posted, &whole.data).map(drop),
    }
}
