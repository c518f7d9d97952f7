//! Control packets: sending those without a PSN, and handling received ones.

use super::ack::Named;
use super::destination::{Flags, RxSlot, SlotState};
use super::event::{CloseReason, Dropped, EventKind, Role};
use super::nack::NackReply;
use super::pdc::Pdc;
use super::retransmit::is_last;
use super::shared::Shared;
use super::timers::{Alarm, Timer};
use crate::cc::Wanted;
use crate::packet::Unbuildable;
use crate::{Failure, Head, Mode, Packet, Priority};
use uet_wire::pds::Control;
use uet_wire::registry::{CtlType, NackCode};
use uet_wire::{PdcId, Psn};

impl Pdc {
    /// Sends a control packet without a PSN. It needs the peer's PDCID. `PDS-CLASS-002`: it does not wait behind data.
    pub(super) fn send_control(&mut self, shared: &mut Shared, kind: CtlType, psn: Psn, payload: u32) {
        if !self.established {
            return;
        }
        let packet = shared.packet(self.to_peer(), self.class, Priority::High, self.entropy);
        let head = self.control_head(kind, psn, false, false, payload);
        self.event(shared, EventKind::Control(kind));
        shared.answer(head.map(|head| Packet { head, ..packet }));
    }

    /// `PDS-PRB-003`, `PDS-PRB-004`: a PROBE waits for the first ACK, and uses the control traffic class.
    pub(super) fn send_probe(&mut self, shared: &mut Shared) {
        if !self.established {
            return;
        }
        let opaque = shared.rng.u16(..);
        self.probe = Some((opaque, shared.now));
        let base = self.source.cack() + 1;
        let probe = Control::build(CtlType::PROBE).probe_opaque(opaque).spdcid(PdcId(self.pdcid()));
        let probe = probe.dpdcid(self.peer_id).payload(base.0);
        let packet = shared.packet(self.to_peer(), self.class, Priority::High, self.entropy);
        let head = probe.done().map(|probe| Head::from_iter(*probe.bytes()));
        self.event(shared, EventKind::Control(CtlType::PROBE));
        shared.answer(head.map(|head| Packet { head, ..packet }).map_err(Unbuildable::from));
    }

    /// Sends the control packets that congestion control requests.
    pub(super) fn serve_congestion(&mut self, shared: &mut Shared) {
        if !self.established {
            return;
        }
        while let Some(wanted) = shared.cccs.get(self.ccc).and_then(|ccc| ccc.poll_wanted()) {
            match wanted {
                Wanted::Probe => self.send_probe(shared),
                Wanted::CreditRequest(ccc_id, target) => {
                    let payload = u32::from(ccc_id) << 24 | target.get();
                    self.send_control(shared, CtlType::CREDIT_REQUEST, Psn(0), payload);
                }
            }
        }
    }

    /// Handles a control packet without a PSN.
    pub(super) fn control(&mut self, shared: &mut Shared, packet: &Packet, control: &Control) {
        match control.ctl_type() {
            CtlType::ACK_REQUEST => self.ack_requested(shared, packet, control),
            // `PDS-CLR-004`; `PDS-CLR-011`: it gets no reply.
            CtlType::CLEAR_COMMAND => self.take_clear(shared, Psn(control.payload())),
            // `PDS-CLR-007`: the source answers with its CLEAR_PSN at once.
            CtlType::CLEAR_REQUEST => self.send_clear(shared),
            CtlType::PROBE => {
                let opaque = control.probe_opaque().unwrap_or_default();
                self.answer_probe(shared, opaque, Psn(control.payload()), packet.entropy);
            }
            CtlType::CREDIT => {
                if let (Some(credit), Some(ccc)) = (control.credit(), shared.cccs.get(self.ccc)) {
                    ccc.credit(shared.now, credit);
                }
            }
            CtlType::CREDIT_REQUEST => {}
            _ => shared.drop_packet(Dropped::UnfitControl),
        }
    }

    /// Handles a new control packet with a PSN.
    pub(super) fn numbered_control(&mut self, shared: &mut Shared, kind: CtlType, psn: Psn, payload: u32) {
        match (kind, self.role) {
            (CtlType::CLOSE_COMMAND, Role::Target) => return self.close_commanded(shared, psn),
            (CtlType::CLOSE_REQUEST, Role::Initiator) => {
                self.answer_control(shared, psn);
                return self.close(shared, CloseReason::PeerAsked);
            }
            (CtlType::NEGOTIATION, _) => self.event(shared, EventKind::Capabilities(payload)),
            (CtlType::NOOP, _) => {}
            _ => shared.drop_packet(Dropped::UnfitControl),
        }
        self.answer_control(shared, psn);
    }

    /// `PDS-ASK-001` to `PDS-ASK-005`: replies to an ACK_REQUEST according to the state of its PSN.
    fn ack_requested(&mut self, shared: &mut Shared, packet: &Packet, control: &Control) {
        let psn = control.psn();
        let reply = |pdc: &Pdc, code| NackReply { entropy: packet.entropy, ..NackReply::of(pdc, psn, code) };
        let known = !psn.is_after(self.destination.cack());
        let state = self.destination.slot(psn).map_or(SlotState::Missing, |slot| slot.state);
        match state {
            // `PDS-ASK-002`, `PDS-ASK-003`
            _ if known => self.acknowledge_asked(shared, psn, packet.entropy),
            SlotState::Answered | SlotState::Stored(_) => {
                self.acknowledge_asked(shared, psn, packet.entropy);
            }
            // `PDS-ASK-001`
            SlotState::Missing => self.refuse(shared, reply(self, NackCode::PKT_NOT_RCVD)),
            // `PDS-ASK-004`
            SlotState::Delivered | SlotState::Ready(_) => {
                self.refuse(shared, reply(self, NackCode::RCVD_SES_PROCG));
            }
            // `PDS-ASK-005`
            SlotState::Repeatable => self.refuse(shared, reply(self, NackCode::ACK_WITH_DATA)),
        }
    }

