//! Requests that are whole messages by their kind, and claim to be parts of one (section 3.4.2).

use crate::Part;
use crate::prelude::*;
use crate::receives::PostedReceive;
use uet_control::PostReceive;
use uet_wire::ses::SesBuf;

/// A request that is a whole message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Single {
    SendMedium,
    SendSmall,
    TaggedMedium,
    WriteMedium,
    Datagram,
}

const KIND: Axis<Single> = axis("kind").needing(&[
    ("send-medium", Single::SendMedium, &[RECEIVE, SEND]),
    ("send-small", Single::SendSmall, &[RECEIVE, SEND]),
    ("tagged-medium", Single::TaggedMedium, &[RECEIVE, TSEND]),
    ("write-medium", Single::WriteMedium, &[WRITE]),
    ("datagram", Single::Datagram, &[RECEIVE, SEND]),
]);

/// Its flags som and eom.
const CLAIM: Axis<(bool, bool)> =
    axis("claim").values(&[("first", (true, false)), ("middle", (false, false)), ("last", (false, true))]);

/// Destination of the message.
enum Destination {
    Region(Region, Vec<u8>),
    Receive(PostedReceive),
}

pub(super) const RULES: &[Rule] = &[rule(
    "single-packet/flags",
    "A single-packet message with wrong som or eom is served whole or not at all",
)
.checks(&[SES_DONE_002, SES_PLACE_001, ROB_LIFE_001])
.over(&[&KIND, &CLAIM, &MODE])
.run(|t| {
    // Two of them, so that the second would find what is left of the first.
    let mut session = t.session();
    for length in [40, 30] {
        let data: Vec<u8> = pattern(length).take(length as usize).collect();
        let object = destination(t, length.into())?;
        let part = claiming(t, &object, &data)?;
        let psn = session.ask(t, &part)?;
        let pdc = session.pdc.clone();
        let answer = t.wait(t.patience(t.soon()), |seen: &RxPacket| {
            let named = seen.answers(&pdc, psn).map(|_| seen.return_code());
            named.or_else(|| seen.refuses(&pdc, psn).map(|_| None))
        })?;
        let served = answer.and_then(|(_, code)| code) == Some(ReturnCode::OK);
        match object {
            Destination::Region(region, _) if served => t.expect_memory(SES_PLACE_001, &region, 0, &data)?,
            Destination::Region(region, held) => t.still_holds(SES_PLACE_001, &region, &held)?,
            Destination::Receive(posted) if served => {
                t.expect_received(SES_DONE_002, &posted, &data)?;
            }
            Destination::Receive(posted) => t.expect_not_well(SES_DONE_002, &posted)?,
        }
    }
    // The next message is a message of its own.
    let data: Vec<u8> = pattern(20).take(20).collect();
    let object = destination(t, 20)?;
    let psn = session.ask(t, &message(t, &object, &data).whole()?)?;
    session.accepted(t, ROB_LIFE_001, psn)?;
    match object {
        Destination::Region(region, _) => t.expect_memory(ROB_LIFE_001, &region, 0, &data),
        Destination::Receive(posted) => t.expect_received(ROB_LIFE_001, &posted, &data).map(drop),
    }
})];

/// Each receive has an index of its own, since those of refused messages stay.
fn destination(t: &mut Test<'_>, length: u64) -> Result<Destination, crate::Stop> {
    let index = length as u16;
    Ok(match t.value(&KIND) {
        Single::WriteMedium => {
            let (region, held) = t.patterned(length)?;
            Destination::Region(region, held)
        }
        Single::TaggedMedium => {
            Destination::Receive(t.posted(PostReceive { index, ..tagged_room(length, 7) })?)
        }
        _ => Destination::Receive(t.posted(PostReceive { index, ..room(length) })?),
    })
}

fn message(t: &Test<'_>, object: &Destination, data: &[u8]) -> Message {
    let index = match object {
        Destination::Region(region, _) => return Message::write(region, 0, data),
        Destination::Receive(posted) => posted.buffer.index,
    };
    let message = match t.value(&KIND) {
        Single::TaggedMedium => Message::tagged(7, data),
        _ => Message::send(data),
    };
    Message { index, ..message }
}

/// The request with the flags that it claims.
fn claiming(t: &Test<'_>, object: &Destination, data: &[u8]) -> Result<Part, crate::Stop> {
    let message = message(t, object, data);
    let (som, eom) = t.value(&CLAIM);
    let length = data.len() as u16;
    let part = match t.value(&KIND) {
        Single::Datagram => message.opcode(Opcode::UET_DATAGRAM_SEND).named(0).whole()?.edit(|std| {
            let std = std.head(|head| head.som(som).eom(eom));
            if som { std } else { std.payload_length(length).message_offset(0) }
        })?,
        Single::SendSmall => message.small()?,
        _ => message.medium()?,
    };
    let ses = match part.ses {
        SesBuf::Medium(header) => header.edit().head(|head| head.som(som).eom(eom)).done()?.into(),
        SesBuf::Small(header) => header.edit().head(|head| head.som(som).eom(eom)).done()?.into(),
        other => other,
    };
    Ok(Part { ses, ..part })
}
