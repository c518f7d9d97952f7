//! Grants of credit from outside the context (sections 3.5.8 and 3.6.14).

use super::steps::{flow_without_credit, grant_by_control, short_silence, with_credit};
use crate::prelude::*;
use crate::rules::steps::{STRANGER, wrong_context};
use uet_wire::Units24;

/// The packet that grants credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grant {
    Control,
    Ack,
}

const GRANT: Axis<Grant> = axis("grant").values(&[("credit", Grant::Control), ("ack-cc", Grant::Ack)]);

/// The granted credit in units of 256 bytes, which suffices for several packets.
const CREDIT: u32 = 200;

pub(super) const RULES: &[Rule] =
    &[rule("rccc-spoofing/grant", "A source without credit sends nothing on a spoofed grant")
        .checks(&[PDS_PDC_003, RCCC_CREDIT_001])
        .needs(&[RCCC])
        .over(&[&STRANGER, &GRANT, &MODE, &CARRIER, &START])
        .measure(|t| {
            let mut flow = flow_without_credit(t)?;
            let stranger = wrong_context(t, &flow.target.pdc)?;
            let highest = flow.count();
            let grant = spoofed_grant(t, &stranger, flow.target.psn(highest - 1))?;
            t.send(&stranger, &grant)?;
            let what = "a new packet for a spoofed grant";
            let silence = short_silence(t)?;
            flow.target.expect_none(t, PDS_PDC_003, what, silence, |n| n >= highest)?;
            grant_by_control(t, &flow.target, CREDIT)?;
            flow.target.expect_new(t, RCCC_CREDIT_001, highest)?;
            Ok(())
        })];

/// Builds a grant. An ACK covers this PSN.
fn spoofed_grant(t: &Test<'_>, from: &Pdc, psn: Psn) -> Result<UetBuf, Stop> {
    match t.value(&GRANT) {
        Grant::Control => Ok(from.control(CtlType::CREDIT, Psn(0), CREDIT)?),
        Grant::Ack => {
            let ack = AckBuilder { nscc: Some((Units24::default(), 0)), ..from.ack(psn) };
            with_credit(ack.build()?, CREDIT)
        }
    }
}
