//! A packet that was refused is not received: it may come again, and memory then has its bytes (section
//! 3.5.12).

use crate::prelude::*;
use uet_wire::pds::Nack;

/// The resource that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    Buffers,
    Messages,
    Slots,
    Responses,
}

const ROOM: Axis<Room> = axis("room").needing(&[
    ("buffers", Room::Buffers, &[RUD]),
    ("messages", Room::Messages, &[]),
    ("slots", Room::Slots, &[RUD]),
    ("responses", Room::Responses, &[]),
]);

/// How the packet comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    /// As a retransmission.
    Retransmitted,
    /// As a retransmission, after packets above it.
    Overtaken,
    /// As a retransmission. Packets above it came before it was refused.
    Below,
    /// As it was at first.
    Unmarked,
}

const AGAIN: Axis<Again> = axis("again").needing(&[
    ("retransmitted", Again::Retransmitted, &[]),
    ("overtaken", Again::Overtaken, &[RUD]),
    ("unmarked", Again::Unmarked, &[]),
    ("below", Again::Below, &[RUD]),
]);

/// A refused packet: its number, its bytes, and what makes room.
struct RefusedPacket {
    n: u32,
    request: Request,
    at: u64,
    bytes: Vec<u8>,
    /// The first number above all that has been sent.
    next: u32,
}

pub(super) const RULES: &[Rule] =
    &[rule("nack-retry/delivered", "A packet refused for lack of resources is delivered on a later attempt")
        .checks(&[PDS_NACK_011, PDS_RUD_001])
        .needs(&[WRITE])
        .over(&[&ROOM, &AGAIN, &MODE, &START])
        .run(|t| {
            let (name, size) = match t.value(&ROOM) {
                Room::Buffers => ("rx_packets", 1),
                Room::Messages => ("max_messages", 1),
                Room::Slots => ("receive_slots", 8),
                Room::Responses => ("stored_responses", 2),
            };
            t.configure(name, size)?;
            let (pdc, region) = t.open()?;
            // An ordered context takes nothing above a gap, and a full one takes nothing at all.
            let full = matches!(t.value(&ROOM), Room::Slots | Room::Responses);
            if matches!(t.value(&AGAIN), Again::Overtaken | Again::Below) && (pdc.rod || full) {
                return skip("nothing can overtake the packet here");
            }
            let refused = match t.value(&ROOM) {
                Room::Buffers => no_buffer(t, &pdc, &region)?,
                Room::Messages => no_message(t, &pdc, &region)?,
                Room::Slots => no_slot(t, &pdc, &region)?,
                Room::Responses => no_response(t, &pdc, &region)?,
            };
            let RefusedPacket { n, request, at, bytes, mut next } = refused;
            t.forget();
            let request = match t.value(&AGAIN) {
                Again::Unmarked => request,
                Again::Retransmitted | Again::Below => request.retx(),
                Again::Overtaken => {
                    t.request(&pdc, pdc.request(next).write(&region, region.length - 1, &[next as u8])?)?;
                    t.need_ack(&pdc, pdc.psn(next))?;
                    next += 1;
                    request.retx()
                }
            };
            t.request(&pdc, request)?;
            t.expect_answer(PDS_NACK_011, &pdc, pdc.psn(n))?;
            t.expect_memory(PDS_NACK_011, &region, at, &bytes)?;
            // The packet counts as received once, and only now.
            t.request(&pdc, pdc.request(next).write(&region, region.length - 2, &[3])?)?;
            t.expect_cack(PDS_RUD_001, &pdc, pdc.psn(next))?;
            Ok(())
        })];

/// Sends a request and expects that the device has no room for it.
fn refuse(t: &mut Test<'_>, pdc: &Pdc, n: u32, request: &Request) -> Result<(), Stop> {
    t.request(pdc, request.clone())?;
    let refuses = |seen: &RxPacket| -> Option<Nack> { seen.refuses(pdc, pdc.psn(n)) };
    match t.wait(t.soon(), refuses)? {
        Some(_) => Ok(()),
        None => skip("the device has room for more"),
    }
}

