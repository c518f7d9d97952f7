//! Steps and axes that rules about messages share.

use crate::prelude::*;
use crate::receives::PostedReceive;
use crate::{Answer, Data, Part};
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

/// Skips the rule if the device refused an unexpected send that it may keep.
pub(super) fn require_kept(answer: &Answer) -> Outcome {
    require(answer.code() != ReturnCode::NO_MATCH, "the device keeps no unexpected sends")
}

/// Returns the bytes of read data that arrived in pieces.
pub(super) fn read_bytes(pieces: &[Data]) -> Vec<u8> {
    pieces.iter().flat_map(|piece| piece.bytes.clone()).collect()
}

pub(super) const FORM: Axis<Form> =
    axis("form").values(&[("std", Form::Std), ("medium", Form::Medium), ("small", Form::Small)]);

/// The bits of every field.
pub(super) const PATTERN: Axis<u64> = axis("bits").values(&[
    ("all", u64::MAX),
    ("even", 0xaaaa_aaaa_aaaa_aaaa),
    ("odd", 0x5555_5555_5555_5555),
    ("high-half", 0xff00_ff00_f0f0_fc00),
]);

/// The operation of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndedMessage {
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

pub(super) const WRITE_POINT: (&'static str, EndedMessage, &'static [Need]) =
    ("write", EndedMessage::Write, &[WRITE]);

pub(super) const SEND_POINT: (&'static str, EndedMessage, &'static [Need]) =
    ("send", EndedMessage::Send, &[RECEIVE, SEND]);

pub(super) const TAGGED_POINT: (&'static str, EndedMessage, &'static [Need]) =
    ("tagged", EndedMessage::Tagged, &[RECEIVE, TSEND]);

pub(super) const MEDIUM_POINTS: [(&'static str, EndedMessage, &'static [Need]); 4] = [
    ("write-medium", EndedMessage::WriteMedium, &[WRITE]),
    ("send-medium", EndedMessage::SendMedium, &[RECEIVE, SEND]),
    ("send-small", EndedMessage::SendSmall, &[RECEIVE, SEND]),
    ("tagged-medium", EndedMessage::TaggedMedium, &[RECEIVE, TSEND]),
];

pub(super) const LONG_KIND: Axis<EndedMessage> =
    axis("kind").needing(&[WRITE_POINT, SEND_POINT, TAGGED_POINT]);

/// The order of three packets.
pub(super) const ORDER: Axis<[usize; 3]> = axis("order").values(&[
    ("in-order", [0, 1, 2]),
    ("first-last", [2, 1, 0]),
    ("first-second", [1, 0, 2]),
    ("last-first", [2, 0, 1]),
]);

/// The device's end of a message: memory, or a receive.
pub(super) enum Object {
    Region(Region, Vec<u8>),
    Receive(PostedReceive),
}

pub(super) fn is_send(kind: EndedMessage) -> bool {
    use EndedMessage::*;
    matches!(kind, Send | SendMedium | SendSmall | Tagged | TaggedMedium)
}

pub(super) fn bytes(length: usize) -> Vec<u8> {
    pattern(length as u32 + 3).take(length).collect()
}

/// The object of a message of this many bytes.
pub(super) fn object(t: &mut Test<'_>, kind: EndedMessage, length: usize) -> Result<Object, Stop> {
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
pub(super) fn message(
    t: &Test<'_>,
    kind: EndedMessage,
    object: &Object,
    length: usize,
) -> Result<Message, Stop> {
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

pub(super) fn only(kind: EndedMessage, message: &Message) -> Result<Part, Stop> {
    Ok(match kind {
        EndedMessage::WriteMedium | EndedMessage::SendMedium | EndedMessage::TaggedMedium => {
            message.medium()?
        }
        EndedMessage::SendSmall => message.small()?,
        _ => message.whole()?,
    })
}

pub(super) fn deferrable(token: u32, data: &[u8]) -> Message {
    Message { tokens: Some((token, 0)), ..Message::new(Opcode::UET_DEFERRABLE_SEND).data(data) }
}

/// The tokens of a DEFERRABLE_RTR, the initiator's and the target's, in the order of the device, or back from
/// it. Sources disagree about the order.
pub(super) fn in_order(sender_first: bool, (one, other): (u32, u32)) -> (u32, u32) {
    if sender_first { (other, one) } else { (one, other) }
}

pub(super) fn sender_first(t: &Test<'_>) -> bool {
    t.word("ready_tokens") == Some("sender_first")
}
