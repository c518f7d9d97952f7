//! Messages that end early: the initiator aborts them, or the target refuses them (section 3.4.2).

use super::steps::*;
use crate::prelude::*;
use crate::{Part, RequestSession};
use uet_wire::ses::Ses;

const ANY_FORM: Axis<MessageForm> = axis("form").needing(&[
    WRITE_FORM,
    SEND_FORM,
    TAGGED_FORM,
    ("read", MessageForm::Read, &[READ]),
    ("atomic", MessageForm::Atomic, &[ATOMIC]),
    ("fetch", MessageForm::Fetch, &[ATOMIC, FETCH_ATOMIC]),
    SHORT_FORMS[0],
    SHORT_FORMS[1],
]);

/// Forms that allow several packets, with or without a payload.
const SEGMENTED_FORM: Axis<MessageForm> =
    axis("form").needing(&[WRITE_FORM, SEND_FORM, TAGGED_FORM, ("read", MessageForm::Read, &[READ])]);

/// The address field with an unknown value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnknownField {
    Job,
    Process,
    Index,
}

const UNKNOWN: Axis<UnknownField> = axis("unknown").values(&[
    ("job", UnknownField::Job),
    ("process", UnknownField::Process),
    ("index", UnknownField::Index),
]);

/// True if a message ends early by `ie`; otherwise it ends by UET_MSG_ERROR.
const ABORTED: Axis<bool> = axis("end").values(&[("ie", true), ("msg-error", false)]);

/// The packet with `ie`: the only one, or one of three.
const ABORTING: Axis<Option<usize>> =
    axis("packet").values(&[("only", None), ("first", Some(0)), ("middle", Some(1)), ("last", Some(2))]);

pub(super) const RULES: &[Rule] = &[
    rule("message-end/initiator-error", "A packet with ie = 1 gets INITIATOR_ERR and changes no memory")
        .checks(&[SES_ERR_005, SES_ERR_006])
        .over(&[&ANY_FORM, &ABORTING, &MODE])
        .run(|t| {
            let (form, aborting, mtu) = (t.value(&ANY_FORM), t.value(&ABORTING), t.mtu());
            let long = matches!(
                form,
                MessageForm::Write | MessageForm::Send | MessageForm::Tagged | MessageForm::Read
            );
            let Some(aborting) = aborting.filter(|_| long) else {
                require(aborting.is_none(), "the message has one packet")?;
                let destination = destination(t, form, 40)?;
                let part = single_packet(form, &message(t, form, &destination, 40)?)?;
                let mut session = t.session();
                let psn = session.ask(t, &with_ie(part)?)?;
                session.refused_as(t, SES_ERR_006, psn, &[ReturnCode::INITIATOR_ERR])?;
                return expect_untouched(t, &destination, 0);
            };
            let destination = destination(t, form, 3 * mtu)?;
            let parts = message(t, form, &destination, 3 * mtu)?.parts(mtu)?;
            let mut session = t.session();
            for part in &parts[..aborting] {
                let psn = session.ask(t, part)?;
                session.answer(t, psn)?;
            }
            let psn = session.ask(t, &with_ie(parts[aborting].clone())?)?;
            session.refused_as(t, SES_ERR_006, psn, &[ReturnCode::INITIATOR_ERR])?;
            if form == MessageForm::Read {
                expect_no_data(t, &session, aborting * mtu)?;
            }
            expect_untouched(t, &destination, aborting * mtu)
        }),
    rule("message-end/id-reuse", "The id of a message that ended with ie = 1 can name a new message")
        .checks(&[SES_RESP_001, SES_MATCH_006, SES_PLACE_001])
        .over(&[&LONG_FORM, &MODE])
        .run(|t| {
            let (form, mtu) = (t.value(&LONG_FORM), t.mtu());
            let first = destination(t, form, 3 * mtu)?;
            let parts = message(t, form, &first, 3 * mtu)?.parts(mtu)?;
            let mut session = t.session();
            let psn = session.ask(t, &parts[0])?;
            session.accepted(t, SES_RESP_001, psn)?;
            // The last packet of the message frees its id.
            for part in [&parts[1], &parts[2]] {
                let psn = session.ask(t, &with_ie(part.clone())?)?;
                session.answer(t, psn)?;
            }
            let next = destination(t, form, 3 * mtu)?;
            expect_delivered(t, form, &mut session, &next)
        }),
    rule("message-end/msg-error", "UET_MSG_ERROR ends a message and frees its id for another message")
        .checks(&[SES_ERR_007, SES_MATCH_006, SES_PLACE_001])
        .over(&[&LONG_FORM, &MODE])
        .run(|t| {
            let (form, mtu) = (t.value(&LONG_FORM), t.mtu());
            let first = destination(t, form, 3 * mtu)?;
            let whole = message(t, form, &first, 3 * mtu)?;
            let mut session = t.session();
            let psn = session.ask(t, &whole.parts(mtu)?[0])?;
            session.answer(t, psn)?;
            let psn = session.ask(t, &message_error(&whole, mtu)?)?;
            session.answer(t, psn)?;
            if let Destination::Receive(posted) = &first {
                t.expect_not_well(SES_ERR_007, posted)?;
            }
            // The receive of the ended message may take the next one.
            let next = destination(t, form, 3 * mtu)?;
            let second = message(t, form, &next, mtu + 50)?;
            let psns = session.ask_all(t, &second.parts(mtu)?)?;
            session.all_accepted(t, SES_ERR_007, &psns)?;
            expect_taken(t, &first, &next, &second.data)
        }),
    rule("message-end/other-message", "The early end of a message leaves another one of its context alone")
        .checks(&[SES_ERR_005, SES_ERR_007, SES_MATCH_006, SES_PLACE_001])
        .needs(&[RUD])
        .over(&[&LONG_FORM, &ABORTED])
        .run(|t| {
            let (form, aborted, mtu) = (t.value(&LONG_FORM), t.value(&ABORTED), t.mtu());
            let requirement = if aborted { SES_ERR_005 } else { SES_ERR_007 };
            let first = destination(t, form, 2 * mtu)?;
            let next = destination(t, form, 2 * mtu)?;
            let ended = message(t, form, &first, 2 * mtu)?;
            let other = message(t, form, &next, mtu + 50)?.named(77);
            let end = if aborted { with_ie(ended.part(mtu, 1)?)? } else { message_error(&ended, mtu)? };
            let parts = [ended.part(mtu, 0)?, end, other.part(mtu, 0)?, other.part(mtu, 1)?];
            let mut session = t.session();
            let psns = session.ask_in_order(t, &parts, &[0])?;
            session.answer(t, psns[0])?;
            // The end of the first message arrives in the middle of the other one.
            for n in [2, 1, 3] {
                session.ask_late(t, psns[n], &parts[n])?;
            }
            session.all_accepted(t, requirement, &psns[2..])?;
            expect_taken(t, &first, &next, &other.data)
        }),
    rule("message-end/refused", "All packets of a message to an unknown destination get the same error")
        .checks(&[SES_ERR_004, SES_GTD_001, SES_RESP_003])
        .over(&[&SEGMENTED_FORM, &UNKNOWN, &ORDER])
        .run(|t| {
            let (form, mtu) = (t.value(&SEGMENTED_FORM), t.mtu());
            let destination = destination(t, form, 3 * mtu)?;
            let whole = message(t, form, &destination, 2 * mtu + 7)?.named(0x7b3d);
            let whole = match t.value(&UNKNOWN) {
                UnknownField::Job => Message { job: 0x77_7777, ..whole },
                UnknownField::Process => Message { process: 0x777, ..whole },
                UnknownField::Index => Message { index: 0x777, ..whole },
            };
            let job = whole.job;
            let parts = whole.parts(mtu)?;
            let mut session = t.session();
            let psns = session.ask_in_order(t, &parts, &t.value(&ORDER))?;
            let mut codes = Vec::new();
            for psn in psns {
                let answer = session.refused(t, SES_ERR_004, psn)?;
                t.check(SES_GTD_001, "req", AckRequest::REQ_CLEAR, answer.request);
                let ids = answer.response.map(|response| (response.message_id(), response.job_id()));
                t.check(SES_RESP_003, "message_id and job_id", Some((0x7b3d, job)), ids);
                codes.push(answer.code());
            }
            for code in &codes[1..] {
                t.check(SES_ERR_004, "the code of each packet", codes[0], *code);
            }
            match &destination {
                Destination::Region(region, held) => t.check_memory(SES_ERR_004, region, 0, held),
                Destination::Receive(posted) => t.expect_not_well(SES_ERR_004, posted),
            }
        }),
];

