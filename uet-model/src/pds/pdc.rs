//! One packet delivery context: two directions, each with a send side here or a receive side.

use super::close::State;
use super::destination::Destination;
use super::event::{Again, CloseReason, EventKind, Role};
use super::list::Key;
use super::nack::at_once;
use super::pool::{Flight, Outgoing, What};
use super::shared::Shared;
use super::source::Source;
use super::timers::{Alarm, Timer, backed_off};
use crate::cc::Sending;
use crate::{Failure, Head, Indication, Mode, Packet, PdcHandle, Pool, Priority, Route, TxRequest, Via};
use core::net::IpAddr;
use uet_wire::pds::{Control, PDC_INFO_RESERVED_POOL, Request, RequestCc};
use uet_wire::registry::{CtlType, NextHdr, PdsType};
use uet_wire::{PdcId, Psn, PsnOffset, Units24};

/// What a packet measures beyond its headers from PDS on, and its payload: 8 bytes of UDP, and 40 (section 3.6.12).
pub(super) const NOMINAL: usize = 8 + 40;

/// An idle context holds nothing but this, the room for one receive slot, and its places in the tables.
const _: () = assert!(size_of::<Pdc>() <= 384);

pub(super) struct Pdc {
    pub(super) handle: PdcHandle,
    pub(super) role: Role,
    pub(super) mode: Mode,
    pub(super) state: State,
    pub(super) peer: IpAddr,
    /// The peer's PDCID, or 0 while it is not known.
    pub(super) peer_id: PdcId,
    /// Whether an ACK has told it.
    pub(super) established: bool,
    pub(super) class: u8,
    pub(super) pool: Pool,
    /// What else chooses it, at the initiator.
    job: u32,
    context: u32,
    pub(super) ccc: Option<Key>,
    /// The number of the peer's congestion control context, where credit runs.
    pub(super) peer_ccc: u8,
    pub(super) source: Source,
    pub(super) destination: Destination,
    /// How many reasons SES has to keep it.
    pub(super) locks: u32,
    /// Whether it is in the list of those that may send.
    pub(super) queued: bool,
    /// Whether it waits for congestion control.
    pub(super) blocked: bool,
    /// Whether the upper layer is to hear that it is over.
    pub(super) ended: bool,
    /// How many receive slots it has been charged.
    pub(super) slots_charged: u32,
    /// The PROBE that is not yet answered.
    pub(super) probe: Option<(u16, crate::Time)>,
    /// The entropy value where congestion control chooses none, and of all packets of an ordered context.
    pub(super) entropy: u16,
    pub(super) alarms: Alarms,
}

#[derive(Default)]
pub(super) struct Alarms {
    pub(super) ack: Alarm,
    pub(super) clear: Alarm,
    pub(super) ask_clear: Alarm,
    pub(super) window: Alarm,
    /// Of closing, whatever is waited for: one thing at a time.
    pub(super) close: Alarm,
    pub(super) idle: Alarm,
}

/// What a new context is.
pub(super) struct Opening {
    pub(super) handle: PdcHandle,
    pub(super) role: Role,
    /// At a target, job and context mean nothing.
    pub(super) route: Route,
    pub(super) peer_id: PdcId,
    pub(super) ccc: Option<Key>,
    pub(super) start: Psn,
}

impl Pdc {
    pub(super) fn open(sh: &mut Shared, opening: Opening) -> Self {
        let Opening { handle, role, route, peer_id, ccc, start } = opening;
        let Route { job, destination: peer, class, mode, pool, context } = route;
        sh.event(handle, EventKind::Opened(role, mode, peer, start));
        Pdc {
            handle,
            role,
            mode,
            state: State::Open,
            peer,
            peer_id,
            established: role == Role::Target,
            class,
            pool,
            job,
            context,
            ccc,
            peer_ccc: 0,
            source: Source::new(start, sh.params.default_mpr),
            destination: Destination::new(start, &sh.params),
            locks: 0,
            queued: false,
            blocked: false,
            ended: false,
            slots_charged: 0,
            probe: None,
            entropy: sh.rng.u16(..),
            alarms: Alarms::default(),
        }
    }

    pub(super) fn pdcid(&self) -> u16 {
        self.handle.pdcid
    }

