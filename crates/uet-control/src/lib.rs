//! The control channel of a device under test. A conformance suite sends commands to the device as JSON lines.
//!
//! The suite is the client. It sends one [`Request`] per line. The device replies with an [`Answer`] with the same
//! `id`, in any order, and sends [`Event`]s at any time. `docs/control-channel.md` documents the channel for devices in
//! other languages. Its JSON Schema is generated from the types of this crate (feature `schema`).
//!
//! ```
//! use uet_control::{Answer, Operated, Op, Post, Request};
//!
//! let line = r#"{"id":7,"op":"post","kind":"write","peer":1,"length":16384,"fill":{"seed":3},"remote":{"key":"0xacce5"}}"#;
//! let request = Request::parse(line)?;
//! let Op::Post(Post { length, .. }) = &request.op else { panic!() };
//! assert_eq!(*length, 16_384);
//!
//! let answer = Answer::ok(request.id, &Operated { operation: 1 });
//! assert_eq!(answer.to_line(), r#"{"id":7,"ok":true,"operation":1}"#);
//! # Ok::<(), serde_json::Error>(())
//! ```
#![forbid(unsafe_code)]

mod client;
mod escape;
mod fill;
mod handshake;
mod keys;
mod lines;
mod message;
mod op;
mod parameter;

pub use client::{CallError, Client};
pub use escape::{escape, escape_json, escape_lines, escape_value};
pub use fill::{Fill, Hex, Hex64, pattern};
pub use handshake::Handshake;
pub use keys::{InstallKeys, KeyMode, Secret, Secrets, SecureDomain, SsiContext};
pub use lines::{Lines, MAX_LINE};
pub use message::{Answer, Completion, ErrorCode, Event, Refusal, Request, Status};
pub use op::*;
pub use parameter::{Origin, PARAMETERS, Parameter, ParameterKind};

/// The version of the channel that this crate implements.
pub const PROTOCOL: u32 = 1;

/// Returns the JSON Schema of a line on the channel: a request, an answer or an event.
#[cfg(feature = "schema")]
pub fn schema() -> serde_json::Value {
    #[derive(schemars::JsonSchema)]
    #[serde(untagged)]
    #[allow(dead_code)] // used only for its schema
    enum Line {
        Request(Request),
        Answer(Answer),
        Event(Event),
    }
    let mut schema = schemars::schema_for!(Line).to_value();
    schema["title"] = "A line of the control channel of a UET device under test".into();
    schema
}

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
