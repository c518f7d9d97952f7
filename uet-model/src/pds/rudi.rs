//! RUDI: idempotent requests, at least once, without a context. A packet is known by its `pkt_id`.

use super::event::Dropped;
use super::list::Key;
use super::shared::{Hasher, Shared};
use super::timers::{Alarm, Timer, backed_off};
use crate::{
    Failure, Head, Indication, MessageKey, Mode, Packet, Priority, Route, RxRequest, RxResponse, Ticket,
    TxRequest, TxResponse, Via,
};
use core::net::IpAddr;
use slab::Slab;
use std::collections::HashMap;
use uet_wire::PdcId;
use uet_wire::pds::{Nack, Rudi as Header};
use uet_wire::registry::{NackCode, NextHdr};

pub(super) struct Rudi {
    /// The identifier of the next request.
    next: u32,
    requests: Slab<Outgoing>,
    by_id: HashMap<u32, Key, Hasher>,
    /// What the upper layer has and has not answered.
    inbound: HashMap<(IpAddr, u8, u32), Inbound, Hasher>,
    /// Those that were told to pause.
    paused: Vec<Route>,
}

struct Outgoing {
    route: Route,
    message: MessageKey,
    pkt_id: u32,
    next_hdr: NextHdr,
    head: Head,
    payload: bytes::Bytes,
    sent: u8,
    timeouts: u8,
    nacks: u8,
    resting: bool,
    alarm: Alarm,
}

/// Of a request that waits for its response: what the response copies.
#[derive(Clone, Copy)]
struct Inbound {
    copies: u16,
    retx: bool,
    marked: bool,
    entropy: u16,
}

impl Rudi {
    pub(super) fn new(sh: &mut Shared, seed: u64) -> Self {
        Rudi {
            next: sh.rng.u32(..),
            requests: Slab::new(),
            by_id: HashMap::with_hasher(Hasher::with_seed(seed)),
            inbound: HashMap::with_hasher(Hasher::with_seed(seed)),
            paused: Vec::new(),
        }
    }

    pub(super) fn is_full(&self, sh: &Shared) -> bool {
        self.requests.len() >= usize::from(sh.params.rudi_requests)
    }

    /// A request cannot be taken now.
    pub(super) fn pause(&mut self, route: Route) {
        if !self.paused.contains(&route) && self.paused.len() < 64 {
            self.paused.push(route);
        }
    }

    pub(super) fn send(&mut self, sh: &mut Shared, route: Route, request: TxRequest) {
        // `PDS-RUDI-001`: an identifier names one request at a time.
        while self.by_id.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let pkt_id = self.next;
        self.next = pkt_id.wrapping_add(1);
        let TxRequest { message, next_hdr, head, payload, .. } = request;
        let key = self.requests.insert(Outgoing {
            route,
            message,
            pkt_id,
            next_hdr,
            head,
            payload,
            sent: 0,
            timeouts: 0,
            nacks: 0,
            resting: false,
            alarm: Alarm::default(),
        }) as Key;
        self.by_id.insert(pkt_id, key);
        self.transmit(sh, key);
    }

    fn transmit(&mut self, sh: &mut Shared, key: Key) {
        let Some(out) = self.requests.get_mut(key as usize) else { return };
        let entropy = sh.rng.u16(..);
        let mut packet = sh.packet(out.route.destination, out.route.class, Priority::Low, entropy);
        let header = Header::request(out.pkt_id).prologue(|p| p.next_hdr(out.next_hdr)).retx(out.sent > 0);
        let _ = packet.head.try_extend_from_slice(header.current_unchecked().bytes());
        let _ = packet.head.try_extend_from_slice(&out.head);
        packet.payload = out.payload.clone();
        out.sent = out.sent.saturating_add(1);
        out.resting = false;
        let at = sh.now + backed_off(sh.params.rto_init_time, out.timeouts);
        sh.timers.arm(&mut out.alarm, at, Timer::Rudi(key, out.timeouts));
        sh.answer(packet);
    }

    fn take(&mut self, sh: &mut Shared, key: Key) -> Option<Outgoing> {
        let mut out = self.requests.try_remove(key as usize)?;
        self.by_id.remove(&out.pkt_id);
        sh.timers.cancel(&mut out.alarm);
        let resumed = self.paused.drain(..).map(|route| Indication::Resumed(Via::Route(route)));
        sh.indications.extend(resumed);
        Some(out)
    }

    fn fail(&mut self, sh: &mut Shared, key: Key, why: Failure) {
        if let Some(out) = self.take(sh, key) {
            sh.indications.push_back(Indication::Failed { message: out.message, why });
        }
    }

    /// `PDS-RUDI-005`: the source retries like any other after a timeout.
    pub(super) fn timeout(&mut self, sh: &mut Shared, key: Key) {
        let Some(out) = self.requests.get_mut(key as usize) else { return };
        out.alarm = Alarm::default();
        let endless = matches!(sh.params.max_rto_retx_cnt, 15 | 31);
        if !endless && out.timeouts >= sh.params.max_rto_retx_cnt {
            return self.fail(sh, key, Failure::TimedOut);
        }
        out.timeouts = out.timeouts.saturating_add(1);
        self.transmit(sh, key);
    }

    /// NACK_Retx_Time is over.
    pub(super) fn rest_is_over(&mut self, sh: &mut Shared, key: Key) {
        if let Some(out) = self.requests.get_mut(key as usize) {
            out.alarm = Alarm::default();
            self.transmit(sh, key);
        }
    }

