//! Pseudo-random bytes, identical in every run.

/// A pseudo-random number generator (xorshift) for mutations and for tests.
#[derive(Clone, Debug)]
pub struct Noise(u64);

impl Noise {
    /// Creates a generator with this seed.
    pub fn new(seed: u64) -> Self {
        // Zero would stay zero; small seeds would start alike.
        Noise((seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1)
    }

    /// Returns a number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        // The low bits have the least randomness.
        ((self.number() >> 16) as usize).checked_rem(end).unwrap_or(0)
    }

    /// Returns true once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Returns this many bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| (self.number() >> 24) as u8).collect()
    }
}
