//! Summaries of flows: by job, by size, and over several runs.

use crate::graph::Graph;
use crate::outcome::{FlowOutcome, JobOutcome, jain};
use crate::scenario::Scenario;
use core::time::Duration;

impl JobOutcome {
    pub(crate) fn all(scenario: &Scenario, graph: &Graph, flows: &[FlowOutcome]) -> Vec<Self> {
        let jobs = graph.jobs().iter().zip(scenario.ideal_jobs(graph));
        let mut jobs: Vec<Self> = jobs.map(|(name, ideal)| JobOutcome::new(name, ideal)).collect();
        let mut speeds: Vec<Vec<f64>> = vec![Vec::new(); jobs.len()];
        let mut ends = vec![Some(Duration::ZERO); jobs.len()];
        for flow in flows {
            let place = usize::from(flow.job);
            let Some(job) = jobs.get_mut(place) else { continue };
            job.flows += 1;
            job.delivered += flow.delivered;
            job.started = [job.started, flow.started].into_iter().flatten().min();
            let end = flow.started.zip(flow.received).map(|(start, span)| start + span);
            ends[place] = ends[place].zip(end).map(|(a, b)| a.max(b));
            speeds[place].extend(flow.slowdown().map(f64::recip));
        }
        for ((job, end), speeds) in jobs.iter_mut().zip(ends).zip(speeds) {
            job.completed = end.zip(job.started).map(|(end, start)| end.saturating_sub(start));
            job.jain = jain(&speeds);
        }
        jobs
    }

    fn new(name: &str, ideal: Duration) -> Self {
        let name = name.into();
        JobOutcome { name, flows: 0, started: None, completed: None, ideal, delivered: 0, jain: 1.0 }
    }
}

impl FlowOutcome {
    /// Returns the completion time in units of the ideal.
    pub fn slowdown(&self) -> Option<f64> {
        Some(self.completed?.as_secs_f64() / self.ideal.as_secs_f64().max(1e-9))
    }
}

/// The completed flows of a range of sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeClass {
    /// The smallest size of the class, in bytes.
    pub from: u64,
    /// The size at which the next class begins; `None` for the last class.
    pub below: Option<u64>,
    /// The number of completed flows.
    pub flows: usize,
    /// The median and the 99th percentile of the completion time.
    pub completion: [Duration; 2],
    /// The median and the 99th percentile of the completion time in units of the ideal.
    pub slowdown: [f64; 2],
}

/// Returns the classes of sizes that have completed flows. Classes begin at powers of 10 from 10 KB to 100 MB.
pub fn size_classes(flows: &[FlowOutcome]) -> Vec<SizeClass> {
    const BOUNDS: [u64; 7] = [0, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, u64::MAX];
    let class = |bounds: &[u64]| {
        let (from, below) = (bounds[0], bounds[1]);
        let those = || flows.iter().filter(|flow| (from..below).contains(&flow.size));
        let mut times: Vec<Duration> = those().filter_map(|flow| flow.completed).collect();
        let [_, median, p99, _] = spread(&mut times)?;
        let [_, slow_median, slow_p99, _] = slowdowns(those())?;
        Some(SizeClass {
            from,
            below: (below < u64::MAX).then_some(below),
            flows: times.len(),
            completion: [median, p99],
            slowdown: [slow_median, slow_p99],
        })
    };
    BOUNDS.windows(2).filter_map(class).collect()
}

/// Returns the minimum, the median, the 99th percentile and the maximum of the slowdown of the completed flows.
pub fn slowdowns<'a>(flows: impl IntoIterator<Item = &'a FlowOutcome>) -> Option<[f64; 4]> {
    let mut slowdowns: Vec<f64> = flows.into_iter().filter_map(FlowOutcome::slowdown).collect();
    slowdowns.sort_by(f64::total_cmp);
    ranks(&slowdowns)
}

/// Sorts values, and returns the minimum, the median, the 99th percentile and the maximum. Percentiles use the nearest
/// rank.
pub fn spread<T: Copy + Ord>(values: &mut [T]) -> Option<[T; 4]> {
    values.sort_unstable();
    ranks(values)
}

fn ranks<T: Copy>(sorted: &[T]) -> Option<[T; 4]> {
    let rank = |percent: usize| sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1)).copied();
    Some([rank(0)?, rank(50)?, rank(99)?, rank(100)?])
}

/// Returns the median of values, and a confidence interval of at least 95 % for the median of their distribution.
/// The interval lies between two order statistics, so it assumes nothing about the distribution. It needs 6 values.
///
/// ```
/// use uet_simulate::median_interval;
///
/// let (median, interval) = median_interval(&[3.0, 1.0, 2.0, 5.0, 4.0, 6.0]).unwrap();
/// assert_eq!((median, interval), (3.5, Some([1.0, 6.0])));
/// assert_eq!(median_interval(&[1.0, 2.0]), Some((1.5, None)), "two values say too little");
/// ```
pub fn median_interval(values: &[f64]) -> Option<(f64, Option<[f64; 2]>)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let median = (sorted.get(count.checked_sub(1)? / 2)? + sorted[count / 2]) / 2.0;
    // The number of values below the true median is binomial with p = 1/2. `tail` is the probability that at most
    // `below` values are.
    let mut term = 0.5_f64.powi(count.min(1000) as i32);
    let (mut tail, mut below) = (term, None);
    while tail <= 0.025 && count <= 1000 {
        let next = below.map_or(0, |below: usize| below + 1);
        below = Some(next);
        term *= (count - next) as f64 / (next + 1) as f64;
        tail += term;
    }
    Some((median, below.map(|below| [sorted[below], sorted[count - 1 - below]])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_30_values_has_the_tabulated_ranks() {
        // Tables of order statistics give the ranks 10 and 21 of 30 values for 95 %, and 8 and 18 of 25.
        let values: Vec<f64> = (1..=30).map(f64::from).collect();
        assert_eq!(median_interval(&values), Some((15.5, Some([10.0, 21.0]))));
        assert_eq!(median_interval(&values[..25]), Some((13.0, Some([8.0, 18.0]))));
        assert_eq!(median_interval(&[]), None);
    }
}
