//! RCCC (section 3.6.14): credit from the destination, which paces all its sources. [`Rccc`] is the source side, per
//! context; [`CreditPacer`] the destination side, per FEP.
//!
//! Public sources say little more. The details follow the consortium's public simulator, or are ours.

mod pacer;
mod params;
mod queue;
mod source;

pub use pacer::{CreditPacer, Grant};
pub use params::{PacerParams, RcccParams};
pub use queue::CreditSource;
pub use source::Rccc;
