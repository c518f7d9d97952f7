//! Deferrable sends: a target without a buffer defers the message, and requests it when a receive is posted.

use super::address::ResourceIndex;
use super::completion::OperationError;
use super::cut::{Outline, Progress, Selector};
use super::event::{SesEvent, Why};
use super::initiator::{ActiveOperation, Purpose};
use super::matching::{Deferred, PostedReceive, ReceiveId, Sender};
use super::operation::OperationId;
use super::outbox::OutboxItem;
use super::params::Restart;
use super::receive::context;
use super::request::{Form, SesRequest};
use super::response::Reply;
use super::target::{Answer, Denial, Placement};
use super::{Refusal, Ses};
use crate::{RxRequest, Via};
use core::net::IpAddr;
use uet_wire::registry::{Opcode, ReturnCode};

/// The progress of a deferrable send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) enum Deferral {
    /// The target will not defer it, because it is another operation or the second attempt.
    Never,
    /// The target may defer it.
    Possible,
    /// The target deferred it.
    PutOff,
    /// The target requests it, starting at this offset in the message.
    Wanted { target: u32, offset: u64 },
}

impl Deferral {
    /// Returns whether the operation waits for more than its acknowledgments.
    pub(super) fn is_waiting(self) -> bool {
        matches!(self, Deferral::PutOff | Deferral::Wanted { .. })
    }

    /// `SES-DEFER-002`: a UET_RESPONSE with OK and no length defers a send. Returns whether this one did.
    pub(super) fn put_off(&mut self) -> bool {
        match self {
            Deferral::Never => return false,
            Deferral::Possible => *self = Deferral::PutOff,
            Deferral::PutOff | Deferral::Wanted { .. } => {}
        }
        true
    }
}

/// A receive reserved for a deferred send.
#[derive(Debug)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) struct Reserved {
    pub(super) id: ReceiveId,
    posted: PostedReceive,
    index: ResourceIndex,
    from: IpAddr,
    /// True if it was reserved before the last look for stalled messages.
    pub(super) stalled: bool,
}

impl Ses {
    /// As initiator: `SES-DEFER-001`: the first attempt carries our token, which identifies the message, and 0 as the
    /// target's.
    pub(super) fn name_deferrable(&mut self, id: OperationId, outline: &mut Outline) -> Deferral {
        let token = self.name_token();
        self.by_token.insert(token, id);
        if let Selector::Restart { initiator, .. } = &mut outline.selector {
            *initiator = token;
        }
        Deferral::Possible
    }

    /// Returns an unused token other than 0.
    fn name_token(&mut self) -> u32 {
        loop {
            self.next.token = self.next.token.wrapping_add(1);
            let token = self.next.token;
            if token != 0 && !self.by_token.contains_key(&token) && !self.reserved.contains_key(&token) {
                return token;
            }
        }
    }

    /// As target: defers a send, if there is room.
    pub(super) fn put_off(
        &mut self,
        rx: &RxRequest,
        request: &SesRequest,
        index: ResourceIndex,
        sender: Sender,
        token: u32,
    ) -> Result<Placement, Refusal> {
        let peer = self.back(rx, request);
        let (most, pdc) = (self.params.max_deferred, context(rx));
        let deferred = Deferred { sender, peer, token, pdc, confirmed: rx.confirmed };
        let slot = self.tables.index(request)?.1;
        if !slot.queue.defer(deferred, most) {
            return Err(Refusal::new(ReturnCode::NO_MATCH, Why::NoMatch));
        }
        self.event(SesEvent::Deferred { index, token });
        Ok(Placement::PutOff)
    }

    /// As target: requests a deferred send. `SES-DEFER-003`: DEFERRABLE_RTR carries both tokens, and the receive is
    /// reserved for that send.
    pub(super) fn want(
        &mut self,
        index: ResourceIndex,
        deferred: Deferred,
        id: ReceiveId,
        posted: PostedReceive,
    ) {
        let target = self.name_token();
        let initiator = deferred.token;
        let key = self.name_sent(Purpose::Ready(target));
        self.next.response = self.next.response.wrapping_add(1).max(1);
        let tokens = self.params.ready_tokens.of((initiator, target));
        let mut outline = Outline {
            key,
            opcode: Opcode::UET_DEFERRABLE_RTR,
            form: Form::Std,
            peer: deferred.peer,
            message: self.next.response,
            delivery_complete: false,
            header_data: None,
            selector: Selector::Ready(tokens),
            buffer_offset: 0,
            ext: None,
            data: bytes::Bytes::new(),
            total: 0,
            span: 0,
            cut: 0,
            mtu: self.mtu,
            progress: Progress::New,
        };
        let from = deferred.sender.from;
        self.reserved.insert(target, Reserved { id, posted, index, from, stalled: false });
        self.watch();
        // The values came from a header, so they fit.
        if let Ok(Some(piece)) = outline.next() {
            self.outbox.push(Via::Route(deferred.peer.route), OutboxItem::Packet(piece.request));
        }
        self.event(SesEvent::Ready { initiator, target });
    }

