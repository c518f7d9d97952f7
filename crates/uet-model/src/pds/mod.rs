//! Packet delivery (PDS): contexts, and the packets between them (section 3.5).
//!
//! [`Pds`] is the packet delivery of one endpoint, without I/O. The layer above gives it requests, and answers the
//! requests of peers. SES is one such layer; this example uses its own. See [`Fep`](crate::Fep) for call order and
//! time.
//!
//! ```
//! use bytes::Bytes;
//! use uet_model::pds::Pds;
//! use uet_model::*;
//! use uet_wire::registry::NextHdr;
//!
//! let addresses = [[10, 0, 0, 1], [10, 0, 1, 12]];
//! let [mut a, mut b] = addresses.map(|ip| Pds::new(PdsParams::default(), ip.into(), 7).unwrap());
//! let now = Time::ZERO;
//!
//! // A sends a request of one packet.
//! let route = Route {
//!     job: 101,
//!     destination: addresses[1].into(),
//!     class: 0,
//!     mode: Mode::Rud,
//!     pool: Pool::General,
//!     context: 0,
//! };
//! let request = TxRequest {
//!     message: MessageKey(1),
//!     som: true,
//!     eom: true,
//!     next_hdr: NextHdr::UET_HDR_REQUEST_STD,
//!     head: [0; 44].into_iter().collect(),
//!     payload: Bytes::from_static(b"data"),
//! };
//! a.request(now, Via::Route(route), request).unwrap();
//! b.handle_input(now, a.poll_transmit(now).unwrap());
//!
//! // B receives and answers it.
//! let Some(Indication::Request(request)) = b.poll_indication() else { panic!() };
//! assert_eq!(request.payload, "data");
//! let response = TxResponse {
//!     delivery: Delivery::Default,
//!     next_hdr: NextHdr::UET_HDR_RESPONSE,
//!     head: [0; 12].into_iter().collect(),
//!     payload: Bytes::new(),
//! };
//! b.respond(now, request.ticket, response);
//! a.handle_input(now, b.poll_transmit(now).unwrap());
//!
//! // A learns that it has arrived.
//! assert!(matches!(a.poll_indication(), Some(Indication::Numbered { .. })));
//! assert!(matches!(a.poll_indication(), Some(Indication::Response { message: MessageKey(1), .. })));
//! ```
//!
//! # Files
//!
//! | topic | file |
//! | --- | --- |
//! | receiving: window, duplicates, delivery | `arrive.rs`, `destination.rs` |
//! | sending ACKs | `ack.rs` |
//! | handling ACKs | `acked.rs`, `source.rs` |
//! | NACKs | `nack.rs`, `open.rs` |
//! | retransmission | `retransmit.rs` |
//! | control packets, CLEAR, PROBE | `control.rs` |
//! | closing | `close.rs` |
//! | finding and opening contexts | `contexts.rs`, `open.rs` |
//! | RUDI, UUD | `rudi.rs`, `uud.rs` |
//! | a context, and the packets that it has queued or in flight | `pdc.rs`, `pool.rs` |
//! | state of all contexts | `shared.rs`, `timers.rs`, `list.rs` |
//! | transport security | `protect.rs` |
//! | decisions and their reasons | `event.rs` |

mod ack;
mod acked;
mod arrive;
mod close;
mod contexts;
mod control;
mod destination;
mod event;
mod list;
mod nack;
mod open;
mod pdc;
mod pool;
mod protect;
mod retransmit;
mod rudi;
mod shared;
mod source;
mod timers;
mod uud;

pub use event::{AckReason, CloseReason, Dropped, Duplicate, EventKind, PdsEvent, RetransmitCause, Role};
pub use nack::NackAction;
pub use protect::{Association, OpenError, Protect, SealError, SecureContext, Unprotected};

use crate::cc::{CcError, Observed};
use crate::{
    Failure, Head, Indication, Mode, Packet, PdcHandle, PdsParams, Refused, Route, Ticket, Time, TxRequest,
    TxResponse, Via,
};
use contexts::{Contexts, Reclaimed};
use core::net::IpAddr;
use rudi::Rudi;
use shared::Shared;
use timers::Timer;
use uet_wire::registry::{CtlType, NackCode};

/// The packet delivery layer of one endpoint.
#[cfg_attr(feature = "explore", derive(Clone))]
pub struct Pds {
    shared: Shared,
    contexts: Contexts,
    reclaimed: Reclaimed,
    rudi: Rudi,
    protect: Option<Box<dyn Protect>>,
}

