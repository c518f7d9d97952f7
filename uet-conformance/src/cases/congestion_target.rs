//! What a target tells a source that controls congestion: the state of NSCC in ACKs, and credit (sections 3.6.13, 3.6.14).

use crate::{Case, Need, Outcome, Pdc, Region, Request, Seen, Stop, Test, Trimmed};
use core::time::Duration;
use uet_wire::catalogue::*;
use uet_wire::registry::{CcType, CtlType};
use uet_wire::{Psn, Units24};

const NSCC: &[Need] = &[Need::Capability("nscc"), Need::Capability("rud"), Need::Capability("write")];
const NSCC_TRIMS: &[Need] =
    &[Need::Capability("nscc"), Need::Capability("rud"), Need::Capability("write"), Need::Trim];
const RUD: &[Need] = &[Need::Capability("rud"), Need::Capability("write")];
const RUD_TRIMS: &[Need] = &[Need::Capability("rud"), Need::Capability("write"), Need::Trim];
const TWO_PEERS: &[Need] = &[Need::Capability("rud"), Need::Capability("write"), Need::Addresses(2)];

pub(super) const CASES: &[Case] = &[
    Case {
        id: "congestion-target/received-bytes",
        title: "rcvd_bytes grows by the size of each new packet and 40, in units of 256 bytes",
        requirements: &[CC_RCVD_001, CC_RCVD_004],
        needs: NSCC,
        run: received_bytes,
    },
    Case {
        id: "congestion-target/out-of-order",
        title: "A packet above a gap counts in rcvd_bytes when it comes",
        requirements: &[CC_RCVD_001],
        needs: NSCC,
        run: out_of_order,
    },
    Case {
        id: "congestion-target/retransmissions",
        title: "What comes again adds nothing to rcvd_bytes",
        requirements: &[CC_RCVD_002],
        needs: NSCC,
        run: retransmissions,
    },
    Case {
        id: "congestion-target/trimmed",
        title: "What was trimmed adds nothing to rcvd_bytes",
        requirements: &[CC_RCVD_002],
        needs: NSCC_TRIMS,
        run: trimmed,
    },
    Case {
        id: "congestion-target/each-context",
        title: "Each context counts its own bytes",
        requirements: &[CC_RCVD_001],
        needs: NSCC,
        run: each_context,
    },
    Case {
        id: "congestion-target/service-time",
        title: "service_time is how long the packet that the ACK names has waited for it",
        requirements: &[CC_SERVICE_001],
        needs: NSCC,
        run: service_time,
    },
    Case {
        id: "congestion-target/credit",
        title: "A source that wants credit gets it",
        requirements: &[RCCC_GRANT_001, RCCC_COUNT_001],
        needs: RUD,
        run: credit,
    },
    Case {
        id: "congestion-target/more-credit",
        title: "Credit is cumulative, and never goes back",
        requirements: &[RCCC_COUNT_001, RCCC_GRANT_001],
        needs: RUD,
        run: more_credit,
    },
    Case {
        id: "congestion-target/old-demand",
        title: "A demand that is behind the newest says nothing new",
        requirements: &[RCCC_COUNT_002],
        needs: RUD,
        run: old_demand,
    },
    Case {
        id: "congestion-target/credit-request",
        title: "CREDIT_REQUEST wants credit like a request, and is answered when it comes again",
        requirements: &[RCCC_GRANT_001],
        needs: RUD,
        run: credit_request,
    },
    Case {
        id: "congestion-target/trimmed-demand",
        title: "The demand in a trimmed request counts",
        requirements: &[RCCC_TRIM_001],
        needs: RUD_TRIMS,
        run: trimmed_demand,
    },
    Case {
        id: "congestion-target/two-sources",
        title: "Two sources that want credit both get it",
        requirements: &[RCCC_GRANT_001],
        needs: TWO_PEERS,
        run: two_sources,
    },
    Case {
        id: "congestion-target/credit-encoding",
        title: "CREDIT packets and ACKs with credit are well formed",
        requirements: &[WIRE_RSVD_001, WIRE_RSVD_002],
        needs: RUD,
        run: credit_encoding,
    },
];

/// What a packet of the transport counts beside its own bytes.
const AROUND: u64 = 40;

/// rcvd_bytes as the ACK of this PSN tells it.
fn told(t: &mut Test<'_>, pdc: &Pdc, psn: Psn) -> Result<u64, Stop> {
    let (_, bytes) = t.need("an ACK with the state of NSCC", t.soon(), |seen| {
        seen.answers(pdc, psn).and(seen.ack_cc()).and_then(|ack| ack.rcvd_bytes())
    })?;
    Ok(u64::from(bytes.get()))
}

