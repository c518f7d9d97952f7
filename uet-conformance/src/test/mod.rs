//! The interface of a script to the suite and the device.
//!
//! [`Test`] holds four parts, each with one job:
//!
//! - [`Session`]: the session with the device. The link, the control channel, parameters, and time.
//! - [`Inbox`]: the packets of the device that no expectation has taken.
//! - [`Judge`]: the timeline with its phases, and the observations that decide the verdict.
//! - [`SuiteSide`]: the suite's own side of the protocol. Numbers and contexts, its part in a secure domain,
//!   and the sends that carry writes.
//!
//! The fields of a part are private to its file, and no part knows another. The steps of a script are methods
//! of [`Test`], which combine the parts. Files outside of this folder add steps that call only other steps.

mod carrier;
mod cause;
mod check;
mod contexts;
mod exchange;
mod inbox;
mod judge;
mod liveness;
mod operations;
mod parameters;
mod phases;
mod secure;
mod sends;
mod session;
mod suite;
mod upkeep;
mod watch;

use crate::axis::{START, Start};
use crate::observation::that;
use crate::passive::Finding;
use crate::{Axis, Dut, Entry, Ladder, Observation, Outcome, Phase, Relation, Show, Stop};
use core::fmt;
use core::time::Duration;
use inbox::Inbox;
use judge::Judge;
use session::Session;
use std::collections::BTreeSet;
use suite::SuiteSide;
use uet_control::Reset;
use uet_wire::Spec;

/// Number of attempts of a measurement on a shared machine or link.
const TRIES: u32 = 3;

/// Number of attempts if the machine was too busy in each, so that none says anything about the device.
const UNSETTLED: u32 = 5;

/// The interface of a script to the suite and the device.
pub struct Test<'a> {
    session: Session<'a>,
    inbox: Inbox,
    judge: Judge,
    suite: SuiteSide,
    /// The index of the value on each axis of the rule, by the name of the axis.
    points: Vec<(&'static str, usize)>,
    /// True while [`measured`](Self::measured) repeats what a busy machine may disturb.
    measuring: bool,
    /// True if the suite grants the requested credit automatically.
    pub auto_credit: bool,
    /// True if the suite acknowledges control packets automatically.
    pub auto_ack_control: bool,
}

/// The record of a script that has ended.
pub(crate) struct Record {
    pub outcome: Outcome,
    pub observations: Vec<Observation>,
    /// Refusals and failed operations of the device as words; empty if there are none, or if all went well.
    pub circumstances: String,
    pub ladder: Ladder,
    /// True if the device has refused a feature that only a profile requires.
    pub declined: bool,
    /// Parameters of the device that the script has read and set.
    pub read: BTreeSet<String>,
    pub set: BTreeSet<String>,
}

impl Record {
    /// Returns the record of a script that could not begin.
    pub(crate) fn of_nothing(why: String) -> Self {
        Record {
            outcome: Err(Stop::Gone(why)),
            observations: Vec::new(),
            circumstances: String::new(),
            ladder: Ladder::default(),
            declined: false,
            read: BTreeSet::new(),
            set: BTreeSet::new(),
        }
    }
}

/// A count of bytes that the third packet of 4 KiB takes over the wrap of `rcvd_bytes`.
pub(crate) const BEFORE_WRAP: u64 = (1 << 32) - 40 * 256;

impl fmt::Debug for Test<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Test").field("judge", &self.judge).finish_non_exhaustive()
    }
}

impl<'a> Test<'a> {
    pub(crate) fn new(dut: &'a mut dyn Dut, spec: &'static Spec, seed: u64, scale: f64) -> Self {
        Test {
            session: Session::new(dut, spec, seed, scale),
            inbox: Inbox::default(),
            judge: Judge::default(),
            suite: SuiteSide::new(seed),
            points: Vec::new(),
            measuring: false,
            auto_credit: true,
            auto_ack_control: true,
        }
    }

