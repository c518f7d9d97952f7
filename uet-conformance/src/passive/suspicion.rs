//! Tells what missing records explain from what happens too often for that.

/// Counts how often something was strange, of how many judgements.
#[derive(Debug, Default)]
pub(super) struct Suspicion {
    times: u64,
    of: u64,
}

impl Suspicion {
    /// A capture may lack one record of this many. One that lacks more is not judged.
    const ONE_OF: u64 = 32;

    /// Counts a judgement. Returns true if it is strange, at least the `enough`-th strange one, and strange ones are more
    /// than a small share of all judgements.
    pub(super) fn add(&mut self, strange: bool, enough: u64) -> bool {
        self.of += 1;
        self.times += u64::from(strange);
        strange && self.times >= enough && self.times.saturating_mul(Self::ONE_OF) >= self.of
    }
}
