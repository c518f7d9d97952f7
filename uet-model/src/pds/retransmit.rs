//! Sending again: by timeout, by go back N, by inference.

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

/// `PDS-RTO-003`: how often a packet is sent again; 15 and 31 mean without end.
pub(super) fn is_last(timeouts: u8, params: &PdsParams) -> bool {
    !matches!(params.max_rto_retx_cnt, 15 | 31) && timeouts >= params.max_rto_retx_cnt
}

impl Pdc {
    /// `PDS-RTO-001`: a packet that is not answered in time is sent again. `PDS-RTO-004`: not for ever.
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

    /// `PDS-SACK-004`: what has arrived is not sent again: its answer is asked for.
    fn request_ack(&mut self, shared: &mut Shared, psn: Psn) {
        self.send_control(shared, CtlType::ACK_REQUEST, psn, 0);
    }

    /// Congestion control hears of it as of a loss, or where a NACK tells of it as of that.
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

    /// `PDS-ROD-004`: go back N. The receiver has kept nothing above what is missing, so all that flies is sent again, in order.
    pub(super) fn go_back(&mut self, shared: &mut Shared, code: Option<NackCode>) {
        let flying: Vec<SlabKey> = self.source.in_flight().collect();
        // What waits already goes to the end of the list with the rest, so that the order of the PSNs is kept.
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

    /// `PDS-NACK-006`: NACK_Retx_Time is over, and the packet is sent again. `PDS-NACK-012`: unless its answer has come, which
    /// would have disarmed the timer.
    pub(super) fn nack_backoff_over(&mut self, shared: &mut Shared, key: SlabKey) {
        let Some(out) = shared.pool.get_mut(key) else { return };
        out.alarm = Alarm::default();
        let code = out.refused;
        let why = code.map_or(RetransmitCause::GoBack, RetransmitCause::Nack);
        // `PDS-SACK-004`: the other side has it, and SES there is still busy with it.
        if out.state == TxState::Sacked {
            let (psn, wait) = (out.psn, backed_off(shared.params.rto_init_time, out.timeouts));
            shared.timers.arm(&mut out.alarm, shared.now + wait, Timer::Retransmission(key, out.timeouts));
            return self.request_ack(shared, psn);
        }
        if self.mode == Mode::Rod { self.go_back(shared, code) } else { self.retransmit(shared, key, why) }
    }

    /// A packet with so many arrived above it counts as lost: an option of RUD, off unless the parameter says so.
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
