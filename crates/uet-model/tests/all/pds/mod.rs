//! Packet delivery, between two endpoints on a simulated network.

mod ack;
mod common;
mod congestion;
mod control;
mod hostile;
mod modes;
mod nack;
mod open;
mod properties;
#[cfg(feature = "tss")]
mod secured;
mod sequences;
