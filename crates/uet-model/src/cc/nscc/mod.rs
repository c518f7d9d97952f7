//! NSCC at the source (section 3.6.13): a window that follows ECN marks and the queuing delay.
//! [`Destination`](super::Destination) is the other end.

mod adapt;
mod params;
mod window;

pub use params::{NsccParams, PenaltyReading};

use super::{
    AckReport, Algorithm, CcError, NackReport, Observed, SendDecision, Sending, Sums, Wanted,
    params::bytes_in,
};
use crate::Time;
use adapt::QuickAdapt;
use core::time::Duration;
use uet_wire::registry::NackCode;

/// The nominal size of a PROBE: UDP, the header of a control packet, and 40.
const PROBE_SIZE: u32 = 8 + 16 + 40;

/// The window of a context.
///
/// The window and its sums are `f64`. Comparisons with whole bytes do not round first, and [`Observed::cwnd`] is
/// rounded down. Any input leaves them finite. The window stays between one full packet and the maximum for the base
/// round trip.
#[derive(Clone, Debug)]
pub struct Nscc {
    params: NsccParams,
    /// True if RCCC runs too, and governs the last hop.
    rccc: bool,
    cwnd: f64,
    max_wnd: f64,
    inflight: i64,
    base_rtt: Duration,
    /// The average queuing delay, in seconds.
    average_delay: f64,
    /// The window before the receiver penalty.
    saved_cwnd: Option<f64>,
    received_bytes: u64,
    inc_bytes: f64,
    fi_count: u64,
    increase_mode: bool,
    last_adjust_time: Time,
    last_dec_time: Time,
    quick_adapt: QuickAdapt,
    probe: Probe,
}

#[cfg(feature = "explore")]
impl core::hash::Hash for Nscc {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        let Nscc { params: _, rccc: _, inflight, base_rtt, received_bytes, fi_count, increase_mode, .. } =
            self;
        (inflight, base_rtt, received_bytes, fi_count, increase_mode).hash(state);
        let Nscc { cwnd, max_wnd, average_delay, saved_cwnd, inc_bytes, .. } = self;
        [*cwnd, *max_wnd, *average_delay, *inc_bytes].map(f64::to_bits).hash(state);
        saved_cwnd.map(f64::to_bits).hash(state);
        let Nscc { last_adjust_time, last_dec_time, quick_adapt, probe, .. } = self;
        (last_adjust_time, last_dec_time, quick_adapt, probe).hash(state);
    }
}

/// The PROBE after the first reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
enum Probe {
    Due,
    Wanted,
    Done,
}

impl Nscc {
    /// Creates a window.
    pub fn new(params: NsccParams) -> Result<Self, CcError> {
        params.check()?;
        let mut nscc = Nscc {
            rccc: false,
            cwnd: params.initial_cwnd as f64,
            max_wnd: params.max_wnd as f64,
            inflight: 0,
            base_rtt: params.config_base_rtt,
            average_delay: 0.0,
            saved_cwnd: None,
            received_bytes: 0,
            inc_bytes: 0.0,
            fi_count: 0,
            increase_mode: false,
            last_adjust_time: Time::ZERO,
            last_dec_time: Time::ZERO,
            quick_adapt: QuickAdapt::default(),
            probe: if params.cached_base_rtt.is_some() { Probe::Done } else { Probe::Due },
            params,
        };
        if let Some(cached) = nscc.params.cached_base_rtt {
            nscc.update_base_rtt(cached);
        }
        Ok(nscc)
    }

    /// Adapts the window to RCCC, which governs the last hop.
    pub(super) fn beside_rccc(mut self) -> Self {
        self.rccc = true;
        self
    }

    /// Returns the maximum useful credit: the window and one packet.
    pub(super) fn room_for_demand(&self) -> u64 {
        self.cwnd as u64 + u64::from(self.params.full_packet)
    }

    fn packet(&self) -> f64 {
        f64::from(self.params.full_packet)
    }

    /// Requests an ACK if the window has no room for another packet (`CC-ACKREQ-001`), or is too small to trigger ACKs at
    /// the destination (`CC-ACKREQ-002`).
    fn wants_ack(&self) -> bool {
        !self.may_send() || self.cwnd < f64::from(self.params.ack_gen_trigger)
    }

    /// Sets the window, between a full packet (`CC-WINDOW-003`) and max_wnd (`CC-WINDOW-002`).
    fn set_cwnd(&mut self, cwnd: f64) {
        self.cwnd = cwnd.clamp(self.packet(), self.max_wnd);
    }

    /// Takes the smallest round trip as that of an empty network. The new max_wnd applies at the next change.
    fn update_base_rtt(&mut self, sample: Duration) {
        if sample < self.base_rtt {
            self.base_rtt = sample;
            let bdp = bytes_in(self.params.sender_rate, sample);
            self.max_wnd = (NsccParams::WINDOW_BDPS * bdp).max(self.packet());
        }
    }

    /// Returns the round trip that a full packet would have had. A shorter packet, such as a PROBE, takes less time on
    /// each link that passes on whole packets only.
    fn of_full_packet(&self, sample: Duration, size: u32) -> Duration {
        let NsccParams { full_packet, store_and_forward_links: links, sender_rate, .. } = self.params;
        let missing = u64::from(full_packet.saturating_sub(size)) * 8 * u64::from(links);
        sample.saturating_add(Duration::from_nanos(missing * 1_000_000_000 / sender_rate))
    }

