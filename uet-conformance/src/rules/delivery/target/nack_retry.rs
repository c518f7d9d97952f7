//! A refused packet is not received: a later attempt delivers its bytes (section 3.5.12).

use crate::prelude::*;

/// The resource that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resource {
    Buffers,
    Messages,
    Slots,
    Responses,
}

const RESOURCE: Axis<Resource> = axis("resource").needing(&[
    ("buffers", Resource::Buffers, &[RUD]),
    ("messages", Resource::Messages, &[]),
    ("slots", Resource::Slots, &[RUD]),
    ("responses", Resource::Responses, &[]),
]);

/// The next attempt to send the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retry {
    /// A retransmission.
    Retransmission,
    /// A retransmission after packets above it.
    Overtaken,
    /// A retransmission. Packets above it arrived before it was refused.
    BelowReceived,
    /// A second transmission without `retx`.
    WithoutRetx,
}

const RETRY: Axis<Retry> = axis("retry").needing(&[
    ("retx", Retry::Retransmission, &[]),
    ("overtaken", Retry::Overtaken, &[RUD]),
    ("no-retx", Retry::WithoutRetx, &[]),
    ("below-received", Retry::BelowReceived, &[RUD]),
]);

/// A packet that was refused, and its place in memory.
struct RetriedPacket {
    n: u32,
    request: Request,
    at: u64,
    bytes: Vec<u8>,
    /// The next unused number.
    next: u32,
}

pub(super) const RULES: &[Rule] =
    &[rule("nack-retry/delivered", "A packet refused for lack of resources is delivered on a later attempt")
        .checks(&[PDS_NACK_011, PDS_RUD_001])
        .needs(&[WRITE])
        .over(&[&RESOURCE, &RETRY, &MODE, &START])
        .run(|t| {
            let (name, size) = match t.value(&RESOURCE) {
                Resource::Buffers => ("rx_packets", 1),
                Resource::Messages => ("max_messages", 1),
                Resource::Slots => ("receive_slots", 8),
                Resource::Responses => ("stored_responses", 2),
            };
            t.configure(name, size)?;
            let (pdc, region) = t.open()?;
            // An ordered context accepts nothing above a gap, and a full one accepts nothing.
            let full = matches!(t.value(&RESOURCE), Resource::Slots | Resource::Responses);
            let overtaken = matches!(t.value(&RETRY), Retry::Overtaken | Retry::BelowReceived);
            require(!overtaken || !(pdc.rod || full), "nothing can overtake the packet here")?;
            let refused = match t.value(&RESOURCE) {
                Resource::Buffers => fill_buffers(t, &pdc, &region)?,
                Resource::Messages => fill_messages(t, &pdc, &region)?,
                Resource::Slots => fill_slots(t, &pdc, &region)?,
                Resource::Responses => fill_responses(t, &pdc, &region)?,
            };
            let RetriedPacket { n, request, at, bytes, mut next } = refused;
            t.forget();
            let request = match t.value(&RETRY) {
                Retry::WithoutRetx => request,
                Retry::Retransmission | Retry::BelowReceived => request.retx(),
                Retry::Overtaken => {
                    t.request(&pdc, pdc.request(next).write(&region, region.length - 1, &[next as u8])?)?;
                    t.need_ack(&pdc, pdc.psn(next))?;
                    next += 1;
                    request.retx()
                }
            };
            t.request(&pdc, request)?;
            t.expect_answer(PDS_NACK_011, &pdc, pdc.psn(n))?;
            t.expect_memory(PDS_NACK_011, &region, at, &bytes)?;
            // The packet counts as received once, after this attempt.
            t.request(&pdc, pdc.request(next).write(&region, region.length - 2, &[3])?)?;
            t.expect_cack(PDS_RUD_001, &pdc, pdc.psn(next))?;
            Ok(())
        })];

/// Sends a request. Skips the rule if the device does not refuse it.
fn require_refusal(t: &mut Test<'_>, pdc: &Pdc, n: u32, request: &Request) -> Outcome {
    t.request(pdc, request.clone())?;
    let refused = t.wait(t.soon(), |seen| seen.refuses(pdc, pdc.psn(n)))?.is_some();
    require(refused, "the device has room for more")
}

