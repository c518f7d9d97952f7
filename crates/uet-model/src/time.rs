use core::hash::{Hash, Hasher};
use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

/// A point in time, in nanoseconds since the caller's clock started. The model has no clock of its own.
///
/// ```
/// use std::time::Duration;
/// use uet_model::Time;
///
/// let later = Time::ZERO + Duration::from_micros(3);
/// assert_eq!(later, Time(3_000));
/// assert_eq!(later - Time(1_000), Duration::from_micros(2));
/// assert_eq!(Time(1_000) - later, Duration::ZERO, "a clock that went back shows no negative time");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub u64);

impl Time {
    /// The start of the clock.
    pub const ZERO: Time = Time(0);
}

/// Writes a `u128`, as nothing else in the model does. A hasher can so recognize times, and hash them relative to the
/// present.
impl Hash for Time {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(self.0.into());
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(nanos(span)))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub for Time {
    type Output = Duration;

    fn sub(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Converts a duration to nanoseconds, at most 584 years.
fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
