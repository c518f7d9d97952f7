//! Progress bars on a terminal for slow operations.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::io::{self, IsTerminal, Read};
use std::time::{Duration, Instant};
use uet_conformance::{RuleResult, Verdict};

/// Returns standard error, or nothing if that is no terminal.
fn target() -> ProgressDrawTarget {
    match io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    }
}

/// A progress bar. It appears after a second, if standard error is a terminal and standard output is not.
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
}

impl Progress {
    /// Creates a bar for `total` bytes.
    pub fn new(total: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{wide_bar} {bytes} of {total_bytes}, {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Progress { bar, started: Instant::now() }
    }

    /// Wraps a reader; reading advances the bar.
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

/// Time between two lines where no bar appears.
const LINES: Duration = Duration::from_secs(10);

/// Tells when the next line about a slow operation is due, where standard error is no terminal.
struct LineTimer {
    begun: Instant,
    /// The time of the last line.
    told: Cell<Instant>,
}

impl LineTimer {
    fn new() -> Self {
        let begun = Instant::now();
        LineTimer { begun, told: Cell::new(begun) }
    }

    /// Returns the seconds since the begin if it is time for a line.
    fn due(&self, now: Instant) -> Option<f64> {
        let is_due = now.duration_since(self.told.get()) >= LINES;
        is_due.then(|| {
            self.told.set(now);
            now.duration_since(self.begun).as_secs_f64()
        })
    }
}

/// The bar of a run of the suite: completed rules, failed rules, and the running rule. It appears on standard error if
/// that is a terminal. Elsewhere a line appears there from time to time.
pub struct Rules {
    bar: ProgressBar,
    lines: LineTimer,
    ids: Vec<&'static str>,
    ended: usize,
    bad: usize,
}

impl Rules {
    /// Creates a bar for these rules.
    pub fn new(ids: Vec<&'static str>) -> Self {
        let bar = ProgressBar::with_draw_target(Some(ids.len() as u64), target());
        let style = ProgressStyle::with_template("{bar:24} {pos} of {len}, {elapsed}{msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let rules = Rules { bar, lines: LineTimer::new(), ids, ended: 0, bad: 0 };
        rules.say();
        rules
    }

    fn bad(&self) -> String {
        if self.bad > 0 { format!(", {} bad", self.bad) } else { String::new() }
    }

    fn now(&self) -> String {
        self.ids.get(self.ended).map_or_else(String::new, |id| format!(": {id}"))
    }

    fn say(&self) {
        self.bar.set_message(self.bad() + &self.now());
    }

    /// Returns the line about the run at this time, if it is time for one.
    fn line(&self, now: Instant) -> Option<String> {
        let seconds = self.lines.due(now)?;
        Some(format!(
            "{} of {} rules{}, {seconds:.0} s{}",
            self.ended,
            self.ids.len(),
            self.bad(),
            self.now()
        ))
    }

    /// Records a completed rule.
    pub fn ended(&mut self, rule: &RuleResult) {
        self.ended += 1;
        self.bad += usize::from(!matches!(rule.verdict, Verdict::Pass | Verdict::Skipped));
        self.bar.inc(1);
        self.say();
        if self.bar.is_hidden() {
            self.line(Instant::now()).iter().for_each(|line| eprintln!("{line}"));
        }
    }

    /// Prints something while the bar is hidden.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Returns another handle to the bar.
    pub fn bar(&self) -> ProgressBar {
        self.bar.clone()
    }

    /// Removes the bar.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// A bar that counts steps and findings. It appears on standard error if that is a terminal. Elsewhere a line appears
/// there from time to time.
pub struct Count {
    bar: ProgressBar,
    what: &'static str,
    lines: LineTimer,
}

impl Count {
    /// Creates a bar for `total` steps; `u64::MAX` means no known end.
    pub fn new(total: u64, what: &'static str) -> Self {
        let rest = "{per_sec}, {elapsed}{msg}";
        let (total, counted) = match total {
            u64::MAX => (None, format!("{{spinner}} {{pos}} {what}, {rest}")),
            total => (Some(total), format!("{{bar:24}} {{pos}} of {{len}} {what}, {rest}")),
        };
        let style = ProgressStyle::with_template(&counted).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(total, target()).with_style(style);
        Count { bar, what, lines: LineTimer::new() }
    }

    /// Sets the number of completed steps and of findings. `doing` follows them: `, minimizing (trial 4)`.
    pub fn at(&self, done: u64, found: usize, doing: &str) {
        self.bar.set_position(done);
        let found_so_far = if found > 0 { format!(", {found} found") } else { String::new() };
        self.bar.set_message(found_so_far + doing);
        if self.bar.is_hidden() {
            self.line(Instant::now(), done, found, doing).iter().for_each(|line| eprintln!("{line}"));
        }
    }

    /// Returns the line about the steps at this time, if it is time for one.
    fn line(&self, now: Instant, done: u64, found: usize, doing: &str) -> Option<String> {
        let seconds = self.lines.due(now)?;
        Some(format!("{done} {}, {:.1}/s, {found} found{doing}", self.what, done as f64 / seconds))
    }

    /// Prints something while the bar is hidden.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Removes the bar.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_and_fuzzer_tell_their_progress_every_ten_seconds() {
        let mut rules = Rules::new(vec!["ack/mark", "ack/retx"]);
        let after = |lines: &LineTimer, seconds| lines.begun + Duration::from_secs(seconds);
        assert_eq!(rules.line(after(&rules.lines, 9)), None);
        (rules.ended, rules.bad) = (1, 1);
        let line = rules.line(after(&rules.lines, 12));
        assert_eq!(line.as_deref(), Some("1 of 2 rules, 1 bad, 12 s: ack/retx"));
        assert_eq!(rules.line(after(&rules.lines, 20)), None);
        (rules.ended, rules.bad) = (2, 0);
        assert_eq!(rules.line(after(&rules.lines, 22)).as_deref(), Some("2 of 2 rules, 22 s"));

        let count = Count::new(u64::MAX, "cases");
        assert_eq!(count.line(after(&count.lines, 9), 10, 0, ""), None);
        let line = count.line(after(&count.lines, 10), 25, 1, ", minimizing (trial 4)");
        assert_eq!(line.as_deref(), Some("25 cases, 2.5/s, 1 found, minimizing (trial 4)"));
    }
}
