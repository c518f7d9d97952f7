//! What is seen over time.

use core::time::Duration;
use uet_model::cc::Observed;

/// Samples at equal distances. There are never more than a few thousand: when they become too many, every other one is left
/// out from then on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The distance.
    pub interval: Duration,
    /// The samples.
    pub samples: Vec<Sample>,
}

/// What is seen at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// When.
    pub at: Duration,
    /// All payload that has arrived so far, in bytes.
    pub delivered: u64,
    /// Requests sent for the first time so far.
    pub new: u64,
    /// Requests sent again so far.
    pub again: u64,
    /// The bytes that wait in the deepest queue of a last hop.
    pub last_hop: u64,
    /// The bytes that wait in the deepest queue before.
    pub fabric: u64,
    /// The flows that are watched.
    pub flows: Vec<FlowSample>,
}

/// What is seen of a flow at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowSample {
    /// The window of its congestion control context, in bytes.
    pub window: Option<u64>,
    /// Bytes in flight.
    pub in_flight: Option<i64>,
    /// Credit, in bytes.
    pub credit: Option<i64>,
    /// Payload that has arrived so far, in bytes.
    pub delivered: u64,
}

impl FlowSample {
    pub(crate) fn of(observed: Option<Observed>, delivered: u64) -> Self {
        let observed = observed.unwrap_or_default();
        FlowSample { window: observed.cwnd, in_flight: observed.inflight, credit: observed.credit, delivered }
    }
}

/// How many samples there are at most.
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
