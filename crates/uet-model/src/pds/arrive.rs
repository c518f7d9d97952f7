//! Handling packets with a PSN: window, duplicates, delivery.

use super::ack::reason_of_packet;
use super::close::State;
use super::destination::{Flags, PsnPosition, RxSlot, SlotState};
use super::event::{AckReason, Dropped, Duplicate, EventKind};
use super::nack::NackReply;
use super::pdc::{NOMINAL, Pdc};
use super::shared::Shared;
use crate::{Head, Indication, Mode, Packet, PdsParams, Pool, RxRequest, Ticket, TrimPoint};
use uet_wire::pds::{Control, PDC_INFO_RESERVED_POOL, Request};
use uet_wire::registry::{CtlType, NackCode, NextHdr, PdsType};
use uet_wire::{PdcId, Psn};

/// The fields of a packet with a PSN, whether request or control packet.
#[derive(Clone, Copy)]
pub(super) struct PsnFields {
    pub(super) mode: Option<Mode>,
    pub(super) psn: Psn,
    /// The first PSN of the context, in a packet with `syn`.
    pub(super) start: Option<Psn>,
    pub(super) spdcid: PdcId,
    /// The peer's name for our context, in a packet without `syn`.
    pub(super) dpdcid: Option<PdcId>,
    pub(super) pool: Pool,
    pub(super) retx: bool,
    pub(super) ar: bool,
    pub(super) clear: Option<Psn>,
    pub(super) what: Arriving,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Arriving {
    Request(NextHdr),
    Control(CtlType, u32),
}

impl PsnFields {
    pub(super) fn of_request(request: &Request) -> Self {
        let mode = match request.prologue().kind() {
            PdsType::ROD_REQ | PdsType::ROD_CC_REQ => Mode::Rod,
            _ => Mode::Rud,
        };
        PsnFields {
            mode: Some(mode),
            psn: request.psn(),
            start: request.start_psn(),
            spdcid: request.spdcid(),
            dpdcid: request.dpdcid(),
            pool: pool(request.pdc_info()),
            retx: request.retx(),
            ar: request.ar(),
            clear: Some(request.clear_psn()),
            what: Arriving::Request(request.prologue().next_hdr()),
        }
    }

    /// Parses a control packet. It states the mode only when it may open a context.
    pub(super) fn of_control(control: &Control) -> Self {
        PsnFields {
            mode: control.syn().then(|| Pdc::opened_mode(control)),
            psn: control.psn(),
            start: control.start_psn(),
            spdcid: control.spdcid(),
            dpdcid: control.dpdcid(),
            pool: pool(control.pdc_info()),
            retx: control.retx(),
            ar: control.ar(),
            clear: None,
            what: Arriving::Control(control.ctl_type(), control.payload()),
        }
    }

    fn flags(&self, packet: &Packet, params: &PdsParams) -> Flags {
        let at_once = reason_of_packet(params, self.start.is_some(), self.retx, self.ar, packet.marked);
        Flags { at_once, retx: self.retx, marked: packet.marked, control: false }
    }

