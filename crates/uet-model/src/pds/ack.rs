//! Sending ACKs: when, and with what content (section 3.5.12.2).

use super::destination::{Flags, RxSlot, SlotState};
use super::event::{AckReason, Duplicate, EventKind, Role};
use super::pdc::Pdc;
use super::shared::Shared;
use super::timers::{Alarm, Timer};
use crate::cc::{Answered, CreditSource};
use crate::packet::Unbuildable;
use crate::{Delivery, Head, Mode, Packet, PdsParams, Priority, TxResponse};
use bytes::Bytes;
use uet_wire::pds::{Ack, AckCc};
use uet_wire::registry::{AckRequest, NextHdr, PdsType, ResponseOpcode, ReturnCode};
use uet_wire::ses::Response;
use uet_wire::{PdcId, Psn, Units24};

/// Returns the reason why a packet demands an ACK at once, if it does.
pub(super) fn reason_of_packet(
    params: &PdsParams,
    syn: bool,
    retx: bool,
    ar: bool,
    marked: bool,
) -> Option<AckReason> {
    if syn {
        // `PDS-ACK-001`
        Some(AckReason::Syn)
    } else if retx {
        // `PDS-ACK-003`
        Some(AckReason::Retransmission)
    } else if ar {
        // `PDS-ACK-004`
        Some(AckReason::Requested)
    } else if marked && params.ack_on_ecn {
        // `PDS-ACK-008`
        Some(AckReason::Marked)
    } else if params.enb_ack_per_pkt {
        // `PDS-ACK-009`
        Some(AckReason::EachPacket)
    } else {
        None
    }
}

/// Returns the reason for an immediate response; `None` if it may wait.
fn reason_of_response(response: &TxResponse) -> Option<AckReason> {
    match response.delivery {
        // `PDS-ACK-006`
        _ if !response.payload.is_empty() => Some(AckReason::Data),
        // `PDS-ACK-005`
        Delivery::Guaranteed | Delivery::GuaranteedByRepetition => Some(AckReason::Guaranteed),
        // `PDS-ACK-007`
        Delivery::Once => Some(AckReason::NotDefault),
        Delivery::Default => None,
    }
}

/// `PDS-ACK-013`: a default response from PDS has list 0 and no IDs, and covers the whole length.
pub(super) fn default_response() -> TxResponse {
    let response = Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK);
    TxResponse {
        delivery: Delivery::Default,
        next_hdr: NextHdr::UET_HDR_RESPONSE,
        // The fields are constants that fit.
        head: response.done().map(|response| Head::from_iter(*response.bytes())).unwrap_or_default(),
        payload: Bytes::new(),
    }
}

/// `PDS-ACK-014`: an ACK that only answers a control packet carries no response.
fn no_response() -> TxResponse {
    let next_hdr = NextHdr::UET_HDR_NONE;
    TxResponse { delivery: Delivery::Default, next_hdr, head: Head::new(), payload: Bytes::new() }
}

/// The packet that an ACK names.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) struct Named {
    pub(super) psn: Psn,
    pub(super) retx: bool,
    pub(super) marked: bool,
    pub(super) entropy: u16,
    pub(super) at: Option<crate::Time>,
}

impl Named {
    fn of(psn: Psn, slot: &RxSlot) -> Self {
        let Flags { retx, marked, .. } = slot.flags;
        Named { psn, retx, marked, entropy: slot.entropy, at: Some(slot.at) }
    }
}

/// The bit of an ACK's flags that announces a Start_PSN after the header. Only the reference provider is known to have
/// it, on secured contexts; elsewhere it is reserved.
pub(super) const EXPECTED_PSN: u8 = 0x40;

impl Pdc {
    /// Answers a control packet, which needs no response from SES.
    pub(super) fn answer_control(&mut self, shared: &mut Shared, psn: Psn) {
        self.answer(shared, psn, no_response());
    }

    /// Takes the response to a request from SES. `PDS-ROD-003`: on an ordered context, responses leave in the order of the
    /// requests.
    pub(super) fn respond(&mut self, shared: &mut Shared, psn: Psn, response: TxResponse) {
        match self.destination.slot(psn).map(|slot| slot.state) {
            Some(SlotState::Delivered) => shared.delivered = shared.delivered.saturating_sub(1),
            _ => return self.event(shared, EventKind::ResponseUnwanted(psn)),
        }
        self.answer(shared, psn, response);
    }

