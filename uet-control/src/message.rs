use crate::{Hex64, Op, Operation};
use core::fmt;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// What the suite sends: one per line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Request {
    /// The answer has the same.
    pub id: u64,
    /// What is wanted.
    #[serde(flatten)]
    pub op: Op,
}

impl<'de> Deserialize<'de> for Request {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(from)?;
        let id = fields.remove("id").ok_or_else(|| D::Error::missing_field("id"))?;
        let id = id.as_u64().ok_or_else(|| D::Error::custom("`id` is not a number from 0 to 2^64-1"))?;
        // Serde would take a number for the position of the operation in the list.
        if fields.get("op").is_some_and(|op| !op.is_string()) {
            return Err(D::Error::custom("`op` is not a string"));
        }
        let op = Op::deserialize(Value::Object(fields)).map_err(D::Error::custom)?;
        Ok(Request { id, op })
    }
}

impl Request {
    /// Reads a line.
    pub fn parse(line: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(line)
    }

    /// What to answer to a line that is not a request that we know: an operation of another name is `unsupported`,
    /// everything else `bad_request`.
    pub fn refuse(line: &str, error: &serde_json::Error) -> Answer {
        let value: Value = serde_json::from_str(line).unwrap_or_default();
        let id = value["id"].as_u64().unwrap_or(0);
        match value["op"].as_str() {
            Some(name) if !Op::NAMES.contains(&name) => {
                Answer::error(id, ErrorCode::Unsupported, format!("no operation '{name}'"))
            }
            _ => Answer::error(id, ErrorCode::BadRequest, error.to_string()),
        }
    }

    /// The line, without its end.
    pub fn to_line(&self) -> String {
        line(self)
    }
}

/// What the device sends back for a request: one per line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// That of the request.
    pub id: u64,
    /// `true`, when it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// Why it was not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Refusal>,
    /// What the operation gives; see the answer type of each.
    #[serde(flatten)]
    pub result: Map<String, Value>,
}

impl Answer {
    /// It was done, with this result.
    pub fn ok(id: u64, result: &impl Serialize) -> Self {
        // A result is a struct with fields or without: an object, or null.
        let result = match serde_json::to_value(result) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        Answer { id, ok: Some(true), error: None, result }
    }

    /// It was not done.
    pub fn error(id: u64, code: ErrorCode, message: impl Into<String>) -> Self {
        let error = Some(Refusal { code, message: message.into() });
        Answer { id, ok: None, error, result: Map::new() }
    }

    /// The result of this operation.
    pub fn into_result<O: Operation>(self) -> Result<O::Answer, Refusal> {
        match self.error {
            Some(refusal) => Err(refusal),
            None => read(Value::Object(self.result)).map_err(|error| Refusal {
                code: ErrorCode::BadAnswer,
                message: format!("answer to {}: {error}", O::NAME),
            }),
        }
    }

    /// The line, without its end.
    pub fn to_line(&self) -> String {
        line(self)
    }
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, serde_json::Error> {
    serde_json::from_value(value)
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refusal {
    /// For programs.
    pub code: ErrorCode,
    /// For people.
    #[serde(default)]
    pub message: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)
    }
}

/// The kinds of refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The device cannot do this. Cases that need it are skipped.
    Unsupported,
    /// The request makes no sense, or cannot be read.
    BadRequest,
    /// There is no such peer, region or operation.
    NotFound,
    /// A limit of the device is reached.
    Exhausted,
    /// It did not happen in time.
    Timeout,
    /// Something went wrong inside the device.
    Internal,
    /// An answer that cannot be read. Only the client's side says so.
    BadAnswer,
    /// A code that is not in this list.
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
            ErrorCode::Other => "error",
        }
    }
}

/// What the device tells by itself: one per line, without an id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// An operation or a receive has ended.
    Completion(Completion),
}

impl Event {
    /// The line, without its end.
    pub fn to_line(&self) -> String {
        line(self)
    }
}

/// How an operation or a receive has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Completion {
    /// Which one, by the number that `post` or `post_receive` gave.
    pub operation: u64,
    /// How.
    pub status: Status,
    /// Bytes that were moved.
    #[serde(default)]
    pub length: u64,
    /// The SES return code, by its canonical name, where one was seen: `"OK"`, `"BAD_MKEY"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_code: Option<String>,
    /// Of a receive: the sender's header data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_data: Option<Hex64>,
    /// What a read or a fetching atomic brought, when it was asked for with the operation. An event may leave it out: it is
    /// for who waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<crate::Hex>,
    /// More, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// How something has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Well.
    Ok,
    /// The other side refused it: see the return code.
    Refused,
    /// It did not get through.
    Failed,
    /// It was given up on this side.
    Cancelled,
}

/// All messages are maps with text for keys: they always have a JSON form.
fn line(message: &impl Serialize) -> String {
    serde_json::to_string(message).unwrap_or_default()
}
