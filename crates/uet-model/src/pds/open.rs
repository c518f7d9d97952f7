//! Finding and opening the context of a packet, and replies if there is none (section 3.5.8).

use super::ack::EXPECTED_PSN;
use super::arrive::{Arriving, PsnFields, trim_code};
use super::close::State;
use super::destination::PsnPosition;
use super::event::{CloseReason, Dropped, EventKind, Role};
use super::nack::NackReply;
use super::pdc::{Opening, Pdc};
use super::protect::SecureContext;
use super::timers::Timer;
use super::{Pds, rest, uud};
use crate::cc::CreditSource;
use crate::{Failure, Head, Mode, Packet, Pool, Route, Time, TrimPoint};
use core::time::Duration;
use uet_wire::pds::{Ack, Control, Pds as Header, Prologue, RequestCc};
use uet_wire::registry::{CtlType, NackCode, PdsType};
use uet_wire::{PdcId, Psn, Units24};

/// The time in which a peer names the PDCID that the first ACK has told it, even over many losses. Open.
const STRANGE: Duration = Duration::from_secs(1);

impl Pds {
    /// Parses the header and dispatches the packet. `PDS-OPEN-009`: a malformed packet is dropped, counted and not answered.
    pub(super) fn dispatch(&mut self, packet: Packet) {
        // Cloning an `ArrayVec` copies byte by byte.
        let bytes = rest(&packet.head);
        let Ok((prologue, _)) = Prologue::parse(&bytes) else {
            return self.shared.drop_packet(Dropped::Malformed);
        };
        if prologue.kind() == PdsType::TSS {
            return self.shared.drop_packet(Dropped::Security);
        }
        let (header, ses) = match Header::parse_as(prologue.kind(), &bytes) {
            Some(Ok(parsed)) => parsed,
            Some(Err(_)) => return self.shared.drop_packet(Dropped::Malformed),
            None => return self.shared.drop_packet(Dropped::UnknownType),
        };
        match header {
            Header::Request(request) => {
                self.arrival(packet, PsnFields::of_request(&request.copied()), None, rest(ses))
            }
            Header::RequestCc(request) => {
                let arrival = PsnFields::of_request(&request.request().copied());
                let demand = demand(&request.copied());
                self.arrival(packet, arrival, Some(demand), rest(ses));
            }
            Header::Control(control) => self.control(packet, &control.copied()),
            Header::Ack(_) | Header::AckCc(_) | Header::AckCcx(_) => self.ack(&packet, header, ses),
            Header::Nack(_) | Header::NackCcx(_) => self.nack(&packet, header),
            Header::Rudi(rudi) if rudi.prologue().kind() == PdsType::RUDI_REQ => {
                self.rudi.receive(&mut self.shared, packet, &rudi.copied(), rest(ses));
            }
            Header::Rudi(rudi) => self.rudi.answered(&mut self.shared, packet, &rudi.copied(), rest(ses)),
            Header::Uud(uud) => {
                uud::receive(&mut self.shared, packet, uud.prologue().next_hdr(), rest(ses));
            }
            _ => self.shared.drop_packet(Dropped::UnknownType),
        }
    }

    /// Handles a packet with a PSN: a request or a control packet.
    fn arrival(&mut self, packet: Packet, arrival: PsnFields, demand: Option<(u8, Units24)>, ses: Head) {
        // `PDS-PDC-001`
        if !arrival.spdcid.is_valid() {
            return self.shared.drop_packet(Dropped::Malformed);
        }
        let found = match arrival.start {
            Some(start) => self.find_or_open(&packet, &arrival, start),
            None => self.find(&packet, &arrival),
        };
        let id = match found {
            Ok(id) => id,
            Err(None) => return,
            Err(Some(reply)) => return self.turn_away(reply),
        };
        if let Some(demand) = demand {
            self.demanded(id, &packet, demand);
        }
        self.make_room(id, &arrival);
        if let Some(pdc) = self.contexts.get(id) {
            if let (Some(protect), Arriving::Control(CtlType::CLOSE_COMMAND, _)) =
                (&mut self.protect, arrival.what)
            {
                let floor = protect.expected_psn(pdc.security, pdc.source.start(), arrival.psn);
                self.shared.close_floor = floor.map(|floor| (arrival.psn, floor));
            }
            pdc.receive(&mut self.shared, packet, arrival, ses);
            self.shared.close_floor = None;
            self.reschedule(id);
        }
    }

