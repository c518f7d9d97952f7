//! Being told to end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Becomes true with SIGINT or SIGTERM: a command that has it ends well, and tells what it has so far. The second signal ends
/// the program at once, whatever it waits for.
#[cfg(target_os = "linux")]
pub(super) fn stopped() -> io::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::flag;

    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_default(signal, Arc::clone(&stopped))?;
    }
    for signal in [SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&stopped))?;
    }
    Ok(stopped)
}

/// Elsewhere a signal ends the program.
#[cfg(not(target_os = "linux"))]
pub(super) fn stopped() -> io::Result<Arc<AtomicBool>> {
    Ok(Arc::default())
}

/// Standard input, which a signal ends as well as its own end does, and whether one did.
///
/// After the signal it is read for a moment more: in a pipe, ^C goes to whoever writes into it too, and his last packets are
/// still to come.
#[cfg(target_os = "linux")]
pub(super) fn stdin() -> io::Result<(impl io::Read + Send, Arc<AtomicBool>)> {
    use nix::errno::Errno;
    use nix::poll::{PollFd, PollFlags, poll};
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::sync::atomic::Ordering;
    use std::time::{Duration, Instant};

    /// How often, in milliseconds, it is looked whether a signal has come.
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
