//! Credit from anyone but the peer (sections 3.5.8, 3.6.14).

use super::rccc::{by_control, exhausted};
use crate::prelude::*;
use crate::rules::steps::{STRANGER, wrong_context};
use uet_wire::Units24;
use uet_wire::pds::PdsBuf;
use uet_wire::registry::CcType;

/// The packet that grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grant {
    Control,
    Ack,
}

const GRANT: Axis<Grant> = axis("grant").values(&[("credit", Grant::Control), ("ack-cc", Grant::Ack)]);

/// Units of 256 bytes: some packets.
const SOME: u32 = 200;

pub(super) const RULES: &[Rule] =
    &[rule("rccc-spoofing/grant", "A source without credit sends nothing on a spoofed grant")
        .checks(&[PDS_PDC_003, RCCC_CREDIT_001])
        .needs(&[RCCC])
        .over(&[&STRANGER, &GRANT, &MODE, &CARRIER, &START])
        .measure(|t| {
            let mut flow = exhausted(t)?;
            let stranger = wrong_context(t, &flow.target.pdc)?;
            let highest = flow.count();
            let grant = grant(t, &stranger, flow.target.psn(highest - 1))?;
            t.send(&stranger, &grant)?;
            // Not for long: a source that waits in vain may try whether the destination still knows it.
            let during = t.grace().min(t.base_rtt()? * 8);
            let nothing = "nothing for the credit of a stranger";
            flow.target.expect_none(t, PDS_PDC_003, nothing, during, |n| n >= highest)?;
            by_control(t, &flow, SOME)?;
            flow.target.expect_new(t, RCCC_CREDIT_001, highest)?;
            Ok(())
        })];

/// A grant. An ACK covers this PSN.
fn grant(t: &Test<'_>, from: &Pdc, psn: Psn) -> Result<UetBuf, Stop> {
    if t.value(&GRANT) == Grant::Control {
        return Ok(from.control(CtlType::CREDIT, Psn(0), SOME)?);
    }
    let mut packet = AckBuilder { nscc: Some((Units24::default(), 0)), ..from.ack(psn) }.build()?;
    if let Some(PdsBuf::AckCc(header)) = packet.pds {
        let header = header.edit().cc_type(CcType::CREDIT).credit(Units24::default() + SOME).ooo_count(0);
        packet.pds = Some(header.done()?.into());
    }
    Ok(packet)
}
