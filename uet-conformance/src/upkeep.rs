//! What the suite does by itself, whatever a script is about: else a context would end or stand still over it.

use crate::{AckBuilder, Entry, Outcome, Pdc, Seen, Stop, Test, Wire};
use core::net::IpAddr;
use uet_wire::pds::{Control, Pds};
use uet_wire::registry::CtlType;
use uet_wire::{PdcId, Psn, Uet, UetBuf};

impl Test<'_> {
    /// Does what a packet of the device calls for, as far as the script leaves that to the suite.
    pub(crate) fn keep_up(&mut self, seen: &Seen) -> Outcome {
        if self.grants {
            self.grant(seen)?;
        }
        match self.confirms {
            true => self.confirm(seen),
            false => Ok(()),
        }
    }

    /// A device that sends on receiver credit gets what it wants, on a context that both sides have named. Cases of credit
    /// grant by themselves.
    fn grant(&mut self, seen: &Seen) -> Outcome {
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

    /// NOOP, NEGOTIATION and CLOSE_REQUEST take a PSN and are acknowledged like a request. Cases of such packets answer by
    /// themselves.
    fn confirm(&mut self, seen: &Seen) -> Outcome {
        let Some(asked) = seen.unasked() else { return Ok(()) };
        let (psn, Some(here)) = (asked.psn(), asked.dpdcid()) else { return Ok(()) };
        let pdc = Pdc {
            from: seen.wire.dst,
            to: seen.wire.src,
            local: here,
            remote: Some(asked.spdcid()),
            start: psn,
            rod: asked.isrod(),
            entropy: seen.wire.entropy,
        };
        // What a script has told that was not so is no reason to tell it again.
        let behind = |known: &Psn| psn.offset_from(*known).is_some_and(|offset| offset > 1);
        let cack = self.covered(pdc.from, here).filter(behind).unwrap_or(psn);
        let ack = AckBuilder { response: None, retx: asked.retx(), ..pdc.ack(psn).cack(cack) };
        self.send(&pdc, &ack.build()?)
    }

    /// What the suite has last told as cumulative PSN, as this side of a context; before it has told any, the one before the
    /// first.
    fn covered(&self, from: IpAddr, here: PdcId) -> Option<Psn> {
        let told = |pds: Pds<'_>| match pds.ack() {
            Some(ack) => Some(ack.cack_psn()).filter(|_| ack.spdcid() == here && !ack.p()),
            None => {
                pds.request().filter(|request| request.spdcid() == here)?.start_psn().map(|start| start - 1)
            }
        };
        self.ladder.entries.iter().rev().find_map(|(_, entry)| match entry {
            Entry::Sent(wire) if wire.src == from => Uet::parse_lax(&wire.bytes).0.pds.and_then(told),
            _ => None,
        })
    }

    /// A device may end a context that nothing happens on: that takes a PSN, and what comes then takes another context. Without
    /// this nothing can be said of what comes.
    pub(crate) fn is_kept(&self, pdc: &Pdc) -> Outcome {
        let ends = |wire: &Wire| match Uet::parse_lax(&wire.bytes).0.pds {
            Some(Pds::Control(header)) => {
                matches!(header.ctl_type(), CtlType::CLOSE_REQUEST | CtlType::CLOSE_COMMAND)
                    && Some(header.spdcid()) == pdc.remote
                    && wire.dst == pdc.from
            }
            _ => false,
        };
        match self.ladder.of_the_device().any(|(_, wire)| ends(wire)) {
            true => Err(Stop::Skipped("the device has ended the context meanwhile".into())),
            false => Ok(()),
        }
    }
}
