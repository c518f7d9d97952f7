//! Refusing, and being refused.

use super::event::{Again, CloseReason, Dropped, EventKind};
use super::pdc::Pdc;
use super::pool::Flight;
use super::shared::Shared;
use super::timers::Timer;
use crate::cc::{NackReport, rtt_sample};
use crate::{Failure, Indication, Mode, Priority};
use core::net::IpAddr;
use uet_wire::pds::Nack;
use uet_wire::registry::{NackAction, NackClass, NackCode};
use uet_wire::{PdcId, Psn};

/// A NACK that is to leave, and whatever it takes from the packet that it answers.
#[derive(Clone, Copy)]
pub(super) struct Refusal {
    pub(super) to: IpAddr,
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

impl Refusal {
    /// A refusal by a context that is not the answer to a packet at hand.
    pub(super) fn of(pdc: &Pdc, psn: Psn, code: NackCode) -> Self {
        Refusal {
            to: pdc.peer,
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

    /// The NACK. `PDS-NACK-001`: `retx` and `m` are those of the packet that is refused.
    pub(super) fn send(self, sh: &mut Shared) {
        let nack = Nack::build(self.code).m(self.marked).retx(self.retx).nack_psn(self.psn);
        let nack = nack.spdcid(self.spdcid).dpdcid(self.dpdcid).payload(self.payload);
        let mut packet = sh.packet(self.to, self.class, Priority::High, self.entropy);
        let _ = packet.head.try_extend_from_slice(nack.current_unchecked().bytes());
        sh.answer(packet);
    }
}

impl Pdc {
    /// A refusal by this context.
    pub(super) fn refuse(&mut self, sh: &mut Shared, refusal: Refusal) {
        self.event(sh, EventKind::Nacked(refusal.psn, refusal.code));
        refusal.send(sh);
    }

    /// A NACK came in.
    pub(super) fn nacked(&mut self, sh: &mut Shared, nack: &Nack) {
        let code = nack.nack_code();
        let psn = nack.nack_psn().unwrap_or_default();
        // `PDS-NACK-002`: it changes nothing when it refuses what is not outstanding.
        if !self.source.is_outstanding(psn) {
            return sh.drop_packet(Dropped::NackNotInFlight);
        }
        let Some((_, action)) = code.treatment() else {
            return sh.drop_packet(Dropped::UnknownNack);
        };
        self.event(sh, EventKind::Refused(psn, code));
        let failure = Failure::Ended(code.code());
        match action {
            // `PDS-NACK-003`: the other side has no such context, or ends it. SES learns the code, and whether to try again
            // on a new one: a packet that may have been delivered is not sent twice behind its back.
            NackAction::CloseAndRetry | NackAction::ReportAndRetry => {
                self.fail(sh, failure, CloseReason::Refused(code));
            }
            // `PDS-NACK-013`, `PDS-NACK-014`: and where there is nothing to try again.
            NackAction::Close | NackAction::CloseAndFail => {
                self.fail(sh, failure, CloseReason::Refused(code));
            }
            // `PDS-NACK-009`
            NackAction::RestartFromPayload => self.restart(sh, Psn(nack.payload()), code),
            // `PDS-NACK-004`: the packet is sent again.
            NackAction::Retransmit
            | NackAction::Retry
            | NackAction::RetransmitAboveCack
            | NackAction::GoBackN
            | NackAction::WaitForAck
            | NackAction::RetransmitRead => self.packet_refused(sh, psn, nack),
        }
    }

    fn packet_refused(&mut self, sh: &mut Shared, psn: Psn, nack: &Nack) {
        let code = nack.nack_code();
        // On an ordered context it is the first missing packet that counts, by our own knowledge.
        let psn = if code == NackCode::ROD_OOO { self.source.clear() + 1 } else { psn };
        let Some(key) = self.source.find(psn) else { return };
        let Some(out) = sh.pool.get_mut(key) else { return };
        if !matches!(out.state, Flight::Flying | Flight::Arrived) {
            return;
        }
        // `PDS-NACK-005`: not for ever. What the upper layer of the other side is busy with is left to the timer.
        if out.nacks >= sh.params.max_nack_retx_cnt {
            if code == NackCode::RCVD_SES_PROCG {
                return;
            }
            let failure = Failure::Refused(code.code());
            return self.fail(sh, failure, CloseReason::Refused(code));
        }
        out.nacks += 1;
        out.refused = Some(code);
        let sample = rtt_sample(sh.now, out.record(), nack.retx(), None);
        let (state, size, entropy) = (out.state, out.size, out.entropy);
        if state == Flight::Flying && out.counted() {
            let no_pdc = !nack.spdcid().is_valid();
            let report = NackReport { code, size, sample, marked: nack.m(), entropy, no_pdc };
            if let Some(ccc) = sh.cccs.get(self.ccc) {
                ccc.nack(sh.now, report);
            }
        }
        if at_once(code) {
            return match self.mode {
                Mode::Rod => self.go_back_from(sh, key, code),
                _ => self.send_again(sh, key, Again::Nack(code)),
            };
        }
        // `PDS-NACK-006`: after NACK_Retx_Time.
        let Some(out) = sh.pool.get_mut(key) else { return };
        if state == Flight::Flying {
            out.state = Flight::Resting;
        }
        let at = sh.now + sh.params.nack_retx_time;
        sh.timers.arm(&mut out.alarm, at, Timer::AfterNack(key));
    }

    fn go_back_from(&mut self, sh: &mut Shared, key: super::list::Key, code: NackCode) {
        // That it does not fly any more has been told to congestion control.
        if let Some(out) = sh.pool.get_mut(key).filter(|out| out.state == Flight::Flying) {
            out.state = Flight::Resting;
        }
        self.send_again(sh, key, Again::Nack(code));
        self.go_back(sh, Some(code));
    }

    /// `PDS-NACK-009`: a secured target wants another Start_PSN. All packets are numbered anew and sent; each keeps its offset.
    fn restart(&mut self, sh: &mut Shared, start: Psn, code: NackCode) {
        if self.established || self.source.start() == start {
            return;
        }
        let old = self.source.start();
        let keys: Vec<_> = self.source.in_flight().collect();
        let exhausted = keys
            .iter()
            .any(|key| sh.pool.get(*key).is_some_and(|out| out.nacks >= sh.params.max_nack_retx_cnt));
        if exhausted {
            return self.fail(sh, Failure::Refused(code.code()), CloseReason::Refused(code));
        }
        self.source.renumber(start);
        self.destination = super::destination::Destination::new(start, &sh.params);
        self.event(sh, EventKind::Renumbered(start));
        for key in keys {
            let Some(out) = sh.pool.get_mut(key) else { continue };
            out.nacks += 1;
            let psn = start + (out.psn - old);
            out.psn = psn;
            if let Some(message) = out.message() {
                sh.indications.push_back(Indication::Numbered { message, pdc: self.handle, psn });
            }
            let (state, size, entropy, counted) = (out.state, out.size, out.entropy, out.counted());
            if state == Flight::Flying && counted {
                let report = NackReport { code, size, sample: None, marked: false, entropy, no_pdc: false };
                if let Some(ccc) = sh.cccs.get(self.ccc) {
                    ccc.nack(sh.now, report);
                }
            }
            self.send_again(sh, key, Again::Renumbered);
        }
    }
}

/// `PDS-NACK-007`: a trimmed packet need not wait. `PDS-NACK-015`: nor what an ACK_REQUEST has found missing, or its data.
pub(super) fn at_once(code: NackCode) -> bool {
    let trimmed = matches!(code, NackCode::TRIMMED | NackCode::TRIMMED_LASTHOP);
    trimmed || matches!(code.treatment(), Some((NackClass::PdcError, _)))
}
