use super::{AckReport, CccState, Departure, NackReport, Sending, Wanted};
use crate::Time;
use uet_wire::Units24;

/// A congestion control context: the packets of one direction of the PDCs between two FEPs in one class.
#[derive(Debug, Default)]
pub struct Ccc {
    backlog: u64,
    rtx_backlog: u64,
    waiting_rtx: u32,
    inflight_pkts: u32,
}

impl Ccc {
    /// A packet of this nominal size waits to be sent for the first time.
    pub fn new_data(&mut self, _now: Time, size: u32) {
        self.backlog += u64::from(size);
    }

    /// Whether the next packet may leave.
    pub fn may_send(&self) -> bool {
        true
    }

    /// A packet leaves.
    pub fn send(&mut self, _now: Time, packet: Sending) -> Departure {
        if packet.again {
            self.rtx_backlog = self.rtx_backlog.saturating_sub(packet.size.into());
            self.waiting_rtx = self.waiting_rtx.saturating_sub(1);
        } else {
            self.backlog = self.backlog.saturating_sub(packet.size.into());
        }
        self.inflight_pkts += 1;
        Departure::default()
    }

    /// An ACK came in.
    pub fn ack(&mut self, _now: Time, report: AckReport) {
        self.inflight_pkts = self.inflight_pkts.saturating_sub(report.packets);
    }

    /// A NACK came in for a packet in flight, which now waits to be sent again.
    pub fn nack(&mut self, _now: Time, report: NackReport) {
        self.wait_again(report.size);
    }

    /// A packet in flight is taken for lost, by timeout or inference, and now waits to be sent again.
    pub fn lost(&mut self, _now: Time, size: u32, _entropy: u16) {
        self.wait_again(size);
    }

    /// A packet that waited to be sent again has arrived after all, and need not be. Told before the ACK's report.
    pub fn found(&mut self, _now: Time, size: u32) {
        self.rtx_backlog = self.rtx_backlog.saturating_sub(size.into());
        self.waiting_rtx = self.waiting_rtx.saturating_sub(1);
        self.inflight_pkts += 1;
    }

    /// Packets that a PDC takes with it as it fails or closes.
    pub fn gone(&mut self, _now: Time, unsent: u64, waiting: &[u32], in_flight: &[u32]) {
        self.backlog = self.backlog.saturating_sub(unsent);
        for size in waiting {
            self.rtx_backlog = self.rtx_backlog.saturating_sub((*size).into());
            self.waiting_rtx = self.waiting_rtx.saturating_sub(1);
        }
        self.inflight_pkts = self.inflight_pkts.saturating_sub(in_flight.len() as u32);
    }

    /// A CREDIT control packet came in.
    pub fn credit(&mut self, _now: Time, _credit: Units24) {}

    /// The time has come that [`timeout`](Self::timeout) said.
    pub fn handle_timeout(&mut self, _now: Time) {}

    /// When something is to happen by itself.
    pub fn timeout(&self) -> Option<Time> {
        None
    }

    /// The next control packet that is wanted.
    pub fn poll_wanted(&mut self) -> Option<Wanted> {
        None
    }

    /// The state.
    pub fn state(&self) -> CccState {
        match (self.backlog + self.rtx_backlog > 0, self.inflight_pkts > 0) {
            (true, _) if self.may_send() => CccState::Ready,
            (true, _) => CccState::Active,
            (false, true) => CccState::Pending,
            (false, false) => CccState::Idle,
        }
    }

    fn wait_again(&mut self, size: u32) {
        self.rtx_backlog += u64::from(size);
        self.waiting_rtx += 1;
        self.inflight_pkts = self.inflight_pkts.saturating_sub(1);
    }
}