/// Sends the packets above the first one that are to come before it. Returns the first number above all.
fn above(t: &mut Test<'_>, pdc: &Pdc, region: &Region) -> Result<u32, Stop> {
    let next = if t.value(&AGAIN) == Again::Below { 4 } else { 2 };
    for n in 2..next {
        t.request(pdc, pdc.request(n).write(region, region.length - 1, &[n as u8])?)?;
        t.need_ack(pdc, pdc.psn(n))?;
    }
    Ok(next)
}

/// The second half of a message waits for the first, on another context, and takes the only buffer. That
/// context ends.
fn no_buffer(t: &mut Test<'_>, pdc: &Pdc, region: &Region) -> Result<RefusedPacket, Stop> {
    let next = above(t, pdc, region)?;
    let (other, elsewhere) = t.open()?;
    t.request(&other, other.request(2).half(&elsewhere, t.mtu(), 1)?)?;
    let (at, bytes) = (region.length - 16, vec![9; 8]);
    let request = pdc.request(1).write(region, at, &bytes)?;
    refuse(t, pdc, 1, &request)?;
    let last = other.psn(3);
    t.send(&other, &other.control(CtlType::CLOSE_COMMAND, last, 0)?)?;
    t.need("the end of the other context", t.soon(), |seen| {
        (seen.answers(&other, last).is_some() || seen.refuses(&other, last).is_some()).then_some(())
    })?;
    Ok(RefusedPacket { n: 1, request, at, bytes, next })
}

/// The first half of a message on another context takes the only place for messages. That message ends.
fn no_message(t: &mut Test<'_>, pdc: &Pdc, region: &Region) -> Result<RefusedPacket, Stop> {
    let (next, mtu) = (above(t, pdc, region)?, t.mtu());
    let (other, elsewhere) = t.open()?;
    t.request(&other, other.request(1).half(&elsewhere, mtu, 0)?)?;
    t.need_ack(&other, other.psn(1))?;
    let request = pdc.request(1).half(region, mtu, 0)?;
    refuse(t, pdc, 1, &request)?;
    t.request(&other, other.request(2).half(&elsewhere, mtu, 1)?)?;
    t.need_ack(&other, other.psn(2))?;
    Ok(RefusedPacket { n: 1, request, at: 0, bytes: vec![7; mtu], next })
}

fn no_slot(t: &mut Test<'_>, pdc: &Pdc, region: &Region) -> Result<RefusedPacket, Stop> {
    let (at, bytes) = (region.length - 16, vec![9; 8]);
    let far = 100;
    let request = pdc.request(far).write(region, at, &bytes)?;
    refuse(t, pdc, far, &request)?;
    for n in 1..far {
        t.request(pdc, pdc.request(n).write(region, 0, &[n as u8])?)?;
        t.need_ack(pdc, pdc.psn(n))?;
        t.forget();
    }
    Ok(RefusedPacket { n: far, request, at, bytes, next: far + 1 })
}

/// Errors are kept until they are cleared. They fill up the room for responses.
fn no_response(t: &mut Test<'_>, pdc: &Pdc, region: &Region) -> Result<RefusedPacket, Stop> {
    let (at, bytes) = (region.length - 16, vec![9; 8]);
    for n in 1..=4 {
        let nowhere = pdc.request(n).write_nowhere(region, &[n as u8])?;
        t.request(pdc, nowhere)?;
        let (_, refused) = t.need("an answer", t.soon(), |seen| {
            let refused = seen.refuses(pdc, pdc.psn(n)).map(|_| true);
            refused.or_else(|| seen.answers(pdc, pdc.psn(n)).map(|_| false))
        })?;
        if refused {
            // Another packet takes its place, one that leaves its bytes in memory.
            let request = pdc.request(n).clear(pdc.psn(n - 1)).write(region, at, &bytes)?;
            return Ok(RefusedPacket { n, request, at, bytes, next: n + 1 });
        }
    }
    skip("the device has room for more")
}