#[cfg(feature = "explore")]
impl core::hash::Hash for Pds {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        let Pds { shared, contexts, reclaimed, rudi, protect } = self;
        (shared, contexts, reclaimed, rudi, protect).hash(state);
    }
}

// A refused request is returned whole, without allocation.
#[allow(clippy::result_large_err)]
impl Pds {
    /// Creates the packet delivery of the endpoint with this address. The seed determines the random choices: first
    /// PSNs and paths. Fails if the parameters of congestion control contradict each other.
    pub fn new(params: PdsParams, address: IpAddr, seed: u64) -> Result<Self, CcError> {
        let contexts = Contexts::new(&params, seed);
        let mut shared = Shared::new(params, address, seed)?;
        let rudi = Rudi::new(&mut shared, seed);
        Ok(Pds { shared, contexts, reclaimed: Reclaimed::new(seed), rudi, protect: None })
    }

    /// Adds an address of the other IP version. The endpoint accepts packets to both addresses. Its packets to a peer
    /// come from the address of the peer's IP version.
    pub fn with_second_address(mut self, address: IpAddr) -> Self {
        self.shared.second_address = Some(address);
        self
    }

    /// Adds protection: the endpoint seals every packet before it leaves and opens every packet that arrives.
    pub fn with_protection(mut self, protect: impl Protect + 'static) -> Self {
        self.protect = Some(Box::new(protect));
        self
    }

    /// Replaces the protection, and returns the previous one. It holds the counters of the keys, so a restarted
    /// endpoint can continue them.
    pub fn replace_protection(&mut self, protect: Option<Box<dyn Protect>>) -> Option<Box<dyn Protect>> {
        core::mem::replace(&mut self.protect, protect)
    }

    /// Returns the secure context of packets that this endpoint sends on a route.
    fn outbound(&mut self, route: &Route) -> Option<SecureContext> {
        self.protect.as_mut().and_then(|protect| protect.outbound(route))
    }

    /// Returns the parameters.
    pub fn params(&self) -> &PdsParams {
        &self.shared.params
    }

    /// Returns the address of the endpoint.
    pub fn address(&self) -> IpAddr {
        self.shared.address
    }

    // ---- Calls of the layer above.

    /// Sends a request. Returns it if the queue cannot take it now.
    pub fn request(&mut self, now: Time, via: Via, request: TxRequest) -> Result<(), Refused> {
        self.shared.now = now;
        match via {
            Via::Route(route) => match route.mode {
                Mode::Rud | Mode::Rod => self.request_by_route(route, request),
                Mode::Rudi => self.request_idempotent(route, request),
                Mode::Uud => {
                    let security = self.outbound(&route);
                    uud::send(&mut self.shared, &route, security, request);
                    Ok(())
                }
            },
            Via::Return(handle) => match self.contexts.of(handle).filter(|pdc| pdc.receives()) {
                Some(_) => self.request_by(handle.pdcid, request),
                None => self.fail(&request, Failure::Closed),
            },
        }
    }

    fn request_by_route(&mut self, route: Route, request: TxRequest) -> Result<(), Refused> {
        let found = self.contexts.of_route(&route);
        if let Some(pdc) = found.and_then(|id| self.contexts.get(id)) {
            // `PDS-MSG-002`: a message stays on its context to its end, even if the context is closing.
            if pdc.is_open() || pdc.source.message == Some(request.message) {
                let id = pdc.pdcid();
                return self.request_by(id, request);
            }
            if pdc.keeps_order() {
                pdc.source.shut_out = true;
                return Err(Refused(request));
            }
        }
        if !request.som {
            return self.fail(&request, Failure::Closed);
        }
        match self.open_initiator(route) {
            Some(id) => self.request_by(id, request),
            None => self.fail(&request, Failure::NoContext),
        }
    }

    fn request_by(&mut self, id: u16, request: TxRequest) -> Result<(), Refused> {
        let limit = usize::from(self.shared.params.tx_queue);
        let Some(pdc) = self.contexts.get(id) else { return Err(Refused(request)) };
        if !request.som && pdc.source.message != Some(request.message) {
            return self.fail(&request, Failure::Closed);
        }
        if !pdc.takes(&request, limit) {
            pdc.source.shut_out = true;
            return Err(Refused(request));
        }
        pdc.push(&mut self.shared, request);
        self.reschedule(id);
        Ok(())
    }

    fn request_idempotent(&mut self, route: Route, request: TxRequest) -> Result<(), Refused> {
        if self.rudi.is_full(&self.shared) {
            self.rudi.pause(route);
            return Err(Refused(request));
        }
        let security = self.outbound(&route);
        self.rudi.send(&mut self.shared, route, security, request);
        Ok(())
    }

