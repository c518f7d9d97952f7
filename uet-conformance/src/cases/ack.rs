//! When a device acknowledges, and what its ACKs say (section 3.5.12).

use crate::{Case, Need, Outcome, Test};
use uet_wire::catalogue::*;

const TARGET: &[Need] = &[Need::Capability("rud"), Need::Capability("write")];

pub(super) const CASES: &[Case] = &[Case {
    id: "ack/asked-for",
    title: "A packet that asks for an ACK gets one at once",
    requirements: &[PDS_ACK_004],
    needs: TARGET,
    run: asked_for,
}];

fn asked_for(t: &mut Test<'_>) -> Outcome {
    let (pdc, region) = t.open()?;
    t.request(&pdc, pdc.request(1).write(&region, 16, &[2; 16])?)?;
    t.expect_ack(PDS_ACK_004, &pdc, pdc.psn(1))?;
    Ok(())
}
