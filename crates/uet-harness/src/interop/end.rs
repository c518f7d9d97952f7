//! One of the two implementations, by its control channel.

use super::Implementation;
use super::Reach;
use crate::dut::channel::check;
use crate::dut::once_it_listens;
use crate::dut::session::{SILENCE, Session};
use core::net::SocketAddr;
use core::sync::atomic::AtomicBool;
use core::time::Duration;
use std::io;
use uet_control::{CallError, Completion, ErrorCode, Link, Operation, Parameter, WaitCompletion};

/// The longest single wait for a completion.
const SLICE: Duration = Duration::from_millis(250);

/// The reason why a scenario did not go as it should.
#[derive(Debug)]
pub(super) enum Obstacle {
    /// An end cannot play it.
    Lacks(String),
    /// An end refused an operation of the control channel.
    Refused(usize, String),
    /// The control channel of an end is broken.
    Dead(usize, String),
    /// The ends disagree about the result. If all operations ended well, one end may hold other bytes than the packets
    /// carried: this one.
    Differ(Option<usize>, String),
    /// This end counts an open context after the close of all of them.
    Open(usize, String),
}

/// An implementation that takes part.
#[derive(Debug)]
pub(super) struct End {
    pub(super) name: String,
    pub(super) session: Session,
    /// The destination of its packets.
    pub(super) place: SocketAddr,
}

impl End {
    /// Reaches an implementation. Calls `waits` with the address of its control channel if nobody listens there yet.
    pub(super) fn open(
        implementation: &Implementation,
        interrupt: &AtomicBool,
        waits: impl FnOnce(&str),
    ) -> io::Result<Self> {
        let name = implementation.name.clone();
        let about = |error: io::Error| io::Error::new(error.kind(), format!("{name}: {error}"));
        let session = match &implementation.reach {
            Reach::Start(command) => Session::start(command),
            Reach::Connect(control) => once_it_listens(
                || waits(control),
                || check(interrupt).and_then(|()| Session::connect(control)),
            ),
        };
        Self::of(name.clone(), session.map_err(about)?).map_err(about)
    }

    fn of(name: String, session: Session) -> io::Result<Self> {
        let Link::Udp { addr, port } = session.welcome.link else {
            return Err(io::Error::other(
                "two implementations meet over UDP, and this one uses another link",
            ));
        };
        Ok(End { name, session, place: SocketAddr::new(addr, port) })
    }

    /// Starts the implementation once more. Returns false if it was not started here.
    pub(super) fn restart(&mut self) -> io::Result<bool> {
        let Some(session) = self.session.restarted()? else { return Ok(false) };
        *self = End::of(self.name.clone(), session)?;
        Ok(true)
    }

    pub(super) fn claims(&self, name: &str) -> bool {
        self.session.welcome.capabilities.iter().any(|claim| claim == name)
    }

    /// Returns a parameter that is a word, or the default.
    pub(super) fn word(&self, name: &str, default: &str) -> String {
        let stated = self.session.welcome.parameters.get(name).and_then(|value| value.as_str());
        stated.unwrap_or(default).to_owned()
    }

    /// Returns a parameter that is a number, or the default of the catalogue.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        let stated = self.session.welcome.parameters.get(name).and_then(|value| value.as_u64());
        stated.or_else(|| Parameter::find(name)?.number())
    }

    pub(super) fn payload_mtu(&self) -> u64 {
        self.number("payload_mtu").unwrap_or(4096).clamp(1024, 8192)
    }

    /// Requests an operation. `end` is the place of this end, for the error.
    pub(super) fn call<O: Operation>(&mut self, end: usize, op: O) -> Result<O::Answer, Obstacle> {
        self.session.call(op, SILENCE).map_err(|error| match error {
            error if error.is_unsupported() => Obstacle::Lacks(format!("{}: {error}", self.name)),
            error @ CallError::Refused { .. } => Obstacle::Refused(end, error.to_string()),
            error @ CallError::Channel { .. } => {
                let ended = self.session.ended().map(|status| format!("; it ended: {status}"));
                Obstacle::Dead(end, format!("{error}{}", ended.unwrap_or_default()))
            }
        })
    }

    /// Waits until an operation has ended: at most this long, and never longer than a moment.
    pub(super) fn wait(
        &mut self,
        end: usize,
        operation: u64,
        most: Duration,
    ) -> Result<Option<Completion>, Obstacle> {
        let wait = WaitCompletion { operation, timeout_ns: SLICE.min(most).as_nanos() as u64 };
        match self.session.call(wait, SILENCE + SLICE) {
            Ok(completion) => Ok(Some(completion)),
            Err(CallError::Refused { refusal, .. }) if refusal.code == ErrorCode::Timeout => Ok(None),
            Err(error @ CallError::Refused { .. }) => Err(Obstacle::Refused(end, error.to_string())),
            Err(error) => Err(Obstacle::Dead(end, error.to_string())),
        }
    }
}