    /// `PDS-RUDI-004`: a NACK with nt = 1 has the request sent again: at once when it was trimmed, else after NACK_Retx_Time.
    pub(super) fn nacked(&mut self, sh: &mut Shared, packet: &Packet, nack: &Nack) {
        let code = nack.nack_code();
        let key = nack.nack_pkt_id().and_then(|id| self.by_id.get(&id)).copied();
        let out = key.and_then(|key| self.requests.get_mut(key as usize));
        let (Some(key), Some(out)) = (key, out.filter(|out| out.route.destination == packet.src)) else {
            return sh.drop_packet(Dropped::NackNotInFlight);
        };
        if out.resting {
            return;
        }
        let Some((class, _)) = code.treatment() else { return sh.drop_packet(Dropped::UnknownNack) };
        if class == uet_wire::registry::NackClass::PdcFatal {
            return self.fail(sh, key, Failure::Ended(code.code()));
        }
        if out.nacks >= sh.params.max_nack_retx_cnt {
            return self.fail(sh, key, Failure::Refused(code.code()));
        }
        out.nacks += 1;
        if matches!(code, NackCode::TRIMMED | NackCode::TRIMMED_LASTHOP) {
            return self.transmit(sh, key);
        }
        out.resting = true;
        let at = sh.now + sh.params.nack_retx_time;
        sh.timers.arm(&mut out.alarm, at, Timer::RudiAfterNack(key));
    }

    /// `PDS-RUDI-002`: the response with the same `pkt_id` ends the request.
    pub(super) fn answered(&mut self, sh: &mut Shared, packet: Packet, header: &Header, head: Head) {
        let key = self.by_id.get(&header.pkt_id()).copied();
        let is_peer = |key: &Key| {
            self.requests.get(*key as usize).is_some_and(|out| out.route.destination == packet.src)
        };
        let Some(key) = key.filter(is_peer).filter(|_| packet.trimmed.is_none()) else {
            return sh.drop_packet(Dropped::NoRequest);
        };
        let Some(out) = self.take(sh, key) else { return };
        let next_hdr = header.prologue().next_hdr();
        sh.indications.push_back(Indication::Response {
            message: out.message,
            pdc: None,
            response: Some(RxResponse { next_hdr, head, payload: packet.payload }),
        });
    }

    /// `PDS-RUDI-003`: every request is delivered, one that came before too.
    pub(super) fn receive(&mut self, sh: &mut Shared, packet: Packet, header: &Header, head: Head) {
        let pkt_id = header.pkt_id();
        // `PDS-TRIM-003`
        if let Some(trimmed) = packet.trimmed {
            return refuse(sh, &packet, header, super::arrive::trim_code(trimmed));
        }
        let ticket = (packet.src, packet.class, pkt_id);
        let full = self.inbound.len() >= usize::from(sh.params.rudi_requests);
        if full && !self.inbound.contains_key(&ticket)
            || self.inbound.get(&ticket).is_some_and(|inbound| inbound.copies >= MAX_COPIES)
        {
            return refuse(sh, &packet, header, NackCode::NO_RESOURCE);
        }
        let (retx, marked, entropy) = (header.retx(), packet.marked, packet.entropy);
        let copies = self.inbound.get(&ticket).map_or(1, |inbound| inbound.copies + 1);
        self.inbound.insert(ticket, Inbound { copies, retx, marked, entropy });
        sh.indications.push_back(Indication::Request(RxRequest {
            ticket: Ticket::Rudi(packet.src, packet.class, pkt_id),
            from: packet.src,
            class: packet.class,
            mode: Mode::Rudi,
            next_hdr: header.prologue().next_hdr(),
            head,
            payload: packet.payload,
        }));
    }

    /// The response of the upper layer leaves: `PDS-RUDI-002`.
    pub(super) fn respond(&mut self, sh: &mut Shared, ticket: (IpAddr, u8, u32), response: TxResponse) {
        let Some(inbound) = self.take_inbound(ticket) else { return };
        let (to, class, pkt_id) = ticket;
        let mut packet = sh.packet(to, class, Priority::High, inbound.entropy);
        let header = Header::response(pkt_id).prologue(|p| p.next_hdr(response.next_hdr));
        let header = header.m(inbound.marked).retx(inbound.retx);
        let _ = packet.head.try_extend_from_slice(header.current_unchecked().bytes());
        let _ = packet.head.try_extend_from_slice(&response.head);
        packet.payload = response.payload;
        sh.answer(packet);
    }

    /// The upper layer has no room for a request.
    pub(super) fn take_back(&mut self, sh: &mut Shared, ticket: (IpAddr, u8, u32), code: NackCode) {
        let Some(inbound) = self.take_inbound(ticket) else { return };
        let (to, class, pkt_id) = ticket;
        let mut packet = sh.packet(to, class, Priority::High, inbound.entropy);
        push_nack(&mut packet, pkt_id, inbound.marked, inbound.retx, code);
        sh.answer(packet);
    }

    fn take_inbound(&mut self, ticket: (IpAddr, u8, u32)) -> Option<Inbound> {
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

/// How often a request may be with the upper layer at the same time.
const MAX_COPIES: u16 = 16;

/// `PDS-NACK-008`: the NACK of a RUDI packet has nt = 1 and names no context.
fn refuse(sh: &mut Shared, packet: &Packet, header: &Header, code: NackCode) {
    let mut nack = sh.packet(packet.src, packet.class, Priority::High, packet.entropy);
    push_nack(&mut nack, header.pkt_id(), packet.marked, header.retx(), code);
    sh.answer(nack);
}

fn push_nack(packet: &mut Packet, pkt_id: u32, marked: bool, retx: bool, code: NackCode) {
    let nack = Nack::rudi(code).m(marked).retx(retx).nack_pkt_id(pkt_id);
    let nack = nack.spdcid(PdcId::NONE).dpdcid(PdcId::NONE);
    let _ = packet.head.try_extend_from_slice(nack.current_unchecked().bytes());
}
