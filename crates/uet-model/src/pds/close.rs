//! Closing a context: by the initiator, by the target, and after errors.

use super::ack::Named;
use super::destination::SlotState;
use super::event::{CloseReason, EventKind, Role};
use super::nack::NackReply;
use super::pdc::{Alarms, Pdc};
use super::pool::TxContent;
use super::shared::Shared;
use super::timers::{Alarm, Timer};
use crate::{Failure, Mode, PdcHandle};
use uet_wire::Psn;
use uet_wire::registry::{CtlType, NackCode};

/// The state of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) enum State {
    /// It takes requests.
    Open,
    /// A secured target refused its Start_PSN, and waits for a packet with the new one.
    Pending,
    /// An initiator takes no more requests, and waits until all have completed.
    Quiescing(CloseReason),
    /// An initiator sent CLOSE_COMMAND.
    Commanded,
    /// A target requested to be closed.
    Asking(CloseReason),
    /// A target is closed, and still answers late packets. The PSN is that of the CLOSE_COMMAND, if there was one.
    Lingering(Option<Psn>),
    /// The context is gone.
    Gone,
}

impl Pdc {
    /// Returns whether the context takes new messages.
    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Returns whether the context handles packets of the peer.
    pub(super) fn receives(&self) -> bool {
        !matches!(self.state, State::Lingering(_) | State::Gone | State::Pending)
    }

    /// Returns whether the next message of its route must wait until this ordered context has delivered its own: there is no
    /// order between two contexts.
    pub(super) fn keeps_order(&self) -> bool {
        self.mode == Mode::Rod && matches!(self.state, State::Quiescing(_)) && !self.source.is_idle()
    }

    pub(super) fn asks_close(&self) -> bool {
        matches!(self.state, State::Asking(_))
    }

    /// Starts to close the context. An initiator closes it; a target requests that.
    pub(super) fn close(&mut self, shared: &mut Shared, why: CloseReason) {
        if !self.is_open() {
            return;
        }
        self.event(shared, EventKind::Closing(why));
        match self.role {
            Role::Initiator => self.state = State::Quiescing(why),
            // `PDS-CLOSE-006`
            Role::Target => {
                self.state = State::Asking(why);
                self.push_control(shared, CtlType::CLOSE_REQUEST, 0);
                let at = shared.now + shared.params.close_req_time;
                shared.timers.arm(&mut self.alarms.close, at, Timer::CloseRequest(self.handle.pdcid));
            }
        }
    }

    /// Returns whether nothing is queued, in flight or outstanding in either direction.
    fn is_quiet(&self) -> bool {
        self.source.is_idle() && self.locks == 0 && !self.owes_response()
    }

    /// Returns whether SES still owes a response. CLOSE_COMMAND clears all stored responses.
    fn owes_response(&self) -> bool {
        self.destination.any(|state| matches!(state, SlotState::Delivered | SlotState::Ready(_)))
    }

    /// Returns whether the context has nothing to do.
    pub(super) fn is_idle(&self) -> bool {
        self.source.is_idle() && self.locks == 0 && self.destination.is_idle()
    }

    /// `PDS-CLOSE-001`, `PDS-CLOSE-003`: an initiator sends CLOSE_COMMAND once every request is acknowledged, no read data
    /// is outstanding, and no message is half sent.
    pub(super) fn advance_close(&mut self, shared: &mut Shared) {
        let State::Quiescing(why) = self.state else { return };
        if !self.is_quiet() || self.source.message.is_some() {
            return;
        }
        if !self.established {
            // The peer has no such context, because no packet was ever sent.
            return self.end(shared, why);
        }
        self.state = State::Commanded;
        // `PDS-CLOSE-002`: the command takes a PSN and requests an ACK.
        self.push_control(shared, CtlType::CLOSE_COMMAND, 0);
    }

    /// `PDS-CLOSE-004`: the target acknowledges CLOSE_COMMAND, clears all stored responses and frees the context.
    /// `PDS-CLOSE-005`: unless it has return data in flight.
    pub(super) fn close_commanded(&mut self, shared: &mut Shared, psn: Psn) {
        let unfinished = self.locks > 0
            || !self.source.queue.is_empty() && !self.only_asks_close(shared)
            || self.source.in_flight().any(|key| {
                // `PDS-CLOSE-007`: its own CLOSE_REQUEST is no reason to refuse.
                shared
                    .pool
                    .get(key)
                    .is_some_and(|out| !matches!(out.what, TxContent::Control(CtlType::CLOSE_REQUEST, _)))
            });
        if unfinished {
            let reply = NackReply::of(self, psn, NackCode::CLOSING_IN_ERR);
            self.refuse(shared, reply);
            return self.fail(shared, Failure::Closed, CloseReason::Unfinished);
        }
        self.destination.clear_to(psn, &mut shared.store);
        self.answer_control(shared, psn);
        self.state = State::Lingering(Some(psn));
        self.fail(shared, Failure::Closed, CloseReason::Command);
    }

