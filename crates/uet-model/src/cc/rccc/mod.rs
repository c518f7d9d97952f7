//! RCCC (section 3.6.14): credit from the destination, which paces all its sources. [`Rccc`] is the source side, one
//! per context. [`CreditPacer`] is the destination side, one per FEP.
//!
//! Public sources give few details. The rest follows the consortium's public simulator, or is our choice.

mod pacer;
mod params;
mod queue;
mod source;

pub use pacer::{CreditPacer, Grant};
pub use params::{PacerParams, RcccParams};
pub use queue::CreditSource;
pub use source::Rccc;
