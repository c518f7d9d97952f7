//! Steps that rules about the device as a target share.

use crate::prelude::*;
use uet_wire::pds::{self, Ack, Control};

/// Builds a control packet with the `n`-th PSN; with `syn` until the device's PDCID is known.
pub(super) fn numbered_control(
    pdc: &Pdc,
    kind: CtlType,
    n: u32,
    ar: bool,
    retx: bool,
) -> Result<UetBuf, Stop> {
    let packet = match pdc.remote {
        None => pdc.opening(kind, n).ar(ar).retx(retx),
        Some(remote) => {
            Control::build(kind).ar(ar).retx(retx).psn(pdc.psn(n)).spdcid(pdc.local).dpdcid(remote)
        }
    };
    Ok(UetBuf::new(packet.done()?))
}

/// Builds a CLEAR_COMMAND for all responses up to a PSN.
pub(super) fn clear_command(pdc: &Pdc, clear: Psn) -> Result<UetBuf, Stop> {
    Ok(pdc.control(CtlType::CLEAR_COMMAND, Psn(0), clear.0)?)
}

/// Closes a context by a CLOSE_COMMAND with its `n`-th PSN, and waits for the ACK.
pub(super) fn close_context(t: &mut Test<'_>, pdc: &Pdc, n: u32) -> Outcome {
    t.send(pdc, &pdc.control(CtlType::CLOSE_COMMAND, pdc.psn(n), 0)?)?;
    t.need("the end of the context", t.soon(), |seen| seen.answers(pdc, pdc.psn(n)))?;
    Ok(())
}

/// Returns the header of a packet with read data on the return direction.
pub(super) fn return_data(seen: &RxPacket, pdc: &Pdc) -> Option<pds::Request> {
    seen.request().filter(|_| seen.is_for(pdc) && !seen.payload().is_empty())
}

/// Sets a long ACK delay, so that an ACK after the delay does not count as immediate. A device that rejects
/// the parameter is judged less strictly.
pub(super) fn delay_acks(t: &mut Test<'_>) -> Outcome {
    t.try_configure("ack_delay", 1_000_000_000).map(drop)
}

/// Lets the device remember closed contexts longer than the rule takes, if it accepts the parameter.
///
/// The sources leave open how long a target remembers a closed context.
pub(super) fn remember_closed(t: &mut Test<'_>) -> Outcome {
    t.try_configure("syn_retx_safety_time", 1_000_000_000).map(drop)
}

/// Opens a context whose request 1 gets an error, which the device stores.
pub(super) fn open_with_error(t: &mut Test<'_>) -> Result<(Pdc, Region, RxPacket, Ack), Stop> {
    let (pdc, region) = t.open()?;
    let (seen, ack) = provoke_error(t, &pdc, &region, 1)?;
    Ok((pdc, region, seen, ack))
}

/// Sends the `n`-th request, which gets an error.
pub(super) fn provoke_error(
    t: &mut Test<'_>,
    pdc: &Pdc,
    region: &Region,
    n: u32,
) -> Result<(RxPacket, Ack), Stop> {
    t.request(pdc, pdc.request(n).write_nowhere(region, &[n as u8])?)?;
    let psn = pdc.psn(n);
    t.need(&format!("an error for {psn}"), t.soon(), |seen| seen.answers(pdc, psn))
}

/// Sends the `n`-th request, which clears nothing, and returns the cumulative PSN of its ACK.
pub(super) fn next_cack(t: &mut Test<'_>, pdc: &Pdc, region: &Region, n: u32) -> Result<Psn, Stop> {
    t.forget();
    t.request(pdc, pdc.request(n).write(region, 512, &[1])?)?;
    Ok(t.need_ack(pdc, pdc.psn(n))?.1.cack_psn())
}
