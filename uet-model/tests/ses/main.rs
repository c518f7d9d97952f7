//! What the semantics decide, without packet delivery.

#[path = "../common/cases.rs"]
#[allow(unreachable_pub)]
mod cases;

mod atomics;
mod errors;
mod limits;
mod network;
mod pair;
mod reads;
mod sends;
mod vectors;
mod writes;
