//! Path selection (section 3.6.16): the entropy value of each packet.

use super::{CcError, NetworkParams, params};
use crate::Time;
use core::time::Duration;
use fastrand::Rng;
use std::collections::VecDeque;

/// The mode of path selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathMode {
    /// A single value, which changes rarely and only after congestion. For ROD.
    Single,
    /// All values in random order, each once per round.
    #[default]
    Oblivious,
    /// Reuses values that returned without a mark, oldest first, and otherwise draws a random value.
    Recycling,
    /// The oblivious order without congested values.
    Bitmap,
}

/// The parameters of path selection.
#[derive(Clone, Debug, PartialEq)]
pub struct PathParams {
    /// The mode of path selection.
    pub mode: PathMode,
    /// The first entropy value. Open: 0xC000 here, where ephemeral ports start.
    pub first: u16,
    /// The number of consecutive values; 256.
    pub values: u16,
    /// t_reroute: the minimum time between changes of a busy single path; 10 round trips.
    pub t_reroute: Duration,
    /// The number of values kept for reuse.
    pub ring: u16,
    /// The number of rounds without a value after a timeout; after congestion it is one. Open: 4 here.
    pub timeout_rest: u8,
}

impl PathParams {
    /// Returns the defaults for this network.
    pub fn new(network: &NetworkParams) -> Self {
        PathParams {
            mode: PathMode::default(),
            first: 0xc000,
            values: 256,
            t_reroute: network.base_rtt.saturating_mul(10),
            ring: 8,
            timeout_rest: 4,
        }
    }

    /// Checks that the values are possible. Fails with the first impossible parameter.
    pub fn check(&self) -> Result<(), CcError> {
        params::require((1..=4096).contains(&self.values), "values", "must be from 1 to 4,096")?;
        params::require(
            self.first.checked_add(self.values - 1).is_some(),
            "first",
            "must be at most 65,536 - values",
        )?;
        params::require((1..=4096).contains(&self.ring), "ring", "must be from 1 to 4,096")
    }
}

/// The fate of a packet, as feedback for its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathFeedback {
    /// Acknowledged, without a mark.
    Good,
    /// Marked (ECN).
    Congested,
    /// Trimmed in the fabric.
    Bad,
    /// Declared lost.
    TimedOut,
}

impl PathFeedback {
    /// Returns the feedback for the mark in an ACK or NACK.
    pub fn marked(marked: bool) -> Self {
        if marked { PathFeedback::Congested } else { PathFeedback::Good }
    }
}

/// Chooses the entropy value of each packet.
///
/// ```
/// use uet_model::cc::{NetworkParams, PathParams, PathSelector};
///
/// let mut paths = PathSelector::new(PathParams::new(&NetworkParams::default()), 7)?;
/// let mut seen: Vec<u16> = (0..256).map(|_| paths.next()).collect();
/// seen.sort_unstable();
/// assert!(seen.iter().copied().eq(0xc000..=0xc0ff), "each once");
/// # Ok::<(), uet_model::cc::CcError>(())
/// ```
#[derive(Debug)]
#[cfg_attr(feature = "explore", derive(Clone))]
pub struct PathSelector {
    params: PathParams,
    rng: Rng,
    /// The order of this round, and the number of values used.
    order: Vec<u16>,
    used: usize,
    /// Recycling: the values to reuse.
    ring: VecDeque<u16>,
    /// Bitmap: the remaining rounds without each value, and the number of such values.
    rests: Vec<u8>,
    resting: usize,
    /// Single: the value, the time of its last change, and whether congestion requests another.
    current: u16,
    changed: Time,
    unhappy: bool,
}

#[cfg(feature = "explore")]
impl core::hash::Hash for PathSelector {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        let PathSelector { params: _, rng, order, used, ring, rests, resting, current, changed, unhappy } =
            self;
        (rng.get_seed(), order, used, ring, rests, resting, current, changed, unhappy).hash(state);
    }
}

impl Default for PathSelector {
    /// Returns oblivious spraying for the default network.
    fn default() -> Self {
        Self::seeded(PathParams::new(&NetworkParams::default()), 0)
    }
}

impl PathSelector {
    /// Creates a selector. The seed determines the order. Fails if a parameter is impossible.
    pub fn new(params: PathParams, seed: u64) -> Result<Self, CcError> {
        params.check()?;
        Ok(Self::seeded(params, seed))
    }