/// Memory of a device that runs NSCC.
fn telling(t: &mut Test<'_>) -> Result<Region, Stop> {
    t.congestion("nscc")?;
    t.region(1 << 14)
}

/// Opens a context, and gives rcvd_bytes of its first packet.
fn open(t: &mut Test<'_>, region: &Region) -> Result<(Pdc, u64), Stop> {
    let pdc = t.initiate();
    t.request(&pdc, pdc.request(0).write(region, 0, &[1])?)?;
    let (seen, ack) = t.need_ack(&pdc, pdc.psn(0))?;
    let state = seen.ack_cc().and_then(|ack| ack.rcvd_bytes());
    let state = state.ok_or_else(|| Stop::Inconclusive("the first ACK has no state of NSCC".into()))?;
    Ok((Pdc { remote: Some(ack.spdcid()), ..pdc }, u64::from(state.get())))
}

/// Sends a request; the bytes that it counts.
fn send(t: &mut Test<'_>, pdc: &Pdc, request: &Request) -> Result<u64, Stop> {
    let packet = request.build()?;
    t.send(pdc, &packet)?;
    Ok(packet.to_bytes().len() as u64 + AROUND)
}

fn received_bytes(t: &mut Test<'_>) -> Outcome {
    let region = telling(t)?;
    let (pdc, first) = open(t, &region)?;
    // 97 bytes, a part of a unit.
    t.check(CC_RCVD_004, "units after the first packet", 1, first);
    let (mut bytes, mut units) = (0, 0);
    for (n, length) in (1..).zip([1, 100, t.mtu(), 0, 700, t.mtu(), t.mtu()]) {
        let sent = send(t, &pdc, &pdc.request(n).write(&region, 0, &vec![1; length])?)?;
        (bytes, units) = (bytes + sent, units + sent.div_ceil(256));
        let grown = told(t, &pdc, pdc.psn(n))?.saturating_sub(first);
        // A part of a unit may be rounded in the sum or, at most, in each packet.
        let fits = (bytes / 256..=units).contains(&grown);
        let what = format!("{grown} units more for {bytes} bytes more:");
        t.check(CC_RCVD_001, &what, true, fits);
    }
    Ok(())
}

fn out_of_order(t: &mut Test<'_>) -> Outcome {
    let region = telling(t)?;
    let (pdc, first) = open(t, &region)?;
    let mut before = first;
    for n in [5, 3, 9] {
        send(t, &pdc, &pdc.request(n).write(&region, 0, &[1; 1000])?)?;
        let now = told(t, &pdc, pdc.psn(n))?;
        // 1,096 bytes are 4.3 units.
        t.check(CC_RCVD_001, "4 or 5 units more:", true, (4..=5).contains(&(now - before)));
        before = now;
    }
    Ok(())
}

fn retransmissions(t: &mut Test<'_>) -> Outcome {
    let region = telling(t)?;
    let (pdc, _) = open(t, &region)?;
    let request = pdc.request(1).write(&region, 0, &[1; 1000])?;
    send(t, &pdc, &request)?;
    let before = told(t, &pdc, pdc.psn(1))?;
    for _ in 0..4 {
        send(t, &pdc, &request.clone().retx())?;
    }
    t.gather(t.soon())?;
    send(t, &pdc, &pdc.request(2).write(&region, 0, &[1; 1000])?)?;
    let grown = told(t, &pdc, pdc.psn(2))? - before;
    t.check(CC_RCVD_002, "4 or 5 units more:", true, (4..=5).contains(&grown));
    Ok(())
}

fn trimmed(t: &mut Test<'_>) -> Outcome {
    let region = telling(t)?;
    let (pdc, before) = open(t, &region)?;
    for n in 2..6 {
        let packet = pdc.request(n).write(&region, 0, &[1; 1000])?.build()?;
        t.send_wire(&pdc.trimmed(&packet, Trimmed::Fabric, 16))?;
    }
    t.gather(t.soon())?;
    send(t, &pdc, &pdc.request(1).write(&region, 0, &[1; 1000])?)?;
    let grown = told(t, &pdc, pdc.psn(1))? - before;
    t.check(CC_RCVD_002, "4 or 5 units more:", true, (4..=5).contains(&grown));
    Ok(())
}

