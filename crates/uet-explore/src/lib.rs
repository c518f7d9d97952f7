//! Explores every interleaving of two endpoints of the reference model, within bounds. [`swarm`] plays random runs of many
//! endpoints.
//!
//! A [`Scenario`] states what two applications do, and how often the network may drop, duplicate, reorder, mark or trim a
//! packet. [`explore`] visits every state that they can reach, and checks the properties in each. A scenario is exhausted
//! if no state within its bounds is left.
//!
//! The search is our own. `stateright` judges single states without their history, and needs an HTTP server as a
//! dependency. This search also judges the packets of each step, and shares the proofs of liveness between states.
//!
//! # State
//!
//! A state consists of both endpoints, the packets between them, the remaining budget and the results so far. Times count
//! relative to the present, and statistics do not count. Two equal packets on the same way count as one choice.
//!
//! # Bounds
//!
//! A choice is a packet's fate, the next step of an application, or the next timer. Packets leave at once and arrive in
//! order, unless the budget allows one to overtake. A timer is free if the network is empty, else the budget pays it. No packet
//! is in flight for longer than 300 us of virtual time, which is less than closed contexts are remembered.
//!
//! # Properties
//!
//! In every state: memory holds only bytes that were written, each message is delivered at most once, no operation completes
//! twice or before its effect. Without low limits, an operation fails only if its application aborts it or withdraws its
//! memory. No CACK_PSN, SACK, NACK, CLEAR_PSN or grant is ahead of the truth, each packet passes `validate`, and congestion
//! control counts no more bytes in flight than are unanswered. Demand is cumulative, and no packet lacks the state of
//! congestion control. An ACK reports gaps, and exceeds no limit of data. With delivery complete, the last packet of a message
//! is acknowledged after all others have arrived. No refusal lasts until an operation fails. Only NACKs without a context go to
//! a third endpoint, which copies packets and passes their replies on.
//!
//! From every state: if the network loses nothing from now on, every operation completes, and both endpoints come to rest
//! without contexts, resources or bytes in flight. The passive judge of the conformance suite then judges the whole run.
#![forbid(unsafe_code)]

mod digest;
mod direction;
mod endpoint;
mod referee;
mod scenario;
pub mod scenarios;
mod search;
pub mod swarm;
mod trace;
mod walk;
mod world;

pub use endpoint::Endpoint;
pub use scenario::{Action, Budget, Control, Scenario};
pub use search::{Report, Violation, explore, play};
pub use trace::Trace;
pub use walk::walk;
pub use world::{Choice, Fate, World};
