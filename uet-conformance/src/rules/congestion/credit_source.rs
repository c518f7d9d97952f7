//! The suite as a source of RCCC, which demands credit from the device (section 3.6.14).

use super::steps::WRAP;
use crate::Trimmed;
use crate::prelude::*;
use crate::rules::steps::with_demand;
use uet_wire::Units24;

/// The packet that carries the demand.
pub(super) const BEARER: Axis<Bearer> = axis("demand-in").needing(&[
    ("request", Bearer::Request, &[]),
    ("credit-request", Bearer::CreditRequest, &[]),
    ("trimmed", Bearer::Trimmed, &[TRIM]),
]);

/// See [`BEARER`].
#[derive(Clone, Copy, Debug)]
pub(in crate::rules) enum Bearer {
    Request,
    CreditRequest,
    Trimmed,
}

/// The `ccc_id` of the suite's first source.
pub(in crate::rules) const CCC: u8 = 0xa1;

/// The maximum number of grants that a script waits for. A device may grant little at a time.
const MAX_GRANTS: usize = 2000;

/// A context on which the suite demands credit.
pub(in crate::rules) struct CreditSource {
    pub(in crate::rules) pdc: Pdc,
    /// The congestion control context.
    ccc_id: u8,
    pub(in crate::rules) region: Region,
    /// The number of the next request.
    next: u32,
    /// The serially highest cumulative credit so far.
    pub(in crate::rules) credit: Units24,
    /// The time and the cumulative credit of each grant.
    pub(super) grants: Vec<(Duration, u32)>,
}

impl CreditSource {
    /// Opens a context without demand, and stops the suite from answering demand of the device.
    pub(super) fn open(t: &mut Test<'_>) -> Result<Self, Stop> {
        t.congestion_or_both("rccc")?;
        t.auto_credit = false;
        let region = t.region(1 << 16)?;
        let pdc = t.initiate();
        Self::open_on(t, pdc, region, CCC)
    }

    /// Opens this context without demand.
    pub(in crate::rules) fn open_on(
        t: &mut Test<'_>,
        pdc: Pdc,
        region: Region,
        ccc_id: u8,
    ) -> Result<Self, Stop> {
        let source = Self::open_demanding(t, pdc, region, ccc_id, 0)?;
        t.forget();
        Ok(CreditSource { credit: Units24::default(), ..source })
    }

    /// Opens this context with a request that has this `credit_target`.
    pub(super) fn open_demanding(
        t: &mut Test<'_>,
        mut pdc: Pdc,
        region: Region,
        ccc_id: u8,
        target: u32,
    ) -> Result<Self, Stop> {
        let first = pdc.request(0).write(&region, 0, &[0])?;
        t.send(&pdc, &with_demand(&first, ccc_id, target)?)?;
        // A target in a secure domain may want another Start_PSN.
        let reacts =
            |seen: &RxPacket| seen.new_start(&pdc).is_some() || seen.acknowledges(&pdc, pdc.psn(0)).is_some();
        if t.is_secure() && t.hear(t.soon(), reacts)? {
            if let Some((_, start)) = t.wait(Duration::ZERO, |seen| seen.new_start(&pdc))? {
                pdc.start = start;
                let first = pdc.request(0).write(&region, 0, &[0])?;
                t.send(&pdc, &with_demand(&first, ccc_id, target)?)?;
            }
        }
        let (seen, ack) = t.need("an open context", t.soon(), |seen| seen.acknowledges(&pdc, pdc.psn(0)))?;
        pdc.remote = Some(ack.spdcid());
        let credit = granted(&seen, &pdc).unwrap_or_default();
        Ok(CreditSource { pdc, ccc_id, region, next: 1, credit, grants: Vec::new() })
    }

    /// Demands credit for the return direction of a context that the device has opened.
    pub(super) fn of_return(pdc: Pdc, region: Region) -> Self {
        CreditSource { pdc, ccc_id: CCC, region, next: 0, credit: Units24::default(), grants: Vec::new() }
    }

    /// Opens this number of contexts, each with its own `ccc_id`.
    pub(super) fn open_several(t: &mut Test<'_>, count: u8) -> Result<Vec<Self>, Stop> {
        let mut sources = vec![Self::open(t)?];
        for n in 1..count {
            let (pdc, region) = (t.initiate(), sources[0].region.clone());
            sources.push(Self::open_on(t, pdc, region, CCC.wrapping_add(n))?);
        }
        Ok(sources)
    }

    /// Builds a packet with this `credit_target`, modulo 2^24. A request has the next PSN, which stays free.
    pub(in crate::rules) fn build_demand(&self, bearer: Bearer, target: u32) -> Result<UetBuf, Stop> {
        let target = target % WRAP;
        match bearer {
            Bearer::Request | Bearer::Trimmed => {
                let request = self.pdc.request(self.next).write(&self.region, 0, &[1; 64])?;
                with_demand(&request, self.ccc_id, target)
            }
            Bearer::CreditRequest => {
                let payload = u32::from(self.ccc_id) << 24 | target;
                Ok(self.pdc.control(CtlType::CREDIT_REQUEST, Psn(0), payload)?)
            }
        }
    }