    fn turn_away(&mut self, reply: NackReply) {
        let (now, kind) = (self.shared.now, EventKind::Nacked(reply.psn, reply.code));
        self.shared.events.push(now, None, kind);
        reply.send(&mut self.shared);
    }

    /// `PDS-PDC-003`: without `syn`, dpdcid selects the context, and the packet must come from its peer.
    fn find(&mut self, packet: &Packet, arrival: &PsnFields) -> Result<u16, Option<NackReply>> {
        let id = arrival.dpdcid.unwrap_or_default().0;
        let Some(pdc) = self.contexts.get(id) else {
            // `PDS-OPEN-002`
            return match packet.trimmed {
                _ if packet.trimmed.is_some() && !self.shared.params.nack_trimmed_syn => Err(None),
                _ => Err(Some(arrival.reply(packet, NackCode::INV_DPDCID))),
            };
        };
        if !SecureContext::admits(pdc.security, packet.security) {
            self.shared.drop_packet(Dropped::OtherSecureContext);
            return Err(None);
        }
        // The first ACK may be late. Return data carries the peer's PDCID too, and our ACK needs it. A late packet of a context
        // that had our PDCID before is far outside the window, and must not bind this context to its sender.
        let is_unbound = pdc.peer_id == PdcId::NONE && pdc.peer == packet.src;
        let is_grant = matches!(arrival.what, Arriving::Control(CtlType::CREDIT, _));
        if is_unbound && !is_grant && pdc.destination.place(arrival.psn) == PsnPosition::New {
            pdc.peer_id = arrival.spdcid;
        }
        // `PDS-OPEN-003`
        let is_peer = pdc.peer == packet.src && pdc.peer_id == arrival.spdcid;
        if !(is_peer || is_unbound && is_grant) {
            return Err(Some(arrival.reply(packet, NackCode::PDC_HDR_MISMATCH)));
        }
        pdc.confirm(&mut self.shared);
        Ok(id)
    }

    /// `PDS-SYN-005`: with `syn`, the source address and spdcid find the context. A new one is opened only if there is none.
    fn find_or_open(
        &mut self,
        packet: &Packet,
        arrival: &PsnFields,
        start: Psn,
    ) -> Result<u16, Option<NackReply>> {
        if let Some(id) = self.contexts.of_peer(packet.src, arrival.spdcid.0) {
            if self.contexts.peek(id).is_some_and(|pdc| !SecureContext::admits(pdc.security, packet.security))
            {
                self.shared.drop_packet(Dropped::OtherSecureContext);
                return Err(None);
            }
            if !self.is_over(id, start) {
                return Ok(id);
            }
            if let Some(pdc) = self.contexts.get(id) {
                pdc.forget(&mut self.shared, CloseReason::Replaced);
                self.reschedule(id);
            }
        }
        // `PDS-CLOSE-009`: late packets of a reclaimed context open nothing.
        if self.reclaimed.contains(self.shared.now, (packet.src, arrival.spdcid, start)) {
            return Err(Some(arrival.reply(packet, NackCode::CLOSING)));
        }
        let mut opened = self.open_target(packet, arrival, start);
        if opened.as_ref().is_err_and(|code| code.is_some_and(is_shortage))
            && self.reclaim(arrival.pool, None)
        {
            opened = self.open_target(packet, arrival, start);
        }
        opened.map_err(|code| match code {
            Some(code) => Some(arrival.reply(packet, code)),
            None => {
                self.shared.drop_packet(Dropped::Trimmed);
                None
            }
        })
    }

    /// Makes room for a packet of a context. Others whose peers have sent only syn packets may be forged, and those
    /// never clear a response.
    fn make_room(&mut self, id: u16, arrival: &PsnFields) {
        let lacks = |pds: &mut Self| {
            pds.contexts.get(id).is_some_and(|pdc| {
                pdc.destination.place(arrival.psn) == PsnPosition::New
                    && pdc.lacking(&pds.shared, arrival).is_some()
            })
        };
        let Some(latest) = self.shared.now.0.checked_sub(STRANGE.as_nanos() as u64).map(Time) else { return };
        let spare = Some((id, latest));
        while lacks(self) && (self.reclaim(Pool::General, spare) || self.reclaim(Pool::Reserved, spare)) {}
    }

