//! Results of a simulation.

use crate::series::Series;
use core::time::Duration;

/// The result of a simulation. Runs of one scenario give identical results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The time of the end.
    pub ended: Duration,
    /// The flows in the order of the traffic.
    pub flows: Vec<FlowOutcome>,
    /// The jobs of a graph.
    pub jobs: Vec<JobOutcome>,
    /// The counters of the whole run.
    pub counted: Counted,
    /// The time from the end of the warm-up to the first completed flow, in which all flows compete. It ends up to one
    /// link latency after that flow. `None` if some flow does not run for all of it, or if it is shorter than
    /// [`Steady::MIN_ROUND_TRIPS`].
    pub steady: Option<Steady>,
    /// The queue depth that requests met at the last hops.
    pub last_hop: Depth,
    /// The queue depth that requests met before the last hops.
    pub fabric: Depth,
    /// The use of the links to the hosts.
    pub last_hop_links: LinkUse,
    /// The use of the links between switches.
    pub fabric_links: LinkUse,
    /// The recovery after a fault, if there was one.
    pub recovery: Option<Recovery>,
    /// The time series.
    pub series: Series,
    /// The number of simulated events.
    pub events: u64,
    /// The highest number of packets in flight at once.
    pub most_packets: usize,
}

/// The result of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowOutcome {
    /// The sending host.
    pub from: u32,
    /// The receiving host.
    pub to: u32,
    /// The size in bytes of payload.
    pub size: u64,
    /// The start time, if it started.
    pub started: Option<Duration>,
    /// The time from the start to the arrival of the last byte, if it arrived.
    pub received: Option<Duration>,
    /// The time from the start to the last acknowledgment, if it completed.
    pub completed: Option<Duration>,
    /// The ideal completion time without queues and other flows. All bytes with headers take the first link, the last
    /// packet takes the others, and an ACK takes the way back.
    pub ideal: Duration,
    /// The payload bytes that arrived.
    pub delivered: u64,
    /// The job, by its index.
    pub job: u16,
    /// The traffic class.
    pub class: u8,
}

/// The counters of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// First transmissions of requests.
    pub new: u64,
    /// Retransmissions of requests.
    pub again: u64,
    /// Sent ACKs.
    pub acks: u64,
    /// Sent NACKs.
    pub nacks: u64,
    /// Sent control packets.
    pub control: u64,
    /// Requests that arrived untrimmed.
    pub arrived: u64,
    /// Trimmed requests.
    pub trimmed: u64,
    /// Trimmed requests that were first transmissions on granted credit.
    pub trimmed_granted: u64,
    /// Marked requests.
    pub marked: u64,
    /// Packets dropped at a full queue.
    pub dropped: u64,
    /// Packets lost to a fault.
    pub lost: u64,
    /// Payload bytes that arrived.
    pub delivered: u64,
}

impl Counted {
    /// Returns the retransmissions per arrived request.
    pub fn again_per_arrival(&self) -> f64 {
        if self.arrived == 0 { 0.0 } else { self.again as f64 / self.arrived as f64 }
    }

    /// Returns the growth of the counters since an earlier state.
    pub(crate) fn since(&self, before: &Counted) -> Counted {
        self.with(before, |now, before| now - before)
    }

    /// Returns the sum of the counters of two sections.
    pub(crate) fn plus(&self, other: &Counted) -> Counted {
        self.with(other, |one, other| one + other)
    }

    fn with(&self, other: &Counted, both: impl Fn(u64, u64) -> u64) -> Counted {
        Counted {
            new: both(self.new, other.new),
            again: both(self.again, other.again),
            acks: both(self.acks, other.acks),
            nacks: both(self.nacks, other.nacks),
            control: both(self.control, other.control),
            arrived: both(self.arrived, other.arrived),
            trimmed: both(self.trimmed, other.trimmed),
            trimmed_granted: both(self.trimmed_granted, other.trimmed_granted),
            marked: both(self.marked, other.marked),
            dropped: both(self.dropped, other.dropped),
            lost: both(self.lost, other.lost),
            delivered: both(self.delivered, other.delivered),
        }
    }
}

/// The period after the warm-up, in which flows compete.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// The start of the period.
    pub from: Duration,
    /// The end of the period.
    pub to: Duration,
    /// The counters of the period.
    pub counted: Counted,
    /// The goodput: payload that arrived, in bits per second.
    pub goodput: f64,
    /// The goodput as a share of the maximum payload rate of the receivers' links, or of the senders' if they are
    /// fewer.
    pub share: f64,
    /// Jain's index of the flows' goodput; 1 if all are equal.
    pub jain: f64,
}

impl Steady {
    /// The minimum length of the period, in base round trips.
    pub const MIN_ROUND_TRIPS: u32 = 5;
}

/// The queue depth that requests met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// The greatest depth, in bytes.
    pub most: u64,
    /// The sum of the depths behind each request, and the number of requests.
    sum: u64,
    count: u64,
}

impl Depth {
    pub(crate) fn met(&mut self, bytes: u64) {
        self.sum += bytes;
        self.count += 1;
    }

    pub(crate) fn add(&mut self, other: &Depth) {
        self.most = self.most.max(other.most);
        self.sum += other.sum;
        self.count += other.count;
    }

    /// Returns the average depth behind a request, in bytes.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }
}

/// The use of some links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkUse {
    /// The number of links, with each direction counted.
    pub links: u64,
    /// The bytes that they carried in total.
    pub bytes: u64,
}

impl LinkUse {
    /// Returns the mean share of the capacity that the links used in a time. The rate is in bits per second.
    pub fn share(&self, rate: u64, span: Duration) -> f64 {
        let room = self.links as f64 * rate as f64 * span.as_secs_f64();
        if room > 0.0 { self.bytes as f64 * 8.0 / room } else { 0.0 }
    }
}

/// The recovery after a fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recovery {
    /// The time of the fault.
    pub failed: Duration,
    /// The first time afterwards at which a source declared a packet lost.
    pub noticed: Option<Duration>,
    /// The time of the last loss.
    pub last_lost: Option<Duration>,
    /// The time of recovery. From then on, the goodput over one round trip reaches 90 % of its mean over the 5 round
    /// trips before the fault.
    pub back: Option<Duration>,
}

impl Recovery {
    /// Computes the time of recovery.
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

/// Returns Jain's fairness index: (sum x)^2 / (n sum x^2).
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

/// The result of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobOutcome {
    /// The name.
    pub name: String,
    /// The number of flows.
    pub flows: usize,
    /// The start of its first flow, if one started.
    pub started: Option<Duration>,
    /// The time from the start to the arrival of the last byte of all flows, if all arrived.
    pub completed: Option<Duration>,
    /// A lower bound of this time: the longest chain of steps, or the time in which the busiest host sends or receives
    /// all its bytes.
    pub ideal: Duration,
    /// The payload bytes that arrived.
    pub delivered: u64,
    /// Jain's index of the speeds of its completed flows, each relative to the ideal of the flow.
    pub jain: f64,
}

impl JobOutcome {
    /// Returns the completion time in units of the ideal.
    pub fn slowdown(&self) -> Option<f64> {
        Some(self.completed?.as_secs_f64() / self.ideal.as_secs_f64().max(1e-9))
    }
}
