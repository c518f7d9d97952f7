//! Requests of every length: 256 lengths in a row, so that a length of the packet has each low byte.

use crate::axis::{CARRIER, MODE};
use crate::{Message, Need, Outcome, Pdc, Region, Request, Rule, RxPacket, Stop, Test, rudi};
use uet_control::{ExposeRegion, Hex64, pattern};
use uet_wire::catalogue::*;

pub(super) const CASES: &[Rule] = &[
    Rule {
        id: "lengths/request",
        title: "Requests of every length arrive and are acknowledged",
        requirements: &[PDS_ACK_004, SES_PLACE_001],
        needs: &[],
        axes: &[&MODE, &CARRIER],
        run: request,
    },
    Rule {
        id: "lengths/medium",
        title: "Requests of every length with a medium header arrive and are acknowledged",
        requirements: &[PDS_ACK_004, SES_PLACE_001],
        needs: &[Need::Capability("write")],
        axes: &[&MODE],
        run: medium,
    },
    Rule {
        id: "lengths/rudi",
        title: "RUDI requests of every length arrive and are answered",
        requirements: &[PDS_RUDI_002],
        needs: &[Need::Capability("rudi"), Need::Capability("write")],
        axes: &[],
        run: by_rudi,
    },
];

/// Number of lengths.
const LENGTHS: u32 = 256;

/// Number of requests before their ACKs are awaited.
const ROUND: u32 = 32;

fn bytes(length: u32) -> Vec<u8> {
    pattern(77).take(length as usize).collect()
}

/// Sends a request of each length and expects its ACK, a round at a time. The bytes that they write are the same.
fn each(t: &mut Test<'_>, build: impl Fn(&Pdc, &Region, u32) -> Result<Request, Stop>) -> Outcome {
    let (pdc, region) = t.open()?;
    for first in (0..LENGTHS).step_by(ROUND as usize) {
        for length in first..first + ROUND {
            let request = build(&pdc, &region, length)?;
            t.request(&pdc, request)?;
        }
        let acked = |seen: &RxPacket, length: u32| seen.acknowledges(&pdc, pdc.psn(length + 1));
        let mut missing: Vec<u32> = (first..first + ROUND).collect();
        t.hear(t.patience(t.soon()), |seen| {
            missing.retain(|length| !acked(seen, *length));
            missing.is_empty()
        })?;
        t.had_room(0)?;
        let seen = missing.first().map(|length| format!("no ACK of the one with {length} bytes"));
        let statement = format!("requests with {first} to {} bytes are acknowledged", first + ROUND - 1);
        t.holds(PDS_ACK_004, &statement, missing.is_empty(), seen.unwrap_or_default());
        if !missing.is_empty() {
            return Err(Stop::Failed);
        }
        t.forget();
    }
    t.expect_memory(SES_PLACE_001, &region, 0, &bytes(LENGTHS - 1))
}

fn request(t: &mut Test<'_>) -> Outcome {
    each(t, |pdc, region, length| Ok(pdc.request(length + 1).write(region, 0, &bytes(length))?))
}

fn medium(t: &mut Test<'_>) -> Outcome {
    each(t, |pdc, region, length| {
        let part = Message::write(region, 0, &bytes(length)).medium()?;
        Ok(Request { ext: part.ext, ..pdc.request(length + 1).ses(part.ses, &part.payload) })
    })
}

fn by_rudi(t: &mut Test<'_>) -> Outcome {
    let key = Hex64(1 << 63 | 0xacce5);
    let (region, _) = t.exposed(1 << 14, |region| ExposeRegion { key, ..region })?;
    let way = t.initiate();
    t.send(&way, &rudi(u32::MAX, &way.request(0).write(&region, 0, &[1])?)?)?;
    let within = t.soon();
    t.need("a response to a RUDI request", within, |seen| {
        seen.rudi().filter(|response| response.pkt_id() == u32::MAX)
    })?;
    for first in (0..LENGTHS).step_by(ROUND as usize) {
        for length in first..first + ROUND {
            t.send(&way, &rudi(length + 1, &way.request(0).write(&region, 0, &bytes(length))?)?)?;
        }
        let mut missing: Vec<u32> = (first..first + ROUND).collect();
        t.hear(t.patience(t.soon()), |seen| {
            let answered = seen.rudi().map(|response| response.pkt_id());
            missing.retain(|length| answered != Some(length + 1));
            missing.is_empty()
        })?;
        let seen = missing.first().map(|length| format!("no response to the one with {length} bytes"));
        let statement = format!("requests with {first} to {} bytes are answered", first + ROUND - 1);
        t.holds(PDS_RUDI_002, &statement, missing.is_empty(), seen.unwrap_or_default());
        if !missing.is_empty() {
            return Err(Stop::Failed);
        }
        t.forget();
    }
    Ok(())
}