    fn answer(&mut self, shared: &mut Shared, psn: Psn, response: TxResponse) {
        if self.mode != Mode::Rod {
            return self.record_answer(shared, psn, response);
        }
        // The response to a duplicate, which is below its turn, waits for no other.
        if psn.is_after(self.destination.turn) {
            let key = shared.store.insert(response) as u32;
            if let Some(slot) = self.destination.slot_mut(psn) {
                slot.state = SlotState::Ready(key);
            }
            return;
        }
        self.record_answer(shared, psn, response);
        if psn != self.destination.turn {
            return;
        }
        self.destination.turn = psn + 1;
        while let Some(SlotState::Ready(key)) =
            self.destination.slot(self.destination.turn).map(|slot| slot.state)
        {
            let turn = self.destination.turn;
            let Some(response) = shared.store.try_remove(key as usize) else { return };
            self.record_answer(shared, turn, response);
            self.destination.turn = turn + 1;
        }
    }

    /// Stores the response if needed, moves CACK_PSN, and sends or delays the ACK.
    fn record_answer(&mut self, shared: &mut Shared, psn: Psn, response: TxResponse) {
        let Some(slot) = self.destination.slot(psn).copied() else { return };
        let named = Named::of(psn, &slot);
        let state = self.keep(shared, psn, &response);
        if let Some(slot) = self.destination.slot_mut(psn) {
            slot.state = state;
        }
        self.advance(shared);
        if let Some(why) = slot.flags.at_once.or_else(|| reason_of_response(&response)) {
            return self.acknowledge_now(shared, named, response, why);
        }
        // `PDS-ACK-010`
        self.destination.ack_bytes += u32::from(slot.length).max(shared.params.ack_gen_min_pkt_add);
        if self.destination.ack_bytes >= shared.params.ack_gen_trigger {
            self.destination.ack_bytes = 0;
            return self.acknowledge_now(shared, named, response, AckReason::Bytes);
        }
        if self.destination.owed.is_none_or(|owed| psn.is_after(owed.psn)) {
            (self.destination.owed, self.destination.owed_is_control) = (Some(named), slot.flags.control);
        }
        // `PDS-ACK-011`
        if !self.alarms.ack.is_armed() {
            let at = shared.now + shared.params.ack_delay;
            shared.timers.arm(&mut self.alarms.ack, at, Timer::AckDelay(self.handle.pdcid));
        }
    }

    /// Acknowledges without delay. `PDS-ROD-003`: on an ordered context, the delayed ACK of an earlier packet leaves first.
    fn acknowledge_now(&mut self, shared: &mut Shared, named: Named, response: TxResponse, why: AckReason) {
        if self.mode == Mode::Rod
            && self.destination.owed.is_some_and(|owed| owed.psn.is_after(self.destination.cack()))
        {
            self.acknowledge_owed(shared);
        }
        self.acknowledge(shared, named, response, why);
    }

    /// `PDS-GTD-001`: a guaranteed response is kept until it is cleared. `PDS-GTD-003`: unless the request can be repeated.
    fn keep(&mut self, shared: &mut Shared, psn: Psn, response: &TxResponse) -> SlotState {
        let cleared = self.destination.is_cleared(psn);
        match response.delivery {
            Delivery::Guaranteed if !cleared => {
                self.event(shared, EventKind::Stored(psn));
                SlotState::Stored(shared.store.insert(response.clone()) as u32)
            }
            Delivery::GuaranteedByRepetition if !cleared => SlotState::Repeatable,
            _ => SlotState::Answered,
        }
    }

    /// Moves CACK_PSN as far as it may go.
    pub(super) fn advance(&mut self, shared: &mut Shared) {
        if self.destination.advance() {
            let cack = self.destination.cack();
            self.event(shared, EventKind::CackMoved(cack));
        }
    }

    /// `PDS-ACK-012`: the ACK delay is over, and one ACK covers everything answered in the meantime.
    pub(super) fn ack_delay_over(&mut self, shared: &mut Shared) {
        self.alarms.ack = Alarm::default();
        self.acknowledge_owed(shared);
    }

    fn acknowledge_owed(&mut self, shared: &mut Shared) {
        let Some(named) = self.destination.owed else { return };
        // If CACK_PSN has passed the packet, its slot is gone.
        let response = if self.destination.owed_is_control { no_response() } else { default_response() };
        self.acknowledge(shared, named, response, AckReason::Delay);
    }

