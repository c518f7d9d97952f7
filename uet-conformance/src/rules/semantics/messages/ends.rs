//! Completion of messages of every kind: header data, delivery complete, zero bytes and buffers that are too
//! short (section 3.4.2).

use super::steps::*;
use crate::prelude::*;

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

/// Packets of a message.
const COUNT: Axis<usize> = axis("packets").values(&[("1", 1), ("3", 3)]);

/// The packet that is missing at first.
const FIRST: Axis<usize> = axis("missing").values(&[("first", 0), ("middle", 1)]);

pub(super) const RULES: &[Rule] = &[
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
];