    /// Removes the oldest target context of a pool whose peer has sent only syn packets. Returns whether there was one.
    ///
    /// Contexts of a syn flood, whose senders read no ACK, then replace only each other. A context stays at least until
    /// the flood has opened as many as the pool has PDCIDs. This gives its peer time for the next packet.
    fn reclaim(&mut self, pool: Pool, spare: Option<(u16, Time)>) -> bool {
        if !self.shared.params.reclaim_unconfirmed {
            return false;
        }
        let Some(id) = self.contexts.oldest_unconfirmed(pool, spare) else { return false };
        let Some(pdc) = self.contexts.get(id) else { return false };
        let start = pdc.source.start();
        if pdc.destination.has_received(start) {
            let until = self.shared.now + self.shared.params.syn_retx_safety_time;
            self.reclaimed.insert(until, (pdc.peer, pdc.peer_id, start));
        }
        pdc.reclaim(&mut self.shared);
        self.reschedule(id);
        true
    }

    /// Returns whether a context is closed and a packet with this Start_PSN belongs to a new one (`PDS-CLOSE-011`).
    fn is_over(&mut self, id: u16, start: Psn) -> bool {
        let distance = self.shared.params.start_psn_distance;
        self.contexts.get(id).is_some_and(|pdc| match pdc.state {
            State::Lingering(_) => {
                let last = pdc.destination.cack();
                start != pdc.source.start() && (start - last).min(last - start) >= distance
            }
            _ => false,
        })
    }

    /// Opens a context for a packet with `syn`: `PDS-SYN-002`, in any order. `PDS-OPEN-001`: if a resource is missing,
    /// returns the NACK code and keeps nothing. `None` means no reply.
    fn open_target(
        &mut self,
        packet: &Packet,
        arrival: &PsnFields,
        start: Psn,
    ) -> Result<u16, Option<NackCode>> {
        let params = &self.shared.params;
        let mode = arrival.mode.unwrap_or(Mode::Rud);
        let offset = arrival.psn - start;
        // `PDS-TRIM-004`: a trimmed packet opens no context.
        if let Some(trimmed) = packet.trimmed {
            return Err(params.nack_trimmed_syn.then(|| trim_code(trimmed)));
        }
        // `PDS-OPEN-004`
        if offset >= params.mp_range(params.default_mpr.max(1)) {
            return Err(Some(NackCode::INVALID_SYN));
        }
        if mode == Mode::Rod && offset > 0 && !params.rod_opens_early {
            return Err(Some(NackCode::ROD_OOO));
        }
        if self.shared.slots >= params.receive_slots as usize {
            return Err(Some(NackCode::NO_BITMAP));
        }
        // `PDS-SEC-004`: without security every Start_PSN is accepted.
        let accepted = match &mut self.protect {
            Some(protect) => protect.accept_start(packet.security, packet.src, start),
            None => Ok(()),
        };
        let (start, state) = match accepted {
            Ok(()) => (start, State::Open),
            Err(new) => (new, State::Pending),
        };
        let Some((handle, _)) = self.contexts.reserve(arrival.pool) else {
            return Err(Some(NackCode::NO_PDC_AVAIL));
        };
        let Some(ccc) = self.shared.cccs.enter((packet.src, packet.class), handle.pdcid) else {
            self.contexts.release(handle, arrival.pool);
            return Err(Some(NackCode::NO_CCC_AVAIL));
        };
        let opening = Opening {
            handle,
            role: Role::Target,
            route: Route {
                job: 0,
                destination: packet.src,
                class: packet.class,
                mode,
                pool: arrival.pool,
                context: 0,
            },
            peer_id: arrival.spdcid,
            security: packet.security,
            ccc: Some(ccc),
            start,
        };
        let mut pdc = Pdc::open(&mut self.shared, opening);
        if state == State::Pending {
            // `PDS-SEC-003`
            pdc.state = state;
            let at = self.shared.now + self.shared.params.new_pdc_time;
            self.shared.timers.arm(&mut pdc.alarms.close, at, Timer::NewPdc(handle.pdcid));
        }
        self.contexts.insert(self.shared.now, pdc);
        Ok(handle.pdcid)
    }

