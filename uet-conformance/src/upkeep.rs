//! Automatic answers of the suite in every rule, so that contexts neither stall nor end.

use crate::{AckBuilder, Outcome, Pdc, RxPacket, Stop, Test, Wire};
use core::net::IpAddr;
use uet_observe::{Context, Side};
use uet_wire::pds::{Control, Pds};
use uet_wire::registry::CtlType;
use uet_wire::{PdcId, Psn, UetBuf};

impl Test<'_> {
    /// Answers a packet of the device, unless the script does so.
    pub(crate) fn keep_up(&mut self, seen: &RxPacket) -> Outcome {
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
    fn confirm(&mut self, seen: &RxPacket) -> Outcome {
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
        let cack = self.covered(pdc.from, here).filter(behind).unwrap_or(psn);
        let ack = AckBuilder { response: None, retx: asked.retx(), ..pdc.ack(psn).cack(cack) };
        self.send(&pdc, &ack.build()?)
    }

    /// Returns the contexts of this end of the suite, and its side of each.
    pub(crate) fn contexts(&self, from: IpAddr, local: PdcId) -> impl Iterator<Item = (&Context, Side)> {
        let side = move |context: &Context| {
            let is_ours = |side: &Side| {
                context.addresses[*side as usize] == from && context.direction(*side).pdcid == Some(local)
            };
            [Side::A, Side::B].into_iter().find(is_ours)
        };
        self.observer().contexts().filter_map(move |context| Some((context, side(context)?)))
    }

    /// Returns the highest cumulative PSN that this end of the suite has acknowledged; before its first ACK,
    /// Start_PSN - 1.
    fn covered(&self, from: IpAddr, here: PdcId) -> Option<Psn> {
        let (context, side) = self.contexts(from, here).next()?;
        let device = context.direction(side.other());
        let start = context.start.filter(|_| context.initiator == Some(side)).map(|(start, _)| start - 1);
        device.cack.map(|(cack, _)| device.psn(cack)).or(start)
    }

    /// Skips the case if the device has started to close the context: a CLOSE_COMMAND takes a PSN, and later
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
