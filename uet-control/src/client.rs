use crate::{Answer, ErrorCode, Event, Lines, Op, Operation, Refusal, Request};
use core::fmt;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::io::{self, BufRead, Write};

/// The suite's side of a channel, over any pair of streams.
///
/// ```
/// use uet_control::{Client, Counters, Hello, PROTOCOL};
///
/// // What a device would send back.
/// let from_device = r#"{"id":1,"ok":true,"protocol":1,"name":"nic","capabilities":["rud","write"],"link":{"kind":"raw","iface":"veth1"}}
/// {"event":"completion","operation":4,"status":"ok"}
/// {"id":2,"error":{"code":"unsupported","message":"no counters here"}}
/// "#;
/// let mut to_device = Vec::new();
/// let mut client = Client::new(from_device.as_bytes(), &mut to_device);
///
/// assert_eq!(client.call(Hello { protocol: PROTOCOL })?.name, "nic");
/// let refused = client.call(Counters {}).unwrap_err();
/// assert_eq!(refused.to_string(), "counters: unsupported: no counters here");
/// assert!(client.poll_event().is_some(), "events that came in between are kept");
/// # Ok::<(), uet_control::CallError>(())
/// ```
#[derive(Debug)]
pub struct Client<R, W> {
    lines: Lines<R>,
    writer: W,
    last_id: u64,
    events: VecDeque<Event>,
}

impl<R: BufRead, W: Write> Client<R, W> {
    /// A client that has said nothing yet.
    pub fn new(reader: R, writer: W) -> Self {
        Client { lines: Lines::new(reader), writer, last_id: 0, events: VecDeque::new() }
    }

    /// Asks for an operation and waits for its answer. An answer to an earlier call that was given up is passed over.
    pub fn call<O: Operation>(&mut self, op: O) -> Result<O::Answer, CallError> {
        let result = self.ask(op.into())?;
        let answer = Answer { id: self.last_id, ok: Some(true), error: None, result };
        answer.into_result::<O>().map_err(|refusal| CallError::Refused { op: O::NAME, refusal })
    }

    /// The same for any operation: the result as the channel carries it.
    pub fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
        self.last_id += 1;
        let name = op.name();
        let request = Request { id: self.last_id, op };
        let broken = |error| CallError::Channel { op: name, error };
        self.writer
            .write_all(format!("{}\n", request.to_line()).as_bytes())
            .and_then(|()| self.writer.flush())
            .map_err(broken)?;
        loop {
            let line = self.lines.read().map_err(broken)?;
            let line = line.ok_or_else(|| broken(io::ErrorKind::UnexpectedEof.into()))?;
            let unreadable = |error: serde_json::Error| CallError::Refused {
                op: name,
                refusal: Refusal {
                    code: ErrorCode::BadAnswer,
                    message: format!("{error}, in: {}", start(&line)),
                },
            };
            let value: Value = serde_json::from_str(&line).map_err(unreadable)?;
            if value.get("event").is_some() {
                // An event of a kind that is not known is of a later version of the channel.
                self.events.extend(serde_json::from_value::<Event>(value).ok());
                continue;
            }
            let answer: Answer = serde_json::from_value(value).map_err(unreadable)?;
            if answer.id > self.last_id {
                let message = format!("the answer to {} has the id {}", self.last_id, answer.id);
                let refusal = Refusal { code: ErrorCode::BadAnswer, message };
                return Err(CallError::Refused { op: name, refusal });
            }
            if answer.id == self.last_id {
                return match answer.error {
                    Some(refusal) => Err(CallError::Refused { op: name, refusal }),
                    None => Ok(answer.result),
                };
            }
        }
    }

    /// The oldest event that came with the answers so far.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

/// The first characters of a line.
fn start(line: &str) -> String {
    line.chars().take(120).collect()
}

/// Why a call has no result.
#[derive(Debug)]
pub enum CallError {
    /// The device does not do it.
    Refused {
        /// The operation.
        op: &'static str,
        /// What the device says.
        refusal: Refusal,
    },
    /// The channel is broken, or silent for too long.
    Channel {
        /// The operation.
        op: &'static str,
        /// What happened.
        error: io::Error,
    },
}

impl CallError {
    /// Whether the device lacks the operation: cases that need it are skipped.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, CallError::Refused { refusal: Refusal { code: ErrorCode::Unsupported, .. }, .. })
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Refused { op, refusal } => write!(f, "{op}: {refusal}"),
            CallError::Channel { op, error } => write!(f, "{op}: the control channel: {error}"),
        }
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CallError::Refused { .. } => None,
            CallError::Channel { error, .. } => Some(error),
        }
    }
}
