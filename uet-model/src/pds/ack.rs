//! Acknowledging: when an ACK leaves, and what it says (section 3.5.12.2).

use super::destination::{Flags, Slot, SlotState};
use super::event::{AckReason, Duplicate, EventKind, Role};
use super::pdc::Pdc;
use super::shared::Shared;
use super::timers::{Alarm, Timer};
use crate::cc::{Answered, CreditSource};
use crate::{Delivery, Head, Mode, PdsParams, Priority, TxResponse};
use bytes::Bytes;
use uet_wire::pds::{Ack, AckCc};
use uet_wire::registry::{AckRequest, NextHdr, PdsType, ResponseOpcode, ReturnCode};
use uet_wire::ses::Response;
use uet_wire::{PdcId, Psn, Units24};

/// Why a packet is to be acknowledged at once, as far as it says so itself.
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

/// Why its response has to leave at once; `None` when it may wait.
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

/// `PDS-ACK-013`: what PDS answers by itself has list 0 and no ids, and stands for the whole length. Whoever did not need a
/// guaranteed response had none but success.
pub(super) fn default_response() -> TxResponse {
    let response = Response::build(ResponseOpcode::UET_DEFAULT_RESPONSE, ReturnCode::OK);
    TxResponse {
        delivery: Delivery::Default,
        next_hdr: NextHdr::UET_HDR_RESPONSE,
        head: response.current_unchecked().bytes().iter().copied().collect(),
        payload: Bytes::new(),
    }
}

/// `PDS-ACK-014`: an ACK that answers only a control packet carries nothing.
fn no_response() -> TxResponse {
    let next_hdr = NextHdr::UET_HDR_NONE;
    TxResponse { delivery: Delivery::Default, next_hdr, head: Head::new(), payload: Bytes::new() }
}

/// The packet that an ACK answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) psn: Psn,
    pub(super) retx: bool,
    pub(super) marked: bool,
    pub(super) entropy: u16,
    pub(super) at: Option<crate::Time>,
}

impl Named {
    fn of(psn: Psn, slot: &Slot) -> Self {
        let Flags { retx, marked, .. } = slot.flags;
        Named { psn, retx, marked, entropy: slot.entropy, at: Some(slot.at) }
    }
}

impl Pdc {
    /// A control packet, which needs no response of the upper layer, is answered.
    pub(super) fn answer_control(&mut self, sh: &mut Shared, psn: Psn) {
        self.answer(sh, psn, no_response());
    }

    /// The response to a request has come from the upper layer. `PDS-ROD-003`: on an ordered context responses leave in the
    /// order of the requests.
    pub(super) fn respond(&mut self, sh: &mut Shared, psn: Psn, response: TxResponse) {
        match self.destination.slot(psn).map(|slot| slot.state) {
            Some(SlotState::Delivered) => sh.delivered = sh.delivered.saturating_sub(1),
            _ => return self.event(sh, EventKind::ResponseUnwanted(psn)),
        }
        self.answer(sh, psn, response);
    }

    fn answer(&mut self, sh: &mut Shared, psn: Psn, response: TxResponse) {
        if self.mode != Mode::Rod {
            return self.settle_answer(sh, psn, response);
        }
        // The answer to a duplicate, which is below its turn, waits for no other.
        if psn.is_after(self.destination.turn) {
            let key = sh.store.insert(response) as u32;
            if let Some(slot) = self.destination.slot_mut(psn) {
                slot.state = SlotState::Ready(key);
            }
            return;
        }
        self.settle_answer(sh, psn, response);
        if psn != self.destination.turn {
            return;
        }
        self.destination.turn = psn + 1;
        while let Some(SlotState::Ready(key)) =
            self.destination.slot(self.destination.turn).map(|slot| slot.state)
        {
            let turn = self.destination.turn;
            let Some(response) = sh.store.try_remove(key as usize) else { return };
            self.settle_answer(sh, turn, response);
            self.destination.turn = turn + 1;
        }
    }

    /// Keeps the response where it has to be kept, moves CACK_PSN, and sends the ACK or lets it wait.
    fn settle_answer(&mut self, sh: &mut Shared, psn: Psn, response: TxResponse) {
        let Some(slot) = self.destination.slot(psn).copied() else { return };
        let named = Named::of(psn, &slot);
        let state = self.keep(sh, psn, &response);
        if let Some(slot) = self.destination.slot_mut(psn) {
            slot.state = state;
        }
        self.advance(sh);
        if let Some(why) = slot.flags.at_once.or_else(|| reason_of_response(&response)) {
            return self.acknowledge(sh, named, response, why);
        }
        // `PDS-ACK-010`
        self.destination.ack_bytes += u32::from(slot.length).max(sh.params.ack_gen_min_pkt_add);
        if self.destination.ack_bytes >= sh.params.ack_gen_trigger {
            self.destination.ack_bytes = 0;
            return self.acknowledge(sh, named, response, AckReason::Bytes);
        }
        if self.destination.owed.is_none_or(|owed| psn.is_after(owed.psn)) {
            (self.destination.owed, self.destination.owed_is_control) = (Some(named), slot.flags.control);
        }
        // `PDS-ACK-011`
        if !self.alarms.ack.is_armed() {
            let at = sh.now + sh.params.ack_delay;
            sh.timers.arm(&mut self.alarms.ack, at, Timer::AckDelay(self.handle.pdcid));
        }
    }

