//! Resources of unexpected messages, which every end of a message frees (sections 3.4.1 and 3.4.3.3).

use crate::prelude::*;
use crate::{Part, RequestSession};
use uet_control::PostReceive;
use uet_wire::registry::List;

/// How an unexpected message of several packets ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnexpectedEnd {
    /// By `ie` in its first packet.
    IeFirst,
    /// By `ie` in its second packet.
    IeSecond,
    /// By `ie` in its last packet.
    IeLast,
    /// By UET_MSG_ERROR after its first packet.
    MessageError,
    /// By UET_MSG_ERROR after its second packet.
    MessageErrorSecond,
    /// In a receive that is posted after all its packets.
    Received,
    /// In a receive that is posted between its packets.
    ReceivedMidway,
    /// In a receive that is too short for it.
    Truncated,
}

const END: Axis<UnexpectedEnd> = axis("end").values(&[
    ("ie-second", UnexpectedEnd::IeSecond),
    ("ie-first", UnexpectedEnd::IeFirst),
    ("ie-last", UnexpectedEnd::IeLast),
    ("message-error", UnexpectedEnd::MessageError),
    ("message-error-second", UnexpectedEnd::MessageErrorSecond),
    ("received", UnexpectedEnd::Received),
    ("received-midway", UnexpectedEnd::ReceivedMidway),
    ("truncated", UnexpectedEnd::Truncated),
]);

/// The parameter that limits the device to one such message.
const POOL: Axis<&str> =
    axis("pool").values(&[("count", "max_unexpected"), ("bytes", "max_unexpected_bytes")]);

const TAGGED: Axis<bool> = axis("opcode").needing(&[("send", false, &[]), ("tagged", true, &[TSEND])]);

/// The match bits of tagged sends.
const MATCH_BITS: u64 = 0x70;

pub(super) const RULES: &[Rule] =
    &[rule("resources/unexpected", "An unexpected message frees its resources, however it ends")
        .checks(&[SES_MATCH_007, SES_MATCH_003, SES_MATCH_006])
        .needs(&[SEND, RECEIVE, PARAMETERS])
        .over(&[&END, &POOL, &TAGGED, &MODE])
        .run(|t| {
            // More messages than the pool holds end one after the other. Then the device keeps and delivers
            // another one.
            let (pool, data) = (t.value(&POOL), pattern(9).take(2 * t.mtu() + 9).collect::<Vec<u8>>());
            let most = if pool == "max_unexpected" { 1 } else { data.len() };
            t.configure(pool, most)?;
            t.open_index()?;
            let mut session = t.session();
            for id in 1..=3 {
                end_message(t, &mut session, id, &data)?;
            }
            let next = &data[..40];
            let psn = session.ask(t, &message(t, 7, next).whole()?)?;
            let answer = session.answer(t, psn)?;
            t.check(SES_MATCH_007, "the return code of the next message", ReturnCode::OK, answer.code());
            let list = answer.response.map(|response| response.head().list());
            if answer.code() != ReturnCode::OK {
                return Err(Stop::Failed);
            }
            t.check(SES_MATCH_003, "the list of the next message", Some(List::UET_OVERFLOW), list);
            let posted = t.posted(receive(t, 64))?;
            t.expect_received(SES_MATCH_006, &posted, next).map(drop)
        })];

/// Returns a send with the opcode of this instance.
fn message(t: &Test<'_>, id: u16, data: &[u8]) -> Message {
    let message = if t.value(&TAGGED) { Message::tagged(MATCH_BITS, data) } else { Message::send(data) };
    message.named(id)
}

/// Returns a receive that matches such a send.
fn receive(t: &Test<'_>, length: usize) -> PostReceive {
    if t.value(&TAGGED) { tagged_room(length as u64, MATCH_BITS) } else { room(length as u64) }
}

/// Sends an unexpected message and ends it in the way of this instance.
fn end_message(t: &mut Test<'_>, session: &mut RequestSession, id: u16, data: &[u8]) -> Outcome {
    let (end, mtu) = (t.value(&END), t.mtu());
    let mut posted = None;
    for (k, part) in packets(&message(t, id, data), end, mtu)?.iter().enumerate() {
        let psn = session.ask(t, part)?;
        match session.answer(t, psn)?.code() {
            ReturnCode::NO_MATCH if (id, k) == (1, 0) => {
                return skip("the device keeps no unexpected sends");
            }
            ReturnCode::NO_MATCH => {
                t.check(SES_MATCH_007, "the return code", ReturnCode::OK, ReturnCode::NO_MATCH);
                return Err(Stop::Failed);
            }
            _ => {}
        }
        if k == 0 && end == UnexpectedEnd::ReceivedMidway {
            posted = Some(t.posted(receive(t, data.len()))?);
        }
    }
    match end {
        UnexpectedEnd::Received => posted = Some(t.posted(receive(t, data.len()))?),
        // Open: whether a device truncates the message or refuses it.
        UnexpectedEnd::Truncated => {
            let short = t.posted(receive(t, mtu + 1))?;
            t.pause(t.soon())?;
            let ended = t.completion(short.operation, Duration::ZERO)?.is_some();
            require(ended, "a receive that is too short does not complete")?;
        }
        _ => {}
    }
    match posted {
        Some(posted) => t.expect_received(SES_MATCH_006, &posted, data).map(drop),
        None => Ok(()),
    }
}

/// Returns the packets of a message that ends in this way.
fn packets(message: &Message, end: UnexpectedEnd, mtu: usize) -> Result<Vec<Part>, Stop> {
    let mut parts = message.parts(mtu)?;
    let ie = match end {
        UnexpectedEnd::IeFirst => Some(0),
        UnexpectedEnd::IeSecond => Some(1),
        UnexpectedEnd::IeLast => Some(2),
        _ => None,
    };
    if let Some(k) = ie {
        parts[k] = parts[k].clone().edit(|std| std.head(|head| head.ie(true)))?;
    }
    if let UnexpectedEnd::MessageError | UnexpectedEnd::MessageErrorSecond = end {
        let count = if end == UnexpectedEnd::MessageError { 1 } else { 2 };
        let error = Message { data: Vec::new(), ..message.clone() }.opcode(Opcode::UET_MSG_ERROR).whole()?;
        parts.truncate(count);
        parts.push(error.edit(|std| {
            let std = std.head(|head| head.som(false).eom(true));
            std.payload_length(0).message_offset((count * mtu) as u32)
        })?);
    }
    Ok(parts)
}
