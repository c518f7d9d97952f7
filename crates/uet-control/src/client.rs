use crate::escape::{escape, escape_value};
use crate::{Answer, ErrorCode, Event, Lines, Op, Operation, Refusal, Request};
use core::fmt;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::io::{self, BufRead, Write};

/// The suite's end of a control channel, over any pair of streams.
///
/// ```
/// use uet_control::{Client, Counters, Hello, PROTOCOL};
///
/// // The lines that a device would send.
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
    /// Unread events, each with the length of its line.
    events: VecDeque<(Event, usize)>,
    /// The sum of those lengths.
    event_bytes: usize,
}

/// The most unread events that a client keeps.
const MAX_EVENTS: usize = 1 << 16;

/// The most bytes of unread events that a client keeps.
const MAX_EVENT_BYTES: usize = 32 << 20;

impl<R: BufRead, W: Write> Client<R, W> {
    /// Creates a client that has sent nothing yet.
    pub fn new(reader: R, writer: W) -> Self {
        Client { lines: Lines::new(reader), writer, last_id: 0, events: VecDeque::new(), event_bytes: 0 }
    }

    /// Calls an operation and waits for its answer. Skips late answers to earlier calls that timed out.
    pub fn call<O: Operation>(&mut self, op: O) -> Result<O::Answer, CallError> {
        let result = self.ask(op.into())?;
        let answer = Answer { id: self.last_id, ok: Some(true), error: None, result };
        answer.into_result::<O>().map_err(|refusal| CallError::Refused { op: O::NAME, refusal })
    }

    /// Calls any operation and returns the result as the channel carries it. Strings in the result are
    /// [escaped](crate::escape), because people read them and the device is not trusted.
    pub fn ask(&mut self, op: Op) -> Result<Map<String, Value>, CallError> {
        self.last_id += 1;
        let name = op.name();
        let request = Request { id: self.last_id, op };
        let broken = |error| CallError::Channel { op: name, error };
        self.writer
            .write_all(format!("{}\n", request.to_line()).as_bytes())
            .and_then(|()| self.writer.flush())
            .map_err(broken)?;
        let id = self.last_id;
        let mut late = None;
        loop {
            let line = self.lines.read().map_err(|error| broken(name_late_answer(error, id, late)))?;
            let line = line.ok_or_else(|| broken(io::ErrorKind::UnexpectedEof.into()))?;
            let bad = |message| {
                let refusal = Refusal { code: ErrorCode::BadAnswer, message };
                CallError::Refused { op: name, refusal }
            };
            let unreadable = |error: serde_json::Error| bad(format!("{error}, in: {}", start(&line)));
            let no_json = |error: serde_json::Error| {
                let advice = "nothing but answers may stand on the channel";
                bad(format!("{error}: the line is not JSON: {}; {advice}", start(&line)))
            };
            let mut value: Value = serde_json::from_str(&line).map_err(no_json)?;
            escape_value(&mut value);
            if value.get("event").is_some() {
                // An event of an unknown kind belongs to a later version of the channel.
                if let Ok(event) = serde_json::from_value::<Event>(value) {
                    self.keep(event, line.len()).map_err(broken)?;
                }
                continue;
            }
            let answer: Answer = serde_json::from_value(value).map_err(unreadable)?;
            // No request has the id 0: the device answers so if it cannot read one, or serves another suite.
            if answer.id > id || answer.id == 0 {
                return Err(match answer.error {
                    Some(refusal) if answer.id == 0 && refusal.code == ErrorCode::Exhausted => {
                        CallError::Refused { op: name, refusal }
                    }
                    error => {
                        let why = error.map(|refusal| format!(": {refusal}")).unwrap_or_default();
                        bad(format!("the answer to {id} has the id {}{why}", answer.id))
                    }
                });
            }
            if answer.id == id {
                return match answer.error {
                    Some(refusal) => Err(CallError::Refused { op: name, refusal }),
                    None if answer.ok == Some(false) => {
                        Err(bad("`ok` is false, and there is no `error`".into()))
                    }
                    None => Ok(answer.result),
                };
            }
            late = Some(answer.id);
        }
    }

    /// Returns the oldest unread event, or `None` if there is none. Does not read from the channel.
    pub fn poll_event(&mut self) -> Option<Event> {
        let (event, bytes) = self.events.pop_front()?;
        self.event_bytes -= bytes;
        Some(event)
    }

