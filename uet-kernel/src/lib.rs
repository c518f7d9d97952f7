//! A deterministic simulation kernel. Runs with equal seeds are identical, bit for bit.
//!
//! | item | description |
//! | --- | --- |
//! | [`Agenda`] | a time-ordered queue with a stable order |
//! | [`stream`] | one seeded random stream per node |
//! | [`Impairment`] | a packet rule with a text syntax: `drop 5%`, `delay 20us ack every 4` |
//! | [`Fabric`] | packets in flight: latency, rules, arrival |
//! | [`Network`] | nodes, a fabric and a virtual clock |
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod agenda;
mod fabric;
mod impairment;
mod kind;
mod network;
mod syntax;

pub use agenda::Agenda;
pub use fabric::{Arrival, Counters, Fabric, HELD};
pub use impairment::{Impairment, Treatment, trim};
pub use kind::PacketKind;
pub use network::{Network, Node, Observer};
pub use syntax::SyntaxError;

/// Returns the seed of node `node` in a run with seed `seed`. Changes to one node leave the random numbers of all
/// others unchanged.
pub fn stream_seed(seed: u64, node: u64) -> u64 {
    // `Rng` scrambles its seed, so neighboring seeds give unrelated streams.
    seed.wrapping_mul(0x9e37_79b9).wrapping_add(node)
}

/// Returns the random stream of node `node` in a run with seed `seed`.
///
/// ```
/// use uet_kernel::stream;
///
/// assert_eq!(stream(7, 1).u64(..), stream(7, 1).u64(..));
/// assert_ne!(stream(7, 1).u64(..), stream(7, 2).u64(..));
/// assert_ne!(stream(7, 1).u64(..), stream(8, 1).u64(..));
/// ```
pub fn stream(seed: u64, node: u64) -> fastrand::Rng {
    fastrand::Rng::with_seed(stream_seed(seed, node))
}
