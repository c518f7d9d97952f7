use super::{
    AckReport, Algorithm, CcError, CcParams, CccState, Departure, NackReport, Observed, PathFeedback,
    PathSelector, Sending, Sums, Unlimited, Wanted,
};
use crate::Time;
use core::time::Duration;
use uet_wire::Units24;
use uet_wire::registry::NackCode;

/// A congestion control context: the packets of one direction of the PDCs between two FEPs in one class.
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
pub struct Ccc {
    sums: Sums,
    algorithm: Box<dyn Algorithm>,
    paths: PathSelector,
}

impl Default for Ccc {
    /// One without congestion control.
    fn default() -> Self {
        Ccc::with_algorithm(Box::new(Unlimited), PathSelector::default())
    }
}

impl Ccc {
    /// A context with this number, which the other side sees where RCCC runs. The seed decides the order of paths.
    pub fn new(params: &CcParams, ccc_id: u8, seed: u64) -> Result<Self, CcError> {
        Ok(Ccc::with_algorithm(params.algorithm(ccc_id)?, PathSelector::new(params.paths.clone(), seed)?))
    }

    /// A context with an algorithm of one's own.
    pub fn with_algorithm(algorithm: Box<dyn Algorithm>, paths: PathSelector) -> Self {
        Ccc { sums: Sums::default(), algorithm, paths }
    }

    /// A packet of this nominal size waits to be sent for the first time.
    pub fn new_data(&mut self, now: Time, size: u32) {
        if self.sums.is_idle() {
            self.paths.idle(now);
        }
        self.sums.backlog = self.sums.backlog.saturating_add(size.into());
        self.algorithm.new_data(now, &self.sums);
    }

    /// Whether the next packet may leave.
    pub fn may_send(&self) -> bool {
        self.algorithm.may_send()
    }

    /// A packet leaves. With receiver credit the departure says what its request has to carry.
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

    /// An ACK came in.
    pub fn ack(&mut self, now: Time, report: AckReport) {
        self.sums.inflight_pkts = self.sums.inflight_pkts.saturating_sub(report.packets);
        self.paths.feedback(now, report.entropy, PathFeedback::marked(report.marked));
        self.algorithm.ack(now, &report, &self.sums);
    }

    /// A NACK came in for a packet in flight, which now waits to be sent again. Where ROD goes back, this is told once
    /// for each packet that goes back, with the NACK's code.
    pub fn nack(&mut self, now: Time, report: NackReport) {
        self.waits_again(report.size);
        let feedback = match report.code {
            NackCode::TRIMMED => PathFeedback::Bad,
            _ => PathFeedback::marked(report.marked),
        };
        self.paths.feedback(now, report.entropy, feedback);
        self.algorithm.nack(now, &report, &self.sums);
    }

    /// A packet in flight is taken for lost, by timeout or inference, and now waits to be sent again.
    pub fn lost(&mut self, now: Time, size: u32, entropy: u16) {
        self.waits_again(size);
        self.paths.feedback(now, entropy, PathFeedback::TimedOut);
        self.algorithm.inferred_loss(now, size, &self.sums);
    }

    /// A packet that waited to be sent again has arrived after all, and need not be. Told before the ACK's report.
    ///
    /// Its bytes and its place in flight were taken off when it was marked lost. They are added back, so that the ACK,
    /// which counts them, takes them off once.
    pub fn found(&mut self, now: Time, size: u32) {
        self.no_longer_waits(size);
        self.sums.inflight_pkts = self.sums.inflight_pkts.saturating_add(1);
        self.algorithm.found(now, size, &self.sums);
    }

    /// Packets that a PDC takes with it as it fails or closes: bytes that wait to be sent for the first time, the sizes
    /// of those that wait to be sent again, and of those in flight.
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

    /// A CREDIT control packet came in.
    pub fn credit(&mut self, now: Time, credit: Units24) {
        self.algorithm.credit_update(now, credit, &self.sums);
    }

    /// The ACK that answers a PROBE came in, this long after the PROBE left, the service time taken off.
    pub fn probe_answered(&mut self, sample: Duration) {
        self.algorithm.probe_answered(sample);
    }

    /// The time has come that [`timeout`](Self::timeout) said.
    pub fn handle_timeout(&mut self, now: Time) {
        self.algorithm.handle_timeout(now, &self.sums);
    }

    /// When something is to happen by itself.
    pub fn timeout(&self) -> Option<Time> {
        self.algorithm.timeout()
    }

    /// The next control packet that is wanted. One that cannot be sent yet, for want of a PDC that the other side knows,
    /// may be dropped: it is wanted again.
    pub fn poll_wanted(&mut self) -> Option<Wanted> {
        self.algorithm.poll_wanted()
    }

    /// The state, as it is after every event (section 3.6.12).
    pub fn state(&self) -> CccState {
        match (self.sums.waiting() > 0, self.sums.inflight_pkts > 0) {
            (true, _) if self.may_send() => CccState::Ready,
            (true, _) => CccState::Active,
            (false, true) => CccState::Pending,
            (false, false) => CccState::Idle,
        }
    }

    /// The four sums over its PDCs.
    pub fn sums(&self) -> Sums {
        self.sums
    }

    /// What its algorithm shows of itself.
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
