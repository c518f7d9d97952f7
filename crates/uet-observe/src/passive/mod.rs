//! Judges both ends of every context in a capture.
//!
//! A capture may start in the middle, lack records, and show packets in another order than an endpoint saw them. A rule
//! reports a finding only if none of these explains it. The [`Observer`](crate::Observer) follows the contexts; the rules judge its facts.
//!
//! `capture` and `checker` take the packets, and `judgments` holds the state of the rules. `requests`, `acks`,
//! `answers`, `closing`, `messages`, `names`, `reads`, `rudi` and `secured` have the rules, each of its kind of packet
//! or field. `suspicion` distinguishes violations from missing records, `origin` and `restart` read comments, and
//! `finding` describes the result.

mod acks;
mod answers;
mod capture;
mod checker;
mod closing;
mod finding;
mod judgments;
mod messages;
mod names;
mod origin;
mod reads;
mod requests;
mod restart;
mod rudi;
mod secured;
mod suspicion;

pub use capture::{CaptureChecker, CapturedPacket};
pub use checker::Checker;
pub use finding::{CaptureFinding, Finding};
pub use origin::Origin;
pub use restart::Restart;
