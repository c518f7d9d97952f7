//! Times in picoseconds. At every usual link rate, a byte takes a whole number of them.

use core::time::Duration;
use uet_model::Time;

/// A point in time or a duration, in picoseconds.
pub(crate) type Picos = u64;

/// Converts a duration to picoseconds. Durations beyond half a year become `u64::MAX`.
pub(crate) fn picos(span: Duration) -> Picos {
    u64::try_from(span.as_nanos()).ok().and_then(|nanos| nanos.checked_mul(1000)).unwrap_or(u64::MAX)
}

/// Converts a time to the model's clock, in nanoseconds.
pub(crate) fn model_time(at: Picos) -> Time {
    Time(at / 1000)
}

/// Returns the time that a link takes for `bytes`. The rate is in bits per second.
pub(crate) fn serialization(bytes: u32, rate: u64) -> Picos {
    let bits = u128::from(bytes) * 8 * 1_000_000_000_000;
    (bits / u128::from(rate.max(1))) as Picos
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialization_is_exact_at_common_rates() {
        assert_eq!(serialization(4200, 100_000_000_000), 336_000);
        assert_eq!(serialization(1, 800_000_000_000), 10);
        assert_eq!(serialization(1, 1_600_000_000_000), 5);
    }
}