    /// `PDS-SYN-007`: an initiator takes a free PDCID and a random Start_PSN, far from the last PSN used with that PDCID.
    pub(super) fn open_initiator(&mut self, route: Route) -> Option<u16> {
        let reserved = match self.contexts.reserve(route.pool) {
            None if self.reclaim(route.pool, None) => self.contexts.reserve(route.pool),
            reserved => reserved,
        };
        let (handle, last) = reserved?;
        let Some(ccc) = self.shared.cccs.enter((route.destination, route.class), handle.pdcid) else {
            self.contexts.release(handle, route.pool);
            return None;
        };
        let security = self.outbound(&route);
        let secured = self.protect.as_mut().and_then(|protect| protect.start_psn(security));
        let distance = self.shared.params.start_psn_distance.min((1 << 31) - 32);
        let start = match last {
            _ if secured.is_some() => secured.unwrap_or_default(),
            Some(last) if distance > 0 => last + distance + self.shared.rng.u32(..u32::MAX - 2 * distance),
            _ => Psn(self.shared.params.start_psn.unwrap_or_else(|| self.shared.rng.u32(..))),
        };
        let (role, peer_id) = (Role::Initiator, PdcId::NONE);
        let opening = Opening { handle, role, route, peer_id, security, ccc: Some(ccc), start };
        let pdc = Pdc::open(&mut self.shared, opening);
        self.contexts.insert(self.shared.now, pdc);
        Some(handle.pdcid)
    }

    fn control(&mut self, packet: Packet, control: &Control) {
        let kind = control.ctl_type();
        let arrival = PsnFields::of_control(control);
        // `PDS-PDC-001`: nobody has the identifier that an answer would name.
        if !arrival.spdcid.is_valid() {
            return self.shared.drop_packet(Dropped::Malformed);
        }
        let known = kind != CtlType::NEGOTIATION || self.shared.params.negotiation;
        if kind.name().is_none() || !known {
            return self.unknown_control(&packet, &arrival);
        }
        // `PDS-SYN-010`
        if control.syn() && !kind.may_open() {
            return self.shared.drop_packet(Dropped::UnfitControl);
        }
        // `PDS-TRIM-005`
        if packet.trimmed.is_some() {
            return self.shared.drop_packet(Dropped::Trimmed);
        }
        if kind.takes_psn() {
            return self.arrival(packet, arrival, None, Head::new());
        }
        // `PDS-CTL-002`: a control packet without a PSN finds its context like any other packet, and opens none.
        let id = match self.find(&packet, &arrival) {
            Ok(id) => id,
            // Only a control packet that requests a reply gets one.
            Err(Some(reply)) if matches!(kind, CtlType::ACK_REQUEST | CtlType::PROBE) => {
                return self.turn_away(reply);
            }
            Err(_) => return self.shared.drop_packet(Dropped::NoContext),
        };
        if let Some((ccc_id, target)) = control.credit_target() {
            self.credit_requested(id, &packet, (ccc_id, target));
        }
        let Some(pdc) = self.contexts.get(id) else { return };
        if !pdc.receives() {
            match kind {
                CtlType::ACK_REQUEST => {
                    let reply = arrival.reply(&packet, NackCode::CLOSING);
                    pdc.refuse(&mut self.shared, NackReply { spdcid: PdcId(id), ..reply });
                }
                _ => self.shared.drop_packet(Dropped::NoContext),
            }
            return;
        }
        pdc.control(&mut self.shared, &packet, control);
        self.reschedule(id);
    }

    /// Replies to an unknown control packet with NACK UNEXP_EVENT and spdcid 0, or not at all. The sources leave this
    /// open.
    fn unknown_control(&mut self, packet: &Packet, arrival: &PsnFields) {
        if self.shared.params.nack_unknown_control && packet.trimmed.is_none() {
            return self.turn_away(arrival.reply(packet, NackCode::UNEXP_EVENT));
        }
        self.shared.drop_packet(Dropped::UnknownControl);
    }

    /// Returns the context of an ACK or NACK. `PDS-NACK-010`: one that does not fit is dropped without a reply.
    /// `PDS-TRIM-005`: so is a trimmed one.
    fn answered(&mut self, packet: &Packet, spdcid: PdcId, dpdcid: PdcId) -> Option<u16> {
        if packet.trimmed.is_some() {
            self.shared.drop_packet(Dropped::Trimmed);
            return None;
        }
        let Some(pdc) = self.contexts.get(dpdcid.0).filter(|pdc| pdc.receives()) else {
            self.shared.drop_packet(Dropped::NoContext);
            return None;
        };
        let known = pdc.peer_id == PdcId::NONE || spdcid == pdc.peer_id;
        if pdc.peer != packet.src || !known {
            self.shared.drop_packet(Dropped::OtherPeer);
            return None;
        }
        if !SecureContext::admits(pdc.security, packet.security) {
            self.shared.drop_packet(Dropped::OtherSecureContext);
            return None;
        }
        pdc.security = packet.security;
        pdc.confirm(&mut self.shared);
        Some(dpdcid.0)
    }

