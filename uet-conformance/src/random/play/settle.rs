//! Lets a conversation come to its end.

use super::{Due, Player};
use crate::Outcome;
use crate::random::coverage::State;
use crate::random::step::ClosePlan;
use std::collections::BTreeSet;
use uet_wire::catalogue::*;
use uet_wire::registry::NackCode;

impl Player<'_, '_> {
    /// How often contexts of the suite have opened again.
    fn lives(&self) -> u32 {
        self.own.iter().map(|own| own.life).sum()
    }

    /// Lets everything end: what is under way, then the contexts.
    pub(super) fn settle(&mut self) -> Outcome {
        self.settling = true;
        let rto = self.t.rto();
        let patience = self.t.until_given_up() * 2;
        let (mut end, mut lives) = (self.t.now() + patience, self.lives());
        while !self.is_quiet() && self.t.now() < end {
            let until = self.t.now() + rto;
            self.pump(until)?;
            // Messages that waited for a close start on another context.
            if self.lives() > lives {
                (end, lives) = (self.t.now() + patience, self.lives());
            }
        }
        self.unfinished()?;
        if (0..self.messages.len()).any(|message| self.is_accepted(message) && !self.has_receive(message)) {
            // The device may still read the rest of a rendezvous send, once it has credit for that.
            let until = self.t.now() + patience;
            self.pump(until)?;
        }
        // Packets that the network still delays, and those that nobody waits for.
        while self.due.values().any(|due| matches!(due, Due::Deliver(_) | Due::Take(_))) {
            let until = self.t.now() + rto;
            self.pump(until)?;
        }
        let until = self.t.now() + rto;
        self.pump(until)?;
        if let Some((to, psn, code)) = self.wanted_answers.first().copied() {
            let (requirement, expected) = match code {
                None => (PDS_ASK_003, "an answer to ACK_REQUEST".to_owned()),
                Some(NackCode::INV_DPDCID) => (PDS_OPEN_002, "NACK INV_DPDCID".to_owned()),
                Some(NackCode::PDC_MODE_MISMATCH) => (PDS_OPEN_008, "NACK PDC_MODE_MISMATCH".to_owned()),
                Some(NackCode::PSN_OOR_WINDOW) => (PDS_OPEN_006, "NACK PSN_OOR_WINDOW".to_owned()),
                Some(NackCode::ROD_OOO) => (PDS_ROD_002, "NACK ROD_OOO, once per gap".to_owned()),
                Some(code @ (NackCode::TRIMMED | NackCode::TRIMMED_LASTHOP)) => {
                    (PDS_TRIM_001, format!("NACK {code}"))
                }
                Some(code) => (PDS_OPEN_003, format!("NACK {code}")),
            };
            return self.broken(requirement, &expected, format!("none to {to} for PSN {psn}"));
        }
        let open = |(context, life, _): &&(usize, u32, u16)| {
            self.own[*context].life == *life && self.own[*context].state == State::Open
        };
        if let Some((_, _, opaque)) = self.wanted_probes.iter().find(open).copied() {
            let told = format!("none with probe_opaque {opaque:#06x}");
            return self.broken(PDS_PRB_001, "an answer to PROBE", told);
        }
        if self.clear_rest()? {
            let until = self.t.now() + rto;
            self.pump(until)?;
            self.judge_cleared()?;
        }
        if self.unclear().is_some() {
            let until = self.t.now() + self.t.soon();
            self.pump(until)?;
        }
        self.judge_clears()?;
        let end = self.t.now() + patience;
        let mut served = 0;
        while !self.all_closed() && self.t.now() < end {
            // A send that the device asks for again opens contexts again.
            for context in 0..self.own.len() {
                self.close(context, false)?;
            }
            let open = self.served.iter().skip(served).filter(|it| it.state == State::Open);
            let open: BTreeSet<(u8, u8, bool)> = open.map(|it| (it.peer, it.job, it.pdc.rod)).collect();
            served = self.served.len();
            for (peer, job, rod) in open {
                self.close_by_device(ClosePlan { peer, job, rod }, false)?;
            }
            let until = self.t.now() + rto;
            self.pump(until)?;
        }
        Ok(())
    }
}
