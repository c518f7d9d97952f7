//! Automatic answers of the suite in every rule, so that contexts neither stall nor end.

use super::Test;
use crate::{AckBuilder, Outcome, Pdc, RxPacket, Stop, Wire};
use uet_observe::{Context, Side};
use uet_wire::pds::{Control, Pds};
use uet_wire::registry::CtlType;
use uet_wire::{Psn, UetBuf};

impl Test<'_> {
    /// Answers a packet of the device, unless the script does so.
    pub(super) fn keep_up(&mut self, seen: &RxPacket) -> Outcome {
        if self.auto_credit {
            self.grant(seen)?;
        }
        if self.auto_ack_control { self.confirm(seen) } else { Ok(()) }
    }

    /// Grants the credit that the device demands, if both sides have named the context. Rules of credit grant
    /// by themselves.
    fn grant(&mut self, seen: &RxPacket) -> Outcome {
        let wanted = match seen.uet().pds {
            Some(Pds::RequestCc(header)) => {
                Some((header.request().dpdcid(), header.request().spdcid(), header.credit_target()))
            }
            Some(Pds::Control(header)) => {
                header.credit_target().map(|(_, target)| (header.dpdcid(), header.spdcid(), target))
            }
            _ => None,
        };
        let Some((Some(here), there, credit)) = wanted else { return Ok(()) };
        let grant =
            Control::build(CtlType::CREDIT).spdcid(here).dpdcid(there).payload(credit.get()).done()?;
        let bytes = UetBuf::new(grant).to_bytes();
        let wire = Wire::new(seen.wire.dst, seen.wire.src, seen.wire.entropy, bytes);
        self.send_wire(&wire)
    }

    /// Acknowledges NOOP, NEGOTIATION and CLOSE_REQUEST, which take a PSN. Rules of such packets answer by
    /// themselves.
    pub(crate) fn confirm(&mut self, seen: &RxPacket) -> Outcome {
        let Some(asked) = seen.unasked() else { return Ok(()) };
        let (psn, Some(here)) = (asked.psn(), asked.dpdcid()) else { return Ok(()) };
        // The packet itself names the context: a script may have shown the observer contexts that are none.
        let pdc = Pdc {
            from: seen.wire.dst,
            to: seen.wire.src,
            local: here,
            remote: Some(asked.spdcid()),
            start: psn,
            rod: asked.isrod(),
            entropy: seen.wire.entropy,
        };
        // A script may have sent a wrong cumulative PSN; it is not repeated.
        let behind = |known: &Psn| psn.offset_from(*known).is_some_and(|offset| offset > 1);
        let cack = self.suite.watch().covered(pdc.from, here).filter(behind).unwrap_or(psn);
        let ack = AckBuilder { response: None, retx: asked.retx(), ..pdc.ack(psn).cack(cack) };
        self.send(&pdc, &ack.build()?)
    }

    /// Skips the rule if the device has started to close the context: a CLOSE_COMMAND takes a PSN, and later
    /// requests take another context.
    pub(crate) fn is_kept(&self, pdc: &Pdc) -> Outcome {
        let closes = |(context, side): (&Context, Side)| context.direction(side.other()).closing.is_some();
        if self.contexts(pdc.from, pdc.local).any(closes) {
            Err(Stop::Skipped("the device has ended the context meanwhile".into()))
        } else {
            Ok(())
        }
    }
}
