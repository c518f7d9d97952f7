//! RUDI: idempotent requests, delivered at least once, without a context. `pkt_id` names a packet.

use super::event::Dropped;
use super::list::SlabKey;
use super::protect::SecureContext;
use super::retransmit::{is_last, is_last_after};
use super::shared::{Hasher, Shared};
use super::timers::{Alarm, Timer, backed_off};
use crate::packet::Unbuildable;
use crate::{
    Failure, Head, Indication, MessageKey, Mode, Packet, Priority, Route, RxRequest, RxResponse, Ticket,
    TxRequest, TxResponse, Via,
};
use bytes::Bytes;
use core::net::IpAddr;
use slab::Slab;
use std::collections::HashMap;
use uet_wire::PdcId;
use uet_wire::pds::{Nack, Rudi as Header, RudiMut};
use uet_wire::registry::{NackClass, NackCode, NextHdr};

#[cfg_attr(feature = "explore", derive(Clone))]
pub(super) struct Rudi {
    /// The `pkt_id` of the next request.
    next: u32,
    requests: Slab<RudiRequest>,
    by_id: HashMap<u32, SlabKey, Hasher>,
    /// Requests that SES has not answered yet.
    inbound: HashMap<(IpAddr, u8, u32), RudiInbound, Hasher>,
    /// The paused routes.
    paused: Vec<Route>,
}

#[cfg(feature = "explore")]
impl core::hash::Hash for Rudi {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        let Rudi { next, requests, by_id: _, inbound, paused } = self;
        (next, paused).hash(state);
        crate::explore::slab(requests, state);
        crate::explore::map(inbound, state);
    }
}

#[cfg_attr(feature = "explore", derive(Clone, Hash))]
struct RudiRequest {
    route: Route,
    security: Option<SecureContext>,
    message: MessageKey,
    pkt_id: u32,
    next_hdr: NextHdr,
    head: Head,
    payload: Bytes,
    sent: u8,
    timeouts: u8,
    nacks: u8,
    in_nack_backoff: bool,
    alarm: Alarm,
}

impl RudiRequest {
    /// Returns whether a reply comes from the peer of this request, under its secure context.
    fn is_to_sender_of(&self, reply: &Packet) -> bool {
        self.route.destination == reply.src && SecureContext::admits(self.security, reply.security)
    }
}

/// The fields of a received request that its response copies.
#[derive(Clone, Copy)]
#[cfg_attr(feature = "explore", derive(Hash))]
struct RudiInbound {
    copies: u16,
    retx: bool,
    marked: bool,
    entropy: u16,
    security: Option<SecureContext>,
}

impl Rudi {
    pub(super) fn new(shared: &mut Shared, seed: u64) -> Self {
        Rudi {
            next: shared.rng.u32(..),
            requests: Slab::new(),
            by_id: HashMap::with_hasher(Hasher::with_seed(seed)),
            inbound: HashMap::with_hasher(Hasher::with_seed(seed)),
            paused: Vec::new(),
        }
    }

    pub(super) fn is_full(&self, shared: &Shared) -> bool {
        self.requests.len() >= usize::from(shared.params.rudi_requests)
    }

    /// Records a route whose request was refused.
    pub(super) fn pause(&mut self, route: Route) {
        if !self.paused.contains(&route) && self.paused.len() < 64 {
            self.paused.push(route);
        }
    }

    pub(super) fn send(
        &mut self,
        shared: &mut Shared,
        route: Route,
        security: Option<SecureContext>,
        request: TxRequest,
    ) {
        // `PDS-RUDI-001`: a `pkt_id` names one request at a time.
        while self.by_id.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let pkt_id = self.next;
        self.next = pkt_id.wrapping_add(1);
        let TxRequest { message, next_hdr, head, payload, .. } = request;
        let key = self.requests.insert(RudiRequest {
            route,
            security,
            message,
            pkt_id,
            next_hdr,
            head,
            payload,
            sent: 0,
            timeouts: 0,
            nacks: 0,
            in_nack_backoff: false,
            alarm: Alarm::default(),
        }) as SlabKey;
        self.by_id.insert(pkt_id, key);
        self.transmit(shared, key);
    }

