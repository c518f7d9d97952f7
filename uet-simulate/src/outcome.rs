//! What came out.

use crate::series::Series;
use core::time::Duration;

/// What came out of a simulation. Everything in it is the same each time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// When it ended.
    pub ended: Duration,
    /// The flows, in the order of the traffic.
    pub flows: Vec<FlowOutcome>,
    /// What was counted over the whole time.
    pub counted: Counted,
    /// The time from the end of the warm-up until the first flow completed, in which all flows compete.
    pub steady: Option<Steady>,
    /// What requests met in the queues of the last hops, and in those before.
    pub last_hop: Depth,
    /// See [`last_hop`](Self::last_hop).
    pub fabric: Depth,
    /// What failed, and how it was got over.
    pub recovery: Option<Recovery>,
    /// Over time.
    pub series: Series,
    /// Events that were simulated, and the most packets that were under way at once.
    pub events: u64,
    /// See [`events`](Self::events).
    pub most_packets: usize,
}

/// What became of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowOutcome {
    /// The host that sends.
    pub from: u32,
    /// The host that receives.
    pub to: u32,
    /// How much it was to send.
    pub size: u64,
    /// When it started, if it did.
    pub started: Option<Duration>,
    /// From its start until all was acknowledged, if it was.
    pub completed: Option<Duration>,
    /// Without queues and other flows: the bytes with their headers at the link rate, and a round trip.
    pub ideal: Duration,
    /// Bytes of payload that arrived.
    pub delivered: u64,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Requests sent for the first time.
    pub new: u64,
    /// Requests sent again.
    pub again: u64,
    /// Acknowledgements sent.
    pub acks: u64,
    /// Negative ones.
    pub nacks: u64,
    /// Control packets.
    pub control: u64,
    /// Requests that arrived whole.
    pub arrived: u64,
    /// Requests that were trimmed.
    pub trimmed: u64,
    /// Of these, those that were sent for the first time, on credit that was granted.
    pub trimmed_granted: u64,
    /// Requests that were marked.
    pub marked: u64,
    /// Packets that found no room.
    pub dropped: u64,
    /// Packets that were lost where something had failed.
    pub lost: u64,
    /// Bytes of payload that arrived.
    pub delivered: u64,
}

impl Counted {
    /// Retransmissions per packet that arrived.
    pub fn again_per_arrival(&self) -> f64 {
        if self.arrived == 0 { 0.0 } else { self.again as f64 / self.arrived as f64 }
    }

    /// The same since another time.
    pub(crate) fn since(&self, before: &Counted) -> Counted {
        Counted {
            new: self.new - before.new,
            again: self.again - before.again,
            acks: self.acks - before.acks,
            nacks: self.nacks - before.nacks,
            control: self.control - before.control,
            arrived: self.arrived - before.arrived,
            trimmed: self.trimmed - before.trimmed,
            trimmed_granted: self.trimmed_granted - before.trimmed_granted,
            marked: self.marked - before.marked,
            dropped: self.dropped - before.dropped,
            lost: self.lost - before.lost,
            delivered: self.delivered - before.delivered,
        }
    }
}

/// The time in which all flows compete.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// When it begins.
    pub from: Duration,
    /// When it ends.
    pub to: Duration,
    /// What was counted in it.
    pub counted: Counted,
    /// Payload that arrived, in bits per second.
    pub goodput: f64,
    /// The same as a share of what the links of those that receive, or send if they are fewer, carry at most.
    pub share: f64,
    /// Jain's index of the flows' goodput: 1 when all are equal.
    pub jain: f64,
}

/// What requests met in queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// The most bytes that waited.
    pub most: u64,
    /// The sum of what each request left behind, and how many requests there were.
    sum: u128,
    count: u64,
}

impl Depth {
    pub(crate) fn met(&mut self, bytes: u64) {
        self.sum += u128::from(bytes);
        self.count += 1;
    }

    pub(crate) fn add(&mut self, other: &Depth) {
        self.most = self.most.max(other.most);
        self.sum += other.sum;
        self.count += other.count;
    }

    /// What a request left behind, on average.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }
}

/// How a failure was got over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recovery {
    /// When something failed.
    pub failed: Duration,
    /// When a source first took a packet for lost after that.
    pub noticed: Option<Duration>,
    /// When the last packet was lost.
    pub last_lost: Option<Duration>,
    /// From when on as much arrives as before: 9 tenths of the mean of the 5 round trips before it failed, over one round trip.
    pub back: Option<Duration>,
}

impl Recovery {
    /// Finds out from when on as much arrives as before.
    pub(crate) fn measure(&mut self, series: &Series, round_trip: Duration) {
        let samples = &series.samples;
        let rate = |from: Duration, to: Duration| {
            let at = |time: Duration| samples.iter().rev().find(|sample| sample.at <= time);
            let (first, last) = (at(from)?, at(to)?);
            let span = last.at.checked_sub(first.at)?.as_secs_f64();
            (span > 0.0).then(|| (last.delivered - first.delivered) as f64 / span)
        };
        let Some(before) = rate(self.failed.saturating_sub(round_trip * 5), self.failed) else { return };
        let since = self.noticed.unwrap_or(self.failed);
        let good = |end: &Duration| rate(*end - round_trip, *end).is_some_and(|rate| rate >= 0.9 * before);
        self.back = samples.iter().map(|sample| sample.at).filter(|at| *at >= since + round_trip).find(good);
    }
}

/// Jain's fairness index: (sum x)^2 / (n sum x^2).
///
/// ```
/// use uet_simulate::jain;
///
/// assert_eq!(jain(&[5.0, 5.0, 5.0, 5.0]), 1.0);
/// assert_eq!(jain(&[8.0, 0.0, 0.0, 0.0]), 0.25);
/// ```
pub fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}
