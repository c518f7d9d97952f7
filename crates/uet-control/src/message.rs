use crate::{Hex64, Op, Operation};
use core::fmt;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// A request from the suite, one per line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Request {
    /// The identifier, which the answer repeats.
    pub id: u64,
    /// The operation with its arguments.
    #[serde(flatten)]
    pub op: Op,
}

impl<'de> Deserialize<'de> for Request {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(from)?;
        let id = fields.remove("id").ok_or_else(|| D::Error::missing_field("id"))?;
        let id = id.as_u64().ok_or_else(|| D::Error::custom("`id` is not a number from 0 to 2^64-1"))?;
        // Serde would accept a number as the index of the operation.
        if fields.get("op").is_some_and(|op| !op.is_string()) {
            return Err(D::Error::custom("`op` is not a string"));
        }
        let op = Op::deserialize(Value::Object(fields)).map_err(D::Error::custom)?;
        Ok(Request { id, op })
    }
}

impl Request {
    /// Parses a line.
    pub fn parse(line: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(line)
    }

    /// Returns the answer to a line that is not a known request. For an unknown operation the error code is
    /// `unsupported`, otherwise `bad_request`.
    pub fn refuse(line: &str, error: &serde_json::Error) -> Answer {
        let value: Value = serde_json::from_str(line).unwrap_or_default();
        let id = value["id"].as_u64().unwrap_or(0);
        match value["op"].as_str() {
            Some(name) if !Op::NAMES.contains(&name) => {
                Answer::error(id, ErrorCode::Unsupported, format!("there is no operation '{name}'"))
            }
            _ => Answer::error(id, ErrorCode::BadRequest, error.to_string()),
        }
    }

    /// Returns the line without its line end.
    pub fn to_line(&self) -> String {
        line(self)
    }
}

/// The device's answer to a request, one per line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// The identifier of the request.
    pub id: u64,
    /// `true` if the operation succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// The reason why the operation failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Refusal>,
    /// The result of the operation, as its answer type defines it.
    #[serde(flatten)]
    pub result: Map<String, Value>,
}

impl Answer {
    /// Creates the answer of a successful operation with this result.
    pub fn ok(id: u64, result: &impl Serialize) -> Self {
        // A result is a struct with or without fields, and therefore an object or null.
        let result = match serde_json::to_value(result) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        Answer { id, ok: Some(true), error: None, result }
    }

    /// Creates the answer of a failed operation.
    pub fn error(id: u64, code: ErrorCode, message: impl Into<String>) -> Self {
        let error = Some(Refusal { code, message: message.into() });
        Answer { id, ok: None, error, result: Map::new() }
    }

    /// Converts the answer into the result of this operation.
    pub fn into_result<O: Operation>(self) -> Result<O::Answer, Refusal> {
        match self.error {
            Some(refusal) => Err(refusal),
            None => serde_path_to_error::deserialize(Value::Object(self.result)).map_err(|error| Refusal {
                code: ErrorCode::BadAnswer,
                message: format!("bad answer to {}: {error}", O::NAME),
            }),
        }
    }

    /// Returns the line without its line end.
    pub fn to_line(&self) -> String {
        line(self)
    }
}

/// The reason why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(expecting = "an object with `code` and `message`")]
pub struct Refusal {
    /// The kind of error, for programs.
    pub code: ErrorCode,
    /// The explanation, for people.
    #[serde(default)]
    pub message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)
    }
}

/// The kinds of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The device does not support the operation. Rules that need it are skipped.
    Unsupported,
    /// The request is invalid or cannot be parsed.
    BadRequest,
    /// The peer, region or operation does not exist.
    NotFound,
    /// The device reached one of its limits.
    Exhausted,
    /// The operation did not end in time.
    Timeout,
    /// The device failed internally.
    Internal,
    /// The answer cannot be parsed. Only the client reports this error.
    BadAnswer,
    /// An unknown error code.
    #[serde(other)]
    Other,
}

impl ErrorCode {
    const fn name(self) -> &'static str {
        match self {
            ErrorCode::Unsupported => "unsupported",
            ErrorCode::BadRequest => "bad request",
            ErrorCode::NotFound => "not found",
            ErrorCode::Exhausted => "exhausted",
            ErrorCode::Timeout => "timeout",
            ErrorCode::Internal => "internal",
            ErrorCode::BadAnswer => "bad answer",
            ErrorCode::Other => "unknown error code",
        }
    }
}

/// A message that the device sends unasked, one per line, without an identifier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// An operation or a receive ended.
    Completion(Completion),
}

impl Event {
    /// Returns the line without its line end.
    pub fn to_line(&self) -> String {
        line(self)
    }
}

/// The result of an operation or a receive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Completion {
    /// The number that `post` or `post_receive` returned.
    pub operation: u64,
    /// The outcome.
    pub status: Status,
    /// The number of bytes transferred.
    #[serde(default)]
    pub length: u64,
    /// The SES return code by its canonical name, if one was received: `"OK"`, `"BAD_MKEY"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_code: Option<String>,
    /// The sender's header data, for a receive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_data: Option<Hex64>,
    /// The data of a read or a fetching atomic, if the operation requested it. An event may omit it; the answer to
    /// `wait_completion` contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<crate::Hex>,
    /// Further explanation, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The outcome of an operation or a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It succeeded.
    Ok,
    /// The peer refused it. The return code states the reason.
    Refused,
    /// It was not delivered.
    Failed,
    /// The device aborted it.
    Cancelled,
}

/// Serializes a message. All messages are maps with string keys, so they always have a JSON form.
fn line(message: &impl Serialize) -> String {
    serde_json::to_string(message).unwrap_or_default()
}
