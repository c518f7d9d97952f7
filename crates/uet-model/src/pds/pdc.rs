//! One packet delivery context (PDC). Each of its two directions has a send or a receive side here.

use super::close::State;
use super::destination::PdcDestination;
use super::event::{CloseReason, Dropped, EventKind, RetransmitCause, Role};
use super::list::SlabKey;
use super::nack::at_once;
use super::pool::{TxContent, TxPacket, TxState};
use super::protect::SecureContext;
use super::shared::Shared;
use super::source::PdcSource;
use super::timers::{Alarm, Timer, backed_off};
use crate::cc::Sending;
use crate::packet::Unbuildable;
use crate::{Failure, Head, Indication, Mode, Packet, PdcHandle, Pool, Priority, Route, TxRequest, Via};
use core::net::IpAddr;
use uet_wire::pds::{Control, PDC_INFO_RESERVED_POOL, Request, RequestCc};
use uet_wire::registry::{CtlType, NextHdr, PdsType};
use uet_wire::{PdcId, Psn, PsnOffset, Units24};

/// The bytes of a packet besides its PDS and SES headers and payload: 8 for UDP, and 40 (section 3.6.12).
pub(super) const NOMINAL: usize = 8 + 40;

/// This is the size of an idle context, which also has one receive slot and its table entries.
const _: () = assert!(size_of::<Pdc>() <= 400);

#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) struct Pdc {
    pub(super) handle: PdcHandle,
    pub(super) role: Role,
    pub(super) mode: Mode,
    pub(super) state: State,
    pub(super) peer: IpAddr,
    /// The secure context of all its packets.
    pub(super) security: Option<SecureContext>,
    /// The peer's PDCID; 0 if unknown.
    pub(super) peer_id: PdcId,
    /// True if an ACK has carried the peer's PDCID.
    pub(super) established: bool,
    /// True if a packet of the peer has named this context by its PDCID. Only a peer that got an ACK knows the PDCID.
    pub(super) confirmed: bool,
    pub(super) class: u8,
    pub(super) pool: Pool,
    /// The rest of the initiator's route.
    job: u32,
    context: u32,
    pub(super) ccc: Option<SlabKey>,
    /// The peer's congestion control context, for credit.
    pub(super) peer_ccc: u8,
    pub(super) source: PdcSource,
    pub(super) destination: PdcDestination,
    /// The number of holds by SES.
    pub(super) locks: u32,
    /// True if it is in the queue of contexts that may send.
    pub(super) queued: bool,
    /// True if it waits for congestion control.
    pub(super) blocked: bool,
    /// True if SES does not know yet that the context ended.
    pub(super) ended: bool,
    /// The number of receive slots counted for this context.
    pub(super) slots_charged: u32,
    /// The opaque value and time of the PROBE in flight.
    pub(super) probe: Option<(u16, crate::Time)>,
    /// The entropy value if congestion control selects none, and of all packets of an ordered context.
    pub(super) entropy: u16,
    pub(super) alarms: Alarms,
}

#[derive(Default)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub(super) struct Alarms {
    pub(super) ack: Alarm,
    pub(super) clear: Alarm,
    pub(super) ask_clear: Alarm,
    pub(super) window: Alarm,
    /// The timer of the current closing step.
    pub(super) close: Alarm,
    pub(super) idle: Alarm,
}

/// The properties of a new context.
pub(super) struct Opening {
    pub(super) handle: PdcHandle,
    pub(super) role: Role,
    /// The route. For a target, job and context are 0.
    pub(super) route: Route,
    pub(super) peer_id: PdcId,
    pub(super) security: Option<SecureContext>,
    pub(super) ccc: Option<SlabKey>,
    pub(super) start: Psn,
}

impl Pdc {
    pub(super) fn open(shared: &mut Shared, opening: Opening) -> Self {
        let Opening { handle, role, route, peer_id, security, ccc, start } = opening;
        let Route { job, destination: peer, class, mode, pool, context } = route;
        shared.event(handle, EventKind::Opened(role, mode, peer, start));
        Pdc {
            handle,
            role,
            mode,
            state: State::Open,
            peer,
            security,
            peer_id,
            established: role == Role::Target,
            confirmed: false,
            class,
            pool,
            job,
            context,
            ccc,
            peer_ccc: 0,
            source: PdcSource::new(start, &shared.params),
            destination: PdcDestination::new(start, &shared.params),
            locks: 0,
            queued: false,
            blocked: false,
            ended: false,
            slots_charged: 0,
            probe: None,
            entropy: shared.rng.u16(..),
            alarms: Alarms::default(),
        }
    }

