//! Semantics without packet delivery.

mod atomics;
mod errors;
mod limits;
mod network;
mod pair;
mod reads;
mod reflector;
mod sends;
mod strangers;
mod vectors;
mod writes;
