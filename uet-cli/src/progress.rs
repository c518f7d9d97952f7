//! A progress bar on a terminal, for what takes more than a moment.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Read};
use std::time::{Duration, Instant};

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