    fn keep(&mut self, event: Event, bytes: usize) -> io::Result<()> {
        if self.events.len() == MAX_EVENTS || self.event_bytes + bytes > MAX_EVENT_BYTES {
            let message = format!(
                "the device sends events instead of an answer: more than {MAX_EVENTS} events or \
                 {MAX_EVENT_BYTES} bytes wait unread"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        self.event_bytes += bytes;
        self.events.push_back((event, bytes));
        Ok(())
    }
}

/// Adds to a timeout the id of the last answer that belongs to an earlier request, if there was one.
fn name_late_answer(error: io::Error, id: u64, late: Option<u64>) -> io::Error {
    match late {
        Some(late) if error.kind() == io::ErrorKind::TimedOut => {
            let message =
                format!("{error}; the id of the request is {id}, and that of the last answer {late}");
            io::Error::new(io::ErrorKind::TimedOut, message)
        }
        _ => error,
    }
}

/// Returns the first characters of a line, escaped.
fn start(line: &str) -> String {
    escape(&line.chars().take(120).collect::<String>()).into_owned()
}

/// The reason why a call has no result.
#[derive(Debug)]
pub enum CallError {
    /// The device refused the operation.
    Refused {
        /// The name of the operation.
        op: &'static str,
        /// The device's reason.
        refusal: Refusal,
    },
    /// The channel is broken, or no answer arrived in time.
    Channel {
        /// The name of the operation.
        op: &'static str,
        /// The error of the channel.
        error: io::Error,
    },
}

impl CallError {
    /// Returns true if the device does not support the operation. Rules that need it are skipped.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Counters;
    use std::io::{BufReader, Read};

    /// Repeats one event forever.
    struct Babbler {
        line: Vec<u8>,
        at: usize,
    }

    impl Read for Babbler {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let mut rest = &self.line[self.at..];
            let read = rest.read(buffer)?;
            self.at = (self.at + read) % self.line.len();
            Ok(read)
        }
    }

    fn asked(padding: usize) -> (String, usize) {
        let padding = "a".repeat(padding);
        let line =
            format!(r#"{{"event":"completion","operation":4,"status":"ok","return_code":"{padding}"}}"#);
        let babbler = Babbler { line: (line + "\n").into_bytes(), at: 0 };
        let mut client = Client::new(BufReader::new(babbler), Vec::new());
        let error = client.call(Counters {}).unwrap_err().to_string();
        (error, client.events.len())
    }

    #[test]
    fn a_refusal_without_an_error_says_so() {
        let answer = "{\"id\":1,\"ok\":false}\n";
        let error = Client::new(answer.as_bytes(), Vec::new()).call(Counters {}).unwrap_err();
        assert!(error.to_string().contains("`ok` is false, and there is no `error`"), "{error}");
    }

    fn error_after(answers: &str) -> String {
        Client::new(answers.as_bytes(), Vec::new()).call(Counters {}).unwrap_err().to_string()
    }

    #[test]
    fn answer_with_the_id_0_is_an_error() {
        let error = error_after("{\"id\":0,\"error\":{\"code\":\"bad_request\",\"message\":\"what?\"}}\n");
        assert!(error.ends_with("the answer to 1 has the id 0: bad request: what?"), "{error}");
    }

    #[test]
    fn device_that_serves_another_suite_says_so_plainly() {
        let error =
            error_after("{\"id\":0,\"error\":{\"code\":\"exhausted\",\"message\":\"another suite\"}}\n");
        assert_eq!(error, "counters: exhausted: another suite");
    }

    #[test]
    fn timeout_names_the_id_of_a_late_answer() {
        let timeout = || io::Error::new(io::ErrorKind::TimedOut, "no answer");
        let error = name_late_answer(timeout(), 7, Some(1)).to_string();
        assert_eq!(error, "no answer; the id of the request is 7, and that of the last answer 1");
        assert_eq!(name_late_answer(timeout(), 7, None).to_string(), "no answer");
    }

    #[test]
    fn error_shows_a_line_that_is_not_json() {
        let error = error_after("starting\n");
        let end = "the line is not JSON: starting; nothing but answers may stand on the channel";
        assert!(error.ends_with(end), "{error}");
    }

    #[test]
    fn error_names_the_keys_of_a_refusal() {
        let error = error_after("{\"id\":1,\"error\":\"unsupported\"}\n");
        assert!(error.contains("expected an object with `code` and `message`"), "{error}");
        let error = error_after("{\"id\":1,\"error\":{\"code\":\"no\",\"message\":\"no reads\"}}\n");
        assert_eq!(error, "counters: unknown error code: no reads");
    }

    #[test]
    fn error_names_the_key_of_a_bad_answer() {
        let answer = r#"{"id":1,"ok":true,"pdcs":"two"}"#;
        let error = Client::new(answer.as_bytes(), Vec::new()).call(Counters {}).unwrap_err().to_string();
        assert!(error.contains(r#"bad answer to counters: pdcs: invalid type: string "two""#), "{error}");
    }

    #[test]
    fn endless_events_are_an_error_that_names_the_bound() {
        let (error, kept) = asked(0);
        assert!(error.contains("more than 65536 events or 33554432 bytes wait unread"), "{error}");
        assert_eq!(kept, MAX_EVENTS);
        let (_, kept) = asked(1 << 20);
        assert_eq!(kept, 31, "long events are bounded by their bytes");
    }
}
