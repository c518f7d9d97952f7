//! Requests whose header allows one packet only, with flags of a message of several packets (section 3.4.2).

use crate::Part;
use crate::prelude::*;
use crate::receives::PostedReceive;
use uet_control::PostReceive;
use uet_wire::ses::SesBuf;

/// A request that is always a whole message.
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

/// The position in the message that som and eom state.
const POSITION: Axis<(bool, bool)> =
    axis("position").values(&[("first", (true, false)), ("middle", (false, false)), ("last", (false, true))]);

/// SinglePacketDestination of the message.
enum SinglePacketDestination {
    Region(Region, Vec<u8>),
    Receive(PostedReceive),
}

pub(super) const RULES: &[Rule] = &[rule(
    "single-packet/flags",
    "A single-packet message with wrong som or eom is served whole or not at all",
)
.checks(&[SES_DONE_002, SES_PLACE_001, ROB_LIFE_001])
.over(&[&KIND, &POSITION, &MODE])
.run(|t| {
    // Two of them, so that state left by the first would affect the second.
    let mut session = t.session();
    for length in [40, 30] {
        let data: Vec<u8> = pattern(length).take(length as usize).collect();
        let destination = destination(t, length.into())?;
        let part = with_flags(t, &destination, &data)?;
        let psn = session.ask(t, &part)?;
        let pdc = session.pdc.clone();
        let answer = t.wait(t.patience(t.soon()), |seen: &RxPacket| {
            let named = seen.answers(&pdc, psn).map(|_| seen.return_code());
            named.or_else(|| seen.refuses(&pdc, psn).map(|_| None))
        })?;
        let served = answer.and_then(|(_, code)| code) == Some(ReturnCode::OK);
        match destination {
            SinglePacketDestination::Region(region, _) if served => {
                t.expect_memory(SES_PLACE_001, &region, 0, &data)?
            }
            SinglePacketDestination::Region(region, held) => t.still_holds(SES_PLACE_001, &region, &held)?,
            SinglePacketDestination::Receive(posted) if served => {
                t.expect_received(SES_DONE_002, &posted, &data)?;
            }
            SinglePacketDestination::Receive(posted) => t.expect_not_well(SES_DONE_002, &posted)?,
        }
    }
    // The next message is not affected.
    let data: Vec<u8> = pattern(20).take(20).collect();
    let destination = destination(t, 20)?;
    let psn = session.ask(t, &message(t, &destination, &data).whole()?)?;
    session.accepted(t, ROB_LIFE_001, psn)?;
    match destination {
        SinglePacketDestination::Region(region, _) => t.expect_memory(ROB_LIFE_001, &region, 0, &data),
        SinglePacketDestination::Receive(posted) => t.expect_received(ROB_LIFE_001, &posted, &data).map(drop),
    }
})];

/// Creates the destination. Each receive has another index, since those of refused messages remain.
fn destination(t: &mut Test<'_>, length: u64) -> Result<SinglePacketDestination, Stop> {
    let index = length as u16;
    Ok(match t.value(&KIND) {
        Single::WriteMedium => {
            let (region, held) = t.patterned(length)?;
            SinglePacketDestination::Region(region, held)
        }
        Single::TaggedMedium => {
            SinglePacketDestination::Receive(t.posted(PostReceive { index, ..tagged_room(length, 7) })?)
        }
        _ => SinglePacketDestination::Receive(t.posted(PostReceive { index, ..room(length) })?),
    })
}

/// Returns a message for the destination.
fn message(t: &Test<'_>, destination: &SinglePacketDestination, data: &[u8]) -> Message {
    let index = match destination {
        SinglePacketDestination::Region(region, _) => return Message::write(region, 0, data),
        SinglePacketDestination::Receive(posted) => posted.buffer.index,
    };
    let message = match t.value(&KIND) {
        Single::TaggedMedium => Message::tagged(7, data),
        _ => Message::send(data),
    };
    Message { index, ..message }
}

/// Returns the request with som and eom of [`POSITION`].
fn with_flags(t: &Test<'_>, destination: &SinglePacketDestination, data: &[u8]) -> Result<Part, Stop> {
    let message = message(t, destination, data);
    let (som, eom) = t.value(&POSITION);
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
