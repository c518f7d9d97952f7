//! Several sources and contexts that share a destination of RCCC (section 3.6.14).

use super::credit_source::{BEARER, Bearer, CCC, CreditSource, demand_step, excess_limit};
use crate::prelude::*;

/// The number of sources that have demand at a time.
const SOURCES: Axis<u8> = axis("sources").values(&[("2", 2), ("5", 5), ("16", 16)]);

/// The number of sources that the device remembers.
const REMEMBERED: u8 = 8;

/// Begins a rule with the usual needs and axes of this file.
const fn rule(id: &'static str, title: &'static str) -> RuleDraft {
    crate::rule(id, title).needs(&[RCCC]).over(&[&MODE, &CARRIER, &START])
}

pub(super) const RULES: &[Rule] = &[
    rule("rccc/grants-two-sources", "A destination grants the demand of two sources")
        .checks(&[RCCC_GRANT_001])
        .needs(&[RCCC, TWO_ADDRESSES])
        .run(|t| {
            let (mut first, step) = (CreditSource::open(t)?, demand_step(t)?);
            let pdc = t.initiate_from(1)?;
            let mut second = CreditSource::open_on(t, pdc, first.region.clone(), CCC)?;
            for n in 1..=3 {
                first.demand(t, step * n)?;
                second.demand(t, step * n)?;
                second.expect_grant(t, RCCC_GRANT_001, step * n)?;
                first.expect_grant(t, RCCC_GRANT_001, step * n)?;
            }
            Ok(())
        }),
    rule("rccc/grants-paced", "A destination grants credit at about the rate of its link")
        .checks(&[RCCC_PACE_001])
        .measure(|t| {
            // Several sources, so that demand lasts while the next demand of each travels to the device.
            let count = t.parameter("general_pdcs").clamp(1, 16) as u8;
            let mut sources = CreditSource::open_several(t, count)?;
            let rate = t.reported("receiver_rate").unwrap_or(0);
            require(rate != 0, "the device does not report receiver_rate")?;
            let (begun, step) = (t.now(), demand_step(t)?);
            for n in 1..=6 {
                for source in &mut sources {
                    source.demand(t, step * n)?;
                }
                for source in &mut sources {
                    source.collect_grants(t, step * n, t.soon())?;
                }
            }
            let end =
                sources.iter().filter_map(|source| Some(source.grants.last()?.0)).max().unwrap_or(begun);
            let units: u32 = sources.iter().map(|source| source.credit.get()).sum();
            let carried = rate as f64 * (end - begun).as_secs_f64() / 8.0 / 256.0;
            // "About" permits half as much again, and a burst.
            let most = Bound::from((carried * 1.5) as u32 + excess_limit(t)?)
                .from_parameter("receiver_rate")
                .tolerating("half of it, and a burst");
            t.at_most(RCCC_PACE_001, "units of credit granted while the demand lasts", most, units);
            let wanted = step * 6 * u32::from(count);
            t.at_least(RCCC_PACE_001, "units of credit granted for all demand", wanted, units);
            // Each round takes a round trip too.
            let (link, round_trips) =
                (f64::from(wanted) * 8.0 * 256.0 / rate as f64, t.grace().as_secs_f64() * 6.0);
            let longest = Bound::from(Duration::from_secs_f64(10.0 * link + round_trips))
                .from_parameter("receiver_rate")
                .tolerating("a factor of 10, and six pauses");
            t.at_most(RCCC_PACE_001, "the time until all demand is granted", longest, end - begun);
            Ok(())
        }),
    rule("rccc/shared-destination", "Each source that shares a destination gets the credit that it demands")
        .checks(&[RCCC_GRANT_001, RCCC_COUNT_001])
        .over(&[&MODE, &CARRIER, &SOURCES, &BEARER])
        .run(|t| {
            // All sources have demand at once, so that each waits for the others.
            let (count, bearer) = (t.value(&SOURCES), t.value(&BEARER));
            require(u64::from(count) <= t.parameter("general_pdcs"), "the device has too few contexts")?;
            let (mut sources, step) = (CreditSource::open_several(t, count)?, demand_step(t)?);
            for n in 1..=3 {
                for (place, source) in (1..).zip(&mut sources) {
                    source.demand_in(t, bearer, step * n + place)?;
                }
                for (place, source) in (1..).zip(&mut sources) {
                    let wanted = step * n + place;
                    source.wait_for_grant(t, wanted, t.patience(t.soon()))?;
                    let what = format!("units granted to source {place} of {count} in round {n}");
                    t.at_least(RCCC_GRANT_001, &what, wanted, source.credit.get());
                    let most = wanted + excess_limit(t)?;
                    let what = format!("units granted to source {place} of {count}");
                    t.at_most(RCCC_COUNT_001, &what, most, source.credit.get());
                }
            }
            Ok(())
        }),
    rule("rccc/vanished-source", "A source that vanishes with demand does not block grants to others")
        .checks(&[RCCC_GRANT_001])
        .needs(&[RCCC, TWO_ADDRESSES])
        .over(&[&MODE, &CARRIER, &BEARER])
        .run(|t| {
            let (mut vanished, step) = (CreditSource::open(t)?, demand_step(t)?);
            let pdc = t.initiate_from(1)?;
            let mut other = CreditSource::open_on(t, pdc, vanished.region.clone(), CCC)?;
            let bearer = t.value(&BEARER);
            vanished.demand_in(t, bearer, step * 4)?;
            for n in 1..=6 {
                other.expect_demand_granted(t, RCCC_GRANT_001, bearer, step * n)?;
            }
            Ok(())
        }),
    rule("rccc/endless-demand", "A source with endless demand leaves credit for another one")
        .checks(&[RCCC_GRANT_001])
        .over(&[&MODE, &CARRIER, &BEARER])
        .run(|t| {
            // The demand of the first source is never met, since it grows with each grant.
            let (mut sources, step, bearer) =
                (CreditSource::open_several(t, 2)?, demand_step(t)?, t.value(&BEARER));
            let [endless, other] = &mut sources[..] else { return Err(Stop::Failed) };
            endless.demand_in(t, bearer, step * 3)?;
            other.demand_in(t, bearer, step)?;
            for n in 1..=30 {
                let granted = endless.wait_for_grant(t, step * n, t.patience(t.soon()))?;
                require(granted, "the demand of a source is not granted")?;
                endless.demand_in(t, bearer, step * (n + 3))?;
            }
            other.collect_grants(t, step, Duration::ZERO)?;
            let what = format!("units granted to a source while another one gets {}", step * 30);
            t.at_least(RCCC_GRANT_001, &what, step, other.credit.get());
            Ok(())
        }),
    rule("rccc/demand-per-ccc", "A destination counts the demand of each ccc_id separately")
        .checks(&[RCCC_COUNT_001, RCCC_GRANT_001])
        .over(&[&MODE, &CARRIER, &BEARER])
        .run(|t| {
            let (mut first, step, bearer) = (CreditSource::open(t)?, demand_step(t)?, t.value(&BEARER));
            let (pdc, region) = (t.initiate(), first.region.clone());
            let mut second = CreditSource::open_on(t, pdc, region, CCC ^ 0x55)?;
            first.expect_demand_granted(t, RCCC_GRANT_001, bearer, step * 2)?;
            // Less than the first context was granted: the counters are separate.
            second.expect_demand_granted(t, RCCC_GRANT_001, bearer, step)?;
            first.expect_demand_granted(t, RCCC_GRANT_001, bearer, step * 3)?;
            second.expect_demand_granted(t, RCCC_GRANT_001, bearer, step * 2)?;
            let most = step * 2 + excess_limit(t)?;
            t.at_most(RCCC_COUNT_001, "units granted to the second context", most, second.credit.get());
            Ok(())
        }),
    rule("rccc/silent-sources", "A destination forgets silent sources, and counts a new one from 0")
        .checks(&[RCCC_GRANT_001, RCCC_COUNT_001])
        .over(&[&MODE])
        .run(|t| {
            // The sources leave open how long a destination remembers a silent source. It has 10 seconds.
            t.configure("max_sources", REMEMBERED)?;
            let (mut source, step) = (CreditSource::open(t)?, demand_step(t)?);
            let region = source.region.clone();
            for n in 1..=REMEMBERED {
                // A destination that remembers fewer sources grants nothing to the last ones.
                for part in 1..=8 {
                    source.demand_in(t, Bearer::CreditRequest, step * part)?;
                    if !source.wait_for_grant(t, step * part, t.soon())? {
                        break;
                    }
                }
                let pdc = t.initiate();
                source = CreditSource::open_on(t, pdc, region.clone(), CCC ^ n)?;
            }
            let mut granted = false;
            for _ in 0..20 {
                t.pause(Duration::from_millis(500))?;
                source.demand_in(t, Bearer::CreditRequest, step)?;
                granted = source.wait_for_grant(t, step, t.patience(t.soon()))?;
                if granted {
                    break;
                }
            }
            let statement = format!("a cumulative credit of {step} units or more for a new source");
            t.holds(RCCC_GRANT_001, &statement, granted, format_args!("{} units", source.credit.get()));
            let most = step + excess_limit(t)?;
            t.at_most(
                RCCC_COUNT_001,
                "the cumulative credit of a new source, in units",
                most,
                source.credit.get(),
            );
            Ok(())
        }),
];
