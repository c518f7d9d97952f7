//! Requests and read data of 256 successive lengths, so that the length of a packet has every low byte
//! (section 3.4.2).

use super::steps::read_bytes;
use crate::prelude::*;
use crate::rudi;
use crate::rules::steps::FORM;
use uet_control::{Fill, Hex};

/// A send of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LengthForm {
    Send,
    SendMedium,
    SendSmall,
    Tagged,
    TaggedMedium,
}

const SEND_FORM: Axis<LengthForm> = axis("request").needing(&[
    ("send", LengthForm::Send, &[RECEIVE, SEND]),
    ("send-medium", LengthForm::SendMedium, &[RECEIVE, SEND]),
    ("send-small", LengthForm::SendSmall, &[RECEIVE, SEND]),
    ("tagged", LengthForm::Tagged, &[RECEIVE, TSEND]),
    ("tagged-medium", LengthForm::TaggedMedium, &[RECEIVE, TSEND]),
]);

const READ_FORM: Axis<Form> = axis("form").values(&[("std", Form::Std), ("medium", Form::Medium)]);

const POSTED: Axis<PostKind> = axis("kind").needing(&[
    ("write", PostKind::Write, &[WRITE]),
    ("send", PostKind::Send, &[SEND]),
    ("tagged", PostKind::Tsend, &[TSEND]),
]);

/// The number of lengths.
const LENGTHS: u32 = 256;

/// The number of requests that leave before the suite waits for their ACKs.
const ROUND: u32 = 32;

pub(super) const RULES: &[Rule] = &[
    rule("lengths/request", "Requests of every length are delivered and acknowledged")
        .checks(&[PDS_ACK_004, SES_PLACE_001])
        .over(&[&MODE, &CARRIER])
        .run(|t| {
            expect_each_acknowledged(t, |pdc, region, length| {
                Ok(pdc.request(length + 1).write(region, 0, &bytes(length))?)
            })
        }),
    rule("lengths/medium", "Requests of every length with a medium header are delivered and acknowledged")
        .checks(&[PDS_ACK_004, SES_PLACE_001])
        .needs(&[WRITE])
        .over(&[&MODE])
        .run(|t| {
            expect_each_acknowledged(t, |pdc, region, length| {
                let part = Message::write(region, 0, &bytes(length)).medium()?;
                Ok(Request { ext: part.ext, ..pdc.request(length + 1).ses(part.ses, &part.payload) })
            })
        }),
    rule("lengths/rudi", "RUDI requests of every length get a response")
        .checks(&[PDS_RUDI_002])
        .needs(&[RUDI, WRITE])
        .run(|t| {
            let key = Hex64(1 << 63 | 0xacce5);
            let (region, _) = t.exposed(1 << 14, |region| ExposeRegion { key, ..region })?;
            let pdc = t.initiate();
            t.send(&pdc, &rudi(u32::MAX, &pdc.request(0).write(&region, 0, &[1])?)?)?;
            let within = t.soon();
            t.need("a response to a RUDI request", within, |seen| {
                seen.rudi().filter(|response| response.pkt_id() == u32::MAX)
            })?;
            for first in (0..LENGTHS).step_by(ROUND as usize) {
                for length in first..first + ROUND {
                    t.send(&pdc, &rudi(length + 1, &pdc.request(0).write(&region, 0, &bytes(length))?)?)?;
                }
                let mut missing: Vec<u32> = (first..first + ROUND).collect();
                t.hear(t.patience(t.soon()), |seen| {
                    let answered = seen.rudi().map(|response| response.pkt_id());
                    missing.retain(|length| answered != Some(length + 1));
                    missing.is_empty()
                })?;
                let seen =
                    missing.first().map(|length| format!("no response to the request with {length} bytes"));
                let statement = format!("requests with {first} to {} bytes are answered", first + ROUND - 1);
                t.holds(PDS_RUDI_002, &statement, missing.is_empty(), seen.unwrap_or_default());
                if !missing.is_empty() {
                    return Err(Stop::Failed);
                }
                t.forget();
            }
            Ok(())
        }),
    rule("lengths/header-form", "Sends of every length fill a buffer in every header form")
        .checks(&[PDS_ACK_004, SES_MATCH_006])
        .over(&[&SEND_FORM, &MODE])
        .run(|t| {
            let form = t.value(&SEND_FORM);
            let tagged = matches!(form, LengthForm::Tagged | LengthForm::TaggedMedium);
            let mut session = t.session();
            for length in 0..LENGTHS {
                let posted =
                    t.posted(if tagged { tagged_room(LENGTHS.into(), 7) } else { room(LENGTHS.into()) })?;
                let data = bytes(length);
                let message = if tagged { Message::tagged(7, &data) } else { Message::send(&data) };
                let message = message.named(length as u16 + 1);
                let part = match form {
                    LengthForm::Send | LengthForm::Tagged => message.whole()?,
                    LengthForm::SendMedium | LengthForm::TaggedMedium => message.medium()?,
                    LengthForm::SendSmall => message.small()?,
                };
                let psn = session.ask(t, &part)?;
                session.accepted(t, PDS_ACK_004, psn)?;
                t.expect_received(SES_MATCH_006, &posted, &data)?;
            }
            Ok(())
        }),
    rule("lengths/read", "Reads of every length return all their bytes in every header form")
        .checks(&[SES_READ_001])
        .needs(&[READ])
        .over(&[&READ_FORM, &MODE])
        .run(|t| {
            let (region, held) = t.patterned(LENGTHS.into())?;
            let mut session = t.session();
            for length in 1..=LENGTHS {
                let message = Message::read(&region, 0, length).named(length as u16);
                let part = match t.value(&READ_FORM) {
                    Form::Std => message.whole()?,
                    _ => message.medium()?,
                };
                let psn = session.ask(t, &part)?;
                session.some_answer(t, psn)?;
                let pieces = session.data(t, SES_READ_001, length as usize)?;
                t.same_bytes(
                    SES_READ_001,
                    "the data of the region",
                    &held[..length as usize],
                    &read_bytes(&pieces),
                );
                session.clear_answered();
            }
            Ok(())
        }),
    rule("lengths/read-data", "Read data of every length completes the device's read")
        .checks(&[SES_DONE_001])
        .needs(&[READ])
        .over(&[&READ_FORM, &MODE])
        .run(|t| {
            let (form, mode) = (t.value(&READ_FORM), t.value(&MODE));
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            for (k, length) in (1..=LENGTHS).enumerate() {
                let read = Post {
                    mode,
                    form: Some(form),
                    want_data: true,
                    ..post(PostKind::Read, peer, length as usize)
                };
                let posted = t.post(read)?;
                target.collect(t, length + 1)?;
                target.ack(t, length)?;
                let data = bytes(length);
                let header = target.data_header(length, data.len(), data.len(), 0)?;
                target.give_due(t, k as u32, header, &data)?;
                let ended = t.ends_with(SES_DONE_001, posted, (Status::Ok, length.into()))?;
                let read = ended.and_then(|completion| completion.data).map_or(Vec::new(), |data| data.0);
                t.same_bytes(SES_DONE_001, "the data of the completion", &data, &read);
            }
            Ok(())
        }),
    rule("lengths/device-request", "Requests of the device carry their whole payload, for every length")
        .checks(&[SES_CUT_003])
        .over(&[&POSTED, &FORM, &MODE])
        .run(|t| {
            let (kind, form, mode) = (t.value(&POSTED), t.value(&FORM), t.value(&MODE));
            if kind == PostKind::Tsend && form == Form::Small {
                return skip("a small header has no match bits");
            }
            let (peer, mut target) = Target::with_peer(t, Mode::Rud)?;
            for (n, length) in (1..).zip(0..LENGTHS) {
                let data = bytes(length);
                let fill = Some(Fill::Hex(Hex(data.clone())));
                t.post(Post { mode, form: Some(form), fill, ..post(kind, peer, length as usize) })?;
                let request = target.expect_new(t, SES_CUT_003, n)?;
                t.check(SES_CUT_003, "request_length", length, request.said()?.request_length);
                t.same_bytes(SES_CUT_003, "the payload", &data, &request.payload());
                target.ack(t, n)?;
            }
            Ok(())
        }),
];

