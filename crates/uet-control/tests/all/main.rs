//! All tests of the control channel in one program.

mod messages;
#[cfg(feature = "schema")]
mod schema;
