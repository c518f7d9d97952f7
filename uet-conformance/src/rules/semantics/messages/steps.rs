//! Steps and axes that rules about messages share.

use crate::prelude::*;
use crate::receives::PostedReceive;
use crate::{Answer, Data, Part};
use uet_control::PostReceive;
use uet_wire::registry::{AtomicDatatype, AtomicOpcode};

/// Skips the rule if the device refused an unexpected send that it may keep.
pub(super) fn require_kept(answer: &Answer) -> Outcome {
    require(answer.code() != ReturnCode::NO_MATCH, "the device keeps no unexpected sends")
}

/// Returns the bytes of read data that arrived in pieces.
pub(super) fn read_bytes(pieces: &[Data]) -> Vec<u8> {
    pieces.iter().flat_map(|piece| piece.bytes.clone()).collect()
}

/// The bits of every field.
pub(super) const PATTERN: Axis<u64> = axis("bits").values(&[
    ("all", u64::MAX),
    ("even", 0xaaaa_aaaa_aaaa_aaaa),
    ("odd", 0x5555_5555_5555_5555),
    ("high-half", 0xff00_ff00_f0f0_fc00),
]);

/// The operation and header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageForm {
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

pub(super) const WRITE_FORM: (&str, MessageForm, &[Need]) = ("write", MessageForm::Write, &[WRITE]);

pub(super) const SEND_FORM: (&str, MessageForm, &[Need]) = ("send", MessageForm::Send, &[RECEIVE, SEND]);

pub(super) const TAGGED_FORM: (&str, MessageForm, &[Need]) =
    ("tagged", MessageForm::Tagged, &[RECEIVE, TSEND]);

/// Forms with a medium or small header.
pub(super) const SHORT_FORMS: [(&str, MessageForm, &[Need]); 4] = [
    ("write-medium", MessageForm::WriteMedium, &[WRITE]),
    ("send-medium", MessageForm::SendMedium, &[RECEIVE, SEND]),
    ("send-small", MessageForm::SendSmall, &[RECEIVE, SEND]),
    ("tagged-medium", MessageForm::TaggedMedium, &[RECEIVE, TSEND]),
];

/// Forms that allow several packets.
pub(super) const LONG_FORM: Axis<MessageForm> = axis("form").needing(&[WRITE_FORM, SEND_FORM, TAGGED_FORM]);

/// The order in which the three packets of a message arrive.
pub(super) const ORDER: Axis<[usize; 3]> = axis("order").values(&[
    ("in-order", [0, 1, 2]),
    ("reversed", [2, 1, 0]),
    ("first-two-swapped", [1, 0, 2]),
    ("last-first", [2, 0, 1]),
]);

/// The memory or receive of the device that a message reaches.
pub(super) enum Destination {
    Region(Region, Vec<u8>),
    Receive(PostedReceive),
}

fn is_send(form: MessageForm) -> bool {
    use MessageForm::*;
    matches!(form, Send | SendMedium | SendSmall | Tagged | TaggedMedium)
}

/// Returns the payload of a message of this length.
fn bytes(length: usize) -> Vec<u8> {
    pattern(length as u32 + 3).take(length).collect()
}

/// Creates the destination of a message of this many bytes, at index 10.
pub(super) fn destination(t: &mut Test<'_>, form: MessageForm, length: usize) -> Result<Destination, Stop> {
    destination_at(t, form, length, 10)
}

/// Creates the destination of a message of this many bytes at this index.
pub(super) fn destination_at(
    t: &mut Test<'_>,
    form: MessageForm,
    length: usize,
    index: u16,
) -> Result<Destination, Stop> {
    let length = length.max(64) as u64;
    Ok(match form {
        MessageForm::Tagged | MessageForm::TaggedMedium => {
            Destination::Receive(t.posted(PostReceive { index, ..tagged_room(length, 0x7a6) })?)
        }
        form if is_send(form) => Destination::Receive(t.posted(PostReceive { index, ..room(length) })?),
        _ => {
            let (region, held) = t.exposed(length, |region| ExposeRegion { index, ..region })?;
            Destination::Region(region, held)
        }
    })
}

/// Returns a message of this many bytes for the destination.
pub(super) fn message(
    t: &Test<'_>,
    form: MessageForm,
    destination: &Destination,
    length: usize,
) -> Result<Message, Stop> {
    let data = bytes(length);
    Ok(match (form, destination) {
        (MessageForm::Tagged | MessageForm::TaggedMedium, _) => Message::tagged(0x7a6, &data),
        (MessageForm::Write | MessageForm::WriteMedium, Destination::Region(region, _)) => {
            Message { complete: false, ..Message::write(region, 0, &data) }
        }
        (MessageForm::Read, Destination::Region(region, _)) => Message::read(region, 0, length as u32),
        (MessageForm::Atomic | MessageForm::Fetch, Destination::Region(region, _)) => {
            let sum = (AtomicOpcode::SUM, AtomicDatatype::UINT64);
            let message = Message::atomic(region, 0, sum, &t.operands(8, &[1]))?;
            match form {
                MessageForm::Fetch => message.opcode(Opcode::UET_FETCHING_ATOMIC),
                _ => message,
            }
        }
        _ => Message::send(&data),
    })
}

/// Returns the only packet of a message, with its header form.
pub(super) fn single_packet(form: MessageForm, message: &Message) -> Result<Part, Stop> {
    Ok(match form {
        MessageForm::WriteMedium | MessageForm::SendMedium | MessageForm::TaggedMedium => message.medium()?,
        MessageForm::SendSmall => message.small()?,
        _ => message.whole()?,
    })
}

/// Reorders the tokens of a DEFERRABLE_RTR between our order, initiator's first, and that of the device.
/// Sources disagree about the order.
pub(super) fn token_order(sender_first: bool, (first, second): (u32, u32)) -> (u32, u32) {
    if sender_first { (second, first) } else { (first, second) }
}

/// Returns true if the device puts the token of the sender first.
pub(super) fn sender_first(t: &Test<'_>) -> bool {
    t.word("ready_tokens") == Some("sender_first")
}
