//! The sources that a destination of receiver credit remembers (section 3.6.14).

use super::rccc::{Bearer, CCC, CreditSource, some};
use crate::prelude::*;

/// The number of sources that the device remembers.
const SOURCES: u8 = 8;

pub(super) const RULES: &[Rule] =
    &[rule("rccc/silent-sources", "A destination forgets silent sources and grants credit to a new one")
        .checks(&[RCCC_GRANT_001])
        .needs(&[RCCC])
        .over(&[&MODE])
        .run(|t| {
            // Open: how long a destination remembers a silent source. It has 10 seconds.
            t.configure("max_sources", SOURCES)?;
            let (mut source, some) = (CreditSource::open(t)?, some(t)?);
            let region = source.region.clone();
            for n in 1..=SOURCES {
                source.demand_by(t, Bearer::CreditRequest, some)?;
                // A destination that remembers fewer sources grants nothing to the last ones.
                source.reaches(t, some, t.soon())?;
                let pdc = t.initiate();
                source = CreditSource::on(t, pdc, region.clone(), CCC ^ n)?;
            }
            let mut granted = false;
            for _ in 0..20 {
                t.pause(Duration::from_millis(500))?;
                source.demand_by(t, Bearer::CreditRequest, some)?;
                granted = source.reaches(t, some, t.patience(t.soon()))?;
                if granted {
                    break;
                }
            }
            let statement = format!("a cumulative credit of {some} units or more for a new source");
            t.holds(RCCC_GRANT_001, &statement, granted, format_args!("{} units", source.credit.get()));
            Ok(())
        })];
