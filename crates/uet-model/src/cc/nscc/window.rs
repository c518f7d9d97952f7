//! Window updates on ACKs: receiver penalty, mark and delay.

use super::{Nscc, PenaltyReading};
use crate::Time;
use crate::cc::AckReport;
use core::time::Duration;

impl Nscc {
    /// Applies the receiver penalty (`CC-PENALTY-001`): the window loses rcv_cwnd_pend / 128 of the newly acknowledged
    /// bytes. A penalty of 64 halves it in a round trip, and 127 leaves one packet. After the penalty the window
    /// returns to its old size (`CC-PENALTY-002`).
    pub(super) fn receiver_penalty(&mut self, report: &AckReport, newly: u64, in_flight_before: i64) {
        if report.penalty == 0 {
            if report.restore {
                self.restore();
            }
            return;
        }
        let appeared = self.saved_cwnd.is_none();
        if appeared {
            self.saved_cwnd = Some(self.cwnd);
        }
        match self.params.penalty_reading {
            PenaltyReading::Intended if appeared => self.hold_to(in_flight_before),
            PenaltyReading::Intended => {}
            PenaltyReading::Literal => self.hold_to(self.inflight),
        }
        let penalty = (u128::from(report.penalty) * u128::from(newly)) >> 7;
        self.set_cwnd(self.cwnd - penalty as f64);
    }

    fn hold_to(&mut self, in_flight: i64) {
        self.set_cwnd(self.cwnd.min(in_flight as f64));
    }

    /// `CC-PENALTY-003`: restores a window once.
    fn restore(&mut self) {
        if let Some(saved) = self.saved_cwnd.take() {
            self.set_cwnd(saved);
        }
    }

    /// Moves the window by an ACK with a valid sample: one of four quadrants, then the updates that are due.
    pub(super) fn adjust(&mut self, now: Time, report: &AckReport, newly: u64, delay: Duration) {
        let penalized = report.penalty > 0;
        match (report.marked, delay < self.params.target_qdelay) {
            // A penalized window does not grow, apart from eta.
            (false, _) if penalized => {}
            (false, true) => self.proportional_increase(newly, delay),
            (false, false) => self.fair_increase(newly),
            // A queue is filling. A lasting queue shows in the delay (CC-QUAD-003).
            (true, true) => {}
            (true, false) => self.multiplicative_decrease(now),
        }
        let period_over = now - self.last_adjust_time >= self.params.adjust_period_threshold;
        if period_over || self.received_bytes > self.params.adjust_bytes_threshold {
            self.apply(now, period_over);
        }
    }

    /// No mark, little delay (`CC-QUAD-001`): grows faster far from the target.
    fn proportional_increase(&mut self, newly: u64, delay: Duration) {
        if !self.fast_increase(newly, delay) {
            let room = self.params.target_qdelay.saturating_sub(delay).as_secs_f64();
            self.inc_bytes += self.params.alpha * newly as f64 * room;
        }
    }

    /// Grows at once after a window of bytes without delay, because the network is empty. Returns whether it grew.
    fn fast_increase(&mut self, newly: u64, delay: Duration) -> bool {
        if delay >= self.params.delay_about_0 {
            self.end_fast_increase();
            return false;
        }
        self.fi_count = self.fi_count.saturating_add(newly);
        if self.fi_count as f64 > self.cwnd {
            self.increase_mode = true;
        }
        if self.increase_mode {
            self.set_cwnd(self.cwnd + newly as f64 * self.params.fi_scale);
        }
        self.increase_mode
    }

    fn end_fast_increase(&mut self) {
        self.fi_count = 0;
        self.increase_mode = false;
    }

    /// No mark, but delay (`CC-QUAD-002`): other sources may be growing too, so all grow by an equal amount.
    fn fair_increase(&mut self, newly: u64) {
        self.inc_bytes += self.params.fi * newly as f64;
    }

    /// Mark and delay (`CC-QUAD-004`): shrinks by the excess of the average delay over the target. Acts at most once
    /// per round trip, and at most halves the window.
    fn multiplicative_decrease(&mut self, now: Time) {
        self.end_fast_increase();
        let target = self.params.target_qdelay.as_secs_f64();
        if self.average_delay > target && now - self.last_dec_time > self.base_rtt {
            let excess = (self.average_delay - target) / self.average_delay;
            let left = (1.0 - self.params.gamma * excess).max(self.params.max_md_jump);
            self.set_cwnd(self.cwnd * left);
            self.last_dec_time = now;
        }
    }

    /// Adds the collected growth, spread over a window, and eta in each period, so that no window stays small
    /// (`CC-QUAD-005`).
    fn apply(&mut self, now: Time, period_over: bool) {
        let mut cwnd = self.cwnd + self.inc_bytes / self.cwnd;
        if period_over {
            cwnd += self.params.eta;
            self.last_adjust_time = now;
        }
        self.set_cwnd(cwnd);
        self.forget_gathered();
    }

    pub(super) fn forget_gathered(&mut self) {
        self.inc_bytes = 0.0;
        self.received_bytes = 0;
    }
}
