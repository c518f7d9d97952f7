//! Messages that end early: the initiator aborts them, or the target refuses them (section 3.4.2).

use super::steps::*;
use crate::prelude::*;
use crate::{Part, RequestSession};

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
