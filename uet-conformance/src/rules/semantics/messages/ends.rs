//! Completion of messages of every form: header data, delivery complete, zero bytes and buffers that are too
//! short (section 3.4.2).

use super::steps::*;
use crate::prelude::*;

const LONG_SEND: Axis<MessageForm> = axis("form").needing(&[SEND_FORM, TAGGED_FORM]);

const EMPTY_FORM: Axis<MessageForm> = axis("form").needing(&[
    WRITE_FORM,
    SEND_FORM,
    TAGGED_FORM,
    SHORT_FORMS[0],
    SHORT_FORMS[1],
    SHORT_FORMS[2],
    SHORT_FORMS[3],
    ("read", MessageForm::Read, &[READ]),
]);

/// Sends with every header.
const ANY_SEND: Axis<MessageForm> =
    axis("form").needing(&[SEND_FORM, TAGGED_FORM, SHORT_FORMS[1], SHORT_FORMS[2], SHORT_FORMS[3]]);

/// The length of a send and of its buffer, in bytes, as a function of the MTU.
const EXCESS: Axis<fn(usize) -> (usize, usize)> = axis("buffer").values(&[
    ("one-byte-short", |_| (100, 99)),
    ("half", |_| (100, 50)),
    ("empty", |_| (100, 0)),
    ("one-of-three-packets", |mtu| (3 * mtu, mtu + 1)),
    ("64K-plus-1", |mtu| (0x1_0000 + 2 * mtu, 0x1_0001)),
]);

/// True if the packets arrive in reverse order.
const REVERSED: Axis<bool> = axis("arrival").values(&[("in-order", false), ("reversed", true)]);

/// True if the receive is posted before the send.
const POSTED: Axis<bool> = axis("receive").values(&[("before", true), ("after", false)]);

/// The number of packets of a message.
const COUNT: Axis<usize> = axis("packets").values(&[("1", 1), ("3", 3)]);

/// The packet that arrives last.
const MISSING: Axis<usize> = axis("missing").values(&[("first", 0), ("middle", 1)]);

