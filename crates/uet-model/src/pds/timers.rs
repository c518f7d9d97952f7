//! Timers. All timers of a kind have an equal duration, so a list per kind is always sorted. Arming appends to a list,
//! and the next timer is the head of one. The number of timers is bounded by the things that wait.

use super::list::{Linked, Links, List, NOWHERE, SlabKey};
use crate::Time;
use core::time::Duration;
use slab::Slab;

/// The purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "explore", derive(Hash))]
pub(crate) enum Timer {
    /// A packet, by its place in the pool, waits for its ACK after this many timeouts.
    Retransmission(SlabKey, u8),
    /// A refused packet waits for the end of its back-off.
    AfterNack(SlabKey),
    /// An ACK is delayed.
    AckDelay(u16),
    /// CLEAR_PSN waits for a request that carries it.
    Clear(u16),
    /// A stored response waits for a clear.
    AskClear(u16),
    /// A source waits for its closed window to open.
    Window(u16),
    /// A target waits for the CLOSE_COMMAND that it requested.
    CloseRequest(u16),
    /// A context is idle.
    Idle(u16),
    /// A closed context is remembered.
    Linger(u16),
    /// A context with a refused Start_PSN waits for the new one.
    NewPdc(u16),
    /// An idempotent request waits for its response after this many timeouts.
    Rudi(SlabKey, u8),
    /// A refused idempotent request waits for the end of its back-off.
    RudiAfterNack(SlabKey),
}

/// Timeouts double up to this exponent.
const LEVELS: usize = 24;
const KINDS: usize = 10 + 2 * LEVELS;

impl Timer {
    /// Returns the list of timers with this duration.
    fn kind(self) -> usize {
        let level = |n: u8| usize::from(n).min(LEVELS - 1);
        match self {
            Timer::AckDelay(_) => 0,
            Timer::AfterNack(_) => 1,
            Timer::Clear(_) => 2,
            Timer::AskClear(_) => 3,
            Timer::CloseRequest(_) => 4,
            Timer::Idle(_) => 5,
            Timer::Linger(_) => 6,
            Timer::NewPdc(_) => 7,
            Timer::RudiAfterNack(_) => 8,
            Timer::Window(_) => 9,
            Timer::Retransmission(_, n) => 10 + level(n),
            Timer::Rudi(_, n) => 10 + LEVELS + level(n),
        }
    }
}

/// `PDS-RTO-002`: the timeout doubles with each retransmission. The model counts timeouts: a retransmission after a
/// NACK does not lengthen the next one.
pub(crate) fn backed_off(first: Duration, timeouts: u8) -> Duration {
    first.saturating_mul(1 << usize::from(timeouts).min(LEVELS - 1))
}

#[cfg_attr(feature = "explore", derive(Clone))]
struct TimerNode {
    links: Links,
    at: Time,
    timer: Timer,
}

impl Linked for TimerNode {
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// A handle to a timer that may be armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alarm(SlabKey);

#[cfg(feature = "explore")]
impl core::hash::Hash for Alarm {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        // The timer itself names its owner.
        self.is_armed().hash(state);
    }
}

impl Default for Alarm {
    fn default() -> Self {
        Alarm(NOWHERE)
    }
}

impl Alarm {
    pub(crate) fn is_armed(self) -> bool {
        self.0 != NOWHERE
    }
}

/// All timers of an endpoint.
#[cfg_attr(feature = "explore", derive(Clone))]
pub(crate) struct Timers {
    nodes: Slab<TimerNode>,
    lists: [List; KINDS],
    /// A bit for each list with timers.
    armed: u64,
    /// The time of the next timer.
    next: Option<Time>,
}

#[cfg(feature = "explore")]
impl core::hash::Hash for Timers {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        for (kind, list) in self.lists.iter().enumerate().filter(|(_, list)| !list.is_empty()) {
            let first = list.first().and_then(|key| self.nodes.get(key as usize));
            let nodes = core::iter::successors(first, |node| self.nodes.get(node.links.after() as usize));
            kind.hash(state);
            nodes.for_each(|node| (node.at, node.timer).hash(state));
        }
    }
}

const _: () = assert!(KINDS <= 64);

impl Default for Timers {
    fn default() -> Self {
        Timers { nodes: Slab::new(), lists: [List::default(); KINDS], armed: 0, next: None }
    }
}