    /// `PDS-GTD-001`: a response that must arrive is kept until it is cleared. `PDS-GTD-003`: not where the request may come again.
    fn keep(&mut self, sh: &mut Shared, psn: Psn, response: &TxResponse) -> SlotState {
        let cleared = self.destination.is_cleared(psn);
        match response.delivery {
            Delivery::Guaranteed if !cleared => {
                self.event(sh, EventKind::Stored(psn));
                SlotState::Stored(sh.store.insert(response.clone()) as u32)
            }
            Delivery::GuaranteedByRepetition if !cleared => SlotState::Repeatable,
            _ => SlotState::Answered,
        }
    }

    /// CACK_PSN moves as far as it may.
    pub(super) fn advance(&mut self, sh: &mut Shared) {
        if self.destination.advance() {
            let cack = self.destination.cack();
            self.event(sh, EventKind::CackMoved(cack));
        }
    }

    /// `PDS-ACK-012`: the delay is over: one ACK for whatever has been answered meanwhile.
    pub(super) fn ack_delay_over(&mut self, sh: &mut Shared) {
        self.alarms.ack = Alarm::default();
        let Some(named) = self.destination.owed else { return };
        // Its slot has gone, if CACK_PSN is there.
        let response = if self.destination.owed_is_control { no_response() } else { default_response() };
        self.acknowledge(sh, named, response, AckReason::Delay);
    }

    fn default_for(&self, psn: Psn) -> TxResponse {
        match self.destination.slot(psn) {
            Some(slot) if slot.flags.control => no_response(),
            _ => default_response(),
        }
    }

    /// What is still known of the packet of this PSN; what is not is left blank.
    fn name(&self, psn: Psn) -> Named {
        match self.destination.slot(psn) {
            Some(slot) if slot.state != SlotState::Missing => Named::of(psn, slot),
            _ => Named { psn, retx: false, marked: false, entropy: self.entropy, at: None },
        }
    }

    /// A packet that was received before came again. `PDS-DUP-001`: it is never delivered twice.
    pub(super) fn duplicate(&mut self, sh: &mut Shared, again: Named) -> Duplicate {
        let psn = again.psn;
        // `PDS-DUP-003`: a copy that the network made may be ignored.
        if !again.retx && !sh.params.ack_unmarked_duplicates {
            return Duplicate::Ignored;
        }
        match self.destination.slot(psn).map(|slot| slot.state) {
            Some(SlotState::Delivered | SlotState::Ready(_)) => Duplicate::InProgress,
            Some(SlotState::Repeatable) => Duplicate::Repeated,
            // `PDS-DUP-002`: the stored response where there is one, else the default.
            Some(SlotState::Stored(key)) => {
                if let Some(response) = sh.store.get(key as usize).cloned() {
                    self.acknowledge(sh, again, response, AckReason::Duplicate);
                }
                Duplicate::AnsweredAgain
            }
            _ => {
                let response = self.default_for(psn);
                self.acknowledge(sh, again, response, AckReason::Duplicate);
                Duplicate::AckedAgain
            }
        }
    }

    /// Sends an ACK of a packet that has its answer, for one who asks: the stored response, or the default one.
    pub(super) fn acknowledge_asked(&mut self, sh: &mut Shared, psn: Psn) {
        let named = self.name(psn);
        let response = match self.destination.slot(psn).map(|slot| slot.state) {
            Some(SlotState::Stored(key)) => sh.store.get(key as usize).cloned(),
            _ => None,
        };
        let response = response.unwrap_or_else(|| self.default_for(psn));
        self.acknowledge(sh, named, response, AckReason::Asked);
    }

    /// Acknowledges CLOSE_COMMAND once more.
    pub(super) fn acknowledge_close(&mut self, sh: &mut Shared, psn: Psn) {
        let named = Named { retx: true, ..self.name(psn) };
        self.acknowledge(sh, named, no_response(), AckReason::Duplicate);
    }