/// Waits for the answer to a request; returns whether it is a NACK.
fn is_refused(t: &mut Test<'_>, pdc: &Pdc, n: u32) -> Result<bool, Stop> {
    let (_, refused) = t.need("an answer", t.soon(), |seen| {
        let refused = seen.refuses(pdc, pdc.psn(n)).map(|_| true);
        refused.or_else(|| seen.acknowledges(pdc, pdc.psn(n)).map(|_| false))
    })?;
    Ok(refused)
}

/// Sends packets above the first one if the rule wants them before it. Returns the next unused number.
fn send_above(t: &mut Test<'_>, pdc: &Pdc, region: &Region) -> Result<u32, Stop> {
    let next = if t.value(&RETRY) == Retry::BelowReceived { 4 } else { 2 };
    for n in 2..next {
        t.request(pdc, pdc.request(n).write(region, region.length - 1, &[n as u8])?)?;
        // A device may keep its last buffer for the packet that fills the gap.
        require(!is_refused(t, pdc, n)?, "the device has no room for packets above a gap")?;
    }
    Ok(next)
}

/// On another context, the second half of a message waits for the first and takes the only buffer. Then that
/// context closes.
fn fill_buffers(t: &mut Test<'_>, pdc: &Pdc, region: &Region) -> Result<RetriedPacket, Stop> {
    let next = send_above(t, pdc, region)?;
    let (other, elsewhere) = t.open()?;
    t.request(&other, other.request(2).half(&elsewhere, t.mtu(), 1)?)?;
    let (at, bytes) = (region.length - 16, vec![9; 8]);
    let request = pdc.request(1).write(region, at, &bytes)?;
    require_refusal(t, pdc, 1, &request)?;
    let last = other.psn(3);
    t.send(&other, &other.control(CtlType::CLOSE_COMMAND, last, 0)?)?;
    t.need("the end of the other context", t.soon(), |seen| {
        (seen.answers(&other, last).is_some() || seen.refuses(&other, last).is_some()).then_some(())
    })?;
    Ok(RetriedPacket { n: 1, request, at, bytes, next })
}

/// On another context, the first half of a message takes the only message slot. Then that message ends.
fn fill_messages(t: &mut Test<'_>, pdc: &Pdc, region: &Region) -> Result<RetriedPacket, Stop> {
    let (next, mtu) = (send_above(t, pdc, region)?, t.mtu());
    let (other, elsewhere) = t.open()?;
    t.request(&other, other.request(1).half(&elsewhere, mtu, 0)?)?;
    t.need_ack(&other, other.psn(1))?;
    let request = pdc.request(1).half(region, mtu, 0)?;
    require_refusal(t, pdc, 1, &request)?;
    t.request(&other, other.request(2).half(&elsewhere, mtu, 1)?)?;
    t.need_ack(&other, other.psn(2))?;
    Ok(RetriedPacket { n: 1, request, at: 0, bytes: vec![7; mtu], next })
}

/// A PSN far above a gap needs more slots than the device has. Then the gap is filled.
fn fill_slots(t: &mut Test<'_>, pdc: &Pdc, region: &Region) -> Result<RetriedPacket, Stop> {
    let (at, bytes) = (region.length - 16, vec![9; 8]);
    let last = 100;
    let request = pdc.request(last).write(region, at, &bytes)?;
    require_refusal(t, pdc, last, &request)?;
    for n in 1..last {
        t.request(pdc, pdc.request(n).write(region, 0, &[n as u8])?)?;
        t.need_ack(pdc, pdc.psn(n))?;
        t.forget();
    }
    Ok(RetriedPacket { n: last, request, at, bytes, next: last + 1 })
}

/// Errors that are not cleared fill the storage for responses.
fn fill_responses(t: &mut Test<'_>, pdc: &Pdc, region: &Region) -> Result<RetriedPacket, Stop> {
    let (at, bytes) = (region.length - 16, vec![9; 8]);
    for n in 1..=4 {
        let nowhere = pdc.request(n).write_nowhere(region, &[n as u8])?;
        t.request(pdc, nowhere)?;
        if is_refused(t, pdc, n)? {
            // The next attempt is a write that succeeds.
            let request = pdc.request(n).clear(pdc.psn(n - 1)).write(region, at, &bytes)?;
            return Ok(RetriedPacket { n, request, at, bytes, next: n + 1 });
        }
    }
    skip("the device has room for more")
}
