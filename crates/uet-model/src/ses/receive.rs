//! Receives: matching sends, and filling buffers.

use super::address::ResourceIndex;
use super::completion::{Completion, Received};
use super::event::{SesEvent, Why};
use super::matching::{
    Buffer, Early, Landing, LandingId, PostedReceive, Receive, ReceiveId, Remote, Rest, Sender, Unexpected,
};
use super::memory::host;
use super::params::TooLong;
use super::request::SesRequest;
use super::target::Placement;
use super::unexpected::{Parts, Room};
use super::{AddressError, Refusal, Ses};
use crate::{Memory, PdcHandle, RxRequest, Ticket};
use bytes::Bytes;
use core::net::Ipv4Addr;
use uet_wire::registry::{List, Opcode, ReturnCode};

impl Ses {
    /// Decides the destination of a send: a receive, the overflow list, or none.
    pub(super) fn receive_for(&mut self, rx: &RxRequest, request: &SesRequest) -> Result<Placement, Refusal> {
        let remote = self.remote(rx, request)?;
        let sender = sender(rx, request);
        let (index, slot) = self.tables.index(request)?;
        slot.check_generation(request.address.ri_generation())?;
        slot.check_enabled()?;
        // `SES-DEFER-005`: a restarted send takes the receive reserved for it.
        if let Some((_, token @ 1..)) = request.tokens {
            let (id, posted) = self.claim_reserved(token, rx.from)?;
            return Ok(self.expect(index, rx, request, remote, id, posted));
        }
        let slot = self.tables.index(request)?.1;
        if let Some(posted) = slot.queue.peek_expected(&sender) {
            // `SES-MATCH-005`: if configured, a send longer than its buffer is refused and takes no receive.
            if self.params.too_long == TooLong::Refuse && request.total > posted.receive.capacity {
                return Err(Refusal::new(ReturnCode::TOO_LONG, Why::TooLong));
            }
        }
        if let Some((id, posted)) = slot.queue.take_expected(&sender) {
            return Ok(self.expect(index, rx, request, remote, id, posted));
        }
        if let Some((initiator, _)) = request.tokens {
            return self.put_off(rx, request, index, sender, initiator);
        }
        let bytes = remote.map_or(request.total, |remote| remote.eager);
        let payer = rx.confirmed.then_some(rx.from);
        if Room::fits(bytes, &self.params) && slot.queue.room.has(payer, 1, rx.payload.len(), &self.params) {
            let id = self.landings.add(Landing {
                index,
                list: List::UET_OVERFLOW,
                receive: None,
                sender,
                pdc: context(rx),
                confirmed: rx.confirmed,
                stalled: false,
                total: request.total,
                buffer: Buffer::Parts(Parts::default()),
                header_data: None,
                rest: arriving(remote),
            });
            slot.queue.keep_unexpected(id, sender, payer);
            self.watch();
            self.event(SesEvent::Matched { index, list: List::UET_OVERFLOW, receive: None });
            return Ok(Placement::Land(id));
        }
        slot.exhausted = slot.ordered;
        slot.check_enabled()?;
        // `SES-MATCH-004`: a send that cannot be kept is refused.
        Err(Refusal::new(ReturnCode::NO_MATCH, Why::NoMatch))
    }

    /// Assigns a send to its receive.
    fn expect(
        &mut self,
        index: ResourceIndex,
        rx: &RxRequest,
        request: &SesRequest,
        remote: Option<Remote>,
        id: ReceiveId,
        posted: PostedReceive,
    ) -> Placement {
        let list = List::UET_EXPECTED;
        self.watch();
        self.event(SesEvent::Matched { index, list, receive: Some(id) });
        Placement::Land(self.landings.add(Landing {
            index,
            list,
            receive: Some((id, posted.receive.clone())),
            sender: sender(rx, request),
            pdc: context(rx),
            confirmed: rx.confirmed,
            stalled: false,
            total: request.total,
            buffer: Buffer::of(posted, request.total),
            header_data: None,
            rest: arriving(remote),
        }))
    }

    /// Posts a receive. The model stores the data and returns it in [`Received::data`].
    pub fn post_receive(
        &mut self,
        index: ResourceIndex,
        receive: Receive,
    ) -> Result<ReceiveId, AddressError> {
        self.post_buffer(index, PostedReceive { receive, memory: None })
    }

