//! Retransmission by timeout, by go-back-N and by loss inference.

use super::event::{CloseReason, RetransmitCause};
use super::list::SlabKey;
use super::pdc::Pdc;
use super::pool::TxState;
use super::shared::Shared;
use super::timers::{Alarm, Timer, backed_off};
use crate::cc::NackReport;
use crate::{Failure, Mode, PdsParams};
use uet_wire::Psn;
use uet_wire::registry::{CtlType, NackCode};

/// `PDS-RTO-003`: the number of retransmissions is limited; 15 and 31 mean no limit.
pub(super) fn is_last(timeouts: u8, params: &PdsParams) -> bool {
    !matches!(params.max_rto_retx_cnt, 15 | 31) && timeouts >= params.max_rto_retx_cnt
}

/// `PDS-NACK-005`: the number of retransmissions after NACKs is limited, too. Open: 31 means no limit here.
pub(super) fn is_last_after(nacks: u8, params: &PdsParams) -> bool {
    params.max_nack_retx_cnt != 31 && nacks >= params.max_nack_retx_cnt
}

impl Pdc {
    /// `PDS-RTO-001`: retransmits a packet that was not answered in time. `PDS-RTO-004`: the context fails after the
    /// last attempt.
    pub(super) fn retransmission_timeout(&mut self, shared: &mut Shared, key: SlabKey) {
        let Some(out) = shared.pool.get_mut(key) else { return };
        out.alarm = Alarm::default();
        if is_last(out.timeouts, &shared.params) {
            return self.fail(shared, Failure::TimedOut, CloseReason::TimedOut);
        }
        out.timeouts = out.timeouts.saturating_add(1);
        let (psn, timeouts) = (out.psn, out.timeouts);
        match out.state {
            TxState::Sacked => {
                let wait = backed_off(shared.params.rto_init_time, timeouts);
                shared.timers.arm(&mut out.alarm, shared.now + wait, Timer::Retransmission(key, timeouts));
                self.request_ack(shared, psn);
            }
            TxState::InFlight => {
                self.declare_lost(shared, key, RetransmitCause::Timeout(timeouts), None);
                if self.mode == Mode::Rod {
                    self.go_back(shared, None);
                }
            }
            _ => {}
        }
    }

    /// `PDS-SACK-004`: a packet that has arrived is not retransmitted. Asks for its response.
    fn request_ack(&mut self, shared: &mut Shared, psn: Psn) {
        self.send_control(shared, CtlType::ACK_REQUEST, psn, 0);
    }

    /// Reports a loss to congestion control, or the NACK that caused it, and queues the retransmission.
    fn declare_lost(
        &mut self,
        shared: &mut Shared,
        key: SlabKey,
        why: RetransmitCause,
        code: Option<NackCode>,
    ) {
        let Some(out) = shared.pool.get(key) else { return };
        if out.state == TxState::InFlight && out.counted() {
            let (size, entropy) = (out.size, out.entropy);
            match (shared.cccs.get(self.ccc), code) {
                (Some(ccc), None) => ccc.lost(shared.now, size, entropy),
                (Some(ccc), Some(code)) => {
                    ccc.nack(
                        shared.now,
                        NackReport { code, size, sample: None, marked: false, entropy, no_pdc: false },
                    );
                }
                (None, _) => {}
            }
        }
        self.retransmit(shared, key, why);
    }

    /// `PDS-ROD-004`: go-back-N. The receiver keeps nothing above a gap, so all packets in flight are retransmitted in
    /// order.
    pub(super) fn go_back(&mut self, shared: &mut Shared, code: Option<NackCode>) {
        let flying: Vec<SlabKey> = self.source.in_flight().collect();
        // Packets already queued move to the end of the list too, which keeps the PSNs in order.
        for key in flying {
            match shared.pool.get(key).map(|out| out.state) {
                Some(TxState::InFlight) => self.declare_lost(shared, key, RetransmitCause::GoBack, code),
                Some(TxState::RetxQueued | TxState::RetxQueuedAfterSack) => {
                    shared.pool.unlink(&mut self.source.retx, key);
                    shared.pool.push(&mut self.source.retx, key);
                }
                Some(TxState::NackBackoff) => self.retransmit(shared, key, RetransmitCause::GoBack),
                _ => {}
            }
        }
    }

    /// `PDS-NACK-006`: ends the back-off after a NACK and retransmits the packet. `PDS-NACK-012`: its acknowledgment would
    /// have stopped the timer.
    pub(super) fn nack_backoff_over(&mut self, shared: &mut Shared, key: SlabKey) {
        let Some(out) = shared.pool.get_mut(key) else { return };
        out.alarm = Alarm::default();
        let code = out.refused;
        let why = code.map_or(RetransmitCause::GoBack, RetransmitCause::Nack);
        // `PDS-SACK-004`: the peer has the packet, and its SES is still busy with it.
        if out.state == TxState::Sacked {
            let (psn, wait) = (out.psn, backed_off(shared.params.rto_init_time, out.timeouts));
            shared.timers.arm(&mut out.alarm, shared.now + wait, Timer::Retransmission(key, out.timeouts));
            return self.request_ack(shared, psn);
        }
        if self.mode == Mode::Rod { self.go_back(shared, code) } else { self.retransmit(shared, key, why) }
    }

    /// Declares a packet lost once enough later ones have arrived, if the parameter enables that (RUD only).
    pub(super) fn infer_losses(&mut self, shared: &mut Shared) {
        let distance = shared.params.fast_loss_packets;
        if distance == 0 || self.mode != Mode::Rud {
            return;
        }
        while let Some(psn) = self.source.next_gap(distance) {
            let Some(key) = self.source.find(psn) else { continue };
            if shared.pool.get(key).is_some_and(|out| out.state == TxState::InFlight && out.sent == 1) {
                self.declare_lost(shared, key, RetransmitCause::Gap, None);
            }
        }
    }
}
