use crate::engine::Engine;
use crate::error::{Code, Error, Result};
use crate::interface::Interface;
use crate::memory::{Region, UserMemory};
use crate::settings::Settings;
use core::time::Duration;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::os::fd::{AsFd, OwnedFd};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// The time without a call of the application after which the domain's own thread takes over.
const AWAY: Duration = Duration::from_millis(1);

/// The time without progress after which calls in a row sleep. The peer may wait for this processor. Yielding it instead
/// could cost a time slice of each busy thread beside it.
const PATIENCE: u64 = 50;

/// The longest sleep of such a call. A packet ends it.
const PAUSE: Duration = Duration::from_micros(50);

/// The longest time in microseconds between calls in a row. An application that works in between must not sleep.
const IN_A_ROW: u64 = 10;

/// The longest sleep of a waiting thread.
const NAP: Duration = Duration::from_millis(5);

/// The number of timeouts without a packet after which peers miss no acknowledgment: time for two retransmissions.
const QUIET_TIMEOUTS: u32 = 4;

/// A domain: a NIC with an address and a UDP port of its own, and a thread that drives it while the application does
/// not.
#[derive(Clone)]
pub struct Domain(Arc<Shared>, Arc<Progress>);

/// The thread of a domain. It comes after [`Shared`] in [`Domain`], so it is the last to be dropped.
struct Progress {
    thread: Option<JoinHandle<()>>,
    process: u32,
}

impl Drop for Progress {
    /// Waits until the thread has let the socket go. A process that was forked has no such thread.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take().filter(|_| self.process == process::id()) {
            // After a panic, the thread is gone as well.
            let _ = thread.join();
        }
    }
}

struct Shared {
    engine: Mutex<Engine>,
    socket: OwnedFd,
    /// The longest time that a closing endpoint waits for acknowledgments.
    settle: Duration,
    opened: Instant,
    /// The last call of the application, in microseconds since the domain was opened.
    active: AtomicU64,
    /// The end of the last call for progress, in the same unit.
    returned: AtomicU64,
    /// The first of the calls in a row without progress, in the same unit.
    idle: AtomicU64,
}

impl Domain {
    /// Opens a domain on an interface.
    pub fn open(interface: &Interface, settings: &Settings) -> Result<Self> {
        let engine = Engine::open(interface, settings)?;
        let socket = engine.carrier.socket().map_err(|error| Error::from_io("the socket", &error))?;
        let (opened, [active, returned, idle]) = (Instant::now(), [0; 3].map(AtomicU64::new));
        let (engine, settle) = (Mutex::new(engine), settings.settle);
        let shared = Arc::new(Shared { engine, socket, settle, opened, active, returned, idle });
        let weak = Arc::downgrade(&shared);
        let spawned = thread::Builder::new().name("uet-progress".into()).spawn(move || drive(&weak));
        let thread = Some(spawned.map_err(|error| Error::from_io("the progress thread", &error))?);
        Ok(Domain(shared, Arc::new(Progress { thread, process: process::id() })))
    }

