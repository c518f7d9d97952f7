//! The control channel of a device: TCP, or the standard input and output of a program that is started here.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// How long a program may take to end by itself, once nobody speaks to it any more.
const END: Duration = Duration::from_secs(2);

/// A stream in both directions.
#[derive(Debug)]
pub(crate) enum Stream {
    /// To a device that runs already.
    Tcp(TcpStream),
    /// To a program that was started here.
    Pipe(UnixStream),
}

impl Stream {
    /// Connects to `HOST:PORT`, or `tcp://HOST:PORT`.
    pub(crate) fn connect(place: &str) -> io::Result<Self> {
        let told = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot reach the control channel at {place}: {error}"))
        };
        let mut last = io::Error::new(io::ErrorKind::InvalidInput, "no such address");
        for address in addresses(place.strip_prefix("tcp://").unwrap_or(place)).map_err(told)? {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(Stream::Tcp(stream));
                }
                Err(error) => last = error,
            }
        }
        Err(told(last))
    }

    /// A second handle to the same stream.
    pub(crate) fn second(&self) -> io::Result<Self> {
        Ok(match self {
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
            Stream::Pipe(stream) => Stream::Pipe(stream.try_clone()?),
        })
    }

    /// How long a read may take.
    pub(crate) fn set_patience(&self, patience: Duration) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_read_timeout(Some(patience)),
            Stream::Pipe(stream) => stream.set_read_timeout(Some(patience)),
        }
    }

    fn shut(&self) {
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Stream::Pipe(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Pipe(stream) => stream.read(buffer),
        };
        // What the system says of a time that is up helps nobody.
        read.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                io::Error::new(io::ErrorKind::TimedOut, "the device does not answer")
            }
            _ => error,
        })
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Pipe(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The addresses of `HOST:PORT`.
pub(crate) fn addresses(place: &str) -> io::Result<Vec<SocketAddr>> {
    if !place.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "write HOST:PORT"));
    }
    Ok(place.to_socket_addrs()?.collect())
}

/// A program that was started here. It is ended in the end.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    stream: Stream,
}

impl Program {
    /// Starts a command of the shell; its standard input and output are the stream. What it says on standard error goes
    /// where ours goes.
    pub(crate) fn start(command: &str) -> io::Result<(Self, Stream)> {
        // A pair of sockets rather than of pipes: a read from it can be given up.
        let (here, there) = UnixStream::pair()?;
        let there = OwnedFd::from(there);
        let child = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::from(there.try_clone()?))
            .stdout(Stdio::from(there))
            .spawn()
            .map_err(|error| io::Error::new(error.kind(), format!("cannot start '{command}': {error}")))?;
        let stream = Stream::Pipe(here);
        Ok((Program { child, stream: stream.second()? }, stream))
    }

    /// How it has ended, when it has, or has within this time.
    pub(crate) fn ended(&mut self, within: Duration) -> Option<String> {
        let begun = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status.to_string()),
                Ok(None) if begun.elapsed() < within => std::thread::sleep(Duration::from_millis(1)),
                _ => return None,
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stream.shut();
        let begun = Instant::now();
        while begun.elapsed() < END {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                _ => return,
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
