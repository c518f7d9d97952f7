//! Signals that end a command.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Returns the signals that end the program: SIGINT, SIGTERM, and SIGHUP unless it is ignored, as `nohup` has it.
#[cfg(target_os = "linux")]
pub(super) fn ending() -> Vec<i32> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // Bit 0 stands for signal 1.
    let is_ignored = |signal: &i32| ignored >> (signal - 1) & 1 == 1;
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| *signal != SIGHUP || !is_ignored(signal)).collect()
}

/// Returns a flag that one of the [`ending`] signals sets. A command with this flag stops cleanly and prints its
/// results so far. The second signal ends the program at once.
#[cfg(target_os = "linux")]
pub(super) fn stopped() -> io::Result<Arc<AtomicBool>> {
    use signal_hook::flag;

    let stopped = Arc::new(AtomicBool::new(false));
    for signal in ending() {
        flag::register_conditional_default(signal, Arc::clone(&stopped))?;
    }
    for signal in ending() {
        flag::register(signal, Arc::clone(&stopped))?;
    }
    Ok(stopped)
}

/// The flags of a run of the suite. The third signal ends the program at once.
#[derive(Clone, Debug, Default)]
pub(super) struct RunSignals {
    /// The first signal: the run ends after the current instance.
    pub(super) stop: Arc<AtomicBool>,
    /// The second signal: the current instance ends as well, even if it waits for a silent device.
    pub(super) skip: Arc<AtomicBool>,
}

impl RunSignals {
    /// Listens to the [`ending`] signals.
    #[cfg(target_os = "linux")]
    pub(super) fn listen() -> io::Result<Self> {
        use signal_hook::iterator::Signals;
        use signal_hook::low_level::emulate_default_handler;
        use std::sync::atomic::Ordering;

        let signals = RunSignals::default();
        let RunSignals { stop, skip } = signals.clone();
        let mut came = Signals::new(ending())?;
        std::thread::spawn(move || {
            for signal in came.forever() {
                if skip.load(Ordering::Relaxed) {
                    // The default of these signals ends the program, so this does not return.
                    let _ = emulate_default_handler(signal);
                }
                skip.store(stop.swap(true, Ordering::Relaxed), Ordering::Relaxed);
            }
        });
        Ok(signals)
    }

    /// On other systems, a signal ends the program.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn listen() -> io::Result<Self> {
        Ok(RunSignals::default())
    }
}

/// On other systems, a signal ends the program.
#[cfg(not(target_os = "linux"))]
pub(super) fn stopped() -> io::Result<Arc<AtomicBool>> {
    Ok(Arc::default())
}

/// Returns standard input, which ends at its own end or at a signal, and a flag for the signal.
///
/// Reading continues for a moment after the signal. In a pipe, ^C also goes to the writer, whose last packets are still
/// to come.
#[cfg(target_os = "linux")]
pub(super) fn stdin() -> io::Result<(impl io::Read + Send, Arc<AtomicBool>)> {
    use nix::errno::Errno;
    use nix::poll::{PollFd, PollFlags, poll};
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::sync::atomic::Ordering;
    use std::time::{Duration, Instant};

    /// Interval of the checks for a signal, in milliseconds.
    const LOOK: u8 = 100;
    const MOMENT: Duration = Duration::from_millis(500);

    struct Stdin {
        file: File,
        stopped: Arc<AtomicBool>,
        until: Option<Instant>,
    }

    impl io::Read for Stdin {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            loop {
                if self.until.is_none() && self.stopped.load(Ordering::Relaxed) {
                    self.until = Some(Instant::now() + MOMENT);
                }
                if self.until.is_some_and(|until| Instant::now() >= until) {
                    return Ok(0);
                }
                let mut input = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
                match poll(&mut input, LOOK) {
                    Ok(0) | Err(Errno::EINTR) => {}
                    Ok(_) => return self.file.read(buffer),
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    let stopped = stopped()?;
    let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    Ok((Stdin { file, stopped: Arc::clone(&stopped), until: None }, stopped))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn stdin() -> io::Result<(impl io::Read + Send, Arc<AtomicBool>)> {
    Ok((io::stdin(), stopped()?))
}