/// Returns the packet with `ie` set.
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

/// Returns the UET_MSG_ERROR that ends a message after its first packet.
fn message_error(whole: &Message, mtu: usize) -> Result<Part, Stop> {
    let error = Message { data: Vec::new(), ..whole.clone() }.opcode(Opcode::UET_MSG_ERROR).whole()?;
    error.edit(|std| {
        let std = std.head(|head| head.som(false).eom(true));
        std.payload_length(0).message_offset(mtu as u32)
    })
}

/// Expects the delivery of a message to `next`, or to the receive of the message before it, which has ended
/// early.
fn expect_taken(t: &mut Test<'_>, first: &Destination, next: &Destination, data: &[u8]) -> Outcome {
    match (first, next) {
        (_, Destination::Region(region, _)) => t.expect_memory(SES_PLACE_001, region, 0, data),
        (Destination::Receive(first), Destination::Receive(next)) => {
            let soon = t.soon();
            let completion = t.completion(first.operation, soon)?;
            let reused = completion.is_some_and(|completion| completion.status == Status::Ok);
            t.expect_received(SES_MATCH_006, if reused { first } else { next }, data).map(drop)
        }
        _ => Ok(()),
    }
}

/// Expects no data of a read from this byte on.
fn expect_no_data(t: &mut Test<'_>, session: &RequestSession, from: usize) -> Outcome {
    let pdc = session.pdc.clone();
    t.expect_none(SES_ERR_005, "no data of the aborted part", t.soon(), |seen| match seen.uet().ses {
        Some(Ses::ResponseData(header)) if header.message_offset() as usize >= from => {
            seen.is_for(&pdc).then_some(())
        }
        _ => None,
    })
}

/// Expects the destination to be unchanged from this byte on.
fn expect_untouched(t: &mut Test<'_>, destination: &Destination, from: usize) -> Outcome {
    match destination {
        Destination::Region(region, held) => {
            t.pause(t.soon())?;
            t.check_memory(SES_ERR_005, region, from as u64, &held[from..])
        }
        Destination::Receive(posted) => t.expect_not_well(SES_ERR_005, posted),
    }
}

/// Sends a message of two packets and expects its delivery.
fn expect_delivered(
    t: &mut Test<'_>,
    form: MessageForm,
    session: &mut RequestSession,
    destination: &Destination,
) -> Outcome {
    let mtu = t.mtu();
    let whole = message(t, form, destination, mtu + 50)?;
    for part in whole.parts(mtu)? {
        let psn = session.ask(t, &part)?;
        session.some_answer(t, psn)?;
    }
    match destination {
        Destination::Region(region, _) => t.expect_memory(SES_PLACE_001, region, 0, &whole.data),
        Destination::Receive(posted) => t.expect_received(SES_MATCH_006, posted, &whole.data).map(drop),
    }
}
