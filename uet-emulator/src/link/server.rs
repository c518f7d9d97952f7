//! A NIC in real time: on a [`Link`], told what to do over the control channel.

use super::Link;
use super::driver::Driver;
use crate::capture::Capture;
use crate::control::Control;
use crate::nic::Nic;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use uet_control::{Answer, ErrorCode, Lines};

/// How long a suite may take to read a line before it is hung up on: the NIC waits meanwhile.
const SLOW: Duration = Duration::from_secs(2);

/// Runs a NIC on a link, until it is told to stop. One suite at a time.
///
/// ```
/// use std::io::{BufReader, Write};
/// use std::net::{TcpListener, TcpStream};
/// use std::os::unix::net::UnixStream;
/// use uet_control::{Client, Hello, PROTOCOL};
/// use uet_emulator::link::server::{Channel, Server};
/// use uet_emulator::link::udp::UdpLink;
/// use uet_emulator::{Config, Nic};
///
/// let link = UdpLink::bind(([127, 0, 0, 1], 0).into())?;
/// let nic = Nic::new(link.local().ip(), Config::real_time())?;
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let address = listener.local_addr()?;
/// let (mut stop, stopped) = UnixStream::pair()?;
/// let server = Server::new(nic, link, Channel::Tcp(listener), stopped.into());
/// let running = std::thread::spawn(move || server.run());
///
/// let stream = TcpStream::connect(address)?;
/// let mut suite = Client::new(BufReader::new(stream.try_clone()?), stream);
/// assert_eq!(suite.call(Hello { protocol: PROTOCOL })?.name, "uet-emulator");
///
/// stop.write_all(b".")?;
/// running.join().unwrap()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Server {
    driver: Driver,
    control: Control,
    channel: Channel,
    suite: Option<Suite>,
    stop: OwnedFd,
}

/// Where the control channel is.
#[derive(Debug)]
pub enum Channel {
    /// The suite connects here.
    Tcp(TcpListener),
    /// The suite is on standard input and output; when it goes, the NIC stops.
    Stdio,
}

/// Who tells the NIC what to do.
struct Suite {
    lines: Lines<BufReader<Ready>>,
    writer: Box<dyn Write + Send>,
}

impl core::fmt::Debug for Suite {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Suite")
    }
}

/// Reads what is there, and never waits.
#[derive(Debug)]
struct Ready(File);

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
    fn tcp(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(SLOW))?;
        let reader = File::from(OwnedFd::from(stream.try_clone()?));
        Ok(Suite { lines: Lines::new(BufReader::new(Ready(reader))), writer: Box::new(stream) })
    }

    fn stdio() -> io::Result<Self> {
        let reader = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        Ok(Suite { lines: Lines::new(BufReader::new(Ready(reader))), writer: Box::new(io::stdout()) })
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        self.writer.write_all(format!("{line}\n").as_bytes())?;
        self.writer.flush()
    }
}

/// What is to happen after a look at the suite.
enum Next {
    GoOn,
    Stop,
}

impl Server {
    /// A NIC that is not yet running. It stops when `stop` can be read: a pipe that a signal writes into, say.
    pub fn new(nic: Nic, link: impl Into<Link>, channel: Channel, stop: OwnedFd) -> Self {
        let link = link.into();
        let control = Control::new(&nic, link.place(), link.claims()).with_classes(link.classes());
        Server { driver: Driver::new(nic, link), control, channel, suite: None, stop }
    }

    /// Writes what passes.
    pub fn capture(&mut self, capture: Capture) {
        self.driver.capture(capture);
    }

    /// Where its packets are.
    pub fn link(&self) -> &Link {
        self.driver.link()
    }

