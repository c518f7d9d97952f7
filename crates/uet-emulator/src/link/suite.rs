//! The connection of a NIC to a suite: the NIC never waits until the suite reads or writes.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};
use uet_control::{Answer, ErrorCode, Handshake, Lines};

/// Maximum time for one line to the suite. Then the NIC disconnects, however much the suite has read.
pub(super) const SLOW: Duration = Duration::from_secs(2);

/// Number of bytes that a ready pipe or socket takes without blocking.
const PIECE: usize = 4096;

/// Maximum number of pieces that are written to the suite at once.
const PIECES: usize = 64;

/// The connection to a suite.
pub(super) struct Suite {
    pub(super) lines: Lines<BufReader<Ready>>,
    pub(super) handshake: Handshake,
    writer: File,
    /// Lines that the suite has not taken yet. Until it has, its next request waits.
    unsent: VecDeque<u8>,
    /// The time until which it has to take them.
    due: Instant,
}

impl core::fmt::Debug for Suite {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Suite")
    }
}

/// Reads available bytes and never waits.
#[derive(Debug)]
pub(super) struct Ready(File);

impl Read for Ready {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut fds, Some(TimeSpec::from_duration(Duration::ZERO)), None)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            _ => self.0.read(buffer),
        }
    }
}

impl Suite {
    fn new(reader: File, writer: File) -> Self {
        let lines = Lines::new(BufReader::new(Ready(reader)));
        let (unsent, due) = (VecDeque::new(), Instant::now());
        Suite { lines, handshake: Handshake::default(), writer, unsent, due }
    }

    pub(super) fn tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(SLOW))?;
        let reader = File::from(OwnedFd::from(stream.try_clone()?));
        let writer = File::from(OwnedFd::from(stream));
        Ok(Suite::new(reader, writer))
    }

    pub(super) fn stdio() -> io::Result<Self> {
        let reader = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let writer = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Suite::new(reader, writer))
    }

    /// Returns whether it has sent `hello`.
    pub(super) fn has_greeted(&self) -> bool {
        self.handshake.is_done()
    }

    /// Begins to write a line.
    pub(super) fn write(&mut self, line: &str) -> io::Result<()> {
        if self.unsent.is_empty() {
            self.due = Instant::now();
        }
        self.due += SLOW;
        self.unsent.extend(line.as_bytes());
        self.unsent.push_back(b'\n');
        self.flush()
    }

    /// Writes what the suite takes without waiting. Fails if a line takes too long.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        for _ in 0..PIECES {
            let (piece, _) = self.unsent.as_slices();
            if piece.is_empty() {
                return Ok(());
            }
            let mut fds = [PollFd::new(self.writer.as_fd(), PollFlags::POLLOUT)];
            match ppoll(&mut fds, Some(TimeSpec::from_duration(Duration::ZERO)), None) {
                Ok(0) | Err(Errno::EINTR) => break,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            let written = self.writer.write(&piece[..piece.len().min(PIECE)])?;
            self.unsent.drain(..written);
        }
        let is_late = !self.unsent.is_empty() && Instant::now() >= self.due;
        if is_late { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }

    /// Returns whether the suite has not taken all lines yet.
    pub(super) fn is_stuck(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Returns how much time a stuck suite has left.
    pub(super) fn time_left(&self) -> Option<Duration> {
        self.is_stuck().then(|| self.due.saturating_duration_since(Instant::now()))
    }

    /// Returns what to wait for: a request, or that a stuck suite reads.
    pub(super) fn ready_to_go_on(&self) -> PollFd<'_> {
        if self.is_stuck() {
            PollFd::new(self.writer.as_fd(), PollFlags::POLLOUT)
        } else {
            PollFd::new(self.lines.get_ref().get_ref().0.as_fd(), PollFlags::POLLIN)
        }
    }

    /// Hangs up with a reason. Its first request is read, since closing a socket with unread data discards the reason.
    pub(super) fn refuse(mut self, reason: &str) {
        let answer = Answer::error(0, ErrorCode::Exhausted, reason);
        // The connection ends either way, so nobody needs the result.
        let _ = self.lines.read();
        let _ = self.write(&answer.to_line());
    }
}