    fn ack(&mut self, packet: &Packet, header: Header<'_>, ses: &[u8]) {
        let Some(ack) = header.ack() else { return };
        if !ack.spdcid().is_valid() {
            return self.shared.drop_packet(Dropped::Malformed);
        }
        if let Some(pdc) = self.contexts.get(ack.dpdcid().0).filter(|pdc| pdc.is_replaced(packet, &ack)) {
            let lost = Failure::Ended(NackCode::INV_DPDCID.code());
            pdc.fail(&mut self.shared, lost, CloseReason::Replaced);
            return self.reschedule(ack.dpdcid().0);
        }
        let Some(id) = self.answered(packet, ack.spdcid(), ack.dpdcid()) else { return };
        if let Some(pdc) = self.contexts.get(id) {
            if let (Some(protect), Some(expected)) = (&mut self.protect, expected_psn(&ack, &packet.payload))
            {
                protect.learn_expected_psn(pdc.security, expected);
            }
            pdc.acked(&mut self.shared, packet, header, ses);
            self.reschedule(id);
        }
    }

    fn nack(&mut self, packet: &Packet, header: Header<'_>) {
        let Some(nack) = header.nack() else { return };
        if nack.nt() {
            return self.rudi.nacked(&mut self.shared, packet, &nack);
        }
        // A NACK from an endpoint without a context names no PDCID.
        let spdcid = nack.spdcid();
        let peer_id = self.contexts.get(nack.dpdcid().0).map_or(PdcId::NONE, |pdc| pdc.peer_id);
        let spdcid = if spdcid.is_valid() { spdcid } else { peer_id };
        let Some(id) = self.answered(packet, spdcid, nack.dpdcid()) else { return };
        if let Some(pdc) = self.contexts.get(id) {
            pdc.nacked(&mut self.shared, &nack);
            self.reschedule(id);
        }
    }

    /// Handles the credit demand of a request, trimmed or not.
    fn demanded(&mut self, id: u16, packet: &Packet, (ccc_id, target): (u8, Units24)) {
        let Some(pdc) = self.contexts.get(id) else { return };
        pdc.peer_ccc = ccc_id;
        let source = CreditSource { address: packet.src, ccc_id, class: packet.class };
        let Some(pacer) = &mut self.shared.pacer else { return };
        if packet.trimmed == Some(TrimPoint::LastHop) {
            pacer.last_hop_is_full(self.shared.now);
        }
        let is_known = pacer.demand(self.shared.now, source, pdc.handle, target);
        if !pdc.confirmed {
            pacer.limit(&source);
        }
        if !is_known {
            self.shared.drop_packet(Dropped::NoRoom);
        }
        self.grant();
    }

    fn credit_requested(&mut self, id: u16, packet: &Packet, (ccc_id, target): (u8, Units24)) {
        let Some(pdc) = self.contexts.get(id) else { return };
        pdc.peer_ccc = ccc_id;
        let source = CreditSource { address: packet.src, ccc_id, class: packet.class };
        let Some(pacer) = &mut self.shared.pacer else { return };
        if !pacer.request(self.shared.now, source, pdc.handle, target) {
            self.shared.drop_packet(Dropped::NoRoom);
        }
        self.grant();
    }

    /// Sends the credit grants that are due, each on the context of its demand.
    pub(super) fn grant(&mut self) {
        let shared = &mut self.shared;
        while let Some(grant) = shared.pacer.as_mut().and_then(|pacer| pacer.poll_grant(shared.now)) {
            if let Some(pdc) = self.contexts.of(grant.via) {
                pdc.send_control(shared, CtlType::CREDIT, Psn(0), grant.credit.get());
            }
        }
    }
}

/// Returns the Start_PSN that an ACK of a secured context tells: flag bit 6, and 4 bytes after the header.
fn expected_psn(ack: &Ack, rest: &[u8]) -> Option<Psn> {
    let told = ack.bytes()[1] & EXPECTED_PSN != 0;
    rest.try_into().ok().filter(|_| told).map(u32::from_be_bytes).map(Psn)
}

/// Returns whether a NACK code reports a missing resource for a new context.
fn is_shortage(code: NackCode) -> bool {
    matches!(code, NackCode::NO_PDC_AVAIL | NackCode::NO_CCC_AVAIL | NackCode::NO_BITMAP)
}

fn demand(request: &RequestCc) -> (u8, Units24) {
    (request.ccc_id(), request.credit_target())
}