    /// Reports the failure of a request that will never leave.
    fn fail(&mut self, request: &TxRequest, why: Failure) -> Result<(), Refused> {
        self.shared.indications.push_back(Indication::Failed { message: request.message, why });
        Ok(())
    }

    /// Answers a received request.
    pub fn respond(&mut self, now: Time, ticket: Ticket, response: TxResponse) {
        self.shared.now = now;
        match ticket {
            Ticket::Pdc(handle, psn) => {
                if let Some(pdc) = self.contexts.of(handle) {
                    pdc.respond(&mut self.shared, psn, response);
                    self.reschedule(handle.pdcid);
                }
            }
            Ticket::Rudi(to, class, pkt_id) => {
                self.rudi.respond(&mut self.shared, (to, class, pkt_id), response);
            }
            Ticket::Uud => {}
        }
    }

    /// Refuses a received request with this NACK code, because there is no room for it now. The peer retransmits it.
    pub fn refuse(&mut self, now: Time, ticket: Ticket, code: NackCode) {
        self.shared.now = now;
        match ticket {
            Ticket::Pdc(handle, psn) => {
                if let Some(pdc) = self.contexts.of(handle) {
                    pdc.take_back(&mut self.shared, psn, code);
                    self.reschedule(handle.pdcid);
                }
            }
            Ticket::Rudi(from, class, pkt_id) => {
                self.rudi.take_back(&mut self.shared, (from, class, pkt_id), code);
            }
            Ticket::Uud => {}
        }
    }

    /// Keeps a context open while read data is outstanding. Holds are counted.
    pub fn hold(&mut self, now: Time, handle: PdcHandle) {
        self.shared.now = now;
        if let Some(pdc) = self.contexts.of(handle) {
            pdc.locks = pdc.locks.saturating_add(1);
            self.reschedule(handle.pdcid);
        }
    }

    /// Ends a [`hold`](Self::hold).
    pub fn release(&mut self, now: Time, handle: PdcHandle) {
        self.shared.now = now;
        if let Some(pdc) = self.contexts.of(handle) {
            pdc.locks = pdc.locks.saturating_sub(1);
            self.reschedule(handle.pdcid);
        }
    }

    /// Closes a context once its requests have completed. A target requests that from the initiator.
    pub fn close(&mut self, now: Time, handle: PdcHandle) {
        self.shared.now = now;
        if let Some(pdc) = self.contexts.of(handle) {
            pdc.close(&mut self.shared, CloseReason::Wanted);
            self.reschedule(handle.pdcid);
        }
    }

    /// Asks a peer to close the contexts that it opened with this mode and traffic class. Returns whether there is one.
    pub fn request_close(&mut self, now: Time, peer: IpAddr, mode: Mode, class: u8) -> bool {
        let targets = self.contexts.iter().filter(|pdc| pdc.role == Role::Target && pdc.receives());
        let wanted = targets.filter(|pdc| (pdc.peer, pdc.mode, pdc.class) == (peer, mode, class));
        let handles: Vec<PdcHandle> = wanted.map(|pdc| pdc.handle).collect();
        handles.iter().for_each(|handle| self.close(now, *handle));
        !handles.is_empty()
    }

    /// Closes a context in error, and reports that to the peer. Its requests fail.
    pub fn abandon(&mut self, now: Time, handle: PdcHandle) {
        self.shared.now = now;
        if let Some(pdc) = self.contexts.of(handle).filter(|pdc| pdc.receives()) {
            pdc.close_in_error(&mut self.shared, CloseReason::Stalled);
            self.reschedule(handle.pdcid);
        }
    }

    /// Sends a NOOP. Opens the context of this route if there is none.
    pub fn noop(&mut self, now: Time, route: Route) {
        self.send_control(now, route, CtlType::NOOP, 0);
    }

    /// Offers capabilities (NEGOTIATION). Opens the context of this route if there is none.
    pub fn negotiate(&mut self, now: Time, route: Route, capabilities: u32) {
        self.send_control(now, route, CtlType::NEGOTIATION, capabilities);
    }

    fn send_control(&mut self, now: Time, route: Route, kind: CtlType, payload: u32) {
        self.shared.now = now;
        let found = self.contexts.of_route(&route);
        let open =
            found.and_then(|id| self.contexts.get(id)).filter(|pdc| pdc.is_open()).map(|pdc| pdc.pdcid());
        if let Some(id) = open.or_else(|| self.open_initiator(route)) {
            if let Some(pdc) = self.contexts.get(id) {
                pdc.push_control(&mut self.shared, kind, payload);
            }
            self.reschedule(id);
        }
    }