    pub(super) fn event(&self, sh: &mut Shared, kind: EventKind) {
        sh.event(self.handle, kind);
    }

    /// How SES names the way to this context.
    pub(super) fn via(&self) -> Via {
        match self.role {
            Role::Initiator => Via::Route(self.route()),
            Role::Target => Via::Return(self.handle),
        }
    }

    /// What chooses this context, at the initiator.
    pub(super) fn route(&self) -> Route {
        let Pdc { job, peer, class, mode, pool, context, .. } = *self;
        Route { job, destination: peer, class, mode, pool, context }
    }

    /// Whether a request of `message` may come next: `PDS-MSG-001`, one message after the other.
    pub(super) fn takes(&self, request: &TxRequest, limit: usize) -> bool {
        let in_turn = self.source.message.is_none_or(|message| message == request.message);
        in_turn && self.source.queue.len() < limit
    }

    /// Takes a request that [`takes`](Self::takes) has agreed to.
    pub(super) fn push(&mut self, sh: &mut Shared, request: TxRequest) {
        self.source.message = (!request.eom).then_some(request.message);
        let head = match sh.params.congestion.grants_credit() {
            true => RequestCc::LAYOUT.bytes,
            false => Request::LAYOUT.bytes,
        };
        let bytes = head + request.head.len() + request.payload.len();
        let size = (NOMINAL + bytes) as u32;
        if let Some(ccc) = sh.cccs.get(self.ccc) {
            ccc.new_data(sh.now, size);
        }
        let key = sh.pool.insert(Outgoing::request(self.pdcid(), request, size));
        sh.pool.push(&mut self.source.queue, key);
        if self.source.queue.len() >= usize::from(sh.params.tx_queue) && !self.source.paused {
            self.source.paused = true;
            sh.indications.push_back(Indication::Paused(self.via()));
        }
        self.resume(sh);
    }

    /// A control packet that takes a PSN: `PDS-CTL-001`, one of those that requests take too.
    pub(super) fn push_control(&mut self, sh: &mut Shared, kind: CtlType, payload: u32) {
        let key = sh.pool.insert(Outgoing::control(self.pdcid(), kind, payload));
        sh.pool.push(&mut self.source.queue, key);
    }

    /// Asks the upper layer to go on when there is room again.
    pub(super) fn resume(&mut self, sh: &mut Shared) {
        let has_room = self.source.queue.len() <= usize::from(sh.params.tx_queue) / 2;
        let between = self.source.message.is_none();
        if has_room && (self.source.paused || self.source.shut_out && between) {
            (self.source.paused, self.source.shut_out) = (false, false);
            sh.indications.push_back(Indication::Resumed(self.via()));
        }
    }

    /// Whether there is a packet to send, as far as is known. A context that waits for congestion control does so with what
    /// that counts: the request may have been answered since, and what comes behind it need not wait.
    pub(super) fn wants_to_send(&self, sh: &Shared) -> bool {
        let Some(first) = self.first(sh).and_then(|(key, _)| sh.pool.get(key)) else { return false };
        !(self.blocked && first.counted())
    }

    /// Which packet is to leave next, and whether it is a new one: what is sent again comes before what is new.
    ///
    /// Where order does not matter, what was refused more than once for want of something lets what is new pass: the other
    /// side may have no room before that has come, the last packet of a message for instance. It does not wait for ever,
    /// because the window does not move past it (`PDS-WIN-004`).
    pub(super) fn first(&self, sh: &Shared) -> Option<(Key, bool)> {
        let new = self.source.queue.first().filter(|_| self.source.window_is_open());
        let new = new.map(|key| (key, true));
        let Some(again) = self.source.again.first() else { return new };
        let waits = |out: &Outgoing| out.nacks > 1 && out.refused.is_some_and(|code| !at_once(code));
        let refused = sh.pool.get(again).is_some_and(waits);
        new.filter(|_| refused && self.mode == Mode::Rud).or(Some((again, false)))
    }

