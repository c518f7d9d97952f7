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
mod sequences;