    /// Returns a NACK from an endpoint without a context for the packet. `PDS-OPEN-001`: its spdcid is 0.
    pub(super) fn reply(&self, packet: &Packet, code: NackCode) -> NackReply {
        NackReply {
            to: packet.src,
            security: packet.security,
            class: packet.class,
            entropy: packet.entropy,
            code,
            psn: self.psn,
            retx: self.retx,
            marked: packet.marked,
            spdcid: PdcId::NONE,
            dpdcid: self.spdcid,
            payload: 0,
        }
    }
}

/// `PDS-SYN-011`
fn pool(pdc_info: Option<u8>) -> Pool {
    match pdc_info {
        Some(info) if info & PDC_INFO_RESERVED_POOL != 0 => Pool::Reserved,
        _ => Pool::General,
    }
}

/// `PDS-TRIM-001`: returns the NACK code for a trimmed packet.
pub(super) fn trim_code(trimmed: TrimPoint) -> NackCode {
    match trimmed {
        TrimPoint::Fabric => NackCode::TRIMMED,
        TrimPoint::LastHop => NackCode::TRIMMED_LASTHOP,
    }
}

impl Pdc {
    /// Handles a packet with a PSN for this context.
    pub(super) fn receive(&mut self, shared: &mut Shared, packet: Packet, arrival: PsnFields, ses: Head) {
        let psn = arrival.psn;
        let own = PdcId(self.pdcid());
        let reply = |code| NackReply { spdcid: own, ..arrival.reply(&packet, code) };
        // `PDS-OPEN-008`
        if arrival.mode.is_some_and(|mode| mode != self.mode) {
            return self.refuse(shared, reply(NackCode::PDC_MODE_MISMATCH));
        }
        if self.state == State::Pending {
            let start = self.source.start();
            // No context stands yet, so the NACK names none. Only a packet with syn makes it stand.
            let code = match arrival.start {
                Some(proper) if proper == start => None,
                Some(_) => Some(NackCode::NEW_START_PSN),
                None => Some(NackCode::INV_DPDCID),
            };
            if let Some(code) = code {
                let payload = if code == NackCode::NEW_START_PSN { start.0 } else { 0 };
                return self.refuse(shared, NackReply { payload, ..arrival.reply(&packet, code) });
            }
            self.state = State::Open;
            shared.timers.cancel(&mut self.alarms.close);
        }
        if !self.receives() {
            let is_close = matches!(arrival.what, Arriving::Control(CtlType::CLOSE_COMMAND, _));
            return self.late(shared, psn, is_close, reply(NackCode::CLOSING));
        }
        // `PDS-OPEN-005`
        if arrival.start.is_some_and(|start| start != self.source.start()) {
            return self.refuse(shared, reply(NackCode::INVALID_SYN));
        }
        // `PDS-TRIM-001`, `PDS-TRIM-002`: only the PDS header is known, and no state changes.
        if let Some(trimmed) = packet.trimmed {
            return match arrival.what {
                Arriving::Request(_) => self.refuse(shared, reply(trim_code(trimmed))),
                Arriving::Control(..) => shared.drop_packet(Dropped::Trimmed),
            };
        }
        if let Some(clear) = arrival.clear {
            self.take_clear(shared, clear);
        }
        match self.destination.place(psn) {
            PsnPosition::Received => self.known(shared, packet, arrival, ses),
            PsnPosition::New => self.new_packet(shared, packet, arrival, ses),
            // `PDS-OPEN-004`, `PDS-OPEN-006`
            PsnPosition::Outside if arrival.start.is_some() && psn.is_after(self.destination.cack()) => {
                self.refuse(shared, reply(NackCode::INVALID_SYN));
            }
            PsnPosition::Outside => self.refuse(shared, reply(NackCode::PSN_OOR_WINDOW)),
        }
    }

    fn known(&mut self, shared: &mut Shared, packet: Packet, arrival: PsnFields, ses: Head) {
        let psn = arrival.psn;
        let named = self.named(psn, arrival.flags(&packet, &shared.params), &packet, shared.now);
        let is_control = matches!(arrival.what, Arriving::Control(..));
        let what = self.duplicate(shared, named, is_control);
        self.event(shared, EventKind::Duplicate(psn, what));
        match what {
            // `PDS-DUP-005`
            Duplicate::InProgress => {
                if let Some(slot) = self.destination.slot_mut(psn) {
                    let asks = arrival.retx.then_some(AckReason::Retransmission);
                    slot.flags.at_once = slot.flags.at_once.or(asks);
                }
                if arrival.retx && shared.params.nack_ses_processing {
                    let code = NackCode::RCVD_SES_PROCG;
                    let reply = arrival.reply(&packet, code);
                    self.refuse(shared, NackReply { spdcid: PdcId(self.pdcid()), ..reply });
                }
            }
            // `PDS-GTD-003`
            Duplicate::Repeated => {
                shared.delivered += 1;
                if let Some(slot) = self.destination.slot_mut(psn) {
                    slot.state = SlotState::Delivered;
                    slot.flags = arrival.flags(&packet, &shared.params);
                }
                self.deliver(shared, packet, arrival, ses);
            }
            _ => {}
        }
    }

    fn new_packet(&mut self, shared: &mut Shared, packet: Packet, arrival: PsnFields, ses: Head) {
        let psn = arrival.psn;
        let reply = |code| NackReply { spdcid: PdcId(self.pdcid()), ..arrival.reply(&packet, code) };
        if self.mode == Mode::Rod && psn != self.destination.expected() {
            let reply = reply(NackCode::ROD_OOO);
            return self.out_of_order(shared, reply);
        }
        if let Some(code) = self.lacking(shared, &arrival) {
            return self.refuse(shared, reply(code));
        }
        let flags = arrival.flags(&packet, &shared.params);
        let length = packet.head.len() + packet.payload.len();
        self.event(shared, EventKind::Accepted(psn));
        match arrival.what {
            Arriving::Request(next_hdr) if next_hdr != NextHdr::UET_HDR_NONE => {
                let length16 = length.min(u16::MAX.into()) as u16;
                let state = SlotState::Delivered;
                let slot = RxSlot { state, flags, length: length16, entropy: packet.entropy, at: shared.now };
                self.destination.receive(psn, slot);
                self.destination.cc.received((NOMINAL + length) as u32);
                shared.delivered += 1;
                self.deliver(shared, packet, arrival, ses);
            }
            // The peer's PDS made this request without semantics. Treat it as a NOOP.
            what => {
                self.destination.receive(psn, Pdc::control_slot(flags, &packet, shared.now));
                let (kind, payload) = match what {
                    Arriving::Control(kind, payload) => (kind, payload),
                    Arriving::Request(_) => (CtlType::NOOP, 0),
                };
                self.numbered_control(shared, kind, psn, payload);
            }
        }
        self.infer_gap(shared);
    }