    fn only_asks_close(&self, shared: &Shared) -> bool {
        let first = self.source.queue.first().and_then(|key| shared.pool.get(key));
        self.source.queue.len() == 1
            && first.is_some_and(|out| matches!(out.what, TxContent::Control(CtlType::CLOSE_REQUEST, _)))
    }

    /// `PDS-CLOSE-008`: a target that gets no CLOSE_COMMAND in time closes in error and reports it.
    pub(super) fn close_request_timeout(&mut self, shared: &mut Shared) {
        self.alarms.close = Alarm::default();
        self.close_in_error(shared, CloseReason::NoCommand);
    }

    pub(super) fn close_in_error(&mut self, shared: &mut Shared, why: CloseReason) {
        let psn = self.destination.expected();
        let reply = NackReply::of(self, psn, NackCode::CLOSING_IN_ERR);
        self.refuse(shared, reply);
        self.fail(shared, Failure::Closed, why);
    }

    /// Releases everything that the context holds. `PDS-CLOSE-009`: a target remembers the context for a while, so that late
    /// packets open and deliver nothing.
    pub(super) fn end(&mut self, shared: &mut Shared, why: CloseReason) {
        if self.state == State::Gone {
            return;
        }
        for slot in self.destination.drain() {
            match slot.state {
                SlotState::Delivered if !slot.flags.control => {
                    shared.delivered = shared.delivered.saturating_sub(1)
                }
                SlotState::Stored(key) | SlotState::Ready(key) => {
                    shared.store.try_remove(key as usize);
                }
                _ => {}
            }
        }
        let Alarms { ack, clear, ask_clear, window, close, idle } = &mut self.alarms;
        for alarm in [ack, clear, ask_clear, window, close, idle] {
            shared.timers.cancel(alarm);
        }
        self.event(shared, EventKind::Closed(why));
        self.ended = true;
        if let Some(ccc) = self.ccc.take() {
            shared.cccs.leave(ccc, self.handle.pdcid);
        }
        self.state = match (self.role, self.state) {
            (Role::Initiator, _) | (_, State::Pending) => State::Gone,
            (Role::Target, State::Lingering(psn)) => State::Lingering(psn),
            (Role::Target, _) => State::Lingering(None),
        };
        if let State::Lingering(_) = self.state {
            let at = shared.now + shared.params.syn_retx_safety_time;
            shared.timers.arm(&mut self.alarms.close, at, Timer::Linger(self.handle.pdcid));
        }
    }

    /// `PDS-OPEN-007`, `PDS-CLOSE-010`: a closed target acknowledges a repeated CLOSE_COMMAND, and replies to any other
    /// late packet with NACK CLOSING.
    pub(super) fn late(&mut self, shared: &mut Shared, psn: Psn, is_close: bool, reply: NackReply) {
        match self.state {
            State::Lingering(Some(closed)) if is_close && psn == closed => {
                let NackReply { retx, marked, entropy, .. } = reply;
                self.acknowledge_close(shared, Named { psn, retx, marked, entropy, at: None });
            }
            _ => self.refuse(shared, reply),
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.state == State::Gone
    }

    /// Returns the handle once, when the context has ended for SES.
    pub(super) fn take_ended(&mut self) -> Option<PdcHandle> {
        core::mem::take(&mut self.ended).then_some(self.handle)
    }

    /// `PDS-CLOSE-012`: closes the context before a direction has used 2^31 PSNs, early enough for the current message to
    /// end.
    pub(super) fn watch_psn_range(&mut self, shared: &mut Shared) {
        let params = &shared.params;
        let margin = params.psn_range / 256;
        // A secure domain has the limit in any case: its counters of PSNs must not begin again.
        let limited = params.limit_psn_range || self.security.is_some();
        if limited && self.source.used() >= params.psn_range - margin {
            self.close(shared, CloseReason::PsnRange);
        }
    }

    /// Closes an idle context after `idle_time`, unless it is zero.
    pub(super) fn watch_idleness(&mut self, shared: &mut Shared) {
        let idle = self.is_open() && self.is_idle();
        if !idle {
            return shared.timers.cancel(&mut self.alarms.idle);
        }
        if !shared.params.idle_time.is_zero() && !self.alarms.idle.is_armed() {
            let at = shared.now + shared.params.idle_time;
            shared.timers.arm(&mut self.alarms.idle, at, Timer::Idle(self.handle.pdcid));
        }
    }

    pub(super) fn idle_time_over(&mut self, shared: &mut Shared) {
        self.alarms.idle = Alarm::default();
        self.close(shared, CloseReason::Idle);
    }

    /// Ends and forgets a context to make room for another one.
    pub(super) fn reclaim(&mut self, shared: &mut Shared) {
        if !matches!(self.state, State::Lingering(_) | State::Gone) {
            self.fail(shared, Failure::Closed, CloseReason::Reclaimed);
        }
        shared.timers.cancel(&mut self.alarms.close);
        self.state = State::Gone;
    }

    /// Forgets a context that is closed or replaced by its peer.
    pub(super) fn forget(&mut self, shared: &mut Shared, why: CloseReason) {
        shared.timers.cancel(&mut self.alarms.close);
        self.event(shared, EventKind::Closed(why));
        self.state = State::Gone;
    }
}