    fn default_for(&self, psn: Psn) -> TxResponse {
        match self.destination.slot(psn) {
            Some(slot) if slot.flags.control => no_response(),
            _ => default_response(),
        }
    }

    /// Describes the packet of a PSN, as far as its slot still exists.
    fn name(&self, psn: Psn) -> Named {
        match self.destination.slot(psn) {
            Some(slot) if slot.state != SlotState::Missing => Named::of(psn, slot),
            _ => Named { psn, retx: false, marked: false, entropy: self.entropy, at: None },
        }
    }

    /// Handles a duplicate. `PDS-DUP-001`: it is never delivered twice.
    pub(super) fn duplicate(&mut self, shared: &mut Shared, again: Named, is_control: bool) -> Duplicate {
        let psn = again.psn;
        // `PDS-DUP-003`: a duplicate without `retx`, which the network made, may be ignored.
        if !again.retx && !shared.params.ack_unmarked_duplicates {
            return Duplicate::Ignored;
        }
        match self.destination.slot(psn).map(|slot| slot.state) {
            Some(SlotState::Delivered | SlotState::Ready(_)) => Duplicate::InProgress,
            Some(SlotState::Repeatable) => Duplicate::Repeated,
            // `PDS-DUP-002`: the stored response if there is one, else the default response.
            Some(SlotState::Stored(key)) => {
                if let Some(response) = shared.store.get(key as usize).cloned() {
                    self.acknowledge(shared, again, response, AckReason::Duplicate);
                }
                Duplicate::AnsweredAgain
            }
            _ => {
                // `PDS-ACK-014`: the packet still tells its kind if its slot is gone.
                let response = if is_control { no_response() } else { self.default_for(psn) };
                self.acknowledge(shared, again, response, AckReason::Duplicate);
                Duplicate::AckedAgain
            }
        }
    }

    /// Answers an ACK_REQUEST for an answered packet, with the stored response or the default one. `CC-PATH-001`: the ACK
    /// takes the entropy value of the ACK_REQUEST.
    pub(super) fn acknowledge_asked(&mut self, shared: &mut Shared, psn: Psn, entropy: u16) {
        let named = Named { entropy, ..self.name(psn) };
        let response = match self.destination.slot(psn).map(|slot| slot.state) {
            Some(SlotState::Stored(key)) => shared.store.get(key as usize).cloned(),
            _ => None,
        };
        let response = response.unwrap_or_else(|| self.default_for(psn));
        self.acknowledge(shared, named, response, AckReason::Asked);
    }

    /// Acknowledges a repeated CLOSE_COMMAND.
    pub(super) fn acknowledge_close(&mut self, shared: &mut Shared, named: Named) {
        self.acknowledge(shared, named, no_response(), AckReason::Duplicate);
    }

    /// Sends an ACK that names a packet and carries its response. `PDS-ACK-002`: `m` and `retx` are copied from that packet.
    pub(super) fn acknowledge(
        &mut self,
        shared: &mut Shared,
        named: Named,
        response: TxResponse,
        why: AckReason,
    ) {
        let kept = matches!(response.delivery, Delivery::Guaranteed | Delivery::GuaranteedByRepetition);
        let packet = self.ack_packet(shared, named, response, kept);
        self.event(shared, EventKind::Acked(named.psn, why));
        shared.answer(packet);
        self.told(shared, named.psn, kept);
    }

    fn ack_packet(
        &mut self,
        shared: &mut Shared,
        named: Named,
        response: TxResponse,
        kept: bool,
    ) -> Result<Packet, Unbuildable> {
        let cack = self.destination.cack();
        let ack = Ack::build().prologue(|p| p.next_hdr(response.next_hdr));
        let ack = ack.m(named.marked).retx(named.retx).req(self.wish(kept));
        let ack = ack.ack_psn_offset(named.psn.offset_from(cack).unwrap_or(0)).cack_psn(cack);
        let ack = ack.spdcid(PdcId(self.pdcid())).dpdcid(self.peer_id).done()?;
        // `PDS-CLASS-001`: an answer does not wait behind data.
        let mut packet = shared.packet(self.to_peer(), self.class, Priority::High, named.entropy);
        let floor = shared.close_floor.filter(|(psn, _)| *psn == named.psn);
        if let Some((_, floor)) = floor {
            packet.head.try_extend_from_slice(ack.bytes())?;
            if let Some(flags) = packet.head.get_mut(1) {
                *flags |= EXPECTED_PSN;
            }
            packet.payload = Bytes::copy_from_slice(&floor.0.to_be_bytes());
            return Ok(packet);
        }
        // `PDS-ACK-015`: an ACK without congestion state or bitmap is short.
        if shared.params.congestion.wants_state() || self.destination.beyond(named.psn) {
            let (base, bits) = self.destination.next_sack();
            packet.head.try_extend_from_slice(self.ack_cc(shared, ack, base, bits, named.at)?.bytes())?;
        } else {
            packet.head.try_extend_from_slice(ack.bytes())?;
        }
        packet.head.try_extend_from_slice(&response.head)?;
        packet.payload = response.payload;
        Ok(packet)
    }

