//! Times in picoseconds, so that a byte takes a whole number of them at every link rate in use.

use core::time::Duration;
use uet_model::Time;

/// A point in time, or a span, in picoseconds.
pub(crate) type Picos = u64;

/// Converts a span to picoseconds. A span beyond half a year becomes `u64::MAX`.
pub(crate) fn picos(span: Duration) -> Picos {
    u64::try_from(span.as_nanos()).ok().and_then(|nanos| nanos.checked_mul(1000)).unwrap_or(u64::MAX)
}

/// Converts a time to the model's clock, which counts nanoseconds.
pub(crate) fn model_time(at: Picos) -> Time {
    Time(at / 1000)
}

/// Returns how long a link of this rate, in bits per second, takes for `bytes`.
pub(crate) fn serialisation(bytes: u32, rate: u64) -> Picos {
    let bits = u128::from(bytes) * 8 * 1_000_000_000_000;
    (bits / u128::from(rate.max(1))) as Picos
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialisation_is_exact_at_common_rates() {
        assert_eq!(serialisation(4200, 100_000_000_000), 336_000);
        assert_eq!(serialisation(1, 800_000_000_000), 10);
        assert_eq!(serialisation(1, 1_600_000_000_000), 5);
    }
}