    /// Handles the CLEAR_PSN of a request or a CLEAR_COMMAND.
    pub(super) fn take_clear(&mut self, shared: &mut Shared, clear: Psn) {
        if self.destination.clear_to(clear, &mut shared.store) {
            self.event(shared, EventKind::Cleared(clear));
            self.advance(shared);
            if self.destination.uncleared().is_none() {
                shared.timers.cancel(&mut self.alarms.ask_clear);
            }
        }
    }

    /// Records that a request carried CLEAR_PSN.
    pub(super) fn tell_clear(&mut self, shared: &mut Shared) {
        self.source.clear_is_told();
        shared.timers.cancel(&mut self.alarms.clear);
    }

    /// `PDS-CLR-008`: the next request carries CLEAR_PSN. If none leaves within PDS_Clear_Time, a CLEAR_COMMAND carries
    /// it.
    pub(super) fn plan_clear(&mut self, shared: &mut Shared) {
        let news = self.source.clear().is_after(self.source.clear_told);
        if self.source.clear_wanted.is_some() && news && !self.alarms.clear.is_armed() {
            let at = shared.now + shared.params.pds_clear_time;
            shared.timers.arm(&mut self.alarms.clear, at, Timer::Clear(self.handle.pdcid));
        }
    }

    /// Ends PDS_Clear_Time. `PDS-CLR-009`: no CLEAR_COMMAND while a queued request could carry CLEAR_PSN.
    pub(super) fn clear_time_over(&mut self, shared: &mut Shared) {
        self.alarms.clear = Alarm::default();
        if self.first(shared).is_some() {
            return self.plan_clear(shared);
        }
        self.send_clear(shared);
    }

    /// Returns whether every packet is answered and the window is still closed. The cumulative PSN then waits for a
    /// clear, and no ACK will report its move.
    fn is_shut_in(&self) -> bool {
        self.source.is_quiet() && !self.source.queue.is_empty() && !self.source.window_is_open()
    }

    /// Starts a timer for a source whose window is closed.
    pub(super) fn watch_window(&mut self, shared: &mut Shared) {
        if !self.is_shut_in() {
            self.source.asked = 0;
            return shared.timers.cancel(&mut self.alarms.window);
        }
        if !self.alarms.window.is_armed() {
            let at = shared.now + shared.params.rto_init_time;
            shared.timers.arm(&mut self.alarms.window, at, Timer::Window(self.handle.pdcid));
        }
    }

    /// Sends an ACK_REQUEST, because its ACK carries the cumulative PSN. Public sources describe no other method.
    pub(super) fn window_timeout(&mut self, shared: &mut Shared) {
        self.alarms.window = Alarm::default();
        if is_last(self.source.asked, &shared.params) {
            return self.fail(shared, Failure::TimedOut, CloseReason::TimedOut);
        }
        self.source.asked = self.source.asked.saturating_add(1);
        self.send_clear(shared);
    }

    fn send_clear(&mut self, shared: &mut Shared) {
        let clear = self.source.clear();
        self.tell_clear(shared);
        self.send_control(shared, CtlType::CLEAR_COMMAND, Psn(0), clear.0);
        if self.is_shut_in() {
            self.send_control(shared, CtlType::ACK_REQUEST, clear, 0);
        }
    }

    /// Starts the timer of a stored response that waits for a clear.
    pub(super) fn await_clear(&mut self, shared: &mut Shared) {
        if !self.alarms.ask_clear.is_armed() {
            let at = shared.now + super::timers::backed_off(shared.params.clear_request_time, 0);
            shared.timers.arm(&mut self.alarms.ask_clear, at, Timer::AskClear(self.handle.pdcid));
        }
    }

    /// `PDS-CLR-010`: requests a CLEAR that was lost, which could keep the source's window closed forever.
    pub(super) fn ask_clear(&mut self, shared: &mut Shared) {
        self.alarms.ask_clear = Alarm::default();
        let Some(psn) = self.destination.uncleared() else { return };
        if self.destination.clear_asked >= shared.params.max_clear_requests {
            return;
        }
        self.destination.clear_asked += 1;
        self.send_control(shared, CtlType::CLEAR_REQUEST, Psn(0), psn.0);
        self.await_clear(shared);
    }

    /// Returns the slot of a control packet with a PSN.
    pub(super) fn control_slot(flags: Flags, packet: &Packet, now: crate::Time) -> RxSlot {
        let length = packet.head.len() as u16;
        let flags = Flags { control: true, ..flags };
        RxSlot { state: SlotState::Delivered, flags, length, entropy: packet.entropy, at: now }
    }

    /// Describes a duplicate for its ACK.
    pub(super) fn named(&self, psn: Psn, flags: Flags, packet: &Packet, now: crate::Time) -> Named {
        Named { psn, retx: flags.retx, marked: flags.marked, entropy: packet.entropy, at: Some(now) }
    }

    /// `PDS-SYN-009`: returns the mode of the context that a control packet opens.
    pub(super) fn opened_mode(control: &Control) -> Mode {
        if control.isrod() { Mode::Rod } else { Mode::Rud }
    }
}
