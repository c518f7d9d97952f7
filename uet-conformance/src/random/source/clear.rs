//! The CLEAR_PSN that the suite tells the device.

use super::*;
use crate::Outcome;
use crate::random::coverage::State;
use crate::random::play::Player;
use uet_wire::Psn;
use uet_wire::catalogue::*;
use uet_wire::registry::CtlType;

impl Player<'_, '_> {
    /// Tells CLEAR_PSN on contexts whose cumulative PSN waits for it, and asks for an ACK.
    pub(in crate::random) fn clear_rest(&mut self) -> Result<bool, crate::Stop> {
        let mut any = false;
        for context in 0..self.own.len() {
            let own = &self.own[context];
            if own.state != State::Open || own.covered >= own.next || own.cleared < own.next {
                continue;
            }
            any = true;
            let (pdc, clear, last) = (own.pdc.clone(), own.clear(), own.next - 1);
            if let Some(packet) = self.own[context].sent.get_mut(&last) {
                packet.asked = true;
            }
            self.t.send(&pdc, &pdc.control(CtlType::CLEAR_COMMAND, Psn(0), clear.0)?)?;
            self.t.send(&pdc, &pdc.control(CtlType::ACK_REQUEST, pdc.psn(last), 0)?)?;
        }
        Ok(any)
    }

    /// Judges that the cumulative PSN has moved.
    pub(in crate::random) fn judge_cleared(&mut self) -> Outcome {
        let stays =
            |own: &&Own| own.state == State::Open && own.covered < own.next && own.cleared >= own.next;
        match self.own.iter().find(stays) {
            Some(own) => {
                let told = format!("{} of {} PSNs are covered, all are cleared", own.covered, own.next);
                self.broken(PDS_CLR_005, "CACK_PSN that moves with CLEAR", told)
            }
            None => Ok(()),
        }
    }

    pub(super) fn advance_clear(&mut self, context: usize) {
        let own = &mut self.own[context];
        let mut cleared = own.cleared.max(own.covered);
        while own.named.contains(&cleared) {
            cleared += 1;
        }
        own.cleared = cleared;
    }

    /// Tells CLEAR_PSN, unless a request has done so.
    pub(in crate::random) fn tell_clear(&mut self, context: usize) -> Outcome {
        let own = &mut self.own[context];
        if own.state != State::Open || own.covered >= own.cleared || own.pdc.remote.is_none() {
            return Ok(());
        }
        if core::mem::replace(&mut own.told, own.cleared) == own.cleared {
            return Ok(());
        }
        let (pdc, clear) = (own.pdc.clone(), own.clear());
        self.t.send(&pdc, &pdc.control(CtlType::CLEAR_COMMAND, Psn(0), clear.0)?)
    }
}
