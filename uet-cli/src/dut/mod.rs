//! Devices that the conformance suite can reach.

mod embedded;

pub use embedded::Embedded;
