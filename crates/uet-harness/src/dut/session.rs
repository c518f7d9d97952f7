//! A session on the control channel of a device, and the device's program if the session has started it.

use super::busy;
use super::channel::{Program, Stream, check};
use core::time::Duration;
use serde_json::{Map, Value};
use std::io::{self, BufReader};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use uet_control::{
    Answer, Bye, CallError, Client, ErrorCode, Event, Hello, Op, Operation, PROTOCOL, Welcome,
};

/// Default maximum time without an answer.
pub(crate) const SILENCE: Duration = Duration::from_secs(30);

/// Maximum time for a device to answer `hello` on an idle host.
const GREETING: Duration = Duration::from_secs(10);

/// Maximum delay between the end of a program's output and its exit.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// A session on a control channel.
#[derive(Debug)]
pub(crate) struct Session {
    control: Client<BufReader<Stream>, Stream>,
    stream: Stream,
    pub(crate) welcome: Welcome,
    /// True once the control channel has ended.
    closed: bool,
    /// True ends all waits for the device.
    interrupt: Arc<AtomicBool>,
    /// The command that starts the device, if the session starts it.
    command: Option<String>,
    program: Option<Program>,
}

impl Session {
    /// Connects to a running device by the `HOST:PORT` of its control channel.
    pub(crate) fn connect(control: &str) -> io::Result<Self> {
        Self::greet(None, Stream::connect(control)?, None)
    }

    /// Starts a device with a shell command; its standard input and output are the control channel.
    pub(crate) fn start(command: &str) -> io::Result<Self> {
        let (program, stream) = Program::start(command)?;
        Self::greet(Some(program), stream, Some(command.to_owned()))
    }

    fn greet(mut program: Option<Program>, stream: Stream, command: Option<String>) -> io::Result<Self> {
        stream.set_patience(busy::patience(GREETING));
        let mut control = Client::new(BufReader::new(stream.second()?), stream.second()?);
        let welcome = control.call(Hello { protocol: PROTOCOL }).map_err(|error| {
            let ended = program.as_mut().and_then(|program| program.ended(LAST_MOMENT));
            io::Error::other(match ended {
                Some(status) => {
                    let wrote = match &error {
                        CallError::Refused { .. } => format!("; {error}"),
                        CallError::Channel { .. } => String::new(),
                    };
                    format!(
                        "the device's program ended with {status}, before it answered `hello`{wrote}; messages of \
                         that program stand above, if it wrote any"
                    )
                }
                None => {
                    let hint = match &error {
                        CallError::Refused { refusal, .. } if refusal.code == ErrorCode::BadAnswer => {
                            "; an answer is one line of JSON (docs/control-channel.md)"
                        }
                        _ => "",
                    };
                    format!("cannot start a session with the device: {error}{hint}")
                }
            })
        })?;
        let interrupt = Arc::default();
        Ok(Session { control, stream, welcome, closed: false, interrupt, command, program })
    }

    /// Ends all waits for the device once this flag is true. Requests then fail.
    pub(crate) fn set_interrupt(&mut self, interrupt: Arc<AtomicBool>) {
        self.stream.set_interrupt(Arc::clone(&interrupt));
        self.interrupt = interrupt;
    }

    /// Fails once that flag is true.
    pub(crate) fn check(&self) -> io::Result<()> {
        check(&self.interrupt)
    }

    /// Requests an operation and waits at most this long for its answer.
    pub(crate) fn ask(&mut self, op: Op, patience: Duration) -> Result<Map<String, Value>, CallError> {
        self.stream.set_patience(patience);
        let answer = self.control.ask(op);
        if let Err(CallError::Channel { error, .. }) = &answer {
            self.closed |= is_closed(error.kind());
        }
        answer
    }

    /// Requests an operation and waits at most this long for its result.
    pub(crate) fn call<O: Operation>(&mut self, op: O, patience: Duration) -> Result<O::Answer, CallError> {
        let result = self.ask(op.into(), patience)?;
        let answer = Answer { id: 0, ok: Some(true), error: None, result };
        answer.into_result::<O>().map_err(|refusal| CallError::Refused { op: O::NAME, refusal })
    }

    /// Returns the oldest unread event.
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.control.poll_event()
    }

    /// Returns how the device has ended: by the exit status of its program, or at least its control channel.
    pub(crate) fn ended(&mut self) -> Option<String> {
        let within = if self.closed { LAST_MOMENT } else { Duration::ZERO };
        let status = self.program.as_mut().and_then(|program| program.ended(within));
        status.or_else(|| self.closed.then(|| "its control channel is closed".into()))
    }

    /// Ends the device's program and starts it once more. Returns `None` if this session has not started it.
    pub(crate) fn restarted(&mut self) -> io::Result<Option<Session>> {
        let Some(command) = &self.command else { return Ok(None) };
        self.check()?;
        // Frees its ports before the next program binds them.
        drop(self.program.take());
        let mut next = Session::start(command)?;
        next.set_interrupt(Arc::clone(&self.interrupt));
        Ok(Some(next))
    }
}

/// Returns whether the other end of a stream has closed it.
fn is_closed(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
    matches!(kind, BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof)
}

impl Drop for Session {
    fn drop(&mut self) {
        // No further request follows, answered or not.
        self.stream.set_patience(Duration::from_secs(1));
        let _ = self.control.call(Bye {});
        drop(self.program.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, Write};
    use std::net::TcpListener;
    use uet_control::Reset;

    #[test]
    fn a_device_that_closes_its_channel_has_ended() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap().to_string();
        let device = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let link = r#""link":{"kind":"raw","iface":"x"}"#;
            let welcome =
                format!(r#"{{"id":1,"ok":true,"protocol":1,"name":"nic","capabilities":[],{link}}}"#);
            lines.next().unwrap().unwrap();
            writeln!(stream, "{welcome}").unwrap();
            lines.next().unwrap().unwrap();
        });
        let mut session = Session::connect(&place).unwrap();
        assert_eq!(session.ended(), None);
        assert!(session.call(Reset {}, SILENCE).is_err());
        device.join().unwrap();
        assert_eq!(session.ended().as_deref(), Some("its control channel is closed"));
    }
}
