//! What missing records explain once in a while, but not often.

/// How often something was strange, and how often it could have been.
#[derive(Debug, Default)]
pub(crate) struct Suspicion {
    times: u64,
    of: u64,
}

impl Suspicion {
    /// A capture that lacks more records than this, one of so many, is of no use here.
    const ONE_OF: u64 = 32;

    /// Counts a judgement. Whether it is strange, and that so often that missing records do not explain it: `enough` times,
    /// and in no small part of all judgements, however long the capture is.
    pub(crate) fn add(&mut self, strange: bool, enough: u64) -> bool {
        self.of += 1;
        self.times += u64::from(strange);
        strange && self.times >= enough && self.times.saturating_mul(Self::ONE_OF) >= self.of
    }
}