    /// Sends a PROBE on this context, if it is established.
    pub fn probe(&mut self, now: Time, handle: PdcHandle) {
        self.shared.now = now;
        if let Some(pdc) = self.contexts.of(handle) {
            pdc.send_probe(&mut self.shared);
        }
    }

    /// Slows all sources by this penalty, 1 to 127, starting with the next ACKs; 0 restores them.
    pub fn set_penalty(&mut self, penalty: u8) {
        self.shared.penalty.set(penalty);
    }

    // ---- Output.

    /// Returns the next indication for the layer above.
    pub fn poll_indication(&mut self) -> Option<Indication> {
        self.shared.indications.pop_front()
    }

    /// Returns the next event, if events are on.
    pub fn poll_event(&mut self) -> Option<PdsEvent> {
        self.shared.events.pop()
    }

    /// Returns the number of events lost to a full queue.
    pub fn lost_events(&self) -> u64 {
        self.shared.events.lost()
    }

    /// Returns the number of packets that were dropped for this reason.
    pub fn dropped(&self, why: Dropped) -> u64 {
        self.shared.events.dropped(why)
    }

    /// Returns the number of contexts, including closed ones that are still remembered.
    pub fn contexts(&self) -> usize {
        self.contexts.len()
    }

    /// Returns the address of the peer of each of these contexts.
    pub fn peers(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.contexts.iter().map(|pdc| pdc.peer)
    }

    /// Returns the number of resources held for requests and responses, all kinds together; 0 if nothing is in
    /// progress.
    pub fn held(&self) -> usize {
        let Shared { pool, store, timers, delivered, slots, .. } = &self.shared;
        pool.len() + store.len() + timers.len() + delivered + slots + self.rudi.len()
    }

    /// Returns the state of congestion control for a destination and traffic class.
    pub fn congestion(&self, destination: IpAddr, class: u8) -> Option<Observed> {
        self.shared.cccs.observe((destination, class))
    }

    /// Returns the context that a route uses now.
    pub fn context_of(&self, route: &Route) -> Option<PdcHandle> {
        self.contexts.of_route(route).and_then(|id| self.contexts.peek(id)).map(|pdc| pdc.handle)
    }

