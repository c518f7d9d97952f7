//! Bytes that look random and are the same in every run.

/// A generator of pseudo-random numbers (xorshift), for what chooses and for tests.
#[derive(Clone, Debug)]
pub struct Noise(u64);

impl Noise {
    /// The noise of this seed.
    pub fn new(seed: u64) -> Self {
        // Zero would stay zero; small seeds would start alike.
        Noise((seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1)
    }

    /// Some number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`; 0 where there is none.
    pub fn below(&mut self, end: usize) -> usize {
        // The low bits are the worst ones.
        ((self.number() >> 16) as usize).checked_rem(end).unwrap_or(0)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// So many bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| (self.number() >> 24) as u8).collect()
    }
}
