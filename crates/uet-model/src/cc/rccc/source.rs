use super::RcccParams;
use crate::Time;
use crate::cc::{AckReport, Algorithm, CcError, NackReport, Observed, SendDecision, Sending, Sums, Wanted};
use core::time::Duration;
use uet_wire::Units24;
use uet_wire::registry::NackCode;

/// The credit of a context.
///
/// The initial credit is not part of the cumulative counters. It ends with the first reply, and any rest is lost.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct Rccc {
    params: RcccParams,
    ccc_id: u8,
    /// The newest cumulative grant.
    granted: Units24,
    /// The bytes that may be sent. The last packet may overshoot.
    credit: i64,
    /// True if no reply has come yet, so that the credit is the initial one.
    speculating: bool,
    /// The maximum useful credit, limited by NSCC's window.
    useful: u64,
    waiting: Waiting,
    /// The wait for the last grant.
    last_wait: Duration,
    /// The time since which nothing is waiting or in flight.
    idle_since: Option<Time>,
}

/// The state of a source that waits for credit.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "explore", derive(Hash))]
struct Waiting {
    /// The start of the wait.
    began: Option<Time>,
    /// The start of the wait, or the last reply if later.
    since: Option<Time>,
    /// The times of the next and the last request for credit.
    request_at: Option<Time>,
    requested: Option<Time>,
    /// The target of a CREDIT_REQUEST to send.
    wanted: Option<Units24>,
}

impl Rccc {
    /// Creates a source with the initial credit, for a context with this number. Fails if a parameter is impossible.
    pub fn new(params: RcccParams, ccc_id: u8) -> Result<Self, CcError> {
        params.check()?;
        Ok(Rccc {
            ccc_id,
            granted: Units24::default() + params.start_credit,
            credit: signed(params.initial_credit),
            speculating: true,
            useful: u64::MAX,
            waiting: Waiting::default(),
            last_wait: Duration::ZERO,
            idle_since: None,
            params,
        })
    }

    /// Limits the credit to request by NSCC's window.
    pub(in crate::cc) fn limit_demand(&mut self, useful: u64) {
        self.useful = useful;
    }

    /// Starts with the initial credit (`RCCC-START-001`).
    fn start(&mut self) {
        self.credit = signed(self.params.initial_credit);
        self.speculating = true;
    }

    /// Returns the demand, `credit_target` (`RCCC-COUNT-001`): the cumulative grant and the bytes wanted beyond the
    /// remaining credit.
    fn target(&self, sums: &Sums) -> Units24 {
        let want = sums.waiting().min(self.params.max_wnd).min(self.useful);
        let mut extra = signed(want).saturating_sub(self.credit);
        if self.speculating && sums.waiting() > 0 {
            extra = extra.max(self.params.full_packet.into());
        }
        // A target equal to `granted` asks for nothing. A source never asks for more than a window and a packet at a time.
        let most = self.params.max_wnd + u64::from(self.params.full_packet);
        let extra = extra.max(0).unsigned_abs().min(most);
        self.granted + extra.div_ceil(Units24::UNIT) as u32
    }

    /// Ends the initial credit with the first reply. From now on only grants count.
    fn answered(&mut self, now: Time) {
        if self.speculating {
            self.speculating = false;
            self.credit = self.credit.min(0);
        }
        if self.waiting.since.is_some() {
            self.waiting.since = Some(now);
        }
    }

    /// Applies a grant that is serially newer (`RCCC-COUNT-002`).
    fn grant(&mut self, now: Time, credit: Units24) {
        let Some(units @ 1..) = credit.since(self.granted) else { return };
        self.last_wait = self.waiting.began.map_or(Duration::ZERO, |began| now - began);
        self.credit = self.credit.saturating_add(i64::from(units) * Units24::UNIT as i64);
        self.granted = credit;
        self.waiting = Waiting::default();
    }

    /// Returns the credit of a packet that the peer could not accept. The peer has no PDC, so no CREDIT_REQUEST could
    /// replace the credit.
    fn restore(&mut self, size: u32) {
        self.credit = self.credit.saturating_add(size.into());
    }

    /// Returns the wait before the next request for credit: twice the wait of the last grant, doubled after each
    /// request. Further requests do not speed up a busy receiver. They keep the source known, so the wait is bounded.
    fn patience(&self, now: Time) -> Duration {
        let RcccParams { request_interval, idle_reset, .. } = self.params;
        let waited = self.waiting.began.map_or(Duration::ZERO, |began| now - began);
        (self.last_wait * 2).max(waited).min(idle_reset / 4).max(request_interval)
    }

    /// Grants credit for one packet if all initial packets were trimmed. One is enough to open the PDC.
    fn knock(&mut self, sums: &Sums) {
        if sums.inflight_pkts == 0 {
            self.credit = self.credit.max(self.params.full_packet.into());
        }
    }