    /// `PDS-NACK-011`: a packet for which a resource is missing is refused, and counts as not received.
    pub(super) fn lacking(&self, shared: &Shared, arrival: &PsnFields) -> Option<NackCode> {
        let request = matches!(arrival.what, Arriving::Request(_));
        let above_gap = arrival.psn != self.destination.expected();
        if shared.slots + self.destination.room_for(arrival.psn) > shared.params.receive_slots as usize {
            Some(NackCode::NO_RESOURCE)
        } else if request && !shared.has_packet_room(above_gap) {
            Some(NackCode::NO_PKT_BUFFER)
        } else if request && !shared.has_gtd_room(above_gap) {
            // `PDS-GTD-005`: checked before SES does anything that needs a guaranteed response.
            Some(NackCode::NO_GTD_DEL_AVAIL)
        } else {
            None
        }
    }

    /// `PDS-ROD-001`: no packet is accepted out of order. `PDS-ROD-002`: only the first packet above a gap gets a NACK.
    fn out_of_order(&mut self, shared: &mut Shared, reply: NackReply) {
        let expected = self.destination.expected();
        if self.destination.gap_told.replace(expected) == Some(expected) {
            return shared.drop_packet(Dropped::OutOfOrder);
        }
        // The payload carries the missing PSN for sources that look for it.
        self.refuse(shared, NackReply { payload: expected.0, ..reply });
    }

    /// Reports a gap with many packets above it, if the parameter enables that.
    fn infer_gap(&mut self, shared: &mut Shared) {
        let distance = u32::from(shared.params.infer_loss_packets);
        let missing = self.destination.expected();
        if distance == 0 || self.destination.out_of_order() < distance {
            return;
        }
        if self.destination.gap_told.replace(missing) != Some(missing) {
            let reply = NackReply::of(self, missing, NackCode::RCVR_INFER_LOSS);
            self.refuse(shared, reply);
        }
    }

    /// `PDS-RUD-001`: delivers each request as it arrives. Only an ordered context waits for earlier packets.
    fn deliver(&mut self, shared: &mut Shared, packet: Packet, arrival: PsnFields, ses: Head) {
        let Arriving::Request(next_hdr) = arrival.what else { return };
        shared.indications.push_back(Indication::Request(RxRequest {
            ticket: Ticket::Pdc(self.handle, arrival.psn),
            from: self.peer,
            class: self.class,
            mode: self.mode,
            confirmed: self.confirmed,
            next_hdr,
            head: ses,
            payload: packet.payload,
        }));
    }

    /// Refuses a request because SES has no room for it. It counts as not received.
    pub(super) fn take_back(&mut self, shared: &mut Shared, psn: Psn, code: NackCode) {
        let Some(slot) = self.destination.slot(psn).copied() else { return };
        if slot.state != SlotState::Delivered || slot.flags.control {
            return self.event(shared, EventKind::ResponseUnwanted(psn));
        }
        if self.mode == Mode::Rod {
            self.take_back_later(shared, psn);
        }
        self.unreceive(shared, psn, slot.length);
        let Flags { retx, marked, .. } = slot.flags;
        let reply = NackReply::of(self, psn, code);
        self.refuse(shared, NackReply { retx, marked, entropy: slot.entropy, ..reply });
    }
}

impl Pdc {
    /// `PDS-ROD-001`: requests after a refused one, which SES has not seen yet, would arrive out of order. Takes them back
    /// too.
    fn take_back_later(&mut self, shared: &mut Shared, psn: Psn) {
        let handle = self.handle;
        let mut later = Vec::new();
        shared.indications.retain(|indication| match indication {
            Indication::Request(RxRequest { ticket: Ticket::Pdc(of, at), .. })
                if *of == handle && at.is_after(psn) =>
            {
                later.push(*at);
                false
            }
            _ => true,
        });
        for psn in later.into_iter().rev() {
            let length = self.destination.slot(psn).map_or(0, |slot| slot.length);
            self.unreceive(shared, psn, length);
        }
    }

    /// `PDS-NACK-011`: marks a delivered request as not received.
    fn unreceive(&mut self, shared: &mut Shared, psn: Psn, length: u16) {
        shared.delivered = shared.delivered.saturating_sub(1);
        self.destination.unreceive(psn);
        self.destination.cc.taken_back((NOMINAL + usize::from(length)) as u32);
    }
}