    fn average(&mut self, delay: Duration) {
        self.average_delay += self.params.delay_weight * (delay.as_secs_f64() - self.average_delay);
    }

    /// Subtracts bytes from those in flight. Bytes count in units of 256 and packets one by one, so the rounding error is
    /// dropped when no packet is in flight.
    fn leave_flight(&mut self, bytes: u64, sums: &Sums) {
        self.inflight = self.inflight.saturating_sub(signed(bytes));
        if sums.inflight_pkts == 0 {
            self.inflight = 0;
        }
    }

    /// Requests a PROBE after the first ACK or NACK, unless the base round trip is known or there is little to send
    /// (`CC-PROBE-001`).
    fn first_answer(&mut self, sums: &Sums) {
        if self.probe == Probe::Due {
            let to_send = signed(sums.waiting()).saturating_add(self.inflight);
            let worth_it = to_send >= signed(self.params.probe_from);
            self.probe = if worth_it { Probe::Wanted } else { Probe::Done };
        }
    }

    /// Handles a trimmed packet (`CC-TRIM-001`, `CC-TRIM-004`). With RCCC, a trim at the last hop only counts in the average delay.
    fn trimmed(&mut self, now: Time, code: NackCode, size: u32) {
        self.average(self.params.config_base_rtt);
        self.quick_adapt.ignore(size.into());
        // `CC-TRIM-003`
        if code == NackCode::TRIMMED_LASTHOP && self.rccc {
            return;
        }
        self.quick_adapt.trigger();
        if !self.quick_adapt(now, adapt::Signal::Loss) {
            self.shrink(size);
        }
    }

    /// Shrinks the window by a packet.
    fn shrink(&mut self, size: u32) {
        self.set_cwnd(self.cwnd - f64::from(size));
    }
}

impl Algorithm for Nscc {
    /// `CC-WINDOW-001`: a full packet must fit beside the bytes in flight.
    fn may_send(&self) -> bool {
        self.inflight as f64 + self.packet() <= self.cwnd
    }

    explored!(Algorithm);

    fn send(&mut self, _now: Time, packet: Sending, _sums: &Sums) -> SendDecision {
        self.inflight = self.inflight.saturating_add(packet.size.into());
        SendDecision { ack_request: self.wants_ack(), credit_target: None }
    }

    fn ack(&mut self, now: Time, report: &AckReport, sums: &Sums) {
        let newly = report.newly.unwrap_or(report.bytes);
        let before = self.inflight;
        self.leave_flight(newly, sums);
        self.received_bytes = self.received_bytes.saturating_add(newly);
        self.quick_adapt.received(newly);
        self.receiver_penalty(report, newly, before);
        if let Some(sample) = report.sample {
            let sample = self.of_full_packet(sample, report.size.unwrap_or(self.params.full_packet));
            self.update_base_rtt(sample);
            let delay = sample.saturating_sub(self.base_rtt);
            self.average(delay);
            if !self.quick_adapt(now, adapt::Signal::Ack { marked: report.marked, delay }) {
                self.adjust(now, report, newly, delay);
            }
        }
        self.first_answer(sums);
    }

    /// Of the NACKs, only those for trimmed packets shrink the window (`CC-NACK-001`).
    fn nack(&mut self, now: Time, report: &NackReport, sums: &Sums) {
        self.leave_flight(report.size.into(), sums);
        if let Some(sample) = report.sample {
            self.update_base_rtt(self.of_full_packet(sample, report.size));
        }
        if matches!(report.code, NackCode::TRIMMED | NackCode::TRIMMED_LASTHOP) {
            self.trimmed(now, report.code, report.size);
        }
        self.first_answer(sums);
    }

    /// `CC-LOSS-001`: shrinks the window by the packet.
    fn inferred_loss(&mut self, _now: Time, size: u32, sums: &Sums) {
        self.leave_flight(size.into(), sums);
        self.quick_adapt.ignore(size.into());
        self.shrink(size);
    }

    fn found(&mut self, _now: Time, size: u32, _sums: &Sums) {
        self.inflight = self.inflight.saturating_add(size.into());
    }

    fn gone(&mut self, _now: Time, in_flight: u64, sums: &Sums) {
        self.leave_flight(in_flight, sums);
    }

    /// Updates the base round trip and nothing else; that is our choice.
    fn probe_answered(&mut self, sample: Duration) {
        self.update_base_rtt(self.of_full_packet(sample, PROBE_SIZE));
    }

    fn poll_wanted(&mut self) -> Option<Wanted> {
        let wanted = self.probe == Probe::Wanted;
        if wanted {
            self.probe = Probe::Done;
        }
        wanted.then_some(Wanted::Probe)
    }

    fn observe(&self) -> Observed {
        Observed {
            cwnd: Some(self.cwnd as u64),
            inflight: Some(self.inflight),
            credit: None,
            base_rtt: Some(self.base_rtt),
            average_delay: Some(Duration::try_from_secs_f64(self.average_delay).unwrap_or(Duration::MAX)),
        }
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
