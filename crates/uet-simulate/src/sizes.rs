//! Distributions of flow sizes.

use crate::error::TextError;
use core::str::FromStr;
use fastrand::Rng;

/// A distribution of flow sizes: a table of sizes and of the probability that a flow is at most as large. Between two
/// lines of the table, the probability grows linearly.
///
/// ```
/// use uet_simulate::FlowSizes;
///
/// let sizes: FlowSizes = "1000 0\n2000 0.5\n4000 1\n".parse()?;
/// assert_eq!(sizes.mean(), 2250.0);
/// assert_eq!((sizes.at(0.25), sizes.at(1.0)), (1500, 4000));
///
/// let error = "1000 0.5\n500 1\n".parse::<FlowSizes>().unwrap_err();
/// assert_eq!(error.to_string(), "line 2: sizes and probabilities must not decrease");
/// # Ok::<(), uet_simulate::TextError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSizes {
    points: Vec<(f64, f64)>,
}

/// The distributions by name. Sources: M. Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, and A. Greenberg et
/// al., "VL2", SIGCOMM 2009, in the tables by which simulators usually represent them.
const BUILT_IN: [(&str, &str); 2] = [
    (
        "web-search",
        "0 0\n10000 0.15\n20000 0.2\n30000 0.3\n50000 0.4\n80000 0.53\n200000 0.6\n1000000 0.7\n2000000 0.8\n\
         5000000 0.9\n10000000 0.97\n30000000 1\n",
    ),
    (
        "data-mining",
        "0 0\n180 0.1\n216 0.2\n560 0.3\n900 0.4\n1100 0.5\n1870 0.6\n3160 0.7\n10000 0.8\n400000 0.9\n\
         3160000 0.95\n100000000 0.98\n1000000000 1\n",
    ),
];

impl FlowSizes {
    /// The maximum number of lines.
    pub const MAX_POINTS: usize = 10_000;

    /// Returns a distribution that simulators commonly use: `web-search` (DCTCP) or `data-mining` (VL2).
    pub fn built_in(name: &str) -> Option<Self> {
        BUILT_IN.iter().find(|(known, _)| *known == name)?.1.parse().ok()
    }

    /// Returns the distribution of a constant size, in bytes.
    pub fn constant(size: u64) -> Self {
        FlowSizes { points: vec![(size as f64, 1.0)] }
    }

    /// Returns the size that flows reach with this probability, at least 1 byte.
    pub fn at(&self, probability: f64) -> u64 {
        let after = self.points.partition_point(|(_, at_most)| *at_most < probability);
        let (size, at_most) = self.points[after.min(self.points.len() - 1)];
        let (before, below) = match after.checked_sub(1) {
            Some(before) => self.points[before],
            None => (size, 0.0),
        };
        let share = if at_most > below { ((probability - below) / (at_most - below)).min(1.0) } else { 1.0 };
        ((before + (size - before) * share).round() as u64).max(1)
    }

    /// Returns the mean size, in bytes.
    pub fn mean(&self) -> f64 {
        let mut before = (self.points[0].0, 0.0);
        let mut mean = 0.0;
        for point in &self.points {
            mean += (point.1 - before.1) * (point.0 + before.0) / 2.0;
            before = *point;
        }
        mean
    }

    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        self.at(rng.f64())
    }
}

impl FromStr for FlowSizes {
    type Err = TextError;

    /// Parses lines with a size in bytes and a probability, which ends at 1 or at 100 (percent). `#` begins a comment.
    fn from_str(text: &str) -> Result<Self, TextError> {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let wrong = |reason: &str| TextError { line: number, reason: reason.into() };
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace().map(str::parse::<f64>);
            let (size, at_most) = match (words.next(), words.next(), words.next()) {
                (None, ..) => continue,
                (Some(Ok(size)), Some(Ok(at_most)), None) => (size, at_most),
                _ => return Err(wrong("expected a size in bytes and a probability")),
            };
            let last = points.last().copied().unwrap_or_default();
            if !((0.0..=u32::MAX.into()).contains(&size) && (0.0..=100.0).contains(&at_most)) {
                return Err(wrong(
                    "sizes are from 0 to 4 GiB, and probabilities from 0 to 1 or from 0 to 100",
                ));
            }
            if size < last.0 || at_most < last.1 {
                return Err(wrong("sizes and probabilities must not decrease"));
            }
            if points.len() == Self::MAX_POINTS {
                return Err(wrong("a distribution has at most 10,000 lines"));
            }
            points.push((size, at_most));
        }
        let whole = match points.last() {
            Some((_, whole)) if [1.0, 100.0].contains(whole) => *whole,
            _ => {
                let reason = "the last line must have the probability 1 or 100";
                return Err(TextError { line: 0, reason: reason.into() });
            }
        };
        points.iter_mut().for_each(|(_, at_most)| *at_most /= whole);
        Ok(FlowSizes { points })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_tables_are_read() {
        let mean = |name: &str| FlowSizes::built_in(name).unwrap().mean();
        // The sums over the tables, by hand: 1.711 MB and 12.66 MB.
        assert!((1.7e6..1.72e6).contains(&mean("web-search")), "{}", mean("web-search"));
        assert!((12.6e6..12.7e6).contains(&mean("data-mining")), "{}", mean("data-mining"));
        assert_eq!(FlowSizes::built_in("nothing"), None);
    }

    #[test]
    fn drawn_sizes_follow_the_table() {
        let sizes: FlowSizes = "100 10 # small\n\n200 60\n300 100\n".parse().unwrap();
        let mut rng = Rng::with_seed(1);
        let drawn: Vec<u64> = (0..10_000).map(|_| sizes.draw(&mut rng)).collect();
        let share = |most: u64| drawn.iter().filter(|size| **size <= most).count() as f64 / 1e4;
        assert!((share(100) - 0.1).abs() < 0.02, "{}", share(100));
        assert!((share(200) - 0.6).abs() < 0.02, "{}", share(200));
        assert!(drawn.iter().all(|size| (100..=300).contains(size)));
        let mean = drawn.iter().sum::<u64>() as f64 / 1e4;
        assert!((mean - sizes.mean()).abs() < 3.0, "{mean} {}", sizes.mean());
    }

    #[test]
    fn wrong_tables_are_refused_by_line() {
        for (text, error) in [
            ("1000\n", "line 1: expected a size in bytes and a probability"),
            (
                "0 0\n5 nan\n",
                "line 2: sizes are from 0 to 4 GiB, and probabilities from 0 to 1 or from 0 to 100",
            ),
            ("5 0.5\n6 0.4\n", "line 2: sizes and probabilities must not decrease"),
            ("5 0.5\n", "the last line must have the probability 1 or 100"),
            ("", "the last line must have the probability 1 or 100"),
        ] {
            assert_eq!(text.parse::<FlowSizes>().unwrap_err().to_string(), error);
        }
    }
}
