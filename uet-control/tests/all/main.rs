//! The tests of the control channel, as one program.

mod messages;
#[cfg(feature = "schema")]
mod schema;
