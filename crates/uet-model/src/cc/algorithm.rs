use super::{
    AckReport, Algorithms, Both, CcError, CcParams, NackReport, NetworkParams, Nscc, Rccc, Sending, Wanted,
};
use crate::Time;
use core::fmt::Debug;
use core::time::Duration;
use std::sync::Arc;
use uet_wire::Units24;

/// The four sums of a context over its PDCs (section 3.6.12). Sizes are nominal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct Sums {
    /// Bytes that wait for their first transmission.
    pub backlog: u64,
    /// Bytes that wait for retransmission.
    pub rtx_backlog: u64,
    /// Packets that wait for retransmission.
    pub waiting_rtx: u32,
    /// Packets in flight.
    pub inflight_pkts: u32,
}

impl Sums {
    /// Returns the waiting bytes, new or to be retransmitted.
    pub fn waiting(&self) -> u64 {
        self.backlog.saturating_add(self.rtx_backlog)
    }

    /// Returns whether nothing waits and nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.waiting() == 0 && self.inflight_pkts == 0
    }
}

/// The decision of an algorithm about a packet that leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendDecision {
    /// True if the packet requests an ACK.
    pub ack_request: bool,
    /// The context's number and its credit target.
    pub credit_target: Option<(u8, Units24)>,
}

/// The observable state of an algorithm, for plots and tests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observed {
    /// The congestion window, in bytes.
    pub cwnd: Option<u64>,
    /// Bytes in flight.
    pub inflight: Option<i64>,
    /// The remaining credit, in bytes.
    pub credit: Option<i64>,
    /// The smallest round-trip time seen.
    pub base_rtt: Option<Duration>,
    /// The average queuing delay.
    pub average_delay: Option<Duration>,
}

/// Decides when the packets of a context may leave. The methods handle the events of the specification.
///
/// `sums` are those of the context and already include the event. The default methods ignore the event.
pub trait Algorithm: Debug + Send {
    /// Returns whether another packet may leave.
    fn may_send(&self) -> bool;

    /// Handles new data: a packet waits for its first transmission.
    fn new_data(&mut self, _now: Time, _sums: &Sums) {}

    /// Handles a transmission, and decides the fields of the packet.
    fn send(&mut self, _now: Time, _packet: Sending, _sums: &Sums) -> SendDecision {
        SendDecision::default()
    }

    /// Handles an ACK.
    fn ack(&mut self, _now: Time, _report: &AckReport, _sums: &Sums) {}

    /// Handles a NACK.
    fn nack(&mut self, _now: Time, _report: &NackReport, _sums: &Sums) {}

    /// Handles an inferred loss: after a timeout, or because later packets arrived.
    fn inferred_loss(&mut self, _now: Time, _size: u32, _sums: &Sums) {}

    /// Handles a CREDIT control packet with the cumulative grant.
    fn credit_update(&mut self, _now: Time, _credit: Units24, _sums: &Sums) {}

    /// Handles the arrival of a packet that was declared lost. The packet is in flight again until the ACK is counted.
    fn found(&mut self, _now: Time, _size: u32, _sums: &Sums) {}

    /// Handles the end of a PDC with this many bytes in flight.
    fn gone(&mut self, _now: Time, _in_flight: u64, _sums: &Sums) {}

    /// Handles the reply to a PROBE, with its round-trip time.
    fn probe_answered(&mut self, _sample: Duration) {}

    /// Returns the time of the next timer; `None` if no timer runs.
    fn timeout(&self) -> Option<Time> {
        None
    }

    /// Runs the timer of [`timeout`](Self::timeout).
    fn handle_timeout(&mut self, _now: Time, _sums: &Sums) {}

    /// Returns the next control packet to send, if any.
    fn poll_wanted(&mut self) -> Option<Wanted> {
        None
    }

    /// Returns the observable state.
    fn observe(&self) -> Observed {
        Observed::default()
    }

    #[cfg(feature = "explore")]
    #[doc(hidden)]
    fn duplicate(&self) -> Box<dyn Algorithm> {
        unreachable!("it takes no part in explorations")
    }

    #[cfg(feature = "explore")]
    #[doc(hidden)]
    fn digest(&self, _state: &mut dyn core::hash::Hasher) {}
}

/// Creates an algorithm for each congestion control context. Its fields can hold parameters.
///
/// `cargo run -p uet-simulate --example own_algorithm` runs such an algorithm on a simulated fabric.
pub trait CreateAlgorithm: Debug + Send + Sync {
    /// Creates the algorithm of a new context.
    fn create(&self, network: &NetworkParams) -> Box<dyn Algorithm>;
}

/// An algorithm of the caller. Clones share what creates it, and are equal.
#[derive(Clone, Debug)]
pub struct CustomAlgorithm(Arc<dyn CreateAlgorithm>);

impl CustomAlgorithm {
    /// Wraps the creator of an algorithm.
    pub fn new(create: impl CreateAlgorithm + 'static) -> Self {
        CustomAlgorithm(Arc::new(create))
    }
}

impl PartialEq for CustomAlgorithm {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// No congestion control.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub struct Unlimited;

impl Algorithm for Unlimited {
    fn may_send(&self) -> bool {
        true
    }

    explored!(Algorithm);
}

impl CcParams {
    /// Creates the algorithm of a context with this number.
    pub(super) fn algorithm(&self, ccc_id: u8) -> Result<Box<dyn Algorithm>, CcError> {
        self.check()?;
        Ok(match &self.algorithms {
            Algorithms::Nscc(nscc) => Box::new(Nscc::new(nscc.clone())?),
            Algorithms::Rccc(rccc) => Box::new(Rccc::new(rccc.clone(), ccc_id)?),
            Algorithms::Both(nscc, rccc) => Box::new(Both::new(nscc.clone(), rccc.clone(), ccc_id)?),
            Algorithms::Custom(custom, network) => custom.0.create(network),
            // `check` has rejected TFC.
            Algorithms::None | Algorithms::Tfc(_) => Box::new(Unlimited),
        })
    }
}
