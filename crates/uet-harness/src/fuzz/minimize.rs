//! Minimizes a finding: plays ever smaller scripts that may show it.

use super::judge::Bench;
use super::outline::joined;
use super::{ENDED, Finding, Minimizing, Options, Outcome, PassedPacket, Trouble};
use std::time::Instant;
use uet_conformance::random::{Sequence, shrink};

/// Maximum number of attempts to shrink a conversation.
const TRIES: usize = 300;

/// Plays scripts that may reproduce a finding.
pub(super) struct Trials<'a, 'b> {
    pub(super) bench: &'a mut Bench<'b>,
    pub(super) options: &'a Options,
    /// No trial begins later.
    pub(super) until: Option<Instant>,
    pub(super) trouble: Trouble,
    pub(super) outcome: &'a mut Outcome,
    pub(super) progress: &'a mut dyn FnMut(&Outcome),
    /// Number of trials so far.
    pub(super) count: usize,
    /// Packets of the last script that showed the finding.
    pub(super) passed: Vec<PassedPacket>,
    /// The symptom in this script. It differs from the first one if, for example, the script writes fewer bytes.
    pub(super) what: Option<String>,
}

impl Trials<'_, '_> {
    /// Minimizes a finding and adds it to the outcome. Calls `progress` before, after each trial, and after that.
    pub(super) fn minimize(mut self, finding: Finding, history: &[Sequence]) {
        self.outcome.minimizing = Some(Minimizing { finding: finding.clone(), trials: 0 });
        (self.progress)(self.outcome);
        let finding = self.minimized(finding, history);
        self.outcome.minimizing = None;
        self.outcome.add(finding);
        (self.progress)(self.outcome);
    }

    /// Returns the reason why no trial follows.
    fn over(&self) -> Option<&'static str> {
        match self.until {
            _ if self.options.is_stopped() => Some(ENDED),
            Some(until) if Instant::now() >= until => Some("the time was up"),
            _ => None,
        }
    }

    /// Returns whether a script shows the finding.
    fn shows(&mut self, script: &Sequence) -> bool {
        if self.over().is_some() {
            return false;
        }
        let what = match self.bench.tries(script) {
            Some((trouble, what)) if trouble == self.trouble => Some(what),
            _ => None,
        };
        // A symptom during shutdown may be a consequence of the shutdown.
        let shown = what.is_some() && !self.options.is_stopped();
        if shown {
            self.passed = self.bench.take_passed(script.steps.len());
            self.what = what;
        }
        self.count += 1;
        self.outcome.minimizing.iter_mut().for_each(|minimizing| minimizing.trials = self.count);
        (self.progress)(self.outcome);
        shown
    }

    /// Returns the last case, or as many earlier cases as the finding needs, and as few of their steps as possible.
    fn minimized(&mut self, found: Finding, history: &[Sequence]) -> Finding {
        let mut length = 1;
        let mut script = None;
        while script.is_none() && length < history.len() * 2 {
            let joined = joined(history.iter().skip(history.len().saturating_sub(length)));
            script = Some(joined).filter(|joined| self.shows(joined));
            length *= 2;
        }
        match script {
            Some(script) => self.shrink(Finding { reproduced: true, script, ..found }),
            None => {
                let why = self.over().unwrap_or("it was not reproduced");
                Finding { not_minimized: Some(why.into()), ..found }
            }
        }
    }

    /// Removes what a reproduced finding does not need.
    fn shrink(&mut self, whole: Finding) -> Finding {
        let what = self.what.take().unwrap_or(whole.what);
        let whole = Finding { passed: core::mem::take(&mut self.passed), what, ..whole };
        let before = self.count;
        self.bench.hurry(true);
        let script = shrink(whole.script.clone(), TRIES, |script| self.shows(script));
        self.bench.hurry(false);
        let tried = self.count - before;
        // A slow answer of the control channel may have looked like silence in a trial.
        let not_minimized = match self.shows(&script) {
            true => (tried >= TRIES).then(|| format!("{TRIES} trials were not enough")),
            false => match self.over() {
                Some(why) => Some(why.into()),
                None => {
                    let why = "a smaller script did not show it a second time";
                    return Finding { not_minimized: Some(why.into()), ..whole };
                }
            },
        };
        let passed = match self.passed.is_empty() {
            true => whole.passed,
            false => core::mem::take(&mut self.passed),
        };
        let what = self.what.take().unwrap_or(whole.what);
        Finding { not_minimized, script, passed, what, ..whole }
    }
}
