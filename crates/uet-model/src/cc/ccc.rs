use super::{
    AckReport, Algorithm, CcError, CcParams, CccState, Departure, NackReport, Observed, PathFeedback,
    PathSelector, Sending, Sums, Unlimited, Wanted,
};
use crate::Time;
use core::time::Duration;
use uet_wire::Units24;
use uet_wire::registry::NackCode;

/// A congestion control context. It counts the packets of one direction of all PDCs between two FEPs in one traffic
/// class.
///
/// ```
/// use uet_model::Time;
/// use uet_model::cc::{AckReport, CcParams, Ccc, CccState, Sending};
///
/// let mut ccc = Ccc::new(&CcParams::default(), 1, 7)?;
/// ccc.new_data(Time(0), 4208);
/// assert_eq!(ccc.state(), CccState::Ready);
/// ccc.send(Time(0), Sending { size: 4208, is_retransmission: false });
/// assert_eq!(ccc.state(), CccState::Pending);
/// ccc.ack(Time(6_000), AckReport { packets: 1, bytes: 4208, ..AckReport::default() });
/// assert_eq!(ccc.state(), CccState::Idle);
/// # Ok::<(), uet_model::cc::CcError>(())
/// ```
#[derive(Debug)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub struct Ccc {
    sums: Sums,
    algorithm: Box<dyn Algorithm>,
    paths: PathSelector,
}

impl Default for Ccc {
    /// Creates a context without congestion control.
    fn default() -> Self {
        Ccc::with_algorithm(Box::new(Unlimited), PathSelector::default())
    }
}

impl Ccc {
    /// Creates a context with this number, which the peer sees if RCCC runs. The seed determines the order of paths.
    /// Fails if a parameter is impossible.
    pub fn new(params: &CcParams, ccc_id: u8, seed: u64) -> Result<Self, CcError> {
        Ok(Ccc::with_algorithm(params.algorithm(ccc_id)?, PathSelector::new(params.paths.clone(), seed)?))
    }

    /// Creates a context with a custom algorithm.
    pub fn with_algorithm(algorithm: Box<dyn Algorithm>, paths: PathSelector) -> Self {
        Ccc { sums: Sums::default(), algorithm, paths }
    }

    /// Counts a new packet of this nominal size.
    pub fn new_data(&mut self, now: Time, size: u32) {
        if self.sums.is_idle() {
            self.paths.idle(now);
        }
        self.sums.backlog = self.sums.backlog.saturating_add(size.into());
        self.algorithm.new_data(now, &self.sums);
    }

    /// Returns whether the next packet may leave.
    pub fn may_send(&self) -> bool {
        self.algorithm.may_send()
    }

    /// Counts a packet that leaves. With receiver credit, the result includes the credit fields of its request.
    pub fn send(&mut self, now: Time, packet: Sending) -> Departure {
        if packet.is_retransmission {
            self.no_longer_waits(packet.size);
        } else {
            self.sums.backlog = self.sums.backlog.saturating_sub(packet.size.into());
        }
        self.sums.inflight_pkts = self.sums.inflight_pkts.saturating_add(1);
        let ticket = self.algorithm.send(now, packet, &self.sums);
        Departure {
            entropy: self.paths.next(),
            ack_request: ticket.ack_request,
            credit_target: ticket.credit_target,
        }
    }

    /// Handles an ACK.
    pub fn ack(&mut self, now: Time, report: AckReport) {
        self.sums.inflight_pkts = self.sums.inflight_pkts.saturating_sub(report.packets);
        self.paths.feedback(now, report.entropy, PathFeedback::marked(report.marked));
        self.algorithm.ack(now, &report, &self.sums);
    }

