//! Expectations and comparisons, recorded as observations.

use super::Test;
use crate::{Bound, Observation, Outcome, Relation, RxPacket, Show, Stop};
use core::fmt;
use core::ops::RangeInclusive;
use core::time::Duration;
use uet_wire::PdcId;
use uet_wire::catalogue::Requirement;

impl Test<'_> {
    /// Expects a packet, as this requirement demands. The rule fails without it.
    pub fn expect<T>(
        &mut self,
        requirement: &Requirement,
        expected: &str,
        within: Duration,
        wanted: impl FnMut(&RxPacket) -> Option<T>,
    ) -> Result<(RxPacket, T), Stop> {
        let heard = self.judge.packets();
        let found = self.wait(self.patience(within), wanted)?;
        self.record_expected(requirement, expected, found.as_ref().map(|(seen, _)| seen), heard, "")?;
        found.ok_or(Stop::Failed)
    }

    /// Expects the rest of `length` bytes, of which `bytes` have arrived. `count` returns the number of new
    /// bytes in a packet. The rule fails without all of them, and says how many arrived.
    pub(crate) fn expect_bytes(
        &mut self,
        requirement: &Requirement,
        expected: &str,
        (mut bytes, length): (usize, usize),
        mut count: impl FnMut(&RxPacket) -> usize,
    ) -> Outcome {
        let heard = self.judge.packets();
        let found = self.wait(self.patience(self.soon()), |seen| {
            bytes += count(seen);
            (bytes >= length).then_some(())
        })?;
        let part = if bytes > 0 { format!("{bytes} bytes, and ") } else { String::new() };
        self.record_expected(requirement, expected, found.as_ref().map(|(seen, ())| seen), heard, &part)
    }

    /// Records whether an expected packet has come. `heard` is the number of packets before the wait for it.
    /// `part` precedes the packets that came instead.
    fn record_expected(
        &mut self,
        requirement: &Requirement,
        expected: &str,
        found: Option<&RxPacket>,
        heard: usize,
        part: &str,
    ) -> Outcome {
        if let Some(seen) = found {
            let text = seen.uet().to_string();
            let observation = self.judge.observation(requirement, true, Relation::Present, expected, text);
            self.push(Observation { packet: seen.number, ..observation });
            return Ok(());
        }
        let silent = self.judge.packets() == heard && !self.inbox.heard();
        let others = if silent {
            "nothing".into()
        } else {
            self.had_room(heard)?;
            self.is_supported()?;
            part.to_owned() + &self.others(heard)
        };
        let observation = self.judge.observation(requirement, false, Relation::Present, expected, others);
        self.push(observation);
        Err(if silent { Stop::Silent } else { Stop::Failed })
    }

    /// Waits for a packet that a check depends on. The rule is inconclusive without it.
    pub fn need<T>(
        &mut self,
        what: &str,
        within: Duration,
        wanted: impl FnMut(&RxPacket) -> Option<T>,
    ) -> Result<(RxPacket, T), Stop> {
        let heard = self.judge.packets();
        let found = self.wait(self.patience(within), wanted)?;
        match found {
            Some(_) => self.judge.needed(),
            None => self.is_supported()?,
        }
        found.ok_or_else(|| {
            let came = self.inbox.has(heard, |_| true);
            let seen = if came { format!(" (seen {})", self.others(heard)) } else { String::new() };
            Stop::Inconclusive(format!("did not get to: {what}{seen}"))
        })
    }

    /// Describes the packets that arrived instead of the expected one. Those after number `since` come first.
    fn others(&self, since: usize) -> String {
        let Some((shown, beside)) = self.inbox.others(since) else { return "nothing".into() };
        // The packet itself may have made a context of that PDCID, from which the suite has sent nothing.
        let is_used = |to: PdcId| {
            let mut contexts = self.suite.watch().contexts(shown.wire.dst, to);
            contexts.any(|(context, side)| context.direction(side).names.contains(&to))
        };
        let strange = shown.dpdcid().filter(|to| *to != PdcId::NONE && !is_used(*to));
        let lost = strange.map(|to| format!(", for PDCID {to}, which is none of the suite's"));
        format!("{}{}{beside}", shown.uet(), lost.unwrap_or_default())
    }

    /// Expects that no such packet arrives in this time, as this requirement demands.
    pub fn expect_none<T>(
        &mut self,
        requirement: &Requirement,
        expected: &str,
        during: Duration,
        wanted: impl FnMut(&RxPacket) -> Option<T>,
    ) -> Outcome {
        let found = self.wait(during, wanted)?;
        self.record_unexpected(requirement, expected, found.map(|(seen, _)| seen))
    }

    fn record_unexpected(
        &mut self,
        requirement: &Requirement,
        expected: &str,
        found: Option<RxPacket>,
    ) -> Outcome {
        let text = found.as_ref().map_or("nothing".into(), |seen| seen.uet().to_string());
        let observation =
            self.judge.observation(requirement, found.is_none(), Relation::Absent, expected, text);
        match found {
            None => {
                self.push(observation);
                Ok(())
            }
            Some(seen) => {
                self.push(Observation { packet: seen.number, ..observation });
                Err(Stop::Failed)
            }
        }
    }

    /// Checks that a value equals the expected one. The script continues in any case.
    pub fn check<T: PartialEq + Show>(
        &mut self,
        requirement: &Requirement,
        what: &str,
        expected: T,
        seen: T,
    ) {
        let held = expected == seen;
        self.compare(requirement, held, Relation::Equal, what, expected.show(), seen.show());
    }

    /// Checks that a value is at least the bound. The script continues in any case.
    pub fn at_least<T: PartialOrd + Show>(
        &mut self,
        requirement: &Requirement,
        what: &str,
        bound: impl Into<Bound<T>>,
        seen: T,
    ) {
        let bound = bound.into();
        let held = seen >= bound.value;
        self.bounded(requirement, held, Relation::AtLeast, what, bound, &seen);
    }

    /// Checks that a value is at most the bound. The script continues in any case.
    pub fn at_most<T: PartialOrd + Show>(
        &mut self,
        requirement: &Requirement,
        what: &str,
        bound: impl Into<Bound<T>>,
        seen: T,
    ) {
        self.may_bound::<T>();
        let bound = bound.into();
        let held = seen <= bound.value;
        self.bounded(requirement, held, Relation::AtMost, what, bound, &seen);
    }

    /// Panics in a test of the suite if a script bounds a time from above and is not repeated.
    fn may_bound<T: Show>(&self) {
        debug_assert!(
            !T::IS_TIME || self.measuring,
            "a script that bounds a time from above needs `measure`"
        );
    }

    /// Checks that a value lies in a range, ends included. The script continues in any case.
    pub fn between<T: PartialOrd + Show>(
        &mut self,
        requirement: &Requirement,
        what: &str,
        range: impl Into<Bound<RangeInclusive<T>>>,
        seen: T,
    ) {
        self.may_bound::<T>();
        let range = range.into();
        let held = range.value.contains(&seen);
        self.bounded(requirement, held, Relation::Between, what, range, &seen);
    }

    /// Checks that a value is one of several. The script continues in any case.
    pub fn one_of<T: PartialEq + Show>(
        &mut self,
        requirement: &Requirement,
        what: &str,
        allowed: &[T],
        seen: T,
    ) {
        let held = allowed.contains(&seen);
        self.compare(requirement, held, Relation::OneOf, what, allowed.show(), seen.show());
    }

    /// Checks a statement that no comparison expresses. `seen` describes the observation, never yes or no.
    pub fn holds(&mut self, requirement: &Requirement, statement: &str, held: bool, seen: impl fmt::Display) {
        self.compare(requirement, held, Relation::True, statement, String::new(), seen.to_string());
    }

    /// Checks memory. `wrong` is the place and the description of its first wrong byte. The report shows the
    /// request that should have written it.
    pub(crate) fn check_written(
        &mut self,
        requirement: &Requirement,
        what: &str,
        wrong: Option<(u64, String)>,
    ) {
        let request = wrong.as_ref().and_then(|(byte, _)| self.trace().last_write(*byte));
        let (held, seen) = (wrong.is_none(), wrong.map(|(_, seen)| seen).unwrap_or_default());
        let observation = self.judge.observation(requirement, held, Relation::True, what, seen);
        self.push(Observation { request, ..observation });
    }

    fn bounded<B: Show, T: Show>(
        &mut self,
        requirement: &Requirement,
        held: bool,
        relation: Relation,
        what: &str,
        bound: Bound<B>,
        seen: &T,
    ) {
        let Bound { value, from, tolerance } = bound;
        let observation = self.judge.observation(requirement, held, relation, what, seen.show());
        self.push(Observation { expected: value.show(), from, tolerance, ..observation });
    }

    fn compare(
        &mut self,
        requirement: &Requirement,
        held: bool,
        relation: Relation,
        what: &str,
        expected: String,
        seen: String,
    ) {
        let observation = self.judge.observation(requirement, held, relation, what, seen);
        self.push(Observation { expected, ..observation });
    }

    fn push(&mut self, observation: Observation) {
        self.judge.record(self.session.now(), observation);
    }
}
