//! RCCC (section 3.6.14): credit from the destination, which paces all that send to it. [`Rccc`] is the source's side,
//! per context; [`CreditPacer`] the destination's, per FEP.
//!
//! Public sources settle little more than this; how it is done follows the consortium's public simulator or is ours.

mod pacer;
mod params;
mod queue;
mod source;

pub use pacer::{CreditPacer, Grant};
pub use params::{PacerParams, RcccParams};
pub use queue::CreditSource;
pub use source::Rccc;
