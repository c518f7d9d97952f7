//! Distinguishes effects of missing records from violations that are too frequent for that.

/// Counts strange judgments and all judgments.
#[derive(Debug, Default)]
pub(super) struct Suspicion {
    times: u64,
    of: u64,
}

impl Suspicion {
    /// A capture may lack one record in this many. A rule does not judge a capture that lacks more.
    const ONE_OF: u64 = 32;

    /// Counts a judgment. Returns true if it is strange, is at least the `enough`-th strange one, and strange ones
    /// exceed a small share of all.
    pub(super) fn add(&mut self, strange: bool, enough: u64) -> bool {
        self.of += 1;
        self.times += u64::from(strange);
        strange && self.times >= enough && self.times.saturating_mul(Self::ONE_OF) >= self.of
    }
}
