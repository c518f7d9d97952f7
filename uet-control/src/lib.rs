//! The control channel of a device under test: JSON lines by which a conformance suite tells it what to do.
//!
//! The suite is the client. It sends a [`Request`] per line; the device sends back an [`Answer`] with the same `id`, in
//! any order, and [`Event`]s in between. `docs/control-channel.md` says the same for people who write a device in
//! another language; the JSON Schema there is made from the types here (feature `schema`).
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
mod lines;
mod message;
mod op;

pub use client::{CallError, Client};
pub use escape::{escape, escape_json, escape_lines, escape_value};
pub use fill::{Fill, Hex, Hex64, pattern};
pub use lines::{Lines, MAX_LINE};
pub use message::{Answer, Completion, ErrorCode, Event, Refusal, Request, Status};
pub use op::*;

/// The version of the channel that this crate speaks.
pub const PROTOCOL: u32 = 1;

/// The JSON Schema of what passes over the channel: a request, an answer or an event per line.
#[cfg(feature = "schema")]
pub fn schema() -> serde_json::Value {
    #[derive(schemars::JsonSchema)]
    #[serde(untagged)]
    #[allow(dead_code)] // only its schema is wanted
    enum Line {
        Request(Request),
        Answer(Answer),
        Event(Event),
    }
    let mut schema = schemars::schema_for!(Line).to_value();
    schema["title"] = "A line of the control channel of a UET device under test".into();
    schema
}

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