    /// Records that the peer has named this context. SES learns it of contexts that the peer opened.
    pub(super) fn confirm(&mut self, shared: &mut Shared) {
        if !core::mem::replace(&mut self.confirmed, true) && self.role == Role::Target {
            shared.indications.push_back(Indication::Confirmed(self.handle));
        }
    }

    pub(super) fn pdcid(&self) -> u16 {
        self.handle.pdcid
    }

    /// Returns the destination address and the secure context of its packets.
    pub(super) fn to_peer(&self) -> (IpAddr, Option<SecureContext>) {
        (self.peer, self.security)
    }

    pub(super) fn event(&self, shared: &mut Shared, kind: EventKind) {
        shared.event(self.handle, kind);
    }

    /// Returns the [`Via`] by which SES names this context.
    pub(super) fn via(&self) -> Via {
        match self.role {
            Role::Initiator => Via::Route(self.route()),
            Role::Target => Via::Return(self.handle),
        }
    }

    /// Returns the route of an initiator's context.
    pub(super) fn route(&self) -> Route {
        let Pdc { job, peer, class, mode, pool, context, .. } = *self;
        Route { job, destination: peer, class, mode, pool, context }
    }

    /// Returns whether this request may come next. `PDS-MSG-001`: messages do not interleave.
    pub(super) fn takes(&self, request: &TxRequest, limit: usize) -> bool {
        let in_turn = self.source.message.is_none_or(|message| message == request.message);
        in_turn && self.source.queue.len() < limit
    }

    /// Queues a request that [`takes`](Self::takes) accepted.
    pub(super) fn push(&mut self, shared: &mut Shared, request: TxRequest) {
        self.source.message = (!request.eom).then_some(request.message);
        let head = match shared.params.congestion.grants_credit() {
            true => RequestCc::LAYOUT.bytes,
            false => Request::LAYOUT.bytes,
        };
        let bytes = head + request.head.len() + request.payload.len();
        let size = (NOMINAL + bytes) as u32;
        if let Some(ccc) = shared.cccs.get(self.ccc) {
            ccc.new_data(shared.now, size);
        }
        let key = shared.pool.insert(TxPacket::request(self.pdcid(), request, size));
        shared.pool.push(&mut self.source.queue, key);
        if self.source.queue.len() >= usize::from(shared.params.tx_queue) && !self.source.paused {
            self.source.paused = true;
            shared.indications.push_back(Indication::Paused(self.via()));
        }
        self.resume(shared);
    }

    /// Queues a control packet with a PSN. `PDS-CTL-001`: it shares the PSN sequence of the requests.
    pub(super) fn push_control(&mut self, shared: &mut Shared, kind: CtlType, payload: u32) {
        let key = shared.pool.insert(TxPacket::control(self.pdcid(), kind, payload));
        shared.pool.push(&mut self.source.queue, key);
    }

    /// Tells SES to resume when there is room again.
    pub(super) fn resume(&mut self, shared: &mut Shared) {
        let has_room = self.source.queue.len() <= usize::from(shared.params.tx_queue) / 2;
        let between = self.source.message.is_none() && self.is_open();
        if has_room && (self.source.paused || self.source.shut_out && between) {
            (self.source.paused, self.source.shut_out) = (false, false);
            shared.indications.push_back(Indication::Resumed(self.via()));
        }
    }

    /// Returns whether there may be a packet to send. If congestion control blocks the context, only packets that it counts
    /// wait.
    pub(super) fn wants_to_send(&self, shared: &Shared) -> bool {
        let Some(first) = self.first(shared).and_then(|(key, _)| shared.pool.get(key)) else { return false };
        !(self.blocked && first.counted())
    }

    /// Returns the next packet to send, and whether it is new. Retransmissions come first.
    ///
    /// Exception: on an unordered context, a packet refused more than once for lack of a resource lets new packets
    /// pass. The peer may need one of them before it has room again, such as the last packet of a message. The window
    /// bounds the wait (`PDS-WIN-004`).
    pub(super) fn first(&self, shared: &Shared) -> Option<(SlabKey, bool)> {
        let new = self.source.queue.first().filter(|_| self.source.window_is_open());
        let new = new.map(|key| (key, true));
        let Some(again) = self.source.retx.first() else { return new };
        let waits = |out: &TxPacket| out.nacks > 1 && out.refused.is_some_and(|code| !at_once(code));
        let refused = shared.pool.get(again).is_some_and(waits);
        new.filter(|_| refused && self.mode == Mode::Rud).or(Some((again, false)))
    }