    fn seeded(params: PathParams, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let order: Vec<u16> = (0..params.values).collect();
        PathSelector {
            current: rng.u16(..params.values),
            used: order.len(),
            rests: vec![0; order.len()],
            order,
            rng,
            ring: VecDeque::new(),
            resting: 0,
            changed: Time::ZERO,
            unhappy: false,
            params,
        }
    }

    /// Returns the entropy value of the next packet.
    #[expect(clippy::should_implement_trait, reason = "it never ends, so it is not an iterator")]
    pub fn next(&mut self) -> u16 {
        let index = match self.params.mode {
            PathMode::Single => self.current,
            PathMode::Oblivious => self.next_in_order(),
            PathMode::Recycling => self.recycled(),
            PathMode::Bitmap => self.next_rested(),
        };
        self.params.first + index
    }

    /// Handles the feedback of a packet that took this path.
    pub fn feedback(&mut self, now: Time, entropy: u16, feedback: PathFeedback) {
        let Some(index) = entropy.checked_sub(self.params.first).filter(|index| *index < self.params.values)
        else {
            return;
        };
        match self.params.mode {
            PathMode::Single => self.reroute(now, index, feedback),
            PathMode::Oblivious => {}
            PathMode::Recycling => self.recycle(index, feedback),
            PathMode::Bitmap => self.rest(index, feedback),
        }
    }

    /// Records new data after an idle time. No packet can be overtaken then, so a single path may change
    /// (`CC-PATH-003`).
    pub fn idle(&mut self, now: Time) {
        if self.unhappy {
            self.change(now);
        }
    }

    /// `CC-PATH-002`: uses each value once per round, in a new order each round.
    fn next_in_order(&mut self) -> u16 {
        if self.used >= self.order.len() {
            self.rng.shuffle(&mut self.order);
            self.used = 0;
        }
        self.used += 1;
        self.order[self.used - 1]
    }

    /// Returns the oldest value to reuse, or a random one.
    fn recycled(&mut self) -> u16 {
        match self.ring.pop_front() {
            Some(index) => index,
            None => self.rng.u16(..self.params.values),
        }
    }

    /// Keeps the newest values that returned without a mark.
    fn recycle(&mut self, index: u16, feedback: PathFeedback) {
        if feedback != PathFeedback::Good {
            self.ring.retain(|kept| *kept != index);
            return;
        }
        if self.ring.len() >= usize::from(self.params.ring) {
            self.ring.pop_front();
        }
        self.ring.push_back(index);
    }

    /// Returns the next value that is not resting. If more than half are resting, all are used, so that the set never runs
    /// out.
    fn next_rested(&mut self) -> u16 {
        // One round and the rest of the current one visit every value.
        for _ in 0..2 * self.order.len() {
            let index = self.next_in_order();
            if !self.passes_over(index) {
                return index;
            }
        }
        self.next_in_order()
    }

    /// Returns whether a value is resting; counts one visit.
    fn passes_over(&mut self, index: u16) -> bool {
        let too_many = self.resting * 2 > self.order.len();
        let rests = &mut self.rests[usize::from(index)];
        if *rests == 0 {
            return false;
        }
        *rests -= 1;
        if *rests == 0 {
            self.resting -= 1;
        }
        !too_many
    }

    /// Lets a value rest: for a round after congestion, for several after a timeout.
    fn rest(&mut self, index: u16, feedback: PathFeedback) {
        let rounds = match feedback {
            PathFeedback::Good => return,
            PathFeedback::Congested | PathFeedback::Bad => 1,
            PathFeedback::TimedOut => self.params.timeout_rest.max(1),
        };
        let rests = &mut self.rests[usize::from(index)];
        if *rests == 0 {
            self.resting += 1;
        }
        *rests = rounds.max(*rests);
    }

    /// `CC-PATH-003`: a busy path changes at most every t_reroute. Feedback of an earlier path does not count.
    fn reroute(&mut self, now: Time, index: u16, feedback: PathFeedback) {
        if index != self.current || feedback == PathFeedback::Good {
            return;
        }
        self.unhappy = true;
        if now - self.changed >= self.params.t_reroute {
            self.change(now);
        }
    }

    /// Changes to another value, if there is one.
    fn change(&mut self, now: Time) {
        if self.params.values > 1 {
            let step = self.rng.u16(1..self.params.values);
            self.current =
                ((u32::from(self.current) + u32::from(step)) % u32::from(self.params.values)) as u16;
        }
        self.changed = now;
        self.unhappy = false;
    }
}