    /// The next packet with a number, if one may leave. `PDS-RTO-005`: what is sent again has its PSN and its payload, and
    /// says `retx`. `PDS-ROD-005`: all packets of an ordered context have one entropy value.
    pub(super) fn transmit(&mut self, sh: &mut Shared) -> Option<Packet> {
        let key = self.next(sh)?;
        let out = sh.pool.get_mut(key)?;
        let (psn, counted, what) = (out.psn, out.counted(), out.what);
        let again = out.sent > 0;
        let sending = Sending { size: out.size, again: out.state == Flight::Waiting };
        let departure = counted.then(|| sh.cccs.send(self.ccc, sh.now, sending)).flatten();
        let entropy = match (&departure, self.mode) {
            (Some(departure), Mode::Rud) => departure.entropy,
            _ => self.entropy,
        };
        let asked = departure.is_some_and(|departure| departure.ack_request);
        let credit = departure.and_then(|departure| departure.credit_target);

        let priority = if counted { Priority::Low } else { Priority::High };
        let mut packet = sh.packet(self.peer, self.class, priority, entropy);
        let out = sh.pool.get_mut(key)?;
        match what {
            What::Request(_) => {
                let ar = asked || (out.eom && sh.params.ask_ack_at_eom);
                self.request_head(&mut packet.head, psn, again, ar, credit, out.next_hdr);
                let _ = packet.head.try_extend_from_slice(&out.head);
                packet.payload = out.payload.clone();
                self.tell_clear(sh);
            }
            What::Control(kind, payload) => {
                packet.head = self.control_head(kind, psn, again, true, payload);
            }
        }
        let out = sh.pool.get_mut(key)?;
        out.state = Flight::Flying;
        (out.sent_at, out.entropy, out.sent) = (sh.now, entropy, out.sent.saturating_add(1));
        let wait = backed_off(sh.params.rto_init_time, out.timeouts);
        sh.timers.arm(&mut out.alarm, sh.now + wait, Timer::Retransmission(key, out.timeouts));
        if let Some(why) = out.again.take() {
            sh.event(self.handle, EventKind::SentAgain(psn, why));
        }
        self.resume(sh);
        Some(packet)
    }

    /// Takes the packet that leaves next.
    fn next(&mut self, sh: &mut Shared) -> Option<Key> {
        let (key, new) = self.first(sh)?;
        if sh.pool.get(key)?.counted() && !sh.cccs.may_send(self.ccc) {
            self.block(sh);
            return None;
        }
        if !new {
            return sh.pool.pop(&mut self.source.again);
        }
        let key = sh.pool.pop(&mut self.source.queue)?;
        self.number(sh, key);
        Some(key)
    }

    fn block(&mut self, sh: &mut Shared) {
        if !self.blocked {
            self.blocked = true;
            sh.cccs.block(self.ccc, self.pdcid());
        }
    }

    fn number(&mut self, sh: &mut Shared, key: Key) {
        let psn = self.source.number(key);
        let Some(out) = sh.pool.get_mut(key) else { return };
        out.psn = psn;
        if let What::Request(message) = out.what {
            sh.indications.push_back(Indication::Numbered { message, pdc: self.handle, psn });
        }
        self.event(sh, EventKind::Numbered(psn));
    }

    /// `PDS-SYN-001`, `PDS-SYN-004`: `syn`, `pdc_info` and `psn_offset` until the first ACK, and the peer's PDCID from then on,
    /// retransmissions included. `PDS-CLR-003`: every request carries CLEAR_PSN as it is now.
    fn request_head(
        &self,
        head: &mut Head,
        psn: Psn,
        retx: bool,
        ar: bool,
        credit: Option<(u8, Units24)>,
        next_hdr: NextHdr,
    ) {
        let (kind, kind_cc) = match self.mode {
            Mode::Rod => (PdsType::ROD_REQ, PdsType::ROD_CC_REQ),
            _ => (PdsType::RUD_REQ, PdsType::RUD_CC_REQ),
        };
        let kind = if credit.is_some() { kind_cc } else { kind };
        let request = Request::zeroed().edit().prologue(|p| p.kind(kind).next_hdr(next_hdr));
        let request = request.retx(retx).ar(ar).syn(!self.established);
        let request = request.psn(psn).clear_psn(self.source.clear()).spdcid(PdcId(self.pdcid()));
        let request = match self.established {
            true => request.dpdcid(self.peer_id),
            false => request.pdc_info(self.pdc_info()).psn_offset(self.psn_offset(psn)),
        };
        // Every value fits by its type, and CLEAR_PSN because no more is in flight.
        let request = request.current_unchecked().copied();
        let _ = match credit {
            None => head.try_extend_from_slice(request.bytes()),
            Some((ccc_id, target)) => {
                let with = RequestCc::zeroed().edit().request(|r| r.copy_from(&request));
                let with = with.ccc_id(ccc_id).credit_target(target);
                head.try_extend_from_slice(with.current_unchecked().bytes())
            }
        };
    }

