//! The end of messages that make no progress. Anyone can start a message by one packet with a forged address, so
//! nothing may wait for the rest of it without end.
//!
//! All waits are equally long, so one look at a time suffices. It marks each message that waits. An arrival removes the
//! mark, and the next look gives up the messages that still have it.

use super::Ses;
use super::initiator::{ActiveOperation, Owner};
use super::matching::{Buffer, Landing, LandingId, PostedReceive, Rest};
use super::operation::OperationId;
use crate::{Command, PdcHandle, Time};
use core::mem::replace;
use std::collections::BTreeSet;
use uet_wire::registry::ReturnCode;

/// Marks all, and returns those that had the mark.
fn stalled<'a, T>(all: impl Iterator<Item = (T, &'a mut bool)>) -> Vec<T> {
    all.filter_map(|(one, mark)| replace(mark, true).then_some(one)).collect()
}

/// Returns the message whose rest an operation reads, if data is outstanding.
fn read_of((id, flight): (&OperationId, &ActiveOperation)) -> Option<(LandingId, OperationId)> {
    match flight.owner {
        Owner::Landing(landing) if flight.awaits() > 0 => Some((landing, *id)),
        _ => None,
    }
}

/// Returns whether a message is complete, and has neither a receive nor a sender that confirmed its context.
fn is_strange(landing: &Landing) -> bool {
    let is_whole = matches!(landing.rest, Rest::Nothing | Rest::ToRead(_));
    landing.receive.is_none() && is_whole && !landing.confirmed
}

impl Ses {
    /// Returns the time at which to call [`handle_timeout`](Self::handle_timeout); `None` if nothing can stall.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.look
    }

    /// Records the time, and gives up messages that have made no progress for
    /// [`stall_time`](super::SesParams::stall_time).
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        if self.look.is_some_and(|at| at <= now) {
            self.look = None;
            self.look();
        }
    }

    /// Plans a look for stalled messages.
    pub(super) fn watch(&mut self) {
        let at = self.now + self.params.stall_time;
        self.look.get_or_insert(at);
    }

    fn look(&mut self) {
        // The rest of a message would start another one, so its context ends with it.
        let contexts =
            stalled(self.messages.iter_mut().map(|((pdc, _), message)| (*pdc, &mut message.stalled)));
        self.commands.extend(BTreeSet::from_iter(contexts).into_iter().map(Command::Abandon));

        for token in stalled(self.reserved.iter_mut().map(|(token, kept)| (*token, &mut kept.stalled))) {
            self.not_ready(token);
        }

        let reads: Vec<(LandingId, OperationId)> = self.flights.iter().filter_map(read_of).collect();
        for (landing, read) in reads {
            if self.landings.get_mut(landing).is_some_and(|landing| replace(&mut landing.stalled, true)) {
                self.give_up(landing);
                self.abort(read);
            }
        }

        let landings = self.landings.iter_mut().filter(|(_, landing)| is_strange(landing));
        for id in stalled(landings.map(|(id, landing)| (id, &mut landing.stalled))) {
            self.give_up(id);
        }

        let waits = |(_, landing): (_, &mut Landing)| landing.receive.is_some() || is_strange(landing);
        if !self.messages.is_empty() || !self.reserved.is_empty() || self.landings.iter_mut().any(waits) {
            self.watch();
        }
    }

    /// Ends a message whose rest will not come.
    ///
    /// The receive of a peer that has confirmed its context ends with UNDELIVERABLE: the application counts on the
    /// message, and later ones must not take its place. A message of anyone else may be forged. MPI ends a program at
    /// the first failed receive, so the receive becomes available again.
    pub(super) fn give_up(&mut self, id: LandingId) {
        match self.landings.get(id) {
            Some(landing) if landing.receive.is_some() && !landing.confirmed => {}
            _ => return self.end_landing(id, ReturnCode::UNDELIVERABLE),
        }
        let Some(Landing { index, receive: Some((id, receive)), buffer, .. }) = self.landings.remove(id)
        else {
            return;
        };
        let memory = match buffer {
            Buffer::Callers(memory, _) => Some(memory),
            Buffer::Own(_) | Buffer::Parts(_) => None,
        };
        self.offer(index, id, PostedReceive { receive, memory });
    }

    /// Handles the confirmation of a context: its messages now use the share of their sender, and their reads go on.
    pub(super) fn confirmed(&mut self, pdc: PdcHandle) {
        for (_, landing) in self.landings.iter_mut() {
            if landing.pdc != Some(pdc) || landing.confirmed {
                continue;
            }
            let before = landing.payer();
            landing.confirmed = true;
            let (None, Ok(slot)) = (&landing.receive, self.tables.slot(landing.index)) else { continue };
            slot.queue.room.free(before, landing.buffer.len());
            slot.queue.room.take(landing.payer(), 1, landing.buffer.len());
        }
        for (_, message) in self.messages.range_mut((pdc, 0)..=(pdc, u16::MAX)) {
            message.confirmed = true;
        }
        self.tables.slots_mut().for_each(|slot| slot.queue.confirm(pdc));
        self.outbox.wake();
    }
}