    /// Sends an ACK that names a packet and carries its response. `PDS-ACK-002`: `m` and `retx` are those of that packet.
    pub(super) fn acknowledge(
        &mut self,
        sh: &mut Shared,
        named: Named,
        response: TxResponse,
        why: AckReason,
    ) {
        let cack = self.destination.cack();
        let kept = matches!(response.delivery, Delivery::Guaranteed | Delivery::GuaranteedByRepetition);
        let ack = Ack::build().prologue(|p| p.next_hdr(response.next_hdr));
        let ack = ack.m(named.marked).retx(named.retx).req(self.wish(kept));
        let ack = ack.ack_psn_offset(named.psn.offset_from(cack).unwrap_or(0)).cack_psn(cack);
        let ack = ack.spdcid(PdcId(self.pdcid())).dpdcid(self.peer_id).current_unchecked().copied();
        let mut packet = sh.packet(self.peer, self.class, Priority::High, named.entropy);
        // `PDS-ACK-015`: an ACK without more to say is short.
        if sh.params.congestion.wants_state() || self.destination.beyond(named.psn) {
            let (base, bits) = self.destination.next_sack();
            let _ = packet.head.try_extend_from_slice(&self.ack_cc(sh, ack, base, bits, named.at));
        } else {
            let _ = packet.head.try_extend_from_slice(ack.bytes());
        }
        let _ = packet.head.try_extend_from_slice(&response.head);
        packet.payload = response.payload;
        self.event(sh, EventKind::Acked(named.psn, why));
        sh.answer(packet);
        self.told(sh, named.psn, kept);
    }

    /// `PDS-GTD-002`: an ACK whose response waits for being cleared says so. `PDS-GTD-004`: not one of an initiator. `PDS-CLOSE-013`: a
    /// target that wants to be closed says that.
    fn wish(&self, kept: bool) -> AckRequest {
        match self.role {
            Role::Initiator => AckRequest::NO_REQUEST,
            Role::Target if kept => AckRequest::REQ_CLEAR,
            Role::Target if self.asks_close() => AckRequest::REQ_CLOSE,
            Role::Target => AckRequest::NO_REQUEST,
        }
    }

    /// What an ACK has told need not be told again.
    fn told(&mut self, sh: &mut Shared, named: Psn, kept: bool) {
        let cack = self.destination.cack();
        if self.destination.owed.is_some_and(|owed| owed.psn == named || !owed.psn.is_after(cack)) {
            self.destination.owed = None;
            sh.timers.cancel(&mut self.alarms.ack);
        }
        if kept {
            self.await_clear(sh);
        }
    }

    /// An ACK_CC: bitmap, window and congestion state. `PDS-WIN-002`: from here on the peer knows our range.
    fn ack_cc(
        &mut self,
        sh: &mut Shared,
        ack: Ack,
        base: Psn,
        bits: u64,
        at: Option<crate::Time>,
    ) -> [u8; 32] {
        let mpr = sh.params.announced_mpr;
        self.destination.permit(super::destination::mp_range(mpr));
        let cack = self.destination.cack();
        let source = CreditSource { address: self.peer, ccc_id: self.peer_ccc, class: self.class };
        let answered = Answered {
            arrived: at,
            out_of_order: Some(self.destination.out_of_order()),
            granted: sh.pacer.as_ref().map_or_else(Units24::default, |pacer| pacer.granted(&source)),
        };
        let state = self.destination.cc.state_for_ack(sh.now, answered, sh.penalty);
        let ack = AckCc::build()
            .ack(|a| a.copy_from(&ack).prologue(|p| p.kind(PdsType::ACK_CC)))
            .sack(|s| s.mpr(mpr).sack_psn_offset(base.offset_from(cack).unwrap_or(0)).sack_bitmap(bits));
        let ack = state.onto(ack);
        *ack.current_unchecked().bytes()
    }

    /// `PDS-PRB-001`: the answer to a PROBE has p = 1, its opaque value, and a bitmap at or near the PSN asked for.
    pub(super) fn answer_probe(&mut self, sh: &mut Shared, opaque: u16, wanted: Psn, entropy: u16) {
        let cack = self.destination.cack();
        let ack = Ack::build().p(true).probe_opaque(opaque).cack_psn(cack);
        let ack = ack.spdcid(PdcId(self.pdcid())).dpdcid(self.peer_id).current_unchecked().copied();
        let near = wanted.offset_from(cack).is_some_and(|offset| (-64..=32_000).contains(&offset));
        let base = if near { wanted } else { cack + 1 };
        let bits = self.destination.sack_from(base);
        let mut packet = sh.packet(self.peer, self.class, Priority::High, entropy);
        let _ = packet.head.try_extend_from_slice(&self.ack_cc(sh, ack, base, bits, Some(sh.now)));
        self.event(sh, EventKind::Acked(wanted, AckReason::Probe));
        sh.answer(packet);
    }
}