    /// As target: returns the receive reserved under this token.
    pub(super) fn claim_reserved(
        &mut self,
        token: u32,
        from: IpAddr,
    ) -> Result<(ReceiveId, PostedReceive), Refusal> {
        if self.reserved.get(&token).is_none_or(|kept| kept.from != from) {
            return Err(Refusal::new(ReturnCode::NO_MATCH, Why::NoToken(token)));
        }
        let kept = self.reserved.remove(&token);
        kept.map(|kept| (kept.id, kept.posted)).ok_or(Refusal::new(ReturnCode::NO_MATCH, Why::NoToken(token)))
    }

    /// As target: releases the receive, because the initiator no longer has the message.
    pub(super) fn not_ready(&mut self, token: u32) {
        if let Some(Reserved { id, posted, index, .. }) = self.reserved.remove(&token) {
            self.unexpected(Why::NoToken(token));
            self.offer(index, id, posted);
        }
    }

    /// As initiator: records that the target requested a deferred send. A request that this side refuses ends the send,
    /// since the target will not ask for it again.
    pub(super) fn ready(&mut self, rx: &RxRequest, request: &SesRequest) -> Result<Answer, Denial> {
        let (initiator, target) = self.params.ready_tokens.of(request.tokens.unwrap_or_default());
        let unknown = Refusal::new(ReturnCode::NO_MATCH, Why::NoToken(initiator));
        let id = self.by_token.get(&initiator).copied().ok_or(unknown)?;
        let flight = self.flights.get_mut(&id).ok_or(unknown)?;
        let waits = matches!(flight.deferral, Deferral::Possible | Deferral::PutOff);
        if !waits || flight.outline.peer.route.destination != rx.from {
            return Err(unknown.into());
        }
        if target == 0 && !self.params.accept_zero_token {
            flight.deferral = Deferral::Never;
            flight.fault.get_or_insert(OperationError::new(ReturnCode::NO_MATCH));
            self.complete_if_done(id);
            return Err(Refusal::new(ReturnCode::NO_MATCH, Why::NoToken(target)).into());
        }
        flight.deferral = Deferral::Wanted { target, offset: request.buffer_offset };
        self.event(SesEvent::Ready { initiator, target });
        self.complete_if_done(id);
        Ok(Answer::Respond(Reply::to(request).plain(0)))
    }

    /// As initiator: sends a deferred message as a new one, once the first attempt has completed. Returns whether it
    /// did.
    ///
    /// `SES-DEFER-004`: it is a new message with both tokens.
    pub(super) fn restart(&mut self, id: OperationId) -> bool {
        let how = self.params.restart;
        let wanted = |flight: &&mut ActiveOperation| {
            flight.outline.progress == Progress::Done && flight.answered >= flight.sent
        };
        let Some(flight) = self.flights.get_mut(&id).filter(wanted) else { return false };
        let Deferral::Wanted { target, offset } = flight.deferral else { return false };
        let old = (flight.outline.key, flight.outline.message);
        let via = Via::Route(flight.outline.peer.route);
        (flight.sent, flight.answered, flight.accepted) = (0, 0, None);
        flight.deferral = Deferral::Never;
        let outline = &mut flight.outline;
        if let Selector::Restart { target: place, .. } = &mut outline.selector {
            *place = target;
        }
        if how == Restart::Offset {
            let skip = usize::try_from(offset).unwrap_or(usize::MAX).min(outline.data.len());
            outline.data = outline.data.slice(skip..);
            (outline.total, outline.span) = (outline.data.len() as u32, outline.data.len() as u32);
        }
        (outline.cut, outline.progress) = (0, Progress::New);
        self.send_anew(id, old, via);
        true
    }
}