    /// Sends the next request, with this `credit_target`.
    pub(super) fn demand(&mut self, t: &mut Test<'_>, target: u32) -> Outcome {
        self.demand_in(t, Bearer::Request, target)
    }

    /// Sends this `credit_target`, modulo 2^24, in a packet of this type.
    pub(in crate::rules) fn demand_in(&mut self, t: &mut Test<'_>, bearer: Bearer, target: u32) -> Outcome {
        let packet = self.build_demand(bearer, target)?;
        match bearer {
            Bearer::Request => {
                self.next += 1;
                t.send(&self.pdc, &packet)
            }
            Bearer::CreditRequest => t.send(&self.pdc, &packet),
            // The device never gets its payload, so the PSN stays free.
            Bearer::Trimmed => t.send_wire(&self.pdc.trimmed(&packet, Trimmed::Fabric, 64)),
        }
    }

    /// Demands more and more credit until the counters are close to their wrap. A device that grants at the
    /// pace of a slow link does not get there in time.
    pub(super) fn approach_wrap(&mut self, t: &mut Test<'_>, bearer: Bearer) -> Outcome {
        for target in [5_000_000, 10_000_000, 15_000_000, WRAP - 60] {
            self.demand_in(t, bearer, target)?;
            let begun = t.now();
            let granted = self.wait_for_grant(t, target, t.patience(t.soon()))?;
            let units = self.credit.get();
            let last = self.grants.last().map_or(begun, |(at, _)| (*at).max(begun));
            if !granted && t.now() - last > (t.now() - begun) / 2 {
                let statement = format!("grants until the demand of {target} units is met");
                t.holds(RCCC_GRANT_001, &statement, false, format_args!("no grant after {units} units"));
                return Err(Stop::Failed);
            }
            require(granted, format!("the device has granted {units} units in time, not {target}"))?;
        }
        Ok(())
    }

    /// Collects grants until the cumulative credit is serially at `wanted` or above. Returns whether it is.
    pub(super) fn wait_for_grant(
        &mut self,
        t: &mut Test<'_>,
        wanted: u32,
        within: Duration,
    ) -> Result<bool, Stop> {
        let wanted = Units24::default() + wanted;
        let (until, most) = (t.now() + within, self.grants.len() + MAX_GRANTS);
        while self.credit.since(wanted).is_none() && self.grants.len() < most {
            if !self.next_grant(t, until)? {
                break;
            }
        }
        Ok(self.credit.since(wanted).is_some())
    }

    /// Collects grants until the cumulative credit is numerically at `wanted` or above.
    pub(in crate::rules) fn collect_grants(
        &mut self,
        t: &mut Test<'_>,
        wanted: u32,
        within: Duration,
    ) -> Outcome {
        let until = t.now() + within;
        while self.credit.get() < wanted && self.next_grant(t, until)? {}
        Ok(())
    }

    /// Records the next grant. Returns false if none arrives until this time.
    fn next_grant(&mut self, t: &mut Test<'_>, until: Duration) -> Result<bool, Stop> {
        let left = until.saturating_sub(t.now());
        let Some((seen, credit)) = t.wait(left, |seen| granted(seen, &self.pdc))? else { return Ok(false) };
        self.grants.push((seen.at, credit.get()));
        if credit.since(self.credit).is_some() {
            self.credit = credit;
        }
        Ok(true)
    }

    /// Expects grants up to a cumulative credit of `wanted`.
    pub(in crate::rules) fn expect_grant(
        &mut self,
        t: &mut Test<'_>,
        requirement: &Requirement,
        wanted: u32,
    ) -> Outcome {
        self.collect_grants(t, wanted, t.soon())?;
        t.at_least(requirement, "the cumulative credit, in units of 256 bytes,", wanted, self.credit.get());
        Ok(())
    }

    /// Demands credit up to `wanted`, and expects grants that are serially at that or above.
    pub(super) fn expect_demand_granted(
        &mut self,
        t: &mut Test<'_>,
        requirement: &Requirement,
        bearer: Bearer,
        wanted: u32,
    ) -> Outcome {
        self.demand_in(t, bearer, wanted)?;
        let reached = self.wait_for_grant(t, wanted % WRAP, t.patience(t.soon()))?;
        let last = self.credit.get();
        let statement = format!("a cumulative credit of {} units or more", wanted % WRAP);
        t.holds(requirement, &statement, reached, format_args!("{last} units"));
        Ok(())
    }
}

/// Returns the cumulative credit that a packet grants to this context.
pub(super) fn granted(seen: &RxPacket, pdc: &Pdc) -> Option<Units24> {
    let by_ack = seen.ack_cc().and_then(|ack| ack.credit());
    let by_control = seen.control(CtlType::CREDIT).and_then(|control| control.credit());
    by_ack.or(by_control).filter(|_| seen.is_for(pdc))
}

/// Returns the demand that a script adds at a time, in units: at most one BDP.
pub(in crate::rules) fn demand_step(t: &Test<'_>) -> Result<u32, Stop> {
    Ok((t.bdp()? / 256).clamp(32, 250) as u32)
}

/// Returns the most units that a destination may grant beyond the demand: 4 BDP.
pub(in crate::rules) fn excess_limit(t: &Test<'_>) -> Result<u32, Stop> {
    Ok((t.bdp()? * 4 / 256) as u32)
}