    fn transmit(&mut self, shared: &mut Shared, key: SlabKey) {
        let Some(out) = self.requests.get_mut(key as usize) else { return };
        let entropy = shared.rng.u16(..);
        let to = (out.route.destination, out.security);
        let packet = shared.packet(to, out.route.class, Priority::Low, entropy);
        let header = Header::request(out.pkt_id).prologue(|p| p.next_hdr(out.next_hdr)).retx(out.sent > 0);
        let packet = build(packet, header, &out.head, out.payload.clone());
        out.sent = out.sent.saturating_add(1);
        out.in_nack_backoff = false;
        let at = shared.now + backed_off(shared.params.rto_init_time, out.timeouts);
        shared.timers.arm(&mut out.alarm, at, Timer::Rudi(key, out.timeouts));
        shared.answer(packet);
    }

    fn take(&mut self, shared: &mut Shared, key: SlabKey) -> Option<RudiRequest> {
        let mut out = self.requests.try_remove(key as usize)?;
        self.by_id.remove(&out.pkt_id);
        shared.timers.cancel(&mut out.alarm);
        let resumed = self.paused.drain(..).map(|route| Indication::Resumed(Via::Route(route)));
        shared.indications.extend(resumed);
        Some(out)
    }

    fn fail(&mut self, shared: &mut Shared, key: SlabKey, why: Failure) {
        if let Some(out) = self.take(shared, key) {
            shared.indications.push_back(Indication::Failed { message: out.message, why });
        }
    }

    /// `PDS-RUDI-005`: a source retransmits after a timeout, as in the other modes.
    pub(super) fn timeout(&mut self, shared: &mut Shared, key: SlabKey) {
        let Some(out) = self.requests.get_mut(key as usize) else { return };
        out.alarm = Alarm::default();
        if is_last(out.timeouts, &shared.params) {
            return self.fail(shared, key, Failure::TimedOut);
        }
        out.timeouts = out.timeouts.saturating_add(1);
        self.transmit(shared, key);
    }

    /// Ends the back-off after a NACK.
    pub(super) fn nack_backoff_over(&mut self, shared: &mut Shared, key: SlabKey) {
        if let Some(out) = self.requests.get_mut(key as usize) {
            out.alarm = Alarm::default();
            self.transmit(shared, key);
        }
    }

    /// `PDS-RUDI-004`: a NACK with nt = 1 makes the source retransmit: at once after a trim, else after NACK_Retx_Time.
    pub(super) fn nacked(&mut self, shared: &mut Shared, packet: &Packet, nack: &Nack) {
        let code = nack.nack_code();
        let key = nack.nack_pkt_id().and_then(|id| self.by_id.get(&id)).copied();
        let out = key.and_then(|key| self.requests.get_mut(key as usize));
        let (Some(key), Some(out)) = (key, out.filter(|out| out.is_to_sender_of(packet))) else {
            return shared.drop_packet(Dropped::NackNotInFlight);
        };
        if out.in_nack_backoff {
            return;
        }
        let Some(class) = code.class() else { return shared.drop_packet(Dropped::UnknownNack) };
        if class == NackClass::PdcFatal {
            return self.fail(shared, key, Failure::Ended(code.code()));
        }
        if is_last_after(out.nacks, &shared.params) {
            return self.fail(shared, key, Failure::Refused(code.code()));
        }
        out.nacks = out.nacks.saturating_add(1);
        if matches!(code, NackCode::TRIMMED | NackCode::TRIMMED_LASTHOP) {
            return self.transmit(shared, key);
        }
        out.in_nack_backoff = true;
        let at = shared.now + shared.params.nack_retx_time;
        shared.timers.arm(&mut out.alarm, at, Timer::RudiAfterNack(key));
    }

    /// `PDS-RUDI-002`: the response with the same `pkt_id` completes the request.
    pub(super) fn answered(&mut self, shared: &mut Shared, packet: Packet, header: &Header, head: Head) {
        let key = self.by_id.get(&header.pkt_id()).copied();
        let is_peer =
            |key: &SlabKey| self.requests.get(*key as usize).is_some_and(|out| out.is_to_sender_of(&packet));
        let Some(key) = key.filter(is_peer).filter(|_| packet.trimmed.is_none()) else {
            return shared.drop_packet(Dropped::NoRequest);
        };
        let Some(out) = self.take(shared, key) else { return };
        let next_hdr = header.prologue().next_hdr();
        shared.indications.push_back(Indication::Response {
            message: out.message,
            pdc: None,
            response: Some(RxResponse { next_hdr, head, payload: packet.payload }),
        });
    }

