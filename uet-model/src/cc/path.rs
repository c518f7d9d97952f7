//! Path selection (section 3.6.16): the entropy value of each packet.

use super::{CcError, Network, params};
use crate::Time;
use core::time::Duration;
use fastrand::Rng;
use std::collections::VecDeque;

/// How paths are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathMode {
    /// One value, which changes only on congestion, and only when idle or seldom: for ROD.
    Single,
    /// All values in a random order, each once before any comes again.
    #[default]
    Oblivious,
    /// Values that came back without a mark are used again, oldest first, a few of them being kept; else a random one.
    Recycling,
    /// The oblivious order without the values that congestion was reported for.
    Bitmap,
}

/// The parameters of path selection.
#[derive(Clone, Debug, PartialEq)]
pub struct PathParams {
    /// How paths are chosen.
    pub mode: PathMode,
    /// The first entropy value. Open: 0xC000 here, where ephemeral ports start.
    pub first: u16,
    /// How many values there are, from the first on; 256.
    pub values: u16,
    /// t_reroute: the least time between two changes of a single path that is never idle; 10 round trips.
    pub t_reroute: Duration,
    /// How many values are kept to be used again.
    pub ring: u16,
    /// How often a value behind a timeout is passed over; a congested one is once. Open: 4 here.
    pub timeout_rest: u8,
}

impl PathParams {
    /// The defaults for this network.
    pub fn new(network: &Network) -> Self {
        PathParams {
            mode: PathMode::default(),
            first: 0xc000,
            values: 256,
            t_reroute: network.base_rtt.saturating_mul(10),
            ring: 8,
            timeout_rest: 4,
        }
    }

    /// Refuses what cannot work.
    pub fn check(&self) -> Result<(), CcError> {
        params::require((1..=4096).contains(&self.values), "values", "1 to 4,096")?;
        params::require(
            self.first.checked_add(self.values - 1).is_some(),
            "first",
            "the last value has 16 bits",
        )?;
        params::require((1..=4096).contains(&self.ring), "ring", "1 to 4,096")
    }
}

/// What became of a packet, for the path that it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathFeedback {
    /// Acknowledged, without a mark.
    Good,
    /// Marked by congestion.
    Congested,
    /// Trimmed within the fabric.
    Bad,
    /// Taken for lost.
    TimedOut,
}

impl PathFeedback {
    /// By the mark in an ACK or NACK.
    pub fn marked(marked: bool) -> Self {
        if marked { PathFeedback::Congested } else { PathFeedback::Good }
    }
}

/// Chooses the entropy value of each packet.
///
/// ```
/// use uet_model::cc::{Network, PathParams, PathSelector};
///
/// let mut paths = PathSelector::new(PathParams::new(&Network::default()), 7)?;
/// let mut seen: Vec<u16> = (0..256).map(|_| paths.next()).collect();
/// seen.sort_unstable();
/// assert!(seen.iter().copied().eq(0xc000..=0xc0ff), "each once");
/// # Ok::<(), uet_model::cc::CcError>(())
/// ```
#[derive(Debug)]
pub struct PathSelector {
    params: PathParams,
    rng: Rng,
    /// The order of this round, and how much of it has been used.
    order: Vec<u16>,
    used: usize,
    /// Recycling: the values to use again.
    ring: VecDeque<u16>,
    /// Bitmap: how often each value is still to be passed over, and how many are at all.
    rests: Vec<u8>,
    resting: usize,
    /// Single: the value, when it last changed, and whether congestion asks for another.
    current: u16,
    changed: Time,
    unhappy: bool,
}

impl Default for PathSelector {
    /// Oblivious, for the default network.
    fn default() -> Self {
        Self::seeded(PathParams::new(&Network::default()), 0)
    }
}

impl PathSelector {
    /// With these parameters. The seed decides the order.
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

    /// The entropy value of the next packet.
    #[expect(clippy::should_implement_trait, reason = "it never ends, and is no sequence of its own")]
    pub fn next(&mut self) -> u16 {
        let index = match self.params.mode {
            PathMode::Single => self.current,
            PathMode::Oblivious => self.next_in_order(),
            PathMode::Recycling => self.recycled(),
            PathMode::Bitmap => self.next_rested(),
        };
        self.params.first + index
    }

    /// What became of a packet that took this path.
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

    /// The context has new data after nothing waited and nothing was in flight: nothing can be overtaken, so a single
    /// path may change at once (`CC-PATH-003`).
    pub fn idle(&mut self, now: Time) {
        if self.unhappy {
            self.change(now);
        }
    }

    /// `CC-PATH-002`: each value once before any comes again. The order is a new one each round.
    fn next_in_order(&mut self) -> u16 {
        if self.used >= self.order.len() {
            self.rng.shuffle(&mut self.order);
            self.used = 0;
        }
        self.used += 1;
        self.order[self.used - 1]
    }

    /// The value that waits longest to be used again, or a random one.
    fn recycled(&mut self) -> u16 {
        match self.ring.pop_front() {
            Some(index) => index,
            None => self.rng.u16(..self.params.values),
        }
    }

    /// Keeps what came back without a mark, the newest few of it, and forgets what did not.
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

    /// The next in order that need not rest; each that is met has rested once more. When more than half of them rest,
    /// all are used, so that the set never runs out.
    fn next_rested(&mut self) -> u16 {
        // A round and what is left of this one meets every value, and takes the first that does not rest.
        for _ in 0..2 * self.order.len() {
            let index = self.next_in_order();
            if !self.passes_over(index) {
                return index;
            }
        }
        self.next_in_order()
    }

    /// Whether this value rests; once less from now on.
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

    /// Congestion makes a value rest for a round, a timeout for several.
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

    /// `CC-PATH-003`: a path that is in use changes at most every t_reroute. Feedback of a path that is no longer used
    /// says nothing of this one.
    fn reroute(&mut self, now: Time, index: u16, feedback: PathFeedback) {
        if index != self.current || feedback == PathFeedback::Good {
            return;
        }
        self.unhappy = true;
        if now - self.changed >= self.params.t_reroute {
            self.change(now);
        }
    }

    /// Another value than the current one, where there is one.
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