    /// Requests credit again while waiting, because no other signal reveals a lost grant or request. Acts at once if
    /// the peer may not know the demand.
    fn mind(&mut self, now: Time, sums: &Sums, at_once: bool) {
        self.mind_idleness(now, sums);
        if self.may_send() || sums.waiting() == 0 {
            self.waiting = Waiting { requested: self.waiting.requested, ..Waiting::default() };
            return;
        }
        self.waiting.began.get_or_insert(now);
        self.waiting.since.get_or_insert(now);
        let interval = self.params.request_interval;
        let soonest = self.waiting.requested.map_or(now, |requested| now.max(requested + interval));
        let later = now + self.patience(now);
        if at_once {
            self.waiting.request_at = Some(soonest);
        } else {
            self.waiting.request_at.get_or_insert(later);
        }
        if self.waiting.wanted.is_some() {
            self.waiting.wanted = Some(self.target(sums));
        }
        self.request_when_due(now, sums);
    }

    fn request_when_due(&mut self, now: Time, sums: &Sums) {
        if self.waiting.request_at.is_some_and(|at| at <= now) {
            self.waiting.wanted = Some(self.target(sums));
            self.waiting.requested = Some(now);
            self.waiting.request_at = Some(now + self.patience(now));
        }
    }

    fn mind_idleness(&mut self, now: Time, sums: &Sums) {
        if sums.is_idle() {
            self.idle_since.get_or_insert(now);
        } else {
            self.idle_since = None;
        }
    }

    /// Returns whether nothing is in flight and no reply came for long. The peer may then have forgotten this source,
    /// so one packet leaves.
    fn is_forgotten(&self, now: Time, sums: &Sums) -> bool {
        let silent = self.waiting.since.is_some_and(|since| now - since >= self.params.idle_reset);
        silent && sums.inflight_pkts == 0
    }
}

impl Algorithm for Rccc {
    /// `RCCC-CREDIT-001`.
    fn may_send(&self) -> bool {
        self.credit > 0
    }

    explored!(Algorithm);

    fn new_data(&mut self, now: Time, sums: &Sums) {
        if self.idle_since.is_some_and(|since| now - since >= self.params.idle_reset) {
            self.start();
        }
        self.mind(now, sums, true);
    }

    fn send(&mut self, now: Time, packet: Sending, sums: &Sums) -> SendDecision {
        self.credit = self.credit.saturating_sub(packet.size.into());
        self.mind(now, sums, false);
        SendDecision { ack_request: false, credit_target: Some((self.ccc_id, self.target(sums))) }
    }

    fn ack(&mut self, now: Time, report: &AckReport, sums: &Sums) {
        self.answered(now);
        if let Some(credit) = report.credit {
            self.grant(now, credit);
        }
        self.mind(now, sums, false);
    }

    /// A trimmed packet gets no credit back. It waits again and is part of the demand. A peer without a PDC knows no
    /// demand and cannot grant.
    fn nack(&mut self, now: Time, report: &NackReport, sums: &Sums) {
        match report.code {
            NackCode::NO_PDC_AVAIL
            | NackCode::NO_CCC_AVAIL
            | NackCode::NO_BITMAP
            | NackCode::NEW_START_PSN => self.restore(report.size),
            _ if report.no_pdc => self.knock(sums),
            _ => self.answered(now),
        }
        self.mind(now, sums, true);
    }

    /// A lost packet gets no credit back, except before the first reply, because the PDC may not exist.
    fn inferred_loss(&mut self, now: Time, size: u32, sums: &Sums) {
        if self.speculating {
            self.restore(size);
        }
        self.mind(now, sums, true);
    }

    fn credit_update(&mut self, now: Time, credit: Units24, sums: &Sums) {
        self.answered(now);
        self.grant(now, credit);
        self.mind(now, sums, false);
    }

    fn found(&mut self, now: Time, _size: u32, sums: &Sums) {
        self.mind(now, sums, false);
    }

    fn gone(&mut self, now: Time, _in_flight: u64, sums: &Sums) {
        self.mind(now, sums, false);
    }

    fn timeout(&self) -> Option<Time> {
        self.waiting.request_at
    }

    fn handle_timeout(&mut self, now: Time, sums: &Sums) {
        if self.is_forgotten(now, sums) {
            self.start();
            self.waiting = Waiting::default();
        } else {
            self.request_when_due(now, sums);
        }
    }

    fn poll_wanted(&mut self) -> Option<Wanted> {
        self.waiting.wanted.take().map(|target| Wanted::CreditRequest(self.ccc_id, target))
    }

    fn observe(&self) -> Observed {
        Observed { credit: Some(self.credit), ..Observed::default() }
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
