//! What the semantics decide, without packet delivery.

mod atomics;
mod catalogue;
mod errors;
mod limits;
mod pair;
mod reads;
mod sends;
mod vectors;
mod writes;