pub(super) const RULES: &[Rule] = &[
    rule("message-end/no-header-data", "A receive completes without header data if hd is 0")
        .checks(&[SES_CUT_005, SES_MATCH_006])
        .over(&[&LONG_SEND, &COUNT, &MODE])
        .run(|t| {
            let (form, count, mtu) = (t.value(&LONG_SEND), t.value(&COUNT), t.mtu());
            let length = (count - 1) * mtu + 30;
            let destination = destination(t, form, length)?;
            let whole = message(t, form, &destination, length)?;
            let mut parts = whole.parts(mtu)?;
            // The field may hold anything.
            parts[0] = parts[0].clone().edit(|std| std.header_data(0xdead_0000_0000_beef))?;
            let mut session = t.session();
            session.ask_all(t, &parts)?;
            let Destination::Receive(posted) = destination else { return Ok(()) };
            let completion = t.expect_received(SES_MATCH_006, &posted, &whole.data)?;
            t.one_of(SES_CUT_005, "header data", &[None, Some(Hex64(0))], completion.header_data);
            Ok(())
        }),
    rule("message-end/late-header-data", "Header data reaches the completion in any order of arrival")
        .checks(&[SES_CUT_005, SES_MATCH_006])
        .over(&[&LONG_SEND, &ORDER])
        .run(|t| {
            let (form, mtu) = (t.value(&LONG_SEND), t.mtu());
            let destination = destination(t, form, 3 * mtu)?;
            let whole = Message {
                header_data: Some(0xfeed_0000_0000_0bee),
                ..message(t, form, &destination, 2 * mtu + 7)?
            };
            let mut session = t.session();
            session.ask_in_order(t, &whole.parts(mtu)?, &t.value(&ORDER))?;
            let Destination::Receive(posted) = destination else { return Ok(()) };
            let completion = t.expect_received(SES_MATCH_006, &posted, &whole.data)?;
            t.check(SES_CUT_005, "header data", Some(Hex64(0xfeed_0000_0000_0bee)), completion.header_data);
            Ok(())
        }),
    rule("message-end/delivery-complete", "With dc, the last packet gets OK after all others have arrived")
        .checks(&[SES_RESP_005])
        .needs(&[RUD])
        .over(&[&LONG_FORM, &MISSING])
        .run(|t| {
            t.completes()?;
            let (form, missing, mtu) = (t.value(&LONG_FORM), t.value(&MISSING), t.mtu());
            let mut session = t.session();
            let other = destination(t, form, 8)?;
            let opening = session.ask(t, &message(t, form, &other, 0)?.named(77).whole()?)?;
            session.answer(t, opening)?;
            let destination = destination(t, form, 3 * mtu)?;
            let whole = Message { complete: true, ..message(t, form, &destination, 2 * mtu + 7)? };
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
            session.supports_completion(t, last)?;
            session.accepted(t, SES_RESP_005, last)?;
            match destination {
                Destination::Region(region, _) => t.check_memory(SES_RESP_005, &region, 0, &whole.data),
                Destination::Receive(posted) => {
                    t.expect_received(SES_RESP_005, &posted, &whole.data).map(drop)
                }
            }
        }),
    rule("message-end/long", "A send longer than 64 KiB fills its receive, posted before or after it")
        .checks(&[SES_MATCH_006])
        .needs(&[RUD])
        .over(&[&LONG_SEND, &REVERSED, &POSTED])
        .run(|t| {
            let (form, mtu) = (t.value(&LONG_SEND), t.mtu());
            let data: Vec<u8> = pattern(21).take(0x1_0000 + mtu + 9).collect();
            let (receive, whole) = match form {
                MessageForm::Tagged => (tagged_room(data.len() as u64, 0x7a6), Message::tagged(0x7a6, &data)),
                _ => (room(data.len() as u64), Message::send(&data)),
            };
            let before = if t.value(&POSTED) { Some(t.posted(receive.clone())?) } else { None };
            if before.is_none() {
                t.open_index()?;
            }
            let parts = whole.parts(mtu)?;
            let mut order: Vec<usize> = (0..parts.len()).collect();
            if t.value(&REVERSED) {
                order.reverse();
            }
            let mut session = t.session();
            let psns = session.ask_in_order(t, &parts, &order)?;
            let posted = match before {
                Some(posted) => posted,
                None => {
                    for psn in psns {
                        require_kept(&session.answer(t, psn)?)?;
                    }
                    t.posted(receive)?
                }
            };
            t.expect_received(SES_MATCH_006, &posted, &data).map(drop)
        }),
    rule("message-end/id-per-context", "Messages with one message_id on two contexts both arrive whole")
        .checks(&[SES_MATCH_006, SES_PLACE_001, SES_RESP_001])
        .over(&[&LONG_FORM, &MODE])
        .run(|t| {
            let (form, mtu) = (t.value(&LONG_FORM), t.mtu());
            let (first, second) = (destination(t, form, 3 * mtu)?, destination_at(t, form, 3 * mtu, 11)?);
            let one = message(t, form, &first, 2 * mtu + 7)?;
            let two = Message { index: 11, ..message(t, form, &second, mtu + 50)? };
            let (parts, others) = (one.parts(mtu)?, two.parts(mtu)?);
            let (mut session, mut other) = (t.session(), t.session());
            let mut psns = [Vec::new(), Vec::new()];
            for (k, part) in parts.iter().enumerate() {
                psns[0].push(session.ask(t, part)?);
                if let Some(part) = others.get(k) {
                    psns[1].push(other.ask(t, part)?);
                }
            }
            session.all_accepted(t, SES_RESP_001, &psns[0])?;
            other.all_accepted(t, SES_RESP_001, &psns[1])?;
            for (destination, whole) in [(first, one), (second, two)] {
                match destination {
                    Destination::Region(region, _) => {
                        t.expect_memory(SES_PLACE_001, &region, 0, &whole.data)?;
                    }
                    Destination::Receive(posted) => {
                        t.expect_received(SES_MATCH_006, &posted, &whole.data)?;
                    }
                }
            }
            Ok(())
        }),
    rule("message-end/empty", "A message of zero bytes is answered with OK and completes")
        .checks(&[SES_CUT_004])
        .over(&[&EMPTY_FORM, &MODE])
        .run(|t| {
            let form = t.value(&EMPTY_FORM);
            let destination = destination(t, form, 0)?;
            let part = single_packet(form, &message(t, form, &destination, 0)?)?;
            let mut session = t.session();
            let psn = session.ask(t, &part)?;
            session.accepted(t, SES_CUT_004, psn)?;
            match destination {
                Destination::Region(region, held) => t.check_memory(SES_CUT_004, &region, 0, &held),
                Destination::Receive(posted) => t.expect_received(SES_CUT_004, &posted, &[]).map(drop),
            }
        }),
    rule("message-end/truncated", "A send of any form longer than its buffer is truncated or gets TOO_LONG")
        .checks(&[SES_MATCH_005])
        .over(&[&ANY_SEND, &EXCESS, &MODE])
        .run(|t| {
            let (form, mtu) = (t.value(&ANY_SEND), t.mtu());
            let (length, fits) = t.value(&EXCESS)(mtu);
            let several = length > mtu;
            if several && !matches!(form, MessageForm::Send | MessageForm::Tagged) {
                return skip("the header allows only one packet");
            }
            let receive = match form {
                MessageForm::Tagged | MessageForm::TaggedMedium => tagged_room(fits as u64, 0x7a6),
                _ => room(fits as u64),
            };
            let posted = t.posted(receive)?;
            let destination = Destination::Receive(posted.clone());
            let whole = message(t, form, &destination, length)?;
            let mut session = t.session();
            let parts = if several { whole.parts(mtu)? } else { vec![single_packet(form, &whole)?] };
            let psns = session.ask_all(t, &parts)?;
            let mut last = None;
            for psn in psns {
                last = Some(session.answer(t, psn)?);
            }
            let Some(answer) = last else { return Ok(()) };
            if answer.code() == ReturnCode::TOO_LONG {
                return t.expect_not_well(SES_MATCH_005, &posted);
            }
            t.check(SES_MATCH_005, "the return code", ReturnCode::OK, answer.code());
            let length = answer.response.map(|response| response.modified_length());
            t.check(SES_MATCH_005, "modified_length", Some(fits as u32), length);
            t.expect_filled(SES_MATCH_005, &posted, &whole.data[..fits])
        }),
];
