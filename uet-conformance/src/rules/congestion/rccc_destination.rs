//! The grants of a destination of RCCC for the demand of one source (section 3.6.14).

use super::credit_source::{BEARER, Bearer, CCC, CreditSource, demand_step, excess_limit, granted};
use super::steps::WRAP;
use crate::Trimmed;
use crate::prelude::*;
use crate::rules::steps::with_demand;
use uet_wire::Units24;

/// The algorithms that the device runs.
const ALGORITHMS: Axis<&str> =
    axis("algorithms").needing(&[("rccc", "rccc", &[]), ("both", "both", &[NSCC])]);

/// The switch that trims a request, and the number of bytes that it keeps. The fewest are those of the header
/// with the demand.
const CUT: Axis<(Trimmed, usize)> = axis("trimmed").values(&[
    ("fabric", (Trimmed::Fabric, 64)),
    ("last-hop", (Trimmed::LastHop, 64)),
    ("fewest-bytes", (Trimmed::Fabric, 16)),
]);

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[RCCC]).over(&[&MODE, &CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("rccc/grants-demand", "A destination grants all demand of a request")
        .checks(&[RCCC_GRANT_001])
        .over(&[&ALGORITHMS, &MODE, &CARRIER, &START])
        .run(|t| {
            t.congestion(t.value(&ALGORITHMS))?;
            let (mut source, step) = (CreditSource::open(t)?, demand_step(t)?);
            source.demand(t, step)?;
            source.expect_grant(t, RCCC_GRANT_001, step)
        }),
    rule("rccc/grants-opening", "A destination grants the demand of the request that opens its context")
        .checks(&[RCCC_GRANT_001])
        .run(|t| {
            t.congestion_or_both("rccc")?;
            t.auto_credit = false;
            let (region, pdc, step) = (t.region(1 << 16)?, t.initiate(), demand_step(t)?);
            let mut source = CreditSource::open_demanding(t, pdc, region, CCC, step)?;
            // The next request has an older demand, and shows that the source has not forged its address.
            source.demand(t, 0)?;
            source.expect_grant(t, RCCC_GRANT_001, step)
        }),
    rule("rccc/retransmitted-demand", "A destination grants the demand of a retransmission")
        .checks(&[RCCC_GRANT_001])
        .run(|t| {
            // Each packet has arrived before, with the demand of the last retransmission.
            let (mut source, step) = (CreditSource::open(t)?, demand_step(t)?);
            let pdc = source.pdc.clone();
            for n in 1..=3 {
                let request = pdc.request(n).write(&source.region, 0, &[1; 64])?;
                t.send(&pdc, &with_demand(&request, CCC, step * (n - 1))?)?;
                t.need_ack(&pdc, request.psn)?;
                t.send(&pdc, &with_demand(&request.retx(), CCC, step * n)?)?;
                source.expect_grant(t, RCCC_GRANT_001, step * n)?;
            }
            Ok(())
        }),
    rule("rccc/grant-class", "Grants use the traffic class of control packets")
        .checks(&[PDS_CLASS_001])
        .needs(&[RCCC, SEE_CLASS])
        .over(&[&BEARER, &MODE, &CARRIER])
        .run(|t| {
            let (mut source, step, bearer) = (CreditSource::open(t)?, demand_step(t)?, t.value(&BEARER));
            source.demand_in(t, bearer, step)?;
            let grants = |seen: &RxPacket| granted(seen, &source.pdc).filter(|credit| credit.get() > 0);
            let (grant, _) = t.need("a grant", t.soon(), grants)?;
            let class = grant.wire.high.map(|high| if high { "high" } else { "low" });
            t.check(PDS_CLASS_001, "DSCP class of a grant", Some("high"), class);
            Ok(())
        }),
    rule("rccc/grants-in-units", "Grants in units of 256 bytes exceed the demand by at most 4 BDP")
        .checks(&[RCCC_COUNT_001, RCCC_GRANT_001])
        .run(|t| {
            let mut source = CreditSource::open(t)?;
            source.demand(t, 30)?;
            source.expect_grant(t, RCCC_GRANT_001, 30)?;
            let most = 30 + excess_limit(t)?;
            t.at_most(RCCC_COUNT_001, "the cumulative credit, in units", most, source.credit.get());
            Ok(())
        }),
    rule("rccc/grants-cumulative", "Grants are cumulative over successive demands")
        .checks(&[RCCC_COUNT_001])
        .run(|t| {
            let mut source = CreditSource::open(t)?;
            check_successive_grants(t, &mut source, 4)
        }),
    rule("rccc/grants-long", "Grants stay cumulative over 40 successive demands")
        .checks(&[RCCC_COUNT_001])
        .run(|t| {
            let mut source = CreditSource::open(t)?;
            check_successive_grants(t, &mut source, 40)
        }),
    rule("rccc/grants-never-decrease", "The cumulative credit of grants never decreases")
        .checks(&[RCCC_COUNT_001])
        .run(|t| {
            let (mut source, step) = (CreditSource::open(t)?, demand_step(t)?);
            for n in 1..=6 {
                source.demand(t, step * n)?;
                source.collect_grants(t, step * n, t.soon())?;
            }
            if source.grants.len() < 2 {
                return Err(Stop::Inconclusive("fewer than two grants arrived".into()));
            }
            let decreases = source.grants.windows(2).filter(|pair| pair[1].1 < pair[0].1).count();
            t.check(RCCC_COUNT_001, "grants below an earlier one", 0, decreases);
            Ok(())
        }),
    rule("rccc/grants-credit-request", "A destination grants the demand of a CREDIT_REQUEST")
        .checks(&[RCCC_GRANT_001])
        .run(|t| {
            let (mut source, step) = (CreditSource::open(t)?, demand_step(t)?);
            source.demand_in(t, Bearer::CreditRequest, step)?;
            source.expect_grant(t, RCCC_GRANT_001, step)
        }),
    rule("rccc/grants-rod", "A destination grants the demand of a ROD context")
        .checks(&[RCCC_GRANT_001])
        .needs(&[ROD, RCCC])
        .over(&[&CARRIER, &START])
        .run(|t| {
            t.congestion_or_both("rccc")?;
            t.auto_credit = false;
            let region = t.region(1 << 16)?;
            let pdc = Pdc { rod: true, ..t.initiate() };
            let (mut source, step) = (CreditSource::open_on(t, pdc, region, CCC)?, demand_step(t)?);
            source.demand(t, step)?;
            source.expect_grant(t, RCCC_GRANT_001, step)
        }),
    rule("rccc/trimmed-demand", "A destination grants the demand of a trimmed request")
        .checks(&[RCCC_TRIM_001])
        .needs(&[RCCC, TRIM])
        .over(&[&CUT, &MODE, &CARRIER, &START])
        .run(|t| {
            let (mut source, step) = (CreditSource::open(t)?, demand_step(t)?);
            let (place, keep) = t.value(&CUT);
            let packet = source.build_demand(Bearer::Trimmed, step)?;
            t.send_wire(&source.pdc.trimmed(&packet, place, keep))?;
            source.expect_grant(t, RCCC_TRIM_001, step)
        }),
    rule("rccc/stale-demand", "A credit_target below an earlier one gets no further credit")
        .checks(&[RCCC_COUNT_002, RCCC_GRANT_001])
        .run(|t| {
            let (mut source, step) = (CreditSource::open(t)?, demand_step(t)?);
            source.demand(t, step)?;
            source.expect_grant(t, RCCC_GRANT_001, step)?;
            source.demand(t, step / 2)?;
            let most = step + excess_limit(t)?;
            source.collect_grants(t, most + 1, t.soon())?;
            t.at_most(RCCC_COUNT_002, "the cumulative credit, in units", most, source.credit.get());
            source.demand(t, step * 2)?;
            source.expect_grant(t, RCCC_GRANT_001, step * 2)
        }),
    rule("rccc/no-demand", "A source without demand gets at most 4 BDP of credit")
        .checks(&[RCCC_COUNT_001])
        .run(|t| {
            let mut source = CreditSource::open(t)?;
            let most = excess_limit(t)?;
            source.demand(t, 0)?;
            source.collect_grants(t, most + 1, t.soon())?;
            t.at_most(RCCC_COUNT_001, "the cumulative credit, in units", most, source.credit.get());
            Ok(())
        }),
    rule("rccc/demand-across-wrap", "A destination grants demand that wraps at 2^24 units")
        .checks(&[RCCC_COUNT_001])
        .over(&[&MODE, &CARRIER, &BEARER])
        .run(|t| {
            let (mut source, bearer) = (CreditSource::open(t)?, t.value(&BEARER));
            source.approach_wrap(t, bearer)?;
            for target in [WRAP - 10, WRAP + 20, WRAP + 50] {
                source.expect_demand_granted(t, RCCC_COUNT_001, bearer, target)?;
            }
            Ok(())
        }),
    rule("rccc/stale-demand-before-wrap", "Stale demand from before the wrap at 2^24 units gets no credit")
        .checks(&[RCCC_COUNT_002])
        .over(&[&MODE, &CARRIER, &BEARER])
        .run(|t| {
            let (mut source, bearer) = (CreditSource::open(t)?, t.value(&BEARER));
            source.approach_wrap(t, bearer)?;
            source.demand_in(t, bearer, WRAP + 40)?;
            if !source.wait_for_grant(t, 40, t.patience(t.soon()))? {
                return Err(Stop::Inconclusive("the demand beyond the wrap was not granted".into()));
            }
            let (before, count) = (source.credit, source.grants.len());
            source.demand_in(t, bearer, WRAP - 20)?;
            source.wait_for_grant(t, before.get() + 8_000_000, t.soon())?;
            let more = source.credit.since(before).unwrap_or(0);
            let most = excess_limit(t)?;
            t.at_most(RCCC_COUNT_002, "units granted for demand from before the wrap", most, more);
            let stale = source
                .grants
                .iter()
                .skip(count)
                .filter(|(_, credit)| (Units24::default() + *credit).since(before).is_none());
            t.check(RCCC_COUNT_002, "grants below an earlier one", 0, stale.count());
            source.expect_demand_granted(t, RCCC_COUNT_002, bearer, WRAP + 90)
        }),
    rule("rccc/lost-grant", "A destination repeats a lost grant on each CREDIT_REQUEST")
        .checks(&[RCCC_GRANT_001])
        .over(&[&MODE, &CARRIER])
        .run(|t| {
            let (mut source, step) = (CreditSource::open(t)?, demand_step(t)?);
            source.demand(t, step)?;
            if !source.wait_for_grant(t, step, t.patience(t.soon()))? {
                return Err(Stop::Inconclusive("the demand was not granted".into()));
            }
            // Each CREDIT_REQUEST has the same demand.
            for _ in 0..3 {
                t.settle()?;
                t.forget();
                source.credit = Units24::default();
                source.expect_demand_granted(t, RCCC_GRANT_001, Bearer::CreditRequest, step)?;
            }
            Ok(())
        }),
];

/// Adds demand `count` times, each time after the last demand is granted.
fn check_successive_grants(t: &mut Test<'_>, source: &mut CreditSource, count: u32) -> Outcome {
    let step = demand_step(t)?;
    for n in 1..=count {
        source.demand(t, step * n)?;
        source.expect_grant(t, RCCC_COUNT_001, step * n)?;
    }
    Ok(())
}
