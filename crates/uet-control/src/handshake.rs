use crate::{Answer, ErrorCode, Op, Request};

/// The start of a connection, as the device sees it: the first request must be `hello`.
///
/// Any program on the machine can reach the port of a device. A web page in a browser, too: it sends lines of its choice
/// after those of an HTTP header. So a device closes a connection that begins with anything else.
///
/// ```
/// use uet_control::Handshake;
///
/// let hello = r#"{"id":1,"op":"hello","protocol":1}"#;
/// let reset = r#"{"id":2,"op":"reset"}"#;
///
/// let mut handshake = Handshake::default();
/// assert!(!handshake.is_done());
/// assert_eq!(handshake.refuse(hello), None);
/// assert!(handshake.is_done());
/// assert_eq!(handshake.refuse(reset), None);
///
/// for first in [reset, "POST / HTTP/1.1", r#"{"id":1,"op":"hello"}"#] {
///     assert!(Handshake::default().refuse(first).is_some());
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    greeted: bool,
}

impl Handshake {
    /// Returns true once the connection has begun with `hello`.
    pub fn is_done(&self) -> bool {
        self.greeted
    }

    /// Checks a line before the device handles it. Returns an answer if the line comes first and is no `hello`: the device
    /// sends this answer and closes the connection.
    pub fn refuse(&mut self, line: &str) -> Option<Answer> {
        if self.greeted {
            return None;
        }
        let (id, reason) = match Request::parse(line) {
            Ok(Request { op: Op::Hello(_), .. }) => {
                self.greeted = true;
                return None;
            }
            Ok(Request { id, op }) => (id, format!("not `{}`", op.name())),
            Err(error) => (Request::refuse(line, &error).id, error.to_string()),
        };
        let message = format!(
            "the first request of a connection must be {{\"id\":1,\"op\":\"hello\",\"protocol\":1}}: {reason}"
        );
        Some(Answer::error(id, ErrorCode::BadRequest, message))
    }
}