    /// Fails in a process that was forked after it opened the domain. There, another thread may hold the lock for ever.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.1.process == process::id() {
            return Ok(());
        }
        let message = "the domain belongs to the process that opened it: open another one after a fork";
        Err(Error::new(Code::EOPBADSTATE, message))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Engine> {
        self.0.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the engine for a call of the application.
    pub(crate) fn lock_active(&self) -> Result<MutexGuard<'_, Engine>> {
        self.check_process()?;
        self.0.active.store(self.0.micros(), Ordering::Relaxed);
        Ok(self.lock())
    }

    /// Registers memory, with these permissions ([`flags`](crate::flags)) and this key; with a key of the domain's choice
    /// if there is none.
    pub fn register(&self, memory: Box<dyn UserMemory>, access: u64, key: Option<u64>) -> Result<Region> {
        self.check_process()?;
        self.lock().register(memory, access, key)
    }

    /// Returns the most payload bytes of a packet.
    pub fn mtu(&self) -> usize {
        self.lock().nic.config().pds.payload_mtu.into()
    }

    /// Withdraws a region. Its memory is not touched any more.
    pub fn withdraw(&self, region: Region) {
        if self.check_process().is_ok() {
            self.lock().withdraw(region);
        }
    }

    /// Receives and sends packets, runs timers and reports completions.
    pub fn progress(&self) {
        // A socket that fails shows as operations that time out.
        let Ok(mut engine) = self.lock_active() else { return };
        let busy = engine.turn().unwrap_or(false);
        drop(engine);
        let since = |past: &AtomicU64, now: u64| now.saturating_sub(past.load(Ordering::Relaxed));
        let called = self.0.active.load(Ordering::Relaxed);
        if busy || since(&self.0.returned, called) > IN_A_ROW {
            self.0.idle.store(called, Ordering::Relaxed);
        } else if since(&self.0.idle, called) > PATIENCE {
            self.0.sleep(PAUSE);
        }
        self.0.returned.store(self.0.micros(), Ordering::Relaxed);
    }

    /// Lets the domain's thread take over at once, because the application is going to sleep.
    pub fn leave(&self) {
        self.0.active.store(0, Ordering::Relaxed);
    }

    /// Drives the domain until `ready` returns true, at most this long; returns whether it did.
    pub fn wait(&self, timeout: Option<Duration>, mut ready: impl FnMut() -> bool) -> bool {
        let end = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let Ok(mut engine) = self.lock_active() else { return ready() };
            let busy = engine.turn().unwrap_or(false);
            if ready() {
                return true;
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return false;
            }
            let due = self.0.due(&mut engine, left.unwrap_or(NAP).min(NAP));
            drop(engine);
            if !busy {
                self.0.sleep(due);
            }
        }
    }

    /// Drives the domain until nothing waits for an acknowledgment, for a limited time. While peers have contexts, no
    /// packet may have arrived for a while either: a peer whose last ACK was lost sends its packet again.
    pub(crate) fn settle(&self) {
        let end = Instant::now() + self.0.settle;
        let (mut received, mut last) = (None, Instant::now());
        while Instant::now() < end {
            let Ok(mut engine) = self.lock_active() else { return };
            let busy = engine.turn().unwrap_or(false);
            let counted = engine.nic.counted();
            if received.replace(counted.received) != Some(counted.received) {
                last = Instant::now();
            }
            let quiet = engine.nic.config().pds.rto_init_time * QUIET_TIMEOUTS;
            let is_quiet = counted.pdcs == 0 || last.elapsed() >= quiet;
            if !busy && counted.held == 0 && is_quiet {
                return;
            }
            let due = self.0.due(&mut engine, NAP);
            drop(engine);
            if !busy {
                self.0.sleep(due);
            }
        }
    }
}

impl Shared {
    /// Returns the time since the domain was opened, in microseconds.
    fn micros(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn due(&self, engine: &mut Engine, most: Duration) -> Duration {
        let now = engine.carrier.now();
        engine.poll_timeout().map_or(most, |at| (at - now).min(most))
    }

    /// Sleeps until a packet arrives, at most this long.
    fn sleep(&self, most: Duration) {
        let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        // A signal only ends the sleep early.
        let _ = ppoll(&mut fds, Some(TimeSpec::from_duration(most)), None);
    }

    fn application_is_active(&self) -> bool {
        let active = Duration::from_micros(self.active.load(Ordering::Relaxed));
        self.opened.elapsed().saturating_sub(active) < AWAY
    }
}

/// Drives a domain while the application does not, until the domain is gone.
fn drive(domain: &Weak<Shared>) {
    while let Some(shared) = domain.upgrade() {
        if shared.application_is_active() {
            drop(shared);
            thread::sleep(AWAY);
            continue;
        }
        let mut engine = shared.engine.lock().unwrap_or_else(PoisonError::into_inner);
        let busy = engine.turn().unwrap_or(false);
        if !busy {
            engine.carrier.flush();
        }
        let due = shared.due(&mut engine, NAP);
        drop(engine);
        if !busy {
            shared.sleep(due);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let engine = self.engine.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Nobody is left to hear of a failed capture.
        let _ = engine.carrier.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Endpoint;
    use crate::state::EndpointOptions;

    #[test]
    fn forked_process_waits_for_no_lock() {
        let settings = Settings::read(|name| (name == "iface").then(|| "lo".into())).unwrap();
        let domain = Domain::open(&Interface::list(&settings).unwrap()[0], &settings).unwrap();
        // As after a fork: another thread has the lock, and the process is another one.
        let forked = Domain(domain.0.clone(), Arc::new(Progress { thread: None, process: 0 }));
        let locked = domain.lock();
        forked.progress();
        assert!(!forked.wait(None, || false));
        assert_eq!(
            Endpoint::open(&forked, EndpointOptions::default()).err().unwrap().code,
            Code::EOPBADSTATE
        );
        drop(locked);
    }
}
