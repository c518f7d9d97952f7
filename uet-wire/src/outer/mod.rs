//! The layers around UET: the fields that a UET packet needs.

mod ethernet;
mod ip;
mod udp;

pub use ethernet::*;
pub use ip::*;
pub use udp::*;