fn each_context(t: &mut Test<'_>) -> Outcome {
    let region = telling(t)?;
    let (one, first) = open(t, &region)?;
    for n in 1..=8 {
        send(t, &one, &one.request(n).write(&region, 0, &[1; 1000])?)?;
        told(t, &one, one.psn(n))?;
    }
    let (_, second) = open(t, &region)?;
    t.check(CC_RCVD_001, "units after the first packet", first, second);
    Ok(())
}

fn service_time(t: &mut Test<'_>) -> Outcome {
    let region = telling(t)?;
    let (pdc, _) = open(t, &region)?;
    // The last packet of a message waits for the first: longer than anything else here, less than the field can tell.
    let wait = Duration::from_millis(4);
    let sent = t.now();
    t.request(&pdc, pdc.request(2).half(&region, t.mtu(), 1)?)?;
    t.pause(wait)?;
    t.request(&pdc, pdc.request(1).half(&region, t.mtu(), 0)?)?;
    let (seen, ack) = t.need("an ACK that names the last packet", t.soon(), |seen| {
        seen.answers(&pdc, pdc.psn(2)).and(seen.ack_cc())
    })?;
    let Some(nanoseconds) = ack.service_time_ns().filter(|told| *told > 0) else {
        return Err(Stop::Skipped("the device does not tell the service time".into()));
    };
    let told = Duration::from_nanos(nanoseconds.into());
    let (least, most) = (wait * 3 / 4, seen.at - sent + Duration::from_micros(1));
    // Beyond 8.388 ms the field says no more.
    let fits = told <= most && (told >= least || most > Duration::from_millis(8));
    t.check(CC_SERVICE_001, &format!("{told:?}, between {least:?} and {most:?}:"), true, fits);
    Ok(())
}

/// The congestion control context of the suite's that wants credit.
const CONTEXT: u8 = 7;

/// More than any window, in units of 256 bytes: 16 MiB.
const WINDOW: u32 = 1 << 16;

/// A device that grants credit: one that says so, or lets itself be told to.
fn granting(t: &mut Test<'_>) -> Result<Region, Stop> {
    match t.device().capabilities.iter().any(|claim| claim == "rccc") {
        true => t.congestion("rccc")?,
        false => t.configure("congestion", "rccc")?,
    }
    t.region(1 << 14)
}

/// The credit that a packet grants, in units of 256 bytes since the start.
fn granted(seen: &Seen, pdc: &Pdc) -> Option<Units24> {
    if !seen.is_for(pdc) {
        return None;
    }
    let by_control = seen.control(CtlType::CREDIT).and_then(|control| control.credit());
    by_control.or_else(|| seen.ack_cc().filter(|ack| ack.cc_type() == CcType::CREDIT)?.credit())
}

/// Expects credit up to this sum.
fn expect_credit(t: &mut Test<'_>, requirement: &Requirement, pdc: &Pdc, units: u32) -> Outcome {
    let expected = format!("credit of {units} units or more in all");
    t.expect(requirement, &expected, t.soon(), |seen| (granted(seen, pdc)?.get() >= units).then_some(()))?;
    Ok(())
}

/// Expects no credit far beyond a demand. Some, up to what a window can be, may be granted without a demand.
fn expect_no_flood(t: &mut Test<'_>, requirement: &Requirement, pdc: &Pdc, demand: u32) -> Outcome {
    let most = demand + WINDOW;
    t.expect_none(requirement, &format!("no credit beyond {most} units"), t.soon(), |seen| {
        (granted(seen, pdc)?.get() > most).then_some(())
    })
}

/// A context whose first packet wants this much.
fn wanting(t: &mut Test<'_>, pdc: Pdc, region: &Region, units: u32) -> Result<Pdc, Stop> {
    t.request(&pdc, pdc.request(0).wanting(CONTEXT, units).write(region, 0, &[1])?)?;
    // The answer stays to be looked at: its credit may count.
    let (seen, ack) = t.need_ack(&pdc, pdc.psn(0))?;
    t.put_back(seen);
    Ok(Pdc { remote: Some(ack.spdcid()), ..pdc })
}

fn credit(t: &mut Test<'_>) -> Outcome {
    let region = granting(t)?;
    let pdc = t.initiate();
    let pdc = wanting(t, pdc, &region, 4000)?;
    expect_credit(t, RCCC_GRANT_001, &pdc, 4000)?;
    expect_no_flood(t, RCCC_COUNT_001, &pdc, 4000)?;
    t.expect_memory(RCCC_GRANT_001, &region, 0, &[1])
}