    /// Returns the next packet to send, sealed if the endpoint has [protection](Protect).
    pub fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        self.shared.now = now;
        loop {
            let packet = self.next_packet()?;
            let Some(protect) = &mut self.protect else { return Some(packet) };
            match protect.seal(packet) {
                Ok((packet, association)) => {
                    if let Some(association) = association {
                        self.shared.events.push(now, None, EventKind::Sealed(association));
                    }
                    return Some(packet);
                }
                Err(why) => {
                    self.shared.events.push(now, None, EventKind::SealFailed(why));
                    self.shared.drop_packet(Dropped::SealFailed);
                }
            }
        }
    }

    fn next_packet(&mut self) -> Option<Packet> {
        if let Some(answer) = self.shared.pop_answer() {
            return Some(answer);
        }
        // Round robin: a context with more to send moves to the end.
        while let Some(id) = self.shared.ready.pop_front() {
            let Some(pdc) = self.contexts.get(id) else { continue };
            pdc.queued = false;
            let packet = pdc.transmit(&mut self.shared);
            self.reschedule(id);
            if packet.is_some() {
                return packet;
            }
        }
        None
    }

    /// Returns the time at which to call [`handle_timeout`](Self::handle_timeout); `None` if no timer runs.
    pub fn poll_timeout(&self) -> Option<Time> {
        let pacer = self.shared.pacer.as_ref().and_then(|pacer| pacer.timeout());
        let earlier = |a: Option<Time>, b: Option<Time>| a.zip(b).map(|(a, b)| a.min(b)).or(a).or(b);
        earlier(earlier(self.shared.timers.next(), self.shared.cccs.next()), pacer)
    }

    /// Runs the timers that are due.
    pub fn handle_timeout(&mut self, now: Time) {
        self.shared.now = now;
        while let Some(timer) = self.shared.timers.pop(now) {
            self.fire(timer);
        }
        while let Some(ccc) = self.shared.cccs.pop(now) {
            if let Some(id) = self.shared.cccs.speaker(ccc) {
                self.reschedule(id);
            }
            self.wake(Some(ccc));
        }
        self.grant();
    }

    fn fire(&mut self, timer: Timer) {
        let shared = &mut self.shared;
        let id = match timer {
            Timer::Rudi(key, _) => return self.rudi.timeout(shared, key),
            Timer::RudiAfterNack(key) => return self.rudi.nack_backoff_over(shared, key),
            Timer::Retransmission(key, _) | Timer::AfterNack(key) => {
                let Some(owner) = shared.pool.get(key).map(|out| out.owner) else { return };
                owner
            }
            Timer::AckDelay(id)
            | Timer::Clear(id)
            | Timer::AskClear(id)
            | Timer::Window(id)
            | Timer::CloseRequest(id)
            | Timer::Idle(id)
            | Timer::Linger(id)
            | Timer::NewPdc(id) => id,
        };
        let Some(pdc) = self.contexts.get(id) else { return };
        match timer {
            Timer::Retransmission(key, _) => pdc.retransmission_timeout(shared, key),
            Timer::AfterNack(key) => pdc.nack_backoff_over(shared, key),
            Timer::AckDelay(_) => pdc.ack_delay_over(shared),
            Timer::Clear(_) => pdc.clear_time_over(shared),
            Timer::AskClear(_) => pdc.ask_clear(shared),
            Timer::Window(_) => pdc.window_timeout(shared),
            Timer::CloseRequest(_) => pdc.close_request_timeout(shared),
            Timer::Idle(_) => pdc.idle_time_over(shared),
            Timer::Linger(_) => pdc.forget(shared, CloseReason::Forgotten),
            Timer::NewPdc(_) => pdc.forget(shared, CloseReason::NotRestarted),
            Timer::Rudi(..) | Timer::RudiAfterNack(_) => {}
        }
        self.reschedule(id);
    }

    /// Updates everything that depends on the state of a context, after any change to it.
    fn reschedule(&mut self, id: u16) {
        let Some(pdc) = self.contexts.get(id) else { return };
        let shared = &mut self.shared;
        // The peer does not know this PDC yet, but perhaps another one of its congestion control context.
        let known = pdc.ccc.filter(|_| !pdc.established).and_then(|ccc| shared.cccs.speaker(ccc));
        if let Some(known) = known.and_then(|id| self.contexts.get(id)) {
            known.serve_congestion(shared);
        }
        let Some(pdc) = self.contexts.get(id) else { return };
        pdc.serve_congestion(shared);
        pdc.watch_window(shared);
        pdc.watch_psn_range(shared);
        pdc.advance_close(shared);
        pdc.watch_idleness(shared);
        shared.slots = shared.slots + pdc.destination.len()
            - core::mem::replace(&mut pdc.slots_charged, pdc.destination.len() as u32) as usize;
        if !pdc.queued && pdc.wants_to_send(shared) {
            pdc.queued = true;
            shared.ready.push_back(id);
        }
        let (ccc, gone) = (pdc.ccc, pdc.is_gone());
        if let Some(handle) = pdc.take_ended() {
            shared.indications.push_back(Indication::Closed(handle));
            if core::mem::take(&mut pdc.source.shut_out) {
                shared.indications.push_back(Indication::Resumed(pdc.via()));
            }
        }
        if gone {
            if let (Some(protect), Role::Target) = (&mut self.protect, pdc.role) {
                protect.closed(pdc.security, pdc.source.start(), pdc.destination.cack());
            }
            self.contexts.remove(id);
        }
        self.wake(ccc);
    }

    /// Wakes a context that waited for congestion control.
    fn wake(&mut self, ccc: Option<list::SlabKey>) {
        let Some(id) = self.shared.cccs.rearm(ccc) else { return };
        let Some(pdc) = self.contexts.get(id) else { return };
        pdc.blocked = false;
        if !pdc.queued {
            pdc.queued = true;
            self.shared.ready.push_back(id);
        }
    }

    // ---- Input.

    /// Handles a packet that arrived.
    pub fn handle_input(&mut self, now: Time, packet: Packet) {
        self.shared.now = now;
        if !self.shared.has_address(packet.dst) {
            return self.shared.drop_packet(Dropped::OtherAddress);
        }
        let Some(protect) = &mut self.protect else { return self.dispatch(packet) };
        match protect.open(packet) {
            Ok((packet, association)) => {
                let security = association.map(|association| association.context);
                self.dispatch(Packet { security, ..packet });
            }
            Err(why) => {
                self.shared.events.push(now, None, EventKind::OpenFailed(why));
                self.shared.drop_packet(Dropped::Security);
            }
        }
    }

    /// Returns whether no packet waits to leave.
    pub fn is_quiet(&self) -> bool {
        !self.shared.has_answers() && self.shared.ready.is_empty()
    }
}

/// Copies the bytes after a PDS header, for the layer above. They always fit, because they are part of a [`Head`].
fn rest(ses: &[u8]) -> Head {
    Head::try_from(ses).unwrap_or_default()
}