impl Timers {
    /// Arms `alarm`, and cancels it first if it is armed.
    pub(crate) fn arm(&mut self, alarm: &mut Alarm, at: Time, timer: Timer) {
        self.cancel(alarm);
        let kind = timer.kind();
        let list = &mut self.lists[kind];
        // A clock that went back must not leave the list unsorted.
        let last = list.last().and_then(|key| self.nodes.get(key as usize)).map_or(at, |node| node.at);
        let at = at.max(last);
        let key = self.nodes.insert(TimerNode { links: Links::default(), at, timer }) as SlabKey;
        list.push(&mut self.nodes, key);
        self.armed |= 1 << kind;
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
        *alarm = Alarm(key);
    }

    /// Cancels `alarm` if it is armed.
    pub(crate) fn cancel(&mut self, alarm: &mut Alarm) {
        let key = core::mem::take(alarm).0;
        if let Some(node) = self.nodes.get(key as usize).filter(|_| key != NOWHERE) {
            let kind = node.timer.kind();
            self.take(kind, key);
        }
    }

    fn take(&mut self, kind: usize, key: SlabKey) -> Option<Timer> {
        let list = &mut self.lists[kind];
        list.remove(&mut self.nodes, key);
        if list.is_empty() {
            self.armed &= !(1 << kind);
        }
        let node = self.nodes.try_remove(key as usize)?;
        if self.next == Some(node.at) {
            self.next = self.first().map(|(at, _, _)| at);
        }
        Some(node.timer)
    }

    fn first(&self) -> Option<(Time, usize, SlabKey)> {
        let (mut armed, mut first) = (self.armed, None);
        while armed != 0 {
            let kind = armed.trailing_zeros() as usize;
            armed &= armed - 1;
            let Some(key) = self.lists[kind].first() else { continue };
            let Some(node) = self.nodes.get(key as usize) else { continue };
            if first.is_none_or(|(at, _, _)| node.at < at) {
                first = Some((node.at, kind, key));
            }
        }
        first
    }

    /// Returns the time of the next timer.
    pub(crate) fn next(&self) -> Option<Time> {
        self.next
    }

    /// Takes a timer that is due. Its owner resets its [`Alarm`].
    pub(crate) fn pop(&mut self, now: Time) -> Option<Timer> {
        self.next.filter(|at| *at <= now)?;
        let (_, kind, key) = self.first()?;
        self.take(kind, key)
    }

    /// Returns the number of armed timers.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_in_order_of_time_whatever_their_kind() {
        let mut timers = Timers::default();
        let mut alarms = [Alarm::default(); 4];
        timers.arm(&mut alarms[0], Time(50), Timer::Retransmission(0, 0));
        timers.arm(&mut alarms[1], Time(10), Timer::AckDelay(1));
        timers.arm(&mut alarms[2], Time(40), Timer::Retransmission(2, 1));
        timers.arm(&mut alarms[3], Time(20), Timer::AckDelay(3));
        timers.cancel(&mut alarms[1]);
        assert!(!alarms[1].is_armed());
        assert_eq!(timers.next(), Some(Time(20)));
        assert_eq!(timers.pop(Time(19)), None);
        assert_eq!(timers.pop(Time(60)), Some(Timer::AckDelay(3)));
        assert_eq!(timers.pop(Time(60)), Some(Timer::Retransmission(2, 1)));
        assert_eq!(timers.pop(Time(60)), Some(Timer::Retransmission(0, 0)));
        assert_eq!((timers.pop(Time(60)), timers.next(), timers.len()), (None, None, 0));
    }

    #[test]
    fn arming_again_replaces() {
        let mut timers = Timers::default();
        let mut alarm = Alarm::default();
        timers.arm(&mut alarm, Time(10), Timer::Idle(1));
        timers.arm(&mut alarm, Time(30), Timer::Idle(1));
        assert_eq!((timers.len(), timers.next()), (1, Some(Time(30))));
    }

    #[test]
    fn waits_double_and_do_not_overflow() {
        let first = Duration::from_micros(100);
        assert_eq!(backed_off(first, 0), first);
        assert_eq!(backed_off(first, 3), first * 8);
        assert_eq!(backed_off(first, 255), first * (1 << 23));
    }
}