    /// `PDS-GTD-002`: an ACK with a stored response requests a clear. `PDS-GTD-004`: an initiator requests nothing.
    /// `PDS-CLOSE-013`: a target that wants to close requests that.
    fn wish(&self, kept: bool) -> AckRequest {
        match self.role {
            Role::Initiator => AckRequest::NO_REQUEST,
            Role::Target if kept => AckRequest::REQ_CLEAR,
            Role::Target if self.asks_close() => AckRequest::REQ_CLOSE,
            Role::Target => AckRequest::NO_REQUEST,
        }
    }

    /// Cancels the delayed ACK that this ACK replaces.
    fn told(&mut self, shared: &mut Shared, named: Psn, kept: bool) {
        let cack = self.destination.cack();
        if self.destination.owed.is_some_and(|owed| owed.psn == named || !owed.psn.is_after(cack)) {
            self.destination.owed = None;
            shared.timers.cancel(&mut self.alarms.ack);
        }
        if kept {
            self.await_clear(shared);
        }
    }

    /// Builds an ACK_CC: bitmap, window and congestion state. `PDS-WIN-002`: the peer learns our window from it.
    fn ack_cc(
        &mut self,
        shared: &mut Shared,
        ack: Ack,
        base: Psn,
        bits: u64,
        at: Option<crate::Time>,
    ) -> Result<AckCc, Unbuildable> {
        let mpr = shared.params.announced_mpr;
        self.destination.permit(shared.params.mp_range(mpr));
        let cack = self.destination.cack();
        let source = CreditSource { address: self.peer, ccc_id: self.peer_ccc, class: self.class };
        let answered = Answered {
            arrived: at,
            out_of_order: Some(self.destination.out_of_order()),
            granted: shared.pacer.as_ref().map_or_else(Units24::default, |pacer| pacer.granted(&source)),
        };
        let state = self.destination.cc.state_for_ack(shared.now, answered, shared.penalty);
        let ack = AckCc::build()
            .ack(|a| a.copy_from(&ack).prologue(|p| p.kind(PdsType::ACK_CC)))
            .sack(|s| s.mpr(mpr).sack_psn_offset(base.offset_from(cack).unwrap_or(0)).sack_bitmap(bits));
        Ok(state.onto(ack).done()?)
    }

    /// `PDS-PRB-001`: the reply to a PROBE has p = 1, the opaque value of the PROBE, and a bitmap at or near the requested
    /// PSN.
    pub(super) fn answer_probe(&mut self, shared: &mut Shared, opaque: u16, wanted: Psn, entropy: u16) {
        let packet = self.probe_answer(shared, opaque, wanted, entropy);
        self.event(shared, EventKind::Acked(wanted, AckReason::Probe));
        shared.answer(packet);
    }

    fn probe_answer(
        &mut self,
        shared: &mut Shared,
        opaque: u16,
        wanted: Psn,
        entropy: u16,
    ) -> Result<Packet, Unbuildable> {
        let cack = self.destination.cack();
        let ack = Ack::build().p(true).probe_opaque(opaque).cack_psn(cack);
        let ack = ack.spdcid(PdcId(self.pdcid())).dpdcid(self.peer_id).done()?;
        let near = wanted.offset_from(cack).is_some_and(|offset| (-64..=32_000).contains(&offset));
        let base = if near { wanted } else { cack + 1 };
        let bits = self.destination.sack_from(base);
        let mut packet = shared.packet(self.to_peer(), self.class, Priority::High, entropy);
        let now = Some(shared.now);
        packet.head.try_extend_from_slice(self.ack_cc(shared, ack, base, bits, now)?.bytes())?;
        Ok(packet)
    }
}