    /// Posts a receive into the caller's memory. Uses at most `receive.capacity` bytes of it.
    ///
    /// A matching send writes directly to the memory. An early send is copied once. [`Received::data`] is then empty,
    /// and [`Received::length`] is the number of bytes that arrived. The model drops `memory` when the receive
    /// completes, so pass a handle to shared memory.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use uet_model::ses::{Endpoint, Process, Receive, ResourceIndex, Ses};
    ///
    /// let process = Process::Relative { job: 101, pid: 2 };
    /// let mut ses = Ses::default();
    /// ses.open(Endpoint { process, start: 0, count: 1 })?;
    /// let buffer = Arc::new(Mutex::new(vec![0; 4096]));
    /// ses.post_receive_into(ResourceIndex { process, index: 0 }, Receive::new(4096), buffer.clone())?;
    /// # Ok::<(), uet_model::ses::AddressError>(())
    /// ```
    pub fn post_receive_into(
        &mut self,
        index: ResourceIndex,
        mut receive: Receive,
        memory: impl Memory + 'static,
    ) -> Result<ReceiveId, AddressError> {
        receive.capacity = receive.capacity.min(u32::try_from(memory.len()).unwrap_or(u32::MAX));
        self.post_buffer(index, PostedReceive { receive, memory: Some(Box::new(memory)) })
    }

    fn post_buffer(
        &mut self,
        index: ResourceIndex,
        posted: PostedReceive,
    ) -> Result<ReceiveId, AddressError> {
        self.tables.slot(index)?;
        let id = ReceiveId(self.next.receive);
        self.next.receive += 1;
        self.offer(index, id, posted);
        Ok(id)
    }

    /// Matches a new receive with an early send, or queues it.
    pub(super) fn offer(&mut self, index: ResourceIndex, id: ReceiveId, posted: PostedReceive) {
        let Ok(slot) = self.tables.slot(index) else { return };
        match slot.queue.take_early(&posted.receive) {
            None => slot.queue.post(id, posted),
            Some(Early::Deferred(deferred)) => {
                slot.queue.undefer();
                self.want(index, deferred, id, posted);
            }
            Some(Early::Unexpected(landing, _)) => {
                let Some(found) = self.landings.get_mut(landing) else { return };
                slot.queue.room.free(found.payer(), found.buffer.len());
                (found.receive, found.stalled) = (Some((id, posted.receive.clone())), false);
                let (rest, adopted) = (found.rest, found.buffer.adopt(posted, found.total));
                self.event(SesEvent::Matched { index, list: List::UET_OVERFLOW, receive: Some(id) });
                if let Err(code) = adopted {
                    return self.end_landing(landing, code);
                }
                match rest {
                    Rest::Nothing => self.deliver(landing),
                    Rest::ToRead(remote) => self.fetch(landing, remote),
                    Rest::Arriving | Rest::ArrivingThenRead(_) | Rest::Reading(_) => {}
                }
            }
        }
    }

    /// Returns the first unexpected send that a receive would take, and leaves it there. Returns `None` while the send is
    /// still arriving.
    pub fn peek_unexpected(&mut self, index: ResourceIndex, receive: &Receive) -> Option<Unexpected> {
        let id = self.tables.slot(index).ok()?.queue.peek_early(receive)?;
        let landing = self.landings.get(id)?;
        let Landing { sender, total, header_data, .. } = *landing;
        let has_arrived = !matches!(landing.rest, Rest::Arriving | Rest::ArrivingThenRead(_));
        has_arrived.then_some(Unexpected { sender, length: total, header_data })
    }

    /// Returns whether a send has matched this receive and not filled it yet.
    pub fn has_matched(&self, id: ReceiveId) -> bool {
        self.landings.of_receive(id).is_some()
    }

    /// Cancels a receive that no send has filled, which completes with CANCELLED. Returns whether there was one.
    pub fn cancel_receive(&mut self, index: ResourceIndex, id: ReceiveId) -> bool {
        if let Some(landing) = self.landings.of_receive(id) {
            self.end_landing(landing, ReturnCode::CANCELLED);
            return true;
        }
        let posted = self.tables.slot(index).is_ok_and(|slot| slot.queue.remove(id));
        let kept = self.reserved.iter().find(|(_, kept)| kept.id == id).map(|(token, _)| *token);
        let kept = kept.and_then(|token| self.reserved.remove(&token)).is_some();
        if posted || kept {
            let nobody = Ipv4Addr::UNSPECIFIED.into();
            self.received(Received {
                id,
                index,
                sender: Sender { from: nobody, job: 0, initiator: 0, tag: None },
                code: ReturnCode::CANCELLED,
                data: Bytes::new(),
                length: 0,
                total: 0,
                list: List::UET_EXPECTED,
                header_data: None,
            });
        }
        posted || kept
    }

    /// Handles the last packet of a send.
    pub(super) fn has_landed(&mut self, id: LandingId) {
        let Some(landing) = self.landings.get_mut(id) else { return };
        match landing.rest {
            Rest::ArrivingThenRead(remote) if landing.receive.is_some() => self.fetch(id, remote),
            Rest::ArrivingThenRead(remote) => landing.rest = Rest::ToRead(remote),
            _ => {
                landing.rest = Rest::Nothing;
                self.deliver(id);
            }
        }
    }

