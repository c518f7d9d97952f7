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
    let region = t.region(4096)?;
    let mut pdc = t.initiate();

    t.send(&pdc, &pdc.request(0).write(&region, 0, &[1; 16])?.build()?)?;
    let (first, ()) =
        t.need("an open context", t.soon(), |seen| seen.acknowledges(&pdc, pdc.psn(0)).then_some(()))?;
    pdc.remote = first.ack().map(|ack| ack.spdcid());

    t.send(&pdc, &pdc.request(1).write(&region, 16, &[2; 16])?.build()?)?;
    t.expect(PDS_ACK_004, "an ACK for the request with ar", t.soon(), |seen| {
        seen.acknowledges(&pdc, pdc.psn(1)).then_some(())
    })?;
    Ok(())
}