fn bytes(length: u32) -> Vec<u8> {
    pattern(77).take(length as usize).collect()
}

/// Sends a request of each length and expects its ACK, [`ROUND`] requests at a time. All write to the same
/// place.
fn expect_each_acknowledged(
    t: &mut Test<'_>,
    build: impl Fn(&Pdc, &Region, u32) -> Result<Request, Stop>,
) -> Outcome {
    let (pdc, region) = t.open()?;
    for first in (0..LENGTHS).step_by(ROUND as usize) {
        for length in first..first + ROUND {
            let request = build(&pdc, &region, length)?;
            t.request(&pdc, request)?;
        }
        let acked = |seen: &RxPacket, length: u32| seen.acknowledges(&pdc, pdc.psn(length + 1)).is_some();
        let mut missing: Vec<u32> = (first..first + ROUND).collect();
        t.hear(t.patience(t.soon()), |seen| {
            missing.retain(|length| !acked(seen, *length));
            missing.is_empty()
        })?;
        t.had_room(0)?;
        let seen = missing.first().map(|length| format!("no ACK of the request with {length} bytes"));
        let statement = format!("requests with {first} to {} bytes are acknowledged", first + ROUND - 1);
        t.holds(PDS_ACK_004, &statement, missing.is_empty(), seen.unwrap_or_default());
        if !missing.is_empty() {
            return Err(Stop::Failed);
        }
        t.forget();
    }
    t.expect_memory(SES_PLACE_001, &region, 0, &bytes(LENGTHS - 1))
}
