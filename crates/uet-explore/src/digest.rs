//! Hashes of states, with times relative to the present.

use core::hash::{BuildHasher, Hash, Hasher};
use uet_model::Time;

/// A hasher that subtracts the present from each [`Time`]. The model hashes nothing else with `write_u128`.
struct Relative<H> {
    inner: H,
    now: u64,
}

impl<H: Hasher> Hasher for Relative<H> {
    fn finish(&self) -> u64 {
        self.inner.finish()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.inner.write(bytes);
    }

    fn write_u8(&mut self, value: u8) {
        self.inner.write_u8(value);
    }

    fn write_u16(&mut self, value: u16) {
        self.inner.write_u16(value);
    }

    fn write_u32(&mut self, value: u32) {
        self.inner.write_u32(value);
    }

    fn write_u64(&mut self, value: u64) {
        self.inner.write_u64(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.inner.write_usize(value);
    }

    fn write_u128(&mut self, time: u128) {
        // Time zero stands for "never", because explorations start later.
        let time = time as u64;
        self.inner.write_u64(if time == 0 { u64::MAX } else { time.wrapping_sub(self.now) });
    }
}

/// Returns a 64-bit hash. Equal states have equal hashes at any time and in any run.
pub(crate) fn digest(state: &impl Hash, now: Time) -> u64 {
    let inner = foldhash::quality::FixedState::with_seed(0x5eed).build_hasher();
    let mut hasher = Relative { inner, now: now.0 };
    state.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_distance_of_a_time_counts() {
        assert_eq!(digest(&Time(70), Time(50)), digest(&Time(120), Time(100)));
        assert_ne!(digest(&Time(70), Time(50)), digest(&Time(70), Time(51)));
        assert_eq!(digest(&Time(0), Time(50)), digest(&Time(0), Time(100)), "never");
        assert_ne!(digest(&70u64, Time(50)), digest(&120u64, Time(100)), "a number is no time");
    }
}
