//! Building NACKs, and handling received ones. The files `open`, `arrive`, `close` and `control` decide which packets
//! get one.

use super::event::{CloseReason, Dropped, EventKind, RetransmitCause};
use super::pdc::Pdc;
use super::pool::TxState;
use super::protect::SecureContext;
use super::retransmit::is_last_after;
use super::shared::Shared;
use super::timers::Timer;
use crate::cc::{NackReport, rtt_sample};
use crate::packet::Unbuildable;
use crate::{Failure, Head, Indication, Mode, Packet, Priority};
use core::net::IpAddr;
use uet_wire::pds::Nack;
use uet_wire::registry::{NackClass, NackCode};
use uet_wire::{PdcId, Psn};

/// A NACK to send, with the fields that it copies from the refused packet.
#[derive(Clone, Copy)]
pub(super) struct NackReply {
    pub(super) to: IpAddr,
    pub(super) security: Option<SecureContext>,
    pub(super) class: u8,
    pub(super) entropy: u16,
    pub(super) code: NackCode,
    pub(super) psn: Psn,
    pub(super) retx: bool,
    pub(super) marked: bool,
    pub(super) spdcid: PdcId,
    pub(super) dpdcid: PdcId,
    pub(super) payload: u32,
}

/// The reaction of a source to a NACK, as the sources name it. Several names stand for one reaction of the model, which
/// decides the rest by the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NackAction {
    /// Retransmits the packet.
    Retransmit,
    /// Retransmits the packet that opens the context, because the target opened none.
    Retry,
    /// Retransmits the packet if its PSN is above the cumulative one.
    RetransmitAboveCack,
    /// Retransmits every packet from the missing PSN on.
    GoBackN,
    /// Renumbers all packets from the PSN in the payload, and sends them.
    RestartFromPayload,
    /// Waits for the ACK, and retransmits the packet if none arrives within the NACK wait.
    WaitForAck,
    /// Retransmits the original read.
    RetransmitRead,
    /// Closes the context and tries again on a new one.
    CloseAndRetry,
    /// Reports the error, and tries again on a new context.
    ReportAndRetry,
    /// Closes the context and does not try again.
    Close,
    /// Closes the context and fails the operation.
    CloseAndFail,
}

impl NackAction {
    /// Returns the reaction to a NACK code; `None` for a reserved code.
    pub const fn of(code: NackCode) -> Option<Self> {
        use NackAction::*;
        Some(match code {
            NackCode::TRIMMED | NackCode::TRIMMED_LASTHOP => Retransmit,
            NackCode::TRIMMED_ACK => RetransmitRead,
            NackCode::NO_PDC_AVAIL | NackCode::NO_CCC_AVAIL | NackCode::NO_BITMAP => Retry,
            NackCode::NO_PKT_BUFFER
            | NackCode::NO_GTD_DEL_AVAIL
            | NackCode::NO_SES_MSG_AVAIL
            | NackCode::NO_RESOURCE => Retransmit,
            NackCode::PSN_OOR_WINDOW => RetransmitAboveCack,
            NackCode::ROD_OOO => GoBackN,
            NackCode::INV_DPDCID | NackCode::PDC_HDR_MISMATCH => CloseAndRetry,
            NackCode::CLOSING => ReportAndRetry,
            NackCode::CLOSING_IN_ERR => Close,
            NackCode::PKT_NOT_RCVD => Retransmit,
            NackCode::GTD_RESP_UNAVAIL => CloseAndFail,
            NackCode::ACK_WITH_DATA => Retransmit,
            NackCode::INVALID_SYN | NackCode::PDC_MODE_MISMATCH => CloseAndRetry,
            NackCode::NEW_START_PSN => RestartFromPayload,
            NackCode::RCVD_SES_PROCG => WaitForAck,
            NackCode::UNEXP_EVENT => CloseAndRetry,
            NackCode::RCVR_INFER_LOSS => Retransmit,
            NackCode::EXP_NACK_NORMAL | NackCode::EXP_NACK_ERR => Retransmit,
            NackCode::EXP_NACK_FATAL => Close,
            _ => return None,
        })
    }
}

