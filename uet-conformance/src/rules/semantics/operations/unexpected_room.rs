//! Room for messages of the suite: each way in which a message ends gives it back (sections 3.4.1, 3.4.3.3).

use crate::Part;
use crate::prelude::*;
use uet_control::PostReceive;
use uet_wire::registry::List;

/// How an unexpected message of several packets ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnexpectedEnd {
    /// By `ie` in its first packet.
    GivenUpFirst,
    /// By `ie` in its second packet.
    GivenUpAmid,
    /// By `ie` in its last packet.
    GivenUpLast,
    /// By UET_MSG_ERROR after its first packet.
    MessageError,
    /// By UET_MSG_ERROR after its second packet.
    MessageErrorLate,
    /// Whole, in a receive that is posted after it.
    Taken,
    /// Whole, in a receive that is posted amid its packets.
    TakenAmid,
    /// Whole, in a receive that is too short for it.
    Cut,
}

const END: Axis<UnexpectedEnd> = axis("end").values(&[
    ("given-up-amid", UnexpectedEnd::GivenUpAmid),
    ("given-up-first", UnexpectedEnd::GivenUpFirst),
    ("given-up-last", UnexpectedEnd::GivenUpLast),
    ("message-error", UnexpectedEnd::MessageError),
    ("message-error-late", UnexpectedEnd::MessageErrorLate),
    ("taken", UnexpectedEnd::Taken),
    ("taken-amid", UnexpectedEnd::TakenAmid),
    ("cut", UnexpectedEnd::Cut),
]);

/// The pool that has room for one such message.
const POOL: Axis<&str> =
    axis("pool").values(&[("count", "max_unexpected"), ("bytes", "max_unexpected_bytes")]);

const TAGGED: Axis<bool> = axis("kind").needing(&[("plain", false, &[]), ("tagged", true, &[TSEND])]);

const BITS: u64 = 0x70;

pub(super) const RULES: &[Rule] =
    &[rule("resources/unexpected", "An unexpected message frees its resources, however it ends")
        .checks(&[SES_MATCH_007, SES_MATCH_003, SES_MATCH_006])
        .needs(&[SEND, RECEIVE, PARAMETERS])
        .over(&[&END, &POOL, &TAGGED, &MODE])
        .run(|t| {
            // More messages than the pool holds end one after the other, then one is kept and taken.
            let (end, pool, tagged, mtu) = (t.value(&END), t.value(&POOL), t.value(&TAGGED), t.mtu());
            let data: Vec<u8> = pattern(9).take(2 * mtu + 9).collect();
            let most = if pool == "max_unexpected" { 1 } else { data.len() };
            t.configure(pool, most)?;
            t.open_index()?;
            let message = |id: u16, data: &[u8]| match tagged {
                true => Message::tagged(BITS, data).named(id),
                false => Message::send(data).named(id),
            };
            let receive = |length: usize| match tagged {
                true => tagged_room(length as u64, BITS),
                false => room(length as u64),
            };
            let mut session = t.session();
            for id in 1..=3 {
                let mut posted = None;
                for (k, part) in packets(&message(id, &data), end, mtu)?.iter().enumerate() {
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
                    if k == 0 && end == UnexpectedEnd::TakenAmid {
                        posted = Some(t.posted(receive(data.len()))?);
                    }
                }
                match end {
                    UnexpectedEnd::Taken => posted = Some(t.posted(receive(data.len()))?),
                    // Open: whether a device cuts it or refuses it.
                    UnexpectedEnd::Cut => {
                        let short: PostReceive = receive(mtu + 1);
                        let short = t.posted(short)?;
                        t.pause(t.soon())?;
                        if t.completion(short.operation, Duration::ZERO)?.is_none() {
                            return skip("a receive that is too short does not end");
                        }
                    }
                    _ => {}
                }
                if let Some(posted) = posted {
                    t.expect_received(SES_MATCH_006, &posted, &data)?;
                }
            }
            let next = &data[..40];
            let psn = session.ask(t, &message(7, next).whole()?)?;
            let answer = session.answer(t, psn)?;
            t.check(SES_MATCH_007, "the return code of the next message", ReturnCode::OK, answer.code());
            let list = answer.response.map(|response| response.head().list());
            if answer.code() != ReturnCode::OK {
                return Err(Stop::Failed);
            }
            t.check(SES_MATCH_003, "the list of the next message", Some(List::UET_OVERFLOW), list);
            let posted = t.posted(receive(64))?;
            t.expect_received(SES_MATCH_006, &posted, next)?;
            Ok(())
        })];

/// The packets of a message, and those of them that come before a receive is posted amid them.
fn packets(message: &Message, end: UnexpectedEnd, mtu: usize) -> Result<Vec<Part>, Stop> {
    let mut parts = message.parts(mtu)?;
    let given_up = match end {
        UnexpectedEnd::GivenUpFirst => Some(0),
        UnexpectedEnd::GivenUpAmid => Some(1),
        UnexpectedEnd::GivenUpLast => Some(2),
        _ => None,
    };
    if let Some(k) = given_up {
        parts[k] = parts[k].clone().edit(|std| std.head(|head| head.ie(true)))?;
    }
    if let UnexpectedEnd::MessageError | UnexpectedEnd::MessageErrorLate = end {
        let came = if end == UnexpectedEnd::MessageError { 1 } else { 2 };
        let error = Message { data: Vec::new(), ..message.clone() }.opcode(Opcode::UET_MSG_ERROR).whole()?;
        parts.truncate(came);
        parts.push(error.edit(|std| {
            let std = std.head(|head| head.som(false).eom(true));
            std.payload_length(0).message_offset((came * mtu) as u32)
        })?);
    }
    Ok(parts)
}
