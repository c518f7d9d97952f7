//! Timers and retransmissions of the suite's contexts.

use super::*;
use crate::random::coverage::Event;
use crate::random::play::{Due, Player};
use crate::random::step::Fate;
use crate::{Outcome, Show};
use core::time::Duration;
use uet_wire::catalogue::*;
use uet_wire::registry::CtlType;

impl Player<'_, '_> {
    pub(super) fn own_timeout(&self, tries: u32) -> Duration {
        (self.t.rto() * 2 + self.t.soon() / 16) * (1 << tries.min(6))
    }

    pub(super) fn arm(&mut self, context: usize) -> Outcome {
        let own = &self.own[context];
        let next = own.sent.values().filter(|packet| !packet.done).map(|packet| packet.due).min();
        if let (Some(next), false) = (next, own.timer) {
            self.own[context].timer = true;
            self.later(next, Due::Own(context));
        }
        Ok(())
    }

    pub(in crate::random) fn own_timer(&mut self, context: usize) -> Outcome {
        self.own[context].timer = false;
        let now = self.t.now();
        let due: Vec<u32> = {
            let own = &self.own[context];
            let due = own.sent.iter().filter(|(_, packet)| !packet.done && packet.due <= now);
            match due.map(|(n, _)| *n).collect::<Vec<_>>() {
                // An ordered source goes back to the first that is missing.
                late if own.pdc.rod && !late.is_empty() => own
                    .sent
                    .iter()
                    .filter(|(n, packet)| !packet.done && **n >= late[0])
                    .map(|(n, _)| *n)
                    .collect(),
                late => late,
            }
        };
        for n in due {
            self.retransmit(context, n)?;
        }
        self.arm(context)
    }

    pub(super) fn retransmit(&mut self, context: usize, n: u32) -> Outcome {
        let now = self.t.now();
        let own = &mut self.own[context];
        let Some(packet) = own.sent.get_mut(&n) else { return Ok(()) };
        let waited = packet.tries == 0 && packet.undisturbed.is_some() && !packet.arrived;
        if waited
            && !own.pdc.rod
            && own.starved == 0
            && self.t.facts().virtual_time
            && !self.hides(context, n)
        {
            let seen =
                format!("none of PSN {} in {}", self.own[context].pdc.psn(n), self.own_timeout(0).show());
            return self.broken(PDS_ACK_011, "an answer to a packet that has arrived", seen);
        }
        let own = &mut self.own[context];
        let Some(packet) = own.sent.get_mut(&n) else { return Ok(()) };
        packet.tries += 1;
        let (tries, what, arrived) = (packet.tries, packet.what, packet.arrived);
        if tries > TRIES {
            if own.starved > 0 {
                self.give_up(context);
                return Ok(());
            }
            let seen = format!("no answer to {tries} transmissions of PSN {}", own.pdc.psn(n));
            return match what {
                What::Control(CtlType::CLOSE_COMMAND) => {
                    self.broken(PDS_CLOSE_004, "an acknowledged CLOSE_COMMAND", seen)
                }
                _ => self.broken(PDS_ACK_011, "a packet that is acknowledged in bounded time", seen),
            };
        }
        let due = now + self.own_timeout(tries);
        if let Some(packet) = self.own[context].sent.get_mut(&n) {
            packet.due = due;
        }
        let state = self.own[context].state;
        self.coverage.seen(state, Event::Timeout);
        if arrived && tries < 4 && self.own[context].pdc.remote.is_some() {
            // It has arrived: its answer alone is missing.
            if let Some(packet) = self.own[context].sent.get_mut(&n) {
                packet.asked = true;
            }
            let pdc = self.own[context].pdc.clone();
            return self.t.send(&pdc, &pdc.control(CtlType::ACK_REQUEST, pdc.psn(n), 0)?);
        }
        let first = tries == 1 && !self.settling;
        let fate = match what {
            // A second loss, now and then.
            What::Part(message, part) if first => self.messages[message].second_fate(part),
            _ => Fate::Arrives,
        };
        self.transmit(context, n, fate, true)
    }

    /// Returns whether the conversation itself may hide the answer to a packet, or the answer may have to
    /// wait.
    pub(super) fn hides(&self, context: usize, n: u32) -> bool {
        // An ACK of another packet that the network loses may have covered this one.
        let loses = |what: &What| match what {
            What::Part(message, _) => !self.messages[*message].plan.answers.is_empty(),
            _ => false,
        };
        if self.own[context].sent.values().any(|packet| loses(&packet.what)) {
            return true;
        }
        match self.what(context, n) {
            Some(What::Part(message, _)) => {
                let sending = &self.messages[message];
                sending.plan.complete && sending.parts.len() > 1
                    || sending.plan.kind == uet_control::PostKind::NoOp
            }
            _ => false,
        }
    }
}