impl NackReply {
    /// Returns a NACK that does not refer to a received packet.
    pub(super) fn of(pdc: &Pdc, psn: Psn, code: NackCode) -> Self {
        NackReply {
            to: pdc.peer,
            security: pdc.security,
            class: pdc.class,
            entropy: pdc.entropy,
            code,
            psn,
            retx: false,
            marked: false,
            spdcid: PdcId(pdc.pdcid()),
            dpdcid: pdc.peer_id,
            payload: 0,
        }
    }

    /// Sends the NACK. `PDS-NACK-001`: `retx` and `m` are copied from the refused packet.
    pub(super) fn send(self, shared: &mut Shared) {
        let nack = Nack::build(self.code).m(self.marked).retx(self.retx).nack_psn(self.psn);
        let nack = nack.spdcid(self.spdcid).dpdcid(self.dpdcid).payload(self.payload);
        let packet = shared.packet((self.to, self.security), self.class, Priority::High, self.entropy);
        let head = nack.done().map(|nack| Head::from_iter(*nack.bytes()));
        shared.answer(head.map(|head| Packet { head, ..packet }).map_err(Unbuildable::from));
    }
}

impl Pdc {
    /// Sends a NACK from this context.
    pub(super) fn refuse(&mut self, shared: &mut Shared, reply: NackReply) {
        self.event(shared, EventKind::Nacked(reply.psn, reply.code));
        reply.send(shared);
    }

    /// Handles a received NACK.
    pub(super) fn nacked(&mut self, shared: &mut Shared, nack: &Nack) {
        let code = nack.nack_code();
        let psn = nack.nack_psn().unwrap_or_default();
        // `PDS-NACK-002`: a NACK of a packet that is not outstanding changes nothing.
        if !self.source.is_outstanding(psn) {
            return shared.drop_packet(Dropped::NackNotInFlight);
        }
        let Some(action) = NackAction::of(code) else {
            return shared.drop_packet(Dropped::UnknownNack);
        };
        self.event(shared, EventKind::Refused(psn, code));
        let failure = Failure::Ended(code.code());
        match action {
            // `PDS-NACK-003`: the peer has no such context, or ended it. SES learns the code and decides whether to try
            // again: PDS must not deliver a packet twice.
            NackAction::CloseAndRetry | NackAction::ReportAndRetry => {
                self.fail(shared, failure, CloseReason::Refused(code));
            }
            // `PDS-NACK-013`, `PDS-NACK-014`: the operation cannot be retried.
            NackAction::Close | NackAction::CloseAndFail => {
                self.fail(shared, failure, CloseReason::Refused(code));
            }
            // `PDS-NACK-009`
            NackAction::RestartFromPayload => self.restart(shared, Psn(nack.payload()), code),
            // `PDS-NACK-004`: retransmit the packet. The code decides which one and when.
            NackAction::Retransmit
            | NackAction::Retry
            | NackAction::RetransmitAboveCack
            | NackAction::GoBackN
            | NackAction::WaitForAck
            | NackAction::RetransmitRead => self.packet_refused(shared, psn, nack),
        }
    }

