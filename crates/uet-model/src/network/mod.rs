//! Nodes on a network in virtual time. Runs with equal seeds are identical, bit for bit.
//!
//! | item | description |
//! | --- | --- |
//! | [`Agenda`] | a time-ordered queue with a stable order |
//! | [`stream`] | one seeded random stream per node |
//! | [`Impairment`] | a packet rule with a text syntax: `drop 5%`, `delay 20us ack every 4` |
//! | [`Fabric`] | packets in flight: latency, rules, arrival |
//! | [`Network`] | nodes, a fabric and a virtual clock |
//!
//! This example has two nodes and a network that drops the first packet:
//!
//! ```rust
//! use uet_model::network::{Network, Node};
//! use uet_model::{Packet, Time};
//!
//! /// Sends the packets in its queue and keeps the packets that arrive.
//! #[derive(Default)]
//! struct Host {
//!     queue: Vec<Packet>,
//!     received: Vec<Time>,
//! }
//!
//! impl Node for Host {
//!     fn poll_transmit(&mut self, _: Time) -> Option<Packet> {
//!         self.queue.pop()
//!     }
//!     fn handle_input(&mut self, now: Time, _: Packet) {
//!         self.received.push(now);
//!     }
//!     fn poll_timeout(&self) -> Option<Time> {
//!         None
//!     }
//!     fn handle_timeout(&mut self, _: Time) {}
//! }
//!
//! let mut network = Network::<Host>::new(7);
//! network.fabric().impair("drop ack 1".parse()?);
//! let a = network.add([10, 0, 0, 1], Host::default());
//! let b = network.add([10, 0, 0, 2], Host::default());
//!
//! let ack = &[0x38, 0, 0, 0, 0, 0, 0, 7, 0x80, 1, 0x40, 1];
//! let packet = Packet::from_wire([10, 0, 0, 1], [10, 0, 0, 2], ack[..].into())?;
//! network[a].queue = vec![packet.clone(), packet];
//! network.run(core::time::Duration::from_micros(5));
//!
//! assert_eq!(network.fabric().counters().lost, 1);
//! assert_eq!(network[b].received, [Time(1_000)], "the second packet, after one microsecond of latency");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agenda;
mod fabric;
mod impairment;
mod kind;
mod nodes;
mod syntax;

pub use agenda::Agenda;
pub use fabric::{Arrival, Fabric, HELD, PacketCounts};
pub use impairment::{Impairment, Treatment, trim};
pub use kind::PacketKind;
pub use nodes::{Network, Node, Observer};
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
/// use uet_model::network::stream;
///
/// assert_eq!(stream(7, 1).u64(..), stream(7, 1).u64(..));
/// assert_ne!(stream(7, 1).u64(..), stream(7, 2).u64(..));
/// assert_ne!(stream(7, 1).u64(..), stream(8, 1).u64(..));
/// ```
pub fn stream(seed: u64, node: u64) -> fastrand::Rng {
    fastrand::Rng::with_seed(stream_seed(seed, node))
}