    /// `PDS-RUDI-003`: delivers every request, duplicates included.
    pub(super) fn receive(&mut self, shared: &mut Shared, packet: Packet, header: &Header, head: Head) {
        let pkt_id = header.pkt_id();
        // `PDS-TRIM-003`
        if let Some(trimmed) = packet.trimmed {
            return refuse(shared, &packet, header, super::arrive::trim_code(trimmed));
        }
        let ticket = (packet.src, packet.class, pkt_id);
        let full = self.inbound.len() >= usize::from(shared.params.rudi_requests);
        if full && !self.inbound.contains_key(&ticket)
            || self.inbound.get(&ticket).is_some_and(|inbound| inbound.copies >= MAX_COPIES)
        {
            return refuse(shared, &packet, header, NackCode::NO_RESOURCE);
        }
        let (retx, marked, entropy) = (header.retx(), packet.marked, packet.entropy);
        let copies = self.inbound.get(&ticket).map_or(1, |inbound| inbound.copies + 1);
        self.inbound.insert(ticket, RudiInbound { copies, retx, marked, entropy, security: packet.security });
        shared.indications.push_back(Indication::Request(RxRequest {
            ticket: Ticket::Rudi(packet.src, packet.class, pkt_id),
            from: packet.src,
            class: packet.class,
            mode: Mode::Rudi,
            confirmed: false,
            next_hdr: header.prologue().next_hdr(),
            head,
            payload: packet.payload,
        }));
    }

    /// Sends the response of SES: `PDS-RUDI-002`.
    pub(super) fn respond(&mut self, shared: &mut Shared, ticket: (IpAddr, u8, u32), response: TxResponse) {
        let Some(inbound) = self.take_inbound(ticket) else { return };
        let (to, class, pkt_id) = ticket;
        let packet = shared.packet((to, inbound.security), class, Priority::High, inbound.entropy);
        let header = Header::response(pkt_id).prologue(|p| p.next_hdr(response.next_hdr));
        let header = header.m(inbound.marked).retx(inbound.retx);
        shared.answer(build(packet, header, &response.head, response.payload));
    }

    /// Refuses a request because SES has no room for it.
    pub(super) fn take_back(&mut self, shared: &mut Shared, ticket: (IpAddr, u8, u32), code: NackCode) {
        let Some(inbound) = self.take_inbound(ticket) else { return };
        let (to, class, pkt_id) = ticket;
        let packet = shared.packet((to, inbound.security), class, Priority::High, inbound.entropy);
        shared.answer(nack(packet, pkt_id, inbound.marked, inbound.retx, code));
    }

    fn take_inbound(&mut self, ticket: (IpAddr, u8, u32)) -> Option<RudiInbound> {
        let inbound = self.inbound.get_mut(&ticket)?;
        inbound.copies -= 1;
        let copied = *inbound;
        if copied.copies == 0 {
            self.inbound.remove(&ticket);
        }
        Some(copied)
    }

    pub(super) fn len(&self) -> usize {
        self.requests.len() + self.inbound.len()
    }
}

/// The number of copies of one request that SES may hold at once.
const MAX_COPIES: u16 = 16;

/// `PDS-NACK-008`: the NACK of a RUDI packet has nt = 1 and names no context.
fn refuse(shared: &mut Shared, packet: &Packet, header: &Header, code: NackCode) {
    let reply = shared.packet((packet.src, packet.security), packet.class, Priority::High, packet.entropy);
    shared.answer(nack(reply, header.pkt_id(), packet.marked, header.retx(), code));
}

fn nack(
    mut packet: Packet,
    pkt_id: u32,
    marked: bool,
    retx: bool,
    code: NackCode,
) -> Result<Packet, Unbuildable> {
    let nack = Nack::rudi(code).m(marked).retx(retx).nack_pkt_id(pkt_id);
    let nack = nack.spdcid(PdcId::NONE).dpdcid(PdcId::NONE).done()?;
    packet.head.try_extend_from_slice(nack.bytes())?;
    Ok(packet)
}

/// Puts a header, a SES header and a payload into a packet.
fn build(mut packet: Packet, header: RudiMut, ses: &[u8], payload: Bytes) -> Result<Packet, Unbuildable> {
    packet.head.try_extend_from_slice(header.done()?.bytes())?;
    packet.head.try_extend_from_slice(ses)?;
    packet.payload = payload;
    Ok(packet)
}