    /// Runs at these values of the axes.
    pub(crate) fn at(self, points: Vec<(&'static str, usize)>) -> Self {
        Test { points, ..self }
    }

    /// Plays a script, and returns its record.
    pub(crate) fn play(mut self, script: impl FnOnce(&mut Self) -> Outcome) -> Record {
        // A device without a control channel does not say if it sets classes.
        let facts = self.session.facts();
        self.suite.watch_mut().sees_class = facts.see_class && facts.control;
        self.suite.watch_mut().sees_entropy = facts.see_entropy && facts.set_entropy;
        let outcome = self.begin().and_then(|()| script(&mut self));
        self.judge_device_passively();
        let is_open = outcome.is_err() || !self.judge.held_since(0);
        let circumstances = if is_open { self.circumstances() } else { String::new() };
        let declined = self.session.declined();
        let (read, set) = self.session.parameters_used();
        let (observations, ladder) = self.judge.finish();
        Record { outcome, observations, circumstances, ladder, declined, read, set }
    }

    /// Judges the packets of the device by the rules for captures too. Where the suite has broken a
    /// requirement itself, this says nothing about the device.
    fn judge_device_passively(&mut self) {
        let facts = self.session.facts();
        for finding in self.suite.watch_mut().conclude(|address| facts.is_device(address)) {
            let Finding { requirement, number, message, .. } = finding;
            let expected = that(requirement);
            let observation = Observation::new(requirement, false, Relation::True, &expected, message);
            self.judge.record(self.session.now(), Observation { packet: number as usize, ..observation });
        }
    }

    /// Makes the PSNs of the device's own contexts and its counts of bytes start where [`START`] says, if the
    /// device lets them be set.
    fn begin(&mut self) -> Outcome {
        let start = self.value(&START);
        let counted = match start {
            Start::Any => return Ok(()),
            Start::Wrap => BEFORE_WRAP,
            Start::Half => BEFORE_WRAP - (1 << 31),
        };
        if self.claims("parameters") {
            let psn = self.suite.start_at(start).0;
            self.try_configure("start_psn", psn)?;
            self.try_configure("start_rcvd_bytes", counted)?;
        }
        Ok(())
    }

    /// Returns the number of bytes from which `rcvd_bytes` counts.
    pub(crate) fn start_of_count(&self) -> u64 {
        self.parameter("start_rcvd_bytes")
    }

    /// Returns the value of an axis in this instance; the first value if the rule lacks the axis.
    pub fn value<T: Copy>(&self, axis: &Axis<T>) -> T {
        let point = self.points.iter().find(|(name, _)| *name == axis.name);
        axis.value(point.map_or(0, |(_, index)| *index))
    }

    /// Adds a remark about the next step to the ladder.
    pub fn note(&mut self, text: impl Into<String>) {
        self.step(Entry::Note(text.into()));
    }

    /// Returns the timeline so far.
    pub(crate) fn trace(&self) -> &Ladder {
        self.judge.ladder()
    }

    /// Adds a step to the timeline.
    fn step(&mut self, entry: Entry) {
        self.judge.step(self.session.now(), entry);
    }

    /// Ends the arrangement: marks the steps so far as such if a step of the script follows.
    pub(crate) fn needed(&mut self) {
        self.judge.needed();
    }

    /// Runs a helper whose steps all belong to this phase, unless a phase is set already.
    pub(crate) fn during<T>(&mut self, phase: Phase, helper: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.judge.state_phase(Some(phase));
        if outer.is_some() {
            self.judge.state_phase(outer);
        }
        let result = helper(self);
        self.judge.state_phase(outer);
        result
    }

    /// Runs answers of the suite that the script does not choose.
    fn automatically<T>(&mut self, answer: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.judge.set_automatic(true);
        let result = answer(self);
        self.judge.set_automatic(outer);
        result
    }

    /// Returns the random numbers of the script.
    pub(crate) fn rng(&mut self) -> &mut fastrand::Rng {
        self.suite.rng()
    }

    /// Runs a measurement. On a shared machine or link, a failed one is repeated, since a wrong device fails
    /// each time. If the suite itself was too late, the result is inconclusive.
    pub fn measured(&mut self, measure: impl Fn(&mut Self) -> Outcome) -> Outcome {
        let outer = core::mem::replace(&mut self.measuring, true);
        let outcome = self.measured_by(&measure);
        self.measuring = outer;
        outcome
    }

    fn measured_by(&mut self, measure: &dyn Fn(&mut Self) -> Outcome) -> Outcome {
        let (exact, mut tries) = (self.facts().virtual_time, 0);
        let before = self.judge.observations();
        loop {
            self.judge.forget_delay();
            let outcome = measure(self);
            let held = outcome.is_ok() && self.judge.held_since(before);
            let late = self.judge.late();
            let is_settled = late.is_zero() && !matches!(outcome, Err(Stop::Inconclusive(_)));
            tries += 1;
            let is_last = exact || tries >= if is_settled { TRIES } else { UNSETTLED };
            if held || matches!(outcome, Err(Stop::Skipped(_) | Stop::Gone(_))) || is_last && late.is_zero() {
                return outcome;
            }
            self.judge.measure_again(before);
            if is_last {
                let late = late.show();
                let why =
                    format!("an answer of the suite left {late} late: the machine is too busy for this");
                return Err(Stop::Inconclusive(why));
            }
            self.note("measured again");
            self.call(Reset {})?;
            (self.auto_credit, self.auto_ack_control) = (true, true);
            self.session.restart();
            self.inbox.forget();
            self.suite.restart();
        }
    }

    /// Records the delay of an answer that a device can notice.
    pub(crate) fn was_late(&mut self, by: Duration) {
        if self.base_rtt().is_ok_and(|base| by * 4 > base) {
            self.judge.was_late(by);
        }
    }
}
