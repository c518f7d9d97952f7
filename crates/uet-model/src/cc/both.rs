use super::{
    AckReport, Algorithm, CcError, NackReport, Nscc, NsccParams, Observed, Rccc, RcccParams, SendDecision,
    Sending, Sums, Wanted,
};
use crate::Time;
use core::time::Duration;
use uet_wire::Units24;

/// NSCC and RCCC together: RCCC governs the last hop, NSCC the fabric. A packet leaves when both permit it.
#[derive(Debug)]
#[cfg_attr(feature = "explore", derive(Clone, Hash))]
pub struct Both {
    nscc: Nscc,
    rccc: Rccc,
}

impl Both {
    /// Creates both for a context with this number.
    pub fn new(nscc: NsccParams, rccc: RcccParams, ccc_id: u8) -> Result<Self, CcError> {
        let both = Both { nscc: Nscc::new(nscc)?.beside_rccc(), rccc: Rccc::new(rccc, ccc_id)? };
        Ok(both.told())
    }

    fn told(mut self) -> Self {
        self.tell_window();
        self
    }

    /// Limits the requested credit to the window and one packet; more would be of no use.
    fn tell_window(&mut self) {
        self.rccc.limit_demand(self.nscc.room_for_demand());
    }
}

impl Algorithm for Both {
    fn may_send(&self) -> bool {
        self.nscc.may_send() && self.rccc.may_send()
    }

    explored!(Algorithm);

    fn new_data(&mut self, now: Time, sums: &Sums) {
        self.nscc.new_data(now, sums);
        self.rccc.new_data(now, sums);
    }

    fn send(&mut self, now: Time, packet: Sending, sums: &Sums) -> SendDecision {
        let window = self.nscc.send(now, packet, sums);
        let credit = self.rccc.send(now, packet, sums);
        SendDecision { ack_request: window.ack_request, credit_target: credit.credit_target }
    }

    fn ack(&mut self, now: Time, report: &AckReport, sums: &Sums) {
        self.nscc.ack(now, report, sums);
        self.tell_window();
        self.rccc.ack(now, report, sums);
    }

    fn nack(&mut self, now: Time, report: &NackReport, sums: &Sums) {
        self.nscc.nack(now, report, sums);
        self.tell_window();
        self.rccc.nack(now, report, sums);
    }

    fn inferred_loss(&mut self, now: Time, size: u32, sums: &Sums) {
        self.nscc.inferred_loss(now, size, sums);
        self.tell_window();
        self.rccc.inferred_loss(now, size, sums);
    }

    fn credit_update(&mut self, now: Time, credit: Units24, sums: &Sums) {
        self.rccc.credit_update(now, credit, sums);
    }

    fn found(&mut self, now: Time, size: u32, sums: &Sums) {
        self.nscc.found(now, size, sums);
        self.rccc.found(now, size, sums);
    }

    fn gone(&mut self, now: Time, in_flight: u64, sums: &Sums) {
        self.nscc.gone(now, in_flight, sums);
        self.rccc.gone(now, in_flight, sums);
    }

    fn probe_answered(&mut self, sample: Duration) {
        self.nscc.probe_answered(sample);
    }

    fn timeout(&self) -> Option<Time> {
        self.rccc.timeout()
    }

    fn handle_timeout(&mut self, now: Time, sums: &Sums) {
        self.rccc.handle_timeout(now, sums);
    }

    fn poll_wanted(&mut self) -> Option<Wanted> {
        self.nscc.poll_wanted().or_else(|| self.rccc.poll_wanted())
    }

    fn observe(&self) -> Observed {
        Observed { credit: self.rccc.observe().credit, ..self.nscc.observe() }
    }
}