    /// Returns the next packet with a PSN, if one may leave. `PDS-RTO-005`: a retransmission keeps its PSN and payload, and
    /// sets `retx`. `PDS-ROD-005`: all packets of an ordered context have the same entropy value.
    pub(super) fn transmit(&mut self, shared: &mut Shared) -> Option<Packet> {
        let key = self.next(shared)?;
        let out = shared.pool.get_mut(key)?;
        let (psn, counted, what) = (out.psn, out.counted(), out.what);
        let is_retransmission = out.sent > 0;
        let sending = Sending { size: out.size, is_retransmission: out.state == TxState::RetxQueued };
        let departure = counted.then(|| shared.cccs.send(self.ccc, shared.now, sending)).flatten();
        let entropy = match (&departure, self.mode) {
            (Some(departure), Mode::Rud) => departure.entropy,
            _ => self.entropy,
        };
        let asked = departure.is_some_and(|departure| departure.ack_request);
        let credit = departure.and_then(|departure| departure.credit_target);

        let priority = if counted { Priority::Low } else { Priority::High };
        let mut packet = shared.packet(self.to_peer(), self.class, priority, entropy);
        let out = shared.pool.get_mut(key)?;
        let built = match what {
            TxContent::Request(_) => {
                let ar = asked || (out.eom && shared.params.ask_ack_at_eom);
                packet.payload = out.payload.clone();
                let header =
                    self.request_head(&mut packet.head, psn, is_retransmission, ar, credit, out.next_hdr);
                let built = header.and_then(|()| Ok(packet.head.try_extend_from_slice(&out.head)?));
                self.tell_clear(shared);
                built
            }
            TxContent::Control(kind, payload) => {
                let head = self.control_head(kind, psn, is_retransmission, true, payload);
                head.map(|head| packet.head = head)
            }
        };
        let out = shared.pool.get_mut(key)?;
        out.state = TxState::InFlight;
        (out.sent_at, out.entropy, out.sent) = (shared.now, entropy, out.sent.saturating_add(1));
        let wait = backed_off(shared.params.rto_init_time, out.timeouts);
        shared.timers.arm(&mut out.alarm, shared.now + wait, Timer::Retransmission(key, out.timeouts));
        if let Some(why) = out.retx_cause.take() {
            shared.event(self.handle, EventKind::Retransmitted(psn, why));
        }
        self.resume(shared);
        if built.is_err() {
            // The packet counts as lost, and its timer starts another attempt.
            shared.drop_packet(Dropped::Unbuildable);
            return None;
        }
        Some(packet)
    }

    /// Takes the packet that leaves next.
    fn next(&mut self, shared: &mut Shared) -> Option<SlabKey> {
        let (key, new) = self.first(shared)?;
        if shared.pool.get(key)?.counted() && !shared.cccs.may_send(self.ccc) {
            self.block(shared);
            return None;
        }
        if !new {
            return shared.pool.pop(&mut self.source.retx);
        }
        let key = shared.pool.pop(&mut self.source.queue)?;
        self.number(shared, key);
        Some(key)
    }

    fn block(&mut self, shared: &mut Shared) {
        if !self.blocked {
            self.blocked = true;
            shared.cccs.block(self.ccc, self.pdcid());
        }
    }

    fn number(&mut self, shared: &mut Shared, key: SlabKey) {
        let psn = self.source.number(key);
        let Some(out) = shared.pool.get_mut(key) else { return };
        out.psn = psn;
        if let TxContent::Request(message) = out.what {
            shared.indications.push_back(Indication::Numbered { message, pdc: self.handle, psn });
        }
        self.event(shared, EventKind::Numbered(psn));
    }

    /// Writes the header of a request. `PDS-SYN-001`, `PDS-SYN-004`: it has `syn`, `pdc_info` and `psn_offset` until the
    /// first ACK, and the peer's PDCID afterwards, retransmissions included. `PDS-CLR-003`: it carries the current
    /// CLEAR_PSN.
    fn request_head(
        &self,
        head: &mut Head,
        psn: Psn,
        retx: bool,
        ar: bool,
        credit: Option<(u8, Units24)>,
        next_hdr: NextHdr,
    ) -> Result<(), Unbuildable> {
        let (kind, kind_cc) = match self.mode {
            Mode::Rod => (PdsType::ROD_REQ, PdsType::ROD_CC_REQ),
            _ => (PdsType::RUD_REQ, PdsType::RUD_CC_REQ),
        };
        let kind = if credit.is_some() { kind_cc } else { kind };
        let request = Request::zeroed().edit().prologue(|p| p.kind(kind).next_hdr(next_hdr));
        let request = request.retx(retx).ar(ar).syn(!self.established);
        // `PDS-CLR-012`
        let request = request.psn(psn).clear_psn(self.source.clear()).spdcid(PdcId(self.pdcid()));
        let request = match self.established {
            true => request.dpdcid(self.peer_id),
            false => request.pdc_info(self.pdc_info()).psn_offset(self.psn_offset(psn)),
        };
        let request = request.done()?;
        match credit {
            None => head.try_extend_from_slice(request.bytes())?,
            Some((ccc_id, target)) => {
                let with = RequestCc::zeroed().edit().request(|r| r.copy_from(&request));
                let with = with.ccc_id(ccc_id).credit_target(target);
                head.try_extend_from_slice(with.done()?.bytes())?;
            }
        }
        Ok(())
    }

