//! A NIC on a [`Link`], driven over the control channel, in real time or in virtual time.

use super::Link;
use super::driver::Driver;
use super::suite::{SLOW, Suite};
use crate::capture::Capture;
use crate::control::Control;
use crate::nic::Nic;
use core::cell::RefCell;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};
use uet_control::{Advance, Advanced, Answer, Clock, ErrorCode, Op, Request, SecureDomain};
use uet_packet_io::keys::KeyError;

/// Maximum numbers of control requests, and of answers and events, per turn before packets and signals are served.
const TURN: usize = 32;

/// Maximum time of the requests of a turn, before the last of them.
const BUSY: Duration = Duration::from_millis(10);

/// Runs a NIC on a link until it is stopped. Serves one suite at a time.
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
    /// A suite that connected while another one was served.
    newcomer: Option<Suite>,
    stop: OwnedFd,
}

/// The endpoint of the control channel.
#[derive(Debug)]
pub enum Channel {
    /// The suite connects here.
    Tcp(TcpListener),
    /// The suite uses standard input and output; when it disconnects, the NIC stops.
    Stdio,
}

/// Tells whether the server continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
}

/// Progress of one turn with the requests of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// Nothing is left to read for now.
    All,
    /// More requests may be waiting.
    Some,
    /// The suite has not taken the last answer yet.
    Stuck,
    /// The suite has hung up.
    Gone,
}

impl Server {
    /// Creates a server that is not yet running. It stops once `stop` is readable, for example a pipe that a signal
    /// writes into.
    pub fn new(nic: Nic, link: impl Into<Link>, channel: Channel, stop: OwnedFd) -> Self {
        let link = link.into();
        let control = Control::new(&nic, link.place(), link.claims())
            .with_classes(link.classes())
            .with_source_ports(link.source_ports());
        Server { driver: Driver::new(nic, link), control, channel, suite: None, newcomer: None, stop }
    }

    /// Installs secure domains: the NIC protects its packets.
    pub fn with_keys(self, domains: &[SecureDomain]) -> Result<Self, KeyError> {
        let Server { mut driver, control, .. } = self;
        let control = control.with_keys(&mut driver.nic, domains)?;
        Ok(Server { driver, control, ..self })
    }

    /// Makes time virtual: it passes only while the suite says `advance`.
    #[must_use]
    pub fn with_virtual_time(self) -> Self {
        let Server { driver, control, .. } = self;
        Server { driver: driver.with_virtual_time(), control: control.with_claim("time"), ..self }
    }

    /// Captures all packets from now on.
    pub fn capture(&mut self, capture: Capture) {
        self.driver.capture(capture);
    }

    /// Returns the link.
    pub fn link(&self) -> &Link {
        self.driver.link()
    }

    /// Runs until it is stopped or a required file descriptor fails.
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

    /// Serves packets, the control channel and the stop signal once each. Every step is bounded, so that no flood of one
    /// kind keeps the others waiting.
    fn turn(&mut self) -> io::Result<Next> {
        let virtual_time = self.driver.is_virtual();
        let received = !virtual_time && self.driver.take_in()?;
        self.accept();
        let served = self.serve()?;
        let (control, own) = (&self.control, self.driver.link().port());
        let more_to_send = !virtual_time && self.driver.send_off(|to| control.port_of(to).unwrap_or(own));
        let more_to_tell = self.tell()?;
        if self.suite.is_none() && matches!(self.channel, Channel::Stdio) {
            return Ok(Next::Stop);
        }
        let more_to_serve = matches!(served, Served::Some | Served::Gone);
        let busy = received || more_to_serve || more_to_send || more_to_tell;
        self.wait(busy)
    }

    /// Accepts a connection if none waits already; the others stay in the listener's backlog.
    fn accept(&mut self) {
        if let (Channel::Tcp(listener), None) = (&self.channel, &self.newcomer) {
            self.newcomer = listener.accept().ok().and_then(|(stream, _)| Suite::tcp(stream).ok());
        }
    }

    /// Handles the requests of the suite, then decides about a newcomer. A suite that closed its connection before the
    /// newcomer connected has been noticed by then, so a quick reconnect is never refused. A connection without a
    /// `hello` gives way.
    fn serve(&mut self) -> io::Result<Served> {
        let served = self.requests()?;
        match (served, self.newcomer.take()) {
            (_, None) => {}
            (Served::Some | Served::Stuck, newcomer) => self.newcomer = newcomer,
            (Served::Gone, newcomer) => self.suite = newcomer,
            (Served::All, Some(newcomer)) if self.suite.as_ref().is_some_and(Suite::has_greeted) => {
                newcomer.refuse("another suite is already connected");
            }
            (Served::All, Some(newcomer)) => {
                if let Some(silent) = self.suite.replace(newcomer) {
                    silent.refuse("another suite connected before this one sent `hello`");
                }
            }
        }
        Ok(served)
    }

