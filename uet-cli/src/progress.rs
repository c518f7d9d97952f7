//! Progress bars on a terminal, for what takes more than a moment.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Read};
use std::time::{Duration, Instant};
use uet_conformance::{RuleResult, Verdict};

/// The bar. It appears after a second, and only when standard error is a terminal and standard output, which
/// it would tear apart, is not.
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
}

impl Progress {
    /// A bar for `total` bytes.
    pub fn new(total: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{wide_bar} {bytes} of {total_bytes}, {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Progress { bar, started: Instant::now() }
    }

    /// The same reader; what is read moves the bar.
    pub fn watch<R: Read>(self, reader: R) -> Watched<R> {
        Watched { reader, progress: self, shown: false }
    }
}

/// See [`Progress::watch`].
pub struct Watched<R> {
    reader: R,
    progress: Progress,
    shown: bool,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        let Progress { bar, started } = &self.progress;
        bar.inc(length as u64);
        if !self.shown && started.elapsed() > Duration::from_secs(1) {
            self.shown = true;
            if io::stderr().is_terminal() && !io::stdout().is_terminal() {
                bar.set_draw_target(ProgressDrawTarget::stderr());
            }
        }
        Ok(length)
    }
}

impl<R> Drop for Watched<R> {
    fn drop(&mut self) {
        self.progress.bar.finish_and_clear();
    }
}

/// The bar of a run of the suite: how many cases have ended, how many of them badly, which runs now. It is on standard
/// error when that is a terminal.
pub struct Cases {
    bar: ProgressBar,
    ids: Vec<&'static str>,
    ended: usize,
    bad: usize,
}

impl Cases {
    /// A bar for these cases.
    pub fn new(ids: Vec<&'static str>) -> Self {
        let target = match io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(ids.len() as u64), target);
        let style = ProgressStyle::with_template("{bar:24} {pos} of {len}, {elapsed}{msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let cases = Cases { bar, ids, ended: 0, bad: 0 };
        cases.say();
        cases
    }

    fn say(&self) {
        let bad = if self.bad > 0 { format!(", {} bad", self.bad) } else { String::new() };
        let now = self.ids.get(self.ended).map_or_else(String::new, |id| format!(": {id}"));
        self.bar.set_message(format!("{bad}{now}"));
    }

    /// A case has ended.
    pub fn ended(&mut self, case: &RuleResult) {
        self.ended += 1;
        self.bad += usize::from(!matches!(case.verdict, Verdict::Pass | Verdict::Skipped));
        self.bar.inc(1);
        self.say();
    }

    /// Prints something; the bar makes way for it.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// The bar goes.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// A bar that counts, and says how much was found. It is on standard error when that is a terminal.
pub struct Count(ProgressBar);

impl Count {
    /// A bar for so many of these; without an end when there is none.
    pub fn new(total: u64, what: &'static str) -> Self {
        let target = match io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let (total, counted) = match total {
            u64::MAX => (None, format!("{{spinner}} {{pos}} {what}, {{elapsed}}{{msg}}")),
            total => (Some(total), format!("{{bar:24}} {{pos}} of {{len}} {what}, {{elapsed}}{{msg}}")),
        };
        let style = ProgressStyle::with_template(&counted).unwrap_or_else(|_| ProgressStyle::default_bar());
        Count(ProgressBar::with_draw_target(total, target).with_style(style))
    }

    /// So many are done, and so much was found.
    pub fn at(&self, done: u64, found: usize) {
        self.0.set_position(done);
        if found > 0 {
            self.0.set_message(format!(", {found} found"));
        }
    }

    /// Prints something; the bar makes way for it.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }

    /// The bar goes.
    pub fn end(&self) {
        self.0.finish_and_clear();
    }
}