    /// `SES-DONE-002`: completes a receive once, when its whole message has arrived.
    pub(super) fn deliver(&mut self, id: LandingId) {
        if self.landings.get(id).is_some_and(|landing| landing.receive.is_some()) {
            self.end_landing(id, ReturnCode::OK);
        }
    }

    /// Ends a landing. `SES-MATCH-007`: drops an unexpected send that no receive took, and frees its room.
    pub(super) fn end_landing(&mut self, id: LandingId, code: ReturnCode) {
        let Some(landing) = self.landings.remove(id) else { return };
        let payer = landing.payer();
        let Some((receive, Receive { capacity, .. })) = landing.receive else {
            if let Ok(slot) = self.tables.slot(landing.index) {
                slot.queue.forget(id);
                slot.queue.room.free(payer, landing.buffer.len());
            }
            return;
        };
        let room = if code == ReturnCode::OK { capacity as usize } else { 0 };
        let length = landing.buffer.len().min(room).min(landing.total as usize);
        let data = match landing.buffer {
            Buffer::Own(mut data) => {
                data.truncate(length);
                data.into()
            }
            Buffer::Parts(_) | Buffer::Callers(..) => Bytes::new(),
        };
        self.received(Received {
            id: receive,
            index: landing.index,
            sender: landing.sender,
            code,
            data,
            length: length as u32,
            total: landing.total,
            list: landing.list,
            header_data: landing.header_data,
        });
    }

    /// Ends such landings that have no receive.
    pub(super) fn end_unexpected(&mut self, such: impl Fn(&Landing) -> bool) {
        let ended =
            self.landings.iter_mut().filter(|(_, landing)| landing.receive.is_none() && such(landing));
        let ended: Vec<LandingId> = ended.map(|(id, _)| id).collect();
        ended.into_iter().for_each(|id| self.end_landing(id, ReturnCode::CANCELLED));
    }

    pub(super) fn received(&mut self, received: Received) {
        let Received { id: receive, code, length, .. } = received;
        self.event(SesEvent::Received { receive, code, length });
        self.completions.push_back(Completion::Received(received));
    }

    pub(super) fn land(
        &mut self,
        id: LandingId,
        request: &SesRequest,
        rx: &RxRequest,
    ) -> Result<(), Refusal> {
        let Some(landing) = self.landings.get_mut(id) else {
            // A cancelled receive ends its message with CANCELLED.
            return Err(Refusal::new(ReturnCode::CANCELLED, Why::Cancelled));
        };
        landing.stalled = false;
        let payer = landing.payer();
        let Buffer::Parts(parts) = &mut landing.buffer else {
            return landing.buffer.place(request.offset, &rx.payload).map_err(host);
        };
        // `SES-MATCH-004`: the bytes of an unexpected send count as they arrive.
        let cancelled = |_| Refusal::new(ReturnCode::CANCELLED, Why::Cancelled);
        let slot = self.tables.slot(landing.index).map_err(cancelled)?;
        let bytes = rx.payload.len();
        if !slot.queue.room.has(payer, 0, bytes, &self.params) || !parts.add(request.offset, &rx.payload) {
            slot.exhausted = slot.ordered;
            return Err(Refusal::new(ReturnCode::NO_MATCH, Why::NoMatch));
        }
        slot.queue.room.take(payer, 0, bytes);
        Ok(())
    }
}

/// Returns the context of a request.
pub(super) fn context(rx: &RxRequest) -> Option<PdcHandle> {
    match rx.ticket {
        Ticket::Pdc(pdc, _) => Some(pdc),
        Ticket::Rudi(..) | Ticket::Uud => None,
    }
}

/// Returns the part of a message that is still to come when its first packet arrives.
fn arriving(remote: Option<Remote>) -> Rest {
    remote.map_or(Rest::Arriving, Rest::ArrivingThenRead)
}

/// Returns the sender of a request.
pub(super) fn sender(rx: &RxRequest, request: &SesRequest) -> Sender {
    let tagged = matches!(
        request.opcode(),
        Opcode::UET_TAGGED_SEND
            | Opcode::UET_RENDEZVOUS_TSEND
            | Opcode::UET_DEFERRABLE_TSEND
            | Opcode::UET_TSEND_ATOMIC
            | Opcode::UET_TSEND_FETCH_ATOMIC
    );
    Sender {
        from: rx.from,
        job: request.address.job_id(),
        initiator: request.initiator,
        tag: tagged.then_some(request.selector),
    }
}