    /// Builds the header of a control packet. `PDS-SYN-009`: one that opens the context states the mode.
    pub(super) fn control_head(
        &self,
        kind: CtlType,
        psn: Psn,
        retx: bool,
        ar: bool,
        payload: u32,
    ) -> Result<Head, Unbuildable> {
        let opens = !self.established;
        let control =
            Control::build(kind).isrod(opens && self.mode == Mode::Rod).retx(retx).ar(ar).syn(opens);
        let control = control.psn(psn).spdcid(PdcId(self.pdcid()));
        let control = match self.established {
            true => control.dpdcid(self.peer_id),
            false => control.pdc_info(self.pdc_info()).psn_offset(self.psn_offset(psn)),
        };
        Ok(Head::from_iter(*control.payload(payload).done()?.bytes()))
    }

    /// `PDS-SYN-011`
    fn pdc_info(&self) -> u8 {
        match self.pool {
            Pool::General => 0,
            Pool::Reserved => PDC_INFO_RESERVED_POOL,
        }
    }

    /// `PDS-SYN-006` keeps the offset below 4,096.
    fn psn_offset(&self, psn: Psn) -> PsnOffset {
        PsnOffset::between(self.source.start(), psn).unwrap_or(PsnOffset::MAX)
    }

    /// Queues a packet for retransmission.
    pub(super) fn retransmit(&mut self, shared: &mut Shared, key: SlabKey, why: RetransmitCause) {
        let Some(out) = shared.pool.get_mut(key) else { return };
        let (state, size) = (out.state, out.size);
        if matches!(state, TxState::Queued | TxState::RetxQueued | TxState::RetxQueuedAfterSack) {
            return;
        }
        out.retx_cause = Some(why);
        out.state = match state {
            TxState::Sacked => TxState::RetxQueuedAfterSack,
            _ => TxState::RetxQueued,
        };
        shared.timers.cancel(&mut out.alarm);
        if state == TxState::Sacked && size > 0 {
            if let Some(ccc) = shared.cccs.get(self.ccc) {
                ccc.new_data(shared.now, size);
            }
        }
        shared.pool.push(&mut self.source.retx, key);
    }

    /// Ends the context, and fails all its requests. `PDS-RTO-004`: SES learns the failure of each packet.
    pub(super) fn fail(&mut self, shared: &mut Shared, why: Failure, reason: CloseReason) {
        let (mut unsent, mut waiting, mut flying) = (0, Vec::new(), Vec::new());
        let numbered: Vec<SlabKey> = self.source.in_flight().collect();
        let queued = core::iter::from_fn(|| shared.pool.pop(&mut self.source.queue)).collect::<Vec<_>>();
        for key in numbered.into_iter().chain(queued) {
            let Some(state) = shared.pool.get(key).map(|out| out.state) else { continue };
            if matches!(state, TxState::RetxQueued | TxState::RetxQueuedAfterSack) {
                shared.pool.unlink(&mut self.source.retx, key);
            }
            let Some(mut out) = shared.pool.remove(key) else { continue };
            shared.timers.cancel(&mut out.alarm);
            match state {
                _ if !out.counted() => {}
                TxState::Queued | TxState::RetxQueuedAfterSack => unsent += u64::from(out.size),
                TxState::RetxQueued | TxState::NackBackoff => waiting.push(out.size),
                TxState::InFlight => flying.push(out.size),
                TxState::Sacked => {}
            }
            if let Some(message) = out.message() {
                shared.indications.push_back(Indication::Failed { message, why });
            }
        }
        // `CC-WINDOW-004`
        if let Some(ccc) = shared.cccs.get(self.ccc) {
            ccc.gone(shared.now, unsent, &waiting, &flying);
        }
        self.source.abandon();
        self.resume(shared);
        self.end(shared, reason);
    }
}