    /// Handles a NACK of a packet in flight, which then waits for retransmission. After a go-back-N, call this for each
    /// packet with the code of the NACK.
    pub fn nack(&mut self, now: Time, report: NackReport) {
        self.waits_again(report.size);
        let feedback = match report.code {
            NackCode::TRIMMED => PathFeedback::Bad,
            _ => PathFeedback::marked(report.marked),
        };
        self.paths.feedback(now, report.entropy, feedback);
        self.algorithm.nack(now, &report, &self.sums);
    }

    /// Handles a packet declared lost, by timeout or inference. The packet then waits for retransmission.
    pub fn lost(&mut self, now: Time, size: u32, entropy: u16) {
        self.waits_again(size);
        self.paths.feedback(now, entropy, PathFeedback::TimedOut);
        self.algorithm.inferred_loss(now, size, &self.sums);
    }

    /// Handles the late arrival of a packet that waited for retransmission. Call it before [`ack`](Self::ack).
    ///
    /// The packet's bytes left the sums when it was declared lost. They are added back, so that the ACK subtracts them once.
    pub fn found(&mut self, now: Time, size: u32) {
        self.no_longer_waits(size);
        self.sums.inflight_pkts = self.sums.inflight_pkts.saturating_add(1);
        self.algorithm.found(now, size, &self.sums);
    }

    /// Handles the end of a PDC: its unsent bytes, and the sizes of its packets waiting for retransmission and in flight.
    pub fn gone(&mut self, now: Time, unsent: u64, waiting: &[u32], in_flight: &[u32]) {
        self.sums.backlog = self.sums.backlog.saturating_sub(unsent);
        for size in waiting {
            self.no_longer_waits(*size);
        }
        let packets = u32::try_from(in_flight.len()).unwrap_or(u32::MAX);
        self.sums.inflight_pkts = self.sums.inflight_pkts.saturating_sub(packets);
        let bytes = in_flight.iter().map(|size| u64::from(*size)).sum();
        self.algorithm.gone(now, bytes, &self.sums);
    }

    /// Handles a CREDIT control packet.
    pub fn credit(&mut self, now: Time, credit: Units24) {
        self.algorithm.credit_update(now, credit, &self.sums);
    }

    /// Handles the reply to a PROBE. The sample excludes the service time.
    pub fn probe_answered(&mut self, sample: Duration) {
        self.algorithm.probe_answered(sample);
    }

    /// Runs the timer of [`timeout`](Self::timeout).
    pub fn handle_timeout(&mut self, now: Time) {
        self.algorithm.handle_timeout(now, &self.sums);
    }

    /// Returns the time of the next timer.
    pub fn timeout(&self) -> Option<Time> {
        self.algorithm.timeout()
    }

    /// Returns the next control packet to send. The caller may drop a packet that lacks an established PDC; the context
    /// requests it again.
    pub fn poll_wanted(&mut self) -> Option<Wanted> {
        self.algorithm.poll_wanted()
    }

    /// Returns the state after the last event (section 3.6.12).
    pub fn state(&self) -> CccState {
        match (self.sums.waiting() > 0, self.sums.inflight_pkts > 0) {
            (true, _) if self.may_send() => CccState::Ready,
            (true, _) => CccState::Active,
            (false, true) => CccState::Pending,
            (false, false) => CccState::Idle,
        }
    }

    /// Returns the four sums over its PDCs.
    pub fn sums(&self) -> Sums {
        self.sums
    }

    /// Returns the observable state of its algorithm.
    pub fn observe(&self) -> Observed {
        self.algorithm.observe()
    }

    fn waits_again(&mut self, size: u32) {
        self.sums.rtx_backlog = self.sums.rtx_backlog.saturating_add(size.into());
        self.sums.waiting_rtx = self.sums.waiting_rtx.saturating_add(1);
        self.sums.inflight_pkts = self.sums.inflight_pkts.saturating_sub(1);
    }

    fn no_longer_waits(&mut self, size: u32) {
        self.sums.rtx_backlog = self.sums.rtx_backlog.saturating_sub(size.into());
        self.sums.waiting_rtx = self.sums.waiting_rtx.saturating_sub(1);
    }
}
