//! The layers around UET, as far as a UET packet needs them.

mod ethernet;
mod ip;
mod udp;

pub use ethernet::*;
pub use ip::*;
pub use udp::*;
