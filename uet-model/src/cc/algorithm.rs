use super::{AckReport, Algorithms, Both, CcError, CcParams, NackReport, Nscc, Rccc, Sending, Wanted};
use crate::Time;
use core::fmt::Debug;
use core::time::Duration;
use uet_wire::Units24;

/// The four sums of a context over its PDCs (section 3.6.12). Sizes are nominal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Bytes that wait to be sent for the first time.
    pub backlog: u64,
    /// Bytes that wait to be sent again.
    pub rtx_backlog: u64,
    /// Packets that wait to be sent again.
    pub waiting_rtx: u32,
    /// Packets in flight.
    pub inflight_pkts: u32,
}

impl Sums {
    /// The bytes that wait, for the first time or again.
    pub fn waiting(&self) -> u64 {
        self.backlog.saturating_add(self.rtx_backlog)
    }

    /// Whether nothing waits and nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.waiting() == 0 && self.inflight_pkts == 0
    }
}

/// What an algorithm says of a packet that leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendDecision {
    /// Whether an ACK has to be asked for.
    pub ack_request: bool,
    /// The context's number and the credit wanted.
    pub credit_target: Option<(u8, Units24)>,
}

/// What an algorithm shows of itself, to plots and tests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observed {
    /// The congestion window, in bytes.
    pub cwnd: Option<u64>,
    /// Bytes in flight.
    pub inflight: Option<i64>,
    /// The credit that is left, in bytes.
    pub credit: Option<i64>,
    /// The smallest round trip seen.
    pub base_rtt: Option<Duration>,
    /// The average queueing delay.
    pub average_delay: Option<Duration>,
}

/// An algorithm that decides when the packets of a context may leave, by the specification's events.
///
/// `sums` are the context's, with the event counted. An algorithm that has no use for an event leaves its method out.
pub trait Algorithm: Debug + Send {
    /// Whether another packet may leave.
    fn may_send(&self) -> bool;

    /// New data: a packet waits to be sent for the first time.
    fn new_data(&mut self, _now: Time, _sums: &Sums) {}

    /// Send: a packet leaves.
    fn send(&mut self, _now: Time, _packet: Sending, _sums: &Sums) -> SendDecision {
        SendDecision::default()
    }

    /// ACK.
    fn ack(&mut self, _now: Time, _report: &AckReport, _sums: &Sums) {}

    /// NACK.
    fn nack(&mut self, _now: Time, _report: &NackReport, _sums: &Sums) {}

    /// Inferred loss: by timeout, or because later packets have arrived.
    fn inferred_loss(&mut self, _now: Time, _size: u32, _sums: &Sums) {}

    /// Credit update: a CREDIT control packet with the cumulative grant.
    fn credit_update(&mut self, _now: Time, _credit: Units24, _sums: &Sums) {}

    /// A packet that had been taken for lost has arrived: it is in flight again, until the ACK is counted.
    fn found(&mut self, _now: Time, _size: u32, _sums: &Sums) {}

    /// A PDC has gone, with these bytes in flight.
    fn gone(&mut self, _now: Time, _in_flight: u64, _sums: &Sums) {}

    /// A PROBE was answered, after this time.
    fn probe_answered(&mut self, _sample: Duration) {}

    /// When something is to happen by itself.
    fn timeout(&self) -> Option<Time> {
        None
    }

    /// The time of [`timeout`](Self::timeout) has come.
    fn handle_timeout(&mut self, _now: Time, _sums: &Sums) {}

    /// A control packet to be sent.
    fn poll_wanted(&mut self) -> Option<Wanted> {
        None
    }

    /// What it shows of itself.
    fn observe(&self) -> Observed {
        Observed::default()
    }
}

/// No congestion control.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unlimited;

impl Algorithm for Unlimited {
    fn may_send(&self) -> bool {
        true
    }
}

impl CcParams {
    /// The algorithm of a context with this number.
    pub(super) fn algorithm(&self, ccc_id: u8) -> Result<Box<dyn Algorithm>, CcError> {
        self.check()?;
        Ok(match &self.algorithms {
            Algorithms::Nscc(nscc) => Box::new(Nscc::new(nscc.clone())?),
            Algorithms::Rccc(rccc) => Box::new(Rccc::new(rccc.clone(), ccc_id)?),
            Algorithms::Both(nscc, rccc) => Box::new(Both::new(nscc.clone(), rccc.clone(), ccc_id)?),
            // `check` has refused TFC.
            Algorithms::None | Algorithms::Tfc(_) => Box::new(Unlimited),
        })
    }
}
