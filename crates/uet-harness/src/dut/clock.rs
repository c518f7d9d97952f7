//! The clock of a run: the machine's, or the device's.

use core::time::Duration;
use std::time::Instant;

/// The clock of a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Clock {
    /// Runs from this moment on.
    Real(Instant),
    /// Stands still until the device has advanced its time.
    OfDevice {
        /// Time since the run began.
        now: Duration,
        /// This moment in the device's own time.
        told: Duration,
        /// False if the device always advances for the whole span, so that packets carry the time of its end.
        stops_early: bool,
    },
}

impl Clock {
    /// Maximum span of one `advance`. A simulator needs a while for it, and a device that hangs must be noticed.
    const STEP: Duration = Duration::from_millis(10);

    /// Maximum span for a device that does not stop when it sends a packet.
    const FINE_STEP: Duration = Duration::from_micros(100);

    /// Returns a clock of the device that begins now, in the device's time.
    pub(super) fn of_device(now_ns: u64) -> Self {
        Clock::OfDevice { now: Duration::ZERO, told: Duration::from_nanos(now_ns), stops_early: true }
    }

    pub(super) fn now(&self) -> Duration {
        match self {
            Clock::Real(begun) => begun.elapsed(),
            Clock::OfDevice { now, .. } => *now,
        }
    }

    pub(super) fn is_of_device(&self) -> bool {
        matches!(self, Clock::OfDevice { .. })
    }

    /// Returns the span of the next `advance` towards this time.
    pub(super) fn step(&self, until: Duration) -> Duration {
        let most = match self {
            Clock::OfDevice { stops_early: false, .. } => Clock::FINE_STEP,
            _ => Clock::STEP,
        };
        until.saturating_sub(self.now()).min(most)
    }

    /// Sets it to this time of the device. A device whose time goes back gains nothing.
    pub(super) fn set(&mut self, now_ns: u64, early: bool) {
        if let Clock::OfDevice { now, told, stops_early } = self {
            let later = Duration::from_nanos(now_ns).max(*told);
            *now += later - *told;
            (*told, *stops_early) = (later, early);
        }
    }

    /// Returns the clock of a device that was restarted: the run's time continues.
    pub(super) fn continued(self, before: Clock) -> Clock {
        match self {
            Clock::Real(_) => before,
            Clock::OfDevice { told, stops_early, .. } => {
                Clock::OfDevice { now: before.now(), told, stops_early }
            }
        }
    }
}

/// Calls of `advance` that ended early and brought no packet. Each may be the end of an operation, but a rule does not
/// end while the clock crawls.
#[derive(Debug, Default)]
pub(super) struct EarlyStops(usize);

impl EarlyStops {
    /// Their maximum number beyond the packets and the longer spans, which make up for them.
    pub(super) const MOST: usize = 10_000;

    /// Counts an `advance` by `step` that moved the clock by `moved` and brought this many packets. Returns true if
    /// there were too many early stops.
    pub(super) fn are_too_many_after(&mut self, step: Duration, moved: Duration, packets: usize) -> bool {
        // Half of the span is enough for a clock that rounds down.
        let is_early = packets == 0 && moved * 2 < step.min(Clock::FINE_STEP);
        self.0 = if is_early { self.0 + 1 } else { self.0.saturating_sub(packets.max(1)) };
        self.0 > Self::MOST
    }

    /// Forgets them as an instance begins, unless there were too many: the next one then fails at once.
    pub(super) fn forget(&mut self) {
        if self.0 <= Self::MOST {
            self.0 = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn packets_and_longer_spans_make_up_for_early_stops() {
        const CRAWL: Duration = Duration::from_nanos(1);
        let mut stops = EarlyStops::default();
        let is_early_again = |stops: &mut EarlyStops| !stops.are_too_many_after(MS, CRAWL, 0);
        for (step, moved, packets) in [(MS, CRAWL, 1), (MS, Duration::from_micros(50), 0), (CRAWL, CRAWL, 0)]
        {
            for _ in 0..2 * EarlyStops::MOST {
                assert!(is_early_again(&mut stops) && !stops.are_too_many_after(step, moved, packets));
            }
        }
        assert!((0..EarlyStops::MOST).all(|_| is_early_again(&mut stops)));
        stops.forget();
        assert!((0..EarlyStops::MOST).all(|_| is_early_again(&mut stops)));
        assert!(!is_early_again(&mut stops));
        stops.forget();
        assert!(!is_early_again(&mut stops), "the next instance fails at once");
    }

    #[test]
    fn clock_that_stands_1_ns_before_the_end_is_noticed() {
        let (mut stops, step) = (EarlyStops::default(), Duration::from_nanos(1));
        let stands = |_| stops.are_too_many_after(step, Duration::ZERO, 0);
        assert!((0..=EarlyStops::MOST).any(stands));
    }

    #[test]
    fn device_time_counts_from_the_start_of_the_run_and_survives_a_restart() {
        let mut clock = Clock::of_device(5_000_000);
        clock.set(7_000_000, true);
        assert_eq!(clock.now(), 2 * MS);
        clock.set(1_000_000, true);
        assert_eq!(clock.now(), 2 * MS, "never goes back");
        let mut next = Clock::of_device(0).continued(clock);
        next.set(1_000_000, true);
        assert_eq!(next.now(), 3 * MS);
    }

    #[test]
    fn device_that_never_stops_early_advances_in_small_steps() {
        let mut clock = Clock::of_device(0);
        assert_eq!(clock.step(MS), MS);
        assert_eq!(clock.step(1000 * MS), 10 * MS);
        clock.set(0, false);
        assert_eq!(clock.step(MS), Duration::from_micros(100));
    }
}