fn more_credit(t: &mut Test<'_>) -> Outcome {
    let region = granting(t)?;
    let pdc = t.initiate();
    let pdc = wanting(t, pdc, &region, 50)?;
    // Without a pause: a source that is silent for long may be forgotten, and counts from 0 again.
    let mut all = Vec::new();
    for n in 1..=8 {
        t.request(&pdc, pdc.request(n).wanting(CONTEXT, 50 + 50 * n).write(&region, 0, &[1])?)?;
        all.extend(t.gather(t.soon() / 200)?);
    }
    all.extend(t.gather(t.soon())?);
    let grants: Vec<u32> =
        all.iter().filter_map(|seen| granted(seen, &pdc)).map(|credit| credit.get()).collect();
    let back = grants.windows(2).find(|pair| pair[1] < pair[0]);
    t.check(RCCC_COUNT_001, "a grant below one before:", None, back);
    let last = grants.last().copied().unwrap_or(0);
    t.check(RCCC_GRANT_001, &format!("{last} units for a demand of 450:"), true, last >= 450);
    Ok(())
}

fn old_demand(t: &mut Test<'_>) -> Outcome {
    let region = granting(t)?;
    let pdc = t.initiate();
    let pdc = wanting(t, pdc, &region, 10)?;
    // The packet overtakes those of before: were one of them taken for the newest, the device would grant no more.
    for (n, units) in [(4, 2000), (1, 20), (2, 60), (3, 100)] {
        t.request(&pdc, pdc.request(n).wanting(CONTEXT, units).write(&region, 0, &[1])?)?;
    }
    expect_credit(t, RCCC_COUNT_002, &pdc, 2000)?;
    expect_no_flood(t, RCCC_COUNT_002, &pdc, 2000)
}

fn credit_request(t: &mut Test<'_>) -> Outcome {
    let region = granting(t)?;
    let pdc = t.initiate();
    let pdc = wanting(t, pdc, &region, 10)?;
    expect_credit(t, RCCC_GRANT_001, &pdc, 10)?;
    let wants = u32::from(CONTEXT) << 24 | 120;
    let request = pdc.control(CtlType::CREDIT_REQUEST, Psn(0), wants)?;
    t.send(&pdc, &request)?;
    expect_credit(t, RCCC_GRANT_001, &pdc, 120)?;
    // The grant may have been lost.
    t.gather(t.soon() / 200)?;
    t.send(&pdc, &request)?;
    expect_credit(t, RCCC_GRANT_001, &pdc, 120)
}

fn trimmed_demand(t: &mut Test<'_>) -> Outcome {
    let region = granting(t)?;
    let pdc = t.initiate();
    let pdc = wanting(t, pdc, &region, 10)?;
    expect_credit(t, RCCC_GRANT_001, &pdc, 10)?;
    let request = pdc.request(1).wanting(CONTEXT, 150).write(&region, 0, &[1; 1000])?;
    t.send_wire(&pdc.trimmed(&request.build()?, Trimmed::Fabric, 16))?;
    expect_credit(t, RCCC_TRIM_001, &pdc, 150)
}

fn two_sources(t: &mut Test<'_>) -> Outcome {
    let region = granting(t)?;
    let (one, two) = (t.initiate(), t.initiate_from(1)?);
    let one = wanting(t, one, &region, 300)?;
    let two = wanting(t, two, &region, 300)?;
    expect_credit(t, RCCC_GRANT_001, &one, 300)?;
    expect_credit(t, RCCC_GRANT_001, &two, 300)
}

fn credit_encoding(t: &mut Test<'_>) -> Outcome {
    let region = granting(t)?;
    let pdc = t.initiate();
    let pdc = wanting(t, pdc, &region, 10)?;
    t.request(&pdc, pdc.request(2).wanting(CONTEXT, 200).write(&region, 0, &[1])?)?;
    let mut grants = 0;
    for seen in t.gather(t.soon())? {
        if granted(&seen, &pdc).is_some() {
            grants += 1;
            t.check_packet(&seen, &[WIRE_RSVD_001]);
        }
        match (seen.control(CtlType::CREDIT), seen.ack_cc()) {
            (Some(_), _) => t.check_packet(&seen, &[WIRE_CTL_004, WIRE_CTL_006, WIRE_CTL_007]),
            (None, Some(_)) => t.check_packet(&seen, &[WIRE_RSVD_002, WIRE_CC_001]),
            _ => {}
        }
    }
    match grants {
        0 => Err(Stop::Inconclusive("the device grants nothing".into())),
        _ => Ok(()),
    }
}