    fn requests(&mut self) -> io::Result<Served> {
        let begun = Instant::now();
        for _ in 0..TURN {
            if begun.elapsed() > BUSY {
                break;
            }
            let Some(suite) = &mut self.suite else { return Ok(Served::All) };
            if let Err(error) = suite.flush() {
                return self.lose_suite(error);
            }
            if suite.is_stuck() {
                return Ok(Served::Stuck);
            }
            let line = match suite.lines.read() {
                Ok(Some(line)) => line,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Served::All),
                // The line is not UTF-8 or too long: the bytes behind it cannot be trusted.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    let answer = Answer::error(0, ErrorCode::BadRequest, error.to_string());
                    let _ = suite.write(&answer.to_line());
                    return Ok(self.hang_up());
                }
                Ok(None) | Err(_) => return Ok(self.hang_up()),
            };
            if let Some(answer) = suite.handshake.refuse(&line) {
                let _ = suite.write(&answer.to_line());
                return Ok(self.hang_up());
            }
            let lines = match self.driver.is_virtual() {
                true => self.lines_in_virtual_time(&line)?,
                false => {
                    let answer = self.control.handle_line(self.driver.now(), &mut self.driver.nic, &line);
                    answer.iter().map(Answer::to_line).collect()
                }
            };
            if self.control.take_restart() {
                self.driver.capture_restart();
            }
            let Some(suite) = &mut self.suite else { return Ok(Served::All) };
            if let Some(error) = lines.iter().find_map(|line| suite.write(line).err()) {
                return self.lose_suite(error);
            }
        }
        Ok(Served::Some)
    }

    /// Handles a line while time stands still; returns the events until then and the answer, in an order that does not
    /// depend on real time.
    fn lines_in_virtual_time(&mut self, line: &str) -> io::Result<Vec<String>> {
        let Server { driver, control, .. } = self;
        let answer = match Request::parse(line) {
            Err(error) => Request::refuse(line, &error),
            Ok(Request { id, op: Op::Now(_) }) => Answer::ok(id, &Clock { now_ns: driver.now().0 }),
            Ok(Request { id, op: Op::Advance(Advance { by_ns }) }) => {
                let (own, control) = (driver.link().port(), RefCell::new(&mut *control));
                let port_of = |to| control.borrow().port_of(to).unwrap_or(own);
                let enough = |nic: &mut Nic| control.borrow_mut().has_event(nic);
                driver.advance(Duration::from_nanos(by_ns), port_of, enough)?;
                Answer::ok(id, &Advanced { now_ns: Some(driver.now().0) })
            }
            Ok(Request { id, mut op }) => {
                match &mut op {
                    // Packets on the link belong to contexts that the NIC forgets.
                    Op::Reset(_) => driver.discard()?,
                    // Time cannot pass before the answer.
                    Op::WaitCompletion(wait) => wait.timeout_ns = 0,
                    _ => {}
                }
                let now = driver.now();
                let answer = control.handle(now, &mut driver.nic, Request { id, op });
                let answer = answer.or_else(|| control.poll_answer(now, &mut driver.nic));
                let missing = || Answer::error(id, ErrorCode::Internal, "the operation has no answer");
                answer.unwrap_or_else(missing)
            }
        };
        let events = core::iter::from_fn(|| control.poll_event(&mut driver.nic)).map(|event| event.to_line());
        Ok(events.chain([answer.to_line()]).collect())
    }

    /// Sends delayed answers and events; returns whether more may be waiting for a suite that takes them.
    fn tell(&mut self) -> io::Result<bool> {
        let now = self.driver.now();
        for _ in 0..TURN {
            let ready = self.suite.as_mut().filter(|suite| !suite.is_stuck());
            let Some(suite) = ready else { return Ok(false) };
            let nic = &mut self.driver.nic;
            let answer = self.control.poll_answer(now, nic).map(|answer| answer.to_line());
            let line = answer.or_else(|| self.control.poll_event(nic).map(|event| event.to_line()));
            let Some(line) = line else { return Ok(false) };
            if let Err(error) = suite.write(&line) {
                self.lose_suite(error)?;
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// Disconnects a suite that takes no lines. Fails if no other can connect.
    fn lose_suite(&mut self, error: io::Error) -> io::Result<Served> {
        if error.kind() == io::ErrorKind::TimedOut && matches!(self.channel, Channel::Stdio) {
            let why = format!(
                "the control channel: nobody has read a line on standard output for {} s",
                SLOW.as_secs()
            );
            return Err(io::Error::new(error.kind(), why));
        }
        Ok(self.hang_up())
    }

    fn hang_up(&mut self) -> Served {
        self.suite = None;
        self.control.hang_up();
        Served::Gone
    }

    /// Looks for the stop signal. Unless the NIC is busy, sleeps until there is something to do.
    fn wait(&mut self, busy: bool) -> io::Result<Next> {
        let late = self.suite.as_ref().and_then(Suite::time_left);
        let timeout = if busy {
            Some(Duration::ZERO)
        } else {
            self.driver.flush_capture();
            let due = [self.driver.nic.poll_timeout(), self.control.poll_timeout()];
            let due = due.into_iter().flatten().min().filter(|_| !self.driver.is_virtual());
            [due.map(|at| at - self.driver.now()), late].into_iter().flatten().min()
        };
        let timeout = timeout.map(TimeSpec::from_duration);
        let listener = match &self.channel {
            Channel::Tcp(listener) if self.newcomer.is_none() => Some(listener.as_fd()),
            _ => None,
        };
        let suite = self.suite.as_ref().map(Suite::ready_to_go_on);
        // In virtual time, packets wait until time passes.
        let link = (!self.driver.is_virtual()).then(|| self.driver.link().as_fd());
        let fds = [Some(self.stop.as_fd()), link, listener].into_iter().flatten();
        let mut fds: Vec<_> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).chain(suite).collect();
        match ppoll(&mut fds, timeout, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let stopped = fds.first().and_then(PollFd::any).unwrap_or(false);
        Ok(if stopped { Next::Stop } else { Next::GoOn })
    }
}
