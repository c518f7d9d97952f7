//! Quick adapt: shrinks the window to the achieved bytes if losses show that much less arrives than the window permits.

use super::Nscc;
use crate::Time;
use core::time::Duration;

/// The state of quick adapt.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(super) struct QuickAdapt {
    /// True if a trim was seen.
    triggered: bool,
    /// The end of the round trip over which `achieved_bytes` counts; `None` before the first.
    endtime: Option<Time>,
    achieved_bytes: u64,
    /// The bytes in flight when quick adapt last acted, and how many of them have since been counted. Their signals are
    /// stale.
    bytes_to_ignore: u64,
    bytes_ignored: u64,
}

/// The signals for quick adapt.
#[derive(Clone, Copy, Debug)]
pub(super) enum Signal {
    /// An ACK with a valid sample.
    Ack { marked: bool, delay: Duration },
    /// A packet was trimmed.
    Loss,
}

impl QuickAdapt {
    /// Counts bytes that arrived.
    pub(super) fn received(&mut self, bytes: u64) {
        self.ignore(bytes);
        self.achieved_bytes = self.achieved_bytes.saturating_add(bytes);
    }

    /// Counts bytes that left the flight.
    pub(super) fn ignore(&mut self, bytes: u64) {
        self.bytes_ignored = self.bytes_ignored.saturating_add(bytes);
    }

    /// Records a trimmed packet.
    pub(super) fn trigger(&mut self) {
        self.triggered = true;
    }
}

impl Nscc {
    /// Returns whether quick adapt set the window, or the signal belongs to packets in flight when it did (`CC-TRIM-002`).
    /// Nothing else moves the window then.
    pub(super) fn quick_adapt(&mut self, now: Time, signal: Signal) -> bool {
        if !self.params.quick_adapt {
            return false;
        }
        let took_over = self.ignores(signal) || self.adapts(now, signal);
        if took_over {
            self.forget_gathered();
        }
        took_over
    }

    /// Returns whether a signal belongs to packets in flight when quick adapt acted.
    fn ignores(&self, signal: Signal) -> bool {
        let congested = matches!(signal, Signal::Loss | Signal::Ack { marked: true, .. });
        congested && self.quick_adapt.bytes_ignored < self.quick_adapt.bytes_to_ignore
    }

    /// At the end of each round trip and queuing delay, sets the window to the achieved bytes if packets were lost and
    /// little was achieved.
    fn adapts(&mut self, now: Time, signal: Signal) -> bool {
        let state = &self.quick_adapt;
        if state.endtime.is_some_and(|endtime| now < endtime) {
            return false;
        }
        let lost = state.triggered || self.is_like_loss(signal);
        let little = (state.achieved_bytes as f64) < self.max_wnd / 2f64.powi(self.params.qa_gate as i32);
        let acts = state.endtime.is_some() && lost && little;
        if acts {
            self.set_cwnd(self.quick_adapt.achieved_bytes as f64);
            let state = &mut self.quick_adapt;
            state.bytes_to_ignore = self.inflight.max(0).unsigned_abs();
            state.bytes_ignored = 0;
            state.triggered = false;
        }
        self.quick_adapt.achieved_bytes = 0;
        self.quick_adapt.endtime = Some(now + self.base_rtt + self.params.target_qdelay);
        acts
    }

    fn is_like_loss(&self, signal: Signal) -> bool {
        match signal {
            Signal::Loss => true,
            Signal::Ack { delay, .. } => {
                self.params.qa_threshold.is_some_and(|qa_threshold| delay > qa_threshold)
            }
        }
    }
}
