//! Time series of a simulation.

use core::time::Duration;
use uet_model::cc::Observed;

/// Samples at equal intervals, at most 4,096. When there are more, the series drops every second one and doubles the
/// interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The interval.
    pub interval: Duration,
    /// The samples.
    pub samples: Vec<Sample>,
}

/// A sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// The time.
    pub at: Duration,
    /// The payload bytes that have arrived.
    pub delivered: u64,
    /// The first transmissions of requests.
    pub new: u64,
    /// The retransmissions of requests.
    pub again: u64,
    /// The depth of the deepest queue at a last hop, in bytes.
    pub last_hop: u64,
    /// The depth of the deepest queue before the last hop, in bytes.
    pub fabric: u64,
    /// The bytes that switches have sent to other switches.
    pub fabric_carried: u64,
    /// The bytes that switches have sent to hosts.
    pub last_hop_carried: u64,
    /// The samples of the watched flows.
    pub flows: Vec<FlowSample>,
}

/// A sample of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowSample {
    /// The congestion window, in bytes.
    pub window: Option<u64>,
    /// Bytes in flight.
    pub in_flight: Option<i64>,
    /// Credit, in bytes.
    pub credit: Option<i64>,
    /// The payload bytes that have arrived.
    pub delivered: u64,
}

impl FlowSample {
    pub(crate) fn of(observed: Option<Observed>, delivered: u64) -> Self {
        let observed = observed.unwrap_or_default();
        FlowSample { window: observed.cwnd, in_flight: observed.inflight, credit: observed.credit, delivered }
    }
}

/// The maximum number of samples.
const MOST: usize = 4096;

impl Series {
    pub(crate) fn every(interval: Duration) -> Self {
        Series { interval, samples: Vec::new() }
    }

    pub(crate) fn add(&mut self, sample: Sample) {
        self.samples.push(sample);
        if self.samples.len() >= MOST {
            let mut keep = false;
            self.samples.retain(|_| {
                keep = !keep;
                keep
            });
            self.interval *= 2;
        }
    }
}