    /// Runs until it is told to stop, or something is broken that is needed.
    pub fn run(mut self) -> io::Result<()> {
        match &self.channel {
            Channel::Tcp(listener) => listener.set_nonblocking(true)?,
            Channel::Stdio => self.suite = Some(Suite::stdio()?),
        }
        let ended = loop {
            match self.turn() {
                Ok(Next::GoOn) => {}
                Ok(Next::Stop) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        let written = self.driver.end_capture().map_or(Ok(0), Capture::finish);
        let written = written.map_err(|error| io::Error::new(error.kind(), format!("the capture: {error}")));
        ended.and(written.map(|_| ()))
    }

    fn turn(&mut self) -> io::Result<Next> {
        let busy = self.driver.take_in()?;
        if let Next::Stop = self.listen()? {
            return Ok(Next::Stop);
        }
        let (control, own) = (&self.control, self.driver.link().port());
        self.driver.send_off(|to| control.port_of(to).unwrap_or(own));
        self.tell();
        if busy { Ok(Next::GoOn) } else { self.wait() }
    }

    /// Takes a suite that calls, and does what it asks.
    fn listen(&mut self) -> io::Result<Next> {
        if let Channel::Tcp(listener) = &self.channel {
            while let Ok((stream, _)) = listener.accept() {
                match &self.suite {
                    None => self.suite = Suite::tcp(stream).ok(),
                    Some(_) => {
                        let busy = Answer::error(0, ErrorCode::Exhausted, "another suite is connected");
                        // Whether it hears it or not, it is hung up on.
                        let _ = Suite::tcp(stream).and_then(|mut other| other.write(&busy.to_line()));
                    }
                }
            }
        }
        while let Some(suite) = &mut self.suite {
            let line = match suite.lines.read() {
                Ok(Some(line)) => line,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // What is no text, or a line without end: nothing behind it can be made sense of.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    let _ =
                        suite.write(&Answer::error(0, ErrorCode::BadRequest, error.to_string()).to_line());
                    return Ok(self.hang_up());
                }
                // It has gone.
                Ok(None) | Err(_) => return Ok(self.hang_up()),
            };
            let now = self.driver.now();
            let answer = self.control.handle_line(now, &mut self.driver.nic, &line);
            let told = answer.map_or(Ok(()), |answer| suite.write(&answer.to_line()));
            if told.is_err() {
                return Ok(self.hang_up());
            }
        }
        Ok(Next::GoOn)
    }

    /// What has been waited for, and what is told without being asked.
    fn tell(&mut self) {
        let now = self.driver.now();
        let Some(suite) = &mut self.suite else { return };
        let mut told = Ok(());
        while let (Ok(()), Some(answer)) = (&told, self.control.poll_answer(now, &mut self.driver.nic)) {
            told = suite.write(&answer.to_line());
        }
        while let (Ok(()), Some(event)) = (&told, self.control.poll_event(&mut self.driver.nic)) {
            told = suite.write(&event.to_line());
        }
        if told.is_err() {
            self.hang_up();
        }
    }

    fn hang_up(&mut self) -> Next {
        self.suite = None;
        self.control.hang_up();
        match self.channel {
            Channel::Tcp(_) => Next::GoOn,
            Channel::Stdio => Next::Stop,
        }
    }

    /// Sleeps until there is something to do.
    fn wait(&mut self) -> io::Result<Next> {
        self.driver.flush_capture();
        let due = [self.driver.nic.poll_timeout(), self.control.poll_timeout()].into_iter().flatten().min();
        let timeout = due.map(|at| TimeSpec::from_duration(at - self.driver.now()));
        let listener = match &self.channel {
            Channel::Tcp(listener) => Some(listener.as_fd()),
            Channel::Stdio => None,
        };
        let suite = self.suite.as_ref().map(|suite| suite.lines.get_ref().get_ref().0.as_fd());
        let fds = [Some(self.stop.as_fd()), Some(self.driver.link().as_fd()), listener, suite];
        let mut fds: Vec<_> =
            fds.into_iter().flatten().map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        match ppoll(&mut fds, timeout, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let stopped = fds.first().and_then(PollFd::any).unwrap_or(false);
        Ok(if stopped { Next::Stop } else { Next::GoOn })
    }
}