    /// A control packet of this context; `PDS-SYN-009`: one that opens it says the mode.
    pub(super) fn control_head(&self, kind: CtlType, psn: Psn, retx: bool, ar: bool, payload: u32) -> Head {
        let opens = !self.established;
        let control =
            Control::build(kind).isrod(opens && self.mode == Mode::Rod).retx(retx).ar(ar).syn(opens);
        let control = control.psn(psn).spdcid(PdcId(self.pdcid()));
        let control = match self.established {
            true => control.dpdcid(self.peer_id),
            false => control.pdc_info(self.pdc_info()).psn_offset(self.psn_offset(psn)),
        };
        control.payload(payload).current_unchecked().bytes().iter().copied().collect()
    }

    /// `PDS-SYN-011`
    fn pdc_info(&self) -> u8 {
        match self.pool {
            Pool::General => 0,
            Pool::Reserved => PDC_INFO_RESERVED_POOL,
        }
    }

    /// `PDS-SYN-006` holds it below 4,096.
    fn psn_offset(&self, psn: Psn) -> PsnOffset {
        PsnOffset::between(self.source.start(), psn).unwrap_or(PsnOffset::MAX)
    }

    /// Puts a packet where those wait that are sent again.
    pub(super) fn send_again(&mut self, sh: &mut Shared, key: Key, why: Again) {
        let Some(out) = sh.pool.get_mut(key) else { return };
        let (state, size) = (out.state, out.size);
        if matches!(state, Flight::Queued | Flight::Waiting | Flight::WaitingAnew) {
            return;
        }
        out.again = Some(why);
        out.state = match state {
            Flight::Arrived => Flight::WaitingAnew,
            _ => Flight::Waiting,
        };
        sh.timers.cancel(&mut out.alarm);
        if state == Flight::Arrived && size > 0 {
            if let Some(ccc) = sh.cccs.get(self.ccc) {
                ccc.new_data(sh.now, size);
            }
        }
        sh.pool.push(&mut self.source.again, key);
    }

    /// The context is over: whatever was asked of it has failed. `PDS-RTO-004`: SES is told for each packet.
    pub(super) fn fail(&mut self, sh: &mut Shared, why: Failure, reason: CloseReason) {
        let (mut unsent, mut waiting, mut flying) = (0, Vec::new(), Vec::new());
        let numbered: Vec<Key> = self.source.in_flight().collect();
        let queued = core::iter::from_fn(|| sh.pool.pop(&mut self.source.queue)).collect::<Vec<_>>();
        for key in numbered.into_iter().chain(queued) {
            let Some(state) = sh.pool.get(key).map(|out| out.state) else { continue };
            if matches!(state, Flight::Waiting | Flight::WaitingAnew) {
                sh.pool.unlink(&mut self.source.again, key);
            }
            let Some(mut out) = sh.pool.remove(key) else { continue };
            sh.timers.cancel(&mut out.alarm);
            match state {
                _ if !out.counted() => {}
                Flight::Queued | Flight::WaitingAnew => unsent += u64::from(out.size),
                Flight::Waiting | Flight::Resting => waiting.push(out.size),
                Flight::Flying => flying.push(out.size),
                Flight::Arrived => {}
            }
            if let Some(message) = out.message() {
                sh.indications.push_back(Indication::Failed { message, why });
            }
        }
        if let Some(ccc) = sh.cccs.get(self.ccc) {
            ccc.gone(sh.now, unsent, &waiting, &flying);
        }
        self.source.abandon();
        self.resume(sh);
        self.end(sh, reason);
    }
}
