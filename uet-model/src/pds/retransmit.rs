//! Sending again: by timeout, by go back N, by inference.

use super::event::{Again, CloseReason};
use super::list::Key;
use super::pdc::Pdc;
use super::pool::Flight;
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
    pub(super) fn retransmission_timeout(&mut self, sh: &mut Shared, key: Key) {
        let Some(out) = sh.pool.get_mut(key) else { return };
        out.alarm = Alarm::default();
        if is_last(out.timeouts, &sh.params) {
            return self.fail(sh, Failure::TimedOut, CloseReason::TimedOut);
        }
        out.timeouts = out.timeouts.saturating_add(1);
        let (psn, timeouts) = (out.psn, out.timeouts);
        match out.state {
            Flight::Arrived => {
                let wait = backed_off(sh.params.rto_init_time, timeouts);
                sh.timers.arm(&mut out.alarm, sh.now + wait, Timer::Retransmission(key, timeouts));
                self.request_ack(sh, psn);
            }
            Flight::Flying => {
                self.take_for_lost(sh, key, Again::Timeout(timeouts), None);
                if self.mode == Mode::Rod {
                    self.go_back(sh, None);
                }
            }
            _ => {}
        }
    }

    /// `PDS-SACK-004`: what has arrived is not sent again: its answer is asked for.
    fn request_ack(&mut self, sh: &mut Shared, psn: Psn) {
        self.send_control(sh, CtlType::ACK_REQUEST, psn, 0);
    }

    /// Congestion control hears of it as of a loss, or where a NACK tells of it as of that.
    fn take_for_lost(&mut self, sh: &mut Shared, key: Key, why: Again, code: Option<NackCode>) {
        let Some(out) = sh.pool.get(key) else { return };
        if out.state == Flight::Flying && out.counted() {
            let (size, entropy) = (out.size, out.entropy);
            match (sh.cccs.get(self.ccc), code) {
                (Some(ccc), None) => ccc.lost(sh.now, size, entropy),
                (Some(ccc), Some(code)) => {
                    ccc.nack(
                        sh.now,
                        NackReport { code, size, sample: None, marked: false, entropy, no_pdc: false },
                    );
                }
                (None, _) => {}
            }
        }
        self.send_again(sh, key, why);
    }

    /// `PDS-ROD-004`: go back N. The receiver has kept nothing above what is missing, so all that flies is sent again, in order.
    pub(super) fn go_back(&mut self, sh: &mut Shared, code: Option<NackCode>) {
        let flying: Vec<Key> = self.source.in_flight().collect();
        // What waits already goes to the end of the list with the rest, so that the order of the PSNs is kept.
        for key in flying {
            match sh.pool.get(key).map(|out| out.state) {
                Some(Flight::Flying) => self.take_for_lost(sh, key, Again::GoBack, code),
                Some(Flight::Waiting | Flight::WaitingAnew) => {
                    sh.pool.unlink(&mut self.source.again, key);
                    sh.pool.push(&mut self.source.again, key);
                }
                Some(Flight::Resting) => self.send_again(sh, key, Again::GoBack),
                _ => {}
            }
        }
    }

    /// `PDS-NACK-006`: NACK_Retx_Time is over, and the packet is sent again. `PDS-NACK-012`: unless its answer has come, which
    /// would have disarmed the timer.
    pub(super) fn rest_is_over(&mut self, sh: &mut Shared, key: Key) {
        let Some(out) = sh.pool.get_mut(key) else { return };
        out.alarm = Alarm::default();
        let code = out.refused;
        let why = code.map_or(Again::GoBack, Again::Nack);
        // `PDS-SACK-004`: the other side has it, and SES there is still busy with it.
        if out.state == Flight::Arrived {
            let (psn, wait) = (out.psn, backed_off(sh.params.rto_init_time, out.timeouts));
            sh.timers.arm(&mut out.alarm, sh.now + wait, Timer::Retransmission(key, out.timeouts));
            return self.request_ack(sh, psn);
        }
        if self.mode == Mode::Rod { self.go_back(sh, code) } else { self.send_again(sh, key, why) }
    }

    /// A packet with so many arrived above it counts as lost: an option of RUD, off unless the parameter says so.
    pub(super) fn infer_losses(&mut self, sh: &mut Shared) {
        let distance = sh.params.fast_loss_packets;
        if distance == 0 || self.mode != Mode::Rud {
            return;
        }
        while let Some(psn) = self.source.next_gap(distance) {
            let Some(key) = self.source.find(psn) else { continue };
            if sh.pool.get(key).is_some_and(|out| out.state == Flight::Flying && out.sent == 1) {
                self.take_for_lost(sh, key, Again::Gap, None);
            }
        }
    }
}