    fn packet_refused(&mut self, shared: &mut Shared, psn: Psn, nack: &Nack) {
        let code = nack.nack_code();
        // On an ordered context, the first missing packet by our own record counts.
        let psn = if code == NackCode::ROD_OOO { self.source.clear() + 1 } else { psn };
        let Some(key) = self.source.find(psn) else { return };
        let Some(out) = shared.pool.get_mut(key) else { return };
        if !matches!(out.state, TxState::InFlight | TxState::Sacked) {
            return;
        }
        // `PDS-NACK-005`: the number of retransmissions is limited. If the peer's SES is busy, the timer decides.
        if is_last_after(out.nacks, &shared.params) {
            if code == NackCode::RCVD_SES_PROCG {
                return;
            }
            let failure = Failure::Refused(code.code());
            return self.fail(shared, failure, CloseReason::Refused(code));
        }
        out.nacks = out.nacks.saturating_add(1);
        out.refused = Some(code);
        let sample = rtt_sample(shared.now, out.record(), nack.retx(), None);
        let (state, size, entropy) = (out.state, out.size, out.entropy);
        if state == TxState::InFlight && out.counted() {
            let no_pdc = !nack.spdcid().is_valid();
            let report = NackReport { code, size, sample, marked: nack.m(), entropy, no_pdc };
            if let Some(ccc) = shared.cccs.get(self.ccc) {
                ccc.nack(shared.now, report);
            }
        }
        if at_once(code) {
            return match self.mode {
                Mode::Rod => self.go_back_from(shared, key, code),
                _ => self.retransmit(shared, key, RetransmitCause::Nack(code)),
            };
        }
        // `PDS-NACK-006`: wait for NACK_Retx_Time.
        let Some(out) = shared.pool.get_mut(key) else { return };
        if state == TxState::InFlight {
            out.state = TxState::NackBackoff;
        }
        let at = shared.now + shared.params.nack_retx_time;
        shared.timers.arm(&mut out.alarm, at, Timer::AfterNack(key));
    }

    fn go_back_from(&mut self, shared: &mut Shared, key: super::list::SlabKey, code: NackCode) {
        // Congestion control already counts the packet as not in flight.
        if let Some(out) = shared.pool.get_mut(key).filter(|out| out.state == TxState::InFlight) {
            out.state = TxState::NackBackoff;
        }
        self.retransmit(shared, key, RetransmitCause::Nack(code));
        self.go_back(shared, Some(code));
    }

    /// `PDS-NACK-009`: a secured target requires another Start_PSN. Renumbers and sends all packets. Each keeps its
    /// offset.
    fn restart(&mut self, shared: &mut Shared, start: Psn, code: NackCode) {
        if self.established || self.source.start() == start {
            return;
        }
        let old = self.source.start();
        let keys: Vec<_> = self.source.in_flight().collect();
        let is_last = |key| shared.pool.get(key).is_some_and(|out| is_last_after(out.nacks, &shared.params));
        let exhausted = keys.iter().any(|key| is_last(*key));
        if exhausted {
            return self.fail(shared, Failure::Refused(code.code()), CloseReason::Refused(code));
        }
        self.source.renumber(start);
        self.destination = super::destination::PdcDestination::new(start, &shared.params);
        self.event(shared, EventKind::Renumbered(start));
        for key in keys {
            let Some(out) = shared.pool.get_mut(key) else { continue };
            out.nacks = out.nacks.saturating_add(1);
            let psn = start + (out.psn - old);
            out.psn = psn;
            if let Some(message) = out.message() {
                shared.indications.push_back(Indication::Numbered { message, pdc: self.handle, psn });
            }
            let (state, size, entropy, counted) = (out.state, out.size, out.entropy, out.counted());
            if state == TxState::InFlight && counted {
                let report = NackReport { code, size, sample: None, marked: false, entropy, no_pdc: false };
                if let Some(ccc) = shared.cccs.get(self.ccc) {
                    ccc.nack(shared.now, report);
                }
            }
            // Packets already queued move to the end of the list too, which keeps the PSNs in order.
            if matches!(state, TxState::RetxQueued | TxState::RetxQueuedAfterSack) {
                shared.pool.unlink(&mut self.source.retx, key);
                shared.pool.push(&mut self.source.retx, key);
            }
            self.retransmit(shared, key, RetransmitCause::Renumbered);
            // Under its new number, the packet has never been sent: it is no retransmission.
            if let Some(out) = shared.pool.get_mut(key) {
                (out.sent, out.timeouts) = (0, 0);
            }
        }
    }
}

/// `PDS-NACK-007`: a trimmed packet is retransmitted immediately. `PDS-NACK-015`: so is one that an ACK_REQUEST found
/// missing, and one whose data is missing.
pub(super) fn at_once(code: NackCode) -> bool {
    let trimmed = matches!(code, NackCode::TRIMMED | NackCode::TRIMMED_LASTHOP);
    trimmed || code.class() == Some(NackClass::PdcError)
}
