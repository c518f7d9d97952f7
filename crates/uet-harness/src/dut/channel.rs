//! The control channel of a device: TCP, or the standard input and output of a child process.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum time to establish a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// Maximum time for a program to exit after its channel has closed.
const END: Duration = Duration::from_secs(2);

/// Maximum time until a wait notices that it is interrupted.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// A bidirectional stream. All its handles share one deadline, so a device that sends single bytes cannot block a
/// caller forever.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: Socket,
    limits: Arc<Mutex<Limits>>,
}

#[derive(Clone, Debug, Default)]
struct Limits {
    deadline: Option<Deadline>,
    /// True ends every read and write.
    interrupt: Arc<AtomicBool>,
}

#[derive(Clone, Copy, Debug)]
struct Deadline {
    at: Instant,
    /// Total time allowed for the call.
    patience: Duration,
}

#[derive(Debug)]
enum Socket {
    /// To a running device.
    Tcp(TcpStream),
    /// To a child process.
    Pair(UnixStream),
}

impl Stream {
    fn new(socket: Socket) -> Self {
        Stream { socket, limits: Arc::default() }
    }

    /// Connects to `HOST:PORT`, or `tcp://HOST:PORT`.
    pub(crate) fn connect(place: &str) -> io::Result<Self> {
        let told = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot reach the control channel at {place}: {error}"))
        };
        let mut last = io::Error::new(io::ErrorKind::InvalidInput, "this name has no address");
        for address in addresses(place.strip_prefix("tcp://").unwrap_or(place)).map_err(told)? {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(Stream::new(Socket::Tcp(stream)));
                }
                Err(error) => last = error,
            }
        }
        Err(told(last))
    }

    /// Returns a second handle to the same stream, with the same deadline.
    pub(crate) fn second(&self) -> io::Result<Self> {
        let socket = match &self.socket {
            Socket::Tcp(stream) => Socket::Tcp(stream.try_clone()?),
            Socket::Pair(stream) => Socket::Pair(stream.try_clone()?),
        };
        Ok(Stream { socket, limits: Arc::clone(&self.limits) })
    }

    /// Sets how long all reads and writes from now on may take together.
    pub(crate) fn set_patience(&self, patience: Duration) {
        let deadline = Instant::now().checked_add(patience).map(|at| Deadline { at, patience });
        self.limits().deadline = deadline;
    }

    /// Ends all reads and writes once this flag is true.
    pub(crate) fn set_interrupt(&self, interrupt: Arc<AtomicBool>) {
        self.limits().interrupt = interrupt;
    }

    fn limits(&self) -> MutexGuard<'_, Limits> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Repeats a read or write, each with a short time-out, until it ends, the deadline passes or a signal comes.
    fn attempt<T>(&mut self, mut once: impl FnMut(&mut Socket, Duration) -> io::Result<T>) -> io::Result<T> {
        loop {
            let Limits { deadline, interrupt } = self.limits().clone();
            check(&interrupt)?;
            let left =
                deadline.map_or(LOOK, |deadline| deadline.at.saturating_duration_since(Instant::now()));
            if let (Some(Deadline { patience, .. }), true) = (deadline, left.is_zero()) {
                let message = format!("the device does not answer within {patience:?}");
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            match once(&mut self.socket, left.min(LOOK)) {
                Err(error) if is_temporary(error.kind()) => {}
                ended => return ended,
            }
        }
    }

    fn shut(&self) {
        // The stream may be closed already; it is closed either way.
        let _ = match &self.socket {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Socket::Pair(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.attempt(|socket, time| match socket {
            Socket::Tcp(stream) => stream.set_read_timeout(Some(time)).and_then(|()| stream.read(buffer)),
            Socket::Pair(stream) => stream.set_read_timeout(Some(time)).and_then(|()| stream.read(buffer)),
        })
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(|socket, time| match socket {
            Socket::Tcp(stream) => stream.set_write_timeout(Some(time)).and_then(|()| stream.write(bytes)),
            Socket::Pair(stream) => stream.set_write_timeout(Some(time)).and_then(|()| stream.write(bytes)),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns whether a read or write may succeed later.
fn is_temporary(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Fails once a signal has ended all waits for the device.
pub(crate) fn check(interrupt: &AtomicBool) -> io::Result<()> {
    match interrupt.load(Ordering::Relaxed) {
        true => Err(io::Error::other("a signal ended the wait for the device")),
        false => Ok(()),
    }
}

/// Resolves `HOST:PORT`.
pub(crate) fn addresses(place: &str) -> io::Result<Vec<SocketAddr>> {
    if !place.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok()) {
        let wanted = "write HOST:PORT, with a port of at most 65535";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, wanted));
    }
    Ok(place.to_socket_addrs()?.collect())
}

/// Kills the process group `$1` when standard input ends. The device gets a second to end by itself, because its
/// channel ends at the same time.
const WATCH: &str = "read -r _; sleep 1; kill -s KILL -- \"-$1\" 2>/dev/null";

/// A child process with a process group of its own. Dropping it ends the process and all that it has started.
///
/// A second process watches this one, and ends the group even if this one is killed.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    stream: Stream,
    watch: Option<Child>,
}

impl Program {
    /// Starts a shell command; its standard input and output are the stream. It inherits standard error.
    pub(crate) fn start(command: &str) -> io::Result<(Self, Stream)> {
        // Sockets instead of pipes, because a read from them can time out.
        let (here, there) = UnixStream::pair()?;
        let there = OwnedFd::from(there);
        let child = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::from(there.try_clone()?))
            .stdout(Stdio::from(there))
            .process_group(0)
            .spawn()
            .map_err(|error| io::Error::new(error.kind(), format!("cannot start '{command}': {error}")))?;
        let stream = Stream::new(Socket::Pair(here));
        let mut program = Program { child, stream: stream.second()?, watch: None };
        // Its standard input is a pipe that closes with this process.
        let watch = Command::new("sh")
            .args(["-c", WATCH, "sh", &program.child.id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        program.watch = Some(watch?);
        Ok((program, stream))
    }

    /// Ends the device's processes that are still there, and then the watch.
    fn end_group(&mut self) {
        if let Ok(group) = i32::try_from(self.child.id()) {
            // There is usually none.
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        if let Some(mut watch) = self.watch.take() {
            let _ = watch.kill();
            let _ = watch.wait();
        }
    }

    /// Returns how the program has ended, if it has or does within this time.
    pub(crate) fn ended(&mut self, within: Duration) -> Option<String> {
        let begun = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(ending(status)),
                Ok(None) if begun.elapsed() < within => std::thread::sleep(Duration::from_millis(1)),
                _ => return None,
            }
        }
    }
}

/// Says how a shell command has ended. A shell exits with 128 + n after signal n has ended its command.
pub(crate) fn ending(status: ExitStatus) -> String {
    match status.code() {
        Some(code @ 129..=192) => {
            format!("{}; the shell's exit status is {code}", ExitStatus::from_raw(code - 128))
        }
        _ => status.to_string(),
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stream.shut();
        let begun = Instant::now();
        while begun.elapsed() < END {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                _ => break,
            }
        }
        self.end_group();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;
    use uet_control::{CallError, Client, Counters};

    /// Sends `bytes` repeatedly, with a pause between.
    fn drip(mut there: UnixStream, bytes: &'static [u8], pause: Duration) {
        std::thread::spawn(move || {
            while there.write_all(bytes).is_ok() {
                std::thread::sleep(pause);
            }
        });
    }

    #[test]
    fn exit_status_of_a_shell_names_the_signal() {
        let of_code = |code: i32| ending(ExitStatus::from_raw(code << 8));
        assert_eq!(of_code(139), "signal: 11 (SIGSEGV); the shell's exit status is 139");
        assert_eq!(of_code(1), "exit status: 1");
        assert_eq!(ending(ExitStatus::from_raw(11)), "signal: 11 (SIGSEGV)");
    }

    #[test]
    fn interrupt_ends_a_wait() {
        let (here, _there) = UnixStream::pair().unwrap();
        let mut stream = Stream::new(Socket::Pair(here));
        stream.set_patience(Duration::from_secs(60));
        let interrupt = Arc::new(AtomicBool::new(false));
        stream.set_interrupt(Arc::clone(&interrupt));
        let waits = std::thread::spawn(move || stream.read(&mut [0]).unwrap_err().to_string());
        interrupt.store(true, Ordering::Relaxed);
        assert_eq!(waits.join().unwrap(), "a signal ended the wait for the device");
    }

    #[test]
    fn dripping_or_silent_device_costs_no_more_than_the_patience() {
        let event = b"{\"event\":\"completion\",\"operation\":4,\"status\":\"ok\"}\n";
        for (bytes, pause) in [(&b" "[..], 20), (&event[..], 20), (&b""[..], 1000)] {
            let (here, there) = UnixStream::pair().unwrap();
            drip(there, bytes, Duration::from_millis(pause));
            let stream = Stream::new(Socket::Pair(here));
            let mut client = Client::new(BufReader::new(stream.second().unwrap()), stream.second().unwrap());
            stream.set_patience(Duration::from_millis(300));
            let begun = Instant::now();
            let error = client.call(Counters {}).unwrap_err();
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
            assert!(
                matches!(&error, CallError::Channel { error, .. } if error.kind() == io::ErrorKind::TimedOut)
            );
            assert!(error.to_string().contains("does not answer within 300ms"), "{error}");
        }
    }
}
